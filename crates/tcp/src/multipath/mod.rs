//! Multipath TCP (RFC 8684): one connection over several subflows, each a TCP of its own.
//!
//! Subflows are plain senders and receivers: each has its own sequence numbers, acknowledgements,
//! loss recovery and congestion control. Above them the connection numbers its data, gives it to
//! subflows as the scheduler says, and puts it in order again. The receive window belongs to the
//! connection; so data that is missing on one path holds up all of them.
//!
//! The first subflow opens the connection, the others join when it is open, and carry data as soon as
//! they are established themselves. In Linux that is a round trip of the first path and one of their
//! own later: they join when data has been acknowledged (mptcp_data_ack), and carry none before the
//! fourth acknowledgement of the handshake (pre_established; RFC 8684, section 3.2).

mod dss;
mod reassembly;
mod receiver;
mod scheduler;
mod sender;
mod stream;
#[cfg(test)]
mod tests;

pub use receiver::MultipathReceiver;
pub use scheduler::Scheduler;
pub use sender::{MultipathConfig, MultipathSender, MultipathStats};
