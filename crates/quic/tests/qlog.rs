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

/// What qvis asks of a file and of a packet: `TextSequenceJSONToQlog`, `QlogLoaderV2` and
/// `CongestionGraphD3Renderer` of quiclog/qvis.
#[test]
fn the_qlog_has_what_qvis_asks_for() {
    for stack in ["quinn", "noq"] {
        let output = logged(stack, Link::default().with("loss", json!(0.01)), json!({}));
        let records = records(&output);
        let (header, recorded) = records.split_first().expect("a header");
        assert_eq!(header["qlog_format"], "JSON-SEQ", "{header}");
        let versions = ["draft-02", "draft-02-RC1", "qlog-03-WIP", "0.3"];
        let version = header["qlog_version"].as_str();
        assert!(version.is_some_and(|version| versions.contains(&version)), "{header}");
        assert!(header["trace"]["vantage_point"]["type"].is_string(), "{header}");
        let fields = &header["trace"]["common_fields"];
        assert!(fields.get("reference_time").is_none_or(Value::is_number), "{header}");
        let times = recorded.iter().map(|event| event["time"].as_f64().expect("a time"));
        assert!(times.is_sorted(), "{stack}");
        for (name, needs_size) in [("transport:packet_sent", true), ("recovery:packet_lost", false)]
        {
            let packets = events(&records, name);
            assert!(!packets.is_empty(), "{stack}: {name}");
            for (_, data) in packets {
                assert!(data["header"]["packet_number"].is_u64(), "{stack}: {data}");
                assert!(data["header"]["packet_type"].is_string(), "{stack}: {data}");
                assert!(data["raw"]["length"].as_u64() > Some(0) || !needs_size, "{stack}: {data}");
            }
        }
        assert!(!events(&records, "transport:packet_received").is_empty(), "{stack}");
        let metrics = events(&records, "recovery:metrics_updated");
        for key in ["bytes_in_flight", "congestion_window", "smoothed_rtt"] {
            assert!(metrics.iter().any(|(_, data)| data[key].is_number()), "{stack}: {key}");
        }
        // In ms: the path has an RTT of 40 ms and a queue of at most as much.
        let last = metrics.iter().filter_map(|(_, data)| data["smoothed_rtt"].as_f64()).next_back();
        assert!(last.is_some_and(|rtt| (20.0..200.0).contains(&rtt)), "{stack}: {last:?}");
    }
}

#[test]
fn pacing_rates_of_the_qlog_are_in_bits_per_second() {
    // As quic-events-12 has them. The link has 20 Mbit/s.
    for cc in ["quinn:bbr", "noq:bbr3", "bbr3"] {
        for stack in ["quinn", "noq"].into_iter().filter(|own| cc.starts_with(own) || cc == "bbr3")
        {
            let mut flow = flow(stack, cc);
            flow["log"] = json!(true);
            let records = records(&run(Link::default(), json!([flow]), 5));
            let metrics = events(&records, "recovery:metrics_updated");
            let mut rates = metrics.iter().filter_map(|(_, data)| data["pacing_rate"].as_f64());
            let last = rates.next_back().expect("a rate");
            assert!((5e6..80e6).contains(&last), "{stack} {cc}: {last}");
        }
    }
}
