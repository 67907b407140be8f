//! What an acknowledgement does to the sender, in Linux's order (tcp_ack): the scoreboard, the
//! round-trip time, the delivery rate, loss detection, the recovery state, the algorithm.

use super::Sender;
use super::timer::Timer;
use crate::packet::Packet;
use crate::rack::{Rack, keep_newest};
use crate::rtt::{echoed_rtt, timestamp};

use crate::{Flags, LossDetection, Segment};
use dumbbell_cc::{Ack, CaState, CongestionControl, CongestionEvent, Path, Signal};
use dumbbell_units::{Span, Time};

/// What one acknowledgement tells.
#[derive(Default)]
struct Tally {
    /// Packets newly delivered, cumulatively or selectively.
    delivered: u32,
    /// The newest packet among them (the rate draft's sample is of that): when it was sent, its number.
    newest: Option<(Time, u32)>,
    /// First and last packet newly acknowledged that was sent only once, by send time:
    /// cumulatively and selectively.
    acked: Option<(Time, Time)>,
    sacked: Option<(Time, Time)>,
    /// A retransmitted packet was cumulatively acknowledged: which transmission is unknown.
    ambiguous: bool,
    /// A packet of this episode that was never retransmitted was delivered.
    original_delivered: bool,
    /// The cumulative acknowledgement advanced.
    advanced: bool,
    /// Packets were newly delivered selectively.
    selected: bool,
    dsack: bool,
}

impl Tally {
    /// A packet was delivered that is not yet acknowledged cumulatively.
    #[inline]
    fn deliver(&mut self, path: &Path, rack: &mut Rack, number: u32, packet: &Packet) {
        self.delivered += 1;
        self.selected = true;
        rack.advance(path, number, packet);
        keep_newest(&mut self.newest, number, packet);
    }
}

/// Widens a span of send times.
#[inline]
fn widen(range: &mut Option<(Time, Time)>, sent_at: Time) {
    match range {
        None => *range = Some((sent_at, sent_at)),
        Some((_, last)) => *last = sent_at,
    }
}

impl Sender {
    #[inline(always)]
    pub(super) fn on_acknowledgement(&mut self, segment: &Segment) {
        if segment.number > self.board.next() {
            return; // It acknowledges what was never sent (RFC 9293, 3.10.7.4).
        }
        let prior_in_flight = self.path.in_flight;
        self.window_end = self.window_end.max(segment.number.saturating_add(segment.window));
        let tally = self.take(segment);
        self.path.delivered += u64::from(tally.delivered);
        if tally.delivered > 0 {
            self.path.delivered_at = self.path.now;
        }
        self.path.in_flight = self.board.in_flight();
        self.path.una = u64::from(self.board.una());
        let rtt = self.measure(segment, &tally);
        if rtt.is_some() {
            self.rtt.end_backoff();
        }
        if tally.advanced {
            self.retried = false;
            self.rearm();
            self.check_completion();
        } else if tally.sacked.is_some_and(|(first, _)| first < self.oldest_sent_at()) {
            // What was sent before the oldest packet was sent again still arrives: its timeout
            // counts from now (tcp_clean_rtx_queue).
            self.rearm();
        }
        self.judge_probe(segment, &tally);
        let lost_before = self.path.lost;
        self.recover(segment, &tally);
        let lost = (self.path.lost - lost_before) as u32;
        let marked = u32::from(segment.marked);
        self.path.marked += u64::from(marked);
        // An acknowledged packet's record stays until a new packet takes its place.
        let newest =
            tally.newest.map(|(_, number)| self.board.packet(number).departure(&self.path));
        let rate = self.rate.sample(&self.path, newest.as_ref());
        if tally.delivered == 0 && lost == 0 {
            return;
        }
        self.path.window_full = self.window_used.limited;
        self.path.cwnd_limited = self.is_cwnd_limited() && self.regrown.is_none();
        // Where packets are reordered by much, windows grow by what is delivered in any order
        // (tcp_may_raise_cwnd).
        let grows = if tally.advanced || self.rack.reorders() { tally.delivered } else { 0 };
        let acked = if self.stack.byte_counting { grows } else { grows.min(1) };
        if let Some(prr) = &mut self.prr {
            let safe = tally.advanced && lost == 0;
            prr.on_ack(self.path.in_flight, tally.delivered, safe);
        }
        let delivered = tally.delivered;
        let report = None;
        let ack = Ack { delivered, acked, lost, marked, rtt, prior_in_flight, rate, report };
        self.cc.on_ack(&self.path, &ack);
        self.refresh();
        self.regrow(acked);
    }

    /// Lets a window that was cut to the flight size grow by what was acknowledged, up to the
    /// algorithm's.
    fn regrow(&mut self, acked: u32) {
        self.regrown = self
            .regrown
            .map(|window| window + acked)
            .filter(|&window| f64::from(window) < self.control.cwnd);
    }

    /// Updates the scoreboard from the segment.
    #[inline(always)]
    fn take(&mut self, segment: &Segment) -> Tally {
        let mut tally = Tally::default();
        let mut blocks = segment.blocks();
        if segment.flags.contains(Flags::DSACK) {
            tally.dsack = true;
            if let Some((number, _)) = blocks.next() {
                self.undo.on_dsack(number);
                // A probe that was for nothing tells nothing of the order (FLAG_DSACK_TLP).
                if self.probe.is_some_and(|(end, _)| end == number + 1) {
                    self.probe = None;
                } else if self.rack.reorders() {
                    self.rack.on_dsack(&self.path);
                }
            }
        }
        let Sender { board, rack, path, high_seq, .. } = self;
        let highest = board.highest_sacked();
        for (start, end) in blocks {
            board.sack(start, end, |number, packet| {
                tally.deliver(path, rack, number, packet);
                if !packet.was_retransmitted() {
                    widen(&mut tally.sacked, packet.sent_at());
                    tally.original_delivered |= number < *high_seq;
                    if number < highest {
                        rack.saw_reordering(highest - number);
                    }
                }
            });
        }
        tally.advanced = segment.number > board.una();
        board.acknowledge(segment.number, |number, packet, count| {
            tally.delivered += count;
            keep_newest(&mut tally.newest, number, packet);
            // What was echoed before it was sent again is of the original (tcp_skb_spurious_retrans).
            let ago = || segment.timestamp.wrapping_sub(timestamp(packet.sent_at()));
            if !packet.was_retransmitted() || ago() as i32 >= 0 {
                rack.advance(path, number, packet);
            }
            if packet.was_retransmitted() {
                tally.ambiguous = true;
            } else {
                widen(&mut tally.acked, packet.sent_at());
                tally.original_delivered |= number < *high_seq;
                if number < highest {
                    rack.saw_reordering(highest - number);
                }
            }
        });
        tally
    }

    /// Takes the round-trip time sample (tcp_ack_update_rtt): the oldest packet newly acknowledged
    /// enters the average, the newest is what the algorithm is told.
    #[inline(always)]
    fn measure(&mut self, segment: &Segment, tally: &Tally) -> Option<Span> {
        let now = self.path.now;
        let certain = tally.acked.filter(|_| !tally.ambiguous);
        let (average, latest) = match (certain, tally.sacked) {
            (Some((first, last)), None) => (now.since(first), now.since(last)),
            (Some((first, _)), Some((_, last))) => (now.since(first), now.since(last)),
            (None, Some((first, last))) => (now.since(first), now.since(last)),
            (None, None) if tally.advanced && self.stack.timestamps() => {
                // Every packet was sent twice; the timestamp says which transmission arrived.
                let rtt = echoed_rtt(now, segment.timestamp);
                (rtt, rtt)
            }
            (None, None) => return None,
        };
        self.rtt.observe_min(latest);
        self.rtt.sample(average, self.board.una(), self.board.next());
        self.rtt_sum.0 += latest.as_secs_f64();
        self.rtt_sum.1 += 1;
        self.path.srtt = self.rtt.srtt();
        self.path.min_rtt = self.rtt.min();
        Some(latest)
    }

    /// Whether a tail loss probe repaired a loss, which calls for a reduction that nothing else
    /// would make (RFC 8985, 7.4.2; tcp_process_tlp_ack). It did if later data is acknowledged and
    /// neither a D-SACK nor a plain duplicate told that probe and original both arrived.
    fn judge_probe(&mut self, segment: &Segment, tally: &Tally) {
        let Some((end, repeated)) = self.probe else { return };
        let duplicate = segment.number == end && !tally.advanced && tally.delivered == 0;
        if segment.number < end || segment.number == end && repeated && !duplicate {
            return;
        }
        self.probe = None;
        if repeated && !duplicate && self.path.ca_state == CaState::Open {
            self.recoveries += 1;
            self.signal(&congestion(Signal::Loss, true, 1, u64::from(end - 1)));
        }
    }

    /// The recovery state machine (tcp_fastretrans_alert).
    #[inline(always)]
    fn recover(&mut self, segment: &Segment, tally: &Tally) {
        let echo = segment.flags.contains(Flags::ECE);
        let calm = self.path.ca_state == CaState::Open && self.board.sacked_out() == 0;
        if calm && self.board.lost_out() == 0 && !echo {
            return;
        }
        self.new_first = false;
        match self.path.ca_state {
            CaState::Recovery if self.board.una() >= self.high_seq => {
                self.undo_if(|undo| {
                    undo.original_arrived(segment.timestamp) || undo.all_duplicates()
                });
                self.end_episode();
            }
            CaState::Recovery => {
                let original = tally.advanced && self.undo.original_arrived(segment.timestamp);
                if original || tally.dsack {
                    self.undo_if(|undo| original || undo.all_duplicates());
                }
            }
            CaState::Loss => self.recover_from_timeout(segment, tally),
            CaState::Cwr if self.board.una() > self.high_seq => self.end_episode(),
            _ => {}
        }
        let repeated = self.board.retransmitting_out();
        self.detect_losses();
        // What was sent again after a timeout is lost as well: a loss of its own (FLAG_LOST_RETRANS).
        let lost_again = self.stack.loss_detection == LossDetection::Rack
            && self.board.retransmitting_out() < repeated;
        match self.path.ca_state {
            CaState::Open | CaState::Disorder | CaState::Cwr if self.board.lost_out() > 0 => {
                self.enter_recovery();
            }
            CaState::Loss if lost_again => self.enter_recovery(),
            CaState::Open | CaState::Disorder => {
                self.lost_scratch.clear();
                if echo {
                    self.enter_cwr();
                } else {
                    let amiss = self.board.sacked_out() + self.board.retransmitting_out() > 0;
                    self.path.ca_state = if amiss { CaState::Disorder } else { CaState::Open };
                }
            }
            _ => self.report_losses(false),
        }
    }

    /// Whether the timeout was spurious, and what is sent until that is known (tcp_process_loss).
    fn recover_from_timeout(&mut self, segment: &Segment, tally: &Tally) {
        // F-RTO (RFC 5682, 3.1, step 3b): an original packet of the episode was delivered.
        let spurious = tally.original_delivered && self.doubts_timeout;
        self.undo_if(|undo| {
            let told = undo.original_arrived(segment.timestamp) || undo.all_duplicates();
            spurious || tally.advanced && told
        });
        if self.path.ca_state != CaState::Loss {
            return;
        }
        let recovered = self.board.una() >= self.high_seq;
        if self.doubts_timeout {
            if self.board.next() > self.high_seq {
                // Step 3a: what was new arrived, and what is missing did not.
                self.doubts_timeout = tally.advanced && !tally.selected;
            } else if tally.advanced && !recovered {
                // Step 2b: new packets, if there are any, rather than those that may be late.
                self.new_first = self.sendable() > 0;
                self.doubts_timeout = self.new_first;
            }
        }
        if recovered {
            self.end_episode();
        }
    }

    /// Marks what is lost by now and arms the reordering timer for what may yet be.
    fn detect_losses(&mut self) {
        self.lost_scratch.clear();
        match self.stack.loss_detection {
            LossDetection::Rack => {
                let wait = self.rack.detect(&mut self.board, &self.path, &mut self.lost_scratch);
                if let Some(wait) = wait {
                    // Linux waits two timer ticks longer, so that one expiry finds all.
                    let margin = Span::from_millis(2);
                    self.timer = (self.path.now + wait + margin, Timer::Reorder);
                }
            }
            LossDetection::DupThresh => {
                let from = self.judged_to;
                self.judged_to =
                    Rack::detect_by_count(&mut self.board, from, &mut self.lost_scratch);
            }
        }
        self.path.lost += self.lost_scratch.len() as u64;
        self.path.in_flight = self.board.in_flight();
    }

    pub(super) fn on_reorder_timer(&mut self) {
        self.detect_losses();
        if self.lost_scratch.is_empty() {
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
        let lost = std::mem::take(&mut self.lost_scratch);
        self.episodes += u32::from(new_episode && !lost.is_empty());
        // As each loss is told, the path counts it and those before it, not those after it.
        self.path.lost -= lost.len() as u64;
        for (i, &number) in lost.iter().enumerate() {
            self.path.lost += 1;
            let first = new_episode && i == 0;
            let send_state = Some(self.board.packet(number).departure(&self.path).send_state);
            let event = CongestionEvent {
                send_state,
                ..congestion(Signal::Loss, first, 1, u64::from(number))
            };
            self.cc.on_congestion(&self.path, &event);
        }
        if !lost.is_empty() {
            self.refresh();
        }
        self.lost_scratch = lost;
    }

    fn enter_recovery(&mut self) {
        let prior_cwnd = self.cwnd();
        // A reduction for ECN in the same round trip is the episode's reduction already.
        let new_episode = self.path.ca_state != CaState::Cwr;
        self.path.ca_state = CaState::Recovery;
        self.recoveries += 1;
        self.undo.begin(self.board.una(), self.board.retransmitting_out());
        if new_episode && self.lost_scratch.is_empty() {
            // All that is lost was found, and told of, in the episode that ended just now.
            let seq = u64::from(self.board.una());
            self.signal(&congestion(Signal::Loss, true, 0, seq));
        } else {
            self.report_losses(new_episode);
        }
        if new_episode {
            self.begin_reduction(prior_cwnd);
        }
    }

    fn enter_cwr(&mut self) {
        let prior_cwnd = self.cwnd();
        self.path.ca_state = CaState::Cwr;
        self.undo.end();
        let seq = u64::from(self.board.una());
        self.signal(&congestion(Signal::Ecn, true, 1, seq));
        self.begin_reduction(prior_cwnd);
    }

    fn end_episode(&mut self) {
        if self.path.ca_state == CaState::Recovery {
            self.rack.recovered();
            let burst = self.stack.max_burst;
            self.regrown = (burst > 0).then(|| self.path.in_flight + burst);
        }
        self.prr = None;
        self.undo.end();
        self.path.ca_state = CaState::Open;
    }

    /// Undoes the reduction if it proves spurious.
    fn undo_if(&mut self, spurious: impl Fn(&crate::undo::Undo) -> bool) {
        if !self.stack.undo || !spurious(&self.undo) {
            return;
        }
        self.spurious += 1;
        if self.path.ca_state == CaState::Recovery {
            // What was taken for lost was late.
            self.rack.saw_reordering(0);
        }
        self.board.unmark_lost();
        self.rack.reset_cursor(&self.board);
        self.judged_to = self.board.una();
        self.path.in_flight = self.board.in_flight();
        self.end_episode();
        self.regrown = None;
        self.cc.on_spurious_loss(&self.path);
        self.refresh();
    }

    /// The retransmission timer expired (tcp_enter_loss).
    pub(super) fn on_timeout(&mut self) {
        let fresh = match self.path.ca_state {
            CaState::Open | CaState::Disorder => true,
            CaState::Loss if !self.retried => true,
            _ => self.board.una() >= self.high_seq,
        };
        // Packets sent since a recovery began are delivered whether or not the timeout is spurious
        // (RFC 5682, section 3.1: only if no other recovery is under way; section 3.2: or again).
        self.doubts_timeout = self.stack.loss_detection == LossDetection::Rack
            && (!matches!(self.path.ca_state, CaState::Recovery | CaState::Loss) || self.retried);
        self.retried = true;
        self.new_first = false;
        self.cwr_pending = true;
        self.timeouts += 1;
        self.prr = None;
        self.regrown = None;
        self.lost_scratch.clear();
        let by = self.stack.loss_detection;
        self.rack.on_timeout(by, &mut self.board, &self.path, &mut self.lost_scratch);
        self.path.lost += self.lost_scratch.len() as u64;
        self.path.in_flight = self.board.in_flight();
        if fresh {
            self.undo.begin(self.board.una(), self.board.retransmitting_out());
        }
        self.path.ca_state = CaState::Loss;
        self.high_seq = self.board.next();
        self.probe = None;
        let packets = self.lost_scratch.len() as u32;
        let seq = u64::from(self.board.una());
        let send_state = Some(self.board.packet(self.board.una()).departure(&self.path).send_state);
        self.signal(&CongestionEvent {
            send_state,
            ..congestion(Signal::Timeout, fresh, packets, seq)
        });
        self.rtt.back_off();
        self.timer = (self.path.now + self.rtt.rto(), Timer::Rto);
    }
}

fn congestion(signal: Signal, new_episode: bool, packets: u32, seq: u64) -> CongestionEvent {
    CongestionEvent { signal, new_episode, packets, seq, send_state: None }
}
