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
//! | [`Rack::update_reo_wnd`], [`Rack::on_recovery_end`], [`Rack::reo_wnd`] | step 4, RACK_update_reo_wnd() | `tcp_rack_update_reo_wnd`, `tcp_rack_reo_wnd` |
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
    /// A packet was delivered since losses were last looked for (Linux `rack.advanced`).
    advanced: bool,
    /// Packets were delivered out of order (RACK.reordering_seen).
    reordering_seen: bool,
    /// Maximum number of packets that overtook one (Linux `tp->reordering`).
    reordering: u32,
    /// The reordering window in quarters of the minimum RTT (RACK.reo_wnd_mult).
    reo_wnd_mult: u64,
    /// Recoveries until it is reset (RACK.reo_wnd_persist).
    reo_wnd_persist: u32,
    /// A D-SACK is not considered yet (Linux `dsack_seen`).
    dsack_seen: bool,
    /// Packets delivered when a D-SACK last widened the window (Linux `last_delivered`; it stands for
    /// RACK.dsack_round).
    last_delivered: u64,
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
            advanced: false,
            reordering_seen: false,
            reordering: 0,
            reo_wnd_mult: 1,
            reo_wnd_persist: 0,
            dsack_seen: false,
            last_delivered: 0,
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
        self.advanced = true;
        self.rtt = rtt;
        keep_last_sent(&mut self.segment, number, packet);
    }

    /// A packet was delivered after `overtaken_by` packets that were sent after it (step 3).
    pub(crate) fn update_reordering(&mut self, overtaken_by: u32) {
        self.reordering_seen = true;
        self.reordering = self.reordering.max(overtaken_by);
    }

    /// A timeout with `sacked_out` packets SACKed, outside of an episode: if these are many, the degree of
    /// reordering is overestimated (`tcp_enter_loss`).
    pub(crate) fn limit_reordering(&mut self, sacked_out: u32) {
        if sacked_out >= DUP_THRESH {
            self.reordering = self.reordering.min(DUP_THRESH);
        }
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

    /// The receiver reported a duplicate: the window was too small. As in Linux (`tcp_dsack_seen`), that
    /// counts only if reordering was seen; in the RFC any D-SACK counts.
    pub(crate) fn on_dsack(&mut self) {
        self.dsack_seen |= self.reordering_seen;
    }

    pub(crate) fn dsack_seen(&self) -> bool {
        self.dsack_seen
    }

    /// A packet was delivered after a D-SACK: widens the window, once per round trip (step 4).
    /// `prior_delivered` packets had been delivered when that packet was sent, `delivered` now; Linux ignores
    /// packets of the first flight.
    pub(crate) fn update_reo_wnd(&mut self, prior_delivered: u64, delivered: u64) {
        if prior_delivered == 0 {
            return;
        }
        self.dsack_seen = false;
        if prior_delivered >= self.last_delivered {
            self.last_delivered = delivered;
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

    /// Whether an acknowledgement may show losses: a packet was delivered since the last time, or a
    /// reduction was undone (Linux `tcp_rack_mark_lost`; in the RFC every acknowledgement may).
    pub(crate) fn take_advanced(&mut self) -> bool {
        std::mem::take(&mut self.advanced)
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

    /// A reduction was undone: checks all packets again (`tcp_undo_cwnd_reduction`).
    pub(crate) fn reset_loss_cursor(&mut self, scoreboard: &Scoreboard) {
        self.advanced = true;
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
mod tests;
