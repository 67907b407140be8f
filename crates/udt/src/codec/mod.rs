//! UDT4's wire format.
//!
//! A UDP payload is a header of four big-endian words and a body. The header of a data packet is
//! sequence number (highest bit 0), message field, timestamp, destination socket id. That of a
//! control packet is type (highest bit 1), additional info, timestamp (0 in UDT4), destination
//! socket id. Lengths are taken from the UDP payload only.

mod control;
mod handshake;

use crate::packet::{DataHeader, MessagePart, Nak, Packet};
use crate::seq::Seq;
use std::net::IpAddr;

/// Flag bit of control packets.
const CONTROL: u32 = 1 << 31;

/// A decoded UDP payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Destination socket id; 0 for connection requests.
    pub destination: u32,
    /// The packet. Of a NAK longer than [`Nak::MAX_WORDS`], the first part.
    pub packet: Packet,
    /// Payload of a data or user-defined packet, or what follows a handshake: the encrypted mode's
    /// message. UDT4 ignores handshakes with one.
    pub payload: &'a [u8],
    /// Remaining words of a long NAK.
    more_losses: &'a [u8],
}

/// Why a UDP payload is not a UDT packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Shorter than the header, or than the body of its type.
    #[error("{found} bytes are too few for a packet of type {kind:?}, which has {needed}")]
    TooShort {
        /// Type of the control packet; `None` if the header is incomplete.
        kind: Option<u16>,
        /// Minimum length, bytes.
        needed: usize,
        /// Actual length, bytes.
        found: usize,
    },
    /// Longer than any IP packet, bytes.
    #[error("{0} bytes are more than a packet can have")]
    TooLong(usize),
    /// Unknown type of control packet.
    #[error("there is no control packet of type {0}")]
    UnknownType(u16),
}

impl<'a> Datagram<'a> {
    /// The datagram with its data packet replaced, as after decryption.
    #[cfg(feature = "io")]
    pub(crate) fn with_data(self, data: DataHeader, payload: &'a [u8]) -> Datagram<'a> {
        Datagram { packet: Packet::Data(data), payload, ..self }
    }

    /// The packets: one, or several parts of a long NAK.
    pub fn packets(&self) -> impl Iterator<Item = Packet> + '_ {
        let mut rest = self.more_losses;
        let more = std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let (nak, left) = control::decode_losses(rest, true);
            rest = left;
            (!nak.words().is_empty()).then_some(Packet::Nak(nak))
        });
        std::iter::once(self.packet).chain(more)
    }
}

/// Destination socket id of a UDP payload; `None` if it is shorter than a header.
pub fn destination(bytes: &[u8]) -> Option<u32> {
    words::<4>(bytes).map(|([.., destination], _)| destination)
}

/// Decodes a UDP payload.
///
/// # Errors
/// [`DecodeError`] if it is not a UDT packet.
pub fn decode(bytes: &[u8]) -> Result<Datagram<'_>, DecodeError> {
    if bytes.len() > usize::from(u16::MAX) {
        return Err(DecodeError::TooLong(bytes.len()));
    }
    let Some(([first, second, timestamp, destination], body)) = words(bytes) else {
        return Err(DecodeError::TooShort { kind: None, needed: 16, found: bytes.len() });
    };
    if first & CONTROL != 0 {
        return control::decode(first, second, destination, body);
    }
    let data = DataHeader {
        seq: Seq::new(first),
        message: MessagePart::from_word(second),
        timestamp,
        length: body.len() as u16,
    };
    Ok(Datagram { destination, packet: Packet::Data(data), payload: body, more_losses: &[] })
}

/// Appends a packet to `out`, as the UDP payload for the socket id `destination` at address `to`.
///
/// `payload` is used for data and user-defined packets, of which it must have the `length`, and handshakes.
pub fn encode(packet: &Packet, destination: u32, to: IpAddr, payload: &[u8], out: &mut Vec<u8>) {
    if let Packet::Data(data) = packet {
        put(out, &[data.seq.get(), data.message.word(), data.timestamp, destination]);
        out.extend_from_slice(payload);
        return;
    }
    control::encode(packet, destination, to, payload, out);
}

/// Appends the ranges of a [`continued`](Nak::continued) NAK to the datagram of its first part, which
/// must be the last one in `out`.
pub fn append_nak(nak: &Nak, out: &mut Vec<u8>) {
    put(out, nak.words());
}

/// Splits `N` big-endian words off `bytes`.
fn words<const N: usize>(bytes: &[u8]) -> Option<([u32; N], &[u8])> {
    let (head, rest) = bytes.split_at_checked(4 * N)?;
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(head.chunks_exact(4)) {
        *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    Some((words, rest))
}

fn put(out: &mut Vec<u8>, words: &[u32]) {
    for word in words {
        out.extend_from_slice(&word.to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
