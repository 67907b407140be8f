//! The transport over a path whose packets the tests control: windows, recovery, undo, ECN, pacing.

use crate::connection::{Fate, Flow, TestConnection, losing, lossless, millis};
use dumbbell_cc::CaState;
use dumbbell_tcp::{Ecn, Flags, LossDetection, Segment, Stack};
use dumbbell_units::{Rate, Span, Time};

const MSS: u64 = 1448;

/// Delays the first transmission of the given packets.
fn delaying(numbers: std::ops::Range<u32>, by: Span) -> impl FnMut(usize, &Segment) -> Fate {
    move |_, segment| {
        let is_retransmission = segment.flags.contains(Flags::RETRANSMISSION);
        if !is_retransmission && numbers.contains(&segment.number) {
            Fate::Late(by)
        } else {
            Fate::Arrives
        }
    }
}

#[test]
fn the_handshake_costs_one_round_trip() {
    let mut connection = TestConnection::new(Flow::default());
    connection.run(millis(150), lossless);
    let (first, _) = connection.sent[0];
    assert_eq!(first, Time::from_nanos(100_006_000), "100 ms and 60 bytes at 80 Mbit/s");
    assert_eq!(connection.acks[0].1.size, 60, "a SYN-ACK has the options of a SYN");
}

#[test]
fn slow_start_begins_with_ten_packets_and_doubles_every_round_trip() {
    let mut connection = TestConnection::new(Flow::default());
    for (round, packets) in [(0u64, 10), (1, 30), (2, 70), (3, 150)] {
        connection.run(millis(195 + 100 * round), lossless);
        assert_eq!(connection.sent.len(), packets, "after round {round}");
    }
}

#[test]
fn a_finite_flow_ends_with_a_short_packet_and_delivers_all_its_bytes() {
    let bytes = 20 * MSS + 1;
    let mut connection = TestConnection::new(Flow { bytes: Some(bytes), ..Flow::default() });
    connection.run(millis(2_000), losing(&[3, 20]));
    let (_, last) =
        connection.sent.iter().find(|(_, s)| s.number == 20).expect("packet 20 was sent");
    assert_eq!(last.size, 53, "one byte and 52 of headers");
    assert_eq!(connection.receiver.stats().bytes, bytes);
    assert_eq!(connection.sender.delivered_bytes(), bytes);
    assert!(connection.stats().completed.is_some());
}

#[test]
fn one_loss_is_retransmitted_once_and_halves_the_window() {
    let mut connection = TestConnection::new(Flow::default());
    let mut fate = losing(&[100]);
    let window = connection.window_before(CaState::Recovery, &mut fate);
    assert!(window > 100.0, "{window}");
    assert_eq!(connection.stats().ssthresh, (window / 2.0).floor(), "half of {window}");
    connection.run(millis(900), &mut fate);
    assert_eq!(connection.retransmissions(), [100]);
    let stats = connection.stats();
    assert_eq!((stats.recoveries, stats.timeouts, stats.spurious), (1, 0, 0));
    assert_eq!(stats.ca_state, CaState::Open);
}

#[test]
fn every_third_packet_of_a_window_is_recovered_without_a_timeout() {
    let mut connection = TestConnection::new(Flow::default());
    connection.run(millis(3_000), |_, segment| {
        let is_retransmission = segment.flags.contains(Flags::RETRANSMISSION);
        let hole = (150..300).contains(&segment.number) && segment.number % 3 == 0;
        if hole && !is_retransmission { Fate::Lost } else { Fate::Arrives }
    });
    let expected: Vec<u32> = (150..300).step_by(3).collect();
    assert_eq!(
        connection.retransmissions(),
        expected,
        "each hole once, in order, and nothing else"
    );
    assert_eq!(connection.stats().timeouts, 0);
    assert_eq!(connection.stats().recoveries, 1);
}

#[test]
fn rack_detects_a_lost_retransmission() {
    let mut lost = 0;
    let mut connection = TestConnection::new(Flow::default());
    connection.run(millis(2_000), |_, segment| {
        if segment.number == 100 && lost < 2 {
            lost += 1;
            return Fate::Lost;
        }
        Fate::Arrives
    });
    assert_eq!(connection.retransmissions(), [100, 100]);
    assert_eq!(connection.stats().timeouts, 0);
}

#[test]
fn a_loss_of_a_packet_sent_in_recovery_reduces_the_window_again() {
    let ssthresh = |also: &'static [u32]| {
        let (mut holes, mut losing) = (0, losing(also));
        let mut connection = TestConnection::new(Flow::default());
        // Packet 100 is lost twice, so that the recovery lasts longer than the round trip of 252.
        connection.run(millis(1_100), |count, segment| {
            if segment.number == 100 && holes < 2 {
                holes += 1;
                return Fate::Lost;
            }
            losing(count, segment)
        });
        let stats = connection.stats();
        assert_eq!((stats.timeouts, stats.spurious), (0, 0));
        (stats.recoveries, stats.ssthresh)
    };
    let (once, twice) = (ssthresh(&[]), ssthresh(&[252]));
    assert_eq!((once.0, twice.0), (1, 2));
    assert!((twice.1 - once.1 / 2.0).abs() <= 1.0, "{} after {}", twice.1, once.1);
}

#[test]
fn dupthresh_detects_a_loss_when_three_packets_above_are_sacked() {
    let stack = Stack { loss_detection: LossDetection::DupThresh, ..Stack::linux() };
    let mut connection = TestConnection::new(Flow { stack, ..Flow::default() });
    connection.run(millis(900), losing(&[100]));
    assert_eq!(connection.retransmissions(), [100]);
    let first = connection.acks.iter().position(|(_, ack)| ack.blocks().next().is_some());
    let (third, ack) = connection.acks[first.expect("there was SACK") + 2];
    assert_eq!(ack.blocks().next(), Some((101, 104)));
    let resent =
        connection.sent.iter().find(|(_, segment)| segment.flags.contains(Flags::RETRANSMISSION));
    assert_eq!(resent.map(|&(at, _)| at), Some(third));
}

#[test]
fn a_probe_repairs_the_loss_of_the_last_packet_after_two_round_trips() {
    let flow = Flow { bytes: Some(10 * MSS), ..Flow::default() };
    let mut connection = TestConnection::new(flow);
    connection.run(millis(2_000), losing(&[9]));
    assert_eq!(connection.retransmissions(), [9]);
    assert_eq!(connection.stats().timeouts, 0);
    assert!(connection.stats().completed.expect("it is complete") < millis(650));
}

/// A flow of one packet per second: every packet is followed by a pause.
fn one_packet_per_second() -> TestConnection {
    let rate = Rate::from_bytes_per_sec(MSS as f64);
    TestConnection::new(Flow { app_rates: vec![(Span::ZERO, rate)], ..Flow::default() })
}

#[test]
fn a_probe_that_repaired_a_loss_reduces_the_window() {
    let mut connection = one_packet_per_second();
    connection.run(millis(5_900), losing(&[4]));
    assert_eq!(connection.retransmissions(), [4]);
    assert!(connection.stats().ssthresh.is_infinite(), "the original may still arrive");
    connection.run(millis(7_000), lossless);
    assert_eq!(connection.stats().ssthresh, 5.0);
    assert_eq!(connection.stats().timeouts, 0);
}

/// `tcp_process_tlp_ack`; here packets are reordered.
#[test]
fn a_probe_that_repaired_a_loss_reduces_the_window_in_disorder_too() {
    let rate = |packets: u64| Rate::from_bytes_per_sec((packets * MSS) as f64);
    let app_rates = vec![(Span::ZERO, rate(1)), (Span::from_millis(5_700), rate(80))];
    let mut connection = TestConnection::new(Flow { app_rates, ..Flow::default() });
    let (mut lossy, mut states) = (losing(&[4]), Vec::new());
    for at in (4_000..6_200).step_by(5) {
        connection.run(millis(at), |count, segment| match segment.number {
            5 | 7 => Fate::Late(Span::from_millis(20)),
            _ => lossy(count, segment),
        });
        let stats = connection.stats();
        states.push((stats.ca_state, stats.recoveries));
    }
    assert_eq!(connection.retransmissions(), [4]);
    assert!(states.contains(&(CaState::Disorder, 0)), "{states:?}");
    assert_eq!(connection.stats().recoveries, 1);
}

#[test]
fn an_unnecessary_probe_reduces_nothing() {
    let mut connection = one_packet_per_second();
    connection.run(millis(9_000), delaying(4..5, Span::from_millis(550)));
    assert_eq!(connection.retransmissions(), [4]);
    assert!(connection.stats().ssthresh.is_infinite());
    assert!(connection.acks.iter().any(|(_, ack)| ack.flags.contains(Flags::DSACK)));
}

/// Loses every transmission with a probability, reproducibly.
fn losing_at_random(share: f64) -> impl FnMut(usize, &Segment) -> Fate {
    let mut state = 1_u64;
    move |_, _| {
        // Knuth's linear congruential generator, MMIX.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let uniform = (state >> 11) as f64 / (1_u64 << 53) as f64;
        if uniform < share { Fate::Lost } else { Fate::Arrives }
    }
}

#[test]
fn losses_without_reordering_cause_no_undo() {
    for (delay, share) in [(5, 0.05), (50, 0.02), (50, 0.1), (150, 0.01), (150, 0.05)] {
        for cc in ["reno", "cubic", "bbr"] {
            let delay = Span::from_millis(delay);
            let mut connection = TestConnection::new(Flow { cc, delay, ..Flow::default() });
            connection.run(millis(60_000), losing_at_random(share));
            let stats = connection.stats();
            assert_eq!(stats.spurious, 0, "{cc}, {delay} one way, {share}: {stats:?}");
        }
    }
}

#[test]
fn a_window_grows_with_high_reordering_as_without() {
    let window = |late: usize| {
        let mut connection =
            TestConnection::new(Flow { cc: "reno(initial_ssthresh=100)", ..Flow::default() });
        connection.run(millis(20_000), |order, _| {
            if order % 20 < late { Fate::Late(Span::from_millis(10)) } else { Fate::Arrives }
        });
        connection.stats().cwnd
    };
    let (even, uneven) = (window(0), window(1));
    assert!((uneven / even - 1.0).abs() < 0.1, "{uneven}, {even}");
}

#[test]
fn reordering_by_less_than_a_quarter_rtt_is_no_loss_once_seen() {
    // No queue: with one, packets would be delayed by more than 20 ms.
    let stack = Stack { receive_window: 400, ..Stack::linux() };
    let mut connection = TestConnection::new(Flow { stack, ..Flow::default() });
    connection.run(millis(3_000), |order, _| {
        if order % 50 == 49 { Fate::Late(Span::from_millis(20)) } else { Fate::Arrives }
    });
    let stats = connection.stats();
    // The first reordering may cause a recovery. It is undone, and RACK has seen reordering.
    assert_eq!(stats.recoveries, stats.spurious, "{stats:?}");
    assert!(stats.recoveries <= 1, "{stats:?}");
}

/// RFC 8985, 6.2, step 4: RACK's window adapts to reordering by a few packets too.
#[test]
fn a_d_sack_widens_racks_window_after_reordering_by_three_packets() {
    // A packet every 12 ms. Every 50th is 40 ms late, more than a quarter of the RTT.
    let rate = Rate::from_bytes_per_sec(MSS as f64 / 0.012);
    let mut connection =
        TestConnection::new(Flow { app_rates: vec![(Span::ZERO, rate)], ..Flow::default() });
    connection.run(millis(20_000), |_, segment| {
        let is_retransmission = segment.flags.contains(Flags::RETRANSMISSION);
        let is_late = segment.number % 50 == 49 && !is_retransmission;
        if is_late { Fate::Late(Span::from_millis(40)) } else { Fate::Arrives }
    });
    let stats = connection.stats();
    assert_eq!(stats.timeouts, 0, "{stats:?}");
    assert!(
        (1..=2).contains(&stats.recoveries),
        "one at first, one before the window fits: {stats:?}"
    );
}

#[test]
fn an_application_that_writes_slowly_keeps_the_window_from_growing() {
    let rate = Rate::from_bits_per_sec(2e6);
    let mut connection =
        TestConnection::new(Flow { app_rates: vec![(Span::ZERO, rate)], ..Flow::default() });
    connection.run(millis(10_000), lossless);
    let expected = 2e6 / 8.0 * 9.85;
    let received = connection.receiver.stats().bytes as f64;
    assert!((received - expected).abs() < 0.01 * expected, "{received}");
    let cwnd = connection.stats().cwnd;
    // 24 packets are written in a round trip and a delayed acknowledgement.
    assert!(cwnd <= 2.0 * 24.0, "{cwnd}");
}

/// The application writes at up to 32 Mbit/s for 4 s, so that some 280 packets of the window are used,
/// then at the rates of `then`. Returns the window when the first part is acknowledged, and at `end`
/// ms.
fn windows(cc: &'static str, stack: Stack, then: &[(u64, f64)], end: u64) -> (f64, f64) {
    let rates = [(0, 4e6), (500, 8e6), (1_000, 16e6), (1_500, 32e6)];
    let rates = rates.iter().chain(then);
    let rates = rates.map(|&(at, rate)| (Span::from_millis(at), Rate::from_bits_per_sec(rate)));
    let mut connection =
        TestConnection::new(Flow { cc, stack, app_rates: rates.collect(), ..Flow::default() });
    connection.run(millis(4_300), lossless);
    let before = connection.stats().cwnd;
    connection.run(millis(end), lossless);
    (before, connection.stats().cwnd)
}

const RENO: &str = "reno(initial_ssthresh=350)";

#[test]
fn an_idle_application_halves_the_window_once_per_timeout() {
    // The timeout is 300 to 310 ms: the round-trip time and the minimum of 200 ms.
    for (until, halvings) in [(4_250, 0), (4_500, 1), (4_800, 2), (5_100, 3), (11_000, 5)] {
        let pause = [(4_000, 0.0), (until, 1e6)];
        let (before, cwnd) = windows(RENO, Stack::linux(), &pause, until + 150);
        assert!((280.0..=350.0).contains(&before), "{before}");
        assert_eq!(cwnd, f64::from((before as u32 >> halvings).max(10)), "at {until} ms");
    }
}

#[test]
fn the_window_survives_idleness_if_the_stack_or_a_model_sets_it() {
    let pause = [(4_000, 0.0), (4_900, 1e6)];
    let keeping = Stack { slow_start_after_idle: false, ..Stack::linux() };
    for (cc, stack) in [(RENO, keeping), ("bbr", Stack::linux())] {
        let (before, cwnd) = windows(cc, stack, &pause, 5_050);
        assert_eq!(cwnd, before, "{cc}");
    }
}

#[test]
fn the_receive_window_limits_the_packets_in_flight() {
    let stack = Stack { receive_window: 25, ..Stack::linux() };
    let mut connection = TestConnection::new(Flow { stack, ..Flow::default() });
    connection.run(millis(2_000), lossless);
    assert!(connection.stats().in_flight <= 25);
    assert!(connection.stats().cwnd < 100.0, "an unused window does not grow");
}

#[test]
fn max_burst_limits_the_burst_at_the_end_of_a_recovery() {
    // The peer's window is full behind the hole; filling the hole frees all of it at once.
    let burst_after = |max_burst: u32| {
        let stack = Stack { receive_window: 60, max_burst, ..Stack::linux() };
        let mut connection = TestConnection::new(Flow { stack, ..Flow::default() });
        connection.run(millis(3_000), losing(&[400]));
        let mut max_burst_seen = 0;
        for (i, (at, segment)) in connection.sent.iter().enumerate() {
            let later = &connection.sent[i..];
            if segment.number > 400 {
                let burst = later.iter().take_while(|(t, _)| *t < *at + Span::from_micros(100));
                max_burst_seen = max_burst_seen.max(burst.count());
            }
        }
        max_burst_seen
    };
    assert!(burst_after(0) >= 20, "{}", burst_after(0));
    assert!(burst_after(1) < burst_after(0) / 2, "{}", burst_after(1));
}

#[test]
fn after_its_stop_a_flow_sends_nothing_new() {
    let mut connection = TestConnection::new(Flow { stop: Some(millis(450)), ..Flow::default() });
    connection.run(millis(3_000), losing(&[60]));
    assert!(connection.sent.iter().all(|(at, segment)| {
        *at < millis(450) || segment.flags.contains(Flags::RETRANSMISSION)
    }));
    assert_eq!(connection.stats().in_flight, 0, "losses are still repaired");
}

#[test]
fn classic_ecn_halves_the_window_once_per_round_trip() {
    let stack = Stack { ecn: Ecn::Classic, ..Stack::linux() };
    let mut connection = TestConnection::new(Flow { stack, ..Flow::default() });
    let mut fate = |_: usize, segment: &Segment| {
        if (100..110).contains(&segment.number) { Fate::Marked } else { Fate::Arrives }
    };
    let window = connection.window_before(CaState::Cwr, &mut fate);
    assert!(window > 50.0, "{window}");
    connection.run(millis(560), &mut fate);
    let stats = connection.stats();
    assert_eq!(stats.ssthresh, (window / 2.0).floor(), "half of {window}, once for ten marks");
    assert_eq!(stats.retransmitted, 0);
    assert!(connection.sent.iter().any(|(_, segment)| segment.flags.contains(Flags::CWR)));
    connection.run(millis(1_000), lossless);
    let (_, last) = connection.acks[connection.acks.len() - 1];
    assert!(!last.flags.contains(Flags::ECE), "CWR ends the echo");
}

#[test]
fn paced_packets_leave_evenly_instead_of_in_bursts() {
    let stack = Stack { pacing: true, tso: false, ..Stack::linux() };
    let mut connection = TestConnection::new(Flow { stack, ..Flow::default() });
    connection.run(millis(700), lossless);
    let paced = connection.sent.iter().filter(|(at, _)| *at > millis(410));
    let times: Vec<u64> = paced.map(|(at, _)| at.as_nanos()).collect();
    let together = times.windows(2).filter(|pair| pair[0] == pair[1]).count();
    assert!(together * 20 < times.len(), "{together} of {}", times.len());
}

/// The sizes of the bursts after some time, packets.
fn bursts_after(connection: &TestConnection, time: Time) -> Vec<u32> {
    let mut bursts = vec![1u32];
    for pair in connection.sent.windows(2).filter(|pair| pair[0].0 > time) {
        match bursts.last_mut() {
            Some(last) if pair[0].0 == pair[1].0 => *last += 1,
            _ => bursts.push(1),
        }
    }
    bursts
}

#[test]
fn bursts_by_segmentation_offload_last_a_millisecond() {
    let mut connection = TestConnection::new(Flow::default());
    connection.run(millis(2_000), losing(&[1300]));
    let bursts = bursts_after(&connection, millis(1_500));
    let mean = f64::from(bursts.iter().sum::<u32>()) / bursts.len() as f64;
    assert!((5.0..9.0).contains(&mean), "80 Mbit/s x 1.2 is 8 packets a millisecond: {mean}");
}

#[test]
fn a_burst_takes_from_the_next_buffer_of_64_kb() {
    let stack = Stack { autotuning: false, ..Stack::linux() };
    let delay = Span::from_millis(5);
    let mut connection = TestConnection::new(Flow { stack, delay, ..Flow::default() });
    connection.run(millis(3_000), losing(&[100]));
    // Most bursts are of six to eight packets. A rest of one packet would leave alone in one of
    // eight buffers, of which there are 400.
    let bursts = bursts_after(&connection, millis(100));
    let of_one_packet = bursts.iter().filter(|&&packets| packets == 1).count();
    assert!(bursts.len() > 2_000 && of_one_packet < 10, "{of_one_packet} of {}", bursts.len());
}

/// tcp_tso_should_defer: a window that allows a part of a full burst, the congestion window or the
/// receiver's. An acknowledgement allows two packets.
#[test]
fn a_burst_waits_for_more_of_the_receive_window() {
    let stack = Stack { receive_window: 100, ..Stack::linux() };
    let delay = Span::from_millis(10);
    let mut connection = TestConnection::new(Flow { stack, delay, ..Flow::default() });
    connection.run(millis(3_000), lossless);
    let bursts = bursts_after(&connection, millis(1_000));
    let (all, long) =
        (bursts.iter().sum::<u32>(), bursts.iter().filter(|&&one| one >= 7).sum::<u32>());
    assert!(4 * long > all, "{long} of {all}");
}
