//! AR-UDT (An, Wang, Kim and Cho, "An Adaptive UDT Rate Control Method on Network Traffic
//! Condition"): UDT that also adapts its rate between acknowledgements.
//!
//! On an acknowledgement, after UDT has set the period `P`, the next round-trip time is predicted
//! from the last three (equations 4 and 5):
//!
//! ```text
//! R(t+1) = ((R(t-1) - R(t-2)) w1 + (R(t) - R(t-1)) w2) / 2 + R(t)       w1 + w2 = 1, w1 < w2
//! ratio  = R(t+1) / R(t)
//!
//! weight = 0.99     ratio <= alpha          alpha = 0.996
//!          0.999    alpha < ratio <= 1
//!          1.0      1 < ratio < beta        beta = 1.004
//!          1.001    beta <= ratio
//! ```
//!
//! (The paper's listing has 1 in two rows; the first match applies.) Until the next acknowledgement,
//! `P = P weight` at each new packet whose number is a multiple of 16, where UDT sends its packet
//! pairs. After a NAK the weight is 1 until the next acknowledgement.
//!
//! The weights compound: at 83,000 packets/s there are 52 of them in a SYN, which raises the rate by
//! 5 % with 0.999 and by 69 % with 0.99.
//!
//! Choices where the paper is silent: `R` is the sender's smoothed round-trip time, with weight 1/8
//! for each report, as in UDT4 and UDT's module for NS-2; `smooth=off` uses the reports themselves.
//! `w1` is 0.25. The weight is 1 in slow start and before the third report. The minimum of `P` is
//! 1 us, that of the NS-2 module with which the paper was made.

use super::{Udt, begins_pair};
use crate::{
    Ack, ConfigError, CongestionControl, CongestionEvent, ConnectionConfig, ControlParameters,
    Metric, Options, Path, Sent, Signal,
};

/// Predicts the next round-trip time (equations 4 and 5).
#[derive(Clone, Copy, Debug)]
struct RttPredictor {
    w1: f64,
    /// The last round-trip times, newest first, seconds.
    rtts: [f64; 3],
    reports: u32,
}

impl RttPredictor {
    /// Takes a round-trip time, seconds.
    fn on_report(&mut self, rtt: f64) {
        self.rtts = [rtt, self.rtts[0], self.rtts[1]];
        self.reports = self.reports.saturating_add(1);
    }

    /// `ratio`; 1 before there are three reports.
    fn ratio(&self) -> f64 {
        let [newest, before, first] = self.rtts;
        if self.reports < 3 || newest <= 0.0 {
            return 1.0;
        }
        let change = (before - first) * self.w1 + (newest - before) * (1.0 - self.w1);
        (change / 2.0 + newest) / newest
    }
}

/// The weights by ratio.
#[derive(Clone, Copy, Debug)]
struct Weights {
    alpha: f64,
    beta: f64,
}

impl Weights {
    fn weight(&self, ratio: f64) -> f64 {
        if ratio <= self.alpha {
            0.99
        } else if ratio <= 1.0 {
            0.999
        } else if ratio < self.beta {
            1.0
        } else {
            1.001
        }
    }
}

/// AR-UDT.
#[derive(Clone, Debug)]
pub struct AdaptiveUdt {
    udt: Udt,
    predictor: RttPredictor,
    weights: Weights,
    /// Whether `R` is the sender's smoothed round-trip time.
    smooth_rtt: bool,
    adapt: bool,
    /// The weight until the next acknowledgement.
    weight: f64,
}

impl AdaptiveUdt {
    /// AR-UDT at the start of a connection. Takes the options `w1`, `smooth` (`off` predicts from
    /// unsmoothed reports), `alpha`, `beta`, `adapt` (`off` predicts but does not adapt), and those of
    /// UDT.
    ///
    /// # Errors
    /// If one of them has a value that it cannot have.
    pub fn from_options(
        options: &mut Options,
        init: &ConnectionConfig,
    ) -> Result<AdaptiveUdt, ConfigError> {
        let w1 = options.number("w1", 0.25, 0.0..=0.5, "0 to 0.5")?;
        Ok(AdaptiveUdt {
            predictor: RttPredictor { w1, rtts: [0.0; 3], reports: 0 },
            weights: Weights {
                alpha: options.number("alpha", 0.996, 0.0..=1.0, "0 to 1")?,
                beta: options.number("beta", 1.004, 1.0..=100.0, "1 to 100")?,
            },
            smooth_rtt: options.switch("smooth", true)?,
            adapt: options.switch("adapt", true)?,
            weight: 1.0,
            udt: Udt::from_options(options, init)?,
        })
    }

    /// Whether an acknowledgement lets the next packet leave at once, whatever the pacing rate.
    pub(crate) fn is_ack_clocked(&self) -> bool {
        self.udt.is_ack_clocked()
    }
}

impl CongestionControl for AdaptiveUdt {
    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        self.udt.on_ack(path, ack);
        let Some(report) = ack.udt else { return };
        let rtt = if self.smooth_rtt { self.udt.rtt() } else { report.rtt.as_secs_f64() };
        self.predictor.on_report(rtt);
        let forecasts = self.adapt && self.predictor.reports >= 3 && !self.udt.slow_start;
        self.weight = if forecasts { self.weights.weight(self.predictor.ratio()) } else { 1.0 };
    }

    fn on_congestion(&mut self, path: &Path, event: &CongestionEvent) {
        self.udt.on_congestion(path, event);
        if event.signal == Signal::Loss {
            self.weight = 1.0;
        }
    }

    #[inline]
    fn on_sent(&mut self, path: &Path, sent: &Sent) {
        self.udt.on_sent(path, sent);
        if begins_pair(sent) {
            self.udt.scale_period(self.weight);
        }
    }

    #[inline]
    fn control(&self) -> ControlParameters {
        self.udt.control()
    }

    fn on_mtu_update(&mut self, path: &Path, previous_mss: u32) {
        self.udt.on_mtu_update(path, previous_mss);
    }

    fn uses_prr(&self) -> bool {
        self.udt.uses_prr()
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.udt.inspect(show);
        show(Metric { name: "rtt_ratio", value: self.predictor.ratio() });
        show(Metric { name: "weight", value: self.weight });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forecast(w1: f64, rtts_ms: &[u64]) -> f64 {
        let mut forecast = RttPredictor { w1, rtts: [0.0; 3], reports: 0 };
        for &ms in rtts_ms {
            forecast.on_report(ms as f64 / 1e3);
        }
        forecast.ratio()
    }

    #[test]
    fn the_prediction_adds_half_the_weighted_changes_to_the_last_rtt() {
        // ((110 - 100) 0.25 + (130 - 110) 0.75) / 2 + 130 = 138.75
        assert!((forecast(0.25, &[100, 110, 130]) - 138.75 / 130.0).abs() < 1e-12);
        // ((90 - 100) 0.4 + (90 - 90) 0.6) / 2 + 90 = 88
        assert!((forecast(0.4, &[1, 100, 90, 90]) - 88.0 / 90.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_is_predicted_from_fewer_than_three_reports() {
        assert_eq!(forecast(0.25, &[]), 1.0);
        assert_eq!(forecast(0.25, &[100, 200]), 1.0);
    }

    #[test]
    fn the_weights_and_their_bounds_are_those_of_the_paper_s_listing() {
        let weights = Weights { alpha: 0.996, beta: 1.004 };
        let table = [
            (0.9, 0.99),
            (0.996, 0.99),
            (0.9961, 0.999),
            (1.0, 0.999),
            (1.000_1, 1.0),
            (1.003_9, 1.0),
            (1.004, 1.001),
            (1.1, 1.001),
        ];
        for (ratio, weight) in table {
            assert_eq!(weights.weight(ratio), weight, "at {ratio}");
        }
    }
}
