//! Blocking and asynchronous UDT sockets over UDP.
//!
//! [`Socket::connect`], [`Socket::rendezvous`] and [`Listener::accept`] return [`Socket`]s, which block
//! like those of the standard library. Each UDP socket has one driver thread, which alone reads and
//! writes it and runs the engines' timers with the kernel's precision. A listener and the connections
//! that it accepts share one UDP socket. `AsyncSocket` and `AsyncListener` (feature `tokio`) are the
//! asynchronous equivalents.
//!
//! With a [`Key`], everything but UDT's handshake is encrypted and authenticated. Both ends need the
//! same key; UDT4 peers do not support this mode.

#[cfg(feature = "tokio")]
mod asynchronous;
mod batch;
mod clock;
mod crypto;
mod driver;
mod error;
mod key;
mod listener;
mod settings;
mod shared;
mod socket;
mod wakers;

#[doc(hidden)]
pub use crypto::fuzz_noise;

#[cfg(feature = "tokio")]
pub use asynchronous::{AsyncListener, AsyncSocket};
pub use error::Error;
pub use key::Key;
pub use listener::Listener;
pub use settings::Settings;
pub use shared::Statistics;
pub use socket::Socket;
