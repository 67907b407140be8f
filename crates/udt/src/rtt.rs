//! The round-trip time as both ends of a UDT connection keep it.

use dumbbell_units::Span;

/// Smoothed round-trip time and its mean deviation:
/// RTTVar <- (3 RTTVar + |rtt - RTT|) / 4, then RTT <- (7 RTT + rtt) / 8, from 100 ms and 50 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RttEstimator {
    pub(crate) srtt: Span,
    pub(crate) rtt_var: Span,
}

impl RttEstimator {
    pub(crate) const INITIAL: RttEstimator =
        RttEstimator { srtt: Span::from_millis(100), rtt_var: Span::from_millis(50) };
    /// No sample counts as longer: a peer may say anything.
    const MAX: Span = Span::from_secs(60);

    /// A sample: ACK to ACK2 at the receiver, what its acknowledgements say at the sender.
    pub(crate) fn update(&mut self, rtt: Span) {
        let (rtt, smoothed) = (rtt.min(RttEstimator::MAX).as_nanos(), self.srtt.as_nanos());
        let deviation = (3 * self.rtt_var.as_nanos() + rtt.abs_diff(smoothed)) / 4;
        self.rtt_var = Span::from_nanos(deviation);
        self.srtt = Span::from_nanos((7 * smoothed + rtt) / 8);
    }

    /// RTT + 4 RTTVar: after so long an answer is overdue.
    #[inline]
    pub(crate) fn rto(self) -> Span {
        self.srtt + self.rtt_var * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_is_taken_from_the_average_before_the_sample() {
        let mut rtt = RttEstimator::INITIAL;
        rtt.update(Span::from_millis(20));
        assert_eq!(rtt.srtt, Span::from_millis(90));
        assert_eq!(rtt.rtt_var, Span::from_micros(57_500));
        assert_eq!(rtt.rto(), Span::from_millis(320));
    }
}
