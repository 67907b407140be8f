//! UDT's codec: any bytes are an error, or packets that survive encoding and decoding.

use dumbbell_udt::{Packet, codec};
use std::net::{IpAddr, Ipv6Addr};

const TO: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

/// Decodes `bytes`, and encodes and decodes the result again.
///
/// # Panics
/// If the second result differs.
pub fn run(bytes: &[u8]) {
    let Ok(datagram) = codec::decode(bytes) else { return };
    let mut again = Vec::with_capacity(bytes.len() + 64);
    for packet in datagram.packets() {
        match packet {
            Packet::Nak(nak) if nak.continued => codec::append_nak(&nak, &mut again),
            _ => {
                codec::encode(&packet, datagram.destination, TO, datagram.payload, &mut again);
            }
        }
    }
    let decoded = codec::decode(&again).expect("it was encoded");
    assert_eq!(decoded.destination, datagram.destination);
    assert_eq!(decoded.payload, datagram.payload);
    assert!(decoded.packets().eq(datagram.packets()), "{datagram:?} {decoded:?}");
}
