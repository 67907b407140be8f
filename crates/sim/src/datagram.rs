//! UDP datagrams whose payload matters: packets of protocols that this crate does not implement.
//!
//! A packet on a link is copied often, so it carries only the number of its payload. The payload
//! itself stays in a [`Payloads`] that both ends of the flow share, until the packet is delivered or
//! dropped.

use dumbbell_net::Packet;
use dumbbell_units::Time;
use std::sync::{Arc, Mutex, MutexGuard};

/// Bytes of the headers of IPv4 and UDP.
pub const DATAGRAM_HEADER: u16 = 28;

/// The ECN field of an IP header (RFC 3168, section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EcnCodepoint {
    /// Not ECN-capable.
    #[default]
    NotEct = 0b00,
    /// ECT(1).
    Ect1 = 0b01,
    /// ECT(0).
    Ect0 = 0b10,
    /// Congestion experienced.
    Ce = 0b11,
}

impl EcnCodepoint {
    /// The two bits of the IP header.
    pub fn bits(self) -> u8 {
        self as u8
    }

    /// The codepoint of the two lowest bits.
    pub fn from_bits(bits: u8) -> EcnCodepoint {
        match bits & 0b11 {
            0b00 => EcnCodepoint::NotEct,
            0b01 => EcnCodepoint::Ect1,
            0b10 => EcnCodepoint::Ect0,
            _ => EcnCodepoint::Ce,
        }
    }
}

/// A UDP datagram on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Datagram {
    /// How many datagrams its end had sent before, modulo 2^32.
    pub number: u32,
    /// When it was sent, in microseconds, modulo 2^32.
    pub timestamp: u32,
    /// The place of its payload.
    pub(crate) payload: u32,
    /// Bytes on the wire, headers included.
    pub size: u16,
    /// The ECN field.
    pub ecn: EcnCodepoint,
    /// Whether the sender of the flow sent it.
    pub by_sender: bool,
}

impl Packet for Datagram {
    fn size(&self) -> u32 {
        u32::from(self.size)
    }

    fn is_ecn_capable(&self) -> bool {
        self.ecn != EcnCodepoint::NotEct
    }

    fn is_l4s(&self) -> bool {
        matches!(self.ecn, EcnCodepoint::Ect1 | EcnCodepoint::Ce)
    }

    fn mark(&mut self) {
        self.ecn = EcnCodepoint::Ce;
    }

    fn is_marked(&self) -> bool {
        self.ecn == EcnCodepoint::Ce
    }
}

impl Datagram {
    /// A datagram sent at `now` with a payload of `size` bytes at this place.
    pub(crate) fn new(now: Time, number: u32, payload: u32, size: usize) -> Datagram {
        let size = u16::try_from(size).expect("an IP packet has at most 65,535 bytes");
        Datagram {
            number,
            timestamp: (now.as_nanos() / 1000) as u32,
            payload,
            size: size + DATAGRAM_HEADER,
            ecn: EcnCodepoint::NotEct,
            by_sender: false,
        }
    }
}

/// The payloads of a flow's datagrams that are on their way. Clones share them.
///
/// The memory of payloads that were delivered or dropped is used again, so it grows only with the
/// number of packets in the network.
#[derive(Clone, Debug, Default)]
pub(crate) struct Payloads(Arc<Mutex<Places>>);

#[derive(Debug, Default)]
struct Places {
    payloads: Vec<Vec<u8>>,
    free: Vec<u32>,
}

impl Payloads {
    fn places(&self) -> MutexGuard<'_, Places> {
        self.0.lock().expect("no code panics while it holds the payloads")
    }

    /// Stores a payload and returns its place. `payload` becomes empty memory for the next one.
    pub(crate) fn store(&self, payload: &mut Vec<u8>) -> u32 {
        let places = &mut *self.places();
        let place = places.free.pop().unwrap_or_else(|| {
            places.payloads.push(Vec::new());
            places.payloads.len() as u32 - 1
        });
        std::mem::swap(payload, &mut places.payloads[place as usize]);
        payload.clear();
        place
    }

    /// Moves a payload that has arrived to `payload`, and frees its place.
    pub(crate) fn take(&self, place: u32, payload: &mut Vec<u8>) {
        let places = &mut *self.places();
        std::mem::swap(payload, &mut places.payloads[place as usize]);
        places.free.push(place);
    }

    /// Frees the place of a payload that does not arrive.
    pub(crate) fn release(&self, place: u32) {
        self.places().free.push(place);
    }

    /// The number of payloads on their way.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        let places = self.places();
        places.payloads.len() - places.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_arrives_and_its_place_is_used_again() {
        let payloads = Payloads::default();
        let (mut sent, mut received) = (vec![1, 2], Vec::new());
        let first = payloads.store(&mut sent);
        assert!(sent.is_empty());
        sent.push(3);
        let second = payloads.store(&mut sent);
        payloads.take(first, &mut received);
        assert_eq!(received, [1, 2]);
        payloads.release(second);
        assert_eq!(payloads.len(), 0);
        assert_eq!(payloads.store(&mut vec![4]), second);
    }

    #[test]
    fn a_marked_datagram_counts_as_l4s_traffic() {
        // RFC 9331, section 5.1: a node classifies CE as L4S, as it may have been ECT(1).
        let mut datagram = Datagram::new(Time::ZERO, 0, 0, 1200);
        assert_eq!(datagram.size(), 1228);
        assert!(!datagram.is_ecn_capable());
        datagram.ecn = EcnCodepoint::Ect0;
        assert!(datagram.is_ecn_capable() && !datagram.is_l4s());
        datagram.mark();
        assert!(datagram.is_l4s());
    }
}
