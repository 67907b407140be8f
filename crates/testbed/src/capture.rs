//! The packets of logged flows, as their ends send and receive them, in pcapng files.
//!
//! Packets are those on the wire: segments that the kernel hands over or takes together stand one
//! by one. Times count from the start of the run, as the simulator's do. Payload is cut off, and so
//! TCP checksums are as the sending kernel leaves them: of the pseudo-header only.

use crate::frame::{Headers, Segment, VNET_HEADER};
use crate::host::Side;
use dumbbell_units::Time;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, PcapResult};
use std::borrow::Cow;
use std::time::Duration;

/// Bytes that are kept behind the IP header of a packet that is not TCP: the headers of UDP and of
/// what it carries.
const KEPT: usize = 64;
/// The resolution of the timestamps: 10 to this power per second.
const NANOSECONDS: u8 = 9;
/// Why writing a block does not fail.
const IN_MEMORY: &str = "memory takes every block";

/// The packets at both ends of the logged flows of a run.
pub(crate) struct Captures {
    /// By path: whether its packets are kept.
    paths: Vec<bool>,
    /// By side: the sender's and the receiver's capture.
    ends: [PcapNgWriter<Vec<u8>>; 2],
}

impl Captures {
    /// Captures of these paths; `None` if there are none.
    pub(crate) fn new(paths: Vec<bool>) -> Option<Captures> {
        let any = paths.contains(&true);
        let ends = || ["sender", "receiver"].map(|name| capture(name).expect(IN_MEMORY));
        any.then(|| Captures { paths, ends: ends() })
    }

    /// Keeps a packet that an end sent or received at `now`, if its path is logged.
    pub(crate) fn record(&mut self, now: Time, path: u32, side: Side, segment: &Segment<'_>) {
        if !self.paths[path as usize] {
            return;
        }
        let payload = segment.payload_through(segment.number);
        let headers = Headers::new(segment, segment, payload.len() as u32);
        let headers = &headers.bytes()[VNET_HEADER..];
        let kept = if segment.frame.is_tcp() { 0 } else { payload.len().min(KEPT) };
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(now.as_nanos()),
            original_len: (headers.len() + payload.len()) as u32,
            data: Cow::Owned([headers, &payload[..kept]].concat()),
            options: vec![],
        };
        self.ends[side as usize].write_pcapng_block(block).expect(IN_MEMORY);
    }

    /// The files: the sender's and the receiver's.
    pub(crate) fn into_files(self) -> [Vec<u8>; 2] {
        self.ends.map(PcapNgWriter::into_inner)
    }
}

/// An empty capture file.
fn capture(name: &str) -> PcapResult<PcapNgWriter<Vec<u8>>> {
    let mut writer = PcapNgWriter::new(Vec::new())?;
    writer.write_pcapng_block(InterfaceDescriptionBlock {
        linktype: DataLink::RAW,
        snaplen: 0,
        options: vec![
            InterfaceDescriptionOption::IfName(name.into()),
            InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
        ],
    })?;
    Ok(writer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frame;
    use crate::frame::tests::frame;
    use pcap_file::pcapng::{Block, PcapNgReader};

    #[test]
    fn each_segment_of_an_offloaded_frame_is_a_packet_without_payload() {
        let bytes = frame(1000, 2 * 1448 + 100, 1448, 0x10);
        let parsed = Frame::parse(&bytes).expect("IPv4");
        let mut captures = Captures::new(vec![false, true]).expect("a path");
        for number in 0..parsed.segments() {
            let segment = Segment { frame: parsed, bytes: &bytes, number, ce_marked: number == 1 };
            let at = Time::from_nanos(7 + u64::from(number));
            captures.record(at, 0, Side::Sender, &segment);
            captures.record(at, 1, Side::Sender, &segment);
        }
        let [sent, received] = captures.into_files();
        let packets = |file: &[u8]| {
            let mut reader = PcapNgReader::new(file).expect("a header");
            let mut found = Vec::new();
            while let Some(block) = reader.next_block() {
                if let Block::EnhancedPacket(packet) = block.expect("a block") {
                    let data = &packet.data;
                    let sequence = u32::from_be_bytes([data[24], data[25], data[26], data[27]]);
                    found.push((
                        packet.timestamp.as_nanos(),
                        packet.original_len,
                        data[1] & 3,
                        sequence,
                    ));
                    assert_eq!(data.len() as u32, parsed.headers());
                }
            }
            found
        };
        let headers = parsed.headers();
        let expected = [
            (7, headers + 1448, 0, 1000),
            (8, headers + 1448, 3, 2448),
            (9, headers + 100, 0, 3896),
        ];
        assert_eq!(packets(&sent), expected);
        assert_eq!(packets(&received), []);
    }
}
