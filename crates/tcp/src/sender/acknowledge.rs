//! What an acknowledgement changes, in the order of Linux's `tcp_ack`: the scoreboard, the
//! round-trip time, the tail loss probe, loss detection and the recovery state, the window.
//!
//! | here | Linux | RFC |
//! |---|---|---|
//! | [`Sender::on_acknowledgement`] | `tcp_ack` | 9293, section 3.10.7.4 |
//! | [`Sender::update_scoreboard`] | `tcp_sacktag_write_queue`, `tcp_clean_rtx_queue` | 6675 |
//! | [`Sender::update_rtt`] | `tcp_ack_update_rtt` | 6298 |
//! | [`Sender::process_tlp_ack`] | `tcp_process_tlp_ack` | 8985, section 7.4 |
//! | [`Sender::fastretrans_alert`] | `tcp_fastretrans_alert` | 5681, 6675, 8985 |
//! | [`Sender::process_loss`] | `tcp_process_loss` | 5682 |
//! | [`Sender::cong_control`] | `tcp_cong_control` | 5681, 9937 |
//! | [`Sender::enter_loss`] | `tcp_enter_loss` | 5681, section 3.1; 6298, section 5 |

use super::Sender;
use super::timer::{Timer, TimerKind};
use crate::rack::{Rack, keep_last_sent};
use crate::rtt::{rtt_from_tsecr, timestamp};
use crate::sent_packet::SentPacket;
use crate::undo::Undo;
use crate::{Flags, LossDetection, Segment};
use dumbbell_cc::{
    Ack, CaState, CongestionControl, CongestionEvent, Path, RateSample, SendState, Signal,
};
use dumbbell_units::{Span, Time};

/// The facts of one acknowledgement. The booleans are Linux's `FLAG_*`.
#[derive(Default)]
struct AckSummary {
    /// Packets newly delivered, cumulatively or selectively.
    delivered: u32,
    /// Of these, the one that was sent last: its send time and number. The delivery rate sample is
    /// taken from it.
    last_sent: Option<(Time, u32)>,
    /// Send times of the first and the last packet that was newly acknowledged cumulatively and
    /// never retransmitted (`first_ackt`, `last_ackt`).
    ackt: Option<(Time, Time)>,
    /// The same for packets newly acknowledged selectively (`first_sackt`, `last_sackt`).
    sackt: Option<(Time, Time)>,
    /// The cumulative acknowledgement advanced (`FLAG_SND_UNA_ADVANCED`).
    una_advanced: bool,
    /// Packets were newly acknowledged selectively (`FLAG_DATA_SACKED`).
    data_sacked: bool,
    /// A retransmitted packet was acknowledged cumulatively (`FLAG_RETRANS_DATA_ACKED`). Which of
    /// its transmissions arrived is unknown.
    retrans_data_acked: bool,
    /// A packet of this episode that was never retransmitted was delivered
    /// (`FLAG_ORIG_SACK_ACKED`).
    orig_sack_acked: bool,
    /// The receiver reported a duplicate (`FLAG_DSACKING_ACK`).
    dsack: bool,
}

impl AckSummary {
    /// Records a packet that was newly acknowledged selectively.
    #[inline]
    fn record_sacked(&mut self, path: &Path, rack: &mut Rack, number: u32, packet: &SentPacket) {
        self.delivered += 1;
        self.data_sacked = true;
        rack.advance(path, number, packet);
        keep_last_sent(&mut self.last_sent, number, packet);
    }
}

/// Extends a pair of first and last send time.
#[inline]
fn record_send_time(range: &mut Option<(Time, Time)>, sent_at: Time) {
    match range {
        None => *range = Some((sent_at, sent_at)),
        Some((_, last)) => *last = sent_at,
    }
}

impl Sender {
    /// Processes an acknowledgement.
    #[inline(always)]
    pub(super) fn on_acknowledgement(&mut self, segment: &Segment) {
        if segment.number > self.scoreboard.next_seq() {
            return; // It acknowledges packets that were never sent (RFC 9293, 3.10.7.4).
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
        if summary.una_advanced {
            self.rto_since_advance = false;
            self.set_xmit_timer();
            self.check_completion();
        } else if summary.sackt.is_some_and(|(first, _)| first < self.oldest_sent_at()) {
            // A packet sent before the oldest one was retransmitted arrived: the oldest packet's
            // timeout restarts now (`tcp_clean_rtx_queue`).
            self.set_xmit_timer();
        }
        self.process_tlp_ack(segment, &summary);
        let lost_before = self.path.lost;
        self.fastretrans_alert(segment, &summary);
        let lost = (self.path.lost - lost_before) as u32;
        let marked = u32::from(segment.marked);
        self.path.marked += u64::from(marked);
        // The record of an acknowledged packet stays valid until a new packet takes its place.
        let last_sent =
            summary.last_sent.map(|(_, number)| self.scoreboard.packet(number).info(&self.path));
        let rate = self.rate.sample(&self.path, last_sent.as_ref());
        if summary.delivered > 0 || lost > 0 {
            self.cong_control(&summary, lost, marked, rtt, prior_in_flight, rate);
        }
    }

    /// Applies PRR and reports the acknowledgement to the algorithm.
    #[inline(always)]
    fn cong_control(
        &mut self,
        summary: &AckSummary,
        lost: u32,
        marked: u32,
        rtt: Option<Span>,
        prior_in_flight: u32,
        rate: Option<RateSample>,
    ) {
        let &AckSummary { delivered, una_advanced, .. } = summary;
        self.path.window_full = self.cwnd_usage.is_cwnd_limited;
        self.path.cwnd_limited = self.is_cwnd_limited() && self.post_recovery_cwnd.is_none();
        // If reordering is high, the window grows by packets delivered in any order
        // (`tcp_may_raise_cwnd`).
        let may_raise = una_advanced || self.rack.is_reordering_high();
        let acked = if may_raise { delivered } else { 0 };
        let acked = if self.stack.byte_counting { acked } else { acked.min(1) };
        if let Some(prr) = &mut self.prr {
            prr.on_ack(self.path.in_flight, delivered, una_advanced && lost == 0);
        }
        let ack = Ack::new(delivered)
            .with_acked(acked)
            .with_lost(lost)
            .with_marked(marked)
            .with_rtt(rtt)
            .with_prior_in_flight(prior_in_flight)
            .with_rate(rate);
        self.cc.on_ack(&self.path, &ack);
        self.update_control();
        self.grow_post_recovery_cwnd(acked);
    }

    /// Lets a window that was limited to the flight size grow as in slow start, up to the
    /// algorithm's window.
    fn grow_post_recovery_cwnd(&mut self, acked: u32) {
        self.post_recovery_cwnd = self
            .post_recovery_cwnd
            .map(|cwnd| cwnd + acked)
            .filter(|&cwnd| f64::from(cwnd) < self.control.cwnd);
    }

    /// Updates the scoreboard, RACK and the undo state from the cumulative acknowledgement and the SACK
    /// blocks.
    #[inline(always)]
    fn update_scoreboard(&mut self, segment: &Segment) -> AckSummary {
        let mut summary = AckSummary::default();
        let mut blocks = segment.blocks();
        if segment.flags.contains(Flags::DSACK) {
            summary.dsack = true;
            if let Some((number, _)) = blocks.next() {
                self.on_dsack(number);
            }
        }
        let Sender { scoreboard, rack, path, high_seq, .. } = self;
        let highest_sacked = scoreboard.highest_sacked();
        for (start, end) in blocks {
            scoreboard.sack(start, end, |number, packet| {
                summary.record_sacked(path, rack, number, packet);
                if !packet.ever_retransmitted() {
                    record_send_time(&mut summary.sackt, packet.sent_at());
                    summary.orig_sack_acked |= number < *high_seq;
                    if number < highest_sacked {
                        rack.update_reordering(highest_sacked - number);
                    }
                }
            });
        }
        summary.una_advanced = segment.number > scoreboard.una();
        scoreboard.acknowledge(segment.number, |number, packet, count| {
            summary.delivered += count;
            keep_last_sent(&mut summary.last_sent, number, packet);
            // An echoed timestamp from before the retransmission is the original's
            // (`tcp_skb_spurious_retrans`).
            let echoed_after = || segment.timestamp.wrapping_sub(timestamp(packet.sent_at()));
            if !packet.ever_retransmitted() || echoed_after() as i32 >= 0 {
                rack.advance(path, number, packet);
            }
            if packet.ever_retransmitted() {
                summary.retrans_data_acked = true;
            } else {
                record_send_time(&mut summary.ackt, packet.sent_at());
                summary.orig_sack_acked |= number < *high_seq;
                if number < highest_sacked {
                    rack.update_reordering(highest_sacked - number);
                }
            }
        });
        summary
    }

    /// The receiver reported that packet `number` arrived twice (`tcp_dsack_seen`).
    fn on_dsack(&mut self, number: u32) {
        self.undo.on_dsack(number);
        // A duplicate of a tail loss probe says nothing about reordering (`FLAG_DSACK_TLP`).
        if self.tlp.is_some_and(|tlp| tlp.end_seq == number + 1) {
            self.tlp = None;
        } else {
            self.rack.on_dsack(&self.path);
        }
    }

    /// Takes the round-trip time sample, and returns the one for the algorithm. The oldest packet
    /// newly acknowledged enters the average; the algorithm receives the newest one's.
    #[inline(always)]
    fn update_rtt(&mut self, segment: &Segment, summary: &AckSummary) -> Option<Span> {
        let now = self.path.now;
        // Karn's algorithm: no sample if a retransmitted packet was acknowledged.
        let ackt = summary.ackt.filter(|_| !summary.retrans_data_acked);
        let (seq_rtt, ca_rtt) = match (ackt, summary.sackt) {
            (Some((first, last)), None) => (now.since(first), now.since(last)),
            (Some((first, _)), Some((_, last))) => (now.since(first), now.since(last)),
            (None, Some((first, last))) => (now.since(first), now.since(last)),
            (None, None) if summary.una_advanced && self.stack.timestamps() => {
                // All packets were retransmitted; the timestamp shows which transmission arrived.
                let rtt = rtt_from_tsecr(now, segment.timestamp);
                (rtt, rtt)
            }
            (None, None) => return None,
        };
        self.rtt.reset_backoff();
        self.rtt.update_min(ca_rtt);
        self.rtt.update(seq_rtt, self.scoreboard.una(), self.scoreboard.next_seq());
        self.rtt_sum.0 += ca_rtt.as_secs_f64();
        self.rtt_sum.1 += 1;
        self.path.srtt = self.rtt.srtt();
        self.path.min_rtt = self.rtt.min();
        Some(ca_rtt)
    }

    /// Detects a loss that a tail loss probe repaired, which needs a reduction of its own
    /// (RFC 8985, 7.4.2). The probe repaired a loss if later data is acknowledged, and neither a
    /// D-SACK nor a duplicate acknowledgement showed that probe and original both arrived.
    fn process_tlp_ack(&mut self, segment: &Segment, summary: &AckSummary) {
        let Some(tlp) = self.tlp else { return };
        let is_duplicate =
            segment.number == tlp.end_seq && !summary.una_advanced && summary.delivered == 0;
        if segment.number < tlp.end_seq
            || segment.number == tlp.end_seq && tlp.is_retrans && !is_duplicate
        {
            return;
        }
        self.tlp = None;
        if tlp.is_retrans && !is_duplicate && self.path.ca_state == CaState::Open {
            self.recoveries += 1;
            self.notify_congestion(&congestion(Signal::Loss, true, 1, u64::from(tlp.end_seq - 1)));
        }
    }

    /// The recovery state machine.
    #[inline(always)]
    fn fastretrans_alert(&mut self, segment: &Segment, summary: &AckSummary) {
        let ece = segment.flags.contains(Flags::ECE);
        let is_open = self.path.ca_state == CaState::Open && self.scoreboard.sacked_out() == 0;
        if is_open && self.scoreboard.lost_out() == 0 && !ece {
            return;
        }
        self.frto_send_new = false;
        match self.path.ca_state {
            CaState::Recovery if self.scoreboard.una() >= self.high_seq => {
                self.try_undo_recovery(segment);
            }
            CaState::Recovery => self.try_undo_partial(segment, summary),
            CaState::Loss => self.process_loss(segment, summary),
            // CWR lasts until a packet after high_seq is acknowledged, so that the receiver has
            // seen the CWR flag.
            CaState::Cwr if self.scoreboard.una() > self.high_seq => self.end_episode(),
            _ => {}
        }
        let prior_retrans = self.scoreboard.retrans_out();
        self.identify_packet_loss();
        // A lost retransmission is a loss of its own after a timeout (`FLAG_LOST_RETRANS`).
        let lost_retrans = self.stack.loss_detection == LossDetection::Rack
            && self.scoreboard.retrans_out() < prior_retrans;
        match self.path.ca_state {
            CaState::Open | CaState::Disorder | CaState::Cwr if self.scoreboard.lost_out() > 0 => {
                self.enter_recovery();
            }
            CaState::Loss if lost_retrans => self.enter_recovery(),
            CaState::Open | CaState::Disorder => self.try_to_open(ece),
            _ => self.report_losses(false),
        }
    }

    /// No loss was found outside of an episode (`tcp_try_to_open`).
    fn try_to_open(&mut self, ece: bool) {
        self.newly_lost.clear();
        if ece {
            return self.enter_cwr();
        }
        let disorder = self.scoreboard.sacked_out() + self.scoreboard.retrans_out() > 0;
        self.path.ca_state = if disorder { CaState::Disorder } else { CaState::Open };
    }

    /// The episode's packets are acknowledged: undoes its reduction if it was spurious, otherwise ends
    /// it (`tcp_try_undo_recovery`).
    fn try_undo_recovery(&mut self, segment: &Segment) {
        if !self.try_undo(|undo| undo.may_undo(segment.timestamp)) {
            self.rack.on_recovery_end();
            self.end_episode();
        }
    }

    /// Undoes the reduction during fast recovery, if an original arrived late
    /// (`tcp_try_undo_partial`) or all retransmissions were duplicates (`tcp_try_undo_dsack`).
    fn try_undo_partial(&mut self, segment: &Segment, summary: &AckSummary) {
        let delayed = summary.una_advanced && self.undo.packet_delayed(segment.timestamp);
        if self.try_undo(|_| delayed) {
            return;
        }
        if summary.dsack && self.try_undo(|undo| undo.all_retrans_dsacked()) {
            self.rack.on_dsack_undo();
        }
    }

    /// F-RTO: decides whether the timeout was spurious, and what is sent until then (RFC 5682,
    /// section 3.1).
    fn process_loss(&mut self, segment: &Segment, summary: &AckSummary) {
        // Step 3b: a packet of the episode that was never retransmitted was delivered.
        let frto_undo = summary.orig_sack_acked && self.frto;
        if self
            .try_undo(|undo| frto_undo || summary.una_advanced && undo.may_undo(segment.timestamp))
        {
            return;
        }
        let recovered = self.scoreboard.una() >= self.high_seq;
        if self.frto {
            if self.scoreboard.next_seq() > self.high_seq {
                // Step 3a: new packets arrived, the missing ones did not: the loss was real.
                self.frto = summary.una_advanced && !summary.data_sacked;
            } else if summary.una_advanced && !recovered {
                // Step 2b: new packets, if there are any, before those that may only be late.
                self.frto_send_new = self.sendable() > 0;
                self.frto = self.frto_send_new;
            }
        }
        if recovered {
            self.try_undo_recovery(segment);
        }
    }

    /// Marks the packets that are lost by now, and arms the reordering timer for those that may
    /// become so.
    fn identify_packet_loss(&mut self) {
        self.newly_lost.clear();
        match self.stack.loss_detection {
            LossDetection::Rack => {
                let reo_timeout =
                    self.rack.detect_loss(&mut self.scoreboard, &self.path, &mut self.newly_lost);
                if let Some(reo_timeout) = reo_timeout {
                    // TCP_TIMEOUT_MIN, two jiffies of Linux: one expiry then finds all losses.
                    let margin = Span::from_millis(2);
                    let expires = self.path.now + reo_timeout + margin;
                    self.timer = Timer { expires, kind: TimerKind::Reorder };
                }
            }
            LossDetection::DupThresh => {
                self.dupthresh_cursor = Rack::detect_loss_by_dupthresh(
                    &mut self.scoreboard,
                    self.dupthresh_cursor,
                    &mut self.newly_lost,
                );
            }
        }
        self.path.lost += self.newly_lost.len() as u64;
        self.path.in_flight = self.scoreboard.in_flight();
    }

    /// RACK's reordering timer expired (`tcp_rack_reo_timeout`).
    pub(super) fn rack_reo_timeout(&mut self) {
        self.identify_packet_loss();
        if self.newly_lost.is_empty() {
            return;
        }
        if self.path.ca_state == CaState::Recovery {
            return self.report_losses(false);
        }
        self.enter_recovery();
        if let Some(prr) = &mut self.prr {
            prr.on_ack(self.path.in_flight, 1, false);
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
    fn enter_recovery(&mut self) {
        let prior_cwnd = self.cwnd();
        // A reduction for ECN in the same round trip is already this episode's reduction.
        let new_episode = self.path.ca_state != CaState::Cwr;
        self.path.ca_state = CaState::Recovery;
        self.recoveries += 1;
        self.undo.init(self.scoreboard.una(), self.scoreboard.retrans_out());
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
        self.undo.clear();
        self.path.ca_state = CaState::Open;
    }

    /// Undoes the reduction if it was spurious, and returns whether it was
    /// (`tcp_undo_cwnd_reduction`).
    fn try_undo(&mut self, is_spurious: impl Fn(&Undo) -> bool) -> bool {
        if !self.stack.undo || !is_spurious(&self.undo) {
            return false;
        }
        self.spurious += 1;
        if self.path.ca_state == CaState::Recovery {
            // The packets considered lost were reordered.
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
        true
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
        self.frto_send_new = false;
        self.cwr_pending = true;
        self.timeouts += 1;
        self.prr = None;
        self.post_recovery_cwnd = None;
        self.newly_lost.clear();
        let Sender { rack, scoreboard, path, newly_lost, stack, .. } = self;
        rack.mark_losses_on_rto(stack.loss_detection, scoreboard, path, newly_lost);
        self.path.lost += self.newly_lost.len() as u64;
        self.path.in_flight = self.scoreboard.in_flight();
        if new_episode {
            self.undo.init(self.scoreboard.una(), self.scoreboard.retrans_out());
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
        self.timer = Timer::rto(self.path.now + self.rtt.rto());
    }
}

fn congestion(signal: Signal, new_episode: bool, packets: u32, seq: u64) -> CongestionEvent {
    CongestionEvent::new(signal).with_new_episode(new_episode).with_packets(packets).with_seq(seq)
}
