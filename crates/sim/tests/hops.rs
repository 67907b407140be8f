//! Runs in steps, and the hops of packets over links.

use dumbbell_sim::{Hop, HopEnd, RunOutput, Scenario};
use dumbbell_units::{Span, Time};

/// Two flows over two links in a row; the second is the bottleneck.
fn scenario(aqm: &str, ecn: &str) -> Scenario {
    let json = format!(
        r#"{{"duration_ns": 3000000000, "sample_ns": 50000000,
        "links": [
          {{"name": "a", "rate_bps": 50e6, "delay_ns": 2000000, "queue": {{"packets": 100}}}},
          {{"name": "b", "rate_bps": 10e6, "delay_ns": 8000000, "queue": {{"packets": 20}}{aqm}}}],
        "flows": [
          {{"name": "one", "cc": "reno", "path": ["a", "b"], "return_delay_ns": 10000000}},
          {{"name": "two", "cc": "cubic", "path": ["b"], "return_delay_ns": 12000000}}]}}"#
    );
    let mut scenario = Scenario::from_json(&json).expect("a valid scenario");
    for flow in &mut scenario.flows {
        flow.stack.ecn = serde_json::from_str(ecn).expect("a kind of ECN");
    }
    scenario
}

/// Runs to the end and records all hops.
fn hops(scenario: &Scenario) -> Vec<Hop> {
    let mut run = scenario.start().expect("a valid scenario");
    run.record_hops(1_000_000);
    while run.step().is_some() {}
    run.hops().hops().to_vec()
}

#[test]
fn a_run_in_steps_gives_what_a_run_at_once_gives() {
    let scenario = scenario("", "\"off\"");
    let mut run = scenario.start().expect("a valid scenario");
    run.record_drops();
    run.record_hops(1000);
    let shares: Vec<f64> = std::iter::from_fn(|| run.step()).collect();
    assert_eq!((shares.len(), shares[0], shares[60]), (61, 0.0, 1.0));
    assert!(run.has_recorded());
    assert_eq!(run.hops().hops().len(), 1000);
    let (drops, stepped) = (run.hops().drops().len() as u64, run.into_output());
    let whole = scenario.run().expect("a valid scenario");
    // Compared as text: NaN is not equal to itself.
    let text = |output: &RunOutput| format!("{:?} {:?}", output.series, output.flows);
    assert!(text(&stepped) == text(&whole), "the tables differ");
    assert_eq!((&stepped.links, stepped.events), (&whole.links, whole.events));
    let last = whole.links.rows().last().expect("samples");
    assert!(drops > 0 && drops == last.dropped, "{drops}");
}

#[test]
fn every_hop_takes_its_link_s_delay_at_least_and_ends() {
    let scenario = scenario("", "\"off\"");
    let end = Time::from_nanos(scenario.duration_ns);
    let found = hops(&scenario);
    for hop in &found {
        let delay = scenario.links.get(hop.link.0 as usize).map_or(0, |link| link.delay_ns);
        match hop.end {
            HopEnd::Delivered => {
                assert!(hop.left_at.since(hop.entered_at) >= Span::from_nanos(delay), "{hop:?}");
            }
            HopEnd::Dropped(_) => {
                assert_eq!(hop.left_at, hop.entered_at, "a full queue drops at once")
            }
            HopEnd::Open => assert!(end.since(hop.entered_at) < Span::from_millis(100), "{hop:?}"),
        }
    }
    // Data of the first flow crosses both links, one right after the other.
    let of = |link| {
        let data = found.iter().filter(move |hop| hop.flow == 0 && hop.by_sender);
        data.filter(move |hop| hop.link.0 == link && !hop.retransmission).collect::<Vec<_>>()
    };
    for (first, second) in of(0).iter().zip(of(1)).take(500) {
        assert_eq!((first.number, first.left_at), (second.number, second.entered_at));
    }
}

#[test]
fn hops_count_what_links_count() {
    for (aqm, ecn) in [
        ("", "\"off\""),
        (
            r#", "aqm": {"codel": {"target_ns": 5000000, "interval_ns": 100000000, "ecn": true, "ce_threshold_ns": null}}"#,
            "\"classic\"",
        ),
    ] {
        let scenario = scenario(aqm, ecn);
        let (found, output) = (hops(&scenario), scenario.run().expect("valid"));
        let last = output.links.rows().filter(|row| row.link == 1).last().expect("samples");
        let on = || found.iter().filter(|hop| hop.link.0 == 1);
        let dropped = on().filter(|hop| matches!(hop.end, HopEnd::Dropped(_))).count() as u64;
        assert_eq!(dropped, last.dropped, "{aqm}");
        let marked = on().filter(|hop| hop.marked).count() as u64;
        assert!(last.marked.abs_diff(marked) <= 2, "{marked}, and those on the wire: {last:?}");
        assert_eq!(aqm.is_empty(), last.marked == 0);
    }
}
