//! BBR: a flow of the twin over a path with a bottleneck, and the program told the same.

use crate::native::{Answer, Program, build};
use crate::recorder::Recorder;
use crate::test_path::{Link, TestPath, init};
use dumbbell_units::Span;

/// How much the answers to a trace differ.
#[derive(Clone, Copy, Debug, Default)]
struct Difference {
    /// Share of the answers with another window, by more than 2 packets and 0.1 %.
    windows: f64,
    /// Share of the answers with another pacing rate, by more than 0.1 %.
    rates: f64,
    /// By how much the mean window is off, as a share.
    mean_window: f64,
    /// The same of the pacing rate.
    mean_rate: f64,
}

fn difference(pairs: &[(Answer, Answer)]) -> Difference {
    let count = pairs.len() as f64;
    let share = |differs: &dyn Fn(&Answer, &Answer) -> bool| {
        pairs.iter().filter(|(twin, program)| differs(twin, program)).count() as f64 / count
    };
    let mean = |value: &dyn Fn(&Answer) -> f64| {
        let twin: f64 = pairs.iter().map(|(twin, _)| value(twin)).sum();
        let program: f64 = pairs.iter().map(|(_, program)| value(program)).sum();
        program / twin - 1.0
    };
    Difference {
        windows: share(&|a, b| (a.cwnd - b.cwnd).abs() > 2.0 + 1e-3 * a.cwnd),
        rates: share(&|a, b| (a.pacing_rate / b.pacing_rate - 1.0).abs() > 1e-3),
        mean_window: mean(&|answer| answer.cwnd),
        mean_rate: mean(&|answer| answer.pacing_rate),
    }
}

/// A flow over a path, watched for 12 s.
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

/// Asserts that windows differ, and rates, in at most these shares of the answers.
fn check(name: &str, windows: f64, rates: f64, mean: f64) {
    let Some(program) = build(name) else { return };
    for link in links() {
        let found = compare(&program, name, link);
        let means = found.mean_window.abs().max(found.mean_rate.abs());
        let same = found.windows <= windows && found.rates <= rates && means <= mean;
        assert!(same, "{name}: {found:?}");
    }
}

/// What differs is when a phase ends, by an acknowledgement: times are in whole microseconds.
#[test]
fn bbr_1_is_its_twin_but_for_1_percent_of_the_acknowledgements() {
    check("bbr", 0.01, 0.01, 0.01);
}

#[test]
fn bbr_2_is_its_twin_but_for_1_percent_of_the_acknowledgements() {
    check("bbr2", 0.01, 0.01, 0.01);
}

#[test]
fn f_bbr_2_is_its_twin_but_for_1_percent_of_the_acknowledgements() {
    check("f-bbr2", 0.01, 0.01, 0.01);
}

/// Where probes lose packets, what was in flight then is known to a few packets, and with it the
/// bound that the probe sets.
#[test]
fn bbr_3_is_its_twin_on_average_to_2_percent() {
    check("bbr3", 0.25, 0.25, 0.02);
}
