//! Active queue management (AQM): drops or marks before the queue is full, and the choice of the
//! next packet.
//!
//! RED, PIE and FQ-PIE decide when a packet arrives, the others when one is dequeued. They signal congestion
//! by a mark on ECN-capable packets and by a drop of others; the step only marks. The link's queue
//! limit applies besides, as it does without AQM. Tail drop is here for links on a shared medium,
//! which decide at each transmission what to send.

mod cake;
mod cobalt;
mod codel;
mod dualpi2;
mod fifo;
mod flow_queues;
mod fq_codel;
mod fq_pie;
mod pie;
mod red;
mod step;

pub use cake::{AckFilter, CakeConfig, CakeHosts, CakeTins, FlowKeys};
pub use codel::CodelConfig;
pub use dualpi2::DualPi2Config;
pub use fq_codel::FqCodelConfig;
pub use fq_pie::FqPieConfig;
pub use pie::PieConfig;
pub use red::{RedConfig, RedUnit};
pub use step::{StepConfig, StepThreshold};

use crate::rng::{Rng, Stream};
use crate::shaper::Shaper;
use crate::{Backlog, DropReason, Limit, Packet};
use cake::Cake;
use codel::Codel;
use dualpi2::DualPi2;
use dumbbell_units::{Span, Time};
use fifo::{AqmCounters, Fifo};
use fq_codel::FqCodel;
use fq_pie::FqPie;
use pie::Pie;
use red::Red;
use std::sync::Arc;
use step::StepMarker;

/// The AQM of a link and its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum AqmConfig {
    /// Random Early Detection (Floyd and Jacobson, 1993).
    Red(RedConfig),
    /// Controlled Delay (RFC 8289).
    Codel(CodelConfig),
    /// CoDel in one queue per flow (RFC 8290).
    FqCodel(FqCodelConfig),
    /// Proportional Integral controller Enhanced (RFC 8033).
    Pie(PieConfig),
    /// The Dual-Queue Coupled AQM with PI2 (RFC 9332).
    #[cfg_attr(feature = "serde", serde(rename = "dualpi2"))]
    DualPi2(DualPi2Config),
    /// Marks above a threshold (RFC 8257, section 3.1).
    Step(StepConfig),
    /// PIE in one queue per flow (Linux's fq_pie).
    FqPie(FqPieConfig),
    /// COBALT in one queue per flow (Linux's cake).
    Cake(CakeConfig),
}

/// The decision about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Pass,
    /// Mark the packet, or drop it if it is not ECN-capable.
    Mark,
    Drop,
}

/// A queue with AQM.
#[derive(Clone, Debug)]
pub(crate) struct AqmQueue<P> {
    discipline: Discipline<P>,
    limit: Limit,
    counters: AqmCounters<P>,
}

#[derive(Clone, Debug)]
enum Discipline<P> {
    TailDrop(Fifo<P>),
    Red(Box<Red>, Fifo<P>),
    Codel(Box<Codel>, Fifo<P>),
    FqCodel(Box<FqCodel<P>>),
    Pie(Box<Pie>, Fifo<P>),
    DualPi2(Box<DualPi2<P>>),
    Step(StepMarker, Fifo<P>),
    FqPie(Box<FqPie<P>>),
    Cake(Box<Cake<P>>),
}

impl<P: Packet> AqmQueue<P> {
    /// An empty queue on a link whose full packets have `mtu` bytes.
    pub(crate) fn new(config: AqmConfig, limit: Limit, mtu: u32, seed: u64) -> AqmQueue<P> {
        let mut rng = Rng::new(seed, Stream::Aqm);
        let discipline = match config {
            AqmConfig::Red(red) => {
                Discipline::Red(Box::new(Red::new(red, mtu, rng)), Fifo::default())
            }
            AqmConfig::Codel(codel) => {
                Discipline::Codel(Box::new(Codel::new(codel, mtu)), Fifo::default())
            }
            AqmConfig::FqCodel(fq) => {
                Discipline::FqCodel(Box::new(FqCodel::new(fq, mtu, rng.next_u64())))
            }
            AqmConfig::Pie(pie) => {
                Discipline::Pie(Box::new(Pie::new(pie, mtu, rng)), Fifo::default())
            }
            AqmConfig::DualPi2(dualpi2) => {
                Discipline::DualPi2(Box::new(DualPi2::new(dualpi2, mtu, rng)))
            }
            AqmConfig::Step(step) => Discipline::Step(StepMarker::new(step), Fifo::default()),
            AqmConfig::FqPie(fq) => Discipline::FqPie(Box::new(FqPie::new(fq, mtu, &mut rng))),
            AqmConfig::Cake(cake) => Discipline::Cake(Box::new(Cake::new(cake, mtu, &mut rng))),
        };
        AqmQueue { discipline, limit, counters: AqmCounters::default() }
    }

    /// An empty queue without AQM, for links that decide late what to send.
    pub(crate) fn tail_drop(limit: Limit) -> AqmQueue<P> {
        let discipline = Discipline::TailDrop(Fifo::default());
        AqmQueue { discipline, limit, counters: AqmCounters::default() }
    }

    pub(crate) fn backlog(&self) -> Backlog {
        match &self.discipline {
            Discipline::TailDrop(fifo)
            | Discipline::Red(_, fifo)
            | Discipline::Codel(_, fifo)
            | Discipline::Pie(_, fifo)
            | Discipline::Step(_, fifo) => fifo.backlog(),
            Discipline::FqCodel(queues) => queues.backlog(),
            Discipline::DualPi2(queues) => queues.backlog(),
            Discipline::FqPie(queues) => queues.backlog(),
            Discipline::Cake(queues) => queues.backlog(),
        }
    }

    /// Queues an arriving packet for `shaper`, or counts and drops it. `waiting` is what has been dequeued
    /// for the shaper and waits there. It is still part of the queue (Linux's qdisc_peek_dequeued).
    pub(crate) fn enqueue(
        &mut self,
        now: Time,
        mut packet: P,
        waiting: Backlog,
        shaper: &Shaper,
    ) -> Result<(), DropReason> {
        let (backlog, size) = (self.backlog(), packet.size());
        let AqmQueue { discipline, limit, counters } = self;
        // A packet that is sent immediately does not occupy the queue.
        let is_sent = || backlog.packets == 0 && shaper.queued_until(now, size) <= now;
        let admits = |backlog: Backlog| {
            let wait = match limit {
                Limit::Time(_) => shaper.queueing_delay(now, backlog.bytes, size),
                _ => Span::ZERO,
            };
            limit.admits(backlog + waiting, size, wait) || is_sent()
        };
        let (verdict, fifo) = match discipline {
            // FQ-CoDel drops others for an arrival, unless it exceeds the limit alone.
            Discipline::FqCodel(queues) if admits(Backlog::default()) => {
                queues.enqueue(now, packet, admits, counters);
                return Ok(());
            }
            Discipline::DualPi2(queues) if admits(backlog) => {
                queues.enqueue(now, packet);
                return Ok(());
            }
            Discipline::Cake(queues) if admits(Backlog::default()) => {
                queues.enqueue(now, packet, shaper.rate(now), admits, counters);
                return Ok(());
            }
            Discipline::FqPie(queues) if admits(backlog) => {
                return queues.enqueue(now, packet, counters);
            }
            Discipline::FqCodel(_)
            | Discipline::DualPi2(_)
            | Discipline::FqPie(_)
            | Discipline::Cake(_) => {
                counters.dropped += 1;
                return Err(DropReason::Overflow);
            }
            Discipline::TailDrop(fifo) | Discipline::Codel(_, fifo) | Discipline::Step(_, fifo) => {
                (Verdict::Pass, fifo)
            }
            Discipline::Red(red, fifo) => {
                (red.on_arrival(backlog + waiting, shaper.idle_packets(now, red.mtu()), size), fifo)
            }
            Discipline::Pie(pie, fifo) => {
                pie.update_until(now, backlog);
                (pie.on_arrival(backlog + waiting), fifo)
            }
        };
        if !admits(backlog) {
            counters.dropped += 1;
            return Err(DropReason::Overflow);
        }
        match verdict {
            Verdict::Pass => {}
            Verdict::Mark if packet.is_ecn_capable() => {
                counters.mark(&mut packet);
            }
            Verdict::Mark | Verdict::Drop => {
                counters.dropped += 1;
                return Err(DropReason::Early);
            }
        }
        fifo.push(now, packet);
        Ok(())
    }

    /// Sets the parameters that depend on the rate of `shaper` at `now`: CAKE's.
    #[inline]
    pub(crate) fn update_rate(&mut self, now: Time, shaper: &Shaper) {
        if let Discipline::Cake(queues) = &mut self.discipline {
            queues.set_rate(shaper.rate(now));
        }
    }

    /// Passes the packet to send at `now` to `send`, if there is one.
    #[inline]
    pub(crate) fn dequeue(&mut self, now: Time, send: impl FnOnce(&P)) {
        let counters = &mut self.counters;
        let packet = match &mut self.discipline {
            Discipline::TailDrop(fifo) | Discipline::Red(_, fifo) => return fifo.pass_head(send),
            Discipline::Codel(codel, fifo) => {
                if codel.select(now, fifo, 0, counters) {
                    fifo.pass_head(send);
                }
                return;
            }
            Discipline::FqCodel(queues) => return queues.dequeue(now, counters, send),
            Discipline::Pie(pie, fifo) => {
                pie.update_until(now, fifo.backlog());
                if let Some((since, _)) = fifo.head() {
                    pie.on_departure(now.since(since));
                }
                return fifo.pass_head(send);
            }
            Discipline::DualPi2(queues) => queues.dequeue(now, counters),
            Discipline::Step(step, fifo) => step.dequeue(now, fifo, counters),
            Discipline::FqPie(queues) => queues.dequeue(now),
            Discipline::Cake(queues) => queues.dequeue(now, counters),
        };
        if let Some(packet) = packet {
            send(&packet);
        }
    }

    /// Packets dropped and marked so far.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.counters.dropped, self.counters.marked)
    }

    /// See [`Link::set_flow_keys`](crate::Link::set_flow_keys).
    pub(crate) fn set_flow_keys(&mut self, keys: &Arc<[FlowKeys]>) {
        if let Discipline::Cake(queues) = &mut self.discipline {
            queues.set_flow_keys(keys);
        }
    }

    pub(crate) fn record_discarded(&mut self) {
        self.counters.records_discarded = true;
    }

    #[inline]
    pub(crate) fn has_discarded(&self) -> bool {
        !self.counters.discarded.is_empty()
    }

    /// The next packet that was dropped after it was accepted, with time and reason.
    pub(crate) fn take_discarded(&mut self) -> Option<(Time, DropReason, P)> {
        self.counters.discarded.pop_front()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::Packet;

    /// A packet with all properties that queues use.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct TestPacket {
        pub(crate) size: u32,
        pub(crate) flow: u32,
        pub(crate) is_ecn: bool,
        pub(crate) is_l4s: bool,
        pub(crate) is_marked: bool,
    }

    impl Default for TestPacket {
        fn default() -> TestPacket {
            TestPacket { size: 1500, flow: 0, is_ecn: false, is_l4s: false, is_marked: false }
        }
    }

    impl Packet for TestPacket {
        fn size(&self) -> u32 {
            self.size
        }

        fn flow(&self) -> u32 {
            self.flow
        }

        fn is_ecn_capable(&self) -> bool {
            self.is_ecn
        }

        fn is_l4s(&self) -> bool {
            self.is_l4s
        }

        fn mark(&mut self) {
            assert!(self.is_ecn, "only ECN-capable packets are marked");
            self.is_marked = true;
        }
    }
}
