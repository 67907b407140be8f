//! Google Congestion Control: draft-ietf-rmcat-gcc-02, whose Kalman filter is replaced by the
//! trendline estimator of libwebrtc (`modules/congestion_controller/goog_cc`), as it has been there
//! since 2016. There are no probes, which libwebrtc has and the draft has not.

mod aimd;
mod loss;
mod throughput;
mod trendline;

use crate::control::{Feedback, MediaControl, RateLimits, metric};
use crate::options::RtpOptions;
use aimd::AimdRateControl;
use dumbbell_cc::Metric;
use dumbbell_units::Rate;
use loss::LossBased;
use throughput::Throughput;
use trendline::TrendlineEstimator;

/// What the delay says (draft, section 5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Underuse,
    Normal,
    Overuse,
}

/// Packets leave at so many times the target rate (libwebrtc: `kDefaultPaceMultiplier`).
const PACE_MULTIPLIER: f64 = 2.5;

/// Google Congestion Control. Rates are in bit/s.
pub struct Gcc {
    min: f64,
    max: f64,
    estimator: TrendlineEstimator,
    throughput: Throughput,
    aimd: AimdRateControl,
    loss: LossBased,
}

impl Gcc {
    /// The control of a flow with these options.
    pub fn new(options: &RtpOptions) -> Gcc {
        let start = options.start_rate_bps as f64;
        Gcc {
            min: options.min_rate_bps as f64,
            max: f64::INFINITY,
            estimator: TrendlineEstimator::default(),
            throughput: Throughput::default(),
            aimd: AimdRateControl::new(start),
            loss: LossBased::default(),
        }
    }
}

impl MediaControl for Gcc {
    fn set_limits(&mut self, limits: RateLimits) {
        (self.min, self.max) = (limits.min.bits_per_sec(), limits.max.bits_per_sec());
        self.aimd.set_limits(self.min, self.max);
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        for packet in feedback.packets {
            self.loss.on_packet(packet.arrived_at.is_none());
            if let Some(arrived_at) = packet.arrived_at {
                self.throughput.on_packet(arrived_at, packet.size);
                self.estimator.on_packet(packet.sent_at, arrived_at);
            }
        }
        let r_hat = self.throughput.rate();
        self.aimd.update(feedback.now, self.estimator.signal(), r_hat, feedback.srtt);
        self.loss.update(feedback.now, self.aimd.target());
    }

    fn target_rate(&self) -> Rate {
        let target = self.aimd.target().min(self.loss.target().unwrap_or(f64::INFINITY));
        Rate::from_bits_per_sec(target.max(self.min).min(self.max))
    }

    fn pacing_rate(&self) -> Rate {
        self.target_rate() * PACE_MULTIPLIER
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        show(metric("delay_based_rate", self.aimd.target() / 8.0));
        show(metric("loss_based_rate", self.loss.target().unwrap_or(f64::NAN) / 8.0));
        show(metric("acknowledged_rate", self.throughput.rate().unwrap_or(f64::NAN) / 8.0));
        show(metric("modified_trend", self.estimator.modified_trend() / 1e3));
        show(metric("del_var_th", self.estimator.threshold() / 1e3));
        show(metric(
            "overuse",
            match self.estimator.signal() {
                Signal::Underuse => -1.0,
                Signal::Normal => 0.0,
                Signal::Overuse => 1.0,
            },
        ));
    }
}
