//! Scenarios whose links have more than a constant rate and a droptail queue.

use dumbbell_sim::{RunOutput, Scenario};

/// `flows` flows of `cc` over a link of 20 Mbit/s and 40 ms for 20 s; `link` is added to its JSON.
fn json(cc: &str, flows: u32, ecn: &str, link: &str) -> String {
    let stack = serde_json::to_value(dumbbell_tcp::Stack::linux()).map(|mut stack| {
        stack["ecn"] = ecn.into();
        stack
    });
    let stack = stack.expect("it is plain data");
    let flow = |number: u32| {
        let start = u64::from(number) * 100_000_000;
        format!(
            r#"{{"name": "{number}", "cc": "{cc}", "path": ["it"], "return_delay_ns": 20000000,
                "start_ns": {start}, "stack": {stack}}}"#
        )
    };
    let flows: Vec<String> = (0..flows).map(flow).collect();
    format!(
        r#"{{"duration_ns": 20000000000, "sample_ns": 100000000, "links":
            [{{"name": "it", "delay_ns": 20000000, {link}}}], "flows": [{}]}}"#,
        flows.join(",")
    )
}

fn run(cc: &str, flows: u32, ecn: &str, link: &str) -> RunOutput {
    let scenario = Scenario::from_json(&json(cc, flows, ecn, link)).expect("it is valid");
    scenario.run().expect("it runs")
}

const RATE: &str = r#""rate_bps": 20e6"#;
const CODEL: &str = r#""aqm": {"codel": {"target_ns": 5000000, "interval_ns": 100000000,
    "ecn": true}}"#;
const FQ_CODEL: &str = r#""aqm": {"fq_codel": {"target_ns": 5000000, "interval_ns": 100000000,
    "quantum": 1500, "queues": 1024, "ecn": true}}"#;
const PIE: &str = r#""aqm": {"pie": {"target_ns": 15000000, "update_ns": 15000000, "burst_ns":
    150000000, "alpha": 0.125, "beta": 1.25, "ecn": true, "ecn_limit": 0.1}}"#;
const DUALPI2: &str = r#""aqm": {"dualpi2": {"target_ns": 15000000, "tupdate_ns": 16000000,
    "alpha": 0.16, "beta": 3.2, "coupling_factor": 2, "step_thresh_ns": 1000000, "min_qlen_step": 0,
    "classic_protection": 0.1, "drop_on_overload": true}}"#;
const RED: &str = r#""aqm": {"red": {"unit": "packets", "min": 5, "max": 15, "probability": 0.1,
    "weight": 0.002, "gentle": true, "ecn": true, "hard_drop": true}}"#;

/// Utilisation of the link after the first 5 s.
fn utilisation(outcome: &RunOutput) -> f64 {
    let sent = &outcome.links.sent_bytes;
    (sent[200] - sent[50]) as f64 * 8.0 / 15.0 / 20e6
}

fn median_delay(outcome: &RunOutput) -> f64 {
    outcome.flows.queue_delay_p50[0].expect("packets were delivered")
}

#[test]
fn every_aqm_keeps_cubic_near_its_target_and_the_link_busy() {
    // With a droptail queue of 1 BDP the delay stands at tens of milliseconds.
    let droptail = run("cubic", 4, "off", &format!(r#"{RATE}, "queue": {{"bytes": 100000}}"#));
    assert!(median_delay(&droptail) > 0.02, "{}", median_delay(&droptail));
    // RED's thresholds apply to the average; in Linux four flows behind it have median delays of
    // 1.8 to 1.9 ms.
    for (aqm, least, most) in
        [(CODEL, 0.002, 0.010), (FQ_CODEL, 0.002, 0.010), (PIE, 0.008, 0.022), (RED, 0.0015, 0.012)]
    {
        let outcome = run("cubic", 4, "off", &format!("{RATE}, {aqm}"));
        let (delay, used) = (median_delay(&outcome), utilisation(&outcome));
        assert!((least..most).contains(&delay), "{delay} with {aqm}");
        assert!(used > 0.85, "{used} with {aqm}");
        assert_eq!(outcome.links.marked.last(), Some(&0), "ECN is off");
        assert!(outcome.links.dropped.last() > Some(&10));
    }
}

#[test]
fn a_dualpi2_queue_holds_its_target_and_an_l4s_flow_stays_below_the_step() {
    let link = format!("{RATE}, {DUALPI2}");
    let cubic = run("cubic", 4, "off", &link);
    assert!((0.008..0.022).contains(&median_delay(&cubic)), "{}", median_delay(&cubic));
    assert!(utilisation(&cubic) > 0.85, "{}", utilisation(&cubic));
    let dctcp = run("dctcp", 4, "l4s", &link);
    assert!(median_delay(&dctcp) < 0.0015, "{}", median_delay(&dctcp));
    assert_eq!(dctcp.links.dropped.last(), Some(&0), "marks suffice");
    assert!(dctcp.links.marked.last() > Some(&100));
}

#[test]
fn ecn_flows_are_marked_and_lose_almost_nothing() {
    for aqm in [CODEL, FQ_CODEL, PIE, RED] {
        let outcome = run("cubic", 4, "classic", &format!("{RATE}, {aqm}"));
        let (dropped, marked) = (outcome.links.dropped.last(), outcome.links.marked.last());
        assert!(marked > Some(&10), "{marked:?} with {aqm}");
        assert!(dropped < Some(&(marked.copied().unwrap_or(0) / 4 + 1)), "{dropped:?} with {aqm}");
    }
}

#[test]
fn fq_codel_gives_cubic_and_bbr_equal_shares() {
    // BBR monopolises a droptail queue of 0.5 BDP; per-flow queues prevent that.
    let mut scenario: serde_json::Value =
        serde_json::from_str(&json("cubic", 2, "off", &format!("{RATE}, {FQ_CODEL}")))
            .expect("it is JSON");
    scenario["flows"][1]["cc"] = "bbr".into();
    let scenario = Scenario::from_json(&scenario.to_string()).expect("it is valid");
    let outcome = scenario.run().expect("it runs");
    let received = &outcome.flows.received;
    let ratio = received[0] as f64 / received[1] as f64;
    assert!((0.8..1.25).contains(&ratio), "{received:?}");
}

#[test]
fn piecewise_rates_and_traces_give_the_configured_rates() {
    // 20 Mbit/s for 10 s, then 5.
    let steps = run(
        "reno",
        2,
        "off",
        r#""rates": [[0, 20e6], [10000000000, 5e6]],
        "queue": {"packets": 50}"#,
    );
    let sent = &steps.links.sent_bytes;
    let rate = |from: usize, to: usize| (sent[to] - sent[from]) as f64 * 80.0 / (to - from) as f64;
    assert!((19e6..20.1e6).contains(&rate(50, 100)), "{}", rate(50, 100));
    assert!((4.8e6..5.1e6).contains(&rate(120, 200)), "{}", rate(120, 200));

    // Five opportunities in 3 ms are 20 Mbit/s.
    let trace = run("reno", 2, "off", r#""trace_ms": [1, 1, 2, 3, 3], "queue": {"packets": 50}"#);
    let used = utilisation(&trace);
    assert!((0.97..=1.0001).contains(&used), "{used}");
}

#[test]
fn a_seed_gives_the_same_run_with_everything_that_is_random() {
    let link = format!(
        r#"{RATE}, {PIE}, "jitter_ns": 2000000, "reorder": {{"share": 0.01, "delay_ns": 5000000}},
           "loss_model": {{"gilbert_elliott": {{"p": 0.0005, "r": 0.3, "bad": 0.5, "good": 0}}}}"#
    );
    let (once, again) = (run("bbr", 3, "off", &link), run("bbr", 3, "off", &link));
    // As text, in which NaN equals NaN.
    assert!(format!("{once:?}") == format!("{again:?}"));
    assert!(once.links.lost.last() > Some(&0));
}

#[test]
fn invalid_links_are_refused_with_the_key_and_the_valid_values() {
    for (link, said) in [
        (r#""trace_ms": []"#, "trace_ms cannot be these 0 times; it takes times in ms"),
        (r#""trace_ms": [3, 2]"#, "trace_ms cannot be these 2 times; it takes times in ms"),
        (r#""rates": [[5, 1e6]]"#, "rates cannot be these 1 pairs; it takes pairs of time"),
        (r#""rates": [[0, -1]]"#, "rates cannot be -1; it takes numbers of bit/s"),
        (r#""rates": [[0, 1e6]], "rate_bps": 1e6"#, "rate cannot be given 2 times; it takes only"),
        (CODEL, "aqm cannot be given without a rate"),
        (
            r#""rate_bps": 1e6, "loss": 0.1, "loss_model": {"periodic": 10}"#,
            "loss cannot be 0.1; it takes 0 on a link with a loss_model",
        ),
        (r#""reorder": {"share": 2, "delay_ns": 1}"#, "reorder.share cannot be 2; it takes"),
        (
            r#""rate_bps": 1e6, "aqm": {"fq_codel": {"target_ns": 1, "interval_ns": 1, "quantum": 0,
            "queues": 1, "ecn": true}}"#,
            "aqm.fq_codel.quantum cannot be 0; it takes bytes",
        ),
    ] {
        let error = Scenario::from_json(&json("reno", 1, "off", link)).expect_err("not valid");
        assert!(error.to_string().contains(said), "{error}");
    }
}
