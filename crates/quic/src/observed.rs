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

    pub(crate) fn on_congestion_event(&mut self, lost_bytes: u64) {
        self.losses += u64::from(lost_bytes > 0);
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
