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
//! Loss halves the window, and growth is Reno's (sections 3.4 and 3.5). Linux halves it for a loss while a
//! mark's reduction is in progress too (`dctcp_state`); here that loss is part of the same episode.
//!
//! As in Linux (6.18, `tcp_dctcp.c`) `alpha` is updated before the mark that ends a window reduces it, and with
//! `arithmetic=linux`, the default on transports that count jiffies, windows are whole packets and
//! `alpha` has 1024 steps.
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

use crate::{
    Ack, AnyArithmetic, ConfigError, CongestionEvent, ConnectionConfig, Metric, Options, Path,
    Reno, RenoLinux, Signal, WindowRule,
};
use libm::floor;

/// `DCTCP_MAX_ALPHA`: the steps of `alpha` in Linux.
const MAX_ALPHA: f64 = 1024.0;

/// DCTCP's rule.
#[derive(Clone, Copy, Debug)]
pub struct Dctcp {
    g: f64,
    alpha: f64,
    /// Growth, and what a loss leaves.
    reno: AnyArithmetic<Reno, RenoLinux>,
    /// The first packet sent in this window; its predecessor's acknowledgement ends it.
    next_seq: u64,
    /// `Path::delivered` and `Path::marked` when the window began.
    old_delivered_marked: (u64, u64),
}

impl Dctcp {
    /// Takes the options `g`, `alpha`, the initial value, and `arithmetic`.
    ///
    /// # Errors
    /// If one of them has a value that it cannot have.
    pub fn from_options(
        options: &mut Options,
        init: &ConnectionConfig,
    ) -> Result<Dctcp, ConfigError> {
        Ok(Dctcp {
            g: options.number("g", 1.0 / 16.0, 0.001..=1.0, "0.001 to 1")?,
            alpha: options.number("alpha", 1.0, 0.0..=1.0, "0 to 1")?,
            reno: AnyArithmetic::from_options(options, init, Reno, RenoLinux::default())?,
            next_seq: 0,
            old_delivered_marked: (0, 0),
        })
    }

    /// Updates `alpha` if a window has ended (`dctcp_update_alpha`).
    #[inline]
    fn update_alpha(&mut self, path: &Path) {
        let (old_delivered, old_marked) = self.old_delivered_marked;
        let delivered = path.delivered.saturating_sub(old_delivered) as f64;
        if path.una < self.next_seq || delivered == 0.0 {
            return;
        }
        let marked = path.marked.saturating_sub(old_marked) as f64;
        match self.reno {
            AnyArithmetic::Exact(_) => {
                let share = (marked / delivered).min(1.0);
                self.alpha = (1.0 - self.g) * self.alpha + self.g * share;
            }
            AnyArithmetic::Linux(_) => {
                let alpha = floor(self.alpha * MAX_ALPHA);
                let forgotten = floor(self.g * alpha);
                let kept = if forgotten > 0.0 { alpha - forgotten } else { 0.0 };
                let learned = floor(marked * self.g * MAX_ALPHA / delivered);
                self.alpha = (kept + learned).min(MAX_ALPHA) / MAX_ALPHA;
            }
        }
        self.next_seq = path.next_seq;
        self.old_delivered_marked = (path.delivered, path.marked);
    }
}

impl WindowRule for Dctcp {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, path: &Path, ack: &Ack) -> f64 {
        self.reno.increase(cwnd, acked, path, ack)
    }

    fn decrease(&mut self, cwnd: f64, path: &Path, event: &CongestionEvent) -> f64 {
        self.update_alpha(path);
        let halved = self.reno.decrease(cwnd, path, event);
        match self.reno {
            _ if event.signal != Signal::Ecn => halved,
            AnyArithmetic::Exact(_) => cwnd * (1.0 - self.alpha / 2.0),
            AnyArithmetic::Linux(_) => floor(cwnd) - floor(floor(cwnd) * self.alpha / 2.0),
        }
    }

    #[inline]
    fn observe(&mut self, path: &Path, _ack: &Ack) {
        self.update_alpha(path);
    }

    fn on_timeout(&mut self) {
        self.reno.on_timeout();
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
        Dctcp::from_options(&mut text.parse().expect("well formed"), &init(1))
            .expect("within range")
    }

    fn window(una: u64, next_seq: u64, delivered: u64, marked: u64) -> Path {
        Path { una, next_seq, delivered, marked, ..Path::new(1448, Time::ZERO) }
    }

    #[test]
    fn alpha_moves_1_16_of_the_way_to_the_fraction_of_marks_once_a_window() {
        let mut rule = dctcp("dctcp");
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

    /// Linux 6.18: `tcp_in_ack_event` is before `tcp_fastretrans_alert`.
    #[test]
    fn the_mark_that_ends_a_window_is_learned_before_it_reduces() {
        let mut rule = dctcp("dctcp(alpha=0)");
        rule.observe(&window(1, 10, 1, 0), &Ack::default());
        let event = CongestionEvent::new(Signal::Ecn);
        assert_eq!(rule.decrease(10.0, &window(9, 19, 9, 4), &event), 10.0);
        assert_eq!(rule.decrease(10.0, &window(10, 19, 11, 10), &event), 10.0 - 10.0 / 32.0);
    }

    /// dctcp_update_alpha: `alpha -= min_not_zero(alpha, alpha >> 4)`, plus `(marked << 6) / delivered`.
    #[test]
    fn linux_s_alpha_has_1024_steps_and_falls_to_0() {
        let mut rule = dctcp("dctcp(arithmetic=linux)");
        rule.observe(&window(1, 10, 1, 0), &Ack::default());
        assert_eq!(rule.alpha * 1024.0, 960.0);
        rule.observe(&window(10, 20, 10, 4), &Ack::default());
        assert_eq!(rule.alpha * 1024.0, 900.0 + 28.0, "4 * 64 / 9 is 28.4");
        for packet in 2..100 {
            rule.observe(&window(10 * packet, 10 * packet + 10, 10 * packet, 4), &Ack::default());
        }
        assert_eq!(rule.alpha, 0.0, "from 15 steps to none");
    }

    /// dctcp_ssthresh, dctcp_react_to_loss.
    #[test]
    fn linux_s_windows_are_whole_packets() {
        let mut rule = dctcp("dctcp(alpha=0.25, arithmetic=linux)");
        let path = Path::new(1448, Time::ZERO);
        let mut reduced = |cwnd, signal| rule.decrease(cwnd, &path, &CongestionEvent::new(signal));
        assert_eq!([7.0, 8.0, 15.0].map(|cwnd| reduced(cwnd, Signal::Ecn)), [7.0, 7.0, 14.0]);
        assert_eq!(reduced(15.0, Signal::Loss), 7.0);
        let mut grown = |acked| rule.increase(4.0, acked, &path, &Ack::default());
        assert_eq!([1.0, 2.0, 2.0].map(&mut grown), [0.0, 0.0, 1.0]);
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
