//! The sending half of a connection: which packet leaves when, and what the receiver's reports do
//! to it.
//!
//! Two things limit sending: a window (packets between the first one not acknowledged and the next
//! one: the least of the algorithm's, the receiver's and the send buffer) and a period between
//! packets (the algorithm's rate). Lost packets go first, and no window holds them back. Every
//! packet whose sequence number is a multiple of 16 is followed without a gap by the next one: a
//! packet pair, by which the receiver measures the path's capacity.
//!
//! Nobody reports that the last packets of all are lost, and UDT4 sends them again when its EXP timer
//! expires, after 300 ms or more. Here the very last one is sent again when an answer is overdue: it
//! fills the gap, or shows it to the receiver, which then reports it (the idea is RFC 8985's, section
//! 7). A receiver that has it takes it for a duplicate.

mod feedback;

use crate::config::SYN;
use crate::loss_list::SendLossList;
use crate::packet::{DataHeader, DropRequest, Packet};
use crate::seq::{Seq, SequenceSpace};
use crate::source::{MessageRange, Source};
use dumbbell_cc::{
    Algorithm, CaState, CongestionControl, CongestionEvent, ControlParameters, Metric, PacketInfo,
    Path, RateSampler, SenderStats, Sent, Signal,
};
use dumbbell_units::{Rate, Span, Time};
use std::collections::VecDeque;

/// Probes whose intervals double; by then the EXP timer has long expired.
const MAX_PROBE_DOUBLINGS: u32 = 10;

/// What limits a sender, once the handshake has settled it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Payload of a full packet, bytes.
    pub(crate) payload: u16,
    /// Packets that the receiver can take at first: what its handshake says.
    pub(crate) flow_window: u32,
    /// Packets that are kept until they are acknowledged.
    pub(crate) send_buffer: u32,
}

/// The sending half.
pub(crate) struct Sender {
    pub(crate) numbering: SequenceSpace,
    cc: Algorithm,
    control: ControlParameters,
    cc_timer: Time,
    path: Path,
    limits: Limits,
    pub(crate) source: Source,
    /// What is known of the packets from `kept` on.
    in_flight: VecDeque<InFlight>,
    /// The first packet that is kept: all before it were acknowledged with a report.
    data_acked: u64,
    /// The first packet that was not acknowledged.
    acked: u64,
    /// The next new packet.
    next: u64,
    losses: SendLossList,
    flow_window: u32,
    /// When the next packet may leave.
    next_send_at: Time,
    /// When to look again, if that is known.
    next_poll_at: Time,
    /// What kept the last packet back.
    blocked: Blocked,
    /// Since when nothing was sent and nothing acknowledged, and how often that was answered by a
    /// probe since the last acknowledgement.
    last_activity: Time,
    tail_probes: u32,
    /// Losses before this packet belong to the present episode.
    episode_end: u64,
    rate: RateSampler,
    /// The receiver's measurements, smoothed, packets/s.
    arrival_rate: u32,
    capacity: u32,
    stats: Counters,
}

/// A packet in flight.
#[derive(Clone, Copy, Debug, Default)]
struct InFlight {
    /// State when it was sent last.
    info: PacketInfo,
    /// Whether it was sent more than once.
    retransmitted: bool,
}

/// What keeps a packet back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blocked {
    /// Nothing; or the period between packets.
    No,
    /// The algorithm's window.
    Cwnd,
    /// The receiver's window or the send buffer.
    FlowWindow,
    /// There is no data.
    AppLimited,
}

/// What was counted.
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

/// What a sender shows that has sent nothing.
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
    /// A sender that may begin at `now`.
    pub(crate) fn new(
        now: Time,
        numbering: SequenceSpace,
        limits: Limits,
        algorithm: Algorithm,
        source: Source,
    ) -> Sender {
        Sender {
            numbering,
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
            rate: RateSampler::new(now),
            // Both as UDT4 has them before there is a report.
            arrival_rate: 16,
            capacity: 1,
            stats: Counters::default(),
        }
    }

    /// The handshake is done; `rtt` is what it took.
    pub(crate) fn establish(&mut self, now: Time, rtt: Option<Span>) {
        self.path.now = now;
        if let Some(rtt) = rtt {
            self.on_rtt(rtt);
        }
        self.cc.on_established(&self.path);
        self.update_control();
    }

    /// Counters and present values.
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

    /// Shows the algorithm's internals.
    pub(crate) fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.cc.inspect(show);
    }

    /// Whether something is not yet acknowledged.
    #[inline]
    pub(crate) fn has_unacked(&self) -> bool {
        self.acked < self.next
    }

    /// Whether all that was sent is acknowledged with a report.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.data_acked == self.next
    }

    /// Whether everything that there is to send was acknowledged. Light acknowledgements do not
    /// count: the peer gives data to its application when it sends the others.
    pub(crate) fn is_done(&self, now: Time) -> bool {
        self.is_idle() && self.source.available(self.next, now) == Err(Time::MAX)
    }

    /// Payload of a full packet, bytes.
    pub(crate) fn max_payload(&self) -> usize {
        usize::from(self.limits.payload)
    }

    /// The packet of that sequence number.
    pub(crate) fn index_of(&self, seq: Seq) -> Option<u64> {
        self.numbering.index_near(seq, self.acked)
    }

    /// New data may be there.
    pub(crate) fn on_new_data(&mut self, now: Time) {
        self.next_poll_at = self.next_poll_at.min(now);
    }

    /// When to poll next.
    #[inline]
    pub(crate) fn next_timeout(&self) -> Time {
        if self.has_unacked() { self.next_poll_at.min(self.cc_timer) } else { self.next_poll_at }
    }

    /// The next packet that may leave now. `timestamp` is what data says of the present.
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

    /// Sends a new packet if data, windows and the period allow.
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

    /// Sends a lost packet again if the period allows.
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

    /// Gives up a message: what of it is lost is not sent again, what was not sent is left out.
    fn drop_message(&mut self, message: MessageRange) -> Packet {
        self.losses.remove_below(message.last + 1);
        while self.next <= message.last {
            self.in_flight.push_back(InFlight::default());
            self.next += 1;
        }
        Packet::DropRequest(DropRequest {
            message: message.number,
            first: self.numbering.seq(message.first),
            last: self.numbering.seq(message.last),
        })
    }

    /// Sends nothing new until then, and a probe if an answer is overdue.
    fn block(&mut self, blocked: Blocked, until: Time, timestamp: u32) -> Option<Packet> {
        self.blocked = blocked;
        let probe_at = self.probe_at();
        if self.path.now < probe_at {
            self.next_poll_at = until.min(probe_at);
            return None;
        }
        // Of a message that is given up nothing departs, and the next probe is not due at once either.
        (self.last_activity, self.tail_probes) = (self.path.now, self.tail_probes + 1);
        self.losses.insert(self.next - 1..self.next);
        self.retransmit(self.next - 1, timestamp)
    }

    /// When the last packet is sent again if nothing is heard: after two round trips (RFC 8985,
    /// section 7.2) and a SYN, for which the receiver may wait; then after twice as long, and so on.
    fn probe_at(&self) -> Time {
        let Some(srtt) = self.path.srtt.filter(|_| self.has_unacked()) else { return Time::MAX };
        self.last_activity + (srtt * 2 + SYN) * (1u64 << self.tail_probes.min(MAX_PROBE_DOUBLINGS))
    }

    /// A packet leaves.
    #[inline]
    fn transmit(&mut self, packet: u64, from_idle: bool, limited: bool, timestamp: u32) -> Packet {
        let at = (packet - self.data_acked) as usize;
        let outstanding = (self.next - self.acked) as u32 - 1;
        self.path.in_flight = outstanding - self.losses.len().min(u64::from(outstanding)) as u32;
        let again = self.in_flight[at].retransmitted;
        self.in_flight[at].info = self.rate.depart(&mut self.path, outstanding);
        self.path.in_flight += 1;
        self.path.next_seq = self.next;
        self.stats.sent += 1;
        let seq = self.numbering.seq(packet);
        self.schedule_next(seq.is_pair_first() && !again);
        self.blocked = Blocked::No;
        let sent = Sent { seq: packet, retransmission: again, from_idle, app_limited: limited };
        self.cc.on_sent(&self.path, &sent);
        self.update_control();
        let (length, message) = self.source.describe(packet);
        Packet::Data(DataHeader { seq, message, timestamp, length })
    }

    /// Settles when the packet after the one that leaves now may leave: a period after this one
    /// was due, as far as it is not late by more than a SYN, so that periods are kept on average.
    #[inline]
    fn schedule_next(&mut self, begins_pair: bool) {
        let now = self.path.now;
        self.last_activity = now;
        let scheduled_at = match self.blocked {
            Blocked::No => self.next_send_at.max(now - SYN),
            Blocked::Cwnd | Blocked::FlowWindow | Blocked::AppLimited => now,
        };
        let period = match self.control.pacing_rate {
            Some(rate) if !begins_pair => rate.time_for(f64::from(self.limits.payload)),
            _ => Span::ZERO,
        };
        self.next_send_at =
            if self.control.pacing_rate.is_some() { scheduled_at + period } else { now };
        self.next_poll_at = self.next_send_at.max(now);
    }

    /// The algorithm's window, whole packets.
    #[inline]
    fn cwnd(&self) -> u32 {
        (self.control.cwnd as u32).max(1)
    }

    /// Asks the algorithm again after it was told something.
    #[inline]
    fn update_control(&mut self) {
        self.control = self.cc.control();
        self.path.paced = self.control.pacing_rate.is_some();
        self.path.pacing_rate = self.control.pacing_rate;
        self.cc_timer = self.cc.next_timer().unwrap_or(Time::MAX);
    }

    /// Tells the algorithm of congestion.
    fn report_congestion(&mut self, signal: Signal, packets: u32, seq: u64) {
        let new_episode = seq >= self.episode_end || signal == Signal::Timeout;
        if new_episode {
            self.episode_end = self.next;
            self.stats.recoveries += u32::from(signal == Signal::Nak);
            self.path.ca_state = match signal {
                Signal::Timeout => CaState::Loss,
                _ => CaState::Recovery,
            };
        }
        let send_state =
            seq.checked_sub(self.data_acked).and_then(|at| self.in_flight.get(at as usize));
        let send_state = send_state.map(|packet| packet.info.send_state);
        let event = CongestionEvent { signal, new_episode, packets, seq, send_state };
        self.cc.on_congestion(&self.path, &event);
        self.update_control();
    }

    /// A round-trip time of our own: SRTT <- 7/8 SRTT + 1/8 R (RFC 6298).
    fn on_rtt(&mut self, rtt: Span) {
        let smooth = |srtt: Span| Span::from_nanos((7 * srtt.as_nanos() + rtt.as_nanos()) / 8);
        self.path.srtt = Some(self.path.srtt.map_or(rtt, smooth));
        self.path.min_rtt = Some(self.path.min_rtt.map_or(rtt, |min| min.min(rtt)));
        self.stats.rtt = Some(rtt);
        self.stats.rtt_sum.0 += rtt.as_secs_f64();
        self.stats.rtt_sum.1 += 1;
    }
}
