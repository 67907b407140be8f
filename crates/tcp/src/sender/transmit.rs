//! Which packet leaves next, and when (`tcp_write_xmit`): the congestion window, pacing, bursts by
//! segmentation offload, the application's data and the peer's window.

use super::timer::TimerKind;
use super::{Rexmit, Sender, Source};
use crate::rtt::timestamp;
use crate::{Ecn, Flags, RtoRule, Segment, pacing};
use dumbbell_cc::{CaState, CongestionControl, Sent};
use dumbbell_units::{Rate, Span, Time};

/// How far the congestion window was used (`tcp_cwnd_validate`; Linux's field names).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CwndUsage {
    /// The window limited sending in the current round.
    pub(super) is_cwnd_limited: bool,
    /// Maximum of packets outstanding in the current round.
    pub(super) max_packets_out: u32,
    /// Next sequence number when these were recorded; the round ends when it is acknowledged.
    cwnd_usage_seq: u32,
}

impl Sender {
    /// New packets that the application has written and the peer's window allows.
    #[inline]
    pub(super) fn sendable(&mut self) -> u32 {
        if self.path.now >= self.stop {
            return 0;
        }
        let una = self.scoreboard.una();
        let window_end = if self.path.is_subflow { self.sendable_end() } else { self.window_end };
        let mut end = self.packets.min(window_end).min(self.send_buffer.written(una));
        if let Some(source) = self.application.as_deref_mut() {
            match source {
                Source::Rates(application) => {
                    let written = application.written(self.path.now.since(self.established_at));
                    if written < end {
                        end = written;
                        self.wake_at = self.established_at + application.due(written + 1);
                    }
                }
                Source::Dialogue(_) => end = self.write_message(),
            }
        }
        end.saturating_sub(self.scoreboard.next_seq())
    }

    /// Writes the next message of a dialogue if it is due; returns the end of what may be sent.
    #[cold]
    fn write_message(&mut self) -> u32 {
        if let Some(Source::Dialogue(dialogue)) = self.application.as_deref_mut() {
            let (bytes, due) = dialogue.write(self.path.now);
            if bytes > 0 {
                // As if all messages before filled their last packets: they are delivered.
                let mss = u64::from(self.stack.mss);
                let bytes = u64::from(self.packets) * mss + bytes;
                self.packets = u32::try_from(bytes.div_ceil(mss)).unwrap_or(u32::MAX);
                self.bytes = Some(bytes);
            }
            self.wake_at = due;
        }
        let written = self.send_buffer.written(self.scoreboard.una());
        self.packets.min(self.window_end).min(written)
    }

    /// Begins a burst if one may leave now, and returns whether it did (the head of
    /// `tcp_write_xmit`'s loop).
    #[inline(always)]
    pub(super) fn plan_burst(&mut self) -> bool {
        self.wake_at = Time::MAX;
        let cwnd = self.cwnd();
        let in_flight = self.path.in_flight;
        if in_flight >= cwnd {
            return self.stop_sending(true);
        }
        let now = self.path.now;
        if self.path.departure > now {
            self.wake_at = self.path.departure;
            return self.stop_sending(false);
        }
        if let Some(number) = self.lost_to_retransmit() {
            if self.scoreboard.packet(self.scoreboard.next_seq() - 1).sent_at() == now {
                // Of packets sent at the same time RACK takes the higher number for the later one. In
                // Linux the clock goes on between two acknowledgements; here they may come at once.
                self.wake_at = now + Span::from_nanos(1);
                return false;
            }
            let max = (cwnd - in_flight).min(self.full_burst());
            let packets = self.scoreboard.lost_of_burst(number, max);
            self.burst_ends_with_psh = packets > 1;
            self.begin_burst(packets);
            return true;
        }
        let sendable = self.sendable();
        if sendable == 0 {
            let app_limited = self.path.is_subflow || self.scoreboard.next_seq() < self.window_end;
            if app_limited {
                // In Linux a write to the socket marks this (`tcp_rate_check_app_limited`), and a
                // subflow is never written to: its samples measure the receive window too.
                if !self.path.is_subflow {
                    self.rate.set_app_limited(&self.path);
                }
                self.app_limited = true;
            }
            return self.stop_sending(false);
        }
        let cwnd = if self.app_limited { self.restart_after_idle() } else { cwnd };
        let quota = (cwnd / 2).max(1).min(cwnd - in_flight);
        let full = self.full_burst();
        if self.tso_should_defer(quota, full, sendable) {
            return self.stop_sending(quota < self.send_window() && quota <= sendable);
        }
        // It borrows from the next buffer (`tcp_grow_skb`, since Linux 6.10), but not on a subflow.
        let packets = full.min(quota).min(sendable);
        self.burst_ends_with_psh = packets > 1 || packets == sendable && !self.path.is_subflow;
        self.begin_burst(packets);
        true
    }

    /// Packets of a full burst.
    pub(super) fn full_burst(&self) -> u32 {
        let rate = self.path.pacing_rate.unwrap_or(Rate::ZERO);
        let min_rtt = self.path.min_rtt.unwrap_or(Span::MAX);
        pacing::tso_autosize(&self.stack, &self.control, rate, min_rtt)
    }

    /// Packets beyond those sent that the peer's window allows.
    fn send_window(&self) -> u32 {
        self.window_end.saturating_sub(self.scoreboard.next_seq())
    }

    /// Whether a burst waits to become longer (`tcp_tso_should_defer`): the congestion window allows
    /// `quota` packets of a `full` burst, and the peer's window may allow fewer.
    #[inline]
    fn tso_should_defer(&self, quota: u32, full: u32, sendable: u32) -> bool {
        let window = self.send_window();
        let limit = quota.min(window);
        if limit >= full || full == 1 {
            return false;
        }
        let windows = self.cwnd().min(self.window_end - self.scoreboard.una());
        limit < self.enough_for_skb(sendable, window) && 3 * limit < windows && self.is_ack_near()
    }

    /// How many packets the windows have to allow for a burst that does not wait, of `sendable` packets in
    /// a `window`: as many as the buffer has that is sent next. The last one may become longer.
    #[inline]
    pub(super) fn enough_for_skb(&self, sendable: u32, window: u32) -> u32 {
        if self.path.is_subflow {
            let left = self.skb_end.min(self.packets) - self.scoreboard.next_seq();
            return if self.skb_end == self.packets && left > 1 { u32::MAX } else { left };
        }
        let left_of_skb = self.send_buffer.left_of_skb(self.scoreboard.next_seq());
        if sendable == window { left_of_skb } else { sendable.min(left_of_skb) }
    }

    fn is_ack_near(&self) -> bool {
        let in_recovery = matches!(self.path.ca_state, CaState::Recovery | CaState::Loss);
        let oldest = (self.scoreboard.packets_out() > 0).then(|| self.oldest_sent_at());
        !in_recovery && pacing::is_ack_near(&self.path, oldest)
    }

    pub(super) fn begin_burst(&mut self, packets: u32) {
        self.burst_left = packets;
        self.sent_since_stop = true;
        let rate = self.path.pacing_rate.filter(|_| self.path.paced);
        // Linux paces payload bytes, without headers.
        let length = rate.map(|rate| rate.time_for(f64::from(packets) * f64::from(self.stack.mss)));
        let sent = self.sent + u64::from(packets);
        self.path.departure = pacing::next_departure(&self.path, length, sent);
        self.last_sent_at = self.path.now;
    }

    /// Nothing more can be sent now. Records whether the window was the limit, and rearms the timer
    /// if packets were sent. Returns false, as `plan_burst` does then.
    #[inline]
    fn stop_sending(&mut self, by_window: bool) -> bool {
        let is_cwnd_limited = by_window || self.path.in_flight >= self.cwnd();
        if self.sent_since_stop || is_cwnd_limited {
            self.validate_cwnd(is_cwnd_limited);
        }
        if self.sent_since_stop {
            self.sent_since_stop = false;
            if self.timer.kind != TimerKind::Reorder {
                self.rearm_after_sending();
            }
        }
        false
    }

    /// Updates `cwnd_usage` (`tcp_cwnd_validate`).
    #[inline]
    fn validate_cwnd(&mut self, is_cwnd_limited: bool) {
        let usage = &mut self.cwnd_usage;
        let packets_out = self.scoreboard.packets_out();
        if is_cwnd_limited
            || self.scoreboard.una() >= usage.cwnd_usage_seq
            || !usage.is_cwnd_limited && packets_out > usage.max_packets_out
        {
            *usage = CwndUsage {
                is_cwnd_limited,
                max_packets_out: packets_out,
                cwnd_usage_seq: self.scoreboard.next_seq(),
            };
        }
    }

    /// Returns the window after the application was idle: halved once per retransmission timeout of
    /// idle time, at least the initial window (RFC 5681, 4.1; `tcp_cwnd_restart`). Algorithms with a
    /// model of the path keep theirs, as in Linux.
    ///
    /// RFC 2861 also reduces a window of which little is used. That is in Linux too
    /// (`tcp_cwnd_application_limited`), but without effect there: every acknowledgement postpones
    /// it (`tcp_cong_avoid`).
    pub(super) fn restart_after_idle(&mut self) -> u32 {
        let (idle, rto) = (self.path.now.since(self.last_sent_at), self.rtt.rto());
        let restarts = self.stack.slow_start_after_idle && self.cc.uses_prr();
        if !restarts || self.scoreboard.packets_out() > 0 || idle <= rto {
            return self.cwnd();
        }
        let timeouts = (idle.as_nanos() - 1) / rto.as_nanos();
        let cwnd = self.cwnd();
        let halved = cwnd >> timeouts.min(31);
        self.cc.on_restart_after_idle(f64::from(halved.max(cwnd.min(self.stack.initial_window))));
        self.update_control();
        self.cwnd()
    }

    /// Restarts the timeout if the oldest packet is retransmitted (`tcp_xmit_retransmit_queue`). Its
    /// retransmission at a timeout does not (`tcp_retransmit_timer`).
    fn rearm_for_retransmission(&mut self, number: u32) {
        let restarts = self.stack.rto == RtoRule::Linux
            && self.timer.kind != TimerKind::Reorder
            && !self.rto_since_advance;
        if number == self.scoreboard.una() && restarts {
            self.restart_rto();
        }
    }

    /// Sends the next packet of the burst.
    #[inline(always)]
    pub(super) fn transmit(&mut self) -> Segment {
        self.burst_left -= 1;
        let from_idle = self.path.in_flight == 0;
        let packets_out = self.scoreboard.packets_out();
        let info = self.rate.on_packet_sent(&mut self.path, packets_out);
        let is_probe = std::mem::take(&mut self.tlp_retransmits);
        let retransmission = self.next_retransmission(is_probe);
        let psh = self.burst_left == 0
            && retransmission.map_or(self.burst_ends_with_psh, |number| {
                self.burst_ends_with_psh || number + 1 == self.scoreboard.next_seq()
            });
        let number = match retransmission {
            Some(number) if is_probe => {
                self.scoreboard.probe(number, &info);
                self.retransmitted += 1;
                number
            }
            Some(number) => {
                self.scoreboard.retransmit(number, &info);
                self.rack.on_retransmit(self.path.now, number);
                self.undo.on_retransmit(timestamp(self.path.now));
                self.retransmitted += 1;
                self.rearm_for_retransmission(number);
                number
            }
            None => self.scoreboard.push(&info),
        };
        self.sent += 1;
        self.path.in_flight += u32::from(!is_probe);
        self.path.next_seq = u64::from(self.scoreboard.next_seq());
        if let Some(prr) = &mut self.prr
            && !is_probe
        {
            prr.on_sent();
        }
        let retransmission = retransmission.is_some();
        let app_limited = std::mem::take(&mut self.app_limited);
        let sent = Sent::new(u64::from(number))
            .with_retransmission(retransmission)
            .with_from_idle(from_idle)
            .with_app_limited(app_limited);
        self.cc.on_sent(&self.path, &sent);
        if from_idle {
            self.update_control();
        }
        self.build_segment(number, retransmission, psh)
    }

    /// The lost packet that goes before new packets, if one does.
    #[inline]
    fn lost_to_retransmit(&mut self) -> Option<u32> {
        if self.scoreboard.lost_out() == 0 {
            return None;
        }
        match self.rexmit {
            Rexmit::Lost => {}
            Rexmit::None => return None,
            Rexmit::New => {
                // With new packets sent, F-RTO waits for their acknowledgement (`tcp_xmit_recovery`).
                if self.sendable() > 0 || self.scoreboard.next_seq() > self.high_seq {
                    return None;
                }
                (self.rexmit, self.frto) = (Rexmit::Lost, false);
            }
        }
        self.scoreboard.next_retransmission()
    }

    /// The packet to retransmit next: the last one as a tail loss probe, or a lost one.
    #[inline]
    fn next_retransmission(&mut self, is_probe: bool) -> Option<u32> {
        if is_probe {
            return self.scoreboard.next_seq().checked_sub(1);
        }
        if self.scoreboard.lost_out() == 0 || self.rexmit != Rexmit::Lost {
            return None;
        }
        self.scoreboard.next_retransmission()
    }

    /// The ECN field of a data segment, and CWR.
    fn ecn_flags(&mut self, retransmission: bool) -> Flags {
        match self.stack.ecn {
            Ecn::L4s => Flags::ECT_1,
            // Retransmissions are not ECN-capable (RFC 3168, 6.1.5), except DCTCP's (`tcp_ca_needs_ecn`).
            Ecn::Accurate if retransmission => Flags::ECT_0,
            _ if retransmission => Flags::default(),
            _ if std::mem::take(&mut self.cwr_pending) => Flags::ECT_0.with(Flags::CWR),
            _ => Flags::ECT_0,
        }
    }

    #[inline(always)]
    fn build_segment(&mut self, number: u32, retransmission: bool, psh: bool) -> Segment {
        let mut flags = if psh { Flags::PSH } else { Flags::default() };
        if retransmission {
            flags = flags.with(Flags::RETRANSMISSION);
        }
        if self.stack.ecn != Ecn::Off {
            flags = flags.with(self.ecn_flags(retransmission));
        }
        let mut payload = self.stack.mss;
        if let Some(bytes) = self.bytes
            && number + 1 == self.packets
        {
            payload = (bytes - u64::from(number) * u64::from(payload)) as u16;
        }
        Segment {
            number,
            timestamp: timestamp(self.path.now),
            blocks: [[self.ts_recent, 0, 0], [0; 3], [0; 3]],
            size: payload + self.stack.header,
            flags,
            ..Segment::default()
        }
    }
}
