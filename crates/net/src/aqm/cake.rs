//! CAKE's queues on a link of given rate: COBALT in one queue per flow, DRR++ between them (Høiland-
//! Jørgensen, Täht and Morton, "Piece of CAKE: a comprehensive queue management solution for home
//! gateways", LANMAN 2018; Linux's net/sched/sch_cake.c with `besteffort flows no-ack-filter`).
//!
//! DRR++ is the round robin of FQ-CoDel, but a queue that is found empty keeps its state: it waits
//! among the decaying queues until COBALT has come to rest, and is new again with its next packet.
//!
//! COBALT is CoDel with another control law, and BLUE beside it. While the sojourn time of the packet at
//! the head is above `target` (and the time of four packets), a packet is marked or dropped at
//! `drop_next`, first after an `interval`:
//!
//! ```text
//! count += 1;  drop_next += interval / sqrt(count)
//! ```
//!
//! Below the target `count` falls by one at each `drop_next`. BLUE drops at random with a probability
//! that rises by 1/256 when the queue overflows and falls by 1/4096 when it is found empty, each at most
//! once in a `target`; it ignores ECN. The last packet of a queue is never dropped.
//!
//! As in Linux, empty queues are only looked at while other packets wait: a flow that is alone on the
//! link keeps the probability that an overflow has left. Linux's queue holds 4 MB or more, so that
//! overflows are rare.
//!
//! At the limit the packet at the head of the longest queue is dropped. `target` is at least the time of
//! 1.5 packets. The quantum is a 4096th of a second at the rate, 300 to 1514 bytes. `sqrt` is exact;
//! Linux approximates it in 32 bits. Hosts, DiffServ's tins and the ACK filter are not here.

use crate::aqm::fifo::{AqmCounters, Fifo};
use crate::rng::{Rng, Stream};
use crate::{Backlog, DropReason, Packet};
use dumbbell_units::{Span, Time};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng};
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

/// Bytes of a full frame.
const MTU: u64 = 1514;
/// BLUE's steps (`p_inc`, `p_dec`).
const P_INC: f64 = 1.0 / 256.0;
const P_DEC: f64 = 1.0 / 4096.0;

/// The parameters at a link's rate (cake_set_rate).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parameters {
    target: Span,
    interval: Span,
    mtu_time: Span,
    quantum: i64,
}

impl Parameters {
    fn new(config: &CakeConfig, rate: u64) -> Parameters {
        let mtu_time = (MTU * 8_000_000_000).checked_div(rate).unwrap_or(0);
        let target = config.target.max(Span::from_nanos(mtu_time * 3 / 2));
        let raised = target.saturating_sub(config.target);
        Parameters {
            target,
            interval: (config.interval + raised).max(target * 2),
            mtu_time: Span::from_nanos(mtu_time),
            quantum: (rate / 8 / 4096).clamp(300, MTU) as i64,
        }
    }
}

/// COBALT's state of a queue (cobalt_vars).
#[derive(Clone, Copy, Debug, Default)]
struct Cobalt {
    count: u32,
    dropping: bool,
    drop_next: Time,
    /// BLUE's probability, and when it last changed.
    p_drop: f64,
    blue_timer: Time,
}

/// What happens to a packet at the head of its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Signal {
    /// COBALT's mark, or its drop if the packet cannot be marked.
    congestion: bool,
    /// BLUE's drop.
    blue: bool,
}

impl Cobalt {
    /// `interval / sqrt(count)`, where a count of 0 is 1.
    fn control(&self, from: Time, interval: Span) -> Time {
        from + interval.mul_f64(1.0 / f64::from(self.count.max(1)).sqrt())
    }

    /// cobalt_queue_full.
    fn queue_full(&mut self, now: Time, target: Span) {
        if now.since(self.blue_timer) > target {
            self.p_drop = (self.p_drop + P_INC).min(1.0);
            self.blue_timer = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// cobalt_queue_empty.
    fn queue_empty(&mut self, now: Time, parameters: &Parameters) {
        if self.p_drop > 0.0 && now.since(self.blue_timer) > parameters.target {
            self.p_drop = (self.p_drop - P_DEC).max(0.0);
            self.blue_timer = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.count -= 1;
            self.drop_next = self.control(self.drop_next, parameters.interval);
        }
    }

    /// Whether the state has come to rest.
    fn is_at_rest(&self, now: Time) -> bool {
        self.p_drop == 0.0 && self.count == 0 && now >= self.drop_next
    }

    /// cobalt_should_drop for a packet that has waited for `sojourn`. `can_mark` is whether a mark would
    /// do instead of a drop.
    fn signal(
        &mut self,
        now: Time,
        sojourn: Span,
        can_mark: bool,
        parameters: &Parameters,
        rng: &mut Rng,
    ) -> Signal {
        let over_target = sojourn > parameters.target && sojourn > parameters.mtu_time * 4;
        let next_due = self.count > 0 && now >= self.drop_next;
        if over_target {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = self.control(now, parameters.interval);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        let congestion = next_due && self.dropping;
        if congestion {
            self.count = self.count.saturating_add(1);
            self.drop_next = self.control(self.drop_next, parameters.interval);
        } else if next_due {
            while self.count > 0 && now >= self.drop_next {
                self.count -= 1;
                self.drop_next = self.control(self.drop_next, parameters.interval);
            }
        }
        let blue = self.p_drop > 0.0 && rng.uniform() < self.p_drop;
        let is_dropped = blue || (congestion && !can_mark);
        if self.count == 0 {
            self.drop_next = now + parameters.interval;
        } else if now > self.drop_next && !is_dropped {
            self.drop_next = now;
        }
        Signal { congestion, blue }
    }
}

/// The rotation that a queue is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    None,
    Sparse,
    Bulk,
    Decaying,
}

#[derive(Clone, Debug)]
pub(crate) struct Cake<P> {
    config: CakeConfig,
    parameters: Parameters,
    /// The rate of `parameters`.
    rate: u64,
    queues: Vec<Queue<P>>,
    new_queues: VecDeque<u32>,
    old_queues: VecDeque<u32>,
    /// Empty queues whose state has not come to rest.
    decaying: VecDeque<u32>,
    backlog: Backlog,
    seed: u64,
    rng: Rng,
}

#[derive(Clone, Debug)]
struct Queue<P> {
    fifo: Fifo<P>,
    cobalt: Cobalt,
    deficit: i64,
    set: Set,
}

impl<P: Packet> Cake<P> {
    /// # Panics
    /// If there are no queues.
    pub(crate) fn new(config: CakeConfig, rng: &mut Rng) -> Cake<P> {
        assert!(config.queues > 0, "there are queues");
        let queue = || Queue {
            fifo: Fifo::default(),
            cobalt: Cobalt::default(),
            deficit: 0,
            set: Set::None,
        };
        Cake {
            parameters: Parameters::new(&config, 0),
            rate: 0,
            queues: (0..config.queues).map(|_| queue()).collect(),
            new_queues: VecDeque::new(),
            old_queues: VecDeque::new(),
            decaying: VecDeque::new(),
            backlog: Backlog::default(),
            seed: rng.next_u64(),
            rng: Rng::new(rng.next_u64(), Stream::Aqm),
            config,
        }
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.backlog
    }

    /// The queue of a flow.
    fn queue_of(&self, flow: u32) -> u32 {
        let hash = SplitMix64::seed_from_u64(self.seed ^ u64::from(flow)).next_u64();
        ((u128::from(hash) * self.queues.len() as u128) >> 64) as u32
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
        while self.backlog.packets > 0 && !admits(self.backlog) {
            self.drop_from_longest(now, counters);
        }
        let number = self.queue_of(packet.flow());
        let quantum = self.parameters.quantum;
        let queue = &mut self.queues[number as usize];
        self.backlog.add(packet.size());
        queue.fifo.push(now, packet);
        if queue.set == Set::Decaying {
            self.decaying.retain(|&decaying| decaying != number);
        }
        if matches!(queue.set, Set::None | Set::Decaying) {
            queue.set = Set::Sparse;
            queue.deficit = quantum;
            self.new_queues.push_back(number);
        }
    }

    /// cake_drop.
    fn drop_from_longest(&mut self, now: Time, counters: &mut AqmCounters<P>) {
        let longest = self.queues.iter_mut().max_by_key(|queue| queue.fifo.backlog().bytes);
        let Some((queue, (_, packet))) = longest.and_then(|queue| {
            let head = queue.fifo.pop()?;
            Some((queue, head))
        }) else {
            return;
        };
        queue.cobalt.queue_full(now, self.parameters.target);
        self.backlog.remove(packet.size());
        counters.discard(now, DropReason::Overflow, packet);
    }

    /// A queue was found empty: it leaves its rotation, which has forgotten it already.
    fn retire(&mut self, now: Time, number: u32) {
        let queue = &mut self.queues[number as usize];
        queue.cobalt.queue_empty(now, &self.parameters);
        if queue.cobalt.is_at_rest(now) {
            queue.set = Set::None;
        } else {
            queue.set = Set::Decaying;
            self.decaying.push_back(number);
        }
    }

    /// The packet to send at `now`. While packets wait, each call visits one decaying queue.
    pub(crate) fn dequeue(&mut self, now: Time, counters: &mut AqmCounters<P>) -> Option<P> {
        if self.backlog.packets == 0 {
            return None;
        }
        if let Some(number) = self.decaying.pop_front() {
            self.retire(now, number);
        }
        while self.backlog.packets > 0 {
            let is_new = !self.new_queues.is_empty();
            let list = if is_new { &mut self.new_queues } else { &mut self.old_queues };
            let number = *list.front()?;
            let queue = &mut self.queues[number as usize];
            if queue.deficit <= 0 {
                queue.set = Set::Bulk;
                queue.deficit += self.parameters.quantum;
                list.pop_front();
                self.old_queues.push_back(number);
                continue;
            }
            while let Some((since, mut packet)) = queue.fifo.pop() {
                self.backlog.remove(packet.size());
                let can_mark = self.config.ecn && packet.is_ecn_capable();
                let sojourn = now.since(since);
                let signal =
                    queue.cobalt.signal(now, sojourn, can_mark, &self.parameters, &mut self.rng);
                if signal.congestion && can_mark {
                    counters.mark(&mut packet);
                }
                let is_dropped = signal.blue || (signal.congestion && !can_mark);
                if is_dropped && queue.fifo.backlog().packets > 0 {
                    counters.discard(now, DropReason::Early, packet);
                    continue;
                }
                queue.deficit -= i64::from(packet.size());
                return Some(packet);
            }
            list.pop_front();
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

    /// cobalt_should_drop with a delay above the target from 0 on, a packet a millisecond: signals at
    /// the interval, then each `interval / sqrt(count)` later, count being 2, 3, 4...
    #[test]
    fn signals_follow_the_control_law_of_the_kernel_s_code() {
        let parameters = Parameters::new(&CakeConfig::default(), 100_000_000);
        let (mut cobalt, mut rng) = (Cobalt::default(), rng());
        let delay = Span::from_millis(20);
        let signals: Vec<u64> = (0..500)
            .filter(|&ms| {
                cobalt.signal(us(ms * 1000), delay, false, &parameters, &mut rng).congestion
            })
            .collect();
        let mut at = 100.0;
        let expected = (2..=9).map(|count| {
            let signal = at;
            at += 100.0 / f64::from(count).sqrt();
            signal
        });
        for (signal, expected) in signals.iter().zip(expected) {
            assert!((0.0..1.001).contains(&(*signal as f64 - expected)), "{signal} for {expected}");
        }
        assert!(signals.len() >= 7, "{signals:?}");
    }

    #[test]
    fn below_the_target_the_count_falls_at_each_drop_next() {
        let parameters = Parameters::new(&CakeConfig::default(), 100_000_000);
        let (mut cobalt, mut rng) = (Cobalt::default(), rng());
        for ms in 0..400 {
            cobalt.signal(us(ms * 1000), Span::from_millis(20), false, &parameters, &mut rng);
        }
        let count = cobalt.count;
        for ms in 400..2000 {
            let signal = cobalt.signal(us(ms * 1000), Span::ZERO, false, &parameters, &mut rng);
            assert!(!signal.congestion && !signal.blue);
        }
        assert!(count > 5 && cobalt.count == 0, "{count} to {}", cobalt.count);
    }

    /// cake_set_rate: at 1 Mbit/s a frame of 1514 bytes takes 12.112 ms, so the target is 18.168 ms, the
    /// interval 13.168 ms longer, and a 4096th of 125 kB/s is below the minimum of the quantum.
    #[test]
    fn slow_links_have_a_longer_target_and_a_smaller_quantum() {
        let slow = Parameters::new(&CakeConfig::default(), 1_000_000);
        assert_eq!(slow.target, Span::from_micros(18_168));
        assert_eq!((slow.interval, slow.quantum), (Span::from_micros(113_168), 300));
        let fast = Parameters::new(&CakeConfig::default(), 100_000_000);
        assert_eq!((fast.target, fast.interval), (Span::from_millis(5), Span::from_millis(100)));
        assert_eq!(fast.quantum, 1514);
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
        let number = bench.cake.queue_of(1) as usize;
        assert!(bench.cake.queues[number].cobalt.p_drop > 0.0);
        for ms in 20..500 {
            bench.put(us(ms * 1000), packet(2, 1500), 1000);
            bench.cake.dequeue(us(ms * 1000), &mut bench.counters);
        }
        let queue = &bench.cake.queues[number];
        assert!(queue.cobalt.p_drop == 0.0 && queue.set == Set::None, "{queue:?}");
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
