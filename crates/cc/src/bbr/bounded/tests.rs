//! Walks through BBRv3's states, on a path of known rate and delay; BBRv2's own are in `v2`.

mod v2;

use super::super::version::V3;
use super::*;
use crate::test_path::{Link, TestPath, init};
use crate::{CongestionControl, Options, SendState};
use dumbbell_units::Span;

fn flow(link: Link) -> TestPath<BoundedBbr> {
    TestPath::new(BoundedBbr::new(V3, &init(1)), link)
}

/// 100 Mbit/s, 100 ms, 864 packets of BDP and four times as many of queue: no loss.
fn deep() -> TestPath<BoundedBbr> {
    flow(Link::new(100.0, 100, 3456.0))
}

/// 50 Mbit/s, 40 ms, 173 packets of BDP and a sixth of it of queue.
fn shallow() -> TestPath<BoundedBbr> {
    flow(Link::new(50.0, 40, 30.0))
}

/// The states passed through in `ms` from now, and when each began, in seconds.
fn walk(pipe: &mut TestPath<BoundedBbr>, ms: u64) -> Vec<(State, f64)> {
    let mut states = vec![(pipe.algorithm.frame.state, pipe.path.now.as_secs_f64())];
    pipe.run(Span::from_millis(ms), |pipe| {
        let state = pipe.algorithm.frame.state;
        if states.last().is_some_and(|&(last, _)| last != state) {
            states.push((state, pipe.path.now.as_secs_f64()));
        }
    });
    states
}

/// Mean rate over the next seconds, as a share of the link.
fn share(pipe: &mut TestPath<BoundedBbr>, seconds: u64) -> f64 {
    let before = pipe.path.delivered;
    pipe.run(Span::from_secs(seconds), |_| ());
    let bytes = (pipe.path.delivered - before) as f64 * pipe.algorithm.frame.scale.mss;
    bytes / pipe.link.rate.bytes_in(Span::from_secs(seconds))
}

/// Runs until the algorithm has just come to `state`.
fn run_until(pipe: &mut TestPath<BoundedBbr>, state: State) {
    let came = pipe.run_until(Span::from_secs(20), |pipe| pipe.algorithm.frame.state == state);
    assert!(came, "never came to {state:?}");
}

#[test]
fn the_states_follow_one_another_as_the_draft_draws_them() {
    let states: Vec<State> = walk(&mut deep(), 5_000).into_iter().map(|(state, _)| state).collect();
    use State::{Cruise, Down, Drain, Refill, Startup, Up};
    assert_eq!(states[..7], [Startup, Drain, Down, Cruise, Refill, Up, Down]);
}

#[test]
fn startup_ends_three_rounds_after_the_rate_stops_growing() {
    let mut pipe = deep();
    let (mut best, mut grew, mut ended) = (0.0, 0, None);
    pipe.run(Span::from_secs(4), |pipe| {
        let round = pipe.algorithm.frame.rounds.count();
        let bw = pipe.algorithm.rules.max_bw.get().bytes_per_sec();
        if bw >= best * 1.25 {
            (best, grew) = (bw, round);
        }
        if pipe.algorithm.frame.state == State::Drain {
            ended.get_or_insert(round);
        }
    });
    let rounds = ended.expect("startup ended") - grew;
    assert!((3..=4).contains(&rounds), "{rounds}");
}

#[test]
fn startup_paces_at_2_77_with_a_window_of_2_bdp() {
    let mut pipe = deep();
    let mut most: f64 = 0.0;
    while pipe.algorithm.frame.state == State::Startup {
        pipe.run_ms(1);
        if pipe.algorithm.frame.state == State::Startup {
            assert_eq!((pipe.inspect("pacing_gain"), pipe.inspect("cwnd_gain")), (2.77, 2.0));
            most = most.max(f64::from(pipe.path.in_flight));
        }
    }
    assert!((1.95..=2.1).contains(&(most / pipe.link.bdp())), "{most}");
    let (bw, rate) = (pipe.inspect("max_bw"), pipe.algorithm.frame.pacing.rate().bytes_per_sec());
    assert!((rate / bw - 0.35 * 0.99).abs() < 1e-9);
}

#[test]
fn startup_ends_on_a_round_of_recovery_with_many_losses() {
    let mut pipe = flow(Link::new(50.0, 40, 10.0));
    run_until(&mut pipe, State::Drain);
    assert_eq!(pipe.path.ca_state, CaState::Recovery);
    assert!(pipe.path.lost >= 6);
    // Only loss sets this bound, to the BDP or to what was delivered if that is more.
    let hi = pipe.inspect("inflight_hi");
    assert!((1.0..=1.15).contains(&(hi / pipe.link.bdp())), "{hi}");
    assert_eq!(pipe.algorithm.rules.undo_state, Some(State::Startup));
}

#[test]
fn fewer_than_6_losses_do_not_end_startup() {
    let mut link = Link::new(50.0, 40, 1000.0);
    link.loses = |seq| (40..45).contains(&seq);
    let mut pipe = flow(link);
    pipe.run_ms(230);
    assert_eq!(pipe.dropped, 5);
    assert_eq!(pipe.algorithm.frame.state, State::Startup);
    assert!(pipe.inspect("inflight_hi").is_infinite());
}

#[test]
fn drain_leaves_the_bdp_in_flight() {
    let mut pipe = deep();
    run_until(&mut pipe, State::Drain);
    assert!(pipe.run_until(Span::from_secs(1), |pipe| pipe.algorithm.frame.state != State::Drain));
    let left = f64::from(pipe.path.in_flight) / pipe.link.bdp();
    assert!((0.99..=1.01).contains(&left), "{left}");
}

#[test]
fn the_greatest_rate_is_within_2_percent_of_the_link() {
    let mut pipe = deep();
    pipe.run_ms(8_000);
    let share = pipe.inspect("max_bw") / pipe.link.rate.bytes_per_sec();
    assert!((0.98..=1.02).contains(&share), "{share}");
    assert!((pipe.inspect("min_rtt") - 0.1).abs() < 0.001);
}

#[test]
fn the_gains_are_those_of_the_drafts_table() {
    let mut pipe = deep();
    let mut seen: Vec<(State, f64, f64)> = Vec::new();
    pipe.run(Span::from_secs(12), |pipe| {
        let state = pipe.algorithm.frame.state;
        if !seen.iter().any(|&(other, ..)| other == state) {
            seen.push((state, pipe.inspect("pacing_gain"), pipe.inspect("cwnd_gain")));
        }
    });
    for (state, pacing, cwnd) in [
        (State::Startup, 2.77, 2.0),
        (State::Drain, 0.35, 2.0),
        (State::Down, 0.9, 2.0),
        (State::Cruise, 1.0, 2.0),
        (State::Refill, 1.0, 2.0),
        (State::Up, 1.25, 2.25),
    ] {
        assert!(seen.contains(&(state, pacing, cwnd)), "{state:?}: {seen:?}");
    }
}

#[test]
fn probes_begin_2_to_3_s_after_down_or_probe_rtt() {
    let mut waits = Vec::new();
    let mut since = None;
    let mut last = State::Startup;
    for (state, at) in walk(&mut deep(), 30_000) {
        match state {
            State::Down => since = Some(at),
            State::Cruise if last == State::ProbeRtt => since = Some(at),
            State::Refill => waits.extend(since.take().map(|since| at - since)),
            State::ProbeRtt => since = None,
            _ => {}
        }
        last = state;
    }
    assert!(waits.len() >= 5, "{waits:?}");
    assert!(waits.iter().all(|wait| (2.0..=3.05).contains(wait)), "{waits:?}");
}

#[test]
fn a_small_bdp_is_probed_as_often_as_reno_would_have_losses() {
    // 20 packets of BDP at 10 ms: 19 to 20 rounds are far less than 2 s.
    let mut pipe = flow(Link::new(23.2, 10, 100.0));
    let states = walk(&mut pipe, 4_000);
    let probes = states.iter().filter(|(state, _)| *state == State::Up).count();
    assert!((6..=20).contains(&probes), "{probes}");
}

#[test]
fn probe_rtt_comes_every_5_s_with_half_a_bdp() {
    let mut pipe = deep();
    let (mut times, mut least, mut last) = (Vec::new(), f64::INFINITY, State::Startup);
    for _ in 0..32 {
        // A path whose delay never changes shows its least round-trip time again and again.
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
    for pair in times.windows(2) {
        assert!((5.0..=5.7).contains(&(pair[1] - pair[0])), "{times:?}");
    }
    assert!((0.49..=0.52).contains(&least), "{least}");
}

#[test]
fn probe_rtt_lasts_200_ms_and_a_round_and_is_followed_by_cruise() {
    let mut pipe = deep();
    let states = walk(&mut pipe, 14_000);
    let at = states.iter().position(|(state, _)| *state == State::ProbeRtt).expect("ProbeRTT");
    assert_eq!(states[at + 1].0, State::Cruise);
    let lasted = states[at + 1].1 - states[at].1;
    assert!((0.2..=0.5).contains(&lasted), "{lasted}");
}

#[test]
fn probe_rtt_during_a_recovery_keeps_the_window_from_before_it() {
    let mut pipe = deep();
    pipe.run(Span::from_secs(4), |_| ());
    let before = pipe.algorithm.frame.window.get();
    pipe.algorithm.frame.window.save(false);
    pipe.algorithm.frame.window.set(before / 2.0);
    pipe.path.now += Span::from_secs(6);
    pipe.algorithm.on_ack(&pipe.path, &Ack::default());
    assert_eq!(pipe.algorithm.frame.state, State::ProbeRtt);
    assert_eq!(pipe.algorithm.frame.window.prior(), before);
}

#[test]
fn a_deep_queue_is_kept_short_and_the_link_busy() {
    let mut pipe = deep();
    pipe.run_ms(4_000);
    let (mut queued, mut acks) = (0.0, 0.0);
    let before = pipe.path.delivered;
    pipe.run(Span::from_secs(20), |pipe| {
        queued += pipe.queued();
        acks += 1.0;
    });
    let bytes = (pipe.path.delivered - before) as f64 * pipe.algorithm.frame.scale.mss;
    let share = bytes / pipe.link.rate.bytes_in(Span::from_secs(20));
    assert!(share > 0.95, "{share}");
    assert!(queued / acks < 0.15 * pipe.link.bdp(), "{}", queued / acks);
    assert_eq!(pipe.dropped, 0);
}

#[test]
fn a_shallow_queue_is_respected_and_the_link_busy() {
    let mut pipe = shallow();
    pipe.run_ms(3_000);
    let (dropped, sent) = (pipe.dropped, pipe.path.next_seq);
    let share = share(&mut pipe, 20);
    let loss = (pipe.dropped - dropped) as f64 / (pipe.path.next_seq - sent) as f64;
    assert!(share > 0.85, "{share}");
    assert!(loss < 0.01, "{loss}");
    assert!(pipe.inspect("inflight_hi") <= pipe.link.bdp() + 40.0);
}

#[test]
fn cruise_leaves_15_percent_of_what_is_safe_to_others() {
    let mut pipe = shallow();
    pipe.run_ms(3_000);
    run_until(&mut pipe, State::Cruise);
    pipe.run_ms(5);
    let (cwnd, hi) = (pipe.algorithm.frame.window.get(), pipe.inspect("inflight_hi"));
    assert!(cwnd <= hi - (0.15 * hi).floor(), "{cwnd} of {hi}");
}

#[test]
fn one_percent_of_random_loss_does_not_starve_the_flow() {
    let mut link = Link::new(50.0, 40, 200.0);
    link.loses = |seq| seq % 100 == 99;
    let mut pipe = flow(link);
    pipe.run_ms(5_000);
    let share = share(&mut pipe, 20);
    assert!(share > 0.8, "{share}");
}

/// A flow in UP, and the loss of a packet sent with `in_flight` packets in flight, since when `lost`
/// packets were lost.
fn lose_in_up(mut pipe: TestPath<BoundedBbr>, in_flight: u32, lost: u64) -> TestPath<BoundedBbr> {
    run_until(&mut pipe, State::Up);
    assert!(pipe.inspect("inflight_hi").is_infinite());
    let send_state = SendState {
        sent_at: pipe.path.now,
        delivered: pipe.path.delivered,
        lost: pipe.path.lost as u32,
        marked: pipe.path.marked as u32,
        in_flight,
        app_limited: false,
    };
    pipe.path.lost += lost;
    let event = CongestionEvent {
        signal: Signal::Loss,
        new_episode: true,
        packets: 1,
        seq: 0,
        send_state: Some(send_state),
    };
    pipe.algorithm.on_congestion(&pipe.path, &event);
    pipe
}

#[test]
fn a_probe_that_loses_more_than_2_percent_sets_the_bound_to_what_was_in_flight_then() {
    let pipe = lose_in_up(deep(), 1000, 30);
    // 29 losses before it are more than 2 % of 999.
    assert_eq!(pipe.inspect("inflight_hi"), 999.0);
    assert_eq!(pipe.algorithm.frame.state, State::Down);
}

#[test]
fn the_bound_is_never_less_than_70_percent_of_the_target() {
    let pipe = lose_in_up(deep(), 100, 10);
    let target = pipe.algorithm.rules.target_inflight(&pipe.algorithm.frame);
    let hi = pipe.inspect("inflight_hi");
    // The target of UP, when it was judged, had 2 packets more.
    assert!((hi / target - 0.7).abs() < 0.005, "{hi} of {target}");
}

#[test]
fn a_probe_that_loses_2_percent_goes_on() {
    let pipe = lose_in_up(deep(), 1000, 20);
    assert!(pipe.inspect("inflight_hi").is_infinite());
    assert_eq!(pipe.algorithm.frame.state, State::Up);
}

#[test]
fn a_probe_is_judged_once() {
    let mut pipe = lose_in_up(deep(), 1000, 30);
    let send_state = SendState { in_flight: 900, ..SendState::default() };
    let event = CongestionEvent {
        signal: Signal::Loss,
        new_episode: false,
        packets: 1,
        seq: 0,
        send_state: Some(send_state),
    };
    pipe.algorithm.on_congestion(&pipe.path, &event);
    assert_eq!(pipe.inspect("inflight_hi"), 999.0);
}

#[test]
fn a_probe_raises_the_bound_only_while_the_window_is_full() {
    let raised = |full: bool| {
        let mut pipe = shallow();
        let came = pipe.run_until(Span::from_secs(60), |pipe| {
            let Bbr { frame, rules } = &pipe.algorithm;
            frame.state == State::Up && frame.window.get() >= rules.bounds.inflight_hi()
        });
        assert!(came, "no probe came to the bound");
        let before = pipe.inspect("inflight_hi");
        pipe.path.window_full = full;
        let rate = RateSample { delivered: 1, ..RateSample::default() };
        let ack = Ack { delivered: 1000, rate: Some(rate), ..Ack::default() };
        pipe.algorithm.on_ack(&pipe.path, &ack);
        pipe.inspect("inflight_hi") - before
    };
    assert_eq!(raised(false), 0.0);
    assert!(raised(true) > 0.0);
}

#[test]
fn a_spurious_loss_lifts_the_bound_and_probes_again() {
    let mut pipe = lose_in_up(deep(), 1000, 30);
    pipe.algorithm.on_spurious_loss(&pipe.path);
    assert!(pipe.inspect("inflight_hi").is_infinite());
    assert_eq!(pipe.algorithm.frame.state, State::Refill);
}

#[test]
fn a_spurious_end_of_startup_is_undone() {
    let mut pipe = flow(Link::new(50.0, 40, 10.0));
    run_until(&mut pipe, State::Drain);
    let path = pipe.path.clone();
    pipe.algorithm.on_spurious_loss(&path);
    assert_eq!(pipe.algorithm.frame.state, State::Startup);
    assert_eq!(pipe.inspect("full_bw_reached"), 0.0);
    assert!(pipe.inspect("inflight_hi").is_infinite());
}

#[test]
fn losses_in_cruise_lower_the_short_term_bounds_until_the_next_probe() {
    let mut pipe = deep();
    run_until(&mut pipe, State::Cruise);
    pipe.link.loses = |seq| seq % 20 == 19;
    pipe.run_ms(500);
    assert_eq!(pipe.algorithm.frame.state, State::Cruise);
    let max_bw = pipe.inspect("max_bw");
    let bw_lo = pipe.inspect("bw_lo");
    // What is delivered is at most 5 % less each round: no bound is lowered below that.
    assert!(bw_lo < 0.97 * max_bw && bw_lo > 0.7 * max_bw, "{bw_lo} of {max_bw}");
    assert!(pipe.inspect("inflight_lo") < 1.05 * pipe.link.bdp());
    pipe.link.loses = |_| false;
    run_until(&mut pipe, State::Refill);
    assert!(pipe.inspect("bw_lo").is_infinite() && pipe.inspect("inflight_lo").is_infinite());
}

#[test]
fn more_bandwidth_is_found_within_two_probes() {
    let mut pipe = flow(Link::new(20.0, 40, 400.0));
    pipe.run_ms(5_000);
    pipe.link.rate = pipe.link.rate * 1.5;
    pipe.run_ms(7_000);
    let found = pipe.inspect("max_bw") / pipe.link.rate.bytes_per_sec();
    assert!(found > 0.95, "{found}");
}

#[test]
fn less_bandwidth_is_believed_after_two_cycles() {
    let mut pipe = deep();
    pipe.run_ms(5_000);
    pipe.link.rate = pipe.link.rate * 0.5;
    pipe.run_ms(15_000);
    let share = pipe.inspect("max_bw") / pipe.link.rate.bytes_per_sec();
    assert!((0.98..=1.02).contains(&share), "{share}");
}

#[test]
fn on_a_short_path_marks_bound_what_is_in_flight() {
    let bound = |ecn: &str| {
        let text = format!("bbr3(ecn={ecn})");
        let mut options: Options = text.parse().expect("well formed");
        let bbr = BoundedBbr::from_options(V3, &mut options, &init(1)).expect("valid");
        let mut link = Link::new(1000.0, 2, 2000.0);
        link.mark_above = Some(20.0);
        let mut pipe = TestPath::new(bbr, link);
        pipe.run_ms(5_000);
        pipe.inspect("inflight_hi")
    };
    // 173 packets are under way at 1 Gbit/s and 2 ms; a flight of which half is marked is too much.
    let with = bound("on");
    assert!((173.0 + 20.0..=1.25 * 173.0).contains(&with), "{with}");
    assert!(bound("off").is_infinite());
}

#[test]
fn a_timeout_leaves_one_packet_and_the_window_returns() {
    let mut pipe = deep();
    run_until(&mut pipe, State::Cruise);
    pipe.run_ms(200);
    let before = pipe.algorithm.frame.window.get();
    pipe.time_out();
    assert_eq!(pipe.algorithm.control().cwnd, 1.0);
    assert_eq!(pipe.inspect("inflight_lo"), before);
    pipe.run_ms(150);
    pipe.path.ca_state = CaState::Open;
    run_until(&mut pipe, State::Up);
    assert!(pipe.algorithm.frame.window.get() > 0.9 * before);
}

#[test]
fn an_idle_flow_comes_back_at_the_bandwidth_it_had() {
    let mut pipe = deep();
    run_until(&mut pipe, State::Cruise);
    let bw = pipe.inspect("bw");
    pipe.sending = false;
    pipe.run_ms(7_000);
    pipe.sending = true;
    pipe.run_ms(50);
    assert!(pipe.algorithm.frame.idle_restart);
    let rate = pipe.algorithm.frame.pacing.rate().bytes_per_sec();
    assert!((rate / bw - 0.99).abs() < 1e-9);
    pipe.run_ms(200);
    assert!(!pipe.algorithm.frame.idle_restart);
    assert_ne!(pipe.algorithm.frame.state, State::ProbeRtt);
}

#[test]
fn equal_seeds_give_equal_runs_and_other_seeds_other_probes() {
    let run = |seed| {
        let mut pipe =
            TestPath::new(BoundedBbr::new(V3, &init(seed)), Link::new(100.0, 100, 3456.0));
        pipe.run_ms(5_000);
        (pipe.algorithm.rules.probe_bw, pipe.path.delivered)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn options_change_what_they_name_and_refuse_what_cannot_be() {
    let make = |text: &str| crate::Algorithm::parse(text, &init(1)).map(drop);
    assert!(make("bbr3(loss_thresh=0.02, headroom=0.15, ecn=on, drain_gain=0.35)").is_ok());
    assert!(make("bbr3(beta=0.8, down_gain=0.91, probe_rtt_interval=10, probe_wait=5)").is_ok());
    for text in ["bbr3(loss_thresh=1)", "bbr3(ecn=maybe)", "bbr3(probe_wait=0)", "bbr3(gain=1)"] {
        assert!(make(text).is_err(), "{text}");
    }
    let mut options: Options = "bbr3(probe_wait=5)".parse().expect("well formed");
    let bbr = BoundedBbr::from_options(V3, &mut options, &init(1)).expect("valid");
    assert_eq!(bbr.rules.probing, Probing { wait: Span::from_secs(5), ..V3.probing });
}

#[test]
fn an_algorithm_that_never_saw_an_acknowledgement_still_has_a_rate() {
    let bbr = BoundedBbr::new(V3, &init(1));
    let control = bbr.control();
    assert_eq!((control.cwnd, control.ssthresh), (10.0, f64::INFINITY));
    assert!(control.pacing_rate.is_some_and(|rate| rate.bytes_per_sec() > 0.0));
}
