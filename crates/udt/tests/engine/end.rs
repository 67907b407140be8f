//! One end of a path: a connection, or a listener that becomes one.

use dumbbell_cc::{Algorithm, ConnectionConfig};
use dumbbell_net::Endpoint;
use dumbbell_udt::{
    Config, Connection, Listener, ListenerAction, Mode, Packet, Role, Seq, TransportOptions, codec,
};
use dumbbell_units::Time;

/// One end.
#[allow(clippy::large_enum_variant, reason = "there are two")]
pub enum End {
    Connected(Connection),
    Listening(Listener, Mode, Vec<(u32, Packet)>),
}

/// UDT's algorithm for packets of `mss` bytes of payload.
fn algorithm(mss: u32) -> Algorithm {
    named("udt", mss)
}

/// An algorithm by name for packets of `mss` bytes of payload.
pub fn named(cc: &str, mss: u32) -> Algorithm {
    let init = ConnectionConfig::new(Time::ZERO, mss).with_initial_window(16.0).with_seed(1);
    Algorithm::parse(cc, &init).expect("it is an algorithm")
}

pub fn config(options: &TransportOptions, mode: Mode, socket: u32) -> Config {
    Config {
        options: options.clone(),
        mode,
        algorithm: algorithm(u32::from(options.max_payload())),
        new_algorithm: Some(Box::new(|payload| Some(algorithm(payload)))),
        bulk: None,
        keep_received: true,
        socket_id: socket,
        connect_timeout: None,
        idle_timeout: None,
        crypto_overhead: 0,
    }
}

/// A client and a listener.
pub fn pair(options: &TransportOptions, mode: Mode, isn: u32) -> [End; 2] {
    let client = config(options, mode, 7);
    let client = Connection::open(client, Role::Client, Seq::new(isn), Time::ZERO);
    let listener = Listener::new(options.clone(), mode, [3; 16]);
    [End::Connected(client), End::Listening(listener, mode, Vec::new())]
}

impl End {
    pub fn connection(&mut self) -> Option<&mut Connection> {
        match self {
            End::Connected(connection) => Some(connection),
            End::Listening(..) => None,
        }
    }

    /// Whether the connection is established.
    pub fn is_open(&self) -> bool {
        matches!(self, End::Connected(connection) if connection.is_open())
    }

    /// Destination socket id and payload of a polled packet.
    pub fn address(&self, packet: &Packet) -> (u32, Vec<u8>) {
        match self {
            End::Connected(connection) => {
                (connection.destination(), connection.payload(packet).to_vec())
            }
            // The only client's socket id.
            End::Listening(..) => (7, Vec::new()),
        }
    }

    /// Handles a received UDP payload.
    pub fn arrive(&mut self, now: Time, bytes: &[u8]) {
        let Ok(datagram) = codec::decode(bytes) else { return };
        match self {
            End::Connected(connection) => {
                if datagram.destination == connection.socket_id() || datagram.destination == 0 {
                    let payload = datagram.payload;
                    datagram.packets().for_each(|packet| connection.receive(now, &packet, payload));
                }
            }
            End::Listening(listener, mode, replies) => {
                let Packet::Handshake(client) = datagram.packet else { return };
                match listener.handle(now, b"client", &client) {
                    ListenerAction::Ignore => {}
                    ListenerAction::Reply(reply) => {
                        replies.push((client.socket_id, Packet::Handshake(reply)));
                    }
                    ListenerAction::Accept => {
                        let config = config(listener.options(), *mode, 9);
                        *self = End::Connected(Connection::accept(config, &client, now));
                    }
                }
            }
        }
    }
}

impl Endpoint for End {
    type Packet = Packet;

    fn handle(&mut self, _: Time, _: &Packet) {
        unreachable!("packets arrive as bytes");
    }

    fn poll(&mut self, now: Time) -> Option<Packet> {
        match self {
            End::Connected(connection) => connection.poll(now),
            End::Listening(_, _, replies) => replies.pop().map(|(_, packet)| packet),
        }
    }

    fn next_timeout(&self) -> Time {
        match self {
            End::Connected(connection) => connection.next_timeout(),
            End::Listening(..) => Time::MAX,
        }
    }
}
