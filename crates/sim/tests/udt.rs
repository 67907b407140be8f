//! UDT flows over simulated links.

use dumbbell_sim::{Outcome, Scenario};
use serde_json::{Value, json};

fn flow(name: &str, cc: &str) -> Value {
    json!({"name": name, "cc": cc, "path": ["bottleneck"], "return_delay_ns": 20_000_000,
           "udt": {}})
}

fn scenario(seconds: u64, loss: f64, flows: &[Value]) -> Value {
    json!({
        "seed": 1, "duration_ns": seconds * 1_000_000_000, "sample_ns": 100_000_000,
        "links": [{"name": "bottleneck", "rate_bps": 100e6, "delay_ns": 20_000_000,
                   "queue": {"bytes": 500_000}, "loss": loss}],
        "flows": flows,
    })
}

fn run(json: &Value) -> Outcome {
    let scenario = Scenario::from_json(&json.to_string()).expect("the scenario is valid");
    scenario.run().expect("the scenario is valid")
}

#[test]
fn udt_fills_a_link() {
    for cc in ["udt", "ar-udt", "cubic", "bbr3"] {
        let outcome = run(&scenario(20, 0.0, &[flow("a", cc)]));
        let sent = outcome.links.sent_bytes.last().copied().unwrap_or(0);
        let f = &outcome.flows;
        eprintln!(
            "{cc}: {} sent {} lost {} rexmit {} timeouts {} rec {} rtt {:?} qd {:?} events {}",
            sent as f64 * 8.0 / 20.0 / 100e6,
            f.sent[0],
            f.lost[0],
            f.retransmitted[0],
            f.timeouts[0],
            f.recoveries[0],
            f.rtt_mean[0],
            f.queue_delay_mean[0],
            outcome.events
        );
        assert!(sent as f64 * 8.0 > 0.7 * 20.0 * 100e6, "{cc}: {sent} bytes");
    }
}
