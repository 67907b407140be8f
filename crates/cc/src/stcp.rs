//! Scalable TCP (Kelly, "Scalable TCP: improving performance in highspeed wide area networks",
//! 2003).
//!
//! ```text
//! w += 0.01      for each acknowledgement
//! w -= 0.125 w   on loss
//! ```
//!
//! Growth in a round trip and reduction are both proportional to the window, so recovery from loss
//! takes the same number of round trips at every window: `log(8/7) / 0.01 = 13.4`.
//!
//! Below a window `lwnd`, 16 packets in the paper, the flow is Reno. Linux grows by
//! `1 / min(w, 100)`, which is Reno's growth up to 100 packets, and reduces by an eighth at every
//! window. That is the default here; `low_window` sets `lwnd` for the growth. Until 5.6 Linux had 50
//! instead of 100, "to account for delayed ACK", and counted acknowledgements: `stcp(ai=50)` in a
//! stack that counts them.

use crate::{Ack, ConfigError, CongestionEvent, Options, Path, WindowRule};

/// Scalable TCP's rule.
#[derive(Clone, Copy, Debug)]
pub struct Scalable {
    /// Acknowledgements for a packet of growth.
    ai: f64,
    /// The fraction of the window that a reduction leaves.
    beta: f64,
    /// Window up to which growth is Reno's, packets.
    low_window: f64,
}

impl Scalable {
    /// Takes the options `ai`, `beta` and `low_window`.
    ///
    /// # Errors
    /// If one of them has a value that it cannot have.
    pub fn from_options(options: &mut Options) -> Result<Scalable, ConfigError> {
        let ai = options.number("ai", 100.0, 1.0..=10_000.0, "1 to 10000")?;
        let beta = options.number("beta", 0.875, 0.1..=0.99, "0.1 to 0.99")?;
        let low_window = options.number("low_window", ai, 0.0..=10_000.0, "0 to 10000")?;
        Ok(Scalable { ai, beta, low_window })
    }
}

impl WindowRule for Scalable {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, _path: &Path, _ack: &Ack) -> f64 {
        acked / if cwnd > self.low_window { self.ai } else { cwnd }
    }

    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
        cwnd * self.beta
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dumbbell_units::Time;

    fn rule(text: &str) -> Scalable {
        Scalable::from_options(&mut text.parse().expect("well formed")).expect("within range")
    }

    fn growth(rule: &mut Scalable, cwnd: f64) -> f64 {
        rule.increase(cwnd, 1.0, &Path::new(1448, Time::ZERO), &Ack::default())
    }

    #[test]
    fn a_packet_acknowledged_adds_1_100_and_loss_subtracts_1_8() {
        let mut linux = rule("stcp");
        assert_eq!((growth(&mut linux, 10_000.0), growth(&mut linux, 101.0)), (0.01, 0.01));
        assert_eq!(growth(&mut linux, 50.0), 0.02, "Reno's");
        let loss = CongestionEvent::loss();
        assert_eq!(linux.decrease(8000.0, &Path::new(1448, Time::ZERO), &loss), 7000.0);
    }

    #[test]
    fn options_give_the_paper_s_low_window_and_old_linux_s_growth() {
        let mut paper = rule("stcp(low_window=16)");
        assert_eq!((growth(&mut paper, 16.0), growth(&mut paper, 17.0)), (1.0 / 16.0, 0.01));
        let mut old = rule("stcp(ai=50)");
        assert_eq!((growth(&mut old, 50.0), growth(&mut old, 500.0)), (0.02, 0.02));
    }

    /// The property that gives the algorithm its name.
    #[test]
    fn recovery_takes_the_same_number_of_round_trips_at_every_window() {
        for peak in [1_000.0, 100_000.0] {
            let mut scalable = rule("stcp");
            let (mut cwnd, mut rounds) = (peak * 0.875, 0.0);
            while cwnd < peak {
                rounds += 1.0 / cwnd;
                cwnd += growth(&mut scalable, cwnd);
            }
            let expected = (8.0_f64 / 7.0).ln() / 0.01;
            assert!((rounds / expected - 1.0).abs() < 0.01, "{rounds}, not {expected}");
        }
    }
}
