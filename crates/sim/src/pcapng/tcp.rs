//! TCP segments as bytes. Sequence numbers follow from packet numbers: data packet n of a connection
//! over one path starts at `isn + 1 + n * mss`.
//!
//! Data packets of a connection over one path have headers of 40 bytes, or 52 with timestamps. If the
//! stack's `header` is larger, they are shorter than on the simulated link.

use super::mptcp::Multipath;
use super::{PacketKey, ip_header, packet_key};
use crate::packet_log::{PacketEvent, PacketRecord};
use crate::scenario::FlowSpec;
use dumbbell_tcp::{Ecn, Flags, Segment, Stack};
use dumbbell_units::Time;
use etherparse::{IpEcn, IpNumber, TcpHeader, TcpOptionElement};
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

/// Initial sequence numbers of the sender and of the receiver.
const ISN: [u32; 2] = [1_000_000, 2_000_000];
const PORTS: [u16; 2] = [40_000, 5_001];

/// The receivers' timestamps, which acknowledgements carry (TSval) and data echoes (TSecr),
/// microseconds.
#[derive(Default)]
pub(super) struct ReceiverTimestamps {
    /// By flow and subflow: the latest that has arrived at the sender (RFC 7323, `TS.Recent`).
    recent: HashMap<(u32, u8), u32>,
    /// Those of packets in flight.
    in_flight: HashMap<PacketKey, VecDeque<u32>>,
}

impl ReceiverTimestamps {
    /// Tracks a record; returns the receiver's timestamp in its packet.
    pub(super) fn track(&mut self, record: &PacketRecord) -> u32 {
        let subflow = (record.flow, record.subflow);
        let recent = self.recent.get(&subflow).copied();
        let mut packet = match self.in_flight.entry(packet_key(record)) {
            Entry::Occupied(packet) => packet,
            vacant => vacant.insert_entry(VecDeque::new()),
        };
        if record.event == PacketEvent::Sent {
            let timestamp = if record.by_sender { recent.unwrap_or(0) } else { clock(record.at) };
            packet.get_mut().push_back(timestamp);
            return timestamp;
        }
        let timestamp = packet.get_mut().pop_front().unwrap_or(0);
        if packet.get().is_empty() {
            packet.remove();
        }
        let is_newer = recent.is_none_or(|recent| timestamp.wrapping_sub(recent) as i32 > 0);
        if record.event == PacketEvent::Received && !record.by_sender && is_newer {
            self.recent.insert(subflow, timestamp);
        }
        timestamp
    }
}

fn clock(at: Time) -> u32 {
    (at.as_nanos() / 1_000) as u32
}

/// The packet's headers as bytes, and its length with payload. `multipath` is given for a subflow.
pub(super) fn packet(
    (record, segment): (&PacketRecord, &Segment),
    flow: &FlowSpec,
    multipath: Option<&Multipath>,
    receiver_timestamp: u32,
) -> (Vec<u8>, usize) {
    let mut tcp = tcp_header((record, segment), flow, multipath, receiver_timestamp);
    let header = multipath.map_or(flow.stack.header, Multipath::header);
    let payload = match segment.is_ack() || segment.flags.contains(Flags::SYN) {
        true => 0,
        false => usize::from(segment.size.saturating_sub(header)),
    };
    let ecn = match segment.flags {
        flags if flags.contains(Flags::CE) => IpEcn::THREE,
        flags if flags.contains(Flags::ECT_0) => IpEcn::TWO,
        flags if flags.contains(Flags::ECT_1) => IpEcn::ONE,
        _ => IpEcn::ZERO,
    };
    let carried = tcp.header_len() + payload;
    let ip = ip_header(record, IpNumber::TCP, carried, ecn);
    let zeros = [0; u16::MAX as usize];
    tcp.checksum = tcp
        .calc_checksum_ipv4(&ip, &zeros[..payload])
        .expect("the same length as in the IP header");
    let mut bytes = ip.to_bytes().to_vec();
    bytes.extend_from_slice(&tcp.to_bytes());
    (bytes, ip.header_len() + carried)
}

fn tcp_header(
    (record, segment): (&PacketRecord, &Segment),
    flow: &FlowSpec,
    multipath: Option<&Multipath>,
    receiver_timestamp: u32,
) -> TcpHeader {
    let by_sender = &record.by_sender;
    let (from, to) = if *by_sender { (0, 1) } else { (1, 0) };
    let stack = &flow.stack;
    let byte = |number: u32| {
        let sent = match multipath {
            Some(multipath) => multipath.first_byte(record.subflow, number),
            None => {
                // The last packet may be short; the number after it is the end of the data.
                let sent = u64::from(number) * u64::from(stack.mss);
                flow.bytes.map_or(sent, |bytes| sent.min(bytes))
            }
        };
        ISN[0].wrapping_add(1).wrapping_add(sent as u32)
    };
    let syn = segment.flags.contains(Flags::SYN);
    let (sequence, acknowledged) = match (syn, by_sender) {
        (true, true) => (ISN[0], 0),
        (true, false) => (ISN[1], ISN[0] + 1),
        (false, true) => (byte(segment.number), ISN[1] + 1),
        (false, false) => (ISN[1] + 1, byte(segment.number)),
    };
    let bytes = match (by_sender, multipath) {
        (true, _) => u64::from(stack.receive_window) * u64::from(stack.mss),
        (false, Some(multipath)) => multipath.window(segment),
        (false, None) => u64::from(segment.window()) * u64::from(stack.mss),
    };
    // RFC 7323, section 2.2: the window of a SYN is never scaled.
    let window = if syn { bytes } else { bytes >> window_scale(stack) }.min(0xffff) as u16;
    let mut tcp = TcpHeader::new(PORTS[from], PORTS[to], sequence, window);
    tcp.acknowledgment_number = acknowledged;
    tcp.syn = syn;
    tcp.ack = !(syn && *by_sender);
    tcp.psh = *by_sender && !syn && segment.flags.contains(Flags::PSH);
    (tcp.ns, tcp.cwr, tcp.ece) = match stack.ecn {
        Ecn::L4s => ace(segment, *by_sender),
        // RFC 3168, section 6.1.1; so does DCTCP (RFC 8257, section 3.1).
        Ecn::Classic | Ecn::Accurate if syn => (false, *by_sender, true),
        _ => (false, segment.flags.contains(Flags::CWR), segment.flags.contains(Flags::ECE)),
    };
    let timestamps = match by_sender {
        true => (segment.timestamp, receiver_timestamp),
        false => (receiver_timestamp, segment.timestamp),
    };
    let options = options(segment, stack, byte, timestamps);
    let most = "at most 40 bytes: 12 of timestamps and 28 of SACK, or 8 of a DSS and 20 of SACK";
    tcp.set_options(&options).expect(most);
    if let Some(multipath) = multipath {
        let all = [tcp.options.as_slice(), &multipath.option(record, segment)].concat();
        tcp.set_options_raw(&all).expect(most);
    }
    tcp
}

/// The flags AE, CWR and ECE of Accurate ECN (RFC 9768): a SYN asks for it, the SYN-ACK says that the
/// SYN was ECT(1), the segment that acknowledges it says the same of the SYN-ACK (sections 3.1.1 and 3.2.2.1), and
/// later ones carry the count of marks, which begins at 5.
fn ace(segment: &Segment, by_sender: bool) -> (bool, bool, bool) {
    const SAW_ECT_1: u8 = 0b011;
    let is_first = segment.number == 0 && !segment.flags.contains(Flags::RETRANSMISSION);
    let ace = match segment.flags.contains(Flags::SYN) {
        true if by_sender => 0b111,
        true => SAW_ECT_1,
        false if by_sender && is_first => SAW_ECT_1,
        false if by_sender => 5,
        false => segment.marked.wrapping_add(5) & 0b111,
    };
    (ace & 0b100 != 0, ace & 0b010 != 0, ace & 0b001 != 0)
}

/// The window scale of a stack: Linux's, or the least with which its receive window has 16 bits, at most 14 (RFC 7323).
fn window_scale(stack: &Stack) -> u8 {
    if stack.autotuning {
        return stack.window_scale() as u8;
    }
    let bytes = u64::from(stack.receive_window) * u64::from(stack.mss);
    (bytes.max(1).ilog2() as u8 + 1).saturating_sub(16).min(14)
}

/// The TCP options: a SYN's negotiation, timestamps if the stack has them, and SACK blocks.
fn options(
    segment: &Segment,
    stack: &Stack,
    byte: impl Fn(u32) -> u32,
    (tsval, tsecr): (u32, u32),
) -> Vec<TcpOptionElement> {
    use TcpOptionElement::{
        MaximumSegmentSize, Noop, SelectiveAcknowledgement, SelectiveAcknowledgementPermitted,
        Timestamp, WindowScale,
    };
    let timestamps = stack.timestamps().then_some(Timestamp(tsval, tsecr));
    if segment.flags.contains(Flags::SYN) {
        // The MSS option does not subtract the options that reduce a segment's payload.
        let mss = stack.mss + stack.header.saturating_sub(40);
        let mut options = vec![MaximumSegmentSize(mss)];
        match timestamps {
            Some(timestamps) => options.extend([SelectiveAcknowledgementPermitted, timestamps]),
            None => options.extend([Noop, Noop, SelectiveAcknowledgementPermitted]),
        }
        options.extend([Noop, WindowScale(window_scale(stack))]);
        return options;
    }
    let mut options = Vec::new();
    if let Some(timestamps) = timestamps {
        options.extend([Noop, Noop, timestamps]);
    }
    let mut blocks = segment.blocks().map(|(start, end)| (byte(start), byte(end)));
    if segment.is_ack()
        && let Some(first) = blocks.next()
    {
        let more = [blocks.next(), blocks.next(), None];
        options.extend([Noop, Noop, SelectiveAcknowledgement(first, more)]);
    }
    options
}
