//! Connections over the machine's own UDP sockets.
//!
//! Nothing here depends on how fast the machine is: waits end with what is waited for, and limits
//! are many times what is needed.

mod asynchronous;
mod chaos;
mod hostile;
mod interop;
mod libudt;
mod own;
mod pattern;
mod relay;
