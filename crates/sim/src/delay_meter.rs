//! How long packets of each flow were under way.

use crate::engine::EndpointId;
use crate::histogram::Histogram;
use crate::pdu::SimPacket;
use dumbbell_net::prefetch;
use dumbbell_units::{Span, Time};

/// Measures how much longer than the base delivered data packets were under way.
#[derive(Clone, Debug)]
pub(crate) struct DelayMeter {
    flows: Vec<Flow>,
}

/// In memory the histogram's counts come last, and what is before them on one cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct Flow {
    /// What the delay of an empty path is.
    base: Span,
    /// When the clock of its timestamps began.
    clock: Time,
    delays: Histogram,
}

impl DelayMeter {
    /// A meter for flows of the given base delays, one way, whose timestamps count from the given
    /// times.
    pub(crate) fn new(flows: impl IntoIterator<Item = (Span, Time)>) -> DelayMeter {
        let flow = |(base, clock)| Flow { base, clock, delays: Histogram::new() };
        DelayMeter { flows: flows.into_iter().map(flow).collect() }
    }

    /// What was measured of a flow.
    pub(crate) fn delays(&self, pair: u32) -> &Histogram {
        &self.flows[pair as usize].delays
    }

    /// Asks for the memory that [`on_delivered`](Self::on_delivered) is about to need.
    #[inline]
    pub(crate) fn prefetch(&self, to: EndpointId) {
        if to.is_receiver() {
            prefetch(&self.flows[to.pair() as usize].base);
        }
    }

    /// The same once that is there.
    #[inline]
    pub(crate) fn prefetch_indirect(&self, to: EndpointId) {
        if to.is_receiver() {
            self.flows[to.pair() as usize].delays.prefetch();
        }
    }

    /// A packet is delivered.
    #[inline]
    pub(crate) fn on_delivered(&mut self, now: Time, to: EndpointId, packet: &impl SimPacket) {
        let Some(sent_at) = packet.data_sent_at() else { return };
        // The timestamp tells when the packet was sent to the microsecond, so the delay is exact
        // to a microsecond.
        let flow = &mut self.flows[to.pair() as usize];
        let now = now.since(flow.clock).as_micros() as u32;
        let delay = Span::from_micros(u64::from(now.wrapping_sub(sent_at)));
        flow.delays.record(delay.saturating_sub(flow.base));
    }
}
