//! The simulator: a virtual clock, flows, and sampling into columns.

mod agenda;
mod engine;

pub use engine::{EndpointId, Engine, Parcel, Watch};
