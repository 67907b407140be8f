use super::*;
use crate::Algorithm;
use crate::test_path::{Link, TestPath, init};
use dumbbell_units::Span;

fn proteus(text: &str) -> Proteus {
    Proteus::from_options(&mut text.parse().expect("well formed")).expect("within range")
}

/// Round-trip times with this slope and a standard deviation of about `sigma`, at 0, 1, 2, ... ms.
fn rtts(slope: f64, sigma: f64) -> Slope {
    let mut rtts = Slope::default();
    for n in 0..40u32 {
        let x = f64::from(n) / 1e3;
        let noise = if n % 2 == 0 { sigma } else { -sigma };
        rtts.add(x, 0.04 + slope * (x - 0.0195) + noise);
    }
    rtts
}

/// By hand: 10^0.9 of 7.943, 900 x 10 x 0.1 and 11.35 x 10 x 0.02; 1500 x 10 x sigma, which is that of a
/// line: 0.1 x sqrt((40^2 - 1) / 12) ms.
#[test]
fn utilities_are_those_of_the_paper() {
    let line = rtts(0.1, 0.0);
    let primary = 10f64.powf(0.9) - 900.0 - 2.27;
    let sigma = 1e-4 * (1599.0f64 / 12.0).sqrt();
    let near = |value: f64, expected: f64| {
        assert!((value - expected).abs() < 1e-6, "{value} for {expected}");
    };
    near(proteus("proteus").utility(10.0, &line, 0.02), primary);
    let scavenger = primary - 1500.0 * 10.0 * sigma;
    near(proteus("proteus(mode=scavenger)").utility(10.0, &line, 0.02), scavenger);
    near(proteus("proteus(mode=hybrid, threshold=10)").utility(10.0, &line, 0.02), scavenger);
    near(proteus("proteus(mode=hybrid, threshold=11)").utility(10.0, &line, 0.02), primary);
    // A falling round-trip time is no gain.
    near(proteus("proteus").utility(10.0, &rtts(-0.1, 0.0), 0.0), 10f64.powf(0.9));
}

#[test]
fn a_slope_below_the_error_of_its_regression_is_noise() {
    // 2 ms of 40 ms are 5 %.
    assert_eq!(proteus("proteus").without_noise(&rtts(0.03, 0.002)), (0.0, 0.0));
    let (gradient, sigma) = proteus("proteus").without_noise(&rtts(0.2, 0.002));
    assert!((gradient - 0.2).abs() < 0.02 && sigma > 0.002, "{gradient}, {sigma}");
}

#[test]
fn a_deviation_beyond_its_usual_is_no_noise() {
    let mut proteus = proteus("proteus(mode=scavenger)");
    for _ in 0..20 {
        assert_eq!(proteus.without_noise(&rtts(0.0, 0.0005)).1, 0.0);
    }
    let (_, sigma) = proteus.without_noise(&rtts(0.0, 0.003));
    assert!((sigma - 0.003).abs() < 1e-4, "{sigma}");
}

#[test]
fn an_increase_needs_a_majority_of_pairs_and_a_decrease_all() {
    assert_eq!(Proteus::decide(&[0.25, 0.5, -0.9]), Some(0.75 / 3.0));
    assert_eq!(Proteus::decide(&[0.3, -0.6, -0.9]), None);
    let down = Proteus::decide(&[-0.3, -0.6, -0.9]).expect("decided");
    assert!((down + 0.6).abs() < 1e-12);
    // Both pairs of a scavenger.
    assert_eq!(Proteus::decide(&[0.5, 0.75]), Some(1.25 / 2.0));
    assert_eq!(Proteus::decide(&[0.4, -0.8]), None);
    assert_eq!(Proteus::decide(&[-0.5, -0.75]), Some(-1.25 / 2.0));
}

/// PccVivaceSender::EnterProbing and GetNumIntervalGroupsInProbing.
#[test]
fn a_hybrid_flow_decides_as_a_scavenger_if_its_higher_rate_is_above() {
    let pairs = |mode: &str, rate| proteus(&format!("proteus({mode})")).pairs(rate);
    let rates = [9.9, 10.1];
    assert_eq!(rates.map(|rate| pairs("mode=hybrid, threshold=10.5", rate)), [3, 2]);
    assert_eq!(rates.map(|rate| pairs("mode=scavenger", rate)), [2, 2]);
    assert_eq!(rates.map(|rate| pairs("mode=primary", rate)), [3, 3]);
}

fn flow(name: &str, link: Link) -> TestPath<Algorithm> {
    TestPath::new(Algorithm::parse(name, &init(1)).expect("built in"), link)
}

/// The paper's bottleneck: 50 Mbit/s, 30 ms, with a queue of so many BDP.
fn bottleneck(queue: f64) -> Link {
    let link = Link::new(50.0, 30, 1.0);
    Link { queue: queue * link.bdp(), ..link }
}

/// The shares of the link of a flow that comes 5 s after another one, from 60 s to 120 s.
fn shares(late: &str, early: &str, link: Link) -> (f64, f64) {
    let (mut late, mut early) = (flow(late, link), flow(early, link));
    late.sending = false;
    late.run_beside(&mut early, Span::from_secs(5));
    late.sending = true;
    late.run_beside(&mut early, Span::from_secs(55));
    let before = (late.path.delivered, early.path.delivered);
    late.run_beside(&mut early, Span::from_secs(60));
    let share = |delivered: u64| delivered as f64 / 60.0 * link.rtt.as_secs_f64() / link.bdp();
    (share(late.path.delivered - before.0), share(early.path.delivered - before.1))
}

#[test]
fn a_flow_alone_fills_the_link_with_hardly_a_queue() {
    for mode in ["primary", "scavenger"] {
        let link = bottleneck(1.0);
        let mut flow = flow(&format!("proteus(mode={mode})"), link);
        flow.run_ms(20_000);
        let before = flow.path.delivered;
        let (mut sum, mut count) = (0.0, 0.0);
        flow.run(Span::from_secs(40), |flow| (sum, count) = (sum + flow.queued(), count + 1.0));
        let packets = (flow.path.delivered - before) as f64 / 40.0;
        let share = packets * link.rtt.as_secs_f64() / link.bdp();
        assert!(share > 0.9, "{mode}: {share}");
        assert!(sum / count < 0.1 * link.bdp(), "{mode}: {} packets wait", sum / count);
    }
}

#[test]
fn a_scavenger_yields_to_cubic_and_bbr_and_mostly_to_copa() {
    for (other, most) in [("cubic", 0.1), ("bbr", 0.1), ("copa", 0.25)] {
        let (scavenger, primary) = shares("proteus(mode=scavenger)", other, bottleneck(1.0));
        assert!(scavenger < most && primary > 0.95 - most, "{other}: {scavenger}, {primary}");
    }
}

#[test]
fn two_primary_flows_share_and_a_primary_flow_beside_cubic_keeps_some() {
    let (late, early) = shares("proteus", "proteus", bottleneck(1.0));
    assert!((0.75..1.33).contains(&(late / early)) && late + early > 0.9, "{late}, {early}");
    let (primary, _) = shares("proteus", "cubic", bottleneck(1.0));
    let (scavenger, _) = shares("proteus(mode=scavenger)", "cubic", bottleneck(1.0));
    assert!(primary > 2.0 * scavenger, "{primary}, {scavenger}");
}

/// Less than in the paper: without jitter, a primary flow's queue hardly varies.
#[test]
fn a_scavenger_has_less_than_a_primary_flow() {
    let (scavenger, primary) = shares("proteus(mode=scavenger)", "proteus", bottleneck(1.0));
    assert!(scavenger < 0.75 * primary && scavenger + primary > 0.9, "{scavenger}, {primary}");
}
