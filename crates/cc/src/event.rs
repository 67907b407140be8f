//! What a transport tells an algorithm, and what the algorithm answers.

use dumbbell_units::{Rate, Span, Time};

/// The facts about a path, kept up to date by the transport.
#[derive(Clone, Debug)]
pub struct Path {
    /// The present.
    pub now: Time,
    /// The jiffy of the clock that the transport reads coarse times from (Linux's jiffies); zero if
    /// it has none.
    pub jiffy: Span,
    /// Payload bytes of a full packet.
    pub mss: u32,
    /// Smoothed round-trip time (RFC 6298); `None` before the first sample.
    pub srtt: Option<Span>,
    /// Least round-trip time seen; `None` before the first sample.
    pub min_rtt: Option<Span>,
    /// Packets sent and neither acknowledged, selectively acknowledged nor marked lost
    /// (retransmissions count again).
    pub in_flight: u32,
    /// Packets delivered since the connection began, in any order.
    pub delivered: u64,
    /// When `delivered` last changed.
    pub delivered_at: Time,
    /// Packets marked lost since the connection began.
    pub lost: u64,
    /// Packets delivered with an ECN mark since the connection began.
    pub marked: u64,
    /// Where the transport stands in loss recovery.
    pub ca_state: CaState,
    /// Whether the window, not the application or the peer, limited sending in the last round
    /// (RFC 7661, RFC 9438 section 5.8); windows grow only then.
    pub cwnd_limited: bool,
    /// Whether the window was full in the last round (Linux's `tp->is_cwnd_limited`); with
    /// `cwnd_limited`, half of it is enough below ssthresh.
    pub window_full: bool,
    /// Sequence number, in packets, of the next new packet.
    pub next_seq: u64,
    /// Sequence number, in packets, of the first packet not yet acknowledged cumulatively
    /// (Linux's `snd_una`), this acknowledgement included.
    pub una: u64,
    /// Whether the transport paces what it sends.
    pub paced: bool,
    /// Rate at which the transport paces, or would pace if it did (Linux's `sk_pacing_rate`, which
    /// also sizes bursts); `None` before there is a round-trip time.
    pub pacing_rate: Option<Rate>,
    /// The other subflows of a multipath connection: read-only statistics that the transport
    /// publishes. Empty on a single path. The subflow itself is not among them.
    pub siblings: Vec<Subflow>,
}

impl Path {
    /// A path about which nothing is known yet.
    pub fn new(mss: u32, now: Time) -> Path {
        Path {
            now,
            jiffy: Span::ZERO,
            mss,
            srtt: None,
            min_rtt: None,
            in_flight: 0,
            delivered: 0,
            delivered_at: now,
            lost: 0,
            marked: 0,
            ca_state: CaState::Open,
            cwnd_limited: false,
            window_full: false,
            next_seq: 0,
            una: 0,
            paced: false,
            pacing_rate: None,
            siblings: Vec::new(),
        }
    }

    /// The present by the coarse clock: its latest jiffy.
    #[inline]
    pub fn jiffies_now(&self) -> Time {
        let (now, jiffy) = (self.now.as_nanos(), self.jiffy.as_nanos());
        Time::from_nanos(if jiffy == 0 { now } else { now - now % jiffy })
    }
}

/// What one subflow of a multipath connection publishes to the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Subflow {
    /// Congestion window, packets.
    pub cwnd: f64,
    /// Smoothed round-trip time.
    pub srtt: Span,
    /// Packets delivered since the last loss and between the last two losses (OLIA's l_r).
    pub delivered_between_losses: [u64; 2],
    /// Whether it is in slow start.
    pub slow_start: bool,
    /// Whether it may be used at present.
    pub active: bool,
}

/// Where a transport stands in loss recovery; the names are Linux's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaState {
    /// Nothing is amiss.
    #[default]
    Open,
    /// Selective acknowledgements came, but no loss is proven.
    Disorder,
    /// The window is being reduced after an ECN echo.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// Recovery after a retransmission timeout.
    Loss,
}

impl CaState {
    /// Whether a window reduction is being carried out, during which windows do not grow.
    #[inline]
    pub fn is_reducing(self) -> bool {
        matches!(self, CaState::Cwr | CaState::Recovery)
    }
}

/// What an acknowledgement (or a UDT report) told.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    /// Packets newly delivered, cumulatively or selectively.
    pub delivered: u32,
    /// Packets by which windows grow: `delivered` with appropriate byte counting (RFC 3465),
    /// 1 for a stack that counts acknowledgements.
    pub acked: u32,
    /// Packets marked lost by this acknowledgement.
    pub lost: u32,
    /// Packets newly delivered that carried an ECN mark.
    pub marked: u32,
    /// Round-trip time of the newest packet that this acknowledges, if it was sent only once.
    pub rtt: Option<Span>,
    /// Packets in flight before this acknowledgement.
    pub prior_in_flight: u32,
    /// Delivery rate sample, if one could be taken.
    pub rate: Option<RateSample>,
    /// What the peer measured, for transports whose peer does (UDT).
    pub report: Option<PeerReport>,
}

impl Ack {
    /// What `acked` would be, had the stack counted packets rather than acknowledgements.
    ///
    /// Linux's BIC, CUBIC, H-TCP, Illinois and YeAH measured how many packets an acknowledgement
    /// stands for and grew by packets, when the rest of the kernel still counted acknowledgements.
    #[inline]
    pub fn scale_to_packets(&self, acked: f64) -> f64 {
        if self.acked == 0 || self.delivered <= self.acked {
            return acked;
        }
        acked * f64::from(self.delivered) / f64::from(self.acked)
    }
}

/// A delivery rate sample (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSample {
    /// Packets delivered over the interval.
    pub delivered: u32,
    /// The longer of the send and the acknowledgement interval.
    pub interval: Span,
    /// `delivered` in bytes over `interval`.
    pub rate: Rate,
    /// State of the newest packet acknowledged, as it was when that packet was sent.
    pub send_state: SendState,
    /// Packets marked lost since that packet was sent.
    pub lost: u32,
    /// ECN marks among the packets delivered since that packet was sent.
    pub marked: u32,
}

/// The connection's state when a packet was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendState {
    /// When the packet was sent.
    pub sent_at: Time,
    /// `Path::delivered` then.
    pub delivered: u64,
    /// `Path::lost` then, modulo 2^32.
    pub lost: u32,
    /// `Path::marked` then, modulo 2^32.
    pub marked: u32,
    /// Packets in flight then, this one included.
    pub in_flight: u32,
    /// Whether the application was the limit then.
    pub app_limited: bool,
}

/// What a UDT receiver reports in an ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PeerReport {
    /// Packets by which the cumulative acknowledgement advanced.
    pub advanced: u32,
    /// Round-trip time from ACK to ACK2 as the peer has it, smoothed by the peer.
    pub rtt: Span,
    /// Its mean deviation.
    pub rtt_var: Span,
    /// Arrival speed, packets/s; 0 if unknown.
    pub arrival_rate: f64,
    /// Link capacity by packet pairs, packets/s; 0 if unknown.
    pub capacity: f64,
    /// Packets that the peer said to have room for when the connection was opened; 0 if unknown.
    pub window: u32,
}

/// What the network signalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A packet was found lost.
    Loss,
    /// A negative acknowledgement named a lost range (UDT).
    Nak,
    /// An explicit congestion notification was echoed.
    Ecn,
    /// The retransmission timer expired.
    Timeout,
}

/// A congestion signal.
#[derive(Clone, Copy, Debug)]
pub struct CongestionEvent {
    /// What was signalled.
    pub signal: Signal,
    /// Whether this begins a new recovery episode.
    pub new_episode: bool,
    /// Packets that this signal reports lost (or marked, for ECN); none where an episode begins with
    /// what was lost and told of in the one before.
    pub packets: u32,
    /// Sequence number, in packets, of the lost packet (of the first one in a NAK).
    pub seq: u64,
    /// State when the lost packet was sent, where the transport knows it.
    pub send_state: Option<SendState>,
}

impl CongestionEvent {
    /// The loss of one packet, packet 0, that begins a recovery episode.
    pub const fn loss() -> CongestionEvent {
        CongestionEvent {
            signal: Signal::Loss,
            new_episode: true,
            packets: 1,
            seq: 0,
            send_state: None,
        }
    }
}

/// A packet that was just handed to the network.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Sequence number in packets.
    pub seq: u64,
    /// Whether it was sent before.
    pub retransmission: bool,
    /// Whether nothing was in flight before it.
    pub from_idle: bool,
    /// Whether the application had run out of data before it (the flow restarts after a pause).
    pub app_limited: bool,
}

/// An algorithm's answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControlParameters {
    /// Congestion window, packets.
    pub cwnd: f64,
    /// Slow start threshold, packets; infinite until the first congestion, or if there is none.
    pub ssthresh: f64,
    /// Pacing rate, if the algorithm sets one.
    pub pacing_rate: Option<Rate>,
    /// Least number of packets to send at once when segmentation is offloaded
    /// (Linux's `min_tso_segs`), if the algorithm has an opinion.
    pub min_send_quantum: Option<u32>,
}

/// A named internal of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// Its name, as the paper or the draft has it.
    pub name: &'static str,
    /// Its value; rates in bytes/s, times in s, windows in packets, states by their number.
    pub value: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgement_counts_as_the_packets_that_it_delivers() {
        let ack = |delivered, acked| Ack { delivered, acked, ..Ack::default() };
        assert_eq!(
            ack(2, 1).scale_to_packets(1.0),
            2.0,
            "a delayed acknowledgement, counted as one"
        );
        assert_eq!(ack(2, 2).scale_to_packets(2.0), 2.0, "the stack counts packets");
        assert_eq!(ack(2, 1).scale_to_packets(0.5), 1.0, "half of it was slow start's");
        assert_eq!(ack(0, 1).scale_to_packets(1.0), 1.0);
    }
}
