use super::*;
use crate::test_path::{Link, TestPath, init};
use crate::{Algorithm, RateSample};

fn c4(link: Link) -> TestPath<C4> {
    TestPath::new(C4::new(&init(1)), link)
}

fn other(name: &str, link: Link) -> TestPath<Algorithm> {
    TestPath::new(Algorithm::parse(name, &init(2)).expect("built in"), link)
}

/// What each of two flows carries in a minute after half a minute, as a part of the link's rate.
fn shares<A: CongestionControl, B: CongestionControl>(
    one: &mut TestPath<A>,
    two: &mut TestPath<B>,
) -> (f64, f64) {
    one.run_beside(two, Span::from_secs(30));
    let before = (one.path.delivered, two.path.delivered);
    one.run_beside(two, Span::from_secs(60));
    let packets = one.link.bdp() / one.link.rtt.as_secs_f64() * 60.0;
    let share = |delivered: u64, before: u64| (delivered - before) as f64 / packets;
    (share(one.path.delivered, before.0), share(two.path.delivered, before.1))
}

fn near(value: f64, expected: f64) {
    assert!((value / expected - 1.0).abs() < 1e-6, "{value} for {expected}");
}

/// A flow in Cruising with this nominal rate and max RTT.
fn cruising(rate: f64, rtt_ms: u64) -> C4 {
    let mut c4 = C4::new(&init(1));
    c4.nominal_rate = rate;
    c4.nominal_max_rtt = Span::from_millis(rtt_ms);
    c4.running_min_rtt = Span::from_millis(rtt_ms);
    c4.enter(State::Cruising, ALPHA_CRUISING, Time::ZERO);
    c4
}

fn path(ms: u64) -> Path {
    Path::new(1448, Time::ZERO + Span::from_millis(ms))
}

#[test]
fn the_sensitivity_has_the_corners_of_the_specification() {
    for (rate, expected) in [(5.25e5, 0.46), (1e6, 0.92), (5.5e6, 0.96), (1e7, 1.0), (1e9, 1.0)] {
        near(sensitivity(rate), expected);
    }
    assert_eq!(sensitivity(49_999.0), 0.0);
}

/// By hand, at both ends of the sensitivity.
#[test]
fn thresholds_fall_with_the_sensitivity() {
    let (slow, fast) = (cruising(4e4, 80), cruising(2e7, 80));
    assert_eq!(slow.delay_threshold(), Span::from_millis(20), "80 ms / 4");
    assert_eq!(fast.delay_threshold(), Span::from_millis(5), "80 ms / 16");
    assert_eq!(cruising(4e4, 200).delay_threshold(), Span::from_millis(25), "at most");
    near(slow.loss_threshold(), 0.52);
    near(fast.loss_threshold(), 0.02);
    near(slow.ecn_threshold(), 6.0 / 32.0);
    near(fast.ecn_threshold(), 3.0 / 32.0);
}

#[test]
fn rate_window_and_quantum_follow_from_alpha_and_the_margin() {
    let check = |c4: &C4, rate: f64, window: f64, quantum: u32| {
        let control = c4.control();
        near(control.pacing_rate.expect("a rate").bytes_per_sec(), rate);
        near(control.cwnd * 1448.0, window);
        assert_eq!(control.max_send_quantum, Some(quantum));
    };
    check(&cruising(1e6, 40), 1e6, 1e6 * 0.050, 2);
    check(&cruising(1e6, 100), 1e6, 1e6 * 0.115, 2);
    check(&cruising(5e6, 40), 5e6, 5e6 * 0.050, 13);
    check(&cruising(1e9, 40), 1e9, 1e9 * 0.050, 45);
    let mut pushing = cruising(1e6, 40);
    pushing.enter(State::Pushing, ALPHA_PUSHING, Time::ZERO);
    check(&pushing, 1.25e6, 1.25e6 * 0.050, 3);
}

#[test]
fn the_rate_falls_by_the_part_by_which_delay_exceeds_its_threshold() {
    // Threshold: 80 ms / 16. Excess: 1 ms of 5 ms; then 4 ms of 5 ms, which is more than 1/4.
    for (rtt_ms, beta) in [(86, 0.2), (89, 0.25)] {
        let mut c4 = cruising(2e7, 80);
        c4.on_ack(&path(10), &Ack::new(1).with_rtt(Some(Span::from_millis(rtt_ms))));
        near(c4.nominal_rate, (1.0 - beta) * 2e7);
        assert_eq!(c4.state, State::Recovery);
    }
}

#[test]
fn marks_reduce_by_their_excess_and_losses_by_a_quarter() {
    // The tenth packet is the first mark: a fraction of 1/9, which enters with 1/16.
    let mut c4 = cruising(2e7, 80);
    let mut marked = path(10);
    (marked.delivered, marked.marked) = (9, 1);
    c4.on_ack(&marked, &Ack::new(1).with_marked(1));
    near(c4.ecn_alpha, 1.0 / 144.0);
    assert_eq!(c4.state, State::Cruising);
    // All packets marked: 1 is above 3/32 by more than a quarter.
    (marked.delivered, marked.marked) = (19, 11);
    c4.on_ack(&marked, &Ack::new(10).with_marked(10));
    near(c4.nominal_rate, 0.75 * 2e7);
    let mut c4 = cruising(2e7, 80);
    c4.on_ack(&path(10), &Ack::new(1).with_lost(1));
    near(c4.nominal_rate, 0.75 * 2e7);
    assert_eq!(c4.nominal_max_rtt, Span::from_millis(60));
}

/// A loss enters with 1/16, which is the threshold at a sensitivity of 0.915, 8 Mbit/s.
#[test]
fn a_single_loss_is_congestion_only_above_8_megabits() {
    for (rate, is_congestion) in [(0.98e6, false), (1.0e6, true)] {
        let mut c4 = cruising(rate, 40);
        c4.on_ack(&path(10), &Ack::new(0).with_lost(1));
        assert_eq!(c4.state == State::Recovery, is_congestion, "{rate}");
    }
}

#[test]
fn congestion_in_a_probe_leaves_the_nominal_rate() {
    let mut c4 = cruising(2e7, 80);
    c4.enter(State::Probing, ALPHA_PROBING, Time::ZERO);
    c4.on_ack(&path(10), &Ack::new(1).with_rtt(Some(Span::from_millis(200))));
    assert_eq!((c4.state, c4.nominal_rate), (State::Recovery, 2e7));
}

#[test]
fn the_max_rtt_rises_at_once_and_falls_by_an_eighth() {
    let mut c4 = cruising(1e6, 80);
    c4.alpha_previous = 1.0;
    for (rtts, nominal, running) in [([40, 96], 96, 40), ([48, 64], 92, 41), ([40, 900], 290, 40)] {
        (c4.era.min_rtt, c4.era.max_rtt) =
            (Some(Span::from_millis(rtts[0])), Span::from_millis(rtts[1]));
        c4.update_max_rtt();
        assert_eq!(c4.nominal_max_rtt, Span::from_millis(nominal));
        assert_eq!(c4.running_min_rtt, Span::from_millis(running));
    }
}

/// An era in which the maximum rate is this, at 10 ms intervals.
fn era(c4: &mut C4, ms: &mut u64, rate: f64) {
    *ms += 10;
    let path = path(*ms);
    let mut sample = RateSample { rate: Rate::from_bytes_per_sec(rate), ..RateSample::default() };
    sample.send_state.sent_at = path.now;
    let ack = Ack::new(1).with_rtt(Some(Span::from_millis(80))).with_rate(Some(sample));
    c4.on_ack(&path, &ack);
}

#[test]
fn a_probe_that_finds_more_is_followed_by_pushing_and_initial() {
    let mut c4 = cruising(2e7, 80);
    c4.rate_before = 2e7;
    let mut states = Vec::new();
    let mut ms = 0;
    for rate in [2e7, 2e7, 2e7, 2.1e7, 2.1e7, 2.6e7, 3.2e7] {
        era(&mut c4, &mut ms, rate);
        states.push(c4.state);
    }
    use State::{Cruising, Initial, Probing, Pushing, Recovery};
    assert_eq!(states, [Cruising, Probing, Recovery, Pushing, Pushing, Pushing, Initial]);
}

#[test]
fn a_probe_that_finds_nothing_trims_the_rate() {
    let mut c4 = cruising(2e7, 80);
    c4.rate_before = 2e7;
    let mut ms = 0;
    for rate in [1.8e7; 4] {
        era(&mut c4, &mut ms, rate);
    }
    assert_eq!((c4.state, c4.nominal_rate), (State::Cruising, 1.9e7));
}

#[test]
fn initial_ends_after_three_eras_without_more_rate() {
    let mut c4 = C4::new(&init(1));
    let mut ms = 0;
    for rate in [1e6, 2e6, 2.4e6, 2.4e6] {
        era(&mut c4, &mut ms, rate);
        assert_eq!(c4.state, State::Initial);
    }
    let window = c4.cwnd();
    era(&mut c4, &mut ms, 2.4e6);
    assert_eq!(c4.state, State::Recovery);
    // The last packet is acknowledged in an era with two before it: 1/64 of it counts.
    near(c4.nominal_max_rtt.as_secs_f64() * 2.4e6, window.max(2.0 * 2.4e6 * 0.08) / 2.0);
}

/// The queue stays within the delay threshold, with one round trip to react.
#[test]
fn a_flow_fills_the_link_and_keeps_its_delay_below_the_threshold() {
    for (mbit, rtt, least) in [(20.0, 40, 0.99), (5.0, 100, 0.99), (100.0, 20, 0.85)] {
        let link = Link::new(mbit, rtt, 1.0);
        let link = Link { queue: link.bdp(), ..link };
        let mut flow = c4(link);
        flow.run_ms(10_000);
        let (before, dropped, mut most) = (flow.path.delivered, flow.dropped, 0.0f64);
        flow.run(Span::from_secs(50), |flow| {
            let rtt = flow.link.rtt.as_secs_f64() * (1.0 + flow.queued() / flow.link.bdp());
            let limit = flow.algorithm.nominal_max_rtt + flow.algorithm.delay_threshold();
            most = most.max(rtt / limit.as_secs_f64());
        });
        let packets = (flow.path.delivered - before) as f64 / 50.0;
        let share = packets * link.rtt.as_secs_f64() / link.bdp();
        assert!(share > least, "{mbit} Mbit/s: {share}");
        assert!(most < 1.1, "{mbit} Mbit/s: {most} times the limit");
        assert_eq!(flow.dropped, dropped);
    }
}

#[test]
fn flows_share_a_link_even_if_one_comes_late() {
    for (mbit, rtt) in [(20.0, 40), (5.0, 100), (100.0, 20)] {
        let link = Link::new(mbit, rtt, 1.0);
        let link = Link { queue: link.bdp(), ..link };
        let (mut one, mut two) = (c4(link), c4(link));
        two.sending = false;
        one.run_beside(&mut two, Span::from_secs(20));
        two.sending = true;
        let (one, two) = shares(&mut one, &mut two);
        assert!((0.75..1.33).contains(&(one / two)) && one + two > 0.9, "{one}, {two}");
    }
}

/// The design draft's aim; on slow links it takes more.
#[test]
fn beside_cubic_it_has_about_half_of_a_link_of_20_megabits() {
    let link = Link::new(20.0, 40, 70.0);
    let (c4, cubic) = shares(&mut c4(link), &mut other("cubic", link));
    assert!((0.4..0.6).contains(&c4) && cubic > 0.4, "{c4}, {cubic}");
}

#[test]
fn random_losses_leave_a_slow_link_full() {
    let loses = |seq: u64| (seq.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % 1000 < 20;
    let mut flow = c4(Link { loses, ..Link::new(5.0, 100, 40.0) });
    flow.run_ms(60_000);
    let share = flow.path.delivered as f64 / 60.0 * 0.1 / flow.link.bdp();
    assert!(share > 0.95, "2 % of losses leave {share}");
}
