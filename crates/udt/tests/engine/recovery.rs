//! Loss recovery, acknowledgements and reordering.

use crate::end::{End, config, named, pair};
use crate::path::{Conditions, Network};
use dumbbell_net::Endpoint;
use dumbbell_udt::{
    Ack, AckKind, Config, Connection, DataHeader, MessagePart, Mode, Nak, Packet, Role, Seq,
    TransportOptions,
};
use dumbbell_units::{Span, Time};

/// Test data with a long period.
pub fn pattern(from: u64, len: usize) -> Vec<u8> {
    (from..from + len as u64).map(|i| ((i * 2_654_435_761) >> 13) as u8).collect()
}

/// Sends a stream of `total` bytes to the second end and checks it. Returns the time of completion.
fn transfer(network: &mut Network, total: u64, limit: Span) -> Time {
    let (mut sent, mut read) = (0, 0);
    let mut out = vec![0; 100_000];
    network.run_until(limit, |ends, now| {
        if ends.iter().all(End::is_open) {
            let client = ends[0].connection().expect("it is open");
            let room = (client.send_buffer_free() as u64).min(total - sent);
            if room > 0 {
                let taken = client.send(now, &pattern(sent, room as usize));
                sent += taken.expect("it is open") as u64;
            }
            let server = ends[1].connection().expect("it is open");
            loop {
                let len = server.read(&mut out);
                assert_eq!(out[..len], pattern(read, len)[..], "after {read} bytes");
                read += len as u64;
                if len == 0 {
                    break;
                }
            }
        }
        read == total
    });
    network.now
}

/// Options with buffers that fill up.
fn small() -> TransportOptions {
    TransportOptions { receive_buffer: 64, send_buffer: 64, ..TransportOptions::default() }
}

#[test]
fn a_stream_arrives_exactly_over_a_bad_path() {
    for seed in 0..10 {
        for options in [small(), TransportOptions::default()] {
            let mut network = Network::new(pair(&options, Mode::Stream, 77), Conditions::BAD, seed);
            transfer(&mut network, 300_000, Span::from_secs(120));
        }
    }
}

#[test]
fn sequence_numbers_wrap_in_the_middle_of_a_transfer() {
    for before in [0, 1, 15, 100] {
        let ends = pair(&TransportOptions::default(), Mode::Stream, 0x7fff_ffff - before);
        let mut network = Network::new(ends, Conditions { loss: 0.05, ..Conditions::CLEAN }, 3);
        transfer(&mut network, 500_000, Span::from_secs(60));
    }
}

#[test]
fn a_stream_arrives_exactly_if_packets_are_reordered() {
    let jitter = Span::from_millis(30);
    let ends = pair(&TransportOptions::default(), Mode::Stream, 1);
    let mut network = Network::new(ends, Conditions { jitter, ..Conditions::CLEAN }, 5);
    transfer(&mut network, 1_000_000, Span::from_secs(60));
}

/// Two ends after the first one has sent `bytes`, of which all packets after the first `kept` are lost.
fn with_a_lost_tail(bytes: usize, kept: usize) -> Network {
    let mut network =
        Network::new(pair(&TransportOptions::default(), Mode::Stream, 1), Conditions::CLEAN, 1);
    network.run_until(Span::from_secs(1), |ends, _| ends.iter().all(End::is_open));
    let client = network.ends[0].connection().expect("it is open");
    assert_eq!(client.send(network.now, &pattern(0, bytes)), Ok(bytes));
    for packet in 0..bytes.div_ceil(1456) {
        // UDT's initial packet sending period.
        network.now += Span::from_micros(1);
        if packet < kept {
            network.drain_some(0, 1);
        } else {
            assert!(Endpoint::poll(&mut network.ends[0], network.now).is_some(), "packet {packet}");
        }
    }
    network
}

/// Time until the second end has read `bytes` bytes.
fn time_to_read(network: &mut Network, bytes: usize) -> Span {
    let (began, mut read) = (network.now, 0);
    network.run_until(Span::from_secs(2), |ends, _| {
        if let Some(server) = ends[1].connection() {
            read += server.read(&mut vec![0; bytes]);
        }
        read == bytes
    });
    network.now.since(began)
}

#[test]
fn a_lost_last_packet_is_probed_after_two_round_trips_and_a_syn() {
    let taken = time_to_read(&mut with_a_lost_tail(100, 0), 100);
    // 2 RTT of 20 ms + SYN + one-way delay of 10 ms.
    assert_eq!(taken, Span::from_millis(60));
}

#[test]
fn a_lost_tail_is_reported_once_the_probe_arrives() {
    let mut network = with_a_lost_tail(12 * 1456, 4);
    // The first four are acknowledged within 30 ms, the probe arrives some 60 ms later, and its
    // NAK 10 ms after that.
    network.run_for(Span::from_millis(110));
    let stats = network.ends[0].connection().expect("it is open").sender_stats();
    assert_eq!((stats.lost, stats.timeouts), (7, 0));
    // The algorithm determines the rate of the retransmissions.
    time_to_read(&mut network, 12 * 1456);
}

#[test]
fn the_probe_interval_doubles_if_a_probe_is_lost() {
    let mut network = with_a_lost_tail(100, 0);
    network.now += Span::from_millis(50);
    assert!(Endpoint::poll(&mut network.ends[0], network.now).is_some(), "the probe");
    assert_eq!(time_to_read(&mut network, 100), Span::from_millis(110));
    let stats = network.ends[0].connection().expect("it is open").sender_stats();
    assert_eq!((stats.retransmitted, stats.timeouts), (2, 0));
}

#[test]
fn acknowledged_packets_are_not_probed() {
    let mut network =
        Network::new(pair(&TransportOptions::default(), Mode::Stream, 1), Conditions::CLEAN, 1);
    transfer(&mut network, 1_000_000, Span::from_secs(60));
    network.run_for(Span::from_secs(1));
    let stats = network.ends[0].connection().expect("it is open").sender_stats();
    assert_eq!((stats.lost, stats.retransmitted), (0, 0));
}

/// CUDT::processData: a light ACK every 64 packets since the last other ACK.
#[test]
fn light_acks_are_sent_every_64_packets_unless_disabled() {
    for (light_acks, expected) in [(true, 3), (false, 0)] {
        let options = TransportOptions { light_acks, ..TransportOptions::default() };
        let mut network = Network::new(pair(&options, Mode::Stream, 1), Conditions::CLEAN, 1);
        network.run_until(Span::from_secs(1), |ends, _| ends.iter().all(End::is_open));
        let server = network.ends[1].connection().expect("it is open");
        let mut light = 0;
        for seq in (1..=200).map(Seq::new) {
            let data =
                DataHeader { seq, message: MessagePart::default(), timestamp: 0, length: 1456 };
            server.receive(network.now, &Packet::Data(data), &[0; 1456]);
            while let Some(packet) = server.poll(network.now) {
                light += usize::from(matches!(packet, Packet::Ack(AckKind::Light, _)));
            }
        }
        assert_eq!(light, expected);
    }
}

/// Passes a NAK to the first end. Returns the indexes of the data packets that it then sends.
fn feed_nak(network: &mut Network, first: u32, last: u32) -> Vec<u32> {
    let mut nak = Nak::default();
    nak.push(Seq::new(1 + first), Seq::new(1 + last));
    feed(network, &Packet::Nak(nak))
}

fn feed(network: &mut Network, packet: &Packet) -> Vec<u32> {
    let now = network.now;
    network.ends[0].connection().expect("it is open").receive(now, packet, &[]);
    sent(network)
}

fn sent(network: &mut Network) -> Vec<u32> {
    let polled = std::iter::from_fn(|| Endpoint::poll(&mut network.ends[0], network.now));
    let number = |packet| match packet {
        Packet::Data(data) => Some(data.seq.get() - 1),
        _ => None,
    };
    polled.filter_map(number).collect()
}

/// CUDT::processCtrl: "the lost packet (retransmission) should be sent out immediately".
#[test]
fn a_nak_makes_the_sender_retransmit_immediately() {
    let mut network = with_a_lost_tail(12 * 1456, 0);
    network.now += Span::from_millis(20);
    assert_eq!(feed_nak(&mut network, 3, 4), [3]);
    // The period is then 1/16 s, from the initial arrival rate of 16 packets/s.
    network.now += Span::from_millis(30);
    assert_eq!(sent(&mut network), []);
    assert_eq!(feed_nak(&mut network, 7, 7), [4], "in the order of their numbers");
    // This NAK has increased the period by 9/8.
    network.now += Span::from_millis(70);
    assert_eq!(sent(&mut network), []);
    network.now += Span::from_millis(1);
    assert_eq!(sent(&mut network), [7]);
}

/// UdtAgent::recv of the module for NS-2: `snd_timer_.resched(0)` on every acknowledgement that
/// advances.
#[test]
fn with_ns_2_rules_an_ack_ends_the_sending_pause_after_a_nak() {
    for (cc, then) in [("udt(rules=ns-2)", &[2][..]), ("udt", &[])] {
        let algorithm = named(cc, 1456);
        let config = Config { algorithm, ..config(&TransportOptions::default(), Mode::Stream, 7) };
        let client = Connection::open(config, Role::Client, Seq::new(1), Time::ZERO);
        let [_, listener] = pair(&TransportOptions::default(), Mode::Stream, 1);
        let mut network = Network::new([End::Connected(client), listener], Conditions::CLEAN, 1);
        network.run_until(Span::from_secs(1), |ends, _| ends.iter().all(End::is_open));
        let client = network.ends[0].connection().expect("it is open");
        client.send(network.now, &pattern(0, 2 * 1456)).expect("it is open");
        sent(&mut network);
        for packets in [&[1][..], &[]] {
            network.now += Span::from_micros(1);
            assert_eq!(sent(&mut network), packets);
        }
        let client = network.ends[0].connection().expect("it is open");
        client.send(network.now, &pattern(0, 9 * 1456)).expect("it is open");
        network.now += Span::from_millis(20);
        assert_eq!(feed_nak(&mut network, 0, 0), [0]);
        network.now += Span::from_millis(5);
        assert_eq!(sent(&mut network), []);
        let ack = Ack { number: 1, next: Seq::new(2), window: 100, ..Ack::default() };
        assert_eq!(feed(&mut network, &Packet::Ack(AckKind::Full, ack)), then, "{cc}");
    }
}

#[test]
fn a_repeated_nak_within_an_rtt_does_not_retransmit_again() {
    let mut network = with_a_lost_tail(12 * 1456, 0);
    network.now += Span::from_millis(20);
    assert_eq!(feed_nak(&mut network, 3, 4), [3]);
    network.now += Span::from_millis(19);
    // 3 was retransmitted less than an RTT ago, 4 is still in the loss list.
    assert_eq!(feed_nak(&mut network, 3, 4), []);
    let stats = network.ends[0].connection().expect("it is open").sender_stats();
    assert_eq!((stats.lost, stats.retransmitted), (2, 1));
    network.now += Span::from_millis(1);
    assert_eq!(feed_nak(&mut network, 3, 4), [3], "it could be there, and is not");
    let stats = network.ends[0].connection().expect("it is open").sender_stats();
    assert_eq!((stats.lost, stats.retransmitted), (3, 2));
}

/// UDT4 sends no window update: its sender would probe after 300 ms or more.
#[test]
fn reading_from_a_full_buffer_sends_a_window_update_immediately() {
    let options = TransportOptions { receive_buffer: 64, ..TransportOptions::default() };
    let mut network = Network::new(pair(&options, Mode::Stream, 1), Conditions::CLEAN, 1);
    network.run_until(Span::from_secs(1), |ends, _| ends.iter().all(End::is_open));
    let client = network.ends[0].connection().expect("it is open");
    client.send(network.now, &pattern(0, 200 * 1456)).expect("it is open");
    network.run_for(Span::from_millis(700));
    assert!(Endpoint::poll(&mut network.ends[1], network.now).is_none());
    let server = network.ends[1].connection().expect("it is open");
    assert_eq!(server.read(&mut vec![0; 100 * 1456]), 64 * 1456);
    let update = Endpoint::poll(&mut network.ends[1], network.now);
    assert!(matches!(update, Some(Packet::Ack(_, Ack { window: 64, .. }))), "{update:?}");
}

#[test]
fn at_1_percent_loss_nothing_stalls_for_a_second() {
    for seed in 0..5 {
        let ends = pair(&TransportOptions::default(), Mode::Stream, 1);
        let mut network = Network::new(ends, Conditions { loss: 0.01, ..Conditions::CLEAN }, seed);
        let (mut last, mut worst) = (None, Span::ZERO);
        let mut read = 0;
        network.run_until(Span::from_secs(120), |ends, now| {
            if let Some(client) = ends[0].connection().filter(|client| client.is_open()) {
                let room = client.send_buffer_free();
                client.send(now, &pattern(0, room)).expect("it is open");
            }
            if let Some(server) = ends[1].connection() {
                let mut out = [0; 65_536];
                let len = server.read(&mut out);
                read += len;
                if len > 0 {
                    worst = worst.max(last.map_or(Span::ZERO, |last| now.since(last)));
                    last = Some(now);
                }
            }
            read > 5_000_000
        });
        assert!(worst < Span::from_secs(1), "seed {seed}: {worst}");
    }
}

#[test]
fn corrupted_packets_cause_no_panic() {
    // UDT has no checksum: received data may be wrong.
    for seed in 0..20 {
        let conditions = Conditions { corruption: 0.2, ..Conditions::BAD };
        let mut network =
            Network::new(pair(&TransportOptions::default(), Mode::Stream, 9), conditions, seed);
        network.run_until(Span::from_secs(600), |ends, now| {
            let mut out = [0; 4096];
            for end in ends.iter_mut() {
                if let Some(connection) = end.connection() {
                    connection.read(&mut out);
                    let _ = connection.send(now, &[0; 5000]);
                }
            }
            now > Time::ZERO + Span::from_secs(5)
        });
    }
}

#[test]
fn the_parts_of_a_nak_name_no_more_packets_than_are_in_flight() {
    let ends = pair(&TransportOptions::default(), Mode::Stream, 5);
    let mut network = Network::new(ends, Conditions::CLEAN, 1);
    network.run_until(Span::from_secs(10), |ends, _| ends.iter().all(End::is_open));
    let now = network.now + Span::from_millis(1);
    // This end has no sample of the RTT, within which a packet is not marked again.
    let server = network.ends[1].connection().expect("it is open");
    assert_eq!(server.send(network.now, &[7; 12 * 1456]), Ok(12 * 1456));
    let paced = (0..100).map(|n| network.now + Span::from_micros(10 * n));
    paced.for_each(|now| while server.poll(now).is_some() {});
    let mut nak = Nak::default();
    assert!(nak.push(Seq::new(5), Seq::new(5 + 11)));
    server.receive(now, &Packet::Nak(nak), &[]);
    assert!(matches!(server.poll(now), Some(Packet::Data(data)) if data.seq == Seq::new(5)));
    nak.continued = true;
    server.receive(now, &Packet::Nak(nak), &[]);
    assert_eq!(server.sender_stats().lost, 12, "of the same datagram");
    let later = now + Span::from_micros(1);
    server.receive(later, &Packet::Nak(nak), &[]);
    assert_eq!(server.sender_stats().lost, 13, "a datagram whose first part is lost");
}

#[test]
fn the_first_new_losses_of_a_nak_are_reported_in_whichever_part() {
    let ends = pair(&TransportOptions::default(), Mode::Stream, 5);
    let mut network = Network::new(ends, Conditions::CLEAN, 1);
    network.run_until(Span::from_secs(10), |ends, _| ends.iter().all(End::is_open));
    let (client, now) = (network.ends[0].connection().expect("it is open"), network.now);
    assert_eq!(client.send(now, &[7; 16 * 1456]), Ok(16 * 1456));
    // Within 1 ms, which covers the pacing.
    let paced = (0..100).map(|n| now + Span::from_micros(10 * n));
    paced.for_each(|now| while client.poll(now).is_some() {});
    let ack = Ack { number: 1, next: Seq::new(5 + 8), window: 8192, ..Ack::default() };
    client.receive(now, &Packet::Ack(AckKind::Full, ack), &[]);
    // The first part reports packet 2, which is acknowledged by now.
    for (part, expected) in [(2, 0), (9, 1), (11, 1)] {
        let mut nak = Nak::default();
        assert!(nak.push(Seq::new(5 + part), Seq::new(5 + part)));
        nak.continued = part > 2;
        client.receive(now, &Packet::Nak(nak), &[]);
        assert_eq!(client.sender_stats().recoveries, expected, "after packet {part}");
    }
}
