//! Veno (Fu and Liew, "TCP Veno: TCP enhancement for transmission over wireless access networks",
//! IEEE JSAC 21(2), 2003), as Linux's `tcp_veno.c` implements it.
//!
//! Reno that tells losses at random from those of a full queue by the packets in the queue, `N`, from
//! the last round-trip time and the minimum ever:
//!
//! ```text
//! N = cwnd (RTT - BaseRTT) / RTT
//! growth:  N < beta: 1 packet a round trip;  else 1 packet every other round trip
//! loss:    N < beta: cwnd = 4/5 cwnd;        else cwnd = 1/2 cwnd
//! ```
//!
//! with `beta` 3. With two samples or fewer since the connection began, and while packets arrive out
//! of order, it is Reno. An acknowledgement without a sample of its own finds the longest round-trip time of
//! all (Linux's `minrtt` of 2^31 - 1), so a full queue.
//!
//! | | paper | Linux | here |
//! |---|---|---|---|
//! | `RTT` | minimum of the last round trip | of the last acknowledgement | Linux |
//! | `N` | exact | in half packets, rounded up | Linux |
//! | a packet that is sent with nothing in flight | unspecified | measures `BaseRTT` anew | Linux |
//! | window | fractions | whole packets | Linux |

use crate::arithmetic::CongAvoidAi;
use crate::vegas::VegasRtts;
use crate::{Ack, ConfigError, CongestionEvent, Metric, Options, Path, WindowRule};
use dumbbell_units::Span;

/// With at most this many round-trip time samples it acts as Reno.
const FEW_SAMPLES: u32 = 2;

/// Veno's rule.
#[derive(Clone, Copy, Debug)]
pub struct Veno {
    beta: f64,
    /// The minimum is that since the window was last allowed to grow, the samples those of the connection.
    rtts: VegasRtts,
    /// Packets in the queue.
    n: f64,
    /// Whether the flow acts as Reno on this acknowledgement.
    reno: bool,
    /// Whether the next packet of growth beside a queue is not skipped (Linux's `inc`).
    inc: bool,
    avoidance: CongAvoidAi,
}

impl Veno {
    /// Takes the option `beta`.
    ///
    /// # Errors
    /// If it has a value that it cannot have.
    pub fn from_options(options: &mut Options) -> Result<Veno, ConfigError> {
        let beta = options.number("beta", 3.0, 0.0..=1e6, "0 to 10^6 packets")?;
        Ok(Veno {
            beta,
            rtts: VegasRtts::NONE,
            n: 0.0,
            reno: true,
            inc: true,
            avoidance: CongAvoidAi::default(),
        })
    }
}

impl WindowRule for Veno {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, _path: &Path, _ack: &Ack) -> f64 {
        let (cwnd, acked) = ((cwnd as u64).max(1), acked as u64);
        if self.reno || self.n < self.beta {
            return self.avoidance.grow(cwnd, acked);
        }
        let count = &mut self.avoidance.snd_cwnd_cnt;
        if *count < cwnd {
            *count += acked;
            return 0.0;
        }
        *count = 0;
        let grows = self.inc;
        self.inc = !grows;
        if grows { 1.0 } else { 0.0 }
    }

    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
        self.avoidance = CongAvoidAi::default();
        let cwnd = cwnd as u64;
        (if self.n < self.beta { cwnd * 4 / 5 } else { cwnd / 2 }) as f64
    }

    fn on_timeout(&mut self) {
        self.avoidance = CongAvoidAi::default();
        self.rtts.disable();
    }

    fn observe(&mut self, path: &Path, ack: &Ack) {
        self.rtts.observe(path, ack);
        self.reno = !self.rtts.is_enabled;
    }

    /// Measures `N`; the window grows by [`increase`](Self::increase).
    fn set_window(
        &mut self,
        cwnd: f64,
        _ssthresh: f64,
        path: &Path,
        _ack: &Ack,
    ) -> Option<(f64, f64)> {
        if self.reno || !path.cwnd_limited {
            return None;
        }
        self.reno = self.rtts.samples <= FEW_SAMPLES;
        let rtt = self.rtts.take_min();
        if !self.reno {
            let halves = 2 * cwnd as u64;
            self.n = (halves - halves * self.rtts.base / rtt) as f64 / 2.0;
        }
        None
    }

    fn on_restart(&mut self, _path: &Path, _pause: Span) {
        self.rtts.forget();
        self.inc = true;
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        show(Metric { name: "N", value: self.n });
        if let Some(base) = self.rtts.base_secs() {
            show(Metric { name: "BaseRTT", value: base });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_path::{Link, TestPath, init};
    use crate::{AnySlowStart, CongestionControl, Windowed};
    use dumbbell_units::Time;

    fn rule() -> Veno {
        Veno::from_options(&mut "veno".parse().expect("well formed")).expect("within range")
    }

    fn veno(link: Link) -> TestPath<Windowed<Veno, AnySlowStart>> {
        TestPath::new(Windowed::new(rule(), AnySlowStart::STANDARD, &init(1)), link)
    }

    /// The window before the next reduction and after it.
    fn reduction(flow: &mut TestPath<Windowed<Veno, AnySlowStart>>) -> (f64, f64) {
        let mut before = 0.0;
        assert!(flow.run_until(Span::from_secs(120), |flow| {
            let reducing = flow.path.ca_state.is_reducing();
            if !reducing {
                before = flow.algorithm.control().cwnd;
            }
            reducing
        }));
        (before, flow.algorithm.control().cwnd)
    }

    /// tcp_veno_cong_avoid with `cwnd` 50, `basertt` 100 ms: `diff` is 2 * 50 - 2 * 50 * 100 / `rtt`.
    #[test]
    fn n_and_what_follows_from_it_are_those_of_the_kernel_s_code() {
        // RTT in ms, diff of the kernel in packets, growth of a round trip, share left by a loss.
        for (ms, diff, growth, left) in [
            (100, 0.0, 1.0, 0.8),
            (105, 2.5, 1.0, 0.8),
            (106, 3.0, 0.5, 0.5), // 2.8 packets are 6 halves
            (107, 3.5, 0.5, 0.5),
            (200, 25.0, 0.5, 0.5),
        ] {
            let mut rule = rule();
            let mut path = Path::new(1448, Time::ZERO);
            path.cwnd_limited = true;
            for ms in [100, 100, 100, ms] {
                let ack = Ack::new(1).with_rtt(Some(Span::from_millis(ms)));
                rule.observe(&path, &ack);
                assert_eq!(rule.set_window(50.0, 20.0, &path, &ack), None);
            }
            assert!((rule.n - diff).abs() < 1e-12, "{ms} ms: {}", rule.n);
            // Beside a queue the acknowledgement that finds a whole window counted is not counted itself.
            let acknowledged = if growth < 1.0 { 51 } else { 50 };
            let grows = |_| rule.increase(50.0, 1.0, &path, &Ack::new(1));
            let grown: f64 = (0..20 * acknowledged).map(grows).sum();
            assert_eq!(grown, 20.0 * growth, "{ms} ms");
            let after = rule.decrease(50.0, &path, &CongestionEvent::loss());
            assert_eq!(after, 50.0 * left, "{ms} ms");
        }
    }

    #[test]
    fn a_loss_without_a_queue_leaves_four_fifths_of_the_window() {
        let windowed = Windowed::new(rule(), AnySlowStart::STANDARD, &init(1));
        let mut flow = TestPath::new(windowed.with_ssthresh(100.0), Link::new(100.0, 100, 100.0));
        flow.link.loses = |seq| seq == 5000;
        let (before, after) = reduction(&mut flow);
        assert!((after / before - 0.8).abs() < 0.01, "{before} to {after}");
    }

    #[test]
    fn a_loss_of_a_full_queue_halves_the_window() {
        let mut flow = veno(Link::new(20.0, 50, 100.0));
        flow.run_ms(20_000);
        let (before, after) = reduction(&mut flow);
        assert!((after / before - 0.5).abs() < 0.01, "{before} to {after}");
    }

    #[test]
    fn above_beta_packets_in_the_queue_the_window_grows_half_as_fast() {
        let mut flow = veno(Link::new(20.0, 50, 2000.0));
        flow.algorithm.on_congestion(&flow.path.clone(), &CongestionEvent::loss());
        // 86 packets fill the path; from there on one packet every other round trip.
        assert!(flow.run_until(Span::from_secs(100), |flow| flow.inspect("N") > 4.0));
        let (cwnd, rounds) = (flow.algorithm.control().cwnd, 20);
        let rtt = flow.path.srtt.expect("measured");
        flow.run(rtt * rounds, |_| ());
        let grown = flow.algorithm.control().cwnd - cwnd;
        assert!((grown - 10.0).abs() < 1.5, "{grown} in {rounds} round trips");
    }
}
