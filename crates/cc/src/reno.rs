//! Reno (RFC 5681, section 3.1).
//!
//! ```text
//! congestion avoidance: cwnd += 1 / cwnd    for each packet acknowledged (equation 3)
//! loss:                 ssthresh = max(FlightSize / 2, 2)                (equation 4)
//! ```
//!
//! As in Linux, `cwnd` stands for `FlightSize`. This file holds only these two equations. The rest of RFC
//! 5681 is common to all window algorithms: slow start in [`crate::StandardSlowStart`]; the choice
//! between slow start and congestion avoidance, the minimum of `ssthresh`, timeouts and restart
//! after idle in [`crate::Windowed`]; fast retransmit and fast recovery in the transport.

use crate::{Ack, CongestionEvent, Path, WindowRule};

/// Reno's window rule: grows by one packet a round trip, halves on congestion.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reno;

impl WindowRule for Reno {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, _path: &Path, _ack: &Ack) -> f64 {
        acked / cwnd
    }

    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
        cwnd / 2.0
    }
}
