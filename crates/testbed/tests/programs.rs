//! Flows of other programs with real packets. Needs root, /dev/net/tun and bash; skipped, with the
//! reason, where these are missing.
#![cfg(target_os = "linux")]

mod common;

use common::run_here;
use dumbbell_sim::{FlowRow, RunOutput, Scenario, SeriesRow};
use dumbbell_testbed::TestbedError;
use std::process::Command;

/// The tables of a run over 20 Mbit/s and 20 ms that loses so many packets, with a sample each 100 ms;
/// `None` if the machine lacks something. The programs succeed.
fn measured(loss: f64, command: &str, server: &str) -> Result<Option<RunOutput>, TestbedError> {
    if let Err(error) = Command::new("bash").arg("--version").output() {
        println!("skipped: bash: {error}");
        return Ok(None);
    }
    let json = format!(
        r#"{{
            "duration_ns": 1500000000, "sample_ns": 100000000, "warmup_ns": 450000000,
            "links": [{{
                "name": "link", "rate_bps": 20e6, "delay_ns": 10000000, "loss": {loss}
            }}],
            "flows": [{{
                "name": "one", "cc": "reno", "path": ["link"], "return_delay_ns": 10000000,
                "start_ns": 200000000, "command": {command:?}, "server": {server:?}
            }}]
        }}"#
    );
    let scenario = Scenario::from_json(&json).expect("a valid scenario");
    let Some(outcome) = run_here(&scenario)? else { return Ok(None) };
    let failed = outcome.warnings.iter().find(|warning| warning.contains("failed"));
    assert_eq!(failed, None, "the programs succeed");
    Ok(Some(outcome.tables))
}

#[test]
fn samples_count_what_left_the_links_like_the_totals() -> Result<(), TestbedError> {
    // Each datagram has a socket of its own, which is closed before the next sample. Its payload counts
    // with the 8 bytes of UDP's header.
    let send = "head -c 1000 /dev/zero > /dev/udp/{server}/9; sleep 0.05";
    let command = format!("bash -c 'for i in 1 2 3 4 5 6 7 8 9 10; do {send}; done'");
    let Some(tables) = measured(0.0, &command, "true")? else { return Ok(()) };
    let rows: Vec<SeriesRow> = tables.series.rows().collect();
    assert!(rows.is_sorted_by_key(|row| row.delivered), "a counter never falls");
    let [begin, end] = [0.45, 1.5].map(|t| {
        let row = rows.iter().find(|row| row.t == t);
        *row.expect("a sample")
    });
    assert_eq!((end.sent, end.delivered, end.received), (10, 10_080, 10_080));
    assert!((1_008..10_080).contains(&begin.delivered), "{begin:?}");
    let totals: FlowRow = tables.flows.rows().next().expect("a flow");
    assert_eq!(totals.delivered, end.delivered - begin.delivered);
    assert_eq!(totals.sent, end.sent - begin.sent);
    assert_eq!(tables.data_packets, 10);
    Ok(())
}

#[test]
fn programs_do_not_inherit_the_priority_of_the_testbed() -> Result<(), TestbedError> {
    let folder = std::env::temp_dir().join(format!("dumbbell-programs-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let files = ["sender", "server"].map(|name| folder.join(name));
    // The 41st field is the scheduling policy (proc(5)), 0 for SCHED_OTHER.
    let [command, server] =
        files.each_ref().map(|file| format!("cut -d' ' -f41 /proc/self/stat > {}", file.display()));
    if measured(0.0, &command, &server)?.is_some() {
        for file in files {
            assert_eq!(std::fs::read_to_string(file).expect("it ran").trim(), "0");
        }
    }
    std::fs::remove_dir_all(folder).expect("the folder is there");
    Ok(())
}

#[test]
fn a_connection_that_nobody_answers_counts_its_timeouts() -> Result<(), TestbedError> {
    // The first retransmission of a SYN is due after 1 s (RFC 6298, section 2).
    let command = "timeout 1.2 bash -c 'exec 3<>/dev/tcp/{server}/9' || true";
    let Some(tables) = measured(0.999_999, command, "true")? else { return Ok(()) };
    let totals = tables.flows.rows().next().expect("a flow");
    assert_eq!((totals.timeouts, totals.recoveries, totals.spurious), (1, 0, 0));
    Ok(())
}
