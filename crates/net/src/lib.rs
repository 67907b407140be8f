//! Links, queues and routes, and what a protocol engine looks like from outside.
//!
//! Everything here is advanced lazily to a given time, so that the simulator (virtual clock) and
//! the Linux testbed (real clock) drive the very same code. Links are generic over the packet.

mod application;
mod aqm;
mod bucket;
mod dice;
mod extras;
mod link;
mod loss;
mod prefetch;
mod queue;
mod rate;
mod route;
mod server;
mod tail;
mod timeline;
mod trace;

pub use application::Application;
pub use aqm::{AqmConfig, CodelConfig, FqCodelConfig, PieConfig, RedConfig, RedUnit};
pub use bucket::TokenBucket;
pub use link::{Dropped, Link, LinkConfig, Statistics};
pub use loss::{GilbertElliott, Loss, Uneven};
pub use prefetch::prefetch;
pub use queue::{Limit, Waiting};
pub use rate::Transmitter;
pub use route::{LinkId, RouteId, Routes};
pub use server::Varying;
pub use tail::Reordering;
pub use timeline::Timeline;
pub use trace::{OPPORTUNITY, Trace};

use dumbbell_units::Time;

/// What a link needs to know of a packet.
pub trait Packet {
    /// Bytes on the wire.
    fn size(&self) -> u32;

    /// A number that all packets of one flow in one direction have: queues that are fair to flows
    /// tell them apart by it.
    fn flow(&self) -> u32 {
        0
    }

    /// Whether the packet may be marked instead of dropped (RFC 3168: ECT).
    fn is_ecn_capable(&self) -> bool {
        false
    }

    /// Marks congestion experienced (RFC 3168: CE). Called only on ECN-capable packets.
    fn mark(&mut self) {}
}

/// A sans-IO protocol engine: one end of a flow.
///
/// Whoever drives it calls [`handle`](Self::handle) for every packet that arrives, then
/// [`poll`](Self::poll) until it returns `None`, and polls again at
/// [`next_timeout`](Self::next_timeout).
///
/// An endpoint may have several ports, each of which talks to the port of the same number at the
/// other end. Most have one, number 0, and leave the methods about ports as they are.
pub trait Endpoint {
    /// The packets that it sends and receives.
    type Packet;

    /// A packet arrived.
    fn handle(&mut self, now: Time, packet: &Self::Packet);

    /// Acts on timers that are due, and gives the next packet that may be sent now.
    fn poll(&mut self, now: Time) -> Option<Self::Packet>;

    /// When to poll next if no packet arrives; [`Time::MAX`] if there is no need to. It may lie in
    /// the past, which means at once.
    fn next_timeout(&self) -> Time;

    /// How many ports it has, at least one.
    fn ports(&self) -> u8 {
        1
    }

    /// A packet arrived at a port.
    #[inline]
    fn handle_at(&mut self, now: Time, _port: u8, packet: &Self::Packet) {
        self.handle(now, packet);
    }

    /// The port by which the packet leaves that [`poll`](Self::poll) gave last.
    #[inline]
    fn port(&self) -> u8 {
        0
    }

    /// Asks the processor to fetch what the endpoint is made of, as a packet for it is to come
    /// soon; see [`prefetch`](crate::prefetch()). It changes nothing but the time that this takes.
    #[inline]
    fn prefetch(&self) {}

    /// The same for what the endpoint points to; called later than [`prefetch`](Self::prefetch),
    /// as the pointers have to be there.
    #[inline]
    fn prefetch_further(&self) {}
}
