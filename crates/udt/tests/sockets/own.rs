//! Connections between two ends of our own.

use crate::interop::free_ports;
use crate::pattern::{close, receive, send};
use dumbbell_udt::Mode;
use dumbbell_udt::io::{Error, Key, Listener, Settings, Socket};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

const V4: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const V6: SocketAddr = SocketAddr::new(std::net::IpAddr::V6(Ipv6Addr::LOCALHOST), 0);
const BYTES: u64 = 5_000_000;
const PATIENCE: Option<Duration> = Some(Duration::from_secs(10));

/// A connection: who asked for it, and who was asked.
pub fn pair(settings: &Settings) -> (Socket, Socket) {
    let listener = Listener::bind(V4, settings).expect("there is a free port");
    let client = Socket::connect(listener.local_addr(), settings).expect("it listens");
    (client, listener.accept(PATIENCE).expect("there is a client"))
}

fn exchange(a: Socket, b: Socket, mode: Mode, bytes: u64) {
    thread::scope(|scope| {
        scope.spawn(|| send(&a, mode, bytes));
        scope.spawn(|| send(&b, mode, bytes));
        scope.spawn(|| receive(&a, mode, bytes));
        receive(&b, mode, bytes);
    });
    close(a);
    // The peer has closed, which is no error where everything was received.
    let mut rest = [0; 1];
    if mode == Mode::Stream {
        assert_eq!(b.recv(&mut rest).expect("it ends well"), 0);
    }
}

#[test]
fn streams_and_messages_go_both_ways_at_once() {
    for mode in [Mode::Stream, Mode::Message] {
        let (a, b) = pair(&Settings { mode, ..Settings::default() });
        exchange(a, b, mode, BYTES);
    }
}

#[test]
fn every_kind_of_algorithm_carries_data() {
    for algorithm in ["ar-udt", "cubic", "bbr", "copa"] {
        let (a, b) = pair(&Settings::for_algorithm(algorithm));
        exchange(a, b, Mode::Stream, 1_000_000);
    }
}

#[test]
fn one_listener_serves_ipv6_and_many_clients() {
    let settings = Settings::default();
    let listener = Listener::bind(V6, &settings).expect("there is a free port");
    let connect = || Socket::connect(listener.local_addr(), &settings).expect("it listens");
    let clients: Vec<Socket> = (0..20).map(|_| connect()).collect();
    let accept = || listener.accept(PATIENCE).expect("there is a client");
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
        let settings = Settings { key, ..Settings::default() };
        let [one, other] = free_ports().map(|port| SocketAddr::new(V4.ip(), port));
        let late = || Socket::rendezvous(other, one, &settings).expect("both connect");
        let (a, b) = thread::scope(|scope| {
            let b = scope.spawn(late);
            (Socket::rendezvous(one, other, &settings).expect("both connect"), b.join())
        });
        exchange(a, b.expect("no panic"), Mode::Stream, 500_000);
    }
}

#[test]
fn with_a_key_everything_arrives_and_without_it_nothing() {
    let keyed = Settings {
        key: Some(Key::new([1; 32])),
        connect_timeout: Duration::from_secs(1),
        ..Settings::default()
    };
    for mode in [Mode::Stream, Mode::Message] {
        let (a, b) = pair(&Settings { mode, ..keyed.clone() });
        exchange(a, b, mode, 1_000_000);
    }
    let listener = Listener::bind(V4, &keyed).expect("there is a free port");
    let other = Settings { key: Some(Key::new([2; 32])), ..keyed.clone() };
    let refused = Socket::connect(listener.local_addr(), &other).err();
    assert!(matches!(refused, Some(Error::Key)), "{refused:?}");
    let plain = Listener::bind(V4, &Settings::default()).expect("there is a free port");
    let refused = Socket::connect(plain.local_addr(), &keyed).err();
    assert!(matches!(refused, Some(Error::Key)), "{refused:?}");
    let none = listener.accept(Some(Duration::from_millis(50))).err();
    assert!(matches!(none, Some(Error::TimedOut)), "{none:?}");
}

#[test]
fn who_does_not_listen_is_given_up() {
    let [nobody, _] = free_ports();
    let connect_timeout = Duration::from_millis(600);
    let settings = Settings { connect_timeout, ..Settings::default() };
    let error = Socket::connect((V4.ip(), nobody), &settings).err();
    assert!(matches!(error, Some(Error::ConnectTimeout)), "{error:?}");
}

#[test]
fn a_reader_that_pauses_holds_the_sender_back_and_gets_everything() {
    let mut settings = Settings::default();
    settings.options.receive_buffer = 64;
    settings.options.send_buffer = 64;
    let (a, b) = pair(&settings);
    thread::scope(|scope| {
        scope.spawn(|| send(&a, Mode::Stream, 1_000_000));
        thread::sleep(Duration::from_millis(700));
        let began = Instant::now();
        receive(&b, Mode::Stream, 1_000_000);
        // UDT4's sender finds out by its timers only, 300 ms or more after each pause.
        assert!(began.elapsed() < Duration::from_secs(5));
    });
}

#[test]
fn a_timeout_ends_a_wait_and_not_the_connection() {
    let (a, mut b) = pair(&Settings::default());
    b.set_read_timeout(Some(Duration::from_millis(20)));
    assert!(matches!(b.recv(&mut [0; 10]), Err(Error::TimedOut)));
    send(&a, Mode::Stream, 1000);
    b.set_read_timeout(PATIENCE);
    receive(&b, Mode::Stream, 1000);
}
