//! UDT4 without I/O: the engine behind UDT flows in the simulator and over UDP sockets.
//!
//! Wire format and behaviour follow libudt 4.11, and draft-gg-udt-03 where libudt leaves a choice.
//! Known weaknesses of libudt are avoided, and each difference is documented where it is
//! implemented: timers are exact, losses are reported until they are repaired, and every field
//! received from the peer is validated.
//!
//! A [`Connection`] is sans-I/O: it takes received packets and is polled for packets to send, and has
//! no clock, socket or address. A [`Listener`] decides which clients get a connection.

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
pub use seq::{MessageNumber, Seq};
pub use source::BulkData;
