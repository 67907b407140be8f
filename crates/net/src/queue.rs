//! Queue limits.
//!
//! Droptail as in Linux's pfifo and bfifo: a packet that arrives at a full queue is dropped. The
//! packet in transmission does not count, as it has left the queueing discipline for the device. An
//! emulator that computes virtual finish times and has a limit in bytes also counts the rest of the
//! packet in transmission, so it differs by at most one packet.

use dumbbell_units::Span;

/// The limit of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// No limit.
    #[default]
    Unlimited,
    /// Packets.
    Packets(u32),
    /// Bytes, headers included.
    Bytes(u64),
    /// Queueing delay: a packet that would wait longer is dropped.
    Time(Span),
}

/// The content of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Bytes.
    pub bytes: u64,
}

impl Limit {
    /// Whether a packet of `size` bytes fits if it would wait for `delay`.
    #[inline]
    pub fn admits(self, backlog: Backlog, size: u32, delay: Span) -> bool {
        match self {
            Limit::Unlimited => true,
            Limit::Packets(limit) => backlog.packets < limit,
            Limit::Bytes(limit) => backlog.bytes + u64::from(size) <= limit,
            Limit::Time(limit) => delay <= limit,
        }
    }
}

impl std::ops::Add for Backlog {
    type Output = Backlog;

    #[inline]
    fn add(self, other: Backlog) -> Backlog {
        Backlog { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

impl Backlog {
    /// Adds a packet of `size` bytes.
    #[inline]
    pub(crate) fn add(&mut self, size: u32) {
        self.packets += 1;
        self.bytes += u64::from(size);
    }

    /// Removes a packet of `size` bytes.
    #[inline]
    pub(crate) fn remove(&mut self, size: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(size);
    }
}
