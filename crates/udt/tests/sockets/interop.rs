//! Connections with libudt 4.11.

use crate::libudt::Peer;
use crate::pattern::{patient, receive, send, send_range};
use crate::relay::{Impairments, Relay};
use dumbbell_udt::io::{Listener, Settings, Socket};
use dumbbell_udt::{Mode, TransportOptions};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const MODES: [(Mode, &str); 2] = [(Mode::Stream, "stream"), (Mode::Message, "message")];
const BYTES: u64 = 20_000_000;
const HOST: Ipv4Addr = Ipv4Addr::LOCALHOST;

fn settings(mode: Mode) -> Settings {
    Settings { mode, ..patient() }
}

fn listen(settings: &Settings) -> (Listener, String) {
    let listener = Listener::bind((HOST, 0), settings).expect("there is a free port");
    let port = listener.local_addr().port().to_string();
    (listener, port)
}

fn accept(listener: &Listener) -> Socket {
    listener.accept(None).expect("the peer connects")
}

/// Checks the number of messages of 50,000 bytes.
fn count(mode: Mode, bytes: u64, messages: u64) {
    assert!(mode == Mode::Stream || messages == bytes.div_ceil(50_000));
}

#[test]
fn libudt_receives_what_we_send() {
    for (mode, name) in MODES {
        let bytes = BYTES.to_string();
        let Some(mut peer) = Peer::run(&["listen", "recv", name, &bytes]) else { return };
        let socket = Socket::connect((HOST, peer.port()), &settings(mode)).expect("it listens");
        send(&socket, mode, BYTES);
        let (received, messages) = peer.done();
        assert_eq!(received, BYTES);
        count(mode, BYTES, messages);
    }
}

#[test]
fn we_receive_what_libudt_sends() {
    for (mode, name) in MODES {
        let (listener, port) = listen(&settings(mode));
        let bytes = BYTES.to_string();
        let Some(peer) = Peer::run(&["connect", "send", name, &bytes, &port]) else { return };
        let socket = accept(&listener);
        count(mode, BYTES, receive(&socket, mode, BYTES));
        assert_eq!(peer.done().0, BYTES);
    }
}

#[test]
fn libudt_accepts_acknowledgements_of_every_length() {
    // One ACK per two packets: one per SYN is a full one, the others are short.
    let options = TransportOptions { ack_interval: 2, ..TransportOptions::default() };
    let (listener, port) = listen(&Settings { options, ..patient() });
    let bytes = BYTES.to_string();
    let Some(peer) = Peer::run(&["connect", "send", "stream", &bytes, &port]) else { return };
    receive(&accept(&listener), Mode::Stream, BYTES);
    assert_eq!(peer.done().0, BYTES);
}

#[test]
fn sequence_numbers_wrap_in_both_directions() {
    let settings = Settings { isn: Some(0x7fff_fff0), ..patient() };
    for what in ["recv", "send"] {
        let bytes = "2000000";
        let Some(mut peer) = Peer::run(&["listen", what, "stream", bytes]) else { return };
        let socket = Socket::connect((HOST, peer.port()), &settings).expect("it listens");
        match what {
            "recv" => send(&socket, Mode::Stream, 2_000_000),
            _ => drop(receive(&socket, Mode::Stream, 2_000_000)),
        }
        assert_eq!(peer.done().0, 2_000_000);
    }
}

#[test]
fn a_rendezvous_with_libudt_carries_data_either_way() {
    for (mode, name) in MODES {
        for what in ["recv", "send"] {
            let [own, theirs] = free_ports();
            let (own_port, peer_port) = (own.to_string(), theirs.to_string());
            let peer = Peer::run(&["meet", what, name, "2000000", &peer_port, &own_port]);
            let Some(peer) = peer else { return };
            let socket = Socket::rendezvous((HOST, own), (HOST, theirs), &settings(mode));
            let socket = socket.expect("both connect");
            match what {
                "recv" => send(&socket, mode, 2_000_000),
                _ => count(mode, 2_000_000, receive(&socket, mode, 2_000_000)),
            }
            assert_eq!(peer.done().0, 2_000_000);
        }
    }
}

#[test]
fn we_accept_acknowledgements_of_every_length_from_libudt() {
    let Some(mut peer) = Peer::run(&["listen", "often", "stream", "2000000"]) else { return };
    let server = SocketAddr::from((HOST, peer.port()));
    // Counts of short and full ACKs by datagram length.
    let seen = Arc::new([32, 40].map(|length| (length, AtomicU32::new(0))));
    let counts = seen.clone();
    let relay = Relay::start(
        server,
        Impairments::default(),
        1,
        Box::new(move |inwards, bytes| {
            let is_ack = !inwards && bytes[..2] == [0x80, 2];
            for (length, count) in counts.iter().filter(|_| is_ack) {
                count.fetch_add(u32::from(bytes.len() == *length), Ordering::Relaxed);
            }
            Vec::new()
        }),
    );
    let socket = Socket::connect(relay.address(), &settings(Mode::Stream)).expect("it listens");
    send(&socket, Mode::Stream, 2_000_000);
    assert_eq!(peer.done().0, 2_000_000);
    let [short, full] = [0, 1].map(|at| seen[at].1.load(Ordering::Relaxed));
    assert!(short > 10 && full > 0, "{short} short, {full} full");
    assert!(socket.statistics().sender.delivered > 0);
}

#[test]
fn a_lost_last_packet_is_retransmitted_to_libudt() {
    let Some(mut peer) = Peer::run(&["listen", "recv", "stream", "101000"]) else { return };
    let server = SocketAddr::from((HOST, peer.port()));
    let relay = Relay::start(server, Impairments::default(), 1, Box::new(|_, _| Vec::new()));
    let socket = Socket::connect(relay.address(), &settings(Mode::Stream)).expect("it listens");
    send(&socket, Mode::Stream, 100_000);
    // Two calls of `send` with 35 packets each.
    while socket.statistics().sender.delivered < 70 {
        std::thread::sleep(Duration::from_millis(1));
    }
    relay.drop_next_data();
    send_range(&socket, Mode::Stream, 100_000..101_000);
    assert_eq!(peer.done().0, 101_000);
    assert!(socket.statistics().sender.retransmitted > 0);
}

/// Two free ports. They are below Linux's range of ephemeral ports, so that no other socket gets them
/// before the test binds them.
pub fn free_ports() -> [u16; 2] {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let base = 10_000 + std::process::id() % 2_000 * 10;
    let port = || loop {
        let port = (base + NEXT.fetch_add(1, Ordering::Relaxed)) as u16;
        if UdpSocket::bind((HOST, port)).is_ok() {
            return port;
        }
    };
    [port(), port()]
}
