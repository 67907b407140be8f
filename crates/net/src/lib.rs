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

/// A protocol engine without I/O: one end of a flow.
///
/// Its driver calls [`handle`](Self::handle) for every packet that arrives, then
/// [`poll`](Self::poll) until it returns `None`, and polls again at
/// [`next_timeout`](Self::next_timeout).
pub trait Endpoint {
    /// The packets that it sends and receives.
    type Packet;

    /// Processes a packet that arrived at `now`.
    fn handle(&mut self, now: Time, packet: &Self::Packet);

    /// Runs the timers that are due and returns the next packet to send at `now`.
    fn poll(&mut self, now: Time) -> Option<Self::Packet>;

    /// When to poll next if no packet arrives; [`Time::MAX`] if no timer is set.
    /// A time in the past means: poll immediately.
    fn next_timeout(&self) -> Time;
}
