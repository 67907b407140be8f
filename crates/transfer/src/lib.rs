//! Files over UDT connections: checked, and resumed where they were interrupted.
//!
//! [`serve`] keeps a folder, which clients [`push`] files to and [`pull`] files from; [`bench`]
//! measures the way there. Whoever gives files is their source, whoever takes them their sink,
//! whichever of the two connected. A file is written beside its place under a name of its own, is
//! checked (BLAKE3) when it is complete, and put into its place then and only then; if either side
//! dies, the next attempt goes on where the last one ended, once both sides agree about what is
//! there already.

mod bench;
mod client;
mod error;
mod frame;
mod manifest;
mod monitor;
mod partial;
mod receive;
mod safe_path;
mod send;
mod server;

pub use bench::{BenchLimit, bench};
pub use client::{RetryPolicy, pull, push};
pub use error::TransferError;
pub use monitor::{Progress, Sample, TransferMonitor};
pub use server::{ServerConfig, serve};
