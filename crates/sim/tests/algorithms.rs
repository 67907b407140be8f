//! Every algorithm in whole simulations: senders, links, receivers.

use dumbbell_cc::NAMES;
use dumbbell_sim::{RunOutput, Scenario};
use dumbbell_tcp::Stack;

/// `flows` flows of `cc` over a link of `mbps` Mbit/s with a base RTT of `rtt_ms` ms, for
/// `seconds`; `link` is added to the link's JSON.
fn run(cc: &str, flows: u32, path: (f64, u64), seconds: u64, ecn: &str, link: &str) -> RunOutput {
    let (mbps, rtt_ms) = path;
    let mut stack = serde_json::to_value(Stack::linux()).expect("it is plain data");
    stack["ecn"] = ecn.into();
    // Offloaded bursts alone would exceed a threshold of a few packets.
    stack["tso"] = (ecn == "off").into();
    let half = rtt_ms * 500_000;
    let flows: Vec<String> = (0..flows)
        .map(|flow| {
            format!(
                r#"{{"name": "{flow}", "cc": "{cc}", "path": ["it"], "return_delay_ns": {half},
                    "stack": {stack}}}"#
            )
        })
        .collect();
    let json = format!(
        r#"{{"duration_ns": {seconds}000000000, "sample_ns": 100000000, "start_jitter_ns": 1000000,
            "links": [{{"name": "it", "rate_bps": {mbps}e6, "delay_ns": {half}, {link}}}],
            "flows": [{}]}}"#,
        flows.join(",")
    );
    Scenario::from_json(&json).expect("it is valid").run().expect("it runs")
}

/// Utilisation of the link after the first quarter of the run.
fn utilisation(outcome: &RunOutput, mbps: f64) -> f64 {
    let (sent, t) = (&outcome.links.sent_bytes, &outcome.links.t);
    let (from, to) = (sent.len() / 4, sent.len() - 1);
    (sent[to] - sent[from]) as f64 * 8.0 / (t[to] - t[from]) / (mbps * 1e6)
}

#[test]
fn every_algorithm_uses_most_of_a_link_and_no_more_than_there_is() {
    for name in NAMES {
        let queue = r#""queue": {"packets": 200}"#;
        let outcome = run(name, 2, (20.0, 40), 20, "off", queue);
        let used = utilisation(&outcome, 20.0);
        // UDT restarts at 3 % when it meets losses in slow start.
        let least = if name.contains("udt") { 0.4 } else { 0.6 };
        assert!((least..=1.001).contains(&used), "{name} uses {used}");
        for (&received, &sent) in outcome.flows.received.iter().zip(&outcome.flows.sent) {
            assert!(received > 0 && sent > 0, "{name} sends");
        }
    }
}

#[test]
fn every_algorithm_comes_through_losses_in_bursts_reordering_and_jitter() {
    let link = r#""queue": {"packets": 50}, "jitter_ns": 2000000,
        "reorder": {"share": 0.01, "delay_ns": 5000000},
        "loss_model": {"gilbert_elliott": {"p": 0.002, "r": 0.3, "bad": 0.8, "good": 0}}"#;
    for name in NAMES {
        let outcome = run(name, 2, (20.0, 40), 10, "off", link);
        let used = utilisation(&outcome, 20.0);
        assert!(used > 0.01 && used <= 1.001, "{name} uses {used}");
    }
}

/// Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, section 3.3: the queue is at most K +
/// N packets, and the link is busy if K is above (C RTT + K) / 7.
#[test]
fn dctcp_holds_the_queue_at_the_threshold_that_marks_and_the_link_busy() {
    let threshold = 20.0;
    let step = r#""aqm": {"red": {"unit": "packets", "min": 20, "max": 20, "probability": 1,
        "weight": 1, "gentle": false, "ecn": true, "hard_drop": false}}"#;
    let outcome = run("dctcp", 2, (1000.0, 1), 2, "accurate", step);
    let used = utilisation(&outcome, 1000.0);
    assert!(used > 0.95, "{used}");
    let packet_time = 1500.0 * 8.0 / 1e9;
    let half = outcome.links.queue_packets.len() / 2;
    let highest = outcome.links.queue_packets[half..].iter().max();
    assert!(highest <= Some(&(threshold as u32 + 8)), "{highest:?} packets");
    let median = outcome.flows.queue_delay_p50[0].expect("packets were delivered");
    let packets = median / packet_time;
    assert!((0.3 * threshold..1.2 * threshold).contains(&packets), "{packets}");
    let (dropped, marked) = (outcome.links.dropped.last(), outcome.links.marked.last());
    assert_eq!(dropped, Some(&0));
    assert!(marked > Some(&100), "{marked:?}");
    // Reno halves its window on the same marks and leaves the link idle now and then.
    let reno = utilisation(&run("reno", 2, (1000.0, 1), 2, "classic", step), 1000.0);
    assert!(reno < used, "{reno} and {used}");
}
