//! FQ-PIE: one queue per flow, deficit round robin between them (RFC 8290, as in FQ-CoDel), PIE in
//! each (RFC 8033), as Linux's net/sched/sch_fq_pie.c combines them.
//!
//! Flows are hashed to queues and served as in FQ-CoDel: queues that become active first, then the
//! others in turn, each with a `quantum` of bytes per round. PIE decides when a packet arrives, by the
//! delay and the backlog of its own queue. At the limit of all queues together the arriving packet is
//! dropped (fq_pie_qdisc_enqueue), not one of the longest queue.
//!
//! PIE itself is that of `pie.rs`, whose differences from Linux's it has. A new queue that is found
//! empty while there are old ones becomes old; without any it is removed (fq_pie_qdisc_dequeue).
//! Linux's ECN is off by default; here it is on, as that of the other AQMs.

use crate::aqm::Verdict;
use crate::aqm::fifo::AqmCounters;
use crate::aqm::flow_queues::FlowQueues;
use crate::aqm::pie::{Pie, PieConfig};
use crate::rng::{Rng, Stream};
use crate::{Backlog, DropReason, Packet};
use dumbbell_units::Time;

/// Parameters of FQ-PIE.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct FqPieConfig {
    /// The parameters of PIE in each queue.
    pub pie: PieConfig,
    /// Bytes that a queue may send per round.
    pub quantum: u32,
    /// The number of queues.
    pub queues: u32,
}

impl Default for FqPieConfig {
    /// Linux's fq_pie_init; packets count from the IP header on, as in FQ-CoDel.
    fn default() -> FqPieConfig {
        FqPieConfig { pie: PieConfig::default(), quantum: 1500, queues: 1024 }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct FqPie<P> {
    quantum: i64,
    flows: FlowQueues<P, Pie>,
}

impl<P: Packet> FqPie<P> {
    /// # Panics
    /// If there are no queues or the quantum is zero.
    pub(crate) fn new(config: FqPieConfig, mtu: u32, rng: &mut Rng) -> FqPie<P> {
        assert!(config.quantum > 0, "the quantum is above zero");
        let seed = rng.next_u64();
        let pie = || Pie::new(config.pie, mtu, Rng::new(rng.next_u64(), Stream::Aqm));
        let flows = FlowQueues::new(config.queues, seed, pie);
        FqPie { quantum: i64::from(config.quantum), flows }
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.flows.backlog
    }

    /// Adds a packet that fits the limit, or drops it.
    pub(crate) fn enqueue(
        &mut self,
        now: Time,
        mut packet: P,
        counters: &mut AqmCounters<P>,
    ) -> Result<(), DropReason> {
        let number = self.flows.queue_of(packet.flow());
        let queue = &mut self.flows.queues[number];
        let backlog = queue.fifo.backlog();
        queue.aqm.update_until(now, backlog);
        match queue.aqm.on_arrival(backlog) {
            Verdict::Pass => {}
            Verdict::Mark if packet.is_ecn_capable() => counters.mark(&mut packet),
            Verdict::Mark | Verdict::Drop => {
                counters.dropped += 1;
                return Err(DropReason::Early);
            }
        }
        self.flows.push(now, number, packet, self.quantum);
        Ok(())
    }

    /// The packet to send at `now`.
    pub(crate) fn dequeue(&mut self, now: Time) -> Option<P> {
        loop {
            let number = self.flows.next(|_| self.quantum)?;
            let queue = &mut self.flows.queues[number];
            queue.aqm.update_until(now, queue.fifo.backlog());
            if let Some((since, packet)) = self.flows.pop(number) {
                let queue = &mut self.flows.queues[number];
                queue.aqm.on_departure(now.since(since));
                queue.credit -= i64::from(packet.size());
                return Some(packet);
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
        queues: FqPie<TestPacket>,
        counters: AqmCounters<TestPacket>,
    }

    impl Bench {
        fn new() -> Bench {
            let queues = FqPie::new(FqPieConfig::default(), 1500, &mut Rng::new(1, Stream::Aqm));
            Bench { queues, counters: AqmCounters::default() }
        }

        fn put(&mut self, at: Time, packet: TestPacket) -> bool {
            self.queues.enqueue(at, packet, &mut self.counters).is_ok()
        }
    }

    #[test]
    fn a_sparse_flow_is_served_before_all_standing_queues() {
        let mut bench = Bench::new();
        for flow in 1..=8 {
            (0..50).for_each(|_| assert!(bench.put(us(0), packet(flow, 1500))));
        }
        (0..20).for_each(|_| assert!(bench.queues.dequeue(us(10)).is_some()));
        assert!(bench.put(us(20), packet(9, 200)));
        assert_eq!(bench.queues.dequeue(us(30)).map(|packet| packet.flow), Some(9));
    }

    #[test]
    fn flows_have_equal_shares_of_bytes_whatever_the_size_of_their_packets() {
        let mut bench = Bench::new();
        for _ in 0..300 {
            bench.put(us(0), packet(1, 1500));
            bench.put(us(0), packet(2, 500));
            bench.put(us(0), packet(2, 500));
            bench.put(us(0), packet(2, 500));
        }
        let mut bytes = [0; 3];
        for _ in 0..400 {
            let packet = bench.queues.dequeue(us(0)).expect("there are more");
            bytes[packet.flow as usize] += packet.size;
        }
        assert!(bytes[1].abs_diff(bytes[2]) <= 1500, "{bytes:?}");
    }

    /// An unresponsive flow of twice its share: PIE must drop half of its packets (RFC 8033, with which
    /// drops grow until the queue does not), and none of a flow below its share.
    #[test]
    fn pie_acts_on_the_queue_that_stands_and_on_no_other() {
        let mut bench = Bench::new();
        let (mut dropped, mut offered) = ([0; 3], [0; 3]);
        let mut late = 0;
        // 12 Mbit/s: a packet of 1500 bytes a millisecond; each flow's share is half of it.
        for ms in 0..60_000 {
            let now = us(ms * 1000);
            let mut offer = |bench: &mut Bench, flow: u32| {
                offered[flow as usize] += 1;
                dropped[flow as usize] += u32::from(!bench.put(now, packet(flow, 1500)));
            };
            offer(&mut bench, 1);
            if ms % 4 == 0 {
                offer(&mut bench, 2);
            }
            bench.queues.dequeue(now);
            if ms >= 30_000 {
                late += bench.queues.backlog().packets;
            }
        }
        assert_eq!(dropped[2], 0);
        let share = f64::from(dropped[1]) / f64::from(offered[1]);
        // Flow 2 takes a quarter of the link, so a quarter of flow 1 does not fit.
        assert!((share - 0.25).abs() < 0.02, "{share}");
        // The target of 15 ms is 11 packets of flow 1's rate.
        let mean = f64::from(late) / 30_000.0;
        assert!((6.0..=20.0).contains(&mean), "{mean}");
    }
}
