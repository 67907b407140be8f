//! The retransmission timer: retransmission timeout (RFC 6298), tail loss probe (RFC 8985,
//! section 7) and RACK's reordering timer (section 6.2, step 5).

use super::{Sender, TailLossProbe};
use dumbbell_cc::CaState;
use dumbbell_units::{Span, Time};

/// When the probe is due if no round-trip time is known (`TCP_TIMEOUT_INIT`).
const TIMEOUT_INIT: Span = Span::from_secs(1);

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
    /// When a timer of `delay` expires; see [`Stack::expiry`](crate::Stack::expiry).
    #[inline]
    pub(super) fn expiry(&self, delay: Span) -> Time {
        self.stack.expiry(self.path.now, delay)
    }

    /// The same for a timer that runs from the next departure on, which is counted in whole jiffies
    /// (`tcp_reset_xmit_timer`, `tcp_pacing_delay`).
    #[inline]
    pub(super) fn expiry_after_departure(&self, delay: Span) -> Time {
        let held_back = self.path.departure.since(self.path.now).as_nanos();
        let below_a_jiffy = held_back.checked_rem(self.path.jiffy.as_nanos()).unwrap_or(0);
        self.expiry(delay + Span::from_nanos(held_back - below_a_jiffy))
    }

    /// Restarts the timeout, from the next departure on.
    #[inline]
    pub(super) fn restart_rto(&mut self) {
        self.timer = Timer::rto(self.expiry_after_departure(self.rtt.rto()));
    }

    /// Restarts the timer now (`tcp_set_xmit_timer`).
    #[inline]
    pub(super) fn set_xmit_timer(&mut self) {
        if self.scoreboard.packets_out() == 0 {
            self.timer = Timer::OFF;
        } else {
            match self.calc_pto() {
                Some(pto) => self.timer = self.loss_probe(pto, self.rtt.rto()),
                None => self.restart_rto(),
            }
        }
    }

    /// Restarts the probe after new data was sent, or starts the timeout (`tcp_event_new_data_sent`,
    /// `tcp_write_xmit`). A running timeout stays if no probe is allowed.
    pub(super) fn rearm_after_sending(&mut self) {
        let is_running = self.timer.expires != Time::MAX && self.timer.kind == TimerKind::Rto;
        match self.calc_pto() {
            Some(pto) => self.timer = self.loss_probe(pto, self.rto_left()),
            None if is_running => {}
            None => self.rearm_rto(),
        }
    }

    /// A probe after `pto`, but no later than the timeout in `rto_left`, unless that has passed
    /// (`tcp_schedule_loss_probe`).
    #[inline]
    fn loss_probe(&self, pto: Span, rto_left: Span) -> Timer {
        let delay = if rto_left == Span::ZERO { pto } else { pto.min(rto_left) };
        Timer { expires: self.expiry_after_departure(delay), kind: TimerKind::LossProbe }
    }

    /// The probe timeout (RFC 8985, 7.2: `TLP_calc_PTO`): two round trips, and with one packet out
    /// the worst delayed acknowledgement, for which Linux takes its minimum RTO. `None` if a probe
    /// is not allowed.
    fn calc_pto(&self) -> Option<Span> {
        let is_allowed = matches!(self.path.ca_state, CaState::Open | CaState::Cwr);
        if !self.stack.tail_loss_probe || !is_allowed {
            return None;
        }
        let Some(srtt) = self.path.srtt else { return Some(TIMEOUT_INIT) };
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

    /// Time until the oldest outstanding packet's timeout (`tcp_rto_delta_us`).
    fn rto_left(&self) -> Span {
        let rto = self.rtt.whole_jiffies(self.rtt.rto());
        (self.oldest_sent_at() + rto).since(self.path.now)
    }

    /// Arms the oldest outstanding packet's timeout (`tcp_rearm_rto`).
    fn rearm_rto(&mut self) {
        let left = self.rto_left().max(Span::from_micros(1));
        self.timer = Timer::rto(self.expiry_after_departure(left));
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
                self.restart_rto();
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
        self.burst_ends_with_psh = sendable == 1 && !self.path.is_subflow;
        self.tlp = Some(TailLossProbe { end_seq: self.scoreboard.next_seq(), is_retrans });
        self.tlp_retransmits = is_retrans;
        self.begin_burst(1);
        self.sent_since_stop = false;
    }
}
