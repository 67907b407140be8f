//! The stacks' own qlog (draft-ietf-quic-qlog-main-schema) beside the rows of their flows.

#![cfg(feature = "qlog")]

mod common;

use common::{Link, flow, run};
use dumbbell_sim::RunOutput;
use serde_json::{Value, json};

/// The records of the log of a run's only flow: JSON texts, each after a record separator (RFC 7464).
fn records(output: &RunOutput) -> Vec<Value> {
    let [(0, log)] = &output.logs[..] else { panic!("one log, of flow 0") };
    let mut bytes = Vec::new();
    log.copy_to(&mut bytes).expect("a readable log");
    let text = String::from_utf8(bytes).expect("JSON is UTF-8");
    let mut parts = text.split('\x1e');
    assert_eq!(parts.next(), Some(""), "it begins with a separator");
    parts.map(|part| serde_json::from_str(part).expect("JSON")).collect()
}

/// The data of all events whose name ends so, with their times in ms.
fn events<'a>(records: &'a [Value], name: &str) -> Vec<(f64, &'a Value)> {
    let named = |record: &&Value| record["name"].as_str().is_some_and(|full| full.ends_with(name));
    let events = records.iter().filter(named);
    events.map(|event| (event["time"].as_f64().expect("a time"), &event["data"])).collect()
}

fn logged(stack: &str, link: Link, keys: Value) -> RunOutput {
    let mut flow = flow(stack, &format!("{stack}:cubic"));
    flow["log"] = json!(true);
    flow.as_object_mut().expect("a flow").extend(keys.as_object().expect("keys").clone());
    run(link, json!([flow]), 10)
}

#[test]
fn the_counts_of_the_qlog_are_those_of_the_flow() {
    for stack in ["quinn", "noq"] {
        let output = logged(stack, Link::default().with("loss", json!(0.01)), json!({}));
        let row = output.flows.rows().next().expect("a flow");
        let records = records(&output);
        // Draft version 07 and before have a version and a format, later ones a schema.
        let header = &records[0];
        assert!(header.get("qlog_version").or(header.get("file_schema")).is_some(), "{header}");
        assert!(header["trace"].is_object(), "{header}");
        let sent = events(&records, ":packet_sent");
        assert_eq!(sent.len() as u64, row.sent, "{stack}");
        assert_eq!(events(&records, ":packet_lost").len() as u64, row.lost, "{stack}");
        assert!(row.lost > 10, "{stack}: {row:?}");
        // Virtual time from the start of the run, and packet numbers in order.
        assert!(sent[0].0 == 0.0 && sent.is_sorted_by(|a, b| a.0 <= b.0), "{stack}");
        assert!((9_900.0..=10_000.0).contains(&sent[sent.len() - 1].0), "{stack}");
    }
}

#[test]
fn probe_timeouts_are_those_that_the_stack_logs() {
    for stack in ["quinn", "noq"] {
        // An outage of 3 s, and losses at random before and after it.
        let steps = json!([[0, 0.02], [2_000_000_000_u64, 1.0], [5_000_000_000_u64, 0.02]]);
        for keys in [json!({}), json!({"app_rate_bps": 1e6}), json!({"bytes": 1_500_000})] {
            let output = logged(stack, Link::default().with("loss_steps", steps.clone()), keys);
            let row = output.flows.rows().next().expect("a flow");
            let records = records(&output);
            let metrics = events(&records, "metrics_updated");
            let counts = metrics.iter().filter_map(|(_, data)| data["pto_count"].as_u64());
            let counts: Vec<_> = [0].into_iter().chain(counts).collect();
            // The count is of consecutive ones (RFC 9002, appendix A.3).
            let logged: u64 = counts.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).sum();
            assert!(logged > 0, "{stack}");
            assert_eq!(u64::from(row.timeouts), logged, "{stack}: {row:?}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_qlog() {
    for stack in ["quinn", "noq"] {
        let of = || records(&logged(stack, Link::default(), json!({"bytes": 100_000})));
        assert_eq!(of(), of(), "{stack}");
    }
}
