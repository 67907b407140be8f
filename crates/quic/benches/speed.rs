//! How many times faster than real time QUIC flows run: `cargo bench -p dumbbell-quic --features tls`

use dumbbell_sim::{Factories, Scenario};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Instant;

/// Simulated seconds per second of a flow of quinn's CUBIC alone on a path of 10 ms.
fn speed(rate: f64, crypto: &str, seconds: u64) -> f64 {
    let json = json!({
        "duration_ns": seconds * 1_000_000_000, "sample_ns": 100_000_000,
        "links": [{"name": "l", "rate_bps": rate, "delay_ns": 5_000_000,
                   "queue": {"bytes": (rate * 0.01 / 8.0) as u64}}],
        "flows": [{"name": "f", "cc": "quinn:cubic", "path": ["l"], "return_delay_ns": 5_000_000,
                   "external": {"transport": "quic", "stack": "quinn",
                                "options": {"crypto": crypto}}}]
    });
    let endpoints = BTreeMap::from([("quic".to_owned(), dumbbell_quic::endpoints())]);
    let factories = Factories { endpoints, ..Factories::default() };
    let scenario = Scenario::from_json_with(&json.to_string(), &factories).expect("valid");
    let begin = Instant::now();
    let output = scenario.run().expect("valid");
    let elapsed = begin.elapsed().as_secs_f64();
    assert!(output.flows.received[0] as f64 * 8.0 > 0.7 * rate * seconds as f64);
    seconds as f64 / elapsed
}

fn main() {
    for (mbit, crypto, seconds) in
        [(20, "null", 200), (20, "rustls", 200), (1000, "null", 30), (1000, "rustls", 30)]
    {
        let speed = speed(f64::from(mbit) * 1e6, crypto, seconds);
        println!("{mbit} Mbit/s, crypto = \"{crypto}\": {speed:.1} times real time");
    }
}
