//! Benchmarks of whole simulations.

use crate::dumbbells::dumbbell;
use criterion::{Criterion, Throughput};
use dumbbell_sim::Scenario;

/// (name, algorithm, flows, bit/s, seconds)
pub type Case = (&'static str, &'static str, u64, f64, u64);

/// Benchmarks whole simulations in data packets per second; `finish` adapts each dumbbell.
pub fn measure(
    criterion: &mut Criterion,
    group: &str,
    cases: &[Case],
    finish: impl Fn(Scenario) -> Scenario,
) {
    let mut group = criterion.benchmark_group(group);
    group.sample_size(10);
    for &(name, cc, flows, rate_bps, seconds) in cases {
        let scenario = finish(dumbbell(cc, flows, rate_bps, seconds));
        let run = || scenario.run().expect("the scenario is valid");
        group.throughput(Throughput::Elements(run().data_packets));
        group.bench_function(name, |bencher| bencher.iter(run));
    }
    group.finish();
}
