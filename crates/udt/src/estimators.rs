//! What the receiver measures: how fast packets arrive, and the capacity of the path.
//!
//! Both are medians over a window, as UDT4 has them: values beyond an eighth and eight times the
//! median are left out, the rest is averaged. UDT4 counts whole microseconds, here it is
//! nanoseconds: at 10 Gbit/s packets are 1.2 us apart.

use dumbbell_units::{Span, Time};

/// Slots of the window of arrivals.
const ARRIVALS: usize = 16;
/// Slots of the window of packet pairs.
const PAIRS: usize = 64;

/// How fast packets arrive.
#[derive(Clone, Debug)]
pub(crate) struct ArrivalRateEstimator {
    intervals: IntervalWindow<ARRIVALS>,
    last: Option<Time>,
    /// Packets that came then: whoever reads packets in batches has many at one instant. They
    /// share the time until the next one.
    packets_at_last: u64,
}

/// What packet pairs tell of the path's capacity.
#[derive(Clone, Debug)]
pub(crate) struct CapacityEstimator {
    intervals: Box<IntervalWindow<PAIRS>>,
    first_at: Option<Time>,
}

#[derive(Clone, Debug)]
struct IntervalWindow<const N: usize> {
    nanos: [u64; N],
    at: usize,
}

impl<const N: usize> IntervalWindow<N> {
    fn filled_with(span: Span) -> IntervalWindow<N> {
        IntervalWindow { nanos: [span.as_nanos(); N], at: 0 }
    }

    #[inline]
    fn push(&mut self, span: Span) {
        self.nanos[self.at] = span.as_nanos();
        self.at = (self.at + 1) % N;
    }

    /// The median, and sum and number of the intervals strictly within an eighth and eight times
    /// the median. UDT4 takes the median of all slots but the last.
    fn filtered(&self) -> (u64, u64, u64) {
        let mut sorted = self.nanos;
        let (_, &mut median, _) = sorted[..N - 1].select_nth_unstable(N / 2);
        let within = |nanos: &&u64| (median / 8 + 1..median.saturating_mul(8)).contains(*nanos);
        let kept = self.nanos.iter().filter(within);
        kept.fold((median, 0, 0), |(median, sum, count), nanos| (median, sum + nanos, count + 1))
    }
}

/// Packets a second, rounded up, at one packet in `nanos / count`.
fn per_second(nanos: u64, count: u64) -> u32 {
    if nanos == 0 {
        0
    } else {
        (count * 1_000_000_000).div_ceil(nanos).min(u64::from(u32::MAX)) as u32
    }
}

impl ArrivalRateEstimator {
    pub(crate) fn new() -> ArrivalRateEstimator {
        ArrivalRateEstimator {
            intervals: IntervalWindow::filled_with(Span::from_secs(1)),
            last: None,
            packets_at_last: 0,
        }
    }

    /// A data packet arrived.
    #[inline]
    pub(crate) fn on_arrival(&mut self, now: Time) {
        if self.last != Some(now) {
            if let Some(last) = self.last {
                let share = now.since(last) / self.packets_at_last;
                for _ in 0..self.packets_at_last.min(ARRIVALS as u64) {
                    self.intervals.push(share);
                }
            }
            self.last = Some(now);
            self.packets_at_last = 0;
        }
        self.packets_at_last += 1;
    }

    /// Packets a second; 0 if arrivals are too uneven to tell.
    pub(crate) fn rate(&self) -> u32 {
        let (_, sum, count) = self.intervals.filtered();
        if count > ARRIVALS as u64 / 2 { per_second(sum, count) } else { 0 }
    }
}

impl CapacityEstimator {
    pub(crate) fn new() -> CapacityEstimator {
        CapacityEstimator {
            intervals: Box::new(IntervalWindow::filled_with(Span::from_millis(1))),
            first_at: None,
        }
    }

    /// The first packet of a pair arrived.
    #[inline]
    pub(crate) fn on_pair_first(&mut self, now: Time) {
        self.first_at = Some(now);
    }

    /// The second packet of a pair arrived.
    #[inline]
    pub(crate) fn on_pair_second(&mut self, now: Time) {
        // Two that were read at one instant tell nothing.
        if let Some(first) = self.first_at.take().filter(|&first| first < now) {
            self.intervals.push(now.since(first));
        }
    }

    /// The pair is spoilt: something came between.
    #[inline]
    pub(crate) fn invalidate_pair(&mut self) {
        self.first_at = None;
    }

    /// Packets a second. UDT4 counts the median once more.
    pub(crate) fn capacity(&self) -> u32 {
        let (median, sum, count) = self.intervals.filtered();
        per_second(sum + median, count + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    #[test]
    fn packets_120_us_apart_arrive_at_8334_a_second() {
        let mut meter = ArrivalRateEstimator::new();
        (0..17).for_each(|packet| meter.on_arrival(at(packet * 120)));
        assert_eq!(meter.rate(), 8334, "rounded up, as in UDT4");
    }

    #[test]
    fn a_pause_is_left_out_of_the_arrival_rate() {
        let mut meter = ArrivalRateEstimator::new();
        (0..17).for_each(|packet| {
            meter.on_arrival(at(packet * 100 + if packet > 8 { 5_000 } else { 0 }))
        });
        assert_eq!(meter.rate(), 10_000);
    }

    #[test]
    fn packets_that_are_read_in_batches_arrive_at_the_rate_of_the_batches() {
        let mut meter = ArrivalRateEstimator::new();
        for batch in 0..10 {
            (0..5).for_each(|_| meter.on_arrival(at(batch * 1000)));
        }
        assert_eq!(meter.rate(), 5_000);
    }

    #[test]
    fn before_there_are_nine_arrivals_the_rate_is_that_of_the_initial_second() {
        let mut meter = ArrivalRateEstimator::new();
        (0..8).for_each(|packet| meter.on_arrival(at(packet * 100)));
        assert_eq!(meter.rate(), 1, "the window holds seconds at first");
    }

    #[test]
    fn the_capacity_is_a_thousand_at_first_and_then_what_most_pairs_say() {
        let mut meter = CapacityEstimator::new();
        assert_eq!(meter.capacity(), 1000);
        for pair in 0..64 {
            meter.on_pair_first(at(pair * 10_000));
            // Every eighth pair had something between.
            meter.on_pair_second(at(pair * 10_000 + if pair % 8 == 0 { 900 } else { 12 }));
        }
        assert_eq!(meter.capacity(), 83_334);
    }

    #[test]
    fn a_pair_that_is_read_at_one_instant_is_no_sample() {
        let mut meter = CapacityEstimator::new();
        for pair in 0..64 {
            meter.on_pair_first(at(pair));
            meter.on_pair_second(at(pair));
        }
        assert_eq!(meter.capacity(), 1000);
    }

    #[test]
    fn a_second_half_without_a_first_is_no_sample() {
        let mut meter = CapacityEstimator::new();
        meter.on_pair_first(at(0));
        meter.invalidate_pair();
        meter.on_pair_second(at(5));
        assert_eq!(meter.capacity(), 1000);
    }
}
