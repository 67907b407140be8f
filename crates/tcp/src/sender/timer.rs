//! The retransmission timer: timeouts, tail loss probes (RFC 8985, section 7) and the end of RACK's
//! reordering window.

use super::Sender;
use dumbbell_cc::CaState;
use dumbbell_units::{Span, Time};

/// What the retransmission timer will do when it expires; Linux has one timer for all three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerKind {
    /// Retransmission timeout.
    Rto,
    /// Tail loss probe.
    LossProbe,
    /// RACK's reordering window ends.
    Reorder,
}

impl Sender {
    /// Sets the retransmission timer anew from the present (tcp_set_xmit_timer).
    #[inline]
    pub(super) fn set_xmit_timer(&mut self) {
        if self.scoreboard.packets_out() == 0 {
            self.timer = (Time::MAX, TimerKind::Rto);
        } else {
            self.arm(self.path.now + self.rtt.rto());
        }
    }

    /// Sending moves the probe, but not a timeout that is running, and neither beyond the timeout of
    /// the oldest packet (tcp_event_new_data_sent, tcp_schedule_loss_probe).
    pub(super) fn rearm_after_sending(&mut self) {
        let running = self.timer.0 != Time::MAX && self.timer.1 == TimerKind::Rto;
        self.arm(if running { self.timer.0 } else { self.oldest_rto_at() });
    }

    /// Arms the timeout for `due`, or a probe in its place, which comes no later unless that is past.
    #[inline]
    fn arm(&mut self, due: Time) {
        let now = self.path.now;
        self.timer = match self.calc_pto() {
            Some(timeout) if due > now => (due.min(now + timeout), TimerKind::LossProbe),
            Some(timeout) => (now + timeout, TimerKind::LossProbe),
            None => (due.max(now), TimerKind::Rto),
        };
    }

    /// Two round trips, and time for a delayed acknowledgement if one packet is out
    /// (RFC 8985, 7.2; Linux allows its minimum RTO for it). Only when nothing is amiss.
    fn calc_pto(&self) -> Option<Span> {
        let calm = matches!(self.path.ca_state, CaState::Open | CaState::Cwr);
        if !self.stack.tail_loss_probe || !calm {
            return None;
        }
        let srtt = self.path.srtt?;
        let delayed_ack = if self.scoreboard.packets_out() == 1 {
            Span::from_nanos(self.stack.min_rto_ns)
        } else {
            Span::from_millis(2)
        };
        Some(srtt * 2 + delayed_ack)
    }

    /// When the oldest packet out was last sent.
    pub(super) fn oldest_sent_at(&self) -> Time {
        self.scoreboard.packet(self.scoreboard.una()).sent_at()
    }

    /// The timeout, counted from then (tcp_rto_delta_us).
    fn oldest_rto_at(&self) -> Time {
        self.oldest_sent_at() + self.rtt.rto()
    }

    fn rearm_rto(&mut self) {
        self.timer = (self.oldest_rto_at().max(self.path.now), TimerKind::Rto);
    }

    pub(super) fn on_retransmission_timer(&mut self) {
        if self.scoreboard.packets_out() == 0 {
            self.timer = (Time::MAX, TimerKind::Rto);
            return;
        }
        match self.timer.1 {
            TimerKind::Rto => self.enter_loss(),
            // One is out already: what is sent since has put off the timeout, no more.
            TimerKind::LossProbe if self.tlp.is_some() => self.rearm_rto(),
            TimerKind::LossProbe => {
                self.timer = (self.path.now + self.rtt.rto(), TimerKind::Rto);
                self.send_loss_probe();
            }
            TimerKind::Reorder => {
                self.rearm_rto();
                self.rack_reo_timeout();
            }
        }
    }

    /// Lets one packet go regardless of the window: new data if there is some, else the last
    /// packet again (RFC 8985, 7.3). It arms no other probe.
    fn send_loss_probe(&mut self) {
        let sendable = self.sendable();
        let repeat = sendable == 0;
        self.burst_ends_with_psh = sendable == 1 && !self.is_subflow;
        self.tlp = Some((self.scoreboard.next_seq(), repeat));
        self.tlp_retransmits = repeat;
        self.begin_burst(1);
        self.sent_since_stop = false;
    }
}
