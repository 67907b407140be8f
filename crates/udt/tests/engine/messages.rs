//! Message mode: boundaries, order and time to live.

use crate::end::{End, pair};
use crate::path::{Conditions, Network};
use dumbbell_net::Endpoint as _;
use dumbbell_udt::{Ack, AckKind, Mode, Nak, Packet, SendError, Seq, TransportOptions};
use dumbbell_units::Span;
use std::collections::BTreeSet;

/// A message that contains its number, with a length derived from it.
fn message(number: u32) -> Vec<u8> {
    let len = 10 + (number as usize * 977) % 6000;
    number.to_be_bytes().into_iter().cycle().take(len).collect()
}

fn number(message: &[u8]) -> u32 {
    u32::from_be_bytes([message[0], message[1], message[2], message[3]])
}

/// Sends messages over a bad path. Returns the numbers of the received ones in order.
fn exchange(seed: u64, count: u32, ttl: Option<Span>, in_order: bool, limit: Span) -> Vec<u32> {
    let ends = pair(&TransportOptions::default(), Mode::Message, 77);
    let mut network = Network::new(ends, Conditions::BAD, seed);
    let (mut sent, mut received) = (0, Vec::new());
    let mut done_at = None;
    network.run_until(limit, |ends, now| {
        if !ends.iter().all(End::is_open) {
            return false;
        }
        let client = ends[0].connection().expect("it is open");
        while sent < count {
            match client.send_message(now, &message(sent), ttl, in_order) {
                Ok(()) => sent += 1,
                Err(SendError::Full) => break,
                Err(other) => panic!("{other}"),
            }
        }
        // All packets are acknowledged or dropped.
        let all_gone = sent == count && client.send_buffer_free() == 8192 * 1456;
        let server = ends[1].connection().expect("it is open");
        while let Some(bytes) = server.read_message() {
            let number = number(&bytes);
            assert_eq!(bytes, message(number));
            received.push(number);
        }
        if all_gone {
            done_at.get_or_insert(now);
        }
        done_at.is_some_and(|at| now.since(at) > Span::from_millis(100))
    });
    received
}

#[test]
fn messages_arrive_whole_and_in_order() {
    for seed in 0..5 {
        let received = exchange(seed, 100, None, true, Span::from_secs(120));
        assert_eq!(received, (0..100).collect::<Vec<_>>());
    }
}

#[test]
fn messages_with_out_of_order_delivery_all_arrive_once() {
    let mut overtaken = false;
    for seed in 0..5 {
        let received = exchange(seed, 100, None, false, Span::from_secs(120));
        overtaken |= !received.is_sorted();
        assert_eq!(received.len(), 100);
        assert_eq!(received.into_iter().collect::<BTreeSet<_>>().len(), 100);
    }
    assert!(overtaken, "on a path that loses a fifth some do");
}

#[test]
fn expired_messages_are_dropped_and_do_not_block_others() {
    let mut received = 0;
    for seed in 0..5 {
        let numbers = exchange(seed, 100, Some(Span::from_millis(60)), true, Span::from_secs(120));
        assert!(numbers.is_sorted());
        received += numbers.len();
    }
    assert!((100..500).contains(&received), "{received} of 500");
}

#[test]
fn packets_that_expired_unsent_are_neither_rtt_samples_nor_delivered() {
    let ends = pair(&TransportOptions::default(), Mode::Message, 77);
    let mut network = Network::new(ends, Conditions::CLEAN, 1);
    network.run_until(Span::from_secs(10), |ends, _| ends.iter().all(End::is_open));
    network.run_for(Span::from_secs(10));
    let client = network.ends[0].connection().expect("it is open");
    let (now, ttl) = (network.now, Some(Span::from_millis(1)));
    assert_eq!(client.send_message(now, &[7; 100 * 1456], ttl, true), Ok(()));
    // Within 1 ms, which covers the pacing.
    let paced = (0..100).map(|n| now + Span::from_micros(10 * n));
    paced.for_each(|now| while client.poll(now).is_some() {});
    let before = client.sender_stats();
    assert_eq!(before.sent, 16, "the initial window");
    let later = now + Span::from_millis(50);
    let mut lost = Nak::default();
    assert!(lost.push(Seq::new(77), Seq::new(77)));
    client.receive(later, &Packet::Nak(lost), &[]);
    let dropped = client.poll(later);
    assert!(matches!(dropped, Some(Packet::DropRequest(_))), "{dropped:?}");
    let ack = Ack { number: 1, next: Seq::new(177), window: 8192, ..Ack::default() };
    client.receive(later, &Packet::Ack(AckKind::Full, ack), &[]);
    let after = client.sender_stats();
    assert_eq!((after.rtt_sum, after.srtt), (before.rtt_sum, before.srtt));
    assert_eq!((after.delivered, client.has_unacknowledged()), (16, false));
}

#[test]
fn a_message_longer_than_the_send_buffer_is_refused() {
    let options = TransportOptions { send_buffer: 32, ..TransportOptions::default() };
    let mut network = Network::new(pair(&options, Mode::Message, 1), Conditions::CLEAN, 1);
    network.run_until(Span::from_secs(1), |ends, _| ends.iter().all(End::is_open));
    let client = network.ends[0].connection().expect("it is open");
    let most = 32 * 1456;
    let refused = client.send_message(network.now, &vec![0; most + 1], None, true);
    assert_eq!(refused, Err(SendError::TooLong(most)));
    assert_eq!(client.send_message(network.now, &vec![0; most], None, true), Ok(()));
    assert_eq!(client.send_message(network.now, &[0], None, true), Err(SendError::Full));
    assert_eq!(client.send_message(network.now, &[], None, true), Err(SendError::Empty));
    assert_eq!(client.send(network.now, &[0]), Err(SendError::WrongMode(Mode::Message)));
}
