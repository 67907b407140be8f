//! Scenarios with QUIC flows.

#![allow(dead_code, reason = "each test file uses some of it")]

use dumbbell_sim::{Factories, RunOutput, Scenario};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A bottleneck of 20 Mbit/s and a round-trip time of 40 ms, with a queue of 1 BDP (100 kB).
pub struct Link(pub Value);

impl Default for Link {
    fn default() -> Link {
        Link(json!({"name": "l", "rate_bps": 20e6, "delay_ns": 20_000_000, "queue": {"bytes": 100_000}}))
    }
}

impl Link {
    /// The same with another value of a key.
    pub fn with(mut self, key: &str, value: Value) -> Link {
        self.0[key] = value;
        self
    }
}

/// A QUIC flow across the bottleneck.
pub fn flow(stack: &str, cc: &str) -> Value {
    json!({"name": cc, "cc": cc, "path": ["l"], "return_delay_ns": 20_000_000,
           "external": {"transport": "quic", "stack": stack}})
}

/// The same flow over TCP.
pub fn tcp(cc: &str) -> Value {
    json!({"name": format!("tcp {cc}"), "cc": cc, "path": ["l"], "return_delay_ns": 20_000_000})
}

pub fn scenario(link: Link, flows: Value, seconds: u64) -> Scenario {
    let json = json!({
        "duration_ns": seconds * 1_000_000_000, "sample_ns": 100_000_000, "links": [link.0], "flows": flows
    });
    let endpoints = BTreeMap::from([("quic".to_owned(), dumbbell_quic::endpoints())]);
    let factories = Factories { endpoints, ..Factories::default() };
    Scenario::from_json_with(&json.to_string(), &factories).expect("a valid scenario")
}

pub fn run(link: Link, flows: Value, seconds: u64) -> RunOutput {
    scenario(link, flows, seconds).run().expect("a valid scenario")
}
