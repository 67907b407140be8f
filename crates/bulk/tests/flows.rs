//! Flows of SABUL, RBUDP and Tsunami over simulated links.

use dumbbell_bulk::sim::endpoints;
use dumbbell_bulk::{Options, rbudp};
use dumbbell_sim::{Factories, RunOutput, Scenario};
use serde_json::{Value, json};

/// A flow of a protocol alone on a link: rate in Mbit/s, round-trip time in ms, probability of a loss.
struct Path {
    rate: f64,
    rtt: u64,
    loss: f64,
    /// Bytes.
    queue: u64,
}

const LONG_QUEUE: u64 = 12_500_000;

fn run(protocol: &str, options: Value, path: &Path, bytes: Option<u64>, seconds: u64) -> RunOutput {
    let half = path.rtt * 500_000;
    let scenario = json!({
        "seed": 1, "duration_ns": seconds * 1_000_000_000, "sample_ns": 1_000_000_000,
        "links": [{"name": "link", "rate_bps": path.rate * 1e6, "delay_ns": half,
                   "queue": {"bytes": path.queue}, "loss": path.loss}],
        "flows": [{"name": "flow", "cc": "none", "path": ["link"], "return_delay_ns": half,
                   "bytes": bytes,
                   "external": {"transport": protocol, "stack": "", "options": options}}],
    });
    let factories = Factories { endpoints: endpoints().collect(), ..Factories::default() };
    let scenario = Scenario::from_json_with(&scenario.to_string(), &factories);
    scenario.expect("a valid scenario").run().expect("a run")
}

#[test]
fn every_protocol_delivers_all_bytes_in_spite_of_losses() {
    let path = Path { rate: 100.0, rtt: 20, loss: 0.01, queue: LONG_QUEUE };
    for &protocol in Options::NAMES {
        let options = match protocol {
            "sabul" => json!({"initial_rate_bps": 50_000_000, "max_rate_bps": 100_000_000}),
            "rbudp" => json!({"rate_bps": 80_000_000}),
            _ => json!({"target_rate_bps": 80_000_000}),
        };
        let flows = run(protocol, options, &path, Some(10_000_123), 30).flows;
        assert!(flows.completed[0].is_some(), "{protocol} {flows:?}");
        assert_eq!((flows.received[0], flows.delivered[0]), (10_000_123, 10_000_123), "{protocol}");
        assert!(flows.retransmitted[0] > 50, "{protocol} {flows:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_rows() {
    let path = Path { rate: 100.0, rtt: 20, loss: 0.001, queue: LONG_QUEUE };
    for &protocol in Options::NAMES {
        let flows = || run(protocol, json!({}), &path, None, 2);
        let (one, other) = (flows(), flows());
        // As text, as values that are not known are NaN.
        let rows = |run: &RunOutput| format!("{:?} {:?} {:?}", run.flows, run.series, run.links);
        assert_eq!(rows(&one), rows(&other), "{protocol}");
    }
}

/// The paper's model without loss (section 3): `B_send / (1 + RTT * B_send / S_total)`. It begins with
/// the blast; before it, the control channel is opened and the receiver's byte crosses the path.
#[test]
fn rbudp_has_the_throughput_of_its_papers_model() {
    for (rtt, bytes) in [(100, 67_500_000), (100, 20_000_000), (20, 67_500_000)] {
        let path = Path { rate: 1000.0, rtt, loss: 0.0, queue: LONG_QUEUE };
        let flows = run("rbudp", json!({"rate_bps": 600_000_000}), &path, Some(bytes), 10).flows;
        let rtt = rtt as f64 / 1e3;
        let took = flows.completed[0].expect("a completed transfer") - 1.5 * rtt;
        // An interval of 19 us: QUANTA rounds down to whole microseconds.
        let send_rate = 1460.0 * 8.0 / 19e-6;
        let model = rbudp::best_throughput(send_rate, bytes as f64, rtt);
        let measured = bytes as f64 * 8.0 / took;
        assert!((measured / model - 1.0).abs() < 0.005, "{measured} {model}");
    }
}

/// With a loss of `p`, a packet is sent `1 / (1 - p)` times on average.
#[test]
fn rbudp_sends_what_is_lost_and_nothing_else_again() {
    let path = Path { rate: 1000.0, rtt: 10, loss: 0.05, queue: LONG_QUEUE };
    let flows = run("rbudp", json!({}), &path, Some(73_000_000), 20).flows;
    assert!(flows.completed[0].is_some());
    let expected = 50_000.0 / 0.95;
    assert!((flows.sent[0] as f64 / expected - 1.0).abs() < 0.005, "{flows:?}");
    assert_eq!(flows.sent[0] - flows.retransmitted[0], 50_000);
    assert_eq!(flows.retransmitted[0], flows.lost[0]);
}

/// `1000000 * 8 * block_size / target_rate` is 12 us at 650 Mbit/s: 682.7 Mbit/s of data.
#[test]
fn tsunami_reaches_its_target_rate_on_a_path_that_has_it() {
    let path = Path { rate: 1000.0, rtt: 100, loss: 0.0, queue: LONG_QUEUE };
    let run = run("tsunami", json!({}), &path, None, 8);
    let delivered: Vec<_> = run.series.rows().map(|row| row.delivered).collect();
    let last_second = (delivered[8] - delivered[7]) as f64 * 8.0;
    assert!((last_second / (1024.0 * 8.0 / 12e-6) - 1.0).abs() < 0.001, "{last_second}");
    assert_eq!(run.flows.retransmitted[0], 0);
}

/// It reacts only to an error rate above 7.5 %, which is a share of 15 % of requests: a link that has
/// 90 % of the target rate loses what is above its own rate.
#[test]
fn tsunami_keeps_overloading_a_link_that_has_less_than_its_target() {
    let path = Path { rate: 600.0, rtt: 100, loss: 0.0, queue: LONG_QUEUE };
    let run = run("tsunami", json!({}), &path, None, 20);
    let dropped = *run.links.dropped.last().expect("samples");
    let share = dropped as f64 / run.flows.sent[0] as f64;
    assert!(share > 0.05, "{share}");
}

/// A queue of one BDP overflows when the rate is a tenth above the link's; some 70 packets are lost
/// until the first report arrives, and each is reported by itself. The first, the 16th, the 32nd and
/// the 64th report decrease the rate, to 1.1 / 1.125^4 = 0.69 of the link's, from which it grows
/// linearly: more than three quarters are used.
#[test]
fn sabul_uses_three_quarters_of_a_link_whose_losses_it_causes() {
    let path = Path { rate: 100.0, rtt: 40, loss: 0.0, queue: 500_000 };
    let options = json!({"initial_rate_bps": 20_000_000});
    let run = run("sabul", options, &path, None, 60);
    let received: Vec<_> = run.series.rows().map(|row| row.delivered).collect();
    let goodput = (received[60] - received[20]) as f64 * 8.0 / 40.0 / 1e6;
    let full = 100.0 * 1468.0 / 1500.0;
    assert!(goodput > full * 0.75 && goodput <= full, "{goodput}");
}

#[test]
fn options_that_a_protocol_does_not_have_are_refused() {
    let path = |options: Value| {
        let scenario = json!({
            "duration_ns": 1, "sample_ns": 1, "links": [{"name": "l", "delay_ns": 1}],
            "flows": [{"name": "f", "cc": "none", "path": ["l"],
                       "external": {"transport": "sabul", "stack": "", "options": options}}],
        });
        let factories = Factories { endpoints: endpoints().collect(), ..Factories::default() };
        let refused = Scenario::from_json_with(&scenario.to_string(), &factories)
            .map_err(|error| error.to_string())
            .and_then(|scenario| scenario.check().map_err(|error| error.to_string()));
        refused.expect_err("not valid")
    };
    assert!(path(json!({"rate": 1})).contains("transport_options"));
    let error = path(json!({"initial_rate_bps": 1}));
    assert!(error.contains("from min_rate to max_rate"), "{error}");
}
