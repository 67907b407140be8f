//! What leaves in one go, and what arrived in one go.
//!
//! Data packets of one size are handed to the kernel as one piece (GSO), and come from it as one
//! (GRO); several such pieces are read by one call.

use crate::codec;
use crate::packet::Packet;
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};

/// The greatest UDP payload.
const MAX_UDP_PAYLOAD: usize = 65_507;
/// Pieces that are read by one call.
const MAX_GRO_BATCHES: usize = 16;

/// Packets that leave to one address.
#[derive(Debug)]
pub(super) struct SendBatch {
    to: SocketAddr,
    /// Data packets, one after the other.
    data: Vec<u8>,
    /// The size of all of them but the last, which may be shorter.
    segment: usize,
    segments: usize,
    max_segments: usize,
    /// A packet that turned out to be longer than the ones before it.
    oversized: Vec<u8>,
    /// Control packets, and where each ends.
    control: Vec<u8>,
    control_ends: Vec<usize>,
    /// What of both was sent already.
    sent: usize,
}

/// Whether another packet fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    Available,
    Full,
}

impl SendBatch {
    /// Nothing, of which data may have up to `most` packets.
    pub(super) fn new(most: usize) -> SendBatch {
        SendBatch {
            to: SocketAddr::from(([0, 0, 0, 0], 0)),
            data: Vec::with_capacity(MAX_UDP_PAYLOAD),
            segment: 0,
            segments: 0,
            max_segments: most.max(1),
            oversized: Vec::new(),
            control: Vec::new(),
            control_ends: Vec::new(),
            sent: 0,
        }
    }

    /// Begins anew with packets for `to`.
    pub(super) fn begin(&mut self, to: SocketAddr) {
        self.to = to;
        self.data.clear();
        self.oversized.clear();
        self.control.clear();
        self.control_ends.clear();
        (self.segment, self.segments, self.sent) = (0, 0, 0);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments == 0 && self.control_ends.is_empty()
    }

    /// Adds a data packet, which `write` appends; gives whether one as long as the first fits too.
    /// A pair is never parted, since the second half shall follow the first without a gap.
    pub(super) fn push_data(
        &mut self,
        begins_pair: bool,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Space {
        let before = self.data.len();
        write(&mut self.data);
        let length = self.data.len() - before;
        self.segments += 1;
        if self.segments == 1 {
            self.segment = length;
        }
        if length > self.segment {
            self.oversized.extend_from_slice(&self.data[before..]);
            self.data.truncate(before);
            self.segments -= 1;
            return Space::Full;
        }
        let left = self
            .max_segments
            .min(MAX_UDP_PAYLOAD / self.segment.max(1))
            .saturating_sub(self.segments);
        let full = left == 0 || left == 1 && !begins_pair;
        if length < self.segment || full { Space::Full } else { Space::Available }
    }

    /// Adds a control packet; `write` gets all that was written before, to go on with the last one
    /// or begin another.
    pub(super) fn push_control(&mut self, goes_on: bool, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.control);
        if goes_on {
            self.control_ends.pop();
        }
        self.control_ends.push(self.control.len());
    }

    /// The length of the last control packet.
    pub(super) fn last_control(&self) -> usize {
        match self.control_ends[..] {
            [] => 0,
            [only] => only,
            [.., before, last] => last - before,
        }
    }

    /// Sends what was not sent yet; `WouldBlock` if the kernel takes no more now. What it refuses
    /// for other reasons is as good as lost on the way.
    pub(super) fn send(&mut self, udp: &UdpSocket, state: &UdpSocketState) -> io::Result<()> {
        while self.sent < self.control_ends.len() {
            let from = self.sent.checked_sub(1).map_or(0, |before| self.control_ends[before]);
            let contents = &self.control[from..self.control_ends[self.sent]];
            would_block(state.try_send(udp.into(), &transmit(self.to, contents, None)))?;
            self.sent += 1;
        }
        if self.segments > 0 && self.sent == self.control_ends.len() {
            let segment = Some(self.segment).filter(|_| self.segments > 1);
            would_block(state.try_send(udp.into(), &transmit(self.to, &self.data, segment)))?;
            self.sent += 1;
        }
        if !self.oversized.is_empty() && self.sent == self.control_ends.len() + 1 {
            would_block(state.try_send(udp.into(), &transmit(self.to, &self.oversized, None)))?;
            self.sent += 1;
        }
        Ok(())
    }
}

fn transmit(to: SocketAddr, contents: &[u8], segment_size: Option<usize>) -> Transmit<'_> {
    Transmit { destination: to, ecn: None, contents, segment_size, src_ip: None }
}

fn would_block(sent: io::Result<()>) -> io::Result<()> {
    match sent {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
        _ => Ok(()),
    }
}

/// Sends one packet, if the kernel takes it now.
pub(super) fn send_one(
    udp: &UdpSocket,
    state: &UdpSocketState,
    (packet, socket, to): (&Packet, u32, SocketAddr),
) {
    let mut bytes = Vec::with_capacity(64);
    codec::encode(packet, socket, to.ip(), &[], &mut bytes);
    // What does not leave is as good as lost on the way.
    let _ = state.try_send(udp.into(), &transmit(to, &bytes, None));
}

/// Where pieces are read into.
pub(super) struct ReceiveBatch {
    buffer: Vec<u8>,
    batch_size: usize,
    metas: [RecvMeta; MAX_GRO_BATCHES],
}

/// Packets that arrived as one piece.
pub(super) struct GroBatch<'a> {
    pub(super) from: SocketAddr,
    pub(super) meta: &'a RecvMeta,
    bytes: &'a [u8],
}

impl GroBatch<'_> {
    /// The packets.
    pub(super) fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks(self.meta.stride.max(1))
    }
}

impl ReceiveBatch {
    pub(super) fn new() -> ReceiveBatch {
        // A piece that is not put together is no greater than an MSS can be.
        let batch_size = 1 << 16;
        ReceiveBatch {
            buffer: vec![0; batch_size * MAX_GRO_BATCHES],
            batch_size,
            metas: [RecvMeta::default(); MAX_GRO_BATCHES],
        }
    }

    /// Reads what there is, up to a number of pieces; `WouldBlock` if there is nothing.
    pub(super) fn receive(&mut self, udp: &UdpSocket, state: &UdpSocketState) -> io::Result<usize> {
        let mut pieces = self.buffer.chunks_exact_mut(self.batch_size);
        let mut slices: [IoSliceMut<'_>; MAX_GRO_BATCHES] =
            std::array::from_fn(|_| IoSliceMut::new(pieces.next().unwrap_or_default()));
        state.recv(udp.into(), &mut slices, &mut self.metas)
    }

    /// The pieces that were read.
    pub(super) fn batches(&self, count: usize) -> impl Iterator<Item = GroBatch<'_>> {
        let read = self.metas[..count].iter().zip(self.buffer.chunks_exact(self.batch_size));
        read.map(|(meta, bytes)| GroBatch { from: meta.addr, meta, bytes: &bytes[..meta.len] })
    }
}
