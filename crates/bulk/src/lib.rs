//! Bulk transfer protocols of 2002 to 2004 that send data over UDP and control messages over TCP,
//! without I/O.
//!
//! | module | protocol | source |
//! |---|---|---|
//! | [`sabul`] | Simple Available Bandwidth Utilization Library | Gu and Grossman, the source of March 2003 |
//! | [`rbudp`] | Reliable Blast UDP | He, Leigh, Yu, DeFanti, CLUSTER 2002, and QUANTA's source |
//! | [`tsunami`] | Tsunami | Meiss; Wagner's tsunami-udp, protocol revision 20061025 |
//!
//! Each protocol has a sender and a receiver, which implement [`Engine`]. The control channel is an
//! ordered stream of bytes that the environment supplies: in the simulator a TCP connection over the
//! same links (module [`sim`], feature `sim`), over sockets a TCP socket (module [`io`], feature `io`).
//! In all three protocols the receiver opens it.
//!
//! The engines transfer generated data, zeros: they are for measurements. Their memory is bounded,
//! whatever the peer sends.

mod engine;
mod inbox;
#[cfg(feature = "io")]
pub mod io;
mod options;
pub mod rbudp;
mod received;
pub mod sabul;
#[cfg(feature = "sim")]
pub mod sim;
pub mod tsunami;

pub use engine::{Channel, Engine, Load, Stats};
pub use inbox::ProtocolError;
pub use options::{Options, RbudpOptions, SabulOptions, TsunamiOptions};
