//! One end of the control channel: what it writes is sent by TCP, and so is what it receives.

use dumbbell_cc::{Algorithm, ConnectionConfig};
use dumbbell_net::Endpoint;
use dumbbell_tcp::{Flags, Receiver, Segment, Sender, SenderConfig, Stack};
use dumbbell_units::Time;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Bytes of the headers of IPv4 and UDP, which the simulator adds to a payload.
const IP_UDP: u16 = 28;

/// The last byte of packets with data, and of others.
const DATA: u8 = 1;
const NO_DATA: u8 = 2;

/// An end: it sends one connection's data and receives the other's.
///
/// A packet's payload has the size of the TCP segment with its headers, less the headers that the
/// simulator adds. It holds the written bytes, the segment's fields, padding, the length of the fields,
/// and [`DATA`] or [`NO_DATA`].
pub(super) struct ControlStream {
    stack: Arc<Stack>,
    sender: Sender,
    receiver: Receiver,
    /// Writes from packet `first` on, which are not acknowledged.
    written: VecDeque<Vec<u8>>,
    first: u32,
    /// What has arrived out of order, from packet `next` on.
    arrived: BTreeMap<u32, Vec<u8>>,
    next: u32,
}

/// Whether a payload is of the control channel. In IP the protocol number says so; here the last byte
/// does, which is 0 in generated data.
pub(super) fn is_control(payload: &[u8]) -> bool {
    payload.last().is_some_and(|&last| last != 0)
}

impl ControlStream {
    pub(super) fn new(start: Time, seed: u64) -> ControlStream {
        let stack = Arc::new(Stack::linux());
        let config = ConnectionConfig::new(start, stack.mss.into()).with_seed(seed);
        let sender = Sender::with_empty_queue(SenderConfig {
            algorithm: Algorithm::parse("cubic", &config).expect("a built-in algorithm"),
            stack: Arc::clone(&stack),
            start,
            stop: None,
            bytes: None,
            app_rates: Vec::new(),
        });
        ControlStream {
            receiver: Receiver::new(Arc::clone(&stack)),
            sender,
            stack,
            written: VecDeque::new(),
            first: 0,
            arrived: BTreeMap::new(),
            next: 0,
        }
    }

    /// Writes bytes to the stream.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        for segment in bytes.chunks(self.stack.mss.into()) {
            self.written.push_back(segment.to_vec());
            self.sender.enqueue(1);
        }
    }

    /// Processes a packet of the peer's end.
    pub(super) fn handle(&mut self, now: Time, payload: &[u8]) {
        let Some((segment, bytes)) = decode(payload, self.stack.header + self.stack.mss) else {
            return;
        };
        if segment.is_ack() {
            self.sender.handle(now, &segment);
            let acked = self.sender.first_unacknowledged();
            while self.first < acked && self.written.pop_front().is_some() {
                self.first += 1;
            }
            return;
        }
        self.receiver.handle(now, &segment);
        if !segment.flags.contains(Flags::SYN) && segment.number >= self.next {
            self.arrived.insert(segment.number, bytes.to_vec());
        }
    }

    /// Takes the next bytes that have arrived in order.
    pub(super) fn read(&mut self) -> Option<Vec<u8>> {
        let bytes = self.arrived.remove(&self.next)?;
        self.next += 1;
        Some(bytes)
    }

    /// Appends the next packet to send; returns whether there is one.
    pub(super) fn poll(&mut self, now: Time, payload: &mut Vec<u8>) -> bool {
        if let Some(segment) = self.sender.poll(now) {
            let is_data = !segment.flags.contains(Flags::SYN);
            let at = segment.number.wrapping_sub(self.first) as usize;
            let bytes = self.written.get(at).filter(|_| is_data).map_or(&[][..], Vec::as_slice);
            let size = if is_data { self.stack.header + bytes.len() as u16 } else { segment.size };
            encode(&segment, bytes, size, payload);
            return true;
        }
        if let Some(ack) = self.receiver.poll(now) {
            encode(&ack, &[], ack.size, payload);
            return true;
        }
        false
    }

    pub(super) fn next_timeout(&self) -> Time {
        self.sender.next_timeout().min(self.receiver.next_timeout())
    }
}

fn encode(segment: &Segment, bytes: &[u8], size: u16, payload: &mut Vec<u8>) {
    payload.extend_from_slice(bytes);
    segment.encode(payload);
    let fields = payload.len() - bytes.len();
    payload.resize(usize::from(size - IP_UDP), 0);
    let end = payload.len();
    let kind = if bytes.is_empty() { NO_DATA } else { DATA };
    payload[end - 2..].copy_from_slice(&[fields as u8, kind]);
}

fn decode(payload: &[u8], size: u16) -> Option<(Segment, &[u8])> {
    let &[.., fields, kind] = payload else { return None };
    let header = usize::from(Stack::linux().header - IP_UDP);
    let bytes = if kind == DATA { payload.len().checked_sub(header)? } else { 0 };
    let segment = Segment::decode(payload.get(bytes..bytes + usize::from(fields))?, size)?;
    Some((segment, &payload[..bytes]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dumbbell_units::Span;

    /// Two ends 10 ms apart; every packet whose number is a multiple of `lost` is lost.
    fn exchange(written: &[u8], lost: usize) -> (Vec<u8>, Vec<usize>, Time) {
        let mut ends = [ControlStream::new(Time::ZERO, 1), ControlStream::new(Time::ZERO, 2)];
        ends[0].write(written);
        let mut wire: Vec<(Time, usize, Vec<u8>)> = Vec::new();
        let (mut now, mut read, mut sizes, mut count) = (Time::ZERO, Vec::new(), Vec::new(), 0);
        while read.len() < written.len() {
            for (at, end) in ends.iter_mut().enumerate() {
                let mut payload = Vec::new();
                while end.poll(now, &mut payload) {
                    assert!(is_control(&payload));
                    sizes.push(payload.len() + 28);
                    count += 1;
                    if count % lost != 0 {
                        wire.push((now + Span::from_millis(10), 1 - at, payload.clone()));
                    }
                    payload.clear();
                }
            }
            let timers = ends.iter().map(ControlStream::next_timeout).min();
            let arrival = wire.first().map(|(at, ..)| *at);
            now = timers.into_iter().chain(arrival).min().expect("a next event").max(now);
            assert!(now < Time::ZERO + Span::from_secs(100), "it stalls");
            while wire.first().is_some_and(|(at, ..)| *at <= now) {
                let (_, to, payload) = wire.remove(0);
                ends[to].handle(now, &payload);
            }
            while let Some(bytes) = ends[1].read() {
                read.extend(bytes);
            }
        }
        (read, sizes, now)
    }

    #[test]
    fn what_is_written_is_read_in_order_in_spite_of_losses() {
        let written: Vec<u8> = (0..100_000_u32).map(|at| (at * 7) as u8).collect();
        for lost in [usize::MAX, 5, 3] {
            assert_eq!(exchange(&written, lost).0, written, "1 of {lost} lost");
        }
    }

    #[test]
    fn packets_have_the_sizes_of_tcp_with_timestamps() {
        let (_, sizes, at) = exchange(&[7; 8], usize::MAX);
        // SYN and SYN-ACK of both directions, then 8 bytes after 52 of headers.
        assert_eq!((&sizes[..4], sizes[4]), (&[60; 4][..], 60));
        assert_eq!(at, Time::ZERO + Span::from_millis(30), "a round trip and a half");
    }
}
