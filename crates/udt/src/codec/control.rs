//! Wire format of control packets.

use super::{CONTROL, Datagram, DecodeError, handshake, put, words};
use crate::packet::{Ack, AckKind, DropRequest, Nak, Packet, UserDefined};
use crate::seq::{MessageNumber, Seq};
use std::net::IpAddr;

const HANDSHAKE: u16 = 0;
const KEEP_ALIVE: u16 = 1;
const ACK: u16 = 2;
const NAK: u16 = 3;
const CONGESTION_WARNING: u16 = 4;
const SHUTDOWN: u16 = 5;
const ACK2: u16 = 6;
const DROP_REQUEST: u16 = 7;
const PEER_ERROR: u16 = 8;
const USER: u16 = 0x7fff;

/// Decodes a control packet; `first` and `info` are its first two words.
pub(super) fn decode(
    first: u32,
    info: u32,
    destination: u32,
    body: &[u8],
) -> Result<Datagram<'_>, DecodeError> {
    let kind = (first >> 16) as u16 & 0x7fff;
    let short = |needed| DecodeError::TooShort { kind: Some(kind), needed, found: body.len() };
    let mut datagram =
        Datagram { destination, packet: Packet::KeepAlive, payload: &[], more_losses: &[] };
    datagram.packet = match kind {
        HANDSHAKE => {
            let (handshake, rest) = handshake::decode(body).ok_or(short(48))?;
            datagram.payload = rest;
            Packet::Handshake(handshake)
        }
        KEEP_ALIVE => Packet::KeepAlive,
        ACK => decode_ack(info, body).ok_or(short(4))?,
        NAK => {
            let (nak, rest) = decode_losses(body, false);
            datagram.more_losses = rest;
            Packet::Nak(nak)
        }
        CONGESTION_WARNING => Packet::CongestionWarning,
        SHUTDOWN => Packet::Shutdown,
        ACK2 => Packet::Ack2 { number: info },
        DROP_REQUEST => {
            let ([first, last], _) = words(body).ok_or(short(8))?;
            let (first, last) = (Seq::new(first), Seq::new(last));
            Packet::DropRequest(DropRequest { message: MessageNumber::new(info), first, last })
        }
        PEER_ERROR => Packet::PeerError { code: info },
        USER => {
            datagram.payload = body;
            Packet::UserDefined(UserDefined { kind: first as u16, info, length: body.len() as u16 })
        }
        _ => return Err(DecodeError::UnknownType(kind)),
    };
    Ok(datagram)
}

/// Decodes an ACK, whose kind follows from its length.
fn decode_ack(number: u32, body: &[u8]) -> Option<Packet> {
    let ([next], rest) = words(body)?;
    let mut ack = Ack { number, next: Seq::new(next), ..Ack::default() };
    let Some(([rtt_us, rtt_var_us, window], rest)) = words(rest) else {
        return Some(Packet::Ack(AckKind::Light, ack));
    };
    (ack.rtt_us, ack.rtt_var_us, ack.window) = (rtt_us, rtt_var_us, window);
    let Some(([arrival_rate, capacity], _)) = words(rest) else {
        return Some(Packet::Ack(AckKind::Short, ack));
    };
    (ack.arrival_rate, ack.capacity) = (arrival_rate, capacity);
    Some(Packet::Ack(AckKind::Full, ack))
}

/// Decodes the part of a NAK that one [`Nak`] holds. Returns it and the remaining bytes.
pub(super) fn decode_losses(bytes: &[u8], continued: bool) -> (Nak, &[u8]) {
    // One word more than a `Nak` holds shows whether a range would be split.
    let mut buffer = [0; Nak::MAX_WORDS + 1];
    let mut filled = 0;
    for (word, bytes) in buffer.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        filled += 1;
    }
    let (mut nak, left) = Nak::from_words(&buffer[..filled]);
    nak.continued = continued;
    let used = filled - left.len();
    let rest = if left.is_empty() { &[] } else { &bytes[4 * used..] };
    (nak, rest)
}

/// Appends a control packet. Those without a body get one word of padding.
pub(super) fn encode(
    packet: &Packet,
    destination: u32,
    to: IpAddr,
    payload: &[u8],
    out: &mut Vec<u8>,
) {
    let (kind, info) = match packet {
        Packet::Handshake(_) => (HANDSHAKE, 0),
        Packet::KeepAlive => (KEEP_ALIVE, 0),
        Packet::Ack(_, ack) => (ACK, ack.number),
        Packet::Nak(_) => (NAK, 0),
        Packet::CongestionWarning => (CONGESTION_WARNING, 0),
        Packet::Shutdown => (SHUTDOWN, 0),
        Packet::Ack2 { number } => (ACK2, *number),
        Packet::DropRequest(drop) => (DROP_REQUEST, drop.message.get()),
        Packet::PeerError { code } => (PEER_ERROR, *code),
        Packet::UserDefined(user) => (USER, user.info),
        Packet::Data(_) => return,
    };
    let extended = if let Packet::UserDefined(user) = packet { u32::from(user.kind) } else { 0 };
    put(out, &[CONTROL | u32::from(kind) << 16 | extended, info, 0, destination]);
    match packet {
        Packet::Handshake(packet) => {
            handshake::encode(packet, to, out);
            out.extend_from_slice(payload);
        }
        Packet::Ack(kind, ack) => encode_ack(*kind, ack, out),
        Packet::Nak(nak) => put(out, nak.words()),
        Packet::DropRequest(drop) => put(out, &[drop.first.get(), drop.last.get()]),
        Packet::UserDefined(_) => out.extend_from_slice(payload),
        _ => put(out, &[0]),
    }
}

fn encode_ack(kind: AckKind, ack: &Ack, out: &mut Vec<u8>) {
    let words =
        [ack.next.get(), ack.rtt_us, ack.rtt_var_us, ack.window, ack.arrival_rate, ack.capacity];
    let said = match kind {
        AckKind::Light => 1,
        AckKind::Short => 4,
        AckKind::Full => 6,
    };
    put(out, &words[..said]);
}
