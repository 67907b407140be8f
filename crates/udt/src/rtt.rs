//! Round-trip time estimation, as both ends of a UDT connection do it.

use dumbbell_units::Span;

/// Smoothed round-trip time and its mean deviation, initially 100 ms and 50 ms:
/// RTTVar <- (3 RTTVar + |rtt - RTT|) / 4, then RTT <- (7 RTT + rtt) / 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RttEstimator {
    pub(crate) srtt: Span,
    pub(crate) rtt_var: Span,
}

impl RttEstimator {
    pub(crate) const INITIAL: RttEstimator =
        RttEstimator { srtt: Span::from_millis(100), rtt_var: Span::from_millis(50) };
    /// Upper limit of a sample, which may come from the peer.
    const MAX: Span = Span::from_secs(60);

    /// Adds a sample: ACK to ACK2 at the receiver, the RTT field of ACKs at the sender.
    pub(crate) fn update(&mut self, rtt: Span) {
        let (rtt, smoothed) = (rtt.min(RttEstimator::MAX).as_nanos(), self.srtt.as_nanos());
        let deviation = (3 * self.rtt_var.as_nanos() + rtt.abs_diff(smoothed)) / 4;
        self.rtt_var = Span::from_nanos(deviation);
        self.srtt = Span::from_nanos((7 * smoothed + rtt) / 8);
    }

    /// RTT + 4 RTTVar.
    #[inline]
    pub(crate) fn rto(self) -> Span {
        self.srtt + self.rtt_var * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_is_relative_to_the_srtt_before_the_sample() {
        let mut rtt = RttEstimator::INITIAL;
        rtt.update(Span::from_millis(20));
        assert_eq!(rtt.srtt, Span::from_millis(90));
        assert_eq!(rtt.rtt_var, Span::from_micros(57_500));
        assert_eq!(rtt.rto(), Span::from_millis(320));
    }
}
