//! dumbbell's algorithms in QUIC stacks beside the same ones in TCP.

mod common;

use common::{Link, flow, run, tcp};
use dumbbell_cc::NAMES;
use dumbbell_quinn::Config;
use dumbbell_sim::{FlowRow, RunOutput};
use serde_json::{Value, json};

/// Data in a full packet over QUIC and TCP, as a share of its size.
const QUIC_SHARE: f64 = 1419.0 / 1480.0;
const TCP_SHARE: f64 = 1448.0 / 1500.0;

fn alone(mut flow: Value, seconds: u64) -> RunOutput {
    flow["name"] = json!("f");
    run(Link::default(), json!([flow]), seconds)
}

/// Share of the link that the data and its headers take.
fn share(row: &FlowRow, of_packet: f64, seconds: f64) -> f64 {
    row.received as f64 * 8.0 / seconds / 20e6 / of_packet
}

#[test]
fn an_algorithm_has_the_same_goodput_over_quic_as_over_tcp() {
    // Goodput within 3 %; mean queueing delay within 6 ms of 40 ms.
    for cc in ["reno", "cubic", "htcp", "westwood", "vegas", "illinois", "bbr", "bbr2", "bbr3"] {
        let over_tcp = alone(tcp(cc), 30).flows.rows().next().expect("a flow");
        for stack in ["quinn", "noq"] {
            let over_quic = alone(flow(stack, cc), 30).flows.rows().next().expect("a flow");
            let shares = [share(&over_quic, QUIC_SHARE, 30.0), share(&over_tcp, TCP_SHARE, 30.0)];
            let ratio = shares[0] / shares[1];
            assert!((0.97..=1.03).contains(&ratio), "{stack} {cc}: {shares:?}");
            let delay = |row: &FlowRow| row.queue_delay_mean.expect("packets arrived");
            let difference = delay(&over_quic) - delay(&over_tcp);
            assert!(difference.abs() < 0.006, "{stack} {cc}: {difference}");
        }
    }
}

#[test]
fn every_algorithm_that_quic_supports_runs_in_both_stacks() {
    for cc in NAMES.iter().filter(|name| Config::new(name).is_ok()) {
        for stack in ["quinn", "noq"] {
            let row = alone(flow(stack, cc), 10).flows.rows().next().expect("a flow");
            let share = share(&row, QUIC_SHARE, 10.0);
            // CDG backs off at random: in 10 s of this path it has 0.76 to 0.83 over TCP (five seeds).
            let least = if *cc == "cdg" { 0.6 } else { 0.7 };
            assert!((least..=1.0).contains(&share), "{stack} {cc}: {share}");
        }
    }
}

#[test]
fn a_rate_that_falls_with_the_first_round_trip_stops_no_flow() {
    // Without probes for larger packets, the handshake's packets are all that is in flight.
    for stack in ["quinn", "noq"] {
        let mut bbr = flow(stack, "bbr3");
        bbr["external"]["options"] = json!({"mtu_discovery": false});
        let row = alone(bbr, 10).flows.rows().next().expect("a flow");
        let share = share(&row, QUIC_SHARE, 10.0);
        assert!((0.85..=1.0).contains(&share), "{stack}: {share}");
    }
}

#[test]
fn the_internals_of_our_algorithms_are_sampled() {
    for stack in ["quinn", "noq"] {
        let output = alone(flow(stack, "bbr3"), 5);
        assert!(output.internals.names.contains(&"max_bw"), "{stack}");
        let rate = output.series.rows().last().expect("a sample").delivery_rate;
        // Packets count with their UDP payload, 1452 of 1480 bytes.
        assert!((18e6..20e6).contains(&rate), "{stack}: {rate}");
    }
}

#[test]
fn an_application_limited_bbr_does_not_take_its_rate_for_the_paths() {
    for stack in ["quinn", "noq"] {
        let mut flow = flow(stack, "bbr3");
        // 2 s of 15 Mbit/s, then 3 Mbit/s.
        flow["app_rates"] = json!([[0, 15e6], [2_000_000_000_u64, 3e6]]);
        let output = alone(flow, 10);
        let last = output.series.rows().last().expect("a sample");
        assert!(last.pacing_rate > 10e6, "{stack}: {last:?}");
    }
}
