//! DCTCP (RFC 8257).
//!
//! `alpha` estimates the fraction of marked packets (section 3.3). It is updated once a window;
//! `M` is the fraction of marks among the packets acknowledged in that window:
//!
//! ```text
//! alpha = (1 - g) alpha + g M        g = 1/16, initially alpha = 1
//! ```
//!
//! On a mark the window is reduced, once a window:
//!
//! ```text
//! cwnd = cwnd (1 - alpha / 2)
//! ```
//!
//! Loss halves the window, and growth is Reno's (sections 3.4 and 3.5).
//!
//! DCTCP needs a receiver that reports every mark (section 3.2; a stack with accurate ECN) and a
//! queue that marks above a threshold of a few packets. Without marks it is Reno.
//!
//! The model of Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, section 3.3: with a
//! threshold of `K` packets and `N` flows, each at the window `W = (C RTT + K) / N` when marking
//! begins,
//!
//! ```text
//! alpha^2 (1 - alpha / 4) = (2 W + 1) / (W + 1)^2, so alpha is about sqrt(2 / W)
//! maximum queue: K + N;  minimum queue: K + N - D alpha / 2, D = N (W + 1)
//! ```

use crate::round::SequenceRound;
use crate::{Ack, ConfigError, CongestionEvent, Metric, Options, Path, Signal, WindowRule};

/// DCTCP's rule.
#[derive(Clone, Copy, Debug)]
pub struct Dctcp {
    g: f64,
    alpha: f64,
    window: SequenceRound,
    /// `Path::delivered` and `Path::marked` when the window began.
    old_delivered_marked: (u64, u64),
}

impl Dctcp {
    /// Takes the options `g` and `alpha`, the initial value.
    ///
    /// # Errors
    /// If one of them has a value that it cannot have.
    pub fn from_options(options: &mut Options) -> Result<Dctcp, ConfigError> {
        Ok(Dctcp {
            g: options.number("g", 1.0 / 16.0, 0.001..=1.0, "0.001 to 1")?,
            alpha: options.number("alpha", 1.0, 0.0..=1.0, "0 to 1")?,
            window: SequenceRound::default(),
            old_delivered_marked: (0, 0),
        })
    }
}

impl WindowRule for Dctcp {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, _path: &Path, _ack: &Ack) -> f64 {
        acked / cwnd
    }

    fn decrease(&mut self, cwnd: f64, _path: &Path, event: &CongestionEvent) -> f64 {
        let share = if event.signal == Signal::Ecn { self.alpha } else { 1.0 };
        cwnd * (1.0 - share / 2.0)
    }

    #[inline]
    fn observe(&mut self, path: &Path, _ack: &Ack) {
        let delivered = path.delivered.saturating_sub(self.old_delivered_marked.0);
        if delivered == 0 || !self.window.advance(path) {
            return;
        }
        let marked = path.marked.saturating_sub(self.old_delivered_marked.1);
        let share = (marked as f64 / delivered as f64).min(1.0);
        self.alpha = (1.0 - self.g) * self.alpha + self.g * share;
        self.old_delivered_marked = (path.delivered, path.marked);
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        show(Metric { name: "alpha", value: self.alpha });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_path::{Link, TestPath, init};
    use crate::{AnySlowStart, CongestionControl, Windowed};
    use dumbbell_units::{Span, Time};

    fn dctcp(text: &str) -> Dctcp {
        Dctcp::from_options(&mut text.parse().expect("well formed")).expect("within range")
    }

    #[test]
    fn alpha_moves_1_16_of_the_way_to_the_fraction_of_marks_once_a_window() {
        let mut rule = dctcp("dctcp");
        let window = |una, next_seq, delivered, marked| Path {
            una,
            next_seq,
            delivered,
            marked,
            ..Path::new(1448, Time::ZERO)
        };
        rule.observe(&window(1, 10, 1, 0), &Ack::default());
        assert_eq!(rule.alpha, 15.0 / 16.0);
        rule.observe(&window(9, 18, 9, 0), &Ack::default());
        assert_eq!(rule.alpha, 15.0 / 16.0, "the window is not over");
        rule.observe(&window(11, 20, 11, 5), &Ack::default());
        assert_eq!(rule.alpha, 15.0 / 16.0 * 15.0 / 16.0 + 0.5 / 16.0);
    }

    #[test]
    fn a_mark_takes_half_of_alpha_and_loss_half_of_the_window() {
        let mut rule = dctcp("dctcp(alpha=0.25)");
        let path = Path::new(1448, Time::ZERO);
        let event = |signal| CongestionEvent::new(signal);
        assert_eq!(rule.decrease(80.0, &path, &event(Signal::Ecn)), 70.0);
        assert_eq!(rule.decrease(80.0, &path, &event(Signal::Loss)), 40.0);
        assert_eq!(rule.decrease(80.0, &path, &event(Signal::Timeout)), 40.0);
    }

    /// Section 3.3 of the SIGCOMM paper, for one flow.
    #[test]
    fn alpha_and_the_queue_are_those_of_the_model() {
        for (mbit, rtt, k) in [(1000.0, 1, 40.0), (1000.0, 4, 80.0), (100.0, 20, 60.0)] {
            let rule = Windowed::new(dctcp("dctcp"), AnySlowStart::STANDARD, &init(1));
            let link = Link { mark_above: Some(k), ..Link::new(mbit, rtt, 10_000.0) };
            let mut flow = TestPath::new(rule, link);
            flow.echoes = true;
            flow.run_ms(200 * rtt * 20);
            let (mut sum, mut count, mut most) = (0.0, 0.0, 0.0_f64);
            flow.run(Span::from_millis(100 * rtt * 20), |flow| {
                sum += flow.inspect("alpha");
                count += 1.0;
                most = most.max(flow.queued());
            });
            let w = link.bdp() + k;
            let expected = (2.0 / w).sqrt();
            let alpha = sum / count;
            let what = format!("{mbit} Mbit/s, {rtt} ms, K = {k}");
            assert!((alpha / expected - 1.0).abs() < 0.2, "{what}: {alpha}, not {expected}");
            assert!((k..k + 4.0).contains(&most), "{what}: {most} packets in the queue");
            assert_eq!(flow.dropped, 0);
        }
    }

    #[test]
    fn without_marks_it_is_reno() {
        let rule = Windowed::new(dctcp("dctcp"), AnySlowStart::STANDARD, &init(1));
        let mut flow = TestPath::new(rule, Link::new(10.0, 50, 43.0));
        flow.run_ms(20_000);
        let peak = flow.link.bdp() + 43.0;
        assert!(flow.run_until(Span::from_secs(20), |flow| flow.path.ca_state.is_reducing()));
        assert!((flow.algorithm.control().cwnd - peak / 2.0).abs() <= 2.0);
    }

    #[test]
    fn two_flows_share_a_link_and_a_short_queue() {
        let link = Link { mark_above: Some(40.0), ..Link::new(1000.0, 1, 10_000.0) };
        let [mut one, mut two] = [(); 2].map(|()| {
            let rule = Windowed::new(dctcp("dctcp"), AnySlowStart::STANDARD, &init(1));
            let mut flow = TestPath::new(rule, link);
            flow.echoes = true;
            flow
        });
        one.run_ms(500);
        two.path.now = one.path.now;
        one.run_beside(&mut two, Span::from_secs(2));
        let before = (one.path.delivered, two.path.delivered);
        one.run_beside(&mut two, Span::from_secs(4));
        let (one_rate, two_rate) =
            ((one.path.delivered - before.0) as f64, (two.path.delivered - before.1) as f64);
        assert!((one_rate / two_rate - 1.0).abs() < 0.1, "{one_rate} to {two_rate}");
        assert!((one_rate + two_rate) / 4000.0 > 0.98 * link.bdp());
    }
}
