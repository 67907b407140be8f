//! RBUDP's messages.
//!
//! A datagram is a sequence number and data. Over TCP: a byte when the receiver is ready; a block's
//! length in 8 bytes; `_endOfUdp`, the round and "EEE"; the error bitmap. QUANTA has host byte order in
//! the datagrams and the receiver finds out which; here all is in network byte order.

use crate::inbox::{ProtocolError, word};

/// Bytes of the header of a datagram (`_rbudpHeader`).
pub const HEADER: usize = 4;
/// Bytes of `_endOfUdp`: an `int` and three characters, padded.
pub const END_OF_UDP: usize = 8;

/// `_endOfUdp`: the end of a blast.
pub fn encode_end(round: u32) -> [u8; END_OF_UDP] {
    let [a, b, c, d] = round.to_be_bytes();
    [a, b, c, d, b'E', b'E', b'E', 0]
}

/// The round of an `_endOfUdp`.
///
/// # Errors
/// If it does not end with "EEE".
pub fn decode_end(bytes: &[u8; END_OF_UDP]) -> Result<u32, ProtocolError> {
    match &bytes[4..] {
        b"EEE\0" => Ok(word(bytes, 0)),
        _ => Err(ProtocolError::Field { field: "the end of a blast", value: u64::from(bytes[4]) }),
    }
}

/// The sequence number of a datagram, and the length of its data; `None` if it has no data.
pub fn decode_data(datagram: &[u8]) -> Option<(u32, usize)> {
    let length = datagram.len().checked_sub(HEADER).filter(|&length| length > 0)?;
    Some((word(datagram, 0), length))
}

/// Bytes of the error bitmap of so many packets (`sizeofErrorBitmap`).
pub fn bitmap_len(packets: u64) -> usize {
    (packets / 8 + 2) as usize
}

/// The error bitmap: a byte that is 1 if nothing is missing, then a bit for each packet that is set if
/// it has arrived, the lowest bit first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitmap {
    bytes: Vec<u8>,
    packets: u64,
    missing: u64,
}

impl Bitmap {
    /// The bitmap of so many packets, of which none has arrived. The bits after the last packet are
    /// set (`initErrorBitmap`).
    pub fn new(packets: u64) -> Bitmap {
        let mut bytes = vec![0; bitmap_len(packets)];
        let last = 1 + (packets / 8) as usize;
        bytes[last] = u8::MAX << (packets % 8);
        Bitmap { bytes, packets, missing: packets }
    }

    /// Records an arrival; `false` if there is no such packet or it had arrived before.
    pub fn insert(&mut self, packet: u64) -> bool {
        if packet >= self.packets || self.contains(packet) {
            return false;
        }
        self.bytes[1 + (packet / 8) as usize] |= 1 << (packet % 8);
        self.missing -= 1;
        self.bytes[0] = u8::from(self.missing == 0);
        true
    }

    /// Whether a packet has arrived.
    pub fn contains(&self, packet: u64) -> bool {
        self.bytes[1 + (packet / 8) as usize] & 1 << (packet % 8) != 0
    }

    /// Packets that have not arrived.
    pub fn missing(&self) -> u64 {
        self.missing
    }

    /// The bitmap as it is sent.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The packets that a bitmap of `packets` reports missing, in order; none if its first byte is 1.
pub fn missing_packets(bitmap: &[u8], packets: u64) -> impl Iterator<Item = u64> + '_ {
    let is_done = bitmap.first() == Some(&1);
    let packets = if is_done { 0 } else { packets };
    let has = |packet: u64| {
        let bits = bitmap.get(1 + (packet / 8) as usize).copied().unwrap_or(0);
        bits & 1 << (packet % 8) != 0
    };
    (0..packets).filter(move |&packet| !has(packet))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_bitmap_has_two_bytes_more_than_an_eighth_of_the_packets() {
        // sizeofErrorBitmap = totalNumberOfPackets / 8 + 2
        let lens = [1, 7, 8, 9, 68_871].map(|packets| Bitmap::new(packets).as_bytes().len());
        assert_eq!(lens, [2, 2, 3, 3, 8610]);
    }

    proptest! {
        #[test]
        fn a_bitmap_reports_exactly_what_is_missing(
            packets in 1u64..200, arrived in prop::collection::btree_set(0u64..200, 0..200),
        ) {
            let mut bitmap = Bitmap::new(packets);
            for &packet in &arrived {
                prop_assert_eq!(bitmap.insert(packet), packet < packets);
            }
            let missing: BTreeSet<_> = missing_packets(bitmap.as_bytes(), packets).collect();
            let expected: BTreeSet<_> = (0..packets).filter(|n| !arrived.contains(n)).collect();
            prop_assert_eq!(bitmap.missing(), expected.len() as u64);
            prop_assert_eq!(missing, expected);
        }
    }
}
