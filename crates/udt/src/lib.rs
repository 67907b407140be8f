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
mod expiry;
mod handshake;
#[cfg(feature = "io")]
pub mod io;
mod listener;
mod loss_list;
mod meter;
mod packet;
mod receive_buffer;
mod receiver;
mod rtt;
mod send_queue;
mod sender;
mod seq;
mod sink;
mod supply;

pub use config::{BadOption, Mode, Options, SYN};
pub use connection::{Arrival, Config, Connection, Ended, Remake, SendError};
pub use handshake::Role;
pub use listener::{Answer, Listener};
pub use packet::{
    Ack, AckKind, Data, DropRequest, HEADER, Handshake, IP_UDP_HEADER, MessagePart, Nak, Packet,
    Request, User,
};
pub use receiver::ReceiverStats;
pub use seq::{MessageNumber, Numbering, Seq};
pub use supply::Bulk;
