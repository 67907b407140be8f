//! The gradient of the delay, and the over-use detector, as in libwebrtc (`inter_arrival_delta.cc`
//! and `trendline_estimator.cc`); the detector's threshold is that of section 5.4 of the draft.

use super::Signal;
use dumbbell_units::{Span, Time};
use std::collections::VecDeque;

/// Packets that were sent within so long are a group (draft, section 5.2: `burst_time`).
const BURST_TIME: Span = Span::from_millis(5);
/// A burst of packets that arrive together is no longer than this (`kMaxBurstDuration`).
const MAX_BURST: Span = Span::from_millis(100);
/// Groups of which the line is fitted (`kDefaultTrendlineWindowSize`).
const WINDOW_SIZE: usize = 20;
/// Weight of the past in the smoothed delay (`kDefaultTrendlineSmoothingCoeff`).
const SMOOTHING: f64 = 0.9;
/// Factor of the trend before it is compared (`kDefaultTrendlineThresholdGain`).
const THRESHOLD_GAIN: f64 = 4.0;
/// Maximum of the number of deltas in that factor (`kMinNumDeltas`).
const MAX_DELTAS: u32 = 60;
/// The threshold must be exceeded for so long, ms (draft: `overuse_time_th`).
const OVERUSE_TIME_TH: f64 = 10.0;
/// A trend so far above the threshold does not move it, ms (draft, section 5.4).
const MAX_ADAPT_OFFSET: f64 = 15.0;
/// Gains of the threshold; those of the draft are 0.01 and 0.00018 (libwebrtc: `k_up_`, `k_down_`).
const K_UP: f64 = 0.0087;
const K_DOWN: f64 = 0.039;
/// The initial threshold and its limits, ms (draft, section 5.4).
const DEL_VAR_TH: f64 = 12.5;
const DEL_VAR_TH_LIMITS: (f64, f64) = (6.0, 600.0);
/// Longest step of the threshold, ms (`kMaxTimeDelta`).
const MAX_STEP: f64 = 100.0;

/// Packets sent together.
#[derive(Clone, Copy, Debug)]
struct Group {
    first_sent: Time,
    last_sent: Time,
    first_arrived: Time,
    last_arrived: Time,
}

impl Group {
    fn of(sent_at: Time, arrived_at: Time) -> Group {
        Group {
            first_sent: sent_at,
            last_sent: sent_at,
            first_arrived: arrived_at,
            last_arrived: arrived_at,
        }
    }

    /// Whether a packet belongs to it: sent within the burst time, or queued behind it so that both
    /// arrived together.
    fn has(&self, sent_at: Time, arrived_at: Time) -> bool {
        let after = arrived_at.since(self.last_arrived);
        let is_queued = after < sent_at.since(self.last_sent)
            && after <= BURST_TIME
            && arrived_at.since(self.first_arrived) < MAX_BURST;
        sent_at.since(self.first_sent) <= BURST_TIME || is_queued
    }
}

/// The trendline estimator.
#[derive(Clone, Debug)]
pub(super) struct TrendlineEstimator {
    previous: Option<Group>,
    current: Option<Group>,
    first_arrival: Time,
    num_deltas: u32,
    /// ms.
    accumulated_delay: f64,
    smoothed_delay: f64,
    /// (arrival, smoothed delay), ms.
    delay_hist: VecDeque<(f64, f64)>,
    prev_trend: f64,
    modified_trend: f64,
    threshold: f64,
    updated_at: Option<Time>,
    /// How long the threshold has been exceeded, ms, and how often.
    time_over_using: Option<f64>,
    overuse_counter: u32,
    signal: Signal,
}

impl Default for TrendlineEstimator {
    fn default() -> TrendlineEstimator {
        TrendlineEstimator {
            previous: None,
            current: None,
            first_arrival: Time::ZERO,
            num_deltas: 0,
            accumulated_delay: 0.0,
            smoothed_delay: 0.0,
            delay_hist: VecDeque::with_capacity(WINDOW_SIZE + 1),
            prev_trend: 0.0,
            modified_trend: 0.0,
            threshold: DEL_VAR_TH,
            updated_at: None,
            time_over_using: None,
            overuse_counter: 0,
            signal: Signal::Normal,
        }
    }
}

fn millis(span: Span) -> f64 {
    span.as_secs_f64() * 1e3
}

impl TrendlineEstimator {
    pub(super) fn signal(&self) -> Signal {
        self.signal
    }

    /// The trend that is compared with the threshold, ms.
    pub(super) fn modified_trend(&self) -> f64 {
        self.modified_trend
    }

    /// `del_var_th`, ms.
    pub(super) fn threshold(&self) -> f64 {
        self.threshold
    }

    /// A packet arrived.
    pub(super) fn on_packet(&mut self, sent_at: Time, arrived_at: Time) {
        let Some(current) = &mut self.current else {
            self.first_arrival = arrived_at;
            self.current = Some(Group::of(sent_at, arrived_at));
            return;
        };
        if sent_at < current.first_sent {
            return; // reordered
        }
        if current.has(sent_at, arrived_at) {
            current.last_sent = current.last_sent.max(sent_at);
            current.last_arrived = current.last_arrived.max(arrived_at);
            return;
        }
        let complete = *current;
        self.current = Some(Group::of(sent_at, arrived_at));
        if let Some(previous) = self.previous.replace(complete) {
            let send_delta = millis(complete.last_sent.since(previous.last_sent));
            let arrival_delta = millis(complete.last_arrived.since(previous.last_arrived));
            self.update(arrival_delta, send_delta, complete.last_arrived);
        }
    }

    fn update(&mut self, arrival_delta: f64, send_delta: f64, arrived_at: Time) {
        self.num_deltas = (self.num_deltas + 1).min(1000);
        self.accumulated_delay += arrival_delta - send_delta;
        self.smoothed_delay =
            SMOOTHING * self.smoothed_delay + (1.0 - SMOOTHING) * self.accumulated_delay;
        let at = millis(arrived_at.since(self.first_arrival));
        self.delay_hist.push_back((at, self.smoothed_delay));
        if self.delay_hist.len() > WINDOW_SIZE {
            self.delay_hist.pop_front();
        }
        let is_full = self.delay_hist.len() == WINDOW_SIZE;
        let fitted = if is_full { slope(&self.delay_hist) } else { None };
        self.detect(fitted.unwrap_or(self.prev_trend), send_delta, arrived_at);
    }

    fn detect(&mut self, trend: f64, send_delta: f64, now: Time) {
        if self.num_deltas < 2 {
            return;
        }
        let modified = f64::from(self.num_deltas.min(MAX_DELTAS)) * trend * THRESHOLD_GAIN;
        self.modified_trend = modified;
        if modified > self.threshold {
            let over = self.time_over_using.map_or(send_delta / 2.0, |over| over + send_delta);
            self.time_over_using = Some(over);
            self.overuse_counter += 1;
            if over > OVERUSE_TIME_TH && self.overuse_counter > 1 && trend >= self.prev_trend {
                (self.time_over_using, self.overuse_counter) = (Some(0.0), 0);
                self.signal = Signal::Overuse;
            }
        } else {
            (self.time_over_using, self.overuse_counter) = (None, 0);
            let is_under = modified < -self.threshold;
            self.signal = if is_under { Signal::Underuse } else { Signal::Normal };
        }
        self.prev_trend = trend;
        self.update_threshold(modified.abs(), now);
    }

    fn update_threshold(&mut self, trend: f64, now: Time) {
        let since = self.updated_at.map_or(0.0, |at| millis(now.since(at)));
        self.updated_at = Some(now);
        if trend > self.threshold + MAX_ADAPT_OFFSET {
            return;
        }
        let k = if trend < self.threshold { K_DOWN } else { K_UP };
        self.threshold += k * (trend - self.threshold) * since.min(MAX_STEP);
        self.threshold = self.threshold.clamp(DEL_VAR_TH_LIMITS.0, DEL_VAR_TH_LIMITS.1);
    }
}

/// The slope of the line of least squares; `None` if all points have one time.
fn slope(points: &VecDeque<(f64, f64)>) -> Option<f64> {
    let count = points.len() as f64;
    let x_avg = points.iter().map(|point| point.0).sum::<f64>() / count;
    let y_avg = points.iter().map(|point| point.1).sum::<f64>() / count;
    let products = points.iter().map(|(x, y)| (x - x_avg) * (y - y_avg));
    let squares: f64 = points.iter().map(|(x, _)| (x - x_avg) * (x - x_avg)).sum();
    (squares > 0.0).then(|| products.sum::<f64>() / squares)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups every 10 ms, of which each takes so much longer than the one before (µs).
    fn run(estimator: &mut TrendlineEstimator, groups: std::ops::Range<u64>, slope_us: i64) {
        for group in groups {
            let sent = Time::ZERO + Span::from_millis(10 * group);
            let delay = 50_000 + slope_us * group as i64;
            estimator.on_packet(sent, sent + Span::from_micros(delay as u64));
        }
    }

    #[test]
    fn the_trend_of_a_growing_delay_is_its_slope() {
        let mut estimator = TrendlineEstimator::default();
        run(&mut estimator, 0..200, 500);
        // 0.5 ms per 10.5 ms of arrivals, times 60 deltas and the gain of 4.
        let expected = 0.5 / 10.5 * 60.0 * 4.0;
        assert!((estimator.modified_trend() / expected - 1.0).abs() < 0.01);
    }

    #[test]
    fn growth_is_overuse_decline_is_underuse_and_steady_is_normal() {
        for (slope, signal) in [(2000, Signal::Overuse), (0, Signal::Normal)] {
            let mut estimator = TrendlineEstimator::default();
            run(&mut estimator, 0..60, slope);
            assert_eq!(estimator.signal(), signal);
        }
        let mut estimator = TrendlineEstimator::default();
        run(&mut estimator, 0..24, -2000);
        assert_eq!(estimator.signal(), Signal::Underuse);
    }

    #[test]
    fn the_threshold_adapts_as_section_5_4_of_the_draft_says() {
        let mut estimator = TrendlineEstimator::default();
        run(&mut estimator, 0..1000, 0);
        assert_eq!(estimator.threshold(), 6.0);
        // del_var_th(i) = del_var_th(i-1) + (t(i) - t(i-1)) K (|m(i)| - del_var_th(i-1)).
        estimator.update_threshold(16.0, Time::ZERO + Span::from_millis(20_000));
        let at = estimator.threshold();
        estimator.update_threshold(16.0, Time::ZERO + Span::from_millis(20_010));
        let expected = at + 10.0 * 0.0087 * (16.0 - at);
        assert!((estimator.threshold() - expected).abs() < 1e-9);
        // A jump by more than 15 ms is left out.
        estimator.update_threshold(expected + 15.1, Time::ZERO + Span::from_millis(20_020));
        assert!((estimator.threshold() - expected).abs() < 1e-9);
    }
}
