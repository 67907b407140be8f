//! The receiver: `CSabulRecver` of `recver.cpp`.

use super::codec::{self, Control, OPTION};
use super::{SYN_INTERVAL, unwrap_seq, wrap_seq};
use crate::engine::{Channel, Engine, Stats};
use crate::inbox::{Inbox, ProtocolError};
use crate::options::SabulOptions;
use crate::received::{Arrival, Received};
use dumbbell_units::{Span, Time};
use std::collections::BTreeMap;

/// Interval of acknowledgements (`m_iACKInterval`).
const ACK_INTERVAL: Span = Span::from_millis(100);
/// Interval of loss reports beside those of new losses (`m_iERRInterval`).
const ERR_INTERVAL: Span = Span::from_millis(20);

/// The end that receives data and opens the control channel.
#[derive(Debug)]
pub struct Receiver {
    options: SabulOptions,
    inbox: Inbox,
    outbox: Vec<u8>,
    /// When the options were sent; `None` before.
    asked_at: Option<Time>,
    is_open: bool,
    /// Time after which a loss is reported again: one and a half round trips, at least 20 ms (`m_iRTT`).
    rtt: Span,
    received: Received,
    last_ack: u64,
    /// The highest packet that has arrived, plus one.
    end: u64,
    /// Missing packets, each with the time of its last report.
    losses: BTreeMap<u64, Time>,
    /// Datagrams since the last SYN.
    local_recv: u32,
    next_ack: Time,
    next_err: Time,
    next_syn: Time,
    /// What shorter packets that have arrived lack, bytes.
    shortfall: u64,
    stats: Stats,
}

impl Receiver {
    /// A receiver that opens the transfer when it is polled.
    pub fn new(options: SabulOptions) -> Receiver {
        Receiver {
            received: Received::new(u64::from(options.flag_size)),
            options,
            inbox: Inbox::default(),
            outbox: Vec::new(),
            asked_at: None,
            is_open: false,
            rtt: ERR_INTERVAL,
            last_ack: 0,
            end: 0,
            losses: BTreeMap::new(),
            local_recv: 0,
            next_ack: Time::MAX,
            next_err: Time::MAX,
            next_syn: Time::MAX,
            shortfall: 0,
            stats: Stats::default(),
        }
    }

    fn open(&mut self, now: Time) {
        let rtt = now.since(self.asked_at.unwrap_or(now));
        self.rtt = if rtt > ERR_INTERVAL { rtt * 3 / 2 } else { ERR_INTERVAL };
        self.is_open = true;
        (self.next_ack, self.next_err) = (now + ACK_INTERVAL, now);
        self.next_syn = now + SYN_INTERVAL;
    }

    fn on_data(&mut self, now: Time, seq: u32, length: usize) {
        let full = usize::from(self.options.packet_size) - codec::HEADER;
        let packet = unwrap_seq(seq, self.last_ack).filter(|_| length <= full);
        let Some(packet) = packet.filter(|&packet| packet >= self.last_ack) else { return };
        self.local_recv += 1;
        if packet - self.last_ack >= u64::from(self.options.flag_size) {
            self.send_ack();
            self.next_ack = now + ACK_INTERVAL;
            return;
        }
        if packet > self.end {
            self.on_gap(now, packet);
        }
        if self.received.insert(packet) == Arrival::New {
            self.stats.delivered += length as u64;
            self.shortfall += (full - length) as u64;
        }
        self.losses.remove(&packet);
        self.end = self.end.max(packet + 1);
    }

    /// Packets from `end` to `packet` are missing: reports as many as fit a message.
    fn on_gap(&mut self, now: Time, packet: u64) {
        self.losses.extend((self.end..packet).map(|lost| (lost, now)));
        self.stats.lost += packet - self.end;
        let max = codec::max_loss_length(self.options.packet_size);
        let lost = (self.end..packet).take(max).map(wrap_seq).collect();
        Control::Err(lost).encode(&mut self.outbox);
    }

    /// Acknowledges what is before the first missing packet, if it is new.
    fn send_ack(&mut self) {
        let first_lost = self.losses.first_key_value().map(|(&lost, _)| lost);
        let next = first_lost.unwrap_or(self.end);
        if next > self.last_ack {
            self.last_ack = next;
            Control::Ack(wrap_seq(next)).encode(&mut self.outbox);
        }
    }

    /// Reports losses whose last report is older than a round trip (`getLossArray`).
    fn send_err(&mut self, now: Time) {
        let max = codec::max_loss_length(self.options.packet_size);
        let rtt = self.rtt;
        let due = self.losses.iter_mut().filter(|(_, reported)| now.since(**reported) > rtt);
        let lost: Vec<_> = due
            .take(max)
            .map(|(&packet, reported)| {
                *reported = now;
                wrap_seq(packet)
            })
            .collect();
        if !lost.is_empty() {
            Control::Err(lost).encode(&mut self.outbox);
        }
    }

    fn run_timers(&mut self, now: Time) {
        if !self.is_open {
            return;
        }
        if now >= self.next_ack {
            self.send_ack();
            self.next_ack = now + ACK_INTERVAL;
        }
        if now >= self.next_err && !self.losses.is_empty() {
            self.send_err(now);
            self.next_err = now + ERR_INTERVAL;
        }
        if now >= self.next_syn {
            Control::Syn(self.local_recv).encode(&mut self.outbox);
            self.local_recv = 0;
            self.next_syn = now + SYN_INTERVAL;
        }
    }
}

impl Engine for Receiver {
    fn handle(&mut self, now: Time, channel: Channel, bytes: &[u8]) -> Result<(), ProtocolError> {
        if channel == Channel::Data {
            if let Some((seq, length)) = codec::decode_data(bytes) {
                self.on_data(now, seq, length);
            }
            return Ok(());
        }
        if !self.is_open {
            self.inbox.push(bytes);
            if self.inbox.take_array::<OPTION>().is_some() {
                self.open(now);
            }
        }
        Ok(())
    }

    fn poll(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Channel> {
        if self.asked_at.is_none() {
            self.asked_at = Some(now);
            let option = codec::encode_option(self.options.packet_size, self.options.flag_size);
            out.extend_from_slice(&option);
            return Some(Channel::Control);
        }
        self.run_timers(now);
        (!self.outbox.is_empty()).then(|| {
            out.append(&mut self.outbox);
            Channel::Control
        })
    }

    fn next_timeout(&self) -> Time {
        if self.asked_at.is_none() {
            return Time::ZERO;
        }
        let next_err = if self.losses.is_empty() { Time::MAX } else { self.next_err };
        self.next_ack.min(self.next_syn).min(next_err)
    }

    fn stats(&self) -> Stats {
        let full = u64::from(self.options.packet_size) - codec::HEADER as u64;
        let received = (self.received.next() * full).saturating_sub(self.shortfall);
        // The sender counts what it is told; this end's count is the same or newer.
        Stats { received, lost: 0, ..self.stats }
    }

    fn inspect(&self, _show: &mut dyn FnMut(&'static str, f64)) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(seq: u32) -> Vec<u8> {
        let mut datagram = seq.to_be_bytes().to_vec();
        datagram.resize(1472, 0);
        datagram
    }

    /// A receiver whose options took 40 ms to return.
    fn opened() -> Receiver {
        let mut receiver = Receiver::new(SabulOptions::default());
        assert_eq!(receiver.poll(Time::ZERO, &mut Vec::new()), Some(Channel::Control));
        let at = Time::ZERO + Span::from_millis(40);
        let option = codec::encode_option(1472, 25_600);
        receiver.handle(at, Channel::Control, &option).expect("the options");
        receiver
    }

    fn messages(receiver: &mut Receiver, at_ms: u64) -> Vec<Control> {
        let mut bytes = Vec::new();
        receiver.poll(Time::ZERO + Span::from_millis(at_ms), &mut bytes);
        Control::decode_all(&bytes, 366).expect("SABUL's messages")
    }

    #[test]
    fn a_gap_is_reported_at_once_and_again_after_one_and_a_half_rtt() {
        let mut receiver = opened();
        let at = Time::ZERO + Span::from_millis(41);
        for seq in [0, 3] {
            receiver.handle(at, Channel::Data, &data(seq)).expect("data");
        }
        let lost = Control::Err(vec![1, 2]);
        assert_eq!(messages(&mut receiver, 41), std::slice::from_ref(&lost));
        let mut later = Vec::new();
        while later.last() != Some(&lost) {
            let at_ms = receiver.next_timeout().as_nanos() / 1_000_000;
            assert!(at_ms <= 121, "41 ms + 60 ms, and the next of the reports every 20 ms");
            let due = messages(&mut receiver, at_ms);
            let reports = due.iter().filter(|message| matches!(message, Control::Err(_)));
            assert!(at_ms > 101 || reports.count() == 0, "{at_ms} ms");
            later.extend(due.into_iter().filter(|message| matches!(message, Control::Err(_))));
        }
    }

    #[test]
    fn an_acknowledgement_ends_before_the_first_missing_packet() {
        let mut receiver = opened();
        let at = Time::ZERO + Span::from_millis(41);
        for seq in [0, 1, 3] {
            receiver.handle(at, Channel::Data, &data(seq)).expect("data");
        }
        let acks = |messages: Vec<Control>| {
            let acks = messages.into_iter().filter(|message| matches!(message, Control::Ack(_)));
            acks.collect::<Vec<_>>()
        };
        assert_eq!(acks(messages(&mut receiver, 140)), [Control::Ack(2)]);
        receiver.handle(at, Channel::Data, &data(2)).expect("data");
        assert_eq!(acks(messages(&mut receiver, 240)), [Control::Ack(4)]);
        assert_eq!((receiver.stats().received, receiver.stats().delivered), (4 * 1468, 4 * 1468));
    }

    #[test]
    fn packets_beyond_the_flag_size_are_dropped() {
        let mut receiver = opened();
        receiver.handle(Time::ZERO, Channel::Data, &data(25_600)).expect("data");
        assert_eq!((receiver.stats().delivered, receiver.losses.len()), (0, 0));
        receiver.handle(Time::ZERO, Channel::Data, &data(25_599)).expect("data");
        assert_eq!((receiver.stats().delivered, receiver.losses.len()), (1468, 25_599));
    }
}
