//! What the environment of an engine needs of it.

use crate::inbox::ProtocolError;
use dumbbell_units::Time;

/// The channel of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// A UDP datagram.
    Data,
    /// Bytes of the TCP stream.
    Control,
}

/// One end of a transfer.
///
/// The environment calls [`handle`](Self::handle) for what arrives, then [`poll`](Self::poll) until it
/// returns `None`, and polls again at [`next_timeout`](Self::next_timeout). It polls for the first time
/// when the transfer begins.
pub trait Engine: Send {
    /// Processes a datagram, or the next bytes of the control stream.
    ///
    /// # Errors
    /// If the control stream is not the protocol's; the transfer cannot continue then. Datagrams that
    /// are not the protocol's are ignored.
    fn handle(&mut self, now: Time, channel: Channel, bytes: &[u8]) -> Result<(), ProtocolError>;

    /// Runs the timers that are due and appends what to send now to `out`, which is empty: a datagram,
    /// or bytes of the control stream. Returns its channel, or `None` if there is nothing to send.
    fn poll(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Channel>;

    /// When to poll next if nothing arrives; [`Time::MAX`] if no timer is set.
    fn next_timeout(&self) -> Time;

    /// Counters and current values.
    fn stats(&self) -> Stats;

    /// Shows internal variables: the source's name and the value.
    fn inspect(&self, show: &mut dyn FnMut(&'static str, f64));
}

/// What a sender has to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Bytes; `None` for no limit.
    pub bytes: Option<u64>,
    /// No new data is sent from then on; `None` for never.
    pub stop: Option<Time>,
}

impl Load {
    /// The number of packets with a payload of so many bytes; [`u64::MAX`] for no limit.
    pub(crate) fn packets(&self, payload: u64) -> u64 {
        self.bytes.map_or(u64::MAX, |bytes| bytes.div_ceil(payload))
    }

    /// Payload bytes of packet `number`, counted from 0.
    pub(crate) fn payload(&self, number: u64, payload: u64) -> usize {
        let left = self.bytes.map_or(payload, |bytes| bytes.saturating_sub(number * payload));
        left.min(payload) as usize
    }

    /// Whether new data may be sent.
    pub(crate) fn is_open(&self, now: Time) -> bool {
        self.stop.is_none_or(|stop| now < stop)
    }
}

/// Counters and current values. Each end fills in what it knows; the other fields are 0 or `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stats {
    /// The sender's rate, bit/s of IP packets; `None` before data is sent.
    pub rate: Option<f64>,
    /// Datagrams with data that the sender has sent, retransmissions included.
    pub sent: u64,
    /// Retransmissions among them.
    pub retransmitted: u64,
    /// Packets that were reported missing, each once per report of a new loss.
    pub lost: u64,
    /// Reductions of the sender's rate; with RBUDP blasts after the first of a block.
    pub recoveries: u32,
    /// Expiries of the timer for a silent receiver.
    pub timeouts: u32,
    /// Payload bytes that have arrived, in any order, each counted once.
    pub delivered: u64,
    /// Payload bytes that have arrived in order.
    pub received: u64,
    /// When the sender learned that everything has arrived.
    pub completed: Option<Time>,
}

/// Bytes of the headers of IPv4 and UDP.
pub(crate) const IP_UDP: u64 = 28;

/// Rate of IP packets with this UDP payload at an interval in microseconds, bit/s.
pub(crate) fn wire_rate(udp_payload: u64, interval_us: f64) -> f64 {
    (udp_payload + IP_UDP) as f64 * 8e6 / interval_us
}
