//! What an algorithm in Python is told: the transport's facts as attributes.
//!
//! Times are in seconds, rates in bytes/s, windows and counts in packets. An object is one of
//! `dumbbell-cc`'s values; the attributes are computed when they are read. The objects of a flow are
//! used again for the next event, so that telling costs no allocation.

use dumbbell_cc::{CaState, Signal};
use dumbbell_units::{Rate, Span, Time};
use pyo3::prelude::*;

/// A class of read-only attributes over a value, each with the expression that gives it.
macro_rules! facts {
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

fn s(time: Time) -> f64 {
    time.as_secs_f64()
}

fn span(span: Option<Span>) -> Option<f64> {
    span.map(Span::as_secs_f64)
}

fn rate(rate: Option<Rate>) -> Option<f64> {
    rate.map(Rate::bytes_per_sec)
}

fn ca_state(state: CaState) -> &'static str {
    match state {
        CaState::Open => "open",
        CaState::Disorder => "disorder",
        CaState::Cwr => "cwr",
        CaState::Recovery => "recovery",
        CaState::Loss => "loss",
    }
}

fn signal(signal: Signal) -> &'static str {
    match signal {
        Signal::Loss => "loss",
        Signal::Nak => "nak",
        Signal::Ecn => "ecn",
        Signal::Timeout => "timeout",
    }
}

facts! {
    /// What an algorithm is told when its flow begins.
    ConnectionConfig(dumbbell_cc::ConnectionConfig) {
        /// The present, s.
        now: f64 = |it| s(it.now);
        /// Payload bytes of a full packet.
        mss: u32 = |it| it.mss;
        /// Initial window, packets.
        initial_window: f64 = |it| it.initial_window;
        /// Seed of whatever the algorithm draws at random.
        seed: u64 = |it| it.seed;
    }

    /// The facts about a path, kept up to date by the transport.
    Path(dumbbell_cc::Path) {
        /// The present, s.
        now: f64 = |it| s(it.now);
        /// Payload bytes of a full packet.
        mss: u32 = |it| it.mss;
        /// Smoothed round-trip time, s (RFC 6298); None before the first sample.
        srtt: Option<f64> = |it| span(it.srtt);
        /// Least round-trip time seen, s; None before the first sample.
        min_rtt: Option<f64> = |it| span(it.min_rtt);
        /// Packets sent and neither acknowledged nor marked lost.
        in_flight: u32 = |it| it.in_flight;
        /// Packets delivered since the connection began, in any order.
        delivered: u64 = |it| it.delivered;
        /// Packets marked lost since the connection began.
        lost: u64 = |it| it.lost;
        /// Packets delivered with an ECN mark since the connection began.
        marked: u64 = |it| it.marked;
        /// Where loss recovery stands, as Linux calls it: "open", "disorder", "cwr", "recovery" or
        /// "loss".
        ca_state: &'static str = |it| ca_state(it.ca_state);
        /// Whether a window reduction is being carried out, during which windows do not grow.
        reducing: bool = |it| it.ca_state.is_reducing();
        /// Whether the window, not the application, limited sending in the last round (RFC 7661);
        /// windows grow only then.
        cwnd_limited: bool = |it| it.cwnd_limited;
        /// Sequence number of the next new packet.
        next_seq: u64 = |it| it.next_seq;
        /// Sequence number of the first packet not yet acknowledged cumulatively.
        una: u64 = |it| it.una;
        /// Rate at which the transport paces, or would if it did, bytes/s; None before there is a
        /// round-trip time.
        pacing_rate: Option<f64> = |it| rate(it.pacing_rate);
        /// The other subflows of a multipath connection; empty on a single path.
        siblings: Vec<Subflow> = |it| it.siblings.iter().copied().map(Subflow).collect();
    }

    /// What a subflow of a multipath connection publishes to the others.
    Subflow(dumbbell_cc::Subflow) {
        /// Congestion window, packets.
        cwnd: f64 = |it| it.cwnd;
        /// Smoothed round-trip time, s.
        srtt: f64 = |it| it.srtt.as_secs_f64();
        /// Packets delivered since the last loss, and between the last two.
        delivered_between_losses: (u64, u64) = |it| it.delivered_between_losses.into();
        /// Whether it is in slow start.
        slow_start: bool = |it| it.slow_start;
        /// Whether it may be used at present.
        active: bool = |it| it.active;
    }

    /// What an acknowledgement (or a UDT report) told.
    Ack(dumbbell_cc::Ack) {
        /// Packets newly delivered, cumulatively or selectively.
        delivered: u32 = |it| it.delivered;
        /// Packets by which windows grow (RFC 3465).
        acked: u32 = |it| it.acked;
        /// Packets marked lost by this acknowledgement.
        lost: u32 = |it| it.lost;
        /// Packets newly delivered that carried an ECN mark.
        marked: u32 = |it| it.marked;
        /// Round-trip time of the newest packet that this acknowledges, s; None if it was sent more
        /// than once.
        rtt: Option<f64> = |it| span(it.rtt);
        /// Packets in flight before this acknowledgement.
        prior_in_flight: u32 = |it| it.prior_in_flight;
        /// Delivery rate sample, if one could be taken.
        rate: Option<RateSample> = |it| it.rate.map(RateSample);
        /// What the peer measured, if it is UDT's.
        report: Option<PeerReport> = |it| it.report.map(PeerReport);
    }

    /// A delivery rate sample (draft-cheng-iccrg-delivery-rate-estimation).
    RateSample(dumbbell_cc::RateSample) {
        /// Packets delivered over the interval.
        delivered: u32 = |it| it.delivered;
        /// The longer of the send and the acknowledgement interval, s.
        interval: f64 = |it| it.interval.as_secs_f64();
        /// What was delivered over the interval, bytes/s.
        rate: f64 = |it| it.rate.bytes_per_sec();
        /// The connection as it was when the newest packet acknowledged was sent.
        send_state: SendState = |it| SendState(it.send_state);
        /// Packets marked lost since then.
        lost: u32 = |it| it.lost;
        /// ECN marks among the packets delivered since then.
        marked: u32 = |it| it.marked;
    }

    /// The connection as it was when a packet was sent.
    SendState(dumbbell_cc::SendState) {
        /// When that was, s.
        sent_at: f64 = |it| s(it.sent_at);
        /// Packets delivered by then.
        delivered: u64 = |it| it.delivered;
        /// Packets in flight then, this one included.
        in_flight: u32 = |it| it.in_flight;
        /// Whether the application was the limit then.
        app_limited: bool = |it| it.app_limited;
    }

    /// What a UDT receiver reports in an ACK.
    PeerReport(dumbbell_cc::PeerReport) {
        /// Packets by which the cumulative acknowledgement advanced.
        advanced: u32 = |it| it.advanced;
        /// Round-trip time as the peer has it, smoothed by the peer, s.
        rtt: f64 = |it| it.rtt.as_secs_f64();
        /// Its mean deviation, s.
        rtt_var: f64 = |it| it.rtt_var.as_secs_f64();
        /// Arrival speed, packets/s; 0 if unknown.
        arrival_rate: f64 = |it| it.arrival_rate;
        /// Link capacity by packet pairs, packets/s; 0 if unknown.
        capacity: f64 = |it| it.capacity;
        /// Packets that the peer has room for; 0 if unknown.
        window: u32 = |it| it.window;
    }

    /// A congestion signal.
    CongestionEvent(dumbbell_cc::CongestionEvent) {
        /// What was signalled: "loss", "ecn", "timeout", or UDT's "nak".
        signal: &'static str = |it| signal(it.signal);
        /// Whether this begins a new recovery episode, the one that a window rule answers.
        new_episode: bool = |it| it.new_episode;
        /// Packets that this reports lost (or marked); 0 where an episode begins with what was
        /// reported in the one before.
        packets: u32 = |it| it.packets;
        /// Sequence number of the lost packet (of the first one in a NAK, or that is missing).
        seq: u64 = |it| it.seq;
        /// The connection as it was when the lost packet was sent, where the transport knows it.
        send_state: Option<SendState> = |it| it.send_state.map(SendState);
    }

    /// A packet that was just handed to the network.
    Sent(dumbbell_cc::Sent) {
        /// Its sequence number.
        seq: u64 = |it| it.seq;
        /// Whether it was sent before.
        retransmission: bool = |it| it.retransmission;
        /// Whether nothing was in flight before it.
        from_idle: bool = |it| it.from_idle;
        /// Whether the application had run out of data before it.
        app_limited: bool = |it| it.app_limited;
    }

    /// What happened in a round: from when a packet was sent until it was acknowledged.
    Round(dumbbell_cc::RoundStats) {
        /// The number of the round, from 1.
        number: u64 = |it| it.number;
        /// When it began, s.
        start: f64 = |it| s(it.start);
        /// How long it was, s.
        duration: f64 = |it| it.duration().as_secs_f64();
        /// Packets newly delivered in it.
        delivered: u64 = |it| it.delivered;
        /// Packets marked lost in it.
        lost: u64 = |it| it.lost;
        /// Packets delivered in it that carried an ECN mark.
        marked: u64 = |it| it.marked;
        /// The least round-trip time in it, s; None if there was no sample.
        rtt_min: Option<f64> = |it| it.rtts().map(|(min, _)| min.as_secs_f64());
        /// The mean round-trip time in it, s; None if there was no sample.
        rtt_mean: Option<f64> = |it| it.rtt_mean();
        /// The greatest round-trip time in it, s; None if there was no sample.
        rtt_max: Option<f64> = |it| it.rtts().map(|(_, max)| max.as_secs_f64());
        /// What was delivered over its duration, bytes/s; 0 if it had none.
        rate: f64 = |it| it.rate().bytes_per_sec();
        /// The greatest delivery rate sample in it, bytes/s; 0 if there was none.
        max_rate: f64 = |it| it.max_rate.bytes_per_sec();
        /// Whether the application was the limit when the newest packet acknowledged was sent.
        app_limited: bool = |it| it.app_limited;
    }
}
