//! One-way delays and ECN marks of each flow's packets.

use crate::engine::EndpointId;
use crate::histogram::Histogram;
use crate::pdu::SimPacket;
use dumbbell_net::prefetch;
use dumbbell_units::{Span, Time};

/// Measures the delay of delivered data packets beyond the base delay, and counts their marks.
#[derive(Clone, Debug)]
pub(crate) struct DelayMeter {
    /// By pair of ports.
    flows: Vec<FlowDelays>,
    /// The pairs after those, transfers, count for the pair of their flow.
    flow_of: Vec<u32>,
}

/// `repr(C)`: the histogram's counts come last, and everything before them is on one cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct FlowDelays {
    /// One-way delay of the empty path.
    base: Span,
    /// Zero of the clock of the flow's timestamps.
    clock: Time,
    /// Data packets that arrived with an ECN mark.
    marked: u64,
    delays: Histogram,
}

const _: () = assert!(size_of::<FlowDelays>() == 512);

impl DelayMeter {
    /// A meter for pairs of ports with these (one-way base delay, zero of the timestamps' clock),
    /// and for pairs that count for one of them.
    pub(crate) fn new(
        flows: impl IntoIterator<Item = (Span, Time)>,
        flow_of: Vec<u32>,
    ) -> DelayMeter {
        let flow = |(base, clock)| FlowDelays { base, clock, marked: 0, delays: Histogram::new() };
        // First all of the small ones, so that the large ones are allocated once.
        let flows: Vec<_> = flows.into_iter().collect();
        DelayMeter { flows: flows.into_iter().map(flow).collect(), flow_of }
    }

    /// Forgets all packets so far.
    pub(crate) fn reset(&mut self) {
        for flow in &mut self.flows {
            (flow.marked, flow.delays) = (0, Histogram::new());
        }
    }

    /// The index of the delays of a pair of ports.
    #[inline]
    fn place(&self, pair: u32) -> usize {
        match (pair as usize).checked_sub(self.flows.len()) {
            None => pair as usize,
            Some(transfer) => self.flow_of[transfer] as usize,
        }
    }

    /// The delays of a pair of ports.
    pub(crate) fn delays(&self, pair: u32) -> &Histogram {
        &self.flows[pair as usize].delays
    }

    /// The data packets of a pair of ports that arrived with an ECN mark.
    pub(crate) fn marked(&self, pair: u32) -> u64 {
        self.flows[pair as usize].marked
    }

    /// Prefetches the memory that [`on_delivered`](Self::on_delivered) reads first.
    #[inline]
    pub(crate) fn prefetch(&self, to: EndpointId) {
        if to.is_receiver() {
            prefetch(&self.flows[self.place(to.pair())].base);
        }
    }

    /// Prefetches the bucket that the next delay probably falls into; reads what `prefetch`
    /// fetched.
    #[inline]
    pub(crate) fn prefetch_indirect(&self, to: EndpointId) {
        if to.is_receiver() {
            self.flows[self.place(to.pair())].delays.prefetch();
        }
    }

    /// Records the delay and the mark of a delivered data packet.
    #[inline]
    pub(crate) fn on_delivered(&mut self, now: Time, to: EndpointId, packet: &impl SimPacket) {
        let Some(sent_at) = packet.data_sent_at() else { return };
        // Timestamps are in microseconds, so delays are exact to 1 us.
        let place = self.place(to.pair());
        let flow = &mut self.flows[place];
        let now = now.since(flow.clock).as_micros() as u32;
        let delay = Span::from_micros(u64::from(now.wrapping_sub(sent_at)));
        flow.marked += u64::from(packet.is_marked());
        flow.delays.record(delay.saturating_sub(flow.base));
    }
}
