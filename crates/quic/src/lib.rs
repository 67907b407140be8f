//! Unmodified QUIC stacks in the simulator: quinn-proto and noq-proto.
//!
//! Both do no I/O and take the time as an argument, so they run in virtual time. A flow is a client
//! that connects and sends on streams, and a server that receives. [`endpoints`] makes them for
//! flows of a [`Scenario`](dumbbell_sim::Scenario) with `external: {"transport": "quic", "stack":
//! "quinn"}`.
//!
//! Random numbers come from the seed of the flow. TLS draws its own and protects the packets, which
//! takes most of the time, so packets are not protected by default: the [null](Crypto::Null)
//! handshake has the messages of TLS in size and number, and packets have the sizes that they have
//! with TLS. [`Crypto::Rustls`] is the real one (feature `tls`).

#![allow(clippy::duplicate_mod, reason = "`shared` is one text for two stacks")]

mod ends;
mod factory;
mod frames;
#[cfg(feature = "qlog")]
mod log;
mod noq;
mod null;
mod observed;
mod options;
mod quinn;
mod stack;
#[cfg(feature = "tls")]
mod tls;
mod variables;

pub use factory::{STACKS, endpoints};
pub use options::{Crypto, QuicOptions};
