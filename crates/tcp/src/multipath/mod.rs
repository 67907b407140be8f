//! Multipath TCP (RFC 8684): one connection over several subflows, each a TCP of its own.
//!
//! Subflows are plain senders and receivers: each has its own sequence numbers, acknowledgements,
//! loss recovery and congestion control. Above them the connection numbers its data, assigns it to
//! subflows by a scheduler, and reassembles it. The receive window belongs to the connection, so data
//! missing on one path blocks all of them.
//!
//! The first subflow opens the connection. The others join when data has been acknowledged
//! (`mptcp_data_ack`), and carry none before the fourth acknowledgement of their handshake
//! (`pre_established`; RFC 8684, section 3.2).

mod connection_window;
mod default_scheduler;
mod dss;
mod reassembly;
mod receiver;
mod scheduler;
mod sender;
mod stream;
mod subflow_sender;
#[cfg(test)]
mod tests;

pub use receiver::MultipathReceiver;
pub use scheduler::Scheduler;
pub use sender::{MultipathConfig, MultipathSender, MultipathStats};
