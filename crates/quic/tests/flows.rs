//! Flows of unmodified QUIC stacks on simulated links.

mod common;

use common::{Link, flow, run, sent};
use dumbbell_net::{AqmConfig, CodelConfig};
use dumbbell_quic::STACKS;
use dumbbell_sim::{EcnCodepoint, Factories, RunOutput, Scenario};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const STACK_NAMES: [&str; 2] = ["quinn", "noq"];

/// A CUBIC flow of a stack with further keys.
fn cubic(stack: &str, keys: Value) -> Value {
    let mut flow = flow(stack, &format!("{stack}:cubic"));
    let keys = keys.as_object().expect("keys").clone();
    flow.as_object_mut().expect("a flow").extend(keys);
    flow
}

#[test]
fn every_algorithm_of_every_stack_fills_the_link() {
    for &(stack, names) in STACKS {
        for name in names {
            let flow = flow(stack, &format!("{stack}:{name}"));
            let output = run(Link::default(), json!([flow]), 20);
            let goodput = output.flows.received[0] as f64 * 8.0 / 20.0;
            // 20 Mbit/s, of which data is 1418 of 1480 bytes of a packet.
            let share = goodput / (20e6 * 1418.0 / 1480.0);
            // Their BBRs leave some of it (docs/how-to/quic.md).
            let least = if name.starts_with("bbr") { 0.75 } else { 0.97 };
            assert!((least..=1.0).contains(&share), "{stack}:{name}: {share}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_datagrams() {
    for stack in STACK_NAMES {
        let of = || {
            let flow = cubic(stack, json!({"log": true}));
            sent(&run(Link::default().with("loss", json!(0.01)), json!([flow]), 5))
        };
        let first = of();
        assert!(first.len() > 1000, "{stack}");
        assert!(first == of(), "{stack}");
    }
}

#[test]
fn a_transfer_is_complete_when_all_of_it_is_acknowledged() {
    for stack in STACK_NAMES {
        // Losses at random, so that data is sent more than once.
        let link = Link::default().with("loss", json!(0.02));
        let output = run(link, json!([cubic(stack, json!({"bytes": 1_000_000}))]), 20);
        let row = output.flows.rows().next().expect("a flow");
        assert_eq!((row.received, row.delivered), (1_000_000, 1_000_000), "{stack}");
        assert!(row.lost > 5, "{stack}: {}", row.lost);
        // A round-trip time for the handshake, and at least the transmission time.
        let completed = row.completed.expect("it ends");
        assert!((0.04 + 0.4..15.0).contains(&completed), "{stack}: {completed}");
    }
}

#[test]
fn the_handshake_takes_one_round_trip_and_packets_grow_to_1452_bytes() {
    for stack in STACK_NAMES {
        let output = run(Link::default(), json!([cubic(stack, json!({"log": true}))]), 3);
        let sent = sent(&output);
        // RFC 9000, section 14.1: datagrams with Initial packets have at least 1200 bytes.
        assert_eq!((sent[0].0, sent[0].2), (0, 1228), "{stack}");
        // 40 ms, and 491.2 us for the transmission of the first datagram.
        let second = sent.iter().filter(|record| record.1).nth(1).expect("a second datagram");
        assert_eq!(second.0, 40_491_200, "{stack}");
        let largest = sent.iter().map(|record| record.2).max();
        assert_eq!(largest, Some(1480), "{stack}");
    }
}

#[test]
fn packets_stay_at_1200_bytes_without_mtu_discovery() {
    for stack in STACK_NAMES {
        let mut flow = cubic(stack, json!({"log": true}));
        flow["external"]["options"] = json!({"mtu_discovery": false});
        let output = run(Link::default(), json!([flow]), 3);
        let largest = sent(&output).iter().map(|record| record.2).max();
        assert_eq!(largest, Some(1228), "{stack}");
    }
}

#[test]
fn an_application_with_a_rate_sends_at_its_rate_and_fills_no_queue() {
    for stack in STACK_NAMES {
        let output = run(Link::default(), json!([cubic(stack, json!({"app_rate_bps": 2e6}))]), 20);
        let row = output.flows.rows().next().expect("a flow");
        let rate = row.received as f64 * 8.0 / 20.0;
        assert!((rate / 2e6 - 1.0).abs() < 0.01, "{stack}: {rate}");
        let p95 = row.queue_delay_p95.expect("packets arrived");
        assert!(p95 < 0.001, "{stack}: {p95}");
        assert_eq!(row.lost, 0, "{stack}");
    }
}

#[test]
fn a_flow_that_stops_sends_nothing_new() {
    for stack in STACK_NAMES {
        let flow = cubic(stack, json!({"start_ns": 1_000_000_000, "stop_ns": 5_000_000_000_u64}));
        let output = run(Link::default(), json!([flow]), 8);
        let series = &output.series;
        let received = |t: f64| {
            let row = series.rows().find(|row| (row.t - t).abs() < 1e-6);
            row.expect("a sample").received
        };
        assert_eq!(series.t[0], 1.0, "{stack}");
        // A window and what was written ahead are on their way, 300 kB or 120 ms at most.
        assert_eq!(received(5.3), received(8.0), "{stack}");
        assert!(received(5.0) > 8_000_000, "{stack}");
    }
}

#[test]
fn many_losses_at_once_do_not_end_the_connection() {
    for stack in STACK_NAMES {
        // Slow start ends with a burst of losses.
        let link = Link::default().with("rate_bps", json!(1e9));
        let link = link.with("queue", json!({"bytes": 5_000_000}));
        let output = run(link, json!([cubic(stack, json!({}))]), 3);
        let row = output.flows.rows().next().expect("a flow");
        assert!(row.lost > 1000, "{stack}: {}", row.lost);
        let received: Vec<_> = output.series.rows().map(|row| row.received).collect();
        let late = received[30] - received[20];
        assert!(late as f64 * 8.0 > 8e8, "{stack}: {late}");
    }
}

#[test]
fn marks_reach_the_sender_and_take_the_place_of_losses() {
    for stack in STACK_NAMES {
        let codel = json!(AqmConfig::Codel(CodelConfig::default()));
        let link = Link::default().with("aqm", codel).with("queue", Value::Null);
        let output = run(link, json!([cubic(stack, json!({"log": true}))]), 20);
        let row = output.flows.rows().next().expect("a flow");
        let marked = *output.links.marked.last().expect("a sample");
        assert!(marked > 3 && row.recoveries > 0, "{stack}: {marked}, {}", row.recoveries);
        assert_eq!(row.lost, 0, "{stack}");
        assert!(u64::from(row.recoveries) <= marked, "{stack}");
        // Data and acknowledgements are ECT(0) (RFC 9000, section 13.4).
        assert!(sent(&output).iter().all(|record| record.3 == EcnCodepoint::Ect0), "{stack}");
        // CoDel keeps the queue short, which tail drop does not.
        let p50 = row.queue_delay_p50.expect("packets arrived");
        assert!(p50 < 0.012, "{stack}: {p50}");
    }
}

#[test]
fn the_samples_have_what_the_stack_measures() {
    for stack in STACK_NAMES {
        let output = run(Link::default(), json!([cubic(stack, json!({}))]), 20);
        let row = output.flows.rows().next().expect("a flow");
        // Data acknowledged is taken from the sizes of packets; at most a window is on its way.
        let (delivered, received) = (row.delivered as f64, row.received as f64);
        assert!((0.99..1.0).contains(&(delivered / received)), "{stack}: {delivered} {received}");
        let mut rates = Vec::new();
        for row in output.series.rows().filter(|row| row.t > 5.0) {
            assert!((0.04..0.041).contains(&row.min_rtt), "{stack}: {row:?}");
            assert!((0.04..0.09).contains(&row.rtt), "{stack}: {row:?}");
            assert!((0.04..0.09).contains(&row.srtt), "{stack}: {row:?}");
            // The link holds 68 packets and its queue 68 more.
            assert!(row.in_flight <= 140, "{stack}: {row:?}");
            rates.push(f64::from(row.in_flight) * 1480.0 * 8.0 / f64::from(row.rtt));
        }
        // Packets in flight over the round-trip time are the rate of the link.
        let rate = rates.iter().sum::<f64>() / rates.len() as f64;
        assert!((rate / 20e6 - 1.0).abs() < 0.05, "{stack}: {rate}");
    }
}

#[test]
fn the_data_of_every_lost_packet_is_sent_again() {
    for stack in STACK_NAMES {
        let link = Link::default().with("loss", json!(0.02));
        let output = run(link, json!([cubic(stack, json!({}))]), 10);
        let row = output.flows.rows().next().expect("a flow");
        let last = output.links.rows().last().expect("a sample");
        // RFC 9000, section 13.3: data of lost packets is sent again; those of the last round trip
        // are not lost yet, and probes for a larger MTU have no data.
        let lost = last.lost + last.dropped;
        let spare = u64::from(row.timeouts) * 2 + 3;
        assert!(lost > 30, "{stack}: {lost}");
        assert!(row.retransmitted.abs_diff(lost) <= spare, "{stack}: {row:?}, {lost} on the link");
    }
}

/// A flow of 5 Mbit/s on a link that loses everything from 2 s on, until `end`.
fn across_an_outage(stack: &str, end: u64, options: Value) -> RunOutput {
    let steps = json!([[0, 0.0], [2_000_000_000_u64, 1.0], [end, 0.0]]);
    let mut flow = cubic(stack, json!({"app_rate_bps": 5e6}));
    flow["external"]["options"] = options;
    run(Link::default().with("loss_steps", steps), json!([flow]), 8)
}

#[test]
fn probe_timeouts_double_during_an_outage() {
    for stack in STACK_NAMES {
        let output = across_an_outage(stack, 5_000_000_000, json!({}));
        let row = output.flows.rows().next().expect("a flow");
        let before = output.series.rows().find(|row| row.t >= 1.95).expect("a sample");
        // RFC 9002, section 6.2.1: srtt + 4 rttvar + max_ack_delay (25 ms), doubled by each; rttvar
        // is between 0 and srtt / 2. The first begins when the window is full, 0.3 s at most; the probe
        // of the last, which expires after the outage, arrives.
        let (srtt, outage) = (f64::from(before.srtt), 3.0);
        let expirations = |pto: f64, time: f64| (time / pto + 1.0).log2().floor() as u32 + 1;
        let least = expirations(3.0 * srtt + 0.025, outage - 0.3);
        let most = expirations(srtt + 0.025, outage);
        assert!((least..=most).contains(&row.timeouts), "{stack}: {row:?}, {least} to {most}");
        assert!(output.failures.is_empty(), "{stack}");
        assert!(row.received > 2_000_000, "{stack}: {row:?}");
    }
}

#[test]
fn a_connection_that_is_idle_for_too_long_is_reported() {
    for stack in STACK_NAMES {
        let options = json!({"idle_timeout_ns": 1_000_000_000});
        let output = across_an_outage(stack, 7_000_000_000, options);
        let [failure] = &output.failures[..] else { panic!("{stack}: one failure") };
        assert_eq!((failure.flow, failure.why.as_str()), (0, "timed out"), "{stack}");
        // RFC 9000, section 10.1: restarted by the last packet that arrives, and by the first one
        // that is sent after it.
        let at = failure.at.as_secs_f64();
        assert!((3.0..3.1).contains(&at), "{stack}: {at}");
    }
}

#[test]
fn a_connection_that_has_sent_everything_may_time_out() {
    for stack in STACK_NAMES {
        for (keys, datagrams) in [
            (json!({"bytes": 500_000}), false),
            (json!({"stop_ns": 1_000_000_000}), false),
            (json!({"stop_ns": 1_000_000_000, "app_rate_bps": 1e6}), true),
        ] {
            let mut flow = cubic(stack, keys);
            flow["external"]["options"] =
                json!({"idle_timeout_ns": 1_000_000_000, "datagrams": datagrams});
            let output = run(Link::default(), json!([flow]), 5);
            assert_eq!(output.failures, [], "{stack} {datagrams}");
        }
    }
}

#[test]
fn datagrams_are_counted_and_not_repeated() {
    for stack in STACK_NAMES {
        let mut flow = cubic(stack, json!({"app_rate_bps": 1e6}));
        flow["external"]["options"] = json!({"datagrams": true});
        let output = run(Link::default().with("loss", json!(0.01)), json!([flow]), 20);
        let row = output.flows.rows().next().expect("a flow");
        let lost = *output.links.lost.last().expect("a sample");
        // 1 Mbit/s in datagrams of 1150 bytes; those of the handshake wait for it.
        assert!(row.sent.abs_diff(20_000_000 / (8 * 1150)) <= 1, "{stack}: {row:?}");
        assert_eq!(row.retransmitted, 0, "{stack}");
        // Few packets have no datagram; the last ones are on their way.
        assert!(lost > 10 && row.lost.abs_diff(lost) <= 3, "{stack}: {row:?}, {lost} on the link");
        assert!((row.sent - row.lost - row.received / 1150) <= 3, "{stack}: {row:?}");
        assert_eq!(row.delivered, row.received, "{stack}");
    }
}

#[test]
fn what_a_stack_does_not_have_is_refused_with_what_there_is() {
    let error = |stack: &str, cc: &str, keys: Value| {
        let mut flow = flow(stack, cc);
        for (key, value) in keys.as_object().expect("keys") {
            flow[key] = value.clone();
        }
        let json = json!({"duration_ns": 1, "sample_ns": 1, "links": [Link::default().0],
                          "flows": [flow]});
        let endpoints = BTreeMap::from([("quic".to_owned(), dumbbell_quic::endpoints())]);
        let factories = Factories { endpoints, ..Factories::default() };
        let scenario = Scenario::from_json_with(&json.to_string(), &factories);
        scenario.expect_err("not valid").to_string()
    };
    let options =
        json!({"external": {"transport": "quic", "stack": "noq", "options": {"initial_mtu": 1}}});
    let datagrams = json!({"external": {"transport": "quic", "stack": "quinn", "options": {"datagrams": true}}});
    for (stack, cc, keys, part) in [
        ("quiche", "quinn:cubic", json!({}), "stack cannot be quiche; it takes one of quinn, noq"),
        ("quinn", "quinn:vegas", json!({}), "it takes quinn: and one of cubic, reno, bbr"),
        ("quinn", "noq:bbr3", json!({}), "it takes an algorithm of the flow's stack, quinn"),
        ("quinn", "quinn:cubic", datagrams, "it takes datagrams with app_rate_bps or app_rates"),
        ("noq", "noq:cubic", options, "cannot be 1; it takes initial_mtu from 1200 to 1452"),
    ] {
        let error = error(stack, cc, keys);
        assert!(error.contains(part), "{error}");
    }
}
