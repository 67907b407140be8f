//! A flow with real packets that stops. Needs root and /dev/net/tun; skipped, with the reason, where
//! these are missing or the machine is too busy.
#![cfg(target_os = "linux")]

mod common;

use common::run_here;
use dumbbell_sim::{Scenario, SeriesRow};
use dumbbell_testbed::TestbedError;

#[test]
fn a_flow_sends_little_that_is_new_after_its_stop() -> Result<(), TestbedError> {
    // A window of 35 packets and a queue of as many, as many again of which wait in a send buffer.
    let json = r#"{
        "duration_ns": 2000000000, "sample_ns": 10000000,
        "links": [{
            "name": "link", "rate_bps": 10e6, "delay_ns": 20000000, "queue": {"bytes": 50000}
        }],
        "flows": [{
            "name": "one", "cc": "reno", "path": ["link"], "return_delay_ns": 20000000,
            "stop_ns": 1500000000
        }]
    }"#;
    let scenario = Scenario::from_json(json).expect("a valid scenario");
    let Some(outcome) = run_here(&scenario)? else { return Ok(()) };
    if !outcome.warnings.is_empty() {
        println!("skipped: {}", outcome.warnings.join("; "));
        return Ok(());
    }
    let rows: Vec<SeriesRow> = outcome.tables.series.rows().collect();
    let sent_at = |t: f64| {
        let row = rows.iter().find(|row| row.t >= t).expect("a sample");
        row.sent - row.retransmitted
    };
    // A packet takes 1.2 ms on the link, and what is written before the stop at most 10 ms.
    assert!(sent_at(1.6) - sent_at(1.5) <= 20, "{} packets", sent_at(1.6) - sent_at(1.5));
    assert_eq!(sent_at(2.0), sent_at(1.6), "all was sent");
    assert!(sent_at(1.5) > 1000, "nothing but the link limits it until then");
    Ok(())
}
