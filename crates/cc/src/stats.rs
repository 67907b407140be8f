//! Counters of a transport's sender.

use crate::CaState;
use dumbbell_units::{Rate, Span, Time};

/// Counters and current values of a sender, for tables and plots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SenderStats {
    /// Window in force, packets: the congestion window, or in UDT the receiver's if that is smaller.
    pub cwnd: f64,
    /// Slow start threshold, packets.
    pub ssthresh: f64,
    /// Smoothed round-trip time.
    pub srtt: Option<Span>,
    /// Latest round-trip time sample.
    pub rtt: Option<Span>,
    /// Minimum round-trip time.
    pub min_rtt: Option<Span>,
    /// Sum of all round-trip time samples, s, and their number.
    pub rtt_sum: (f64, u64),
    /// Pacing rate; `None` if packets are not paced.
    pub pacing_rate: Option<Rate>,
    /// Latest delivery rate sample.
    pub delivery_rate: Rate,
    /// Packets in flight.
    pub in_flight: u32,
    /// Data packets sent, retransmissions included.
    pub sent: u64,
    /// Retransmissions sent.
    pub retransmitted: u64,
    /// Packets marked lost.
    pub lost: u64,
    /// Packets delivered, in any order.
    pub delivered: u64,
    /// Loss recovery state.
    pub ca_state: CaState,
    /// Retransmission timeouts; in UDT expiries of the EXP timer with data in flight.
    pub timeouts: u32,
    /// Fast recovery episodes.
    pub recoveries: u32,
    /// Reductions that were undone; always 0 in UDT.
    pub spurious: u32,
    /// When all data had been acknowledged; `None` before, and for flows without end.
    pub completed: Option<Time>,
}

impl SenderStats {
    /// Bytes delivered, in packets of `payload` bytes; `total` is all that there is to deliver.
    pub fn delivered_bytes(&self, payload: u64, total: u64) -> u64 {
        (self.delivered * payload).min(total)
    }
}
