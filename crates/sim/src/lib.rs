//! The simulator: virtual clock, event loop, flows, and sampling into tables.
//!
//! `engine` runs endpoints over links and is independent of protocols; `host` provides TCP, MPTCP
//! and UDT endpoints, and takes [endpoints of other crates](DatagramEndpoint). `sample` and `tables` record their state. A [`Scenario`] describes a run in
//! plain numbers; [`Scenario::run`] returns a [`RunOutput`].

mod app;
mod build;
mod check;
mod datagram;
mod datagram_host;
mod delay_meter;
mod draws;
mod engine;
mod event_queue;
mod fixture;
mod histogram;
mod hop_log;
mod host;
mod link_arrivals;
mod link_spec;
mod multipath_host;
mod network;
mod observer;
mod packet_log;
mod pcapng;
mod pdu;
mod run;
mod sample;
mod sample_times;
mod scenario;
mod seeds;
mod sender_rows;
mod sim_endpoint;
mod tables;
mod tcp_host;
mod timers;
mod transfer_spec;
mod transfers;
mod udp_host;
mod udt_host;
mod video;

pub use app::{AppLog, AppLogs, AppSpec, RequestSpec};
pub use check::{MAX_FLOWS, MAX_PACKETS, MAX_TRANSFERS};
pub use datagram::{DATAGRAM_HEADER, Datagram, EcnCodepoint};
pub use datagram_host::{
    DatagramEndpoint, DatagramEnds, EndpointFactory, EndpointLog, ExternalFlow, ExternalSpec,
    InvalidKey, MakeEndpoints,
};
pub use draws::Draws;
pub use engine::{EndpointId, Engine, RoutedPacket};
pub use fixture::run_ends;
pub use histogram::Histogram;
pub use hop_log::{Hop, HopEnd, HopLog};
pub use network::{FlowPlan, Network, PathPlan, Transfer};
pub use observer::Observer;
pub use packet_log::{PacketEvent, PacketLog, PacketRecord};
pub use pcapng::CapturePoint;
pub use pdu::Pdu;
pub use run::{Failure, PreparedRun, Run, RunOutput, SenderLog};
pub use sample::{Sampled, link_row};
pub use sample_times::{SampleTime, SampleTimes};
pub use scenario::{
    Factories, FlowSpec, LinkSpec, PathSpec, QueueSpec, Scenario, ScenarioError, ScenarioPart,
};
pub use sender_rows::{fill_flow_row, fill_series_row};
pub use sim_endpoint::SimEndpoint;
pub use tables::{
    Column, FlowRow, Flows, FrameRow, Frames, Internals, LinkRow, Links, SegmentRow, Segments,
    Series, SeriesRow, TransferRow, Transfers,
};
pub use transfer_spec::{ArrivalProcess, Sizes, TransferSpec};
pub use udp_host::{UDP_HEADER, UDP_PAYLOAD};
pub use video::VideoSpec;
