//! Links, queues and routes, and what a protocol engine looks like from outside.
//!
//! Everything here is advanced lazily to a given time, so that the simulator (virtual clock) and
//! the Linux testbed (real clock) drive the very same code. Links are generic over the packet.

mod application;
mod aqm;
mod constant_rate;
mod delay_stage;
mod link;
mod loss;
mod managed_link;
mod piecewise_rate;
mod prefetch;
mod queue;
mod rng;
mod route;
mod shaper;
mod token_bucket;
mod trace;

pub use application::Application;
pub use aqm::{AqmConfig, CodelConfig, FqCodelConfig, PieConfig, RedConfig, RedUnit};
pub use constant_rate::ConstantRate;
pub use delay_stage::Reordering;
pub use link::{DropReason, Link, LinkConfig, LinkStatistics};
pub use loss::{GilbertElliott, LossModel, LossProcess};
pub use piecewise_rate::PiecewiseRate;
pub use prefetch::prefetch;
pub use queue::{Backlog, Limit};
pub use route::{LinkId, RouteId, Routes};
pub use shaper::RateProcess;
pub use token_bucket::TokenBucket;
pub use trace::{OPPORTUNITY_BYTES, Trace};

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
