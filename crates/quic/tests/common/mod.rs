//! Scenarios with QUIC flows.

#![allow(dead_code, reason = "each test file uses some of it")]

use dumbbell_sim::{EcnCodepoint, Factories, PacketEvent, PacketRecord, Pdu, RunOutput, Scenario};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A bottleneck of 20 Mbit/s and a round-trip time of 40 ms, with a queue of 1 BDP (100 kB).
pub struct Link(pub Value);

impl Default for Link {
    fn default() -> Link {
        Link(
            json!({"name": "l", "rate_bps": 20e6, "delay_ns": 20_000_000, "queue": {"bytes": 100_000}}),
        )
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

/// A datagram as an end sent or received it: time, whether the sender of the flow sent it, size on
/// the wire, ECN field.
pub type Record = (u64, bool, u32, EcnCodepoint);

/// All datagrams of a run of one flow, as they were sent.
pub fn sent(output: &RunOutput) -> Vec<Record> {
    let records = output.packets.records().iter();
    let sent = records.filter(|record| record.event == PacketEvent::Sent);
    let record = |record: &PacketRecord| match record.packet {
        Pdu::Datagram(of) => (record.at.as_nanos(), record.by_sender, of.size.into(), of.ecn),
        _ => panic!("a QUIC flow sends datagrams"),
    };
    sent.map(record).collect()
}
