//! Datagrams of protocols that this crate does not know: the headers of IP and UDP.

use super::ip_header;
use crate::datagram::{Datagram, EcnCodepoint};
use crate::packet_log::PacketRecord;
use etherparse::{IpEcn, IpNumber, Ipv4Header, UdpHeader};

/// Port 443 is QUIC's (RFC 9114, section 3.1).
const PORTS: [u16; 2] = [40_000, 443];

/// The datagram's headers, and its length with payload. The checksum is 0: none (RFC 768).
pub(super) fn packet(record: &PacketRecord, datagram: &Datagram) -> (Vec<u8>, usize) {
    let (from, to) = if record.by_sender { (0, 1) } else { (1, 0) };
    let ecn = match datagram.ecn {
        EcnCodepoint::NotEct => IpEcn::ZERO,
        EcnCodepoint::Ect1 => IpEcn::ONE,
        EcnCodepoint::Ect0 => IpEcn::TWO,
        EcnCodepoint::Ce => IpEcn::THREE,
    };
    let carried = usize::from(datagram.size) - Ipv4Header::MIN_LEN;
    let ip = ip_header(record, IpNumber::UDP, carried, ecn);
    let payload = carried - UdpHeader::LEN;
    let udp = UdpHeader::without_ipv4_checksum(PORTS[from], PORTS[to], payload)
        .expect("a datagram's size has 16 bits");
    let mut bytes = ip.to_bytes().to_vec();
    bytes.extend_from_slice(&udp.to_bytes());
    (bytes, ip.header_len() + carried)
}
