//! The round-trip time as both ends of a UDT connection keep it.

use dumbbell_units::Span;

/// Smoothed round-trip time and its mean deviation:
/// RTTVar <- (3 RTTVar + |rtt - RTT|) / 4, then RTT <- (7 RTT + rtt) / 8, from 100 ms and 50 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rtt {
    pub(crate) smoothed: Span,
    pub(crate) deviation: Span,
}

impl Rtt {
    pub(crate) const INITIAL: Rtt =
        Rtt { smoothed: Span::from_millis(100), deviation: Span::from_millis(50) };
    /// No sample counts as longer: a peer may say anything.
    const MAX: Span = Span::from_secs(60);

    /// A sample: ACK to ACK2 at the receiver, what its acknowledgements say at the sender.
    pub(crate) fn sample(&mut self, rtt: Span) {
        let (rtt, smoothed) = (rtt.min(Rtt::MAX).as_nanos(), self.smoothed.as_nanos());
        let deviation = (3 * self.deviation.as_nanos() + rtt.abs_diff(smoothed)) / 4;
        self.deviation = Span::from_nanos(deviation);
        self.smoothed = Span::from_nanos((7 * smoothed + rtt) / 8);
    }

    /// RTT + 4 RTTVar: after so long an answer is overdue.
    #[inline]
    pub(crate) fn overdue(self) -> Span {
        self.smoothed + self.deviation * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_is_taken_from_the_average_before_the_sample() {
        let mut rtt = Rtt::INITIAL;
        rtt.sample(Span::from_millis(20));
        assert_eq!(rtt.smoothed, Span::from_millis(90));
        assert_eq!(rtt.deviation, Span::from_micros(57_500));
        assert_eq!(rtt.overdue(), Span::from_millis(320));
    }
}
