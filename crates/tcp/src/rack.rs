//! RACK: loss detection by time (RFC 8985, section 6.2; Linux `tcp_recovery.c`).
//!
//! A packet is lost if one that was sent later by more than the reordering window was delivered.
//! The window is zero once three packets are SACKed, or in recovery, as long as no reordering was
//! seen.
//!
//! | here | RFC 8985, section 6.2 | Linux |
//! |---|---|---|
//! | [`Rack::advance`] | step 2, RACK_update() | `tcp_rack_advance` |
//! | [`Rack::update_reordering`] | step 3, RACK_detect_reordering() | `tcp_check_sack_reordering` |
//! | [`Rack::on_dsack`], [`Rack::on_recovery_end`], [`Rack::reo_wnd`] | step 4, RACK_update_reo_wnd() | `tcp_rack_update_reo_wnd`, `tcp_rack_reo_wnd` |
//! | [`Rack::detect_loss`] | step 5, RACK_detect_loss() | `tcp_rack_detect_loss` |
//! | [`Rack::mark_losses_on_rto`] | section 6.3, RACK_mark_losses_on_RTO() | `tcp_timeout_mark_lost` |

use crate::LossDetection;
use crate::scoreboard::Scoreboard;
use crate::sent_packet::{PacketFlags, SentPacket};
use dumbbell_cc::{CaState, Path};
use dumbbell_units::{Span, Time};
use std::collections::VecDeque;

/// Recoveries without D-SACK after which the reordering window is reset (Linux
/// `TCP_RACK_RECOVERY_THRESH`).
const REO_WND_PERSIST: u32 = 16;
/// SACKed packets above a hole that prove a loss where no reordering was seen (RFC 6675).
const DUP_THRESH: u32 = 3;

/// Flags of packets not SACKed of which RACK has nothing to find out; retransmissions in flight have a
/// list of their own.
const SETTLED: PacketFlags =
    PacketFlags::LOST.union(PacketFlags::RETRANS_OUT).union(PacketFlags::RACK_LOST);

/// RACK's variables (RFC 8985, section 5.3).
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// The most recently sent packet that was delivered: RACK.xmit_ts, RACK.end_seq.
    segment: Option<(Time, u32)>,
    /// Its round-trip time (RACK.rtt).
    rtt: Span,
    /// Packets were delivered out of order (RACK.reordering_seen).
    reordering_seen: bool,
    /// Maximum number of packets that overtook one (Linux `tp->reordering`).
    reordering: u32,
    /// The reordering window in quarters of the minimum RTT (RACK.reo_wnd_mult).
    reo_wnd_mult: u64,
    /// Recoveries until it is reset (RACK.reo_wnd_persist).
    reo_wnd_persist: u32,
    /// Delivered packets that end the round trip in which a D-SACK last widened the window
    /// (RACK.dsack_round).
    dsack_round: Option<u64>,
    /// Original transmissions below this need no further check.
    loss_cursor: u32,
    /// Retransmissions in the order of sending.
    retransmissions: VecDeque<(Time, u32)>,
}

impl Rack {
    pub(crate) fn new() -> Rack {
        Rack {
            segment: None,
            rtt: Span::ZERO,
            reordering_seen: false,
            reordering: 0,
            reo_wnd_mult: 1,
            reo_wnd_persist: 0,
            dsack_round: None,
            loss_cursor: 0,
            retransmissions: VecDeque::new(),
        }
    }

    /// A packet was delivered (step 2). If it was acknowledged within less than the minimum RTT of
    /// its retransmission, the original was delivered.
    #[inline]
    pub(crate) fn advance(&mut self, path: &Path, number: u32, packet: &SentPacket) {
        let rtt = path.now.since(packet.sent_at());
        if packet.ever_retransmitted() && path.min_rtt.is_some_and(|min| rtt < min) {
            return;
        }
        self.rtt = rtt;
        keep_last_sent(&mut self.segment, number, packet);
    }

    /// A packet was delivered after `overtaken_by` packets that were sent after it (step 3).
    pub(crate) fn update_reordering(&mut self, overtaken_by: u32) {
        self.reordering_seen = true;
        self.reordering = self.reordering.max(overtaken_by);
    }

    /// Whether packets are overtaken by more than DupThresh others.
    #[inline]
    pub(crate) fn is_reordering_high(&self) -> bool {
        self.reordering > DUP_THRESH
    }

    /// A packet was retransmitted.
    pub(crate) fn on_retransmit(&mut self, now: Time, number: u32) {
        self.retransmissions.push_back((now, number));
    }

    /// The receiver reported a duplicate: the window was too small. It grows once per round trip
    /// (step 4). As in Linux (`tcp_dsack_seen`), it grows only if reordering was seen; in the RFC any
    /// D-SACK counts.
    pub(crate) fn on_dsack(&mut self, path: &Path) {
        if self.reordering_seen && self.dsack_round.is_none_or(|end| path.delivered >= end) {
            self.dsack_round = Some(path.delivered + u64::from(path.in_flight));
            self.reo_wnd_mult = (self.reo_wnd_mult + 1).min(255);
            self.reo_wnd_persist = REO_WND_PERSIST;
        }
    }

    /// Fast recovery or RTO recovery ended: the window is reset after 16 without D-SACK (step 4). As in
    /// Linux, a recovery that is undone does not count (`tcp_try_undo_recovery`); in the RFC it does.
    pub(crate) fn on_recovery_end(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
        if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    /// A recovery was undone by D-SACK: the window persists for one more (`tcp_try_undo_dsack`; not in
    /// the RFC).
    pub(crate) fn on_dsack_undo(&mut self) {
        self.reo_wnd_persist = (self.reo_wnd_persist + 1).min(REO_WND_PERSIST);
    }

    #[cfg(test)]
    pub(crate) fn reo_wnd_persist(&self) -> u32 {
        self.reo_wnd_persist
    }

    /// The reordering window (step 4).
    fn reo_wnd(&self, scoreboard: &Scoreboard, path: &Path) -> Span {
        if !self.reordering_seen
            && (matches!(path.ca_state, CaState::Recovery | CaState::Loss)
                || scoreboard.sacked_out() >= DUP_THRESH)
        {
            return Span::ZERO;
        }
        let quarter = path.min_rtt.unwrap_or(Span::ZERO) / 4;
        (quarter * self.reo_wnd_mult).min(path.srtt.unwrap_or(Span::ZERO))
    }

    /// Marks the packets that are lost by now and appends them to `lost` (step 5). Returns the time
    /// until the last of the others that were sent before the last delivered packet is lost, if there
    /// are any.
    pub(crate) fn detect_loss(
        &mut self,
        scoreboard: &mut Scoreboard,
        path: &Path,
        lost: &mut Vec<u32>,
    ) -> Option<Span> {
        let segment = self.segment?;
        let reo_wnd = self.reo_wnd(scoreboard, path);
        let deadline = |sent_at: Time| sent_at + self.rtt + reo_wnd;
        // When the last packet that may become lost was sent.
        let mut last_waiting: Option<Time> = None;
        let mut cursor = self.loss_cursor.max(scoreboard.una());
        let mut first_undecided = None;
        // Original transmissions: the order of their numbers is the order of sending.
        while cursor < scoreboard.next_seq() {
            let packet = scoreboard.packet(cursor);
            let sent_at = packet.sent_at();
            if !packet.has(PacketFlags::SACKED.union(SETTLED)) {
                let sent_before = (sent_at, cursor) < segment;
                if sent_before && deadline(sent_at) <= path.now {
                    scoreboard.mark_rack_lost(cursor);
                    lost.push(cursor);
                } else {
                    if sent_before {
                        last_waiting = last_waiting.max(Some(sent_at));
                    }
                    // A tail loss probe, or a retransmission that a timeout marked lost before it was undone,
                    // is not in `retransmissions`: it is checked here, although it was sent later than
                    // the originals after it.
                    if !packet.ever_retransmitted() {
                        if sent_before {
                            let last = last_sent_before(scoreboard, cursor, segment);
                            last_waiting = last_waiting.max(last);
                        }
                        break;
                    }
                    first_undecided.get_or_insert(cursor);
                }
            }
            cursor += 1;
        }
        self.loss_cursor = first_undecided.unwrap_or(cursor);
        // Retransmissions, in the order of sending.
        let is_out = |scoreboard: &Scoreboard, sent_at, number| {
            let packet = scoreboard.packet(number);
            number >= scoreboard.una()
                && packet.has(PacketFlags::RETRANS_OUT)
                && packet.sent_at() == sent_at
        };
        while let Some(&(sent_at, number)) = self.retransmissions.front() {
            if is_out(scoreboard, sent_at, number) {
                if (sent_at, number) >= segment {
                    break;
                }
                if deadline(sent_at) > path.now {
                    let waits = |&&sent: &&(Time, u32)| {
                        sent < segment && is_out(scoreboard, sent.0, sent.1)
                    };
                    let last = self.retransmissions.iter().rev().find(waits);
                    last_waiting = last_waiting.max(last.map(|&(sent_at, _)| sent_at));
                    break;
                }
                scoreboard.mark_rack_lost(number);
                lost.push(number);
            }
            self.retransmissions.pop_front();
        }
        last_waiting.map(|sent_at| deadline(sent_at).since(path.now))
    }

    /// Marks losses after a timeout. RACK: the first packet, and all that were sent more than
    /// RACK.rtt ago; the others may still arrive (section 6.3). DupThresh: all packets (RFC 6675,
    /// section 5.1).
    pub(crate) fn mark_losses_on_rto(
        &mut self,
        loss_detection: LossDetection,
        scoreboard: &mut Scoreboard,
        path: &Path,
        lost: &mut Vec<u32>,
    ) {
        for number in scoreboard.una()..scoreboard.next_seq() {
            let sent_at = scoreboard.packet(number).sent_at();
            let is_recent = loss_detection == LossDetection::Rack && sent_at + self.rtt > path.now;
            if (number == scoreboard.una() || !is_recent) && scoreboard.mark_lost(number) {
                lost.push(number);
            }
        }
    }

    /// Loss marks were removed: checks all packets again.
    pub(crate) fn reset_loss_cursor(&mut self, scoreboard: &Scoreboard) {
        self.loss_cursor = scoreboard.una();
    }

    /// DupThresh instead of RACK (RFC 6675): marks packets from `from` on with three SACKed packets
    /// above, and returns the new `from`.
    pub(crate) fn detect_loss_by_dupthresh(
        scoreboard: &mut Scoreboard,
        from: u32,
        lost: &mut Vec<u32>,
    ) -> u32 {
        let limit = scoreboard.is_lost_below();
        for number in from.max(scoreboard.una())..limit {
            let packet = scoreboard.packet(number);
            if !packet.ever_retransmitted() && scoreboard.mark_lost(number) {
                lost.push(number);
            }
        }
        limit.max(from)
    }
}

/// When the last packet from `first` on that was sent before `segment` was sent, of those neither
/// delivered, nor lost, nor being retransmitted.
fn last_sent_before(scoreboard: &Scoreboard, first: u32, segment: (Time, u32)) -> Option<Time> {
    // Of originals, those after a delivered original were sent later.
    let is_original = segment.1 > first && !scoreboard.packet(segment.1).ever_retransmitted();
    let end = if is_original { segment.1 } else { end_sent_before(scoreboard, first, segment) };
    scoreboard.holes_descending(first, end).find_map(|number| {
        let packet = scoreboard.packet(number);
        let waits = !packet.has(SETTLED) && (packet.sent_at(), number) < segment;
        waits.then(|| packet.sent_at())
    })
}

/// A number from `first` on below which all packets are that were sent before `segment`. Those after an
/// original were sent later than it, so a binary search finds the least such number, unless it meets a
/// packet that was retransmitted since.
fn end_sent_before(scoreboard: &Scoreboard, first: u32, segment: (Time, u32)) -> u32 {
    let (mut begin, mut end) = (first, scoreboard.next_seq());
    while begin < end {
        let middle = begin + (end - begin) / 2;
        let packet = scoreboard.packet(middle);
        if (packet.sent_at(), middle) < segment {
            begin = middle + 1;
        } else if packet.ever_retransmitted() {
            break;
        } else {
            end = middle;
        }
    }
    end
}

/// Keeps the packet sent last: its send time and number. Of packets sent at the same time, the one
/// with the higher number is later (RACK_sent_after()).
#[inline]
pub(crate) fn keep_last_sent(
    last_sent: &mut Option<(Time, u32)>,
    number: u32,
    packet: &SentPacket,
) {
    let sent = (packet.sent_at(), number);
    if last_sent.is_none_or(|last| last < sent) {
        *last_sent = Some(sent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dumbbell_cc::{PacketInfo, SendState};
    use proptest::prelude::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    fn sent(ms: u64) -> PacketInfo {
        PacketInfo {
            send_state: SendState { sent_at: at(ms), ..SendState::default() },
            first_sent_at: at(0),
            delivered_at: at(0),
        }
    }

    const MIN_RTT: Span = Span::from_millis(100);

    /// A path with an RTT of 100 ms.
    fn path(ms: u64) -> Path {
        let mut path = Path::new(1448, at(ms));
        (path.min_rtt, path.srtt) = (Some(MIN_RTT), Some(MIN_RTT));
        path
    }

    /// Packets sent 1 ms apart from time 0 on.
    fn scoreboard(packets: u64) -> Scoreboard {
        let mut scoreboard = Scoreboard::new();
        for number in 0..packets {
            scoreboard.push(&sent(number));
        }
        scoreboard
    }

    fn sack(rack: &mut Rack, scoreboard: &mut Scoreboard, path: &Path, number: u32) {
        scoreboard.sack(number, number + 1, |number, packet| rack.advance(path, number, packet));
    }

    /// Step 5: a packet is lost once RACK.rtt + reo_wnd have passed since it was sent.
    #[test]
    fn a_packet_is_lost_after_the_rtt_and_a_quarter_of_the_minimum() {
        let (mut rack, mut scoreboard, mut lost) = (Rack::new(), scoreboard(3), Vec::new());
        let mut path = path(101);
        sack(&mut rack, &mut scoreboard, &path, 1);
        // Packet 0 was sent at 0 ms, packet 1 took 100 ms, and the window is 25 ms. Packet 2 was sent
        // later than the delivered one and is not considered.
        let wait = rack.detect_loss(&mut scoreboard, &path, &mut lost);
        assert_eq!((wait, lost.as_slice()), (Some(Span::from_millis(24)), &[][..]));
        path.now = at(125);
        let wait = rack.detect_loss(&mut scoreboard, &path, &mut lost);
        assert_eq!((wait, lost.as_slice()), (None, &[0][..]));
    }

    /// RFC 8985, section 3.4: P1, P2 and P3 are lost, P3 is repeated as a probe. Its SACK marks P1 and
    /// P2 lost.
    #[test]
    fn the_sack_of_a_probe_marks_the_packets_before_it_lost() {
        let (mut rack, mut scoreboard, mut lost) = (Rack::new(), scoreboard(4), Vec::new());
        scoreboard.acknowledge(1, |number, packet, _| rack.advance(&path(100), number, packet));
        scoreboard.probe(3, &sent(300));
        sack(&mut rack, &mut scoreboard, &path(400), 3);
        let wait = rack.detect_loss(&mut scoreboard, &path(400), &mut lost);
        assert_eq!((wait, lost.as_slice()), (None, &[1, 2][..]));
    }

    /// `tcp_rack_detect_loss`: "Record maximum wait time". Packets 0 and 1 are lost and retransmitted, 3
    /// and 5 delivered.
    #[test]
    fn the_timer_waits_for_the_last_packet_that_may_be_lost() {
        let (mut rack, mut scoreboard, mut lost) = (Rack::new(), scoreboard(8), Vec::new());
        for number in [3, 5] {
            sack(&mut rack, &mut scoreboard, &path(105), number);
        }
        let mut wait = |rack: &mut Rack, scoreboard: &mut Scoreboard, ms| {
            rack.detect_loss(scoreboard, &path(ms), &mut lost)
        };
        let last = wait(&mut rack, &mut scoreboard, 105);
        assert_eq!(last, Some(Span::from_millis(4 + 125 - 105)), "packet 4, not 0 nor 6");
        for (number, ms) in [(0, 200), (1, 201)] {
            scoreboard.mark_lost(number);
            scoreboard.retransmit(number, &sent(ms));
            rack.on_retransmit(at(ms), number);
        }
        scoreboard.push(&sent(205));
        rack.update_reordering(1);
        sack(&mut rack, &mut scoreboard, &path(305), 8);
        let last = wait(&mut rack, &mut scoreboard, 305);
        assert_eq!(last, Some(Span::from_millis(201 + 125 - 305)));
        assert_eq!(lost, [2, 4, 6, 7]);
    }

    /// In Linux `tcp_rack_detect_loss` takes a lost packet from `tsorted_sent_queue`, and only a
    /// retransmission puts it back.
    #[test]
    fn a_packet_whose_loss_was_undone_is_not_found_lost_again() {
        let (mut rack, mut scoreboard, mut lost) = (Rack::new(), scoreboard(8), Vec::new());
        for number in [3, 4, 5] {
            sack(&mut rack, &mut scoreboard, &path(105), number);
        }
        rack.detect_loss(&mut scoreboard, &path(105), &mut lost);
        assert_eq!(lost, [0, 1, 2]);
        scoreboard.unmark_lost();
        rack.reset_loss_cursor(&scoreboard);
        scoreboard.retransmit(1, &sent(120));
        rack.on_retransmit(at(120), 1);
        for (number, ms) in [(6, 106), (7, 107)] {
            sack(&mut rack, &mut scoreboard, &path(ms), number);
        }
        scoreboard.push(&sent(200));
        sack(&mut rack, &mut scoreboard, &path(300), 8);
        lost.clear();
        rack.detect_loss(&mut scoreboard, &path(300), &mut lost);
        assert_eq!(lost, [1], "0 and 2 wait for the retransmission timer");
    }

    /// Step 4: without reordering seen, three SACKed packets or a recovery close the window.
    #[test]
    fn the_window_is_zero_with_three_sacked_packets_and_no_reordering() {
        let (mut rack, mut scoreboard) = (Rack::new(), scoreboard(10));
        let open = path(110);
        let mut recovery = path(110);
        recovery.ca_state = CaState::Recovery;
        for number in [1, 2] {
            sack(&mut rack, &mut scoreboard, &open, number);
            assert_eq!(rack.reo_wnd(&scoreboard, &open), MIN_RTT / 4);
        }
        assert_eq!(rack.reo_wnd(&scoreboard, &recovery), Span::ZERO);
        sack(&mut rack, &mut scoreboard, &open, 3);
        assert_eq!(rack.reo_wnd(&scoreboard, &open), Span::ZERO);
        rack.update_reordering(1);
        assert_eq!(rack.reo_wnd(&scoreboard, &open), MIN_RTT / 4);
        assert_eq!(rack.reo_wnd(&scoreboard, &recovery), MIN_RTT / 4);
    }

    /// Step 4: each round trip with a D-SACK adds a quarter of the minimum RTT, up to SRTT.
    #[test]
    fn a_d_sack_widens_the_window_once_per_round_trip() {
        let (mut rack, scoreboard) = (Rack::new(), scoreboard(1));
        let mut path = path(0);
        path.in_flight = 10;
        rack.on_dsack(&path);
        assert_eq!(rack.reo_wnd(&scoreboard, &path), MIN_RTT / 4, "no reordering was seen");
        rack.update_reordering(1);
        for round in 2..8 {
            rack.on_dsack(&path);
            rack.on_dsack(&path);
            path.delivered += 9;
            rack.on_dsack(&path);
            assert_eq!(rack.reo_wnd(&scoreboard, &path), (MIN_RTT / 4 * round).min(MIN_RTT));
            path.delivered += 1;
        }
    }

    /// Step 4: 16 recoveries without a D-SACK reset the window.
    #[test]
    fn sixteen_recoveries_without_d_sack_reset_the_window() {
        let (mut rack, scoreboard, mut path) = (Rack::new(), scoreboard(1), path(0));
        rack.update_reordering(1);
        rack.on_dsack(&path);
        for _ in 0..15 {
            rack.on_recovery_end();
        }
        assert_eq!(rack.reo_wnd(&scoreboard, &path), MIN_RTT / 2);
        path.delivered = 1;
        rack.on_dsack(&path);
        for _ in 0..15 {
            rack.on_recovery_end();
        }
        assert_eq!(
            rack.reo_wnd(&scoreboard, &path),
            MIN_RTT / 4 * 3,
            "a D-SACK restarts the count"
        );
        rack.on_recovery_end();
        assert_eq!(rack.reo_wnd(&scoreboard, &path), MIN_RTT / 4);
    }

    /// Step 2: an acknowledgement within less than the minimum RTT of a retransmission is for the
    /// original.
    #[test]
    fn an_ack_sooner_than_the_minimum_rtt_is_not_for_the_retransmission() {
        let (mut rack, mut scoreboard, mut lost) = (Rack::new(), scoreboard(3), Vec::new());
        scoreboard.mark_lost(2);
        scoreboard.retransmit(2, &sent(200));
        sack(&mut rack, &mut scoreboard, &path(299), 2);
        rack.detect_loss(&mut scoreboard, &path(299), &mut lost);
        assert_eq!(lost, [], "the original of packet 2 may have been delivered");
    }

    /// Section 6.3: after a timeout, packets sent within the last RACK.rtt may still arrive.
    #[test]
    fn a_timeout_marks_the_first_packet_and_the_old_ones_lost() {
        let rto = |loss_detection| {
            let (mut rack, mut scoreboard, mut lost) = (Rack::new(), scoreboard(300), Vec::new());
            sack(&mut rack, &mut scoreboard, &path(101), 1);
            rack.mark_losses_on_rto(loss_detection, &mut scoreboard, &path(300), &mut lost);
            lost
        };
        let old = (0..=200).filter(|&number| number != 1);
        assert_eq!(rto(LossDetection::Rack), old.collect::<Vec<_>>());
        assert_eq!(rto(LossDetection::DupThresh).len(), 299, "all that are not SACKed");
    }

    #[test]
    fn a_retransmission_lost_before_an_undo_is_found_lost_after_it() {
        let (mut rack, mut scoreboard) = (Rack::new(), Scoreboard::new());
        let mut path = Path::new(1448, at(0));
        for number in 0..4 {
            scoreboard.push(&sent(number));
        }
        scoreboard.mark_lost(0);
        scoreboard.retransmit(0, &sent(100));
        rack.on_retransmit(at(100), 0);
        // A timeout marks the retransmission lost; that is undone.
        scoreboard.mark_lost(0);
        let mut lost = Vec::new();
        rack.detect_loss(&mut scoreboard, &path, &mut lost);
        scoreboard.unmark_lost();
        rack.reset_loss_cursor(&scoreboard);
        assert_eq!(lost, []);
        // A packet sent after the retransmission is delivered long after.
        scoreboard.push(&sent(300));
        path.now = at(400);
        scoreboard.sack(4, 5, |number, packet| rack.advance(&path, number, packet));
        rack.detect_loss(&mut scoreboard, &path, &mut lost);
        assert_eq!(lost, [0, 1, 2, 3]);
    }

    proptest! {
        /// The search for the last packet that waits, against a look at each packet.
        #[test]
        fn the_last_packet_that_waits_is_found(
            steps in prop::collection::vec((0u8..9, 0u32..60, 0u64..2), 1..120),
            (first, segment) in (0u32..60, 0u32..60),
        ) {
            let (mut scoreboard, mut ms) = (scoreboard(3), 3);
            for (step, number, passed) in steps {
                ms += passed;
                let number = number % scoreboard.next_seq();
                match step {
                    0..5 => _ = scoreboard.push(&sent(ms)),
                    5 => scoreboard.sack(number, number + 1, |_, _| {}),
                    6 => scoreboard.probe(number, &sent(ms)),
                    7 => _ = scoreboard.mark_lost(number).then(|| scoreboard.retransmit(number, &sent(ms))),
                    _ => scoreboard.unmark_lost(),
                }
            }
            let (first, segment) = (first % scoreboard.next_seq(), segment % scoreboard.next_seq());
            let segment = (scoreboard.packet(segment).sent_at(), segment);
            let waits = |&number: &u32| {
                let packet = scoreboard.packet(number);
                !packet.has(SETTLED.union(PacketFlags::SACKED)) && (packet.sent_at(), number) < segment
            };
            let last = (first..scoreboard.next_seq()).rev().find(waits);
            let expected = last.map(|number| scoreboard.packet(number).sent_at());
            prop_assert_eq!(last_sent_before(&scoreboard, first, segment), expected);
        }
    }
}
