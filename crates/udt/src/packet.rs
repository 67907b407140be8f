//! Packets inside the engine. Their wire format is in `codec`.
//!
//! A packet holds neither destination nor payload: the driver adds the peer's address and socket id,
//! and payload is passed beside the packet. A packet is therefore 32 bytes and `Copy`, so that
//! simulated links do not allocate. A long NAK takes several packets.

use crate::seq::{MessageNumber, Seq};

/// IPv4 and UDP headers, bytes. UDT4 uses the same number for IPv6; sockets therefore agree on a smaller
/// MSS there.
pub const IP_UDP_HEADER: u32 = 28;
/// UDT header, bytes.
pub const HEADER: u32 = 16;

/// A UDT packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Packet {
    /// Data.
    Data(DataHeader),
    /// Handshake (type 0).
    Handshake(Handshake),
    /// Keep-alive (type 1).
    KeepAlive,
    /// Acknowledgement of all packets before one (type 2).
    Ack(AckKind, Ack),
    /// Report of missing packets (type 3).
    Nak(Nak),
    /// Warning of growing delay (type 4). UDT4 never sends it.
    CongestionWarning,
    /// Shutdown of the connection (type 5).
    Shutdown,
    /// Acknowledgement of an ACK (type 6).
    Ack2 {
        /// ACK sequence number.
        number: u32,
    },
    /// Request to drop a message whose time to live has expired (type 7).
    DropRequest(DropRequest),
    /// Error of the peer's application (type 8).
    PeerError {
        /// Error code.
        code: u32,
    },
    /// User-defined packet (type 0x7FFF).
    UserDefined(UserDefined),
}

/// Header of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DataHeader {
    /// Packet sequence number.
    pub seq: Seq,
    /// Message field.
    pub message: MessagePart,
    /// Send time, microseconds since the sender's socket was opened, wrapping.
    pub timestamp: u32,
    /// Payload, bytes.
    pub length: u16,
}

/// Message field of a data packet, as on the wire: first packet of the message (bit 31), last
/// (bit 30), in-order delivery (bit 29), message number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MessagePart(u32);

impl MessagePart {
    const FIRST: u32 = 1 << 31;
    const LAST: u32 = 1 << 30;
    const IN_ORDER: u32 = 1 << 29;

    /// The field from its parts.
    pub const fn new(number: MessageNumber, first: bool, last: bool, in_order: bool) -> Self {
        let first = if first { MessagePart::FIRST } else { 0 };
        let last = if last { MessagePart::LAST } else { 0 };
        let in_order = if in_order { MessagePart::IN_ORDER } else { 0 };
        MessagePart(first | last | in_order | number.get())
    }

    /// The field from the word on the wire.
    pub const fn from_word(word: u32) -> Self {
        MessagePart(word)
    }

    /// The word on the wire.
    pub const fn word(self) -> u32 {
        self.0
    }

    /// Whether this is the message's first packet.
    pub const fn is_first(self) -> bool {
        self.0 & MessagePart::FIRST != 0
    }

    /// Whether this is the message's last packet.
    pub const fn is_last(self) -> bool {
        self.0 & MessagePart::LAST != 0
    }

    /// Whether earlier messages must be delivered first.
    pub const fn is_in_order(self) -> bool {
        self.0 & MessagePart::IN_ORDER != 0
    }

    /// Message number.
    pub const fn number(self) -> MessageNumber {
        MessageNumber::new(self.0)
    }
}

/// Handshake. The address in its wire format is written by the codec and never read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handshake {
    /// UDT version, 4. Values above 255 are decoded as 255.
    pub version: u8,
    /// Socket type: 1 stream, 2 message. Values above 255 are decoded as 255.
    pub socket_type: u8,
    /// Initial sequence number.
    pub isn: Seq,
    /// Maximum packet size including IP and UDP headers, bytes.
    pub mss: u32,
    /// Maximum flow window, packets: limit of packets in flight towards the sender of the handshake.
    pub window: u32,
    /// Request type (the draft's connection type).
    pub request_type: RequestType,
    /// Socket id of the sender of the handshake.
    pub socket_id: u32,
    /// SYN cookie, which proves that the client receives packets at its source address.
    pub cookie: u32,
}

/// Request type of a handshake (the draft's connection type).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestType(pub i32);

impl RequestType {
    /// First request of a client, and the response with the cookie.
    pub const INDUCTION: RequestType = RequestType(1);
    /// First request of a rendezvous.
    pub const RENDEZVOUS: RequestType = RequestType(0);
    /// Request with the cookie and its response; in a rendezvous, a response.
    pub const CONCLUSION: RequestType = RequestType(-1);
    /// Response of a rendezvous that is already connected.
    pub const AGREEMENT: RequestType = RequestType(-2);
    /// Rejection.
    pub const REJECTION: RequestType = RequestType(1002);
    /// Rejection of a client's key, or of a client with a key by a listener without one; not UDT4's.
    pub const KEY_REJECTION: RequestType = RequestType(1004);
}

/// Kind of ACK, by its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AckKind {
    /// Light ACK: `next` only.
    Light,
    /// Also `rtt_us`, `rtt_var_us` and `window`.
    Short,
    /// Also `arrival_rate` and `capacity`.
    Full,
}

/// Acknowledgement. Fields that its kind omits are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ack {
    /// ACK sequence number, echoed by the ACK2; 0 in a light ACK.
    pub number: u32,
    /// All packets before this sequence number have arrived.
    pub next: Seq,
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: u32,
    /// RTT variance (mean deviation), microseconds.
    pub rtt_var_us: u32,
    /// Available receive buffer, packets.
    pub window: u32,
    /// Packet arrival rate, packets/s; 0 if unknown.
    pub arrival_rate: u32,
    /// Estimated link capacity, packets/s; 0 if unknown.
    pub capacity: u32,
}

/// Negative acknowledgement: compressed ranges of missing packets. A word is a sequence number or,
/// with the highest bit set, the first of a range whose last is the next word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Nak {
    words: [u32; Nak::MAX_WORDS],
    len: u8,
    /// Whether this is a further part of the previous NAK rather than a new one.
    pub continued: bool,
}

impl Nak {
    /// Maximum number of words; a longer report is split into several.
    pub const MAX_WORDS: usize = 6;
    const RANGE: u32 = 1 << 31;

    /// Adds the packets `first..=last`; `false` if they do not fit.
    pub fn push(&mut self, first: Seq, last: Seq) -> bool {
        let len = usize::from(self.len);
        let alone = first == last;
        let needed = if alone { 1 } else { 2 };
        let Some(room) = self.words.get_mut(len..len + needed) else { return false };
        match room {
            [only] => *only = first.get(),
            [from, to] => (*from, *to) = (first.get() | Nak::RANGE, last.get()),
            _ => return false,
        }
        self.len += needed as u8;
        true
    }

    /// The words on the wire.
    pub fn words(&self) -> &[u32] {
        &self.words[..usize::from(self.len)]
    }

    /// Decodes as many whole ranges as fit. Returns the NAK and the remaining words. A range without
    /// an end is dropped.
    pub fn from_words(words: &[u32]) -> (Nak, &[u32]) {
        let mut nak = Nak::default();
        let mut rest = words;
        while !rest.is_empty() && nak.words().len() < Nak::MAX_WORDS {
            let (pushed, used) = match rest {
                [from, to, ..] if from & Nak::RANGE != 0 => {
                    (nak.push_words(&[*from, to & !Nak::RANGE]), 2)
                }
                [single, ..] if single & Nak::RANGE == 0 => (nak.push_words(&[*single]), 1),
                _ => return (nak, &[]),
            };
            if !pushed {
                return (nak, rest);
            }
            rest = &rest[used..];
        }
        (nak, rest)
    }

    fn push_words(&mut self, words: &[u32]) -> bool {
        let len = usize::from(self.len);
        let Some(room) = self.words.get_mut(len..len + words.len()) else { return false };
        room.copy_from_slice(words);
        self.len += words.len() as u8;
        true
    }

    /// The ranges as (first, last), both inclusive.
    pub fn ranges(&self) -> impl Iterator<Item = (Seq, Seq)> + '_ {
        let mut words = self.words().iter();
        std::iter::from_fn(move || {
            let &first = words.next()?;
            let last = if first & Nak::RANGE == 0 { first } else { *words.next()? };
            Some((Seq::new(first), Seq::new(last)))
        })
    }
}

/// Message drop request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DropRequest {
    /// Message number.
    pub message: MessageNumber,
    /// First packet of the message.
    pub first: Seq,
    /// Last packet of the message.
    pub last: Seq,
}

/// User-defined packet; its body is passed as payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UserDefined {
    /// Extended type.
    pub kind: u16,
    /// Additional info.
    pub info: u32,
    /// Body, bytes.
    pub length: u16,
}

impl Packet {
    /// Packet size including IP and UDP headers, bytes.
    #[inline(never)]
    pub fn size(&self) -> u32 {
        match self {
            Packet::Data(data) => IP_UDP_HEADER + HEADER + u32::from(data.length),
            _ => IP_UDP_HEADER + HEADER + self.body_len(),
        }
    }

    /// Body after the UDT header, bytes. Control packets without a body have four bytes of padding.
    pub(crate) fn body_len(&self) -> u32 {
        match self {
            Packet::Data(data) => u32::from(data.length),
            Packet::Handshake(_) => 48,
            Packet::Ack(kind, _) => match kind {
                AckKind::Light => 4,
                AckKind::Short => 16,
                AckKind::Full => 24,
            },
            Packet::Nak(nak) => 4 * u32::from(nak.len),
            Packet::DropRequest(_) => 8,
            Packet::UserDefined(user) => u32::from(user.length),
            Packet::KeepAlive
            | Packet::CongestionWarning
            | Packet::Shutdown
            | Packet::Ack2 { .. }
            | Packet::PeerError { .. } => 4,
        }
    }
}

impl dumbbell_net::Packet for Packet {
    #[inline]
    fn size(&self) -> u32 {
        Packet::size(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_takes_32_bytes() {
        assert_eq!(size_of::<Packet>(), 32);
        assert_eq!(size_of::<Option<Packet>>(), 32);
    }

    #[test]
    fn packets_are_as_long_as_those_of_udt4() {
        let ack = |kind| {
            Packet::Ack(
                kind,
                Ack {
                    number: 1,
                    next: Seq::new(0),
                    rtt_us: 0,
                    rtt_var_us: 0,
                    window: 0,
                    arrival_rate: 0,
                    capacity: 0,
                },
            )
        };
        let udp = |packet: Packet| packet.size() - IP_UDP_HEADER;
        assert_eq!(
            [AckKind::Light, AckKind::Short, AckKind::Full].map(|k| udp(ack(k))),
            [20, 32, 40]
        );
        assert_eq!(udp(Packet::KeepAlive), 20);
        assert_eq!(udp(Packet::Ack2 { number: 1 }), 20);
    }

    #[test]
    fn losses_are_compressed_as_the_draft_shows() {
        let mut nak = Nak::default();
        for (first, last) in [(2, 2), (6, 11), (14, 14)] {
            assert!(nak.push(Seq::new(first), Seq::new(last)));
        }
        assert_eq!(nak.words(), [0x0000_0002, 0x8000_0006, 0x0000_000b, 0x0000_000e]);
        let ranges: Vec<_> = nak.ranges().map(|(a, b)| (a.get(), b.get())).collect();
        assert_eq!(ranges, [(2, 2), (6, 11), (14, 14)]);
    }

    #[test]
    fn a_nak_that_does_not_fit_is_split_between_ranges() {
        let words: Vec<u32> = (0..5).flat_map(|i| [(i * 10) | Nak::RANGE, i * 10 + 3]).collect();
        let (first, rest) = Nak::from_words(&words);
        assert_eq!(first.words(), &words[..6]);
        let (second, rest) = Nak::from_words(rest);
        assert_eq!((second.words(), rest), (&words[6..], &[][..]));
    }

    #[test]
    fn a_range_without_an_end_is_dropped() {
        let (nak, rest) = Nak::from_words(&[5, Nak::RANGE | 7]);
        assert_eq!((nak.words(), rest), (&[5][..], &[][..]));
    }
}
