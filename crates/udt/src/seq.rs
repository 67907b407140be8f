//! Sequence numbers (31 bits) and message numbers (29 bits).
//!
//! On the wire both wrap. Inside the engine packets have 64-bit indexes from 0, and
//! [`SequenceSpace`] converts between the two.

/// Packet sequence number on the wire: 0 to 2^31 - 1, then 0 again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seq(u32);

impl Seq {
    /// Maximum sequence number.
    pub const MAX: Seq = Seq(0x7fff_ffff);

    /// Sequence number from the lower 31 bits of `number`.
    #[inline]
    pub const fn new(number: u32) -> Seq {
        Seq(number & Seq::MAX.0)
    }

    /// The number.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The sequence number `packets` packets later.
    #[inline]
    #[must_use]
    pub const fn plus(self, packets: u64) -> Seq {
        Seq::new(self.0.wrapping_add(packets as u32))
    }

    /// Signed distance from `earlier`, -2^30 to 2^30 - 1 packets.
    #[inline]
    pub const fn since(self, earlier: Seq) -> i32 {
        // The difference modulo 2^31, sign-extended from 31 bits.
        ((self.0.wrapping_sub(earlier.0) << 1) as i32) >> 1
    }

    /// Whether this is the first packet of a packet pair, whose second follows without a gap.
    #[inline]
    pub const fn is_pair_first(self) -> bool {
        self.0 & 15 == 0
    }

    /// Whether this is the second packet of a packet pair.
    #[inline]
    pub const fn is_pair_second(self) -> bool {
        self.0 & 15 == 1
    }
}

/// Sequence space of one direction: converts packet indexes from 0 to sequence numbers and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SequenceSpace {
    isn: Seq,
}

impl SequenceSpace {
    /// The space in which packet 0 has the sequence number `isn`.
    pub const fn new(isn: Seq) -> SequenceSpace {
        SequenceSpace { isn }
    }

    /// Sequence number of a packet.
    #[inline]
    pub const fn seq(self, packet: u64) -> Seq {
        self.isn.plus(packet)
    }

    /// Index of the packet with sequence number `seq` nearest to packet `near`; `None` if it would be
    /// negative.
    #[inline]
    pub const fn index_near(self, seq: Seq, near: u64) -> Option<u64> {
        near.checked_add_signed(seq.since(self.seq(near)) as i64)
    }
}

/// Message number: 1 to 2^29 - 1, then 1 again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MessageNumber(u32);

impl MessageNumber {
    const MAX: u32 = (1 << 29) - 1;

    /// Number of the first message.
    pub const FIRST: MessageNumber = MessageNumber(1);

    /// Message number from the lower 29 bits of `number`.
    #[inline]
    pub const fn new(number: u32) -> MessageNumber {
        MessageNumber(number & MessageNumber::MAX)
    }

    /// Number of the message after `messages` others.
    #[inline]
    pub const fn nth(messages: u64) -> MessageNumber {
        MessageNumber((messages % MessageNumber::MAX as u64) as u32 + 1)
    }

    /// Number of the next message.
    #[inline]
    #[must_use]
    pub const fn next(self) -> MessageNumber {
        if self.0 >= MessageNumber::MAX { MessageNumber(1) } else { MessageNumber(self.0 + 1) }
    }

    /// The number.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_maximum_sequence_number_is_followed_by_zero() {
        assert_eq!(Seq::MAX.plus(1), Seq::new(0));
        assert_eq!(Seq::new(0).since(Seq::MAX), 1);
        assert_eq!(Seq::MAX.since(Seq::new(0)), -1);
    }

    #[test]
    fn the_maximum_message_number_is_followed_by_one() {
        assert_eq!(MessageNumber::new((1 << 29) - 1).next(), MessageNumber::FIRST);
        assert_eq!(MessageNumber::nth((1 << 29) - 1), MessageNumber::FIRST);
        assert_eq!(MessageNumber::nth(0), MessageNumber::FIRST);
    }

    /// UDT4's `CSeqNo::seqcmp`: a difference beyond the threshold means that one number has wrapped.
    fn seqcmp(a: u32, b: u32) -> i64 {
        let (a, b) = (i64::from(a), i64::from(b));
        if (a - b).abs() < 0x3fff_ffff { a - b } else { b - a }
    }

    proptest! {
        #[test]
        fn sequence_numbers_compare_as_in_udt4(
            a in 0..=Seq::MAX.get(), b in 0..=Seq::MAX.get(),
        ) {
            let distance = Seq::new(a).since(Seq::new(b));
            // At half of the sequence space the order is unspecified.
            prop_assume!(distance.unsigned_abs() < 0x3fff_ffff);
            prop_assert_eq!(i64::from(distance).signum(), seqcmp(a, b).signum());
        }

        #[test]
        fn a_packet_is_found_by_its_sequence_number(
            isn in 0..=Seq::MAX.get(), packet in 0..u64::from(u32::MAX) * 8, off in -1_000_000i64..1_000_000,
        ) {
            let sequence_space = SequenceSpace::new(Seq::new(isn));
            let near = packet.saturating_add_signed(off);
            prop_assert_eq!(sequence_space.index_near(sequence_space.seq(packet), near), Some(packet));
        }
    }
}
