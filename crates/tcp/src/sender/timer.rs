//! The retransmission timer: retransmission timeout (RFC 6298), tail loss probe (RFC 8985,
//! section 7) and RACK's reordering timer (section 6.2, step 5).

use super::{Sender, TailLossProbe};
use dumbbell_cc::CaState;
use dumbbell_units::{Span, Time};

/// The sender's one timer (Linux `icsk_retransmit_timer`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timer {
    pub(super) expires: Time,
    pub(super) kind: TimerKind,
}

/// What the timer stands for (Linux `icsk_pending`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimerKind {
    /// Retransmission timeout (`ICSK_TIME_RETRANS`).
    Rto,
    /// Tail loss probe (`ICSK_TIME_LOSS_PROBE`).
    LossProbe,
    /// End of RACK's reordering window (`ICSK_TIME_REO_TIMEOUT`).
    Reorder,
}

impl Timer {
    pub(super) const OFF: Timer = Timer::rto(Time::MAX);

    #[inline]
    pub(super) const fn rto(expires: Time) -> Timer {
        Timer { expires, kind: TimerKind::Rto }
    }
}

impl Sender {
    /// Restarts the timer now (`tcp_set_xmit_timer`).
    #[inline]
    pub(super) fn set_xmit_timer(&mut self) {
        if self.scoreboard.packets_out() == 0 {
            self.timer = Timer::OFF;
        } else {
            self.arm(self.path.now + self.rtt.rto());
        }
    }

    /// Restarts the probe after new data was sent (`tcp_event_new_data_sent`). A running timeout
    /// stays, and the probe comes no later than the oldest packet's timeout
    /// (`tcp_schedule_loss_probe`).
    pub(super) fn rearm_after_sending(&mut self) {
        let is_running = self.timer.expires != Time::MAX && self.timer.kind == TimerKind::Rto;
        self.arm(if is_running { self.timer.expires } else { self.oldest_rto_at() });
    }

    /// Arms a probe, or the timeout at `rto_at` if no probe is allowed. The probe comes no later
    /// than `rto_at`, unless that has passed.
    #[inline]
    fn arm(&mut self, rto_at: Time) {
        let now = self.path.now;
        self.timer = match self.calc_pto() {
            Some(pto) => {
                let expires = if rto_at > now { rto_at.min(now + pto) } else { now + pto };
                Timer { expires, kind: TimerKind::LossProbe }
            }
            None => Timer::rto(rto_at.max(now)),
        };
    }

    /// The probe timeout (RFC 8985, 7.2: `TLP_calc_PTO`): two round trips, and with one packet out
    /// the worst delayed acknowledgement, for which Linux takes its minimum RTO. `None` if a probe
    /// is not allowed.
    fn calc_pto(&self) -> Option<Span> {
        let is_allowed = matches!(self.path.ca_state, CaState::Open | CaState::Cwr);
        if !self.stack.tail_loss_probe || !is_allowed {
            return None;
        }
        let srtt = self.path.srtt?;
        let max_ack_delay = if self.scoreboard.packets_out() == 1 {
            Span::from_nanos(self.stack.min_rto_ns)
        } else {
            Span::from_millis(2) // TCP_TIMEOUT_MIN
        };
        Some(srtt * 2 + max_ack_delay)
    }

    /// When the oldest outstanding packet was last sent.
    pub(super) fn oldest_sent_at(&self) -> Time {
        self.scoreboard.packet(self.scoreboard.una()).sent_at()
    }

    /// The oldest outstanding packet's timeout (`tcp_rto_delta_us`).
    fn oldest_rto_at(&self) -> Time {
        self.oldest_sent_at() + self.rtt.rto()
    }

    /// Arms the oldest outstanding packet's timeout (`tcp_rearm_rto`).
    fn rearm_rto(&mut self) {
        self.timer = Timer::rto(self.oldest_rto_at().max(self.path.now));
    }

    /// The timer expired (`tcp_write_timer_handler`).
    pub(super) fn on_retransmission_timer(&mut self) {
        if self.scoreboard.packets_out() == 0 {
            self.timer = Timer::OFF;
            return;
        }
        match self.timer.kind {
            TimerKind::Rto => self.enter_loss(),
            // A probe is outstanding. Sending since then has postponed the timeout, nothing else.
            TimerKind::LossProbe if self.tlp.is_some() => self.rearm_rto(),
            TimerKind::LossProbe => {
                self.timer = Timer::rto(self.path.now + self.rtt.rto());
                self.send_loss_probe();
            }
            TimerKind::Reorder => {
                self.rearm_rto();
                self.rack_reo_timeout();
            }
        }
    }

    /// Sends one packet regardless of the window: new data if there is any, otherwise the last
    /// packet again (RFC 8985, 7.3; `tcp_send_loss_probe`). Arms no further probe.
    fn send_loss_probe(&mut self) {
        let sendable = self.sendable();
        let is_retrans = sendable == 0;
        self.burst_ends_with_psh = sendable == 1 && !self.is_subflow;
        self.tlp = Some(TailLossProbe { end_seq: self.scoreboard.next_seq(), is_retrans });
        self.tlp_retransmits = is_retrans;
        self.begin_burst(1);
        self.sent_since_stop = false;
    }
}
