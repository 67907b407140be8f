//! Sequence numbers of 31 bits and message numbers of 29 bits, which wrap.
//!
//! On the wire numbers wrap; inside the engine packets are counted from 0 in 64 bits, and
//! [`Numbering`] is where the two meet.

/// A packet's sequence number on the wire: 0 to 2^31 - 1, then 0 again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seq(u32);

impl Seq {
    /// The greatest sequence number.
    pub const MAX: Seq = Seq(0x7fff_ffff);

    /// The lower 31 bits of `number`.
    #[inline]
    pub const fn new(number: u32) -> Seq {
        Seq(number & Seq::MAX.0)
    }

    /// The number.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The sequence number so many packets later.
    #[inline]
    #[must_use]
    pub const fn plus(self, packets: u64) -> Seq {
        Seq::new(self.0.wrapping_add(packets as u32))
    }

    /// How many packets this one is after `earlier`, from -2^30 to 2^30 - 1.
    #[inline]
    pub const fn since(self, earlier: Seq) -> i32 {
        // The difference modulo 2^31, its sign bit moved to where an i32 has it.
        ((self.0.wrapping_sub(earlier.0) << 1) as i32) >> 1
    }

    /// Whether this is the first packet of a pair, whose second follows without a gap.
    #[inline]
    pub const fn is_pair_first(self) -> bool {
        self.0 & 15 == 0
    }

    /// Whether this is the second packet of a pair.
    #[inline]
    pub const fn is_pair_second(self) -> bool {
        self.0 & 15 == 1
    }
}

/// The packets of one direction, counted from 0, and their sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceSpace {
    isn: Seq,
}

impl SequenceSpace {
    /// Packet 0 has the sequence number `isn`.
    pub const fn new(isn: Seq) -> SequenceSpace {
        SequenceSpace { isn }
    }

    /// The initial sequence number.
    pub const fn isn(self) -> Seq {
        self.isn
    }

    /// The sequence number of a packet.
    #[inline]
    pub const fn seq(self, packet: u64) -> Seq {
        self.isn.plus(packet)
    }

    /// The packet of that sequence number that is nearest to packet `near`; `None` if it would lie
    /// before the first.
    #[inline]
    pub const fn index_near(self, seq: Seq, near: u64) -> Option<u64> {
        near.checked_add_signed(seq.since(self.seq(near)) as i64)
    }
}

/// A message's number: 1 to 2^29 - 1, then 1 again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MessageNumber(u32);

impl MessageNumber {
    const MAX: u32 = (1 << 29) - 1;

    /// The first message's number.
    pub const FIRST: MessageNumber = MessageNumber(1);

    /// The lower 29 bits of `number`.
    #[inline]
    pub const fn new(number: u32) -> MessageNumber {
        MessageNumber(number & MessageNumber::MAX)
    }

    /// The number of the message that has so many before it.
    #[inline]
    pub const fn nth(messages: u64) -> MessageNumber {
        MessageNumber((messages % MessageNumber::MAX as u64) as u32 + 1)
    }

    /// The next message's number.
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
    fn the_greatest_sequence_number_is_followed_by_zero() {
        assert_eq!(Seq::MAX.plus(1), Seq::new(0));
        assert_eq!(Seq::new(0).since(Seq::MAX), 1);
        assert_eq!(Seq::MAX.since(Seq::new(0)), -1);
    }

    #[test]
    fn the_greatest_message_number_is_followed_by_one() {
        assert_eq!(MessageNumber::new((1 << 29) - 1).next(), MessageNumber::FIRST);
        assert_eq!(MessageNumber::nth((1 << 29) - 1), MessageNumber::FIRST);
        assert_eq!(MessageNumber::nth(0), MessageNumber::FIRST);
    }

    /// UDT4's own arithmetic (`CSeqNo::seqcmp`): below the threshold numbers are compared as they
    /// are, beyond it they have wrapped.
    fn seqcmp(a: u32, b: u32) -> i64 {
        let (a, b) = (i64::from(a), i64::from(b));
        if (a - b).abs() < 0x3fff_ffff { a - b } else { b - a }
    }

    proptest! {
        #[test]
        fn of_two_sequence_numbers_the_same_one_is_later_as_in_udt4(
            a in 0..=Seq::MAX.get(), b in 0..=Seq::MAX.get(),
        ) {
            let distance = Seq::new(a).since(Seq::new(b));
            // At half of the number space, and only there, it is a matter of taste.
            prop_assume!(distance.unsigned_abs() < 0x3fff_ffff);
            prop_assert_eq!(i64::from(distance).signum(), seqcmp(a, b).signum());
        }

        #[test]
        fn a_packet_is_found_by_its_sequence_number(
            isn in 0..=Seq::MAX.get(), packet in 0..u64::from(u32::MAX) * 8, off in -1_000_000i64..1_000_000,
        ) {
            let numbering = SequenceSpace::new(Seq::new(isn));
            let near = packet.saturating_add_signed(off);
            prop_assert_eq!(numbering.index_near(numbering.seq(packet), near), Some(packet));
        }
    }
}
