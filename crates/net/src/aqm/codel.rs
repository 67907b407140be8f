//! CoDel: Controlled Delay (RFC 8289).
//!
//! A good queue empties now and then; a bad one stands. CoDel looks at how long each packet waited
//! when it leaves (section 3.1). Once every packet of a whole `interval` (100 ms, a worst-case round
//! trip) waited for `target` (5 ms) or longer, it drops one and enters the dropping state. There it
//! drops the next packet after `interval / sqrt(count)`, where `count` is the number of drops since
//! it entered (section 3.3: the rate of a TCP goes with 1/sqrt(p), so this makes it fall linearly),
//! until a packet has waited for less than `target` or less than a packet is left to send. If it
//! has to enter the state again soon, it goes on from the drop rate that it had (section 5.5).
//!
//! ECN-capable packets are marked where others are dropped (RFC 8290, section 5.2.6). Those that
//! waited for longer than `ce_threshold`, if there is one, are marked in any case: a threshold as
//! DCTCP wants it (section 5.2.7).

use crate::Packet;
use crate::aqm::fifo::{Counters, Fifo};
use dumbbell_units::{Span, Time};
use serde::{Deserialize, Serialize};

/// Parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodelConfig {
    /// The delay that a standing queue may cause.
    #[serde(rename = "target_ns")]
    pub target: Span,
    /// For how long the delay must have been above the target: about the longest round-trip time.
    #[serde(rename = "interval_ns")]
    pub interval: Span,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// The delay above which every ECN-capable packet is marked, whatever CoDel decides.
    #[serde(rename = "ce_threshold_ns")]
    pub ce_threshold: Option<Span>,
}

impl Default for CodelConfig {
    /// RFC 8289, sections 4.3 and 4.4: 100 ms and 5 ms.
    fn default() -> CodelConfig {
        CodelConfig {
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            ecn: true,
            ce_threshold: None,
        }
    }
}

/// A queue of not more than this is not a standing one (section 5.3, MAXPACKET): a full Ethernet
/// frame.
const MAXPACKET: u64 = 1514;

/// The state that CoDel keeps of a queue (section 5.2).
#[derive(Clone, Debug)]
pub(crate) struct Codel {
    config: CodelConfig,
    /// When dropping may begin, if the delay stays above the target until then.
    first_above_time: Option<Time>,
    /// When the next packet is to be dropped.
    drop_next: Time,
    /// Drops since the dropping state was entered, and what it was entered with last.
    count: u32,
    lastcount: u32,
    dropping: bool,
    /// How long the packet waited that was taken last.
    sojourn_time: Span,
}

impl Codel {
    pub(crate) fn new(config: CodelConfig) -> Codel {
        Codel {
            config,
            first_above_time: None,
            drop_next: Time::ZERO,
            count: 0,
            lastcount: 0,
            dropping: false,
            sojourn_time: Span::ZERO,
        }
    }

    /// The packet to send at `now`, if `other_backlog` bytes wait in other queues for the same link.
    pub(crate) fn dequeue<P: Packet>(
        &mut self,
        now: Time,
        queue: &mut Fifo<P>,
        other_backlog: u64,
        counters: &mut Counters<P>,
    ) -> Option<P> {
        let marked = counters.marked;
        let mut packet = self.deque(now, queue, other_backlog, counters)?;
        let is_late = self.config.ce_threshold.is_some_and(|most| self.sojourn_time > most);
        if is_late && packet.is_ecn_capable() && counters.marked == marked {
            packet.mark();
            counters.marked += 1;
        }
        Some(packet)
    }

    /// The packet that CoDel lets through (section 5.5).
    fn deque<P: Packet>(
        &mut self,
        now: Time,
        queue: &mut Fifo<P>,
        other_backlog: u64,
        counters: &mut Counters<P>,
    ) -> Option<P> {
        let Some((mut packet, mut ok_to_drop)) = self.dodequeue(now, queue, other_backlog) else {
            self.dropping = false;
            return None;
        };
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if let Some(marked) = counters.drop_or_mark(now, self.config.ecn, packet) {
                    self.drop_next = self.control_law(self.drop_next);
                    return Some(marked);
                }
                let Some(next) = self.dodequeue(now, queue, other_backlog) else {
                    self.dropping = false;
                    return None;
                };
                (packet, ok_to_drop) = next;
                self.dropping = ok_to_drop;
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
            return Some(packet);
        }
        if !ok_to_drop {
            return Some(packet);
        }
        let sent = counters.drop_or_mark(now, self.config.ecn, packet);
        let next =
            sent.or_else(|| self.dodequeue(now, queue, other_backlog).map(|(packet, _)| packet));
        self.enter_dropping(now);
        next
    }

    /// So many packets were dropped at the queue's limit: the signal gets stronger by them, too.
    pub(crate) fn on_overlimit_drops(&mut self, packets: u32) {
        self.count += packets;
    }

    /// Enters the dropping state; where dropping ended not long ago, at the rate that it had.
    fn enter_dropping(&mut self, now: Time) {
        self.dropping = true;
        let drops = self.count - self.lastcount;
        // The first time there was no dropping before, though overflows may have been counted; in
        // Linux it is then soon or not as its clock of 32 bits happens to stand.
        let is_soon = self.lastcount > 0 && now < self.drop_next + self.config.interval * 16;
        self.count = if drops > 1 && is_soon { drops } else { 1 };
        self.drop_next = self.control_law(now);
        self.lastcount = self.count;
    }

    /// The first packet of the queue, and whether the delay has been too long for too long
    /// (section 5.6, `dodequeue`).
    fn dodequeue<P: Packet>(
        &mut self,
        now: Time,
        queue: &mut Fifo<P>,
        other_backlog: u64,
    ) -> Option<(P, bool)> {
        let Some((since, packet)) = queue.pop() else {
            self.first_above_time = None;
            return None;
        };
        self.sojourn_time = now.since(since);
        if self.sojourn_time < self.config.target
            || queue.backlog().bytes + other_backlog <= MAXPACKET
        {
            self.first_above_time = None;
            return Some((packet, false));
        }
        let first_above_time = *self.first_above_time.get_or_insert(now + self.config.interval);
        Some((packet, now >= first_above_time))
    }

    /// When to drop next (section 5.6, `control_law`).
    fn control_law(&self, from: Time) -> Time {
        let wait = self.config.interval.as_nanos() as f64 / f64::from(self.count).sqrt();
        from + Span::from_nanos(wait as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::tests::TestPacket;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    /// A queue that stands: one packet leaves every `gap` after having waited for `delay`, and there
    /// are always more. Gives when packets were dropped or marked.
    struct Standing {
        codel: Codel,
        queue: Fifo<TestPacket>,
        counters: Counters<TestPacket>,
        now: Time,
        marks: Vec<Time>,
    }

    const GAP: Span = Span::from_micros(100);

    impl Standing {
        fn new() -> Standing {
            let counters = Counters { records_discarded: true, ..Counters::default() };
            let codel = Codel::new(CodelConfig::default());
            Standing { codel, queue: Fifo::default(), counters, now: ms(1000), marks: Vec::new() }
        }

        fn pass(&mut self, time: Span, delay: Span, is_ecn: bool) {
            let end = self.now + time;
            while self.now < end {
                self.now += GAP;
                while self.queue.backlog().packets < 20 {
                    self.queue
                        .push(self.now - delay, TestPacket { is_ecn, ..TestPacket::default() });
                }
                // Only the delay of what waits is to count, not when it was put there.
                let mut fresh = Fifo::default();
                for _ in 0..20 {
                    fresh.push(self.now - delay, TestPacket { is_ecn, ..TestPacket::default() });
                }
                self.queue = fresh;
                let sent = self.codel.dequeue(self.now, &mut self.queue, 0, &mut self.counters);
                if sent.is_some_and(|packet| packet.is_marked) {
                    self.marks.push(self.now);
                }
            }
        }

        fn drops(&self) -> Vec<Time> {
            self.counters.discarded.iter().map(|&(at, ..)| at).collect()
        }
    }

    /// When the control law drops, from a first drop on: `t += interval / sqrt(count)`.
    fn law(first: Time, drops: u32) -> Vec<Time> {
        let mut next = first.as_nanos() as f64;
        let mut times = vec![first];
        for count in 1..drops {
            next += 100e6 / f64::from(count).sqrt();
            times.push(Time::from_nanos(next as u64));
        }
        times
    }

    fn assert_close(got: &[Time], expected: &[Time]) {
        assert_eq!(got.len(), expected.len(), "{got:?}");
        for (got, expected) in got.iter().zip(expected) {
            // A drop happens with the first packet that leaves from then on.
            let late = got.since(*expected);
            assert!(got >= expected && late <= GAP, "{got:?} for {expected:?}");
        }
    }

    #[test]
    fn drops_begin_after_an_interval_and_follow_the_control_law() {
        let mut queue = Standing::new();
        queue.pass(Span::from_secs(1), Span::from_millis(5), false);
        // Above target from the first packet on, at 1000.1 ms.
        let first = ms(1100) + GAP;
        let expected = law(first, 100);
        let within: Vec<Time> = expected.into_iter().filter(|&at| at < ms(2000)).collect();
        // The sum of 1/sqrt(k) for k to n is about 2 sqrt(n) - 1.46, 9 of which fit in 900 ms.
        assert!((26..=28).contains(&within.len()), "{}", within.len());
        assert_close(&queue.drops(), &within);
    }

    #[test]
    fn ecn_capable_packets_are_marked_when_others_are_dropped() {
        let (mut dropping, mut marking) = (Standing::new(), Standing::new());
        dropping.pass(Span::from_secs(1), Span::from_millis(20), false);
        marking.pass(Span::from_secs(1), Span::from_millis(20), true);
        assert_eq!(dropping.drops(), marking.marks);
        assert_eq!(
            (marking.counters.dropped, marking.counters.marked),
            (0, marking.marks.len() as u64)
        );
    }

    /// RFC 8290, section 5.2.7: marking from a delay on, beside CoDel, which drops the others.
    #[test]
    fn above_ce_threshold_each_ecn_capable_packet_is_marked_once() {
        let ce_threshold = Some(Span::from_millis(1));
        let shallow = || {
            let codel = Codel::new(CodelConfig { ce_threshold, ..CodelConfig::default() });
            Standing { codel, ..Standing::new() }
        };
        let (mut late, mut on_time, mut incapable) = (shallow(), shallow(), shallow());
        late.pass(Span::from_millis(300), Span::from_micros(1001), true);
        on_time.pass(Span::from_millis(300), Span::from_millis(1), true);
        incapable.pass(Span::from_millis(300), Span::from_millis(4), false);
        assert_eq!((late.marks.len(), late.counters.marked), (3000, 3000));
        assert_eq!((on_time.marks.len(), incapable.counters.marked), (0, 0));
        let mut standing = shallow();
        standing.pass(Span::from_secs(1), Span::from_millis(20), true);
        assert_eq!((standing.counters.marked, standing.counters.dropped), (10_000, 0));
    }

    #[test]
    fn a_queue_just_below_the_target_is_never_dropped_from() {
        let mut queue = Standing::new();
        queue.pass(Span::from_secs(10), Span::from_micros(4999), false);
        assert_eq!(queue.drops(), []);
    }

    #[test]
    fn one_packet_below_the_target_ends_the_dropping_state() {
        let mut queue = Standing::new();
        queue.pass(Span::from_millis(500), Span::from_millis(6), false);
        let drops = queue.drops().len();
        queue.pass(GAP, Span::from_millis(4), false);
        queue.pass(Span::from_millis(99), Span::from_millis(6), false);
        assert_eq!(queue.drops().len(), drops, "the interval begins anew");
        queue.pass(Span::from_millis(2), Span::from_millis(6), false);
        assert_eq!(queue.drops().len(), drops + 1);
    }

    #[test]
    fn dropping_that_resumes_soon_continues_at_its_former_rate() {
        let mut queue = Standing::new();
        queue.pass(Span::from_millis(500), Span::from_millis(6), false);
        let before = queue.drops().len() as u32;
        queue.pass(GAP, Span::from_millis(1), false);
        queue.pass(Span::from_millis(1000), Span::from_millis(6), false);
        let again = &queue.drops()[before as usize..];
        // The first drop entered the state with a count of 1, so `before - 1` were counted on.
        let wait = again[1].since(again[0]).as_secs_f64();
        let expected = 0.1 / f64::from(before - 1).sqrt();
        assert!((wait - expected).abs() <= GAP.as_secs_f64(), "{wait} for {expected}");

        queue.pass(Span::from_secs(2), Span::from_millis(1), false);
        let before = queue.drops().len();
        queue.pass(Span::from_millis(300), Span::from_millis(6), false);
        let late = &queue.drops()[before..];
        let wait = late[1].since(late[0]).as_secs_f64();
        assert!((wait - 0.1).abs() <= GAP.as_secs_f64(), "after 16 intervals all is forgotten");
    }

    #[test]
    fn overlimit_drops_before_the_first_drop_do_not_hasten_the_second() {
        let mut queue = Standing::new();
        queue.codel.on_overlimit_drops(64);
        queue.pass(Span::from_millis(250), Span::from_millis(6), false);
        let drops = queue.drops();
        assert_eq!(drops.len(), 2, "{drops:?}");
        assert_eq!(drops[1].since(drops[0]), Span::from_millis(100));
    }

    #[test]
    fn the_last_packet_is_never_dropped_at_any_sojourn_time() {
        let mut codel = Codel::new(CodelConfig::default());
        let (mut queue, mut counters) = (Fifo::default(), Counters::default());
        for at in 0..1000 {
            queue.push(ms(at), TestPacket::default());
            assert!(codel.dequeue(ms(at + 1000), &mut queue, 0, &mut counters).is_some());
        }
        assert_eq!(counters.dropped, 0);
    }
}
