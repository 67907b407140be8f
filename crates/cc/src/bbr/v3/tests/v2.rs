//! What is BBRv2's and F-BBRv2's own.

use super::super::super::version::F2;
use super::*;

fn v2(link: Link) -> TestPath<BbrV3> {
    TestPath::new(BbrV3::new(V2, &init(1)), link)
}

fn f2(link: Link) -> TestPath<BbrV3> {
    TestPath::new(BbrV3::new(F2, &init(1)), link)
}

/// 50 Mbit/s, 40 ms, 173 packets of BDP and four times as many of queue.
fn deep_link() -> Link {
    Link::new(50.0, 40, 691.0)
}

#[test]
fn the_gains_are_those_of_the_paper_and_of_v2alpha() {
    let mut flow = v2(deep_link());
    let mut seen: Vec<(State, f64, f64)> = Vec::new();
    flow.run(Span::from_secs(12), |flow| {
        let state = flow.algorithm.state;
        if !seen.iter().any(|&(other, ..)| other == state) {
            seen.push((state, flow.inspect("pacing_gain"), flow.inspect("cwnd_gain")));
        }
    });
    for (state, pacing, cwnd) in [
        (State::Startup, 2.8, 3.0),
        (State::Drain, 1.0 / 2.8, 3.0),
        (State::ProbeBwDown, 0.75, 2.0),
        (State::ProbeBwCruise, 1.0, 2.0),
        (State::ProbeBwRefill, 1.0, 2.0),
        (State::ProbeBwUp, 1.25, 2.0),
        (State::ProbeRtt, 1.0, 0.5),
    ] {
        assert!(seen.contains(&(state, pacing, cwnd)), "{state:?}: {seen:?}");
    }
}

#[test]
fn startup_has_a_window_of_3_bdp() {
    let mut flow = v2(deep_link());
    let mut most: f64 = 0.0;
    while flow.algorithm.state == State::Startup {
        flow.run_ms(1);
        most = most.max(f64::from(flow.path.in_flight));
    }
    assert!((2.7..=3.1).contains(&(most / flow.link.bdp())), "{most}");
}

#[test]
fn eight_losses_in_a_round_end_startup_and_bound_what_is_in_flight() {
    let mut link = Link::new(50.0, 40, 1000.0);
    link.loses = |seq| seq >= 40 && seq % 20 == 0;
    let mut flow = v2(link);
    run_until(&mut flow, State::Drain);
    assert!((8..30).contains(&flow.path.lost), "{}", flow.path.lost);
    let bdp = flow.algorithm.bdp_multiple(&flow.path, flow.algorithm.max_bw(), 1.0);
    assert_eq!(flow.inspect("inflight_longterm"), bdp);
}

#[test]
fn seven_losses_do_not_end_startup() {
    let mut link = Link::new(50.0, 40, 1000.0);
    link.loses = |seq| (40..47).contains(&seq);
    let mut flow = v2(link);
    flow.run_ms(230);
    assert_eq!(flow.dropped, 7);
    assert_eq!(flow.algorithm.state, State::Startup);
}

#[test]
fn up_ends_with_5_4_bdp_in_flight_and_not_before_a_round_trip() {
    let mut flow = v2(deep_link());
    for _ in 0..3 {
        run_until(&mut flow, State::ProbeBwUp);
        let began = flow.path.now;
        let left = |flow: &TestPath<BbrV3>| flow.algorithm.state != State::ProbeBwUp;
        assert!(flow.run_until(Span::from_secs(1), left));
        let lasted = flow.path.now.since(began).as_secs_f64();
        assert!((0.040..=0.100).contains(&lasted), "{lasted}");
        // 2 packets more in UP, a burst that is about to depart, the packet just acknowledged.
        let share = (f64::from(flow.path.in_flight) + 5.0) / flow.link.bdp();
        assert!((1.25..=1.32).contains(&share), "{share}");
        assert_eq!(flow.algorithm.state, State::ProbeBwDown);
    }
    assert_eq!(flow.dropped, 0);
}

#[test]
fn probe_rtt_comes_every_5_s_and_leaves_half_a_bdp() {
    let mut flow = v2(deep_link());
    let (mut times, mut min, mut last) = (Vec::new(), f64::INFINITY, State::Startup);
    for _ in 0..32 {
        flow.link.rtt = flow.link.rtt + Span::from_micros(10);
        flow.run(Span::from_secs(1), |flow| {
            let state = flow.algorithm.state;
            if state == State::ProbeRtt {
                min = min.min(flow.algorithm.window.cwnd / flow.link.bdp());
                if last != state {
                    times.push(flow.path.now.as_secs_f64());
                }
            }
            last = state;
        });
    }
    assert!(times.len() >= 5, "{times:?}");
    assert!(times.windows(2).all(|pair| (5.0..=5.7).contains(&(pair[1] - pair[0]))), "{times:?}");
    assert!((0.49..=0.53).contains(&min), "{min}");
}

#[test]
fn a_spurious_loss_lifts_the_bound_but_does_not_probe_again() {
    let mut flow = lose_in_up(v2(Link::new(100.0, 100, 3456.0)), 1000, 30);
    assert_eq!(flow.inspect("inflight_longterm"), 999.0);
    flow.algorithm.on_spurious_loss(&flow.path);
    assert!(flow.inspect("inflight_longterm").is_infinite());
    assert_eq!(flow.algorithm.state, State::ProbeBwDown);
}

#[test]
fn marks_are_ignored_unless_ecn_is_switched_on() {
    let bound = |text: &str| {
        let mut options: Options = text.parse().expect("well formed");
        let bbr = BbrV3::from_options(V2, &mut options, &init(1)).expect("valid");
        let mut link = Link::new(1000.0, 2, 2000.0);
        link.mark_above = Some(20.0);
        let mut flow = TestPath::new(bbr, link);
        flow.run_ms(5_000);
        flow.inspect("inflight_longterm")
    };
    assert!(bound("bbr2").is_infinite());
    assert!(bound("bbr2(ecn=on)").is_finite());
}

#[test]
fn alone_f_bbr2_is_bbr2_packet_by_packet() {
    let trace = |version| {
        let mut flow = TestPath::new(BbrV3::new(version, &init(7)), deep_link());
        let mut trace = Vec::new();
        flow.run(Span::from_secs(20), |flow| {
            trace.push((flow.path.now, flow.path.in_flight, flow.algorithm.state));
        });
        trace
    };
    assert!(trace(V2) == trace(F2));
}

#[test]
fn beside_a_standing_queue_f_bbr2_cruises_at_1_15_and_otherwise_as_bbr2() {
    let mut flow = f2(deep_link());
    flow.run_ms(2_000);
    assert_eq!(flow.inspect("cubic_detected"), 0.0);
    // What a queue that never runs empty looks like to the flow.
    flow.link.rtt = Span::from_millis(60);
    flow.run_ms(12_000);
    assert_eq!(flow.inspect("cubic_detected"), 1.0);
    let mut gains = Vec::new();
    flow.run(Span::from_secs(8), |flow| {
        gains.push((flow.algorithm.state, flow.inspect("pacing_gain")));
    });
    for (state, gain) in [
        (State::ProbeBwCruise, 1.15),
        (State::ProbeBwDown, 0.75),
        (State::ProbeBwRefill, 1.0),
        (State::ProbeBwUp, 1.25),
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
        let mut flow = v2(Link::new(mbit, 100, 50.0));
        flow.run_ms(5_000);
        assert_eq!(flow.algorithm.control().min_send_quantum, Some(burst));
    }
}
