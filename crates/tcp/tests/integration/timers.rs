//! Timeouts and tail loss probes: when they expire, the window after them, the packets sent next.

use crate::connection::{Fate, Flow, TestConnection, losing, lossless, millis};
use dumbbell_tcp::{Flags, Segment, Stack};
use dumbbell_units::{Rate, Span};

fn is_retransmission(segment: &Segment) -> bool {
    segment.flags.contains(Flags::RETRANSMISSION)
}

#[test]
fn a_dead_path_doubles_the_timeout_each_time() {
    let mut connection = TestConnection::new(Flow::default());
    connection.run(
        millis(8_000),
        |_, segment| {
            if segment.number >= 50 { Fate::Lost } else { Fate::Arrives }
        },
    );
    let stats = connection.stats();
    assert!(stats.timeouts >= 4, "{}", stats.timeouts);
    let again = connection.sent.iter().filter(|(_, segment)| is_retransmission(segment));
    let times: Vec<u64> =
        again.filter(|(_, s)| s.number == 50).map(|(at, _)| at.as_nanos()).collect();
    let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for pair in gaps.windows(2).skip(1) {
        // The timer wheel rounds up to 64 jiffies of 4 ms from 504 jiffies on (`calc_wheel_index`).
        assert!(pair[1].abs_diff(2 * pair[0]) <= 256_000_000, "{gaps:?}");
    }
    assert_eq!(stats.cwnd, 1.0);
}

#[test]
fn a_timeout_caused_by_a_delay_is_undone() {
    let mut connection = TestConnection::new(Flow::default());
    // Packets sent between 450 and 1,050 ms arrive late; none is lost.
    connection.run(millis(2_500), |_, segment| match segment.timestamp {
        450_000..1_050_000 => Fate::NotBefore(millis(1_100)),
        _ => Fate::Arrives,
    });
    let stats = connection.stats();
    assert_eq!((stats.timeouts, stats.spurious), (1, 1));
    assert!(stats.cwnd > 300.0, "the window is restored: {}", stats.cwnd);
}

#[test]
fn a_retransmission_of_the_oldest_packet_restarts_the_timeout() {
    let stack = Stack { receive_window: 10, ..Stack::linux() };
    let delay = Span::from_millis(150);
    let mut connection = TestConnection::new(Flow { stack, delay, ..Flow::default() });
    // Two packets of its round trip follow packet 57: it is found lost at the end of RACK's window,
    // 375 ms after it was sent. Its timeout of 500 ms would expire before the retransmission is
    // acknowledged.
    connection.run(millis(5_000), losing(&[57]));
    let stats = connection.stats();
    assert_eq!(connection.retransmissions(), [57]);
    assert_eq!((stats.recoveries, stats.timeouts), (1, 0));
}

/// Loses all packets sent between 450 and 850 ms, and the first retransmission of each of `numbers`.
fn losing_after_450_ms(numbers: &'static [u32]) -> impl FnMut(usize, &Segment) -> Fate {
    let mut left = numbers.to_vec();
    move |_, segment| {
        let at =
            left.iter().position(|&number| is_retransmission(segment) && number == segment.number);
        match at.map(|at| left.swap_remove(at)) {
            Some(_) => Fate::Lost,
            None if (450_000..850_000).contains(&segment.timestamp) => Fate::Lost,
            None => Fate::Arrives,
        }
    }
}

#[test]
fn a_lost_retransmission_after_a_timeout_is_a_loss_of_its_own() {
    let stats = |numbers| {
        let mut connection = TestConnection::new(Flow { cc: "reno", ..Flow::default() });
        connection.run(millis(2_500), losing_after_450_ms(numbers));
        connection.stats()
    };
    let (once, twice) = (stats(&[]), stats(&[180]));
    assert_eq!((once.timeouts, once.recoveries), (1, 0));
    // RFC 8985, 6.2: RACK detects a lost retransmission. The window that slow start reached is halved.
    assert_eq!((twice.timeouts, twice.recoveries), (1, 1));
    assert!(twice.ssthresh < once.ssthresh / 2.0, "{} and {}", twice.ssthresh, once.ssthresh);
}

#[test]
fn a_timeout_after_some_progress_is_an_episode_of_its_own() {
    let mut connection = TestConnection::new(Flow { cc: "reno", ..Flow::default() });
    // The first retransmission arrives; the two after it are lost.
    connection.run(millis(2_500), losing_after_450_ms(&[151, 152]));
    let stats = connection.stats();
    assert_eq!(stats.timeouts, 2);
    assert_eq!(stats.ssthresh, 2.0);
}

#[test]
fn after_a_timeout_f_rto_sends_two_new_packets_first() {
    let mut connection = TestConnection::new(Flow::default());
    connection.run(millis(1_400), losing_after_450_ms(&[]));
    let first = connection
        .sent
        .iter()
        .position(|(_, segment)| is_retransmission(segment) && segment.number == 150);
    let next =
        |at: usize| (is_retransmission(&connection.sent[at].1), connection.sent[at].1.number);
    let first = first.expect("it is retransmitted");
    let new = next(first - 1).1 + 1;
    // RFC 5682, 3.1, step 2b: two new packets; step 3a: their acknowledgement shows that 151 was lost.
    let after: Vec<_> = (first + 1..first + 5).map(next).collect();
    assert_eq!(after, [(false, new), (false, new + 1), (true, 151), (true, 152)]);
}

#[test]
fn without_new_packets_the_lost_ones_are_retransmitted_at_once() {
    let bytes = Some(160 * 1448);
    let mut connection = TestConnection::new(Flow { bytes, ..Flow::default() });
    connection.run(millis(1_400), losing_after_450_ms(&[]));
    let first = connection
        .sent
        .iter()
        .position(|(_, segment)| is_retransmission(segment) && segment.number == 150);
    let after = &connection.sent[first.expect("it is retransmitted") + 1..];
    assert_eq!((after[0].1.number, after[1].1.number), (151, 152));
}

#[test]
fn a_timeout_of_one_late_packet_is_undone_by_its_timestamp() {
    let rate = Rate::from_bits_per_sec(40_000.0);
    let app_rates = vec![(Span::ZERO, rate)]; // One packet in 290 ms.
    let mut connection = TestConnection::new(Flow { app_rates, ..Flow::default() });
    connection.run(millis(4_000), |_, segment| {
        match (segment.number, is_retransmission(segment)) {
            (5, false) => Fate::Late(Span::from_millis(800)),
            (5..=7, _) => Fate::Lost,
            _ => Fate::Arrives,
        }
    });
    let stats = connection.stats();
    assert!(stats.timeouts >= 1, "{stats:?}");
    assert!(stats.spurious >= 1, "{stats:?}");
}

#[test]
fn new_data_does_not_postpone_the_probe_beyond_the_oldest_timeout() {
    // A packet every 23 ms: each would postpone the probe by two round trips.
    let rate = Rate::from_bits_per_sec(500_000.0);
    let mut connection =
        TestConnection::new(Flow { app_rates: vec![(Span::ZERO, rate)], ..Flow::default() });
    connection.run(millis(4_000), |_, segment| {
        if segment.timestamp >= 3_000_000 { Fate::Lost } else { Fate::Arrives }
    });
    let first_lost =
        connection.sent.iter().find(|(at, _)| *at >= millis(3_000)).expect("the flow continues").0;
    let probe = connection
        .sent
        .iter()
        .find(|(_, segment)| is_retransmission(segment))
        .expect("a probe is sent")
        .0;
    // A probe or a timeout, srtt + 200 ms after the oldest packet was sent.
    let after = probe.since(first_lost).as_micros() / 1_000;
    assert!((295..650).contains(&after), "{after}");
}

#[test]
fn packets_sent_after_a_probe_postpone_the_timeout() {
    // A packet every 68 ms; all are lost from 3 s on. The probe leaves 300 ms later, and the window
    // allows new packets for some 200 ms more.
    let rate = Rate::from_bits_per_sec(170_000.0);
    let mut connection =
        TestConnection::new(Flow { app_rates: vec![(Span::ZERO, rate)], ..Flow::default() });
    let timeout = (3_000..6_000).find(|&ms| {
        connection.run(millis(ms), |_, segment| {
            if segment.timestamp >= 3_000_000 { Fate::Lost } else { Fate::Arrives }
        });
        connection.stats().timeouts > 0
    });
    let mut new = connection.sent.iter().filter(|(_, segment)| !is_retransmission(segment));
    let last = new.next_back().expect("new packets were sent").0.as_nanos() / 1_000_000;
    // tcp_schedule_loss_probe, tcp_send_loss_probe: two round trips and 2 ms after the last. Two
    // timers, each rounded up to jiffies of 4 ms and one more, the second of one jiffy.
    let after = timeout.expect("a timeout") - last;
    assert!((208..=216).contains(&after), "{after}");
}

#[test]
fn older_arrivals_restart_the_timeout_of_a_lost_retransmission() {
    let stack = Stack { receive_window: 40, ..Stack::linux() };
    let mut connection = TestConnection::new(Flow { stack, ..Flow::default() });
    // The retransmission is lost too. Packets sent before it arrive until a round trip later.
    connection.run(millis(5_000), {
        let mut left = 2;
        move |_, segment| {
            if segment.number == 200 && left > 0 {
                left -= 1;
                return Fate::Lost;
            }
            Fate::Arrives
        }
    });
    let retransmissions: Vec<_> =
        connection.sent.iter().filter(|(_, s)| is_retransmission(s) && s.number == 200).collect();
    let last_older =
        connection.acks.iter().filter(|(at, ack)| *at < retransmissions[1].0 && ack.number == 200);
    let last_arrival = last_older.map(|(at, _)| *at).max().expect("older packets arrive");
    let after = retransmissions[1].0.since(last_arrival).as_micros() / 1_000;
    // tcp_clean_rtx_queue: srtt + 200 ms from there.
    assert!((295..330).contains(&after), "{after}");
}

#[test]
fn the_first_four_syns_are_retransmitted_a_second_apart() {
    let mut connection = TestConnection::new(Flow::default());
    connection.lose_syns(7);
    connection.run(millis(20_000), lossless);
    let seconds: Vec<u64> =
        connection.syns.iter().map(|at| at.as_nanos() / 1_000_000_000).collect();
    // tcp_syn_linear_timeouts: 1, 2, 3, 4, 5, then doubling.
    assert_eq!(seconds, [0, 1, 2, 3, 4, 5, 7, 11]);
}

#[test]
fn a_retransmitted_syn_s_echo_gives_the_rtt_in_whole_milliseconds() {
    let mut connection = TestConnection::new(Flow { bytes: Some(1), ..Flow::default() });
    connection.lose_syns(1);
    connection.run(millis(1_200), lossless);
    assert_eq!(connection.stats().min_rtt, Some(Span::from_millis(100)));
}
