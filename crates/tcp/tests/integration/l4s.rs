//! The stack's L4S mode: ECT(1) on every packet (RFC 9331) and Accurate ECN (RFC 9768).

use crate::connection::{Fate, Flow, TestConnection, losing, millis};
use dumbbell_net::Packet;
use dumbbell_tcp::{Ecn, Flags, Segment, Stack};

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
