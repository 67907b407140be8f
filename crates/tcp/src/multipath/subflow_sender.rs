//! A subflow's sender, and the connection's data on it.

use super::scheduler::Scheduler;
use super::stream::Payload;
use crate::{Flags, Segment, Sender};
use dumbbell_cc::filters::LossIntervals;
use dumbbell_net::Endpoint;
use dumbbell_units::{Span, Time};
use std::collections::VecDeque;

/// Packets of a subflow that Linux's scheduler wrote into one buffer with one mapping (`sk_buff`,
/// `mptcp_ext`).
#[derive(Clone, Copy, Debug)]
struct Skb {
    start: u32,
    end: u32,
}

/// A subflow's sender and the connection's state of it.
pub(super) struct SubflowSender {
    pub(super) sender: Sender,
    /// What the packets enqueued carry, from the subflow's first unacknowledged one on.
    packets: VecDeque<Payload>,
    /// The subflow's sequence number of the first of them.
    first_seq: u32,
    /// Bytes in `packets`.
    queued: u64,
    /// Whether Linux's scheduler writes.
    is_written: bool,
    /// The buffers that are not all sent.
    skbs: VecDeque<Skb>,
    /// The largest window that the peer has advertised, bytes.
    max_window: u64,
    /// One past the last packet sent that is not full (`snd_sml`).
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
    pub(super) fn new(sender: Sender, scheduler: Scheduler, start: Time) -> SubflowSender {
        SubflowSender {
            mss: sender.stack().mss,
            sender,
            packets: VecDeque::new(),
            first_seq: 0,
            queued: 0,
            is_written: scheduler == Scheduler::Default,
            skbs: VecDeque::new(),
            max_window: 0,
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
    }

    /// Writes data from `dsn` up to `end` into buffers; its last packet is pushed (`tcp_push`). Data that
    /// follows that of the last buffer joins it, unless a part of that was sent, which freezes its mapping
    /// (`mptcp_skb_can_collapse_to`). Other data begins a buffer, so that the one before may end with a
    /// short packet.
    pub(super) fn write(&mut self, dsn: u64, end: u64) {
        let (mut next, next_seq, most) = (dsn, self.sender.next_seq(), self.size_goal());
        let is_whole = self.skbs.back().is_some_and(|skb| skb.start >= next_seq);
        let last = self.packets.back_mut().filter(|last| is_whole && last.end() == dsn);
        let mut joins = last.is_some();
        if let Some(last) = last {
            let more = u64::from(self.mss - last.len).min(end - dsn);
            (last.len, last.is_pushed) = (last.len + more as u16, false);
            self.queued += more;
            next += more;
        }
        while next < end {
            let len = u64::from(self.mss).min(end - next) as u16;
            self.enqueue(Payload { dsn: next, len, is_pushed: false });
            next += u64::from(len);
            let (_, end) = self.sender.sequence_range();
            match self.skbs.back_mut() {
                Some(skb) if joins && skb.end - skb.start < most => skb.end = end,
                _ => self.skbs.push_back(Skb { start: end - 1, end }),
            }
            joins = true;
        }
        if let Some(last) = self.packets.back_mut() {
            last.is_pushed = true;
        }
    }

    /// Packets of a full buffer: 64 kB, or half of the largest window (`tcp_xmit_size_goal`).
    fn size_goal(&self) -> u32 {
        let half = self.max_window / 2 / u64::from(self.mss);
        half.clamp(1, self.sender.skb().into()) as u32
    }

    /// The peer has advertised this window, bytes.
    #[inline]
    pub(super) fn on_window(&mut self, window: u64) {
        self.max_window = self.max_window.max(window);
    }

    /// The next packet that leaves at `now`.
    #[inline]
    pub(super) fn poll(&mut self, now: Time) -> Option<Segment> {
        if self.is_written {
            self.offer_skb();
        }
        let segment = self.sender.poll(now)?;
        let is_new = !segment.is_control() && !segment.flags.contains(Flags::RETRANSMISSION);
        if is_new && self.payload(segment.number).len < self.mss {
            self.short_end = segment.number + 1;
        }
        Some(segment)
    }

    /// Tells the sender which buffer is sent next. A short packet at the end of the queue waits while another
    /// one is in flight (Nagle's algorithm as in Linux: `tcp_nagle_check`, `tcp_minshall_check`).
    #[inline]
    fn offer_skb(&mut self) {
        let (next_seq, (una, queue_end)) = (self.sender.next_seq(), self.sender.sequence_range());
        while self.skbs.front().is_some_and(|skb| skb.end <= next_seq) {
            self.skbs.pop_front();
        }
        let end = self.skbs.front().map_or(queue_end, |skb| skb.end);
        let is_short = self.packets.back().is_some_and(|last| last.len < self.mss);
        let waits = is_short && self.short_end > una && end == queue_end && end > next_seq;
        self.sender.set_skb(end, waits);
    }

    /// How many buffers are not all sent.
    pub(super) fn unsent_skbs(&self) -> u64 {
        self.skbs.len() as u64
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
        let mut subflow = SubflowSender::new(sender, Scheduler::Default, Time::ZERO);
        subflow.on_window(1 << 20);
        subflow
    }

    /// The lengths of the packets that are sent now.
    fn sent(subflow: &mut SubflowSender) -> Vec<u16> {
        let mut lengths = Vec::new();
        while let Some(segment) = subflow.poll(Time::ZERO) {
            lengths.push(subflow.payload(segment.number).len);
        }
        lengths
    }

    /// An acknowledgement of the packets before `number`.
    fn acknowledge(subflow: &mut SubflowSender, number: u32) {
        let mut ack = Segment { number, flags: Flags::ACK, ..Segment::default() };
        ack.set_data_ack(0, 1 << 20, subflow.sender.stack(), Scheduler::Default.data_ack_len());
        subflow.sender.handle(Time::ZERO, &ack.without_dss(1000));
        subflow.on_acknowledged();
    }

    #[test]
    fn data_that_follows_fills_the_last_packet() {
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
    fn a_short_packet_waits_while_another_one_is_in_flight() {
        let mut subflow = connected();
        subflow.write(0, 1_000);
        assert_eq!(sent(&mut subflow), [1_000]);
        subflow.write(10_000, 12_000);
        assert_eq!(sent(&mut subflow), [1_424]);
        acknowledge(&mut subflow, 1);
        assert_eq!((sent(&mut subflow), subflow.queued()), (vec![576], 2_000));
    }

    /// tcp_skb_can_collapse: the mappings of two buffers differ, so no burst borrows from the next one.
    #[test]
    fn a_burst_ends_with_its_buffer() {
        let mut subflow = connected();
        subflow.write(0, 3 * 1_424);
        subflow.write(100_000, 100_000 + 3 * 1_424);
        let mut ends = Vec::new();
        while let Some(segment) = subflow.poll(Time::ZERO) {
            if subflow.sender.is_between_bursts() {
                ends.push(segment.number + 1);
            }
        }
        assert_eq!(ends, [3, 6]);
    }

    /// mptcp_skb_ext_copy freezes the mapping of a buffer that tso_fragment splits.
    #[test]
    fn data_joins_no_buffer_of_which_a_part_was_sent() {
        let mut subflow = connected();
        subflow.write(0, 11 * 1_424 + 100);
        assert_eq!(sent(&mut subflow), [1_424; 10]);
        subflow.write(11 * 1_424 + 100, 13 * 1_424 + 101);
        acknowledge(&mut subflow, 10);
        assert_eq!(sent(&mut subflow), [1_424, 100, 1_424, 1_424]);
        acknowledge(&mut subflow, 12);
        assert_eq!(sent(&mut subflow), [1]);
    }

    /// tcp_xmit_size_goal: 45 packets of 1,424 bytes, or half of the largest window.
    #[test]
    fn a_buffer_has_at_most_64_kb_or_half_of_a_window() {
        let buffers = |window| {
            let mut subflow = connected();
            subflow.max_window = window;
            subflow.write(0, 64_080 + 10_000);
            subflow.write(64_080 + 10_000, 2 * 64_080 + 10);
            subflow.skbs.iter().map(|skb| skb.end - skb.start).collect::<Vec<_>>()
        };
        assert_eq!(buffers(1 << 20), [45, 45, 1]);
        assert_eq!(buffers(80_000), [28, 28, 28, 7]);
    }
}
