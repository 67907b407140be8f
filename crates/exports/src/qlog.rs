//! qlog (draft-ietf-quic-qlog-main-schema-02 and draft-ietf-quic-qlog-quic-events-02), in the version
//! that qvis reads.
//!
//! Each flow is a trace of its sender. Samples become `recovery:metrics_updated`, changes of the
//! sender's state `recovery:congestion_state_updated`. Of flows that are logged, packets become
//! `transport:packet_sent`, acknowledgements `transport:packet_received` with an ACK frame, and a
//! retransmission is preceded by `recovery:packet_lost` at the same time. qlog has QUIC's packets:
//! every transmission has a number of its own, counted from 0, and TCP's bytes are those of
//! stream 0. Whoever sends the data is the server, whose sending is what qvis draws.

use crate::capture::{CaptureError, Packet, packets};
use crate::outstanding::{Outstanding, ranges};
use dumbbell_sim::SeriesRow;
use serde::Serialize;

const VERSION: &str = "draft-02";
/// The sender's states by their code in [`SeriesRow::ca_state`].
const STATES: [&str; 5] = ["open", "disorder", "cwr", "recovery", "loss"];

/// A run to export.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The title of the file.
    pub title: &'a str,
    /// What made the run.
    pub description: &'a str,
    /// All flows, in the order of the scenario.
    pub flows: &'a [Flow],
    /// The logged flows' packets at their senders, as the simulator writes them (pcapng).
    pub capture: Option<&'a [u8]>,
}

/// A flow of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// Its congestion control.
    pub cc: String,
    /// Its transport protocol, such as TCP or QUIC.
    pub transport: String,
    /// Payload bytes of a full packet.
    pub mss: u16,
}

/// A run and the samples of its flows as the text of a qlog file (JSON).
///
/// # Errors
/// If the capture is damaged.
pub fn qlog(
    run: Run<'_>,
    samples: impl IntoIterator<Item = SeriesRow>,
) -> Result<String, CaptureError> {
    let mut recorders: Vec<_> = run.flows.iter().map(|flow| Recorder::new(flow.mss)).collect();
    for row in samples {
        if let Some(recorder) = recorders.get_mut(row.flow as usize) {
            recorder.sample(&row);
        }
    }
    for packet in run.capture.map(packets).transpose()?.unwrap_or_default() {
        if let Some(recorder) = recorders.get_mut(usize::from(packet.flow)) {
            recorder.packet(&packet);
        }
    }
    let traces = run.flows.iter().zip(recorders).map(|(flow, recorder)| recorder.trace(flow));
    let file = File {
        qlog_version: VERSION,
        qlog_format: "JSON",
        title: run.title,
        description: run.description,
        traces: traces.collect(),
    };
    let mut text = serde_json::to_string(&file).expect("all keys are strings");
    text.push('\n');
    Ok(text)
}

/// Collects the events of a flow.
struct Recorder {
    mss: u16,
    ca_state: Option<u8>,
    outstanding: Outstanding,
    sent: u64,
    received: u64,
    events: Vec<Event>,
}

impl Recorder {
    fn new(mss: u16) -> Recorder {
        let outstanding = Outstanding::default();
        Recorder { mss, ca_state: None, outstanding, sent: 0, received: 0, events: Vec::new() }
    }

    fn record(&mut self, ms: f64, kind: EventKind) {
        self.events.push(Event { time: rounded(ms), kind });
    }

    fn sample(&mut self, row: &SeriesRow) {
        let ms = row.t * 1e3;
        self.record(ms, EventKind::MetricsUpdated(Metrics::new(row, self.mss)));
        let before = self.ca_state.replace(row.ca_state);
        if before != self.ca_state {
            let name = |code: u8| STATES.get(usize::from(code)).copied().unwrap_or("unknown");
            let (old, new) = (before.map(name), name(row.ca_state));
            self.record(ms, EventKind::CongestionStateUpdated { old, new });
        }
    }

    fn packet(&mut self, packet: &Packet) {
        let ms = packet.at_ns as f64 / 1e6;
        let raw = Raw { length: packet.size, payload_length: packet.payload };
        if !packet.by_sender {
            let frames = self.acknowledge(packet).into_iter().collect();
            let header = Header::new(self.received);
            self.record(ms, EventKind::PacketReceived { header, raw, frames });
            self.received += 1;
        } else if packet.payload > 0 {
            let lost = self.outstanding.add(packet.first, packet.payload, self.sent);
            if let Some(packet_number) = lost {
                let header = Header::new(packet_number);
                self.record(ms, EventKind::PacketLost { header, packet_number });
            }
            let frames = [Frame::Stream {
                stream_id: "0",
                offset: (packet.first - 1).to_string(), // the SYN is byte 0
                length: packet.payload,
            }];
            self.record(ms, EventKind::PacketSent { header: Header::new(self.sent), raw, frames });
            self.sent += 1;
        }
    }

    /// The ACK frame of an acknowledgement, if it covers anything new.
    fn acknowledge(&mut self, packet: &Packet) -> Option<Frame> {
        let mut numbers = self.outstanding.acknowledge(0, packet.acknowledged);
        for &(start, end) in &packet.blocks {
            numbers.extend(self.outstanding.acknowledge(start, end));
        }
        numbers.sort_unstable();
        (!numbers.is_empty()).then(|| Frame::Ack { acked_ranges: ranges(&numbers) })
    }

    fn trace(mut self, flow: &Flow) -> Trace<'_> {
        self.events.sort_by(|a, b| a.time.total_cmp(&b.time));
        Trace {
            title: &flow.name,
            description: &flow.cc,
            vantage_point: VantagePoint {
                name: format!("sender of {}", flow.name),
                side: "server",
            },
            common_fields: CommonFields {
                time_format: "relative",
                reference_time: 0,
                protocol_type: [&flow.transport],
            },
            events: self.events,
        }
    }
}

/// A number with 6 decimals.
fn rounded(value: f64) -> f64 {
    format!("{value:.6}").parse().expect("a decimal number")
}

#[derive(Serialize)]
struct File<'a> {
    qlog_version: &'static str,
    qlog_format: &'static str,
    title: &'a str,
    description: &'a str,
    traces: Vec<Trace<'a>>,
}

#[derive(Serialize)]
struct Trace<'a> {
    title: &'a str,
    description: &'a str,
    vantage_point: VantagePoint,
    common_fields: CommonFields<'a>,
    events: Vec<Event>,
}

#[derive(Serialize)]
struct VantagePoint {
    name: String,
    #[serde(rename = "type")]
    side: &'static str,
}

#[derive(Serialize)]
struct CommonFields<'a> {
    time_format: &'static str,
    reference_time: u64,
    protocol_type: [&'a str; 1],
}

#[derive(Serialize)]
struct Event {
    /// ms.
    time: f64,
    #[serde(flatten)]
    kind: EventKind,
}

#[derive(Serialize)]
#[serde(tag = "name", content = "data")]
enum EventKind {
    #[serde(rename = "recovery:metrics_updated")]
    MetricsUpdated(Metrics),
    #[serde(rename = "recovery:congestion_state_updated")]
    CongestionStateUpdated {
        #[serde(skip_serializing_if = "Option::is_none")]
        old: Option<&'static str>,
        new: &'static str,
    },
    #[serde(rename = "recovery:packet_lost")]
    PacketLost { header: Header, packet_number: u64 },
    #[serde(rename = "transport:packet_sent")]
    PacketSent { header: Header, raw: Raw, frames: [Frame; 1] },
    #[serde(rename = "transport:packet_received")]
    PacketReceived { header: Header, raw: Raw, frames: Vec<Frame> },
}

/// A sample in qlog's units: ms, bytes, bit/s. A value that is not known yet is left out.
#[derive(Serialize)]
struct Metrics {
    #[serde(skip_serializing_if = "Option::is_none")]
    min_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    smoothed_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    congestion_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ssthresh: Option<u64>,
    bytes_in_flight: u64,
    packets_in_flight: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pacing_rate: Option<u64>,
}

impl Metrics {
    fn new(row: &SeriesRow, mss: u16) -> Metrics {
        let known = |value: f32| Some(f64::from(value)).filter(|value| value.is_finite());
        let ms = |secs: f32| known(secs).map(|secs| rounded(secs * 1e3));
        let whole = |value: f64| value.round_ties_even() as u64;
        let bytes = |packets: f32| known(packets).map(|packets| whole(packets * f64::from(mss)));
        Metrics {
            min_rtt: ms(row.min_rtt),
            smoothed_rtt: ms(row.srtt),
            latest_rtt: ms(row.rtt),
            congestion_window: bytes(row.cwnd),
            ssthresh: bytes(row.ssthresh),
            bytes_in_flight: u64::from(row.in_flight) * u64::from(mss),
            packets_in_flight: row.in_flight,
            pacing_rate: known(row.pacing_rate).map(whole),
        }
    }
}

#[derive(Serialize)]
struct Header {
    packet_type: &'static str,
    packet_number: u64,
}

impl Header {
    fn new(packet_number: u64) -> Header {
        Header { packet_type: "1RTT", packet_number }
    }
}

#[derive(Serialize)]
struct Raw {
    length: u16,
    payload_length: u16,
}

#[derive(Serialize)]
#[serde(tag = "frame_type", rename_all = "lowercase")]
enum Frame {
    Stream { stream_id: &'static str, offset: String, length: u16 },
    Ack { acked_ranges: Vec<[u64; 2]> },
}
