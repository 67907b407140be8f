//! Filters and counters that several algorithms share.
//!
//! [`WindowedMax`] and [`WindowedMin`] are Kathleen Nichols' windowed filters, with the semantics
//! of Linux's `lib/minmax.c`. They keep the best three samples, each later than the one before it,
//! so that the second best is available when the best leaves the window. Time and space are
//! constant. Samples expire only when a new one is taken.
//!
//! [`Rounds`] counts packet-timed round trips (draft-ietf-ccwg-bbr-06, section 5.5.1).
//!
//! [`LossIntervals`] counts packets delivered between losses (OLIA's `l_r`).

use crate::RateSample;

/// A sample and when it was taken, in the unit of the filter's window.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample<V> {
    at: u64,
    value: V,
}

/// The three best samples, best first: common to maximum and minimum.
#[derive(Clone, Copy, Debug, PartialEq)]
struct BestThree<V> {
    samples: [Sample<V>; 3],
}

impl<V: Copy> BestThree<V> {
    fn new(at: u64, value: V) -> BestThree<V> {
        BestThree { samples: [Sample { at, value }; 3] }
    }

    /// Takes a sample; `beats(a, b)` says whether `a` is at least as good as `b`.
    fn update(&mut self, window: u64, at: u64, value: V, beats: impl Fn(V, V) -> bool) -> V {
        let [first, second, third] = self.samples;
        if beats(value, first.value) || at.saturating_sub(third.at) > window {
            *self = BestThree::new(at, value);
            return value;
        }
        let sample = Sample { at, value };
        if beats(value, second.value) {
            self.samples = [first, sample, sample];
        } else if beats(value, third.value) {
            self.samples[2] = sample;
        }
        self.age(window, sample);
        self.samples[0].value
    }

    /// Drops samples that have left the window. If none has, replaces runners-up that are as old as
    /// the best, which would otherwise expire together with it.
    fn age(&mut self, window: u64, sample: Sample<V>) {
        let [first, second, third] = self.samples;
        let age = sample.at.saturating_sub(first.at);
        if age > window {
            self.samples = [second, third, sample];
            if sample.at.saturating_sub(second.at) > window {
                self.samples = [third, sample, sample];
            }
        } else if second.at == first.at && age > window / 4 {
            self.samples = [first, sample, sample];
        } else if third.at == second.at && age > window / 2 {
            self.samples[2] = sample;
        }
    }
}

/// Maximum of the samples taken within a window.
///
/// ```
/// use dumbbell_cc::filters::WindowedMax;
///
/// let mut max = WindowedMax::new(10, 0, 7.0);
/// assert_eq!(max.update(6, 5.0), 7.0);
/// assert_eq!(max.update(11, 3.0), 5.0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowedMax<V> {
    window: u64,
    best: BestThree<V>,
}

impl<V: Copy + PartialOrd> WindowedMax<V> {
    /// A filter with one sample and a window in the unit of `at` (rounds, nanoseconds).
    pub fn new(window: u64, at: u64, value: V) -> WindowedMax<V> {
        WindowedMax { window, best: BestThree::new(at, value) }
    }

    /// The maximum.
    #[inline]
    pub fn get(&self) -> V {
        self.best.samples[0].value
    }

    /// Takes a sample and returns the maximum. `at` must not decrease.
    #[inline]
    pub fn update(&mut self, at: u64, value: V) -> V {
        self.best.update(self.window, at, value, |a, b| a >= b)
    }

    /// Changes the length of the window.
    #[inline]
    pub fn set_window(&mut self, window: u64) {
        self.window = window;
    }
}

/// Minimum of the samples taken within a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowedMin<V> {
    window: u64,
    best: BestThree<V>,
}

impl<V: Copy + PartialOrd> WindowedMin<V> {
    /// A filter with one sample and a window in the unit of `at` (rounds, nanoseconds).
    pub fn new(window: u64, at: u64, value: V) -> WindowedMin<V> {
        WindowedMin { window, best: BestThree::new(at, value) }
    }

    /// The minimum.
    #[inline]
    pub fn get(&self) -> V {
        self.best.samples[0].value
    }

    /// Takes a sample and returns the minimum. `at` must not decrease.
    #[inline]
    pub fn update(&mut self, at: u64, value: V) -> V {
        self.best.update(self.window, at, value, |a, b| a <= b)
    }

    /// Changes the length of the window.
    #[inline]
    pub fn set_window(&mut self, window: u64) {
        self.window = window;
    }
}

/// Packet-timed round trips (draft-ietf-ccwg-bbr-06, section 5.5.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rounds {
    /// Round trips so far.
    pub round_count: u64,
    /// The round ends when a packet is acknowledged before whose sending this many were delivered.
    pub next_round_delivered: u64,
    /// Whether this acknowledgement ended a round.
    pub round_start: bool,
}

impl Rounds {
    /// UpdateRound; `delivered` is `Path::delivered`. An acknowledgement without a rate sample ends
    /// no round.
    #[inline]
    pub fn update_round(&mut self, rate: Option<&RateSample>, delivered: u64) {
        self.round_start =
            rate.is_some_and(|rate| rate.send_state.delivered >= self.next_round_delivered);
        if self.round_start {
            self.start_round(delivered);
            self.round_count += 1;
        }
    }

    /// StartRound.
    #[inline]
    pub fn start_round(&mut self, delivered: u64) {
        self.next_round_delivered = delivered;
    }
}

/// Packets delivered between losses (OLIA's `l_r`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossIntervals {
    /// `Path::delivered` at the last loss and at the one before.
    at: [u64; 2],
}

impl LossIntervals {
    /// The first loss of an episode, with `Path::delivered` at that time.
    pub fn on_loss(&mut self, delivered: u64) {
        self.at = [delivered, self.at[0]];
    }

    /// Packets delivered since the last loss and between the last two. The start of the connection
    /// counts as a loss.
    #[inline]
    pub fn between(&self, delivered: u64) -> [u64; 2] {
        [delivered - self.at[0], self.at[0] - self.at[1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SendState;
    use proptest::prelude::*;

    #[test]
    fn a_greater_sample_is_the_maximum_at_once() {
        let mut max = WindowedMax::new(10, 0, 5.0);
        assert_eq!(max.update(1, 7.0), 7.0);
        assert_eq!(max.update(2, 6.0), 7.0);
        assert_eq!(max.get(), 7.0);
    }

    #[test]
    fn after_the_window_the_next_best_sample_is_the_maximum() {
        let mut max = WindowedMax::new(10, 0, 9.0);
        max.update(4, 7.0);
        max.update(8, 6.0);
        assert_eq!(max.update(10, 5.0), 9.0);
        assert_eq!(max.update(11, 5.0), 7.0);
        assert_eq!(max.update(15, 5.0), 6.0);
    }

    #[test]
    fn after_a_silence_longer_than_the_window_only_the_new_sample_counts() {
        let mut max = WindowedMax::new(10, 0, 9.0);
        assert_eq!(max.update(11, 1.0), 1.0);
    }

    #[test]
    fn a_minimum_is_a_maximum_upside_down() {
        let mut min = WindowedMin::new(10, 0, 5);
        assert_eq!(min.update(1, 3), 3);
        assert_eq!(min.update(4, 4), 3);
        assert_eq!(min.update(11, 8), 3);
        assert_eq!(min.update(12, 8), 4);
    }

    proptest! {
        /// The filter may answer with too recent a sample, never with one outside the window,
        /// and never with less than the sample that it was just given.
        #[test]
        fn the_maximum_is_a_sample_of_the_window_no_less_than_the_latest(
            steps in prop::collection::vec((0_u64..4, 0_u32..100), 1..200),
        ) {
            let mut taken = vec![(0, 0)];
            let mut max = WindowedMax::new(10, 0, 0);
            let mut at = 0;
            for (step, value) in steps {
                at += step;
                taken.push((at, value));
                let answer = max.update(at, value);
                prop_assert!(answer >= value);
                prop_assert!(taken.iter().any(|&(t, v)| v == answer && at - t <= 10));
            }
        }
    }

    #[test]
    fn a_round_ends_with_the_first_packet_sent_after_it_began() {
        let mut round = Rounds::default();
        let mut ends = |prior_delivered, delivered| {
            let send_state = SendState { delivered: prior_delivered, ..SendState::default() };
            let sample = RateSample { send_state, ..RateSample::default() };
            round.update_round(Some(&sample), delivered);
            round.round_start
        };
        assert!(ends(0, 10), "the first acknowledgement of all ends round 0");
        assert!(!ends(9, 20), "sent before the round began");
        assert!(ends(10, 30));
        round.update_round(None, 40);
        assert_eq!(round, Rounds { round_count: 2, next_round_delivered: 30, round_start: false });
    }
}
