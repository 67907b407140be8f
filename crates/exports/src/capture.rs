//! The TCP packets of a capture that [`dumbbell_sim`] wrote (pcapng, draft-ietf-opsawg-pcapng).

use etherparse::{
    IpNumber, Ipv4HeaderSlice, TcpHeaderSlice, TcpOptionElement, TcpOptionReadError,
    TcpOptionsIterator,
};
use pcap_file::PcapError;
use pcap_file::pcapng::{Block, PcapNgParser};
use std::collections::HashMap;

/// Why a capture cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// It is not a whole pcapng file.
    #[error("the capture is damaged: {0}")]
    File(#[from] PcapError),
    /// A packet is not TCP or UDP over IPv4 as the simulator writes them.
    #[error("the capture is damaged: packet {number}: {problem}")]
    Packet {
        /// The number of the packet in the file, from 1.
        number: usize,
        /// What is wrong with it.
        problem: String,
    },
}

/// A TCP packet as one end of its flow saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    /// When, ns.
    pub(crate) at_ns: u64,
    /// Index of its flow in the scenario.
    pub(crate) flow: u16,
    /// Whether the sender of data sent it.
    pub(crate) by_sender: bool,
    /// Bytes, IP header included.
    pub(crate) size: u16,
    /// Bytes of data.
    pub(crate) payload: u16,
    /// Number of its first byte; the SYN is byte 0.
    pub(crate) first: i64,
    /// All bytes below are acknowledged.
    pub(crate) acknowledged: i64,
    /// Bytes beyond that are acknowledged (SACK): first, and one after the last.
    pub(crate) blocks: Vec<(i64, i64)>,
}

/// All TCP packets of a capture, in order. UDT's, which are UDP, and those of connections over several paths
/// are skipped.
pub(crate) fn packets(capture: &[u8]) -> Result<Vec<Packet>, CaptureError> {
    let (mut rest, mut parser) = PcapNgParser::new(capture)?;
    let mut sequences = HashMap::new();
    let mut packets = Vec::new();
    let mut number = 0;
    while !rest.is_empty() {
        let (after, block) = parser.next_block(rest)?;
        rest = after;
        let Block::EnhancedPacket(block) = block else { continue };
        number += 1;
        let at_ns = block.timestamp.as_nanos() as u64;
        let read = packet(at_ns, &block.data, &mut sequences);
        packets.extend(read.map_err(|problem| CaptureError::Packet { number, problem })?);
    }
    Ok(packets)
}

/// Sequence numbers of 32 bits as bytes since the first one; neighbours differ by less than 2^31.
struct SequenceSpace {
    base: u32,
    /// The maximum so far.
    last: i64,
}

impl SequenceSpace {
    fn new(base: u32) -> SequenceSpace {
        SequenceSpace { base, last: 0 }
    }

    fn unwrap(&mut self, sequence: u32) -> i64 {
        let near = sequence.wrapping_sub(self.base).wrapping_sub(self.last as u32) as i32;
        let found = self.last + i64::from(near);
        self.last = self.last.max(found);
        found
    }
}

/// The sequence numbers of each flow and direction (whether from the sender of data).
type Sequences = HashMap<(u16, bool), SequenceSpace>;

/// Reads a packet from its headers; `None` if it is not TCP over one path.
fn packet(at_ns: u64, data: &[u8], sequences: &mut Sequences) -> Result<Option<Packet>, String> {
    let ip = Ipv4HeaderSlice::from_slice(data).map_err(|error| error.to_string())?;
    if ip.protocol() != IpNumber::TCP {
        return Ok(None);
    }
    let ip_length = ip.slice().len();
    let tcp = TcpHeaderSlice::from_slice(&data[ip_length..]).map_err(|error| error.to_string())?;
    if has_multipath_option(tcp.options()) {
        return Ok(None);
    }
    let headers = (ip_length + tcp.slice().len()) as u16;
    let payload = ip.total_len().checked_sub(headers).ok_or("it is shorter than its headers")?;
    // Senders are 10.0.n.n, receivers 10.1.n.n.
    let [_, side, high, low] = ip.source();
    let (flow, by_sender) = (u16::from_be_bytes([high, low]), side == 0);
    let (sequence, acknowledgment) = (tcp.sequence_number(), tcp.acknowledgment_number());
    if tcp.syn() {
        sequences.insert((flow, by_sender), SequenceSpace::new(sequence));
    }
    let own = sequences.entry((flow, by_sender)).or_insert(SequenceSpace::new(sequence));
    let first = own.unwrap(sequence);
    let peer = sequences.entry((flow, !by_sender)).or_insert(SequenceSpace::new(acknowledgment));
    let acknowledged = if tcp.ack() { peer.unwrap(acknowledgment) } else { 0 };
    let mut blocks = Vec::new();
    for option in tcp.options_iterator() {
        let option = option.map_err(|error| error.to_string())?;
        if let TcpOptionElement::SelectiveAcknowledgement(block, more) = option {
            let found = [Some(block)].into_iter().chain(more).flatten();
            blocks.extend(found.map(|(start, end)| (peer.unwrap(start), peer.unwrap(end))));
        }
    }
    let size = ip.total_len();
    Ok(Some(Packet { at_ns, flow, by_sender, size, payload, first, acknowledged, blocks }))
}

/// Whether one of these TCP options is Multipath TCP's (kind 30, RFC 8684), which each of its packets has.
fn has_multipath_option(options: &[u8]) -> bool {
    let multipath = Err(TcpOptionReadError::UnknownId(30));
    TcpOptionsIterator::from_slice(options).any(|option| option == multipath)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_multipath_option_is_found_behind_others() {
        let timestamps = [1, 1, 8, 10, 30, 0, 0, 0, 0, 0, 0, 0];
        assert!(!has_multipath_option(&timestamps));
        assert!(has_multipath_option(&[&timestamps[..], &[30, 8, 0x20, 1, 0, 0, 0, 0]].concat()));
        assert!(!has_multipath_option(&[8]));
        assert!(!has_multipath_option(&[8, 0, 30, 4][..2]));
    }

    #[test]
    fn sequence_numbers_go_on_beyond_32_bits() {
        let base = u32::MAX - 100;
        let mut space = SequenceSpace::new(base);
        assert_eq!(space.unwrap(base), 0);
        assert_eq!(space.unwrap(50), 151);
        assert_eq!(space.unwrap(base + 20), 20, "a retransmission");
        for round in 1..10 {
            assert_eq!(space.unwrap(50 + (1 << 30)), 151 + (round << 32) - (3 << 30));
            assert_eq!(space.unwrap(50 + (2 << 30)), 151 + (round << 32) - (2 << 30));
            assert_eq!(space.unwrap(50 + (3 << 30)), 151 + (round << 32) - (1 << 30));
            assert_eq!(space.unwrap(50), 151 + (round << 32));
        }
    }
}
