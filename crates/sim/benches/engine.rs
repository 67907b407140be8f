//! The cost of links and the event loop alone, with a protocol that costs almost nothing.

#[path = "../tests/toy/mod.rs"]
mod toy;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dumbbell_net::{Limit, Link, LinkConfig, LinkId, Routes};
use dumbbell_sim::{EndpointId, Engine};
use dumbbell_units::{Span, Time};
use std::num::NonZeroU64;
use toy::Toy;

/// Pairs that share a bottleneck of 100 ms and keep 1.5 BDP in flight.
fn dumbbell(pairs: u64, rate: u64) -> Engine<Toy> {
    let bottleneck = Link::new(&LinkConfig {
        rate: NonZeroU64::new(rate),
        delay: Span::from_millis(50),
        queue: Limit::Bytes(rate / 80),
        ..LinkConfig::default()
    });
    let back = Link::delay_line(Span::from_millis(50));
    let mut routes = Routes::default();
    let routes_of_pair = [routes.add(&[LinkId(0)]), routes.add(&[LinkId(1)])];
    let window = (rate / 80 * 3 / 2 / 1500 / pairs) as u32;
    let ends = (0..pairs).flat_map(|pair| {
        let start = Time::from_nanos(pair * 100_000_000 / pairs);
        let sender = Toy::sender(window, start, Span::from_secs(1));
        [(sender, routes_of_pair[0]), (Toy::receiver(), routes_of_pair[1])]
    });
    Engine::new(vec![bottleneck, back], routes, ends, ())
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("engine");
    group.sample_size(10);
    for (name, pairs, rate) in [
        ("1 flow, 1 Gbit/s", 1, 1_000_000_000),
        ("100 flows, 1 Gbit/s", 100, 1_000_000_000),
        ("10000 flows, 10 Gbit/s", 10_000, 10_000_000_000),
    ] {
        let run = || {
            let mut engine = dumbbell(pairs, rate);
            engine.run_until(Time::ZERO + Span::from_secs(1));
            engine
        };
        let engine = run();
        let sent = (0..pairs as u32).map(|pair| match engine.endpoint(EndpointId(pair * 2)) {
            Toy::Sender { next, .. } => u64::from(*next),
            Toy::Receiver { .. } => 0,
        });
        group.throughput(Throughput::Elements(sent.sum()));
        group.bench_function(name, |bencher| bencher.iter(run));
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
