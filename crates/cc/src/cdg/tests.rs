use super::*;
use crate::test_path::{Link, TestPath, init};
use crate::{AnySlowStart, CongestionControl, Reno, Sent, StandardSlowStart, Windowed};

fn rule(text: &str) -> Cdg {
    let mut options = text.parse().expect("well formed");
    Cdg::from_options(&mut options, &init(1)).expect("within range")
}

fn cdg(text: &str, link: Link) -> TestPath<Windowed<Cdg, StandardSlowStart>> {
    TestPath::new(Windowed::new(rule(text), StandardSlowStart, &init(1)), link)
}

/// The table of `nexp_u32` in tcp_cdg.c: exp(-x) 65536 - 1 for x = 0.000256 times powers of 2.
#[test]
fn backoffs_are_as_likely_as_by_the_kernel_s_table() {
    let table = [
        65518, 65501, 65468, 65401, 65267, 65001, 64470, 63422, 61378, 57484, 50423, 38795, 22965,
        8047, 987, 14,
    ];
    let rule = rule("cdg(backoff_factor=1)");
    for (power, value) in table.into_iter().enumerate() {
        let ours = rule.no_backoff(256 << power) * 65536.0 - 1.0;
        assert!((ours - f64::from(value)).abs() <= 1.0, "{power}: {ours} for {value}");
    }
}

/// tcp_cdg_grad with minima of 10, 11, 12, 13 ms: each round adds 1000 us, and what is missing of
/// the window of 8 is extrapolated.
#[test]
fn the_gradient_is_the_sum_over_the_window() {
    let mut rule = rule("cdg");
    rule.rtt_prev = MinMax { min: 10_000, max: 20_000 };
    for round in 1..=12 {
        rule.rtt = MinMax { min: 10_000 + 1000 * round, max: 20_000 };
        assert_eq!(rule.gradient(), 8000, "round {round}");
        rule.rtt_prev = rule.rtt;
    }
    rule.rtt = MinMax { min: rule.rtt_prev.min - 9000, max: 21_000 };
    // 7 rounds of 1000 us and one of -9000: gmin is -2000, so gmax counts.
    assert_eq!(rule.gradient(), 1000);
}

#[test]
fn a_constant_gradient_backs_off_in_its_share_of_the_rounds() {
    let mut rule = rule("cdg(use_ineff=0)");
    let backoffs = (0..20_000).filter(|_| rule.backs_off(8000)).count();
    // 1 - exp(-8000 * 42e-6) = 28.5 %; four standard deviations are 1.3 %.
    assert!((backoffs as f64 / 20_000.0 - 0.2854).abs() < 0.013, "{backoffs}");
}

#[test]
fn ineffectual_backoffs_end_after_five() {
    let mut rule = rule("cdg");
    let backoffs = (0..1000).filter(|_| rule.backs_off(1_000_000)).count();
    assert_eq!(backoffs, 5);
    rule.rtt_prev = MinMax { min: 10_000, max: 20_000 };
    rule.rtt = MinMax { min: 9000, max: 19_000 };
    rule.gradient();
    assert!(rule.backs_off(1_000_000), "the delay fell by more than 32 us");
}

/// tcp_cdg_ssthresh: max3(2, shadow_wnd, cwnd >> 1) with shadow_wnd = min(shadow_wnd >> 1, cwnd).
#[test]
fn a_loss_after_backoffs_reduces_the_shadow_window() {
    let path = Path::new(1448, Time::ZERO);
    for (shadow, cwnd, expected) in [(100.0, 60.0, 50.0), (300.0, 60.0, 60.0), (60.0, 60.0, 30.0)] {
        let mut rule = rule("cdg");
        rule.shadow_wnd = shadow;
        assert_eq!(rule.decrease(cwnd, &path, &CongestionEvent::loss()), expected);
    }
}

/// A round trip has ended in which the delay rose by a second, after one of 10 ms: a backoff is certain.
fn after_a_steep_rise() -> Cdg {
    let mut rule = rule("cdg");
    rule.rtt_prev = MinMax { min: 10_000, max: 10_000 };
    rule.rtt = MinMax { min: 1_010_000, max: 1_010_000 };
    (rule.shadow_wnd, rule.last_cwnd) = (60.0, 50.0);
    rule
}

fn path_of(ca_state: CaState, una: u64) -> Path {
    Path { ca_state, una, next_seq: 50, cwnd_limited: true, ..Path::new(1448, Time::ZERO) }
}

/// tcp_cdg_backoff calls tcp_enter_cwr, which acts in Open and Disorder; tcp_cdg_ssthresh reads the state.
#[test]
fn a_backoff_in_the_recovery_after_a_timeout_waits_for_a_reduction() {
    let reduced = 50.0 * 724.0 / 1024.0;
    for (ca_state, window) in [
        (CaState::Open, (reduced, reduced)),
        (CaState::Disorder, (reduced, reduced)),
        (CaState::Loss, (50.0, 40.0)),
    ] {
        let mut rule = after_a_steep_rise();
        let path = path_of(ca_state, 1);
        assert_eq!(rule.set_window(50.0, 40.0, &path, &Ack::new(1)), Some(window));
        assert_eq!((rule.shadow_wnd, rule.state), (60.0, State::Backoff));
        let held = rule.set_window(50.0, 40.0, &path_of(CaState::Open, 2), &Ack::new(1));
        assert_eq!(held.is_some(), ca_state != CaState::Loss, "the next acknowledgement grows");
    }
    let mut rule = after_a_steep_rise();
    rule.set_window(50.0, 40.0, &path_of(CaState::Loss, 1), &Ack::new(1));
    assert_eq!(rule.decrease(50.0, &path_of(CaState::Open, 2), &CongestionEvent::loss()), reduced);
    assert_eq!(rule.shadow_wnd, 60.0);
}

/// CA_EVENT_COMPLETE_CWR, which begins a round, comes from tcp_end_cwnd_reduction.
#[test]
fn a_recovery_that_ends_early_is_not_completed() {
    let round_begins = |una, early: fn(&mut Cdg, &Path)| {
        let mut rule = after_a_steep_rise();
        let path = path_of(CaState::Recovery, 1);
        rule.decrease(50.0, &path, &CongestionEvent::loss());
        let path = path_of(CaState::Open, una);
        early(&mut rule, &path);
        rule.rtt_seq = una; // no round trip ends
        rule.set_window(50.0, 40.0, &path, &Ack::new(1));
        rule.rtt.is_none()
    };
    assert!(round_begins(50, |_, _| ()));
    assert!(round_begins(50, |rule, path| rule.on_undo(path)), "undone at its end");
    assert!(!round_begins(49, |rule, path| rule.on_undo(path)), "undone before");
    assert!(!round_begins(49, |rule, _| rule.on_timeout()));
}

/// tcp_cdg_cwnd_event: CA_EVENT_CWND_RESTART, not CA_EVENT_TX_START.
#[test]
fn a_pause_that_restarts_the_window_forgets_the_delays() {
    let mut rule = rule("cdg");
    rule.rtt_prev = MinMax { min: 10_000, max: 20_000 };
    rule.rtt = MinMax { min: 11_000, max: 20_000 };
    assert_eq!(rule.gradient(), 8000);
    rule.shadow_wnd = 90.0;
    let init = init(1).with_initial_window(60.0);
    let mut flow = Windowed::new(rule, StandardSlowStart, &init);
    let sent = Sent::new(0).with_from_idle(true).with_app_limited(true);
    flow.on_sent(&path_of(CaState::Open, 50), &sent);
    assert_eq!((flow.rule().gsum.min, flow.rule().shadow_wnd), (1000, 90.0), "a short pause");
    flow.on_restart_after_idle(10.0);
    assert_eq!((flow.rule().gsum.min, flow.rule().shadow_wnd), (0, 60.0));
    assert_eq!(flow.rule().gradients, [MinMax::default(); 8]);
}

#[test]
fn alone_it_keeps_the_queue_shorter_than_reno_and_the_link_busy() {
    let link = Link::new(20.0, 40, 200.0);
    let mut flow = cdg("cdg", link);
    let mut reno = TestPath::new(Windowed::new(Reno, AnySlowStart::STANDARD, &init(1)), link);
    let mut queued = [0.0; 2];
    flow.run_ms(10_000);
    reno.run_ms(10_000);
    let (before, mut samples) = (flow.path.delivered, [0.0; 2]);
    flow.run(Span::from_secs(40), |flow| {
        queued[0] += flow.queued();
        samples[0] += 1.0;
    });
    reno.run(Span::from_secs(40), |flow| {
        queued[1] += flow.queued();
        samples[1] += 1.0;
    });
    let (cdg, reno) = (queued[0] / samples[0], queued[1] / samples[1]);
    assert!(cdg < reno / 2.0, "{cdg} packets to {reno}");
    let mbit = (flow.path.delivered - before) as f64 * 1448.0 * 8.0 / 40e6;
    assert!(mbit > 15.0, "{mbit}");
}
