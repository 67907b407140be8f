//! ns-3's HyStart: Linux's detectors with thresholds that end slow start later.
//!
//! From `TcpCubic::PktsAcked`, `HystartUpdate` and `HystartDelayThresh` of ns-3.44
//! (`src/internet/model/tcp-cubic.cc`). From a window of 16 packets on, either ends slow start at the
//! present window:
//!
//! - **ACK train.** Acknowledgements that come within 2 ms of each other last longer than the
//!   minimum round-trip time, counted from the start of the round. Linux's threshold is half of it.
//! - **Delay.** After 8 samples, their minimum exceeds the minimum round-trip time by more than that
//!   time itself, clamped to 4 ms to 1 s. Linux's threshold is an eighth, clamped to 4 to 16 ms.
//!
//! Every round-trip time here is the smoothed one, which is what `TcpSocketBase` passes to the
//! algorithm. Once slow start has ended, detection stays off until a timeout.

use crate::hystart::HyStartRound;
use crate::{Ack, Path, SlowStart};
use dumbbell_units::{Span, Time};

/// Samples of a round from which its minimum is taken (`HyStartMinSamples`).
const SAMPLES: u32 = 8;

/// HyStart as in ns-3's CUBIC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HyStartNs3 {
    found: bool,
    min_rtt: Span,
    round: HyStartRound,
}

impl HyStartNs3 {
    /// HyStart at the start of a connection.
    pub const fn new() -> HyStartNs3 {
        HyStartNs3 { found: false, min_rtt: Span::MAX, round: HyStartRound::new() }
    }

    fn train_exceeds_threshold(&mut self, now: Time) -> bool {
        self.round.train(now).is_some_and(|train| train > self.min_rtt)
    }

    fn delay_exceeds_threshold(&mut self, rtt: Span) -> bool {
        let round = &mut self.round;
        if round.samples < SAMPLES {
            round.min_rtt = round.min_rtt.min(rtt);
            round.samples += 1;
            return false;
        }
        let threshold = self.min_rtt.clamp(Span::from_millis(4), Span::from_secs(1));
        round.min_rtt > self.min_rtt + threshold
    }
}

impl Default for HyStartNs3 {
    fn default() -> HyStartNs3 {
        HyStartNs3::new()
    }
}

impl SlowStart for HyStartNs3 {
    fn should_exit(&mut self, cwnd: f64, path: &Path, _ack: &Ack) -> bool {
        let Some(rtt) = path.srtt else { return false };
        self.min_rtt = self.min_rtt.min(rtt);
        if !self.found && cwnd >= HyStartRound::LOW_WINDOW {
            let train = self.train_exceeds_threshold(path.now);
            self.found = self.delay_exceeds_threshold(rtt) || train;
            if self.found {
                return true;
            }
        }
        self.round.advance(path);
        false
    }

    fn restart(&mut self, path: &Path) {
        *self = HyStartNs3::new();
        self.round.restart(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Span = Span::from_millis(1);

    /// A flow in its second round, its least round-trip time 100 ms.
    fn flow() -> (HyStartNs3, Path) {
        let path = Path {
            now: Time::ZERO + MS * 1000,
            srtt: Some(MS * 100),
            next_seq: 100_000,
            una: 1,
            ..Path::new(1448, Time::ZERO)
        };
        let mut hystart = HyStartNs3::new();
        assert!(!hystart.should_exit(100.0, &path, &Ack::default()));
        (hystart, path)
    }

    /// Number of the acknowledgement in a row, from 1, that ends slow start.
    fn ends_at(hystart: &mut HyStartNs3, path: &mut Path, gap: Span, cwnd: f64) -> Option<u32> {
        (1..=300).find(|_| {
            path.now += gap;
            path.una += 1;
            hystart.should_exit(cwnd, path, &Ack::default())
        })
    }

    #[test]
    fn a_train_longer_than_the_minimum_rtt_ends_slow_start() {
        let (mut hystart, mut path) = flow();
        assert_eq!(ends_at(&mut hystart, &mut path, MS, 100.0), Some(101));
    }

    #[test]
    fn the_ninth_sample_above_twice_the_minimum_rtt_ends_slow_start() {
        for (rtt, found) in [(200, None), (201, Some(9))] {
            let (mut hystart, mut path) = flow();
            path.srtt = Some(MS * rtt);
            // The gap of the first one breaks the train.
            assert_eq!(ends_at(&mut hystart, &mut path, MS * 3, 100.0), found, "{rtt} ms");
        }
    }

    #[test]
    fn detection_is_off_below_16_packets_and_after_an_exit() {
        let (mut hystart, mut path) = flow();
        assert_eq!(ends_at(&mut hystart, &mut path, MS, 15.9), None);
        let (mut hystart, mut path) = flow();
        assert!(ends_at(&mut hystart, &mut path, MS, 16.0).is_some());
        assert_eq!(ends_at(&mut hystart, &mut path, MS, 16.0), None);
        hystart.restart(&path);
        assert!(ends_at(&mut hystart, &mut path, MS, 16.0).is_some(), "a timeout forgets");
    }
}
