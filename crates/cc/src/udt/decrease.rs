//! UDT's rate decrease on negative acknowledgements (NAKs): draft-gg-udt-03, section 6.1.2, and
//! `onLoss` of UDT4's library, which decides where the two differ.
//!
//! A NAK for a packet sent after the last decrease begins a congestion epoch:
//!
//! ```text
//! P         = 1.125 P                           8/9 of the rate
//! AvgNAK    = ceil(7/8 AvgNAK + 1/8 NAKCount)
//! DecRandom = max(1, ceil(AvgNAK U))            U uniform in [0, 1)
//! NAKCount  = DecCount = 1
//! ```
//!
//! Other NAKs belong to the same epoch. Each of the next four increments `NAKCount`; when that is a
//! multiple of `DecRandom`, `P = 1.125 P` again. An epoch therefore leaves at least 5/9 of the rate,
//! decreases become fewer as NAKs become frequent, and flows that share a loss decrease by different
//! amounts.
//!
//! Gu's module for NS-2 (2006) counts all NAKs of an epoch. When an epoch begins it pauses for a SYN,
//! or until the next NAK or acknowledgement. It computes, with initial values of 2:
//!
//! ```text
//! AvgNAK    = 1 + ceil(7/8 AvgNAK + 1/8 NAKCount)
//! DecRandom = floor(AvgNAK U) + ceil(AvgNAK / 5)
//! ```

use crate::Metric;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Factor of the period in a decrease.
pub const PERIOD_FACTOR: f64 = 1.125;
/// UDT4: NAKs of an epoch, including the first, that may decrease the rate.
const MAX_NAKS_PER_EPOCH: u32 = 5;

/// The implementation whose rules apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// UDT4's library.
    Udt4,
    /// The module for NS-2.
    Ns2,
}

/// The response to a NAK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NakAction {
    /// No decrease.
    Ignore,
    /// A decrease that begins an epoch.
    NewEpoch,
    /// Another decrease in the same epoch.
    DecreaseAgain,
}

/// State of the congestion epochs; names are the draft's.
#[derive(Clone, Debug)]
pub struct Decrease {
    rules: Rules,
    /// The next sequence number at the last decrease (`LastDecSeq`).
    last_dec_seq: u64,
    nak_count: u32,
    avg_nak: f64,
    dec_random: u32,
    random: SplitMix64,
}

impl Decrease {
    /// The state before the first NAK.
    pub fn new(rules: Rules, seed: u64) -> Decrease {
        let (avg_nak, dec_random) = if rules == Rules::Udt4 { (0.0, 1) } else { (2.0, 2) };
        Decrease {
            rules,
            last_dec_seq: 0,
            nak_count: 0,
            avg_nak,
            dec_random,
            random: SplitMix64::seed_from_u64(seed),
        }
    }

    /// Takes a NAK whose first lost packet is `seq`; `next_seq` is the next new packet.
    pub fn on_nak(&mut self, seq: u64, next_seq: u64) -> NakAction {
        if seq >= self.last_dec_seq {
            self.begin_epoch();
            self.last_dec_seq = next_seq;
            return NakAction::NewEpoch;
        }
        if self.rules == Rules::Udt4 && self.nak_count >= MAX_NAKS_PER_EPOCH {
            return NakAction::Ignore;
        }
        self.nak_count = self.nak_count.saturating_add(1);
        if !self.nak_count.is_multiple_of(self.dec_random) {
            return NakAction::Ignore;
        }
        self.last_dec_seq = next_seq;
        NakAction::DecreaseAgain
    }

    fn begin_epoch(&mut self) {
        let average = libm::ceil(0.875 * self.avg_nak + 0.125 * f64::from(self.nak_count));
        let share = f64::from(self.random.next_u32()) / 4_294_967_296.0;
        (self.avg_nak, self.dec_random) = match self.rules {
            Rules::Udt4 => (average, (libm::ceil(average * share) as u32).max(1)),
            Rules::Ns2 => {
                let average = average + 1.0;
                (average, (average * share) as u32 + libm::ceil(average / 5.0) as u32)
            }
        };
        self.nak_count = 1;
    }

    /// Calls `show` for each named internal.
    pub fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        show(Metric { name: "nak_count", value: f64::from(self.nak_count) });
        show(Metric { name: "avg_nak", value: self.avg_nak });
        show(Metric { name: "dec_random", value: f64::from(self.dec_random) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nak_for_a_packet_sent_since_the_last_decrease_begins_an_epoch() {
        let mut decrease = Decrease::new(Rules::Udt4, 1);
        assert_eq!(decrease.on_nak(0, 100), NakAction::NewEpoch);
        assert_ne!(decrease.on_nak(99, 150), NakAction::NewEpoch, "sent before the decrease");
        let mut decrease = Decrease::new(Rules::Udt4, 1);
        decrease.on_nak(0, 100);
        assert_eq!(decrease.on_nak(100, 200), NakAction::NewEpoch);
    }

    /// `AvgNAK` is 0 in the first epoch, so `DecRandom` is 1 and every NAK that counts decreases.
    #[test]
    fn no_more_than_five_naks_of_an_epoch_decrease() {
        let mut decrease = Decrease::new(Rules::Udt4, 1);
        let answers: Vec<_> = (0..8).map(|_| decrease.on_nak(0, 100)).collect();
        assert_eq!(answers[0], NakAction::NewEpoch);
        assert_eq!(answers[1..5], [NakAction::DecreaseAgain; 4]);
        assert_eq!(answers[5..], [NakAction::Ignore; 3]);
    }

    #[test]
    fn the_average_number_of_naks_is_rounded_up() {
        let mut decrease = Decrease::new(Rules::Udt4, 1);
        for (epoch, average) in [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0)] {
            let next = (epoch + 1) * 1000;
            decrease.on_nak(epoch * 1000, next);
            assert_eq!(decrease.avg_nak, average, "epoch {epoch}");
            for _ in 0..9 {
                decrease.on_nak(0, next);
            }
            assert_eq!(decrease.nak_count, 5);
        }
    }

    #[test]
    fn among_repeated_naks_only_every_decrandom_th_decreases() {
        for seed in 0..100 {
            let mut decrease = Decrease::new(Rules::Udt4, seed);
            decrease.avg_nak = 8.0;
            decrease.on_nak(0, 100);
            assert!((1..=7).contains(&decrease.dec_random), "ceil(7 U)");
            for nak in 2..=5 {
                let decreases = decrease.on_nak(0, 100) == NakAction::DecreaseAgain;
                assert_eq!(
                    decreases,
                    nak % decrease.dec_random == 0,
                    "NAK {nak} of {}",
                    decrease.dec_random
                );
            }
        }
    }

    #[test]
    fn ns_2_counts_every_nak_and_draws_1_5_to_6_5_of_the_average() {
        let mut drawn = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let mut decrease = Decrease::new(Rules::Ns2, seed);
            (decrease.avg_nak, decrease.nak_count) = (9.0, 9);
            decrease.on_nak(0, 100);
            assert_eq!(decrease.avg_nak, 10.0, "1 + ceil(9)");
            drawn.insert(decrease.dec_random);
            for nak in 2..=50 {
                let decreases = decrease.on_nak(0, 100) == NakAction::DecreaseAgain;
                assert_eq!(
                    decreases,
                    nak % decrease.dec_random == 0,
                    "NAK {nak} of {}",
                    decrease.dec_random
                );
            }
        }
        assert_eq!(drawn, (2..=11).collect(), "floor(10 U) + 2");
    }
}
