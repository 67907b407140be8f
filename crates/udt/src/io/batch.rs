//! Batches of packets: GSO for sending, GRO and `recvmmsg` for receiving.

use super::settings::extra_header;
use crate::codec;
use crate::packet::{IP_UDP_HEADER, Packet};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use rustix::io::Errno;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};

/// Maximum UDP payload, bytes.
const MAX_UDP_PAYLOAD: usize = 65_507;
/// GRO batches per system call.
const MAX_GRO_BATCHES: usize = 16;

/// Packets to one address: control packets, sent singly, and data packets, sent as one GSO batch.
#[derive(Debug)]
pub(super) struct SendBatch {
    to: SocketAddr,
    /// Data packets, concatenated.
    data: Vec<u8>,
    /// Size of all data packets but the last, which may be shorter, bytes.
    segment: usize,
    segments: usize,
    max_segments: usize,
    /// The kernel has refused this batch as a whole.
    singly: bool,
    /// A last data packet that is longer than the others.
    oversized: Vec<u8>,
    /// Control packets, concatenated, and the end of each.
    control: Vec<u8>,
    control_ends: Vec<usize>,
    /// Control packets already sent, and bytes of `data`.
    sent_control: usize,
    sent_data: usize,
}

/// Why packets of a batch are not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unsent {
    /// The kernel's send buffer is full; what is left of the batch can be sent later.
    Blocked,
    /// The interface to the peer carries no packet of this size, headers included, bytes.
    TooLong(u32),
}

/// Whether another data packet fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    Available,
    Full,
}

impl SendBatch {
    /// An empty batch.
    pub(super) fn new() -> SendBatch {
        SendBatch {
            to: SocketAddr::from(([0, 0, 0, 0], 0)),
            data: Vec::with_capacity(MAX_UDP_PAYLOAD),
            segment: 0,
            segments: 0,
            max_segments: 1,
            singly: false,
            oversized: Vec::new(),
            control: Vec::new(),
            control_ends: Vec::new(),
            sent_control: 0,
            sent_data: 0,
        }
    }

    /// Clears the batch for packets to `to`, at most `max_segments` of them data packets.
    pub(super) fn begin(&mut self, to: SocketAddr, max_segments: usize) {
        (self.to, self.max_segments, self.singly) = (to, max_segments.max(1), false);
        self.data.clear();
        self.oversized.clear();
        self.control.clear();
        self.control_ends.clear();
        (self.segment, self.segments) = (0, 0);
        (self.sent_control, self.sent_data) = (0, 0);
    }

    /// Adds a data packet, appended by `write`. Returns whether another full one fits. Packet pairs are
    /// not split, because their packets must leave without a gap.
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

    /// Adds a control packet, appended by `write`. `goes_on`: it extends the last one instead.
    pub(super) fn push_control(&mut self, goes_on: bool, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.control);
        if goes_on {
            self.control_ends.pop();
        }
        self.control_ends.push(self.control.len());
    }

    /// Length of the last control packet, bytes.
    pub(super) fn last_control(&self) -> usize {
        match self.control_ends[..] {
            [] => 0,
            [only] => only,
            [.., before, last] => last - before,
        }
    }

    /// Sends all remaining packets.
    ///
    /// # Errors
    /// [`Unsent`]. Packets with other errors, and control packets that are too long, count as lost.
    pub(super) fn send(&mut self, udp: &UdpSocket, state: &UdpSocketState) -> Result<(), Unsent> {
        let to = self.to;
        let send =
            |bytes: &[u8], segment| state.try_send(udp.into(), &transmit(to, bytes, segment));
        while self.sent_control < self.control_ends.len() {
            let from = self.sent_control.checked_sub(1).map_or(0, |at| self.control_ends[at]);
            let sent = send(&self.control[from..self.control_ends[self.sent_control]], None);
            if let Err(Unsent::Blocked) = self.check(sent) {
                return Err(Unsent::Blocked);
            }
            self.sent_control += 1;
        }
        while self.sent_data < self.data.len() {
            let rest = &self.data[self.sent_data..];
            let length = if self.singly { rest.len().min(self.segment) } else { rest.len() };
            let segment = Some(self.segment).filter(|&segment| length > segment);
            let sent = send(&rest[..length], segment);
            if segment.is_some() && sent.as_ref().is_err_and(is_refused_as_a_whole) {
                self.singly = true;
                continue;
            }
            self.check(sent)?;
            self.sent_data += length;
        }
        if !self.oversized.is_empty() {
            self.check(send(&self.oversized, None))?;
            self.oversized.clear();
        }
        Ok(())
    }

    fn check(&self, sent: io::Result<()>) -> Result<(), Unsent> {
        let Err(error) = sent else { return Ok(()) };
        if error.kind() == io::ErrorKind::WouldBlock {
            return Err(Unsent::Blocked);
        }
        if error.raw_os_error() == Some(Errno::MSGSIZE.raw_os_error()) {
            let longest = self.segment.max(self.oversized.len()) as u32;
            return Err(Unsent::TooLong(
                longest + IP_UDP_HEADER + u32::from(extra_header(self.to.ip())),
            ));
        }
        Ok(())
    }
}

fn transmit(to: SocketAddr, contents: &[u8], segment_size: Option<usize>) -> Transmit<'_> {
    Transmit { destination: to, ecn: None, contents, segment_size, src_ip: None }
}

/// Whether the kernel or the interface does not segment the batch: drivers without the checksum of UDP, and
/// IPsec, say so only when something is sent (udp_send_skb in Linux).
fn is_refused_as_a_whole(error: &io::Error) -> bool {
    let refusals = [Errno::IO, Errno::INVAL].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|error| refusals.contains(&error))
}

/// Sends one packet, unless the kernel's send buffer is full.
pub(super) fn send_one(
    udp: &UdpSocket,
    state: &UdpSocketState,
    (packet, socket, to): (&Packet, u32, SocketAddr),
) {
    let mut bytes = Vec::with_capacity(64);
    codec::encode(packet, socket, to.ip(), &[], &mut bytes);
    // A packet that cannot be sent counts as lost.
    let _ = state.try_send(udp.into(), &transmit(to, &bytes, None));
}

/// Receive buffer of several GRO batches.
pub(super) struct ReceiveBatch {
    buffer: Vec<u8>,
    batch_size: usize,
    metas: [RecvMeta; MAX_GRO_BATCHES],
}

/// Packets from one address that the kernel or network card has coalesced.
pub(super) struct GroBatch<'a> {
    pub(super) from: SocketAddr,
    pub(super) meta: &'a RecvMeta,
    bytes: &'a [u8],
}

impl GroBatch<'_> {
    /// The UDP payloads.
    pub(super) fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks(self.meta.stride.max(1))
    }
}

impl ReceiveBatch {
    pub(super) fn new() -> ReceiveBatch {
        // The maximum of a UDP payload, coalesced or not.
        let batch_size = 1 << 16;
        ReceiveBatch {
            buffer: vec![0; batch_size * MAX_GRO_BATCHES],
            batch_size,
            metas: [RecvMeta::default(); MAX_GRO_BATCHES],
        }
    }

    /// Reads up to `MAX_GRO_BATCHES` batches. Returns their number.
    ///
    /// # Errors
    /// `WouldBlock` if there are none.
    pub(super) fn receive(&mut self, udp: &UdpSocket, state: &UdpSocketState) -> io::Result<usize> {
        let mut pieces = self.buffer.chunks_exact_mut(self.batch_size);
        let mut slices: [IoSliceMut<'_>; MAX_GRO_BATCHES] =
            std::array::from_fn(|_| IoSliceMut::new(pieces.next().unwrap_or_default()));
        state.recv(udp.into(), &mut slices, &mut self.metas)
    }

    /// The first `count` batches.
    pub(super) fn batches(&self, count: usize) -> impl Iterator<Item = GroBatch<'_>> {
        let read = self.metas[..count].iter().zip(self.buffer.chunks_exact(self.batch_size));
        read.map(|(meta, bytes)| GroBatch { from: meta.addr, meta, bytes: &bytes[..meta.len] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_the_kernel_refuses_is_sent_packet_by_packet() -> io::Result<()> {
        let [from, to] = [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0"));
        let (from, to) = (from?, to?);
        to.set_read_timeout(Some(std::time::Duration::from_secs(10)))?;
        let state = UdpSocketState::new((&from).into())?;
        let mut batch = SendBatch::new();
        // More than any kernel's UDP_MAX_SEGMENTS: 64, and 128 since Linux 6.9.
        batch.begin(to.local_addr()?, 200);
        for number in 0..200u8 {
            batch.push_data(false, |out| out.extend([number; 100]));
        }
        assert_eq!(batch.send(&from, &state), Ok(()));
        let mut bytes = [0; 200];
        for number in 0..200u8 {
            assert_eq!(to.recv(&mut bytes)?, 100);
            assert_eq!(bytes[..100], [number; 100]);
        }
        Ok(())
    }
}
