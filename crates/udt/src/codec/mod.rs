//! Packets as bytes, as UDT4 has them on the wire.
//!
//! A UDP payload is a header of four words and what follows; all words are big-endian. Data has
//! its sequence number (highest bit 0), message, timestamp and the destination's socket id, then
//! the payload. Control packets have their type, a word of their own, a timestamp, which UDT4
//! leaves zero, and the socket id, then more words. Of what comes in, no length is believed: there
//! is nothing in a packet but what is there.

mod control;
mod handshake;

use crate::packet::{DataHeader, MessagePart, Nak, Packet};
use crate::seq::Seq;
use std::net::IpAddr;

/// The bit that tells control packets from data.
const CONTROL: u32 = 1 << 31;

/// A UDP payload taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// The socket id that it is for; 0 for one that wants to connect.
    pub destination: u32,
    /// The packet; of a long report of losses the beginning.
    pub packet: Packet,
    /// The payload of data, and the content of a user's packet.
    pub payload: &'a [u8],
    /// Words of a report of losses that are not in `packet`.
    more_losses: &'a [u8],
}

/// Why bytes are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// There are not even as many bytes as a header has, or as the type needs.
    #[error("{found} bytes are too few for a packet of type {kind:?}, which has {needed}")]
    TooShort {
        /// The control packet's type; none for data and if there is no header.
        kind: Option<u16>,
        /// Bytes that are needed.
        needed: usize,
        /// Bytes that there are.
        found: usize,
    },
    /// There are more bytes than any IP packet has.
    #[error("{0} bytes are more than a packet can have")]
    TooLong(usize),
    /// There is no such type of control packet.
    #[error("there is no control packet of type {0}")]
    UnknownType(u16),
}

impl<'a> Datagram<'a> {
    /// The same with other data.
    #[cfg(feature = "io")]
    pub(crate) fn with_data(self, data: DataHeader, payload: &'a [u8]) -> Datagram<'a> {
        Datagram { packet: Packet::Data(data), payload, ..self }
    }

    /// All packets that this stands for: one, but for a long report of losses.
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

/// The socket id that a UDP payload is for, if it is long enough for a packet.
pub fn destination(bytes: &[u8]) -> Option<u32> {
    words::<4>(bytes).map(|([.., destination], _)| destination)
}

/// Takes a UDP payload apart.
///
/// # Errors
/// If it is not a UDT packet.
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

/// Appends a packet to `out`, as a UDP payload for the socket `destination` at `to`. Only data and
/// users' packets have a `payload`; it should be as long as they say.
pub fn encode(packet: &Packet, destination: u32, to: IpAddr, payload: &[u8], out: &mut Vec<u8>) {
    if let Packet::Data(data) = packet {
        put(out, &[data.seq.get(), data.message.word(), data.timestamp, destination]);
        out.extend_from_slice(payload);
        return;
    }
    control::encode(packet, destination, to, payload, out);
}

/// Appends the ranges of a [`continued`](Nak::continued) report of losses to the datagram that
/// holds its beginning, which must be the last thing in `out`.
pub fn append_nak(nak: &Nak, out: &mut Vec<u8>) {
    put(out, nak.words());
}

/// The first words of `bytes`, and the bytes after them.
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
