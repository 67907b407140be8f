//! A sender as a subflow of a multipath connection (RFC 8684). The connection enqueues packets as
//! they fit; there is no application of the subflow's own.

use super::timer::Timer;
use super::{ConnectionState, Sender, SenderConfig};
use crate::rtt::timestamp;
use crate::{Flags, Segment, Stack};
use dumbbell_cc::ext::Subflow;
use dumbbell_cc::{CaState, CongestionControl, Path};
use dumbbell_units::{Span, Time};

impl Sender {
    /// A sender with an empty queue that connects at `config.start`. If that is [`Time::MAX`],
    /// [`Sender::connect`] starts it.
    pub(crate) fn subflow(config: SenderConfig) -> Sender {
        let mut sender = Sender::new(config);
        sender.path.mss = sender.stack.mss_cache();
        sender.packets = 0;
        sender.path.is_subflow = true;
        sender
    }

    /// Sends the SYN at `now`, to join a connection.
    pub(crate) fn join(&mut self, now: Time) {
        self.joins = true;
        self.timer.expires = now;
    }

    /// The third acknowledgement of a joining subflow's handshake. It is repeated after two round-trip
    /// times (RFC 8684, section 3.2; `schedule_3rdack_retransmission`).
    pub(super) fn send_third_ack(&mut self) -> Segment {
        let now = self.path.now;
        let again_after = self.path.srtt.map_or(self.rtt.rto(), |srtt| srtt * 2);
        self.timer = Timer::rto(self.expiry(again_after));
        Segment {
            timestamp: timestamp(now),
            size: self.stack.third_ack_size(),
            flags: Flags::ACK.with(self.stack.control_ect()),
            ..Segment::default()
        }
    }

    #[inline]
    pub(crate) fn is_established(&self) -> bool {
        self.state == ConnectionState::Established
    }

    /// Whether new data may be sent: after the handshake, and not in Loss
    /// (`mptcp_is_def_unavailable`, `mptcp_is_temp_unavailable`).
    pub(crate) fn is_available(&self) -> bool {
        self.is_established() && self.path.ca_state != CaState::Loss
    }

    /// Packets that may be enqueued: the window, less the packets in flight, to be retransmitted and
    /// enqueued. 0 while pacing delays the next packet.
    #[inline]
    pub(crate) fn cwnd_space(&self, now: Time) -> u32 {
        if !self.is_available() || self.path.departure > now {
            return 0;
        }
        let queued = self.unsent();
        // A tail loss probe's retransmission is in flight without having been lost.
        let to_retransmit =
            self.scoreboard.lost_out().saturating_sub(self.scoreboard.retrans_out());
        let space = self.cwnd().saturating_sub(self.path.in_flight + queued + to_retransmit);
        let burst = if self.path.paced { self.full_burst().saturating_sub(queued) } else { space };
        space.min(burst)
    }

    /// First packet not acknowledged, and one past the last enqueued.
    #[inline]
    pub(crate) fn sequence_range(&self) -> (u32, u32) {
        (self.scoreboard.una(), self.packets)
    }

    /// Packets enqueued and not sent.
    pub(crate) fn unsent(&self) -> u32 {
        self.packets - self.scoreboard.next_seq()
    }

    /// The next packet to be sent for the first time.
    pub(crate) fn next_seq(&self) -> u32 {
        self.scoreboard.next_seq()
    }

    /// Sets the end of the buffer that is sent next (`sk_buff`), and whether its last packet has to wait. No
    /// burst has packets of two, as their mappings differ (`tcp_skb_can_collapse`, `mptcp_ext_matches`).
    #[inline]
    pub(crate) fn set_skb(&mut self, end: u32, last_waits: bool) {
        (self.skb_end, self.last_of_skb_waits) = (end, last_waits);
    }

    /// One past the last packet of the buffer sent next that may be sent.
    pub(super) fn sendable_end(&self) -> u32 {
        self.skb_end - u32::from(self.last_of_skb_waits)
    }

    /// Packets of a full `sk_buff`.
    pub(crate) fn skb(&self) -> u32 {
        self.send_buffer.skb()
    }

    /// Whether no burst has begun whose packets are not all sent.
    #[inline]
    pub(crate) fn is_between_bursts(&self) -> bool {
        self.burst_left == 0
    }

    /// Time to the end of the timer; zero if it does not run (`mptcp_timeout_from_subflow`).
    pub(crate) fn time_to_timeout(&self, now: Time) -> Span {
        if self.timer.expires == Time::MAX { Span::ZERO } else { self.timer.expires.since(now) }
    }

    /// Windows that the send buffer has room for when it grows: 2, BBR's 3 (`bbr_sndbuf_expand`).
    pub(crate) fn sndbuf_windows(&self) -> u64 {
        if self.control.pacing_rate.is_some() { 3 } else { 2 }
    }

    pub(crate) fn stack(&self) -> &Stack {
        &self.stack
    }

    #[inline]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Mean deviation of the round-trip time, at least a quarter of the minimum RTO as in Linux
    /// (`tcp_rtt_estimator`).
    pub(crate) fn rtt_deviation(&self) -> Span {
        self.rtt.rttvar().max(Span::from_nanos(self.stack.min_rto_ns) / 4)
    }

    /// Window in force and slow start threshold, packets.
    pub(crate) fn cwnd_and_ssthresh(&self) -> (u32, f64) {
        (self.cwnd(), self.control.ssthresh)
    }

    #[inline]
    pub(crate) fn timeouts(&self) -> u32 {
        self.timeouts
    }

    /// Episodes reported to the algorithm so far: losses, ECN and timeouts.
    #[inline]
    pub(crate) fn episodes(&self) -> u32 {
        self.episodes
    }

    /// This subflow as coupled algorithms of its siblings see it; `None` before the first RTT sample.
    #[inline]
    pub(crate) fn sibling_view(&self, delivered_between_losses: [u64; 2]) -> Option<Subflow> {
        let mut subflow = Subflow::new(self.control.cwnd, self.path.srtt?);
        subflow.delivered_between_losses = delivered_between_losses;
        subflow.slow_start = self.control.cwnd < self.control.ssthresh;
        subflow.active = self.is_available();
        Some(subflow)
    }

    /// Sets what the algorithm sees of its siblings.
    #[inline]
    pub(crate) fn set_siblings(&mut self, siblings: impl Iterator<Item = Subflow>) {
        let known = &mut self.path.multipath.siblings;
        known.clear();
        known.extend(siblings);
    }

    /// Halves the window if the state is Open; returns whether it did.
    pub(crate) fn on_receive_window_penalty(&mut self, now: Time) -> bool {
        let open = self.path.ca_state == CaState::Open;
        if open {
            self.path.now = now;
            self.cc.on_receive_window_penalty(&self.path);
            self.update_control();
        }
        open
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dumbbell_net::Endpoint;

    fn subflow(stack: Stack, cc: &str) -> Sender {
        Sender::subflow(SenderConfig::of(stack, cc))
    }

    /// tcp_update_pacing_rate: mss_cache, not the size of a packet with the DSS option.
    #[test]
    fn a_subflow_is_paced_by_the_mss_without_the_dss_option() {
        let sender = subflow(Stack::linux().of_subflow(), "bbr");
        assert_eq!((sender.path().mss, sender.stack.mss), (1448, 1424));
    }

    /// tcp_tso_should_defer: the rest of a buffer is sendable, only the last buffer gets more data.
    #[test]
    fn only_the_last_buffer_waits_to_become_longer() {
        let mut sender = subflow(Stack::linux().of_subflow(), "reno");
        let mut enough = |packets, end| {
            sender.enqueue(packets);
            sender.set_skb(end, false);
            sender.enough_for_skb(end, 100)
        };
        assert_eq!([enough(1, 1), enough(5, 3), enough(0, 6)], [1, 3, u32::MAX]);
    }

    /// tcp_rtt_estimator: rttvar_us, four mean deviations, is never below tcp_rto_min.
    #[test]
    fn the_deviation_of_a_steady_path_is_a_quarter_of_200_ms() {
        let mut sender = subflow(Stack::linux(), "reno");
        sender.poll(Time::ZERO).expect("a SYN");
        let reply = Segment { flags: Flags::SYN.with(Flags::ACK), ..Segment::default() };
        sender.handle(Time::ZERO + Span::from_millis(40), &reply);
        assert_eq!(sender.path().srtt, Some(Span::from_millis(40)));
        assert_eq!(sender.rtt_deviation(), Span::from_millis(50));
    }
}
