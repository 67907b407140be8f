//! CAKE's queues on a link of given rate: COBALT in one queue per flow, DRR++ between them (Høiland-
//! Jørgensen, Täht and Morton, "Piece of CAKE: a comprehensive queue management solution for home
//! gateways", LANMAN 2018; Linux's net/sched/sch_cake.c).
//!
//! DRR++ is the round robin of FQ-CoDel, but a queue that is found empty keeps its state: it waits
//! among the decaying queues until COBALT has come to rest, and is new again with its next packet. The last
//! packet of a queue is never dropped by COBALT.
//!
//! As in Linux, empty queues are only looked at while other packets wait: a flow that is alone on the
//! link keeps the probability that an overflow has left. Linux's queue holds 4 MB or more, so that
//! overflows are rare. At the limit the packet at the head of the longest queue is dropped.
//!
//! A queue's bytes per round are divided by the number of bulk flows of its host ([`CakeHosts`]). A flow's
//! queue is one of a set of eight, so that few flows share a queue.
//!
//! Each tin ([`CakeTins`]) has such queues and a share of the rate. The last tin within its share sends
//! first; what a tin leaves goes to the others. COBALT's parameters follow from the tin's share.
//!
//! The ACK filter ([`Fifo::filter_ack`](crate::aqm::fifo::Fifo::filter_ack)) acts on arrival.

mod config;

pub use config::{AckFilter, CakeConfig, CakeHosts, CakeTins, FlowKeys};

use crate::aqm::cobalt::{Cobalt, Parameters};
use crate::aqm::fifo::AqmCounters;
use crate::aqm::flow_queues::FlowQueues;
use crate::rng::{Rng, Stream};
use crate::{Backlog, DropReason, Packet};
use dumbbell_units::Time;
use std::collections::VecDeque;
use std::sync::Arc;

/// Queues of a set, in one of which a flow is (CAKE_SET_WAYS).
const WAYS: usize = 8;

/// The rotation that a queue is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Set {
    #[default]
    None,
    Sparse,
    /// Empty, in the rotation of bulk flows, and not yet one of them.
    SparseWait,
    Bulk,
    Decaying,
}

/// The state of a queue (cake_flow).
#[derive(Clone, Debug, Default)]
struct Flow {
    cobalt: Cobalt,
    set: Set,
    /// The last flow that used the queue, plus one.
    tag: u32,
    /// Source and destination, if they count.
    hosts: [Option<u32>; 2],
}

/// The queues of a class of traffic (cake_tin_data).
#[derive(Clone, Debug)]
struct Tin<P> {
    parameters: Parameters,
    flows: FlowQueues<P, Flow>,
    /// Empty queues whose state has not come to rest.
    decaying: VecDeque<u32>,
    /// The number of bulk flows of each source and of each destination.
    bulk_flows: [Vec<i64>; 2],
    /// The tin keeps to its share of the rate if it sends from then on (time_next_packet).
    next_packet: Time,
}

#[derive(Clone, Debug)]
pub(crate) struct Cake<P> {
    config: CakeConfig,
    /// Bytes of a full packet.
    mtu: u32,
    /// The rate of the tins' parameters; 0 before there is any.
    rate: u64,
    tins: Vec<Tin<P>>,
    /// Of all tins.
    backlog: Backlog,
    /// By flow.
    keys: Arc<[FlowKeys]>,
    seed: u64,
    rng: Rng,
}

impl<P: Packet> Tin<P> {
    fn new(config: &CakeConfig, mtu: u32, seed: u64) -> Tin<P> {
        Tin {
            parameters: Parameters::new(config, mtu, 0),
            flows: FlowQueues::new(config.queues, seed, Flow::default),
            decaying: VecDeque::new(),
            bulk_flows: Default::default(),
            next_packet: Time::ZERO,
        }
    }

    /// The queue of a flow: its own or, without any, a free one of its set or, without any, the one that
    /// it is hashed to (cake_hash).
    fn queue_of(&self, flow: u32) -> usize {
        let queue = |number: usize| &self.flows.queues[number].aqm;
        let hashed = self.flows.queue_of(flow);
        let tag = flow.wrapping_add(1);
        if queue(hashed).tag == tag {
            return hashed;
        }
        let first = hashed - hashed % WAYS;
        let ways = WAYS.min(self.flows.queues.len() - first);
        let mut set = (0..ways).map(|way| first + (hashed - first + way) % ways);
        let own = set.clone().find(|&number| queue(number).tag == tag);
        own.or_else(|| set.find(|&number| queue(number).set == Set::None)).unwrap_or(hashed)
    }

    /// Adds a packet to a queue.
    fn push(
        &mut self,
        now: Time,
        number: usize,
        packet: P,
        hosts: [Option<u32>; 2],
        rng: &mut Rng,
    ) {
        if self.flows.backlog.packets == 0 {
            self.next_packet = self.next_packet.max(now);
        }
        let flow = packet.flow();
        let is_new = self.flows.push(now, number, packet, 0);
        let queue = &mut self.flows.queues[number];
        let state = &mut queue.aqm;
        state.tag = flow.wrapping_add(1);
        if is_new {
            queue.credit = quantum(&self.parameters, &self.bulk_flows, hosts, rng);
            state.hosts = hosts;
            if std::mem::replace(&mut state.set, Set::Sparse) == Set::Decaying {
                self.decaying.retain(|&decaying| decaying as usize != number);
            }
        } else if state.set == Set::SparseWait {
            state.set = Set::Bulk;
            count(&mut self.bulk_flows, state.hosts, 1);
        }
    }

    /// The queue that sends next.
    fn next(&mut self, rng: &mut Rng) -> Option<usize> {
        let Tin { parameters, flows, bulk_flows, .. } = self;
        flows.next(|queue| {
            let flow = &mut queue.aqm;
            if flow.set == Set::Sparse && queue.fifo.backlog().packets == 0 {
                flow.set = Set::SparseWait;
            } else if flow.set == Set::Sparse {
                flow.set = Set::Bulk;
                count(bulk_flows, flow.hosts, 1);
            }
            quantum(parameters, bulk_flows, flow.hosts, rng)
        })
    }

    /// A queue was found empty. It has left its rotation.
    fn retire(&mut self, now: Time, number: usize) {
        let Flow { cobalt, set, hosts, .. } = &mut self.flows.queues[number].aqm;
        if *set == Set::Bulk {
            count(&mut self.bulk_flows, *hosts, -1);
        }
        cobalt.queue_empty(now, &self.parameters);
        if cobalt.is_at_rest(now) {
            *set = Set::None;
        } else {
            *set = Set::Decaying;
            self.decaying.push_back(number as u32);
        }
    }

    /// Counts a packet of `size` bytes against the tin's share of the rate (cake_advance_shaper).
    fn advance(&mut self, now: Time, size: u32) {
        let time = self.parameters.transmission_time(size);
        self.next_packet = match self.next_packet < now {
            true => self.next_packet + time,
            false => self.next_packet.max(now + time),
        };
    }
}

fn count(bulk_flows: &mut [Vec<i64>; 2], hosts: [Option<u32>; 2], change: i64) {
    for (flows, host) in bulk_flows.iter_mut().zip(hosts) {
        if let Some(host) = host {
            flows[host as usize] += change;
        }
    }
}

/// Bytes per round of a queue: the quantum over the number of bulk flows of its source or its
/// destination, whichever has more. Random rounding keeps the mean (cake_get_flow_quantum).
fn quantum(
    parameters: &Parameters,
    bulk_flows: &[Vec<i64>; 2],
    hosts: [Option<u32>; 2],
    rng: &mut Rng,
) -> i64 {
    let of_host = |(flows, host): (&Vec<i64>, Option<u32>)| host.map_or(1, |at| flows[at as usize]);
    match bulk_flows.iter().zip(hosts).map(of_host).max() {
        Some(load) if load > 1 => {
            (parameters.quantum + (rng.uniform() * load as f64) as i64) / load
        }
        _ => parameters.quantum,
    }
}

impl<P: Packet> Cake<P> {
    /// # Panics
    /// If there are no queues.
    pub(crate) fn new(config: CakeConfig, mtu: u32, rng: &mut Rng) -> Cake<P> {
        let seed = rng.next_u64();
        Cake {
            config,
            mtu,
            rate: 0,
            tins: vec![Tin::new(&config, mtu, seed)],
            backlog: Backlog::default(),
            keys: Arc::new([]),
            seed,
            rng: Rng::new(rng.next_u64(), Stream::Aqm),
        }
    }

    /// Sets the hosts and the DSCP of flows, before the first packet.
    pub(crate) fn set_flow_keys(&mut self, keys: &Arc<[FlowKeys]>) {
        self.keys = Arc::clone(keys);
        let tins = keys.iter().map(|keys| self.config.tins.tin_of(keys.dscp) + 1).max();
        let tin = |_| Tin::new(&self.config, self.mtu, self.seed);
        self.tins = (0..tins.unwrap_or(1)).map(tin).collect();
        let hosts = keys.iter().flat_map(|keys| keys.hosts).flatten().max();
        for tin in &mut self.tins {
            tin.bulk_flows.fill(vec![0; hosts.map_or(0, |host| host as usize + 1)]);
        }
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// Sets the parameters for a link of `rate` bit/s. During an outage, a rate of 0, they stay.
    pub(crate) fn set_rate(&mut self, rate: u64) {
        if rate == self.rate || rate == 0 {
            return;
        }
        self.rate = rate;
        for (tin, shift) in self.tins.iter_mut().zip(self.config.tins.shifts()) {
            tin.parameters = Parameters::new(&self.config, self.mtu, rate >> shift);
        }
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
        self.set_rate(rate);
        while self.backlog.packets > 0 && !admits(self.backlog) {
            self.drop_from_longest(now, counters);
        }
        let keys = self.keys.get(packet.flow() as usize).copied().unwrap_or_default();
        let tin = &mut self.tins[self.config.tins.tin_of(keys.dscp)];
        let number = tin.queue_of(packet.flow());
        self.backlog.add(packet.size());
        tin.push(now, number, packet, self.config.hosts.of(keys), &mut self.rng);
        let aggressive = self.config.ack_filter == AckFilter::Aggressive;
        if self.config.ack_filter != AckFilter::Off
            && let Some(packet) = tin.flows.filter_ack(number, aggressive)
        {
            self.backlog.remove(packet.size());
            counters.discard(now, DropReason::AckFilter, packet);
        }
    }

    /// cake_drop.
    fn drop_from_longest(&mut self, now: Time, counters: &mut AqmCounters<P>) {
        let tins = self.tins.iter_mut().filter(|tin| tin.flows.backlog.packets > 0);
        let longest = tins.map(|tin| (tin.flows.longest(), tin));
        let bytes = |tin: &Tin<P>, number: usize| tin.flows.queues[number].fifo.backlog().bytes;
        let Some((number, tin)) = longest.max_by_key(|(number, tin)| bytes(tin, *number)) else {
            return;
        };
        let Some((_, packet)) = tin.flows.pop(number) else { return };
        tin.flows.queues[number].aqm.cobalt.queue_full(now, tin.parameters.target);
        self.backlog.remove(packet.size());
        counters.discard(now, DropReason::Overflow, packet);
    }

    /// The tin that sends next: the last one within its share of the rate or, without any, the one that is
    /// within it first (cake_dequeue).
    fn next_tin(&self, now: Time) -> usize {
        if self.tins.len() == 1 {
            return 0;
        }
        let active = (0..self.tins.len()).rev().filter(|&at| !self.tins[at].flows.is_idle());
        active.min_by_key(|&at| self.tins[at].next_packet.max(now)).unwrap_or(0)
    }

    /// The packet to send at `now`. While packets wait, each call visits one decaying queue.
    pub(crate) fn dequeue(&mut self, now: Time, counters: &mut AqmCounters<P>) -> Option<P> {
        let mut is_first = true;
        while self.backlog.packets > 0 {
            let next_tin = self.next_tin(now);
            let tin = &mut self.tins[next_tin];
            if std::mem::take(&mut is_first)
                && let Some(number) = tin.decaying.pop_front()
            {
                tin.retire(now, number as usize);
            }
            let number = tin.next(&mut self.rng)?;
            while let Some((since, mut packet)) = tin.flows.pop(number) {
                self.backlog.remove(packet.size());
                let queue = &mut tin.flows.queues[number];
                let can_mark = self.config.ecn && packet.is_ecn_capable();
                let sojourn = now.since(since);
                let cobalt = &mut queue.aqm.cobalt;
                let signal = cobalt.signal(now, sojourn, can_mark, &tin.parameters, &mut self.rng);
                let is_dropped = signal.blue || (signal.congestion && !can_mark);
                if is_dropped && queue.fifo.backlog().packets > 0 {
                    counters.discard(now, DropReason::Early, packet);
                    continue;
                }
                if signal.congestion && can_mark {
                    counters.mark(&mut packet);
                }
                queue.credit -= i64::from(packet.size());
                tin.advance(now, packet.size());
                return Some(packet);
            }
            tin.flows.retire(false);
            tin.retire(now, number);
        }
        None
    }
}

#[cfg(test)]
mod tests;
