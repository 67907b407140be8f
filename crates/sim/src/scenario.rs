//! A scenario: everything that a run depends on, in plain numbers, as JSON.
//!
//! Times are in nanoseconds, rates in bit/s. `check.rs` defines which values are valid.

use crate::app::AppSpec;
use crate::datagram_host::{EndpointFactory, ExternalSpec};
use crate::transfer_spec::TransferSpec;
use dumbbell_cc::{AlgorithmFactory, ConfigError};
use dumbbell_net::{AqmConfig, LossModel, MediumConfig, Reordering};
use dumbbell_tcp::{Scheduler, Stack};
use dumbbell_units::{Rate, Span};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A run: links, flows, duration and sampling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Seed of all random numbers.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Duration of the run.
    pub duration_ns: u64,
    /// Interval of the samples.
    pub sample_ns: u64,
    /// What happens before this time counts in no table of results; the series have it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub warmup_ns: u64,
    /// Upper bound of the random delay of every flow's start.
    #[serde(default)]
    pub start_jitter_ns: u64,
    /// Whether algorithms' internals are sampled too.
    #[serde(default = "default_true")]
    pub internals: bool,
    /// Name and source hash of each user-defined algorithm. Ignored by the simulator; makes the
    /// scenario usable as a cache key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
    /// The links.
    pub links: Vec<LinkSpec>,
    /// The flows. Their order affects the order of the results only.
    pub flows: Vec<FlowSpec>,
}

/// A one-way link. The default forwards everything immediately.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// The name that paths use.
    pub name: String,
    /// Rate, rounded to a whole number of bit/s; null for no limit.
    pub rate_bps: Option<f64>,
    /// Piecewise constant rate instead: (start in ns, bit/s), the first start 0, increasing; a rate
    /// may be 0.
    #[serde(default)]
    pub rates: Option<Vec<(u64, f64)>>,
    /// Trace instead: delivery opportunities of 1500 bytes in ms, non-decreasing, repeating.
    #[serde(default)]
    pub trace_ms: Option<Vec<u32>>,
    /// Depth in bytes of a token bucket that shapes to `rate_bps`; null for a plain transmitter.
    #[serde(default)]
    pub bucket_bytes: Option<u64>,
    /// One-way propagation delay.
    pub delay_ns: u64,
    /// Route changes: (start in ns, new delay in ns), increasing.
    #[serde(default)]
    pub reroutes: Vec<(u64, u64)>,
    /// Queue limit, the packet in transmission excluded; null for no limit.
    #[serde(default)]
    pub queue: Option<QueueSpec>,
    /// Active queue management; null for droptail.
    #[serde(default)]
    pub aqm: Option<AqmConfig>,
    /// Probability of independent random losses before the queue.
    #[serde(default)]
    pub loss: f64,
    /// Another loss model instead of `loss`; null for none.
    #[serde(default)]
    pub loss_model: Option<LossModel>,
    /// Probabilities that change instead: (start in ns, probability), increasing.
    #[serde(default)]
    pub loss_steps: Vec<(u64, f64)>,
    /// Upper bound of a random extra delay that keeps the order of packets.
    #[serde(default)]
    pub jitter_ns: u64,
    /// Delayed packets that others overtake; null for none.
    #[serde(default)]
    pub reorder: Option<Reordering>,
    /// A medium that the link shares with other stations; null for none.
    #[serde(default)]
    pub medium: Option<MediumConfig>,
}

/// The limit of a queue. Packets that do not fit are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueSpec {
    /// Packets.
    Packets(u32),
    /// Bytes, headers included.
    Bytes(u64),
    /// Queueing delay in nanoseconds.
    Ns(u64),
}

/// A flow: a sender and its receiver. As text it has the fields that are not as by default: a scenario
/// may have a million flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Its unique name.
    pub name: String,
    /// Congestion control with options: `cubic`, `cubic(slow_start=standard)`.
    pub cc: String,
    /// Factory of a user-defined algorithm, whose name is `cc`.
    #[serde(skip)]
    pub algorithm_factory: Option<AlgorithmFactory>,
    /// The links that data crosses, in order.
    pub path: Vec<String>,
    /// The links that acknowledgements cross.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub return_path: Vec<String>,
    /// Additional delay of acknowledgements, after those links.
    #[serde(default, skip_serializing_if = "is_default")]
    pub return_delay_ns: u64,
    /// The host that sends its data; null for a host of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<String>,
    /// The host that receives its data; null for a host of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<String>,
    /// The DiffServ code point of its packets in both directions, 0 to 63.
    #[serde(default, skip_serializing_if = "is_default")]
    pub dscp: u8,
    /// When the connection is opened, jitter excluded.
    #[serde(default, skip_serializing_if = "is_default")]
    pub start_ns: u64,
    /// When the sender stops sending new data; null for never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_ns: Option<u64>,
    /// Bytes to send; null for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Many transfers, each by a connection of its own, instead of one; null for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfers: Option<TransferSpec>,
    /// An application that waits for what it sent to arrive; null for another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<AppSpec>,
    /// Rate at which the application writes, bit/s; null if the sender is never
    /// application-limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_rate_bps: Option<f64>,
    /// Piecewise constant rate instead: (time since the start in ns, bit/s), the first time 0,
    /// increasing; a rate may be 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub app_rates: Vec<(u64, f64)>,
    /// Paths of the additional subflows of a multipath connection; `path` is the first subflow's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub additional_subflows: Vec<PathSpec>,
    /// Scheduler of the subflows: one of [`Scheduler::NAMES`].
    #[serde(default = "default_scheduler", skip_serializing_if = "is_default_scheduler")]
    pub scheduler: String,
    /// Behaviour of the TCP stack; ignored for UDT.
    #[serde(default = "Stack::linux", skip_serializing_if = "is_linux")]
    pub stack: Stack,
    /// UDP at the application's rate instead of TCP; `cc`, `stack` and `bytes` are ignored.
    #[serde(default, skip_serializing_if = "is_default")]
    pub udp: bool,
    /// UDT with these options instead of TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udt: Option<dumbbell_udt::TransportOptions>,
    /// Endpoints of another crate over UDP instead of TCP; `stack` is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub external: Option<ExternalSpec>,
    /// Makes those endpoints.
    #[serde(skip)]
    pub endpoint_factory: Option<EndpointFactory>,
    /// Testbed only: the kernel's name of the algorithm, if it differs from ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_cc: Option<String>,
    /// Testbed only: command run as the sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Testbed only: command run as the receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Whether every packet is recorded.
    #[serde(default, skip_serializing_if = "is_default")]
    pub log: bool,
}

/// What other crates provide for the flows of a scenario.
#[derive(Clone, Debug, Default)]
pub struct Factories {
    /// User-defined algorithms, by the names that flows use.
    pub algorithms: BTreeMap<String, AlgorithmFactory>,
    /// Endpoints, by the name of their transport.
    pub endpoints: BTreeMap<String, EndpointFactory>,
}

/// The path of a subflow.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathSpec {
    /// The links that data crosses, in order.
    pub path: Vec<String>,
    /// The links that acknowledgements cross.
    #[serde(default)]
    pub return_path: Vec<String>,
    /// Additional delay of acknowledgements, after those links.
    #[serde(default)]
    pub return_delay_ns: u64,
}

impl FlowSpec {
    /// A TCP flow of this name and algorithm without a path.
    pub(crate) fn new(name: &str, cc: &str) -> FlowSpec {
        FlowSpec {
            name: name.to_owned(),
            cc: cc.to_owned(),
            algorithm_factory: None,
            path: Vec::new(),
            return_path: Vec::new(),
            return_delay_ns: 0,
            sender: None,
            receiver: None,
            dscp: 0,
            start_ns: 0,
            stop_ns: None,
            bytes: None,
            transfers: None,
            app: None,
            app_rate_bps: None,
            app_rates: Vec::new(),
            additional_subflows: Vec::new(),
            scheduler: default_scheduler(),
            stack: Stack::linux(),
            udp: false,
            udt: None,
            external: None,
            endpoint_factory: None,
            kernel_cc: None,
            command: None,
            server: None,
            log: false,
        }
    }

    /// The paths of all subflows; a plain flow has one.
    pub(crate) fn paths(&self) -> Vec<PathSpec> {
        let FlowSpec { path, return_path, return_delay_ns, .. } = self.clone();
        let mut paths = vec![PathSpec { path, return_path, return_delay_ns }];
        paths.extend(self.additional_subflows.iter().cloned());
        paths
    }

    /// Bytes of a full packet of TCP or UDT, headers included; 1500 for the other transports.
    pub(crate) fn max_packet(&self) -> u32 {
        match &self.udt {
            Some(udt) => u32::from(udt.mss),
            None if self.udp || self.external.is_some() => 1500,
            None => u32::from(self.stack.mss) + u32::from(self.stack.header),
        }
    }

    /// (time since the start, rate) at which the application writes; empty if the sender is never
    /// application-limited.
    pub fn write_rates(&self) -> Vec<(Span, Rate)> {
        let steady = self.app_rate_bps.map(|bps| (0, bps));
        let steps = steady.into_iter().chain(self.app_rates.iter().copied());
        steps.map(|(at, bps)| (Span::from_nanos(at), Rate::from_bits_per_sec(bps))).collect()
    }
}

fn default_scheduler() -> String {
    Scheduler::NAMES[0].to_owned()
}

fn is_default_scheduler(scheduler: &str) -> bool {
    scheduler == Scheduler::NAMES[0]
}

fn is_linux(stack: &Stack) -> bool {
    *stack == Stack::linux()
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn default_seed() -> u64 {
    1
}

fn default_true() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// It is not JSON of the right shape.
    #[error("the scenario is not valid at \"{path}\": {message}")]
    Shape {
        /// Where, such as `flows[3].cc`.
        path: String,
        /// What was found and what was expected.
        message: String,
    },
    /// A value is not valid for its key.
    #[error("{part}: {key} cannot be {value}; it takes {valid}")]
    Value {
        /// The link, the flow, or the scenario itself.
        part: ScenarioPart,
        /// The key.
        key: &'static str,
        /// The value that was given.
        value: String,
        /// The values that the key takes.
        valid: String,
    },
    /// The congestion control algorithm is unknown or its options are invalid.
    #[error("{part}: cc: {error}")]
    Algorithm {
        /// The flow.
        part: ScenarioPart,
        /// The reason.
        error: ConfigError,
    },
}

/// A part of a scenario, as errors name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScenarioPart {
    /// The scenario's own keys.
    Scenario,
    /// The link of this name.
    Link(String),
    /// The flow of this name.
    Flow(String),
}

impl std::fmt::Display for ScenarioPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ScenarioPart::Scenario => write!(f, "scenario"),
            ScenarioPart::Link(name) => write!(f, "link \"{name}\""),
            ScenarioPart::Flow(name) => write!(f, "flow \"{name}\""),
        }
    }
}

impl Scenario {
    /// Reads and checks a scenario.
    ///
    /// # Errors
    /// If the text is not JSON of the right shape or a value is not valid. The error names the
    /// part, the key and the valid values.
    pub fn from_json(json: &str) -> Result<Scenario, ScenarioError> {
        Scenario::from_json_with(json, &Factories::default())
    }

    /// Reads and checks a scenario with algorithms and endpoints of other crates.
    ///
    /// # Errors
    /// As [`from_json`](Scenario::from_json).
    pub fn from_json_with(json: &str, factories: &Factories) -> Result<Scenario, ScenarioError> {
        let reader = &mut serde_json::Deserializer::from_str(json);
        let shape = |error: serde_path_to_error::Error<serde_json::Error>| ScenarioError::Shape {
            path: error.path().to_string(),
            message: error.inner().to_string(),
        };
        let mut scenario: Scenario =
            serde_path_to_error::deserialize(&mut *reader).map_err(shape)?;
        reader.end().map_err(|error| ScenarioError::Shape {
            path: "end".to_owned(),
            message: error.to_string(),
        })?;
        for flow in &mut scenario.flows {
            flow.algorithm_factory = factories.algorithms.get(&flow.cc).cloned();
            let external = flow.external.as_ref();
            let factory = external.and_then(|spec| factories.endpoints.get(&spec.transport));
            flow.endpoint_factory = factory.cloned();
        }
        scenario.check()?;
        Ok(scenario)
    }
}
