//! Dumbbell scenarios: flows that share one bottleneck of 100 ms.

use dumbbell_sim::{FlowSpec, LinkSpec, QueueSpec, Scenario};
use dumbbell_tcp::Stack;

const SECOND: u64 = 1_000_000_000;

/// `flows` flows over a bottleneck of `rate_bps` with a queue of one BDP, for `seconds`; their
/// starts are spread over the first second.
pub fn dumbbell(cc: &str, flows: u64, rate_bps: f64, seconds: u64) -> Scenario {
    let link = LinkSpec {
        name: "bottleneck".to_owned(),
        rate_bps: Some(rate_bps),
        delay_ns: SECOND / 20,
        queue: Some(QueueSpec::Bytes((rate_bps / 80.0) as u64)),
        ..LinkSpec::default()
    };
    let flow = |number| FlowSpec {
        name: format!("flow-{number}"),
        cc: cc.to_owned(),
        path: vec!["bottleneck".to_owned()],
        return_path: Vec::new(),
        return_delay_ns: SECOND / 20,
        sender: None,
        receiver: None,
        dscp: 0,
        start_ns: number * SECOND / flows,
        stop_ns: None,
        bytes: None,
        transfers: None,
        app: None,
        udp: false,
        app_rate_bps: None,
        app_rates: Vec::new(),
        additional_subflows: Vec::new(),
        scheduler: "lowest-rtt".to_owned(),
        stack: Stack::linux(),
        udt: None,
        external: None,
        endpoint_factory: None,
        kernel_cc: None,
        command: None,
        server: None,
        log: false,
        algorithm_factory: None,
    };
    Scenario {
        seed: 1,
        duration_ns: seconds * SECOND,
        // About the same number of rows for any number of flows, with at least one sample per
        // second.
        sample_ns: (flows * SECOND / 10).clamp(SECOND / 10, SECOND),
        warmup_ns: 0,
        start_jitter_ns: 0,
        internals: flows <= 100, // as by default
        sources: Default::default(),
        links: vec![link],
        flows: (0..flows).map(flow).collect(),
    }
}
