//! A run as qlog, compared with the run itself; captures that are damaged.

use dumbbell_exports::{Flow, Run, qlog};
use dumbbell_sim::{CapturePoint, RunOutput, Scenario};
use proptest::prelude::*;
use serde_json::Value;
use std::sync::LazyLock;

struct Logged {
    output: RunOutput,
    capture: Vec<u8>,
}

/// Two TCP flows and one of UDT over a short queue; all but one are logged.
static LOGGED: LazyLock<Logged> = LazyLock::new(|| {
    let flow = |name: &str, more: &str| {
        format!(r#"{{"name": "{name}", "path": ["b"], "return_delay_ns": 20000000, {more}}}"#)
    };
    let flows = [
        flow("first", r#""cc": "reno", "log": true"#),
        flow("plain", r#""cc": "cubic""#),
        flow("udt", r#""cc": "udt", "udt": {}, "log": true"#),
    ];
    let json = format!(
        r#"{{"duration_ns": 3000000000, "sample_ns": 100000000, "flows": [{}],
             "links": [{{"name": "b", "rate_bps": 10000000, "delay_ns": 20000000,
                         "queue": {{"packets": 20}}}}]}}"#,
        flows.join(", ")
    );
    let scenario = Scenario::from_json(&json).expect("it is valid");
    let output = scenario.run().expect("it runs");
    let mut capture = Vec::new();
    let written = output.packets.write_pcapng(CapturePoint::Sender, &scenario, &mut capture);
    written.expect("memory takes all");
    Logged { output, capture }
});

fn flows() -> Vec<Flow> {
    let flow = |name: &str| Flow {
        name: name.into(),
        cc: "cc".into(),
        transport: "TCP".into(),
        mss: 1448,
    };
    ["first", "plain", "udt"].map(flow).into()
}

fn export(capture: &[u8]) -> Result<String, String> {
    let run = Run { title: "", description: "", flows: &flows(), capture: Some(capture) };
    qlog(run, LOGGED.output.series.rows()).map_err(|error| error.to_string())
}

fn data_of<'a>(trace: &'a Value, name: &str) -> Vec<&'a Value> {
    let events = trace["events"].as_array().expect("a list").iter();
    events.filter(|event| event["name"] == name).map(|event| &event["data"]).collect()
}

#[test]
fn the_packets_are_those_that_the_sender_counted() {
    let text = export(&LOGGED.capture).expect("it is whole");
    let file: Value = serde_json::from_str(&text).expect("it is JSON");
    let (first, flows) = (&file["traces"][0], &LOGGED.output.flows);
    let sent = data_of(first, "transport:packet_sent");
    assert_eq!(sent.len() as u64, flows.sent[0]);
    assert!(flows.retransmitted[0] > 0);
    assert_eq!(data_of(first, "recovery:packet_lost").len() as u64, flows.retransmitted[0]);
    let received = data_of(first, "transport:packet_received");
    let frames = received.iter().flat_map(|data| data["frames"].as_array().expect("a list"));
    let acknowledged: u64 = frames
        .flat_map(|frame| frame["acked_ranges"].as_array().expect("a list"))
        .map(|range| 1 + range[1].as_u64().expect("a number") - range[0].as_u64().expect("one"))
        .sum();
    assert_eq!(acknowledged * 1448, flows.delivered[0]);
    for quiet in [1, 2] {
        let trace = &file["traces"][quiet];
        assert!(data_of(trace, "transport:packet_sent").is_empty(), "not logged, or not TCP");
        assert!(!data_of(trace, "recovery:metrics_updated").is_empty());
    }
}

#[test]
fn samples_are_in_milliseconds_and_bytes_and_what_is_unknown_is_left_out() {
    let run = Run { title: "t", description: "d", flows: &flows(), capture: None };
    let mut row = LOGGED.output.series.rows().next().expect("a sample");
    row.t = 1.5;
    row.cwnd = 10.0;
    (row.srtt, row.rtt, row.min_rtt) = (0.25, f32::NAN, f32::NAN);
    (row.ssthresh, row.pacing_rate) = (f32::INFINITY, f32::NAN);
    (row.in_flight, row.ca_state) = (3, 1);
    let text = qlog(run, [row]).expect("no capture");
    let expected = r#"{"qlog_version":"draft-02","qlog_format":"JSON","title":"t","description":"d","traces":[{"title":"first","description":"cc","vantage_point":{"name":"sender of first","type":"server"},"common_fields":{"time_format":"relative","reference_time":0,"protocol_type":["TCP"]},"events":[{"time":1500.0,"name":"recovery:metrics_updated","data":{"smoothed_rtt":250.0,"congestion_window":14480,"bytes_in_flight":4344,"packets_in_flight":3}},{"time":1500.0,"name":"recovery:congestion_state_updated","data":{"new":"disorder"}}]},"#;
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn a_capture_that_is_cut_off_is_refused() {
    let cut = &LOGGED.capture[..LOGGED.capture.len() - 7];
    assert_eq!(export(cut), Err("the capture is damaged: Need more bytes".into()));
}

proptest! {
    #[test]
    fn no_damage_to_a_capture_causes_a_panic(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let mut capture = LOGGED.capture.clone();
        for (place, byte) in damage {
            *place.get_mut(&mut capture) = byte;
        }
        let _ = export(&capture);
    }

    #[test]
    fn no_packet_causes_a_panic(
        headers in prop::collection::vec(any::<u8>(), 0..80),
        ihl in 0x45u8..=0x4f,
    ) {
        use pcap_file::pcapng::PcapNgWriter;
        use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
        let mut data = headers;
        if data.len() > 9 {
            (data[0], data[9]) = (ihl, 6);
        }
        let mut writer = PcapNgWriter::new(Vec::new()).expect("memory takes all");
        let interface = pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock {
            linktype: pcap_file::DataLink::RAW,
            snaplen: 0,
            options: Vec::new(),
        };
        writer.write_pcapng_block(interface).expect("memory takes all");
        let timestamp = std::time::Duration::from_nanos(u64::MAX);
        for _ in 0..2 {
            let block = EnhancedPacketBlock {
                interface_id: 0,
                timestamp,
                original_len: 0,
                data: data.clone().into(),
                options: Vec::new(),
            };
            writer.write_pcapng_block(block).expect("memory takes all");
        }
        let _ = export(&writer.into_inner());
    }

    #[test]
    fn no_bytes_cause_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = export(&bytes);
    }
}
