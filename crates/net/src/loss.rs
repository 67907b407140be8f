//! Losses that do not come from full queues.
//!
//! Uniform loss: every packet is lost with probability `p`, independently of all others. The
//! number of packets that pass between two losses is then geometric, `P(gap = k) = (1-p)^k p`,
//! and inverting its distribution takes one draw per loss instead of one per packet:
//! `gap = floor(ln U / ln(1 - p))` with `U` uniform in (0, 1].

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Independent losses of equal probability.
#[derive(Clone, Debug)]
pub struct UniformLoss {
    /// Packets that still pass before the next loss.
    gap: u64,
    /// `1 / ln(1 - p)`: minus infinity where nothing is lost.
    scale: f64,
    rng: Xoshiro256PlusPlus,
}

impl UniformLoss {
    /// Losses of the given probability.
    ///
    /// # Panics
    /// If the probability is not within [0, 1).
    pub fn new(probability: f64, seed: u64) -> UniformLoss {
        assert!((0.0..1.0).contains(&probability), "a loss probability lies within [0, 1)");
        let scale = 1.0 / libm::log1p(-probability);
        let mut loss =
            UniformLoss { gap: u64::MAX, scale, rng: Xoshiro256PlusPlus::seed_from_u64(seed) };
        if probability > 0.0 {
            loss.draw();
        }
        loss
    }

    /// Whether the next packet is lost.
    #[inline]
    pub fn strikes(&mut self) -> bool {
        if self.gap > 0 {
            // Without losses the gap is 2^64 - 1, which no run lives to see the end of.
            self.gap -= 1;
            return false;
        }
        self.draw();
        true
    }

    #[cold]
    fn draw(&mut self) {
        // 53 bits make a uniform in [0, 1); its complement is never zero, so the log is finite.
        let uniform = 1.0 - (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        self.gap = (libm::log(uniform) * self.scale) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets between losses, over `packets` packets.
    fn gaps(probability: f64, seed: u64, packets: u64) -> Vec<u64> {
        let mut loss = UniformLoss::new(probability, seed);
        let mut gaps = vec![0];
        for _ in 0..packets {
            if loss.strikes() {
                gaps.push(0);
            } else if let Some(last) = gaps.last_mut() {
                *last += 1;
            }
        }
        gaps
    }

    #[test]
    fn packets_are_lost_as_often_as_was_asked() {
        for (seed, probability) in [(1, 0.5), (2, 0.1), (3, 0.01), (4, 1e-4)] {
            let packets = 4_000_000;
            let losses = gaps(probability, seed, packets).len() as f64 - 1.0;
            let expected = packets as f64 * probability;
            let deviation = (expected * (1.0 - probability)).sqrt();
            assert!((losses - expected).abs() < 4.0 * deviation, "{losses} for {expected}");
        }
    }

    #[test]
    fn a_loss_says_nothing_about_the_next_one() {
        // Independence: after a loss the next packet is lost as often as any other.
        let gaps = gaps(0.2, 5, 1_000_000);
        let losses = gaps.len() as f64;
        let in_a_row = gaps.iter().filter(|&&gap| gap == 0).count() as f64;
        assert!((in_a_row / losses - 0.2).abs() < 0.005, "{in_a_row} of {losses}");
    }

    #[test]
    fn nothing_is_lost_at_probability_zero() {
        assert_eq!(gaps(0.0, 1, 1_000_000), [1_000_000]);
    }

    #[test]
    fn the_seed_alone_decides_which_packets_are_lost() {
        assert_eq!(gaps(0.01, 9, 100_000), gaps(0.01, 9, 100_000));
        assert_ne!(gaps(0.01, 9, 100_000), gaps(0.01, 10, 100_000));
    }

    #[test]
    #[should_panic(expected = "within [0, 1)")]
    fn a_probability_that_is_not_a_number_is_refused() {
        UniformLoss::new(f64::NAN, 1);
    }
}
