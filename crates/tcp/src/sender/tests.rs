//! How recoveries end, and what that does to RACK's reordering window; the counter of Accurate ECN.

use super::*;
use crate::Receiver;
use dumbbell_cc::CaState;

const RTT: Span = Span::from_millis(100);

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

/// A sender with ten packets out, sent at 100 ms. It has seen reordering, and a D-SACK has widened
/// RACK's window.
fn sender_with_ten_packets_out() -> Sender {
    let mut sender = connected(Stack::linux());
    sender.rack.update_reordering(1);
    sender.rack.on_dsack();
    sender.rack.update_reo_wnd(1, 1);
    assert_eq!(sender.rack.reo_wnd_persist(), 16);
    sender
}

fn connected(stack: Stack) -> Sender {
    let mut sender = Sender::new(SenderConfig::of(stack, "reno"));
    sender.poll(Time::ZERO).expect("a SYN");
    let flags = Flags::SYN.with(Flags::ACK);
    sender.handle(at(100), &Segment { flags, window_and_tsval: 1000, ..Segment::default() });
    while sender.poll(at(100)).is_some() {}
    assert_eq!(sender.path.in_flight, 10);
    sender
}

/// An acknowledgement that echoes a timestamp of `echo_ms`.
fn ack(number: u32, echo_ms: u64, blocks: &[(u32, u32)], flags: Flags) -> Segment {
    let echo = timestamp(at(echo_ms));
    let flags = flags.with(Flags::ACK);
    let mut segment =
        Segment { number, timestamp: echo, window_and_tsval: 1000, flags, ..Segment::default() };
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
    // The packets that follow were sent before the window was widened, so they do not widen it again.
    sender.rack.on_dsack();
    sender.rack.update_reo_wnd(1, 10);
    for _ in 0..6 {
        sender.rack.on_recovery_end();
    }
    let now = recover_packet_0(&mut sender);
    sender.handle(at(now) + RTT, &ack(5, now, &[(0, 1)], Flags::DSACK));
    assert_eq!(sender.spurious, 1);
    assert_eq!(sender.rack.reo_wnd_persist(), 11);
}

/// Linux `tcp_try_undo_dsack`.
#[test]
fn a_d_sack_after_the_recovery_undoes_its_reduction() {
    let mut sender = sender_with_ten_packets_out();
    let before = sender.cwnd();
    let now = recover_packet_0(&mut sender);
    sender.handle(at(now) + RTT, &ack(10, now, &[], Flags::default()));
    assert_eq!((sender.path.ca_state, sender.spurious), (CaState::Open, 0));
    assert!(sender.cwnd() < before);
    sender.handle(at(now) + RTT, &ack(10, now, &[(0, 1)], Flags::DSACK));
    assert_eq!((sender.path.ca_state, sender.spurious), (CaState::Open, 1));
    assert_eq!(sender.cwnd(), before);
}

/// Linux `tcp_packet_delayed`; without timestamps only D-SACKs show that a recovery was spurious.
#[test]
fn without_timestamps_a_late_original_undoes_nothing() {
    let mut sender = connected(Stack { header: 40, ..Stack::linux() });
    let now = recover_packet_0(&mut sender);
    sender.handle(at(now + 1), &ack(10, 100, &[], Flags::default()));
    assert_eq!((sender.path.ca_state, sender.spurious), (CaState::Open, 0));
    sender.handle(at(now + 1), &ack(10, 100, &[(0, 1)], Flags::DSACK));
    assert_eq!(sender.spurious, 1);
}

/// Linux `tcp_try_undo_partial`: packets 0 and 1 were retransmitted and arrive late.
#[test]
fn a_late_original_undoes_once_no_retransmission_is_in_flight() {
    let mut sender = sender_with_ten_packets_out();
    sender.handle(at(200), &ack(0, 100, &[(2, 6)], Flags::default()));
    let now = sender.next_timeout();
    while sender.poll(now).is_some() {}
    sender.handle(now, &ack(0, 100, &[(2, 9)], Flags::default()));
    while sender.poll(now).is_some() {}
    assert_eq!(sender.scoreboard.retrans_out(), 2);
    sender.handle(now, &ack(1, 100, &[(2, 9)], Flags::default()));
    assert_eq!((sender.path.ca_state, sender.spurious), (CaState::Recovery, 0));
    sender.handle(now, &ack(9, 100, &[], Flags::default()));
    assert_eq!((sender.path.ca_state, sender.spurious), (CaState::Open, 1));
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

/// `tcp_pacing_delay` is `nsecs_to_jiffies`, which rounds down; the delay of a timer is rounded up.
#[test]
fn a_timer_waits_for_the_whole_jiffies_until_the_next_departure() {
    let mut sender = connected(Stack::linux());
    sender.path.now = at(100);
    for (departure, expires) in [(0, 308), (3_999, 308), (4_000, 312), (6_500, 312), (8_000, 316)] {
        sender.path.departure = at(100) + Span::from_micros(departure);
        let found = sender.expiry_after_departure(Span::from_millis(202));
        assert_eq!(found, at(expires), "{departure} us");
    }
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
    let mut receiver = open_receiver();
    let mut answers = |number| {
        receiver.handle(at(1), &data(number, 0));
        receiver.poll(at(1)).map(|ack| ack.flags.contains(Flags::DSACK))
    };
    for number in 0..30 {
        answers(number); // They use up the quick acknowledgements.
    }
    for number in 31..36 {
        assert_eq!(answers(number), (number < 34).then_some(false), "{number}");
    }
    assert_eq!(answers(33), None);
    assert_eq!(answers(29), Some(true));
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

/// Linux `tcp_fastretrans_alert` returns with `REXMIT_NONE`: packets 0 to 5 are considered lost, not all of
/// them are retransmitted, and the original of packet 0 arrives late.
#[test]
fn no_packet_is_retransmitted_after_a_late_original() {
    let mut sender = sender_with_ten_packets_out();
    sender.handle(at(200), &ack(0, 100, &[(6, 8)], Flags::default()));
    let now = sender.next_timeout();
    while sender.poll(now).is_some() {}
    sender.handle(now, &ack(0, 100, &[(6, 10)], Flags::default()));
    while sender.poll(now).is_some() {}
    let (lost, retransmitted) = (sender.scoreboard.lost_out(), sender.scoreboard.retrans_out());
    assert!(lost > retransmitted && retransmitted > 1, "{lost}, {retransmitted}");
    sender.handle(now, &ack(1, 100, &[(6, 10)], Flags::default()));
    assert_eq!((sender.path.ca_state, sender.spurious), (CaState::Recovery, 0));
    while let Some(segment) = sender.poll(now) {
        assert!(!segment.flags.contains(Flags::RETRANSMISSION), "{}", segment.number);
    }
    sender.handle(now, &ack(1, 100, &[(6, 11)], Flags::default()));
    let segment = sender.poll(now).expect("a packet");
    assert!(segment.flags.contains(Flags::RETRANSMISSION), "it echoes no late original");
}

/// Linux `tcp_undo_cwnd_reduction` without a `prior_ssthresh`: congestion was echoed in the recovery.
#[test]
fn a_recovery_with_an_echo_of_congestion_keeps_its_reduction() {
    for ece in [false, true] {
        let mut sender = connected(Stack { ecn: Ecn::Classic, ..Stack::linux() });
        sender.rack.update_reordering(1);
        sender.rack.on_dsack();
        sender.rack.update_reo_wnd(1, 1);
        let before = sender.cwnd();
        let now = recover_packet_0(&mut sender);
        let flags = if ece { Flags::ECE } else { Flags::default() };
        sender.handle(at(now + 1), &ack(0, 100, &[(1, 6)], flags));
        sender.handle(at(now + 2), &ack(10, 100, &[], Flags::default()));
        assert_eq!((sender.path.ca_state, sender.spurious), (CaState::Open, 1));
        assert_eq!(sender.cwnd() < before, ece);
    }
}

/// Linux `tcp_event_data_recv`: the receiver's timeout is 300 ms, thrice the handshake's round-trip time.
#[test]
fn quick_acknowledgements_follow_a_gap_longer_than_the_timeout() {
    // 280 ms later, at once, 320 ms later, at once.
    let answers = acknowledged_at(Stack::linux(), 100, &[380, 380, 700, 700]);
    assert_eq!(answers, [false, true, true, true]);
}

/// Linux `tcp_init_transfer`: after more than one SYN was retransmitted the window is one packet, unless the
/// answer echoes the first SYN (`tcp_try_undo_spurious_syn`).
#[test]
fn losses_of_the_handshake_leave_a_window_of_one_packet() {
    for (syns, echoed, cwnd) in [(1, 0, 10), (2, 1, 10), (3, 2, 1), (3, 0, 10)] {
        let mut sender = Sender::new(SenderConfig::of(Stack::linux(), "reno"));
        let mut sent = Vec::new();
        for _ in 0..syns {
            let now = sender.next_timeout();
            sent.push(sender.poll(now).expect("a SYN").timestamp);
        }
        let flags = Flags::SYN.with(Flags::ACK);
        let timestamp = sent[echoed];
        let answer = Segment { flags, timestamp, window_and_tsval: 1000, ..Segment::default() };
        sender.handle(at(4_000), &answer);
        assert_eq!(sender.cwnd(), cwnd, "{syns} SYNs, the answer to number {echoed}");
    }
}

/// Linux `tcp_dsack_seen`: a spurious retransmission is delivered too, unless more duplicates are reported
/// than packets were retransmitted.
#[test]
fn a_d_sack_is_a_delivery_of_the_retransmission() {
    let mut sender = sender_with_ten_packets_out();
    let now = recover_packet_0(&mut sender);
    sender.handle(at(now) + RTT, &ack(10, now, &[], Flags::default()));
    for _ in 0..2 {
        sender.handle(at(now) + RTT, &ack(10, now, &[(0, 1)], Flags::DSACK));
        assert_eq!((sender.path.delivered, sender.stats().delivered), (11, 10));
        assert_eq!(sender.delivered_bytes(), 10 * u64::from(Stack::linux().mss));
    }
}

/// Linux `tcp_process_tlp_ack`: a probe repaired a loss in a reduction for ECN, which is reduced again.
#[test]
fn a_probe_that_repairs_a_loss_in_cwr_reduces_the_window_again() {
    let mut sender = connected(Stack { ecn: Ecn::Classic, ..Stack::linux() });
    sender.handle(at(200), &ack(1, 100, &[], Flags::ECE));
    sender.packets = sender.scoreboard.next_seq(); // There is nothing more to send.
    assert_eq!(sender.path.ca_state, CaState::Cwr);
    let ssthresh = sender.control.ssthresh;
    let now = sender.next_timeout();
    let probe = sender.poll(now).expect("a probe");
    assert!(probe.flags.contains(Flags::RETRANSMISSION));
    let end = probe.number + 1;
    sender.handle(now + RTT, &ack(end, 100, &[], Flags::default()));
    assert!(sender.tlp.is_some(), "the original or the probe");
    sender.packets += 1;
    while sender.poll(now + RTT).is_some() {}
    sender.handle(now + RTT * 2, &ack(end + 1, 100, &[], Flags::default()));
    assert!(sender.control.ssthresh < ssthresh, "{ssthresh}");
}

/// Linux `tcp_ecn_send`, where the algorithm needs ECN.
#[test]
fn retransmissions_are_ecn_capable_with_dctcp_only() {
    for (ecn, ect) in [(Ecn::Classic, Flags::default()), (Ecn::Accurate, Flags::ECT_0)] {
        let mut sender = connected(Stack { ecn, ..Stack::linux() });
        sender.handle(at(200), &ack(0, 100, &[(1, 5)], Flags::default()));
        let end = sender.next_timeout();
        let segment = sender.poll(end).expect("a packet");
        assert_eq!(
            (segment.number, segment.flags.with(Flags::PSH)),
            (0, Flags::RETRANSMISSION.with(ect).with(Flags::PSH))
        );
    }
}

/// A receiver whose stack's minimum timeout is short finds shorter gaps.
#[test]
fn the_gap_before_quick_acknowledgements_follows_the_minimum_timeout() {
    let stack = Stack { min_rto_ns: 5_000_000, ..Stack::linux() };
    // The last one 18 ms later.
    assert_eq!(acknowledged_at(stack, 1, &[2, 2, 20]), [false, true, true]);
}

/// Linux `tcp_enter_recovery`: `prior_ssthresh` stays 0 in a recovery that begins in CWR.
#[test]
fn an_undone_recovery_keeps_the_reduction_for_ecn_before_it() {
    let mut sender = connected(Stack { ecn: Ecn::Classic, ..Stack::linux() });
    sender.handle(at(200), &ack(1, 100, &[], Flags::ECE));
    assert_eq!(sender.path.ca_state, CaState::Cwr);
    let ssthresh = sender.control.ssthresh;
    sender.handle(at(200), &ack(1, 100, &[(2, 6)], Flags::default()));
    let now = sender.next_timeout();
    while sender.poll(now).is_some() {}
    assert_eq!(sender.path.ca_state, CaState::Recovery);
    sender.handle(now, &ack(sender.high_seq, 100, &[], Flags::default()));
    assert_eq!((sender.path.ca_state, sender.spurious), (CaState::Open, 1));
    assert!(!sender.undo.restores() && sender.control.ssthresh <= ssthresh);
}

/// Linux `tcp_undo_cwnd_reduction`: `tcp_ecn_withdraw_cwr`.
#[test]
fn an_undone_recovery_does_not_report_its_reduction() {
    let mut sender = connected(Stack { ecn: Ecn::Classic, ..Stack::linux() });
    let now = recover_packet_0(&mut sender);
    assert!(sender.cwr_pending);
    sender.handle(at(now + 1), &ack(10, 100, &[], Flags::default()));
    assert!(sender.spurious == 1 && !sender.cwr_pending);
}

/// RFC 9768, section 3.2.2.5.2: an acknowledgement that delivers packets is new.
#[test]
fn marks_of_more_than_half_the_counter_count_if_packets_are_delivered() {
    let mut sender = connected(Stack { ecn: Ecn::L4s, ..Stack::linux() });
    sender.handle(at(200), &Segment { marked: 200, ..ack(3, 100, &[], Flags::default()) });
    assert_eq!(sender.path.marked, 200);
    sender.handle(at(200), &Segment { marked: 199, ..ack(3, 100, &[], Flags::default()) });
    assert_eq!(sender.path.marked, 200, "an older one");
}

/// Linux `tcp_ecn_send_syn` and `tcp_ca_needs_ecn`; RFC 9331, section 4.1; RFC 3168, section 6.1.1.
#[test]
fn a_syn_is_ecn_capable_with_dctcp_and_l4s_only() {
    for (ecn, ect) in [
        (Ecn::Off, Flags::default()),
        (Ecn::Classic, Flags::default()),
        (Ecn::Accurate, Flags::ECT_0),
        (Ecn::L4s, Flags::ECT_1),
    ] {
        let mut sender = Sender::new(SenderConfig::of(Stack { ecn, ..Stack::linux() }, "reno"));
        let syn = sender.poll(Time::ZERO).expect("a SYN");
        assert_eq!(syn.flags, Flags::SYN.with(ect), "{ecn:?}");
    }
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
    assert_eq!(answers_to(Ecn::Off, &packets.map(|(number, _)| (number, Flags::default()))), [
        false, true, false
    ]);
}
