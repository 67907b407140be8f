//! An application that writes at a constant rate.

use dumbbell_units::{Rate, Span};

/// Writes full packets at a constant rate. Whole numbers, so that a packet is there exactly when
/// it is due.
#[derive(Clone, Copy, Debug)]
pub struct Application {
    bytes_per_sec: u128,
    /// Bytes of a packet, times the nanoseconds of a second.
    packet: u128,
}

impl Application {
    /// Writes at `rate` in packets of `mss` bytes.
    pub fn new(rate: Rate, mss: u16) -> Application {
        let bytes_per_sec = (rate.bytes_per_sec() as u128).max(1);
        Application { bytes_per_sec, packet: u128::from(mss) * 1_000_000_000 }
    }

    /// Packets written within `span`.
    pub fn written(&self, span: Span) -> u32 {
        (u128::from(span.as_nanos()) * self.bytes_per_sec / self.packet) as u32
    }

    /// How long it takes to write so many packets.
    pub fn due(&self, packets: u32) -> Span {
        let nanos = (u128::from(packets) * self.packet).div_ceil(self.bytes_per_sec);
        Span::from_nanos(nanos as u64)
    }
}
