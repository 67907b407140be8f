//! The simulator: a virtual clock, flows, and sampling into columns.
//!
//! `engine` runs endpoints over links and knows no protocol; `sample` and `tables` write down
//! what they show. `host` puts protocols in. A `Scenario` is a run's description in plain numbers;
//! running it gives an `Outcome`.

mod agenda;
mod arrivals;
mod build;
mod check;
mod delay;
mod engine;
mod histogram;
mod host;
mod link_spec;
mod log;
mod multipath_host;
mod network;
mod pcapng;
mod pdu;
mod run;
mod sample;
mod scenario;
mod seeds;
mod sender_rows;
mod tables;
mod tcp_host;
mod timers;
mod udt_host;

pub use check::MAX_FLOWS;
pub use engine::{EndpointId, Engine, Parcel, Watch};
pub use histogram::Histogram;
pub use log::{Event, PacketLog, Record};
pub use network::{FlowPlan, Network, PathPlan};
pub use pcapng::Side;
pub use pdu::Pdu;
pub use run::Outcome;
pub use sample::{Observe, link_row};
pub use scenario::{FlowSpec, LinkSpec, PathSpec, Place, QueueSpec, Scenario, ScenarioError};
pub use sender_rows::{conclude_sender, observe_sender};
pub use tables::{Column, FlowRow, Flows, Internals, LinkRow, Links, Series, SeriesRow};
