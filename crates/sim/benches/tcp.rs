//! Whole simulations with TCP, sampling included, in data packets per second.

mod dumbbells;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dumbbells::dumbbell;

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("tcp");
    group.sample_size(10);
    for (name, cc, flows, rate_bps, seconds) in [
        ("cubic, 1 Gbit/s", "cubic", 1, 1e9, 60),
        ("reno, 1 Gbit/s", "reno", 1, 1e9, 60),
        ("bbr, 1 Gbit/s", "bbr", 1, 1e9, 60),
        ("bbr3, 1 Gbit/s", "bbr3", 1, 1e9, 60),
        ("100 x cubic, 1 Gbit/s", "cubic", 100, 1e9, 60),
        ("10000 x cubic, 10 Gbit/s", "cubic", 10_000, 1e10, 10),
    ] {
        let scenario = dumbbell(cc, flows, rate_bps, seconds);
        let run = || scenario.run().expect("the scenario is valid");
        group.throughput(Throughput::Elements(run().data_packets));
        group.bench_function(name, |bencher| bencher.iter(run));
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
