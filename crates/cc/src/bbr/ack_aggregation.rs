//! The degree of aggregation of acknowledgements (draft-ietf-ccwg-bbr-06, section 5.5.9).
//!
//! Links and receivers that aggregate leave silences between acknowledgements, in which a window of
//! one BDP runs dry. So the window is widened by `extra_acked`: the maximum number of packets recently
//! acknowledged beyond what `bw` explains. An interval ends when the acknowledgements fall behind `bw`.
//!
//! As in Linux, the maximum filter has two halves of [`EXTRA_ACKED_WIN_RTTS`] rounds each and so spans
//! 5 to 10 rounds; an interval ends after 2^20 packets; and the window is widened by at most what
//! `bw` delivers in 100 ms.

use super::model::packets_in;
use super::version::EXTRA_ACKED_MAX;
use crate::filters::Rounds;
use crate::{Ack, Path};
use dumbbell_units::{Rate, Time};

/// An interval ends after this many packets (Linux `bbr_ack_epoch_acked_reset_thresh`).
const RESET_THRESH: f64 = (1 << 20) as f64;

/// The estimator of aggregation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckAggregation {
    extra_acked_interval_start: Time,
    extra_acked_delivered: f64,
    extra_acked_filter: [f64; 2],
    extra_acked_win_idx: usize,
    extra_acked_win_rtts: u32,
}

impl AckAggregation {
    /// An estimator without samples.
    pub fn new(now: Time) -> AckAggregation {
        AckAggregation {
            extra_acked_interval_start: now,
            extra_acked_delivered: 0.0,
            extra_acked_filter: [0.0; 2],
            extra_acked_win_idx: 0,
            extra_acked_win_rtts: 0,
        }
    }

    /// Starts a new interval, also after an idle period, whose silence is not aggregation.
    pub fn restart(&mut self, now: Time) {
        self.extra_acked_interval_start = now;
        self.extra_acked_delivered = 0.0;
    }

    /// The MSS changed; `scale` is the old one divided by the new one.
    pub fn scale(&mut self, scale: f64) {
        self.extra_acked_delivered *= scale;
        self.extra_acked_filter = self.extra_acked_filter.map(|packets| packets * scale);
    }

    /// UpdateACKAggregation, on an acknowledgement with a rate sample. Each half of the filter spans
    /// `win_rtts` rounds.
    pub fn update_ack_aggregation(
        &mut self,
        (path, ack): (&Path, &Ack),
        bw: Rate,
        cwnd: f64,
        round: &Rounds,
        win_rtts: u32,
    ) {
        if ack.rate.is_none() || ack.delivered == 0 {
            return;
        }
        if round.round_start {
            self.extra_acked_win_rtts += 1;
            if self.extra_acked_win_rtts >= win_rtts {
                self.extra_acked_win_rtts = 0;
                self.extra_acked_win_idx = 1 - self.extra_acked_win_idx;
                self.extra_acked_filter[self.extra_acked_win_idx] = 0.0;
            }
        }
        let newly_acked = f64::from(ack.delivered);
        let interval = path.delivered_at.since(self.extra_acked_interval_start);
        let mut expected = libm::floor(packets_in(bw, interval, f64::from(path.mss)));
        if self.extra_acked_delivered <= expected
            || self.extra_acked_delivered + newly_acked >= RESET_THRESH
        {
            self.restart(path.delivered_at);
            expected = 0.0;
        }
        self.extra_acked_delivered += newly_acked;
        let extra = (self.extra_acked_delivered - expected).min(cwnd);
        let max = &mut self.extra_acked_filter[self.extra_acked_win_idx];
        *max = max.max(extra);
    }

    /// Packets by which to widen the window.
    pub fn extra_acked(&self, bw: Rate, mss: f64) -> f64 {
        let cap = libm::floor(packets_in(bw, EXTRA_ACKED_MAX, mss));
        self.extra_acked_filter[0].max(self.extra_acked_filter[1]).min(cap)
    }
}

#[cfg(test)]
mod tests {
    use super::super::version::EXTRA_ACKED_WIN_RTTS;
    use super::*;
    use crate::RateSample;
    use dumbbell_units::Span;

    /// Acknowledges `acked` packets every `every` ms, at 1 packet/ms of estimated bandwidth.
    fn acknowledge(
        meter: &mut AckAggregation,
        path: &mut Path,
        acked: u32,
        every: u64,
        round_start: bool,
    ) {
        path.now += Span::from_millis(every);
        path.delivered_at = path.now;
        let rate = Some(RateSample::default());
        let ack = Ack { delivered: acked, rate, ..Ack::default() };
        let round = Rounds { round_start, ..Rounds::default() };
        let bw = Rate::from_bytes_per_sec(1e6);
        meter.update_ack_aggregation((path, &ack), bw, 1000.0, &round, EXTRA_ACKED_WIN_RTTS);
    }

    fn extra(meter: &AckAggregation) -> f64 {
        meter.extra_acked(Rate::from_bytes_per_sec(1e6), 1000.0)
    }

    #[test]
    fn smooth_acknowledgements_have_the_aggregation_of_a_single_one() {
        let mut path = Path::new(1000, Time::ZERO);
        let mut meter = AckAggregation::new(Time::ZERO);
        (0..100).for_each(|_| acknowledge(&mut meter, &mut path, 2, 2, false));
        assert_eq!(extra(&meter), 2.0);
    }

    #[test]
    fn a_burst_of_20_packets_widens_the_window_by_20() {
        let mut path = Path::new(1000, Time::ZERO);
        let mut meter = AckAggregation::new(Time::ZERO);
        (0..10).for_each(|_| acknowledge(&mut meter, &mut path, 20, 20, false));
        assert_eq!(extra(&meter), 20.0);
    }

    #[test]
    fn the_window_is_never_widened_by_more_than_100_ms_of_packets() {
        let mut path = Path::new(1000, Time::ZERO);
        let mut meter = AckAggregation::new(Time::ZERO);
        acknowledge(&mut meter, &mut path, 500, 1, false);
        assert_eq!(extra(&meter), 100.0);
    }

    #[test]
    fn a_burst_is_forgotten_after_5_to_10_rounds() {
        let mut path = Path::new(1000, Time::ZERO);
        let mut meter = AckAggregation::new(Time::ZERO);
        acknowledge(&mut meter, &mut path, 20, 20, false);
        (0..5).for_each(|_| acknowledge(&mut meter, &mut path, 1, 30, true));
        assert_eq!(extra(&meter), 20.0);
        (0..5).for_each(|_| acknowledge(&mut meter, &mut path, 1, 30, true));
        assert_eq!(extra(&meter), 1.0);
    }
}
