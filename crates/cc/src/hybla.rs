//! Hybla (Caini and Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks",
//! International Journal of Satellite Communications and Networking 22, 2004), as Linux's
//! `tcp_hybla.c` implements it.
//!
//! The rate of a flow with a long round-trip time grows as fast as that of a flow with the reference
//! round-trip time `RTT0`, 25 ms. With `rho = max(1, RTT / RTT0)`, an acknowledgement adds
//!
//! ```text
//! slow start:            2^rho - 1
//! congestion avoidance:  rho^2 / w
//! ```
//!
//! however many packets it acknowledges. `RTT` is the minimum round-trip time; in Linux the minimum
//! smoothed one. In the power of two `rho` is at most 16. Outside the state Open the flow is Reno
//! and counts packets, as in Linux (`hybla_en`). Loss halves the window.
//!
//! The paper and Linux also multiply the initial window by `rho`; here the transport's initial window
//! applies. Linux limits the window to 65535 packets.

use crate::{
    Ack, CaState, ConfigError, CongestionEvent, Metric, Options, Path, SlowStart, WindowRule,
};
use dumbbell_units::Span;

/// Maximum `rho` in slow start.
const MAX_POWER: f64 = 16.0;

/// Hybla's rule, for slow start and congestion avoidance.
#[derive(Clone, Copy, Debug)]
pub struct Hybla {
    /// Reference round-trip time, seconds.
    rtt0: f64,
    rho: f64,
}

impl Hybla {
    /// Takes the option `rtt0`, a time.
    ///
    /// # Errors
    /// If it has a value that it cannot have.
    pub fn from_options(options: &mut Options) -> Result<Hybla, ConfigError> {
        let range = Span::from_millis(1)..=Span::from_secs(10);
        let rtt0 = options.time("rtt0", Span::from_millis(25), range, "1 ms to 10 s")?;
        Ok(Hybla { rtt0: rtt0.as_secs_f64(), rho: 1.0 })
    }

    fn rho(&self, path: &Path) -> f64 {
        path.min_rtt.map_or(1.0, |rtt| (rtt.as_secs_f64() / self.rtt0).max(1.0))
    }
}

impl SlowStart for Hybla {
    #[inline]
    fn increase(&mut self, _cwnd: f64, path: &Path, ack: &Ack) -> f64 {
        if path.ca_state != CaState::Open {
            return f64::from(ack.acked);
        }
        (libm::exp2(self.rho(path).min(MAX_POWER)) - 1.0) * f64::from(ack.acked.min(1))
    }
}

impl WindowRule for Hybla {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, path: &Path, _ack: &Ack) -> f64 {
        if path.ca_state != CaState::Open {
            return acked / cwnd;
        }
        self.rho = self.rho(path);
        self.rho * self.rho * acked.min(1.0) / cwnd
    }

    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
        cwnd / 2.0
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        show(Metric { name: "rho", value: self.rho });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dumbbell_units::{Span, Time};

    fn hybla(text: &str) -> Hybla {
        Hybla::from_options(&mut text.parse().expect("well formed")).expect("within range")
    }

    fn path(rtt_ms: u64) -> Path {
        Path { min_rtt: Some(Span::from_millis(rtt_ms)), ..Path::new(1448, Time::ZERO) }
    }

    /// Growth of a window of 100 packets in a round of acknowledgements, one a packet.
    fn avoidance(rule: &mut Hybla, rtt_ms: u64) -> f64 {
        100.0 * WindowRule::increase(rule, 100.0, 1.0, &path(rtt_ms), &Ack::default())
    }

    #[test]
    fn growth_counts_acknowledgements_not_packets() {
        let mut rule = hybla("hybla");
        let grown = |rule: &mut Hybla, acked| {
            let ack = Ack { acked, ..Ack::default() };
            let rising = SlowStart::increase(rule, 100.0, &path(50), &ack);
            (rising, WindowRule::increase(rule, 100.0, f64::from(acked), &path(50), &ack))
        };
        assert_eq!(grown(&mut rule, 2), grown(&mut rule, 1));
    }

    /// hybla_cong_avoid: tcp_reno_cong_avoid unless hybla_en, which is in Open.
    #[test]
    fn while_losses_are_suspected_it_is_reno_by_packets() {
        let mut rule = hybla("hybla");
        let disorder = Path { ca_state: CaState::Disorder, ..path(100) };
        let ack = Ack { acked: 2, ..Ack::default() };
        assert_eq!(SlowStart::increase(&mut rule, 100.0, &disorder, &ack), 2.0);
        assert_eq!(WindowRule::increase(&mut rule, 100.0, 2.0, &disorder, &ack), 0.02);
    }

    #[test]
    fn congestion_avoidance_adds_rho_squared_a_round_trip() {
        let mut rule = hybla("hybla");
        for (rtt, growth) in [(5, 1.0), (25, 1.0), (50, 4.0), (600, 576.0)] {
            assert!((avoidance(&mut rule, rtt) / growth - 1.0).abs() < 1e-9, "{rtt} ms");
        }
        assert!((avoidance(&mut hybla("hybla(rtt0=100 ms)"), 600) / 36.0 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn slow_start_adds_2_to_the_rho_minus_1_for_each_acknowledgement() {
        let mut rule = hybla("hybla");
        let ack = Ack { acked: 1, ..Ack::default() };
        for (rtt, growth) in [(10, 1.0), (25, 1.0), (75, 7.0), (6000, 65_535.0)] {
            let grown = SlowStart::increase(&mut rule, 100.0, &path(rtt), &ack);
            assert!((grown / growth - 1.0).abs() < 1e-9, "{rtt} ms: {grown}");
        }
    }

    /// The paper's purpose: in packets a second, all flows grow at the same rate.
    #[test]
    fn rates_grow_alike_in_time_whatever_the_round_trip_time() {
        let growth_per_second_squared = |rtt_ms: u64| {
            let rtt = rtt_ms as f64 / 1e3;
            avoidance(&mut hybla("hybla"), rtt_ms) / rtt / rtt
        };
        let reference = growth_per_second_squared(25);
        for rtt in [50, 100, 600] {
            assert!((growth_per_second_squared(rtt) / reference - 1.0).abs() < 1e-9);
        }
    }
}
