//! A shaper whose rate changes at given times.
//!
//! The rate applies immediately: the rest of a packet in transmission is sent at the new rate. As
//! in a [`ConstantRate`](crate::ConstantRate), departures are whole nanoseconds and the remainder
//! is carried. At rate zero nothing departs.

use dumbbell_units::{Span, Time};

/// A shaper of piecewise constant rate, first in, first out.
#[derive(Clone, Debug)]
pub struct PiecewiseRate {
    /// (start, bit/s) of each step.
    steps: Vec<(Time, u64)>,
    period: BusyPeriod,
}

/// How far the accepted packets occupy the shaper.
#[derive(Clone, Copy, Debug)]
struct BusyPeriod {
    /// End of the busy period, rounded down.
    busy_until: Time,
    /// What rounding cut off, in `1/rate` ns.
    remainder: u64,
    /// The step that contains `busy_until`.
    step: usize,
}

impl PiecewiseRate {
    /// A shaper with these steps: (start, bit/s).
    ///
    /// # Panics
    /// If the first time is not zero, or the times do not increase.
    pub fn new(steps: Vec<(Time, u64)>) -> PiecewiseRate {
        assert!(steps.first().is_some_and(|first| first.0 == Time::ZERO), "rates begin at zero");
        assert!(steps.is_sorted_by(|a, b| a.0 < b.0), "the times of rates increase");
        PiecewiseRate {
            steps,
            period: BusyPeriod { busy_until: Time::ZERO, remainder: 0, step: 0 },
        }
    }

    /// When everything accepted so far has departed.
    pub fn busy_until(&self) -> Time {
        self.period.busy_until
    }

    /// When the last of `bytes` that arrive at `now` would depart; [`Time::MAX`] if never.
    pub fn departure(&self, now: Time, bytes: u64) -> Time {
        self.after(now, bytes).busy_until
    }

    /// Accepts a packet of `size` bytes that arrives at `now`; returns its departure.
    pub fn accept(&mut self, now: Time, size: u32) -> Time {
        self.period = self.after(now, u64::from(size));
        self.period.busy_until
    }

    /// The rate at `now` in bit/s.
    pub(crate) fn rate(&self, now: Time) -> u64 {
        let begun = self.steps.partition_point(|step| step.0 <= now);
        self.steps[begun - 1].1
    }

    fn after(&self, now: Time, bytes: u64) -> BusyPeriod {
        let mut period = self.period;
        if now > period.busy_until {
            let passed = self.steps[period.step..].iter().take_while(|step| step.0 <= now).count();
            period = BusyPeriod { busy_until: now, remainder: 0, step: period.step + passed - 1 };
        }
        // In units of 1e-9 bit: a rate of r bit/s sends r of them per nanosecond.
        let mut work = u128::from(bytes) * 8_000_000_000 + u128::from(period.remainder);
        loop {
            let rate = u128::from(self.steps[period.step].1);
            let end = self.steps.get(period.step + 1).map_or(Time::MAX, |next| next.0);
            let capacity = rate * u128::from(end.since(period.busy_until).as_nanos());
            if work <= capacity && rate > 0 {
                period.busy_until += Span::from_nanos((work / rate) as u64);
                period.remainder = (work % rate) as u64;
                return period;
            }
            if end == Time::MAX {
                return BusyPeriod { busy_until: Time::MAX, remainder: 0, ..period };
            }
            work -= capacity;
            period = BusyPeriod { busy_until: end, remainder: 0, step: period.step + 1 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ConstantRate;
    use proptest::prelude::*;
    use std::num::NonZeroU64;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn ten_mbit_then_two_then_nothing_then_one() {
        // 1250 bytes are 10,000 bits: 1 ms at 10 Mbit/s, 5 ms at 2 Mbit/s, 10 ms at 1 Mbit/s.
        let steps =
            vec![(ms(0), 10_000_000), (ms(100), 2_000_000), (ms(200), 0), (ms(300), 1_000_000)];
        let mut shaper = PiecewiseRate::new(steps);
        assert_eq!(shaper.accept(ms(50), 1250), ms(51));
        assert_eq!(shaper.accept(ms(99), 1250), ms(100));
        assert_eq!(shaper.accept(ms(100), 1250), ms(105));
        assert_eq!(shaper.accept(ms(196), 1250), ms(302), "4 of 5 before, 2 of 10 after");
        assert_eq!(shaper.accept(ms(196), 1250), ms(312));
        assert_eq!(shaper.accept(ms(400), 1250), ms(410));
    }

    #[test]
    fn a_packet_in_service_at_a_rate_change_is_finished_at_the_new_rate() {
        // Half a packet in the last half millisecond at 10 Mbit/s, the other half at 2 Mbit/s.
        let mut shaper = PiecewiseRate::new(vec![(ms(0), 10_000_000), (ms(10), 2_000_000)]);
        let start = Time::ZERO + Span::from_micros(9_500);
        assert_eq!(shaper.departure(start, 1250), Time::ZERO + Span::from_micros(12_500));
        assert_eq!(shaper.accept(start, 1250), Time::ZERO + Span::from_micros(12_500));
    }

    #[test]
    fn nothing_departs_once_the_rate_stays_zero() {
        let mut shaper = PiecewiseRate::new(vec![(ms(0), 10_000_000), (ms(10), 0)]);
        assert_eq!(shaper.accept(ms(9), 1250), ms(10));
        assert_eq!(shaper.accept(ms(9), 1250), Time::MAX);
        assert_eq!(shaper.accept(ms(20), 1250), Time::MAX);
    }

    proptest! {
        #[test]
        fn steps_of_one_rate_are_a_constant_rate(
            rate in 10_000u64..10_000_000_000,
            packets in prop::collection::vec((0u64..500_000, 40u32..9000), 1..200),
        ) {
            let mut constant = ConstantRate::new(NonZeroU64::new(rate).expect("above zero"));
            let steps = (0..100).map(|i| (Time::from_nanos(i * 777_777), rate)).collect();
            let mut steps = PiecewiseRate::new(steps);
            let mut now = Time::ZERO;
            for (gap, size) in packets {
                now += Span::from_nanos(gap);
                let (expected, got) = (constant.accept(now, size), steps.accept(now, size));
                prop_assert_eq!(expected, got);
            }
        }
    }
}
