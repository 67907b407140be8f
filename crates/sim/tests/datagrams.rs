//! Endpoints of another crate on simulated links.

use dumbbell_net::{AqmConfig, CodelConfig};
use dumbbell_sim::{
    DatagramEndpoint, DatagramEnds, EcnCodepoint, EndpointFactory, ExternalFlow, ExternalSpec,
    Factories, FlowRow, FlowSpec, InvalidKey, MakeEndpoints, RunOutput, Scenario, ScenarioError,
    SeriesRow,
};
use dumbbell_units::{Span, Time};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// A datagram as the receiver got it: when, its number and its ECN field.
type Arrival = (Time, u32, EcnCodepoint);
type Received = Arc<Mutex<Vec<Arrival>>>;

/// Sends numbered datagrams at an interval.
struct Ticker {
    size: usize,
    every: Span,
    due: Time,
    sent: u32,
}

/// Notes what arrives, and sends every datagram back if it is to.
struct Noter {
    arrivals: Received,
    echoes: Option<Vec<Vec<u8>>>,
}

impl DatagramEndpoint for Ticker {
    fn handle(&mut self, _now: Time, _payload: &[u8], _ecn: EcnCodepoint) {}

    fn poll(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<EcnCodepoint> {
        if now < self.due {
            return None;
        }
        payload.extend_from_slice(&self.sent.to_be_bytes());
        payload.resize(self.size, 0);
        self.sent += 1;
        self.due += self.every;
        Some(EcnCodepoint::Ect0)
    }

    fn next_timeout(&self) -> Time {
        self.due
    }

    fn sample(&self, row: &mut SeriesRow) {
        row.sent = u64::from(self.sent);
    }

    fn finish(&self, row: &mut FlowRow) {
        row.sent = u64::from(self.sent);
    }
}

impl DatagramEndpoint for Noter {
    fn handle(&mut self, now: Time, payload: &[u8], ecn: EcnCodepoint) {
        let number = u32::from_be_bytes(payload[..4].try_into().expect("four bytes"));
        self.arrivals.lock().expect("no panic").push((now, number, ecn));
        if let Some(echoes) = &mut self.echoes {
            echoes.push(payload.to_vec());
        }
    }

    fn poll(&mut self, _now: Time, payload: &mut Vec<u8>) -> Option<EcnCodepoint> {
        payload.extend_from_slice(&self.echoes.as_mut()?.pop()?);
        Some(EcnCodepoint::NotEct)
    }

    fn next_timeout(&self) -> Time {
        Time::MAX
    }

    fn finish(&self, row: &mut FlowRow) {
        row.received = self.arrivals.lock().expect("no panic").len() as u64;
    }
}

/// A datagram of 972 bytes every millisecond: 8 Mbit/s with the headers of IP and UDP.
struct Ticks(Received);

impl MakeEndpoints for Ticks {
    fn check(&self, _flow: &FlowSpec, spec: &ExternalSpec) -> Result<(), InvalidKey> {
        let echoes = spec.stack == "echo" || spec.stack == "silent";
        let (value, valid) = (spec.stack.clone(), "echo or silent".to_owned());
        if echoes { Ok(()) } else { Err(InvalidKey { key: "stack", value, valid }) }
    }

    fn make(&self, flow: ExternalFlow<'_>) -> DatagramEnds {
        let every = Span::from_millis(1);
        let echoes = (flow.spec.stack == "echo").then(Vec::new);
        let noter = Noter { arrivals: self.0.clone(), echoes };
        [Box::new(Ticker { size: 972, every, due: flow.start, sent: 0 }), Box::new(noter)]
    }
}

fn scenario(stack: &str, link: serde_json::Value) -> Result<(Scenario, Received), ScenarioError> {
    let mut bottleneck = json!({"name": "l", "rate_bps": 1e8, "delay_ns": 20_000_000});
    bottleneck
        .as_object_mut()
        .expect("a table")
        .append(&mut link.as_object().cloned().expect("a table"));
    let json = json!({
        "duration_ns": 1_000_000_000, "sample_ns": 100_000_000, "links": [bottleneck],
        "flows": [{"name": "f", "cc": "reno", "path": ["l"], "return_delay_ns": 20_000_000,
                   "external": {"transport": "ticks", "stack": stack}, "log": true}]
    });
    let arrivals = Received::default();
    let ticks = EndpointFactory::new(Ticks(arrivals.clone()));
    let endpoints = BTreeMap::from([("ticks".to_owned(), ticks)]);
    let factories = Factories { endpoints, ..Factories::default() };
    Ok((Scenario::from_json_with(&json.to_string(), &factories)?, arrivals))
}

fn run(stack: &str, link: serde_json::Value) -> (RunOutput, Vec<Arrival>) {
    let (scenario, arrivals) = scenario(stack, link).expect("a valid scenario");
    let output = scenario.run().expect("a valid scenario");
    let arrivals = arrivals.lock().expect("no panic").clone();
    (output, arrivals)
}

#[test]
fn datagrams_arrive_in_order_with_the_delay_of_the_link() {
    let (output, arrivals) = run("silent", json!({}));
    // 1000 bytes take 80 us at 100 Mbit/s. The last ones are still on their way after 1 s.
    let delay = Span::from_micros(20_080);
    for (sent, arrival) in (0..).zip(&arrivals) {
        let at = Time::ZERO + Span::from_millis(u64::from(sent)) + delay;
        assert_eq!(*arrival, (at, sent, EcnCodepoint::Ect0));
    }
    assert_eq!((output.flows.sent[0], arrivals.len()), (1001, 980));
    assert_eq!((output.links.sent_bytes.last(), output.data_packets), (Some(&1_001_000), 1001));
    // The transmission time, as for TCP.
    let queued = output.flows.queue_delay_p50[0].expect("datagrams arrived");
    assert!((queued - 80e-6).abs() < 4e-6, "{queued}");
}

#[test]
fn both_directions_carry_datagrams_and_a_capture_has_their_sizes() {
    let (scenario, _) = scenario("echo", json!({})).expect("a valid scenario");
    let output = scenario.run().expect("a valid scenario");
    let mut file = Vec::new();
    let point = dumbbell_sim::CapturePoint::Sender;
    output.packets.write_pcapng(point, &scenario, &mut file).expect("memory takes it");
    let mut reader = pcap_file::pcapng::PcapNgReader::new(&file[..]).expect("a capture");
    let (mut there, mut back) = (0, 0);
    while let Some(block) = reader.next_block() {
        let Some(packet) = block.expect("a valid block").into_enhanced_packet() else { continue };
        let (ip, rest) = etherparse::Ipv4Header::from_slice(&packet.data).expect("an IP header");
        let (udp, _) = etherparse::UdpHeader::from_slice(rest).expect("a UDP header");
        assert_eq!((packet.original_len, ip.total_len, udp.length), (1000, 1000, 980));
        *if udp.destination_port == 443 { &mut there } else { &mut back } += 1;
    }
    // Echoes arrive from 40.08 ms on, those of the last 40 ms do not.
    assert_eq!((there, back), (1001, 960));
}

#[test]
fn a_queue_that_marks_sets_congestion_experienced() {
    let codel = json!(AqmConfig::Codel(CodelConfig::default()));
    let (output, arrivals) = run("silent", json!({"rate_bps": 6e6, "aqm": codel}));
    let marked = arrivals.iter().filter(|arrival| arrival.2 == EcnCodepoint::Ce).count();
    assert!(marked > 0);
    let on_the_way = output.links.marked.last().expect("a sample") - marked as u64;
    assert!(on_the_way <= 20, "{on_the_way}");
}

#[test]
fn random_losses_reach_the_log_and_not_the_receiver() {
    let (output, arrivals) = run("silent", json!({"loss": 0.25}));
    let lost = *output.links.lost.last().expect("a sample") as usize;
    // 1001 datagrams; four standard deviations are 55.
    assert!(lost.abs_diff(250) < 55, "{lost}");
    assert!(arrivals.windows(2).all(|pair| pair[0].1 < pair[1].1));
    assert!(arrivals.len().abs_diff(980 - lost) <= 20);
}

#[test]
fn a_transport_without_endpoints_is_refused() {
    let error = scenario("both", json!({})).expect_err("neither").to_string();
    assert_eq!(error, "flow \"f\": stack cannot be both; it takes echo or silent");
    let json = json!({
        "duration_ns": 1, "sample_ns": 1, "links": [{"name": "l", "delay_ns": 1}],
        "flows": [{"name": "f", "cc": "reno", "path": ["l"],
                   "external": {"transport": "quic", "stack": "quinn"}}]
    });
    let error = Scenario::from_json(&json.to_string()).expect_err("no endpoints").to_string();
    let text = "external cannot be quic; it takes a transport whose endpoints this program has";
    assert_eq!(error, format!("flow \"f\": {text}"));
}
