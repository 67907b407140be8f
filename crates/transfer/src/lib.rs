//! File transfer over UDT, with integrity checks and resumption.
//!
//! [`serve`] runs a server for one folder, to which clients [`push`] files and from which they [`pull`]
//! files; [`bench()`] measures the throughput to a server. The sender of files is the client of a push
//! and the server of a pull.
//!
//! Neither side trusts the other: a client accepts only what it requested, a server only paths below its
//! folder, and both only within their [`ReceiveLimits`].
//!
//! A file is received into a partial file beside its destination. When it is complete and its BLAKE3
//! hash matches, the partial file is renamed to its destination. An interrupted transfer resumes at
//! the end of the partial file if both sides have the same hash of that part. A file whose size and
//! modification time are those of the source is not transferred.

mod bench;
mod client;
mod error;
mod folders;
mod frame;
mod fuzz;
mod limits;
mod list;
mod manifest;
mod monitor;
mod partial;
mod receive;
mod safe_path;
mod send;
mod server;
mod text;

#[doc(hidden)]
pub use fuzz::fuzz_peer;

pub use bench::{BenchLimit, bench};
pub use client::{RetryPolicy, pull, push};
pub use error::{FileNames, TransferError};
pub use limits::ReceiveLimits;
pub use list::{ListedFile, list, manifest};
pub use monitor::{Progress, Sample, TransferMonitor};
pub use server::{ServerConfig, serve};
