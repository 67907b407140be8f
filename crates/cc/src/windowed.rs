//! The easy tier: an algorithm that is a rule for growing and a rule for shrinking a window.

use crate::{Ack, Congestion, CongestionControl, Control, Init, Inspect, Path, Sent, Signal};
use dumbbell_units::{Span, Time};

/// How a window grows in congestion avoidance and shrinks on congestion.
pub trait WindowRule {
    /// Packets by which `cwnd` grows on this acknowledgement, of which `counted` packets fall to
    /// congestion avoidance (fewer than `ack.counted` when slow start ends within it).
    fn increase(&mut self, cwnd: f64, counted: f64, path: &Path, ack: &Ack) -> f64;

    /// The slow start threshold after congestion; the window follows it.
    fn decrease(&mut self, cwnd: f64, path: &Path, event: &Congestion) -> f64;

    /// Told of every acknowledgement, in slow start and recovery too, before anything grows.
    #[inline]
    fn observe(&mut self, _path: &Path, _ack: &Ack) {}

    /// A retransmission timeout: forget what was learned.
    #[inline]
    fn on_timeout(&mut self) {}

    /// The last decrease was undone.
    #[inline]
    fn on_undo(&mut self) {}

    /// The flow sends again after the application had left it idle for `pause`.
    #[inline]
    fn on_restart(&mut self, _path: &Path, _pause: Span) {}

    /// Shows named internals.
    fn inspect(&self, _show: &mut dyn FnMut(Inspect)) {}
}

/// How a window grows in slow start, and when slow start ends before there is loss.
pub trait SlowStart {
    /// Whether slow start is to end at the present window. Asked once for every acknowledgement
    /// during slow start, before the window grows, even if it is not going to.
    #[inline]
    fn ends(&mut self, _cwnd: f64, _path: &Path, _ack: &Ack) -> bool {
        false
    }

    /// Packets by which `cwnd` grows.
    #[inline]
    fn increase(&mut self, _cwnd: f64, _path: &Path, ack: &Ack) -> f64 {
        f64::from(ack.counted)
    }

    /// The window was reduced to one packet and slow start begins again.
    #[inline]
    fn restart(&mut self, _path: &Path) {}

    /// Shows named internals.
    fn inspect(&self, _show: &mut dyn FnMut(Inspect)) {}
}

/// Slow start as RFC 5681 has it: a packet for every packet acknowledged, until there is loss.
#[derive(Clone, Copy, Debug, Default)]
pub struct StandardSlowStart;

impl SlowStart for StandardSlowStart {}

/// A window algorithm made of a rule and a slow start.
///
/// The frame holds what RFC 5681 gives all of them: slow start below ssthresh, no growth in
/// recovery or when the window is not used, one reduction an episode, one packet after a timeout,
/// never below two packets of threshold.
#[derive(Clone, Debug)]
pub struct Windowed<R, S> {
    rule: R,
    slow_start: S,
    cwnd: f64,
    ssthresh: f64,
    /// Window and threshold before the last episode, for undoing it (RFC 4015).
    before: Option<(f64, f64)>,
    last_sent: Time,
}

impl<R: WindowRule, S: SlowStart> Windowed<R, S> {
    /// The algorithm at the beginning of a connection.
    pub fn new(rule: R, slow_start: S, init: &Init) -> Windowed<R, S> {
        Windowed {
            rule,
            slow_start,
            cwnd: init.initial_window,
            ssthresh: f64::INFINITY,
            before: None,
            last_sent: init.now,
        }
    }

    fn grow(&mut self, path: &Path, ack: &Ack) {
        let mut counted = f64::from(ack.counted);
        if self.cwnd < self.ssthresh {
            let grown = self.cwnd + self.slow_start.increase(self.cwnd, path, ack);
            self.cwnd = grown.min(self.ssthresh);
            // As in Linux's tcp_slow_start: what is left over when the threshold is reached
            // counts towards congestion avoidance.
            counted = counted.min(grown - self.cwnd);
            if counted <= 0.0 {
                return;
            }
        }
        self.cwnd += self.rule.increase(self.cwnd, counted, path, ack);
    }
}

impl<R: WindowRule, S: SlowStart> CongestionControl for Windowed<R, S> {
    #[inline]
    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        self.rule.observe(path, ack);
        if self.cwnd < self.ssthresh && self.slow_start.ends(self.cwnd, path, ack) {
            self.ssthresh = self.cwnd;
        }
        if path.cwnd_limited && !path.phase.is_reducing() && ack.counted > 0 {
            self.grow(path, ack);
        }
    }

    fn on_congestion(&mut self, path: &Path, event: &Congestion) {
        if event.new_episode {
            self.before = Some((self.cwnd, self.ssthresh));
            self.ssthresh = self.rule.decrease(self.cwnd, path, event).max(2.0);
            self.cwnd = self.ssthresh;
        }
        if event.signal == Signal::Timeout {
            self.cwnd = 1.0;
            self.rule.on_timeout();
            self.slow_start.restart(path);
        }
    }

    #[inline]
    fn control(&self) -> Control {
        Control { cwnd: self.cwnd, ssthresh: self.ssthresh, pacing_rate: None, burst: None }
    }

    #[inline]
    fn on_sent(&mut self, path: &Path, sent: &Sent) {
        if sent.from_idle && sent.app_limited {
            self.rule.on_restart(path, path.now.since(self.last_sent));
        }
        self.last_sent = path.now;
    }

    fn on_spurious_loss(&mut self, _path: &Path) {
        if let Some((cwnd, ssthresh)) = self.before.take() {
            self.cwnd = self.cwnd.max(cwnd);
            self.ssthresh = self.ssthresh.max(ssthresh);
            self.rule.on_undo();
        }
    }

    fn inspect(&self, show: &mut dyn FnMut(Inspect)) {
        self.slow_start.inspect(show);
        self.rule.inspect(show);
    }
}
