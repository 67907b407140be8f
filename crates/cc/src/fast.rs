//! FAST TCP (Jin, Wei and Low, "FAST TCP: motivation, architecture, algorithms, performance",
//! INFOCOM 2004; Wei, Jin, Low and Hegde, IEEE/ACM ToN 14(6), 2006).
//!
//! Once a round trip
//!
//! ```text
//! w = min(2 w, (1 - gamma) w + gamma (baseRTT / RTT w + alpha))
//! ```
//!
//! where `RTT` is the mean round-trip time of the round and `baseRTT` the minimum ever. The
//! equilibrium is `w (1 - baseRTT / RTT) = alpha`: each flow keeps `alpha` packets in the queue,
//! whatever its round-trip time and the rate of the link. `n` flows share the link equally, with
//! `n alpha` packets in the queue. On loss the window is halved.
//!
//! | | papers | here |
//! |---|---|---|
//! | `alpha` | constant; the early kernel: 8, 20 or 200 by the rate reached | 200; option `alpha` |
//! | `gamma` | 0 to 1 | 0.5; option `gamma` |
//! | `RTT` | smoothed with weight `min(3 / w, 1 / 4)` | the mean of the round trip |
//! | window changes | every other round trip | every round trip |
//! | slow start | until the delay exceeds a threshold | until the equation gives less than `w` |

use crate::round::RoundRtts;
use crate::{Ack, ConfigError, CongestionEvent, Metric, Options, Path, WindowRule};

/// FAST's rule.
#[derive(Clone, Copy, Debug)]
pub struct Fast {
    /// Packets that the flow keeps in the queue.
    alpha: f64,
    /// Fraction of the way to the equation's fixed point in a round trip.
    gamma: f64,
    rtts: RoundRtts,
    /// Packets in the queue, by the equation.
    queued_packets: f64,
}

impl Fast {
    /// Takes the options `alpha` and `gamma`.
    ///
    /// # Errors
    /// If one of them has a value that it cannot have.
    pub fn from_options(options: &mut Options) -> Result<Fast, ConfigError> {
        Ok(Fast {
            alpha: options.number("alpha", 200.0, 1.0..=1e6, "1 to 10^6")?,
            gamma: options.number("gamma", 0.5, 0.01..=1.0, "0.01 to 1")?,
            rtts: RoundRtts::default(),
            queued_packets: 0.0,
        })
    }
}

impl WindowRule for Fast {
    /// The equation is in `set_window`.
    #[inline]
    fn increase(&mut self, _cwnd: f64, _counted: f64, _path: &Path, _ack: &Ack) -> f64 {
        0.0
    }

    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
        cwnd / 2.0
    }

    fn set_window(
        &mut self,
        cwnd: f64,
        ssthresh: f64,
        path: &Path,
        ack: &Ack,
    ) -> Option<(f64, f64)> {
        let rtts = self.rtts.update(path, ack).filter(|rtts| !rtts.min.is_zero())?;
        let base = path.min_rtt.unwrap_or(rtts.min).as_secs_f64();
        self.queued_packets = cwnd * (1.0 - base / rtts.mean());
        let window = (cwnd + self.gamma * (self.alpha - self.queued_packets))
            .clamp(2.0, 2.0 * cwnd.max(1.0));
        if window < cwnd {
            return Some((window, ssthresh.min(window)));
        }
        (cwnd >= ssthresh && path.cwnd_limited).then_some((window, ssthresh))
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        show(Metric { name: "queued", value: self.queued_packets });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_path::{Link, TestPath, init};
    use crate::{AnySlowStart, CongestionControl, Windowed};
    use dumbbell_units::{Span, Time};

    fn fast(text: &str, link: Link) -> TestPath<Windowed<Fast, AnySlowStart>> {
        let rule = Fast::from_options(&mut text.parse().expect("well formed"));
        let rule = rule.expect("within range");
        TestPath::new(Windowed::new(rule, AnySlowStart::STANDARD, &init(1)), link)
    }

    #[test]
    fn alpha_packets_wait_whatever_the_path() {
        for (mbit, rtt) in [(10.0, 20), (10.0, 200), (100.0, 50)] {
            for alpha in [8.0, 50.0] {
                let mut flow = fast(&format!("fast(alpha={alpha})"), Link::new(mbit, rtt, 2000.0));
                flow.run_ms(30_000);
                flow.run(Span::from_secs(10), |flow| {
                    let waiting = flow.algorithm.control().cwnd - flow.link.bdp();
                    let what = format!("{mbit} Mbit/s, {rtt} ms, alpha {alpha}: {waiting}");
                    assert!((waiting - alpha).abs() <= 2.0, "{what}");
                });
                assert_eq!(flow.dropped, 0);
            }
        }
    }

    #[test]
    fn a_round_trip_goes_gamma_of_the_way_to_the_fixed_point() {
        let window = |text: &str, cwnd: f64, rtt_ms: u64| {
            let rule = Fast::from_options(&mut text.parse().expect("well formed"));
            let base = Some(Span::from_millis(100));
            let path =
                Path { una: 1, min_rtt: base, cwnd_limited: true, ..Path::new(1448, Time::ZERO) };
            let ack = Ack { rtt: Some(Span::from_millis(rtt_ms)), ..Ack::default() };
            let steered = rule.expect("within range").set_window(cwnd, 2.0, &path, &ack);
            steered.expect("a round trip has ended").0
        };
        // 0.5 (1000) + 0.5 (100/125 1000 + 50)
        assert!((window("fast(alpha=50)", 1000.0, 125) - 925.0).abs() < 1e-9);
        assert!((window("fast(alpha=300)", 1000.0, 125) - 1050.0).abs() < 1e-9);
        assert!((window("fast(alpha=50, gamma=0.1)", 1000.0, 125) - 985.0).abs() < 1e-9);
        assert_eq!(window("fast(alpha=500)", 100.0, 100), 200.0, "twice the window at most");
    }

    #[test]
    fn loss_halves_the_window() {
        let mut flow = fast("fast(alpha=20)", Link::new(10.0, 50, 1000.0));
        flow.run_ms(20_000);
        let before = flow.algorithm.control().cwnd;
        flow.link.loses = |seq| seq == 18_000;
        let recovers = |flow: &TestPath<_>| flow.path.ca_state.is_reducing();
        assert!(flow.run_until(Span::from_secs(10), recovers));
        assert_eq!(flow.algorithm.control().cwnd, before / 2.0);
    }

    #[test]
    fn flows_share_a_link_equally_whatever_their_round_trip_times() {
        let mut near = fast("fast(alpha=50)", Link::new(50.0, 40, 5000.0));
        let mut far = fast("fast(alpha=50)", Link::new(50.0, 120, 5000.0));
        near.run_beside(&mut far, Span::from_secs(60));
        let before = (near.path.delivered, far.path.delivered);
        near.run_beside(&mut far, Span::from_secs(30));
        let near_rate = (near.path.delivered - before.0) as f64;
        let ratio = near_rate / (far.path.delivered - before.1) as f64;
        assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
        assert!((near.queued() - 100.0).abs() < 5.0, "{} packets wait", near.queued());
    }
}
