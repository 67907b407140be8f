use super::*;
use crate::test_path::{Link, TestPath, init};

fn vivace(link: Link) -> TestPath<Vivace> {
    let options = &mut "vivace".parse().expect("well formed");
    TestPath::new(Vivace::from_options(options, &init(1)).expect("no options"), link)
}

/// The mean rate over some seconds, as a part of the link's.
fn carried(flow: &mut TestPath<Vivace>, seconds: u64) -> f64 {
    let before = flow.path.delivered;
    flow.run_ms(1000 * seconds);
    let packets = (flow.path.delivered - before) as f64 / seconds as f64;
    packets * flow.link.rtt.as_secs_f64() / flow.link.bdp()
}

#[test]
fn a_hundred_megabits_bear_five_percent_of_random_losses() {
    // Section 3: c is chosen so. The derivative of u by x is 0 there.
    let slope = |loss| utility(100.5, 0.0, loss) - utility(99.5, 0.0, loss);
    assert!(slope(0.0498) > 0.0 && slope(0.0502) < 0.0);
}

#[test]
fn a_slope_is_that_of_least_squares_and_small_ones_are_noise() {
    let mut slope = Slope::default();
    for (x, y) in [(0.0, 1.0), (1.0, 3.0), (2.0, 2.0), (3.0, 5.0)] {
        slope.add(x, y);
    }
    // By hand: (4 * 22 - 6 * 11) / (4 * 14 - 36).
    assert!((slope.get() - 1.1).abs() < 1e-12);
    assert_eq!(utility(1.0, 0.009, 0.0), utility(1.0, -0.009, 0.0));
    assert_eq!(utility(1.0, 0.02, 0.0), 1.0 - 18.0);
}

/// By hand from section 4.2, with gradients of one rate in a row.
#[test]
fn steps_are_amplified_and_bounded_as_in_the_paper() {
    let mut flow = vivace(Link::new(10.0, 50, 100.0)).algorithm;
    let mut steps = |gradients: &[f64]| {
        gradients.iter().for_each(|&gradient| {
            flow.rate = 100.0;
            flow.step(gradient);
        });
        flow.rate - 100.0
    };
    let mut check = |gradients: &[f64], expected: f64| {
        let step = steps(gradients);
        assert!((step - expected).abs() < 1e-9, "{step} for {expected}");
    };
    check(&[0.5], 0.5);
    check(&[0.5, 0.5], 1.5);
    check(&[0.5], 2.5);
    check(&[0.5], 3.5);
    // The boundary is 5 %, then 15 %, and 5 % again after a turn.
    check(&[10.0], 5.0);
    check(&[10.0], 15.0);
    check(&[-10.0], -5.0);
}

#[test]
fn a_flow_fills_the_link_with_a_short_queue() {
    let mut flow = vivace(Link::new(20.0, 40, 70.0));
    flow.run_ms(15_000);
    let (mut sum, mut count) = (0.0, 0.0);
    let before = flow.path.delivered;
    flow.run(Span::from_secs(30), |flow| (sum, count) = (sum + flow.queued(), count + 1.0));
    let packets = (flow.path.delivered - before) as f64 / 30.0;
    let share = packets * flow.link.rtt.as_secs_f64() / flow.link.bdp();
    assert!(share > 0.9, "{share}");
    assert!(sum / count < 0.5 * flow.link.bdp(), "{} packets wait", sum / count);
}

/// `c` bears 5 % at 100 Mbit/s. The bounds are of what is seen here: see the head of the file.
#[test]
fn random_losses_matter_only_beyond_what_the_utility_bears() {
    fn random(seq: u64) -> u64 {
        (seq.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % 1000
    }
    let share = |loses: fn(u64) -> bool| {
        let mut flow = vivace(Link { loses, ..Link::new(100.0, 30, 400.0) });
        flow.run_ms(60_000);
        carried(&mut flow, 60)
    };
    let few = [share(|seq| random(seq) < 10), share(|seq| random(seq) < 30)];
    assert!(few[0] > 0.9 && few[1] > 0.85, "{few:?}");
    let many = share(|seq| random(seq) < 70);
    assert!(many < 0.3, "{many}");
}

#[test]
fn a_timeout_halves_the_rate() {
    let mut flow = vivace(Link::new(20.0, 40, 70.0));
    flow.run_ms(10_000);
    let before = flow.algorithm.rate;
    flow.time_out();
    assert_eq!(flow.algorithm.rate, before / 2.0);
}
