//! Connections over UDP sockets: the engine with a clock and a network.
//!
//! [`Socket::connect`], [`Socket::rendezvous`] and [`Listener`] give [`Socket`]s, which block as
//! those of the standard library do. Every UDP socket has a thread, its driver, which alone reads
//! and writes it and lets the engine's timers be as exact as the kernel's; the program's own
//! threads only put data into a connection and take it out. A listener and the connections that it
//! accepts share one UDP socket. Asynchronous
//! programs use `AsyncSocket` and `AsyncListener` (feature `tokio`).
//!
//! With a [`Key`], everything but the opening handshake is encrypted and authenticated; both ends
//! must have the same one. UDT4's own ends know nothing of that and are not reached.

#[cfg(feature = "tokio")]
mod asynchronous;
mod batch;
mod clock;
mod crypto;
mod driver;
mod error;
mod listener;
mod settings;
mod shared;
mod socket;

#[cfg(feature = "tokio")]
pub use asynchronous::{AsyncListener, AsyncSocket};
pub use crypto::Key;
pub use error::Error;
pub use listener::Listener;
pub use settings::Settings;
pub use shared::Statistics;
pub use socket::Socket;
