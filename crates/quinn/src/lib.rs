//! The congestion control algorithms of `dumbbell-cc` for [quinn](https://docs.rs/quinn).
//!
//! ```
//! use dumbbell_quinn::Config;
//! use quinn_proto::TransportConfig;
//! use std::sync::Arc;
//!
//! let mut transport = TransportConfig::default();
//! transport.congestion_controller_factory(Arc::new(Config::new("bbr3")?));
//! # Ok::<(), dumbbell_quinn::Error>(())
//! ```
//!
//! With `quinn` itself the type is `quinn::TransportConfig`; it is the same one. The feature `noq`
//! makes [`Config`] a factory for noq too.
//!
//! # What quinn tells a controller, and what this crate makes of it
//!
//! - **Delivery rates.** quinn measures none, so the controller keeps a sampler
//!   (draft-ietf-ccwg-bbr-06, section 4.1). quinn identifies an acknowledged packet by the time at
//!   which it was sent; packets that were sent at one time share their state.
//! - **Losses.** quinn reports how many bytes were lost, and the newest lost packet. The controller
//!   takes the oldest packets that are not acknowledged for lost.
//! - **Pacing.** quinn's pacer sends 1.25 windows per round-trip time and takes no rate. Algorithms
//!   that set one, as BBR does, would fill queues. The controller holds packets back through the
//!   window that it reports: what the rate allows since the last acknowledgement may leave. So packets
//!   leave at the rate on average, in bursts of as much as one acknowledgement covers. noq's pacer
//!   takes the rate.
//! - **ECN.** quinn reports that packets were marked, at each acknowledgement that says so, and not how
//!   many. So an algorithm gets a signal, which begins an episode at most once per round-trip time, and
//!   no count: `Path::marked` and `Ack::marked` are 0. DCTCP and Prague need the share of marked packets
//!   and are refused. BBRv3 and C4, which take marks by their share only, do not respond to them.
//! - **Undo.** quinn does not report spurious losses; noq does.
//!
//! quinn's `Controller` has no timers; no algorithm here needs one.

#![allow(clippy::duplicate_mod, reason = "`controller` is one text for two stacks")]

mod adapter;
mod config;
#[cfg(feature = "noq")]
mod noq;
mod quinn;

pub use config::{Config, Error};
#[cfg(feature = "noq")]
pub use noq::NoqController;
pub use quinn::Controller;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
