//! Links, queues and routes, and the interface of protocol engines.
//!
//! Links are evaluated lazily up to a given time, so that the simulator (virtual clock) and the
//! Linux testbed (real clock) run the same code. They are generic over the packet type.

mod application;
mod aqm;
mod constant_rate;
mod delay_stage;
mod link;
mod loss;
mod managed_link;
mod medium;
mod piecewise_rate;
mod plain_link;
mod prefetch;
mod queue;
mod rng;
mod route;
mod shaper;
mod token_bucket;
mod trace;

pub use application::Application;
pub use aqm::{
    AckFilter, AqmConfig, CakeConfig, CakeHosts, CakeTins, CodelConfig, DualPi2Config, FlowKeys,
    FqCodelConfig, FqPieConfig, PieConfig, RedConfig, RedUnit, StepConfig, StepThreshold,
};
pub use constant_rate::ConstantRate;
pub use delay_stage::Reordering;
pub use link::{DropReason, Link, LinkConfig, LinkStatistics};
pub use loss::{GilbertElliott, LossModel, LossProcess};
pub use medium::MediumConfig;
pub use piecewise_rate::PiecewiseRate;
/// Public for the protocol engines (`dumbbell-tcp`, `dumbbell-sim`), which prefetch their own state.
#[doc(hidden)]
pub use prefetch::prefetch;
pub use queue::{Backlog, Limit};
pub use route::{LinkId, RouteId, Routes};
pub use shaper::RateProcess;
pub use token_bucket::TokenBucket;
pub use trace::{OPPORTUNITY_BYTES, Trace};

use dumbbell_units::Time;

/// The properties of a packet that links use. Links copy packets, so they are to be small.
pub trait Packet: Clone {
    /// Size on the wire in bytes, IP header included.
    fn size(&self) -> u32;

    /// Number of the packet's flow and direction, for AQMs with a queue for each flow.
    fn flow(&self) -> u32 {
        0
    }

    /// Whether the packet may be marked instead of dropped (RFC 3168: ECT).
    fn is_ecn_capable(&self) -> bool {
        false
    }

    /// Whether the packet is classified as L4S (RFC 9331, section 5.1: ECT(1) or CE).
    fn is_l4s(&self) -> bool {
        false
    }

    /// Sets congestion experienced (RFC 3168: CE). Called on ECN-capable packets only.
    fn mark(&mut self) {}

    /// Whether congestion experienced is set.
    fn is_marked(&self) -> bool {
        false
    }

    /// Whether this is an acknowledgement without data.
    fn is_pure_ack(&self) -> bool {
        false
    }

    /// Whether this acknowledgement makes an earlier one of the same flow redundant (CAKE's ACK filter).
    fn supersedes(&self, _earlier: &Self) -> bool {
        false
    }

    /// The congestion that an acknowledgement echoes: the flags ECE and CWR.
    fn ecn_echo(&self) -> u8 {
        0
    }
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
