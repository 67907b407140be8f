//! Acknowledgements that come in clumps.
//!
//! Links and receivers that aggregate leave silences between acknowledgements, in which a window of
//! a BDP runs dry. So the window is widened by the most packets lately acknowledged beyond what
//! `bw` explains (draft-ietf-ccwg-bbr-06, section 5.5.9). An epoch of counting ends when the
//! acknowledgements fall behind `bw`. As in Linux, the maximum is over 5 to 10 rounds, kept in two
//! halves.

use super::model::Scale;
use super::version::{EXTRA_ACKED_MAX, EXTRA_ACKED_ROUNDS};
use crate::filters::Rounds;
use crate::{Ack, Path};
use dumbbell_units::{Rate, Time};

/// An epoch that has seen so many packets is ended.
const EPOCH_MOST: f64 = (1 << 20) as f64;

/// The estimator of aggregation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aggregation {
    epoch_began: Time,
    epoch_acked: f64,
    halves: [f64; 2],
    half: usize,
    half_rounds: u32,
}

impl Aggregation {
    /// An estimator that has seen nothing.
    pub fn new(now: Time) -> Aggregation {
        Aggregation {
            epoch_began: now,
            epoch_acked: 0.0,
            halves: [0.0; 2],
            half: 0,
            half_rounds: 0,
        }
    }

    /// The flow was idle: the silence says nothing about aggregation.
    pub fn restart(&mut self, now: Time) {
        self.epoch_began = now;
        self.epoch_acked = 0.0;
    }

    /// Takes an acknowledgement with a rate sample. Each half of the filter spans `half_rounds`.
    pub fn observe(
        &mut self,
        path: &Path,
        ack: &Ack,
        bw: Rate,
        cwnd: f64,
        scale: Scale,
        (rounds, half_rounds): (&Rounds, u32),
    ) {
        if rounds.just_began() {
            self.half_rounds += 1;
            if self.half_rounds >= half_rounds {
                self.half_rounds = 0;
                self.half = 1 - self.half;
                self.halves[self.half] = 0.0;
            }
        }
        let acked = f64::from(ack.delivered);
        let elapsed = path.delivered_at.since(self.epoch_began);
        let mut expected = libm::floor(scale.packets(bw, elapsed));
        if self.epoch_acked <= expected || self.epoch_acked + acked >= EPOCH_MOST {
            self.restart(path.delivered_at);
            expected = 0.0;
        }
        self.epoch_acked += acked;
        let extra = (self.epoch_acked - expected).min(cwnd);
        self.halves[self.half] = self.halves[self.half].max(extra);
    }

    /// Packets by which the window is to be widened: no more than are delivered in 100 ms.
    pub fn extra_acked(&self, bw: Rate, scale: Scale) -> f64 {
        let most = libm::floor(scale.packets(bw, EXTRA_ACKED_MAX));
        self.halves[0].max(self.halves[1]).min(most)
    }
}

/// The length of a half of the filter once the pipe is full.
pub const HALF_ROUNDS: u32 = EXTRA_ACKED_ROUNDS;

#[cfg(test)]
mod tests {
    use super::*;
    use dumbbell_units::Span;

    const SCALE: Scale = Scale { mss: 1000.0, initial_window: 10.0 };

    /// Acknowledges `acked` packets every `every` ms, at 1 packet/ms of estimated bandwidth.
    fn acknowledge(meter: &mut Aggregation, path: &mut Path, acked: u32, every: u64, round: bool) {
        path.now += Span::from_millis(every);
        path.delivered_at = path.now;
        let ack = Ack { delivered: acked, ..Ack::default() };
        let mut rounds = Rounds::default();
        if round {
            rounds.force();
        }
        let bw = Rate::from_bytes_per_sec(1e6);
        meter.observe(path, &ack, bw, 1000.0, SCALE, (&rounds, HALF_ROUNDS));
    }

    fn extra(meter: &Aggregation) -> f64 {
        meter.extra_acked(Rate::from_bytes_per_sec(1e6), SCALE)
    }

    #[test]
    fn a_smooth_stream_of_acknowledgements_has_the_aggregation_of_one_acknowledgement() {
        let mut path = Path::new(1000, Time::ZERO);
        let mut meter = Aggregation::new(Time::ZERO);
        (0..100).for_each(|_| acknowledge(&mut meter, &mut path, 2, 2, false));
        assert_eq!(extra(&meter), 2.0);
    }

    #[test]
    fn a_clump_of_20_packets_widens_the_window_by_20() {
        let mut path = Path::new(1000, Time::ZERO);
        let mut meter = Aggregation::new(Time::ZERO);
        (0..10).for_each(|_| acknowledge(&mut meter, &mut path, 20, 20, false));
        assert_eq!(extra(&meter), 20.0);
    }

    #[test]
    fn the_window_is_never_widened_by_more_than_100_ms_of_packets() {
        let mut path = Path::new(1000, Time::ZERO);
        let mut meter = Aggregation::new(Time::ZERO);
        acknowledge(&mut meter, &mut path, 500, 1, false);
        assert_eq!(extra(&meter), 100.0);
    }

    #[test]
    fn a_clump_is_forgotten_after_5_to_10_rounds() {
        let mut path = Path::new(1000, Time::ZERO);
        let mut meter = Aggregation::new(Time::ZERO);
        acknowledge(&mut meter, &mut path, 20, 20, false);
        (0..5).for_each(|_| acknowledge(&mut meter, &mut path, 1, 30, true));
        assert_eq!(extra(&meter), 20.0);
        (0..5).for_each(|_| acknowledge(&mut meter, &mut path, 1, 30, true));
        assert_eq!(extra(&meter), 1.0);
    }
}
