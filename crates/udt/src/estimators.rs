//! The receiver's estimators: packet arrival rate and link capacity (packet pairs).
//!
//! Both filter a window of intervals as UDT4 does: intervals within (median / 8, median * 8) are
//! averaged. UDT4 counts microseconds; here intervals are in nanoseconds, since at 10 Gbit/s packets
//! are 1.2 us apart.

use dumbbell_units::{Span, Time};

/// Arrival intervals in the window.
const ARRIVALS: usize = 16;
/// Packet pair intervals in the window.
const PAIRS: usize = 64;

/// Estimates the packet arrival rate.
#[derive(Clone, Debug)]
pub(crate) struct ArrivalRateEstimator {
    intervals: IntervalWindow<ARRIVALS>,
    last: Option<Time>,
    /// Packets that arrived at `last`. Packets read in one batch have one timestamp; the time until
    /// the next one is divided among them.
    packets_at_last: u64,
}

/// Estimates the link capacity from packet pairs.
#[derive(Clone, Debug)]
pub(crate) struct CapacityEstimator {
    intervals: Box<IntervalWindow<PAIRS>>,
    first_at: Option<Time>,
    /// Whether a pair was measured. Until then the intervals are UDT4's initial ones.
    measured: bool,
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

    /// (median, sum, count) of the intervals strictly between median / 8 and median * 8. As in UDT4,
    /// the median is that of all slots but the last.
    fn filtered(&self) -> (u64, u64, u64) {
        let mut sorted = self.nanos;
        let (_, &mut median, _) = sorted[..N - 1].select_nth_unstable(N / 2);
        let within = |nanos: &&u64| (median / 8 + 1..median.saturating_mul(8)).contains(*nanos);
        let kept = self.nanos.iter().filter(within);
        kept.fold((median, 0, 0), |(median, sum, count), nanos| (median, sum + nanos, count + 1))
    }
}

/// Packets/s, rounded up, of `count` intervals that take `nanos` together; 0 if `nanos` is 0.
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

    /// Records the arrival of a data packet.
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

    /// Arrival rate, packets/s; 0 if at most half of the intervals pass the filter.
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
            measured: false,
        }
    }

    /// Records the arrival of a pair's first packet.
    #[inline]
    pub(crate) fn on_pair_first(&mut self, now: Time) {
        self.first_at = Some(now);
    }

    /// Records the arrival of a pair's second packet.
    #[inline]
    pub(crate) fn on_pair_second(&mut self, now: Time) {
        // Equal timestamps are no sample: both were read in one batch.
        let Some(first) = self.first_at.take().filter(|&first| first < now) else { return };
        if !self.measured {
            // UDT4 keeps its initial intervals until others have replaced them, which takes 1000 packets.
            *self.intervals = IntervalWindow::filled_with(now.since(first));
            self.measured = true;
        }
        self.intervals.push(now.since(first));
    }

    /// Discards the current pair.
    #[inline]
    pub(crate) fn invalidate_pair(&mut self) {
        self.first_at = None;
    }

    /// Capacity, packets/s. As in UDT4, the median counts twice in the average.
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
    fn packets_read_in_batches_have_the_average_rate_of_the_batches() {
        let mut meter = ArrivalRateEstimator::new();
        for batch in 0..10 {
            (0..5).for_each(|_| meter.on_arrival(at(batch * 1000)));
        }
        assert_eq!(meter.rate(), 5_000);
    }

    #[test]
    fn with_fewer_than_nine_intervals_the_rate_is_the_initial_one() {
        let mut meter = ArrivalRateEstimator::new();
        (0..8).for_each(|packet| meter.on_arrival(at(packet * 100)));
        assert_eq!(meter.rate(), 1, "all intervals are 1 s initially");
    }

    #[test]
    fn the_capacity_is_1000_initially_and_then_that_of_most_pairs() {
        let mut meter = CapacityEstimator::new();
        assert_eq!(meter.capacity(), 1000);
        for pair in 0..64 {
            meter.on_pair_first(at(pair * 10_000));
            // Every eighth pair is separated by cross traffic.
            meter.on_pair_second(at(pair * 10_000 + if pair % 8 == 0 { 900 } else { 12 }));
        }
        assert_eq!(meter.capacity(), 83_334);
    }

    #[test]
    fn a_pair_with_equal_timestamps_is_no_sample() {
        let mut meter = CapacityEstimator::new();
        for pair in 0..64 {
            meter.on_pair_first(at(pair));
            meter.on_pair_second(at(pair));
        }
        assert_eq!(meter.capacity(), 1000);
    }

    #[test]
    fn the_first_pair_already_tells_the_capacity() {
        let mut meter = CapacityEstimator::new();
        meter.on_pair_first(at(0));
        meter.on_pair_second(at(12));
        assert_eq!(meter.capacity(), 83_334);
    }

    #[test]
    fn a_second_packet_without_a_first_is_no_sample() {
        let mut meter = CapacityEstimator::new();
        meter.on_pair_first(at(0));
        meter.invalidate_pair();
        meter.on_pair_second(at(5));
        assert_eq!(meter.capacity(), 1000);
    }
}
