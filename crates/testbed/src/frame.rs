//! Packets as a TUN device delivers them, and the segments that they stand for on the wire.
//!
//! With TCP segmentation offload (TSO) a kernel hands over up to 64 kB as one frame. Its virtio-net
//! header states the segment size with which a network card would cut it. The emulator does the
//! cutting, so that queues see the packets that a router would see, but it copies no payload: a
//! segment is a byte range of its frame. At the far end consecutive segments are coalesced again,
//! as generic receive offload (GRO) would do. TCP checksums stay partial throughout: the sending
//! kernel does not compute them and the receiving kernel does not verify them.

use std::ops::Range;

/// Size of a virtio-net header as Linux's TUN uses it by default, bytes (virtio 1.2, section
/// 5.1.6).
pub(crate) const VNET_HEADER: usize = 10;
/// Maximum size of IPv4 and TCP headers with options, bytes.
pub(crate) const MAX_HEADERS: usize = 60 + 60;

const VIRTIO_NET_HDR_F_NEEDS_CSUM: u8 = 1;
const VIRTIO_NET_HDR_GSO_TCPV4: u8 = 1;
const VIRTIO_NET_HDR_GSO_ECN: u8 = 0x80;
const IPPROTO_TCP: u8 = 6;
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;
/// Congestion experienced (RFC 3168).
const CE: u8 = 3;

/// The parsed headers of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Bytes of the frame after the virtio-net header.
    len: u32,
    /// Bytes of IPv4 and TCP headers.
    headers: u32,
    /// Payload of every segment except the last, bytes.
    gso_size: u32,
    /// Whether the TCP checksum covers only the pseudo-header (checksum offload).
    partial_checksum: bool,
    is_tcp: bool,
    /// The ECN field of the IP header.
    pub(crate) ecn: u8,
    source: [u8; 4],
    destination: [u8; 4],
}

fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_be_bytes([bytes[offset], bytes[offset + 1]])
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_be_bytes([bytes[offset], bytes[offset + 1], bytes[offset + 2], bytes[offset + 3]])
}

impl Frame {
    /// Parses a frame that begins with its virtio-net header; `None` if it is not IPv4 or a header is
    /// shorter than its minimum.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Frame> {
        let (vnet, ip) = bytes.split_at_checked(VNET_HEADER)?;
        if ip.len() < 20 || ip[0] >> 4 != 4 {
            return None;
        }
        let tcp = usize::from(ip[0] & 15) * 4;
        let len = ip.len();
        let is_tcp = ip[9] == IPPROTO_TCP && len >= tcp + 20;
        let tcp_header = if is_tcp { usize::from(ip[tcp + 12] >> 4) * 4 } else { 0 };
        let headers = tcp + tcp_header;
        if tcp < 20 || is_tcp && tcp_header < 20 || headers > len {
            return None;
        }
        let gso_size = usize::from(u16::from_ne_bytes([vnet[4], vnet[5]]));
        let gso_type = vnet[1] & !VIRTIO_NET_HDR_GSO_ECN;
        let is_gso = is_tcp && gso_type == VIRTIO_NET_HDR_GSO_TCPV4 && gso_size > 0;
        Some(Frame {
            len: len as u32,
            headers: headers as u32,
            gso_size: if is_gso { gso_size as u32 } else { (len - headers) as u32 },
            partial_checksum: vnet[0] & VIRTIO_NET_HDR_F_NEEDS_CSUM != 0,
            is_tcp,
            ecn: ip[1] & 3,
            source: [ip[12], ip[13], ip[14], ip[15]],
            destination: [ip[16], ip[17], ip[18], ip[19]],
        })
    }

    /// The IPv4 source address.
    pub(crate) fn source(&self) -> [u8; 4] {
        self.source
    }

    /// The IPv4 destination address.
    pub(crate) fn destination(&self) -> [u8; 4] {
        self.destination
    }

    /// Whether it is TCP.
    pub(crate) fn is_tcp(&self) -> bool {
        self.is_tcp
    }

    /// Bytes of IPv4 and TCP headers.
    #[cfg(test)]
    pub(crate) fn headers(&self) -> u32 {
        self.headers
    }

    fn payload(&self) -> u32 {
        self.len - self.headers
    }

    /// Number of segments, which is the number of packets on the wire.
    pub(crate) fn segments(&self) -> u16 {
        if self.payload() == 0 { 1 } else { self.payload().div_ceil(self.gso_size) as u16 }
    }

    /// Payload of a segment, bytes.
    pub(crate) fn segment_payload(&self, segment: u16) -> u32 {
        self.gso_size.min(self.payload() - u32::from(segment) * self.gso_size)
    }

    /// Size of a segment on the wire with its IP header, bytes.
    pub(crate) fn segment_size(&self, segment: u16) -> u16 {
        (self.headers + self.segment_payload(segment)) as u16
    }

    /// Byte range of a segment's payload in the frame.
    fn payload_range(&self, segment: u16) -> Range<usize> {
        let start = VNET_HEADER as u32 + self.headers + u32::from(segment) * self.gso_size;
        start as usize..(start + self.segment_payload(segment)) as usize
    }
}

/// A segment of a frame, with the bytes of the whole frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    pub(crate) frame: Frame,
    pub(crate) bytes: &'a [u8],
    pub(crate) number: u16,
    /// Whether a queue marked it with Congestion Experienced.
    pub(crate) ce_marked: bool,
}

impl<'a> Segment<'a> {
    fn headers(&self) -> &'a [u8] {
        &self.bytes[VNET_HEADER..VNET_HEADER + self.frame.headers as usize]
    }

    /// The payload from this segment through segment `last` of the same frame.
    pub(crate) fn payload_through(&self, last: u16) -> &'a [u8] {
        &self.bytes[self.frame.payload_range(self.number).start..self.frame.payload_range(last).end]
    }

    /// Offset of the TCP header in the IP packet.
    fn tcp_offset(&self) -> usize {
        usize::from(self.headers()[0] & 15) * 4
    }

    fn sequence(&self) -> u32 {
        let offset = u32::from(self.number) * self.frame.gso_size;
        u32_at(self.headers(), self.tcp_offset() + 4).wrapping_add(offset)
    }

    /// The TCP flags of this segment: only the last one has FIN and PSH, only the first one CWR.
    fn flags(&self) -> u8 {
        let mut flags = self.headers()[self.tcp_offset() + 13];
        if self.number + 1 < self.frame.segments() {
            flags &= !(FIN | PSH);
        }
        if self.number > 0 {
            flags &= !CWR;
        }
        flags
    }

    /// Whether a receiver may coalesce this segment with `next`, by the rules of Linux's GRO.
    ///
    /// Both must carry contiguous data of one flow with otherwise equal headers, and this one must
    /// be at least as long as `next`. A segment with PSH ends a coalesced packet.
    pub(crate) fn coalesces_with(&self, next: &Segment<'_>) -> bool {
        let (first, second) = (self.headers(), next.headers());
        let mergeable = self.frame.is_tcp
            && next.frame.is_tcp
            && self.frame.partial_checksum
            && next.frame.partial_checksum
            && first.len() == second.len()
            && self.ce_marked == next.ce_marked;
        if !mergeable || first[0] != second[0] {
            return false;
        }
        let tcp = self.tcp_offset();
        let payload = self.frame.segment_payload(self.number);
        // IP: all fields except length, identification and checksum. TCP: ports, acknowledgement,
        // header length, window and options.
        first[1] == second[1]
            && first[6..10] == second[6..10]
            && first[12..tcp + 4] == second[12..tcp + 4]
            && first[tcp + 8..tcp + 13] == second[tcp + 8..tcp + 13]
            && first[tcp + 14..tcp + 16] == second[tcp + 14..tcp + 16]
            && first[tcp + 18..] == second[tcp + 18..]
            && self.flags() & !CWR == next.flags() & !(FIN | PSH)
            && next.flags() & CWR == 0
            && payload > 0
            && next.frame.segment_payload(next.number) > 0
            && next.frame.segment_payload(next.number) <= payload
            && next.sequence() == self.sequence().wrapping_add(payload)
    }
}

/// The headers of a coalesced packet: virtio-net, IPv4 and TCP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headers {
    bytes: [u8; VNET_HEADER + MAX_HEADERS],
    len: usize,
}

impl Headers {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Headers of the segments from `first` to `last` with `payload` bytes in total; each segment
    /// must [coalesce](Segment::coalesces_with) with the next.
    pub(crate) fn new(first: &Segment<'_>, last: &Segment<'_>, payload: u32) -> Headers {
        let headers = first.headers();
        let len = VNET_HEADER + headers.len();
        let mut out = Headers { bytes: [0; VNET_HEADER + MAX_HEADERS], len };
        let (vnet, rest) = out.bytes.split_at_mut(VNET_HEADER);
        let ip = &mut rest[..headers.len()];
        ip.copy_from_slice(headers);
        let total_length = headers.len() as u32 + payload;
        let identification = u16_at(ip, 4).wrapping_add(first.number);
        ip[2..4].copy_from_slice(&(total_length as u16).to_be_bytes());
        ip[4..6].copy_from_slice(&identification.to_be_bytes());
        if first.ce_marked {
            ip[1] |= CE;
        }
        let tcp = first.tcp_offset();
        ip[10..12].fill(0);
        let checksum = !fold_carries(ones_complement_sum(&ip[..tcp]));
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        // csum_start and csum_offset are the same for every segment of a frame.
        vnet.copy_from_slice(&first.bytes[..VNET_HEADER]);
        vnet[1..6].fill(0);
        if !first.frame.is_tcp {
            return out;
        }
        ip[tcp + 4..tcp + 8].copy_from_slice(&first.sequence().to_be_bytes());
        ip[tcp + 13] = first.flags() | last.flags();
        if first.frame.partial_checksum {
            let tcp_length = total_length - tcp as u32;
            let addresses = ones_complement_sum(&ip[12..20]);
            let pseudo_header = fold_carries(addresses + u32::from(IPPROTO_TCP) + tcp_length);
            ip[tcp + 16..tcp + 18].copy_from_slice(&pseudo_header.to_be_bytes());
        }
        let gso_size = first.frame.segment_payload(first.number);
        if payload > gso_size {
            let ecn = if ip[tcp + 13] & CWR != 0 { VIRTIO_NET_HDR_GSO_ECN } else { 0 };
            vnet[1] = VIRTIO_NET_HDR_GSO_TCPV4 | ecn;
            vnet[2..4].copy_from_slice(&(headers.len() as u16).to_ne_bytes());
            vnet[4..6].copy_from_slice(&(gso_size as u16).to_ne_bytes());
        }
        out
    }
}

/// Sum of the big-endian 16-bit words, carries not yet folded (RFC 1071).
fn ones_complement_sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2);
    words.map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0))).sum()
}

fn fold_carries(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
pub(crate) mod tests;
