//! Queue limits: who may wait.
//!
//! Droptail as Linux's pfifo and bfifo have it: a packet that finds the limit reached is dropped.
//! Only what waits counts; the packet in service does not, as it has left the queueing discipline
//! for the device. A server of virtual finish times with a limit in bytes, such as a user-space
//! emulator, counts the rest of the packet in service too and so differs by one packet at most.

use dumbbell_units::Span;

/// How much may wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// Anything.
    #[default]
    Unlimited,
    /// So many packets.
    Packets(u32),
    /// So many bytes, headers included.
    Bytes(u64),
    /// What is sent within so long: a packet that would wait longer is dropped.
    Time(Span),
}

/// What waits at present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Bytes.
    pub bytes: u64,
}

impl Limit {
    /// Whether one more packet of `size` bytes may wait, when it would wait for `delay`.
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

impl Backlog {
    /// A packet of `size` bytes begins to wait.
    #[inline]
    pub(crate) fn add(&mut self, size: u32) {
        self.packets += 1;
        self.bytes += u64::from(size);
    }

    /// A packet of `size` bytes waits no longer.
    #[inline]
    pub(crate) fn remove(&mut self, size: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(size);
    }
}
