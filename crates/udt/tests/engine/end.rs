//! One end: a connection, or a listener that becomes one.

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

/// UDT's own, for packets of so much payload.
fn algorithm(mss: u32) -> Algorithm {
    named("udt", mss)
}

/// An algorithm, for packets of so much payload.
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

    /// Whether the connection is open.
    pub fn is_open(&self) -> bool {
        matches!(self, End::Connected(connection) if connection.is_open())
    }

    /// Where a packet that was polled goes, and its payload.
    pub fn envelope(&self, packet: &Packet) -> (u32, Vec<u8>) {
        match self {
            End::Connected(connection) => {
                (connection.destination(), connection.payload(packet).to_vec())
            }
            // Of several replies the destinations are alike: there is one client.
            End::Listening(..) => (7, Vec::new()),
        }
    }

    /// A UDP payload arrives.
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
