//! What a stack's congestion controller is told and its packets have, for columns that the stack's statistics lack.

use crate::frames::SentFrames;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Bytes of a full packet that are not data of the stream: a short header with the connection ID
/// and a packet number of two bytes, a STREAM frame's header with an offset of four, and the tag.
const OVERHEAD: u64 = 1 + 8 + 2 + 6 + 16;

/// What the controller was told so far.
#[derive(Debug, Default)]
pub(crate) struct Observations {
    /// Data in acknowledged packets, bytes, from their sizes.
    pub(crate) acked: u64,
    /// Bytes in flight.
    pub(crate) in_flight: u64,
    /// Latest round-trip time: of the newest packet of an acknowledgement.
    pub(crate) rtt: Option<Duration>,
    /// The minimum of all.
    pub(crate) min_rtt: Option<Duration>,
    /// Sum of all round-trip times, s, and their number.
    pub(crate) rtt_sum: (f64, u64),
    /// When the newest packet of the current acknowledgement was sent.
    newest: Option<Instant>,
    /// What was sent.
    pub(crate) frames: SentFrames,
    /// When the last packet left that elicits an acknowledgement.
    pub(crate) last_ack_eliciting: Option<Instant>,
    /// Times that packets were lost.
    pub(crate) losses: u64,
    /// Recoveries (RFC 9002, section 7.3.2). The stacks count each acknowledgement with losses or marks.
    pub(crate) recoveries: u32,
    recovery_start: Option<Instant>,
}

impl Observations {
    pub(crate) fn on_sent(&mut self, now: Instant, bytes: u64) {
        self.in_flight += bytes;
        if self.frames.take_ack_eliciting() {
            self.last_ack_eliciting = Some(now);
        }
    }

    pub(crate) fn on_ack(&mut self, sent: Instant, bytes: u64) {
        self.acked += bytes.saturating_sub(OVERHEAD);
        self.newest = self.newest.max(Some(sent));
    }

    /// Packets were lost or marked, the newest of them sent at `sent`.
    pub(crate) fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.losses += u64::from(lost_bytes > 0);
        self.in_flight = self.in_flight.saturating_sub(lost_bytes);
        if self.recovery_start.is_none_or(|start| sent > start) {
            self.recovery_start = Some(now);
            self.recoveries += 1;
        }
        if is_persistent_congestion {
            self.recovery_start = None; // RFC 9002, appendix B.8
        }
    }

    pub(crate) fn on_end_acks(&mut self, now: Instant, in_flight: u64) {
        self.in_flight = in_flight;
        if let Some(sent) = self.newest.take() {
            let rtt = now.saturating_duration_since(sent);
            self.rtt = Some(rtt);
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
            self.rtt_sum = (self.rtt_sum.0 + rtt.as_secs_f64(), self.rtt_sum.1 + 1);
        }
    }
}

/// Observations that a controller and an end share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared(Arc<Mutex<Observations>>);

impl Shared {
    pub(crate) fn get(&self) -> MutexGuard<'_, Observations> {
        self.0.lock().expect("no code panics while it holds the observations")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_packets_are_not_in_flight() {
        let (mut seen, start) = (Observations::default(), Instant::now());
        (0..3).for_each(|_| seen.on_sent(start, 1200));
        seen.on_end_acks(start, 2400);
        seen.on_congestion_event(start, start, false, 1200);
        assert_eq!(seen.in_flight, 1200);
    }

    #[test]
    fn losses_of_packets_sent_before_a_recovery_are_part_of_it() {
        let (mut seen, start) = (Observations::default(), Instant::now());
        let mut recoveries = |now_ms, sent_ms, is_persistent_congestion| {
            let at = |ms| start + Duration::from_millis(ms);
            seen.on_congestion_event(at(now_ms), at(sent_ms), is_persistent_congestion, 1200);
            seen.recoveries
        };
        assert_eq!(recoveries(100, 50, false), 1);
        assert_eq!(recoveries(110, 100, false), 1);
        assert_eq!(recoveries(150, 101, false), 2);
        // Persistent congestion ends it.
        assert_eq!(recoveries(160, 102, true), 2);
        assert_eq!(recoveries(170, 103, false), 3);
    }
}
