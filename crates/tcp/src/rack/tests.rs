use super::*;
use dumbbell_cc::{PacketInfo, SendState};
use proptest::prelude::*;

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

fn sent(ms: u64) -> PacketInfo {
    PacketInfo {
        send_state: SendState { sent_at: at(ms), ..SendState::default() },
        first_sent_at: at(0),
        delivered_at: at(0),
    }
}

const MIN_RTT: Span = Span::from_millis(100);

/// A path with an RTT of 100 ms.
fn path(ms: u64) -> Path {
    let mut path = Path::new(1448, at(ms));
    (path.min_rtt, path.srtt) = (Some(MIN_RTT), Some(MIN_RTT));
    path
}

/// Packets sent 1 ms apart from time 0 on.
fn scoreboard(packets: u64) -> Scoreboard {
    let mut scoreboard = Scoreboard::new();
    for number in 0..packets {
        scoreboard.push(&sent(number));
    }
    scoreboard
}

fn sack(rack: &mut Rack, scoreboard: &mut Scoreboard, path: &Path, number: u32) {
    scoreboard.sack(number, number + 1, |number, packet| rack.advance(path, number, packet));
}

/// Step 5: a packet is lost once RACK.rtt + reo_wnd have passed since it was sent.
#[test]
fn a_packet_is_lost_after_the_rtt_and_a_quarter_of_the_minimum() {
    let (mut rack, mut scoreboard, mut lost) = (Rack::new(), scoreboard(3), Vec::new());
    let mut path = path(101);
    sack(&mut rack, &mut scoreboard, &path, 1);
    // Packet 0 was sent at 0 ms, packet 1 took 100 ms, and the window is 25 ms. Packet 2 was sent
    // later than the delivered one and is not considered.
    let wait = rack.detect_loss(&mut scoreboard, &path, &mut lost);
    assert_eq!((wait, lost.as_slice()), (Some(Span::from_millis(24)), &[][..]));
    path.now = at(125);
    let wait = rack.detect_loss(&mut scoreboard, &path, &mut lost);
    assert_eq!((wait, lost.as_slice()), (None, &[0][..]));
}

/// RFC 8985, section 3.4: P1, P2 and P3 are lost, P3 is repeated as a probe. Its SACK marks P1 and
/// P2 lost.
#[test]
fn the_sack_of_a_probe_marks_the_packets_before_it_lost() {
    let (mut rack, mut scoreboard, mut lost) = (Rack::new(), scoreboard(4), Vec::new());
    scoreboard.acknowledge(1, |number, packet, _| rack.advance(&path(100), number, packet));
    scoreboard.probe(3, &sent(300));
    sack(&mut rack, &mut scoreboard, &path(400), 3);
    let wait = rack.detect_loss(&mut scoreboard, &path(400), &mut lost);
    assert_eq!((wait, lost.as_slice()), (None, &[1, 2][..]));
}

/// `tcp_rack_detect_loss`: "Record maximum wait time". Packets 0 and 1 are lost and retransmitted, 3
/// and 5 delivered.
#[test]
fn the_timer_waits_for_the_last_packet_that_may_be_lost() {
    let (mut rack, mut scoreboard, mut lost) = (Rack::new(), scoreboard(8), Vec::new());
    for number in [3, 5] {
        sack(&mut rack, &mut scoreboard, &path(105), number);
    }
    let mut wait = |rack: &mut Rack, scoreboard: &mut Scoreboard, ms| {
        rack.detect_loss(scoreboard, &path(ms), &mut lost)
    };
    let last = wait(&mut rack, &mut scoreboard, 105);
    assert_eq!(last, Some(Span::from_millis(4 + 125 - 105)), "packet 4, not 0 nor 6");
    for (number, ms) in [(0, 200), (1, 201)] {
        scoreboard.mark_lost(number);
        scoreboard.retransmit(number, &sent(ms));
        rack.on_retransmit(at(ms), number);
    }
    scoreboard.push(&sent(205));
    rack.update_reordering(1);
    sack(&mut rack, &mut scoreboard, &path(305), 8);
    let last = wait(&mut rack, &mut scoreboard, 305);
    assert_eq!(last, Some(Span::from_millis(201 + 125 - 305)));
    assert_eq!(lost, [2, 4, 6, 7]);
}

/// In Linux `tcp_rack_detect_loss` takes a lost packet from `tsorted_sent_queue`, and only a
/// retransmission puts it back.
#[test]
fn a_packet_whose_loss_was_undone_is_not_found_lost_again() {
    let (mut rack, mut scoreboard, mut lost) = (Rack::new(), scoreboard(8), Vec::new());
    for number in [3, 4, 5] {
        sack(&mut rack, &mut scoreboard, &path(105), number);
    }
    rack.detect_loss(&mut scoreboard, &path(105), &mut lost);
    assert_eq!(lost, [0, 1, 2]);
    scoreboard.unmark_lost();
    rack.reset_loss_cursor(&scoreboard);
    scoreboard.retransmit(1, &sent(120));
    rack.on_retransmit(at(120), 1);
    for (number, ms) in [(6, 106), (7, 107)] {
        sack(&mut rack, &mut scoreboard, &path(ms), number);
    }
    scoreboard.push(&sent(200));
    sack(&mut rack, &mut scoreboard, &path(300), 8);
    lost.clear();
    rack.detect_loss(&mut scoreboard, &path(300), &mut lost);
    assert_eq!(lost, [1], "0 and 2 wait for the retransmission timer");
}

/// Step 4: without reordering seen, three SACKed packets or a recovery close the window.
#[test]
fn the_window_is_zero_with_three_sacked_packets_and_no_reordering() {
    let (mut rack, mut scoreboard) = (Rack::new(), scoreboard(10));
    let open = path(110);
    let mut recovery = path(110);
    recovery.ca_state = CaState::Recovery;
    for number in [1, 2] {
        sack(&mut rack, &mut scoreboard, &open, number);
        assert_eq!(rack.reo_wnd(&scoreboard, &open), MIN_RTT / 4);
    }
    assert_eq!(rack.reo_wnd(&scoreboard, &recovery), Span::ZERO);
    sack(&mut rack, &mut scoreboard, &open, 3);
    assert_eq!(rack.reo_wnd(&scoreboard, &open), Span::ZERO);
    rack.update_reordering(1);
    assert_eq!(rack.reo_wnd(&scoreboard, &open), MIN_RTT / 4);
    assert_eq!(rack.reo_wnd(&scoreboard, &recovery), MIN_RTT / 4);
}

/// Step 4: each round trip with a D-SACK adds a quarter of the minimum RTT, up to SRTT.
#[test]
fn a_d_sack_widens_the_window_once_per_round_trip() {
    let (mut rack, scoreboard, path) = (Rack::new(), scoreboard(1), path(0));
    rack.on_dsack();
    assert!(!rack.dsack_seen(), "no reordering was seen");
    rack.update_reordering(1);
    rack.on_dsack();
    rack.update_reo_wnd(0, 10);
    assert_eq!(rack.reo_wnd(&scoreboard, &path), MIN_RTT / 4, "the first flight");
    for round in 2..8 {
        // The packet acknowledged first was sent when the window was widened, the others before.
        let widened_at = 10 * round;
        for (prior_delivered, delivered) in [(0, 0), (9, 4), (1, 9)] {
            rack.on_dsack();
            rack.update_reo_wnd(widened_at - prior_delivered, widened_at + delivered);
        }
        rack.last_delivered = widened_at + 10;
        assert_eq!(rack.reo_wnd(&scoreboard, &path), (MIN_RTT / 4 * round).min(MIN_RTT));
        assert!(!rack.dsack_seen());
    }
}

/// Step 4: 16 recoveries without a D-SACK reset the window.
#[test]
fn sixteen_recoveries_without_d_sack_reset_the_window() {
    let (mut rack, scoreboard, path) = (Rack::new(), scoreboard(1), path(0));
    rack.update_reordering(1);
    rack.on_dsack();
    rack.update_reo_wnd(1, 1);
    for _ in 0..15 {
        rack.on_recovery_end();
    }
    assert_eq!(rack.reo_wnd(&scoreboard, &path), MIN_RTT / 2);
    rack.on_dsack();
    rack.update_reo_wnd(1, 2);
    for _ in 0..15 {
        rack.on_recovery_end();
    }
    assert_eq!(rack.reo_wnd(&scoreboard, &path), MIN_RTT / 4 * 3, "a D-SACK restarts the count");
    rack.on_recovery_end();
    assert_eq!(rack.reo_wnd(&scoreboard, &path), MIN_RTT / 4);
}

/// Step 2: an acknowledgement within less than the minimum RTT of a retransmission is for the
/// original.
#[test]
fn an_ack_sooner_than_the_minimum_rtt_is_not_for_the_retransmission() {
    let (mut rack, mut scoreboard, mut lost) = (Rack::new(), scoreboard(3), Vec::new());
    scoreboard.mark_lost(2);
    scoreboard.retransmit(2, &sent(200));
    sack(&mut rack, &mut scoreboard, &path(299), 2);
    rack.detect_loss(&mut scoreboard, &path(299), &mut lost);
    assert_eq!(lost, [], "the original of packet 2 may have been delivered");
}

/// Section 6.3: after a timeout, packets sent within the last RACK.rtt may still arrive.
#[test]
fn a_timeout_marks_the_first_packet_and_the_old_ones_lost() {
    let rto = |loss_detection| {
        let (mut rack, mut scoreboard, mut lost) = (Rack::new(), scoreboard(300), Vec::new());
        sack(&mut rack, &mut scoreboard, &path(101), 1);
        rack.mark_losses_on_rto(loss_detection, &mut scoreboard, &path(300), &mut lost);
        lost
    };
    let old = (0..=200).filter(|&number| number != 1);
    assert_eq!(rto(LossDetection::Rack), old.collect::<Vec<_>>());
    assert_eq!(rto(LossDetection::DupThresh).len(), 299, "all that are not SACKed");
}

#[test]
fn a_retransmission_lost_before_an_undo_is_found_lost_after_it() {
    let (mut rack, mut scoreboard) = (Rack::new(), Scoreboard::new());
    let mut path = Path::new(1448, at(0));
    for number in 0..4 {
        scoreboard.push(&sent(number));
    }
    scoreboard.mark_lost(0);
    scoreboard.retransmit(0, &sent(100));
    rack.on_retransmit(at(100), 0);
    // A timeout marks the retransmission lost; that is undone.
    scoreboard.mark_lost(0);
    let mut lost = Vec::new();
    rack.detect_loss(&mut scoreboard, &path, &mut lost);
    scoreboard.unmark_lost();
    rack.reset_loss_cursor(&scoreboard);
    assert_eq!(lost, []);
    // A packet sent after the retransmission is delivered long after.
    scoreboard.push(&sent(300));
    path.now = at(400);
    scoreboard.sack(4, 5, |number, packet| rack.advance(&path, number, packet));
    rack.detect_loss(&mut scoreboard, &path, &mut lost);
    assert_eq!(lost, [0, 1, 2, 3]);
}

proptest! {
    /// The search for the last packet that waits, against a look at each packet.
    #[test]
    fn the_last_packet_that_waits_is_found(
        steps in prop::collection::vec((0u8..9, 0u32..60, 0u64..2), 1..120),
        (first, segment) in (0u32..60, 0u32..60),
    ) {
        let (mut scoreboard, mut ms) = (scoreboard(3), 3);
        for (step, number, passed) in steps {
            ms += passed;
            let number = number % scoreboard.next_seq();
            match step {
                0..5 => _ = scoreboard.push(&sent(ms)),
                5 => scoreboard.sack(number, number + 1, |_, _| {}),
                6 => scoreboard.probe(number, &sent(ms)),
                7 => _ = scoreboard.mark_lost(number).then(|| scoreboard.retransmit(number, &sent(ms))),
                _ => scoreboard.unmark_lost(),
            }
        }
        let (first, segment) = (first % scoreboard.next_seq(), segment % scoreboard.next_seq());
        let segment = (scoreboard.packet(segment).sent_at(), segment);
        let waits = |&number: &u32| {
            let packet = scoreboard.packet(number);
            !packet.has(SETTLED.union(PacketFlags::SACKED)) && (packet.sent_at(), number) < segment
        };
        let last = (first..scoreboard.next_seq()).rev().find(waits);
        let expected = last.map(|number| scoreboard.packet(number).sent_at());
        prop_assert_eq!(last_sent_before(&scoreboard, first, segment), expected);
    }
}
