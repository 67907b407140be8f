//! When the receiver acknowledges.

use crate::connection::{Fate, Flow, TestConnection, losing, lossless, millis};
use dumbbell_tcp::{Ecn, Flags, Segment, Stack};
use dumbbell_units::{Rate, Span, Time};

const MSS: u64 = 1448;
const ROUND_TRIP: u64 = 100_000_000 + 150_000;

/// Arrival times of the acknowledgements after the SYN-ACK, ns, and the packets they acknowledge.
fn acknowledged(stack: Stack, packets: u64) -> Vec<(u64, u32)> {
    let mut connection =
        TestConnection::new(Flow { stack, bytes: Some(packets * MSS), ..Flow::default() });
    connection.run(millis(1_000), lossless);
    let since = connection.sent[0].0;
    connection.acks[1..].iter().map(|(at, ack)| (at.since(since).as_nanos(), ack.number)).collect()
}

#[test]
fn the_end_of_a_write_is_acknowledged_immediately() {
    let stack = Stack { quick_acks: 0, ..Stack::linux() };
    assert_eq!(acknowledged(stack, 1), [(ROUND_TRIP, 1)]);
}

#[test]
fn without_push_a_full_segment_alone_is_acknowledged_after_40_ms() {
    let stack = Stack { quick_acks: 0, push: false, autotuning: false, ..Stack::linux() };
    let exact = Stack { tick_ns: 0, ..stack.clone() };
    assert_eq!(acknowledged(exact, 1), [(ROUND_TRIP + 40_000_000, 1)]);
    // Ten jiffies after the end of the one that has begun (`tcp_send_delayed_ack`).
    let [(at, 1)] = acknowledged(stack, 1)[..] else { panic!("one acknowledgement") };
    assert!((40_000_000..44_000_000).contains(&(at - ROUND_TRIP)), "{at}");
}

#[test]
fn quick_acks_begin_with_the_first_data_segment() {
    let numbers = |stack| acknowledged(stack, 18).iter().map(|ack| ack.1).collect::<Vec<_>>();
    let linux: Vec<u32> = (1..=16).chain([18]).collect();
    assert_eq!(numbers(Stack { push: false, autotuning: false, ..Stack::linux() }), linux);
    // ns-3's `ProcessSynRcvd`: the first, then every second one.
    let ns3 = Stack::named("ns-3").expect("there is one");
    assert_eq!(acknowledged(ns3.clone(), 1), [(ROUND_TRIP, 1)]);
    assert_eq!(numbers(ns3)[..4], [1, 3, 5, 7]);
}

#[test]
fn every_second_segment_is_acknowledged() {
    let stack = Stack { quick_acks: 0, push: false, autotuning: false, ..Stack::linux() };
    assert_eq!(acknowledged(stack, 100).len(), 50);
}

#[test]
fn the_end_of_a_burst_is_acknowledged_immediately() {
    let stack = Stack { quick_acks: 0, initial_window: 6, autotuning: false, ..Stack::linux() };
    let delay = Span::from_millis(1);
    let mut connection = TestConnection::new(Flow { stack, delay, ..Flow::default() });
    connection.run(Time::from_nanos(5_500_000), lossless);
    let numbers: Vec<u32> = connection.acks[1..].iter().map(|(_, ack)| ack.number).collect();
    assert_eq!(numbers, [2, 3, 5, 6], "two bursts of three");
}

#[test]
fn single_packet_writes_wait_for_no_delayed_acknowledgement() {
    let rate = Rate::from_bits_per_sec(200_000.0);
    let mut connection =
        TestConnection::new(Flow { app_rates: vec![(Span::ZERO, rate)], ..Flow::default() });
    connection.run(millis(6_000), lossless);
    let srtt = connection.stats().srtt.map(Span::as_micros);
    assert!(srtt.is_some_and(|srtt| srtt < 100_300), "{srtt:?}");
}

#[test]
fn the_first_ce_mark_and_the_cwr_are_acknowledged_immediately() {
    let stack = Stack {
        quick_acks: 0,
        push: false,
        autotuning: false,
        ecn: Ecn::Classic,
        ..Stack::linux()
    };
    let mut connection = TestConnection::new(Flow { stack, ..Flow::default() });
    let has_cwr = |segment: &Segment| segment.flags.contains(Flags::CWR);
    connection.run(
        millis(900),
        |_, segment| {
            if segment.number == 40 { Fate::Marked } else { Fate::Arrives }
        },
    );
    let ack_of = |number: u32| connection.acks.iter().any(|(_, ack)| ack.number == number + 1);
    let (_, first) =
        connection.sent.iter().find(|(_, segment)| has_cwr(segment)).expect("CWR is sent");
    assert!(ack_of(40));
    assert!(ack_of(first.number));
}

#[test]
fn a_reduction_for_a_loss_also_sends_cwr() {
    let stack = Stack { ecn: Ecn::Classic, ..Stack::linux() };
    let mut connection = TestConnection::new(Flow { stack, ..Flow::default() });
    connection.run(millis(1_500), |_, segment| match segment.number {
        100 if !segment.flags.contains(Flags::RETRANSMISSION) => Fate::Lost,
        _ => Fate::Arrives,
    });
    let with_cwr: Vec<Time> = connection
        .sent
        .iter()
        .filter(|(_, segment)| segment.flags.contains(Flags::CWR))
        .map(|sent| sent.0)
        .collect();
    assert_eq!(with_cwr.len(), 1, "once for the episode");
}

#[test]
fn while_the_receive_window_grows_every_packet_is_acknowledged() {
    let acks_of_a_thousand = |receive_window: u32, from: u32| {
        let stack = Stack { quick_acks: 0, push: false, receive_window, ..Stack::linux() };
        let mut connection = TestConnection::new(Flow { stack, ..Flow::default() });
        connection.run(millis(3_000), lossless);
        let range = from..from + 1_000;
        connection.acks[1..].iter().filter(|(_, ack)| range.contains(&ack.number)).count()
    };
    // In slow start the packets per round trip double, and the receive window grows somewhat ahead of
    // them. With constant packets per round trip it does not grow.
    let (growing, steady) = (acks_of_a_thousand(1 << 20, 100), acks_of_a_thousand(121, 2_000));
    assert!(growing > 700, "{growing}");
    assert!(steady <= 500, "{steady}");
}

#[test]
fn packets_that_let_the_window_grow_use_no_quick_ack() {
    let numbers = |packets: u64| {
        let stack = Stack { push: false, ..Stack::linux() };
        acknowledged(stack, packets).iter().map(|ack| ack.1).collect::<Vec<_>>()
    };
    // The first five let the window grow from 45 to 55 packets; 16 others use the quick ACKs.
    assert_eq!(numbers(23)[19..], [20, 21, 23]);
}

#[test]
fn sacks_are_not_compressed_while_the_receive_window_grows() {
    let sacks = |lost: &'static [u32], autotuning: bool| {
        let stack = Stack { autotuning, ..Stack::linux() };
        let mut connection = TestConnection::new(Flow { stack, ..Flow::default() });
        connection.run(millis(1_500), losing(lost));
        connection.acks.iter().filter(|(_, ack)| ack.blocks().count() > 0).count()
    };
    // The window has grown to the whole buffer by packet 600, but not by packet 700.
    assert_eq!(sacks(&[600], true), sacks(&[600], false));
    let (growing, constant) = (sacks(&[700], true), sacks(&[700], false));
    assert!(growing > 3 * constant, "{growing} {constant}");
}

/// `tcp_in_quickack_mode`: a route with `quickack` acknowledges each packet, also out of order.
#[test]
fn sacks_are_not_compressed_without_delayed_acknowledgements() {
    let sacks = |delayed_ack: bool| {
        let stack = Stack { autotuning: false, delayed_ack, ..Stack::linux() };
        let mut connection = TestConnection::new(Flow { stack, ..Flow::default() });
        connection.run(millis(1_500), losing(&[700]));
        connection.acks.iter().filter(|(_, ack)| ack.blocks().count() > 0).count()
    };
    let (immediate, delayed) = (sacks(false), sacks(true));
    assert!(immediate > 3 * delayed, "{immediate} {delayed}");
}

#[test]
fn an_acknowledgement_has_three_sack_blocks_at_most_and_their_size() {
    let stack = Stack { initial_window: 20, ..Stack::linux() };
    let mut connection = TestConnection::new(Flow { stack: stack.clone(), ..Flow::default() });
    connection.run(millis(300), losing(&[1, 3, 5, 7, 9, 11]));
    for (_, ack) in &connection.acks[1..] {
        assert_eq!(ack.size, stack.ack_size(ack.blocks().count()), "{ack:?}");
    }
    let max_blocks = connection.acks.iter().map(|(_, ack)| ack.blocks().count()).max();
    assert_eq!(max_blocks, Some(3));
}

#[test]
fn compressed_acknowledgements_come_at_the_end_of_the_timers_slack() {
    let flow = Flow { delay: Span::from_millis(5), ..Flow::default() };
    let mut connection = TestConnection::new(flow);
    connection.run(millis(300), losing(&[600]));
    let duplicates: Vec<_> = connection.acks.iter().filter(|(_, ack)| ack.number == 600).collect();
    let gaps = duplicates.windows(2).map(|pair| pair[1].0.since(pair[0].0).as_micros());
    let longest = gaps.max().unwrap_or(0);
    // A twentieth of 10.15 ms and 0.1 ms, from the next packet on; a packet takes 0.15 ms.
    assert!((700..=760).contains(&longest), "{longest} us");
}

#[test]
fn what_waited_for_a_retransmission_occupies_the_buffer_until_it_is_read() {
    let stack = Stack { initial_window: 30, receive_window: 40, ..Stack::linux() };
    let bytes = Some(30 * MSS);
    let mut connection = TestConnection::new(Flow { stack, bytes, ..Flow::default() });
    connection.run(millis(1_000), losing(&[5]));
    let last = connection.acks.iter().filter(|(_, ack)| ack.number == 30);
    let windows: Vec<u32> = last.map(|(_, ack)| ack.window()).collect();
    assert_eq!(windows, [39 - 24, 38], "24 packets waited for packet 5; then they are read");
}
