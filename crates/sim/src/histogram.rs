//! A histogram of delays in little memory, as 10,000 flows keep one each.
//!
//! Log-linear, as in HdrHistogram: below eight units buckets are one unit wide, and from there on
//! every power of two is cut into eight, so a bucket is never wider than an eighth of the delays
//! in it. A unit is 2^12 ns, about 4 us, and the 224 buckets reach to 73 minutes; what is longer
//! counts in the last one.

use dumbbell_net::prefetch;
use dumbbell_units::Span;

const UNIT_BITS: u32 = 12;
const SUBBUCKET_BITS: u32 = 3;
const SUBBUCKETS: usize = 1 << SUBBUCKET_BITS;
const BUCKETS: usize = 224;

/// How often which delay was seen.
///
/// What every delay changes comes first in memory, beside what the owner keeps before it.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Histogram {
    sum_ns: u64,
    /// The latest delay's bucket: the next one's is mostly on the same cache line.
    latest: u32,
    buckets: [u32; BUCKETS],
}

/// The bucket that a delay of `ns` falls into.
#[inline]
fn bucket(ns: u64) -> usize {
    let units = ns >> UNIT_BITS;
    if units < SUBBUCKETS as u64 {
        return units as usize;
    }
    // The position of the highest bit says which power of two, the next three bits which part.
    let power = units.ilog2() - SUBBUCKET_BITS;
    let part = (units >> power) as usize - SUBBUCKETS;
    ((power as usize + 1) * SUBBUCKETS + part).min(BUCKETS - 1)
}

/// The least delay of a bucket, ns.
fn lower_bound(bucket: usize) -> u64 {
    let (power, part) = (bucket / SUBBUCKETS, bucket % SUBBUCKETS);
    let units = if power == 0 { part } else { (SUBBUCKETS + part) << (power - 1) };
    (units as u64) << UNIT_BITS
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Histogram {
        Histogram { sum_ns: 0, latest: 0, buckets: [0; BUCKETS] }
    }

    /// A delay was seen.
    #[inline]
    pub fn record(&mut self, delay: Span) {
        let ns = delay.as_nanos();
        let bucket = bucket(ns);
        self.buckets[bucket] += 1;
        self.latest = bucket as u32;
        self.sum_ns += ns;
    }

    /// Asks for the memory that the next delay will probably need.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(&self.buckets[self.latest as usize]);
    }

    /// Delays that others were seen to have, too.
    pub fn merge(&mut self, other: &Histogram) {
        for (count, more) in self.buckets.iter_mut().zip(other.buckets) {
            *count += more;
        }
        self.sum_ns += other.sum_ns;
    }

    /// How many delays were seen.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|&count| u64::from(count)).sum()
    }

    /// Their mean, s, exactly; `None` without any.
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum_ns as f64 / count as f64 / 1e9)
    }

    /// The delay, s, that a share `q` of those seen does not exceed; within a bucket the delays are
    /// taken to lie evenly. `None` without any.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let rank = q * self.count() as f64;
        let mut below = 0.0;
        for (bucket, &count) in self.buckets.iter().enumerate() {
            let count = f64::from(count);
            if count > 0.0 && below + count >= rank {
                let (from, to) = (lower_bound(bucket) as f64, lower_bound(bucket + 1) as f64);
                return Some((from + (to - from) * (rank - below) / count) / 1e9);
            }
            below += count;
        }
        None
    }
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_histogram_has_no_statistics() {
        let histogram = Histogram::new();
        assert_eq!((histogram.mean(), histogram.quantile(0.5)), (None, None));
    }

    #[test]
    fn the_buckets_reach_to_73_minutes() {
        assert_eq!(bucket(lower_bound(BUCKETS) - 1), BUCKETS - 1);
        assert_eq!(lower_bound(BUCKETS) / 60_000_000_000, 73);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_of_evenly_spread_delays_are_where_they_should_be() {
        let mut histogram = Histogram::new();
        for us in 0..100_000 {
            histogram.record(Span::from_micros(us));
        }
        for q in [0.5, 0.95, 0.99] {
            let quantile = histogram.quantile(q).expect("not empty");
            assert!((quantile - q * 0.1).abs() < 0.001, "{q}: {quantile}");
        }
        assert_eq!(histogram.mean(), Some(0.049_999_5));
    }

    proptest! {
        #[test]
        fn a_delay_lies_between_the_bounds_of_its_bucket(ns in 0u64..4_000_000_000_000) {
            let bucket = bucket(ns);
            prop_assert!(lower_bound(bucket) <= ns && ns < lower_bound(bucket + 1));
        }

        #[test]
        fn a_bucket_is_no_wider_than_an_eighth_of_its_delays(bucket in SUBBUCKETS..BUCKETS) {
            let width = lower_bound(bucket + 1) - lower_bound(bucket);
            prop_assert!(width * SUBBUCKETS as u64 <= lower_bound(bucket));
        }
    }
}
