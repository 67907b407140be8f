//! Hybla (Caini and Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks",
//! International Journal of Satellite Communications and Networking 22, 2004), as Linux 6.18's
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
//! however many packets it acknowledges. As in Linux, `RTT` is the minimum smoothed round-trip time outside
//! reductions; `rho` is in whole eighths, and growth in whole 1/128 of a packet, both rounded down, so that
//! the window grows more slowly than the paper's, by up to a half where `rho^2 / w` is small. Growth that is
//! rounded to nothing is a packet for a window of acknowledgements. In the power of two `rho` is at most 16.
//! Outside the state Open the flow is Reno and counts packets (`hybla_en`). Loss halves the window.
//!
//! The initial window is `rho`, rounded down; the paper multiplies the transport's by `rho`. Linux limits the
//! window to 65535 packets.

use crate::arithmetic::CongAvoidAi;
use crate::{
    Ack, CaState, ConfigError, CongestionEvent, Metric, Options, Path, SlowStart, WindowRule,
};
use dumbbell_units::Span;

/// Maximum `rho` in slow start.
const MAX_POWER: u64 = 16;
/// `128 2^(i/8)` (Linux's `hybla_fraction`).
const POWERS: [u64; 8] = [128, 139, 152, 165, 181, 197, 215, 234];
/// Parts of a packet in which growth is counted.
const PARTS: u64 = 128;

/// Hybla's rule, for slow start and congestion avoidance.
#[derive(Clone, Copy, Debug)]
pub struct Hybla {
    /// Reference round-trip time.
    rtt0: Span,
    min_srtt: Option<Span>,
    /// `8 rho`, rounded down (Linux's `rho_3ls`).
    rho_eighths: u64,
    /// Growth of less than a packet, in [`PARTS`] (Linux's `snd_cwnd_cents`).
    parts: u64,
    /// Counts acknowledgements too small to count in parts; outside Open packets.
    avoidance: CongAvoidAi,
}

impl Hybla {
    /// Takes the option `rtt0`, a time.
    ///
    /// # Errors
    /// If it has a value that it cannot have.
    pub fn from_options(options: &mut Options) -> Result<Hybla, ConfigError> {
        let range = Span::from_millis(1)..=Span::from_secs(10);
        let rtt0 = options.time("rtt0", Span::from_millis(25), range, "1 ms to 10 s")?;
        Ok(Hybla {
            rtt0,
            min_srtt: None,
            rho_eighths: 8,
            parts: 0,
            avoidance: CongAvoidAi::default(),
        })
    }

    /// `hybla_recalc_param`, with a new minimum.
    fn update_rho(&mut self, path: &Path) {
        let Some(srtt) = path.srtt.filter(|srtt| self.min_srtt.is_none_or(|min| *srtt < min))
        else {
            return;
        };
        self.min_srtt = Some(srtt);
        self.rho_eighths = (8 * srtt.as_nanos() / self.rtt0.as_nanos()).max(8);
    }

    /// Whole packets of growth by so many parts more.
    fn grown(&mut self, parts: u64) -> f64 {
        self.parts += parts % PARTS;
        let mut packets = parts / PARTS;
        if self.parts >= PARTS {
            self.parts -= PARTS;
            self.avoidance.snd_cwnd_cnt = 0;
            packets += 1;
        }
        packets as f64
    }
}

impl SlowStart for Hybla {
    /// `hybla_init`.
    fn initial_window(&mut self, path: &Path) -> Option<f64> {
        self.update_rho(path);
        Some((self.rho_eighths / 8) as f64)
    }

    #[inline]
    fn increase(&mut self, _cwnd: f64, path: &Path, ack: &Ack) -> f64 {
        self.update_rho(path);
        if path.ca_state != CaState::Open {
            return f64::from(ack.acked);
        }
        let (whole, eighths) = (self.rho_eighths / 8, self.rho_eighths % 8);
        self.grown((POWERS[eighths as usize] << whole.min(MAX_POWER)) - PARTS)
    }
}

impl WindowRule for Hybla {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, path: &Path, ack: &Ack) -> f64 {
        let cwnd = (cwnd as u64).max(1);
        if path.ca_state != CaState::Open {
            return self.avoidance.grow(cwnd, acked as u64);
        }
        if acked < f64::from(ack.acked) {
            return 0.0; // the acknowledgement was slow start's
        }
        let increment = 2 * self.rho_eighths * self.rho_eighths / cwnd;
        if increment < PARTS {
            self.avoidance.snd_cwnd_cnt += 1;
        }
        if increment == 0 && self.avoidance.snd_cwnd_cnt >= cwnd {
            self.avoidance.snd_cwnd_cnt = 0;
            return 1.0;
        }
        self.grown(increment)
    }

    fn observe(&mut self, path: &Path, _ack: &Ack) {
        if !path.ca_state.is_reducing() {
            self.update_rho(path);
        }
    }

    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
        self.avoidance = CongAvoidAi::default();
        (cwnd as u64 / 2) as f64
    }

    fn on_timeout(&mut self) {
        self.avoidance = CongAvoidAi::default();
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        show(Metric { name: "rho", value: self.rho_eighths as f64 / 8.0 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use dumbbell_units::Time;

    fn hybla(text: &str) -> Hybla {
        Hybla::from_options(&mut text.parse().expect("well formed")).expect("within range")
    }

    fn path(rtt_ms: u64) -> Path {
        Path { srtt: Some(Span::from_millis(rtt_ms)), ..Path::new(1448, Time::ZERO) }
    }

    /// Growth of a window of 64 packets in 64 rounds of acknowledgements for `acked` packets each,
    /// a round.
    fn avoidance(text: &str, rtt_ms: u64, acked: u32) -> f64 {
        let (mut rule, path, ack) = (hybla(text), path(rtt_ms), Ack::new(acked));
        rule.observe(&path, &ack);
        let grows = |_| WindowRule::increase(&mut rule, 64.0, f64::from(acked), &path, &ack);
        (0..64 * 64).map(grows).sum::<f64>() / 64.0
    }

    #[test]
    fn growth_counts_acknowledgements_not_packets() {
        assert_eq!(avoidance("hybla", 50, 2), avoidance("hybla", 50, 1));
    }

    /// hybla_cong_avoid: tcp_reno_cong_avoid unless hybla_en, which is in Open.
    #[test]
    fn while_losses_are_suspected_it_is_reno_by_packets() {
        let mut rule = hybla("hybla");
        let disorder = Path { ca_state: CaState::Disorder, ..path(100) };
        let ack = Ack::new(2);
        assert_eq!(SlowStart::increase(&mut rule, 100.0, &disorder, &ack), 2.0);
        let grown: Vec<f64> =
            (0..4).map(|_| WindowRule::increase(&mut rule, 8.0, 2.0, &disorder, &ack)).collect();
        assert_eq!(grown, [0.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn congestion_avoidance_adds_rho_squared_a_round_trip() {
        for (rtt, growth) in [(5, 1.0), (25, 1.0), (50, 4.0), (600, 576.0)] {
            assert_eq!(avoidance("hybla", rtt, 1), growth, "{rtt} ms");
        }
        assert_eq!(avoidance("hybla(rtt0=100 ms)", 600, 1), 36.0);
    }

    /// rho_3ls is 12 at 39 ms, so that 64 acknowledgements add 4.5 parts each, rounded down.
    #[test]
    fn rho_is_in_whole_eighths_and_growth_in_whole_parts() {
        assert_eq!(avoidance("hybla", 39, 1), 64.0 * f64::floor(2.0 * 144.0 / 64.0) / 128.0);
    }

    /// 2 * 8 * 8 parts of a packet over a window of 200 are none.
    #[test]
    fn growth_that_is_rounded_to_nothing_is_a_packet_a_window() {
        let (mut rule, path, ack) = (hybla("hybla"), path(20), Ack::new(1));
        let grown: f64 =
            (0..400).map(|_| WindowRule::increase(&mut rule, 200.0, 1.0, &path, &ack)).sum();
        assert_eq!(grown, 2.0);
    }

    #[test]
    fn slow_start_adds_2_to_the_rho_minus_1_for_each_acknowledgement() {
        let ack = Ack::new(1);
        for (rtt, growth) in [(10, 1.0), (25, 1.0), (75, 7.0), (6000, 65_535.0)] {
            let grown = SlowStart::increase(&mut hybla("hybla"), 100.0, &path(rtt), &ack);
            assert_eq!(grown, growth, "{rtt} ms");
        }
        let mut rule = hybla("hybla");
        let grows = |_| SlowStart::increase(&mut rule, 100.0, &path(40), &ack);
        let grown: f64 = (0..128).map(grows).sum();
        assert_eq!(grown, 234.0, "2 times 181/128 less 1, for 8 rho of 12");
    }

    #[test]
    fn a_connection_begins_with_a_window_of_rho() {
        for (rtt, packets) in [(10, 1.0), (49, 1.0), (50, 2.0), (600, 24.0)] {
            assert_eq!(hybla("hybla").initial_window(&path(rtt)), Some(packets), "{rtt} ms");
        }
    }

    /// The paper's purpose: in packets a second, all flows grow at the same rate.
    #[test]
    fn rates_grow_alike_in_time_whatever_the_round_trip_time() {
        let growth_per_second_squared = |rtt_ms: u64| {
            let rtt = rtt_ms as f64 / 1e3;
            avoidance("hybla", rtt_ms, 1) / rtt / rtt
        };
        let reference = growth_per_second_squared(25);
        for rtt in [50, 100, 600] {
            assert_eq!(growth_per_second_squared(rtt), reference);
        }
    }
}
