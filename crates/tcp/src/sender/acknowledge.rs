//! What an acknowledgement changes, in the order of Linux's `tcp_ack`: the scoreboard, the
//! round-trip time, the tail loss probe, loss detection and the recovery state
//! ([`super::fastretrans_alert`]), the window.
//!
//! | here | Linux | RFC |
//! |---|---|---|
//! | [`Sender::on_acknowledgement`] | `tcp_ack` | 9293, section 3.10.7.4 |
//! | [`Sender::update_scoreboard`] | `tcp_sacktag_write_queue`, `tcp_clean_rtx_queue` | 6675 |
//! | [`Sender::update_rtt`] | `tcp_ack_update_rtt` | 6298 |
//! | [`Sender::process_tlp_ack`] | `tcp_process_tlp_ack` | 8985, section 7.4 |
//! | [`Sender::cong_control`] | `tcp_cong_control` | 5681, 9937 |

use super::Sender;
use super::fastretrans_alert::congestion;
use crate::prr::Prr;
use crate::rack::{Rack, keep_last_sent};
use crate::rtt::{is_tick_before, rtt_from_tsecr, timestamp};
use crate::sent_packet::{PacketFlags, SentPacket};
use crate::{Ecn, Flags, Segment};
use dumbbell_cc::{Ack, CongestionControl, Path, RateSample, Signal};
use dumbbell_units::{Span, Time};

/// The facts of one acknowledgement. The booleans are Linux's `FLAG_*`.
#[derive(Default)]
pub(super) struct AckSummary {
    /// Packets newly delivered, cumulatively or selectively, and duplicates that the receiver reported.
    delivered: u32,
    /// Of these, the one that was sent last: its send time and number. The delivery rate sample is
    /// taken from it.
    last_sent: Option<(Time, u32)>,
    /// Send times of the first and the last packet that was newly acknowledged cumulatively and
    /// never retransmitted (`first_ackt`, `last_ackt`).
    ackt: Option<(Time, Time)>,
    /// The same for packets newly acknowledged selectively (`first_sackt`, `last_sackt`).
    sackt: Option<(Time, Time)>,
    /// The first unacknowledged packet before (`prior_snd_una`).
    pub(super) prior_una: u32,
    /// The cumulative acknowledgement advanced (`FLAG_SND_UNA_ADVANCED`).
    pub(super) una_advanced: bool,
    /// Packets were newly acknowledged selectively (`FLAG_DATA_SACKED`).
    pub(super) data_sacked: bool,
    /// A retransmitted packet was acknowledged cumulatively (`FLAG_RETRANS_DATA_ACKED`), perhaps after
    /// a SACK. Which of its transmissions arrived is unknown.
    retrans_data_acked: bool,
    /// A packet of this episode that was never retransmitted was delivered
    /// (`FLAG_ORIG_SACK_ACKED`).
    pub(super) orig_sack_acked: bool,
    /// The receiver reported a duplicate (`FLAG_DSACKING_ACK`).
    pub(super) dsack: bool,
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

/// The SACK blocks of an acknowledgement, at most three, from the lowest up: the last packet that they
/// report is then the newest one (`tcp_sacktag_write_queue`).
#[inline]
fn ascending(blocks: impl Iterator<Item = (u32, u32)>) -> impl Iterator<Item = (u32, u32)> {
    let (mut sorted, mut count) = ([(0, 0); 3], 0);
    for (slot, block) in sorted.iter_mut().zip(blocks) {
        *slot = block;
        count += 1;
    }
    sorted[..count].sort_unstable();
    sorted.into_iter().take(count)
}

/// Whether the first block of an acknowledgement, of packet `number`, reports a duplicate: it is below
/// the acknowledgement or inside the second block (RFC 2883, section 4; `tcp_check_dsack`).
#[cold]
fn is_duplicate(segment: &Segment, number: u32) -> bool {
    number < segment.number
        || segment.blocks().nth(1).is_some_and(|(start, end)| (start..end).contains(&number))
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
        if segment.number < self.scoreboard.una() {
            return self.on_old_acknowledgement(segment);
        }
        let prior_in_flight = self.path.in_flight;
        self.window_end = self.window_end.max(segment.number.saturating_add(segment.window()));
        self.ts_recent = segment.tsval();
        let mut summary = AckSummary::default();
        self.update_scoreboard(segment, &mut summary);
        self.path.delivered += u64::from(summary.delivered);
        if summary.delivered > 0 {
            self.path.delivered_at = self.path.now;
        }
        if self.rack.dsack_seen() {
            self.update_reo_wnd(&summary);
        }
        self.path.in_flight = self.scoreboard.in_flight();
        self.path.una = u64::from(self.scoreboard.una());
        let rtt = self.update_rtt(segment, &summary);
        if summary.una_advanced {
            self.rto_since_advance = false;
            self.check_completion();
        }
        // A packet that was sent before the oldest one was retransmitted restarts the timer too
        // (`tcp_clean_rtx_queue`).
        let sets_timer = summary.una_advanced
            || summary.sackt.is_some_and(|(first, _)| first < self.oldest_sent_at());
        self.process_tlp_ack(segment, &summary);
        let lost_before = self.path.lost;
        let (marked, ece) = self.ecn_feedback(segment, summary.delivered);
        self.path.marked += u64::from(marked);
        let waits_for_reordering = self.fastretrans_alert(segment, &summary, ece);
        if sets_timer && !waits_for_reordering {
            self.set_xmit_timer();
        }
        let lost = (self.path.lost - lost_before) as u32;
        // The record of an acknowledged packet stays valid until a new packet takes its place.
        let last_sent =
            summary.last_sent.map(|(_, number)| self.scoreboard.packet(number).info(&self.path));
        let rate = self.rate.sample(&self.path, last_sent.as_ref());
        if summary.delivered > 0 || lost > 0 {
            self.cong_control(&summary, lost, marked, rtt, prior_in_flight, rate);
        }
    }

    /// An acknowledgement was overtaken by a later one: only its SACK blocks count (`tcp_ack`, `old_ack`).
    #[cold]
    fn on_old_acknowledgement(&mut self, segment: &Segment) {
        if segment.blocks().next().is_none() {
            return;
        }
        let mut summary = AckSummary::default();
        self.update_scoreboard(segment, &mut summary);
        self.path.delivered += u64::from(summary.delivered);
        self.path.in_flight = self.scoreboard.in_flight();
        self.fastretrans_alert(segment, &summary, false);
    }

    /// The number of packets newly reported as marked, and whether the acknowledgement echoes congestion.
    ///
    /// Classic ECN does not say how many packets were marked: all that an acknowledgement with ECE delivers
    /// count (`tcp_count_delivered`).
    ///
    /// Accurate ECN has a counter, so that a lost acknowledgement loses no mark. An older value than the
    /// last one comes from a reordered acknowledgement, which delivers nothing (RFC 9768, section 3.2.2).
    #[inline]
    fn ecn_feedback(&mut self, segment: &Segment, delivered: u32) -> (u32, bool) {
        let ece = segment.flags.contains(Flags::ECE);
        match self.stack.ecn {
            Ecn::Off | Ecn::Classic => return (if ece { delivered } else { 0 }, ece),
            Ecn::Accurate => return (u32::from(segment.marked), ece),
            Ecn::L4s => {}
        }
        let delta = segment.marked.wrapping_sub(self.cep);
        if delta == 0 || delta >= 128 && delivered == 0 {
            return (0, false);
        }
        self.cep = segment.marked;
        (u32::from(delta), true)
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
        let &AckSummary { delivered, una_advanced, data_sacked, .. } = summary;
        self.path.window_full = self.cwnd_usage.is_cwnd_limited;
        self.path.cwnd_limited = self.is_cwnd_limited() && self.post_recovery_cwnd.is_none();
        self.path.prr_cwnd = self.prr.as_ref().map(Prr::cwnd);
        // If reordering is high, the window grows by packets delivered in any order
        // (`tcp_may_raise_cwnd`).
        let may_raise = una_advanced || data_sacked && self.rack.is_reordering_high();
        let acked = if may_raise { delivered } else { 0 };
        let acked = if self.stack.byte_counting { acked } else { acked.min(1) };
        let ack = Ack::new(delivered)
            .with_acked(acked)
            .with_lost(lost)
            .with_marked(marked)
            .with_rtt(rtt)
            .with_prior_in_flight(prior_in_flight)
            .with_rate(rate);
        self.cc.on_ack(&self.path, &ack);
        if let Some(prr) = &mut self.prr {
            let ssthresh = self.cc.control().cwnd as u32;
            prr.on_ack(ssthresh, self.path.in_flight, delivered, una_advanced && lost == 0);
        }
        self.update_control();
        self.grow_post_recovery_cwnd(acked);
        self.path.pacing_rate = self.pacing_rate();
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
    /// blocks. Written in place: to copy the summary would wait until all stores before are done.
    #[inline(always)]
    fn update_scoreboard(&mut self, segment: &Segment, summary: &mut AckSummary) {
        let mut blocks = segment.blocks();
        let mut reordered = None;
        if segment.flags.contains(Flags::DSACK)
            && let Some((number, _)) = blocks.next()
            && is_duplicate(segment, number)
        {
            summary.dsack = self.on_dsack(number);
            summary.delivered += u32::from(summary.dsack);
            reordered = summary.dsack.then_some(number).filter(|&number| self.was_late(number));
        }
        let Sender { scoreboard, rack, path, high_seq, stack, .. } = self;
        let highest_sacked = scoreboard.highest_sacked();
        for (start, end) in ascending(blocks) {
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
        if let Some(number) = reordered {
            rack.update_reordering(scoreboard.highest_sacked() - number);
        }
        summary.prior_una = scoreboard.una();
        summary.una_advanced = segment.number > summary.prior_una;
        let retrans_sacked = scoreboard.acknowledge(segment.number, |number, packet, count| {
            summary.delivered += count;
            keep_last_sent(&mut summary.last_sent, number, packet);
            // An echoed timestamp from before the retransmission is the original's
            // (`tcp_skb_spurious_retrans`).
            let is_original = || is_tick_before(segment.timestamp, timestamp(packet.sent_at()));
            if !packet.ever_retransmitted() || !stack.timestamps() || !is_original() {
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
        summary.retrans_data_acked |= retrans_sacked;
    }

    /// Whether packet `number`, of which a duplicate arrived, is acknowledged selectively: its original and
    /// its retransmission arrived after later packets (`tcp_sacktag_one`).
    #[cold]
    fn was_late(&self, number: u32) -> bool {
        let is_outstanding = (self.scoreboard.una()..self.scoreboard.next_seq()).contains(&number);
        is_outstanding && {
            let packet = self.scoreboard.packet(number);
            packet.has(PacketFlags::SACKED) && packet.ever_retransmitted()
        }
    }

    /// The receiver reported that packet `number` arrived twice: the spurious retransmission is delivered.
    /// Returns false if the network must have duplicated a packet, since more duplicates were reported than
    /// packets retransmitted (`tcp_dsack_seen`).
    fn on_dsack(&mut self, number: u32) -> bool {
        if u64::from(self.dsacks) >= self.retransmitted {
            return false;
        }
        self.dsacks += 1;
        self.undo.on_dsack(number);
        // A duplicate of a tail loss probe says nothing about reordering (`FLAG_DSACK_TLP`).
        if self.tlp.is_some_and(|tlp| tlp.end_seq == number + 1) {
            self.tlp = None;
        } else {
            self.rack.on_dsack();
        }
        true
    }

    /// Widens RACK's window after a D-SACK (`tcp_rack_update_reo_wnd`).
    #[cold]
    fn update_reo_wnd(&mut self, summary: &AckSummary) {
        if let Some((_, number)) = summary.last_sent {
            let sent = self.scoreboard.packet(number).info(&self.path).send_state;
            self.rack.update_reo_wnd(sent.delivered, self.path.delivered);
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
            segment.number == tlp.end_seq && !summary.una_advanced && !summary.data_sacked;
        if segment.number < tlp.end_seq
            || segment.number == tlp.end_seq && tlp.is_retrans && !is_duplicate
        {
            return;
        }
        self.tlp = None;
        if tlp.is_retrans && !is_duplicate {
            self.recoveries += 1;
            self.notify_congestion(&congestion(Signal::Loss, true, 1, u64::from(tlp.end_seq - 1)));
        }
    }
}
