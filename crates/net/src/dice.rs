//! Whatever a link draws at random.

use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

/// What the numbers are drawn for. Each use has a stream of its own, so that switching one on
/// changes nothing of another. The numbers are part of every result: they must not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Loss = 0,
    Aqm = 1,
    Tail = 2,
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Dice(Xoshiro256PlusPlus);

impl Dice {
    pub(crate) fn new(seed: u64, stream: Stream) -> Dice {
        let seed = match stream {
            Stream::Loss => seed,
            _ => SplitMix64::seed_from_u64(seed ^ (stream as u64) << 32).next_u64(),
        };
        Dice(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in [0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// How often something of probability `p` fails before it happens: `P(gap = k) = (1-p)^k p`.
    /// Inverting the distribution takes one draw a gap: `floor(ln U / ln(1-p))`, U in (0, 1].
    pub(crate) fn gap(&mut self, p: f64) -> u64 {
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
    fn what_is_certain_never_fails_and_what_is_impossible_always_does() {
        let mut dice = Dice::new(1, Stream::Loss);
        assert!((0..1000).all(|_| dice.gap(1.0) == 0));
        assert!((0..1000).all(|_| dice.gap(0.0) == u64::MAX));
    }

    #[test]
    fn streams_of_one_seed_differ() {
        let draw = |stream| Dice::new(7, stream).bits();
        assert_ne!(draw(Stream::Loss), draw(Stream::Aqm));
        assert_ne!(draw(Stream::Aqm), draw(Stream::Tail));
    }
}
