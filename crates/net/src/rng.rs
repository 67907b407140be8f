//! The random numbers of a link.

use rand_xoshiro::rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

/// The use of the numbers. Each use has its own stream, so that enabling one changes no other. Jitter and
/// reordering are one use.
/// Results depend on these numbers: they must not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Loss = 0,
    Aqm = 1,
    DelayStage = 2,
    Medium = 3,
}

/// A stream of random numbers (xoshiro256++).
#[derive(Clone, Debug)]
pub(crate) struct Rng(Xoshiro256PlusPlus);

impl Rng {
    pub(crate) fn new(seed: u64, stream: Stream) -> Rng {
        let seed = match stream {
            Stream::Loss => seed,
            _ => SplitMix64::seed_from_u64(seed ^ (stream as u64) << 32).next_u64(),
        };
        Rng(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// 64 random bits.
    pub(crate) fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number uniform in [0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Failures before the first success of probability `p`: `P(k) = (1-p)^k p`. One draw by
    /// inversion: `floor(ln U / ln(1-p))`, U in (0, 1].
    pub(crate) fn geometric(&mut self, p: f64) -> u64 {
        if p <= 0.0 {
            return u64::MAX;
        }
        let uniform = 1.0 - self.uniform();
        (libm::log(uniform) * (1.0 / libm::log1p(-p))) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn geometric_is_0_at_probability_1_and_endless_at_0() {
        let mut rng = Rng::new(1, Stream::Loss);
        assert!((0..1000).all(|_| rng.geometric(1.0) == 0));
        assert!((0..1000).all(|_| rng.geometric(0.0) == u64::MAX));
    }

    #[test]
    fn streams_of_one_seed_differ() {
        let draw = |stream| Rng::new(7, stream).next_u64();
        assert_ne!(draw(Stream::Loss), draw(Stream::Aqm));
        assert_ne!(draw(Stream::Aqm), draw(Stream::DelayStage));
    }
}
