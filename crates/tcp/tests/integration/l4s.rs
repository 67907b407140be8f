//! The stack's L4S mode: ECT(1) on every packet (RFC 9331) and Accurate ECN (RFC 9768).

use crate::connection::{Fate, Flow, TestConnection, losing, millis};
use dumbbell_net::Packet;
use dumbbell_tcp::{Ecn, Flags, Segment, Stack};
use dumbbell_units::Span;

fn l4s(stack: Stack) -> TestConnection {
    TestConnection::new(Flow { stack: Stack { ecn: Ecn::L4s, ..stack }, ..Flow::default() })
}

#[test]
fn every_packet_is_ect_1_retransmissions_and_acks_included() {
    let mut connection = l4s(Stack::linux());
    connection.run(millis(1_500), losing(&[60]));
    let sent = connection.sent.iter().chain(&connection.acks).map(|(_, segment)| segment);
    assert!(sent.clone().all(|segment| segment.is_l4s() && !segment.flags.contains(Flags::CE)));
    assert!(sent.clone().any(|segment| segment.flags.contains(Flags::RETRANSMISSION)));
    assert!(sent.clone().any(|segment| segment.flags.contains(Flags::SYN)));
}

/// RFC 9768, section 3.2.2.5.1.
#[test]
fn a_mark_after_an_unmarked_packet_is_acknowledged_immediately() {
    let stack = Stack { quick_acks: 0, push: false, autotuning: false, ..Stack::linux() };
    let acknowledged = |marked: &'static [u32]| {
        let mut connection = l4s(stack.clone());
        connection.run(millis(400), |_, segment: &Segment| {
            if marked.contains(&segment.number) { Fate::Marked } else { Fate::Arrives }
        });
        let numbers = connection.acks[1..].iter().map(|(_, ack)| ack.number);
        numbers.take_while(|&number| number <= 10).collect::<Vec<_>>()
    };
    assert_eq!(acknowledged(&[]), [2, 4, 6, 8, 10]);
    assert_eq!(acknowledged(&[4]), [2, 4, 5, 7, 9, 10]);
    assert_eq!(acknowledged(&[4, 5, 6]), [2, 4, 5, 7, 9, 10], "every second mark");
}

#[test]
fn acknowledgements_count_the_marks_since_the_start() {
    let mut connection = l4s(Stack::linux());
    connection.run(millis(3_000), |_, segment: &Segment| {
        if segment.number.is_multiple_of(3) { Fate::Marked } else { Fate::Arrives }
    });
    for (_, ack) in &connection.acks[1..] {
        assert_eq!(u32::from(ack.marked), ack.number.div_ceil(3), "{ack:?}");
    }
    assert!(connection.acks.last().is_some_and(|(_, ack)| ack.number > 50));
}

/// Mbit/s of a Prague flow of which a share `p` of all packets is marked at random.
fn prague_rate(p: f64, rtt_ms: u64) -> f64 {
    let stack = Stack { ecn: Ecn::L4s, ..Stack::linux() };
    let delay = Span::from_micros(rtt_ms * 500);
    let mut connection =
        TestConnection::new(Flow { stack, cc: "prague", delay, ..Flow::default() });
    let mut state = 1u64;
    let mut fate = |_: usize, _: &Segment| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if ((state >> 11) as f64) < p * (1u64 << 53) as f64 { Fate::Marked } else { Fate::Arrives }
    };
    connection.run(millis(10_000), &mut fate);
    let before = connection.stats().delivered;
    connection.run(millis(40_000), &mut fate);
    (connection.stats().delivered - before) as f64 * 1500.0 * 8.0 / 30e6
}

/// L4STeam's tcp_prague.c states the rate of a flow in Mbit/s: 1/p - 1, times 25 ms / RTT above 25 ms,
/// for marks that come regularly, two in 25 ms. Marks at random come after a pause: a flow waits 25 ms
/// and then on average for the next of its `x` marks in 25 ms, so the balance x = 2 (1 + 1/x) gives
/// x = 1 + sqrt(3) instead of 2. The statement rounds 12,000 bits in 25 ms, 0.96 Mbit/s, to 1.
#[test]
fn prague_has_the_rate_that_its_authors_state_at_any_round_trip_time() {
    let at_random = 0.96 * (1.0 + 3f64.sqrt()) / 2.0;
    for (p, rtt_ms) in [(0.03, 5), (0.03, 20), (0.03, 50), (0.05, 10), (0.05, 25), (0.05, 100)] {
        let law = at_random * (1.0 / p - 1.0) * (25.0 / rtt_ms as f64).min(1.0);
        let rate = prague_rate(p, rtt_ms);
        assert!((rate / law - 1.0).abs() < 0.07, "{rate}, not {law} at {p} and {rtt_ms} ms");
    }
}
