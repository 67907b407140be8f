//! FQ-CoDel (RFC 8290): one queue per flow, deficit round robin between them, CoDel in each.
//!
//! A packet's flow is hashed to one of 1024 queues (section 4.1), which take turns as
//! [`FlowQueues`] has it, with a `quantum` of bytes each (section 4.2). CoDel dequeues a packet (RFC
//! 8289), and the packet's size is subtracted from the queue's credit. A queue found empty
//! moves from the new list to the end of the old list, so that it is not immediately new again.
//! From the old list it is removed. A flow that sends less than its share therefore finds its queue
//! empty and new, and is served before all standing queues (section 1.3).
//!
//! CoDel never drops when at most MAXPACKET bytes are left. RFC 8290 applies this to each queue
//! alone, so every flow may keep two packets queued for any time. Linux compares the backlog of all
//! queues (net/sched/sch_fq_codel.c, fq_codel_dequeue: `qstats.backlog`), so a flow's only packet
//! is dropped while other queues stand. This is Linux's rule, as measurements are of Linux.
//!
//! At the limit the queue with the most bytes loses half of them, rounded down, from its head: at least
//! one packet, at most 64 (section 4.1). Its CoDel counts them as its own drops (fq_codel_drop).

use crate::aqm::codel::{Codel, CodelConfig};
use crate::aqm::fifo::AqmCounters;
use crate::aqm::flow_queues::FlowQueues;
use crate::{Backlog, DropReason, Packet};
use dumbbell_units::Time;

/// Parameters of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FqCodelConfig {
    /// The parameters of CoDel in each queue.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub codel: CodelConfig,
    /// Bytes that a queue may send per round.
    pub quantum: u32,
    /// The number of queues.
    pub queues: u32,
}

impl Default for FqCodelConfig {
    /// RFC 8290, section 5.2: a full Ethernet frame and 1024 queues. Linux counts frames with a
    /// header of 14 bytes; packets here count from the IP header on. So the quantum is 1514 - 14
    /// bytes, and a full packet uses up the first quantum.
    fn default() -> FqCodelConfig {
        FqCodelConfig { codel: CodelConfig::default(), quantum: 1500, queues: 1024 }
    }
}

/// The maximum number of packets of one overlimit drop (Linux's `drop_batch_size`).
const DROP_BATCH_SIZE: u32 = 64;

#[derive(Clone, Debug)]
pub(crate) struct FqCodel<P> {
    quantum: i64,
    flows: FlowQueues<P, Codel>,
}

impl<P: Packet> FqCodel<P> {
    /// # Panics
    /// If there are no queues or the quantum is zero.
    pub(crate) fn new(config: FqCodelConfig, mtu: u32, seed: u64) -> FqCodel<P> {
        assert!(config.quantum > 0, "the quantum is above zero");
        let flows = FlowQueues::new(config.queues, seed, || Codel::new(config.codel, mtu));
        FqCodel { quantum: i64::from(config.quantum), flows }
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.flows.backlog
    }

    /// Adds a packet. Drops from the fattest queue until the backlog is below the limit.
    pub(crate) fn enqueue(
        &mut self,
        now: Time,
        packet: P,
        admits: impl Fn(Backlog) -> bool,
        counters: &mut AqmCounters<P>,
    ) {
        while self.flows.backlog.packets > 0 && !admits(self.flows.backlog) {
            self.drop_from_fattest(now, counters);
        }
        self.flows.push(now, self.flows.queue_of(packet.flow()), packet, self.quantum);
    }

    /// Drops a batch from the queue with the most bytes (net/sched/sch_fq_codel.c, fq_codel_drop).
    fn drop_from_fattest(&mut self, now: Time, counters: &mut AqmCounters<P>) {
        let fattest = self.flows.longest();
        let half = self.flows.queues[fattest].fifo.backlog().bytes / 2;
        let (mut packets, mut bytes) = (0, 0);
        while let Some((_, packet)) = self.flows.pop(fattest) {
            packets += 1;
            bytes += u64::from(packet.size());
            counters.discard(now, DropReason::Overflow, packet);
            if packets == DROP_BATCH_SIZE || bytes >= half {
                break;
            }
        }
        self.flows.queues[fattest].aqm.on_overlimit_drops(packets);
    }

    /// Passes the packet to send at `now` to `send`, if there is one.
    pub(crate) fn dequeue(
        &mut self,
        now: Time,
        counters: &mut AqmCounters<P>,
        send: impl FnOnce(&P),
    ) {
        let Some(number) = self.select(now, counters) else { return };
        let queue = &mut self.flows.queues[number];
        let (credit, backlog) = (&mut queue.credit, &mut self.flows.backlog);
        queue.fifo.pass_head(|packet| {
            *credit -= i64::from(packet.size());
            backlog.remove(packet.size());
            send(packet);
        });
    }

    /// The queue whose head is to be sent at `now`.
    fn select(&mut self, now: Time, counters: &mut AqmCounters<P>) -> Option<usize> {
        loop {
            let number = self.flows.next(|_| self.quantum)?;
            let queue = &mut self.flows.queues[number];
            let backlog = &mut self.flows.backlog;
            let before = queue.fifo.backlog();
            let other_backlog = backlog.bytes - before.bytes;
            let is_sent = queue.aqm.select(now, &mut queue.fifo, other_backlog, counters);
            let after = queue.fifo.backlog();
            backlog.packets -= before.packets - after.packets;
            backlog.bytes -= before.bytes - after.bytes;
            if is_sent {
                return Some(number);
            }
            self.flows.retire(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::tests::TestPacket;
    use dumbbell_units::Span;

    fn us(us: u64) -> Time {
        Time::ZERO + Span::from_micros(us)
    }

    fn packet(flow: u32, size: u32) -> TestPacket {
        TestPacket { flow, size, ..TestPacket::default() }
    }

    struct Bench {
        queues: FqCodel<TestPacket>,
        counters: AqmCounters<TestPacket>,
    }

    impl Bench {
        fn new() -> Bench {
            let counters = AqmCounters { records_discarded: true, ..AqmCounters::default() };
            Bench { queues: FqCodel::new(FqCodelConfig::default(), 1500, 1), counters }
        }

        fn put(&mut self, at: Time, packet: TestPacket) {
            let admits = |backlog: Backlog| backlog.packets < 1000;
            self.queues.enqueue(at, packet, admits, &mut self.counters);
        }

        /// Packets in the queue of a flow.
        fn queued(&self, flow: u32) -> u32 {
            let flows = &self.queues.flows;
            flows.queues[flows.queue_of(flow)].fifo.backlog().packets
        }

        fn take(&mut self, at: Time) -> Option<TestPacket> {
            let mut sent = None;
            self.queues.dequeue(at, &mut self.counters, |packet| sent = Some(*packet));
            sent
        }
    }

    #[test]
    fn the_flows_of_these_tests_hash_to_different_queues() {
        let queues = Bench::new().queues;
        let hashes: std::collections::BTreeSet<usize> =
            (0..10).map(|f| queues.flows.queue_of(f)).collect();
        assert_eq!(hashes.len(), 10);
    }

    #[test]
    fn a_sparse_flow_is_served_before_all_standing_queues() {
        let mut bench = Bench::new();
        for flow in 1..=8 {
            (0..50).for_each(|_| bench.put(us(0), packet(flow, 1500)));
        }
        // After their first rounds the eight queues are old. A single packet of a new flow is sent
        // next.
        (0..20).for_each(|_| assert!(bench.take(us(10)).is_some()));
        for round in 0..10 {
            bench.put(us(20 + round), packet(9, 200));
            assert_eq!(bench.take(us(20 + round)).map(|packet| packet.flow), Some(9));
            // Its empty queue is then old, and the others are served before it is new again.
            (0..8).for_each(|_| assert!(bench.take(us(20 + round)).is_some()));
        }
    }

    #[test]
    fn an_empty_new_queue_becomes_old_before_it_can_be_new_again() {
        let mut bench = Bench::new();
        (0..50).for_each(|_| bench.put(us(0), packet(1, 500)));
        // Three packets use up flow 1's credit of 1500. It becomes old with a new quantum, of which
        // 1000 bytes are left after the fourth packet.
        (0..4).for_each(|_| assert_eq!(bench.take(us(1)).map(|packet| packet.flow), Some(1)));
        bench.put(us(2), packet(2, 200));
        assert_eq!(bench.take(us(2)).map(|packet| packet.flow), Some(2), "a new flow is first");
        // Found empty, flow 2 moves behind flow 1, which has credit for two more packets.
        assert_eq!(bench.take(us(3)).map(|packet| packet.flow), Some(1));
        bench.put(us(4), packet(2, 200));
        let flows: Vec<u32> = (0..3).filter_map(|_| bench.take(us(5))).map(|p| p.flow).collect();
        assert_eq!(flows, [1, 2, 1]);
    }

    #[test]
    fn a_full_size_packet_uses_up_the_first_quantum() {
        let mut bench = Bench::new();
        for flow in 1..=3 {
            (0..3).for_each(|_| bench.put(us(0), packet(flow, 1500)));
        }
        let flows: Vec<u32> = (0..9).filter_map(|_| bench.take(us(1))).map(|p| p.flow).collect();
        assert_eq!(flows, [1, 2, 3, 1, 2, 3, 1, 2, 3]);
    }

    #[test]
    fn flows_share_bytes_equally_at_any_packet_size() {
        let mut bench = Bench::new();
        let sizes = [(1, 1500), (2, 500), (3, 200)];
        let mut sent = [0u64; 4];
        for round in 0..30_000 {
            for (flow, size) in sizes {
                while bench.queued(flow) < 10 {
                    bench.put(us(round), packet(flow, size));
                }
            }
            if let Some(packet) = bench.take(us(round)) {
                sent[packet.flow as usize] += u64::from(packet.size);
            }
        }
        assert_eq!(bench.counters.dropped, 0);
        let (least, most) = (sent[1..].iter().min(), sent[1..].iter().max());
        // Deficits differ by less than a quantum and a packet.
        let (least, most) = (least.copied().unwrap_or(0), most.copied().unwrap_or(0));
        assert!(most - least <= 3000, "{sent:?}");
    }

    #[test]
    fn a_full_queue_drops_from_the_head_of_the_fattest_flow() {
        let mut bench = Bench::new();
        (0..990).for_each(|at| bench.put(us(at), packet(1, 1500)));
        (0..10).for_each(|at| bench.put(us(at), packet(2, 1500)));
        assert_eq!(bench.counters.dropped, 0);
        bench.put(us(2000), packet(2, 1500));
        assert_eq!(bench.counters.dropped, 64, "a batch");
        assert!(bench.counters.discarded.iter().all(|&(at, why, packet)| at == us(2000)
            && why == DropReason::Overflow
            && packet.flow == 1));
        assert_eq!(bench.queues.backlog().packets, 1001 - 64);
        assert_eq!(bench.take(us(2000)).map(|packet| packet.flow), Some(1));
    }

    /// fq_codel_drop: `maxbacklog >> 1`, and one packet at least.
    #[test]
    fn an_overlimit_drop_takes_half_of_the_bytes_rounded_down() {
        let dropped = |sizes: &[u32]| {
            let mut bench = Bench::new();
            sizes.iter().for_each(|&size| bench.put(us(0), packet(1, size)));
            bench.queues.drop_from_fattest(us(1), &mut bench.counters);
            bench.counters.dropped
        };
        assert_eq!(dropped(&[1000, 1001]), 1);
        assert_eq!(dropped(&[999, 1001]), 2);
        assert_eq!(dropped(&[1]), 1);
    }

    #[test]
    fn codel_drops_only_from_the_flow_with_a_standing_queue() {
        let mut bench = Bench::new();
        let mut others = 0;
        for round in 0..4_000u64 {
            let now = us(round * 250);
            // Flow 1 keeps 80 packets queued, 40 ms at one per 500 us; flow 2 sends one every 2 ms.
            while bench.queued(1) < 80 {
                bench.put(now, packet(1, 1500));
            }
            if round % 8 == 0 {
                bench.put(now, packet(2, 1500));
            }
            others += bench.take(now).map_or(0, |packet| u32::from(packet.flow == 2));
        }
        assert!(bench.counters.dropped >= 20, "{}", bench.counters.dropped);
        assert!(
            bench
                .counters
                .discarded
                .iter()
                .all(|&(_, why, packet)| why == DropReason::Early && packet.flow == 1)
        );
        assert_eq!(others, 500, "all of flow 2 passed");
    }

    #[test]
    fn a_flows_only_packet_is_dropped_while_other_queues_stand() {
        // 2 Mbit/s, 6 ms per packet. Flow 1 always has 50 ECN-capable packets queued, and flow 2
        // one packet, which waits for flow 1's round.
        let mut bench = Bench::new();
        for now in (0..3_000_000).step_by(6_000).map(us) {
            for (flow, most) in [(1, 50), (2, 1)] {
                while bench.queued(flow) < most {
                    bench.put(now, TestPacket { is_ecn: flow == 1, ..packet(flow, 1500) });
                }
            }
            bench.take(now);
        }
        let times: Vec<Time> = bench.counters.discarded.iter().map(|&(at, ..)| at).collect();
        // A drop empties the queue and resets CoDel: the next packet belongs to a new queue and
        // passes. The next long sojourn time starts an interval of 100 ms, and the first packet
        // after it is dropped. The sequence takes at most three rounds of 12 ms more.
        let allowed = Span::from_millis(100)..=Span::from_millis(136);
        let mut gaps = times.windows(2).map(|pair| pair[1].since(pair[0]));
        assert!(gaps.all(|gap| allowed.contains(&gap)), "{times:?}");
        assert!(times.len() >= 3_000 / 136, "{times:?}");
    }

    #[test]
    fn overlimit_drops_count_for_codels_next_drops() {
        let mut bench = Bench::new();
        (0..900).for_each(|_| bench.put(us(0), packet(1, 1500)));
        let mut drops = Vec::new();
        let mut send = |bench: &mut Bench, begin: u64, end: u64| {
            for now in (begin..end).step_by(500).map(us) {
                bench.put(now, packet(1, 1500));
                bench.take(now);
                let early =
                    bench.counters.discarded.drain(..).filter(|drop| drop.1 == DropReason::Early);
                drops.extend(early.map(|(at, ..)| at));
            }
            drops.clone()
        };
        // One packet per 0.5 ms, from the tenth on with a sojourn time above 5 ms: one drop after
        // an interval, and the next one an interval later.
        let drops = send(&mut bench, 500, 150_000);
        assert_eq!(drops.len(), 1);
        (0..200).for_each(|_| bench.put(us(150_000), packet(1, 1500)));
        assert_eq!(bench.counters.discarded.len(), 2 * 64, "two batches of overflows");
        let drops = send(&mut bench, 150_000, 300_000);
        // With the second drop the count is 1 + 128 + 1, and it continues from there. The inverse square root
        // was that of 1; Linux's steps from it, for 130 and those after it, in 2^16ths:
        let mut expected = drops[0].as_nanos() as f64 + 100e6;
        for (inv_sqrt, at) in [32961.0, 27616.0, 45460.0].into_iter().zip(&drops[1..]) {
            let late = at.as_nanos() as f64 - expected;
            assert!((0.0..=0.5e6).contains(&late), "the drop at {at:?} is late by {late} ns");
            expected += 100e6 * inv_sqrt / 65_536.0;
        }
        assert_eq!(drops.len(), 4, "{drops:?}");
    }

    #[test]
    fn the_seed_decides_which_flows_share_a_queue() {
        let hashes = |seed| {
            let queues = FqCodel::<TestPacket>::new(FqCodelConfig::default(), 1500, seed);
            (0..1000).map(|flow| queues.flows.queue_of(flow)).collect::<Vec<usize>>()
        };
        assert_eq!(hashes(1), hashes(1));
        assert_ne!(hashes(1), hashes(2));
        assert!(hashes(1).iter().all(|&queue| queue < 1024));
    }
}
