//! A token bucket.
//!
//! Tokens (bytes) accumulate at the rate, up to the bucket's depth. A packet departs as a whole as
//! soon as there are tokens for it. After a pause a burst of the bucket's depth may therefore
//! depart at once. A packet larger than the bucket departs when tokens for it would have accumulated.
//!
//! Linux's tbf and htb, which also shape Mininet's links, differ:
//! - htb sends while the tokens are at least 0 and lets them become negative. Its burst after a pause
//!   is the depth and up to one packet more (htb_accnt_tokens).
//! - tbf drops packets larger than the bucket (tbf_enqueue).
//!
//! The state is one time, `full_at`: when the bucket is full again if nothing more departs. The
//! tokens for a packet suffice at `full_at` minus `burst_time` plus the time that its tokens take
//! to accumulate. As in a [`ConstantRate`](crate::ConstantRate), times are whole nanoseconds and
//! the remainder is carried.

use dumbbell_units::{Span, Time};
use std::num::NonZeroU64;

/// A token bucket that is full at time zero.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    rate: NonZeroU64,
    /// Time in which an empty bucket fills (tbf's burst / rate).
    burst_time: Span,
    full_at: Time,
    /// What rounding cut off `full_at`, in `1/rate` ns.
    remainder: u64,
    last_departure: Time,
}

impl TokenBucket {
    /// A bucket of `depth` bytes that fills at `rate` bit/s. A packet larger than the bucket
    /// departs once the full bucket has gone without packets for the time of the missing tokens.
    pub fn new(rate: NonZeroU64, depth: u64) -> TokenBucket {
        let burst_time = u128::from(depth) * 8_000_000_000 / u128::from(rate.get());
        let burst_time = u64::try_from(burst_time).unwrap_or(u64::MAX);
        TokenBucket {
            rate,
            burst_time: Span::from_nanos(burst_time),
            full_at: Time::ZERO,
            remainder: 0,
            last_departure: Time::ZERO,
        }
    }

    /// The rate in bit/s.
    pub(crate) fn rate(&self) -> u64 {
        self.rate.get()
    }

    /// When everything accepted so far has departed.
    pub(crate) fn busy_until(&self) -> Time {
        self.last_departure
    }

    /// When a packet of `size` bytes that arrives at `now` departs.
    #[inline]
    pub fn departure(&self, now: Time, size: u64) -> Time {
        let (whole, _) = self.fill_time(size);
        let enough = (self.full_at + Span::from_nanos(whole)) - self.burst_time;
        now.max(self.last_departure).max(enough)
    }

    /// Accepts a packet of `size` bytes that arrives at `now`; returns its departure.
    #[inline]
    pub fn accept(&mut self, now: Time, size: u32) -> Time {
        let departure = self.departure(now, u64::from(size));
        let (whole, fraction) = self.fill_time(u64::from(size));
        // A packet larger than the bucket has already waited for its missing tokens: count them
        // once.
        let since = departure - Span::from_nanos(whole).saturating_sub(self.burst_time);
        if since > self.full_at {
            self.full_at = since;
            self.remainder = 0;
        }
        let remainder = self.remainder + fraction;
        let carry = remainder / self.rate.get();
        self.remainder = remainder % self.rate.get();
        self.full_at += Span::from_nanos(whole.saturating_add(carry));
        self.last_departure = departure;
        departure
    }

    /// Time in which the tokens of a packet accumulate: whole nanoseconds and `1/rate` ns.
    fn fill_time(&self, size: u64) -> (u64, u64) {
        let work = u128::from(size) * 8_000_000_000;
        let rate = u128::from(self.rate.get());
        (u64::try_from(work / rate).unwrap_or(u64::MAX), (work % rate) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 Mbit/s: the tokens of 1500 bytes accumulate in 120 us.
    fn bucket(depth: u64) -> TokenBucket {
        TokenBucket::new(NonZeroU64::new(100_000_000).expect("above zero"), depth)
    }

    fn us(us: u64) -> Time {
        Time::ZERO + Span::from_micros(us)
    }

    #[test]
    fn a_full_bucket_sends_its_depth_at_once_then_at_the_rate() {
        let mut bucket = bucket(15_000);
        let leaving: Vec<Time> = (0..13).map(|_| bucket.accept(us(1_000_000), 1500)).collect();
        assert!(leaving[..10].iter().all(|&at| at == us(1_000_000)));
        assert_eq!(leaving[10..], [us(1_000_120), us(1_000_240), us(1_000_360)]);
    }

    /// At 1 bit/s the tokens of 2^52 bytes take 2^64 * 5^9 ns.
    #[test]
    fn times_beyond_those_of_64_bits_are_the_maximum_and_do_not_wrap() {
        let rate = NonZeroU64::MIN;
        assert_eq!(TokenBucket::new(rate, 1 << 52).accept(us(1), 1500), us(1));
        assert_eq!(TokenBucket::new(rate, 0).departure(us(1), 1 << 52), Time::MAX);
    }

    #[test]
    fn a_pause_fills_the_bucket_no_further_than_its_depth() {
        let mut bucket = bucket(3_000);
        for _ in 0..2 {
            assert_eq!(bucket.accept(us(5_000), 1500), us(5_000));
        }
        assert_eq!(bucket.accept(us(5_060), 1500), us(5_120), "half of a packet had flowed in");
        for expected in [us(9_000), us(9_000), us(9_120)] {
            assert_eq!(bucket.accept(us(9_000), 1500), expected);
        }
    }

    #[test]
    fn packets_larger_than_the_bucket_leave_at_its_rate() {
        for depth in [1, 100, 1_000, 1_499] {
            let mut bucket = bucket(depth);
            let first = bucket.accept(us(1_000_000), 1500);
            let leaving: Vec<Time> = (0..3).map(|_| bucket.accept(us(1_000_000), 1500)).collect();
            let expected: Vec<Time> = (1..4).map(|n| first + Span::from_micros(120) * n).collect();
            assert_eq!(leaving, expected, "{depth} bytes");
        }
    }

    #[test]
    fn departures_never_exceed_the_rate_and_the_depth() {
        // 1500 bytes at 7 Mbit/s take 1,714,285.714... ns.
        let mut bucket = TokenBucket::new(NonZeroU64::new(7_000_000).expect("above zero"), 1500);
        let mut last = Time::ZERO;
        for _ in 0..1_000_001 {
            last = bucket.accept(Time::ZERO, 1500);
        }
        let expected = 12_000_000_000_000_000 / 7_000;
        assert!(last.as_nanos().abs_diff(expected) <= 1, "{last:?}");
    }
}
