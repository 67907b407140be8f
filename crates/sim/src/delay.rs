//! How long packets of each flow were under way.

use crate::engine::EndpointId;
use crate::histogram::Histogram;
use crate::pdu::Datagram;
use dumbbell_units::{Span, Time};

/// Measures how much longer than the base delivered data packets were under way.
#[derive(Clone, Debug)]
pub(crate) struct DelayMeter {
    flows: Vec<(Span, Histogram)>,
}

impl DelayMeter {
    /// A meter for flows of the given base delays, one way.
    pub(crate) fn new(bases: impl IntoIterator<Item = Span>) -> DelayMeter {
        DelayMeter { flows: bases.into_iter().map(|base| (base, Histogram::new())).collect() }
    }

    /// What was measured of a flow.
    pub(crate) fn delays(&self, pair: u32) -> &Histogram {
        &self.flows[pair as usize].1
    }

    /// A packet is delivered.
    #[inline]
    pub(crate) fn delivered(&mut self, now: Time, to: EndpointId, packet: &impl Datagram) {
        let Some(sent_at) = packet.data_sent_at() else { return };
        // The timestamp tells when the packet was sent to the microsecond, so the delay is exact
        // to a microsecond.
        let now = (now.as_nanos() / 1_000) as u32;
        let delay = Span::from_micros(u64::from(now.wrapping_sub(sent_at)));
        let (base, delays) = &mut self.flows[to.pair() as usize];
        delays.record(delay.saturating_sub(*base));
    }
}
