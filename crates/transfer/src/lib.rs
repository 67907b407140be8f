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
mod partial;
mod place;
mod server;
mod sink;
mod source;
mod watch;

pub use bench::{Load, bench};
pub use client::{Attempts, pull, push};
pub use error::TransferError;
pub use server::{Permission, serve};
pub use watch::{Progress, Sample, Watch};
