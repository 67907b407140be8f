//! A TCP segment in the network.
//!
//! Sequence numbers count packets: every segment but a flow's last carries a full MSS, so byte
//! numbers follow from packet numbers (`isn + 1 + number * mss`). Subflows of a connection over several
//! paths have shorter ones too; the connection numbers its data in bytes (`multipath/dss.rs`). Packet number 0 is the first
//! data segment. 32 bits suffice for 4 billion packets a flow.

use dumbbell_net::Packet;
use dumbbell_units::{Span, Time};

/// A segment: data from the sender, or an acknowledgement from the receiver.
///
/// 36 bytes, so that a packet in flight takes 40 with its envelope.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Segment {
    /// Data: the packet's number. Acknowledgement: the number of the next packet expected.
    pub number: u32,
    /// Data: the sender's timestamp (TSval), microseconds, wrapping. Acknowledgement: its echo
    /// (TSecr, RFC 7323).
    pub timestamp: u32,
    /// Acknowledgement: receive window in packets beyond `number` (over several paths in units of
    /// `Stack::window_unit`), in the lower 24 bits, and above them
    /// the lower byte of the receiver's timestamp. See [`Segment::window`] and [`Segment::tsval`].
    pub(crate) window_and_tsval: u32,
    /// SACK blocks as (start low, start high, length), so that the struct packs tightly. Data: the
    /// echo of the receiver's timestamp in the first place.
    pub(crate) blocks: [[u16; 3]; 3],
    /// Bytes on the wire, IP and TCP headers included.
    pub size: u16,
    /// Kind and flags.
    pub flags: Flags,
    /// Acknowledgement: packets that arrived CE-marked, modulo 256: Accurate ECN's `r.cep` (RFC 9768,
    /// section 3.2.1), of which TCP's header has three bits. With DCTCP's feedback: those since
    /// the last acknowledgement. Classic ECN uses only [`Flags::ECE`].
    pub marked: u8,
    pub(crate) protocol: Protocol,
    /// Acknowledgement: the upper byte of the receiver's timestamp.
    pub(crate) tsval_high: u8,
}

const _: () = assert!(size_of::<Segment>() == 36);

const WINDOW_BITS: u32 = 24;

/// Maximum receive window, packets: 24 GB, where TCP's is 1 GiB (RFC 7323, section 2.2).
pub const MAX_WINDOW: u32 = (1 << WINDOW_BITS) - 1;

/// The receiver's timestamp at a time, milliseconds modulo 65,536: Linux's resolution.
#[inline]
pub(crate) fn tsval(now: Time) -> u16 {
    (now.as_nanos() / 1_000_000) as u16
}

/// The time from one timestamp to a later one, at least 1 ms (`tcp_rtt_tsopt_us`).
#[inline]
pub(crate) fn since_tsval(now: Time, tsecr: u16) -> Span {
    Span::from_millis(u64::from(tsval(now).wrapping_sub(tsecr).max(1)))
}

/// One-variant enum. Its 255 unused values are a niche in which an enum of protocols stores its
/// discriminant, so that enum stays as small as this segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum Protocol {
    #[default]
    Tcp = 6,
}

/// Kind and flags of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags(u8);

impl Flags {
    /// The segment is an acknowledgement, not data.
    pub const ACK: Flags = Flags(1);
    /// Handshake: SYN from the sender; with `ACK`, the receiver's SYN-ACK.
    pub const SYN: Flags = Flags(1 << 1);
    /// The data is a retransmission.
    pub const RETRANSMISSION: Flags = Flags(1 << 2);
    /// The packet is ECN-capable, ECT(0). This and the next bit are the ECN field of the IP header.
    pub const ECT_0: Flags = Flags(1 << 3);
    /// The packet is ECN-capable and L4S, ECT(1) (RFC 9331).
    pub const ECT_1: Flags = Flags(1 << 4);
    /// A queue marked the packet (CE): both bits.
    pub const CE: Flags = Flags(1 << 3 | 1 << 4);
    /// The acknowledgement echoes congestion (ECE).
    pub const ECE: Flags = Flags(1 << 5);
    /// The sender reduced its window (CWR).
    pub const CWR: Flags = Flags(1 << 6);
    /// Acknowledgement: the first SACK block reports a duplicate (D-SACK, RFC 2883).
    pub const DSACK: Flags = Flags(1 << 7);
    /// Data: the end of a write or of a burst (PSH). The same bit as `DSACK`, which only
    /// acknowledgements have.
    pub const PSH: Flags = Flags(1 << 7);

    /// Whether all of `other` are set.
    #[inline]
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The union with `other`.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl Segment {
    /// The SACK blocks, each from its first packet to one past its last.
    #[inline]
    pub fn blocks(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.blocks.iter().take_while(|block| block[2] != 0).map(|&[low, high, len]| {
            let start = u32::from(low) | u32::from(high) << 16;
            (start, start.wrapping_add(u32::from(len)))
        })
    }

    /// Sets the SACK blocks, at most three, and returns their number.
    ///
    /// A block longer than 65,535 packets is reported by its upper end. The rest was reported before,
    /// and a SACK block may always report less.
    pub fn set_blocks(&mut self, blocks: impl IntoIterator<Item = (u32, u32)>) -> usize {
        let mut count = 0;
        for (slot, (start, end)) in self.blocks.iter_mut().zip(blocks) {
            let start = start.max(end.saturating_sub(u32::from(u16::MAX)));
            let len = end - start;
            *slot = [start as u16, (start >> 16) as u16, len as u16];
            count += 1;
        }
        count
    }

    /// Acknowledgement: receive window, packets beyond `number`.
    #[inline]
    pub const fn window(&self) -> u32 {
        self.window_and_tsval & MAX_WINDOW
    }

    /// Acknowledgement: the receiver's timestamp (TSval, RFC 7323), milliseconds modulo 65,536.
    #[inline]
    pub(crate) const fn tsval(&self) -> u16 {
        u16::from_be_bytes([self.tsval_high, (self.window_and_tsval >> WINDOW_BITS) as u8])
    }

    /// Sets what [`Segment::window`] and [`Segment::tsval`] return.
    #[inline]
    pub(crate) fn set_window(&mut self, window: u32, tsval: u16) {
        let [high, low] = tsval.to_be_bytes();
        self.window_and_tsval = window.min(MAX_WINDOW) | u32::from(low) << WINDOW_BITS;
        self.tsval_high = high;
    }

    /// Data: the echo of the receiver's timestamp (TSecr).
    #[inline]
    pub(crate) const fn tsecr(&self) -> u16 {
        self.blocks[0][0]
    }

    /// Appends all fields but the size, in at most 33 bytes: fewer than the headers that they stand
    /// for. For segments as the payload of other packets; TCP's own format has other fields.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for word in [self.number, self.timestamp, self.window_and_tsval] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        out.extend_from_slice(&[self.tsval_high, self.flags.0, self.marked]);
        let blocks = self.blocks.as_flattened();
        let used = blocks.iter().rposition(|&half| half != 0).map_or(0, |last| last + 1);
        for half in &blocks[..used] {
            out.extend_from_slice(&half.to_be_bytes());
        }
    }

    /// The segment of `size` bytes with the fields that [`Segment::encode`] wrote; `None` if there are
    /// too few or too many bytes.
    pub fn decode(bytes: &[u8], size: u16) -> Option<Segment> {
        let (words, rest) = bytes.split_first_chunk::<12>()?;
        let (&[tsval_high, flags, marked], halves) = rest.split_first_chunk::<3>()?;
        let word = |at: usize| {
            u32::from_be_bytes([words[at], words[at + 1], words[at + 2], words[at + 3]])
        };
        let mut blocks = [[0; 3]; 3];
        if halves.len() % 2 != 0 || halves.len() > 18 {
            return None;
        }
        for (half, bytes) in blocks.as_flattened_mut().iter_mut().zip(halves.chunks_exact(2)) {
            *half = u16::from_be_bytes([bytes[0], bytes[1]]);
        }
        Some(Segment {
            number: word(0),
            timestamp: word(4),
            window_and_tsval: word(8),
            blocks,
            size,
            flags: Flags(flags),
            marked,
            protocol: Protocol::Tcp,
            tsval_high,
        })
    }

    /// L4S acknowledgement: the flags AE, CWR and ECE, which count marks from 5 on (RFC 9768, section 3.2.1).
    const fn ace(&self) -> u8 {
        self.marked.wrapping_add(5) & 7
    }

    /// Whether this is an acknowledgement or part of the handshake, not data.
    #[inline]
    pub(crate) const fn is_control(&self) -> bool {
        self.flags.0 & (Flags::ACK.0 | Flags::SYN.0) != 0
    }

    /// Whether this is an acknowledgement.
    #[inline]
    pub const fn is_ack(&self) -> bool {
        self.flags.contains(Flags::ACK)
    }
}

impl Packet for Segment {
    #[inline]
    fn size(&self) -> u32 {
        u32::from(self.size)
    }

    fn is_ecn_capable(&self) -> bool {
        self.flags.0 & Flags::CE.0 != 0
    }

    fn is_l4s(&self) -> bool {
        self.flags.contains(Flags::ECT_1)
    }

    fn mark(&mut self) {
        self.flags = self.flags.with(Flags::CE);
    }

    #[inline]
    fn is_marked(&self) -> bool {
        self.flags.contains(Flags::CE)
    }

    fn is_pure_ack(&self) -> bool {
        self.flags.0 & (Flags::ACK.0 | Flags::SYN.0) == Flags::ACK.0
    }

    /// Linux's cake_ack_filter: a pure acknowledgement is redundant if a later one acknowledges more by
    /// number or SACK, and nothing less. One with the flag AE is not (cake_tcph_may_drop). Without L4S
    /// none with a count of marks is, as TCP's header has no such count.
    fn supersedes(&self, earlier: &Segment) -> bool {
        let keeps = if earlier.is_l4s() { earlier.ace() & 4 } else { earlier.marked };
        let echoes_later = earlier.timestamp.wrapping_sub(self.timestamp).cast_signed() > 0;
        if !self.is_pure_ack() || !earlier.is_pure_ack() || keeps != 0 || echoes_later {
            return false;
        }
        let is_kept = |(start, end)| {
            start < earlier.number || !self.blocks().any(|sack| sack.0 <= start && end <= sack.1)
        };
        let sacked =
            |segment: &Segment| segment.blocks().map(|(start, end)| end - start).sum::<u32>();
        let has_more = self.number > earlier.number || sacked(self) > sacked(earlier);
        earlier.number <= self.number && has_more && !earlier.blocks().any(is_kept)
    }

    fn ecn_echo(&self) -> u8 {
        if self.is_l4s() { self.ace() & 3 } else { self.flags.0 & Flags::ECE.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sack_blocks_are_read_as_they_were_set() {
        let mut segment = Segment::default();
        segment.set_blocks([(70_000, 70_002), (9, 10)]);
        assert_eq!(segment.blocks().collect::<Vec<_>>(), [(70_000, 70_002), (9, 10)]);
    }

    #[test]
    fn a_timestamp_wraps_after_65_s() {
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let mut segment = Segment::default();
        segment.set_window(u32::MAX, tsval(at(65_530)));
        assert_eq!(segment.window(), MAX_WINDOW);
        assert_eq!(since_tsval(at(65_540), segment.tsval()), Span::from_millis(10));
        assert_eq!(since_tsval(at(65_530), segment.tsval()), Span::from_millis(1));
    }

    #[test]
    fn ect_1_and_ce_are_l4s_and_ect_0_is_not() {
        let packet = |flags| Segment { flags, ..Segment::default() };
        let seen = |flags| (packet(flags).is_ecn_capable(), packet(flags).is_l4s());
        assert_eq!(seen(Flags::PSH), (false, false));
        assert_eq!(seen(Flags::ECT_0), (true, false));
        assert_eq!(seen(Flags::ECT_1), (true, true));
        let mut marked = packet(Flags::ECT_0);
        marked.mark();
        assert_eq!((marked.flags, marked.is_l4s()), (Flags::CE, true));
    }

    /// cake_tcph_sack_compare and cake_tcph_may_drop, rule by rule.
    #[test]
    fn an_acknowledgement_supersedes_one_that_says_nothing_more() {
        let ack = |number, timestamp, blocks: &[(u32, u32)]| {
            let mut segment =
                Segment { number, timestamp, flags: Flags::ACK, ..Segment::default() };
            segment.set_blocks(blocks.iter().copied());
            segment
        };
        let later = ack(10, 7, &[(12, 14)]);
        for (earlier, expected, why) in [
            (ack(9, 7, &[]), true, "a smaller number"),
            (ack(10, 7, &[]), true, "the same number and no SACK"),
            (ack(10, 7, &[(12, 13)]), true, "a part of the SACK block"),
            (ack(10, 7, &[(12, 14)]), false, "a duplicate"),
            (ack(11, 7, &[]), false, "a larger number"),
            (ack(9, 7, &[(12, 15)]), false, "a SACK block that is not in the later one"),
            (ack(9, 7, &[(3, 4), (12, 13)]), false, "a D-SACK"),
            (ack(9, 8, &[]), false, "a later timestamp"),
            (Segment { flags: Flags::default(), ..ack(9, 7, &[]) }, false, "data"),
            (Segment { marked: 1, ..ack(9, 7, &[]) }, false, "a count of marks"),
            (Segment { flags: Flags::ACK.with(Flags::ECE), ..ack(9, 7, &[]) }, true, "ECE"),
        ] {
            assert_eq!(later.supersedes(&earlier), expected, "{why}");
        }
        let ecn = |flags| Segment { flags, ..Segment::default() }.ecn_echo();
        assert_ne!(ecn(Flags::ACK), ecn(Flags::ACK.with(Flags::ECE)));
    }

    /// r.cep starts at 5 = 0b101 (RFC 9768): AE is set for marks 0 to 2, not for 3 to 6.
    #[test]
    fn an_l4s_acknowledgement_with_ae_is_not_superseded() {
        let flags = Flags::ACK.with(Flags::ECT_1);
        let later = Segment { number: 9, flags, ..Segment::default() };
        let supersedes = |marked| later.supersedes(&Segment { marked, number: 1, ..later });
        let found: Vec<bool> = (0..8).map(supersedes).collect();
        assert_eq!(found, [false, false, false, true, true, true, true, false]);
    }

    #[test]
    fn a_segment_survives_encoding_in_fewer_bytes_than_its_headers() {
        let mut segment = Segment { number: 7, size: 52, flags: Flags::ACK, ..Segment::default() };
        segment.set_window(1000, 65_000);
        for (blocks, header) in [(0, 52), (1, 52 + 12), (3, 52 + 28)] {
            segment.set_blocks((0..blocks).map(|at| (70_000 + 10 * at, 70_005 + 10 * at)));
            let mut bytes = Vec::new();
            segment.encode(&mut bytes);
            assert!(bytes.len() <= header - 28, "{} bytes", bytes.len());
            assert_eq!(Segment::decode(&bytes, 52), Some(segment));
            assert_eq!(Segment::decode(&bytes[..14], 52), None);
        }
    }

    #[test]
    fn a_block_too_long_to_write_keeps_its_upper_end() {
        let mut segment = Segment::default();
        segment.set_blocks([(0, 100_000)]);
        assert_eq!(segment.blocks().collect::<Vec<_>>(), [(34_465, 100_000)]);
    }
}
