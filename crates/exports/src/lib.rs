//! Results in the formats of other programs, as text and without I/O.
//!
//! - [`qlog()`]: flows as qlog, for qvis.
//! - [`mahimahi`]: the rates of links as traces, for `mm-link`.
//!
//! Captures (pcapng) come from the simulator itself: [`dumbbell_sim::PacketLog::write_pcapng`].

mod capture;
pub mod mahimahi;
mod outstanding;
mod qlog;

pub use capture::CaptureError;
pub use qlog::{Flow, Run, qlog};
