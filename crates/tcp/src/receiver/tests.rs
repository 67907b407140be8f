//! When the receiver acknowledges, and what.

use super::*;

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

fn open_receiver() -> Receiver {
    open_receiver_of(Stack::linux())
}

fn open_receiver_of(stack: Stack) -> Receiver {
    let mut receiver = Receiver::new(Arc::new(Stack { autotuning: false, ..stack }));
    receiver.handle(at(0), &Segment { flags: Flags::SYN, ..Segment::default() });
    receiver.poll(at(0)).expect("a SYN-ACK");
    receiver
}

/// Whether a receiver acknowledges each packet at once, which arrive at these times. It has used up the quick
/// acknowledgements of the start, `start` ms after the handshake, and has acknowledged the last one.
fn acknowledged_at(stack: Stack, start: u64, times_ms: &[u64]) -> Vec<bool> {
    let mut receiver = open_receiver_of(stack);
    let mut number = 0;
    let mut is_acknowledged = |ms| {
        receiver.handle(at(ms), &data(number, 0));
        number += 1;
        receiver.poll(at(ms)).is_some()
    };
    let answers: Vec<bool> = (0..41).map(|_| is_acknowledged(start)).collect();
    assert!(answers[0] && answers[1] && answers[39] != answers[40]);
    if !answers[40] {
        is_acknowledged(start);
    }
    times_ms.iter().map(|&ms| is_acknowledged(ms)).collect()
}

/// A full packet, sent `timestamp` microseconds after the start.
fn data(number: u32, timestamp: u32) -> Segment {
    let stack = Stack::linux();
    Segment { number, timestamp, size: stack.mss + stack.header, ..Segment::default() }
}

/// A receiver queues packets 1 to 5, then packet 3 once more. `tcp_data_queue_ofo` drops it and reports
/// it with the next acknowledgement; `tcp_data_queue` acknowledges one below RCV.NXT immediately.
#[test]
fn only_a_duplicate_of_delivered_data_is_acknowledged_immediately() {
    let answers = reports(&[31, 32, 33, 34, 35, 33, 29]);
    let first = [Some(false), Some(false), Some(false), None, None];
    assert_eq!(answers[..5], first, "the rest is compressed");
    assert_eq!(answers[5..], [None, Some(true)]);
}

/// RFC 7323, section 5.3; Linux allows for one tick (`TCP_PAWS_WINDOW`). Packet 0 is retransmitted, then
/// packet 1 arrives late.
#[test]
fn paws_discards_an_original_older_than_a_retransmission() {
    for (sent, retransmitted, rcv_nxt) in [(1_999, 2_000, 2), (1_000, 2_999, 2), (1_999, 3_000, 1)]
    {
        let mut receiver = open_receiver();
        receiver.handle(at(4), &data(0, retransmitted));
        receiver.poll(at(4)).expect("an acknowledgement");
        receiver.handle(at(4), &data(1, sent));
        let ack = receiver.poll(at(4)).expect("an immediate acknowledgement");
        assert_eq!(ack.number, rcv_nxt, "{sent} us, {retransmitted} us");
    }
    let mut receiver = open_receiver();
    receiver.handle(at(4), &data(0, 3_000));
    receiver.poll(at(4)).expect("an acknowledgement");
    receiver.handle(at(4), &data(0, 1_000));
    let ack = receiver.poll(at(4)).expect("an acknowledgement");
    assert!(ack.flags.contains(Flags::DSACK), "the original");
}

/// Linux `tcp_event_data_recv`: the receiver's timeout is 300 ms, thrice the handshake's round-trip time.
#[test]
fn quick_acknowledgements_follow_a_gap_longer_than_the_timeout() {
    // 280 ms later, at once, 320 ms later, at once.
    let answers = acknowledged_at(Stack::linux(), 100, &[380, 380, 700, 700]);
    assert_eq!(answers, [false, true, true, true]);
}

/// A receiver whose stack's minimum timeout is short finds shorter gaps.
#[test]
fn the_gap_before_quick_acknowledgements_follows_the_minimum_timeout() {
    let stack = Stack { min_rto_ns: 5_000_000, ..Stack::linux() };
    // The last one 18 ms later.
    assert_eq!(acknowledged_at(stack, 1, &[2, 2, 20]), [false, true, true]);
}

/// Which of these packets a receiver acknowledges at once, which follow 29 with `Flags::ECT_0` without a gap.
fn answers_to(ecn: Ecn, packets: &[(u32, Flags)]) -> Vec<bool> {
    let mut receiver = open_receiver_of(Stack { ecn, ..Stack::linux() });
    let mut answer = |number, flags| {
        receiver.handle(at(1), &Segment { flags, ..data(number, 0) });
        receiver.poll(at(1)).is_some()
    };
    let before: Vec<bool> = (0..30).map(|number| answer(number, Flags::ECT_0)).collect();
    assert_eq!(before[28..], [false, true]);
    packets.iter().map(|&(number, flags)| answer(number, flags)).collect()
}

/// Linux `__tcp_ack_snd_check` (`ICSK_ACK_NOW`) and `tcp_ecn_accept_cwr`.
#[test]
fn a_change_of_marks_is_acknowledged_at_once_behind_a_gap_too() {
    let (plain, marked) = (Flags::ECT_0, Flags::ECT_0.with(Flags::CE));
    let gap = [31, 32, 33, 34].map(|number| (number, plain));
    let answers = answers_to(Ecn::Accurate, &[&gap[..], &[(35, marked), (36, marked)]].concat());
    assert_eq!(answers, [true, true, true, false, true, false]);
    assert_eq!(answers_to(Ecn::Accurate, &[(30, plain.with(Flags::CWR))]), [true]);
}

/// Linux `__tcp_ecn_check_ce`: "it is probably a retransmit".
#[test]
fn quick_acks_follow_a_packet_that_is_not_ecn_capable() {
    let packets = [(30, Flags::default()), (31, Flags::ECT_0), (32, Flags::ECT_0)];
    assert_eq!(answers_to(Ecn::Classic, &packets), [true, true, false]);
    assert_eq!(
        answers_to(Ecn::Off, &packets.map(|(number, _)| (number, Flags::default()))),
        [false, true, false]
    );
}

/// Which of these packets a receiver of 30 packets acknowledges, and whether it reports a duplicate then.
fn reports(packets: &[u32]) -> Vec<Option<bool>> {
    let mut receiver = open_receiver();
    let mut answer = |number| {
        receiver.handle(at(1), &data(number, 0));
        receiver.poll(at(1)).map(|ack| ack.flags.contains(Flags::DSACK))
    };
    for number in 0..30 {
        answer(number); // They use up the quick acknowledgements.
    }
    packets.iter().map(|&number| answer(number)).collect()
}

/// Linux `tcp_data_queue`: `rx_opt.dsack = 0` for every packet.
#[test]
fn a_duplicate_whose_acknowledgement_is_compressed_is_forgotten() {
    let queued = [31, 32, 33, 34, 35];
    let answers = reports(&[&queued[..], &[33, 30]].concat());
    assert_eq!(answers[5..], [None, Some(false)]);
}

/// Linux `tcp_sack_new_ofo_skb`: the acknowledgement that it sends clears `icsk_ack.pending`.
#[test]
fn a_packet_that_ends_the_compression_is_not_acknowledged_itself() {
    // Holes at 30, 32, 34 and 36; the block of 31 is the third one.
    let mut receiver = open_receiver();
    let mut answers = |number| {
        receiver.handle(at(1), &data(number, 0));
        let answer = receiver.poll(at(1)).is_some();
        (answer, receiver.next_timeout() != Time::MAX)
    };
    for number in (0..30).chain([31, 33, 35]) {
        answers(number);
    }
    assert_eq!(answers(37), (false, true), "compressed");
    assert_eq!(answers(39), (true, false), "it reports 37, and 39 waits for the next packet");
}

/// Linux `tcp_dec_quickack_mode`: no acknowledgement was scheduled.
#[test]
fn the_answer_to_a_discarded_packet_uses_no_quick_ack() {
    let mut receiver = open_receiver();
    receiver.handle(at(4), &data(0, 3_000));
    receiver.poll(at(4)).expect("an acknowledgement");
    let left = receiver.quick_acks;
    receiver.handle(at(4), &data(1, 1_000));
    receiver.poll(at(4)).expect("an immediate acknowledgement");
    assert_eq!((receiver.quick_acks, receiver.rcv_nxt), (left, 1));
}

/// Linux `__tcp_select_window`: the initial buffer has room for 56 packets.
#[test]
fn no_acknowledgement_is_quick_while_half_of_the_buffer_is_full() {
    let stack = Arc::new(Stack::linux());
    let mut receiver = Receiver::new(Arc::clone(&stack));
    receiver.handle(at(0), &Segment { flags: Flags::SYN, ..Segment::default() });
    receiver.poll(at(0)).expect("a SYN-ACK");
    for number in 1..=29 {
        receiver.handle(at(1), &data(number, 0));
        receiver.quick_acks = receiver.quick_acks.max(2);
        while receiver.poll(at(1)).is_some() {}
        assert_eq!(receiver.quick_acks == 0, receiver.window.is_half_full(), "{number}");
    }
    assert!(receiver.window.is_half_full());
}
