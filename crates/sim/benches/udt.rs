//! Whole simulations with UDT, sampling included, in data packets per second.

mod dumbbells;
mod over_udt;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dumbbells::dumbbell;
use over_udt::over_udt;

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("udt");
    group.sample_size(10);
    for (name, cc, flows, rate_bps, seconds) in [
        ("udt, 1 Gbit/s", "udt", 1, 1e9, 60),
        ("ar-udt, 1 Gbit/s", "ar-udt", 1, 1e9, 60),
        ("cubic, 1 Gbit/s", "cubic", 1, 1e9, 60),
        ("100 x udt, 1 Gbit/s", "udt", 100, 1e9, 60),
    ] {
        let scenario = over_udt(dumbbell(cc, flows, rate_bps, seconds));
        let run = || scenario.run().expect("the scenario is valid");
        group.throughput(Throughput::Elements(run().data_packets));
        group.bench_function(name, |bencher| bencher.iter(run));
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
