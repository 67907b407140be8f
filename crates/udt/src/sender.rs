//! The sender: transmission, pacing and retransmission of packets.
//!
//! New packets are limited by a window (the minimum of congestion window, flow window and send
//! buffer), all packets by the packet sending period (the algorithm's pacing rate). Retransmissions
//! take precedence and ignore the window. Each new packet whose sequence number is a multiple of 16
//! is followed immediately by the next one: a packet pair, by which the receiver estimates the link
//! capacity.
//!
//! Tail loss probe: no NAK reports the loss of the last packets. UDT4 retransmits them when its EXP
//! timer expires, after 300 ms or more. Here the last packet is retransmitted after about two RTT, as
//! in RFC 8985, section 7: it repairs the loss, or lets the receiver detect the gap.

mod feedback;

use crate::config::SYN;
use crate::loss_list::SendLossList;
use crate::packet::{DataHeader, DropRequest, Packet};
#[cfg(feature = "io")]
use crate::send_buffer::SendBuffer;
use crate::seq::{Seq, SequenceSpace};
use crate::source::{MessageRange, Source};
use dumbbell_cc::{
    Algorithm, CaState, CongestionControl, CongestionEvent, ControlParameters, Metric, PacketInfo,
    Path, RateSampler, SenderStats, Sent, Signal,
};
use dumbbell_units::{Rate, Span, Time};
use std::collections::VecDeque;

/// Maximum exponent of the probe interval's backoff. The EXP timer expires long before.
const MAX_PROBE_DOUBLINGS: u32 = 10;

/// A sender's limits, negotiated by the handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Payload of a full packet, bytes.
    pub(crate) payload: u16,
    /// The receiver's initial window, from its handshake, packets.
    pub(crate) flow_window: u32,
    /// Send buffer, packets.
    pub(crate) send_buffer: u32,
}

/// The sender.
pub(crate) struct Sender {
    pub(crate) sequence_space: SequenceSpace,
    cc: Algorithm,
    control: ControlParameters,
    cc_timer: Time,
    path: Path,
    limits: Limits,
    pub(crate) source: Source,
    /// Packets `data_acked..next`.
    in_flight: VecDeque<InFlight>,
    /// All packets before this one are acknowledged by short or full ACKs and no longer buffered
    /// (UDT4's `m_iSndLastDataAck`).
    data_acked: u64,
    /// All packets before this one are acknowledged, light ACKs included (`m_iSndLastAck`).
    acked: u64,
    /// Index of the next new packet.
    next: u64,
    losses: SendLossList,
    flow_window: u32,
    /// Time at which pacing allows the next packet.
    next_send_at: Time,
    /// Time of the next poll, as far as known.
    next_poll_at: Time,
    /// What blocks transmission.
    blocked: Blocked,
    /// Time of the last transmission or advancing ACK.
    last_activity: Time,
    tail_probes: u32,
    /// Losses before this packet belong to the current loss episode.
    episode_end: u64,
    /// Packets of `in_flight` that were never sent.
    unsent: u32,
    /// Whether losses of the current NAK were reported to the algorithm.
    nak_reported: bool,
    /// When a NAK last came, and how many packets its further parts may name: all parts of a datagram
    /// together no more than are unacknowledged.
    nak_left: (Time, u64),
    rate: RateSampler,
    /// Smoothed arrival rate and capacity from full ACKs, packets/s.
    arrival_rate: u32,
    capacity: u32,
    stats: Counters,
}

/// A packet in flight.
#[derive(Clone, Copy, Debug, Default)]
struct InFlight {
    /// State of the connection at its last transmission; `None` if its message expired before it was sent.
    info: Option<PacketInfo>,
    /// Whether it was retransmitted.
    retransmitted: bool,
}

/// What blocks the transmission of new packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blocked {
    /// Nothing, or pacing.
    No,
    /// The congestion window.
    Cwnd,
    /// The flow window or the send buffer.
    FlowWindow,
    /// No data is available.
    AppLimited,
}

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    sent: u64,
    retransmitted: u64,
    lost: u64,
    timeouts: u32,
    recoveries: u32,
    rtt: Option<Span>,
    rtt_sum: (f64, u64),
    completed: Option<Time>,
}

/// Statistics before anything is sent.
pub(crate) fn initial_stats(control: &ControlParameters) -> SenderStats {
    SenderStats {
        cwnd: control.cwnd,
        ssthresh: control.ssthresh,
        srtt: None,
        rtt: None,
        min_rtt: None,
        rtt_sum: (0.0, 0),
        pacing_rate: control.pacing_rate,
        delivery_rate: Rate::ZERO,
        in_flight: 0,
        sent: 0,
        retransmitted: 0,
        lost: 0,
        delivered: 0,
        ca_state: CaState::Open,
        timeouts: 0,
        recoveries: 0,
        spurious: 0,
        completed: None,
    }
}

impl Sender {
    /// A sender that may transmit from `now` on.
    pub(crate) fn new(
        now: Time,
        sequence_space: SequenceSpace,
        limits: Limits,
        algorithm: Algorithm,
        source: Source,
    ) -> Sender {
        Sender {
            sequence_space,
            control: algorithm.control(),
            cc: algorithm,
            cc_timer: Time::MAX,
            path: Path::new(u32::from(limits.payload), now),
            flow_window: limits.flow_window,
            limits,
            source,
            in_flight: VecDeque::new(),
            data_acked: 0,
            acked: 0,
            next: 0,
            losses: SendLossList::default(),
            next_send_at: now,
            next_poll_at: now,
            blocked: Blocked::No,
            last_activity: now,
            tail_probes: 0,
            episode_end: 0,
            unsent: 0,
            nak_reported: false,
            nak_left: (now, 0),
            rate: RateSampler::new(now),
            // UDT4's initial values.
            arrival_rate: 16,
            capacity: 1,
            stats: Counters::default(),
        }
    }

    /// Completes the handshake, whose RTT is `rtt`.
    pub(crate) fn establish(&mut self, now: Time, rtt: Option<Span>) {
        self.path.now = now;
        if let Some(rtt) = rtt {
            self.on_rtt(rtt);
        }
        self.cc.on_established(&self.path);
        self.update_control();
    }

    /// Counters and current values.
    pub(crate) fn stats(&self) -> SenderStats {
        SenderStats {
            cwnd: f64::from(self.cwnd().min(self.flow_window).max(1)),
            srtt: self.path.srtt,
            rtt: self.stats.rtt,
            min_rtt: self.path.min_rtt,
            rtt_sum: self.stats.rtt_sum,
            pacing_rate: self.control.pacing_rate,
            delivery_rate: self.rate.latest,
            in_flight: self.path.in_flight,
            sent: self.stats.sent,
            retransmitted: self.stats.retransmitted,
            lost: self.stats.lost,
            delivered: self.path.delivered,
            ca_state: self.path.ca_state,
            timeouts: self.stats.timeouts,
            recoveries: self.stats.recoveries,
            completed: self.stats.completed,
            ..initial_stats(&self.control)
        }
    }

    /// Passes each internal variable of the algorithm to `show`.
    pub(crate) fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.cc.inspect(show);
    }

    /// Whether sent packets are unacknowledged.
    #[inline]
    pub(crate) fn has_unacked(&self) -> bool {
        self.acked < self.next
    }

    /// Whether all sent packets are acknowledged by short or full ACKs.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.data_acked == self.next
    }

    /// Whether all data is sent and acknowledged. Light ACKs do not count: the peer makes data
    /// readable when it sends the other kinds.
    pub(crate) fn is_done(&self, now: Time) -> bool {
        self.is_idle() && self.source.available(self.next, now) == Err(Time::MAX)
    }

    /// Payload of a full packet, bytes.
    pub(crate) fn max_payload(&self) -> usize {
        usize::from(self.limits.payload)
    }

    /// The initial sequence number.
    #[cfg(feature = "io")]
    pub(crate) fn isn(&self) -> Seq {
        self.sequence_space.seq(0)
    }

    /// Index of the packet with this sequence number.
    pub(crate) fn index_of(&self, seq: Seq) -> Option<u64> {
        self.sequence_space.index_near(seq, self.acked)
    }

    /// Frees the buffers of a sender that is not polled any more.
    #[cfg(feature = "io")]
    pub(crate) fn free_buffers(&mut self) {
        self.source = Source::Queue(SendBuffer::new(self.limits.payload, 0));
        (self.in_flight, self.losses) = Default::default();
    }

    /// New data may be available.
    pub(crate) fn on_new_data(&mut self, now: Time) {
        self.next_poll_at = self.next_poll_at.min(now);
    }

    /// Time of the next poll.
    #[inline]
    pub(crate) fn next_timeout(&self) -> Time {
        if self.has_unacked() { self.next_poll_at.min(self.cc_timer) } else { self.next_poll_at }
    }

    /// The next packet to send now, with the given `timestamp` field.
    #[inline]
    pub(crate) fn poll(&mut self, now: Time, timestamp: u32) -> Option<Packet> {
        self.path.now = now;
        if now >= self.cc_timer && self.has_unacked() {
            self.cc.on_timer(&self.path);
            self.update_control();
        }
        if now < self.next_poll_at {
            return None;
        }
        if let Some(lost) = self.losses.first() {
            return self.retransmit(lost, timestamp);
        }
        self.send_new(timestamp)
    }

    /// Sends a new packet if data, windows and pacing allow.
    #[inline]
    fn send_new(&mut self, timestamp: u32) -> Option<Packet> {
        let now = self.path.now;
        let in_flight = self.next - self.acked;
        if let Err(then) = self.source.available(self.next, now) {
            self.rate.set_app_limited(&self.path);
            return self.block(Blocked::AppLimited, then, timestamp);
        }
        if in_flight >= u64::from(self.cwnd()) {
            return self.block(Blocked::Cwnd, Time::MAX, timestamp);
        }
        if in_flight >= u64::from(self.flow_window)
            || self.next - self.data_acked >= u64::from(self.limits.send_buffer)
        {
            return self.block(Blocked::FlowWindow, Time::MAX, timestamp);
        }
        if now < self.next_send_at {
            self.next_poll_at = self.next_send_at;
            return None;
        }
        let packet = self.next;
        self.next += 1;
        let app_limited = self.blocked == Blocked::AppLimited;
        self.in_flight.push_back(InFlight::default());
        Some(self.transmit(packet, in_flight == 0, app_limited, timestamp))
    }

    /// Retransmits a lost packet if pacing allows.
    fn retransmit(&mut self, packet: u64, timestamp: u32) -> Option<Packet> {
        let now = self.path.now;
        if now < self.next_send_at {
            self.next_poll_at = self.next_send_at;
            return None;
        }
        if let Some(message) = self.source.expired(packet, now) {
            return Some(self.drop_message(message));
        }
        self.losses.pop();
        self.stats.retransmitted += 1;
        let at = (packet - self.data_acked) as usize;
        self.in_flight[at].retransmitted = true;
        Some(self.transmit(packet, false, false, timestamp))
    }

    /// Drops an expired message: its losses are not retransmitted, its unsent packets are skipped.
    fn drop_message(&mut self, message: MessageRange) -> Packet {
        self.losses.remove_below(message.last + 1);
        while self.next <= message.last {
            self.in_flight.push_back(InFlight::default());
            self.next += 1;
            self.unsent += 1;
        }
        Packet::DropRequest(DropRequest {
            message: message.number,
            first: self.sequence_space.seq(message.first),
            last: self.sequence_space.seq(message.last),
        })
    }

    /// Blocks new packets until `until`; sends a tail loss probe if one is due.
    fn block(&mut self, blocked: Blocked, until: Time, timestamp: u32) -> Option<Packet> {
        self.blocked = blocked;
        let probe_at = self.probe_at();
        if self.path.now < probe_at {
            self.next_poll_at = until.min(probe_at);
            return None;
        }
        // Set here too: if the message is dropped, nothing is transmitted.
        (self.last_activity, self.tail_probes) = (self.path.now, self.tail_probes + 1);
        self.losses.insert(self.next - 1..self.next);
        self.retransmit(self.next - 1, timestamp)
    }

    /// Time of the next tail loss probe: 2 SRTT (RFC 8985, section 7.2) + SYN, the receiver's
    /// maximum ACK delay, after the last activity; doubled after each probe.
    fn probe_at(&self) -> Time {
        let Some(srtt) = self.path.srtt.filter(|_| self.has_unacked()) else { return Time::MAX };
        self.last_activity + (srtt * 2 + SYN) * (1u64 << self.tail_probes.min(MAX_PROBE_DOUBLINGS))
    }

    /// Transmits a packet and updates all state.
    #[inline]
    fn transmit(&mut self, packet: u64, from_idle: bool, limited: bool, timestamp: u32) -> Packet {
        let at = (packet - self.data_acked) as usize;
        let outstanding = (self.next - self.acked) as u32 - 1;
        self.path.in_flight = outstanding - self.losses.len().min(u64::from(outstanding)) as u32;
        let again = self.in_flight[at].retransmitted;
        self.in_flight[at].info = Some(self.rate.on_packet_sent(&mut self.path, outstanding));
        self.path.in_flight += 1;
        self.path.next_seq = self.next;
        self.stats.sent += 1;
        let seq = self.sequence_space.seq(packet);
        self.schedule_next(seq.is_pair_first() && !again);
        self.blocked = Blocked::No;
        if let Some(rate) = self.control.pacing_rate {
            self.path.pace(rate);
        }
        let sent = Sent::new(packet)
            .with_retransmission(again)
            .with_from_idle(from_idle)
            .with_app_limited(limited);
        self.cc.on_sent(&self.path, &sent);
        self.update_control();
        let (length, message) = self.source.describe(packet);
        Packet::Data(DataHeader { seq, message, timestamp, length })
    }

    /// Schedules the packet after this one: a period after this one's scheduled time, so that the
    /// average rate is kept if it is late, by a SYN at most.
    #[inline]
    fn schedule_next(&mut self, begins_pair: bool) {
        let now = self.path.now;
        self.last_activity = now;
        let scheduled = match self.blocked {
            Blocked::No => self.next_send_at.max(now - SYN),
            Blocked::Cwnd | Blocked::FlowWindow | Blocked::AppLimited => now,
        };
        let period = match self.control.pacing_rate {
            Some(rate) if !begins_pair => rate.time_for(f64::from(self.limits.payload)),
            _ => Span::ZERO,
        };
        self.next_send_at =
            if self.control.pacing_rate.is_some() { scheduled + period } else { now };
        self.next_poll_at = self.next_send_at.max(now);
    }

    /// The congestion window, whole packets.
    #[inline]
    fn cwnd(&self) -> u32 {
        (self.control.cwnd as u32).max(1)
    }

    /// Reads the algorithm's control parameters after an event.
    #[inline]
    fn update_control(&mut self) {
        self.control = self.cc.control();
        self.path.paced = self.control.pacing_rate.is_some();
        self.path.pacing_rate = self.control.pacing_rate;
        self.cc_timer = self.cc.next_timer().unwrap_or(Time::MAX);
    }

    /// Reports a congestion event to the algorithm.
    fn report_congestion(&mut self, signal: Signal, packets: u32, seq: u64) {
        let new_episode = seq >= self.episode_end || signal == Signal::Timeout;
        if new_episode {
            self.episode_end = self.next;
            self.stats.recoveries += u32::from(signal == Signal::Loss);
            self.path.ca_state = match signal {
                Signal::Timeout => CaState::Loss,
                _ => CaState::Recovery,
            };
        }
        let send_state =
            seq.checked_sub(self.data_acked).and_then(|at| self.in_flight.get(at as usize));
        let send_state = send_state.and_then(|packet| packet.info).map(|info| info.send_state);
        let event = CongestionEvent::new(signal)
            .with_new_episode(new_episode)
            .with_packets(packets)
            .with_seq(seq)
            .with_send_state(send_state)
            .with_nak(signal == Signal::Loss);
        self.cc.on_congestion(&self.path, &event);
        self.update_control();
    }

    /// Adds an RTT sample measured by the sender: SRTT <- 7/8 SRTT + 1/8 R (RFC 6298).
    fn on_rtt(&mut self, rtt: Span) {
        let smooth = |srtt: Span| Span::from_nanos((7 * srtt.as_nanos() + rtt.as_nanos()) / 8);
        self.path.srtt = Some(self.path.srtt.map_or(rtt, smooth));
        self.path.min_rtt = Some(self.path.min_rtt.map_or(rtt, |min| min.min(rtt)));
        self.stats.rtt = Some(rtt);
        self.stats.rtt_sum.0 += rtt.as_secs_f64();
        self.stats.rtt_sum.1 += 1;
    }
}
