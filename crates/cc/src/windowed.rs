//! The easy tier: an algorithm that is a rule for growing and a rule for shrinking a window.

use crate::{
    Ack, CongestionControl, CongestionEvent, ConnectionConfig, ControlParameters, Metric, Path,
    Sent, Signal, SlowStart,
};
use dumbbell_units::{Span, Time};

/// How a window grows in congestion avoidance and shrinks on congestion.
pub trait WindowRule {
    /// Packets by which `cwnd` grows on this acknowledgement, of which `acked` packets fall to
    /// congestion avoidance (fewer than `ack.acked` when slow start ends within it).
    fn increase(&mut self, cwnd: f64, acked: f64, path: &Path, ack: &Ack) -> f64;

    /// The slow start threshold after congestion; the window follows it.
    fn decrease(&mut self, cwnd: f64, path: &Path, event: &CongestionEvent) -> f64;

    /// Told of every acknowledgement, in slow start and recovery too, before anything grows.
    #[inline]
    fn observe(&mut self, _path: &Path, _ack: &Ack) {}

    /// A window and a slow start threshold to take at once, for rules that steer by delay. Asked
    /// for on every acknowledgement except while a reduction is carried out; nothing grows on an
    /// acknowledgement that is answered so.
    #[inline]
    fn set_window(
        &mut self,
        _cwnd: f64,
        _ssthresh: f64,
        _path: &Path,
        _ack: &Ack,
    ) -> Option<(f64, f64)> {
        None
    }

    /// Whether the window grows now even if it is not used.
    #[inline]
    fn grows_when_app_limited(&self) -> bool {
        false
    }

    /// A retransmission timeout: forget what was learned.
    #[inline]
    fn on_timeout(&mut self) {}

    /// The last decrease was undone.
    #[inline]
    fn on_undo(&mut self) {}

    /// The flow sends again after the application had left it idle for `pause`.
    #[inline]
    fn on_restart(&mut self, _path: &Path, _pause: Span) {}

    /// The packet size changed: multiplies every state variable that is in packets by `factor`, so that
    /// it keeps its bytes.
    #[inline]
    fn on_mtu_update(&mut self, _factor: f64) {}

    /// Shows named internals.
    fn inspect(&self, _show: &mut dyn FnMut(Metric)) {}
}

/// A window algorithm made of a rule and a slow start.
///
/// The frame holds what RFC 5681 gives all of them: slow start below ssthresh, no growth in
/// recovery or when the window is not used (unless the rule says so), one reduction an episode, one
/// packet after a timeout, never below two packets of threshold.
#[derive(Clone, Debug)]
pub struct Windowed<R, S> {
    rule: R,
    slow_start: S,
    cwnd: f64,
    ssthresh: f64,
    /// Window and threshold before the last episode, for undoing it (RFC 4015).
    undo: Option<(f64, f64)>,
    last_sent: Time,
}

impl<R: WindowRule, S: SlowStart> Windowed<R, S> {
    /// The algorithm at the beginning of a connection.
    pub fn new(rule: R, slow_start: S, init: &ConnectionConfig) -> Windowed<R, S> {
        Windowed {
            rule,
            slow_start,
            cwnd: init.initial_window,
            ssthresh: f64::INFINITY,
            undo: None,
            last_sent: init.now,
        }
    }

    /// The same with a slow start threshold to begin with, packets (RFC 5681 lets it be anything;
    /// old kernels set it).
    #[must_use]
    pub fn with_ssthresh(self, ssthresh: f64) -> Windowed<R, S> {
        Windowed { ssthresh, ..self }
    }

    pub(crate) fn rule(&self) -> &R {
        &self.rule
    }

    pub(crate) fn rule_mut(&mut self) -> &mut R {
        &mut self.rule
    }

    fn grow(&mut self, path: &Path, ack: &Ack) {
        let mut acked = f64::from(ack.acked);
        if self.cwnd < self.ssthresh {
            let grown = self.cwnd + self.slow_start.increase(self.cwnd, path, ack);
            self.cwnd = grown.min(self.ssthresh);
            // As in Linux's tcp_slow_start: what is left over when the threshold is reached
            // counts towards congestion avoidance.
            acked = acked.min(grown - self.cwnd);
            if acked <= 0.0 {
                return;
            }
        }
        self.cwnd += self.rule.increase(self.cwnd, acked, path, ack);
    }
}

impl<R: WindowRule, S: SlowStart> CongestionControl for Windowed<R, S> {
    #[inline(always)]
    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        self.rule.observe(path, ack);
        if !path.ca_state.is_reducing()
            && let Some((cwnd, ssthresh)) =
                self.rule.set_window(self.cwnd, self.ssthresh, path, ack)
        {
            self.cwnd = cwnd.max(1.0);
            self.ssthresh = ssthresh.max(2.0);
            return;
        }
        if self.cwnd < self.ssthresh && self.slow_start.should_exit(self.cwnd, path, ack) {
            self.ssthresh = self.cwnd;
        }
        let grows = path.cwnd_limited || self.rule.grows_when_app_limited();
        if grows && !path.ca_state.is_reducing() && ack.acked > 0 {
            self.grow(path, ack);
        }
    }

    fn on_congestion(&mut self, path: &Path, event: &CongestionEvent) {
        if event.new_episode {
            // Linux undoes no episode that an ECN echo began (tcp_enter_cwr: prior_ssthresh = 0).
            self.undo = (event.signal != Signal::Ecn).then_some((self.cwnd, self.ssthresh));
            self.slow_start.on_exit();
            self.ssthresh = self.rule.decrease(self.cwnd, path, event).max(2.0);
            self.cwnd = self.ssthresh;
        }
        if event.signal == Signal::Timeout {
            // What was sent too recently to be lost is still in flight (tcp_enter_loss).
            self.cwnd = f64::from(path.in_flight) + 1.0;
            self.rule.on_timeout();
            self.slow_start.restart(path);
        }
    }

    #[inline]
    fn control(&self) -> ControlParameters {
        ControlParameters::new(self.cwnd).with_ssthresh(self.ssthresh)
    }

    #[inline]
    fn on_sent(&mut self, path: &Path, sent: &Sent) {
        if sent.from_idle && sent.app_limited {
            self.rule.on_restart(path, path.now.since(self.last_sent));
        }
        self.last_sent = path.now;
    }

    fn on_restart_after_idle(&mut self, cwnd: f64) {
        // Linux's tcp_current_ssthresh.
        self.ssthresh = self.ssthresh.max(0.75 * self.cwnd);
        self.cwnd = cwnd;
    }

    fn on_mtu_update(&mut self, path: &Path, previous_mss: u32) {
        let factor = f64::from(previous_mss) / f64::from(path.mss);
        self.cwnd = (self.cwnd * factor).max(1.0);
        self.ssthresh = (self.ssthresh * factor).max(2.0);
        self.undo = self.undo.map(|(cwnd, ssthresh)| (cwnd * factor, ssthresh * factor));
        self.rule.on_mtu_update(factor);
    }

    fn on_persistent_congestion(&mut self, path: &Path) {
        self.on_congestion(path, &CongestionEvent::timeout().with_packets(0).with_seq(path.una));
        // RFC 9002's kMinimumWindow.
        self.cwnd = 2.0;
    }

    fn on_receive_window_penalty(&mut self, _path: &Path) {
        // In slow start the threshold stays, so that the window is soon where it was.
        if self.cwnd >= self.ssthresh {
            self.ssthresh = (self.ssthresh / 2.0).max(2.0);
        }
        self.cwnd = (self.cwnd / 2.0).max(1.0);
    }

    fn on_spurious_loss(&mut self, _path: &Path) {
        if let Some((cwnd, ssthresh)) = self.undo.take() {
            self.cwnd = self.cwnd.max(cwnd);
            self.ssthresh = self.ssthresh.max(ssthresh);
            self.rule.on_undo();
        }
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.slow_start.inspect(show);
        self.rule.inspect(show);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Algorithm, CaState};

    const TIMEOUT: CongestionEvent = CongestionEvent::timeout();

    fn algorithm(name: &str) -> Algorithm {
        let init = ConnectionConfig::new(Time::ZERO, 1448).with_seed(1);
        Algorithm::parse(name, &init).expect("a built-in algorithm")
    }

    fn path() -> Path {
        let rtt = Some(Span::from_millis(100));
        Path { cwnd_limited: true, min_rtt: rtt, ..Path::new(1448, Time::ZERO) }
    }

    fn acknowledge(algorithm: &mut Algorithm, path: &Path, acked: u32) -> (f64, f64) {
        let ack = Ack { delivered: acked, acked, rtt: path.min_rtt, ..Ack::default() };
        algorithm.on_ack(path, &ack);
        window(algorithm)
    }

    fn window(algorithm: &Algorithm) -> (f64, f64) {
        let control = algorithm.control();
        (control.cwnd, control.ssthresh)
    }

    #[test]
    fn slow_start_grows_by_what_is_acknowledged_and_leaves_the_rest_to_congestion_avoidance() {
        let mut reno = algorithm("reno");
        assert_eq!(acknowledge(&mut reno, &path(), 10), (20.0, f64::INFINITY));
        reno.on_congestion(&path(), &TIMEOUT);
        assert_eq!(window(&reno), (1.0, 10.0));
        assert_eq!(acknowledge(&mut reno, &path(), 10), (10.0 + 1.0 / 10.0, 10.0));
    }

    #[test]
    fn after_a_timeout_one_packet_leaves_beside_those_that_are_still_in_flight() {
        let mut reno = algorithm("reno");
        reno.on_congestion(&Path { in_flight: 4, ..path() }, &TIMEOUT);
        assert_eq!(window(&reno), (5.0, 5.0));
    }

    #[test]
    fn an_episode_reduces_the_window_once_and_it_does_not_grow_meanwhile() {
        for (name, beta) in [("reno", 0.5), ("cubic", 0.7)] {
            let mut algorithm = algorithm(name);
            acknowledge(&mut algorithm, &path(), 90);
            algorithm.on_congestion(&path(), &CongestionEvent::loss());
            algorithm.on_congestion(&path(), &CongestionEvent::loss().with_new_episode(false));
            assert_eq!(window(&algorithm), (100.0 * beta, 100.0 * beta), "{name}");
            let recovery = Path { ca_state: CaState::Recovery, ..path() };
            assert_eq!(acknowledge(&mut algorithm, &recovery, 10).0, 100.0 * beta, "{name}");
            assert!(acknowledge(&mut algorithm, &path(), 10).0 > 100.0 * beta, "{name}");
        }
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let unused = Path { cwnd_limited: false, ..path() };
        assert_eq!(acknowledge(&mut algorithm("cubic"), &unused, 10).0, 10.0);
    }

    /// tcp_vegas_cong_avoid.
    #[test]
    fn but_vegas_grows_all_the_same_unless_it_is_reno() {
        let unused = Path { cwnd_limited: false, ..path() };
        let mut vegas = algorithm("vegas");
        assert_eq!(acknowledge(&mut vegas, &unused, 10).0, 20.0);
        let disorder = Path { ca_state: CaState::Disorder, ..unused };
        assert_eq!(acknowledge(&mut vegas, &disorder, 10).0, 20.0);
    }

    /// RFC 9406, section 4.3: 8 packets an acknowledgement at most, in the initial slow start only.
    #[test]
    fn loss_ends_hystart_plus_plus_for_good() {
        let mut reno = algorithm("reno(hystart=plusplus)");
        assert_eq!(acknowledge(&mut reno, &path(), 40).0, 18.0);
        reno.on_congestion(&path(), &CongestionEvent::loss());
        reno.on_restart_after_idle(4.0);
        assert_eq!(acknowledge(&mut reno, &path(), 40), (9.0 + 35.0 / 9.0, 9.0));
    }

    #[test]
    fn a_window_that_is_cut_for_a_pause_leaves_three_quarters_of_it_as_threshold() {
        let mut reno = algorithm("reno(initial_ssthresh=80)");
        acknowledge(&mut reno, &path(), 30);
        assert_eq!(window(&reno), (40.0, 80.0));
        reno.on_restart_after_idle(20.0);
        assert_eq!(window(&reno), (20.0, 80.0));
        reno.on_congestion(&path(), &CongestionEvent::loss());
        assert_eq!(window(&reno), (10.0, 10.0));
        reno.on_restart_after_idle(10.0);
        (0..12).for_each(|_| _ = acknowledge(&mut reno, &path(), 10));
        let (cwnd, _) = window(&reno);
        reno.on_restart_after_idle(10.0);
        assert_eq!(window(&reno), (10.0, 0.75 * cwnd));
    }

    /// mptcp_rcv_buf_optimization: "If in slow start, do not reduce the ssthresh".
    #[test]
    fn a_penalty_halves_the_window_and_the_threshold_only_if_the_window_had_reached_it() {
        let mut reno = algorithm("reno(initial_ssthresh=80)");
        acknowledge(&mut reno, &path(), 30);
        reno.on_receive_window_penalty(&path());
        assert_eq!(window(&reno), (20.0, 80.0), "in slow start");
        acknowledge(&mut reno, &path(), 60);
        reno.on_receive_window_penalty(&path());
        assert_eq!(window(&reno), (40.0, 40.0));
        (0..8).for_each(|_| reno.on_receive_window_penalty(&path()));
        assert_eq!(window(&reno), (1.0, 2.0), "the least that Linux leaves");
    }

    #[test]
    fn a_penalty_is_no_loss_that_cubic_would_remember_or_undo() {
        let mut cubic = algorithm("cubic");
        acknowledge(&mut cubic, &path(), 90);
        cubic.on_receive_window_penalty(&path());
        cubic.on_spurious_loss(&path());
        assert_eq!(window(&cubic), (50.0, f64::INFINITY));
    }

    #[test]
    fn the_threshold_is_never_below_two_packets() {
        let mut reno = algorithm("reno");
        reno.on_congestion(&path(), &TIMEOUT);
        reno.on_congestion(&path(), &TIMEOUT);
        assert_eq!(window(&reno), (1.0, 2.0));
    }

    #[test]
    fn a_spurious_reduction_is_undone_once() {
        for (name, event) in [
            ("reno", CongestionEvent::loss()),
            ("cubic", CongestionEvent::loss()),
            ("reno", TIMEOUT),
            ("cubic", TIMEOUT),
        ] {
            let mut algorithm = algorithm(name);
            acknowledge(&mut algorithm, &path(), 90);
            algorithm.on_congestion(&path(), &event);
            algorithm.on_spurious_loss(&path());
            assert_eq!(window(&algorithm), (100.0, f64::INFINITY), "{name}");
            algorithm.on_congestion(&path(), &CongestionEvent::loss());
            algorithm.on_spurious_loss(&path());
            algorithm.on_congestion(&path(), &CongestionEvent::loss().with_new_episode(false));
            algorithm.on_spurious_loss(&path());
            assert_eq!(window(&algorithm), (100.0, f64::INFINITY), "{name}");
        }
    }

    /// tcp_enter_cwr: prior_ssthresh = 0.
    #[test]
    fn a_reduction_for_a_mark_stands_even_if_a_loss_in_it_is_spurious() {
        let mut reno = algorithm("reno");
        acknowledge(&mut reno, &path(), 90);
        reno.on_congestion(&path(), &CongestionEvent::ecn());
        reno.on_congestion(&path(), &CongestionEvent::loss().with_new_episode(false));
        reno.on_spurious_loss(&path());
        assert_eq!(window(&reno), (50.0, 50.0));
    }

    #[test]
    fn slow_start_that_ends_by_itself_leaves_the_window_to_congestion_avoidance() {
        for (name, after) in [("cubic", 100.0 + 0.05), ("reno(hystart=delay)", 100.0 + 1.0 / 100.0)]
        {
            let mut algorithm = algorithm(name);
            acknowledge(&mut algorithm, &path(), 90);
            let mut path = Path { next_seq: 200, una: 100, ..path() };
            for _ in 0..9 {
                assert_eq!(window(&algorithm), (100.0, f64::INFINITY), "{name}");
                path.now += Span::from_millis(3);
                let rtt = Some(Span::from_millis(120));
                let ack = Ack { acked: 1, rtt, ..Ack::default() };
                // All but the last tell a delay without growth: the window is not in use.
                path.una += 1;
                path.cwnd_limited = path.una == 109;
                algorithm.on_ack(&path, &ack);
            }
            let (cwnd, ssthresh) = window(&algorithm);
            assert_eq!(ssthresh, 100.0, "{name}");
            assert!((cwnd - after).abs() < 1e-9, "{name}: {cwnd}");
        }
    }

    /// Steers to 50 packets on every acknowledgement that delivers one packet.
    struct FixedWindow;

    impl WindowRule for FixedWindow {
        fn increase(&mut self, _cwnd: f64, acked: f64, _path: &Path, _ack: &Ack) -> f64 {
            acked
        }

        fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
            cwnd / 2.0
        }

        fn set_window(
            &mut self,
            _cwnd: f64,
            _ssthresh: f64,
            _path: &Path,
            ack: &Ack,
        ) -> Option<(f64, f64)> {
            (ack.acked == 1).then_some((50.0, 40.0))
        }
    }

    #[test]
    fn a_rule_that_steers_has_its_way_and_nothing_grows_then_but_not_during_a_reduction() {
        let init = ConnectionConfig::new(Time::ZERO, 1448).with_seed(1);
        let slow_start = crate::StandardSlowStart;
        let mut algorithm = Windowed::new(FixedWindow, slow_start, &init).with_ssthresh(100.0);
        let mut acknowledge = |path: &Path, acked: u32| {
            algorithm.on_ack(path, &Ack { delivered: acked, acked, ..Ack::default() });
            let control = algorithm.control();
            (control.cwnd, control.ssthresh)
        };
        assert_eq!(acknowledge(&path(), 2), (12.0, 100.0));
        let recovery = Path { ca_state: CaState::Recovery, ..path() };
        assert_eq!(acknowledge(&recovery, 1), (12.0, 100.0));
        assert_eq!(acknowledge(&path(), 1), (50.0, 40.0));
        assert_eq!(acknowledge(&path(), 2), (52.0, 40.0));
    }

    /// A rule and a slow start that count what the frame tells them.
    #[derive(Default)]
    struct CallCounter {
        timeouts: u32,
        undone: u32,
        pauses: Vec<Span>,
        restarts: u32,
    }

    impl WindowRule for CallCounter {
        fn increase(&mut self, _cwnd: f64, _counted: f64, _path: &Path, _ack: &Ack) -> f64 {
            0.0
        }

        fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
            cwnd
        }

        fn on_timeout(&mut self) {
            self.timeouts += 1;
        }

        fn on_undo(&mut self) {
            self.undone += 1;
        }

        fn on_restart(&mut self, _path: &Path, pause: Span) {
            self.pauses.push(pause);
        }
    }

    impl SlowStart for CallCounter {
        fn restart(&mut self, _path: &Path) {
            self.restarts += 1;
        }
    }

    fn told() -> Windowed<CallCounter, CallCounter> {
        let init = ConnectionConfig::new(Time::ZERO, 1448).with_seed(1);
        Windowed::new(CallCounter::default(), CallCounter::default(), &init)
    }

    #[test]
    fn rule_and_slow_start_are_told_of_every_timeout_and_the_rule_of_every_undo() {
        let mut windowed = told();
        windowed.on_congestion(&path(), &CongestionEvent::loss());
        assert_eq!((windowed.rule.timeouts, windowed.slow_start.restarts), (0, 0));
        windowed.on_congestion(&path(), &TIMEOUT);
        windowed.on_congestion(&path(), &TIMEOUT.with_new_episode(false));
        assert_eq!((windowed.rule.timeouts, windowed.slow_start.restarts), (2, 2));
        windowed.on_spurious_loss(&path());
        windowed.on_spurious_loss(&path());
        assert_eq!(windowed.rule.undone, 1);
    }

    #[test]
    fn the_rule_is_told_how_long_the_application_left_the_flow_idle() {
        let mut windowed = told();
        let mut path = path();
        let mut send = |wait: u64, from_idle: bool, app_limited: bool| {
            path.now += Span::from_secs(wait);
            windowed.on_sent(
                &path,
                &Sent::new(0).with_from_idle(from_idle).with_app_limited(app_limited),
            );
        };
        send(1, false, false);
        send(2, false, true); // there was still data in flight
        send(3, true, false); // the window or the peer held it back
        send(4, true, true);
        assert_eq!(windowed.rule.pauses, [Span::from_secs(4)]);
    }
}
