//! Options of a connection.

use crate::packet::{HEADER, IP_UDP_HEADER};
use dumbbell_units::Span;

/// SYN, UDT's interval of acknowledgements and rate control: 10 ms.
pub const SYN: Span = Span::from_millis(10);

/// Transport options of a connection. The defaults are those of libudt 4.11, except `nak_repeat`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields, default)
)]
pub struct TransportOptions {
    /// Maximum packet size including IP and UDP headers, bytes (UDT_MSS).
    pub mss: u16,
    /// Maximum packets in flight towards this end (UDT_FC).
    pub window: u32,
    /// Size of the send buffer, packets (UDT_SNDBUF).
    pub send_buffer: u32,
    /// Size of the receive buffer, packets (UDT_RCVBUF).
    pub receive_buffer: u32,
    /// Data packets per acknowledgement, if a SYN does not pass first. 0: one per SYN only.
    pub ack_interval: u32,
    /// Whether the receiver sends a light ACK every 64 packets within a SYN, as UDT4 does and Gu's
    /// ns-2 module does not.
    pub light_acks: bool,
    /// Whether NAKs are repeated until the loss is repaired, as the draft specifies and UDT4 omits.
    pub nak_repeat: bool,
    /// Whether acknowledgements skip gaps: a loss is reported once and then abandoned, as in Gu's ns-2
    /// module, with which papers simulate UDT. Ignored unless received data is only counted.
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
    /// Initial congestion window, packets (UDT4's).
    pub const INITIAL_WINDOW: u32 = 16;
    /// Minimum MSS, bytes: one handshake fits.
    pub const MIN_MSS: u16 = 92;
    /// Minimum buffer and window, packets (UDT4's).
    pub const MIN_BUFFER: u32 = 32;
    /// Maximum buffer and window, packets. It bounds memory and keeps sequence numbers comparable,
    /// which must be less than 2^30 apart.
    pub const MAX_BUFFER: u32 = 1 << 24;

    /// Default options for the algorithm `cc`, given as name and options.
    ///
    /// UDT's own algorithms expect one acknowledgement per SYN. Algorithms made for TCP get one every
    /// second packet, as UDT4's example of a TCP algorithm sets it.
    pub fn for_algorithm(cc: &str) -> TransportOptions {
        let own = matches!(cc.split('(').next().unwrap_or(cc).trim(), "udt" | "ar-udt");
        TransportOptions { ack_interval: if own { 0 } else { 2 }, ..TransportOptions::default() }
    }

    /// Checks the ranges of all options.
    ///
    /// # Errors
    /// The first option that is out of range.
    pub fn check(&self) -> Result<(), OptionError> {
        let packets = (TransportOptions::MIN_BUFFER, TransportOptions::MAX_BUFFER, "packets");
        let mss = (u32::from(TransportOptions::MIN_MSS), u32::from(u16::MAX), "bytes");
        for (key, value, (min, max, unit)) in [
            ("mss", u32::from(self.mss), mss),
            ("window", self.window, packets),
            ("send_buffer", self.send_buffer, packets),
            ("receive_buffer", self.receive_buffer, packets),
        ] {
            if !(min..=max).contains(&value) {
                return Err(OptionError { key, value, min, max, unit });
            }
        }
        Ok(())
    }

    /// Payload of a full packet, bytes: MSS less IP, UDP and UDT headers.
    pub fn max_payload(&self) -> u16 {
        self.mss - (IP_UDP_HEADER + HEADER) as u16
    }

    /// Maximum packets in flight towards this end, as announced in the handshake.
    pub fn flight_window(&self) -> u32 {
        self.receive_buffer.min(self.window)
    }
}

/// An option is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{value} is not from {min} to {max} {unit}")]
pub struct OptionError {
    /// Name of the option, as in experiment files.
    pub key: &'static str,
    /// Its rejected value.
    pub value: u32,
    /// Minimum valid value.
    pub min: u32,
    /// Maximum valid value.
    pub max: u32,
    /// Unit of these values.
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
    /// Socket type in the handshake. libudt's values; the draft's are smaller by 1.
    pub(crate) const fn socket_type(self) -> u8 {
        match self {
            Mode::Stream => 1,
            Mode::Message => 2,
        }
    }
}
