//! The scoreboard (RFC 6675, section 3): every packet sent and not cumulatively acknowledged.
//!
//! | here | RFC 6675 | Linux |
//! |---|---|---|
//! | [`Scoreboard::una`] | HighACK + 1 | `snd_una` |
//! | [`Scoreboard::next_seq`] | HighData + 1 | `snd_nxt` |
//! | [`Scoreboard::sack`], [`Scoreboard::acknowledge`] | Update() | `tcp_sacktag_write_queue`, `tcp_clean_rtx_queue` |
//! | [`Scoreboard::in_flight`] | Pipe, SetPipe() | `tcp_packets_in_flight` |
//! | [`Scoreboard::is_lost_below`] | IsLost() with DupThresh 3 | |
//! | [`Scoreboard::next_retransmission`] | NextSeg(), rule 1 | `tcp_xmit_retransmit_queue` |

use crate::ranges::RangeSet;
use crate::sent_packet::{PacketFlags, SentPacket};
use dumbbell_cc::PacketInfo;
use dumbbell_net::prefetch;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Records that the smallest ring has room for.
const MIN_ROOM: usize = 16;

/// The packets from the first unacknowledged to the next new one.
#[derive(Clone, Debug)]
pub(crate) struct Scoreboard {
    /// A ring buffer, indexed by packet number modulo its length (a power of two).
    packets: Vec<SentPacket>,
    una: u32,
    next_seq: u32,
    sacked: RangeSet,
    sacked_out: u32,
    lost_out: u32,
    retrans_out: u32,
    /// Lost packets to be retransmitted, lowest first. Entries may be stale: acknowledged or already
    /// retransmitted.
    to_retransmit: BinaryHeap<Reverse<u32>>,
    /// No packet from this one on was ever SACKed, lost or retransmitted.
    first_clean: u32,
}

impl Scoreboard {
    pub(crate) fn new() -> Scoreboard {
        Scoreboard {
            packets: vec![SentPacket::default(); MIN_ROOM],
            una: 0,
            next_seq: 0,
            sacked: RangeSet::default(),
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            to_retransmit: BinaryHeap::new(),
            first_clean: 0,
        }
    }

    /// First packet not cumulatively acknowledged.
    #[inline]
    pub(crate) fn una(&self) -> u32 {
        self.una
    }

    /// Next new packet.
    #[inline]
    pub(crate) fn next_seq(&self) -> u32 {
        self.next_seq
    }

    /// Packets sent and not cumulatively acknowledged.
    #[inline]
    pub(crate) fn packets_out(&self) -> u32 {
        self.next_seq - self.una
    }

    /// Packets selectively acknowledged.
    #[inline]
    pub(crate) fn sacked_out(&self) -> u32 {
        self.sacked_out
    }

    /// Packets marked lost (retransmitted or not).
    #[inline]
    pub(crate) fn lost_out(&self) -> u32 {
        self.lost_out
    }

    /// Retransmissions in flight.
    #[inline]
    pub(crate) fn retrans_out(&self) -> u32 {
        self.retrans_out
    }

    /// Packets in flight: outstanding, less what has left the network, plus retransmissions.
    #[inline]
    pub(crate) fn in_flight(&self) -> u32 {
        self.packets_out() - self.sacked_out - self.lost_out + self.retrans_out
    }

    /// One past the highest packet selectively acknowledged, or `una`.
    #[inline]
    pub(crate) fn highest_sacked(&self) -> u32 {
        self.sacked.end().unwrap_or(self.una)
    }

    #[inline]
    pub(crate) fn packet(&self, number: u32) -> &SentPacket {
        let mask = self.packets.len() - 1;
        &self.packets[number as usize & mask]
    }

    #[inline]
    fn packet_mut(&mut self, number: u32) -> &mut SentPacket {
        let mask = self.packets.len() - 1;
        &mut self.packets[number as usize & mask]
    }

    /// Prefetches the records of the packets acknowledged next and sent next.
    #[inline]
    pub(crate) fn prefetch(&self) {
        for number in [self.una, self.una + 1, self.next_seq, self.next_seq + 1] {
            prefetch(self.packet(number));
        }
    }

    /// Adds a new packet and returns its number.
    #[inline]
    pub(crate) fn push(&mut self, info: &PacketInfo) -> u32 {
        let room = self.packets.len();
        let out = self.packets_out() as usize;
        if out == room {
            self.resize(room * 2);
        } else if (self.next_seq as usize).is_multiple_of(MIN_ROOM) && 4 * out < room {
            // After the overshoot of slow start most of the ring is empty.
            self.resize((2 * out).next_power_of_two().max(MIN_ROOM));
        }
        let number = self.next_seq;
        *self.packet_mut(number) = SentPacket::new(info);
        self.next_seq += 1;
        number
    }

    #[cold]
    fn resize(&mut self, room: usize) {
        let mut packets = vec![SentPacket::default(); room];
        for number in self.una..self.next_seq {
            packets[number as usize & (room - 1)] = *self.packet(number);
        }
        self.packets = packets;
    }

    /// Marks the packets in `start..end` as SACKed, and calls `delivered` for each that was not.
    /// Packets that are not outstanding are ignored.
    pub(crate) fn sack(
        &mut self,
        start: u32,
        end: u32,
        mut delivered: impl FnMut(u32, &SentPacket),
    ) {
        if end > self.next_seq {
            return;
        }
        let mut sacked = std::mem::take(&mut self.sacked);
        sacked.insert(start.max(self.una), end, |start, end| {
            for number in start..end {
                delivered(number, self.packet(number));
                self.leave_network(number);
                self.sacked_out += 1;
                self.packet_mut(number).set(PacketFlags::SACKED);
            }
        });
        self.sacked = sacked;
        self.first_clean = self.next_seq;
    }

    /// Acknowledges all packets below `ack`. Calls `delivered(number, packet, count)` for those that
    /// were not SACKed. A run of packets never SACKed, lost or retransmitted is reported as its
    /// first packet, with count 1, and its last, which counts for the rest. Returns whether one was SACKed
    /// and ever retransmitted.
    #[inline(always)]
    pub(crate) fn acknowledge(
        &mut self,
        ack: u32,
        mut delivered: impl FnMut(u32, &SentPacket, u32),
    ) -> bool {
        let mut retrans_sacked = false;
        while self.una < ack.min(self.first_clean) {
            let number = self.una;
            if self.packet(number).has(PacketFlags::SACKED) {
                self.sacked_out -= 1;
                retrans_sacked |= self.packet(number).ever_retransmitted();
            } else {
                delivered(number, self.packet(number), 1);
                self.leave_network(number);
            }
            self.una += 1;
        }
        if self.una < ack {
            let (first, last) = (self.una, ack - 1);
            self.una = ack;
            delivered(first, self.packet(first), 1);
            if last > first {
                delivered(last, self.packet(last), last - first);
            }
        }
        self.sacked.remove_below(ack);
        retrans_sacked
    }

    /// Removes a delivered packet from `lost_out` and `retrans_out`.
    fn leave_network(&mut self, number: u32) {
        let packet = *self.packet(number);
        self.packet_mut(number).clear(PacketFlags::LOST.union(PacketFlags::RETRANS_OUT));
        self.lost_out -= u32::from(packet.has(PacketFlags::LOST));
        self.retrans_out -= u32::from(packet.has(PacketFlags::RETRANS_OUT));
    }

    /// Marks a packet or its retransmission lost. Returns false if it is SACKed or already marked.
    pub(crate) fn mark_lost(&mut self, number: u32) -> bool {
        let packet = *self.packet(number);
        if packet.has(PacketFlags::SACKED) || packet.needs_retransmit() {
            return false;
        }
        self.packet_mut(number).clear(PacketFlags::RETRANS_OUT);
        self.packet_mut(number).set(PacketFlags::LOST);
        self.lost_out += u32::from(!packet.has(PacketFlags::LOST));
        self.retrans_out -= u32::from(packet.has(PacketFlags::RETRANS_OUT));
        self.to_retransmit.push(Reverse(number));
        self.first_clean = self.next_seq;
        true
    }

    /// Marks a packet that RACK found lost.
    pub(crate) fn mark_rack_lost(&mut self, number: u32) {
        self.mark_lost(number);
        self.packet_mut(number).set(PacketFlags::RACK_LOST);
    }

    /// Removes all loss marks: the episode was spurious.
    pub(crate) fn unmark_lost(&mut self) {
        for number in self.una..self.next_seq {
            self.packet_mut(number).clear(PacketFlags::LOST);
        }
        self.lost_out = 0;
        self.to_retransmit.clear();
    }

    /// How many packets from `number` on, `max` at most, left in one burst and are lost: Linux
    /// retransmits them as one buffer (`tcp_retransmit_skb`).
    pub(crate) fn lost_of_burst(&self, number: u32, max: u32) -> u32 {
        let sent_at = self.packet(number).sent_at();
        let is_lost = |&next: &u32| {
            let packet = self.packet(next);
            packet.needs_retransmit() && packet.sent_at() == sent_at
        };
        (number..self.next_seq).take(max as usize).take_while(is_lost).count() as u32
    }

    /// The lowest lost packet that is not being retransmitted.
    pub(crate) fn next_retransmission(&mut self) -> Option<u32> {
        while let Some(&Reverse(number)) = self.to_retransmit.peek() {
            if number >= self.una && self.packet(number).needs_retransmit() {
                return Some(number);
            }
            self.to_retransmit.pop();
        }
        None
    }

    /// Records that a packet was retransmitted.
    pub(crate) fn retransmit(&mut self, number: u32, info: &PacketInfo) {
        self.probe(number, info);
        let packet = self.packet_mut(number);
        let was_retrans_out = packet.has(PacketFlags::RETRANS_OUT);
        packet.set(PacketFlags::RETRANS_OUT);
        self.retrans_out += u32::from(!was_retrans_out);
    }

    /// Records that a packet was retransmitted as a tail loss probe. `tcp_send_loss_probe` does not
    /// count it as a retransmission in flight.
    pub(crate) fn probe(&mut self, number: u32, info: &PacketInfo) {
        self.packet_mut(number).retransmit(info);
        self.first_clean = self.next_seq;
    }

    /// The packets in `from..to` that are not SACKed, the highest first. Few SACKed ranges should be
    /// above `to`.
    pub(crate) fn holes_descending(&self, from: u32, to: u32) -> impl Iterator<Item = u32> + '_ {
        let mut ranges = self.sacked.descending();
        let (mut range, mut end) = (ranges.next(), to);
        std::iter::from_fn(move || {
            while let Some((start, past)) = range
                && end <= past
            {
                end = end.min(start);
                range = ranges.next();
            }
            (end > from).then(|| {
                end -= 1;
                end
            })
        })
    }

    /// End of the range in which IsLost() is true: at least three packets above each were SACKed.
    pub(crate) fn is_lost_below(&self) -> u32 {
        let mut above = 0;
        for (start, end) in self.sacked.descending() {
            if above + (end - start) >= 3 {
                return end - (3 - above);
            }
            above += end - start;
        }
        self.una
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A scoreboard with `packets` packets out and these numbers SACKed.
    fn scoreboard(packets: u32, sacked: &[u32]) -> Scoreboard {
        let mut scoreboard = Scoreboard::new();
        for _ in 0..packets {
            scoreboard.push(&PacketInfo::default());
        }
        for &number in sacked {
            scoreboard.sack(number, number + 1, |_, _| {});
        }
        scoreboard
    }

    /// RFC 6675, section 4, IsLost(): DupThresh discontiguous SACKed sequences have arrived above, or
    /// more than (DupThresh - 1) * SMSS bytes are SACKed above.
    #[test]
    fn is_lost_needs_three_sacked_packets_above() {
        assert_eq!(scoreboard(20, &[]).is_lost_below(), 0);
        assert_eq!(scoreboard(20, &[5, 6]).is_lost_below(), 0, "two are not enough");
        assert_eq!(scoreboard(20, &[5, 6, 7]).is_lost_below(), 5, "one block of three");
        assert_eq!(scoreboard(20, &[5, 9, 12]).is_lost_below(), 5, "three separate blocks");
        assert_eq!(
            scoreboard(20, &[2, 5, 9, 12]).is_lost_below(),
            5,
            "below the third from the top"
        );
    }

    /// RFC 6675, section 4, SetPipe(): a packet that is not SACKed counts once if it is not lost, and
    /// once if it was retransmitted.
    #[test]
    fn pipe_counts_packets_not_lost_and_retransmissions() {
        let mut scoreboard = scoreboard(10, &[2, 3, 4]);
        assert_eq!(scoreboard.in_flight(), 7);
        scoreboard.mark_lost(0);
        scoreboard.mark_lost(1);
        assert_eq!(scoreboard.in_flight(), 5);
        scoreboard.retransmit(0, &PacketInfo::default());
        assert_eq!(scoreboard.in_flight(), 6);
        scoreboard.mark_lost(0);
        assert_eq!(scoreboard.in_flight(), 5, "the retransmission is lost too");
        scoreboard.retransmit(0, &PacketInfo::default());
        scoreboard.acknowledge(1, |_, _, _| {});
        assert_eq!(scoreboard.in_flight(), 5);
    }

    /// `tcp_send_loss_probe` leaves `retrans_out` as it is.
    #[test]
    fn a_tail_loss_probe_is_no_retransmission_in_flight() {
        let mut scoreboard = scoreboard(3, &[]);
        scoreboard.probe(2, &PacketInfo::default());
        assert_eq!((scoreboard.in_flight(), scoreboard.retrans_out()), (3, 0));
        assert!(scoreboard.packet(2).ever_retransmitted());
        scoreboard.mark_lost(2);
        assert_eq!(scoreboard.next_retransmission(), Some(2));
    }

    #[test]
    fn the_ring_shrinks_when_few_packets_are_out() {
        let mut scoreboard = scoreboard(1000, &[]);
        assert_eq!(scoreboard.packets.len(), 1024);
        scoreboard.acknowledge(996, |_, _, _| {});
        scoreboard.sack(998, 999, |_, _| {});
        for _ in 0..MIN_ROOM {
            scoreboard.push(&PacketInfo::default());
        }
        assert_eq!((scoreboard.packets.len(), scoreboard.packets_out()), (32, 20));
        let sacked = |&number: &u32| scoreboard.packet(number).has(PacketFlags::SACKED);
        assert_eq!((996..1016).filter(sacked).collect::<Vec<_>>(), [998]);
    }

    #[test]
    fn holes_are_the_packets_between_sack_blocks() {
        let scoreboard = scoreboard(10, &[0, 3, 4, 7, 9]);
        let holes = |from, to| scoreboard.holes_descending(from, to).collect::<Vec<_>>();
        assert_eq!(holes(0, 10), [8, 6, 5, 2, 1]);
        assert_eq!(holes(2, 7), [6, 5, 2]);
        assert_eq!(holes(3, 5), []);
    }

    /// RFC 6675, section 4, NextSeg(), rule 1: the lowest lost packet that was not retransmitted.
    #[test]
    fn next_seg_is_the_lowest_lost_packet_not_retransmitted() {
        let mut scoreboard = scoreboard(10, &[5, 6, 7]);
        for lost in [3, 1, 2] {
            scoreboard.mark_lost(lost);
        }
        assert!(!scoreboard.mark_lost(5), "it is SACKed");
        assert!(!scoreboard.mark_lost(1), "it is marked already");
        let mut order = Vec::new();
        while let Some(number) = scoreboard.next_retransmission() {
            scoreboard.retransmit(number, &PacketInfo::default());
            order.push(number);
        }
        assert_eq!(order, [1, 2, 3]);
    }

    #[test]
    fn packets_that_arrived_need_no_retransmission() {
        let mut scoreboard = scoreboard(10, &[5, 6, 7]);
        for lost in [1, 2, 3] {
            scoreboard.mark_lost(lost);
        }
        scoreboard.sack(2, 3, |_, _| {});
        scoreboard.acknowledge(2, |_, _, _| {});
        assert_eq!(scoreboard.next_retransmission(), Some(3));
        scoreboard.unmark_lost();
        assert_eq!(scoreboard.next_retransmission(), None);
    }

    /// An operation on the scoreboard.
    #[derive(Clone, Copy, Debug)]
    enum Operation {
        Push,
        Sack(u32),
        Lose(u32),
        Retransmit,
        Acknowledge(u32),
    }

    fn any_operation() -> impl Strategy<Value = Operation> {
        prop_oneof![
            3 => Just(Operation::Push),
            2 => (0u32..40).prop_map(Operation::Sack),
            2 => (0u32..40).prop_map(Operation::Lose),
            2 => Just(Operation::Retransmit),
            1 => (0u32..10).prop_map(Operation::Acknowledge),
        ]
    }

    proptest! {
        /// The counters against SetPipe() over all packets, and each delivery reported once.
        #[test]
        fn counters_equal_a_count_over_all_packets(
            operations in prop::collection::vec(any_operation(), 1..200),
        ) {
            let (mut scoreboard, mut delivered) = (Scoreboard::new(), 0);
            for operation in operations {
                let out = scoreboard.packets_out().max(1);
                match operation {
                    Operation::Push => _ = scoreboard.push(&PacketInfo::default()),
                    Operation::Sack(n) => {
                        let number = scoreboard.una() + n % out;
                        scoreboard.sack(number, number + 1, |_, _| delivered += 1);
                    }
                    Operation::Lose(n) if scoreboard.packets_out() > 0 => {
                        scoreboard.mark_lost(scoreboard.una() + n % out);
                    }
                    Operation::Lose(_) => {}
                    Operation::Retransmit => {
                        if let Some(number) = scoreboard.next_retransmission() {
                            scoreboard.retransmit(number, &PacketInfo::default());
                        }
                    }
                    Operation::Acknowledge(n) => {
                        let ack = (scoreboard.una() + n).min(scoreboard.next_seq());
                        scoreboard.acknowledge(ack, |_, _, count| delivered += count);
                    }
                }
                let packets = || (scoreboard.una()..scoreboard.next_seq()).map(|n| scoreboard.packet(n));
                let count = |flag| packets().filter(|packet| packet.has(flag)).count() as u32;
                prop_assert_eq!(scoreboard.sacked_out(), count(PacketFlags::SACKED));
                prop_assert_eq!(scoreboard.lost_out(), count(PacketFlags::LOST));
                prop_assert_eq!(scoreboard.retrans_out(), count(PacketFlags::RETRANS_OUT));
                prop_assert_eq!(delivered, scoreboard.una() + scoreboard.sacked_out());
                let not_sacked = packets().filter(|packet| !packet.has(PacketFlags::SACKED));
                let pipe = not_sacked.map(|packet| {
                    u32::from(!packet.has(PacketFlags::LOST)) + u32::from(packet.has(PacketFlags::RETRANS_OUT))
                });
                prop_assert_eq!(scoreboard.in_flight(), pipe.sum::<u32>());
            }
        }
    }
}
