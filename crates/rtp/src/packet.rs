//! RTP packets (RFC 3550, section 5.1) with the payload of our source.

use dumbbell_units::Time;

/// Bytes of the header of an RTP packet, and of the descriptor at the start of its payload.
pub const RTP_HEADER: u16 = 12 + DESCRIPTOR;
/// Bytes of the descriptor: the frame, the packet's place in it, and the number of its packets.
const DESCRIPTOR: u16 = 8;
/// Frequency of the clock of RTP timestamps of video (RFC 3551, section 5).
const CLOCK: u128 = 90_000;
/// First byte: version 2, no padding, extension or contributing source.
const VERSION: u8 = 0x80;
/// A dynamic payload type (RFC 3551, section 6).
const PAYLOAD_TYPE: u8 = 96;
/// The source of the media.
pub(crate) const SSRC: u32 = 1;

/// An RTP packet without the media itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpPacket {
    /// Sequence number, modulo 2^16.
    pub number: u16,
    /// When the frame was captured, in ticks of 90 kHz, modulo 2^32.
    pub timestamp: u32,
    /// Whether it is the last packet of its frame.
    pub marker: bool,
    /// Number of its frame.
    pub frame: u32,
    /// Its place in the frame, from 0.
    pub place: u16,
    /// Packets of the frame.
    pub packets: u16,
}

impl RtpPacket {
    /// The RTP timestamp of a time.
    pub fn timestamp(at: Time) -> u32 {
        (u128::from(at.as_nanos()) * CLOCK / 1_000_000_000) as u32
    }

    /// Appends the packet to `bytes`, with media up to `size` bytes in all.
    pub fn write(&self, size: usize, bytes: &mut Vec<u8>) {
        bytes.extend([VERSION, PAYLOAD_TYPE | u8::from(self.marker) << 7]);
        bytes.extend(self.number.to_be_bytes());
        bytes.extend(self.timestamp.to_be_bytes());
        bytes.extend(SSRC.to_be_bytes());
        bytes.extend(self.frame.to_be_bytes());
        bytes.extend(self.place.to_be_bytes());
        bytes.extend(self.packets.to_be_bytes());
        bytes.resize(size.max(bytes.len()), 0);
    }

    /// Reads a packet; `None` if it is not one of ours.
    pub fn read(bytes: &[u8]) -> Option<RtpPacket> {
        let word = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let [first, fourth, fifth] = [word(0)?, word(12)?, word(16)?];
        let is_ours = first >> 24 == u32::from(VERSION)
            && (first >> 16) as u8 & 0x7f == PAYLOAD_TYPE
            && word(8)? == SSRC;
        is_ours.then_some(RtpPacket {
            number: first as u16,
            timestamp: word(4)?,
            marker: first >> 23 & 1 == 1,
            frame: fourth,
            place: (fifth >> 16) as u16,
            packets: fifth as u16,
        })
    }
}

/// The number nearest to `last` that is `number` modulo 2^16 (RFC 3550, appendix A.1).
pub(crate) fn extended(number: u16, last: u64) -> u64 {
    let ahead = number.wrapping_sub(last as u16) as i16;
    last.saturating_add_signed(i64::from(ahead))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_that_of_rfc_3550() {
        let packet = RtpPacket {
            number: 0x1234,
            timestamp: RtpPacket::timestamp(Time::from_nanos(2_000_000_000)),
            marker: true,
            frame: 7,
            place: 2,
            packets: 3,
        };
        let mut bytes = Vec::new();
        packet.write(1200, &mut bytes);
        // V=2, P=X=CC=0; M=1, PT=96; the number; 2 s at 90 kHz; the SSRC.
        let expected = [0x80, 0xe0, 0x12, 0x34, 0x00, 0x02, 0xbf, 0x20, 0, 0, 0, 1];
        assert_eq!((&bytes[..12], bytes.len()), (&expected[..], 1200));
        assert_eq!(RtpPacket::read(&bytes), Some(packet));
        assert_eq!(RtpPacket::read(&bytes[..15]), None);
    }

    #[test]
    fn numbers_are_extended_over_the_wrap() {
        assert_eq!(extended(2, 65_534), 65_538);
        assert_eq!(extended(65_535, 65_538), 65_535);
        assert_eq!(extended(0, 0), 0);
    }
}
