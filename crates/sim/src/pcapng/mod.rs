//! Exports the packet log as a capture file (pcapng, draft-ietf-opsawg-pcapng) with real headers.
//!
//! A capture contains what one end of the flows sees, as tcpdump there would: at the sender
//! outgoing data and incoming acknowledgements, at the receiver the reverse. Packets are IPv4
//! without a link layer. Payload is cut off as by a snap length, but counted in lengths and
//! checksums (it is all zeros). At the sender, packets that were dropped on the way carry a
//! comment.

mod datagram;
mod mptcp;
mod tcp;
mod udt;

use crate::packet_log::{PacketEvent, PacketLog, PacketRecord};
use crate::pdu::Pdu;
use crate::scenario::{LinkSpec, Scenario};
use dumbbell_net::DropReason;
use dumbbell_units::Time;
use etherparse::{IpEcn, IpNumber, Ipv4Header};
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
pub enum CapturePoint {
    /// The end that sends data.
    Sender,
    /// The end that receives data.
    Receiver,
}

const NANOSECONDS: u8 = 9;

impl PacketLog {
    /// Writes the packets of the run of `scenario` that were captured at `point`.
    ///
    /// # Errors
    /// If writing to `out` fails.
    pub fn write_pcapng(
        &self,
        point: CapturePoint,
        scenario: &Scenario,
        out: impl Write,
    ) -> Result<(), PcapError> {
        let mut writer = PcapNgWriter::new(out)?;
        let name = match point {
            CapturePoint::Sender => "sender",
            CapturePoint::Receiver => "receiver",
        };
        writer.write_pcapng_block(InterfaceDescriptionBlock {
            linktype: DataLink::RAW,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(name.into()),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ],
        })?;
        let mut timestamps = tcp::ReceiverTimestamps::default();
        let mut connections = mptcp::connections(&scenario.flows);
        let mut drop_comments = self.drop_comments(&scenario.links);
        for record in self.records() {
            let flow = &scenario.flows[record.flow as usize];
            let timestamp = match &record.packet {
                Pdu::Tcp(segment) => {
                    if let Some(connection) = connections.get_mut(&record.flow) {
                        connection.track(record, segment);
                    }
                    timestamps.track(record)
                }
                Pdu::Udt(_) | Pdu::Datagram(_) => 0,
            };
            let seen = match record.event {
                PacketEvent::Sent => (point == CapturePoint::Sender) == record.by_sender,
                PacketEvent::Received => (point == CapturePoint::Sender) != record.by_sender,
                PacketEvent::Dropped(..) => false,
            };
            if seen {
                let sent = record.event == PacketEvent::Sent;
                let drop_comment =
                    if sent { drop_comments.get_mut(&packet_key(record)) } else { None };
                let comment = drop_comment.and_then(VecDeque::pop_front);
                let (bytes, length) = match &record.packet {
                    Pdu::Tcp(segment) => {
                        let multipath = connections.get(&record.flow);
                        tcp::packet((record, segment), flow, multipath, timestamp)
                    }
                    Pdu::Udt(packet) => udt::packet(record, packet),
                    Pdu::Datagram(datagram) => datagram::packet(record, datagram),
                };
                write_packet(&mut writer, record.at, bytes, length, comment)?;
            }
        }
        Ok(())
    }

    /// For each packet that was dropped: where and why, as a comment.
    fn drop_comments(&self, links: &[LinkSpec]) -> HashMap<PacketKey, VecDeque<String>> {
        let mut drop_comments: HashMap<PacketKey, VecDeque<String>> = HashMap::new();
        for record in self.records() {
            let PacketEvent::Dropped(link, why) = record.event else { continue };
            let why = match why {
                DropReason::Overflow => "the queue was full",
                DropReason::Early => "by the AQM",
                DropReason::AckFilter => "by the ACK filter",
                DropReason::Loss => "random loss",
            };
            let text = format!("dropped at {}: {why}", links[link.0 as usize].name);
            drop_comments.entry(packet_key(record)).or_default().push_back(text);
        }
        drop_comments
    }
}

/// Identifies a transmission: flow, subflow, direction and content, whatever links mark. Duplicate
/// acknowledgements differ only in their SACK blocks. If they are entirely equal, the first one is taken
/// for the dropped one.
type PacketKey = (u32, u8, bool, Pdu);

fn packet_key(record: &PacketRecord) -> PacketKey {
    (record.flow, record.subflow, record.by_sender, record.packet.as_marked())
}

/// The IPv4 header of a packet with `carried` bytes behind it. The sender of flow n is 10.0.n, its receiver
/// 10.1.n, with 16 bits for n; those of subflow k are 10.2k.n and 10.(2k + 1).n.
fn ip_header(record: &PacketRecord, protocol: IpNumber, carried: usize, ecn: IpEcn) -> Ipv4Header {
    let [high, low] = (record.flow as u16).to_be_bytes();
    let side = 2 * record.subflow;
    let (sender, receiver) = ([10, side, high, low], [10, side + 1, high, low]);
    let (source, destination) =
        if record.by_sender { (sender, receiver) } else { (receiver, sender) };
    let mut ip = Ipv4Header::new(carried as u16, 64, protocol, source, destination)
        .expect("a packet's size has 16 bits, headers included");
    ip.ecn = ecn;
    ip.header_checksum = ip.calc_header_checksum();
    ip
}

fn write_packet<W: Write>(
    writer: &mut PcapNgWriter<W>,
    at: Time,
    headers: Vec<u8>,
    length: usize,
    comment: Option<String>,
) -> Result<(), PcapError> {
    writer.write_pcapng_block(EnhancedPacketBlock {
        interface_id: 0,
        timestamp: std::time::Duration::from_nanos(at.as_nanos()),
        original_len: length as u32,
        data: Cow::Owned(headers),
        options: comment
            .map(|text| EnhancedPacketOption::Comment(text.into()))
            .into_iter()
            .collect(),
    })?;
    Ok(())
}
