//! The facts that a congestion control of media gets, and its decisions.

use dumbbell_cc::Metric;
use dumbbell_sim::EcnCodepoint;
use dumbbell_units::{Rate, Span, Time};

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketResult {
    /// Its sequence number, extended to 64 bits.
    pub number: u64,
    /// When it was sent.
    pub sent_at: Time,
    /// Bytes of the RTP packet.
    pub size: u32,
    /// When it arrived, by the clock of the receiver; `None` if it is lost.
    pub arrived_at: Option<Time>,
    /// Its ECN field on arrival.
    pub ecn: EcnCodepoint,
}

/// What a report of the receiver adds.
#[derive(Clone, Debug)]
pub struct Feedback<'a> {
    /// When the report arrived.
    pub now: Time,
    /// Packets that are received or lost for the first time, in the order of their numbers.
    pub packets: &'a [PacketResult],
    /// Bytes by which the highest acknowledged packet advanced, lost packets included (SCReAM's
    /// `bytes_newly_acked`).
    pub bytes_newly_acked: u64,
    /// Bytes between the highest packet that was acknowledged and the highest that was sent.
    pub bytes_in_flight: u64,
    /// Smoothed round-trip time (RFC 6298), without the time for which the receiver held reports back.
    pub srtt: Option<Span>,
}

/// The minimum and the maximum of the rate of the media, at present.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimits {
    /// Minimum.
    pub min: Rate,
    /// Maximum.
    pub max: Rate,
}

/// A congestion control of media.
pub trait MediaControl: Send {
    /// The limits of the media's rate from now on.
    fn set_limits(&mut self, limits: RateLimits);

    /// A frame of so many bytes was encoded. `queue_delay` is how long the oldest packet has waited
    /// to be sent.
    fn on_frame(&mut self, _bytes: u32, _queue_delay: Span) {}

    /// A packet was sent, which is among the `bytes_in_flight`.
    fn on_sent(&mut self, _now: Time, _bytes_in_flight: u64) {}

    /// A report arrived.
    fn on_feedback(&mut self, feedback: &Feedback<'_>);

    /// Rate at which the media is to be encoded, headers of RTP included.
    fn target_rate(&self) -> Rate;

    /// Rate at which packets leave.
    fn pacing_rate(&self) -> Rate;

    /// Maximum bytes in flight; `None` for no limit.
    fn max_in_flight(&self) -> Option<u64> {
        None
    }

    /// The congestion window, bytes, if there is one.
    fn window(&self) -> Option<f64> {
        None
    }

    /// Shows the internal variables.
    fn inspect(&self, show: &mut dyn FnMut(Metric));
}

/// A variable to show.
pub(crate) fn metric(name: &'static str, value: f64) -> Metric {
    Metric { name, value }
}
