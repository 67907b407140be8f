//! What is BBRv2's and F-BBRv2's own.

use super::super::super::version::{F2, V2};
use super::*;

fn v2(link: Link) -> TestPath<BoundedBbr> {
    TestPath::new(BoundedBbr::new(V2, &init(1)), link)
}

fn f2(link: Link) -> TestPath<BoundedBbr> {
    TestPath::new(BoundedBbr::new(F2, &init(1)), link)
}

/// 50 Mbit/s, 40 ms, 173 packets of BDP and four times as many of queue.
fn deep_link() -> Link {
    Link::new(50.0, 40, 691.0)
}

#[test]
fn the_gains_are_those_of_the_paper_and_of_v2alpha() {
    let mut pipe = v2(deep_link());
    let mut seen: Vec<(State, f64, f64)> = Vec::new();
    pipe.run(Span::from_secs(12), |pipe| {
        let state = pipe.algorithm.frame.state;
        if !seen.iter().any(|&(other, ..)| other == state) {
            seen.push((state, pipe.inspect("pacing_gain"), pipe.inspect("cwnd_gain")));
        }
    });
    for (state, pacing, cwnd) in [
        (State::Startup, 2.8, 3.0),
        (State::Drain, 1.0 / 2.8, 3.0),
        (State::Down, 0.75, 2.0),
        (State::Cruise, 1.0, 2.0),
        (State::Refill, 1.0, 2.0),
        (State::Up, 1.25, 2.0),
        (State::ProbeRtt, 1.0, 0.5),
    ] {
        assert!(seen.contains(&(state, pacing, cwnd)), "{state:?}: {seen:?}");
    }
}

#[test]
fn startup_has_a_window_of_3_bdp() {
    let mut pipe = v2(deep_link());
    let mut most: f64 = 0.0;
    while pipe.algorithm.frame.state == State::Startup {
        pipe.run_ms(1);
        most = most.max(f64::from(pipe.path.in_flight));
    }
    assert!((2.7..=3.1).contains(&(most / pipe.link.bdp())), "{most}");
}

#[test]
fn eight_losses_in_a_round_of_recovery_end_startup_and_bound_the_volume_to_the_bdp() {
    let mut link = Link::new(50.0, 40, 1000.0);
    link.loses = |seq| seq >= 40 && seq % 20 == 0;
    let mut pipe = v2(link);
    run_until(&mut pipe, State::Drain);
    assert!((8..30).contains(&pipe.path.lost), "{}", pipe.path.lost);
    let bdp = pipe.algorithm.frame.bdp(pipe.algorithm.rules.max_bw(), 1.0);
    assert_eq!(pipe.inspect("inflight_hi"), bdp);
}

#[test]
fn seven_losses_do_not_end_startup() {
    let mut link = Link::new(50.0, 40, 1000.0);
    link.loses = |seq| (40..47).contains(&seq);
    let mut pipe = v2(link);
    pipe.run_ms(230);
    assert_eq!(pipe.dropped, 7);
    assert_eq!(pipe.algorithm.frame.state, State::Startup);
}

#[test]
fn up_ends_with_5_4_bdp_in_flight_and_not_before_a_round_trip() {
    let mut pipe = v2(deep_link());
    for _ in 0..3 {
        run_until(&mut pipe, State::Up);
        let began = pipe.path.now;
        let left = |pipe: &TestPath<BoundedBbr>| pipe.algorithm.frame.state != State::Up;
        assert!(pipe.run_until(Span::from_secs(1), left));
        let lasted = pipe.path.now.since(began).as_secs_f64();
        assert!((0.040..=0.100).contains(&lasted), "{lasted}");
        // 2 packets more in UP, a burst that is about to depart, the packet just acknowledged.
        let share = (f64::from(pipe.path.in_flight) + 5.0) / pipe.link.bdp();
        assert!((1.25..=1.32).contains(&share), "{share}");
        assert_eq!(pipe.algorithm.frame.state, State::Down);
    }
    assert_eq!(pipe.dropped, 0);
}

#[test]
fn probe_rtt_comes_every_5_s_and_leaves_half_a_bdp() {
    let mut pipe = v2(deep_link());
    let (mut times, mut least, mut last) = (Vec::new(), f64::INFINITY, State::Startup);
    for _ in 0..32 {
        pipe.link.rtt = pipe.link.rtt + Span::from_micros(10);
        pipe.run(Span::from_secs(1), |pipe| {
            let state = pipe.algorithm.frame.state;
            if state == State::ProbeRtt {
                least = least.min(pipe.algorithm.frame.window.get() / pipe.link.bdp());
                if last != state {
                    times.push(pipe.path.now.as_secs_f64());
                }
            }
            last = state;
        });
    }
    assert!(times.len() >= 5, "{times:?}");
    assert!(times.windows(2).all(|pair| (5.0..=5.7).contains(&(pair[1] - pair[0]))), "{times:?}");
    assert!((0.49..=0.53).contains(&least), "{least}");
}

#[test]
fn a_spurious_loss_lifts_the_bound_but_does_not_probe_again() {
    let mut pipe = lose_in_up(v2(Link::new(100.0, 100, 3456.0)), 1000, 30);
    assert_eq!(pipe.inspect("inflight_hi"), 999.0);
    pipe.algorithm.on_spurious_loss(&pipe.path);
    assert!(pipe.inspect("inflight_hi").is_infinite());
    assert_eq!(pipe.algorithm.frame.state, State::Down);
}

#[test]
fn marks_are_ignored_unless_ecn_is_switched_on() {
    let bound = |text: &str| {
        let mut options: Options = text.parse().expect("well formed");
        let bbr = BoundedBbr::from_options(V2, &mut options, &init(1)).expect("valid");
        let mut link = Link::new(1000.0, 2, 2000.0);
        link.mark_above = Some(20.0);
        let mut pipe = TestPath::new(bbr, link);
        pipe.run_ms(5_000);
        pipe.inspect("inflight_hi")
    };
    assert!(bound("bbr2").is_infinite());
    assert!(bound("bbr2(ecn=on)").is_finite());
}

#[test]
fn alone_f_bbr2_is_bbr2_packet_by_packet() {
    let trace = |version| {
        let mut pipe = TestPath::new(BoundedBbr::new(version, &init(7)), deep_link());
        let mut trace = Vec::new();
        pipe.run(Span::from_secs(20), |pipe| {
            trace.push((pipe.path.now, pipe.path.in_flight, pipe.algorithm.frame.state));
        });
        trace
    };
    assert!(trace(V2) == trace(F2));
}

#[test]
fn beside_a_standing_queue_f_bbr2_cruises_at_1_15_and_otherwise_as_bbr2() {
    let mut pipe = f2(deep_link());
    pipe.run_ms(2_000);
    assert_eq!(pipe.inspect("cubic_detected"), 0.0);
    // What a queue that never runs empty looks like to the flow.
    pipe.link.rtt = Span::from_millis(60);
    pipe.run_ms(12_000);
    assert_eq!(pipe.inspect("cubic_detected"), 1.0);
    let mut gains = Vec::new();
    pipe.run(Span::from_secs(8), |pipe| {
        gains.push((pipe.algorithm.frame.state, pipe.inspect("pacing_gain")));
    });
    for (state, gain) in [
        (State::Cruise, 1.15),
        (State::Down, 0.75),
        (State::Refill, 1.0),
        (State::Up, 1.25),
        (State::ProbeRtt, 1.0),
    ] {
        let all: Vec<f64> = gains.iter().filter(|(s, _)| *s == state).map(|(_, g)| *g).collect();
        assert!(!all.is_empty() && all.iter().all(|&g| g == gain), "{state:?}");
    }
}

#[test]
fn the_operations_of_f_bbr2_are_options_and_bbr2_has_none() {
    let make = |text: &str| crate::Algorithm::parse(text, &init(1)).map(drop);
    assert!(make("f-bbr2(threshold=1.5, cruise_gain=1.25, headroom=0.1)").is_ok());
    for text in ["bbr2(threshold=1.5)", "f-bbr2(threshold=0.5)", "f-bbr2(cruise_gain=0)"] {
        assert!(make(text).is_err(), "{text}");
    }
}

#[test]
fn below_1_2_mbit_packets_leave_one_by_one() {
    for (mbit, burst) in [(1.0, 1), (50.0, 2)] {
        let mut pipe = v2(Link::new(mbit, 100, 50.0));
        pipe.run_ms(5_000);
        assert_eq!(pipe.algorithm.control().min_send_quantum, Some(burst));
    }
}
