//! The draft's functions one by one, on states set by hand.

use super::*;
use crate::RateSample;
use rand_xoshiro::rand_core::SeedableRng;

fn rate(bytes: f64) -> Rate {
    Rate::from_bytes_per_sec(bytes)
}

fn path() -> Path {
    Path::new(MSS, Time::ZERO)
}

/// In CRUISE, with 1000 bytes/s of `max_bw` and a window of 100 packets.
fn cruising() -> BbrV3 {
    let mut bbr = BbrV3::new(V3, &init(1));
    bbr.state = State::ProbeBwCruise;
    bbr.full_pipe.full_bw_reached = true;
    bbr.max_bw_filter.update(rate(1000.0));
    bbr.window.cwnd = 100.0;
    bbr
}

/// A round with losses or marks, in which `bw` and `inflight` were the latest.
fn adapt(bbr: &mut BbrV3, loss: bool, ecn: bool, bw: f64, inflight: f64) {
    (bbr.is_loss_in_round, bbr.ecn_in_round) = (loss, ecn);
    (bbr.bw_latest, bbr.inflight_latest) = (rate(bw), inflight);
    bbr.adapt_lower_bounds_from_congestion();
}

#[test]
fn a_round_of_losses_leaves_70_percent_of_the_short_term_model() {
    let mut bbr = cruising();
    adapt(&mut bbr, true, false, 10.0, 5.0);
    assert_eq!((bbr.bw_shortterm, bbr.inflight_shortterm), (rate(700.0), 70.0));
    adapt(&mut bbr, true, false, 10.0, 5.0);
    assert!((bbr.bw_shortterm.bytes_per_sec() - 490.0).abs() < 1e-9);
    assert_eq!(bbr.inflight_shortterm, 49.0);
}

#[test]
fn losses_do_not_lower_the_model_below_what_was_delivered() {
    let mut bbr = cruising();
    adapt(&mut bbr, true, false, 950.0, 97.0);
    assert_eq!((bbr.bw_shortterm, bbr.inflight_shortterm), (rate(950.0), 97.0));
}

#[test]
fn marks_lower_the_volume_but_not_the_bandwidth() {
    let mut bbr = cruising();
    adapt(&mut bbr, false, true, 950.0, 97.0);
    // ecn_alpha begins at 1, so that a third is cut.
    assert_eq!((bbr.bw_shortterm, bbr.inflight_shortterm), (UNBOUNDED, 66.0));
}

#[test]
fn neither_a_calm_round_nor_a_probe_sets_the_short_term_model() {
    for (state, loss) in
        [(State::ProbeBwCruise, false), (State::ProbeBwUp, true), (State::Startup, true)]
    {
        let mut bbr = cruising();
        bbr.state = state;
        adapt(&mut bbr, loss, false, 10.0, 5.0);
        assert_eq!((bbr.bw_shortterm, bbr.inflight_shortterm), (UNBOUNDED, f64::INFINITY));
    }
}

#[test]
fn headroom_is_15_percent_and_at_least_a_packet() {
    let mut bbr = cruising();
    for (longterm, rest) in [(f64::INFINITY, f64::INFINITY), (100.0, 85.0), (6.0, 5.0), (4.0, 4.0)]
    {
        bbr.inflight_longterm = longterm;
        assert_eq!(bbr.inflight_with_headroom(), rest);
    }
}

#[test]
fn losses_cross_2_percent_of_200_packets_with_the_fifth() {
    // 4 of 199 is 2.01 %, so all of the crossing lies before the fifth packet.
    assert_eq!(loss::inflight_at_loss(200.0, 5.0, 0.02), 199.0);
    // None lost before: x / (100 + x) = 2 % for x = 2.04.
    assert!((loss::inflight_at_loss(101.0, 1.0, 0.02) - 102.04).abs() < 0.01);
}

#[test]
fn inflight_longterm_may_be_below_4_packets_but_the_window_is_not() {
    let mut bbr = cruising();
    bbr.window.cwnd = 4.0;
    bbr.handle_inflight_too_high(&path(), 3.0, false);
    bbr.bound_cwnd_for_model();
    assert_eq!((bbr.inflight_longterm, bbr.window.cwnd), (3.0, 4.0));
}

#[test]
fn a_spurious_recovery_restores_the_window_and_the_bounds() {
    let mut bbr = cruising();
    bbr.save_state_upon_loss();
    adapt(&mut bbr, true, false, 10.0, 5.0);
    bbr.inflight_longterm = 50.0;
    bbr.window.set(20.0);
    bbr.handle_spurious_loss_detection(&path());
    assert_eq!((bbr.bw_shortterm, bbr.inflight_shortterm), (UNBOUNDED, f64::INFINITY));
    assert_eq!((bbr.inflight_longterm, bbr.window.cwnd), (f64::INFINITY, 100.0));
}

/// An acknowledgement of a packet before whose sending `prior_delivered` packets were delivered.
fn ack(prior_delivered: u64, delivered: u32, bytes_per_sec: f64) -> Ack {
    let send_state = SendState { delivered: prior_delivered, ..SendState::default() };
    let sample =
        RateSample { delivered, rate: rate(bytes_per_sec), send_state, ..RateSample::default() };
    Ack { delivered: 1, rate: Some(sample), ..Ack::default() }
}

/// UpdateLatestDeliverySignals and its counterpart, with `delivered` packets delivered so far.
fn deliver(bbr: &mut BbrV3, delivered: u64, ack: &Ack) -> (f64, f64) {
    let path = Path { delivered, ..path() };
    bbr.update_latest_delivery_signals(&path, ack);
    let latest = (bbr.bw_latest.bytes_per_sec(), bbr.inflight_latest);
    bbr.advance_latest_delivery_signals(ack);
    latest
}

#[test]
fn the_latest_rate_and_volume_are_maxima_over_one_round() {
    let mut bbr = cruising();
    assert_eq!(deliver(&mut bbr, 10, &ack(0, 10, 100.0)), (100.0, 10.0));
    assert_eq!(deliver(&mut bbr, 10, &ack(3, 12, 90.0)), (100.0, 12.0));
    assert_eq!(deliver(&mut bbr, 10, &ack(4, 8, 120.0)), (120.0, 12.0));
    assert_eq!(deliver(&mut bbr, 20, &ack(10, 9, 80.0)), (120.0, 12.0), "it counts to the end");
    assert_eq!((bbr.bw_latest, bbr.inflight_latest), (rate(80.0), 9.0));
}

#[test]
fn a_loss_round_begins_with_the_first_loss() {
    let mut bbr = cruising();
    let lose = |bbr: &mut BbrV3, delivered| {
        let lost = CongestionEvent::loss().with_new_episode(false);
        bbr.handle_lost_packet(&Path { delivered, ..path() }, &lost);
    };
    deliver(&mut bbr, 100, &ack(0, 1, 1.0));
    lose(&mut bbr, 150);
    lose(&mut bbr, 170);
    deliver(&mut bbr, 250, &ack(149, 1, 1.0));
    assert!(!bbr.loss_round_start);
    deliver(&mut bbr, 251, &ack(150, 1, 1.0));
    assert!(bbr.loss_round_start);
}

/// Acknowledgements of one loss round of recovery in Startup, each with so many losses; the last one
/// ends the round.
fn startup_losses(version: Version, losses: &[u32]) -> BbrV3 {
    let mut bbr = BbrV3::new(version, &init(1));
    let mut path = Path { ca_state: CaState::Recovery, ..path() };
    for (i, &lost) in losses.iter().enumerate() {
        path.lost += u64::from(lost);
        bbr.loss_round_start = i + 1 == losses.len();
        let send_state = SendState { in_flight: 100, ..SendState::default() };
        let sample = RateSample { lost: path.lost as u32, send_state, ..RateSample::default() };
        let ack = Ack { delivered: 1, lost, rate: Some(sample), ..Ack::default() };
        bbr.check_startup_high_loss(&path, &ack);
    }
    bbr
}

#[test]
fn startup_counts_acknowledgements_with_losses_not_lost_packets() {
    assert!(startup_losses(V3, &[1; 6]).full_pipe.full_bw_reached);
    assert!(startup_losses(V3, &[1, 1, 0, 1, 1, 1, 0, 1]).full_pipe.full_bw_reached);
    assert!(!startup_losses(V3, &[1; 5]).full_pipe.full_bw_reached);
    assert!(!startup_losses(V3, &[20; 5]).full_pipe.full_bw_reached, "100 packets, but 5 times");
    assert!(!startup_losses(V2, &[1; 7]).full_pipe.full_bw_reached);
    assert!(startup_losses(V2, &[1; 8]).full_pipe.full_bw_reached);
}

#[test]
fn startup_does_not_end_on_2_percent_of_loss() {
    let mut bbr = BbrV3::new(V3, &init(1));
    (bbr.loss_round_start, bbr.loss_events_in_round) = (true, 9);
    let path = Path { ca_state: CaState::Recovery, ..path() };
    let send_state = SendState { in_flight: 500, ..SendState::default() };
    let ack = |lost| {
        let sample = RateSample { lost, send_state, ..RateSample::default() };
        Ack { rate: Some(sample), ..Ack::default() }
    };
    bbr.check_startup_high_loss(&path, &ack(10));
    assert!(!bbr.full_pipe.full_bw_reached);
    bbr.loss_events_in_round = 9;
    bbr.check_startup_high_loss(&path, &ack(11));
    assert!(bbr.full_pipe.full_bw_reached);
}

#[test]
fn drain_ends_with_a_bdp_in_flight_or_bbr3_after_three_rounds() {
    let is_over = |version: Version, in_flight, rounds| {
        let mut bbr = BbrV3::new(version, &init(1));
        bbr.state = State::Drain;
        bbr.pacing_gain = 0.35;
        bbr.pacing.pacing_rate = rate(1000.0);
        bbr.round.round_count = rounds;
        // 100 packets a second and no standing queue: the BDP is 10 packets.
        bbr.max_bw_filter.update(rate(100.0 * f64::from(MSS)));
        bbr.min_rtt.update_min_rtt(&path(), Some(Span::from_millis(100)));
        bbr.check_drain_done(&Path { in_flight, ..path() });
        bbr.state == State::ProbeBwDown
    };
    assert!(is_over(V3, 10, 0) && is_over(V2, 10, 0));
    assert!(!is_over(V3, 11, 3));
    assert!(is_over(V3, 11, 4));
    assert!(!is_over(V2, 11, 1000));
}

#[test]
fn probes_are_2_to_3_s_apart_at_random() {
    let mut waits = Vec::new();
    let mut bbr = cruising();
    bbr.random = SplitMix64::seed_from_u64(1);
    bbr.window.cwnd = 1e9;
    let at = |ms| Path { now: Time::ZERO + Span::from_millis(ms), ..path() };
    bbr.max_bw_filter.update(rate(1e9));
    bbr.min_rtt.update_min_rtt(&at(0), Some(Span::from_secs(1)));
    for _ in 0..1000 {
        bbr.start_probe_bw_down(&at(0));
        assert!(!bbr.is_time_to_probe_bw(&at(2000)));
        waits.push(bbr.bw_probe_wait.as_secs_f64());
        assert!(bbr.is_time_to_probe_bw(&at(3001)));
    }
    let mean = waits.iter().sum::<f64>() / 1000.0;
    assert!((mean - 2.5).abs() < 0.05, "{mean}");
    assert!(waits.iter().all(|wait| (2.0..3.0).contains(wait)));
}

#[test]
fn probes_follow_reno_but_are_at_most_63_rounds_apart() {
    for (cwnd, rounds) in [(20.0, 20), (1000.0, 63)] {
        let mut bbr = cruising();
        bbr.window.cwnd = cwnd;
        bbr.max_bw_filter.update(rate(1e9));
        bbr.min_rtt.update_min_rtt(&path(), Some(Span::from_secs(1)));
        bbr.start_probe_bw_down(&path());
        let mut waited = 0;
        while !bbr.is_time_to_probe_bw(&path()) {
            bbr.rounds_since_probe_up += 1;
            waited += 1;
        }
        assert!(waited == rounds || waited == rounds - 1, "{waited}");
    }
}

#[test]
fn inflight_longterm_grows_by_1_2_4_8_packets_a_round() {
    let mut bbr = cruising();
    (bbr.window.cwnd, bbr.inflight_longterm) = (64.0, 50.0);
    let path = Path { window_full: true, ..path() };
    bbr.start_probe_bw_refill(&path, 0);
    bbr.raise_inflight_longterm_slope();
    let grown = [(); 4].map(|()| {
        bbr.inflight_longterm = 50.0;
        for i in 0..64 {
            bbr.round.round_start = i == 63;
            bbr.probe_inflight_longterm_upward(&path, 1);
        }
        bbr.inflight_longterm - 50.0
    });
    assert_eq!(grown, [1.0, 2.0, 4.0, 8.0]);
}

#[test]
fn inflight_longterm_grows_by_acknowledgements_without_a_rate_sample_too() {
    let mut bbr = cruising();
    let path = Path { window_full: true, ..path() };
    bbr.state = State::ProbeBwUp;
    bbr.inflight_longterm = 50.0;
    bbr.raise_inflight_longterm_slope();
    bbr.adapt_long_term_model(&path, &Ack { delivered: 100, ..Ack::default() });
    assert_eq!(bbr.inflight_longterm, 51.0);
}

#[test]
fn the_feedback_of_a_probe_is_complete_a_round_after_it() {
    let mut bbr = cruising();
    bbr.state = State::ProbeBwUp;
    (bbr.ack_phase, bbr.is_bw_probe_sample) = (AckPhase::ProbeStarting, true);
    let acknowledge = |bbr: &mut BbrV3, round_start| {
        bbr.round.round_start = round_start;
        bbr.adapt_long_term_model(&path(), &ack(0, 1, 1.0));
        (bbr.ack_phase, bbr.is_bw_probe_sample)
    };
    assert_eq!(acknowledge(&mut bbr, false), (AckPhase::ProbeStarting, true));
    assert_eq!(acknowledge(&mut bbr, true), (AckPhase::ProbeFeedback, true));
    bbr.start_probe_bw_down(&path());
    assert_eq!(acknowledge(&mut bbr, false), (AckPhase::ProbeStopping, true));
    assert_eq!(acknowledge(&mut bbr, true), (AckPhase::Init, false));
}

#[test]
fn without_ack_phase_the_filter_of_max_bw_advances_when_down_begins() {
    for (ack_phase, after) in [(true, 1000.0), (false, 400.0)] {
        let mut bbr = BbrV3 { version: Version { ack_phase, ..V3 }, ..cruising() };
        bbr.max_bw_filter.advance();
        bbr.max_bw_filter.update(rate(400.0));
        assert_eq!(bbr.max_bw(), rate(1000.0));
        // Two cycles ago the path had more: this is over at once, or a round later.
        bbr.start_probe_bw_down(&path());
        assert_eq!(bbr.max_bw(), rate(after));
        bbr.round.round_start = true;
        bbr.adapt_long_term_model(&path(), &ack(0, 1, 1.0));
        assert_eq!(bbr.max_bw(), rate(400.0));
    }
}

#[test]
fn after_a_change_of_the_mss_every_volume_has_as_many_bytes_as_before() {
    let mut bbr = cruising();
    bbr.max_bw_filter.update(rate(1e6));
    bbr.min_rtt.update_min_rtt(&path(), Some(Span::from_millis(100)));
    (bbr.inflight_longterm, bbr.inflight_latest) = (60.0, 50.0);
    let path = |mss| Path::new(mss, Time::ZERO);
    assert_eq!(bbr.bdp_multiple(&path(1000), bbr.bw(), 1.0), 100.0);
    bbr.on_mtu_update(&path(500), 1000);
    assert_eq!(bbr.bdp_multiple(&path(500), bbr.bw(), 1.0), 200.0);
    assert_eq!(
        (bbr.window.cwnd, bbr.inflight_longterm, bbr.inflight_latest),
        (200.0, 120.0, 100.0)
    );
    assert_eq!(bbr.inflight_shortterm, f64::INFINITY);
}
