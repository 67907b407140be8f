//! A step: every ECN-capable packet above a threshold is marked, as data centers mark for DCTCP
//! (RFC 8257, section 3.1) and L4S queues mark at their simplest (RFC 9332, section 2.4).
//!
//! A threshold in packets or bytes is compared with what the packet leaves behind it when it is
//! dequeued, as in Linux's `dualpi2`; one in time with the packet's sojourn time. Packets that are
//! not ECN-capable pass.

use crate::Packet;
use crate::aqm::fifo::{AqmCounters, Fifo};
use dumbbell_units::{Span, Time};

/// Parameters of the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct StepConfig {
    /// Packets are marked above it.
    pub threshold: StepThreshold,
}

/// The threshold of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum StepThreshold {
    /// Queued packets.
    Packets(u32),
    /// Queued bytes.
    Bytes(u64),
    /// Sojourn time.
    Ns(u64),
}

impl Default for StepConfig {
    /// The threshold of Linux's `dualpi2` for its L4S queue: 1 ms.
    fn default() -> StepConfig {
        StepConfig { threshold: StepThreshold::Ns(Span::from_millis(1).as_nanos()) }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct StepMarker {
    threshold: StepThreshold,
}

impl StepMarker {
    pub(crate) fn new(config: StepConfig) -> StepMarker {
        StepMarker { threshold: config.threshold }
    }

    /// The packet to send at `now`, marked if it is above the threshold.
    pub(crate) fn dequeue<P: Packet>(
        &self,
        now: Time,
        queue: &mut Fifo<P>,
        counters: &mut AqmCounters<P>,
    ) -> Option<P> {
        let (since, mut packet) = queue.pop()?;
        let is_above = match self.threshold {
            StepThreshold::Packets(packets) => queue.backlog().packets > packets,
            StepThreshold::Bytes(bytes) => queue.backlog().bytes > bytes,
            StepThreshold::Ns(ns) => now.since(since) > Span::from_nanos(ns),
        };
        if is_above && packet.is_ecn_capable() {
            counters.mark(&mut packet);
        }
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::tests::TestPacket;

    /// Which of five packets that arrive together and leave 1 ms after each other are marked.
    fn marked(threshold: StepThreshold, is_ecn: bool) -> Vec<bool> {
        let (mut fifo, mut counters) = (Fifo::default(), AqmCounters::default());
        for _ in 0..5 {
            fifo.push(Time::ZERO, TestPacket { is_ecn, ..TestPacket::default() });
        }
        let step = StepMarker::new(StepConfig { threshold });
        let mut send =
            |ms| step.dequeue(Time::ZERO + Span::from_millis(ms), &mut fifo, &mut counters);
        (0..5).map(|ms| send(ms).expect("it is queued").is_marked).collect()
    }

    #[test]
    fn packets_are_marked_above_the_threshold_and_not_at_it() {
        let long = [false, false, false, true, true];
        assert_eq!(marked(StepThreshold::Ns(2_000_000), true), long);
        let many = [true, true, false, false, false];
        assert_eq!(marked(StepThreshold::Packets(2), true), many);
        assert_eq!(marked(StepThreshold::Bytes(3000), true), many);
    }

    #[test]
    fn packets_that_are_not_ecn_capable_pass() {
        assert_eq!(marked(StepThreshold::Packets(1), false), [false; 5]);
    }
}
