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

use crate::arithmetic::CongAvoidAi;
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

/// The rule in whole packets, as Linux has it (`tcp_reno_cong_avoid`, `tcp_reno_ssthresh`). What was
/// acknowledged towards the next packet is forgotten on congestion (`tcp_init_cwnd_reduction`).
#[derive(Clone, Copy, Debug, Default)]
pub struct RenoLinux {
    avoidance: CongAvoidAi,
}

impl WindowRule for RenoLinux {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, _path: &Path, _ack: &Ack) -> f64 {
        self.avoidance.grow((cwnd as u64).max(1), acked as u64)
    }

    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
        self.avoidance = CongAvoidAi::default();
        (cwnd as u64 / 2) as f64
    }

    /// `tcp_enter_loss`.
    fn on_timeout(&mut self) {
        self.avoidance = CongAvoidAi::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dumbbell_units::Time;

    /// Linux 6.18, net/ipv4/tcp_cong.c: tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked).
    #[test]
    fn whole_packets_grow_with_the_last_of_a_window_acknowledged() {
        let mut rule = RenoLinux::default();
        let path = Path::new(1448, Time::ZERO);
        let mut grow = |cwnd, acked| rule.increase(cwnd, f64::from(acked), &path, &Ack::default());
        assert_eq!([1, 2, 2, 4, 1].map(|acked| grow(10.0, acked)), [0.0, 0.0, 0.0, 0.0, 1.0]);
        assert_eq!([4, 7, 13].map(|acked| grow(11.0, acked)), [0.0, 1.0, 1.0]);
    }

    #[test]
    fn congestion_halves_whole_packets_and_forgets_those_counted() {
        let mut rule = RenoLinux::default();
        let path = Path::new(1448, Time::ZERO);
        assert_eq!(rule.increase(11.0, 10.0, &path, &Ack::default()), 0.0);
        assert_eq!(rule.decrease(11.0, &path, &CongestionEvent::loss()), 5.0);
        assert_eq!(rule.increase(5.0, 4.0, &path, &Ack::default()), 0.0);
        assert_eq!(rule.increase(5.0, 1.0, &path, &Ack::default()), 1.0);
    }
}
