//! Packets as the engine handles them. What they are on the wire is in `codec`.
//!
//! A packet says nothing of where it goes: a connection has one peer, and whoever carries packets
//! adds the peer's address and socket id. The payload of data is beside the packet too. So a
//! packet takes 32 bytes and is copied, which simulated links do without allocating; what a
//! longer loss report says takes several packets.

use crate::seq::{MessageNumber, Seq};

/// Bytes of the IPv4 and UDP headers; counted for IPv6 too, as UDT4 does.
pub const IP_UDP_HEADER: u32 = 28;
/// Bytes of UDT's header.
pub const HEADER: u32 = 16;

/// A UDT packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Packet {
    /// Payload.
    Data(DataHeader),
    /// Opens a connection.
    Handshake(Handshake),
    /// Says that the connection is alive.
    KeepAlive,
    /// Acknowledges everything before a packet.
    Ack(AckKind, Ack),
    /// Names packets that are missing.
    Nak(Nak),
    /// Tells of growing delay. UDT4 never sends it.
    CongestionWarning,
    /// Ends the connection.
    Shutdown,
    /// Acknowledges an acknowledgement.
    Ack2 {
        /// The number of the acknowledgement.
        number: u32,
    },
    /// Asks the receiver to give up a message that came too late to be sent again.
    DropRequest(DropRequest),
    /// The peer's application failed.
    PeerError {
        /// Why.
        code: u32,
    },
    /// Something of the applications' own.
    UserDefined(UserDefined),
}

/// The header of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DataHeader {
    /// Its sequence number.
    pub seq: Seq,
    /// The message that it is part of.
    pub message: MessagePart,
    /// When it was sent, microseconds since the sender's socket was opened, wrapping.
    pub timestamp: u32,
    /// Bytes of payload.
    pub length: u16,
}

/// Which part of which message a data packet is, as it is on the wire: first (bit 31), last
/// (bit 30), to be delivered in order (bit 29), number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MessagePart(u32);

impl MessagePart {
    const FIRST: u32 = 1 << 31;
    const LAST: u32 = 1 << 30;
    const IN_ORDER: u32 = 1 << 29;

    /// A part of the message of that number.
    pub const fn new(number: MessageNumber, first: bool, last: bool, in_order: bool) -> Self {
        let first = if first { MessagePart::FIRST } else { 0 };
        let last = if last { MessagePart::LAST } else { 0 };
        let in_order = if in_order { MessagePart::IN_ORDER } else { 0 };
        MessagePart(first | last | in_order | number.get())
    }

    /// From the word on the wire.
    pub const fn from_word(word: u32) -> Self {
        MessagePart(word)
    }

    /// The word on the wire.
    pub const fn word(self) -> u32 {
        self.0
    }

    /// Whether the message begins here.
    pub const fn is_first(self) -> bool {
        self.0 & MessagePart::FIRST != 0
    }

    /// Whether the message ends here.
    pub const fn is_last(self) -> bool {
        self.0 & MessagePart::LAST != 0
    }

    /// Whether earlier messages must be delivered first.
    pub const fn is_in_order(self) -> bool {
        self.0 & MessagePart::IN_ORDER != 0
    }

    /// The message's number.
    pub const fn number(self) -> MessageNumber {
        MessageNumber::new(self.0)
    }
}

/// A handshake. The address that it carries on the wire is the codec's business: nobody reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handshake {
    /// Protocol version; 4, the only one. A greater number than 255 on the wire becomes 255.
    pub version: u8,
    /// 1 stream, 2 message. A greater number than 255 on the wire becomes 255.
    pub socket_type: u8,
    /// Initial sequence number.
    pub isn: Seq,
    /// Greatest packet, bytes, IP and UDP headers included.
    pub mss: u32,
    /// Packets that may be in flight to whoever sends this.
    pub window: u32,
    /// What is asked or answered.
    pub request_type: RequestType,
    /// Socket id of whoever sends this.
    pub socket_id: u32,
    /// Proof that the client has the address that it says.
    pub cookie: u32,
}

/// What a handshake asks or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestType(pub i32);

impl RequestType {
    /// A client asks for a cookie, and the listener gives it.
    pub const INDUCTION: RequestType = RequestType(1);
    /// A rendezvous begins.
    pub const RENDEZVOUS: RequestType = RequestType(0);
    /// A client asks for the connection, and the listener agrees; also a rendezvous' answer.
    pub const CONCLUSION: RequestType = RequestType(-1);
    /// A rendezvous is complete already.
    pub const AGREEMENT: RequestType = RequestType(-2);
    /// The connection is refused.
    pub const REJECTION: RequestType = RequestType(1002);
}

/// How much an acknowledgement says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AckKind {
    /// Only what has arrived: the light ACK.
    Light,
    /// That, round-trip times and free buffer.
    Short,
    /// That, arrival rate and capacity.
    Full,
}

/// An acknowledgement. What its kind does not say is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ack {
    /// Its own number, which the ACK2 repeats; 0 in a light ACK.
    pub number: u32,
    /// Everything before this packet has arrived.
    pub next: Seq,
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: u32,
    /// Its mean deviation, microseconds.
    pub rtt_var_us: u32,
    /// Packets for which the receiver has room.
    pub window: u32,
    /// Arrival rate, packets/s; 0 if not known.
    pub arrival_rate: u32,
    /// Capacity by packet pairs, packets/s; 0 if not known.
    pub capacity: u32,
}

/// Ranges of missing packets, compressed: a word is a sequence number, or, with the highest bit
/// set, the first of a range whose last is the next word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Nak {
    words: [u32; Nak::MAX_WORDS],
    len: u8,
    /// Whether this continues the report of the packet before it, and is no event of its own.
    pub continued: bool,
}

impl Nak {
    /// The most words of one packet; a longer report takes several.
    pub const MAX_WORDS: usize = 6;
    const RANGE: u32 = 1 << 31;

    /// Adds packets from `first` to `last`, both included; `false` if there is no room.
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

    /// The words as they are on the wire.
    pub fn words(&self) -> &[u32] {
        &self.words[..usize::from(self.len)]
    }

    /// Takes as many words as make whole ranges and fit; gives the packet and the rest. A range
    /// without an end is left out.
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

    /// The ranges, from the first packet to the last, both included.
    pub fn ranges(&self) -> impl Iterator<Item = (Seq, Seq)> + '_ {
        let mut words = self.words().iter();
        std::iter::from_fn(move || {
            let &first = words.next()?;
            let last = if first & Nak::RANGE == 0 { first } else { *words.next()? };
            Some((Seq::new(first), Seq::new(last)))
        })
    }
}

/// Asks to give up a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DropRequest {
    /// The message.
    pub message: MessageNumber,
    /// Its first packet.
    pub first: Seq,
    /// Its last packet.
    pub last: Seq,
}

/// A packet of the applications' own; its content is its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UserDefined {
    /// Which kind.
    pub kind: u16,
    /// A word beside the content.
    pub info: u32,
    /// Bytes of content.
    pub length: u16,
}

impl Packet {
    /// Bytes on the wire, IP and UDP headers included.
    #[inline(never)]
    pub fn size(&self) -> u32 {
        match self {
            Packet::Data(data) => IP_UDP_HEADER + HEADER + u32::from(data.length),
            _ => IP_UDP_HEADER + HEADER + self.body_len(),
        }
    }

    /// Bytes after UDT's header. Control packets that say nothing have four bytes of padding.
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
    fn a_report_that_does_not_fit_into_a_packet_is_never_cut_within_a_range() {
        let words: Vec<u32> = (0..5).flat_map(|i| [(i * 10) | Nak::RANGE, i * 10 + 3]).collect();
        let (first, rest) = Nak::from_words(&words);
        assert_eq!(first.words(), &words[..6]);
        let (second, rest) = Nak::from_words(rest);
        assert_eq!((second.words(), rest), (&words[6..], &[][..]));
    }

    #[test]
    fn a_range_without_an_end_is_left_out() {
        let (nak, rest) = Nak::from_words(&[5, Nak::RANGE | 7]);
        assert_eq!((nak.words(), rest), (&[5][..], &[][..]));
    }
}
