//! The transport's mean window with one loss per `period` packets, compared with the response
//! functions of Mathis et al. and of RFC 9438.

use crate::connection::{Fate, Flow, TestConnection};
use dumbbell_units::{Span, Time};

/// Packets delivered per round trip over `seconds`, after a warm-up of half of that, with every
/// `period`th transmission lost. A first loss ends slow start before it fills the path.
fn mean_window(cc: &'static str, rtt: Span, period: usize, seconds: u64) -> f64 {
    let mut connection = TestConnection::new(Flow { cc, delay: rtt / 2, ..Flow::default() });
    let mut lose = |order: usize, _: &_| {
        if order == 100 || order % period == period - 1 { Fate::Lost } else { Fate::Arrives }
    };
    connection.run(Time::ZERO + Span::from_secs(seconds / 2), &mut lose);
    let before = connection.stats();
    connection.run(Time::ZERO + Span::from_secs(seconds / 2 + seconds), &mut lose);
    let stats = connection.stats();
    assert_eq!(stats.timeouts, 0, "the formulas assume no timeouts");
    let samples = (stats.rtt_sum.1 - before.rtt_sum.1) as f64;
    let rtt = (stats.rtt_sum.0 - before.rtt_sum.0) / samples;
    (stats.delivered - before.delivered) as f64 / seconds as f64 * rtt
}

#[test]
fn reno_has_the_mean_window_of_mathis() {
    for (rtt, period, seconds) in
        [(100, 1_000, 400), (100, 10_000, 800), (300, 400, 1_000), (300, 1_000, 1_000)]
    {
        let expected = (1.5 * period as f64).sqrt();
        let mean = mean_window("reno", Span::from_millis(rtt), period, seconds);
        let close = (mean / expected - 1.0).abs() < 0.1;
        assert!(close, "{rtt} ms, 1/{period}: {mean}, Mathis {expected}");
    }
}

#[test]
fn cubic_has_the_mean_window_of_rfc_9438_equation_6() {
    for (c, period) in [(0.4, 10_000), (4.0, 10_000)] {
        let p = 1.0 / period as f64;
        let root = (c * 3.7 / (4.0 * 0.3_f64)).sqrt().sqrt();
        let expected = root * (0.1 / p).powf(0.75);
        let cc = if c == 0.4 {
            "cubic(fast_convergence=off)"
        } else {
            "cubic(c=4,fast_convergence=off)"
        };
        let mean = mean_window(cc, Span::from_millis(100), period, 800);
        assert!((mean / expected - 1.0).abs() < 0.1, "C {c}: {mean}, RFC 9438 {expected}");
    }
}
