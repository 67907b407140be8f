//! Loss detection and the recovery state: Open, Disorder, CWR, Recovery and Loss, and what leads
//! from one to the other (Linux's `tcp_fastretrans_alert`, and the timers that change it).
//!
//! | here | Linux | RFC |
//! |---|---|---|
//! | [`Sender::fastretrans_alert`] | `tcp_fastretrans_alert` | 5681, 6675, 8985 |
//! | [`Sender::undo_cwnd_reduction`] | `tcp_undo_cwnd_reduction` | 4015 |
//! | [`Sender::process_loss`] | `tcp_process_loss` | 5682 |
//! | [`Sender::identify_packet_loss`] | `tcp_identify_packet_loss` | 6675, 8985 |
//! | [`Sender::rack_reo_timeout`] | `tcp_rack_reo_timeout` | 8985, section 6.2, step 5 |
//! | [`Sender::enter_loss`] | `tcp_enter_loss` | 5681, section 3.1; 6298, section 5; 8985, section 6.3 |

use super::acknowledge::AckSummary;
use super::timer::{Timer, TimerKind};
use super::{Rexmit, Sender};
use crate::rack::Rack;
use crate::{LossDetection, Segment};
use dumbbell_cc::{CaState, CongestionControl, CongestionEvent, SendState, Signal};
use dumbbell_units::Span;

impl Sender {
    /// The recovery state machine. Returns whether it armed the reordering timer.
    #[inline(always)]
    pub(super) fn fastretrans_alert(
        &mut self,
        segment: &Segment,
        summary: &AckSummary,
        ece: bool,
    ) -> bool {
        let is_open = self.path.ca_state == CaState::Open && self.scoreboard.sacked_out() == 0;
        if is_open && self.scoreboard.lost_out() == 0 && !ece && !summary.dsack {
            return false;
        }
        self.rexmit = Rexmit::Lost;
        if ece {
            self.undo.keep_reduction();
        }
        match self.path.ca_state {
            CaState::Recovery if self.scoreboard.una() >= self.high_seq => {
                self.try_undo_recovery(segment);
            }
            CaState::Recovery => {
                if self.try_undo_partial(segment, summary) {
                    // The pacing timer retransmits all the same (`tcp_tsq_write`).
                    self.rexmit = if self.path.paced { Rexmit::Lost } else { Rexmit::None };
                    return false;
                }
                self.try_undo_dsack();
            }
            CaState::Loss => self.process_loss(segment, summary),
            // CWR lasts until a packet after high_seq is acknowledged, so that the receiver has
            // seen the CWR flag.
            CaState::Cwr if self.scoreboard.una() > self.high_seq => self.end_episode(),
            CaState::Cwr => {}
            CaState::Open => {
                self.undo.forget_first_retransmission();
                self.try_undo_dsack();
            }
            CaState::Disorder => self.try_undo_dsack(),
        }
        let prior_retrans = self.scoreboard.retrans_out();
        let waits = self.identify_packet_loss();
        // A lost retransmission is a loss of its own after a timeout (`FLAG_LOST_RETRANS`).
        let lost_retrans = self.stack.loss_detection == LossDetection::Rack
            && self.scoreboard.retrans_out() < prior_retrans;
        match self.path.ca_state {
            CaState::Open | CaState::Disorder | CaState::Cwr if self.scoreboard.lost_out() > 0 => {
                self.enter_recovery(ece);
            }
            CaState::Loss if lost_retrans => self.enter_recovery(ece),
            CaState::Open | CaState::Disorder => self.try_to_open(ece),
            _ => self.report_losses(false),
        }
        waits
    }

    /// No loss was found outside of an episode (`tcp_try_to_open`).
    fn try_to_open(&mut self, ece: bool) {
        self.newly_lost.clear();
        self.clean_retrans_stamp();
        if ece {
            return self.enter_cwr();
        }
        let disorder = self.scoreboard.sacked_out() + self.scoreboard.retrans_out() > 0;
        self.path.ca_state = if disorder { CaState::Disorder } else { CaState::Open };
    }

    /// Forgets when the first retransmission was made if none is outstanding (`tcp_any_retrans_done`).
    fn clean_retrans_stamp(&mut self) {
        let Sender { scoreboard, undo, .. } = self;
        let is_head_retransmitted = scoreboard.packets_out() > 0
            && scoreboard.packet(scoreboard.una()).ever_retransmitted();
        if scoreboard.retrans_out() == 0 && !is_head_retransmitted {
            undo.forget_first_retransmission();
        }
    }

    /// The episode's packets are acknowledged: undoes its reduction if it was spurious, and ends it
    /// (`tcp_try_undo_recovery`).
    fn try_undo_recovery(&mut self, segment: &Segment) {
        if self.undo.may_undo(self.echo(segment)) {
            self.undo_cwnd_reduction();
        } else {
            self.rack.on_recovery_end();
            self.end_episode();
        }
    }

    /// Undoes the reduction during fast recovery if an original arrived late, once no retransmission
    /// is in flight. Returns whether one is (`tcp_try_undo_partial`).
    fn try_undo_partial(&mut self, segment: &Segment, summary: &AckSummary) -> bool {
        if !summary.una_advanced || !self.undo.packet_delayed(self.echo(segment)) {
            return false;
        }
        self.rack.update_reordering(self.scoreboard.highest_sacked() - summary.prior_una);
        if self.scoreboard.retrans_out() > 0 {
            return true;
        }
        self.unmark_lost();
        self.undo_cwnd_reduction();
        false
    }

    /// Undoes the last reduction if all retransmissions were duplicates, also after its episode
    /// (`tcp_try_undo_dsack`).
    fn try_undo_dsack(&mut self) {
        if self.undo.all_retrans_dsacked() {
            self.rack.on_dsack_undo();
            self.undo_cwnd_reduction();
        }
    }

    /// F-RTO: decides whether the timeout was spurious, and what is sent until then (RFC 5682,
    /// section 3.1).
    fn process_loss(&mut self, segment: &Segment, summary: &AckSummary) {
        // Step 3b: a packet of the episode that was never retransmitted was delivered.
        let frto_undo = summary.orig_sack_acked && self.frto && self.stack.undo;
        if frto_undo || summary.una_advanced && self.undo.may_undo(self.echo(segment)) {
            self.unmark_lost();
            return self.undo_cwnd_reduction();
        }
        let recovered = self.scoreboard.una() >= self.high_seq;
        if self.frto {
            if self.scoreboard.next_seq() > self.high_seq {
                // Step 3a: new packets arrived, the missing ones did not: the loss was real.
                self.frto = summary.una_advanced && !summary.data_sacked;
            } else if summary.una_advanced && !recovered {
                // Step 2b: new packets, if there are any, before those that may only be late.
                self.frto = self.sendable() > 0;
                self.rexmit = if self.frto { Rexmit::New } else { Rexmit::Lost };
            }
        }
        if recovered {
            self.try_undo_recovery(segment);
        }
    }

    /// An acknowledgement arrived: marks the packets that are lost by now, and arms the reordering timer
    /// if others may become so. Returns whether it did.
    fn identify_packet_loss(&mut self) -> bool {
        self.newly_lost.clear();
        let reo_timeout = match self.stack.loss_detection {
            LossDetection::Rack if self.rack.take_advanced() => self.rack_detect_loss(),
            LossDetection::Rack => None,
            LossDetection::DupThresh => {
                self.dupthresh_cursor = Rack::detect_loss_by_dupthresh(
                    &mut self.scoreboard,
                    self.dupthresh_cursor,
                    &mut self.newly_lost,
                );
                None
            }
        };
        if let Some(reo_timeout) = reo_timeout {
            // TCP_TIMEOUT_MIN_US.
            let expires = self.expiry(reo_timeout + Span::from_millis(2));
            self.timer = Timer { expires, kind: TimerKind::Reorder };
        }
        self.count_newly_lost();
        reo_timeout.is_some()
    }

    fn count_newly_lost(&mut self) {
        self.path.lost += self.newly_lost.len() as u64;
        self.path.in_flight = self.scoreboard.in_flight();
    }

    fn rack_detect_loss(&mut self) -> Option<Span> {
        self.rack.detect_loss(&mut self.scoreboard, &self.path, &mut self.newly_lost)
    }

    /// RACK's reordering timer expired (`tcp_rack_reo_timeout`). It does not begin again by itself.
    pub(super) fn rack_reo_timeout(&mut self) {
        self.newly_lost.clear();
        self.rack_detect_loss();
        self.count_newly_lost();
        if self.newly_lost.is_empty() {
            return;
        }
        self.rexmit = Rexmit::Lost;
        if self.path.ca_state == CaState::Recovery {
            return self.report_losses(false);
        }
        self.enter_recovery(false);
        if let Some(prr) = &mut self.prr {
            prr.on_ack(self.control.cwnd as u32, self.path.in_flight, 1, false);
        }
    }

    /// Reports every packet newly found lost to the algorithm.
    fn report_losses(&mut self, new_episode: bool) {
        let lost = std::mem::take(&mut self.newly_lost);
        self.episodes += u32::from(new_episode && !lost.is_empty());
        // At each report, `path.lost` counts that loss and those before it, not those after it.
        self.path.lost -= lost.len() as u64;
        for (i, &number) in lost.iter().enumerate() {
            self.path.lost += 1;
            let first = new_episode && i == 0;
            let send_state = Some(self.send_state(number));
            let event =
                congestion(Signal::Loss, first, 1, u64::from(number)).with_send_state(send_state);
            self.cc.on_congestion(&self.path, &event);
        }
        if !lost.is_empty() {
            self.update_control();
        }
        self.newly_lost = lost;
    }

    fn send_state(&self, number: u32) -> SendState {
        self.scoreboard.packet(number).info(&self.path).send_state
    }

    /// Begins fast recovery (`tcp_enter_recovery`).
    fn enter_recovery(&mut self, ece: bool) {
        let prior_cwnd = self.cwnd();
        // A reduction for ECN in the same round trip is already this episode's reduction.
        let new_episode = self.path.ca_state != CaState::Cwr;
        self.path.ca_state = CaState::Recovery;
        self.recoveries += 1;
        // An undo of this recovery does not take back a reduction for ECN (`prior_ssthresh`).
        let keeps_reduction = ece || !new_episode;
        self.clean_retrans_stamp();
        self.init_undo(self.tlp.is_some_and(|tlp| tlp.is_retrans), keeps_reduction);
        if new_episode && self.newly_lost.is_empty() {
            // The episode that has just ended found and reported all losses.
            let seq = u64::from(self.scoreboard.una());
            self.notify_congestion(&congestion(Signal::Loss, true, 0, seq));
        } else {
            self.report_losses(new_episode);
        }
        if new_episode {
            self.init_cwnd_reduction(prior_cwnd);
        }
    }

    /// Begins a reduction for ECN (`tcp_enter_cwr`).
    fn enter_cwr(&mut self) {
        let prior_cwnd = self.cwnd();
        self.path.ca_state = CaState::Cwr;
        self.undo.clear();
        let seq = u64::from(self.scoreboard.una());
        self.notify_congestion(&congestion(Signal::Ecn, true, 1, seq));
        self.init_cwnd_reduction(prior_cwnd);
    }

    /// Ends Recovery, Loss or CWR.
    fn end_episode(&mut self) {
        if self.path.ca_state == CaState::Recovery {
            let max_burst = self.stack.max_burst;
            self.post_recovery_cwnd = (max_burst > 0).then(|| self.path.in_flight + max_burst);
        }
        self.prr = None;
        self.path.ca_state = CaState::Open;
    }

    /// The timestamp that an acknowledgement echoes.
    fn echo(&self, segment: &Segment) -> Option<u32> {
        self.stack.timestamps().then_some(segment.timestamp)
    }

    /// An episode begins that may be undone.
    fn init_undo(&mut self, probe: bool, keeps_reduction: bool) {
        if self.stack.undo {
            let retrans_out = self.scoreboard.retrans_out();
            self.undo.init(self.scoreboard.una(), retrans_out, probe, keeps_reduction);
        }
    }

    /// Undoes the reduction of an episode, and ends that (`tcp_undo_cwnd_reduction`).
    fn undo_cwnd_reduction(&mut self) {
        self.spurious += 1;
        let restores = self.undo.restores();
        self.undo.clear();
        self.end_episode();
        self.post_recovery_cwnd = None;
        self.rack.reset_loss_cursor(&self.scoreboard);
        if restores {
            self.cwr_pending = false; // `tcp_ecn_withdraw_cwr`
            self.cc.on_spurious_loss(&self.path);
            self.update_control();
        }
    }

    /// The packets that were considered lost are late.
    fn unmark_lost(&mut self) {
        self.scoreboard.unmark_lost();
        self.dupthresh_cursor = self.scoreboard.una();
        self.path.in_flight = self.scoreboard.in_flight();
    }

    /// The retransmission timer expired.
    pub(super) fn enter_loss(&mut self) {
        let new_episode = match self.path.ca_state {
            CaState::Open | CaState::Disorder => true,
            CaState::Loss if !self.rto_since_advance => true,
            _ => self.scoreboard.una() >= self.high_seq,
        };
        // F-RTO cannot decide after a recovery: packets sent since that began are delivered whether
        // or not the timeout is spurious (RFC 5682, section 3.1). A repeated timeout may be tested
        // (section 3.2).
        let in_recovery = matches!(self.path.ca_state, CaState::Recovery | CaState::Loss);
        self.frto = self.stack.loss_detection == LossDetection::Rack
            && (!in_recovery || self.rto_since_advance);
        self.rto_since_advance = true;
        self.rexmit = Rexmit::Lost;
        self.cwr_pending = true;
        self.timeouts += 1;
        self.prr = None;
        self.post_recovery_cwnd = None;
        self.newly_lost.clear();
        let Sender { rack, scoreboard, path, newly_lost, stack, .. } = self;
        if matches!(path.ca_state, CaState::Open | CaState::Disorder) {
            rack.limit_reordering(scoreboard.sacked_out());
        }
        rack.mark_losses_on_rto(stack.loss_detection, scoreboard, path, newly_lost);
        self.count_newly_lost();
        if new_episode {
            self.init_undo(false, false);
        }
        self.path.ca_state = CaState::Loss;
        self.high_seq = self.scoreboard.next_seq();
        self.tlp = None;
        let packets = self.newly_lost.len() as u32;
        let una = self.scoreboard.una();
        let send_state = Some(self.send_state(una));
        self.notify_congestion(
            &congestion(Signal::Timeout, new_episode, packets, u64::from(una))
                .with_send_state(send_state),
        );
        self.rtt.back_off();
        self.timer = Timer::rto(self.expiry(self.rtt.rto()));
    }
}

/// A congestion event of the transport.
pub(super) fn congestion(
    signal: Signal,
    new_episode: bool,
    packets: u32,
    seq: u64,
) -> CongestionEvent {
    CongestionEvent::new(signal).with_new_episode(new_episode).with_packets(packets).with_seq(seq)
}
