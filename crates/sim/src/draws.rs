//! Random numbers of some distributions, the same on every machine.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A stream of random numbers (xoshiro256++).
#[derive(Clone, Debug)]
pub struct Draws(Xoshiro256PlusPlus);

impl Draws {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Draws {
        Draws(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Uniform in (0, 1].
    pub fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// From the exponential distribution with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(self.uniform())
    }

    /// From the standard normal distribution (Box and Muller, 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(2.0 * self.exponential());
        radius * libm::cos(2.0 * std::f64::consts::PI * self.uniform())
    }
}
