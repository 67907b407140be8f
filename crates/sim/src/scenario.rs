//! A scenario: everything that a run depends on, in plain numbers, as JSON.
//!
//! Times are nanoseconds, rates bit/s. `check.rs` says what is valid.

use dumbbell_cc::{AlgorithmFactory, ConfigError};
use dumbbell_net::{AqmConfig, LossModel, Reordering};
use dumbbell_tcp::{Scheduler, Stack};
use dumbbell_units::{Rate, Span};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Links, flows, and how long to watch them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Seed of everything drawn at random.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// How long the run lasts.
    pub duration_ns: u64,
    /// Interval of the samples.
    pub sample_ns: u64,
    /// Every flow starts later than it says by a random time below this.
    #[serde(default)]
    pub start_jitter_ns: u64,
    /// Whether algorithms' internals are sampled too.
    #[serde(default = "default_true")]
    pub internals: bool,
    /// What algorithms of a user's own are made of: a name and a hash. It changes nothing here, and
    /// whoever files runs under their scenario has all that decides them in it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
    /// The links.
    pub links: Vec<LinkSpec>,
    /// The flows. Their order changes nothing but the order of the results.
    pub flows: Vec<FlowSpec>,
}

/// A link, one way. By default it passes everything on at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// What paths call it.
    pub name: String,
    /// Bit/s, rounded to a whole number; null sends everything at once.
    pub rate_bps: Option<f64>,
    /// Instead of it, from which time (ns, the first 0, increasing) on how many bit/s; 0 for none.
    #[serde(default)]
    pub rates: Option<Vec<(u64, f64)>>,
    /// Instead of it, when 1500 bytes may leave (ms, never decreasing), over and over.
    #[serde(default)]
    pub trace_ms: Option<Vec<u32>>,
    /// Depth in bytes of the token bucket that shapes to this rate; null for a line.
    #[serde(default)]
    pub bucket_bytes: Option<u64>,
    /// Propagation delay.
    pub delay_ns: u64,
    /// From when on (ns, increasing) which delay (ns) takes its place.
    #[serde(default)]
    pub reroutes: Vec<(u64, u64)>,
    /// How much may wait, the packet being sent not counted; null for no limit.
    #[serde(default)]
    pub queue: Option<QueueSpec>,
    /// Active queue management; null for none.
    #[serde(default)]
    pub aqm: Option<AqmConfig>,
    /// Probability that a packet is lost at random, before it gets into the queue.
    #[serde(default)]
    pub loss: f64,
    /// Losses of another kind instead; null for none.
    #[serde(default)]
    pub loss_model: Option<LossModel>,
    /// Packets come out later, but in order, by a random time below this.
    #[serde(default)]
    pub jitter_ns: u64,
    /// Packets that others overtake; null for none.
    #[serde(default)]
    pub reorder: Option<Reordering>,
}

/// How much may wait for a link. A packet that finds no room is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueSpec {
    /// So many packets.
    Packets(u32),
    /// So many bytes, headers included.
    Bytes(u64),
    /// What the link sends in so long.
    Ns(u64),
}

/// A flow: a sender and its receiver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Its name, which no other flow has.
    pub name: String,
    /// Congestion control: `cubic`, `cubic(hystart=off)`.
    pub cc: String,
    /// Makes the algorithm, if it is a user's own; `cc` is then only what it is called.
    #[serde(skip)]
    pub algorithm_factory: Option<AlgorithmFactory>,
    /// The links that data crosses, in order.
    pub path: Vec<String>,
    /// The links that acknowledgements cross.
    #[serde(default)]
    pub return_path: Vec<String>,
    /// A pure delay for acknowledgements, after those links.
    #[serde(default)]
    pub return_delay_ns: u64,
    /// When the connection is opened, jitter apart.
    #[serde(default)]
    pub start_ns: u64,
    /// From when on no new data is sent.
    #[serde(default)]
    pub stop_ns: Option<u64>,
    /// Bytes to send; null for as many as there is time for.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// Rate at which the application writes, bit/s; null if data is always waiting.
    #[serde(default)]
    pub app_rate_bps: Option<f64>,
    /// Instead of it, from how long (ns, the first 0, increasing) after the connection was opened on
    /// how many bit/s; 0 for none.
    #[serde(default)]
    pub app_rates: Vec<(u64, f64)>,
    /// Further paths: the flow is a multipath connection, and `path` is its first subflow's.
    #[serde(default)]
    pub additional_subflows: Vec<PathSpec>,
    /// Which of several subflows takes the next packets: one of [`Scheduler::NAMES`].
    #[serde(default = "lowest_rtt")]
    pub scheduler: String,
    /// TCP behaviours; of no meaning to UDT.
    #[serde(default = "Stack::linux")]
    pub stack: Stack,
    /// UDT instead of TCP, with these options.
    #[serde(default)]
    pub udt: Option<dumbbell_udt::TransportOptions>,
    /// On the testbed, what the kernel calls the algorithm, if not as we do.
    #[serde(default)]
    pub kernel_cc: Option<String>,
    /// On the testbed, the program that is the flow's sender, and
    #[serde(default)]
    pub command: Option<String>,
    /// the one that is its receiver.
    #[serde(default)]
    pub server: Option<String>,
    /// Whether every packet is recorded.
    #[serde(default)]
    pub log: bool,
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
    /// A pure delay for acknowledgements, after those links.
    #[serde(default)]
    pub return_delay_ns: u64,
}

impl FlowSpec {
    /// The paths of all subflows; of a plain flow, its only one.
    pub(crate) fn paths(&self) -> Vec<PathSpec> {
        let FlowSpec { path, return_path, return_delay_ns, .. } = self.clone();
        let mut paths = vec![PathSpec { path, return_path, return_delay_ns }];
        paths.extend(self.additional_subflows.iter().cloned());
        paths
    }

    /// The rates at which the application writes; none if data is always waiting.
    pub fn write_rates(&self) -> Vec<(Span, Rate)> {
        let steady = self.app_rate_bps.map(|bps| (0, bps));
        let steps = steady.into_iter().chain(self.app_rates.iter().copied());
        steps.map(|(at, bps)| (Span::from_nanos(at), Rate::from_bits_per_sec(bps))).collect()
    }
}

fn lowest_rtt() -> String {
    Scheduler::NAMES[0].to_owned()
}

fn default_seed() -> u64 {
    1
}

fn default_true() -> bool {
    true
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
    /// A value is not one that the key can have.
    #[error("{part}: {key} cannot be {value}; it takes {valid}")]
    Value {
        /// The link, the flow, or the scenario itself.
        part: ScenarioPart,
        /// The key.
        key: &'static str,
        /// The value that was given.
        value: String,
        /// The values that it takes.
        valid: String,
    },
    /// The congestion control algorithm is not one.
    #[error("{part}: cc: {error}")]
    Algorithm {
        /// The flow.
        part: ScenarioPart,
        /// Why not.
        error: ConfigError,
    },
}

/// A part of a scenario, as errors name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScenarioPart {
    /// The scenario's own keys.
    Scenario,
    /// The link of that name.
    Link(String),
    /// The flow of that name.
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
    /// If it is not JSON of the right shape, or something in it cannot be simulated; the error
    /// names the place and the key and says what is valid.
    pub fn from_json(json: &str) -> Result<Scenario, ScenarioError> {
        Scenario::from_json_with(json, &BTreeMap::new())
    }

    /// The same with algorithms of a user's own, by what flows call them.
    ///
    /// # Errors
    /// As [`from_json`](Scenario::from_json).
    pub fn from_json_with(
        json: &str,
        factories: &BTreeMap<String, AlgorithmFactory>,
    ) -> Result<Scenario, ScenarioError> {
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
            flow.algorithm_factory = factories.get(&flow.cc).cloned();
        }
        scenario.check()?;
        Ok(scenario)
    }
}
