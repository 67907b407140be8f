//! An application that writes at given rates.

use dumbbell_units::{Rate, Span};

/// An application that writes full packets at a rate that changes at given times. Integer
/// arithmetic: a packet is written exactly at the time that [`due`](Self::due) returns.
#[derive(Clone, Debug)]
pub struct Application {
    /// In order of time; the first starts at zero.
    steps: Vec<RateStep>,
    /// Bytes of a packet times nanoseconds per second.
    packet: u128,
}

/// A rate and the time from which it applies.
#[derive(Clone, Copy, Debug)]
struct RateStep {
    /// Nanoseconds since the application started.
    from: u64,
    bytes_per_sec: u64,
    /// Written before `from`: bytes times nanoseconds per second.
    before: u128,
}

impl Application {
    /// An application that writes packets of `mss` bytes at `rates`: pairs of a time since its
    /// start and the rate that applies from then on.
    ///
    /// # Panics
    /// If `rates` is empty, the first time is not zero, or the times do not increase.
    pub fn new(rates: &[(Span, Rate)], mss: u16) -> Application {
        assert!(rates.first().is_some_and(|first| first.0.is_zero()), "rates begin at zero");
        assert!(rates.is_sorted_by(|a, b| a.0 < b.0), "the times of rates increase");
        let mut steps: Vec<RateStep> = Vec::with_capacity(rates.len());
        for &(from, rate) in rates {
            let from = from.as_nanos();
            let before = steps.last().map_or(0, |last| last.written(from));
            let slowest = u64::from(rate > Rate::ZERO);
            let bytes_per_sec = (rate.bytes_per_sec() as u64).max(slowest);
            steps.push(RateStep { from, bytes_per_sec, before });
        }
        Application { steps, packet: u128::from(mss) * 1_000_000_000 }
    }

    /// An application that writes at these rates; `None` if there are none: the sender is then
    /// never application-limited.
    pub fn from_rates(rates: &[(Span, Rate)], mss: u16) -> Option<Application> {
        (!rates.is_empty()).then(|| Application::new(rates, mss))
    }

    /// The number of packets written in the first `span`.
    pub fn written(&self, span: Span) -> u32 {
        let now = span.as_nanos();
        let step = self.steps.iter().rev().find(|step| step.from <= now);
        step.map_or(0, |step| (step.written(now) / self.packet) as u32)
    }

    /// The time since the start at which packet number `packets` has been written; [`Span::MAX`] if
    /// never.
    pub fn due(&self, packets: u32) -> Span {
        let wanted = u128::from(packets) * self.packet;
        // The last step before which less was written. Only the very last step can write nothing
        // here.
        match self.steps.iter().rev().find(|step| step.before < wanted) {
            Some(step) if step.bytes_per_sec > 0 => {
                let nanos = (wanted - step.before).div_ceil(u128::from(step.bytes_per_sec));
                Span::from_nanos(step.from + nanos as u64)
            }
            Some(_) => Span::MAX,
            None => Span::ZERO,
        }
    }
}

impl RateStep {
    fn written(&self, now: u64) -> u128 {
        self.before + u128::from(now - self.from) * u128::from(self.bytes_per_sec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(ms: u64) -> Span {
        Span::from_millis(ms)
    }

    /// 1 packet per ms for 10 ms, none for 90 ms, then 2 packets per ms.
    fn pausing() -> Application {
        let rate = |packets: f64| Rate::from_bytes_per_sec(packets * 1_000_000.0);
        Application::new(&[(ms(0), rate(1.0)), (ms(10), rate(0.0)), (ms(100), rate(2.0))], 1000)
    }

    #[test]
    fn nothing_is_written_in_a_pause() {
        let written = [0, 5, 10, 50, 100, 101].map(|at| pausing().written(ms(at)));
        assert_eq!(written, [0, 5, 10, 10, 10, 12]);
    }

    #[test]
    fn a_packet_is_due_after_the_pause_that_it_falls_into() {
        assert_eq!(pausing().due(10), ms(10));
        assert_eq!(pausing().due(12), ms(101));
        let once =
            Application::new(&[(ms(0), Rate::from_bytes_per_sec(1e6)), (ms(5), Rate::ZERO)], 1000);
        assert_eq!(once.due(5), ms(5));
        assert_eq!(once.due(6), Span::MAX, "it never is");
    }

    proptest! {
        #[test]
        fn a_packet_is_written_when_it_is_due_and_not_before(
            rates in prop::collection::btree_map(1u64..1000, 0u32..10_000_000, 0..5),
            first in 0u32..10_000_000,
            packets in 1u32..1000,
        ) {
            let step = |(at, rate)| (ms(at), Rate::from_bytes_per_sec(f64::from(rate)));
            let rates: Vec<_> = std::iter::once((0, first)).chain(rates).map(step).collect();
            let application = Application::new(&rates, 1460);
            let due = application.due(packets);
            prop_assert!(due == Span::MAX || application.written(due) >= packets);
            let before = Span::from_nanos(due.as_nanos() - 1);
            prop_assert!(due == Span::MAX || application.written(before) < packets);
        }
    }
}
