//! Rounds by sequence number (Linux's `beg_snd_nxt`), and the round-trip times of a round.
//!
//! A round ends when the first packet sent after its start is acknowledged cumulatively. HyStart,
//! Vegas, YeAH, Illinois and DCTCP in Linux count rounds so. BBR counts them by delivered packets instead
//! ([`crate::Rounds`]), which also works while a lost packet holds back the cumulative
//! acknowledgement.

use crate::{Ack, Path};
use dumbbell_units::Span;

/// A round by sequence number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceRound {
    /// The first packet sent in the round; its acknowledgement ends it.
    round_end: u64,
}

impl SequenceRound {
    /// The round of packet 0.
    pub const fn new() -> SequenceRound {
        SequenceRound { round_end: 0 }
    }

    /// Whether this acknowledgement ends the round. If so, the next one begins.
    #[inline]
    pub fn advance(&mut self, path: &Path) -> bool {
        let ended = path.una > self.round_end;
        if ended {
            self.round_end = path.next_seq;
        }
        ended
    }

    /// Begins a round now.
    #[inline]
    pub fn restart(&mut self, path: &Path) {
        self.round_end = path.next_seq;
    }
}

/// Count, minimum and sum of the round-trip time samples of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttSummary {
    /// Number of samples; at least 1.
    pub count: u32,
    /// Their minimum.
    pub min: Span,
    /// Their sum.
    pub sum: Span,
}

impl RttSummary {
    /// The mean, seconds.
    #[inline]
    pub fn mean(&self) -> f64 {
        self.sum.as_secs_f64() / f64::from(self.count)
    }
}

/// Collects the round-trip time samples of each round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundRtts {
    round: SequenceRound,
    rtts: Option<RttSummary>,
}

impl RoundRtts {
    /// Takes the acknowledgement's sample. At the end of a round with samples, returns them.
    #[inline]
    pub fn update(&mut self, path: &Path, ack: &Ack) -> Option<RttSummary> {
        self.sample(ack);
        self.take_if_round_ended(path)
    }

    /// Takes the acknowledgement's sample.
    #[inline]
    pub fn sample(&mut self, ack: &Ack) {
        if let Some(rtt) = ack.rtt {
            self.rtts = Some(match self.rtts {
                None => RttSummary { count: 1, min: rtt, sum: rtt },
                Some(RttSummary { count, min, sum }) => {
                    RttSummary { count: count + 1, min: min.min(rtt), sum: sum + rtt }
                }
            });
        }
    }

    /// At the end of a round with samples, returns them.
    #[inline]
    pub fn take_if_round_ended(&mut self, path: &Path) -> Option<RttSummary> {
        if self.round.advance(path) { self.rtts.take() } else { None }
    }

    /// Discards the samples and begins a round now.
    #[inline]
    pub fn restart(&mut self, path: &Path) {
        self.round.restart(path);
        self.rtts = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dumbbell_units::Time;

    fn path(una: u64, next_seq: u64) -> Path {
        Path { una, next_seq, ..Path::new(1448, Time::ZERO) }
    }

    fn sample(ms: u64) -> Ack {
        Ack { rtt: Some(Span::from_millis(ms)), ..Ack::default() }
    }

    #[test]
    fn a_round_ends_when_the_first_packet_sent_in_it_is_acknowledged() {
        let mut round = SequenceRound::default();
        assert!(round.advance(&path(1, 10)), "packet 0, the first of all");
        assert!(!round.advance(&path(10, 20)), "packet 9 was sent before");
        assert!(round.advance(&path(11, 21)), "packet 10");
        assert!(!round.advance(&path(21, 30)));
    }

    #[test]
    fn the_end_of_a_round_returns_and_clears_its_samples() {
        let mut rtts = RoundRtts::default();
        rtts.restart(&path(0, 3));
        assert_eq!(rtts.update(&path(1, 4), &sample(30)), None);
        assert_eq!(rtts.update(&path(2, 5), &sample(20)), None);
        let ended = rtts.update(&path(4, 6), &sample(40)).expect("packet 3 is acknowledged");
        assert_eq!((ended.count, ended.min, ended.mean()), (3, Span::from_millis(20), 0.03));
        assert_eq!(rtts.update(&path(7, 8), &Ack::default()), None, "there was no sample");
    }
}
