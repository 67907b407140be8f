//! Packets as they come from a TUN device, and the packets on the wire that they stand for.
//!
//! A kernel that is told so hands over up to 64 kB at once (TCP segmentation offload), with a
//! virtio-net header that says into what pieces a network card would cut them. The emulator cuts
//! them itself, so that queues see what a router would, but leaves the bytes where they are: a
//! packet on the wire is a place in a frame. At the far end pieces that follow each other are put
//! together again, as receive offload would. Checksums stay partial all the way: the kernel that
//! sent computes none, and the one that receives checks none.

use std::ops::Range;

/// Bytes of a virtio-net header (virtio 1.2, section 5.1.6) as Linux's TUN uses it by default.
pub(crate) const VNET: usize = 10;
/// The most bytes of IPv4 and TCP headers with all their options.
pub(crate) const MOST_HEADERS: usize = 60 + 60;

const NEEDS_CSUM: u8 = 1;
const GSO_TCPV4: u8 = 1;
const GSO_ECN: u8 = 0x80;
const TCP: u8 = 6;
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;
/// Congestion experienced (RFC 3168).
const CE: u8 = 3;

/// What is known of a frame without looking at its bytes again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Bytes of the frame after the virtio-net header.
    len: u32,
    /// Bytes of IPv4 and TCP headers.
    headers: u32,
    /// Payload of all pieces but the last.
    piece: u32,
    /// Whether the TCP checksum covers the pseudo-header alone, for others to complete.
    partial: bool,
    tcp: bool,
    /// The ECN field.
    pub(crate) ecn: u8,
    source: [u8; 4],
    destination: [u8; 4],
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

impl Frame {
    /// What `bytes`, virtio-net header first, hold; `None` if it is not IPv4.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Frame> {
        let (vnet, ip) = bytes.split_at_checked(VNET)?;
        if ip.len() < 20 || ip[0] >> 4 != 4 {
            return None;
        }
        let start = usize::from(ip[0] & 15) * 4;
        let len = ip.len();
        let tcp = ip[9] == TCP && len >= start + 20;
        let headers = if tcp { start + usize::from(ip[start + 12] >> 4) * 4 } else { start };
        if start < 20 || headers > len {
            return None;
        }
        let size = usize::from(u16::from_ne_bytes([vnet[4], vnet[5]]));
        let cut = tcp && vnet[1] & !GSO_ECN == GSO_TCPV4 && size > 0;
        Some(Frame {
            len: len as u32,
            headers: headers as u32,
            piece: if cut { size as u32 } else { (len - headers) as u32 },
            partial: vnet[0] & NEEDS_CSUM != 0,
            tcp,
            ecn: ip[1] & 3,
            source: [ip[12], ip[13], ip[14], ip[15]],
            destination: [ip[16], ip[17], ip[18], ip[19]],
        })
    }

    /// Where it comes from.
    pub(crate) fn source(&self) -> [u8; 4] {
        self.source
    }

    /// Where it goes to.
    pub(crate) fn destination(&self) -> [u8; 4] {
        self.destination
    }

    fn payload(&self) -> u32 {
        self.len - self.headers
    }

    /// How many packets it is on the wire.
    pub(crate) fn pieces(&self) -> u16 {
        if self.piece == 0 { 1 } else { self.payload().div_ceil(self.piece) as u16 }
    }

    /// Payload of a piece, bytes.
    pub(crate) fn payload_of(&self, piece: u16) -> u32 {
        self.piece.min(self.payload() - u32::from(piece) * self.piece)
    }

    /// Bytes of a piece on the wire, IP header included.
    pub(crate) fn size_of(&self, piece: u16) -> u16 {
        (self.headers + self.payload_of(piece)) as u16
    }

    /// Where the payload of a piece lies.
    fn range_of(&self, piece: u16) -> Range<usize> {
        let start = VNET as u32 + self.headers + u32::from(piece) * self.piece;
        start as usize..(start + self.payload_of(piece)) as usize
    }
}

/// A piece of a frame with the frame's bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) frame: Frame,
    pub(crate) bytes: &'a [u8],
    pub(crate) number: u16,
    /// Whether a queue marked it.
    pub(crate) marked: bool,
}

impl<'a> Piece<'a> {
    fn headers(&self) -> &'a [u8] {
        &self.bytes[VNET..VNET + self.frame.headers as usize]
    }

    /// The payload of this piece and of those that follow it in its frame, up to `last`.
    pub(crate) fn payload_to(&self, last: u16) -> &'a [u8] {
        &self.bytes[self.frame.range_of(self.number).start..self.frame.range_of(last).end]
    }

    fn tcp(&self) -> usize {
        usize::from(self.headers()[0] & 15) * 4
    }

    fn sequence(&self) -> u32 {
        let offset = u32::from(self.number) * self.frame.piece;
        u32_at(self.headers(), self.tcp() + 4).wrapping_add(offset)
    }

    /// The TCP flags of this piece: FIN and PSH go to the last, CWR to the first.
    fn flags(&self) -> u8 {
        let mut flags = self.headers()[self.tcp() + 13];
        if self.number + 1 < self.frame.pieces() {
            flags &= !(FIN | PSH);
        }
        if self.number > 0 {
            flags &= !CWR;
        }
        flags
    }

    /// Whether a receiver may take this piece and `next` for one: data of one flow that follows on
    /// and tells nothing new beside, the first of them full. As in Linux, what ends with a push
    /// ends.
    pub(crate) fn continues_with(&self, next: &Piece<'_>) -> bool {
        let (ours, theirs) = (self.headers(), next.headers());
        let mergeable = self.frame.tcp
            && next.frame.tcp
            && self.frame.partial
            && next.frame.partial
            && ours.len() == theirs.len()
            && self.marked == next.marked;
        if !mergeable || ours[0] != theirs[0] {
            return false;
        }
        let at = self.tcp();
        let payload = self.frame.payload_of(self.number);
        // IP: all but length, identification and checksum. TCP: ports, acknowledgement, header
        // length, window, options.
        ours[1] == theirs[1]
            && ours[6..10] == theirs[6..10]
            && ours[12..at + 4] == theirs[12..at + 4]
            && ours[at + 8..at + 13] == theirs[at + 8..at + 13]
            && ours[at + 14..at + 16] == theirs[at + 14..at + 16]
            && ours[at + 18..] == theirs[at + 18..]
            && self.flags() & !CWR == next.flags() & !(FIN | PSH)
            && next.flags() & CWR == 0
            && payload > 0
            && next.frame.payload_of(next.number) > 0
            && next.frame.payload_of(next.number) <= payload
            && next.sequence() == self.sequence().wrapping_add(payload)
    }
}

/// Headers of pieces that are handed over as one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    bytes: [u8; VNET + MOST_HEADERS],
    len: usize,
}

impl Head {
    /// The virtio-net header, and those of IP and TCP.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// The headers of pieces from `first` to `last`, each of which
    /// [continues](Piece::continues_with) with the next, with so much payload in all.
    pub(crate) fn of(first: &Piece<'_>, last: &Piece<'_>, payload: u32) -> Head {
        let headers = first.headers();
        let mut head = Head { bytes: [0; VNET + MOST_HEADERS], len: VNET + headers.len() };
        let (vnet, rest) = head.bytes.split_at_mut(VNET);
        let ip = &mut rest[..headers.len()];
        ip.copy_from_slice(headers);
        let total = headers.len() as u32 + payload;
        let id = u16_at(ip, 4).wrapping_add(first.number);
        ip[2..4].copy_from_slice(&(total as u16).to_be_bytes());
        ip[4..6].copy_from_slice(&id.to_be_bytes());
        if first.marked {
            ip[1] |= CE;
        }
        let at = first.tcp();
        ip[10..12].fill(0);
        let checksum = !fold(sum(&ip[..at]));
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        // What is to be checked, and from where on, is the same for every piece.
        vnet.copy_from_slice(&first.bytes[..VNET]);
        vnet[1..6].fill(0);
        if !first.frame.tcp {
            return head;
        }
        ip[at + 4..at + 8].copy_from_slice(&first.sequence().to_be_bytes());
        ip[at + 13] = first.flags() | last.flags();
        if first.frame.partial {
            let length = total - at as u32;
            let pseudo = fold(sum(&ip[12..20]) + u32::from(TCP) + length);
            ip[at + 16..at + 18].copy_from_slice(&pseudo.to_be_bytes());
        }
        let piece = first.frame.payload_of(first.number);
        if payload > piece {
            let ecn = if ip[at + 13] & CWR != 0 { GSO_ECN } else { 0 };
            vnet[1] = GSO_TCPV4 | ecn;
            vnet[2..4].copy_from_slice(&(headers.len() as u16).to_ne_bytes());
            vnet[4..6].copy_from_slice(&(piece as u16).to_ne_bytes());
        }
        head
    }
}

/// The sum of 16-bit words (RFC 1071).
fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2);
    words.map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0))).sum()
}

fn fold(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
#[path = "frame_tests.rs"]
pub(crate) mod tests;
