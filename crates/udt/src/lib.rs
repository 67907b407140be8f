//! UDT4 without I/O: the engine behind UDT flows of the simulator and over UDP sockets.
//!
//! Wire format and behaviour are libudt 4.11's, and draft-gg-udt-03's where that says more. What
//! the library is known to be weak at is done otherwise, and said so where it is done: timers are
//! exact, losses are reported until they are repaired, and nothing that a peer says is believed
//! beyond what it can know.
//!
//! A [`Connection`] handles packets and is polled for packets; it knows no clock, no socket and no
//! address. A [`Listener`] decides which clients get one.

mod ack_window;
pub mod codec;
mod config;
mod connection;
mod estimators;
mod exp_timer;
mod handshake;
#[cfg(feature = "io")]
pub mod io;
mod listener;
mod loss_list;
mod packet;
mod receive_buffer;
mod receiver;
mod rtt;
mod send_buffer;
mod sender;
mod seq;
mod sink;
mod source;

pub use config::{Mode, OptionError, SYN, TransportOptions};
pub use connection::{Arrival, CloseReason, Config, Connection, NewAlgorithm, SendError};
pub use handshake::Role;
pub use listener::{Listener, ListenerAction};
pub use packet::{
    Ack, AckKind, DataHeader, DropRequest, HEADER, Handshake, IP_UDP_HEADER, MessagePart, Nak,
    Packet, RequestType, UserDefined,
};
pub use receiver::ReceiverStats;
pub use seq::{MessageNumber, Seq, SequenceSpace};
pub use source::BulkData;
