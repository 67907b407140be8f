//! UDT packets as bytes: the codec's output behind a UDP header.

use super::ip_header;
use crate::packet_log::PacketRecord;
use crate::udt_host::SOCKETS;
use dumbbell_udt::{Packet, codec};
use etherparse::{IpEcn, IpNumber, Ipv4Header, UdpHeader};
use std::net::IpAddr;

const PORTS: [u16; 2] = [40_000, 9_000];

/// The packet's bytes without payload, and its length with payload.
pub(super) fn packet(record: &PacketRecord, packet: &Packet) -> (Vec<u8>, usize) {
    let (from, to) = if record.by_sender { (0, 1) } else { (1, 0) };
    // A client requests a connection before the server's socket exists.
    let asks = record.by_sender && matches!(packet, Packet::Handshake(_));
    let destination = if asks { 0 } else { SOCKETS[to] };
    let carried = packet.size() as usize - Ipv4Header::MIN_LEN;
    let ip = ip_header(record, IpNumber::UDP, carried, IpEcn::ZERO);
    let mut content = Vec::new();
    codec::encode(packet, destination, IpAddr::from(ip.destination), &[], &mut content);
    let shown = content.len();
    content.resize(carried - UdpHeader::LEN, 0);
    let udp = UdpHeader::with_ipv4_checksum(PORTS[from], PORTS[to], &ip, &content)
        .expect("a packet's size has 16 bits");
    let mut bytes = ip.to_bytes().to_vec();
    bytes.extend_from_slice(&udp.to_bytes());
    bytes.extend_from_slice(&content[..shown]);
    (bytes, ip.header_len() + carried)
}
