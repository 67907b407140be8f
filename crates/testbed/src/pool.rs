//! Where the bytes of packets under way lie: buffers that are used again and again.

use crate::frame::{Frame, Piece, VNET};
use dumbbell_net::Packet;
use dumbbell_units::Time;

/// The longest frame: the largest IP packet behind a virtio-net header.
pub(crate) const MOST: usize = VNET + 65_535;
/// A frame of at most so many bytes is copied into a buffer of this size, as most of a large one
/// would lie idle.
const SMALL: usize = 2048;

/// A packet on the wire: a piece of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    frame: u32,
    piece: u16,
    size: u16,
    /// When it came to the emulator.
    pub(crate) sent: Time,
    /// What follows the headers of IP and, if it is that, TCP, bytes.
    pub(crate) payload: u16,
    capable: bool,
    marked: bool,
}

impl Packet for Wire {
    #[inline]
    fn size(&self) -> u32 {
        u32::from(self.size)
    }

    fn is_ecn_capable(&self) -> bool {
        self.capable
    }

    fn mark(&mut self) {
        self.marked = true;
    }
}

/// All frames that are under way.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    slots: Vec<Slot>,
    free: Vec<u32>,
    small: Vec<Box<[u8]>>,
    large: Vec<Box<[u8]>>,
}

#[derive(Debug, Default)]
struct Slot {
    frame: Frame,
    bytes: Box<[u8]>,
    /// Pieces that are still under way.
    left: u16,
}

impl Pool {
    /// A buffer for the longest frame.
    pub(crate) fn buffer(&mut self) -> Box<[u8]> {
        self.large.pop().unwrap_or_else(|| vec![0; MOST].into())
    }

    /// Keeps the first `len` bytes of a buffer, which hold a frame. Gives a buffer to read the next
    /// one into, and the pieces.
    pub(crate) fn keep(
        &mut self,
        now: Time,
        frame: Frame,
        mut buffer: Box<[u8]>,
        len: usize,
    ) -> (Box<[u8]>, impl Iterator<Item = Wire> + use<>) {
        let bytes = if len <= SMALL {
            let mut bytes = self.small.pop().unwrap_or_else(|| vec![0; SMALL].into());
            bytes[..len].copy_from_slice(&buffer[..len]);
            bytes
        } else {
            std::mem::replace(&mut buffer, self.buffer())
        };
        let pieces = frame.pieces();
        let number = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        self.slots[number as usize] = Slot { frame, bytes, left: pieces };
        let wire = move |piece| Wire {
            frame: number,
            piece,
            size: frame.size_of(piece),
            sent: now,
            payload: frame.payload_of(piece) as u16,
            capable: frame.ecn != 0,
            marked: false,
        };
        (buffer, (0..pieces).map(wire))
    }

    /// A packet with its bytes.
    pub(crate) fn piece(&self, wire: Wire) -> Piece<'_> {
        let slot = &self.slots[wire.frame as usize];
        let Wire { piece, marked, .. } = wire;
        Piece { frame: slot.frame, bytes: &slot.bytes, number: piece, marked }
    }

    /// Whether two packets can be [taken for one](Piece::continues_with).
    pub(crate) fn follows(&self, first: Wire, next: Wire) -> bool {
        let same = first.frame == next.frame
            && first.piece.wrapping_add(1) == next.piece
            && first.marked == next.marked;
        same || self.piece(first).continues_with(&self.piece(next))
    }

    /// The payload of packets that follow each other, in as few parts as it lies in.
    pub(crate) fn payload<'a>(
        &'a self,
        wires: impl Iterator<Item = Wire> + 'a,
    ) -> impl Iterator<Item = &'a [u8]> {
        let mut wires = wires.peekable();
        std::iter::from_fn(move || {
            let first = wires.next()?;
            let mut last = first.piece;
            while let Some(next) =
                wires.next_if(|next| next.frame == first.frame && next.piece == last + 1)
            {
                last = next.piece;
            }
            Some(self.piece(first).payload_to(last))
        })
    }

    /// A packet is no longer under way.
    pub(crate) fn release(&mut self, wire: Wire) {
        let slot = &mut self.slots[wire.frame as usize];
        slot.left -= 1;
        if slot.left > 0 {
            return;
        }
        let bytes = std::mem::take(&mut slot.bytes);
        let spare = if bytes.len() == SMALL { &mut self.small } else { &mut self.large };
        spare.push(bytes);
        self.free.push(wire.frame);
    }

    /// Frames that are under way.
    #[cfg(test)]
    pub(crate) fn under_way(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of bytes that are not TCP.
    fn keep(pool: &mut Pool, len: usize) -> Vec<Wire> {
        let mut buffer = pool.buffer();
        buffer[VNET] = 0x45;
        let frame = Frame::parse(&buffer[..len]).expect("IPv4");
        let (buffer, wires) = pool.keep(Time::ZERO, frame, buffer, len);
        pool.large.push(buffer);
        wires.collect()
    }

    #[test]
    fn buffers_are_used_again_when_the_last_piece_is_gone() {
        let mut pool = Pool::default();
        for _ in 0..100 {
            for len in [100, 9000] {
                let wires = keep(&mut pool, len);
                assert_eq!((wires.len(), pool.under_way()), (1, 1));
                wires.into_iter().for_each(|wire| pool.release(wire));
            }
        }
        assert_eq!((pool.small.len(), pool.large.len(), pool.under_way()), (1, 2, 0));
    }

    #[test]
    fn the_payload_of_packets_that_follow_each_other_is_in_as_few_parts_as_frames() {
        let mut pool = Pool::default();
        let frame_of = |pool: &mut Pool, sequence: u32, payload: usize| {
            let bytes = crate::frame::tests::frame(sequence, payload, 1448, 0x10);
            let mut buffer = pool.buffer();
            buffer[..bytes.len()].copy_from_slice(&bytes);
            let frame = Frame::parse(&bytes).expect("IPv4");
            let (buffer, wires) = pool.keep(Time::ZERO, frame, buffer, bytes.len());
            pool.large.push(buffer);
            wires.collect::<Vec<_>>()
        };
        let first = frame_of(&mut pool, 1000, 3 * 1448);
        let second = frame_of(&mut pool, 1000 + 3 * 1448, 2 * 1448);
        let all = [first.clone(), second.clone()].concat();
        assert!(all.windows(2).all(|pair| pool.follows(pair[0], pair[1])));
        let parts: Vec<usize> = pool.payload(all.iter().copied()).map(<[u8]>::len).collect();
        assert_eq!(parts, [3 * 1448, 2 * 1448]);
        assert!(!pool.follows(first[0], first[2]), "there is a gap");
        let gap = [first[0], first[2], second[0]];
        let parts: Vec<usize> = pool.payload(gap.into_iter()).map(<[u8]>::len).collect();
        assert_eq!(parts, [1448, 1448, 1448]);
    }
}
