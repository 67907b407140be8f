//! Attacks: packets from hostile peers and from third parties do no impairments.

use crate::pattern::{patient, receive, send};
use crate::relay::{Impairments, Relay};
use dumbbell_udt::io::{Error, Key, Listener, Settings, Socket};
use dumbbell_udt::{
    Ack, AckKind, DropRequest, Handshake, MessageNumber, Mode, Nak, Packet, RequestType, Seq, codec,
};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn bytes_of(packet: &Packet, socket: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec::encode(packet, socket, HOST, &[], &mut bytes);
    bytes
}

fn client_handshake(request: RequestType, number: u32) -> Handshake {
    Handshake {
        version: 4,
        socket_type: 1,
        isn: Seq::new(number),
        mss: 1500,
        window: 4_000_000,
        request_type: request,
        socket_id: number,
        cookie: number.wrapping_mul(2_654_435_761),
    }
}

/// Sends requests without cookies, with wrong cookies, and truncated ones. Returns the bytes sent and
/// received.
fn flood(server: SocketAddr, packets: u32) -> (usize, usize) {
    let socket = UdpSocket::bind((HOST, 0)).expect("there is a free port");
    socket.set_nonblocking(true).expect("it is a socket");
    let (mut sent, mut answered) = (0, 0);
    let mut buffer = [0; 2048];
    for number in 1..=packets {
        let handshake =
            |request| bytes_of(&Packet::Handshake(client_handshake(request, number)), 0);
        let bytes = match number % 4 {
            0 => handshake(RequestType::INDUCTION),
            1 => handshake(RequestType::CONCLUSION),
            2 => handshake(RequestType(number as i32)),
            _ => handshake(RequestType::INDUCTION)[..16 + number as usize % 48].to_vec(),
        };
        sent += socket.send_to(&bytes, server).unwrap_or(0);
        while let Ok(length) = socket.recv(&mut buffer) {
            assert!(length <= 64, "an answer is not longer than a handshake");
            answered += length;
        }
    }
    (sent, answered)
}

/// Opens plain UDT connections and leaves them idle. Returns the number accepted.
fn idle_clients(server: SocketAddr, number: u32) -> u32 {
    let socket = UdpSocket::bind((HOST, 0)).expect("there is a free port");
    let ask = |handshake: Handshake| {
        let bytes = bytes_of(&Packet::Handshake(handshake), 0);
        socket.send_to(&bytes, server).expect("it is sent");
        loop {
            let mut buffer = [0; 2048];
            let length = socket.recv(&mut buffer).expect("it is answered");
            let packet = codec::decode(&buffer[..length]).map(|datagram| datagram.packet);
            if let Ok(Packet::Handshake(answer)) = packet
                && answer.isn == handshake.isn
            {
                return answer;
            }
        }
    };
    let granted = |number| {
        let given = ask(client_handshake(RequestType::INDUCTION, number));
        ask(Handshake { request_type: RequestType::CONCLUSION, ..given }).request_type
            == RequestType::CONCLUSION
    };
    (1..=number).filter(|&number| granted(number)).count() as u32
}

#[test]
fn clients_without_the_key_do_not_block_one_with_the_key() {
    let settings = Settings { key: Some(Key::new([5; 32])), backlog: 8, ..patient() };
    let listener = Listener::bind((HOST, 0), &settings).expect("there is a free port");
    let address = listener.local_addr();
    // Between any two packets of the client, more strangers than the backlog holds.
    let mut seen = 0;
    let strangers = move |_: bool, _: &[u8]| {
        seen += 1;
        if seen < 10 {
            assert_eq!(idle_clients(address, 20), 0, "they get no connection");
        }
        Vec::new()
    };
    let relay = Relay::start(address, Impairments::default(), 1, Box::new(strangers));
    let client = Socket::connect(relay.address(), &settings).expect("it has the key");
    let server = listener.accept(None).expect("there is a client");
    send(&client, Mode::Stream, 1000);
    receive(&server, Mode::Stream, 1000);
}

/// Sends requests with a valid cookie, without a key or with a wrong message, until `stopped`. Returns
/// their number.
fn strangers(server: SocketAddr, stopped: &AtomicBool) -> u64 {
    let socket = UdpSocket::bind((HOST, 0)).expect("there is a free port");
    let induction = Packet::Handshake(client_handshake(RequestType::INDUCTION, 1));
    socket.send_to(&bytes_of(&induction, 0), server).expect("it is sent");
    let mut buffer = [0; 2048];
    let length = socket.recv(&mut buffer).expect("it is answered");
    let Ok(Packet::Handshake(reply)) = codec::decode(&buffer[..length]).map(|one| one.packet)
    else {
        panic!("no cookie")
    };
    socket.set_nonblocking(true).expect("it is a socket");
    let mut sent = 0;
    while !stopped.load(Ordering::Relaxed) {
        let number = sent as u32 + 2;
        let client = client_handshake(RequestType::CONCLUSION, number);
        let client = Handshake { cookie: reply.cookie, ..client };
        let mut bytes = bytes_of(&Packet::Handshake(client), 0);
        if number.is_multiple_of(2) {
            bytes.extend([number as u8; 48]);
        }
        // What the link does not carry is lost.
        sent += u64::from(socket.send_to(&bytes, server).is_ok());
        while socket.recv(&mut buffer).is_ok() {}
    }
    sent
}

#[test]
#[ignore = "takes both processors: `make chaos` runs it"]
fn a_server_with_a_key_serves_its_clients_during_a_flood_of_requests() {
    let settings = Settings { key: Some(Key::new([5; 32])), ..Settings::default() };
    let listener = Listener::bind((HOST, 0), &settings).expect("there is a free port");
    let server = listener.local_addr();
    let path = Impairments { latency: Duration::from_millis(50), ..Impairments::default() };
    let relay = Relay::start(server, path, 1, Box::new(|_, _| Vec::new()));
    let (stopped, began) = (Arc::new(AtomicBool::new(false)), Instant::now());
    let flooding = thread::spawn({
        let stopped = stopped.clone();
        move || strangers(server, &stopped)
    });
    for _ in 0..5 {
        let began = Instant::now();
        let client = Socket::connect(relay.address(), &settings).expect("it has the key");
        let took = began.elapsed().as_secs_f64();
        let accepted = listener.accept(None).expect("there is a client");
        thread::scope(|scope| {
            scope.spawn(|| send(&client, Mode::Stream, 10_000));
            receive(&accepted, Mode::Stream, 10_000);
        });
        eprintln!("connected in {took:.2} s, 10 kB after {:.2} s", began.elapsed().as_secs_f64());
    }
    stopped.store(true, Ordering::Relaxed);
    let sent = flooding.join().expect("no panic") as f64;
    eprintln!("meanwhile {:.0} requests/s of strangers", sent / began.elapsed().as_secs_f64());
    let extra = listener.accept(Some(Duration::from_millis(10)));
    assert!(extra.is_err(), "strangers get no connection");
}

#[test]
fn without_a_key_connections_beyond_the_backlog_are_rejected() {
    let settings = Settings { backlog: 8, ..patient() };
    let listener = Listener::bind((HOST, 0), &settings).expect("there is a free port");
    assert_eq!(idle_clients(listener.local_addr(), 20), 8);
    let refused = Socket::connect(listener.local_addr(), &settings).err();
    assert!(matches!(refused, Some(Error::Refused)), "{refused:?}");
    listener.accept(None).expect("it waits");
    Socket::connect(listener.local_addr(), &settings).expect("there is room for one more");
}

/// A listener, and its connection to a client that acknowledges nothing.
fn with_deaf_client(settings: &Settings) -> (Listener, Socket) {
    let listener = Listener::bind((HOST, 0), settings).expect("there is a free port");
    assert_eq!(idle_clients(listener.local_addr(), 1), 1);
    let server = listener.accept(None).expect("there is a client");
    server.send_all(&[7; 100_000]).expect("the send buffer has room");
    (listener, server)
}

#[test]
fn a_connection_that_is_shut_down_ends_after_the_linger() {
    let (_listener, server) = with_deaf_client(&patient());
    let error = server.shutdown(Duration::from_millis(100)).expect_err("nothing is acknowledged");
    assert!(matches!(error, Error::TimedOut | Error::LingerTimeout), "{error}");
    let closed = server.wait_closed(Duration::from_secs(100));
    assert!(matches!(closed, Err(Error::LingerTimeout)), "{closed:?}");
}

#[test]
fn a_dropped_connection_ends_after_the_linger_of_its_settings() {
    let settings = Settings { linger: Duration::from_millis(100), ..patient() };
    let (listener, server) = with_deaf_client(&settings);
    let (address, until) = (listener.local_addr(), Instant::now() + Duration::from_secs(100));
    drop((server, listener));
    // The driver's thread, and with it the port, ends with the last connection.
    while UdpSocket::bind(address).is_err() {
        assert!(Instant::now() < until, "the connection does not end");
        thread::sleep(Duration::from_millis(50));
    }
}

fn survives_a_flood(packets: u32) {
    let settings = patient();
    let listener = Listener::bind((HOST, 0), &settings).expect("there is a free port");
    let server = listener.local_addr();
    thread::scope(|scope| {
        let flooding = scope.spawn(|| flood(server, packets));
        let client = Socket::connect(server, &settings).expect("it is served all the same");
        let accepted = listener.accept(None).expect("there is one client");
        scope.spawn(move || send(&client, Mode::Stream, 300_000));
        receive(&accepted, Mode::Stream, 300_000);
        let (sent, answered) = flooding.join().expect("no panic");
        assert!(answered <= sent, "{answered} bytes answer {sent}");
    });
    let extra = listener.accept(Some(Duration::from_millis(10)));
    assert!(extra.is_err(), "no connection without a valid cookie");
}

#[test]
fn a_server_survives_a_flood_of_handshakes() {
    survives_a_flood(50_000);
}

#[test]
#[ignore = "takes long: `make chaos` runs it"]
fn a_server_survives_a_flood_of_a_million_handshakes() {
    survives_a_flood(1_000_000);
}

/// Invalid control packets to a socket id.
fn invalid_packets(socket: u32, number: u32) -> Vec<Vec<u8>> {
    let far = Seq::new(number.wrapping_mul(0x9e37_79b9));
    let mut backwards = Nak::default();
    backwards.push(far.plus(100), far);
    let ack = Ack { number, next: far, window: u32::MAX, ..Ack::default() };
    let rude = Ack { rtt_us: u32::MAX, arrival_rate: u32::MAX, capacity: u32::MAX, ..ack };
    let range = DropRequest { message: MessageNumber::new(number), first: far, last: far.plus(9) };
    let packets = [
        Packet::Ack(AckKind::Light, ack),
        Packet::Ack(AckKind::Full, rude),
        Packet::Nak(backwards),
        Packet::Ack2 { number },
        Packet::DropRequest(range),
        Packet::Handshake(client_handshake(RequestType(number as i32), number)),
        Packet::CongestionWarning,
    ];
    let mut all: Vec<Vec<u8>> = packets.iter().map(|packet| bytes_of(packet, socket)).collect();
    // Truncated, of an unknown type, and to an unknown socket id.
    all.push(all[0][..18].to_vec());
    all.push([&[0x8f, 0xff][..], &all[0][2..]].concat());
    all.push(bytes_of(&Packet::Shutdown, socket ^ 1));
    all
}

/// Transfers data through a relay that injects packets with the peers' addresses.
fn withstands(settings: &Settings, mut add: impl FnMut(u32, u32) -> Vec<Vec<u8>> + Send + 'static) {
    let listener = Listener::bind((HOST, 0), settings).expect("there is a free port");
    let mut seen = 0;
    let inject = move |_: bool, bytes: &[u8]| {
        seen += 1;
        match codec::destination(bytes) {
            // After the handshake, for one packet in eight.
            Some(socket) if socket != 0 && seen > 8 && seen % 8 == 0 => add(socket, seen),
            _ => Vec::new(),
        }
    };
    let relay = Relay::start(listener.local_addr(), Impairments::default(), 1, Box::new(inject));
    let client = Socket::connect(relay.address(), settings).expect("it listens");
    let server = listener.accept(None).expect("there is a client");
    thread::scope(|scope| {
        scope.spawn(|| send(&client, Mode::Stream, 300_000));
        receive(&server, Mode::Stream, 300_000);
    });
}

#[test]
fn invalid_control_packets_do_not_close_a_connection() {
    withstands(&patient(), invalid_packets);
}

#[test]
fn a_forged_shutdown_does_not_close_an_encrypted_connection() {
    let settings = Settings { key: Some(Key::new([5; 32])), ..patient() };
    withstands(&settings, |socket, number| {
        let mut all = invalid_packets(socket, number);
        all.push(bytes_of(&Packet::Shutdown, socket));
        all
    });
}

#[test]
fn a_forged_drop_request_does_not_stall_a_stream() {
    let settings = patient();
    let listener = Listener::bind((HOST, 0), &settings).expect("there is a free port");
    let mut seen = 0;
    let inject = move |inwards: bool, bytes: &[u8]| {
        let Ok(datagram) = codec::decode(bytes) else { return Vec::new() };
        let Packet::Data(data) = datagram.packet else { return Vec::new() };
        seen += 1;
        if !inwards || seen % 20 != 0 {
            return Vec::new();
        }
        let (first, last) = (data.seq.plus(1), data.seq.plus(100));
        let drop = DropRequest { message: MessageNumber::new(1), first, last };
        vec![bytes_of(&Packet::DropRequest(drop), datagram.destination)]
    };
    let relay = Relay::start(listener.local_addr(), Impairments::default(), 1, Box::new(inject));
    let client = Socket::connect(relay.address(), &settings).expect("it listens");
    let server = listener.accept(None).expect("there is a client");
    thread::scope(|scope| {
        scope.spawn(|| send(&client, Mode::Stream, 300_000));
        receive(&server, Mode::Stream, 300_000);
    });
}

#[test]
fn an_end_whose_shutdown_is_lost_is_still_an_end() {
    let settings = Settings { idle_timeout: Duration::from_secs(5), ..patient() };
    for key in [None, Some(Key::new([5; 32]))] {
        let settings = Settings { key, ..settings.clone() };
        let listener = Listener::bind((HOST, 0), &settings).expect("there is a free port");
        let none = Box::new(|_: bool, _: &[u8]| Vec::new());
        let relay = Relay::start(listener.local_addr(), Impairments::default(), 1, none);
        let client = Socket::connect(relay.address(), &settings).expect("it listens");
        let server = listener.accept(None).expect("there is a client");
        thread::scope(|scope| {
            scope.spawn(|| receive(&server, Mode::Stream, 100_000));
            send(&client, Mode::Stream, 100_000);
        });
        relay.drop_shutdowns(2);
        client.close(Duration::from_secs(100)).expect("all is acknowledged");
        // As if the client's process had ended.
        drop(relay);
        assert_eq!(server.recv(&mut [0; 1]).expect("it ends well"), 0);
    }
}

#[test]
fn a_shutdown_from_another_address_does_not_close_a_connection() {
    let settings = patient();
    let listener = Listener::bind((HOST, 0), &settings).expect("there is a free port");
    let attacker = UdpSocket::bind((HOST, 0)).expect("there is a free port");
    let (to, mut done) = (listener.local_addr(), false);
    let inject = move |inwards: bool, bytes: &[u8]| {
        if let Some(socket) = codec::destination(bytes).filter(|&id| inwards && id != 0 && !done) {
            attacker.send_to(&bytes_of(&Packet::Shutdown, socket), to).expect("it is sent");
            done = true;
        }
        Vec::new()
    };
    let relay = Relay::start(to, Impairments::default(), 1, Box::new(inject));
    let client = Socket::connect(relay.address(), &settings).expect("it listens");
    let server = listener.accept(None).expect("there is a client");
    thread::scope(|scope| {
        scope.spawn(|| send(&client, Mode::Stream, 100_000));
        receive(&server, Mode::Stream, 100_000);
    });
}
