//! Real TLS beside the handshake without cryptography.

#![cfg(feature = "tls")]

mod common;

use common::{Link, flow, run, sent};
use serde_json::{Value, json};

/// A logged flow of 2 MB with this protection of packets.
fn transfer(stack: &str, crypto: &str) -> Value {
    let mut flow = flow(stack, &format!("{stack}:cubic"));
    flow["external"]["options"] = json!({"crypto": crypto});
    flow["log"] = json!(true);
    flow["bytes"] = json!(2_000_000);
    flow
}

#[test]
fn the_null_handshake_sends_packets_of_the_sizes_of_tls_at_the_same_times() {
    for stack in ["quinn", "noq"] {
        let of = |crypto| sent(&run(Link::default(), json!([transfer(stack, crypto)]), 3));
        let (null, tls) = (of("null"), of("rustls"));
        let differs = null.iter().zip(&tls).position(|(null, tls)| null != tls);
        assert_eq!(differs, None, "{stack}");
        assert_eq!(null.len(), tls.len(), "{stack}");
        assert!(null.len() > 1400, "{stack}: {}", null.len());
    }
}
