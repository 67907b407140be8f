//! Packets of several protocols on simulated links.

use dumbbell_net::Packet;
use dumbbell_tcp::{Flags, Segment};

/// A packet of any protocol (protocol data unit).
///
/// The UDT packet fits around the niche in the segment that stores the discriminant, so a `Pdu` is
/// as small as a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pdu {
    /// A TCP segment.
    Tcp(Segment),
    /// A UDT packet.
    Udt(dumbbell_udt::Packet),
}

const _: () = assert!(size_of::<Option<Pdu>>() == 36);

/// Properties of packets that the simulator uses and links do not.
pub(crate) trait SimPacket: Packet + Copy {
    /// When the data was sent, in microseconds, wrapping; `None` for packets without data.
    fn data_sent_at(&self) -> Option<u32>;

    /// The packet as a [`Pdu`].
    fn pdu(&self) -> Pdu;
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
        }
    }

    fn pdu(&self) -> Pdu {
        *self
    }
}

impl Packet for Pdu {
    #[inline]
    fn size(&self) -> u32 {
        match self {
            Pdu::Tcp(segment) => segment.size(),
            Pdu::Udt(packet) => packet.size(),
        }
    }

    fn is_ecn_capable(&self) -> bool {
        match self {
            Pdu::Tcp(segment) => segment.is_ecn_capable(),
            Pdu::Udt(packet) => Packet::is_ecn_capable(packet),
        }
    }

    fn is_l4s(&self) -> bool {
        match self {
            Pdu::Tcp(segment) => segment.is_l4s(),
            Pdu::Udt(packet) => Packet::is_l4s(packet),
        }
    }

    fn mark(&mut self) {
        match self {
            Pdu::Tcp(segment) => segment.mark(),
            Pdu::Udt(packet) => Packet::mark(packet),
        }
    }
}
