//! Connections over the machine's own UDP sockets.
//!
//! No test depends on the machine's speed: waits have no time limit, except those of libudt.

mod asynchronous;
mod chaos;
mod hostile;
mod interop;
mod libudt;
mod mtu;
mod own;
mod pattern;
mod relay;
