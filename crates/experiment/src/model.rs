//! An experiment as it is written: quantities stay text, and are known to be valid.

use crate::algorithm::is_custom;
use crate::diagnostic::{Diagnostics, Problem};
use crate::document::Source;
use crate::environment::Environment;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Fields of a stack or options of UDT, by name: true or false, a whole number, or text.
pub type Options = BTreeMap<String, Value>;

/// Links, the flows that cross them, and how long and how often to run them.
///
/// Two experiments are equal if all keys are, wherever they come from.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// What it is about.
    pub title: String,
    /// How long it runs: a time.
    pub duration: String,
    /// The seeds.
    pub seeds: Seeds,
    /// The interval of samples: a time.
    pub sample: Option<String>,
    /// What happens before counts in no result: a time.
    pub warmup: Option<String>,
    /// Whether the algorithms' internals are sampled.
    pub internals: Option<bool>,
    /// Maximum random delay of every start: a time.
    pub start_jitter: String,
    /// The TCP stack of flows that name none.
    pub stack: String,
    /// Fields of that stack.
    pub stack_options: Options,
    /// The links.
    #[serde(rename = "link")]
    pub links: Vec<Link>,
    /// The flows.
    #[serde(rename = "flow")]
    pub flows: Vec<Flow>,
    /// Settings that a paper does not state, and why they are as they are.
    pub assumed: BTreeMap<String, String>,
    /// Settings found by matching a paper, and how.
    pub calibrated: BTreeMap<String, String>,
    /// SHA-256 of the source of each algorithm that is not built in.
    pub sources: BTreeMap<String, String>,
    /// Where it comes from.
    #[serde(skip)]
    pub(crate) source: Source,
}

/// A link in one direction.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// The template that stands for keys that are not given, a call.
    pub template: Option<String>,
    /// Its rate.
    pub rate: Option<String>,
    /// Pairs of time and rate.
    pub rates: Option<Value>,
    /// The name of a trace file, or a list of times in ms.
    pub trace: Option<Value>,
    /// The depth of its token bucket: a size.
    pub burst: Option<String>,
    /// Its one-way propagation delay: a time.
    pub delay: String,
    /// Pairs of time and delay.
    pub reroutes: Option<Value>,
    /// The size of its queue.
    pub queue: Option<String>,
    /// Its active queue management, a call.
    pub aqm: Option<String>,
    /// A probability, a loss process (a call), or pairs of time and probability.
    pub loss: Value,
    /// Maximum random extra delay: a time.
    pub jitter: String,
    /// A share and a delay.
    pub reorder: Option<String>,
    /// The medium that it shares, a call.
    pub medium: Option<String>,
}

/// A flow of data from a sender to a receiver, or several alike.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Its name.
    pub name: Option<String>,
    /// Its congestion control algorithm, a call.
    pub cc: String,
    /// The links that its data crosses.
    pub path: Option<Vec<String>>,
    /// The same for each subflow of a multipath connection.
    pub paths: Option<Vec<Vec<String>>>,
    /// The scheduler of a multipath connection.
    pub scheduler: Option<String>,
    /// The links that acknowledgements cross, for each subflow.
    pub return_paths: Option<Vec<Vec<String>>>,
    /// Base RTT of each subflow: times.
    pub rtts: Option<Vec<String>>,
    /// The links that acknowledgements cross.
    pub return_path: Vec<String>,
    /// The host that sends its data.
    pub sender: Option<String>,
    /// The host that receives its data.
    pub receiver: Option<String>,
    /// The name of its DiffServ code point.
    pub dscp: Option<String>,
    /// Base RTT: a time.
    pub rtt: Option<String>,
    /// When it starts: a time.
    pub start: String,
    /// When it stops: a time.
    pub stop: Option<String>,
    /// How much it has to send: a size.
    pub bytes: Option<String>,
    /// When its transfers arrive, a call or times, if it consists of many.
    pub arrivals: Option<Value>,
    /// How large they are, a call or points of the distribution.
    pub sizes: Option<Value>,
    /// Its application, a call.
    pub app: Option<String>,
    /// The rates of its video.
    pub ladder: Option<Value>,
    /// The rate at which its application writes.
    pub app_rate: Option<String>,
    /// Pairs of time since the start and rate, or the name of a file of them.
    pub app_rates: Option<Value>,
    /// How many such flows there are.
    pub repeat: u64,
    /// `tcp`, `udt`, `udp`, `quic`, `rtp`, `sabul`, `rbudp` or `tsunami`.
    pub transport: String,
    /// Options of UDT, QUIC, media, SABUL, RBUDP or Tsunami.
    pub transport_options: Options,
    /// Its TCP or QUIC stack.
    pub stack: Option<String>,
    /// Fields of its stack.
    pub stack_options: Options,
    /// Whether its packets are recorded.
    pub log: bool,
    /// The program that is its sender.
    pub command: Option<String>,
    /// The program that is its receiver.
    pub server: Option<String>,
}

/// The seeds of an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Seeds {
    /// So many: 1, 2, 3 and so on.
    Count(u64),
    /// These ones.
    List(Vec<u64>),
}

impl Seeds {
    /// The seeds, one by one.
    pub fn list(&self) -> Vec<u64> {
        match self {
            Seeds::Count(count) => (1..=*count).collect(),
            Seeds::List(seeds) => seeds.clone(),
        }
    }
}

impl PartialEq for Experiment {
    fn eq(&self, other: &Experiment) -> bool {
        // All keys; their order and their source do not matter.
        self.to_value() == other.to_value()
    }
}

impl Experiment {
    /// The experiment as a tree of values, every key included.
    pub fn to_value(&self) -> Value {
        // Every field is text, a number, a list or a table with text keys.
        serde_json::to_value(self).expect("a tree of values")
    }

    /// Errors with the file, the lines and the names of their keys, if there are problems.
    ///
    /// # Errors
    /// If there are problems.
    pub fn check(&self, problems: Vec<Problem>) -> Result<(), Diagnostics> {
        if problems.is_empty() {
            return Ok(());
        }
        self.source.check(&self.to_value(), problems)
    }

    /// The experiment with its traces and algorithms where `environment` has them.
    #[must_use]
    pub fn located(mut self, environment: &dyn Environment) -> Experiment {
        for link in &mut self.links {
            if let Some(Value::String(file)) = &mut link.trace {
                *file = environment.locate_trace(file);
            }
        }
        for flow in &mut self.flows {
            if let Some(Value::String(file)) = &mut flow.app_rates {
                *file = environment.locate_trace(file);
            }
            if is_custom(&flow.cc) {
                flow.cc = environment.locate_algorithm(&flow.cc);
            }
        }
        self
    }

    /// The number of flows, copies counted.
    pub fn flow_count(&self) -> u64 {
        self.flows.iter().fold(0, |sum, flow| sum.saturating_add(flow.repeat))
    }

    /// The number of subflows, those of copies counted; a plain flow has one.
    pub(crate) fn subflow_count(&self) -> u64 {
        let paths = |flow: &Flow| flow.paths.as_ref().map_or(1, Vec::len) as u64;
        let subflows = self.flows.iter().map(|flow| flow.repeat.saturating_mul(paths(flow)));
        subflows.fold(0, u64::saturating_add)
    }

    /// The name of each of `flows`: its own, or `flow` if it is the only one and has copies, or
    /// `flow-1`, `flow-2`...
    pub fn base_names(&self) -> Vec<String> {
        let has_copies = |flow: &Flow| self.flows.len() == 1 && flow.repeat > 1;
        let named = self.flows.iter().enumerate().map(|(at, flow)| match &flow.name {
            Some(name) => name.clone(),
            None if has_copies(flow) => "flow".to_owned(),
            None => format!("flow-{}", at + 1),
        });
        named.collect()
    }

    /// For each of `flows`, the names of its copies: `name`, or `name-1`, `name-2`...
    pub fn flow_names(&self) -> Vec<Vec<String>> {
        let flows = self.flows.iter().zip(self.base_names());
        let names = flows.map(|(flow, base)| match flow.repeat {
            1 => vec![base],
            copies => (1..=copies).map(|copy| format!("{base}-{copy}")).collect(),
        });
        names.collect()
    }

    /// The links that each subflow of a flow crosses. A plain flow has one path: its own, or all
    /// links in order.
    pub fn flow_paths(&self, flow: &Flow) -> Vec<Vec<String>> {
        match (&flow.paths, &flow.path) {
            (Some(paths), _) => paths.clone(),
            (None, Some(path)) => vec![path.clone()],
            (None, None) => vec![self.links.iter().map(|link| link.name.clone()).collect()],
        }
    }

    /// The links that the acknowledgements of each subflow cross.
    pub fn flow_return_paths(&self, flow: &Flow) -> Vec<Vec<String>> {
        match (&flow.paths, &flow.return_paths) {
            (None, _) => vec![flow.return_path.clone()],
            (Some(_), Some(paths)) => paths.clone(),
            (Some(paths), None) => vec![Vec::new(); paths.len()],
        }
    }
}
