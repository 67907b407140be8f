//! Whole simulations with UDT, sampling included, in data packets per second.

mod dumbbells;
mod measuring;
mod over_udt;

use criterion::{Criterion, criterion_group, criterion_main};
use measuring::{Case, measure};
use over_udt::over_udt;

const CASES: [Case; 4] = [
    ("udt, 1 Gbit/s", "udt", 1, 1e9, 60),
    ("ar-udt, 1 Gbit/s", "ar-udt", 1, 1e9, 60),
    ("cubic, 1 Gbit/s", "cubic", 1, 1e9, 60),
    ("100 x udt, 1 Gbit/s", "udt", 100, 1e9, 60),
];

fn bench(criterion: &mut Criterion) {
    measure(criterion, "udt", &CASES, over_udt);
}

criterion_group!(benches, bench);
criterion_main!(benches);
