//! The data sequence signal (RFC 8684, section 3.3): what subflows' segments tell of the data of
//! the whole connection.
//!
//! Data carries its place in the connection's data where a plain segment has nothing to tell (the
//! receive window). An acknowledgement carries the data acknowledged to where the receive window,
//! which belongs to the connection, counts from; it takes the room of the third SACK block, as on
//! the wire, where 40 bytes of options hold timestamps, the signal and two blocks.

use crate::{Flags, Segment, Stack};

/// Bytes of the option on a data segment: data acknowledgement, data and subflow sequence number
/// of 4 bytes each, length and padding (RFC 8684, figure 9).
const DSS_LEN: u16 = 20;

/// Bytes of the option on an acknowledgement: 4 of data acknowledgement, and what says so.
const DATA_ACK_LEN: u16 = 8;

/// SACK blocks that fit beside it.
const MAX_SACK_BLOCKS: usize = 2;

impl Stack {
    /// The stack of a subflow: packets stay as large, and the option takes room in them.
    #[must_use]
    pub fn of_subflow(&self) -> Stack {
        let option = DSS_LEN.min(self.mss - 1);
        Stack { mss: self.mss - option, header: self.header + option, ..self.clone() }
    }
}

impl Segment {
    /// Data: its place in the connection's data, in packets.
    #[inline]
    pub(crate) fn dsn(&self) -> u32 {
        self.window
    }

    #[inline]
    pub(crate) fn set_dsn(&mut self, number: u32) {
        self.window = number;
    }

    /// Acknowledgement: the next packet of the connection's data that is expected; `window` counts
    /// from there.
    #[inline]
    pub(crate) fn data_ack(&self) -> u32 {
        let [low, high, _] = self.blocks[MAX_SACK_BLOCKS];
        u32::from(low) | u32::from(high) << 16
    }

    /// Puts the signal on an acknowledgement.
    #[inline]
    pub(crate) fn set_data_ack(&mut self, next: u32, window: u32, stack: &Stack) {
        self.window = window;
        let blocks = self.blocks().count().min(MAX_SACK_BLOCKS);
        if !self.flags.contains(Flags::SYN) {
            self.size = stack.ack_size(blocks).saturating_sub(DSS_LEN - DATA_ACK_LEN);
        }
        self.blocks[MAX_SACK_BLOCKS] = [next as u16, (next >> 16) as u16, 0];
    }

    /// The acknowledgement without the signal: no window limits a subflow by itself.
    #[inline]
    pub(crate) fn without_dss(&self) -> Segment {
        let mut plain = *self;
        plain.window = u32::MAX;
        plain.blocks[MAX_SACK_BLOCKS] = [0; 3];
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_acknowledgement_leaves_room_for_two_sack_blocks() {
        let stack = Stack::linux().of_subflow();
        let mut segment = Segment { size: stack.ack_size(3), ..Segment::default() };
        segment.set_blocks([(5, 6), (8, 9), (11, 12)]);
        segment.set_data_ack(70_000, 500, &stack);
        assert_eq!((segment.data_ack(), segment.window), (70_000, 500));
        assert_eq!(segment.size, stack.ack_size(2) - 12);
        assert_eq!(segment.blocks().collect::<Vec<_>>(), [(5, 6), (8, 9)]);
        assert_eq!(segment.without_dss().data_ack(), 0);
    }

    /// IPv4, TCP, timestamps and a signal of 8 bytes, which with two SACK blocks fill the header:
    /// MPTCP_SUB_LEN_DSS_ALIGN and MPTCP_SUB_LEN_ACK_ALIGN.
    #[test]
    fn an_acknowledgement_s_signal_is_8_bytes() {
        let stack = Stack::linux().of_subflow();
        let mut plain = Segment { size: stack.ack_size(0), ..Segment::default() };
        plain.set_data_ack(7, 500, &stack);
        assert_eq!(plain.size, 20 + 20 + 12 + 8);
        let mut full = Segment { size: stack.ack_size(3), ..Segment::default() };
        full.set_blocks([(5, 6), (8, 9), (11, 12)]);
        full.set_data_ack(7, 500, &stack);
        assert_eq!(full.size, 20 + 60);
        let syn = Segment { size: stack.control_size(), flags: Flags::SYN, ..Segment::default() };
        let mut answer = syn;
        answer.set_data_ack(0, 500, &stack);
        assert_eq!(answer.size, syn.size);
    }

    #[test]
    fn packets_of_subflows_are_as_large_as_others() {
        let (plain, subflow) = (Stack::linux(), Stack::linux().of_subflow());
        assert_eq!(subflow.mss + subflow.header, plain.mss + plain.header);
    }
}
