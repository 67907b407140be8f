//! What an acknowledgement does to the sender, in Linux's order (tcp_ack): the scoreboard, the
//! round-trip time, the delivery rate, loss detection, the recovery state, the algorithm.

use super::Sender;
use super::timer::TimerKind;
use crate::rack::{Rack, keep_last_sent};
use crate::rtt::{rtt_from_tsecr, timestamp};
use crate::sent_packet::SentPacket;

use crate::{Flags, LossDetection, Segment};
use dumbbell_cc::{Ack, CaState, CongestionControl, CongestionEvent, Path, Signal};
use dumbbell_units::{Span, Time};

/// What one acknowledgement tells.
#[derive(Default)]
struct AckSummary {
    /// Packets newly delivered, cumulatively or selectively.
    delivered: u32,
    /// The newest packet among them (the rate draft's sample is of that): when it was sent, its number.
    last_sent: Option<(Time, u32)>,
    /// First and last packet newly acknowledged that was sent only once, by send time:
    /// cumulatively and selectively.
    ackt: Option<(Time, Time)>,
    sackt: Option<(Time, Time)>,
    /// A retransmitted packet was cumulatively acknowledged: which transmission is unknown.
    retrans_data_acked: bool,
    /// A packet of this episode that was never retransmitted was delivered.
    orig_sack_acked: bool,
    /// The cumulative acknowledgement advanced.
    una_advanced: bool,
    /// Packets were newly delivered selectively.
    data_sacked: bool,
    dsack: bool,
}

impl AckSummary {
    /// A packet was delivered that is not yet acknowledged cumulatively.
    #[inline]
    fn record_sacked(&mut self, path: &Path, rack: &mut Rack, number: u32, packet: &SentPacket) {
        self.delivered += 1;
        self.data_sacked = true;
        rack.advance(path, number, packet);
        keep_last_sent(&mut self.last_sent, number, packet);
    }
}

/// Widens a span of send times.
#[inline]
fn record_send_time(range: &mut Option<(Time, Time)>, sent_at: Time) {
    match range {
        None => *range = Some((sent_at, sent_at)),
        Some((_, last)) => *last = sent_at,
    }
}

impl Sender {
    #[inline(always)]
    pub(super) fn on_acknowledgement(&mut self, segment: &Segment) {
        if segment.number > self.scoreboard.next_seq() {
            return; // It acknowledges what was never sent (RFC 9293, 3.10.7.4).
        }
        let prior_in_flight = self.path.in_flight;
        self.window_end = self.window_end.max(segment.number.saturating_add(segment.window));
        let summary = self.update_scoreboard(segment);
        self.path.delivered += u64::from(summary.delivered);
        if summary.delivered > 0 {
            self.path.delivered_at = self.path.now;
        }
        self.path.in_flight = self.scoreboard.in_flight();
        self.path.una = u64::from(self.scoreboard.una());
        let rtt = self.update_rtt(segment, &summary);
        if rtt.is_some() {
            self.rtt.reset_backoff();
        }
        if summary.una_advanced {
            self.rto_since_advance = false;
            self.set_xmit_timer();
            self.check_completion();
        } else if summary.sackt.is_some_and(|(first, _)| first < self.oldest_sent_at()) {
            // What was sent before the oldest packet was sent again still arrives: its timeout
            // counts from now (tcp_clean_rtx_queue).
            self.set_xmit_timer();
        }
        self.process_tlp_ack(segment, &summary);
        let lost_before = self.path.lost;
        self.fastretrans_alert(segment, &summary);
        let lost = (self.path.lost - lost_before) as u32;
        let marked = u32::from(segment.marked);
        self.path.marked += u64::from(marked);
        // An acknowledged packet's record stays until a new packet takes its place.
        let newest =
            summary.last_sent.map(|(_, number)| self.scoreboard.packet(number).info(&self.path));
        let rate = self.rate.sample(&self.path, newest.as_ref());
        if summary.delivered == 0 && lost == 0 {
            return;
        }
        self.path.window_full = self.cwnd_usage.is_cwnd_limited;
        self.path.cwnd_limited = self.is_cwnd_limited() && self.post_recovery_cwnd.is_none();
        // Where packets are reordered by much, windows grow by what is delivered in any order
        // (tcp_may_raise_cwnd).
        let grows = if summary.una_advanced || self.rack.is_reordering_high() {
            summary.delivered
        } else {
            0
        };
        let acked = if self.stack.byte_counting { grows } else { grows.min(1) };
        if let Some(prr) = &mut self.prr {
            let safe = summary.una_advanced && lost == 0;
            prr.on_ack(self.path.in_flight, summary.delivered, safe);
        }
        let delivered = summary.delivered;
        let report = None;
        let ack = Ack { delivered, acked, lost, marked, rtt, prior_in_flight, rate, report };
        self.cc.on_ack(&self.path, &ack);
        self.update_control();
        self.grow_post_recovery_cwnd(acked);
    }

    /// Lets a window that was cut to the flight size grow by what was acknowledged, up to the
    /// algorithm's.
    fn grow_post_recovery_cwnd(&mut self, acked: u32) {
        self.post_recovery_cwnd = self
            .post_recovery_cwnd
            .map(|window| window + acked)
            .filter(|&window| f64::from(window) < self.control.cwnd);
    }

    /// Updates the scoreboard from the segment.
    #[inline(always)]
    fn update_scoreboard(&mut self, segment: &Segment) -> AckSummary {
        let mut summary = AckSummary::default();
        let mut blocks = segment.blocks();
        if segment.flags.contains(Flags::DSACK) {
            summary.dsack = true;
            if let Some((number, _)) = blocks.next() {
                self.undo.on_dsack(number);
                // A probe that was for nothing tells nothing of the order (FLAG_DSACK_TLP).
                if self.tlp.is_some_and(|(end, _)| end == number + 1) {
                    self.tlp = None;
                } else if self.rack.is_reordering_high() {
                    self.rack.on_dsack(&self.path);
                }
            }
        }
        let Sender { scoreboard, rack, path, high_seq, .. } = self;
        let highest = scoreboard.highest_sacked();
        for (start, end) in blocks {
            scoreboard.sack(start, end, |number, packet| {
                summary.record_sacked(path, rack, number, packet);
                if !packet.ever_retransmitted() {
                    record_send_time(&mut summary.sackt, packet.sent_at());
                    summary.orig_sack_acked |= number < *high_seq;
                    if number < highest {
                        rack.update_reordering(highest - number);
                    }
                }
            });
        }
        summary.una_advanced = segment.number > scoreboard.una();
        scoreboard.acknowledge(segment.number, |number, packet, count| {
            summary.delivered += count;
            keep_last_sent(&mut summary.last_sent, number, packet);
            // What was echoed before it was sent again is of the original (tcp_skb_spurious_retrans).
            let ago = || segment.timestamp.wrapping_sub(timestamp(packet.sent_at()));
            if !packet.ever_retransmitted() || ago() as i32 >= 0 {
                rack.advance(path, number, packet);
            }
            if packet.ever_retransmitted() {
                summary.retrans_data_acked = true;
            } else {
                record_send_time(&mut summary.ackt, packet.sent_at());
                summary.orig_sack_acked |= number < *high_seq;
                if number < highest {
                    rack.update_reordering(highest - number);
                }
            }
        });
        summary
    }

    /// Takes the round-trip time sample (tcp_ack_update_rtt): the oldest packet newly acknowledged
    /// enters the average, the newest is what the algorithm is told.
    #[inline(always)]
    fn update_rtt(&mut self, segment: &Segment, summary: &AckSummary) -> Option<Span> {
        let now = self.path.now;
        let certain = summary.ackt.filter(|_| !summary.retrans_data_acked);
        let (average, latest) = match (certain, summary.sackt) {
            (Some((first, last)), None) => (now.since(first), now.since(last)),
            (Some((first, _)), Some((_, last))) => (now.since(first), now.since(last)),
            (None, Some((first, last))) => (now.since(first), now.since(last)),
            (None, None) if summary.una_advanced && self.stack.timestamps() => {
                // Every packet was sent twice; the timestamp says which transmission arrived.
                let rtt = rtt_from_tsecr(now, segment.timestamp);
                (rtt, rtt)
            }
            (None, None) => return None,
        };
        self.rtt.update_min(latest);
        self.rtt.update(average, self.scoreboard.una(), self.scoreboard.next_seq());
        self.rtt_sum.0 += latest.as_secs_f64();
        self.rtt_sum.1 += 1;
        self.path.srtt = self.rtt.srtt();
        self.path.min_rtt = self.rtt.min();
        Some(latest)
    }

    /// Whether a tail loss probe repaired a loss, which calls for a reduction that nothing else
    /// would make (RFC 8985, 7.4.2; tcp_process_tlp_ack). It did if later data is acknowledged and
    /// neither a D-SACK nor a plain duplicate told that probe and original both arrived.
    fn process_tlp_ack(&mut self, segment: &Segment, summary: &AckSummary) {
        let Some((end, repeated)) = self.tlp else { return };
        let duplicate = segment.number == end && !summary.una_advanced && summary.delivered == 0;
        if segment.number < end || segment.number == end && repeated && !duplicate {
            return;
        }
        self.tlp = None;
        if repeated && !duplicate && self.path.ca_state == CaState::Open {
            self.recoveries += 1;
            self.notify_congestion(&congestion(Signal::Loss, true, 1, u64::from(end - 1)));
        }
    }

    /// The recovery state machine (tcp_fastretrans_alert).
    #[inline(always)]
    fn fastretrans_alert(&mut self, segment: &Segment, summary: &AckSummary) {
        let echo = segment.flags.contains(Flags::ECE);
        let calm = self.path.ca_state == CaState::Open && self.scoreboard.sacked_out() == 0;
        if calm && self.scoreboard.lost_out() == 0 && !echo {
            return;
        }
        self.frto_send_new = false;
        match self.path.ca_state {
            CaState::Recovery if self.scoreboard.una() >= self.high_seq => {
                self.try_undo(|undo| {
                    undo.packet_delayed(segment.timestamp) || undo.all_retrans_dsacked()
                });
                self.end_episode();
            }
            CaState::Recovery => {
                let original = summary.una_advanced && self.undo.packet_delayed(segment.timestamp);
                if original || summary.dsack {
                    self.try_undo(|undo| original || undo.all_retrans_dsacked());
                }
            }
            CaState::Loss => self.process_loss(segment, summary),
            CaState::Cwr if self.scoreboard.una() > self.high_seq => self.end_episode(),
            _ => {}
        }
        let repeated = self.scoreboard.retrans_out();
        self.identify_packet_loss();
        // What was sent again after a timeout is lost as well: a loss of its own (FLAG_LOST_RETRANS).
        let lost_again = self.stack.loss_detection == LossDetection::Rack
            && self.scoreboard.retrans_out() < repeated;
        match self.path.ca_state {
            CaState::Open | CaState::Disorder | CaState::Cwr if self.scoreboard.lost_out() > 0 => {
                self.enter_recovery();
            }
            CaState::Loss if lost_again => self.enter_recovery(),
            CaState::Open | CaState::Disorder => {
                self.newly_lost.clear();
                if echo {
                    self.enter_cwr();
                } else {
                    let amiss = self.scoreboard.sacked_out() + self.scoreboard.retrans_out() > 0;
                    self.path.ca_state = if amiss { CaState::Disorder } else { CaState::Open };
                }
            }
            _ => self.report_losses(false),
        }
    }

    /// Whether the timeout was spurious, and what is sent until that is known (tcp_process_loss).
    fn process_loss(&mut self, segment: &Segment, summary: &AckSummary) {
        // F-RTO (RFC 5682, 3.1, step 3b): an original packet of the episode was delivered.
        let spurious = summary.orig_sack_acked && self.frto;
        self.try_undo(|undo| {
            let told = undo.packet_delayed(segment.timestamp) || undo.all_retrans_dsacked();
            spurious || summary.una_advanced && told
        });
        if self.path.ca_state != CaState::Loss {
            return;
        }
        let recovered = self.scoreboard.una() >= self.high_seq;
        if self.frto {
            if self.scoreboard.next_seq() > self.high_seq {
                // Step 3a: what was new arrived, and what is missing did not.
                self.frto = summary.una_advanced && !summary.data_sacked;
            } else if summary.una_advanced && !recovered {
                // Step 2b: new packets, if there are any, rather than those that may be late.
                self.frto_send_new = self.sendable() > 0;
                self.frto = self.frto_send_new;
            }
        }
        if recovered {
            self.end_episode();
        }
    }

    /// Marks what is lost by now and arms the reordering timer for what may yet be.
    fn identify_packet_loss(&mut self) {
        self.newly_lost.clear();
        match self.stack.loss_detection {
            LossDetection::Rack => {
                let wait =
                    self.rack.detect_loss(&mut self.scoreboard, &self.path, &mut self.newly_lost);
                if let Some(wait) = wait {
                    // Linux waits two timer ticks longer, so that one expiry finds all.
                    let margin = Span::from_millis(2);
                    self.timer = (self.path.now + wait + margin, TimerKind::Reorder);
                }
            }
            LossDetection::DupThresh => {
                let from = self.dupthresh_cursor;
                self.dupthresh_cursor = Rack::detect_loss_by_dupthresh(
                    &mut self.scoreboard,
                    from,
                    &mut self.newly_lost,
                );
            }
        }
        self.path.lost += self.newly_lost.len() as u64;
        self.path.in_flight = self.scoreboard.in_flight();
    }

    pub(super) fn rack_reo_timeout(&mut self) {
        self.identify_packet_loss();
        if self.newly_lost.is_empty() {
            return;
        }
        match self.path.ca_state {
            CaState::Recovery => self.report_losses(false),
            _ => {
                self.enter_recovery();
                if let Some(prr) = &mut self.prr {
                    prr.on_ack(self.path.in_flight, 1, false);
                }
            }
        }
    }

    /// Tells the algorithm of every packet newly found lost.
    fn report_losses(&mut self, new_episode: bool) {
        let lost = std::mem::take(&mut self.newly_lost);
        self.episodes += u32::from(new_episode && !lost.is_empty());
        // As each loss is told, the path counts it and those before it, not those after it.
        self.path.lost -= lost.len() as u64;
        for (i, &number) in lost.iter().enumerate() {
            self.path.lost += 1;
            let first = new_episode && i == 0;
            let send_state = Some(self.scoreboard.packet(number).info(&self.path).send_state);
            let event = CongestionEvent {
                send_state,
                ..congestion(Signal::Loss, first, 1, u64::from(number))
            };
            self.cc.on_congestion(&self.path, &event);
        }
        if !lost.is_empty() {
            self.update_control();
        }
        self.newly_lost = lost;
    }

    fn enter_recovery(&mut self) {
        let prior_cwnd = self.cwnd();
        // A reduction for ECN in the same round trip is the episode's reduction already.
        let new_episode = self.path.ca_state != CaState::Cwr;
        self.path.ca_state = CaState::Recovery;
        self.recoveries += 1;
        self.undo.init(self.scoreboard.una(), self.scoreboard.retrans_out());
        if new_episode && self.newly_lost.is_empty() {
            // All that is lost was found, and told of, in the episode that ended just now.
            let seq = u64::from(self.scoreboard.una());
            self.notify_congestion(&congestion(Signal::Loss, true, 0, seq));
        } else {
            self.report_losses(new_episode);
        }
        if new_episode {
            self.init_cwnd_reduction(prior_cwnd);
        }
    }

    fn enter_cwr(&mut self) {
        let prior_cwnd = self.cwnd();
        self.path.ca_state = CaState::Cwr;
        self.undo.clear();
        let seq = u64::from(self.scoreboard.una());
        self.notify_congestion(&congestion(Signal::Ecn, true, 1, seq));
        self.init_cwnd_reduction(prior_cwnd);
    }

    fn end_episode(&mut self) {
        if self.path.ca_state == CaState::Recovery {
            self.rack.on_recovery_end();
            let burst = self.stack.max_burst;
            self.post_recovery_cwnd = (burst > 0).then(|| self.path.in_flight + burst);
        }
        self.prr = None;
        self.undo.clear();
        self.path.ca_state = CaState::Open;
    }

    /// Undoes the reduction if it proves spurious.
    fn try_undo(&mut self, spurious: impl Fn(&crate::undo::Undo) -> bool) {
        if !self.stack.undo || !spurious(&self.undo) {
            return;
        }
        self.spurious += 1;
        if self.path.ca_state == CaState::Recovery {
            // What was taken for lost was late.
            self.rack.update_reordering(0);
        }
        self.scoreboard.unmark_lost();
        self.rack.reset_loss_cursor(&self.scoreboard);
        self.dupthresh_cursor = self.scoreboard.una();
        self.path.in_flight = self.scoreboard.in_flight();
        self.end_episode();
        self.post_recovery_cwnd = None;
        self.cc.on_spurious_loss(&self.path);
        self.update_control();
    }

    /// The retransmission timer expired (tcp_enter_loss).
    pub(super) fn enter_loss(&mut self) {
        let fresh = match self.path.ca_state {
            CaState::Open | CaState::Disorder => true,
            CaState::Loss if !self.rto_since_advance => true,
            _ => self.scoreboard.una() >= self.high_seq,
        };
        // Packets sent since a recovery began are delivered whether or not the timeout is spurious
        // (RFC 5682, section 3.1: only if no other recovery is under way; section 3.2: or again).
        self.frto = self.stack.loss_detection == LossDetection::Rack
            && (!matches!(self.path.ca_state, CaState::Recovery | CaState::Loss)
                || self.rto_since_advance);
        self.rto_since_advance = true;
        self.frto_send_new = false;
        self.cwr_pending = true;
        self.timeouts += 1;
        self.prr = None;
        self.post_recovery_cwnd = None;
        self.newly_lost.clear();
        let by = self.stack.loss_detection;
        self.rack.mark_losses_on_rto(by, &mut self.scoreboard, &self.path, &mut self.newly_lost);
        self.path.lost += self.newly_lost.len() as u64;
        self.path.in_flight = self.scoreboard.in_flight();
        if fresh {
            self.undo.init(self.scoreboard.una(), self.scoreboard.retrans_out());
        }
        self.path.ca_state = CaState::Loss;
        self.high_seq = self.scoreboard.next_seq();
        self.tlp = None;
        let packets = self.newly_lost.len() as u32;
        let seq = u64::from(self.scoreboard.una());
        let send_state =
            Some(self.scoreboard.packet(self.scoreboard.una()).info(&self.path).send_state);
        self.notify_congestion(&CongestionEvent {
            send_state,
            ..congestion(Signal::Timeout, fresh, packets, seq)
        });
        self.rtt.back_off();
        self.timer = (self.path.now + self.rtt.rto(), TimerKind::Rto);
    }
}

fn congestion(signal: Signal, new_episode: bool, packets: u32, seq: u64) -> CongestionEvent {
    CongestionEvent { signal, new_episode, packets, seq, send_state: None }
}
