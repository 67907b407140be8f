//! Scenarios from JSON to tables.

use dumbbell_net::{AqmConfig, CodelConfig};
use dumbbell_sim::{MAX_FLOWS, RunOutput, Scenario};
use dumbbell_tcp::Stack;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::ops::ControlFlow;

fn stack() -> Value {
    serde_json::to_value(Stack::linux()).expect("it is plain data")
}

fn link() -> Value {
    json!({"name": "bottleneck", "rate_bps": 10e6, "delay_ns": 20_000_000,
           "queue": {"bytes": 50_000}, "loss": 0.0})
}

fn flow(name: &str, cc: &str) -> Value {
    json!({"name": name, "cc": cc, "path": ["bottleneck"], "return_path": [],
           "return_delay_ns": 20_000_000, "start_ns": 0, "stop_ns": null, "bytes": null,
           "app_rate_bps": null, "stack": stack(), "log": false})
}

fn scenario(flows: &[Value]) -> Value {
    json!({"seed": 1, "duration_ns": 5_000_000_000_u64, "sample_ns": 100_000_000,
           "start_jitter_ns": 0, "links": [link()], "flows": flows})
}

fn parse(json: &Value) -> Scenario {
    Scenario::from_json(&json.to_string()).expect("the scenario is valid")
}

fn run(json: &Value) -> RunOutput {
    parse(json).run().expect("the scenario is valid")
}

/// A run as text, in which NaN equals NaN and numbers are exact.
fn everything(outcome: &RunOutput) -> String {
    format!("{outcome:?}")
}

/// The samples and the result of one flow, independent of its index.
fn flow_history(outcome: &RunOutput, flow: usize) -> String {
    let samples: Vec<_> = (0..outcome.series.t.len())
        .filter(|&row| outcome.series.flow[row] as usize == flow)
        .map(|row| {
            let series = &outcome.series;
            (series.t[row], series.cwnd[row], series.srtt[row], series.sent[row], series.lost[row])
        })
        .collect();
    let flows = &outcome.flows;
    let end = (flows.start[flow], flows.received[flow], flows.queue_delay_mean[flow]);
    format!("{samples:?} {end:?}")
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let mut json = scenario(&[flow("a", "cubic"), flow("b", "reno"), flow("c", "bbr3")]);
    json["start_jitter_ns"] = json!(100_000_000);
    json["links"][0]["loss"] = json!(0.001);
    assert_eq!(everything(&run(&json)), everything(&run(&json)));
}

#[test]
fn another_seed_moves_starts_and_losses() {
    let mut json = scenario(&[flow("a", "cubic")]);
    json["start_jitter_ns"] = json!(100_000_000);
    json["links"][0]["loss"] = json!(0.01);
    let first = run(&json);
    json["seed"] = json!(2);
    let second = run(&json);
    assert_ne!(first.flows.start, second.flows.start);
    assert_ne!(first.links.lost, second.links.lost);
    for start in [first.flows.start[0], second.flows.start[0]] {
        assert!((0.0..0.1).contains(&start), "{start}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn the_order_of_flows_changes_only_the_order_of_results(
        order in Just((0..6usize).collect::<Vec<_>>()).prop_shuffle(),
        seed: u64,
    ) {
        // Flows that differ by name only, and stacks that differ in one field.
        let mut flows: Vec<Value> =
            ["cubic", "cubic", "reno", "bbr", "cubic", "cubic"].iter().zip("abcdef".chars())
                .map(|(cc, name)| flow(&name.to_string(), cc)).collect();
        flows[4]["stack"]["initial_window"] = json!(3);
        flows[5]["start_ns"] = json!(1_000_000_000);
        let mut json = scenario(&flows);
        json["seed"] = json!(seed);
        json["start_jitter_ns"] = json!(50_000_000);
        json["links"][0]["loss"] = json!(0.001);
        let sorted = run(&json);
        json["flows"] = order.iter().map(|&i| flows[i].clone()).collect();
        let shuffled = run(&json);
        for (index, &flow) in order.iter().enumerate() {
            prop_assert_eq!(flow_history(&shuffled, index), flow_history(&sorted, flow));
        }
        prop_assert_eq!(format!("{:?}", shuffled.links), format!("{:?}", sorted.links));
    }

    #[test]
    fn windows_are_finite_and_at_least_one_packet(
        cc in prop::sample::select(dumbbell_cc::NAMES),
        rate_bps in 1e5..1e8,
        delay_ns in 100_000u64..100_000_000,
        queue in 1u32..200,
        loss in 0.0..0.1,
        seed: u64,
    ) {
        let mut json = scenario(&[flow("a", cc), flow("b", cc)]);
        json["seed"] = json!(seed);
        json["links"] = json!([{"name": "bottleneck", "rate_bps": rate_bps, "delay_ns": delay_ns,
                                "queue": {"packets": queue}, "loss": loss}]);
        let outcome = run(&json);
        let series = &outcome.series;
        prop_assert!(series.cwnd.iter().all(|&cwnd| cwnd >= 1.0 && cwnd.is_finite()));
        prop_assert!(series.ssthresh.iter().all(|ssthresh| !ssthresh.is_nan()));
        prop_assert!(outcome.internals.value.iter().all(|value| !value.is_nan()));
        let sent = outcome.links.sent_bytes.last().copied().unwrap_or(0) as f64;
        prop_assert!(sent * 8.0 <= rate_bps * 5.0 + 1500.0 * 8.0, "no more than the link can");
        for flow in 0..2 {
            prop_assert!(outcome.flows.received[flow] <= outcome.flows.sent[flow] * 1448);
            prop_assert!(outcome.flows.retransmitted[flow] <= outcome.flows.sent[flow]);
        }
    }
}

#[test]
fn a_lone_flow_fills_the_link_and_never_waits_longer_than_the_queue_is() {
    let mut json = scenario(&[flow("a", "cubic")]);
    json["duration_ns"] = json!(20_000_000_000_u64);
    let outcome = run(&json);
    let goodput = outcome.flows.received[0] as f64 * 8.0 / 20.0;
    let most = 10e6 * 1448.0 / 1500.0;
    assert!(goodput > 0.93 * most && goodput < most, "{goodput}");
    assert_eq!(outcome.flows.base_rtt, [0.04]);
    // 50,000 bytes take 40 ms; the packet in transmission and the packet itself 1.2 ms each.
    let p99 = outcome.flows.queue_delay_p99[0].expect("packets arrived");
    assert!(p99 > 0.03 && p99 < 0.0424 * 1.07, "{p99}");
}

#[test]
fn routes_that_no_packet_takes_change_no_delay() {
    let run_with = |delay_ms: u64, reroutes_ms: &[(u64, u64)]| {
        let ns = |&(at, delay): &(u64, u64)| (at * 1_000_000, delay * 1_000_000);
        let mut json = scenario(&[flow("a", "cubic")]);
        json["links"][0]["delay_ns"] = json!(delay_ms * 1_000_000);
        json["links"][0]["reroutes"] = json!(reroutes_ms.iter().map(ns).collect::<Vec<_>>());
        format!("{:?}", run(&json).flows)
    };
    let plain = run_with(50, &[]);
    assert_eq!(run_with(20, &[(0, 50)]), plain, "a reroute from the start");
    assert_eq!(run_with(50, &[(5_000, 10)]), plain, "a reroute at the end");
    assert_ne!(run_with(50, &[(4_999, 10)]), plain);
}

#[test]
fn flows_show_from_their_start_until_they_are_complete() {
    let mut short = flow("short", "reno");
    short["start_ns"] = json!(1_050_000_000);
    short["bytes"] = json!(100_000);
    let outcome = run(&scenario(&[short]));
    let completed = outcome.flows.completed[0].expect("5 s are enough for 100 kB");
    let times = &outcome.series.t;
    assert_eq!(times.first(), Some(&1.1));
    let last = *times.last().expect("it was seen");
    assert!(last >= completed && last - completed < 0.1, "{last} {completed}");
    assert_eq!(outcome.series.received.last(), Some(&100_000));
    assert_eq!(outcome.series.delivered.last(), Some(&100_000));
}

#[test]
fn the_run_is_sampled_at_zero_at_every_interval_and_at_the_end() {
    let mut json = scenario(&[flow("a", "reno")]);
    json["duration_ns"] = json!(250_000_000);
    assert_eq!(run(&json).links.t, [0.0, 0.1, 0.2, 0.25]);
}

#[test]
fn internals_are_sampled_unless_disabled() {
    let mut json = scenario(&[flow("a", "bbr")]);
    assert!(!run(&json).internals.value.is_empty());
    json["internals"] = json!(false);
    assert!(run(&json).internals.value.is_empty());
}

#[test]
fn the_progress_callback_may_end_a_run() {
    let scenario = parse(&scenario(&[flow("a", "reno")]));
    let mut asked = Vec::new();
    let outcome = scenario.run_while(|share| {
        asked.push(share);
        if share >= 0.5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(outcome.expect("it is valid").is_none());
    assert_eq!((asked.first(), asked.last()), (Some(&0.0), Some(&0.5)));
}

#[test]
fn acknowledgements_queue_on_the_return_path() {
    // 5 Mbit/s are enough for the acknowledgements; 20 kbit/s are not.
    let run_back = |rate: f64| {
        let mut flow = flow("a", "reno");
        flow["return_path"] = json!(["back"]);
        flow["return_delay_ns"] = json!(15_000_000);
        let mut json = scenario(&[flow]);
        json["links"] = json!([link(), {"name": "back", "rate_bps": rate, "delay_ns": 5_000_000,
                                        "queue": {"packets": 100}}]);
        run(&json)
    };
    let (wide, narrow) = (run_back(5e6), run_back(20e3));
    assert_eq!(wide.flows.base_rtt, [0.04]);
    assert!(narrow.flows.received[0] < wide.flows.received[0] / 2);
}

/// The error of a scenario after `change`.
fn error(change: impl FnOnce(&mut Value)) -> String {
    let mut json = scenario(&[flow("web", "cubic")]);
    change(&mut json);
    Scenario::from_json(&json.to_string()).expect_err("it is not valid").to_string()
}

#[test]
fn errors_name_the_part_the_key_the_value_and_the_valid_values() {
    assert_eq!(
        error(|json| json["links"][0]["rate_bps"] = json!(0)),
        "link \"bottleneck\": rate_bps cannot be 0; it takes a number of bit/s from 1 to 1e15, \
         or null for no limit"
    );
    assert_eq!(
        error(|json| json["flows"][0]["path"] = json!(["botleneck"])),
        "flow \"web\": path cannot be \"botleneck\"; it takes names of links, which are bottleneck"
    );
    assert_eq!(
        error(|json| json["flows"][0]["stop_ns"] = json!(0)),
        "flow \"web\": stop_ns cannot be 0; it takes a time after start_ns + start_jitter_ns, \
         which is 0"
    );
}

#[test]
fn invalid_scenarios_are_refused_with_the_key() {
    type Change = fn(&mut Value);
    let cases: &[(&[&str], Change)] = &[
        (&["scenario", "duration_ns"], |json| json["duration_ns"] = json!(0)),
        (&["scenario", "sample_ns"], |json| json["sample_ns"] = json!(0)),
        (&["scenario", "sample_ns", "rows"], |json| json["sample_ns"] = json!(1)),
        (&["scenario", "flows"], |json| json["flows"] = json!([])),
        (&["bottleneck", "rate_bps"], |json| json["links"][0]["rate_bps"] = json!(-1)),
        (&["bottleneck", "loss"], |json| json["links"][0]["loss"] = json!(1.0)),
        (&["bottleneck", "loss"], |json| json["links"][0]["loss"] = json!(-0.1)),
        (&["bottleneck", "queue"], |json| {
            json["links"][0]["queue"] = json!({"packets": 0});
            json["links"][0]["aqm"] = json!(AqmConfig::Codel(CodelConfig::default()));
        }),
        (&["bottleneck", "queue"], |json| json["links"][0]["queue"] = json!({"ns": 0})),
        (&["web", "udp", "application rates"], |json| json["flows"][0]["udp"] = json!(true)),
        (&["web", "transfers", "beside"], |json| {
            json["flows"][0]["bytes"] = json!(1000);
            json["flows"][0]["transfers"] =
                json!({"arrivals": {"poisson": 1_000_000}, "sizes": {"constant": 1000}});
        }),
        (&["web", "transfers", "shape above 1"], |json| {
            json["flows"][0]["transfers"] =
                json!({"arrivals": {"poisson": 1_000_000}, "sizes": {"pareto": [1000, 1.0]}});
        }),
        (&["scenario", "flows", "4000000 transfers"], |json| {
            json["flows"][0]["transfers"] =
                json!({"arrivals": {"periodic": 1}, "sizes": {"constant": 1000}});
        }),
        (&["bottleneck", "name"], |json| json["links"] = json!([link(), link()])),
        (&["web", "name"], |json| {
            json["flows"] = json!([flow("web", "reno"), flow("web", "cubic")]);
        }),
        (&["web", "path"], |json| json["flows"][0]["path"] = json!([])),
        (&["web", "return_path", "nowhere"], |json| {
            json["flows"][0]["return_path"] = json!(["nowhere"]);
        }),
        (&["web", "bytes"], |json| json["flows"][0]["bytes"] = json!(0)),
        (&["web", "app_rate_bps"], |json| json["flows"][0]["app_rate_bps"] = json!(0)),
        (&["web", "cc", "qubic", "cubic"], |json| json["flows"][0]["cc"] = json!("qubic")),
        (&["web", "stack.mss"], |json| json["flows"][0]["stack"]["mss"] = json!(0)),
        (&["web", "stack.mss"], |json| json["flows"][0]["stack"]["mss"] = json!(65_500)),
        // Refused by the JSON parser or the types; the error has the path.
        (&["links[0].rate_bps"], |json| json["links"][0]["rate_bps"] = json!("fast")),
        (&["flows[0].stack.mss"], |json| json["flows"][0]["stack"]["mss"] = json!(-1)),
        (&["flows[0]", "colour", "expected"], |json| json["flows"][0]["colour"] = json!(1)),
        (&["queue", "pints"], |json| json["links"][0]["queue"] = json!({"pints": 1})),
    ];
    for (words, change) in cases {
        let error = error(change);
        assert!(words.iter().all(|word| error.contains(word)), "{words:?} in: {error}");
        assert!(!error.contains('\n'), "one paragraph: {error}");
    }
}

#[test]
fn text_that_is_not_json_is_refused() {
    for text in ["", "{", "[]", "NaN", "{\"seed\": NaN}"] {
        assert!(Scenario::from_json(text).is_err(), "{text}");
    }
    let twice = format!("{0} {0}", scenario(&[flow("a", "reno")]));
    assert!(Scenario::from_json(&twice).is_err(), "two scenarios are not one");
}

#[test]
fn nan_and_infinity_are_refused_in_the_struct() {
    let mut broken = parse(&scenario(&[flow("a", "reno")]));
    broken.links[0].rate_bps = Some(f64::NAN);
    assert!(broken.run().is_err());
    broken.links[0].rate_bps = Some(f64::INFINITY);
    assert!(broken.run().is_err());
    broken.links[0].rate_bps = Some(1e6);
    broken.links[0].loss = f64::NAN;
    assert!(broken.run().is_err());
}

#[test]
fn more_than_a_million_flows_are_refused_before_anything_is_built() {
    let mut scenario = parse(&scenario(&[flow("a", "reno")]));
    let one = scenario.flows[0].clone();
    scenario.flows = vec![one; MAX_FLOWS + 1];
    let error = scenario.run().expect_err("too many").to_string();
    assert!(error.contains("flows cannot be 1000001"), "{error}");
}

#[test]
fn what_happens_in_the_warmup_counts_in_no_table_of_flows() {
    let mut late = flow("late", "reno");
    late["start_ns"] = json!(2_500_000_000_u64);
    let mut json = scenario(&[flow("early", "cubic"), late]);
    let whole = run(&json);
    json["warmup_ns"] = json!(2_000_000_000_u64);
    let counted = run(&json);
    let samples = |of: &RunOutput| format!("{:?} {:?}", of.series, of.links);
    assert!(samples(&counted) == samples(&whole), "samples show all of it");
    let early = whole.series.rows().find(|row| row.flow == 0 && row.t == 2.0).expect("a sample");
    let [before, after] = [&whole, &counted].map(|of| of.flows.rows().next().expect("a flow"));
    assert_eq!(after.sent, before.sent - early.sent);
    assert_eq!(after.received, before.received - early.received);
    assert_eq!(after.delivered, before.delivered - early.delivered);
    // The rates are those of the part after it, and so are round-trip times: slow start filled the
    // queue before.
    assert!(after.queue_delay_mean != before.queue_delay_mean);
    assert!(after.rtt_samples < before.rtt_samples);
    let (rtt, wait) = (after.rtt_mean.expect("it"), after.queue_delay_mean.expect("it"));
    // An acknowledgement waits for every second packet, 1.2 ms later.
    assert!((rtt - 0.04 - wait).abs() < 0.0015, "{rtt} {wait}");
    let [before, after] = [&whole, &counted].map(|of| of.flows.rows().nth(1).expect("a flow"));
    assert_eq!(after, before, "it started later");
}

#[test]
fn a_warmup_as_long_as_the_run_is_refused() {
    let mut json = scenario(&[flow("a", "reno")]);
    json["warmup_ns"] = json!(5_000_000_000_u64);
    let error = Scenario::from_json(&json.to_string()).and_then(|it| it.check());
    let error = error.expect_err("nothing is left of the run");
    assert!(error.to_string().contains("warmup_ns"), "{error}");
}
