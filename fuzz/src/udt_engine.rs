//! UDT's engine: a connection with arbitrary packets and calls at arbitrary times.
//!
//! The first bytes select the kind of connection, each further one an action. Packets are decoded from
//! raw input or, since those are rarely valid here, built with numbers near the connection's own.

use crate::InputReader;
use dumbbell_cc::{Algorithm, ConnectionConfig};
use dumbbell_net::Endpoint;
use dumbbell_udt::{
    Ack, AckKind, Config, Connection, DataHeader, DropRequest, Handshake, Listener, MessageNumber,
    MessagePart, Mode, Nak, Packet, RequestType, Role, Seq, TransportOptions, UserDefined, codec,
};
use dumbbell_units::{Span, Time};

const ISN: u32 = 0x7fff_ff00;
/// Maximum number of packets at one instant; more is an endless loop.
const MAX_PACKETS_AT_ONCE: usize = 2000;

/// Runs a connection with the actions in `bytes`.
///
/// # Panics
/// If the connection panics, or sends without end.
pub fn run(bytes: &[u8]) {
    let bytes = &mut InputReader(bytes);
    let mut harness = Harness::begin(bytes);
    while !bytes.is_empty() {
        harness.act(bytes);
    }
    harness.drain();
}

struct Harness {
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

fn config(bytes: &mut InputReader<'_>, mode: Mode) -> Config {
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

impl Harness {
    fn begin(bytes: &mut InputReader<'_>) -> Harness {
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
        let mut harness = Harness { connection, now, mode };
        harness.drain();
        if kind >> 1 & 3 < 2 && kind & 8 == 0 {
            // Complete the handshake.
            for request in
                [RequestType::INDUCTION, RequestType::CONCLUSION, RequestType::CONCLUSION]
            {
                let request = if kind >> 1 & 3 == 1 { RequestType::CONCLUSION } else { request };
                harness.receive(&Packet::Handshake(handshake(wire, request)), &[]);
            }
        }
        harness
    }

    /// Polls all packets that the connection sends now.
    fn drain(&mut self) {
        for _ in 0..MAX_PACKETS_AT_ONCE {
            let Some(packet) = self.connection.poll(self.now) else { return };
            assert!(self.connection.payload(&packet).len() <= 1456);
        }
        panic!("it sends without end");
    }

    fn receive(&mut self, packet: &Packet, payload: &[u8]) {
        self.connection.receive(self.now, packet, payload);
        self.drain();
    }

    fn act(&mut self, bytes: &mut InputReader<'_>) {
        match bytes.u8() % 16 {
            0 => self.advance(Span::from_micros(u64::from(bytes.u16()))),
            1 => self.advance(Span::from_millis(u64::from(bytes.u16()))),
            2 => {
                let due = self.connection.next_timeout();
                if due != Time::MAX {
                    self.now = self.now.max(due);
                    self.drain();
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
                    datagram.packets().for_each(|packet| self.receive(&packet, datagram.payload));
                }
            }
            6 if bytes.u8() == 0 => {
                self.connection.close();
                self.drain();
            }
            6 => {}
            _ => {
                let (packet, payload) = packet(bytes);
                self.receive(&packet, payload);
            }
        }
    }

    fn advance(&mut self, span: Span) {
        self.now += span;
        self.drain();
    }

    fn send(&mut self, bytes: &mut InputReader<'_>) {
        let data = vec![7; usize::from(bytes.u16())];
        let _ = match self.mode {
            Mode::Stream => self.connection.send(self.now, &data).map(|_| ()),
            Mode::Message => {
                let ttl = Span::from_millis(u64::from(bytes.u8()));
                let in_order = bytes.u8() & 1 == 0;
                self.connection.send_message(self.now, &data, Some(ttl), in_order)
            }
        };
        self.drain();
    }
}

/// A sequence number, usually near the initial one.
fn seq(bytes: &mut InputReader<'_>) -> Seq {
    let near = bytes.u8();
    if near < 250 { Seq::new(ISN).plus(u64::from(near)) } else { Seq::new(bytes.u32()) }
}

/// A packet that is plausible for this connection, and its payload.
fn packet<'a>(bytes: &mut InputReader<'a>) -> (Packet, &'a [u8]) {
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
