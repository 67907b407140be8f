//! Facts that only one kind of transport has.
//!
//! A transport that is neither MPTCP nor UDT leaves them at their defaults.

use alloc::vec::Vec;
use dumbbell_units::Span;

/// MPTCP's extension of [`Path`](crate::Path).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Multipath {
    /// Published state of the connection's other subflows. The subflow itself is not among them.
    /// Empty on a single path.
    pub siblings: Vec<Subflow>,
}

/// State that a subflow of a multipath connection publishes to the others.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Subflow {
    /// Congestion window, packets.
    pub cwnd: f64,
    /// Smoothed round-trip time.
    pub srtt: Span,
    /// Packets delivered since the last loss, and between the last two losses (OLIA's `l_r`).
    pub delivered_between_losses: [u64; 2],
    /// Whether it is in slow start.
    pub slow_start: bool,
    /// Whether it is usable at present.
    pub active: bool,
}

impl Subflow {
    /// A usable subflow in congestion avoidance that has had no loss.
    pub const fn new(cwnd: f64, srtt: Span) -> Subflow {
        Subflow { cwnd, srtt, delivered_between_losses: [0; 2], slow_start: false, active: true }
    }
}

/// UDT's extension of [`Ack`](crate::Ack): the receiver's measurements in a UDT ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct UdtReport {
    /// Packets by which the cumulative acknowledgement advanced.
    pub advanced: u32,
    /// Round-trip time from ACK to ACK2, smoothed by the receiver.
    pub rtt: Span,
    /// Mean deviation of that round-trip time.
    pub rtt_var: Span,
    /// Arrival rate, packets/s; 0 if unknown.
    pub arrival_rate: f64,
    /// Link capacity measured by packet pairs, packets/s; 0 if unknown.
    pub capacity: f64,
    /// Flow window announced in the handshake, packets; 0 if unknown.
    pub window: u32,
}
