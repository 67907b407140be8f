//! Which packets have arrived, as a bitmap that begins with the first missing one.

use std::collections::VecDeque;

/// What an arrival is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It is the first of this packet.
    New,
    /// The packet had arrived before.
    Duplicate,
    /// The packet is too far beyond the first missing one to be recorded.
    Beyond,
}

/// The packets that have arrived, numbered from 0. The bitmap has at most `limit` bits.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// The first packet that has not arrived.
    next: u64,
    /// The packet of the first bit, a multiple of 64.
    origin: u64,
    words: VecDeque<u64>,
    limit: u64,
}

impl Received {
    pub(crate) fn new(limit: u64) -> Received {
        Received { next: 0, origin: 0, words: VecDeque::new(), limit }
    }

    /// The first packet that has not arrived.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    fn bit(&self, packet: u64) -> (usize, u64) {
        let offset = packet - self.origin;
        ((offset / 64) as usize, 1 << (offset % 64))
    }

    /// Whether a packet has arrived.
    #[inline]
    pub(crate) fn contains(&self, packet: u64) -> bool {
        if packet < self.next {
            return true;
        }
        let (word, bit) = self.bit(packet);
        self.words.get(word).is_some_and(|bits| bits & bit != 0)
    }

    /// Records an arrival.
    #[inline]
    pub(crate) fn insert(&mut self, packet: u64) -> Arrival {
        if packet >= self.next.saturating_add(self.limit) {
            return Arrival::Beyond;
        }
        if self.contains(packet) {
            return Arrival::Duplicate;
        }
        let (word, bit) = self.bit(packet);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= bit;
        if packet == self.next {
            self.advance();
        }
        Arrival::New
    }

    /// Advances over the packets that have arrived.
    fn advance(&mut self) {
        while let Some(bits) = self.words.front() {
            let missing = (!bits & (u64::MAX << (self.next - self.origin))).trailing_zeros();
            if missing < 64 {
                self.next = self.origin + u64::from(missing);
                return;
            }
            self.words.pop_front();
            self.origin += 64;
            self.next = self.origin;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_packet_beyond_the_limit_is_not_recorded() {
        let mut received = Received::new(100);
        assert_eq!(received.insert(100), Arrival::Beyond);
        assert_eq!(received.insert(99), Arrival::New);
        assert!(received.contains(99) && !received.contains(98) && !received.contains(5000));
        assert_eq!(received.insert(u64::MAX), Arrival::Beyond);
    }

    proptest! {
        #[test]
        fn the_bitmap_equals_a_set_of_numbers(packets in prop::collection::vec(0u64..300, 0..600)) {
            let (mut received, mut set) = (Received::new(1000), BTreeSet::new());
            for packet in packets {
                let is_new = received.insert(packet) == Arrival::New;
                prop_assert_eq!(is_new, set.insert(packet));
                let next = (0..).find(|number| !set.contains(number));
                prop_assert_eq!(Some(received.next()), next);
                prop_assert!(received.words.len() <= 6);
            }
            for packet in 0..300 {
                prop_assert_eq!(received.contains(packet), set.contains(&packet));
            }
        }
    }
}
