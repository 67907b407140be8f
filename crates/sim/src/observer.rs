//! The observer of a run's packets.

use crate::engine::EndpointId;
use dumbbell_net::{DropReason, LinkId};
use dumbbell_units::Time;

/// Observes packets as they travel. Methods that are not overridden cost nothing.
pub trait Observer<P> {
    /// An endpoint sends a packet.
    #[inline]
    fn on_sent(&mut self, _now: Time, _from: EndpointId, _packet: &P) {}

    /// A link accepts a packet at its near end; `hop` counts the links that it crossed before.
    #[inline]
    fn on_entered(&mut self, _now: Time, _from: EndpointId, _hop: u8, _at: LinkId, _packet: &P) {}

    /// A packet is delivered to an endpoint, which has not processed it yet.
    #[inline]
    fn on_delivered(&mut self, _now: Time, _to: EndpointId, _packet: &P) {}

    /// A link drops a packet, on arrival or later. Later drops are reported on the next access to
    /// the link, so `now` may lie in the past.
    #[inline]
    fn on_dropped(
        &mut self,
        _now: Time,
        _from: EndpointId,
        _at: LinkId,
        _why: DropReason,
        _packet: &P,
    ) {
    }

    /// Prefetches memory for a packet that is delivered soon; see [`SimEndpoint::prefetch`](crate::SimEndpoint::prefetch).
    #[inline]
    fn prefetch(&self, _to: EndpointId) {}

    /// Prefetches what that memory points to; see [`SimEndpoint::prefetch_indirect`](crate::SimEndpoint::prefetch_indirect).
    #[inline]
    fn prefetch_indirect(&self, _to: EndpointId) {}
}

impl<P> Observer<P> for () {}
