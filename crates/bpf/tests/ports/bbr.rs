//! BBR: flows over a path with a bottleneck, replayed to the program.

use crate::native::{Output, Program, build};
use crate::recorder::Recorder;
use crate::test_path::{Link, MSS, TestPath, init};
use dumbbell_cc::bbr::v3::State;
use dumbbell_cc::{Ack, CongestionControl, RateSample, SendState};
use dumbbell_units::Span;

/// How much the outputs of a trace differ.
#[derive(Clone, Copy, Debug, Default)]
struct Difference {
    /// Share of outputs whose windows differ by more than 2 packets and 0.1 %.
    windows: f64,
    /// Share of outputs whose pacing rates differ by more than 0.1 %.
    rates: f64,
    /// Relative error of the mean window.
    mean_window: f64,
    /// Relative error of the mean pacing rate.
    mean_rate: f64,
}

fn difference(pairs: &[(Output, Output)]) -> Difference {
    let count = pairs.len() as f64;
    let share = |differs: &dyn Fn(&Output, &Output) -> bool| {
        pairs.iter().filter(|(expected, program)| differs(expected, program)).count() as f64 / count
    };
    let mean = |value: &dyn Fn(&Output) -> f64| {
        let expected: f64 = pairs.iter().map(|(expected, _)| value(expected)).sum();
        let program: f64 = pairs.iter().map(|(_, program)| value(program)).sum();
        program / expected - 1.0
    };
    Difference {
        windows: share(&|a, b| (a.cwnd - b.cwnd).abs() > 2.0 + 1e-3 * a.cwnd),
        rates: share(&|a, b| (a.pacing_rate / b.pacing_rate - 1.0).abs() > 1e-3),
        mean_window: mean(&|output| output.cwnd),
        mean_rate: mean(&|output| output.pacing_rate),
    }
}

/// A flow of 12 s over a path.
fn flow(name: &str, link: Link) -> TestPath<Recorder> {
    let mut pipe = TestPath::new(Recorder::new(name, init(1)), link);
    pipe.path.jiffy = Span::from_millis(4);
    pipe.run(Span::from_secs(12), |_| ());
    pipe
}

fn compare(program: &Program, name: &str, link: Link) -> Difference {
    let pipe = flow(name, link);
    difference(&pipe.algorithm.replay(program))
}

/// A deep queue, a shallow one, random loss of 0.4 %, a fast path.
fn links() -> [Link; 4] {
    let random = |seq: u64| seq.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56 == 0;
    [
        Link::new(10.0, 40, 100.0),
        Link::new(10.0, 40, 10.0),
        Link { loses: random, ..Link::new(20.0, 60, 200.0) },
        Link::new(100.0, 10, 40.0),
    ]
}

/// Asserts that windows and rates differ in at most these shares of the outputs.
fn check(name: &str, windows: f64, rates: f64, mean: f64) {
    let Some(program) = build(name) else { return };
    for link in links() {
        let found = compare(&program, name, link);
        let means = found.mean_window.abs().max(found.mean_rate.abs());
        let same = found.windows <= windows && found.rates <= rates && means <= mean;
        assert!(same, "{name}: {found:?}");
    }
}

/// Times are in whole microseconds, so a phase may end an acknowledgement earlier or later.
#[test]
fn bbr_v1_port_differs_after_at_most_1_percent_of_events() {
    check("bbr", 0.01, 0.01, 0.01);
}

#[test]
fn bbr_v2_port_differs_after_at_most_1_percent_of_events() {
    check("bbr2", 0.01, 0.01, 0.01);
}

#[test]
fn f_bbr_v2_port_differs_after_at_most_1_percent_of_events() {
    check("f-bbr2", 0.01, 0.01, 0.01);
}

/// After a probe with losses the port knows inflight at loss to a few packets only, and with it
/// inflight_longterm.
#[test]
fn bbr_v3_port_has_the_same_means_within_2_percent() {
    check("bbr3", 0.25, 0.25, 0.02);
}

/// Programs of the versions in which loss bounds the model.
const BOUNDED_BY_LOSS: [&str; 3] = ["bbr2", "f-bbr2", "bbr3"];

/// A flow that has just entered ProbeBW_UP and is limited by `inflight_longterm`.
fn flow_in_up(name: &str, link: Link) -> TestPath<Recorder> {
    let mut flow = TestPath::new(Recorder::new(name, init(1)), link);
    flow.path.jiffy = Span::from_millis(4);
    let is_in_up = flow.run_until(Span::from_secs(20), |flow| {
        flow.inspect("state") == f64::from(State::ProbeBwUp as u8)
            && flow.algorithm.control().cwnd >= flow.inspect("inflight_longterm")
    });
    assert!(is_in_up, "{name} is never limited by inflight_longterm in UP");
    flow.path.cwnd_limited = true;
    flow.path.window_full = true;
    flow
}

/// Windows of the algorithm and of the program after the last event.
fn last_windows(flow: &TestPath<Recorder>, program: &Program) -> (f64, f64) {
    let pairs = flow.algorithm.replay(program);
    let (expected, program) = pairs.last().expect("at least one event");
    (expected.cwnd, program.cwnd)
}

/// Acknowledges a packet that was sent, as the third in flight, when `sent` packets were delivered.
/// `lost` packets were lost since.
fn acknowledge_third_in_flight(
    flow: &mut TestPath<Recorder>,
    sent: u64,
    prior_in_flight: u32,
    lost: u32,
) {
    flow.path.delivered += 1;
    flow.path.delivered_at = flow.path.now;
    flow.path.lost += u64::from(lost);
    flow.path.in_flight = 2;
    let send_state = SendState { delivered: sent, in_flight: 3, ..SendState::default() };
    let interval = flow.link.rate.time_for(f64::from(MSS));
    let mut rate = RateSample::new(1, interval, flow.link.rate, send_state);
    rate.lost = lost;
    // Below the minimum, so that ProbeRTT is not due.
    flow.path.min_rtt = flow.path.min_rtt.map(|rtt| rtt * 9 / 10);
    let ack = Ack::new(1)
        .with_rtt(flow.path.min_rtt)
        .with_prior_in_flight(prior_in_flight)
        .with_rate(Some(rate));
    flow.algorithm.on_ack(&flow.path, &ack);
}

/// A flow in ProbeBW_UP with a window of 4 packets, after a probe that lost one packet of 3 and so set
/// `inflight_longterm` to 3.
fn flow_in_up_below_4_packets(name: &str) -> TestPath<Recorder> {
    let mut flow = flow_in_up(name, Link::new(1.0, 24, 0.0));
    let sent = flow.path.delivered;
    acknowledge_third_in_flight(&mut flow, sent, 3, 1);
    assert_eq!(flow.inspect("inflight_longterm"), 3.0, "{name}");
    flow.path.now += Span::from_secs(4);
    for state in [State::ProbeBwRefill, State::ProbeBwUp] {
        let sent = flow.path.delivered;
        acknowledge_third_in_flight(&mut flow, sent, 3, 0);
        assert_eq!(flow.inspect("state"), f64::from(state as u8), "{name}");
    }
    flow
}

/// The probe raises `inflight_longterm` by 2, to 5.
#[test]
fn inflight_longterm_may_be_below_4_packets_in_the_ports_too() {
    for name in BOUNDED_BY_LOSS {
        let Some(program) = build(name) else { return };
        let mut flow = flow_in_up_below_4_packets(name);
        let sent = flow.path.delivered - 1;
        for _ in 0..8 {
            acknowledge_third_in_flight(&mut flow, sent, 0, 0);
        }
        assert_eq!(last_windows(&flow, &program), (5.0, 5.0), "{name}");
    }
}

/// Below ssthresh, a window of which half was in use limits the flow, but is not full.
#[test]
fn ports_raise_inflight_longterm_with_a_full_window_only() {
    for name in BOUNDED_BY_LOSS {
        let Some(program) = build(name) else { return };
        let mut flow = flow_in_up_below_4_packets(name);
        flow.path.window_full = false;
        let sent = flow.path.delivered - 1;
        for _ in 0..8 {
            acknowledge_third_in_flight(&mut flow, sent, 0, 0);
        }
        assert_eq!(last_windows(&flow, &program), (4.0, 4.0), "{name}");
    }
}

#[test]
fn ports_grow_inflight_longterm_without_a_rate_sample_too() {
    for name in BOUNDED_BY_LOSS {
        let Some(program) = build(name) else { return };
        let mut flow = flow_in_up(name, Link::new(10.0, 40, 10.0));
        let (before, program_before) = last_windows(&flow, &program);
        assert_eq!(before, program_before, "{name}");
        for _ in 0..before as u32 * 3 {
            flow.path.delivered += 1;
            flow.algorithm.on_ack(&flow.path, &Ack::new(1).with_prior_in_flight(1));
        }
        assert_eq!(last_windows(&flow, &program), (before + 3.0, before + 3.0), "{name}");
    }
}

/// The path is long until after the first ProbeRTT, then short until shortly before the second.
#[test]
fn the_port_restores_the_largest_saved_window_after_probe_rtt() {
    const PROBE_RTT: f64 = 3.0;
    let Some(program) = build("bbr") else { return };
    let mut flow = flow("bbr", Link::new(20.0, 100, 400.0));
    flow.link.rtt = Span::from_millis(20);
    flow.run(Span::from_secs(10), |_| ());
    flow.link.rtt = Span::from_millis(100);
    let (before, _) = last_windows(&flow, &program);
    assert!(flow.run_until(Span::from_secs(1), |flow| flow.inspect("state") == PROBE_RTT));
    assert!(flow.run_until(Span::from_secs(1), |flow| flow.inspect("state") != PROBE_RTT));
    let (expected, restored) = last_windows(&flow, &program);
    assert!(expected > 1.5 * before, "{before} to {expected}");
    assert_eq!(restored, expected);
}
