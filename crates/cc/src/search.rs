//! SEARCH, slow start exit at right chokepoint (draft-chung-ccwg-search-06).
//!
//! In slow start twice as much is delivered in each round trip, until the link is full. Delivered
//! packets are counted in bins of 0.35 initial round-trip times; a window is 10 bins. When a bin ends:
//!
//! ```text
//! prev_delv = delivered in the window that ended a round-trip time ago      (interpolated)
//! curr_delv = delivered in the last window
//! norm_diff = (2 prev_delv - curr_delv) / (2 prev_delv)
//! norm_diff >= THRESH: slow start ends                                 THRESH = 0.35
//! ```
//!
//! A flow that its application limits begins anew, as does one whose bins all passed for two round-trip
//! times without an acknowledgement (ALPHA = 2), and one after a timeout. Later versions of the draft
//! compare with what was sent instead.
//!
//! | | draft | Linux module of the authors, 3.1 | here |
//! |---|---|---|---|
//! | unit | bytes | bytes, scaled to 16 bits | packets |
//! | window after the exit | as it is, or less what was sent too much | the same, off | as it is |
//! | `ALPHA` | 2 | off | 2 |

use crate::{Ack, Metric, Path, SlowStart};
use dumbbell_units::{Span, Time};

/// The draft's names: bins of a window, bins besides, tenths of the initial RTT in a window.
const W: i64 = 10;
const EXTRA_BINS: i64 = 15;
const NUM_BINS: usize = (W + EXTRA_BINS) as usize;
const WINDOW_FACTOR: u64 = 35;
const THRESH: f64 = 0.35;
const ALPHA: u64 = 2;

/// SEARCH's measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    initial_rtt: Span,
    bin_duration: Span,
    bin_end: Time,
    /// The present bin; negative before the first.
    curr_idx: i64,
    /// Packets acknowledged at the end of each bin.
    bins: [u64; NUM_BINS],
    norm_diff: f64,
}

impl Search {
    /// SEARCH before the first acknowledgement.
    pub const fn new() -> Search {
        Search {
            initial_rtt: Span::ZERO,
            bin_duration: Span::ZERO,
            bin_end: Time::ZERO,
            curr_idx: -1,
            bins: [0; NUM_BINS],
            norm_diff: 0.0,
        }
    }

    fn bin(&self, idx: i64) -> f64 {
        if idx < 0 { 0.0 } else { self.bins[idx as usize % NUM_BINS] as f64 }
    }

    /// Begins with the first bin, and keeps its duration if there is one.
    fn initialize(&mut self, path: &Path, rtt: Span) {
        if self.bin_duration.is_zero() {
            self.initial_rtt = rtt;
            let duration = rtt.as_nanos() * WINDOW_FACTOR / (10 * W as u64);
            self.bin_duration = Span::from_nanos(duration.max(1));
        }
        self.bin_end = path.now + self.bin_duration;
        self.curr_idx = 0;
        self.bins = [0; NUM_BINS];
        self.bins[0] = path.una;
    }

    /// Ends the present bin, and those that passed since.
    fn update_bins(&mut self, path: &Path, rtt: Span, app_limited: bool) {
        if app_limited {
            return self.initialize(path, rtt);
        }
        let passed = path.now.since(self.bin_end).as_nanos() / self.bin_duration.as_nanos() + 1;
        if passed > ALPHA * (self.initial_rtt.as_nanos() / self.bin_duration.as_nanos()).max(1) {
            if passed > W as u64 {
                self.bin_duration = Span::ZERO;
            }
            return self.initialize(path, rtt);
        }
        let last = self.bins[self.curr_idx as usize % NUM_BINS];
        for idx in self.curr_idx + 1..self.curr_idx + passed as i64 {
            self.bins[idx as usize % NUM_BINS] = last;
        }
        self.bin_end += self.bin_duration * passed;
        self.curr_idx += passed as i64;
        self.bins[self.curr_idx as usize % NUM_BINS] = path.una;
    }

    /// Packets delivered in the window that ends with the bin `right`, less a `fraction` of a bin.
    fn delivered(&self, right: i64, fraction: f64) -> f64 {
        let left = right - W;
        let share_of = |idx: i64| self.bin(idx) - self.bin(idx - 1);
        self.bin(right - 1) - self.bin(left)
            + share_of(left) * fraction
            + share_of(right) * (1.0 - fraction)
    }

    /// `norm_diff` of the windows that end now and a round-trip time ago, if both are known.
    fn compare(&self, rtt: Span) -> Option<f64> {
        let bin = self.bin_duration.as_nanos();
        let prev_idx = self.curr_idx - (rtt.as_nanos() / bin) as i64;
        if prev_idx < W || self.curr_idx - prev_idx >= EXTRA_BINS - 1 {
            return None;
        }
        let fraction = (rtt.as_nanos() % bin) as f64 / bin as f64;
        let expected = 2.0 * self.delivered(prev_idx, fraction);
        (expected > 0.0).then(|| (expected - self.delivered(self.curr_idx, 0.0)) / expected)
    }
}

impl Default for Search {
    fn default() -> Search {
        Search::new()
    }
}

impl SlowStart for Search {
    fn should_exit(&mut self, _cwnd: f64, path: &Path, ack: &Ack) -> bool {
        let Some(rtt) = ack.rtt.filter(|rtt| !rtt.is_zero()) else { return false };
        if self.curr_idx < 0 {
            self.initialize(path, rtt);
            return false;
        }
        if path.now <= self.bin_end {
            return false;
        }
        let app_limited = ack.rate.is_some_and(|sample| sample.send_state.app_limited);
        self.update_bins(path, rtt, app_limited);
        let Some(norm_diff) = self.compare(rtt) else { return false };
        self.norm_diff = norm_diff;
        norm_diff >= THRESH
    }

    fn restart(&mut self, _path: &Path) {
        *self = Search::new();
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        show(Metric { name: "norm_diff", value: self.norm_diff });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_path::{Link, TestPath, init};
    use crate::{AnySlowStart, CongestionControl, Reno, Windowed};

    fn path(ms: f64, una: u64) -> Path {
        let mut path = Path::new(1448, Time::ZERO + Span::from_secs_f64(ms / 1e3));
        path.una = una;
        path
    }

    /// Acknowledges at every half bin what `delivered` says is delivered at a time in ms; returns when
    /// slow start ends.
    fn exit(rtt_ms: u64, delivered: impl Fn(f64) -> f64) -> Option<f64> {
        let mut search = Search::new();
        let ack = Ack::new(1).with_rtt(Some(Span::from_millis(rtt_ms)));
        (0..200)
            .map(|step| f64::from(step) * 0.175 * rtt_ms as f64)
            .find(|&ms| search.should_exit(100.0, &path(ms, delivered(ms) as u64), &ack))
    }

    #[test]
    fn a_rate_that_doubles_each_round_trip_never_ends_slow_start() {
        assert_eq!(exit(100, |ms| 1000.0 * (2.0_f64.powf(ms / 100.0) - 1.0)), None);
    }

    #[test]
    fn a_constant_rate_ends_slow_start_when_norm_diff_reaches_thresh() {
        // The rate doubles each round trip up to 1000 ms and is constant then. x round trips after
        // that, a window of 3.5 round trips has delivered, in units of the constant rate,
        //   D(x) = x + (1 - 2^(x - 3.5)) / ln 2  for 0 <= x <= 3.5.
        // Before, D(x) = D(0) 2^x. And norm_diff = 1 - D(x) / (2 D(x - 1)).
        let d = |x: f64| match x {
            x if x <= 0.0 => 2.0_f64.powf(x) * (1.0 - 2.0_f64.powf(-3.5)) / std::f64::consts::LN_2,
            x => x + (1.0 - 2.0_f64.powf(x - 3.5)) / std::f64::consts::LN_2,
        };
        let reached = (0..400).map(|n| f64::from(n) / 100.0);
        let reached = reached.clone().find(|&x| 1.0 - d(x) / (2.0 * d(x - 1.0)) >= THRESH);
        let expected = 1000.0 + 100.0 * reached.expect("below 4 round trips");
        let rate = 1000.0 * std::f64::consts::LN_2 / 100.0 * 2.0_f64.powf(10.0);
        let delivered = |ms: f64| match ms {
            ms if ms <= 1000.0 => 1000.0 * (2.0_f64.powf(ms / 100.0) - 1.0),
            ms => 1000.0 * (2.0_f64.powf(10.0) - 1.0) + rate * (ms - 1000.0),
        };
        let found = exit(100, delivered).expect("an exit");
        // Bins are 35 ms, and the end of a bin is seen at the next acknowledgement.
        assert!((0.0..=60.0).contains(&(found - expected)), "{found} for {expected}");
    }

    #[test]
    fn slow_start_ends_where_the_model_of_a_growing_queue_says() {
        for (mbit, rtt) in [(10.0, 40), (50.0, 100), (100.0, 200)] {
            let link = Link::new(mbit, rtt, 1e9);
            let search = AnySlowStart::Search(Box::default());
            let mut flow = TestPath::new(Windowed::new(Reno, search, &init(1)), link);
            let ended =
                flow.run_until(Span::from_secs(20), |flow| flow.algorithm.control().ssthresh < 1e9);
            let ratio = flow.algorithm.control().cwnd / link.bdp();
            // Before the link is full, 1/2, 1/4, ... BDP are delivered in each round trip. t round trips
            // after it, the window is 1 + t BDP and the round-trip time (1 + t) / 2. So norm_diff is
            // 1 - 3.5 / (2 D(x)), with x = (t - 1) / 2. For x of 1.5 to 2.5, D(x) is
            // x + 1/2 + (2.5 - x) / 4. It is 0.35 at x = 2.09, a window of 6.2 BDP. A bin is 0.35 BDP,
            // and two may pass.
            assert!(ended && (6.2..=6.9).contains(&ratio), "{mbit} Mbit/s, {rtt} ms: {ratio} BDP");
        }
    }

    #[test]
    fn a_flow_limited_by_its_application_begins_anew() {
        let mut search = Search::new();
        let mut ack = Ack::new(1).with_rtt(Some(Span::from_millis(100)));
        for step in 0..40 {
            search.should_exit(10.0, &path(f64::from(step) * 36.0, 100), &ack);
        }
        assert!(search.curr_idx > 10);
        let mut sample = crate::RateSample::default();
        sample.send_state.app_limited = true;
        ack = ack.with_rate(Some(sample));
        assert!(!search.should_exit(10.0, &path(1500.0, 100), &ack));
        assert_eq!(search.curr_idx, 0);
    }
}
