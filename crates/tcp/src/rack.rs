//! RACK: loss detection by time (RFC 8985).
//!
//! A packet is lost if one that was sent sufficiently later has been delivered: later by the
//! reordering window, which is zero once three packets were delivered out of order and no
//! reordering was ever seen (section 6.2, steps 3 to 5).

use crate::LossDetection;
use crate::scoreboard::Scoreboard;
use crate::sent_packet::{PacketFlags, SentPacket};
use dumbbell_cc::{CaState, Path};
use dumbbell_units::{Span, Time};
use std::collections::VecDeque;

/// Rounds without D-SACK after which the reordering window shrinks again (section 6.2, step 4).
const REO_WND_PERSIST: u32 = 16;
/// Selectively acknowledged packets that prove loss where no reordering was seen.
const DUP_THRESH: u32 = 3;

/// RACK's state.
#[derive(Clone, Debug)]
pub(crate) struct Rack {
    /// The most recently sent packet that was delivered (RACK.xmit_ts, RACK.end_seq).
    segment: Option<(Time, u32)>,
    /// Its round-trip time (RACK.rtt).
    rtt: Span,
    /// Whether packets were seen to be delivered out of order (RACK.reordering_seen).
    reordering_seen: bool,
    /// By how many packets one was overtaken at most (tp->reordering).
    reordering: u32,
    reo_wnd_mult: u64,
    reo_wnd_persist: u32,
    /// A D-SACK was seen; the window grows once a round trip.
    dsack_round: Option<u64>,
    /// Original transmissions below this were judged already.
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

    /// A packet was delivered (step 2). A retransmission acknowledged sooner than any round trip
    /// was not what was acknowledged: the original was.
    #[inline]
    pub(crate) fn advance(&mut self, path: &Path, number: u32, packet: &SentPacket) {
        let rtt = path.now.since(packet.sent_at());
        if packet.ever_retransmitted() && path.min_rtt.is_some_and(|min| rtt < min) {
            return;
        }
        self.rtt = rtt;
        keep_last_sent(&mut self.segment, number, packet);
    }

    /// A packet was delivered after so many that had been sent after it (step 3).
    pub(crate) fn update_reordering(&mut self, overtaken_by: u32) {
        self.reordering_seen = true;
        self.reordering = self.reordering.max(overtaken_by);
    }

    /// Whether packets are overtaken by more than would prove loss where none are.
    #[inline]
    pub(crate) fn is_reordering_high(&self) -> bool {
        self.reordering > DUP_THRESH
    }

    /// A packet was sent again.
    pub(crate) fn on_retransmit(&mut self, now: Time, number: u32) {
        self.retransmissions.push_back((now, number));
    }

    /// The receiver reported a duplicate: the window was too small (step 4).
    pub(crate) fn on_dsack(&mut self, path: &Path) {
        if self.dsack_round.is_none_or(|end| path.delivered >= end) {
            self.dsack_round = Some(path.delivered + u64::from(path.in_flight));
            self.reo_wnd_mult = (self.reo_wnd_mult + 1).min(255);
            self.reo_wnd_persist = REO_WND_PERSIST;
        }
    }

    /// A recovery episode ended (step 4: the window shrinks after 16 of them without D-SACK).
    pub(crate) fn on_recovery_end(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
        if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 1;
        }
    }

    /// The reordering window (RACK_update_reo_wnd).
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

    /// Marks what is lost by now into `lost` (step 5). Gives how long to wait for the packets that
    /// are not yet, if there are any.
    pub(crate) fn detect_loss(
        &mut self,
        scoreboard: &mut Scoreboard,
        path: &Path,
        lost: &mut Vec<u32>,
    ) -> Option<Span> {
        let newest = self.segment?;
        let window = self.reo_wnd(scoreboard, path);
        let deadline = |sent_at: Time| sent_at + self.rtt + window;
        let mut wait: Option<Span> = None;
        let mut wait_for = |remaining: Span| {
            wait = Some(wait.map_or(remaining, |other| other.max(remaining)));
        };
        let mut cursor = self.loss_cursor.max(scoreboard.una());
        let mut undecided = None;
        while cursor < scoreboard.next_seq() {
            let packet = scoreboard.packet(cursor);
            let sent_at = packet.sent_at();
            let settled = packet
                .has(PacketFlags::SACKED.union(PacketFlags::LOST).union(PacketFlags::RETRANS_OUT));
            if !settled {
                let sent_before = (sent_at, cursor) < newest;
                if sent_before && deadline(sent_at) <= path.now {
                    scoreboard.mark_lost(cursor);
                    lost.push(cursor);
                } else {
                    if sent_before {
                        wait_for(deadline(sent_at).since(path.now));
                    }
                    // A retransmission that was taken for lost until its episode was undone is
                    // not among `retransmissions` any more: it is judged here, though it was sent
                    // later than the originals after it.
                    if !packet.ever_retransmitted() {
                        break;
                    }
                    undecided.get_or_insert(cursor);
                }
            }
            cursor += 1;
        }
        self.loss_cursor = undecided.unwrap_or(cursor);
        while let Some(&(sent_at, number)) = self.retransmissions.front() {
            let live = number >= scoreboard.una() && {
                let packet = scoreboard.packet(number);
                packet.has(PacketFlags::RETRANS_OUT) && packet.sent_at() == sent_at
            };
            if live {
                if (sent_at, number) >= newest {
                    break;
                }
                if deadline(sent_at) > path.now {
                    wait_for(deadline(sent_at).since(path.now));
                    break;
                }
                scoreboard.mark_lost(number);
                lost.push(number);
            }
            self.retransmissions.pop_front();
        }
        wait
    }

    /// After a timeout: everything that was sent long enough ago is lost, the first packet in any
    /// case; what was sent recently may still arrive (Linux's tcp_timeout_mark_lost). Who counts
    /// duplicates knows no such time: all is lost (RFC 6675, section 5.1).
    pub(crate) fn mark_losses_on_rto(
        &mut self,
        by: LossDetection,
        scoreboard: &mut Scoreboard,
        path: &Path,
        lost: &mut Vec<u32>,
    ) {
        for number in scoreboard.una()..scoreboard.next_seq() {
            let sent_at = scoreboard.packet(number).sent_at();
            let recent = by == LossDetection::Rack && sent_at + self.rtt > path.now;
            if (number == scoreboard.una() || !recent) && scoreboard.mark_lost(number) {
                lost.push(number);
            }
        }
    }

    /// Loss marks were taken back: judge everything again.
    pub(crate) fn reset_loss_cursor(&mut self, scoreboard: &Scoreboard) {
        self.loss_cursor = scoreboard.una();
    }

    /// What the newest delivered packet of an acknowledgement means for detection by counting
    /// (RFC 6675): everything below three selectively acknowledged packets is lost.
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

/// Keeps the newest of the packets that an acknowledgement delivers: when it was sent, and its
/// number; at the same instant the higher one is later.
#[inline]
pub(crate) fn keep_last_sent(newest: &mut Option<(Time, u32)>, number: u32, packet: &SentPacket) {
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
        let (mut rack, mut scoreboard) = (Rack::new(), Scoreboard::new());
        let mut path = Path::new(1448, at(0));
        for number in 0..4 {
            scoreboard.push(&sent(number));
        }
        scoreboard.mark_lost(0);
        scoreboard.retransmit(0, &sent(100));
        rack.on_retransmit(at(100), 0);
        // A timeout takes the retransmission for lost; that is undone.
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
}
