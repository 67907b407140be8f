//! Flows of many transfers with real packets. Needs root and /dev/net/tun; skipped, with the reason,
//! where these are missing or the machine is too busy.
#![cfg(target_os = "linux")]

mod common;

use common::run_here;
use dumbbell_sim::{RunOutput, Scenario};
use dumbbell_testbed::TestbedError;

/// Attempts to get a run that the machine did not disturb.
const ATTEMPTS: usize = 3;
/// Bytes of headers and of payload in a full packet.
const PACKET: (f64, f64) = (52.0, 1448.0);

/// Reno's transfers of 30 kB on average over 20 Mbit/s and 40 ms, one each 250 ms and two at once.
fn scenario() -> Scenario {
    let json = r#"{
        "duration_ns": 2500000000, "sample_ns": 100000000, "seed": 7,
        "links": [{"name": "link", "rate_bps": 20e6, "delay_ns": 20000000}],
        "flows": [{
            "name": "web", "cc": "reno", "path": ["link"], "return_delay_ns": 20000000,
            "transfers": {
                "arrivals": {"times": [100000000, 350000000, 600000000, 850000000, 1100000000, 1100000000, 1600000000]},
                "sizes": {"exponential": 30000}
            }
        }]
    }"#;
    Scenario::from_json(json).expect("a valid scenario")
}

/// The tables of a run with real packets that is to be trusted; `None` if there is none.
fn measured(scenario: &Scenario) -> Result<Option<RunOutput>, TestbedError> {
    for _ in 0..ATTEMPTS {
        let Some(outcome) = run_here(scenario)? else { return Ok(None) };
        let broke = outcome.warnings.iter().find(|warning| warning.contains("broke"));
        assert_eq!(broke, None, "all transfers complete");
        if outcome.warnings.is_empty() {
            return Ok(Some(outcome.tables));
        }
        println!("not valid: {}", outcome.warnings.join("; "));
    }
    println!("skipped: the machine is too busy");
    Ok(None)
}

#[test]
fn transfers_take_as_many_round_trips_as_in_the_simulator() -> Result<(), TestbedError> {
    let scenario = scenario();
    let Some(real) = measured(&scenario)? else { return Ok(()) };
    let simulated = scenario.run()?;
    assert_eq!(real.transfers.rows().count(), 7);
    for (row, expected) in real.transfers.rows().zip(simulated.transfers.rows()) {
        assert_eq!((row.start, row.bytes), (expected.start, expected.bytes), "drawn by the seed");
        let completed = [row, expected].map(|row| row.completed.expect("all complete"));
        let took = completed[0] - row.start;
        // A round trip for the handshake, one for the data, and the time of all bytes on the link.
        let (headers, payload) = PACKET;
        let packets = (row.bytes as f64 / payload).ceil();
        let bound = 0.08 + (row.bytes as f64 + packets * headers) * 8.0 / 20e6;
        assert!(took >= bound, "{took} s is less than {bound} s: {row:?}");
        // Half a round trip: the same number of rounds. The kernel's part of a round trip is below a
        // millisecond.
        assert!((completed[0] - completed[1]).abs() < 0.02, "{row:?}, simulated {expected:?}");
    }
    let totals = real.flows.rows().next().expect("a flow");
    let bytes: u64 = real.transfers.bytes.iter().sum();
    assert_eq!((totals.delivered, totals.received), (bytes, bytes));
    assert_eq!(totals.sent, real.transfers.sent.iter().sum::<u64>());
    let last = real.series.rows().last().expect("samples");
    assert_eq!((last.received, last.sent, last.in_flight), (bytes, totals.sent, 0));
    Ok(())
}

#[test]
fn a_transfer_that_the_run_leaves_no_time_is_not_complete() -> Result<(), TestbedError> {
    let mut scenario = scenario();
    // The handshake of the first transfer takes until 140 ms.
    scenario.duration_ns = 130_000_000;
    let Some(real) = measured(&scenario)? else { return Ok(()) };
    let rows: Vec<_> = real.transfers.rows().collect();
    assert_eq!(rows.len(), 1, "the others have not started");
    assert_eq!((rows[0].start, rows[0].completed, rows[0].sent), (0.1, None, 0));
    Ok(())
}
