//! The handshake.

use crate::end::{End, config, pair};
use crate::path::{Conditions, Network};
use dumbbell_net::Endpoint;
use dumbbell_udt::{
    CloseReason, Connection, DataHeader, Handshake, MessagePart, Mode, Packet, RequestType, Role,
    Seq, TransportOptions,
};
use dumbbell_units::{Rate, Span, Time};

fn both_open(ends: &mut [End; 2], _: Time) -> bool {
    ends.iter().all(End::is_open)
}

fn rendezvous(seed: u64, later: Span, conditions: Conditions) -> Network {
    let open = |socket, isn, start| {
        let config = config(&TransportOptions::default(), Mode::Stream, socket);
        End::Connected(Connection::open(config, Role::Rendezvous, Seq::new(isn), start))
    };
    // Each direction has its own initial sequence number.
    Network::new(
        [open(7, 100, Time::ZERO), open(9, 0x7fff_fff0, Time::ZERO + later)],
        conditions,
        seed,
    )
}

#[test]
fn a_client_is_connected_after_two_round_trips() {
    let mut network =
        Network::new(pair(&TransportOptions::default(), Mode::Stream, 5), Conditions::CLEAN, 1);
    network.run_until(Span::from_secs(1), both_open);
    assert_eq!(network.now, Time::ZERO + Span::from_millis(40));
}

#[test]
fn a_client_connects_over_a_bad_path() {
    for seed in 0..50 {
        let ends = pair(&TransportOptions::default(), Mode::Stream, 5);
        Network::new(ends, Conditions { loss: 0.5, ..Conditions::BAD }, seed)
            .run_until(Span::from_secs(60), both_open);
    }
}

#[test]
fn a_rendezvous_connects() {
    for later in [Span::ZERO, Span::from_millis(3), Span::from_millis(15), Span::from_secs(2)] {
        let mut network = rendezvous(1, later, Conditions::CLEAN);
        network.run_until(Span::from_secs(4), both_open);
    }
}

#[test]
fn a_rendezvous_over_a_bad_path_carries_data_both_ways() {
    for seed in 0..50 {
        let mut network = rendezvous(seed, Span::from_millis(seed), Conditions::BAD);
        network.run_until(Span::from_secs(60), both_open);
        for end in 0..2 {
            let connection = network.ends[end].connection().expect("it is open");
            assert_eq!(connection.send(network.now, b"hello"), Ok(5));
        }
        let mut heard = [Vec::new(), Vec::new()];
        network.run_until(Span::from_secs(60), |ends, _| {
            for (end, heard) in ends.iter_mut().zip(&mut heard) {
                let mut out = [0; 16];
                let len = end.connection().map_or(0, |connection| connection.read(&mut out));
                heard.extend_from_slice(&out[..len]);
            }
            heard.iter().all(|heard| heard == b"hello")
        });
    }
}

#[test]
fn connecting_without_a_response_ends_at_the_connect_timeout() {
    let mut lone = config(&TransportOptions::default(), Mode::Stream, 7);
    lone.connect_timeout = Some(Span::from_secs(3));
    let lone = Connection::open(lone, Role::Client, Seq::new(1), Time::ZERO);
    let [_, listener] = pair(&TransportOptions::default(), Mode::Stream, 1);
    let ends = [End::Connected(lone), listener];
    let mut network = Network::new(ends, Conditions { loss: 1.0, ..Conditions::CLEAN }, 1);
    network.run_until(Span::from_secs(4), |ends, _| {
        ends[0].connection().and_then(|c| c.close_reason()) == Some(CloseReason::TimedOut)
    });
    assert_eq!(network.now, Time::ZERO + Span::from_secs(3));
}

#[test]
fn a_client_in_message_mode_is_rejected_by_a_stream_listener() {
    let [client, _] = pair(&TransportOptions::default(), Mode::Message, 1);
    let [_, listener] = pair(&TransportOptions::default(), Mode::Stream, 1);
    let mut network = Network::new([client, listener], Conditions::CLEAN, 1);
    network.run_until(Span::from_secs(1), |ends, _| {
        ends[0].connection().and_then(|c| c.close_reason()) == Some(CloseReason::Refused)
    });
}

#[test]
fn a_rejection_without_the_clients_isn_is_ignored() {
    let [mut client, _] = pair(&TransportOptions::default(), Mode::Stream, 5);
    let Some(Packet::Handshake(asked)) = client.poll(Time::ZERO) else { panic!("it asks") };
    let mut refuse = |isn| {
        let refusal =
            Handshake { request_type: RequestType::REJECTION, isn: Seq::new(isn), ..asked };
        let connection = client.connection().expect("it is one");
        connection.receive(Time::ZERO, &Packet::Handshake(refusal), &[]);
        connection.close_reason()
    };
    assert_eq!(refuse(12_345), None);
    assert_eq!(refuse(5), Some(CloseReason::Refused));
}

#[test]
fn both_ends_use_the_smaller_mss() {
    let small = TransportOptions { mss: 576, ..TransportOptions::default() };
    let [client, _] = pair(&TransportOptions::default(), Mode::Stream, 1);
    let [_, listener] = pair(&small, Mode::Stream, 1);
    let mut network = Network::new([client, listener], Conditions::CLEAN, 1);
    network.run_until(Span::from_secs(1), both_open);
    let connection = network.ends[0].connection().expect("it is open");
    assert_eq!(connection.send_buffer_free(), 8192 * 532);
    // UDT's initial rate is one packet per microsecond for any packet size.
    let rate = connection.sender_stats().pacing_rate.expect("UDT paces");
    assert_eq!(rate, Rate::from_bytes_per_sec(532e6));
}

#[test]
fn a_packet_longer_than_the_agreed_payload_is_discarded() {
    let small = TransportOptions { mss: 576, ..TransportOptions::default() };
    let [client, _] = pair(&TransportOptions::default(), Mode::Stream, 1);
    let [_, listener] = pair(&small, Mode::Stream, 1);
    let mut network = Network::new([client, listener], Conditions::CLEAN, 1);
    network.run_until(Span::from_secs(1), both_open);
    let now = network.now;
    let server = network.ends[1].connection().expect("it is open");
    for (length, discarded) in [(533, 1), (65_000, 2), (532, 2)] {
        let (seq, message) = (Seq::new(1), MessagePart::from_word(0xe000_0001));
        let data = DataHeader { seq, message, timestamp: 1, length };
        server.receive(now, &Packet::Data(data), &vec![7; usize::from(length)]);
        assert_eq!(server.receiver_stats().discarded, discarded, "{length} bytes");
    }
    network.run_for(Span::from_millis(100));
    let server = network.ends[1].connection().expect("it is open");
    assert_eq!(server.read(&mut [0; 2000]), 532);
}
