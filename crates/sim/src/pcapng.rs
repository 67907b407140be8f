//! The packet log as a capture file (pcapng, draft-ietf-opsawg-pcapng) with real headers.
//!
//! A capture shows what one end of the flows saw, as tcpdump there would: at the sender the data
//! that left and the acknowledgements that arrived, at the receiver the reverse. Packets are IPv4
//! without a link layer; payload is cut off, as with a snap length, but counted in lengths and
//! checksums (it is all zeros). Byte numbers follow from packet numbers: data packet n begins at
//! `isn + 1 + n * mss`. At the sender, packets that were dropped on the way say so in a comment.

use crate::log::{Event, PacketLog, Record};
use crate::pdu::Pdu;
use crate::scenario::{FlowSpec, LinkSpec, Scenario};
use dumbbell_net::Dropped;
use dumbbell_tcp::{Flags, Segment, Stack};
use dumbbell_units::Time;
use etherparse::{IpEcn, IpNumber, Ipv4Header, TcpHeader, TcpOptionElement};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, PcapError};
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::io::Write;

/// The end at which packets are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where data leaves.
    Sender,
    /// Where data arrives.
    Receiver,
}

/// Initial sequence numbers of the sender and of the receiver.
const ISN: [u32; 2] = [1_000_000, 2_000_000];
const PORTS: [u16; 2] = [40_000, 5_001];
/// Windows are scaled as far as RFC 7323 allows: simulated ones are large.
const WINDOW_SCALE: u8 = 14;
/// An IPv4 header and a TCP header with the timestamp option.
const TIMESTAMPED_HEADER: u16 = 52;
const NANOSECONDS: u8 = 9;

impl PacketLog {
    /// Writes what `side` saw in the run of `scenario`.
    ///
    /// # Errors
    /// If `out` cannot be written to.
    pub fn write_pcapng(
        &self,
        side: Side,
        scenario: &Scenario,
        out: impl Write,
    ) -> Result<(), PcapError> {
        let mut writer = PcapNgWriter::new(out)?;
        let name = match side {
            Side::Sender => "sender",
            Side::Receiver => "receiver",
        };
        writer.write_pcapng_block(InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(name.into()),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ],
        })?;
        let mut ends = Ends::default();
        let mut fates = self.fates(&scenario.links);
        for record in self.records() {
            let Pdu::Tcp(segment) = &record.packet else { continue };
            let flow = &scenario.flows[record.flow as usize];
            let echoed = ends.follow(record, segment);
            let seen = match record.event {
                Event::Sent => (side == Side::Sender) == record.by_sender,
                Event::Received => (side == Side::Sender) != record.by_sender,
                Event::Dropped(..) => false,
            };
            if seen {
                let sent = record.event == Event::Sent;
                let fate = if sent { fates.get_mut(&transmission(record)) } else { None };
                let comment = fate.and_then(VecDeque::pop_front);
                write_packet(&mut writer, (record, segment), flow, echoed, comment)?;
            }
        }
        Ok(())
    }

    /// Where the packets that never arrived were dropped, and why.
    fn fates(&self, links: &[LinkSpec]) -> HashMap<Transmission, VecDeque<String>> {
        let mut fates: HashMap<Transmission, VecDeque<String>> = HashMap::new();
        for record in self.records() {
            let Event::Dropped(link, why) = record.event else { continue };
            let why = match why {
                Dropped::Overflow => "the queue was full",
                Dropped::Early => "the queue's management chose to",
                Dropped::Loss => "random loss",
            };
            let text = format!("dropped at {}: {why}", links[link.0 as usize].name);
            fates.entry(transmission(record)).or_default().push_back(text);
        }
        fates
    }
}

/// What tells one transmission from others: flow, direction, and all that it says. Duplicate
/// acknowledgements differ in their SACK blocks alone; those that do not differ at all are told
/// apart by nothing, and the first stands for the one that was dropped.
type Transmission = (u32, bool, Pdu);

fn transmission(record: &Record) -> Transmission {
    (record.flow, record.by_sender, record.packet)
}

/// What each end of a flow has heard last, for the timestamps that it echoes.
#[derive(Default)]
struct Ends {
    flows: HashMap<u32, End>,
}

#[derive(Default)]
struct End {
    /// The receiver's clock in the newest acknowledgement that arrived, microseconds.
    heard: u32,
    /// Data under way, with what it echoes.
    under_way: VecDeque<(Segment, u32)>,
}

impl Ends {
    /// Takes note of a record; gives the timestamp that its packet echoes.
    fn follow(&mut self, record: &Record, segment: &Segment) -> u32 {
        let end = self.flows.entry(record.flow).or_default();
        if !record.by_sender {
            if record.event == Event::Received {
                end.heard = clock(record.at);
            }
            return segment.timestamp;
        }
        if record.event == Event::Sent {
            end.under_way.push_back((*segment, end.heard));
            return end.heard;
        }
        let same = |(sent, _): &(Segment, u32)| {
            (sent.number, sent.timestamp) == (segment.number, segment.timestamp)
        };
        let place = end.under_way.iter().position(same);
        place.and_then(|place| end.under_way.remove(place)).map_or(0, |(_, echoed)| echoed)
    }
}

fn clock(at: Time) -> u32 {
    (at.as_nanos() / 1_000) as u32
}

fn write_packet<W: Write>(
    writer: &mut PcapNgWriter<W>,
    (record, segment): (&Record, &Segment),
    flow: &FlowSpec,
    echoed: u32,
    comment: Option<String>,
) -> Result<(), PcapError> {
    let tcp = tcp_header((record, segment), flow, echoed);
    let payload = match segment.is_ack() || segment.flags.contains(Flags::SYN) {
        true => 0,
        false => usize::from(segment.size.saturating_sub(flow.stack.header)),
    };
    let (headers, length) = headers((record, segment), tcp, payload);
    writer.write_pcapng_block(EnhancedPacketBlock {
        interface_id: 0,
        timestamp: std::time::Duration::from_nanos(record.at.as_nanos()),
        original_len: length as u32,
        data: Cow::Owned(headers),
        options: comment
            .map(|text| EnhancedPacketOption::Comment(text.into()))
            .into_iter()
            .collect(),
    })?;
    Ok(())
}

fn tcp_header((record, segment): (&Record, &Segment), flow: &FlowSpec, echoed: u32) -> TcpHeader {
    let by_sender = &record.by_sender;
    let (from, to) = if *by_sender { (0, 1) } else { (1, 0) };
    let stack = &flow.stack;
    let byte = |number: u32| {
        // The last packet may be short, so what follows it is where the data ends.
        let sent = u64::from(number) * u64::from(stack.mss);
        ISN[0].wrapping_add(1).wrapping_add(flow.bytes.map_or(sent, |bytes| sent.min(bytes)) as u32)
    };
    let syn = segment.flags.contains(Flags::SYN);
    let (sequence, acknowledged) = match (syn, by_sender) {
        (true, true) => (ISN[0], 0),
        (true, false) => (ISN[1], ISN[0] + 1),
        (false, true) => (byte(segment.number), ISN[1] + 1),
        (false, false) => (ISN[1] + 1, byte(segment.number)),
    };
    let packets = if *by_sender { stack.receive_window } else { segment.window };
    let bytes = u64::from(packets) * u64::from(stack.mss);
    let mut tcp = TcpHeader::new(
        PORTS[from],
        PORTS[to],
        sequence,
        (bytes >> WINDOW_SCALE).min(0xffff) as u16,
    );
    tcp.acknowledgment_number = acknowledged;
    tcp.syn = syn;
    tcp.ack = !(syn && *by_sender);
    tcp.ece = segment.flags.contains(Flags::ECE);
    tcp.cwr = segment.flags.contains(Flags::CWR);
    let clock = if *by_sender { segment.timestamp } else { clock(record.at) };
    let options = options(segment, stack, byte, (clock, echoed));
    tcp.set_options(&options).expect("at most 40 bytes: 12 of timestamps and 28 of SACK");
    tcp
}

/// The options: what a SYN negotiates, timestamps, and the SACK blocks.
fn options(
    segment: &Segment,
    stack: &Stack,
    byte: impl Fn(u32) -> u32,
    (clock, echoed): (u32, u32),
) -> Vec<TcpOptionElement> {
    use TcpOptionElement::{
        MaximumSegmentSize, Noop, SelectiveAcknowledgement, SelectiveAcknowledgementPermitted,
        Timestamp, WindowScale,
    };
    let timestamps = Timestamp(clock, echoed);
    if segment.flags.contains(Flags::SYN) {
        // The MSS option leaves out the options that take from a segment's payload.
        let mss = stack.mss + stack.header.saturating_sub(40);
        return vec![
            MaximumSegmentSize(mss),
            SelectiveAcknowledgementPermitted,
            timestamps,
            Noop,
            WindowScale(WINDOW_SCALE),
        ];
    }
    let mut options = Vec::new();
    if stack.header >= TIMESTAMPED_HEADER {
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

/// Both headers as bytes, and the packet's length with its payload.
fn headers(
    (record, segment): (&Record, &Segment),
    mut tcp: TcpHeader,
    payload: usize,
) -> (Vec<u8>, usize) {
    let [high, low] = (record.flow as u16).to_be_bytes();
    let (sender, receiver) = ([10, 0, high, low], [10, 1, high, low]);
    let (source, destination) =
        if record.by_sender { (sender, receiver) } else { (receiver, sender) };
    let carried = tcp.header_len() + payload;
    let mut ip = Ipv4Header::new(carried as u16, 64, IpNumber::TCP, source, destination)
        .expect("a segment's size has 16 bits, headers included");
    ip.ecn = match (&segment.flags, record.event) {
        (flags, Event::Received) if flags.contains(Flags::CE) => IpEcn::THREE,
        (flags, _) if flags.contains(Flags::ECT) => IpEcn::TWO,
        _ => IpEcn::ZERO,
    };
    ip.header_checksum = ip.calc_header_checksum();
    let zeros = [0; u16::MAX as usize];
    tcp.checksum = tcp
        .calc_checksum_ipv4(&ip, &zeros[..payload])
        .expect("the same length as in the IP header");
    let mut bytes = ip.to_bytes().to_vec();
    bytes.extend_from_slice(&tcp.to_bytes());
    (bytes, Ipv4Header::MIN_LEN + carried)
}
