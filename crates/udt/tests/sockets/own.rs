//! Connections between two dumbbell ends.

use crate::interop::free_ports;
use crate::pattern::{close, patient, receive, send};
use dumbbell_udt::io::{Error, Key, Listener, Settings, Socket};
use dumbbell_udt::{Mode, SendError};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

const V4: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const V6: SocketAddr = SocketAddr::new(std::net::IpAddr::V6(Ipv6Addr::LOCALHOST), 0);
const BYTES: u64 = 5_000_000;

/// A connection: client and server.
pub fn pair(settings: &Settings) -> (Socket, Socket) {
    pair_at(V4.ip(), settings)
}

/// A connection between two sockets of this address.
pub fn pair_at(ip: IpAddr, settings: &Settings) -> (Socket, Socket) {
    let listener = Listener::bind((ip, 0), settings).expect("there is a free port");
    let client = Socket::connect(listener.local_addr(), settings).expect("it listens");
    (client, listener.accept(None).expect("there is a client"))
}

fn exchange(a: Socket, b: Socket, mode: Mode, bytes: u64) {
    thread::scope(|scope| {
        scope.spawn(|| send(&a, mode, bytes));
        scope.spawn(|| send(&b, mode, bytes));
        scope.spawn(|| receive(&a, mode, bytes));
        receive(&b, mode, bytes);
    });
    close(a);
    // The end of a stream is no error.
    let mut rest = [0; 1];
    if mode == Mode::Stream {
        assert_eq!(b.recv(&mut rest).expect("it ends well"), 0);
    }
}

#[test]
fn streams_and_messages_go_both_ways_at_once() {
    for mode in [Mode::Stream, Mode::Message] {
        let (a, b) = pair(&Settings { mode, ..patient() });
        exchange(a, b, mode, BYTES);
    }
}

#[test]
fn reading_in_the_other_mode_is_refused_and_takes_nothing() {
    let wrong = |error: Option<Error>| matches!(error, Some(Error::Send(SendError::WrongMode(_))));
    let (a, b) = pair(&patient());
    send(&a, Mode::Stream, 1000);
    assert!(wrong(b.recv_message().err()));
    receive(&b, Mode::Stream, 1000);
    let (a, b) = pair(&Settings { mode: Mode::Message, ..patient() });
    send(&a, Mode::Message, 1000);
    assert!(wrong(b.recv(&mut [0; 10]).err()));
    receive(&b, Mode::Message, 1000);
}

#[test]
fn every_kind_of_algorithm_carries_data() {
    for algorithm in ["ar-udt", "cubic", "bbr", "copa"] {
        let Settings { options, algorithm, .. } = Settings::for_algorithm(algorithm);
        let (a, b) = pair(&Settings { options, algorithm, ..patient() });
        exchange(a, b, Mode::Stream, 1_000_000);
    }
}

#[test]
fn one_listener_serves_ipv6_and_many_clients() {
    let settings = patient();
    let listener = Listener::bind(V6, &settings).expect("there is a free port");
    let connect = || Socket::connect(listener.local_addr(), &settings).expect("it listens");
    let clients: Vec<Socket> = (0..20).map(|_| connect()).collect();
    let accept = || listener.accept(None).expect("there is a client");
    let servers: Vec<Socket> = (0..20).map(|_| accept()).collect();
    thread::scope(|scope| {
        for client in &clients {
            scope.spawn(|| send(client, Mode::Stream, 200_000));
        }
        for server in &servers {
            receive(server, Mode::Stream, 200_000);
        }
    });
}

#[test]
fn a_rendezvous_needs_no_listener_and_may_be_encrypted() {
    for key in [None, Some(Key::new([9; 32]))] {
        let settings = Settings { key, ..patient() };
        let [one, other] = free_ports().map(|port| SocketAddr::new(V4.ip(), port));
        let late = || Socket::rendezvous(other, one, &settings).expect("both connect");
        let (a, b) = thread::scope(|scope| {
            let b = scope.spawn(late);
            (Socket::rendezvous(one, other, &settings).expect("both connect"), b.join())
        });
        exchange(a, b.expect("no panic"), Mode::Stream, 500_000);
    }
}

/// The error of a connection that is refused. The timeout grows until the refusal arrives within it.
fn connect_error(peer: SocketAddr, settings: &Settings) -> Option<Error> {
    let mut connect_timeout = Duration::from_secs(1);
    loop {
        let settings = Settings { connect_timeout, ..settings.clone() };
        match Socket::connect(peer, &settings).err() {
            Some(Error::ConnectTimeout) => connect_timeout *= 2,
            other => return other,
        }
    }
}

#[test]
fn encrypted_ends_connect_only_with_the_same_key() {
    let keyed = Settings { key: Some(Key::new([1; 32])), ..patient() };
    for mode in [Mode::Stream, Mode::Message] {
        let (a, b) = pair(&Settings { mode, ..keyed.clone() });
        exchange(a, b, mode, 1_000_000);
    }
    let listener = Listener::bind(V4, &keyed).expect("there is a free port");
    let other = Settings { key: Some(Key::new([2; 32])), ..keyed.clone() };
    let refused = connect_error(listener.local_addr(), &other);
    assert!(matches!(refused, Some(Error::Key)), "{refused:?}");
    let plain = Listener::bind(V4, &patient()).expect("there is a free port");
    let refused = connect_error(plain.local_addr(), &keyed);
    assert!(matches!(refused, Some(Error::Key)), "{refused:?}");
    let refused = connect_error(listener.local_addr(), &patient());
    assert!(matches!(refused, Some(Error::Refused)), "{refused:?}");
    let none = listener.accept(Some(Duration::from_millis(50))).err();
    assert!(matches!(none, Some(Error::TimedOut)), "{none:?}");
}

#[test]
fn closing_a_listener_ends_what_it_waits_for() {
    let listener = Listener::bind(V4, &patient()).expect("there is a free port");
    let accepted = thread::scope(|scope| {
        let accepting = scope.spawn(|| listener.accept(None).err());
        listener.close();
        accepting.join().expect("no panic")
    });
    assert!(matches!(accepted, Some(Error::ListenerClosed)), "{accepted:?}");
    // The driver has ended, and with it its socket.
    while UdpSocket::bind(listener.local_addr()).is_err() {
        thread::yield_now();
    }
}

#[test]
fn connecting_without_a_response_times_out() {
    // Bound, so that no other test gets the port.
    let silent = UdpSocket::bind(V4).expect("there is a free port");
    let connect_timeout = Duration::from_millis(600);
    let settings = Settings { connect_timeout, ..patient() };
    let error = Socket::connect(silent.local_addr().expect("it is bound"), &settings).err();
    assert!(matches!(error, Some(Error::ConnectTimeout)), "{error:?}");
}

#[test]
fn a_paused_reader_blocks_the_sender_and_receives_everything() {
    let mut settings = patient();
    settings.options.receive_buffer = 64;
    settings.options.send_buffer = 64;
    let (a, b) = pair(&settings);
    thread::scope(|scope| {
        scope.spawn(|| send(&a, Mode::Stream, 1_000_000));
        thread::sleep(Duration::from_millis(700));
        assert!(a.statistics().sender.delivered <= 64, "the receive buffer is full");
        receive(&b, Mode::Stream, 1_000_000);
    });
}

#[test]
fn a_read_timeout_does_not_close_the_connection() {
    let (a, mut b) = pair(&patient());
    b.set_read_timeout(Some(Duration::from_millis(20)));
    assert!(matches!(b.recv(&mut [0; 10]), Err(Error::TimedOut)));
    send(&a, Mode::Stream, 1000);
    b.set_read_timeout(None);
    receive(&b, Mode::Stream, 1000);
}

#[test]
fn a_timeout_beyond_all_times_is_none() {
    let settings = Settings { connect_timeout: Duration::MAX, ..patient() };
    let listener = Listener::bind(V4, &settings).expect("there is a free port");
    let mut client = Socket::connect(listener.local_addr(), &settings).expect("it listens");
    let mut server = listener.accept(Some(Duration::MAX)).expect("there is a client");
    client.set_write_timeout(Some(Duration::MAX));
    server.set_read_timeout(Some(Duration::MAX));
    client.send_all(b"x").expect("it is open");
    assert_eq!(server.recv(&mut [0; 2]).expect("it is open"), 1);
    client.shutdown(Duration::MAX).expect("it ends well");
}

#[test]
fn connecting_ends_when_it_is_to() {
    let silent = UdpSocket::bind(V4).expect("there is a free port");
    let silent = silent.local_addr().expect("it is bound");
    let [port, _] = free_ports();
    let mut asked = 0;
    let mut twice = || {
        asked += 1;
        asked % 2 == 1
    };
    let ended = Socket::connect_while(silent, &patient(), &mut twice);
    assert!(matches!(ended, Err(Error::Closed)));
    let local = SocketAddr::new(V4.ip(), port);
    let ended = Socket::rendezvous_while(local, silent, &patient(), &mut twice);
    assert!(matches!(ended, Err(Error::Closed)));
    assert_eq!(asked, 4);
}
