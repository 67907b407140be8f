//! A shaper that follows a trace in mahimahi's format.
//!
//! A trace is a non-decreasing list of times in whole milliseconds. Each is an opportunity to
//! deliver 1500 bytes; bytes that find no packet are lost. A packet may use what the previous one
//! left of an opportunity. A larger one departs with the opportunity that carries its last byte.
//! The last time is the length of the trace, which then repeats (Netravali et al., "Mahimahi",
//! USENIX ATC 2015, section 3; its `mm-link`).
//!
//! One difference: mahimahi's clock has a resolution of 1 ms, so a packet misses the opportunities
//! of the millisecond in which it arrives. Here it misses only those before its arrival.

use dumbbell_units::{Span, Time};

/// Bytes of a delivery opportunity.
pub const OPPORTUNITY_BYTES: u32 = 1500;

/// A shaper that follows a trace, first in, first out.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The opportunities of one period.
    times: Vec<Time>,
    period: Span,
    cursor: Cursor,
}

/// How far the opportunities are used.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    /// Time of the opportunity used last.
    at: Time,
    /// What is left of it, in bytes.
    bytes_left: u32,
    /// Start of the current period.
    period_start: Time,
    /// Index of the next opportunity in the period.
    next: usize,
}

impl Trace {
    /// A shaper with these delivery opportunities.
    ///
    /// # Panics
    /// If there are none, they decrease, or the last one is at zero.
    pub fn new(times: Vec<Time>) -> Trace {
        assert!(times.is_sorted(), "delivery opportunities never decrease");
        let period = times.last().copied().unwrap_or(Time::ZERO).since(Time::ZERO);
        assert!(!period.is_zero(), "a trace has a delivery opportunity after zero");
        Trace {
            times,
            period,
            cursor: Cursor { at: Time::ZERO, bytes_left: 0, period_start: Time::ZERO, next: 0 },
        }
    }

    /// When everything accepted so far has departed.
    pub fn busy_until(&self) -> Time {
        self.cursor.at
    }

    /// When the next byte that has arrived by `now` can depart.
    pub fn service_start(&self, now: Time) -> Time {
        self.after(now, 1).at
    }

    /// When the last of `bytes` that arrive at `now` would depart.
    pub fn departure(&self, now: Time, bytes: u64) -> Time {
        self.after(now, bytes).at.max(now)
    }

    /// Accepts a packet of `size` bytes that arrives at `now`; returns its departure.
    pub fn accept(&mut self, now: Time, size: u32) -> Time {
        self.cursor = self.after(now, u64::from(size));
        self.cursor.at
    }

    /// The mean rate in bit/s.
    pub(crate) fn mean_rate(&self) -> u64 {
        let bits = self.times.len() as u128 * u128::from(OPPORTUNITY_BYTES) * 8;
        (bits * 1_000_000_000 / u128::from(self.period.as_nanos())) as u64
    }

    fn after(&self, now: Time, mut bytes: u64) -> Cursor {
        let mut cursor = self.cursor;
        if cursor.at < now {
            cursor.bytes_left = 0;
            self.skip_missed(&mut cursor, now);
        }
        while bytes > u64::from(cursor.bytes_left) {
            bytes -= u64::from(cursor.bytes_left);
            cursor.at = self.time(cursor);
            cursor.bytes_left = OPPORTUNITY_BYTES;
            cursor.next += 1;
            if cursor.next == self.times.len() {
                cursor.next = 0;
                cursor.period_start += self.period;
            }
        }
        cursor.bytes_left -= bytes as u32;
        cursor
    }

    /// The time of the next opportunity.
    fn time(&self, cursor: Cursor) -> Time {
        cursor.period_start + self.times[cursor.next].since(Time::ZERO)
    }

    /// Skips the opportunities before `now`.
    fn skip_missed(&self, cursor: &mut Cursor, now: Time) {
        let ago = now.since(cursor.period_start).as_nanos();
        if ago > self.period.as_nanos() {
            cursor.period_start += self.period * ((ago - 1) / self.period.as_nanos());
            cursor.next = 0;
        }
        let within = now.since(cursor.period_start);
        let passed = |time: &Time| time.since(Time::ZERO) < within;
        cursor.next += self.times[cursor.next..].partition_point(passed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    fn trace(times: &[u64]) -> Trace {
        Trace::new(times.iter().map(|&time| ms(time)).collect())
    }

    #[test]
    fn one_full_packet_departs_per_opportunity_and_the_trace_repeats() {
        let mut trace = trace(&[2, 2, 5, 10]);
        let departures: Vec<Time> = (0..10).map(|_| trace.accept(ms(0), 1500)).collect();
        assert_eq!(departures, [2, 2, 5, 10, 12, 12, 15, 20, 22, 22].map(ms));
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_take_several() {
        let mut trace = trace(&[1, 2, 3, 4]);
        let sizes = [500, 500, 500, 501, 1000, 3000, 1500];
        let departures = sizes.map(|size| trace.accept(ms(0), size));
        // 1500 bytes at 1 ms; 501 of 1500 at 2 ms. The next 1000 use 999 there and 1 at 3 ms. 3000
        // use 1499 at 3 ms, 1500 at 4 ms and 1 at 5 ms.
        assert_eq!(departures, [1, 1, 1, 2, 3, 5, 6].map(ms));
    }

    #[test]
    fn unused_delivery_opportunities_are_lost() {
        let mut trace = trace(&[1, 2, 3, 10]);
        assert_eq!(trace.accept(ms(0), 100), ms(1));
        let later = Time::from_nanos(ms(1).as_nanos() + 1);
        assert_eq!(trace.accept(later, 100), ms(2), "the rest of the first one is gone");
        assert_eq!(trace.accept(ms(7), 1500), ms(10));
        assert_eq!(trace.accept(ms(1_000_000_003), 1500), ms(1_000_000_003), "just in time");
        assert_eq!(trace.accept(ms(1_000_000_003), 1500), ms(1_000_000_010));
        assert_eq!(trace.accept(ms(1_000_000_010), 1500), ms(1_000_000_011));
    }

    #[test]
    fn a_trace_of_one_opportunity_a_millisecond_is_12_mbit() {
        let mut trace = trace(&[1]);
        assert_eq!(trace.mean_rate(), 12_000_000);
        let last = (0..1000).map(|_| trace.accept(ms(0), 1500)).last();
        assert_eq!(last, Some(ms(1000)));
    }

    proptest! {
        #[test]
        fn departures_equal_mahimahi_simulated_step_by_step(
            mut times in prop::collection::vec(0u64..40, 1..30),
            end in 1u64..60,
            packets in prop::collection::vec((0u64..30_000_000, 40u32..4000), 1..100),
        ) {
            times.push(40 + end);
            times.sort_unstable();
            let mut shaper = trace(&times);
            // The reference walks through all opportunities with a queue of the arrivals.
            let period = 40 + end;
            let all = (0..).flat_map(|repetition| times.iter().map(move |t| ms(repetition * period + t)));
            let mut now = Time::ZERO;
            let mut queue: Vec<(Time, u32)> = Vec::new();
            for (gap, size) in packets {
                now += Span::from_nanos(gap);
                queue.push((now, size));
            }
            let mut expected = Vec::new();
            let (mut head, mut missing) = (0, queue[0].1);
            for at in all {
                let mut bytes_left = OPPORTUNITY_BYTES;
                while head < queue.len() && queue[head].0 <= at && bytes_left > 0 {
                    let taken = bytes_left.min(missing);
                    bytes_left -= taken;
                    missing -= taken;
                    if missing == 0 {
                        expected.push(at);
                        head += 1;
                        missing = queue.get(head).map_or(0, |packet| packet.1);
                    }
                }
                if head == queue.len() {
                    break;
                }
            }
            let got: Vec<Time> = queue.iter().map(|&(at, size)| shaper.accept(at, size)).collect();
            prop_assert_eq!(got, expected);
        }
    }
}
