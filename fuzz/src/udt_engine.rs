//! UDT's engine: a connection that is told anything, in any order, at any time.
//!
//! The first bytes say what kind of connection it is; then every byte is an action. Packets are
//! made of bytes as they are, or, as those would seldom be of this connection, of numbers near to
//! those that it uses.

use crate::Bytes;
use dumbbell_cc::{Algorithm, ConnectionConfig};
use dumbbell_net::Endpoint;
use dumbbell_udt::{
    Ack, AckKind, Config, Connection, DataHeader, DropRequest, Handshake, Listener, MessageNumber,
    MessagePart, Mode, Nak, Packet, RequestType, Role, Seq, TransportOptions, UserDefined, codec,
};
use dumbbell_units::{Span, Time};

const ISN: u32 = 0x7fff_ff00;
/// More packets than this at one instant, or more than the send buffer holds, would be a loop.
const MOST_AT_ONCE: usize = 2000;

/// Lives through what `bytes` say.
///
/// # Panics
/// If the connection does, or sends without end.
pub fn run(bytes: &[u8]) {
    let bytes = &mut Bytes(bytes);
    let mut life = Life::begin(bytes);
    while !bytes.is_empty() {
        life.act(bytes);
    }
    life.settle();
}

struct Life {
    connection: Connection,
    now: Time,
    mode: Mode,
}

fn handshake(mode: u8, request: RequestType) -> Handshake {
    Handshake {
        version: 4,
        socket_type: mode,
        isn: Seq::new(ISN),
        mss: 1500,
        window: 8192,
        request_type: request,
        socket_id: 9,
        cookie: 1,
    }
}

fn config(bytes: &mut Bytes<'_>, mode: Mode) -> Config {
    let flags = bytes.u8();
    let options = TransportOptions {
        mss: if flags & 1 == 0 { 1500 } else { TransportOptions::MIN_MSS },
        window: 64,
        send_buffer: if flags & 2 == 0 { 32 } else { 64 },
        receive_buffer: if flags & 4 == 0 { 32 } else { 64 },
        ack_interval: u32::from(flags >> 4 & 3),
        light_acks: flags & 10 != 10,
        nak_repeat: flags & 8 == 0,
        skip_gaps: flags & 12 == 12,
    };
    let cc = ["udt", "ar-udt", "cubic", "bbr3"][usize::from(flags >> 6)];
    let mss = u32::from(options.max_payload());
    let init = ConnectionConfig::new(Time::ZERO, mss).with_initial_window(16.0).with_seed(1);
    Config {
        options,
        mode,
        algorithm: Algorithm::parse(cc, &init).expect("it is an algorithm"),
        new_algorithm: Some(Box::new(move |mss| Algorithm::parse(cc, &init.with_mss(mss)).ok())),
        bulk: None,
        keep_received: true,
        socket_id: 7,
        connect_timeout: Some(Span::from_secs(60)),
        idle_timeout: None,
        crypto_overhead: 0,
    }
}

impl Life {
    fn begin(bytes: &mut Bytes<'_>) -> Life {
        let kind = bytes.u8();
        let (mode, wire) = if kind & 1 == 0 { (Mode::Stream, 1) } else { (Mode::Message, 2) };
        let config = config(bytes, mode);
        let now = Time::ZERO;
        let connection = match kind >> 1 & 3 {
            0 => Connection::open(config, Role::Client, Seq::new(ISN), now),
            1 => Connection::open(config, Role::Rendezvous, Seq::new(ISN), now),
            _ => {
                let client = handshake(wire, RequestType::CONCLUSION);
                let listener = Listener::new(config.options.clone(), mode, [1; 16]);
                listener.handle(now, &[kind], &client);
                Connection::accept(config, &client, now)
            }
        };
        let mut life = Life { connection, now, mode };
        life.settle();
        if kind >> 1 & 3 < 2 && kind & 8 == 0 {
            // What completes the handshake.
            for request in
                [RequestType::INDUCTION, RequestType::CONCLUSION, RequestType::CONCLUSION]
            {
                let request = if kind >> 1 & 3 == 1 { RequestType::CONCLUSION } else { request };
                life.tell(&Packet::Handshake(handshake(wire, request)), &[]);
            }
        }
        life
    }

    /// Takes all that the connection sends now.
    fn settle(&mut self) {
        for _ in 0..MOST_AT_ONCE {
            let Some(packet) = self.connection.poll(self.now) else { return };
            assert!(self.connection.payload(&packet).len() <= 1456);
        }
        panic!("it sends without end");
    }

    fn tell(&mut self, packet: &Packet, payload: &[u8]) {
        self.connection.receive(self.now, packet, payload);
        self.settle();
    }

    fn act(&mut self, bytes: &mut Bytes<'_>) {
        match bytes.u8() % 16 {
            0 => self.pass(Span::from_micros(u64::from(bytes.u16()))),
            1 => self.pass(Span::from_millis(u64::from(bytes.u16()))),
            2 => {
                let due = self.connection.next_timeout();
                if due != Time::MAX {
                    self.now = self.now.max(due);
                    self.settle();
                }
            }
            3 => self.send(bytes),
            4 => {
                let mut out = [0; 3000];
                let _ = match self.mode {
                    Mode::Stream => self.connection.read(&mut out),
                    Mode::Message => self.connection.read_message().map_or(0, |m| m.len()),
                };
            }
            5 => {
                let len = usize::from(bytes.u8());
                if let Ok(datagram) = codec::decode(bytes.take(len)) {
                    datagram.packets().for_each(|packet| self.tell(&packet, datagram.payload));
                }
            }
            6 if bytes.u8() == 0 => {
                self.connection.close();
                self.settle();
            }
            6 => {}
            _ => {
                let (packet, payload) = packet(bytes);
                self.tell(&packet, payload);
            }
        }
    }

    fn pass(&mut self, span: Span) {
        self.now += span;
        self.settle();
    }

    fn send(&mut self, bytes: &mut Bytes<'_>) {
        let data = vec![7; usize::from(bytes.u16())];
        let _ = match self.mode {
            Mode::Stream => self.connection.send(self.now, &data).map(|_| ()),
            Mode::Message => {
                let ttl = Span::from_millis(u64::from(bytes.u8()));
                let in_order = bytes.u8() & 1 == 0;
                self.connection.send_message(self.now, &data, Some(ttl), in_order)
            }
        };
        self.settle();
    }
}

/// A sequence number near the beginning, most often.
fn seq(bytes: &mut Bytes<'_>) -> Seq {
    let near = bytes.u8();
    if near < 250 { Seq::new(ISN).plus(u64::from(near)) } else { Seq::new(bytes.u32()) }
}

/// A packet that this connection could be sent, and its payload.
fn packet<'a>(bytes: &mut Bytes<'a>) -> (Packet, &'a [u8]) {
    let kind = bytes.u8();
    let packet = match kind % 12 {
        0..=4 => {
            let (seq, word, len) = (seq(bytes), bytes.u16(), bytes.u8());
            let number = MessageNumber::new(u32::from(word & 0x1f));
            let first = word & 0x20 != 0;
            let message = MessagePart::new(number, first, word & 0x40 != 0, word & 0x80 != 0);
            let payload = bytes.take(usize::from(len));
            let length = payload.len() as u16;
            return (Packet::Data(DataHeader { seq, message, timestamp: 0, length }), payload);
        }
        5 | 6 => {
            let kinds = [AckKind::Light, AckKind::Short, AckKind::Full];
            let ack = Ack {
                number: u32::from(bytes.u8()),
                next: seq(bytes),
                rtt_us: bytes.u32(),
                rtt_var_us: bytes.u32(),
                window: u32::from(bytes.u8()),
                arrival_rate: bytes.u32(),
                capacity: bytes.u32(),
            };
            Packet::Ack(kinds[usize::from(kind) % 3], ack)
        }
        7 | 8 => {
            let mut nak = Nak::default();
            for _ in 0..kind % 4 {
                nak.push(seq(bytes), seq(bytes));
            }
            nak.continued = kind & 0x80 != 0;
            Packet::Nak(nak)
        }
        9 => Packet::Ack2 { number: u32::from(bytes.u8()) },
        10 => {
            let message = MessageNumber::new(u32::from(bytes.u8() & 0x1f));
            Packet::DropRequest(DropRequest { message, first: seq(bytes), last: seq(bytes) })
        }
        _ => match bytes.u8() % 8 {
            0 => Packet::Shutdown,
            1 => Packet::CongestionWarning,
            2 => Packet::PeerError { code: 5 },
            3 => Packet::UserDefined(UserDefined { kind: 1, info: 2, length: 0 }),
            4 | 5 => {
                let request = RequestType(i32::from(bytes.u8() as i8));
                Packet::Handshake(handshake(1 + bytes.u8() % 3, request))
            }
            _ => Packet::KeepAlive,
        },
    };
    (packet, &[])
}
