//! Shutdown, keep-alive and detection of dead peers.

use crate::end::{End, config, pair};
use crate::path::{Conditions, Network};
use dumbbell_net::Endpoint as _;
use dumbbell_udt::{
    CloseReason, Config, Connection, DataHeader, Handshake, MessagePart, Mode, Packet, RequestType,
    Role, SendError, Seq, TransportOptions,
};
use dumbbell_units::{Span, Time};

fn open(conditions: Conditions) -> Network {
    let mut network =
        Network::new(pair(&TransportOptions::default(), Mode::Stream, 5), conditions, 1);
    network.run_until(Span::from_secs(30), |ends, _| ends.iter().all(End::is_open));
    network
}

fn ended(end: &mut End) -> Option<CloseReason> {
    end.connection().and_then(|connection| connection.close_reason())
}

#[test]
fn data_sent_before_the_shutdown_is_readable_after_it() {
    let mut network = open(Conditions::CLEAN);
    let client = network.ends[0].connection().expect("it is open");
    assert_eq!(client.send(network.now, &[7; 50_000]), Ok(50_000));
    client.close();
    assert_eq!(client.send(network.now, &[7]), Err(SendError::NotOpen));
    network.run_until(Span::from_secs(10), |ends, _| {
        ended(&mut ends[1]) == Some(CloseReason::PeerClosed)
    });
    assert_eq!(ended(&mut network.ends[0]), Some(CloseReason::Closed));
    let mut out = vec![0; 60_000];
    let server = network.ends[1].connection().expect("it was open");
    assert_eq!(server.read(&mut out), 50_000);
    assert!(out[..50_000].iter().all(|&byte| byte == 7));
    assert_eq!(server.read(&mut out), 0);
}

#[test]
fn nothing_is_lost_if_a_light_ack_is_the_last_before_the_shutdown() {
    let near = Conditions { delay: Span::from_micros(100), ..Conditions::CLEAN };
    // Full packets only: a short one is acknowledged immediately.
    let whole = usize::from(TransportOptions::default().max_payload());
    for packets in 60..300 {
        let mut network = open(near);
        let client = network.ends[0].connection().expect("it is open");
        let sent = packets * whole;
        assert_eq!(client.send(network.now, &vec![7; sent]), Ok(sent));
        client.close();
        let over = |ends: &mut [End; 2], _| ended(&mut ends[1]) == Some(CloseReason::PeerClosed);
        network.run_until(Span::from_secs(10), over);
        let server = network.ends[1].connection().expect("it was open");
        assert_eq!(server.read(&mut vec![0; sent + 1]), sent, "{packets} packets");
    }
}

#[test]
fn unacknowledged_data_is_readable_after_a_shutdown() {
    let mut network = open(Conditions::CLEAN);
    let client = network.ends[0].connection().expect("it is open");
    assert_eq!(client.send(network.now, &[7; 14_560]), Ok(14_560));
    // All ten packets have arrived, and not all are acknowledged.
    network.run_until(Span::from_secs(1), |ends, _| {
        ends[1].connection().is_some_and(|server| server.receiver_stats().packets == 10)
    });
    let server = network.ends[1].connection().expect("it is open");
    let before = server.read(&mut [0; 20_000]);
    assert!(before < 14_560);
    server.receive(network.now, &Packet::Shutdown, &[]);
    assert_eq!(before + server.read(&mut [0; 20_000]), 14_560);
}

#[test]
fn keep_alives_do_not_hold_a_closing_connection() {
    let mut network = open(Conditions::CLEAN);
    let client = network.ends[0].connection().expect("it is open");
    assert_eq!(client.send(network.now, &[7; 50_000]), Ok(50_000));
    let deadline = network.now + Span::from_secs(5);
    client.close_by(deadline);
    // Nothing is acknowledged.
    let mut last = None;
    for ms in 0..=5000 {
        assert!(client.is_open(), "at {ms} ms");
        let now = network.now + Span::from_millis(ms);
        client.receive(now, &Packet::KeepAlive, &[]);
        while let Some(packet) = client.poll(now) {
            last = Some(packet);
        }
        assert!(client.next_timeout() <= deadline || !client.is_open());
    }
    assert_eq!((last, client.close_reason()), (Some(Packet::Shutdown), Some(CloseReason::Closed)));
    assert!(client.has_unacknowledged());
}

#[test]
fn an_idle_connection_is_kept_alive() {
    let mut network = open(Conditions::CLEAN);
    network.run_for(Span::from_secs(120));
    assert!(network.ends.iter().all(End::is_open));
}

#[test]
fn a_dead_peer_is_detected_after_about_46_s_as_in_udt4() {
    let [client, _] = open(Conditions::CLEAN).ends;
    let [_, listener] = pair(&TransportOptions::default(), Mode::Stream, 5);
    let mut network =
        Network::new([client, listener], Conditions { loss: 1.0, ..Conditions::CLEAN }, 1);
    network.run_until(Span::from_secs(60), |ends, _| {
        ended(&mut ends[0]) == Some(CloseReason::TimedOut)
    });
    let seconds = network.now.as_secs_f64();
    assert!((45.0..50.0).contains(&seconds), "after {seconds} s; UDT4 takes about 46");
}

#[test]
fn a_dead_peer_is_detected_after_the_idle_timeout() {
    let config = Config {
        idle_timeout: Some(Span::from_secs(5)),
        ..config(&TransportOptions::default(), Mode::Stream, 7)
    };
    let client = Connection::open(config, Role::Client, Seq::new(5), Time::ZERO);
    let [_, listener] = pair(&TransportOptions::default(), Mode::Stream, 5);
    let mut network = Network::new([End::Connected(client), listener], Conditions::CLEAN, 1);
    network.run_until(Span::from_secs(1), |ends, _| ends.iter().all(End::is_open));
    // While idle, the connection stays open.
    network.run_for(Span::from_secs(60));
    assert!(network.ends.iter().all(End::is_open));
    let dead = network.now;
    let [_, nobody] = pair(&TransportOptions::default(), Mode::Message, 5);
    network.ends[1] = nobody;
    network.run_until(Span::from_secs(60), |ends, _| ended(&mut ends[0]).is_some());
    assert_eq!(ended(&mut network.ends[0]), Some(CloseReason::TimedOut));
    let taken = network.now.since(dead);
    assert!(taken >= Span::from_secs(4) && taken <= Span::from_secs(6), "{taken}");
}

#[test]
fn replayed_packets_do_not_keep_an_encrypted_connection_open() {
    let client = Handshake {
        version: 4,
        socket_type: 1,
        isn: Seq::new(5),
        mss: 1500,
        window: 1000,
        request_type: RequestType::CONCLUSION,
        socket_id: 7,
        cookie: 1,
    };
    for (crypto_overhead, ended_after) in [(20, Some(5)), (0, None)] {
        let config = Config {
            idle_timeout: Some(Span::from_secs(5)),
            crypto_overhead,
            ..config(&TransportOptions::default(), Mode::Stream, 9)
        };
        let mut server = Connection::accept(config, &client, Time::ZERO);
        let message = MessagePart::default();
        let data = DataHeader { seq: client.isn, message, timestamp: 0, length: 100 };
        let replayed = [Packet::Data(data), Packet::Handshake(client)];
        let closed_at = (0..20).find(|&second| {
            let now = Time::ZERO + Span::from_secs(second);
            replayed.iter().for_each(|packet| server.receive(now, packet, &[0; 100]));
            while server.poll(now).is_some() {}
            !server.is_open()
        });
        assert_eq!(closed_at, ended_after, "overhead {crypto_overhead}");
        let stats = server.receiver_stats();
        assert_eq!((stats.bytes, stats.discarded), (100, stats.packets - 1));
    }
}
