//! How recoveries end, and what that does to RACK's reordering window; the counter of Accurate ECN.

use super::*;
use crate::Ecn;
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

/// tcp_rcv_synsent_state_process updates the rate before tcp_init_transfer sets the window.
#[test]
fn the_first_pacing_rate_is_that_of_ten_packets() {
    let stack = Stack { initial_window: 40, pacing: true, ..Stack::linux() };
    let mut sender = Sender::new(SenderConfig::of(stack, "cubic"));
    sender.poll(Time::ZERO).expect("a SYN");
    let flags = Flags::SYN.with(Flags::ACK);
    sender.handle(at(100), &Segment { flags, window_and_tsval: 1000, ..Segment::default() });
    let of_ten_packets = Rate::from_bytes_in(2.0 * 10.0 * 1448.0, RTT);
    assert_eq!((sender.cwnd(), sender.path.pacing_rate), (40, Some(of_ten_packets)));
}

/// tcp_cwnd_restart changes the window, tcp_update_pacing_rate the rate at the next acknowledgement.
#[test]
fn a_restart_after_idleness_keeps_the_pacing_rate() {
    let mut sender = connected(Stack { pacing: true, ..Stack::linux() });
    sender.handle(at(200), &ack(10, 100, &[], Flags::default()));
    let before = (sender.cwnd(), sender.path.pacing_rate);
    sender.path.now = at(5_000);
    assert_eq!((sender.restart_after_idle(), sender.path.pacing_rate), (10, before.1));
    assert_eq!(before.0, 20);
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
    let now = now + Span::from_nanos(1); // after new packets
    while sender.poll(now).is_some() {}
    let (lost, retransmitted) = (sender.scoreboard.lost_out(), sender.scoreboard.retrans_out());
    assert!(lost > retransmitted && retransmitted > 1, "{lost}, {retransmitted}");
    sender.handle(now, &ack(1, 100, &[(6, 10)], Flags::default()));
    assert_eq!((sender.path.ca_state, sender.spurious), (CaState::Recovery, 0));
    while let Some(segment) = sender.poll(now) {
        assert!(!segment.flags.contains(Flags::RETRANSMISSION), "{}", segment.number);
    }
    sender.handle(now, &ack(1, 100, &[(6, 11)], Flags::default()));
    assert!(sender.poll(now).is_none(), "new packets left at this time");
    let segment = sender.poll(sender.next_timeout()).expect("a packet");
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

/// Linux `tcp_check_dsack`: a duplicate above the acknowledgement is inside the second block.
#[test]
fn a_first_block_above_the_others_reports_no_duplicate() {
    for (blocks, reports) in [(&[(3, 4), (2, 5)][..], true), (&[(3, 4)], false)] {
        let mut sender = sender_with_ten_packets_out();
        recover_packet_0(&mut sender);
        let now = sender.path.now;
        sender.handle(now, &ack(0, 100, blocks, Flags::DSACK));
        assert_eq!(sender.dsacks == 1, reports);
    }
}

/// Linux `old_ack` of `tcp_ack`.
#[test]
fn of_an_overtaken_acknowledgement_only_the_blocks_count() {
    let mut sender = connected(Stack::linux());
    sender.handle(at(200), &ack(4, 100, &[], Flags::default()));
    while sender.poll(at(200)).is_some() {}
    let before = (sender.path.srtt, sender.ts_recent, sender.control.cwnd);
    let mut late = ack(2, 100, &[(6, 8)], Flags::default());
    late.window_and_tsval = 7 << 24 | 1_000_000;
    sender.handle(at(230), &late);
    let after = (sender.path.srtt, sender.ts_recent, sender.control.cwnd);
    assert_eq!((before, sender.scoreboard.sacked_out()), (after, 2));
    assert_eq!((sender.path.ca_state, sender.path.delivered), (CaState::Disorder, 6));
}

/// A sender that has retransmitted packets 0 and 1 at this time. Packets 2 to `end` arrived before, and packet 1
/// a round-trip time later.
fn with_packet_1_retransmitted(end: u32) -> (Sender, Time) {
    let mut sender = connected(Stack::linux());
    sender.handle(at(200), &ack(0, 100, &[(2, end)], Flags::default()));
    let now = sender.next_timeout().max(at(200));
    while sender.poll(now).is_some() {}
    sender.handle(now + RTT, &ack(0, 100, &[(1, end)], Flags::default()));
    (sender, now)
}

/// Linux `tcp_sacktag_one`: its original and its retransmission arrived after packet 9.
#[test]
fn a_duplicate_of_a_packet_that_waits_shows_reordering() {
    let (mut sender, now) = with_packet_1_retransmitted(10);
    assert!(!sender.rack.is_reordering_high());
    sender.handle(now + RTT, &ack(0, 100, &[(1, 2), (1, 10)], Flags::DSACK));
    assert!(sender.rack.is_reordering_high(), "packet 1 was overtaken by eight");
}

/// Linux `tcp_clean_rtx_queue`: `TCPCB_RETRANS` of a packet that was acknowledged selectively.
#[test]
fn a_retransmission_acknowledged_selectively_gives_no_sample_later() {
    let (mut sender, now) = with_packet_1_retransmitted(9);
    let (srtt, later) = (sender.path.srtt, now + RTT * 2);
    // Of packets 0 and 1, retransmitted, and 9, which was not: Karn's algorithm, then the timestamp.
    sender.handle(later, &ack(10, 150, &[], Flags::default()));
    assert_eq!(sender.rtt.latest(), rtt_from_tsecr(later, timestamp(at(150))));
    assert_ne!(sender.path.srtt, srtt);
}

/// Linux `tcp_enter_loss` keeps `retrans_stamp` of the timeout before.
#[test]
fn a_second_timeout_keeps_the_time_of_the_first_retransmission() {
    let mut sender = connected(Stack { tail_loss_probe: false, ..Stack::linux() });
    let first = sender.next_timeout();
    while sender.poll(first).is_some() {}
    let echo = first.as_nanos() / 1_000_000;
    // Packet 0 is acknowledged by its retransmission, then nothing for the next timeout.
    sender.handle(first + RTT, &ack(1, echo, &[], Flags::default()));
    while sender.poll(first + RTT).is_some() {}
    assert_eq!((sender.path.ca_state, sender.timeouts), (CaState::Loss, 1));
    let second = sender.next_timeout();
    while sender.poll(second).is_some() {}
    assert_eq!(sender.timeouts, 2);
    // An echo between the two timeouts: of the first one's retransmissions, so nothing is undone.
    sender.handle(second + RTT, &ack(3, echo + 50, &[], Flags::default()));
    assert_eq!(sender.spurious, 0);
}

/// Linux `tcp_rack_mark_lost`: the acknowledgement is of an original that arrives after its
/// retransmission (`tcp_skb_spurious_retrans`), so that `rack.advanced` is 0.
#[test]
fn losses_are_looked_for_once_a_packet_was_delivered() {
    let mut sender = connected(Stack::linux());
    assert!(!sender.rack.take_advanced());
    sender.handle(at(200), &ack(1, 100, &[(3, 5)], Flags::default()));
    assert!(!sender.rack.take_advanced(), "the acknowledgement took it");
    assert_eq!(sender.timer.kind, super::timer::TimerKind::Reorder);
    sender.handle(at(201), &ack(1, 100, &[(3, 5)], Flags::default()));
    assert!(sender.scoreboard.lost_out() == 0);
    sender.rack.reset_loss_cursor(&sender.scoreboard);
    assert!(sender.rack.take_advanced(), "a reduction was undone");
}

/// Of packets sent at the same time RACK takes the higher number for the later one, and would take
/// the retransmission for lost when the packet sent before it is delivered.
#[test]
fn a_retransmission_is_later_than_what_was_sent_before_it() {
    let mut sender = connected(Stack::linux());
    sender.handle(at(200), &ack(2, 100, &[], Flags::default()));
    assert_eq!(sender.poll(at(200)).map(|sent| sent.number), Some(10));
    while sender.poll(at(200)).is_some() {}
    // The next acknowledgement comes at once, and shows losses.
    sender.handle(at(200), &ack(2, 100, &[(3, 10)], Flags::default()));
    assert!(sender.poll(at(200)).is_none());
    let next = sender.next_timeout();
    assert_eq!(next, at(200) + Span::from_nanos(1));
    assert_eq!(sender.poll(next).map(|sent| sent.number), Some(2));
    sender.handle(at(300), &ack(2, 200, &[(3, 11)], Flags::default()));
    assert!(sender.scoreboard.packet(2).has(crate::sent_packet::PacketFlags::RETRANS_OUT));
}
