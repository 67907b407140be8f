//! RACK: loss detection by time (RFC 8985).
//!
//! A packet is lost if one that was sent sufficiently later has been delivered: later by the
//! reordering window, which is zero once three packets were delivered out of order and no
//! reordering was ever seen (section 6.2, steps 3 to 5).

use crate::LossDetection;
use crate::packet::{Marks, Packet};
use crate::scoreboard::Scoreboard;
use dumbbell_cc::{CaState, Path};
use dumbbell_units::{Span, Time};
use std::collections::VecDeque;

/// Rounds without D-SACK after which the reordering window shrinks again (section 6.2, step 4).
const PERSIST_ROUNDS: u32 = 16;
/// Selectively acknowledged packets that prove loss where no reordering was seen.
const DUP_THRESH: u32 = 3;

/// RACK's state.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// The most recently sent packet that was delivered (RACK.xmit_ts, RACK.end_seq).
    newest: Option<(Time, u32)>,
    /// Its round-trip time (RACK.rtt).
    rtt: Span,
    /// Whether packets were seen to be delivered out of order (RACK.reordering_seen).
    reordering_seen: bool,
    /// By how many packets one was overtaken at most (tp->reordering).
    degree: u32,
    window_steps: u64,
    persist: u32,
    /// A D-SACK was seen; the window grows once a round trip.
    dsack_round_end: Option<u64>,
    /// Original transmissions below this were judged already.
    cursor: u32,
    /// Retransmissions in the order of sending.
    retransmissions: VecDeque<(Time, u32)>,
}

impl Rack {
    pub(crate) fn new() -> Rack {
        Rack {
            newest: None,
            rtt: Span::ZERO,
            reordering_seen: false,
            degree: 0,
            window_steps: 1,
            persist: 0,
            dsack_round_end: None,
            cursor: 0,
            retransmissions: VecDeque::new(),
        }
    }

    /// A packet was delivered (step 2). A retransmission acknowledged sooner than any round trip
    /// was not what was acknowledged: the original was.
    #[inline]
    pub(crate) fn advance(&mut self, path: &Path, number: u32, packet: &Packet) {
        let rtt = path.now.since(packet.sent_at());
        if packet.was_retransmitted() && path.min_rtt.is_some_and(|min| rtt < min) {
            return;
        }
        self.rtt = rtt;
        keep_newest(&mut self.newest, number, packet);
    }

    /// A packet was delivered after so many that had been sent after it (step 3).
    pub(crate) fn saw_reordering(&mut self, overtaken_by: u32) {
        self.reordering_seen = true;
        self.degree = self.degree.max(overtaken_by);
    }

    /// Whether packets are overtaken by more than would prove loss where none are.
    #[inline]
    pub(crate) fn reorders(&self) -> bool {
        self.degree > DUP_THRESH
    }

    /// A packet was sent again.
    pub(crate) fn retransmitted(&mut self, now: Time, number: u32) {
        self.retransmissions.push_back((now, number));
    }

    /// The receiver reported a duplicate: the window was too small (step 4).
    pub(crate) fn on_dsack(&mut self, path: &Path) {
        if self.dsack_round_end.is_none_or(|end| path.delivered >= end) {
            self.dsack_round_end = Some(path.delivered + u64::from(path.in_flight));
            self.window_steps = (self.window_steps + 1).min(255);
            self.persist = PERSIST_ROUNDS;
        }
    }

    /// A recovery episode ended (step 4: the window shrinks after 16 of them without D-SACK).
    pub(crate) fn recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.window_steps = 1;
        }
    }

    /// The reordering window (RACK_update_reo_wnd).
    fn window(&self, board: &Scoreboard, path: &Path) -> Span {
        if !self.reordering_seen
            && (matches!(path.ca_state, CaState::Recovery | CaState::Loss)
                || board.sacked_out() >= DUP_THRESH)
        {
            return Span::ZERO;
        }
        let quarter = path.min_rtt.unwrap_or(Span::ZERO) / 4;
        (quarter * self.window_steps).min(path.srtt.unwrap_or(Span::ZERO))
    }

    /// Marks what is lost by now into `lost` (step 5). Gives how long to wait for the packets that
    /// are not yet, if there are any.
    pub(crate) fn detect(
        &mut self,
        board: &mut Scoreboard,
        path: &Path,
        lost: &mut Vec<u32>,
    ) -> Option<Span> {
        let newest = self.newest?;
        let window = self.window(board, path);
        let deadline = |sent_at: Time| sent_at + self.rtt + window;
        let mut wait: Option<Span> = None;
        let mut wait_for = |remaining: Span| {
            wait = Some(wait.map_or(remaining, |other| other.max(remaining)));
        };
        let mut cursor = self.cursor.max(board.una());
        let mut undecided = None;
        while cursor < board.next() {
            let packet = board.packet(cursor);
            let sent_at = packet.sent_at();
            let settled = packet.has(Marks::SACKED.and(Marks::LOST).and(Marks::RETRANSMITTING));
            if !settled {
                let sent_before = (sent_at, cursor) < newest;
                if sent_before && deadline(sent_at) <= path.now {
                    board.mark_lost(cursor);
                    lost.push(cursor);
                } else {
                    if sent_before {
                        wait_for(deadline(sent_at).since(path.now));
                    }
                    // A retransmission that was taken for lost until its episode was undone is
                    // not among `retransmissions` any more: it is judged here, though it was sent
                    // later than the originals after it.
                    if !packet.was_retransmitted() {
                        break;
                    }
                    undecided.get_or_insert(cursor);
                }
            }
            cursor += 1;
        }
        self.cursor = undecided.unwrap_or(cursor);
        while let Some(&(sent_at, number)) = self.retransmissions.front() {
            let live = number >= board.una() && {
                let packet = board.packet(number);
                packet.has(Marks::RETRANSMITTING) && packet.sent_at() == sent_at
            };
            if live {
                if (sent_at, number) >= newest {
                    break;
                }
                if deadline(sent_at) > path.now {
                    wait_for(deadline(sent_at).since(path.now));
                    break;
                }
                board.mark_lost(number);
                lost.push(number);
            }
            self.retransmissions.pop_front();
        }
        wait
    }

    /// After a timeout: everything that was sent long enough ago is lost, the first packet in any
    /// case; what was sent recently may still arrive (Linux's tcp_timeout_mark_lost). Who counts
    /// duplicates knows no such time: all is lost (RFC 6675, section 5.1).
    pub(crate) fn on_timeout(
        &mut self,
        by: LossDetection,
        board: &mut Scoreboard,
        path: &Path,
        lost: &mut Vec<u32>,
    ) {
        for number in board.una()..board.next() {
            let sent_at = board.packet(number).sent_at();
            let recent = by == LossDetection::Rack && sent_at + self.rtt > path.now;
            if (number == board.una() || !recent) && board.mark_lost(number) {
                lost.push(number);
            }
        }
    }

    /// Loss marks were taken back: judge everything again.
    pub(crate) fn reset_cursor(&mut self, board: &Scoreboard) {
        self.cursor = board.una();
    }

    /// What the newest delivered packet of an acknowledgement means for detection by counting
    /// (RFC 6675): everything below three selectively acknowledged packets is lost.
    pub(crate) fn detect_by_count(board: &mut Scoreboard, from: u32, lost: &mut Vec<u32>) -> u32 {
        let limit = board.below_three_sacks();
        for number in from.max(board.una())..limit {
            let packet = board.packet(number);
            if !packet.was_retransmitted() && board.mark_lost(number) {
                lost.push(number);
            }
        }
        limit.max(from)
    }
}

/// Keeps the newest of the packets that an acknowledgement delivers: when it was sent, and its
/// number; at the same instant the higher one is later.
#[inline]
pub(crate) fn keep_newest(newest: &mut Option<(Time, u32)>, number: u32, packet: &Packet) {
    let sent = (packet.sent_at(), number);
    if newest.is_none_or(|newest| newest < sent) {
        *newest = Some(sent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dumbbell_cc::{PacketInfo, SendState};

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

    #[test]
    fn a_retransmission_that_was_lost_before_an_undo_is_still_found_lost_after_it() {
        let (mut rack, mut board) = (Rack::new(), Scoreboard::new());
        let mut path = Path::new(1448, at(0));
        for number in 0..4 {
            board.push(&sent(number));
        }
        board.mark_lost(0);
        board.retransmit(0, &sent(100));
        rack.retransmitted(at(100), 0);
        // A timeout takes the retransmission for lost; that is undone.
        board.mark_lost(0);
        let mut lost = Vec::new();
        rack.detect(&mut board, &path, &mut lost);
        board.unmark_lost();
        rack.reset_cursor(&board);
        assert_eq!(lost, []);
        // A packet sent after the retransmission is delivered long after.
        board.push(&sent(300));
        path.now = at(400);
        board.sack(4, 5, |number, packet| rack.advance(&path, number, packet));
        rack.detect(&mut board, &path, &mut lost);
        assert_eq!(lost, [0, 1, 2, 3]);
    }
}
