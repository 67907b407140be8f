//! What a connection is told when it is made.

use crate::packet::{HEADER, IP_UDP_HEADER};
use dumbbell_units::Span;
use serde::{Deserialize, Serialize};

/// The interval at which UDT acknowledges and adjusts its rate.
pub const SYN: Span = Span::from_millis(10);

/// Options of the transport; the defaults are UDT4's (libudt 4.11).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct TransportOptions {
    /// Greatest packet, bytes, IP and UDP headers included.
    pub mss: u16,
    /// Packets that may be in flight to this end at most (UDT_FC).
    pub window: u32,
    /// Packets that the sender keeps until they are acknowledged (UDT_SNDBUF).
    pub send_buffer: u32,
    /// Packets that the receiver keeps (UDT_RCVBUF).
    pub receive_buffer: u32,
    /// Packets after which an acknowledgement is sent before SYN has passed; 0 for none.
    pub ack_interval: u32,
    /// Whether the sender is told of every 64th packet before SYN has passed, by an acknowledgement
    /// that says nothing else. UDT4 does so, Gu's module for NS-2 does not.
    pub light_acks: bool,
    /// Whether losses are reported again until they are repaired. The draft says so, UDT4 does not.
    pub nak_repeat: bool,
    /// Whether acknowledgements pass over what is missing: it is reported once and then given up, as
    /// in Gu's module for NS-2, which papers simulate UDT with. Only where data is counted; an
    /// application that reads has all of it.
    pub skip_gaps: bool,
}

impl Default for TransportOptions {
    fn default() -> TransportOptions {
        TransportOptions {
            mss: 1500,
            window: 25_600,
            send_buffer: 8192,
            receive_buffer: 8192,
            ack_interval: 0,
            light_acks: true,
            nak_repeat: true,
            skip_gaps: false,
        }
    }
}

impl TransportOptions {
    /// The window that algorithms begin with, packets (UDT4's).
    pub const INITIAL_WINDOW: u32 = 16;
    /// The least MSS: a handshake must fit.
    pub const MIN_MSS: u16 = 92;
    /// The least buffer, packets (UDT4's).
    pub const MIN_BUFFER: u32 = 32;
    /// The greatest buffer, packets: sequence numbers are compared within 2^30, and memory is
    /// bounded.
    pub const MAX_BUFFER: u32 = 1 << 24;

    /// The defaults for an algorithm, by its name and options: UDT's own want the receiver's reports
    /// once a SYN, those made for TCP an acknowledgement of every second packet, as UDT4's own
    /// example of a TCP algorithm asks for.
    pub fn for_algorithm(cc: &str) -> TransportOptions {
        let own = matches!(cc.split('(').next().unwrap_or(cc).trim(), "udt" | "ar-udt");
        TransportOptions { ack_interval: if own { 0 } else { 2 }, ..TransportOptions::default() }
    }

    /// Whether a connection can have these options.
    ///
    /// # Errors
    /// At the first that is out of range.
    pub fn check(&self) -> Result<(), OptionError> {
        let packets = (TransportOptions::MIN_BUFFER, TransportOptions::MAX_BUFFER, "packets");
        let mss = (u32::from(TransportOptions::MIN_MSS), u32::from(u16::MAX), "bytes");
        for (key, value, (min, max, unit)) in [
            ("mss", u32::from(self.mss), mss),
            ("window", self.window, packets),
            ("send-buffer", self.send_buffer, packets),
            ("receive-buffer", self.receive_buffer, packets),
        ] {
            if !(min..=max).contains(&value) {
                return Err(OptionError { key, value, min, max, unit });
            }
        }
        Ok(())
    }

    /// Payload of a full packet, bytes.
    pub fn max_payload(&self) -> u16 {
        self.mss - (IP_UDP_HEADER + HEADER) as u16
    }

    /// Packets that may be in flight to this end: what the handshake says.
    pub fn flight_window(&self) -> u32 {
        self.receive_buffer.min(self.window)
    }
}

/// An option that is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value} is not from {min} to {max} {unit}")]
pub struct OptionError {
    /// The option.
    pub key: &'static str,
    /// Its value.
    pub value: u32,
    /// The least that it may be.
    pub min: u32,
    /// The most that it may be.
    pub max: u32,
    /// What it is counted in.
    pub unit: &'static str,
}

/// Whether a connection carries a stream of bytes or messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// A stream of bytes.
    #[default]
    Stream,
    /// Messages.
    Message,
}

impl Mode {
    /// The handshake's socket type; libudt's, not the draft's.
    pub(crate) const fn socket_type(self) -> u8 {
        match self {
            Mode::Stream => 1,
            Mode::Message => 2,
        }
    }
}
