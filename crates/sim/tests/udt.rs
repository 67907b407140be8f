//! UDT flows over simulated links.

use dumbbell_sim::{RunOutput, Scenario};
use dumbbell_udt::TransportOptions;
use serde_json::{Value, json};

const SECONDS: u64 = 20;

fn flow(name: &str, cc: &str, options: &Value) -> Value {
    json!({"name": name, "cc": cc, "path": ["bottleneck"], "return_delay_ns": 20_000_000,
           "udt": options})
}

fn scenario(loss: f64, flows: &[Value]) -> Value {
    json!({
        "seed": 1, "duration_ns": SECONDS * 1_000_000_000, "sample_ns": 100_000_000,
        "links": [{"name": "bottleneck", "rate_bps": 100e6, "delay_ns": 20_000_000,
                   "queue": {"bytes": 500_000}, "loss": loss}],
        "flows": flows,
    })
}

fn parse(json: &Value) -> Scenario {
    Scenario::from_json(&json.to_string()).expect("the scenario is valid")
}

fn run(json: &Value) -> RunOutput {
    parse(json).run().expect("the scenario is valid")
}

fn utilisation(outcome: &RunOutput) -> f64 {
    let sent = outcome.links.sent_bytes.last().copied().unwrap_or(0);
    sent as f64 * 8.0 / 100e6 / SECONDS as f64
}

#[test]
fn udt_fills_a_link_with_its_own_and_with_any_other_algorithm() {
    for cc in ["udt", "ar-udt", "reno", "cubic", "bbr", "bbr3", "copa", "vegas"] {
        let options =
            serde_json::to_value(TransportOptions::for_algorithm(cc)).expect("plain data");
        let used = utilisation(&run(&scenario(0.0, &[flow("a", cc, &options)])));
        assert!(used > 0.8, "{cc}: {used}");
    }
}

#[test]
fn an_application_limited_flow_gets_its_full_rate() {
    let mut slow = flow("a", "udt", &json!({}));
    slow["app_rate_bps"] = json!(5e6);
    let outcome = run(&scenario(0.01, &[slow]));
    let received = outcome.flows.received[0] as f64 * 8.0 / SECONDS as f64;
    assert!((4.9e6..5.0e6).contains(&received), "{received} bit/s");
}

#[test]
fn a_finite_flow_completes_and_then_sends_nothing() {
    let mut finite = flow("a", "udt", &json!({}));
    finite["bytes"] = json!(3_000_001);
    let outcome = run(&scenario(0.01, &[finite]));
    assert_eq!(outcome.flows.received, [3_000_001]);
    assert_eq!(outcome.flows.delivered, [3_000_001]);
    let completed = outcome.flows.completed[0].expect("there is time enough");
    assert!(completed < 10.0, "{completed} s");
    assert!(outcome.events < 20_000, "{} events", outcome.events);
}

#[test]
fn a_small_receive_buffer_limits_what_is_in_flight() {
    let outcome = run(&scenario(0.0, &[flow("a", "udt", &json!({"receive_buffer": 100}))]));
    let most = outcome.series.in_flight.iter().max().copied();
    // 100 packets of 1456 bytes per round trip of 40 ms, and the acknowledgement interval.
    assert!(most <= Some(100), "{most:?} packets");
    let rate = outcome.flows.received[0] as f64 * 8.0 / SECONDS as f64;
    assert!(
        rate > 0.7 * 100.0 * 1456.0 * 8.0 / 0.05 && rate <= 100.0 * 1456.0 * 8.0 / 0.04,
        "{rate}"
    );
}

#[test]
fn reported_losses_are_those_of_the_link() {
    let outcome = run(&scenario(0.001, &[flow("a", "udt", &json!({}))]));
    let links = &outcome.links;
    let gone = links.lost.last().zip(links.dropped.last()).map_or(0, |(a, b)| a + b);
    let found = outcome.flows.lost[0];
    assert!(found.abs_diff(gone) <= gone / 50 + 5, "{found} found of {gone}");
    assert!(outcome.flows.retransmitted[0].abs_diff(found) <= found / 10 + 5);
}

#[test]
fn udt_and_tcp_share_a_link() {
    let mut tcp = flow("b", "cubic", &json!(null));
    tcp["name"] = json!("tcp");
    let outcome = run(&scenario(0.0, &[flow("a", "udt", &json!({})), tcp]));
    assert!(utilisation(&outcome) > 0.9);
    assert!(outcome.flows.received.iter().all(|&bytes| bytes > 5_000_000));
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let flows = [flow("a", "udt", &json!({})), flow("b", "ar-udt", &json!({"nak_repeat": false}))];
    let json = scenario(0.001, &flows);
    assert_eq!(format!("{:?}", run(&json)), format!("{:?}", run(&json)));
}

#[test]
fn options_out_of_range_are_refused() {
    for (key, value) in
        [("mss", 91), ("window", 31), ("send_buffer", 0), ("receive_buffer", 1 << 30)]
    {
        let json = scenario(0.0, &[flow("a", "udt", &json!({key: value}))]);
        let error = Scenario::from_json(&json.to_string()).expect_err("it is out of range");
        let said = error.to_string();
        assert!(said.contains("flow \"a\"") && said.contains(key), "{said}");
    }
}

/// CUDT::send: "delay the EXP timer to avoid mis-fired timeout".
#[test]
fn data_after_a_pause_does_not_time_out_before_its_ack_can_arrive() {
    let mut slow = flow("a", "udt", &json!({}));
    // One packet per 0.40 s; the EXP timer expires after 0.3 s and more.
    slow["app_rate_bps"] = json!(29e3);
    slow["return_delay_ns"] = json!(180_000_000);
    let f = run(&scenario(0.0, &[slow])).flows;
    assert_eq!((f.timeouts[0], f.retransmitted[0]), (0, 0));
}

#[test]
fn no_more_packets_are_in_flight_than_the_window_says() {
    let outcome = run(&scenario(0.0, &[flow("a", "udt", &json!({"window": 64}))]));
    let most = outcome.series.in_flight.iter().max();
    assert_eq!(most, Some(&64));
}

#[test]
fn a_gap_skipping_receiver_acknowledges_data_that_never_arrived() {
    let run = |options| run(&scenario(0.001, &[flow("a", "udt(rules=ns-2)", &options)]));
    let outcome = run(json!({"skip_gaps": true, "nak_repeat": false}));
    let f = &outcome.flows;
    let last = |column: &[u64]| column.last().copied().unwrap_or(0);
    let gone = last(&outcome.links.lost) + last(&outcome.links.dropped);
    let missing = (f.delivered[0] - f.received[0]) / 1456;
    assert!((gone / 2..=gone).contains(&missing), "{missing} of {gone}");
    let repaired = run(json!({})).flows;
    assert!(
        repaired.received[0] >= repaired.delivered[0],
        "nothing is acknowledged that is missing"
    );
    assert_eq!(f.timeouts[0], 0);
}

#[test]
fn the_start_time_does_not_count_as_queueing_delay() {
    let mut late = flow("a", "udt", &json!({}));
    late["start_ns"] = json!(5_000_000_000_u64);
    late["app_rate_bps"] = json!(1e6);
    let waited = run(&scenario(0.0, &[late])).flows.queue_delay_mean[0];
    assert!(waited.is_some_and(|mean| mean < 1e-3), "{waited:?}");
}
