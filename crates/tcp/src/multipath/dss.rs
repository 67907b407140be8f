//! The data sequence signal, the DSS option (RFC 8684, section 3.3): the connection's data numbers on
//! subflows' segments, bytes.
//!
//! - Data carries its data sequence number of 64 bits in place of window and timestamp and of the second
//!   SACK block, which data does not need.
//! - An acknowledgement carries the lower 32 bits of the data acknowledgement in place of the third SACK
//!   block, and the connection's receive window in units of [`Stack::window_unit`]. On the wire, 40
//!   bytes of options hold timestamps, the DSS and one SACK block, or two if the data acknowledgement
//!   has 4 bytes ([`Scheduler::data_ack_len`]).

use crate::{Flags, Scheduler, Segment, Stack};

/// Bytes of the DSS option on a data segment: data acknowledgement of 4 bytes, data sequence number of 8,
/// subflow sequence number of 4, length and padding (RFC 8684, figure 9; `mptcp_established_options_dss`).
const DSS_LEN: u16 = 24;

/// The most bytes of a TCP header's options, those of timestamps, and those of SACK besides its blocks.
const MAX_OPTIONS_LEN: u16 = 40;
const TIMESTAMPS_LEN: u16 = 12;
const SACK_BASE_LEN: u16 = 4;
const SACK_BLOCK_LEN: u16 = 8;

/// The SACK block that an acknowledgement's data number takes the place of.
const DATA_ACK_BLOCK: usize = 2;

/// Bytes of the MP_JOIN option on a third acknowledgement (RFC 8684, figure 7).
const JOIN_ACK_LEN: u16 = 24;

impl Scheduler {
    /// Bytes of the DSS option on an acknowledgement: kind and flags, and a data acknowledgement of 8 bytes
    /// in Linux, as its data numbers have 8 (`use_64bit_ack`), of 4 in the MPTCP project's Linux.
    pub fn data_ack_len(self) -> u16 {
        if self == Scheduler::Default { 12 } else { 8 }
    }
}

impl Stack {
    /// The least MSS of a connection over several paths: the DSS option and a byte.
    pub const MIN_MULTIPATH_MSS: u16 = DSS_LEN + 1;

    /// The stack of a subflow: the same packet size, with the DSS option taken from the payload. Its
    /// algorithm still counts in packets of the whole MSS (Linux `mss_cache`), and so does the pacing
    /// rate: packets with less payload are sent a little faster.
    #[must_use]
    pub fn of_subflow(&self) -> Stack {
        let option = DSS_LEN.min(self.mss.saturating_sub(1));
        Stack { mss: self.mss - option, header: self.header + option, ..self.clone() }
    }

    /// The MSS of a subflow's stack without the DSS option.
    pub(crate) fn mss_cache(&self) -> u32 {
        u32::from(self.mss) + u32::from(DSS_LEN)
    }

    /// SACK blocks that fit beside timestamps and a DSS option of `data_ack_len` bytes
    /// (`tcp_established_options`).
    #[inline]
    fn max_sack_blocks(&self, data_ack_len: u16) -> usize {
        let has_timestamps = self.header > 40 + DSS_LEN;
        let timestamps = if has_timestamps { TIMESTAMPS_LEN } else { 0 };
        let left = MAX_OPTIONS_LEN - timestamps - data_ack_len - SACK_BASE_LEN;
        DATA_ACK_BLOCK.min((left / SACK_BLOCK_LEN).into())
    }

    /// Bytes on the wire of the third acknowledgement of a joining subflow's handshake.
    pub(crate) fn third_ack_size(&self) -> u16 {
        self.ack_size(0).saturating_sub(DSS_LEN) + JOIN_ACK_LEN
    }
}

/// The number with these lower 32 bits that is nearest to `near`.
#[inline]
fn widen(low: u32, near: u64) -> u64 {
    near.saturating_add_signed(i64::from(low.wrapping_sub(near as u32).cast_signed()))
}

impl Segment {
    /// Data: its data sequence number (DSN).
    #[inline]
    pub fn dsn(&self) -> u64 {
        let [low, high, _] = self.blocks[1];
        let upper = u32::from(low) | u32::from(high) << 16;
        u64::from(upper) << 32 | u64::from(self.window_and_tsval)
    }

    #[inline]
    pub(crate) fn set_dsn(&mut self, dsn: u64) {
        self.window_and_tsval = dsn as u32;
        self.blocks[1] = [(dsn >> 32) as u16, (dsn >> 48) as u16, 0];
    }

    /// Acknowledgement: the next DSN expected (Data ACK), as the nearest to `near`, and the window beyond
    /// it, bytes.
    #[inline]
    pub fn data_ack(&self, near: u64, stack: &Stack) -> (u64, u64) {
        let [low, high, _] = self.blocks[DATA_ACK_BLOCK];
        let next = widen(u32::from(low) | u32::from(high) << 16, near);
        (next, u64::from(self.window()) * stack.window_unit())
    }

    /// Adds a DSS option of `data_ack_len` bytes to an acknowledgement, with the `window` beyond `next`,
    /// bytes.
    #[inline]
    pub(crate) fn set_data_ack(
        &mut self,
        next: u64,
        window: u64,
        stack: &Stack,
        data_ack_len: u16,
    ) {
        let window = u32::try_from(window / stack.window_unit()).unwrap_or(u32::MAX);
        self.set_window(window, self.tsval());
        let most = stack.max_sack_blocks(data_ack_len);
        self.blocks[most..].fill([0; 3]);
        if !self.flags.contains(Flags::SYN) {
            let size = stack.ack_size(self.blocks().count());
            self.size = size.saturating_sub(DSS_LEN - data_ack_len);
        }
        self.blocks[DATA_ACK_BLOCK] = [next as u16, (next >> 16) as u16, 0];
    }

    /// The acknowledgement as the subflow sees it: no DSS, and a window of its own, packets.
    #[inline]
    pub(crate) fn without_dss(&self, window: u32) -> Segment {
        let mut plain = *self;
        plain.set_window(window, self.tsval());
        plain.blocks[DATA_ACK_BLOCK] = [0; 3];
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 40 bytes of options hold 12 of timestamps, 4 of SACK, and with 8 bytes of DSS two blocks. With 12, as in
    /// captures of Linux 6.18, they hold one.
    #[test]
    fn a_data_acknowledgement_leaves_space_for_one_or_two_sack_blocks() {
        let stack = Stack::linux().of_subflow();
        let window = 1_000 * stack.window_unit();
        for (scheduler, blocks, size) in [
            (Scheduler::Default, &[(5, 6)][..], 20 + 20 + 12 + 12 + 12),
            (Scheduler::LowestRtt, &[(5, 6), (8, 9)][..], 20 + 60),
        ] {
            let mut segment = Segment { size: stack.ack_size(3), ..Segment::default() };
            segment.set_blocks([(5, 6), (8, 9), (11, 12)]);
            segment.set_data_ack(5_000_000_000, window, &stack, scheduler.data_ack_len());
            assert_eq!(segment.data_ack(4_999_000_000, &stack), (5_000_000_000, window));
            assert_eq!((segment.size, segment.blocks().collect::<Vec<_>>()), (size, blocks.into()));
            assert_eq!(segment.without_dss(7).data_ack(0, &stack).0, 0);
            assert_eq!(segment.without_dss(7).window(), 7);
        }
    }

    #[test]
    fn a_data_sequence_number_has_64_bits() {
        let mut segment = Segment::default();
        segment.set_dsn(0x1234_5678_9abc_def0);
        assert_eq!((segment.dsn(), segment.tsecr()), (0x1234_5678_9abc_def0, 0));
    }

    /// IPv4, TCP, timestamps and DSS: `MPTCP_SUB_LEN_DSS_ALIGN` and `MPTCP_SUB_LEN_ACK_ALIGN`, and a capture.
    #[test]
    fn the_dss_option_of_an_acknowledgement_is_8_or_12_bytes() {
        let stack = Stack::linux().of_subflow();
        for (scheduler, option) in [(Scheduler::Default, 12), (Scheduler::Redundant, 8)] {
            let data_ack_len = scheduler.data_ack_len();
            let mut plain = Segment { size: stack.ack_size(0), ..Segment::default() };
            plain.set_data_ack(7, 500, &stack, data_ack_len);
            assert_eq!(plain.size, 20 + 20 + 12 + option);
            let (size, flags) = (stack.control_size(), Flags::SYN);
            let mut answer = Segment { size, flags, ..Segment::default() };
            answer.set_data_ack(0, 500, &stack, data_ack_len);
            assert_eq!(answer.size, size);
        }
    }

    #[test]
    fn packets_of_subflows_have_the_size_of_others() {
        let (plain, subflow) = (Stack::linux(), Stack::linux().of_subflow());
        assert_eq!(subflow.mss + subflow.header, plain.mss + plain.header);
    }
}
