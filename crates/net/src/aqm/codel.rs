//! CoDel: Controlled Delay (RFC 8289).
//!
//! A good queue drains now and then; a bad queue stands. CoDel measures each packet's sojourn time
//! when it is dequeued (section 3.1). Once all sojourn times of an `interval` (100 ms, a worst-case
//! round trip) were at least `target` (5 ms), CoDel drops a packet and enters the dropping state.
//! In this state the next drop follows after `interval / sqrt(count)`, where `count` is the number
//! of drops since the state was entered. A TCP's rate is proportional to 1/sqrt(p), so this reduces
//! it linearly (section 3.3). CoDel leaves the state when a sojourn time is below `target` or when
//! at most MAXPACKET bytes are left. If it enters the state again soon, it resumes near the former
//! drop rate (section 5.5).
//!
//! `1 / sqrt(count)` is Linux's, of 16 bits and one step of Newton's method from the value before
//! (`codel_Newton_step`). So the second wait in the dropping state is 50 ms, not 71 ms, and where the count
//! jumps the next waits are shorter than the law's.
//!
//! ECN-capable packets are marked instead of dropped (RFC 8290, section 5.2.6). If `ce_threshold`
//! is set, ECN-capable packets with a longer sojourn time are always marked: DCTCP's threshold (RFC
//! 8290, section 5.2.7).

use crate::Packet;
use crate::aqm::fifo::{AqmCounters, Fifo};
use dumbbell_units::{Span, Time};

/// Parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CodelConfig {
    /// Acceptable standing queueing delay (TARGET).
    #[cfg_attr(feature = "serde", serde(rename = "target_ns"))]
    pub target: Span,
    /// Time for which the delay must exceed the target: about the longest round-trip time
    /// (INTERVAL).
    #[cfg_attr(feature = "serde", serde(rename = "interval_ns"))]
    pub interval: Span,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Sojourn time above which every ECN-capable packet is marked; `None` for no threshold.
    #[cfg_attr(feature = "serde", serde(rename = "ce_threshold_ns"))]
    pub ce_threshold: Option<Span>,
}

impl Default for CodelConfig {
    /// RFC 8289, sections 4.3 and 4.4: 5 ms and 100 ms.
    fn default() -> CodelConfig {
        CodelConfig {
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            ecn: true,
            ce_threshold: None,
        }
    }
}

/// Bytes of the header of an Ethernet frame.
pub(super) const ETHERNET_HEADER: u32 = 14;

/// CoDel's state of one queue (section 5.2).
#[derive(Clone, Debug)]
pub(crate) struct Codel {
    config: CodelConfig,
    /// A queue of at most this many bytes is not standing (section 5.3): a full Ethernet frame.
    maxpacket: u32,
    /// When dropping may start if the delay stays above the target until then.
    first_above_time: Option<Time>,
    /// When the next packet is dropped in the dropping state.
    drop_next: Time,
    /// Drops since the dropping state was entered; `lastcount` is the value at its last entry.
    count: u32,
    lastcount: u32,
    /// `2^16 / sqrt(count)`, as Linux approximates it.
    rec_inv_sqrt: u16,
    dropping: bool,
    /// Sojourn time of the packet dequeued last.
    sojourn_time: Span,
}

impl Codel {
    pub(crate) fn new(config: CodelConfig, mtu: u32) -> Codel {
        Codel {
            config,
            maxpacket: mtu + ETHERNET_HEADER,
            first_above_time: None,
            drop_next: Time::ZERO,
            count: 0,
            lastcount: 0,
            rec_inv_sqrt: 0,
            dropping: false,
            sojourn_time: Span::ZERO,
        }
    }

    /// Drops packets until the head of the queue is to be sent at `now`; returns whether there is one.
    /// `other_backlog` is the bytes in other queues of the same link.
    pub(crate) fn select<P: Packet>(
        &mut self,
        now: Time,
        queue: &mut Fifo<P>,
        other_backlog: u64,
        counters: &mut AqmCounters<P>,
    ) -> bool {
        let marked = counters.marked;
        if !self.deque(now, queue, other_backlog, counters) {
            return false;
        }
        let is_late = self.config.ce_threshold.is_some_and(|most| self.sojourn_time > most);
        if is_late && counters.marked == marked {
            counters.mark_head(queue);
        }
        true
    }

    /// CoDel's decision (section 5.5, `deque`).
    fn deque<P: Packet>(
        &mut self,
        now: Time,
        queue: &mut Fifo<P>,
        other_backlog: u64,
        counters: &mut AqmCounters<P>,
    ) -> bool {
        let Some(mut ok_to_drop) = self.dodequeue(now, queue, other_backlog) else {
            self.dropping = false;
            return false;
        };
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                self.newton_step();
                if !counters.drop_or_mark_head(now, self.config.ecn, queue) {
                    self.drop_next = self.control_law(self.drop_next);
                    return true;
                }
                let Some(next) = self.dodequeue(now, queue, other_backlog) else {
                    self.dropping = false;
                    return false;
                };
                ok_to_drop = next;
                self.dropping = ok_to_drop;
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
            return true;
        }
        if !ok_to_drop {
            return true;
        }
        let is_sent = !counters.drop_or_mark_head(now, self.config.ecn, queue)
            || self.dodequeue(now, queue, other_backlog).is_some();
        self.enter_dropping(now);
        is_sent
    }

    /// Counts packets dropped at the queue's limit as CoDel's own drops (Linux's `fq_codel_drop`).
    pub(crate) fn on_overlimit_drops(&mut self, packets: u32) {
        self.count += packets;
    }

    /// Enters the dropping state. Within 16 intervals of `drop_next` it resumes the former drop
    /// rate (section 5.5).
    fn enter_dropping(&mut self, now: Time) {
        self.dropping = true;
        let drops = self.count - self.lastcount;
        // Before the first dropping state overlimit drops may already have been counted. In Linux
        // the comparison then depends on the wrapped 32-bit clock.
        let is_soon = self.lastcount > 0 && now < self.drop_next + self.config.interval * 16;
        if drops > 1 && is_soon {
            self.count = drops;
            self.newton_step();
        } else {
            (self.count, self.rec_inv_sqrt) = (1, u16::MAX);
        }
        self.drop_next = self.control_law(now);
        self.lastcount = self.count;
    }

    /// Whether the head of the queue may be dropped (`ok_to_drop`; section 5.6, `dodequeue`); `None` if
    /// the queue is empty. The head stays in the queue.
    fn dodequeue<P: Packet>(
        &mut self,
        now: Time,
        queue: &Fifo<P>,
        other_backlog: u64,
    ) -> Option<bool> {
        let Some((since, packet)) = queue.head() else {
            self.first_above_time = None;
            return None;
        };
        self.sojourn_time = now.since(since);
        let behind = queue.backlog().bytes - u64::from(packet.size());
        let is_short = behind + other_backlog <= u64::from(self.maxpacket);
        if self.sojourn_time < self.config.target || is_short {
            self.first_above_time = None;
            return Some(false);
        }
        let first_above_time = *self.first_above_time.get_or_insert(now + self.config.interval);
        Some(now >= first_above_time)
    }

    /// `x (3 - count x^2) / 2`, one step from `x` towards `1 / sqrt(count)` (`codel_Newton_step`). The
    /// arithmetic wraps where Linux's does: if the count is more than three times that of the step before.
    fn newton_step(&mut self) {
        let inv_sqrt = u64::from(self.rec_inv_sqrt) << 16;
        let squared = (inv_sqrt * inv_sqrt) >> 32;
        let value = (3u64 << 32).wrapping_sub(u64::from(self.count) * squared) >> 2;
        self.rec_inv_sqrt = (value.wrapping_mul(inv_sqrt) >> (32 - 2 + 1) >> 16) as u16;
    }

    /// The time of the next drop (section 5.6, `control_law`).
    fn control_law(&self, from: Time) -> Time {
        let interval = u128::from(self.config.interval.as_nanos());
        let wait = (interval * u128::from(self.rec_inv_sqrt)) >> 16;
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

    /// A standing queue: one packet departs every `GAP` with the same sojourn time, and more always
    /// follow. Records the times of drops and marks.
    struct Standing {
        codel: Codel,
        queue: Fifo<TestPacket>,
        counters: AqmCounters<TestPacket>,
        now: Time,
        marks: Vec<Time>,
    }

    const GAP: Span = Span::from_micros(100);

    impl Standing {
        fn new() -> Standing {
            let counters = AqmCounters { records_discarded: true, ..AqmCounters::default() };
            let codel = Codel::new(CodelConfig::default(), 1500);
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
                // Only the sojourn time of the waiting packets matters, not when they were added.
                let mut fresh = Fifo::default();
                for _ in 0..20 {
                    fresh.push(self.now - delay, TestPacket { is_ecn, ..TestPacket::default() });
                }
                self.queue = fresh;
                if self.codel.select(self.now, &mut self.queue, 0, &mut self.counters)
                    && self.queue.head().is_some_and(|(_, packet)| packet.is_marked)
                {
                    self.marks.push(self.now);
                }
            }
        }

        fn drops(&self) -> Vec<Time> {
            self.counters.discarded.iter().map(|&(at, ..)| at).collect()
        }
    }

    /// One step of Newton's method from `x` towards `1 / sqrt(count)`.
    fn newton(x: f64, count: u32) -> f64 {
        x * (3.0 - f64::from(count) * x * x) / 2.0
    }

    /// The drop times of the control law from a first drop on: `t += interval x`.
    fn law(first: Time, drops: u32) -> Vec<Time> {
        let (mut next, mut x) = (first.as_nanos() as f64, 1.0);
        let mut times = vec![first];
        for count in 1..drops {
            x = newton(x, count);
            next += 100e6 * x;
            times.push(Time::from_nanos(next as u64));
        }
        times
    }

    fn assert_close(got: &[Time], expected: &[Time]) {
        assert_eq!(got.len(), expected.len(), "{got:?}");
        for (got, expected) in got.iter().zip(expected) {
            // A drop happens with the first packet dequeued from then on.
            // Each wait is rounded to 1/2^16 of the interval.
            let late = got.as_nanos() as i64 - expected.as_nanos() as i64;
            assert!((-60_000..160_000).contains(&late), "{got:?} for {expected:?}");
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
        assert_eq!(within.len(), 29);
        assert_close(&queue.drops(), &within);
    }

    /// Numbers of Linux 6.12's `codel_Newton_step`, compiled on its own: after counts 1 to 12; then after a
    /// jump from 1 to 130, where its arithmetic wraps; then where a new dropping state resumes with 9, 19, 29.
    #[test]
    fn the_inverse_square_root_is_linuxs_to_the_last_bit() {
        let from = |count, rec_inv_sqrt| Codel {
            count,
            rec_inv_sqrt,
            ..Codel::new(CodelConfig::default(), 1500)
        };
        let steps = |codel: &mut Codel, counts: &mut dyn Iterator<Item = u32>| {
            let step = |count| {
                codel.count = count;
                codel.newton_step();
                codel.rec_inv_sqrt
            };
            counts.map(step).collect::<Vec<u16>>()
        };
        let mut codel = from(1, u16::MAX);
        let counted = steps(&mut codel, &mut (2..=12));
        let linux = [32769, 36864, 31968, 28935, 26481, 24588, 23037, 21746, 20647, 19699, 18869];
        assert_eq!(counted, linux);
        let jump = steps(&mut from(1, u16::MAX), &mut (130..138));
        assert_eq!(jump, [32961, 27616, 45460, 55360, 57789, 2754, 3800, 4824]);
        for (resumed, linux) in [(9, 21748), (19, 15019), (29, 12164)] {
            let mut codel = from(1, u16::MAX);
            steps(&mut codel, &mut (2..=resumed + 1));
            assert_eq!(steps(&mut codel, &mut std::iter::once(resumed)), [linux]);
        }
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

    /// RFC 8290, section 5.2.7: marks above a threshold, besides CoDel's drops of other packets.
    #[test]
    fn above_ce_threshold_each_ecn_capable_packet_is_marked_once() {
        let ce_threshold = Some(Span::from_millis(1));
        let shallow = || {
            let codel = Codel::new(CodelConfig { ce_threshold, ..CodelConfig::default() }, 1500);
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
        // The first drop entered the state with a count of 1, so `before - 1` drops were counted.
        let wait = again[1].since(again[0]).as_secs_f64();
        let former = (1..=before).fold(1.0, newton);
        let expected = 0.1 * newton(former, before - 1);
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
        let mut codel = Codel::new(CodelConfig::default(), 1500);
        let (mut queue, mut counters) = (Fifo::default(), AqmCounters::default());
        for at in 0..1000 {
            queue.push(ms(at), TestPacket::default());
            assert!(codel.select(ms(at + 1000), &mut queue, 0, &mut counters));
            queue.pop();
        }
        assert_eq!(counters.dropped, 0);
    }
}
