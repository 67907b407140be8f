//! Derives the seed of each random stream from the seed of the run.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The use of a seed. Results depend on these numbers: they must not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    LinkLoss = 1,
    StartJitter = 2,
    Algorithm = 3,
    ArrivalTimes = 4,
    TransferSizes = 5,
    ThinkTimes = 6,
    Ties = 7,
}

/// The seed of stream number `index` of a purpose.
pub(crate) fn derive(seed: u64, purpose: Purpose, index: u32) -> u64 {
    let run = SplitMix64::seed_from_u64(seed).next_u64();
    let thing = (purpose as u64) << 32 | u64::from(index);
    SplitMix64::seed_from_u64(run ^ thing).next_u64()
}

/// The rank of `thing` among those of a moment: which is first is drawn anew at each.
#[inline]
pub(crate) fn rank(seed: u64, moment: u64, thing: u32) -> u32 {
    let of_moment = seed.wrapping_add(moment.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    (SplitMix64::seed_from_u64(of_moment ^ u64::from(thing)).next_u64() >> 32) as u32
}

/// A number uniform in [0, below); 0 if `below` is 0.
pub(crate) fn uniform(seed: u64, below: u64) -> u64 {
    let draw = SplitMix64::seed_from_u64(seed).next_u64();
    ((u128::from(draw) * u128::from(below)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_things_of_a_few_runs_share_a_seed() {
        let mut seeds = BTreeSet::new();
        for seed in 0..10 {
            for purpose in [Purpose::LinkLoss, Purpose::StartJitter, Purpose::Algorithm] {
                seeds.extend((0..1000).map(|index| derive(seed, purpose, index)));
            }
        }
        assert_eq!(seeds.len(), 10 * 3 * 1000);
    }

    #[test]
    fn draws_are_spread_evenly_below_the_bound() {
        let draws = (0..100_000).map(|i| uniform(derive(1, Purpose::StartJitter, i), 1000));
        let mut counts = [0u32; 10];
        for draw in draws {
            counts[(draw / 100) as usize] += 1;
        }
        // 10,000 per tenth, tolerance four standard deviations of 95.
        assert!(counts.iter().all(|&count| count.abs_diff(10_000) < 380), "{counts:?}");
    }

    #[test]
    fn uniform_below_zero_is_zero() {
        assert_eq!(uniform(7, 0), 0);
    }
}
