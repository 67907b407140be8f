//! Reads, checks and resolves experiment files.
//!
//! An experiment file is TOML. [`Experiment::from_toml`] reads it and returns all of its errors,
//! each with its line and what would be valid. The crate does no I/O: what an experiment refers to
//! comes through an [`Environment`].

mod about;
pub mod algorithm;
pub mod apps;
pub mod aqm;
mod axis;
pub mod bulk;
pub mod call;
mod check;
mod check_flow;
mod decimal;
mod diagnostic;
mod document;
mod environment;
mod explain;
mod keys;
pub mod loss;
pub mod medium;
mod model;
pub mod options;
pub mod quantity;
pub mod quic;
mod read;
mod resolve;
pub mod rtp;
mod scenario;
mod schema;
mod set;
mod suggest;
mod sweep;
pub mod template;
pub mod timeline;
pub mod trace;
mod transfers;
mod warnings;
mod write;

pub use axis::{Axis, AxisValue, Column};
pub use diagnostic::{Diagnostic, Diagnostics, KeyPath, Position, Problem, Step};
pub use document::Source;
pub use environment::{CustomAlgorithm, Environment, NoEnvironment};
pub use explain::{STARTER, explain, topics};
pub use keys::{DefaultValue, EXPERIMENT, FLOW, Key, Kind, LINK, Table};
pub use model::{Experiment, Flow, Link, Options, Seeds};
pub use read::check_table;
pub use schema::schema;
pub use sweep::{Block, COMBINE, Sweep, work};
