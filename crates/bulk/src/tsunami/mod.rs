//! Tsunami by Mark Meiss, "Tsunami: A High-Speed Rate-Controlled Protocol for File Transfer" (Indiana
//! University, 2004), in the version that Jan Wagner maintained (tsunami-udp, protocol revision 20061025).
//! Lines are those of its last source in CVS, revision 1.30 of `client/protocol.c`.
//!
//! A file is split into numbered blocks. The server, the sender, sends them in order, one per
//! inter-packet delay (IPD). Every 350 ms the client, the receiver, asks for what is missing and reports
//! an error rate; the server lengthens the IPD if it is above a threshold and shortens it otherwise,
//! down to that of the target rate.
//!
//! As in the source, the IPD of the target rate is a whole number of microseconds, rounded down, so the
//! rate is higher than the option says; each request takes one IPD; a restart begins one block
//! after the block that was asked for; requests are repeated every 350 ms, whatever the round-trip time.
//!
//! Differences: the exchange of the shared secret has its messages in size and number, without MD5;
//! the client's disk is never full; it keeps 2^24 blocks from the first missing one on; the file of an
//! unlimited flow has 2^31 blocks.

mod client;
pub mod codec;
mod server;

pub use client::Client;
pub use server::Server;

/// Blocks of the file of an unlimited flow.
pub(crate) const MAX_BLOCKS: u32 = 1 << 31;
