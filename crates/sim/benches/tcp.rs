//! Whole simulations with TCP, sampling included, in data packets per second.

mod dumbbells;
mod measuring;

use criterion::{Criterion, criterion_group, criterion_main};
use measuring::{Case, measure};

const CASES: [Case; 6] = [
    ("cubic, 1 Gbit/s", "cubic", 1, 1e9, 60),
    ("reno, 1 Gbit/s", "reno", 1, 1e9, 60),
    ("bbr, 1 Gbit/s", "bbr", 1, 1e9, 60),
    ("bbr3, 1 Gbit/s", "bbr3", 1, 1e9, 60),
    ("100 x cubic, 1 Gbit/s", "cubic", 100, 1e9, 60),
    ("10000 x cubic, 10 Gbit/s", "cubic", 10_000, 1e10, 10),
];

fn bench(criterion: &mut Criterion) {
    measure(criterion, "tcp", &CASES, |scenario| scenario);
}

criterion_group!(benches, bench);
criterion_main!(benches);
