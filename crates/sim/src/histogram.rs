//! A compact histogram of delays; 10,000 flows have one each.
//!
//! Log-linear as HdrHistogram: below eight units buckets are one unit wide, above every power of
//! two has eight buckets. So a bucket is at most an eighth as wide as the delays in it. A unit is
//! 2^12 ns, about 4 us. The 224 buckets reach 73 minutes; longer delays count in the last one.

use dumbbell_net::prefetch;
use dumbbell_units::Span;

const UNIT_BITS: u32 = 12;
const SUBBUCKET_BITS: u32 = 3;
const SUBBUCKETS: usize = 1 << SUBBUCKET_BITS;
const BUCKETS: usize = 224;

/// A histogram of delays.
///
/// The fields that every delay changes come first, next to what the owner stores before the
/// histogram.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Histogram {
    sum_ns: u64,
    /// How often each bucket's 16 bits have overflowed; none in short flows.
    overflows: Option<Box<[u32; BUCKETS]>>,
    /// Bucket of the latest delay: the next delay mostly falls on the same cache line.
    latest: u16,
    buckets: [u16; BUCKETS],
}

/// The bucket of a delay of `ns` nanoseconds.
#[inline]
fn bucket(ns: u64) -> usize {
    let units = ns >> UNIT_BITS;
    if units < SUBBUCKETS as u64 {
        return units as usize;
    }
    // The highest bit gives the power of two, the next three bits its part.
    let power = units.ilog2() - SUBBUCKET_BITS;
    let part = (units >> power) as usize - SUBBUCKETS;
    ((power as usize + 1) * SUBBUCKETS + part).min(BUCKETS - 1)
}

/// Lower bound of a bucket, in ns.
fn lower_bound(bucket: usize) -> u64 {
    let (power, part) = (bucket / SUBBUCKETS, bucket % SUBBUCKETS);
    let units = if power == 0 { part } else { (SUBBUCKETS + part) << (power - 1) };
    (units as u64) << UNIT_BITS
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Histogram {
        Histogram { sum_ns: 0, overflows: None, latest: 0, buckets: [0; BUCKETS] }
    }

    /// Counts a delay.
    #[inline]
    pub fn record(&mut self, delay: Span) {
        let ns = delay.as_nanos();
        let bucket = bucket(ns);
        let count = &mut self.buckets[bucket];
        *count = count.wrapping_add(1);
        if *count == 0 {
            self.overflow(bucket, 1);
        }
        self.latest = bucket as u16;
        self.sum_ns += ns;
    }

    #[cold]
    fn overflow(&mut self, bucket: usize, times: u32) {
        self.overflows.get_or_insert_with(|| Box::new([0; BUCKETS]))[bucket] += times;
    }

    /// The number of delays in each bucket.
    fn counts(&self) -> impl Iterator<Item = u64> {
        let overflows =
            |bucket| self.overflows.as_ref().map_or(0, |times| u64::from(times[bucket]));
        self.buckets
            .iter()
            .enumerate()
            .map(move |(bucket, &count)| (overflows(bucket) << u16::BITS) + u64::from(count))
    }

    /// Prefetches the bucket that the next delay probably falls into.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(&self.buckets[self.latest as usize]);
    }

    /// Adds the delays of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        for (bucket, more) in other.counts().enumerate() {
            let sum = u64::from(self.buckets[bucket]) + more;
            self.buckets[bucket] = sum as u16;
            if sum >> u16::BITS > 0 {
                self.overflow(bucket, (sum >> u16::BITS) as u32);
            }
        }
        self.sum_ns += other.sum_ns;
    }

    /// The number of delays.
    pub fn count(&self) -> u64 {
        self.counts().sum()
    }

    /// The exact mean in seconds; `None` if empty.
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum_ns as f64 / count as f64 / 1e9)
    }

    /// The `q`-quantile in seconds, interpolated within its bucket; `None` if empty.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        if self.sum_ns == 0 {
            return (self.count() > 0).then_some(0.0);
        }
        let rank = q * self.count() as f64;
        let mut below = 0.0;
        for (bucket, count) in self.counts().enumerate() {
            let count = count as f64;
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
    fn packets_that_never_waited_have_no_delay_in_any_quantile() {
        let mut histogram = Histogram::new();
        histogram.record(Span::ZERO);
        assert_eq!((histogram.quantile(0.5), histogram.quantile(0.95)), (Some(0.0), Some(0.0)));
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

    #[test]
    fn a_bucket_counts_more_than_16_bits_hold() {
        let mut histogram = Histogram::new();
        (0..200_000).for_each(|_| histogram.record(Span::from_micros(1)));
        assert_eq!((histogram.count(), histogram.mean()), (200_000, Some(1e-6)));
        histogram.merge(&histogram.clone());
        assert_eq!(histogram.count(), 400_000);
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
