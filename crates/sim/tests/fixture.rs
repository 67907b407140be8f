//! The example of a path as a test fixture.

#![allow(dead_code, reason = "the example has a main function")]

#[path = "../examples/fixture.rs"]
mod fixture;

#[test]
fn a_toy_protocol_uses_a_codel_link_and_keeps_its_queue_short() {
    let output = fixture::on_the_link().expect("a valid link");
    let rate = *output.links.sent_bytes.last().expect("a sample") as f64 * 8.0 / 20.0;
    assert!((9e6..=10e6 * 1.001).contains(&rate), "{rate}");
    // RFC 8289, section 4.1: CoDel's target is 5 ms; bursts exceed it for an interval.
    assert!(output.flows.queue_delay_p50[0].is_some_and(|delay| delay < 0.0065));
    assert!(output.links.marked.last().is_some_and(|marked| *marked > 0));
    assert_eq!(output.links.dropped.last(), Some(&0));
}
