//! Reno's congestion avoidance (RFC 5681, section 3.1).
//!
//! In congestion avoidance the window grows by one packet per round trip: `1/cwnd` for every
//! packet acknowledged (equation 3). On loss `ssthresh = max(FlightSize / 2, 2)` (equation 4); as
//! in Linux, the window stands for the flight size.

use crate::{Ack, CongestionEvent, Path, WindowRule};

/// Reno's rule: add one packet a round trip, halve on congestion.
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
