//! Window algorithms: a rule for congestion avoidance ([`WindowRule`]) and a slow start
//! ([`SlowStart`]) inside the frame of RFC 5681 ([`Windowed`]).

use crate::{
    Ack, CongestionControl, CongestionEvent, ConnectionConfig, ControlParameters, Metric, Path,
    Sent, Signal, SlowStart,
};
use dumbbell_units::{Span, Time};
use libm::floor;

/// How a window grows in congestion avoidance and shrinks on congestion.
///
/// [`Windowed`] calls a rule in this order. On each acknowledgement:
///
/// 1. [`observe`](Self::observe), always. In a recovery of which [`SlowStart::recover`] sets the
///    window, the acknowledgement is done.
/// 2. [`set_window`](Self::set_window), unless a reduction is in progress
///    ([`CaState::is_reducing`](crate::CaState::is_reducing)). If it returns a window, the
///    acknowledgement is done.
/// 3. [`SlowStart::should_exit`], if `cwnd < ssthresh`; in a recovery, for its window ([`Path::prr_cwnd`]).
/// 4. If the window was limiting (or [`grows_when_app_limited`](Self::grows_when_app_limited)) and
///    no reduction is in progress: [`SlowStart::increase`] up to `ssthresh`, then
///    [`increase`](Self::increase) with what is left of the acknowledged packets.
///
/// On congestion: [`SlowStart::on_exit`] and [`decrease`](Self::decrease) once an episode; for a
/// timeout also [`on_timeout`](Self::on_timeout) and [`SlowStart::restart`].
///
/// A delay-based rule decides in `set_window` and returns 0 from `increase`; a rule that only
/// measures once a round trip may do so in `observe` or `set_window`.
pub trait WindowRule {
    /// The handshake is complete.
    #[inline]
    fn on_established(&mut self, _path: &Path) {}

    /// Packets by which `cwnd` grows in congestion avoidance. `acked` is the part of `ack.acked`
    /// that slow start did not use.
    fn increase(&mut self, cwnd: f64, acked: f64, path: &Path, ack: &Ack) -> f64;

    /// The slow start threshold after congestion. The window is set to it too.
    fn decrease(&mut self, cwnd: f64, path: &Path, event: &CongestionEvent) -> f64;

    /// The same after congestion in slow start.
    fn decrease_in_slow_start(&mut self, cwnd: f64, path: &Path, event: &CongestionEvent) -> f64 {
        self.decrease(cwnd, path, event)
    }

    /// Takes measurements from an acknowledgement; called in slow start and recovery too.
    #[inline]
    fn observe(&mut self, _path: &Path, _ack: &Ack) {}

    /// A new window and slow start threshold, packets, for rules that set the window themselves
    /// (by delay, or once a round trip). `None` lets it grow by `increase` instead.
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

    /// Whether the window grows now even if it does not limit sending.
    #[inline]
    fn grows_when_app_limited(&self) -> bool {
        false
    }

    /// Whether an increase below zero lowers `ssthresh` with the window. If not, slow start undoes
    /// the decrease.
    #[inline]
    fn lowers_ssthresh(&self) -> bool {
        false
    }

    /// A retransmission timeout, after `decrease`.
    #[inline]
    fn on_timeout(&mut self) {}

    /// The last decrease was undone, because the losses were spurious.
    #[inline]
    fn on_undo(&mut self, _path: &Path) {}

    /// A packet is sent with nothing in flight (Linux's `CA_EVENT_TX_START`); `path` does not count it yet.
    /// `pause` is how long nothing was sent because the application had no data, or until the timeout
    /// that the packet is retransmitted after; else zero.
    #[inline]
    fn on_restart(&mut self, _path: &Path, _pause: Span) {}

    /// The window of `cwnd` packets begins anew after an idle period (Linux's `CA_EVENT_CWND_RESTART`).
    #[inline]
    fn on_cwnd_restart(&mut self, _cwnd: f64) {}

    /// The packet size changed: multiplies every state variable that is in packets by `factor`, so that
    /// it keeps its bytes.
    #[inline]
    fn on_mtu_update(&mut self, _factor: f64) {}

    /// Calls `show` once for each named internal.
    fn inspect(&self, _show: &mut dyn FnMut(Metric)) {}
}

/// A window algorithm: a rule, a slow start and the frame of RFC 5681.
///
/// The frame is common to all rules: slow start below `ssthresh`; no growth in recovery or while
/// the window does not limit sending (unless the rule says so); one reduction an episode; one
/// packet more than is in flight after a timeout; `ssthresh` of at least 2 packets.
///
/// Differences from RFC 5681, all as in Linux:
///
/// | RFC 5681 | here |
/// |---|---|
/// | `ssthresh` is computed from FlightSize (equation 4). | The rule computes it from `cwnd`, which does not grow unused. |
/// | A timeout sets `cwnd` to 1 packet (3.1). | To one packet more than is in flight. |
/// | An application-limited window may grow. | It does not, unless the rule says so. |
///
/// ```
/// use dumbbell_cc::{
///     Ack, CongestionControl, CongestionEvent, ConnectionConfig, Path, StandardSlowStart, WindowRule,
///     Windowed,
/// };
/// use dumbbell_units::Time;
///
/// /// AIMD: `a` packets per round trip, and a factor of `b` on loss.
/// #[derive(Clone, Debug)]
/// struct Aimd {
///     a: f64,
///     b: f64,
/// }
///
/// impl WindowRule for Aimd {
///     fn increase(&mut self, cwnd: f64, acked: f64, _path: &Path, _ack: &Ack) -> f64 {
///         self.a * acked / cwnd
///     }
///     fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
///         self.b * cwnd
///     }
/// }
///
/// let config = ConnectionConfig::new(Time::ZERO, 1448);
/// let mut aimd = Windowed::new(Aimd { a: 1.0, b: 0.8 }, StandardSlowStart, &config);
/// aimd.on_congestion(&Path::new(1448, Time::ZERO), &CongestionEvent::loss());
/// assert_eq!(aimd.control().cwnd, 8.0);
/// ```
#[derive(Clone, Debug)]
pub struct Windowed<R, S> {
    rule: R,
    slow_start: S,
    cwnd: f64,
    ssthresh: f64,
    /// `cwnd` and `ssthresh` before the last congestion episode, to undo its reduction (RFC 4015; Linux
    /// `prior_cwnd`, `prior_ssthresh`); [`NO_UNDO`] if there is none.
    undo: (f64, f64),
    last_sent: Time,
    /// `maxFS` of Rate-Limited Increase, packets; infinite without it.
    max_fs: f64,
}

/// No window is 0.
const NO_UNDO: (f64, f64) = (0.0, 0.0);

impl<R: WindowRule, S: SlowStart> Windowed<R, S> {
    /// The algorithm at the start of a connection.
    pub fn new(rule: R, slow_start: S, init: &ConnectionConfig) -> Windowed<R, S> {
        Windowed {
            rule,
            slow_start,
            cwnd: init.initial_window,
            ssthresh: f64::INFINITY,
            undo: NO_UNDO,
            last_sent: init.now,
            max_fs: f64::INFINITY,
        }
    }

    /// With Rate-Limited Increase (draft-ietf-ccwg-ratelimited-increase, section 3): the window grows
    /// even if it does not limit sending, up to what the maximum flight since its last reduction allows.
    ///
    /// | | may grow without being used | up to |
    /// |---|---|---|
    /// | RFC 5681 | yes | |
    /// | RFC 9002, section 7.8 | no | |
    /// | Linux, the default here | in slow start, if half is used | twice what was used |
    /// | the draft | yes | `limit(maxFS)`: `2 maxFS` in slow start, `maxFS + 1` in Reno's avoidance |
    ///
    /// A window above that, after a reduction, stays, so that slow start does not begin anew; the draft
    /// would lower it. For other rules, `limit(maxFS)` is `maxFS` and their growth in a round trip at the
    /// present rate. A rule that sets its window itself ([`WindowRule::set_window`]) is not limited.
    #[must_use]
    pub fn with_rate_limited_increase(self) -> Windowed<R, S> {
        Windowed { max_fs: self.cwnd, ..self }
    }

    /// Sets the initial slow start threshold, packets (RFC 5681 allows any; old kernels had one).
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

    fn is_rate_limited_increase(&self) -> bool {
        cfg!(feature = "all-algorithms") && self.max_fs.is_finite()
    }

    /// Updates `maxFS`. A flight that leaves no room for a packet has at least the size of the window.
    fn update_max_fs(&mut self, ack: &Ack) {
        let flight_size = f64::from(ack.prior_in_flight);
        let is_full = flight_size + 1.0 > self.cwnd;
        self.max_fs = self.max_fs.max(flight_size).max(if is_full { self.cwnd } else { 0.0 });
    }

    /// The window is reduced.
    fn reset_max_fs(&mut self) {
        if self.is_rate_limited_increase() {
            self.max_fs = 0.0;
        }
    }

    /// Grows up to `limit(maxFS)`.
    fn grow_rate_limited(&mut self, path: &Path, ack: &Ack) {
        let (before, in_slow_start) = (self.cwnd, self.cwnd < self.ssthresh);
        self.grow(path, ack);
        let growth = (self.cwnd - before) / f64::from(ack.acked);
        let limit = self.max_fs + growth * if in_slow_start { self.max_fs } else { before };
        self.cwnd = self.cwnd.min(limit.max(before));
    }

    fn grow(&mut self, path: &Path, ack: &Ack) {
        let mut acked = f64::from(ack.acked);
        if self.cwnd < self.ssthresh {
            let grown = self.cwnd + self.slow_start.increase(self.cwnd, path, ack);
            self.cwnd = grown.min(self.ssthresh);
            // tcp_slow_start: packets left over at the threshold count in congestion avoidance.
            acked = acked.min(grown - self.cwnd);
            if acked <= 0.0 {
                return;
            }
        }
        self.cwnd += self.rule.increase(self.cwnd, acked, path, ack);
        if self.cwnd < self.ssthresh && self.rule.lowers_ssthresh() {
            self.cwnd = self.cwnd.max(1.0);
            self.ssthresh = self.cwnd.max(2.0);
        }
    }
}

impl<R: WindowRule, S: SlowStart> CongestionControl for Windowed<R, S> {
    fn on_established(&mut self, path: &Path) {
        self.cwnd = self.slow_start.initial_window(path).unwrap_or(self.cwnd);
        self.rule.on_established(path);
    }

    #[inline(always)]
    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        self.rule.observe(path, ack);
        if let Some(cwnd) = self.slow_start.recover(self.cwnd, path, ack) {
            (self.cwnd, self.ssthresh) = (cwnd, cwnd.max(2.0));
            return;
        }
        if !path.ca_state.is_reducing()
            && let Some((cwnd, ssthresh)) =
                self.rule.set_window(self.cwnd, self.ssthresh, path, ack)
        {
            self.cwnd = cwnd.max(1.0);
            self.ssthresh = ssthresh.max(2.0);
            return;
        }
        // The window in force: below `ssthresh` during a reduction too (tcp_in_slow_start).
        let cwnd = path.prr_cwnd.map_or(self.cwnd, f64::from);
        if cwnd < self.ssthresh && self.slow_start.should_exit(cwnd, path, ack) {
            self.ssthresh = cwnd.max(2.0);
            self.cwnd = self.cwnd.min(self.ssthresh);
        }
        if self.is_rate_limited_increase() {
            self.update_max_fs(ack);
        }
        if path.ca_state.is_reducing() || ack.acked == 0 {
            return;
        }
        if self.is_rate_limited_increase() && !path.window_full {
            self.grow_rate_limited(path, ack);
        } else if path.cwnd_limited || self.rule.grows_when_app_limited() {
            self.grow(path, ack);
        }
    }

    fn on_congestion(&mut self, path: &Path, event: &CongestionEvent) {
        if event.new_episode {
            // Linux does not undo an episode begun by an ECN echo (tcp_enter_cwr:
            // prior_ssthresh = 0).
            let can_undo = event.signal != Signal::Ecn;
            self.undo = if can_undo { (self.cwnd, self.ssthresh) } else { NO_UNDO };
            self.slow_start.on_exit();
            self.reset_max_fs();
            let cwnd = self.cwnd;
            let threshold = match cwnd < self.ssthresh {
                true => self.rule.decrease_in_slow_start(cwnd, path, event),
                false => self.rule.decrease(cwnd, path, event),
            };
            self.ssthresh = threshold.max(2.0);
            self.cwnd = self.ssthresh;
            if event.signal != Signal::Timeout
                && let Some(cwnd) = self.slow_start.begin_recovery(cwnd, self.ssthresh, path)
            {
                (self.cwnd, self.ssthresh) = (cwnd, cwnd);
            }
        }
        if event.signal == Signal::Timeout {
            // tcp_enter_loss: packets that were sent recently are not marked lost, so they stay in flight.
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
        if sent.from_idle {
            let mut before = path.clone();
            before.next_seq -= u64::from(!sent.retransmission && before.next_seq > 0);
            before.in_flight = 0;
            let pauses = sent.app_limited || sent.retransmission;
            let pause = if pauses { path.now.since(self.last_sent) } else { Span::ZERO };
            self.rule.on_restart(&before, pause);
        }
        self.last_sent = path.now;
    }

    fn on_restart_after_idle(&mut self, cwnd: f64) {
        self.rule.on_cwnd_restart(self.cwnd);
        // Linux's tcp_current_ssthresh: at least 3/4 of the window before the idle period.
        self.ssthresh = self.ssthresh.max(floor(self.cwnd / 2.0) + floor(self.cwnd / 4.0));
        self.reset_max_fs();
        self.cwnd = cwnd;
    }

    fn uses_prr(&self) -> bool {
        !self.slow_start.sets_recovery_window()
    }

    fn on_mtu_update(&mut self, path: &Path, previous_mss: u32) {
        let factor = f64::from(previous_mss) / f64::from(path.mss);
        self.cwnd = (self.cwnd * factor).max(1.0);
        self.ssthresh = (self.ssthresh * factor).max(2.0);
        self.undo = (self.undo.0 * factor, self.undo.1 * factor);
        self.max_fs *= factor;
        self.rule.on_mtu_update(factor);
    }

    fn on_persistent_congestion(&mut self, path: &Path) {
        self.on_congestion(path, &CongestionEvent::persistent_congestion(path));
        // RFC 9002's kMinimumWindow.
        self.cwnd = 2.0;
    }

    fn on_receive_window_penalty(&mut self, _path: &Path) {
        // In slow start the threshold stays, so that the window soon recovers.
        if self.cwnd >= self.ssthresh {
            self.ssthresh = (self.ssthresh / 2.0).max(2.0);
        }
        self.cwnd = (self.cwnd / 2.0).max(1.0);
    }

    fn on_spurious_loss(&mut self, path: &Path) {
        let (cwnd, ssthresh) = core::mem::replace(&mut self.undo, NO_UNDO);
        if cwnd > 0.0 {
            self.cwnd = self.cwnd.max(cwnd);
            self.ssthresh = self.ssthresh.max(ssthresh);
            self.rule.on_undo(path);
        }
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.slow_start.inspect(show);
        self.rule.inspect(show);
    }
}

#[cfg(test)]
mod tests;
