//! Multipath connections in whole simulations: the goals of coupled congestion control (RFC 6356,
//! section 1) and the equilibria of the algorithms' papers.

use dumbbell_sim::{RunOutput, Scenario};
use dumbbell_tcp::{Ecn, Stack};
use serde_json::{Value, json};

const MS: u64 = 1_000_000;
const COUPLED: [&str; 3] = ["lia", "olia", "balia"];

/// A link of `mbit` Mbit/s (0 for no limit), 25 ms and a loss probability.
fn link(name: &str, mbit: u64, loss: f64) -> Value {
    let rate = (mbit > 0).then_some(mbit as f64 * 1e6);
    // A BDP of 50 ms.
    let queue = rate.map(|bps| json!({ "bytes": (bps * 0.05 / 8.0) as u64 }));
    json!({ "name": name, "rate_bps": rate, "delay_ns": 25 * MS, "queue": queue, "loss": loss })
}

/// A flow over these paths of 50 ms, one link each.
fn flow(name: &str, cc: &str, paths: &[&str]) -> Value {
    let mut paths = paths.iter().map(|path| json!({ "path": [path], "return_delay_ns": 25 * MS }));
    let mut flow = paths.next().expect("there is a path");
    flow["name"] = name.into();
    flow["cc"] = cc.into();
    // A window is full whenever data is: the equations are of windows.
    flow["scheduler"] = "lowest-rtt".into();
    flow["additional_subflows"] = paths.collect();
    flow
}

fn run(seconds: u64, links: Vec<Value>, flows: Vec<Value>) -> RunOutput {
    let scenario = json!({
        "duration_ns": seconds * 1000 * MS,
        "sample_ns": 1000 * MS,
        "start_jitter_ns": 100 * MS,
        "internals": false,
        "links": links,
        "flows": flows,
    });
    let scenario = Scenario::from_json(&scenario.to_string()).expect("it is valid");
    scenario.run().expect("it is valid")
}

/// Mbit/s of every flow.
fn rates(outcome: &RunOutput, seconds: u64) -> Vec<f64> {
    let delivered = outcome.flows.delivered.iter();
    delivered.map(|&bytes| bytes as f64 * 8e-6 / seconds as f64).collect()
}

/// Mbit/s of every subflow.
fn subflow_rates(outcome: &RunOutput, seconds: u64) -> Vec<f64> {
    let delivered = outcome.subflows.delivered.iter();
    delivered.map(|&bytes| bytes as f64 * 8e-6 / seconds as f64).collect()
}

/// Goal 1: at least the throughput of a single-path flow on the best path.
#[test]
fn a_multipath_flow_is_no_slower_than_one_on_its_best_path() {
    let seconds = 120;
    let network = |flow: Value| {
        let rivals = [("good", "rival-1"), ("bad", "rival-2")];
        let rivals = rivals.map(|(path, name)| self::flow(name, "reno", &[path]));
        let links = vec![link("good", 20, 0.0), link("bad", 8, 0.0)];
        rates(&run(seconds, links, [vec![flow], rivals.into()].concat()), seconds)[0]
    };
    let alone = network(flow("mine", "reno", &["good"]));
    for cc in COUPLED {
        let both = network(flow("mine", cc, &["good", "bad"]));
        assert!(both > 0.85 * alone, "{cc}: {both} beside {alone} Mbit/s");
    }
}

/// Goal 2: no more of a shared bottleneck than a single-path flow takes.
#[test]
fn a_multipath_flow_does_no_harm_at_a_shared_bottleneck() {
    let seconds = 200;
    let shares = |cc| {
        let flows =
            vec![flow("mine", cc, &["shared", "shared"]), flow("rival", "reno", &["shared"])];
        let rates = rates(&run(seconds, vec![link("shared", 20, 0.0)], flows), seconds);
        rates[0] / (rates[0] + rates[1])
    };
    for cc in COUPLED {
        let share = shares(cc);
        assert!(share < 0.6, "{cc}: {share}");
    }
    let uncoupled = shares("reno");
    assert!(uncoupled > 0.6, "{uncoupled}");
}

/// Goal 3: traffic moves away from a congested path.
#[test]
fn a_multipath_flow_balances_congestion() {
    let seconds = 120;
    let on_crowded_path = |cc| {
        let rivals = (0..4).map(|i| flow(&format!("rival-{i}"), "reno", &["crowded"]));
        let mine = flow("mine", cc, &["crowded", "free"]);
        let links = vec![link("crowded", 20, 0.0), link("free", 20, 0.0)];
        let outcome = run(seconds, links, rivals.chain([mine]).collect());
        subflow_rates(&outcome, seconds)[0]
    };
    let uncoupled = on_crowded_path("reno");
    for cc in COUPLED {
        let coupled = on_crowded_path(cc);
        assert!(coupled < 0.6 * uncoupled, "{cc}: {coupled} beside {uncoupled} Mbit/s");
    }
}

/// Rates over two paths of equal round-trip times with these loss rates, and Reno's rate on the
/// first.
fn over_lossy_paths(cc: &str, losses: [f64; 2]) -> (Vec<f64>, f64) {
    let seconds = 300;
    let links = || vec![link("a", 0, losses[0]), link("b", 0, losses[1])];
    let reno = run(seconds, links(), vec![flow("mine", "reno", &["a"])]);
    let outcome = run(seconds, links(), vec![flow("mine", cc, &["a", "b"])]);
    (subflow_rates(&outcome, seconds), rates(&reno, seconds)[0])
}

/// Khalili et al., CoNEXT 2012, equation 2: at equal round-trip times LIA's windows are inversely
/// proportional to the loss rates, and their sum is Reno's window on the best path.
#[test]
fn lia_splits_renos_rate_in_inverse_proportion_to_the_loss_rates() {
    let (rates, reno) = over_lossy_paths("lia", [1e-3, 3e-3]);
    let (ratio, total) = (rates[0] / rates[1], (rates[0] + rates[1]) / reno);
    assert!((2.2..3.8).contains(&ratio), "{ratio}");
    assert!((0.85..1.15).contains(&total), "{total}");
}

/// The same paper, theorem 1: on average OLIA uses only the best paths, at Reno's rate on the best
/// one. Windows of some forty packets see few losses, so OLIA does not leave the worse path
/// entirely.
#[test]
fn olia_uses_a_worse_path_less_than_lia_does() {
    let (rates, reno) = over_lossy_paths("olia", [1e-3, 3e-3]);
    let (worse, total) = (rates[1] / (rates[0] + rates[1]), (rates[0] + rates[1]) / reno);
    let (lia, _) = over_lossy_paths("lia", [1e-3, 3e-3]);
    assert!(worse < 0.85 * lia[1] / (lia[0] + lia[1]), "{worse}");
    assert!((0.8..1.15).contains(&total), "{total}");
}

/// Peng et al., BALIA: over two equal paths alpha is 1. The window grows by 1 / (4 w) per packet
/// and halves on loss, so each window is sqrt(1 / (2 p)), and their sum Reno's sqrt(2 / p).
#[test]
fn balia_has_renos_rate_over_equal_paths() {
    for cc in ["balia", "olia", "lia"] {
        let (rates, reno) = over_lossy_paths(cc, [2e-3, 2e-3]);
        let total = (rates[0] + rates[1]) / reno;
        assert!((0.85..1.2).contains(&total), "{cc}: {total}");
    }
}

/// Scenario C of Khalili et al.: ten multipath users have an access point of 10 Mbit/s and share
/// another one with ten single-path TCP users, at 80 ms with RED. Returns the mean rate of a
/// single-path user in Mbit/s; without the multipath users it would be 1.
fn left_to_plain_users(cc: &str) -> f64 {
    let seconds = 300;
    let access = |name: &str| {
        let mut link = link(name, 10, 0.0);
        link["delay_ns"] = (55 * MS).into();
        link["queue"] = json!({ "packets": 100 });
        link["aqm"] = json!({ "red": { "unit": "packets", "min": 25, "max": 50, "probability": 0.1,
            "weight": 0.002, "gentle": true, "ecn": false, "hard_drop": true } });
        link
    };
    let multipath = (0..10).map(|i| flow(&format!("multipath-{i}"), cc, &["own", "shared"]));
    let plain = (0..10).map(|i| flow(&format!("plain-{i}"), "reno", &["shared"]));
    let links = vec![access("own"), access("shared")];
    let rates = rates(&run(seconds, links, multipath.chain(plain).collect()), seconds);
    rates[10..].iter().sum::<f64>() / 10.0
}

/// Let z^2 be the ratio of the two loss rates. By equation 2 of the paper a LIA user gets 1 and z^2
/// Mbit/s and a single-path user z (1 + z^2). The shared access point is full at z + z^2 + z^3 = 1,
/// so a single-path user gets 0.70 Mbit/s. The paper's point is that OLIA leaves more.
#[test]
fn lia_leaves_plain_users_70_percent_and_olia_more() {
    let [reno, lia, olia] = ["reno", "lia", "olia"].map(left_to_plain_users);
    assert!((0.63..0.77).contains(&lia), "{lia}");
    assert!(olia > lia, "{olia} beside {lia}");
    assert!(reno < 0.8 * lia, "{reno} beside {lia}");
}

/// A mark ends an interval between losses as a loss does (mptcp_olia_set_state: CWR), for the
/// subflow and its siblings. So OLIA's rate with ECN is about that without.
#[test]
fn olia_counts_a_mark_on_any_subflow_as_a_loss() {
    let seconds = 120;
    let total = |ecn| {
        let red = |name: &str| {
            let mut link = link(name, 20, 0.0);
            link["queue"] = json!({ "bytes": 250_000 });
            link["aqm"] = json!({ "red": { "unit": "packets", "min": 20, "max": 60,
                "probability": 0.1, "weight": 0.002, "gentle": true, "ecn": true,
                "hard_drop": false } });
            link
        };
        let rivals = [("rival-1", "a"), ("rival-2", "b"), ("rival-3", "b"), ("rival-4", "b")];
        let rivals = rivals.map(|(name, path)| flow(name, "reno", &[path]));
        let mut flows = [vec![flow("mine", "olia", &["a", "b"])], rivals.into()].concat();
        let stack =
            serde_json::to_value(Stack { ecn, ..Stack::linux() }).expect("it is plain data");
        flows.iter_mut().for_each(|flow| flow["stack"] = stack.clone());
        rates(&run(seconds, vec![red("a"), red("b")], flows), seconds)[0]
    };
    let [without, with] = [Ecn::Off, Ecn::Classic].map(total);
    assert!(with > 0.7 * without, "{with} with marks, {without} without Mbit/s");
}

#[test]
fn a_connections_row_is_the_sum_of_its_subflows() {
    let links = vec![link("a", 10, 1e-3), link("b", 5, 0.0)];
    let outcome = run(20, links, vec![flow("mine", "lia", &["a", "b"])]);
    assert_eq!(outcome.flows.sent[0], outcome.subflows.sent.iter().sum::<u64>());
    assert_eq!(outcome.flows.recoveries[0], outcome.subflows.recoveries.iter().sum::<u32>());
    // Data delivered in order is at most the data that arrived.
    assert!(outcome.flows.delivered[0] <= outcome.subflows.delivered.iter().sum::<u64>());
    assert!(outcome.flows.delivered[0] > 20 * 5_000_000 / 8);
}
