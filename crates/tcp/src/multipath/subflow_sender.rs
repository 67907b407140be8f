//! A subflow's sender, and the connection's data on it.

use super::scheduler::Scheduler;
use super::stream::Payload;
use crate::Sender;
use dumbbell_cc::filters::LossIntervals;
use dumbbell_units::{Span, Time};
use std::collections::VecDeque;

/// A subflow's sender and the connection's state of it.
pub(super) struct SubflowSender {
    pub(super) sender: Sender,
    /// What the packets enqueued carry, from the subflow's first unacknowledged one on.
    packets: VecDeque<Payload>,
    /// The subflow's sequence number of the first of them.
    first_seq: u32,
    /// Data after them that does not fill a packet.
    tail: Option<Payload>,
    /// Bytes in `packets` and `tail`.
    queued: u64,
    /// One past the last packet that is not full (`snd_sml`).
    short_end: u32,
    /// Bytes by which the packets delivered are shorter than full ones.
    shortfall: u64,
    mss: u16,
    pub(super) timeouts: u32,
    /// Its packets were reinjected, and it got no new data since.
    pub(super) reinjected: bool,
    episodes: u32,
    pub(super) losses: LossIntervals,
    /// The first byte that the redundant scheduler has not sent here.
    pub(super) redundant_next: u64,
    /// When another subflow was last penalised on its behalf.
    pub(super) penalised_at: Time,
}

impl SubflowSender {
    /// Of a connection with this scheduler, which begins at `start`.
    pub(super) fn new(mut sender: Sender, scheduler: Scheduler, start: Time) -> SubflowSender {
        sender.set_last_skb_grows(scheduler == Scheduler::Default);
        SubflowSender {
            mss: sender.stack().mss,
            sender,
            packets: VecDeque::new(),
            first_seq: 0,
            tail: None,
            queued: 0,
            short_end: 0,
            shortfall: 0,
            timeouts: 0,
            reinjected: false,
            episodes: 0,
            losses: LossIntervals::default(),
            redundant_next: 0,
            penalised_at: start,
        }
    }

    /// Enqueues a packet.
    #[inline]
    pub(super) fn enqueue(&mut self, payload: Payload) {
        self.queued += u64::from(payload.len);
        self.packets.push_back(payload);
        self.sender.enqueue(1);
        if payload.len < self.mss {
            self.short_end = self.sender.sequence_range().1;
        }
    }

    /// Writes data from `dsn` up to `end`, in full packets; the last one is pushed (`tcp_push`). What is
    /// left over waits in the tail, and is filled up by data that follows it in the connection's order
    /// (`mptcp_sendmsg_frag`). Other data makes it a short packet.
    pub(super) fn write(&mut self, dsn: u64, end: u64) {
        let mut next = dsn;
        if let Some(tail) = self.tail.take() {
            self.queued -= u64::from(tail.len);
            if tail.end() == dsn {
                next = tail.dsn;
            } else {
                self.enqueue(tail);
            }
        }
        while end - next >= u64::from(self.mss) {
            let is_pushed = end - next == u64::from(self.mss);
            self.enqueue(Payload { dsn: next, len: self.mss, is_pushed });
            next += u64::from(self.mss);
        }
        if next < end {
            let tail = Payload { dsn: next, len: (end - next) as u16, is_pushed: true };
            self.queued += u64::from(tail.len);
            self.tail = Some(tail);
        }
    }

    /// Makes the tail a packet if all before it was sent and no other short packet is in flight (Nagle's
    /// algorithm as in Linux: `tcp_nagle_check`, `tcp_minshall_check`). Returns whether it did.
    pub(super) fn push_tail(&mut self) -> bool {
        let waits = self.short_end > self.sender.sequence_range().0
            || self.sender.unsent() > 0
            || self.sender.path().in_flight >= self.sender.cwnd_and_ssthresh().0;
        let tail = self.tail.take_if(|_| !waits);
        if let Some(tail) = tail {
            self.queued -= u64::from(tail.len);
            self.enqueue(tail);
        }
        tail.is_some()
    }

    /// Bytes enqueued and not acknowledged.
    pub(super) fn queued(&self) -> u64 {
        self.queued
    }

    /// Bytes by which the packets delivered are shorter than full ones.
    pub(super) fn shortfall(&self) -> u64 {
        self.shortfall
    }

    /// What the packet with this number of the subflow carries.
    #[inline]
    pub(super) fn payload(&self, number: u32) -> Payload {
        self.packets[(number - self.first_seq) as usize]
    }

    /// The payloads that are not acknowledged.
    pub(super) fn payloads(&self) -> impl Iterator<Item = Payload> + '_ {
        self.packets.iter().copied()
    }

    /// Removes acknowledged packets and records losses.
    #[inline]
    pub(super) fn on_acknowledged(&mut self) {
        let (una, _) = self.sender.sequence_range();
        let acked = una.wrapping_sub(self.first_seq) as usize;
        for payload in self.packets.drain(..acked.min(self.packets.len())) {
            self.queued -= u64::from(payload.len);
            self.shortfall += u64::from(self.mss - payload.len);
        }
        self.first_seq = una;
        let episodes = self.sender.episodes();
        if episodes != self.episodes {
            self.episodes = episodes;
            self.losses.on_loss(self.sender.delivered());
        }
    }

    pub(super) fn srtt(&self) -> Span {
        self.sender.path().srtt.unwrap_or(Span::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flags, Segment, SenderConfig, Stack};
    use dumbbell_net::Endpoint;

    /// A subflow that is connected, at time 0.
    fn connected() -> SubflowSender {
        let stack = Stack::linux().of_subflow();
        let mut sender = Sender::subflow(SenderConfig::of(stack, "reno"));
        sender.poll(Time::ZERO).expect("a SYN");
        let flags = Flags::SYN.with(Flags::ACK);
        let mut reply = Segment { flags, ..Segment::default() };
        reply.set_data_ack(0, 1 << 20, sender.stack(), Scheduler::Default.data_ack_len());
        sender.handle(Time::ZERO, &reply.without_dss(1000));
        SubflowSender::new(sender, Scheduler::Default, Time::ZERO)
    }

    /// The lengths of the packets that are sent now.
    fn sent(subflow: &mut SubflowSender) -> Vec<u16> {
        let mut lengths = Vec::new();
        loop {
            match subflow.sender.poll(Time::ZERO) {
                Some(segment) => lengths.push(subflow.payload(segment.number).len),
                None if subflow.push_tail() => {}
                None => return lengths,
            }
        }
    }

    #[test]
    fn data_that_follows_fills_the_tail() {
        let mut subflow = connected();
        subflow.write(0, 1_000);
        subflow.write(1_000, 3_000);
        assert_eq!((sent(&mut subflow), subflow.queued()), (vec![1_424, 1_424, 152], 3_000));
    }

    /// In a capture of Linux 6.18 a packet of 22 bytes leaves just before data of another place.
    #[test]
    fn data_of_another_place_makes_the_tail_a_short_packet() {
        let mut subflow = connected();
        subflow.write(0, 22);
        subflow.write(10_000, 12_848);
        assert_eq!(sent(&mut subflow), [22, 1_424, 1_424]);
    }

    /// tcp_minshall_check.
    #[test]
    fn a_tail_waits_while_a_short_packet_is_in_flight() {
        let mut subflow = connected();
        subflow.write(0, 1_000);
        assert_eq!(sent(&mut subflow), [1_000]);
        subflow.write(10_000, 12_000);
        assert_eq!(sent(&mut subflow), [1_424]);
        let mut ack = Segment { number: 1, flags: Flags::ACK, ..Segment::default() };
        ack.set_data_ack(1_000, 1 << 20, subflow.sender.stack(), Scheduler::Default.data_ack_len());
        subflow.sender.handle(Time::ZERO, &ack.without_dss(1000));
        subflow.on_acknowledged();
        assert_eq!((sent(&mut subflow), subflow.queued()), (vec![576], 2_000));
    }
}
