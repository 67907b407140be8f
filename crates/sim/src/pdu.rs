//! Packets of several protocols on simulated links.

use crate::datagram::Datagram;
use dumbbell_net::Packet;
use dumbbell_tcp::{Flags, Segment};

/// A packet of any protocol (protocol data unit).
///
/// The others fit around the niche in the segment that stores the discriminant, so a `Pdu` is as
/// small as a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pdu {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDT packet.
    Udt(dumbbell_udt::Packet),
    /// A datagram of another protocol.
    Datagram(Datagram),
}

const _: () = assert!(size_of::<Option<Pdu>>() == 36);

impl Pdu {
    /// The packet with the mark that a link may add, so that it is equal before and after that.
    pub(crate) fn as_marked(mut self) -> Pdu {
        self.mark();
        self
    }
}

/// Properties of packets that the simulator uses and links do not.
pub(crate) trait SimPacket: Packet + Copy {
    /// When the data was sent, in microseconds, wrapping; `None` for packets without data.
    fn data_sent_at(&self) -> Option<u32>;

    /// The packet as a [`Pdu`].
    fn pdu(&self) -> Pdu;

    /// The datagram, if it is one.
    fn datagram(&self) -> Option<&Datagram> {
        None
    }
}

impl SimPacket for Segment {
    #[inline]
    fn data_sent_at(&self) -> Option<u32> {
        let data = !self.is_ack() && !self.flags.contains(Flags::SYN);
        data.then_some(self.timestamp)
    }

    fn pdu(&self) -> Pdu {
        Pdu::Tcp(*self)
    }
}

impl SimPacket for Pdu {
    #[inline]
    fn data_sent_at(&self) -> Option<u32> {
        match self {
            Pdu::Tcp(segment) => segment.data_sent_at(),
            Pdu::Udt(dumbbell_udt::Packet::Data(data)) => Some(data.timestamp),
            Pdu::Udt(_) => None,
            Pdu::Datagram(datagram) => datagram.by_sender.then_some(datagram.timestamp),
        }
    }

    fn pdu(&self) -> Pdu {
        *self
    }

    fn datagram(&self) -> Option<&Datagram> {
        match self {
            Pdu::Datagram(datagram) => Some(datagram),
            _ => None,
        }
    }
}

impl Packet for Pdu {
    #[inline]
    fn size(&self) -> u32 {
        match self {
            Pdu::Tcp(segment) => segment.size(),
            Pdu::Udt(packet) => packet.size(),
            Pdu::Datagram(datagram) => datagram.size(),
        }
    }

    fn is_ecn_capable(&self) -> bool {
        match self {
            Pdu::Tcp(segment) => segment.is_ecn_capable(),
            Pdu::Udt(packet) => Packet::is_ecn_capable(packet),
            Pdu::Datagram(datagram) => datagram.is_ecn_capable(),
        }
    }

    fn is_l4s(&self) -> bool {
        match self {
            Pdu::Tcp(segment) => segment.is_l4s(),
            Pdu::Udt(packet) => Packet::is_l4s(packet),
            Pdu::Datagram(datagram) => datagram.is_l4s(),
        }
    }

    fn mark(&mut self) {
        match self {
            Pdu::Tcp(segment) => segment.mark(),
            Pdu::Udt(packet) => Packet::mark(packet),
            Pdu::Datagram(datagram) => datagram.mark(),
        }
    }

    fn is_marked(&self) -> bool {
        match self {
            Pdu::Tcp(segment) => segment.is_marked(),
            Pdu::Udt(packet) => Packet::is_marked(packet),
            Pdu::Datagram(datagram) => datagram.is_marked(),
        }
    }

    fn is_pure_ack(&self) -> bool {
        matches!(self, Pdu::Tcp(segment) if segment.is_pure_ack())
    }

    fn supersedes(&self, earlier: &Pdu) -> bool {
        matches!((self, earlier), (Pdu::Tcp(later), Pdu::Tcp(earlier)) if later.supersedes(earlier))
    }

    fn ecn_echo(&self) -> u8 {
        if let Pdu::Tcp(segment) = self { segment.ecn_echo() } else { 0 }
    }
}
