//! CAKE's queues on a link of given rate: COBALT in one queue per flow, DRR++ between them (Høiland-
//! Jørgensen, Täht and Morton, "Piece of CAKE: a comprehensive queue management solution for home
//! gateways", LANMAN 2018; Linux's net/sched/sch_cake.c with `besteffort flows no-ack-filter`).
//!
//! DRR++ is the round robin of FQ-CoDel, but a queue that is found empty keeps its state: it waits
//! among the decaying queues until COBALT has come to rest, and is new again with its next packet. The last
//! packet of a queue is never dropped by COBALT.
//!
//! As in Linux, empty queues are only looked at while other packets wait: a flow that is alone on the
//! link keeps the probability that an overflow has left. Linux's queue holds 4 MB or more, so that
//! overflows are rare. At the limit the packet at the head of the longest queue is dropped.
//!
//! Hosts, DiffServ's tins and the ACK filter are not here.

use crate::aqm::cobalt::{Cobalt, Parameters};
use crate::aqm::fifo::AqmCounters;
use crate::aqm::flow_queues::FlowQueues;
use crate::rng::{Rng, Stream};
use crate::{Backlog, DropReason, Packet};
use dumbbell_units::{Span, Time};
use std::collections::VecDeque;

/// Parameters of CAKE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct CakeConfig {
    /// Acceptable standing queueing delay.
    #[cfg_attr(feature = "serde", serde(rename = "target_ns"))]
    pub target: Span,
    /// About the longest round-trip time (`rtt`).
    #[cfg_attr(feature = "serde", serde(rename = "interval_ns"))]
    pub interval: Span,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// The number of queues.
    pub queues: u32,
}

impl Default for CakeConfig {
    /// Linux's cake_init and CAKE_QUEUES.
    fn default() -> CakeConfig {
        CakeConfig {
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            ecn: true,
            queues: 1024,
        }
    }
}

/// The rotation that a queue is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Set {
    #[default]
    None,
    Sparse,
    Bulk,
    Decaying,
}

/// The state of a queue (cake_flow).
#[derive(Clone, Debug, Default)]
struct Flow {
    cobalt: Cobalt,
    set: Set,
}

#[derive(Clone, Debug)]
pub(crate) struct Cake<P> {
    config: CakeConfig,
    parameters: Parameters,
    /// The rate of `parameters`.
    rate: u64,
    flows: FlowQueues<P, Flow>,
    /// Empty queues whose state has not come to rest.
    decaying: VecDeque<u32>,
    rng: Rng,
}

impl<P: Packet> Cake<P> {
    /// # Panics
    /// If there are no queues.
    pub(crate) fn new(config: CakeConfig, rng: &mut Rng) -> Cake<P> {
        Cake {
            parameters: Parameters::new(&config, 0),
            rate: 0,
            flows: FlowQueues::new(config.queues, rng.next_u64(), Flow::default),
            decaying: VecDeque::new(),
            rng: Rng::new(rng.next_u64(), Stream::Aqm),
            config,
        }
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.flows.backlog
    }

    /// Adds a packet, on a link of `rate` bit/s. Drops from the longest queue until the backlog is below
    /// the limit.
    pub(crate) fn enqueue(
        &mut self,
        now: Time,
        packet: P,
        rate: u64,
        admits: impl Fn(Backlog) -> bool,
        counters: &mut AqmCounters<P>,
    ) {
        if rate != self.rate {
            (self.rate, self.parameters) = (rate, Parameters::new(&self.config, rate));
        }
        while self.flows.backlog.packets > 0 && !admits(self.flows.backlog) {
            self.drop_from_longest(now, counters);
        }
        let number = self.flows.queue_of(packet.flow());
        if self.flows.push(now, number, packet, self.parameters.quantum) {
            let flow = &mut self.flows.queues[number].aqm;
            if std::mem::replace(&mut flow.set, Set::Sparse) == Set::Decaying {
                self.decaying.retain(|&decaying| decaying as usize != number);
            }
        }
    }

    /// cake_drop.
    fn drop_from_longest(&mut self, now: Time, counters: &mut AqmCounters<P>) {
        let longest = self.flows.longest();
        let Some((_, packet)) = self.flows.pop(longest) else { return };
        self.flows.queues[longest].aqm.cobalt.queue_full(now, self.parameters.target);
        counters.discard(now, DropReason::Overflow, packet);
    }

    /// A queue was found empty. It has left its rotation.
    fn retire(&mut self, now: Time, number: usize) {
        let Flow { cobalt, set } = &mut self.flows.queues[number].aqm;
        cobalt.queue_empty(now, &self.parameters);
        if cobalt.is_at_rest(now) {
            *set = Set::None;
        } else {
            *set = Set::Decaying;
            self.decaying.push_back(number as u32);
        }
    }

    /// The packet to send at `now`. While packets wait, each call visits one decaying queue.
    pub(crate) fn dequeue(&mut self, now: Time, counters: &mut AqmCounters<P>) -> Option<P> {
        if self.flows.backlog.packets == 0 {
            return None;
        }
        if let Some(number) = self.decaying.pop_front() {
            self.retire(now, number as usize);
        }
        while self.flows.backlog.packets > 0 {
            let number = self.flows.next(|queue| {
                queue.aqm.set = Set::Bulk;
                self.parameters.quantum
            })?;
            while let Some((since, mut packet)) = self.flows.pop(number) {
                let queue = &mut self.flows.queues[number];
                let can_mark = self.config.ecn && packet.is_ecn_capable();
                let sojourn = now.since(since);
                let cobalt = &mut queue.aqm.cobalt;
                let signal = cobalt.signal(now, sojourn, can_mark, &self.parameters, &mut self.rng);
                if signal.congestion && can_mark {
                    counters.mark(&mut packet);
                }
                let is_dropped = signal.blue || (signal.congestion && !can_mark);
                if is_dropped && queue.fifo.backlog().packets > 0 {
                    counters.discard(now, DropReason::Early, packet);
                    continue;
                }
                queue.credit -= i64::from(packet.size());
                return Some(packet);
            }
            self.flows.retire(false);
            self.retire(now, number);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::tests::TestPacket;

    fn us(us: u64) -> Time {
        Time::ZERO + Span::from_micros(us)
    }

    fn packet(flow: u32, size: u32) -> TestPacket {
        TestPacket { flow, size, ..TestPacket::default() }
    }

    fn rng() -> Rng {
        Rng::new(1, Stream::Aqm)
    }

    struct Bench {
        cake: Cake<TestPacket>,
        counters: AqmCounters<TestPacket>,
    }

    impl Bench {
        fn new() -> Bench {
            let cake = Cake::new(CakeConfig::default(), &mut rng());
            Bench { cake, counters: AqmCounters::default() }
        }

        fn put(&mut self, at: Time, packet: TestPacket, limit: u32) {
            let admits = |backlog: Backlog| backlog.packets < limit;
            self.cake.enqueue(at, packet, 12_000_000, admits, &mut self.counters);
        }
    }

    #[test]
    fn a_sparse_flow_is_served_before_all_standing_queues() {
        let mut bench = Bench::new();
        for flow in 1..=8 {
            (0..50).for_each(|_| bench.put(us(0), packet(flow, 1500), 1000));
        }
        // A quantum is 366 bytes at 12 Mbit/s: a packet takes five rounds.
        (0..20).for_each(|_| assert!(bench.cake.dequeue(us(10), &mut bench.counters).is_some()));
        bench.put(us(20), packet(9, 200), 1000);
        let next = bench.cake.dequeue(us(30), &mut bench.counters);
        assert_eq!(next.map(|packet| packet.flow), Some(9));
    }

    /// An overflow leaves a probability of 1/256; it has gone after 16 visits, a target apart, while
    /// another flow keeps the link busy.
    #[test]
    fn the_state_of_an_empty_queue_decays_while_another_is_served() {
        let mut bench = Bench::new();
        (0..11).for_each(|_| bench.put(us(20_000), packet(1, 1500), 10));
        let number = bench.cake.flows.queue_of(1);
        assert!(bench.cake.flows.queues[number].aqm.cobalt.p_drop > 0.0);
        for ms in 20..500 {
            bench.put(us(ms * 1000), packet(2, 1500), 1000);
            bench.cake.dequeue(us(ms * 1000), &mut bench.counters);
        }
        let flow = &bench.cake.flows.queues[number].aqm;
        assert!(flow.cobalt.p_drop == 0.0 && flow.set == Set::None, "{flow:?}");
        assert!(bench.cake.decaying.is_empty());
    }

    /// An unresponsive flow of twice the rate and another of a fifth: overflow and BLUE take only from
    /// the first.
    #[test]
    fn an_unresponsive_flow_loses_by_itself_what_does_not_fit() {
        let mut bench = Bench::new();
        let (mut sent, mut offered) = ([0_u32; 3], [0_u32; 3]);
        for ms in 0..60_000 {
            let now = us(ms * 1000);
            let mut offer = |bench: &mut Bench, flow: u32| {
                offered[flow as usize] += 1;
                bench.put(now, packet(flow, 1500), 100);
            };
            offer(&mut bench, 1);
            offer(&mut bench, 1);
            if ms % 5 == 0 {
                offer(&mut bench, 2);
            }
            if let Some(packet) = bench.cake.dequeue(now, &mut bench.counters) {
                sent[packet.flow as usize] += 1;
            }
        }
        assert!(sent[2] + 1 >= offered[2], "{sent:?} of {offered:?}");
        assert!(sent[1] > 45_000 && sent[1] < 48_100, "{sent:?}");
    }
}
