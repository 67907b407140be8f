//! The retransmission timer: timeouts, tail loss probes (RFC 8985, section 7) and the end of RACK's
//! reordering window.

use super::Sender;
use dumbbell_cc::CaState;
use dumbbell_units::{Span, Time};

/// What the retransmission timer will do when it expires; Linux has one timer for all three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// Retransmission timeout.
    Rto,
    /// Tail loss probe.
    Probe,
    /// RACK's reordering window ends.
    Reorder,
}

impl Sender {
    /// Sets the retransmission timer anew from the present (tcp_set_xmit_timer).
    #[inline]
    pub(super) fn rearm(&mut self) {
        if self.board.outstanding() == 0 {
            self.timer = (Time::MAX, Timer::Rto);
        } else {
            self.arm(self.path.now + self.rtt.rto());
        }
    }

    /// Sending moves the probe, but not a timeout that is running, and neither beyond the timeout of
    /// the oldest packet (tcp_event_new_data_sent, tcp_schedule_loss_probe).
    pub(super) fn rearm_after_sending(&mut self) {
        let running = self.timer.0 != Time::MAX && self.timer.1 == Timer::Rto;
        self.arm(if running { self.timer.0 } else { self.oldest_due() });
    }

    /// Arms the timeout for `due`, or a probe in its place, which comes no later unless that is past.
    #[inline]
    fn arm(&mut self, due: Time) {
        let now = self.path.now;
        self.timer = match self.probe_timeout() {
            Some(timeout) if due > now => (due.min(now + timeout), Timer::Probe),
            Some(timeout) => (now + timeout, Timer::Probe),
            None => (due.max(now), Timer::Rto),
        };
    }

    /// Two round trips, and time for a delayed acknowledgement if one packet is out
    /// (RFC 8985, 7.2; Linux allows its minimum RTO for it). Only when nothing is amiss.
    fn probe_timeout(&self) -> Option<Span> {
        let calm = matches!(self.path.ca_state, CaState::Open | CaState::Cwr);
        if !self.stack.tail_loss_probe || !calm {
            return None;
        }
        let srtt = self.path.srtt?;
        let delayed_ack = if self.board.outstanding() == 1 {
            Span::from_nanos(self.stack.min_rto_ns)
        } else {
            Span::from_millis(2)
        };
        Some(srtt * 2 + delayed_ack)
    }

    /// When the oldest packet out was last sent.
    pub(super) fn oldest_sent_at(&self) -> Time {
        self.board.packet(self.board.una()).sent_at()
    }

    /// The timeout, counted from then (tcp_rto_delta_us).
    fn oldest_due(&self) -> Time {
        self.oldest_sent_at() + self.rtt.rto()
    }

    fn rearm_from_oldest(&mut self) {
        self.timer = (self.oldest_due().max(self.path.now), Timer::Rto);
    }

    pub(super) fn on_retransmission_timer(&mut self) {
        if self.board.outstanding() == 0 {
            self.timer = (Time::MAX, Timer::Rto);
            return;
        }
        match self.timer.1 {
            Timer::Rto => self.on_timeout(),
            // One is out already: what is sent since has put off the timeout, no more.
            Timer::Probe if self.probe.is_some() => self.rearm_from_oldest(),
            Timer::Probe => {
                self.timer = (self.path.now + self.rtt.rto(), Timer::Rto);
                self.send_probe();
            }
            Timer::Reorder => {
                self.rearm_from_oldest();
                self.on_reorder_timer();
            }
        }
    }

    /// Lets one packet go regardless of the window: new data if there is some, else the last
    /// packet again (RFC 8985, 7.3). It arms no other probe.
    fn send_probe(&mut self) {
        let sendable = self.sendable();
        let repeat = sendable == 0;
        self.pushes = sendable == 1 && !self.is_fed;
        self.probe = Some((self.board.next(), repeat));
        self.repeat_last = repeat;
        self.begin_burst(1);
        self.sent_since_check = false;
    }
}
