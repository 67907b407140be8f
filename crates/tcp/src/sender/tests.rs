//! How recoveries end, and what that does to RACK's reordering window; the counter of Accurate ECN.

use super::*;
use dumbbell_cc::{CaState, ConnectionConfig};

const RTT: Span = Span::from_millis(100);

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

/// A sender with ten packets out, sent at 100 ms. It has seen reordering, and a D-SACK has widened
/// RACK's window.
fn sender_with_ten_packets_out() -> Sender {
    let mut sender = connected(Stack::linux());
    sender.rack.update_reordering(1);
    sender.rack.on_dsack(&sender.path);
    assert_eq!(sender.rack.reo_wnd_persist(), 16);
    sender
}

fn connected(stack: Stack) -> Sender {
    let config = ConnectionConfig::new(Time::ZERO, 1448).with_seed(1);
    let mut sender = Sender::new(SenderConfig {
        stack: Arc::new(stack),
        algorithm: Algorithm::parse("reno", &config).expect("a built-in algorithm"),
        start: Time::ZERO,
        stop: None,
        bytes: None,
        app_rates: Vec::new(),
    });
    sender.poll(Time::ZERO).expect("a SYN");
    let flags = Flags::SYN.with(Flags::ACK);
    sender.handle(at(100), &Segment { flags, window: 1000, ..Segment::default() });
    while sender.poll(at(100)).is_some() {}
    assert_eq!(sender.path.in_flight, 10);
    sender
}

/// An acknowledgement that echoes a timestamp of `echo_ms`.
fn ack(number: u32, echo_ms: u64, blocks: &[(u32, u32)], flags: Flags) -> Segment {
    let echo = timestamp(at(echo_ms));
    let flags = flags.with(Flags::ACK);
    let mut segment =
        Segment { number, timestamp: echo, window: 1000, flags, ..Segment::default() };
    segment.set_blocks(blocks.iter().copied());
    segment
}

/// Fast recovery: packet 0 is retransmitted when RACK's window ends. Returns that time, ms.
fn recover_packet_0(sender: &mut Sender) -> u64 {
    sender.handle(at(200), &ack(0, 100, &[(1, 5)], Flags::default()));
    let end = sender.next_timeout();
    let segment = sender.poll(end).expect("a retransmission");
    assert_eq!((segment.number, sender.path.ca_state), (0, CaState::Recovery));
    end.as_nanos().div_ceil(1_000_000)
}

#[test]
fn a_recovery_that_ends_counts_towards_the_reset_of_the_window() {
    let mut sender = sender_with_ten_packets_out();
    let now = recover_packet_0(&mut sender);
    sender.handle(at(now) + RTT, &ack(10, now, &[], Flags::default()));
    assert_eq!((sender.path.ca_state, sender.spurious), (CaState::Open, 0));
    assert_eq!(sender.rack.reo_wnd_persist(), 15);
}

/// RFC 8985, 6.2, step 4: "exiting Fast or RTO recovery".
#[test]
fn an_rto_recovery_that_ends_counts_too() {
    let mut sender = sender_with_ten_packets_out();
    while sender.timeouts == 0 {
        let now = sender.next_timeout();
        while sender.poll(now).is_some() {}
    }
    let now = sender.path.now;
    assert_eq!(sender.path.ca_state, CaState::Loss);
    sender.frto = false; // The loss is real.
    let ms = now.as_nanos().div_ceil(1_000_000);
    sender.handle(now + RTT, &ack(sender.high_seq, ms, &[], Flags::default()));
    assert_eq!((sender.path.ca_state, sender.spurious), (CaState::Open, 0));
    assert_eq!(sender.rack.reo_wnd_persist(), 15);
}

/// Linux `tcp_try_undo_recovery`.
#[test]
fn a_recovery_that_is_undone_does_not_count() {
    let mut sender = sender_with_ten_packets_out();
    let now = recover_packet_0(&mut sender);
    sender.handle(at(now + 1), &ack(10, 100, &[], Flags::default()));
    assert_eq!((sender.path.ca_state, sender.spurious), (CaState::Open, 1));
    assert_eq!(sender.rack.reo_wnd_persist(), 16);
}

/// Linux `tcp_try_undo_dsack`.
#[test]
fn an_undo_by_d_sack_keeps_the_window_for_one_more_recovery() {
    let mut sender = sender_with_ten_packets_out();
    for _ in 0..6 {
        sender.rack.on_recovery_end();
    }
    let now = recover_packet_0(&mut sender);
    // Within the round trip of the first D-SACK, so that this one does not widen the window.
    sender.handle(at(now) + RTT, &ack(5, now, &[(0, 1)], Flags::DSACK));
    assert_eq!(sender.spurious, 1);
    assert_eq!(sender.rack.reo_wnd_persist(), 11);
}

#[test]
fn a_lost_or_late_acknowledgement_loses_or_repeats_no_mark() {
    let mut sender = connected(Stack { ecn: Ecn::L4s, ..Stack::linux() });
    let mut marked_after = |number: u32, marked| {
        let segment = Segment { marked, ..ack(number, 100, &[], Flags::default()) };
        sender.handle(at(200), &segment);
        (sender.path.marked, sender.path.ca_state)
    };
    assert_eq!(marked_after(1, 0), (0, CaState::Open));
    // The acknowledgements of packets 1 to 4, of which 3 were marked, are lost.
    assert_eq!(marked_after(6, 3), (3, CaState::Cwr));
    assert_eq!(marked_after(3, 1), (3, CaState::Cwr), "late");
    assert_eq!(marked_after(8, 5), (5, CaState::Cwr));
}
