//! CUBIC as it was in 2006: the parameters that make today's rule ([`crate::Cubic`]) that one.
//!
//! `cubic-2006` is the CUBIC of Linux 2.6.18 (its version 2.0, after Rhee and Xu, "CUBIC: a new
//! TCP-friendly high-speed TCP variant", PFLDnet 2005), by the same equations with `C` 410/1024 and
//! `beta` 819/1024, and these differences from today's:
//!
//! - The cubic grows by `S_max` at most: 160 packets a second, whatever the round-trip time
//!   (`max_increment`, 16 packets in 100 ms); in a round trip the window may double.
//! - Until there has been loss the window grows by a fiftieth a round trip, neither more nor less.
//! - Reno's window is estimated with `alpha = 3 (1 - beta) / (1 + beta)`, by acknowledgements; the
//!   cubic goes by packets even where the stack counts acknowledgements.
//! - Slow start is the standard one, up to 100 packets (`initial_ssthresh`).
//!
//! Two slips of the arithmetic were in that kernel, and are here unless `errors=off`:
//!
//! - Time was scaled twice, so that the window followed `(C / 12.8) (t - K)^3 + W_max` towards a
//!   plateau whose `K` was computed with `C` (`cube_rtt_scale`: 32 in place of 410; corrected in
//!   2.6.19, "cubic: scaling error").
//! - The limit of growth was divided by 8 for a round-trip time in eighths of a tick, which it was
//!   not: 20 packets a second, 2 in 100 ms.
//!
//! Together they make that CUBIC grow by 20 packets a second nearly always.

use crate::cubic::{FirstGrowth, Parameters, RenoFriendly};
use crate::{ConfigError, Options};

impl Parameters {
    /// Linux 2.6.18's. Takes the options `errors` and `fast_convergence`.
    ///
    /// # Errors
    /// If one of them has a value that it cannot have.
    pub fn linux_2_6_18(options: &mut Options) -> Result<Parameters, ConfigError> {
        let c = 410.0 / 1024.0;
        let beta = 819.0 / 1024.0;
        let errors = options.switch("errors", true)?;
        let (c_growth, s_max) = if errors { (32.0 / 1024.0, 20.0) } else { (c, 160.0) };
        Ok(Parameters {
            c,
            beta,
            fast_convergence: options.switch("fast_convergence", true)?,
            reno_friendly: Some(RenoFriendly::linux(beta)),
            max_growth: 1.0,
            first_growth: FirstGrowth::Exactly(1.0 / 50.0),
            c_growth,
            s_max: Some(s_max),
            counts_packets: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cubic::tests::{assert_close, growth, path_at};
    use crate::{Ack, CongestionEvent, Cubic, WindowRule};
    use dumbbell_units::Span;

    fn cubic_2006(text: &str) -> Cubic {
        let mut options = text.parse().expect("well formed");
        Cubic::new(Parameters::linux_2_6_18(&mut options).expect("within range"))
    }

    #[test]
    fn in_2006_the_window_grew_by_a_fiftieth_a_round_trip_until_there_was_loss() {
        let mut rule = cubic_2006("cubic-2006");
        let path = path_at(1.0, Span::from_millis(100));
        assert_close(growth(&mut rule, 5000.0, &path), 0.02);
        assert_close(rule.decrease(1024.0, &path, &CongestionEvent::loss()), 819.0);
    }

    #[test]
    fn in_2006_the_cubic_was_limited_to_16_packets_in_100_ms_or_by_mistake_to_2() {
        for (text, per_round) in [("cubic-2006(errors=off)", 16.0), ("cubic-2006", 2.0)] {
            for rtt in [10, 100] {
                let mut rule = cubic_2006(text);
                let path = path_at(0.0, Span::from_millis(rtt));
                let cwnd = rule.decrease(100_000.0, &path, &CongestionEvent::loss());
                let expected = per_round * rtt as f64 / 100.0;
                assert_close(growth(&mut rule, cwnd, &path) * cwnd, expected);
            }
        }
    }

    #[test]
    fn in_2006_time_was_scaled_twice_by_mistake() {
        for (text, c) in [("cubic-2006(errors=off)", 410.0 / 1024.0), ("cubic-2006", 1.0 / 32.0)] {
            let mut rule = cubic_2006(text);
            let rtt = Span::from_millis(100);
            let cwnd = rule.decrease(1000.0, &path_at(0.0, rtt), &CongestionEvent::loss());
            growth(&mut rule, cwnd, &path_at(0.0, rtt));
            let k = libm::cbrt((1000.0 - cwnd) / (410.0 / 1024.0));
            // Three seconds beyond K, within the limit of growth of either.
            let target = 1000.0 + c * 3.0 * 3.0 * 3.0;
            let grown = growth(&mut rule, target - 1.0, &path_at(k + 2.9, rtt)) * (target - 1.0);
            assert!((grown - 1.0).abs() < 1e-6, "{text}: {grown}");
        }
    }

    #[test]
    fn in_2006_packets_counted_even_if_the_stack_counted_acknowledgements() {
        let mut rule = cubic_2006("cubic-2006");
        let path = path_at(0.0, Span::from_millis(100));
        let cwnd = rule.decrease(100_000.0, &path, &CongestionEvent::loss());
        let delayed = Ack { delivered: 2, acked: 1, ..Ack::default() };
        let grown = rule.increase(cwnd, 1.0, &path, &delayed);
        assert_close(grown, 2.0 * growth(&mut rule, cwnd, &path));
    }
}
