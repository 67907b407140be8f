//! What leaves, and when: the window, pacing, bursts, the application and the peer's window
//! (tcp_write_xmit).

use super::Sender;
use super::timer::Timer;
use crate::rtt::timestamp;
use crate::{Ecn, Flags, Rto, Segment, pacing};
use dumbbell_cc::{CaState, CongestionControl, Sent};
use dumbbell_units::{Rate, Span, Time};

/// Whether the window was what limited sending (tcp_cwnd_validate).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WindowUse {
    pub(super) limited: bool,
    pub(super) max_outstanding: u32,
    round_end: u32,
}

impl Sender {
    /// New packets that the application and the peer's window allow.
    #[inline]
    pub(super) fn sendable(&mut self) -> u32 {
        if self.path.now >= self.stop {
            return 0;
        }
        let mut end = self.packets.min(self.window_end);
        if let Some(application) = &self.application {
            let written = application.written(self.path.now.since(self.established_at));
            if written < end {
                end = written;
                self.wake = self.established_at + application.due(written + 1);
            }
        }
        end.saturating_sub(self.board.next())
    }

    /// Decides whether a burst may leave now, and how long it is (tcp_write_xmit's loop head).
    #[inline(always)]
    pub(super) fn plan_burst(&mut self) -> bool {
        self.wake = Time::MAX;
        let cwnd = self.cwnd();
        let in_flight = self.path.in_flight;
        if in_flight >= cwnd {
            return self.stop_sending(true);
        }
        let now = self.path.now;
        if self.path.paced && self.pacer.next() > now {
            self.wake = self.pacer.next();
            return self.stop_sending(false);
        }
        if self.retransmits() {
            self.begin_burst(1);
            return true;
        }
        let sendable = self.sendable();
        if sendable == 0 {
            let app_limited = self.board.next() < self.window_end;
            if app_limited {
                self.rate.set_app_limited(&self.path);
                self.ran_dry = true;
            }
            return self.stop_sending(false);
        }
        let cwnd = if self.ran_dry { self.restart_after_idle() } else { cwnd };
        let quota = (cwnd / 2).max(1).min(cwnd - in_flight);
        let full = self.full_burst();
        if quota < full && quota < sendable && quota < cwnd / 3 && self.should_defer() {
            return self.stop_sending(true);
        }
        let packets = full.min(quota).min(sendable);
        self.pushes = packets > 1 || packets == sendable && !self.is_fed;
        self.begin_burst(packets);
        true
    }

    pub(super) fn full_burst(&self) -> u32 {
        if !self.stack.tso {
            return 1;
        }
        let rate = self.path.pacing_rate.unwrap_or(Rate::ZERO);
        let min_rtt = self.path.min_rtt.unwrap_or(Span::MAX);
        pacing::burst_size(&self.stack, &self.control, rate, min_rtt)
    }

    fn should_defer(&self) -> bool {
        let calm = !matches!(self.path.ca_state, CaState::Recovery | CaState::Loss);
        let oldest = (self.board.outstanding() > 0).then(|| self.oldest_sent_at());
        let srtt = self.path.srtt.unwrap_or(Span::ZERO);
        calm && pacing::should_defer(self.path.now, self.last_sent_at, oldest, srtt)
    }

    pub(super) fn begin_burst(&mut self, packets: u32) {
        self.burst = packets;
        self.sent_since_check = true;
        let now = self.path.now;
        if self.path.paced
            && let Some(rate) = self.pacing_rate()
        {
            // Linux paces what is in the socket's buffers: payload, without headers.
            let payload = f64::from(packets) * f64::from(self.stack.mss);
            self.pacer.on_burst(now, payload, rate, self.sent);
        }
        self.last_sent_at = now;
    }

    /// Nothing more can be sent now: note whether the window was the reason.
    #[inline]
    fn stop_sending(&mut self, by_window: bool) -> bool {
        let limited = by_window || self.path.in_flight >= self.cwnd();
        if self.sent_since_check || limited {
            let used = &mut self.window_used;
            let outstanding = self.board.outstanding();
            if limited
                || self.board.una() >= used.round_end
                || !used.limited && outstanding > used.max_outstanding
            {
                *used = WindowUse {
                    limited,
                    max_outstanding: outstanding,
                    round_end: self.board.next(),
                };
            }
        }
        if self.sent_since_check {
            self.sent_since_check = false;
            if self.timer.1 != Timer::Reorder {
                self.rearm_after_sending();
            }
        }
        false
    }

    /// The window to go on with after the application was idle: half for every retransmission
    /// timeout that this took, down to the initial one (tcp_cwnd_restart). Algorithms with a model
    /// of the path are spared, as in Linux. The other half of RFC 2861, a window that shrinks while
    /// little of it is used, is in Linux too but without effect there: every acknowledgement puts it
    /// off (tcp_cong_avoid).
    fn restart_after_idle(&mut self) -> u32 {
        let (idle, rto) = (self.path.now.since(self.last_sent_at), self.rtt.rto());
        let restarts = self.stack.slow_start_after_idle && !self.own_recovery;
        if !restarts || self.board.outstanding() > 0 || idle <= rto {
            return self.cwnd();
        }
        let timeouts = (idle.as_nanos() - 1) / rto.as_nanos();
        let cwnd = self.cwnd();
        let halved = cwnd >> timeouts.min(31);
        self.cc.on_restart_after_idle(f64::from(halved.max(cwnd.min(self.stack.initial_window))));
        self.refresh();
        self.cwnd()
    }

    /// The timeout counts from when the oldest packet was last sent (tcp_xmit_retransmit_queue).
    fn rearm_for_retransmission(&mut self, number: u32) {
        let restarts = self.stack.rto == Rto::Linux && self.timer.1 != Timer::Reorder;
        if number == self.board.una() && restarts {
            self.timer = (self.path.now + self.rtt.rto(), Timer::Rto);
        }
    }

    /// Sends the next packet of the burst.
    #[inline(always)]
    pub(super) fn emit(&mut self) -> Segment {
        self.burst -= 1;
        let from_idle = self.path.in_flight == 0;
        let outstanding = self.board.outstanding();
        let departure = self.rate.depart(&mut self.path, outstanding);
        let again = self.retransmission();
        let pushed =
            self.burst == 0 && again.map_or(self.pushes, |number| number + 1 == self.board.next());
        let number = match again {
            Some(number) => {
                self.board.retransmit(number, &departure);
                self.rack.retransmitted(self.path.now, number);
                self.undo.on_retransmit(timestamp(self.path.now));
                self.retransmitted += 1;
                self.rearm_for_retransmission(number);
                number
            }
            None => self.board.push(&departure),
        };
        self.sent += 1;
        self.path.in_flight += 1;
        self.path.next_seq = u64::from(self.board.next());
        if let Some(prr) = &mut self.prr {
            prr.on_sent();
        }
        let retransmission = again.is_some();
        let app_limited = std::mem::take(&mut self.ran_dry);
        let sent = Sent { seq: u64::from(number), retransmission, from_idle, app_limited };
        self.cc.on_sent(&self.path, &sent);
        if from_idle {
            self.refresh();
        }
        self.segment(number, retransmission, pushed)
    }

    /// Whether something is to be sent again, and before anything new.
    #[inline]
    fn retransmits(&mut self) -> bool {
        if self.board.lost_out() == 0 {
            return false;
        }
        if self.new_first {
            // Once some are on their way, the next acknowledgement is waited for (tcp_xmit_recovery).
            if self.sendable() > 0 || self.board.next() > self.high_seq {
                return false;
            }
            (self.new_first, self.doubts_timeout) = (false, false);
        }
        self.board.next_retransmission().is_some()
    }

    /// The packet that is to be sent again before anything new.
    #[inline]
    fn retransmission(&mut self) -> Option<u32> {
        if std::mem::take(&mut self.repeat_last) {
            return self.board.next().checked_sub(1);
        }
        if self.board.lost_out() == 0 || self.new_first {
            return None;
        }
        self.board.next_retransmission()
    }

    #[inline(always)]
    fn segment(&mut self, number: u32, retransmission: bool, pushed: bool) -> Segment {
        let mut flags = if pushed { Flags::PSH } else { Flags::default() };
        if retransmission {
            flags = flags.with(Flags::RETRANSMISSION);
        } else if self.stack.ecn != Ecn::Off {
            // Retransmissions are not ECN-capable (RFC 3168, 6.1.5).
            flags = flags.with(Flags::ECT);
            if std::mem::take(&mut self.cwr_pending) {
                flags = flags.with(Flags::CWR);
            }
        }
        let mut payload = self.stack.mss;
        if let Some(bytes) = self.bytes
            && number + 1 == self.packets
        {
            payload = (bytes - u64::from(number) * u64::from(payload)) as u16;
        }
        Segment {
            number,
            timestamp: timestamp(self.path.now),
            window: self.path.srtt.map_or(0, |srtt| srtt.as_micros() as u32),
            size: payload + self.stack.header,
            flags,
            ..Segment::default()
        }
    }
}
