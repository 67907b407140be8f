//! Reusable buffers for the frames whose segments are in the network.

use crate::frame::{Frame, Segment, VNET_HEADER};
use dumbbell_net::Packet;
use dumbbell_units::Time;

/// Maximum size of a frame: a virtio-net header and the largest IP packet, bytes.
pub(crate) const MAX_FRAME: usize = VNET_HEADER + 65_535;
/// Size of small buffers, bytes. Frames that fit are copied into one, because most of a large
/// buffer would be unused.
const SMALL_BUFFER: usize = 2048;

/// A packet on the packet: a segment of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketRef {
    frame: u32,
    segment: u16,
    size: u16,
    /// Time at which the emulator read it from its device.
    pub(crate) entered: Time,
    /// Bytes after the IP header, and after the TCP header if it has one.
    pub(crate) payload: u16,
    /// The ECN field of its IP header.
    ecn: u8,
    ce_marked: bool,
}

impl Packet for PacketRef {
    #[inline]
    fn size(&self) -> u32 {
        u32::from(self.size)
    }

    fn is_ecn_capable(&self) -> bool {
        self.ecn != 0
    }

    fn is_l4s(&self) -> bool {
        // ECT(1) is 0b01, CE 0b11.
        self.ecn & 1 != 0
    }

    fn mark(&mut self) {
        self.ce_marked = true;
    }

    fn is_marked(&self) -> bool {
        self.ce_marked || self.ecn == 3
    }
}

/// The frames with segments in the network, and unused buffers.
#[derive(Debug, Default)]
pub(crate) struct FramePool {
    slots: Vec<Slot>,
    free: Vec<u32>,
    small: Vec<Box<[u8]>>,
    large: Vec<Box<[u8]>>,
}

#[derive(Debug, Default)]
struct Slot {
    frame: Frame,
    bytes: Box<[u8]>,
    /// Segments that are still in the network.
    segments_left: u16,
}

impl FramePool {
    /// An unused buffer that holds any frame.
    pub(crate) fn buffer(&mut self) -> Box<[u8]> {
        self.large.pop().unwrap_or_else(|| vec![0; MAX_FRAME].into())
    }

    /// Stores the frame in the first `len` bytes of `buffer`, read at `now`. Returns a buffer for
    /// the next frame, and the segments.
    pub(crate) fn insert(
        &mut self,
        now: Time,
        frame: Frame,
        mut buffer: Box<[u8]>,
        len: usize,
    ) -> (Box<[u8]>, impl Iterator<Item = PacketRef> + use<>) {
        let bytes = if len <= SMALL_BUFFER {
            let mut bytes = self.small.pop().unwrap_or_else(|| vec![0; SMALL_BUFFER].into());
            bytes[..len].copy_from_slice(&buffer[..len]);
            bytes
        } else {
            std::mem::replace(&mut buffer, self.buffer())
        };
        let segments = frame.segments();
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        self.slots[number as usize] = Slot { frame, bytes, segments_left: segments };
        let packet = move |segment| PacketRef {
            frame: number,
            segment,
            size: frame.segment_size(segment),
            entered: now,
            payload: frame.segment_payload(segment) as u16,
            ecn: frame.ecn,
            ce_marked: false,
        };
        (buffer, (0..segments).map(packet))
    }

    /// The segment that a packet refers to.
    pub(crate) fn segment(&self, packet: PacketRef) -> Segment<'_> {
        let slot = &self.slots[packet.frame as usize];
        let PacketRef { segment, ce_marked, .. } = packet;
        Segment { frame: slot.frame, bytes: &slot.bytes, number: segment, ce_marked }
    }

    /// Whether two packets can be [coalesced](Segment::coalesces_with).
    pub(crate) fn coalesces(&self, first: PacketRef, next: PacketRef) -> bool {
        let same = first.frame == next.frame
            && first.segment.wrapping_add(1) == next.segment
            && first.ce_marked == next.ce_marked;
        same || self.segment(first).coalesces_with(&self.segment(next))
    }

    /// The payload of consecutive packets, as one slice per run of segments of the same frame.
    pub(crate) fn payload<'a>(
        &'a self,
        packets: impl Iterator<Item = PacketRef> + 'a,
    ) -> impl Iterator<Item = &'a [u8]> {
        let mut packets = packets.peekable();
        std::iter::from_fn(move || {
            let first = packets.next()?;
            let mut last = first.segment;
            while let Some(next) =
                packets.next_if(|next| next.frame == first.frame && next.segment == last + 1)
            {
                last = next.segment;
            }
            Some(self.segment(first).payload_through(last))
        })
    }

    /// Removes a packet that left the network, and its frame with the last segment.
    pub(crate) fn release(&mut self, packet: PacketRef) {
        let slot = &mut self.slots[packet.frame as usize];
        slot.segments_left -= 1;
        if slot.segments_left > 0 {
            return;
        }
        let bytes = std::mem::take(&mut slot.bytes);
        let spare = if bytes.len() == SMALL_BUFFER { &mut self.small } else { &mut self.large };
        spare.push(bytes);
        self.free.push(packet.frame);
    }

    /// Number of frames with segments in the network.
    #[cfg(test)]
    pub(crate) fn frames_in_use(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Inserts an IPv4 frame that is not TCP.
    fn keep(pool: &mut FramePool, len: usize) -> Vec<PacketRef> {
        let mut buffer = pool.buffer();
        buffer[VNET_HEADER] = 0x45;
        let frame = Frame::parse(&buffer[..len]).expect("IPv4");
        let (buffer, packets) = pool.insert(Time::ZERO, frame, buffer, len);
        pool.large.push(buffer);
        packets.collect()
    }

    #[test]
    fn buffers_are_reused_after_the_last_segment_is_released() {
        let mut pool = FramePool::default();
        for _ in 0..100 {
            for len in [100, 9000] {
                let packets = keep(&mut pool, len);
                assert_eq!((packets.len(), pool.frames_in_use()), (1, 1));
                packets.into_iter().for_each(|packet| pool.release(packet));
            }
        }
        assert_eq!((pool.small.len(), pool.large.len(), pool.frames_in_use()), (1, 2, 0));
    }

    #[test]
    fn payload_is_one_slice_per_run_of_segments_of_a_frame() {
        let mut pool = FramePool::default();
        let frame_of = |pool: &mut FramePool, sequence: u32, payload: usize| {
            let bytes = crate::frame::tests::frame(sequence, payload, 1448, 0x10);
            let mut buffer = pool.buffer();
            buffer[..bytes.len()].copy_from_slice(&bytes);
            let frame = Frame::parse(&bytes).expect("IPv4");
            let (buffer, packets) = pool.insert(Time::ZERO, frame, buffer, bytes.len());
            pool.large.push(buffer);
            packets.collect::<Vec<_>>()
        };
        let first = frame_of(&mut pool, 1000, 3 * 1448);
        let second = frame_of(&mut pool, 1000 + 3 * 1448, 2 * 1448);
        let all = [first.clone(), second.clone()].concat();
        assert!(all.windows(2).all(|pair| pool.coalesces(pair[0], pair[1])));
        let slices: Vec<usize> = pool.payload(all.iter().copied()).map(<[u8]>::len).collect();
        assert_eq!(slices, [3 * 1448, 2 * 1448]);
        assert!(!pool.coalesces(first[0], first[2]), "there is a gap");
        let gap = [first[0], first[2], second[0]];
        let slices: Vec<usize> = pool.payload(gap.into_iter()).map(<[u8]>::len).collect();
        assert_eq!(slices, [1448, 1448, 1448]);
    }
}
