//! A shaper of constant rate.
//!
//! At `r` bit/s a packet takes `8e9 * size / r` ns, seldom a whole number. Departures are whole
//! nanoseconds. The remainder, in units of `1/r` ns, is carried to the next packet of the same busy
//! period, so the end of a busy period is never more than 1 ns off, however long it lasts.

use dumbbell_units::{Span, Time};
use std::num::NonZeroU64;

const BITS_PER_BYTE_TIMES_NANOS: u128 = 8_000_000_000;

/// A shaper of constant rate, first in, first out.
#[derive(Clone, Debug)]
pub struct ConstantRate {
    rate: NonZeroU64,
    /// End of the busy period, rounded down; `remainder` is what rounding cut off, in `1/rate` ns.
    busy_until: Time,
    remainder: u64,
    /// The last packet size and its transmission time. Most packets of a link have one size, and a
    /// comparison is cheaper than a division.
    size: u32,
    whole: u64,
    fraction: u64,
}

impl ConstantRate {
    /// An idle shaper of `rate` bit/s.
    pub fn new(rate: NonZeroU64) -> ConstantRate {
        ConstantRate { rate, busy_until: Time::ZERO, remainder: 0, size: 0, whole: 0, fraction: 0 }
    }

    /// When everything accepted so far has departed.
    #[inline]
    pub fn busy_until(&self) -> Time {
        self.busy_until
    }

    /// The rate in bit/s.
    pub(crate) fn rate(&self) -> u64 {
        self.rate.get()
    }

    /// When the last of `bytes` that arrive at `now` would depart, rounded down to the nanosecond.
    pub fn departure(&self, now: Time, bytes: u64) -> Time {
        let rate = self.rate.get();
        // A division of 64 bits is several times as fast, and enough for 2 GB.
        let work = match bytes.checked_mul(BITS_PER_BYTE_TIMES_NANOS as u64) {
            Some(bits) => bits / rate,
            None => {
                let work = u128::from(bytes) * BITS_PER_BYTE_TIMES_NANOS / u128::from(rate);
                u64::try_from(work).unwrap_or(u64::MAX)
            }
        };
        self.busy_until.max(now) + Span::from_nanos(work)
    }

    /// Accepts a packet of `size` bytes that arrives at `now`; returns the departure of its last
    /// bit.
    #[inline]
    pub fn accept(&mut self, now: Time, size: u32) -> Time {
        if now > self.busy_until {
            self.busy_until = now;
            self.remainder = 0;
        }
        if size != self.size {
            self.update_transmission_time(size);
        }
        let mut whole = self.whole;
        let rate = self.rate.get();
        // Both are below `rate`: this is their sum modulo `rate` without overflow.
        if self.remainder >= rate - self.fraction {
            self.remainder -= rate - self.fraction;
            whole += 1;
        } else {
            self.remainder += self.fraction;
        }
        self.busy_until += Span::from_nanos(whole);
        self.busy_until
    }

    /// Stores the transmission time of `size` bytes: whole nanoseconds and the rest in `1/rate` ns.
    #[cold]
    fn update_transmission_time(&mut self, size: u32) {
        let work = u128::from(size) * BITS_PER_BYTE_TIMES_NANOS;
        let rate = u128::from(self.rate.get());
        self.size = size;
        self.whole = (work / rate) as u64;
        self.fraction = (work % rate) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn transmitter(rate: u64) -> ConstantRate {
        ConstantRate::new(NonZeroU64::new(rate).expect("tests give rates above zero"))
    }

    #[test]
    fn a_packet_of_1500_bytes_takes_120_us_at_100_mbit() {
        let mut shaper = transmitter(100_000_000);
        assert_eq!(shaper.accept(Time::from_nanos(7), 1500), Time::from_nanos(120_007));
        assert_eq!(shaper.accept(Time::from_nanos(8), 1500), Time::from_nanos(240_007));
    }

    #[test]
    fn a_departure_beyond_64_bits_of_nanoseconds_is_never() {
        assert_eq!(transmitter(1).departure(Time::ZERO, 1 << 52), Time::MAX);
    }

    #[test]
    fn a_million_packets_at_a_rate_that_does_not_divide_end_exactly_on_time() {
        // 1500 bytes at 7 Mbit/s take 1,714,285.714... ns.
        let mut shaper = transmitter(7_000_000);
        let mut last = Time::ZERO;
        for _ in 0..1_000_000 {
            last = shaper.accept(Time::ZERO, 1500);
        }
        assert_eq!(last, Time::from_nanos(12_000_000_000_000_000 / 7_000));
    }

    #[test]
    fn an_idle_server_begins_when_the_packet_comes() {
        let mut shaper = transmitter(3_000_000_000);
        shaper.accept(Time::ZERO, 1);
        // 100 + 8/3 ns is 102 and a rest. The rest of the first packet is dropped with its busy
        // period.
        assert_eq!(shaper.accept(Time::from_nanos(100), 1), Time::from_nanos(102));
        assert_eq!(shaper.accept(Time::from_nanos(100), 1), Time::from_nanos(105));
        assert_eq!(shaper.accept(Time::from_nanos(100), 1), Time::from_nanos(108));
    }

    proptest! {
        #[test]
        fn a_busy_period_ends_when_its_work_is_done(
            rate in 1_000u64..400_000_000_000,
            sizes in prop::collection::vec(40u32..65_536, 1..200),
        ) {
            let mut shaper = transmitter(rate);
            let mut last = Time::ZERO;
            for &size in &sizes {
                last = shaper.accept(Time::ZERO, size);
            }
            let bits: u128 = sizes.iter().map(|&size| u128::from(size) * 8).sum();
            prop_assert_eq!(u128::from(last.as_nanos()), bits * 1_000_000_000 / u128::from(rate));
        }
    }
}
