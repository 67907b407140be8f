//! Python classes for the arguments of an algorithm's methods, with read-only attributes.
//!
//! Times are in seconds, rates in bytes/s, windows and counts in packets. An object wraps a value of
//! `dumbbell-cc`; its attributes are computed when they are read. The `Path` and `Ack` objects of a
//! flow are reused for each event, so that an event allocates nothing.

use dumbbell_cc::{CaState, Signal};
use dumbbell_units::{Rate, Span, Time};
use pyo3::prelude::*;

/// Defines classes that wrap a value; each attribute has a type and the expression that computes
/// it.
macro_rules! attribute_classes {
    ($($(#[$doc:meta])* $class:ident($value:ty) {
        $($(#[$field_doc:meta])* $field:ident: $type:ty = |$it:ident| $get:expr;)*
    })*) => {$(
        $(#[$doc])*
        #[pyclass(module = "dumbbell._core")]
        #[derive(Clone)]
        pub struct $class(pub $value);

        #[pymethods]
        #[allow(clippy::wrong_self_convention, reason = "`from_idle` is an attribute")]
        impl $class {
            $($(#[$field_doc])* #[getter] fn $field(&self) -> $type {
                let $it = &self.0;
                $get
            })*
        }
    )*};
}

fn seconds(time: Time) -> f64 {
    time.as_secs_f64()
}

fn span_seconds(span: Option<Span>) -> Option<f64> {
    span.map(Span::as_secs_f64)
}

fn bytes_per_sec(rate: Option<Rate>) -> Option<f64> {
    rate.map(Rate::bytes_per_sec)
}

fn ca_state_name(state: CaState) -> &'static str {
    match state {
        CaState::Open => "open",
        CaState::Disorder => "disorder",
        CaState::Cwr => "cwr",
        CaState::Recovery => "recovery",
        CaState::Loss => "loss",
    }
}

fn signal_name(event: &dumbbell_cc::CongestionEvent) -> &'static str {
    match event.signal {
        Signal::Loss if event.is_nak => "nak",
        Signal::Loss => "loss",
        Signal::Ecn => "ecn",
        Signal::Timeout => "timeout",
    }
}

attribute_classes! {
    /// Argument of an algorithm's constructor.
    ConnectionConfig(dumbbell_cc::ConnectionConfig) {
        /// Current time, s.
        now: f64 = |it| seconds(it.now);
        /// Payload bytes of a full packet.
        mss: u32 = |it| it.mss;
        /// Initial window, packets.
        initial_window: f64 = |it| it.initial_window;
        /// Seed for the algorithm's random numbers.
        seed: u64 = |it| it.seed;
    }

    /// State of a path as the transport measures it.
    Path(dumbbell_cc::Path) {
        /// Current time, s.
        now: f64 = |it| seconds(it.now);
        /// Payload bytes of a full packet.
        mss: u32 = |it| it.mss;
        /// Smoothed round-trip time, s (RFC 6298); None before the first sample.
        srtt: Option<f64> = |it| span_seconds(it.srtt);
        /// Minimum round-trip time, s; None before the first sample.
        min_rtt: Option<f64> = |it| span_seconds(it.min_rtt);
        /// Packets sent and neither acknowledged nor marked lost.
        in_flight: u32 = |it| it.in_flight;
        /// Packets delivered since the start of the connection, cumulatively or selectively.
        delivered: u64 = |it| it.delivered;
        /// Packets marked lost since the start of the connection.
        lost: u64 = |it| it.lost;
        /// Packets delivered with an ECN mark since the start of the connection.
        marked: u64 = |it| it.marked;
        /// State of loss recovery (Linux's `icsk_ca_state`): "open", "disorder", "cwr", "recovery"
        /// or "loss".
        ca_state: &'static str = |it| ca_state_name(it.ca_state);
        /// Whether the transport is reducing the window ("cwr" or "recovery"); windows do not
        /// grow meanwhile.
        reducing: bool = |it| it.ca_state.is_reducing();
        /// Whether the window, not the application, limited sending in the last round (RFC 7661).
        /// Windows grow only then.
        cwnd_limited: bool = |it| it.cwnd_limited;
        /// Sequence number of the next new packet.
        next_seq: u64 = |it| it.next_seq;
        /// Sequence number of the first packet not yet acknowledged cumulatively.
        una: u64 = |it| it.una;
        /// Pacing rate of the transport, computed even if it does not pace, bytes/s; None before
        /// the first round-trip time sample.
        pacing_rate: Option<f64> = |it| bytes_per_sec(it.pacing_rate);
        /// The other subflows of a multipath connection; empty on a single path.
        siblings: Vec<Subflow> = |it| it.multipath.siblings.iter().copied().map(Subflow).collect();
    }

    /// State of another subflow of the same multipath connection.
    Subflow(dumbbell_cc::ext::Subflow) {
        /// Congestion window, packets.
        cwnd: f64 = |it| it.cwnd;
        /// Smoothed round-trip time, s.
        srtt: f64 = |it| it.srtt.as_secs_f64();
        /// Packets delivered since the last loss, and between the last two losses.
        delivered_between_losses: (u64, u64) = |it| it.delivered_between_losses.into();
        /// Whether the subflow is in slow start.
        slow_start: bool = |it| it.slow_start;
        /// Whether the subflow may currently be used.
        active: bool = |it| it.active;
    }

    /// An acknowledgement, or a report of a UDT receiver.
    Ack(dumbbell_cc::Ack) {
        /// Packets newly delivered, cumulatively or selectively.
        delivered: u32 = |it| it.delivered;
        /// Packets for which windows grow (RFC 3465).
        acked: u32 = |it| it.acked;
        /// Packets marked lost by this acknowledgement.
        lost: u32 = |it| it.lost;
        /// Packets newly delivered that carried an ECN mark.
        marked: u32 = |it| it.marked;
        /// Round-trip time of the newest packet acknowledged, s; None if that packet was
        /// retransmitted.
        rtt: Option<f64> = |it| span_seconds(it.rtt);
        /// Packets in flight before this acknowledgement.
        prior_in_flight: u32 = |it| it.prior_in_flight;
        /// Delivery rate sample; None if there is no valid one.
        rate: Option<RateSample> = |it| it.rate.map(RateSample);
        /// Report of a UDT receiver; None with TCP.
        udt: Option<UdtReport> = |it| it.udt.map(UdtReport);
    }

    /// A delivery rate sample (draft-cheng-iccrg-delivery-rate-estimation).
    RateSample(dumbbell_cc::RateSample) {
        /// Packets delivered over the interval.
        delivered: u32 = |it| it.delivered;
        /// The longer of the send interval and the ack interval, s.
        interval: f64 = |it| it.interval.as_secs_f64();
        /// Delivery rate over the interval, bytes/s.
        rate: f64 = |it| it.rate.bytes_per_sec();
        /// State of the connection when the newest packet acknowledged was sent.
        send_state: SendState = |it| SendState(it.send_state);
        /// Packets marked lost since that packet was sent.
        lost: u32 = |it| it.lost;
        /// Packets delivered with an ECN mark since that packet was sent.
        marked: u32 = |it| it.marked;
    }

    /// State of the connection when a packet was sent.
    SendState(dumbbell_cc::SendState) {
        /// Time of sending, s.
        sent_at: f64 = |it| seconds(it.sent_at);
        /// Packets delivered before that time.
        delivered: u64 = |it| it.delivered;
        /// Packets in flight, including this one.
        in_flight: u32 = |it| it.in_flight;
        /// Whether sending was limited by the application.
        app_limited: bool = |it| it.app_limited;
    }

    /// Measurements that a UDT receiver reports in an ACK.
    UdtReport(dumbbell_cc::ext::UdtReport) {
        /// Packets by which the cumulative acknowledgement advanced.
        advanced: u32 = |it| it.advanced;
        /// Smoothed round-trip time of the receiver, s.
        rtt: f64 = |it| it.rtt.as_secs_f64();
        /// Mean deviation of the round-trip time, s.
        rtt_var: f64 = |it| it.rtt_var.as_secs_f64();
        /// Packet arrival rate, packets/s; 0 if unknown.
        arrival_rate: f64 = |it| it.arrival_rate;
        /// Link capacity estimated by packet pairs, packets/s; 0 if unknown.
        capacity: f64 = |it| it.capacity;
        /// Flow window of the receiver, packets; 0 if unknown.
        window: u32 = |it| it.window;
    }

    /// A congestion signal.
    CongestionEvent(dumbbell_cc::CongestionEvent) {
        /// Kind of the signal: "loss", "ecn", "timeout", or "nak" (UDT only).
        signal: &'static str = |it| signal_name(it);
        /// Whether this signal begins a recovery episode; windows are reduced once per episode.
        new_episode: bool = |it| it.new_episode;
        /// Newly lost (or marked) packets; 0 if every loss that begins this episode was already
        /// reported in the previous one.
        packets: u32 = |it| it.packets;
        /// Sequence number of the lost packet: the first one in a NAK, the first missing one after
        /// a timeout.
        seq: u64 = |it| it.seq;
        /// State of the connection when the lost packet was sent; None if unknown.
        send_state: Option<SendState> = |it| it.send_state.map(SendState);
    }

    /// A packet that was just sent.
    Sent(dumbbell_cc::Sent) {
        /// Sequence number.
        seq: u64 = |it| it.seq;
        /// Whether this is a retransmission.
        retransmission: bool = |it| it.retransmission;
        /// Whether no packet was in flight before it.
        from_idle: bool = |it| it.from_idle;
        /// Whether sending was limited by the application.
        app_limited: bool = |it| it.app_limited;
    }

    /// Statistics of a round, which lasts from the sending of a packet to its acknowledgement.
    RoundStats(dumbbell_cc::RoundStats) {
        /// Number of the round, from 1.
        number: u64 = |it| it.number;
        /// Start of the round, s.
        start: f64 = |it| seconds(it.start);
        /// Duration of the round, s.
        duration: f64 = |it| it.duration().as_secs_f64();
        /// Packets newly delivered in the round.
        delivered: u64 = |it| it.delivered;
        /// Packets marked lost in the round.
        lost: u64 = |it| it.lost;
        /// Packets delivered with an ECN mark in the round.
        marked: u64 = |it| it.marked;
        /// Minimum round-trip time, s; None without a sample.
        rtt_min: Option<f64> = |it| it.rtts().map(|(min, _)| min.as_secs_f64());
        /// Mean round-trip time, s; None without a sample.
        rtt_mean: Option<f64> = |it| it.rtt_mean();
        /// Maximum round-trip time, s; None without a sample.
        rtt_max: Option<f64> = |it| it.rtts().map(|(_, max)| max.as_secs_f64());
        /// Delivered data divided by the duration, bytes/s; 0 for a round of no duration.
        rate: f64 = |it| it.rate().bytes_per_sec();
        /// Maximum delivery rate sample, bytes/s; 0 without a sample.
        max_rate: f64 = |it| it.max_rate.bytes_per_sec();
        /// Whether the application limited sending when the newest packet acknowledged was sent.
        app_limited: bool = |it| it.app_limited;
    }
}
