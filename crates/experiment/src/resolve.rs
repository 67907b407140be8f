//! Resolving: every default written out, every queue in plain units.

mod flow;

use self::flow::{base_rtts, full_packet};
use crate::algorithm::is_custom;
use crate::bulk::{bulk_transport, flow_bulk};
use crate::call::grouped;
use crate::diagnostic::{Diagnostics, KeyPath, Problem, key_path};
use crate::environment::Environment;
use crate::loss::{Loss, Reorder};
use crate::model::{Experiment, Flow, Link, Seeds};
use crate::options::{flow_udt, stack_options};
use crate::quantity::{BDP, Dimension, NO_QUEUE, Queue, RATE, SIZE, TIME, UNLIMITED};
use crate::quic::flow_quic;
use crate::rtp::flow_rtp;
use crate::timeline::{format_rates, format_reroutes, parse_rates, parse_reroutes};
use crate::{aqm, medium, trace};
use dumbbell_rtp::RTP_HEADER;
use dumbbell_sim::{MAX_FLOWS, UDP_PAYLOAD};
use dumbbell_tcp::Stack;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The default interval of samples, ns.
const SAMPLE_NS: u64 = 100_000_000;
/// An experiment with more rows of `series` than this is sampled at a longer interval by default.
const DEFAULT_ROWS: u128 = 1_000_000;
/// The maximum number of rows of `series`.
const MAX_ROWS: u128 = 100_000_000;
/// With more flows than this the algorithms' internals are not sampled by default.
const MAX_INSPECTED: u64 = 100;
/// A receive window, packets, that takes long to simulate when it is filled.
const LARGE_WINDOW: u32 = 1 << 17;
/// The flow control window of a QUIC flow, 100 streams of 1 MiB, in packets of 1419 bytes of data.
const QUIC_WINDOW: u32 = (100 << 20) / 1419;
/// Round-trip times after which a window that doubles exceeds any receive window.
const DOUBLINGS: u64 = 20;
/// With fewer losses than this, none is expected before a window has doubled that often.
const FEWEST_LOSSES: f64 = 1.0 / (1 << DOUBLINGS) as f64;

/// A subflow of a flow.
#[derive(Clone, Debug)]
pub(crate) struct Subflow {
    /// The links that data crosses.
    pub(crate) path: Vec<String>,
    /// The links that acknowledgements cross.
    pub(crate) return_path: Vec<String>,
    /// The base RTT, ns.
    pub(crate) rtt: u64,
}

impl Experiment {
    /// The experiment with every default written out and every queue in plain units.
    ///
    /// Resolving twice changes nothing more.
    ///
    /// # Errors
    /// If its parts do not fit together: a queue in BDP at a link without a rate, a base RTT
    /// shorter than the path, too many samples, a trace or an algorithm that does not exist.
    ///
    /// # Panics
    /// If a field was set to text that its key does not take.
    pub fn resolve(&self, environment: &dyn Environment) -> Result<Experiment, Diagnostics> {
        let (resolved, problems) = self.resolve_all(environment);
        self.check(problems)?;
        Ok(resolved)
    }

    /// Resolves the experiment, and finds all that is wrong with it.
    pub(crate) fn resolve_all(&self, environment: &dyn Environment) -> (Experiment, Vec<Problem>) {
        let mut problems = Vec::new();
        let expanded = self.expanded(&mut problems);
        if !problems.is_empty() {
            // Nothing is known of a path whose template stands for nothing.
            return (self.clone(), problems);
        }
        let experiment = expanded.as_ref().unwrap_or(self);
        let resolved = Resolver::new(experiment, environment, &mut problems).resolve();
        (resolved, problems)
    }

    /// The experiment with plain keys in place of templates; `None` if it has none.
    fn expanded(&self, problems: &mut Vec<Problem>) -> Option<Experiment> {
        self.links.iter().find(|link| link.template.is_some())?;
        let duration = checked(&TIME, &self.duration);
        let links = self.links.iter().enumerate().map(|(number, link)| {
            link.expanded(duration).unwrap_or_else(|error| {
                problems.push(Problem::new(key_path!["link", number, "template"], error));
                link.clone()
            })
        });
        Some(Experiment { links: links.collect(), ..self.clone() })
    }

    /// Payload bytes of a full packet of each of `flows`.
    ///
    /// # Panics
    /// As [`resolve`](Experiment::resolve).
    pub fn payloads(&self) -> Vec<u16> {
        let (base, at) = (self.base_stack().expect("a checked stack"), key_path![]);
        let payload = |flow: &Flow| match flow.transport.as_str() {
            "udt" => flow_udt(flow, &at).expect("checked options").max_payload(),
            "udp" => UDP_PAYLOAD,
            "quic" => flow_quic(flow, &at).expect("checked options").payload(),
            "rtp" => flow_rtp(flow, &at).expect("checked options").payload - RTP_HEADER,
            bulk if bulk_transport(bulk).is_some() => {
                flow_bulk(flow, &at).expect("checked options").packet().0
            }
            _ => self.flow_stack(flow, &base, &at).expect("a checked stack").mss,
        };
        self.flows.iter().map(payload).collect()
    }

    /// How long a flow sends at most, ns.
    fn lasts(&self, flow: &Flow) -> u64 {
        let end = checked(&TIME, &self.duration);
        let stop = flow.stop.as_ref().map_or(end, |stop| checked(&TIME, stop).min(end));
        stop.saturating_sub(checked(&TIME, &flow.start))
    }

    /// One-way delay of each link, ns.
    pub(crate) fn delays(&self) -> HashMap<&str, u64> {
        let delay = |link: &Link| checked(&TIME, &link.delay);
        self.links.iter().map(|link| (link.name.as_str(), delay(link))).collect()
    }
}

/// Links and flows of an experiment that is being resolved, and the problems found.
struct Resolver<'a> {
    experiment: &'a Experiment,
    environment: &'a dyn Environment,
    problems: &'a mut Vec<Problem>,
    base_stack: Stack,
    /// The subflows of each flow; `None` if a base RTT is not valid.
    subflows: Vec<Option<Vec<Subflow>>>,
    /// Bytes of a full packet of each flow.
    packets: Vec<u64>,
    /// The rate of each link that has one, bit/s.
    rates: HashMap<&'a str, u64>,
    /// The expected number of transfers of all flows.
    transfers: f64,
}

impl<'a> Resolver<'a> {
    fn new(
        experiment: &'a Experiment,
        environment: &'a dyn Environment,
        problems: &'a mut Vec<Problem>,
    ) -> Resolver<'a> {
        let base_stack = experiment.base_stack().expect("options that fit together");
        let delays = experiment.delays();
        let numbered = || experiment.flows.iter().enumerate();
        let subflows = numbered()
            .map(|(number, flow)| {
                let subflows = base_rtts(experiment, flow, &key_path!["flow", number], &delays);
                subflows.map_err(|errors| problems.extend(errors)).ok()
            })
            .collect();
        let packet = |flow| full_packet(experiment, flow, &base_stack);
        let packets = experiment.flows.iter().map(packet).collect();
        Resolver {
            experiment,
            environment,
            problems,
            base_stack,
            subflows,
            packets,
            rates: HashMap::new(),
            transfers: 0.0,
        }
    }

    fn resolve(mut self) -> Experiment {
        let experiment = self.experiment;
        self.check_subflows();
        let sample = self.sample();
        let links: Vec<Link> =
            (0..experiment.links.len()).map(|number| self.resolve_link(number)).collect();
        let names = experiment.base_names().into_iter().enumerate();
        let flows = names.map(|(number, name)| self.resolve_flow(number, name)).collect();
        let sources = self.sources();
        self.check_limits(&links);
        Experiment {
            title: experiment.title.clone(),
            duration: canonical(&TIME, &experiment.duration),
            seeds: Seeds::List(experiment.seeds.list()),
            sample: Some(TIME.format(sample)),
            warmup: experiment
                .warmup
                .as_deref()
                .filter(|text| checked(&TIME, text) > 0)
                .map(|text| canonical(&TIME, text)),
            internals: Some(
                experiment.internals.unwrap_or(experiment.flow_count() <= MAX_INSPECTED),
            ),
            start_jitter: canonical(&TIME, &experiment.start_jitter),
            stack: experiment.stack.clone(),
            stack_options: stack_options(&self.base_stack),
            links,
            flows,
            assumed: experiment.assumed.clone(),
            calibrated: experiment.calibrated.clone(),
            sources,
            source: experiment.source.clone(),
        }
    }

    fn add(&mut self, at: KeyPath, text: impl std::fmt::Display) {
        self.problems.push(Problem::new(at, text));
    }

    /// Refuses more subflows than the simulator has.
    fn check_subflows(&mut self) {
        let (count, most) = (self.experiment.subflow_count(), MAX_FLOWS as u64);
        if count > most {
            let (count, most) = (grouped(count), grouped(most));
            let text = format!("there are {count} subflows; the maximum is {most}");
            self.add(key_path!["flow"], format!("{text}; write fewer flows or paths"));
        }
    }

    /// The interval of samples, ns.
    fn sample(&mut self) -> u64 {
        let duration = u128::from(checked(&TIME, &self.experiment.duration));
        let flows = u128::from(self.experiment.flow_count());
        let sample = match &self.experiment.sample {
            Some(sample) => checked(&TIME, sample),
            None => default_sample(flows * duration),
        };
        // Each subflow has one row at the start, one at every interval, one at the end.
        let flows = u128::from(self.experiment.subflow_count());
        let rows = flows * (duration.div_ceil(u128::from(sample)) + 1);
        if rows > MAX_ROWS {
            let least = (flows * duration).div_ceil(MAX_ROWS - 2 * flows);
            let least = TIME.format(u64::try_from(least).unwrap_or(u64::MAX));
            let (rows, max) = (grouped(rows), grouped(MAX_ROWS));
            let text = format!("would give {rows} rows; the maximum is {max}");
            self.add(key_path!["sample"], format!("{text}; write at least \"{least}\""));
        }
        sample
    }

    fn resolve_link(&mut self, number: usize) -> Link {
        let (link, at) = (&self.experiment.links[number], key_path!["link", number]);
        let trace = if self.has_one_rate(link, &at) { self.read_trace(link, &at) } else { None };
        let rates = link.rates.as_ref().map(|rates| parse_rates(rates).expect("checked rates"));
        let reroutes = link.reroutes.as_ref();
        let reroutes = reroutes.map(|steps| parse_reroutes(steps).expect("checked reroutes"));
        let has_trace = link.trace.is_some() && trace.is_none(); // but it could not be read
        let rate = match (&link.rate, &rates, &trace) {
            (Some(rate), ..) => Some(checked(&RATE, rate)),
            (_, Some(rates), _) => rates.iter().map(|step| step.1).max().filter(|&rate| rate > 0),
            (.., Some(trace)) => Some(trace::mean_rate(trace)),
            _ => None,
        };
        self.rates.extend(rate.map(|rate| (link.name.as_str(), rate)));
        let aqm = link.aqm.as_ref().map(|text| {
            aqm::resolve(&Value::from(text.as_str())).expect("a checked AQM").to_string()
        });
        if let (Some(aqm), None, false) = (&link.aqm, rate, has_trace) {
            let text = format!("\"{aqm}\" has no queue to manage, as the link has no rate");
            self.add(at.then("aqm"), format!("{text}; give it one"));
        }
        if let (Some(burst), None) = (&link.burst, &link.rate) {
            let text = format!("\"{burst}\" fills at the link's rate, and the link has none");
            self.add(at.then("burst"), format!("{text}; give it one"));
        }
        let queue = if has_trace { None } else { self.queue(link, &at, rate) };
        let medium = self.medium(link, &at);
        let reorder = link.reorder.as_ref().map(|text| {
            Reorder::parse(&Value::from(text.as_str())).expect("a checked reordering").to_string()
        });
        Link {
            name: link.name.clone(),
            template: None,
            rate: link.rate.as_ref().map(|rate| canonical(&RATE, rate)),
            rates: rates.map(|rates| format_rates(&rates)),
            trace: trace.map(Value::from),
            burst: link.burst.as_ref().map(|burst| canonical(&SIZE, burst)),
            delay: canonical(&TIME, &link.delay),
            reroutes: reroutes.map(|steps| format_reroutes(&steps)),
            queue,
            aqm,
            loss: Loss::parse(&link.loss).expect("checked losses").to_value(),
            jitter: canonical(&TIME, &link.jitter),
            reorder,
            medium,
        }
    }

    /// A shared medium with every option.
    fn medium(&mut self, link: &Link, at: &KeyPath) -> Option<String> {
        let text = link.medium.as_deref()?;
        let has_queue = link.queue.as_deref() != Some(NO_QUEUE);
        let has_rate = link.rate.is_some() || link.rates.is_some();
        if !has_rate || link.burst.is_some() || !has_queue {
            let text = format!("\"{text}\" is of a link with a rate or rates and a queue");
            self.add(at.then("medium"), format!("{text}, without burst and trace"));
        }
        Some(medium::resolve(&Value::from(text)).expect("a checked medium").to_string())
    }

    fn has_one_rate(&mut self, link: &Link, at: &KeyPath) -> bool {
        let given = [
            ("rate", link.rate.is_some()),
            ("rates", link.rates.is_some()),
            ("trace", link.trace.is_some()),
        ];
        let mut given = given.iter().filter(|(_, is_given)| *is_given).map(|(key, _)| *key);
        if let (Some(first), Some(second)) = (given.next(), given.next()) {
            let text = format!("is given beside {first}; a link has one of rate, rates and trace");
            self.add(at.then(second), text);
            return false;
        }
        true
    }

    fn read_trace(&mut self, link: &Link, at: &KeyPath) -> Option<Vec<u32>> {
        let times = match link.trace.as_ref()? {
            Value::String(file) => match self.environment.trace(file) {
                Ok(text) => trace::parse_file(file, &text).map_err(|error| error.to_string()),
                Err(error) => Err(error),
            },
            times => trace::parse_times(times).map_err(|error| error.to_string()),
        };
        times.map_err(|error| self.add(at.then("trace"), error)).ok()
    }

    /// The size of a queue, without BDP; `None` if it cannot be known.
    fn queue(&mut self, link: &Link, at: &KeyPath, rate: Option<u64>) -> Option<String> {
        let default = if rate.is_some() && link.aqm.is_none() { "1 BDP" } else { UNLIMITED };
        let text = link.queue.as_deref().unwrap_or(default);
        let queue = Queue::parse(&Value::from(text)).expect("a checked queue");
        let (burst_at, at) = (at.then("burst"), at.then("queue"));
        let (dimension, amount) = match queue {
            Queue::Limited(dimension, amount) => (dimension, amount),
            Queue::Unlimited => return Some(UNLIMITED.to_owned()),
            Queue::None => {
                if let Some(aqm) = &link.aqm {
                    let text = format!("\"{NO_QUEUE}\" leaves \"{aqm}\" no queue to manage");
                    self.add(at, format!("{text}; leave one of them out"));
                }
                if let Some(burst) = &link.burst
                    && let Some(least) = self.largest_packet(link)
                    && checked(&SIZE, burst) < least
                {
                    let text = format!("\"{burst}\" is too little for a policer");
                    self.add(burst_at, format!("{text}; {}", nothing_fits(Some(least))));
                }
                return Some(NO_QUEUE.to_owned());
            }
        };
        let Some(rate) = rate else {
            let text = format!("\"{text}\" never fills, as the link has no rate");
            self.add(at, format!("{text}; give it one, or write \"unlimited\""));
            return None;
        };
        let crossing = self.crossing_rtts(link)?;
        let least = self.largest_packet(link);
        let packet = nothing_fits(least);
        if dimension == &SIZE && least.is_some_and(|least| amount < least) {
            self.add(at.clone(), format!("\"{text}\" is too little; {packet}"));
        }
        if dimension != &BDP {
            return Some(dimension.format(amount));
        }
        let rtt = crossing.into_iter().max().unwrap_or(2 * checked(&TIME, &link.delay));
        let Some(size) = bdp_bytes(amount, rate, rtt).filter(|size| *size <= SIZE.max) else {
            self.add(at, format!("\"{text}\" is more than {}", SIZE.format(SIZE.max)));
            return None;
        };
        if size < least.unwrap_or(1) {
            let given = match &link.queue {
                Some(text) => format!("\"{text}\""),
                None => format!("is missing, and \"{text}\", the default,"),
            };
            let (rate, rtt) = (RATE.format(rate), TIME.format(rtt));
            let size = format!("is {size} bytes at {rate} and a base RTT of {rtt}");
            self.add(at, format!("{given} {size}; {packet}"));
            return None;
        }
        Some(SIZE.format(size))
    }

    /// Bytes of the largest packet of the flows whose data crosses a link; `None` if there are none.
    fn largest_packet(&self, link: &Link) -> Option<u64> {
        let crosses = |subflow: &Subflow| subflow.path.contains(&link.name);
        let flows = self.subflows.iter().zip(&self.packets);
        let crossing = flows.filter(|(subflows, _)| subflows.iter().flatten().any(crosses));
        crossing.map(|(_, packet)| *packet).max()
    }

    /// The base RTTs of the subflows whose data or acknowledgements cross a link; `None` if one is
    /// not known.
    fn crossing_rtts(&self, link: &Link) -> Option<Vec<u64>> {
        let mut rtts = Vec::new();
        for subflows in &self.subflows {
            let subflows = subflows.as_ref()?.iter();
            let crossing = subflows.filter(|subflow| {
                subflow.path.iter().chain(&subflow.return_path).any(|name| *name == link.name)
            });
            rtts.extend(crossing.map(|subflow| subflow.rtt));
        }
        Some(rtts)
    }

    /// Name and source hash of every algorithm that is not built in.
    fn sources(&mut self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        for (number, flow) in self.experiment.flows.iter().enumerate() {
            if !is_custom(&flow.cc) {
                continue;
            }
            match self.environment.algorithm(&flow.cc) {
                Ok(algorithm) => drop(found.insert(algorithm.name, algorithm.digest)),
                Err(error) => self.add(key_path!["flow", number, "cc"], error),
            }
        }
        for (name, digest) in &self.experiment.sources {
            if found.get(name).is_some_and(|current| current != digest) {
                let text = format!("\"{name}\" is no longer what it was when this was resolved");
                let text = format!("{text}; leave the key out to run it as it is now");
                self.add(key_path!["sources"], text);
            }
        }
        found
    }

    /// Refuses TCP flows whose window would double until it is the receiver's.
    fn check_limits(&mut self, links: &[Link]) {
        let limits = |link: &&Link| {
            let has_rate = link.rate.is_some() || link.rates.is_some() || link.trace.is_some();
            has_rate || Loss::parse(&link.loss).is_ok_and(|loss| loss.mean() >= FEWEST_LOSSES)
        };
        // The links as written: a trace that cannot be read limits too.
        let written = self.experiment.links.iter().chain(links);
        let limited: HashSet<_> = written.filter(limits).map(|link| link.name.as_str()).collect();
        for number in 0..self.experiment.flows.len() {
            if let Some(window) = self.unlimited_window(number, &limited) {
                let text = format!(
                    "nothing limits it: no link of its path has a rate or loses enough packets, and \
                     within {DOUBLINGS} round-trip times it would have {} packets in flight; give \
                     a link a rate, or the flow bytes or an app_rate",
                    grouped(window)
                );
                self.add(key_path!["flow", number], text);
            }
        }
    }

    /// The receive window of a flow, if nothing else limits it.
    fn unlimited_window(&self, number: usize, limited: &HashSet<&str>) -> Option<u32> {
        let (experiment, flow) = (self.experiment, &self.experiment.flows[number]);
        let is_limited = flow.transport == "udt"
            || bulk_transport(&flow.transport).is_some()
            || flow.bytes.is_some()
            || flow.sizes.is_some()
            || flow.app.is_some()
            || flow.app_rate.is_some()
            || flow.app_rates.is_some()
            || flow.command.is_some();
        if is_limited {
            return None;
        }
        let lasts = experiment.lasts(flow);
        let window = match flow.transport.as_str() {
            "quic" => QUIC_WINDOW,
            _ => {
                let at = key_path!["flow", number];
                let stack = experiment.flow_stack(flow, &self.base_stack, &at);
                stack.expect("a checked stack").receive_window
            }
        };
        let grows = self.subflows[number].as_ref()?.iter().any(|subflow| {
            let is_free = !subflow.path.iter().any(|name| limited.contains(name.as_str()));
            is_free && lasts > DOUBLINGS * subflow.rtt
        });
        (window >= LARGE_WINDOW && grows).then_some(window)
    }
}

/// Of a queue or a bucket that is too small for the largest packet, if there is one.
fn nothing_fits(largest: Option<u64>) -> String {
    match largest {
        Some(bytes) => format!("not even a packet of {bytes} bytes fits"),
        None => "nothing fits".to_owned(),
    }
}

/// A quantity that was checked when it was read.
pub(crate) fn checked(dimension: &Dimension, text: &str) -> u64 {
    dimension.read(text).expect("a quantity that was checked when it was read")
}

fn canonical(dimension: &Dimension, text: &str) -> String {
    dimension.format(checked(dimension, text))
}

/// The first of 100 ms, 200 ms, 500 ms, 1 s, ... that gives few rows for so many ns of flows.
fn default_sample(flow_time: u128) -> u64 {
    let steps = (0..12).flat_map(|power| [1, 2, 5].map(|step| step * 10_u64.pow(power)));
    let mut samples = steps.map(|step| SAMPLE_NS * step);
    let fits = |sample: &u64| flow_time <= DEFAULT_ROWS * u128::from(*sample);
    // A million flows for 10^15 ns fit the last one.
    samples.find(fits).expect("an interval for the longest run of the most flows")
}

/// A size in millionths of the bandwidth-delay product, in bytes, half to even; `None` if it is
/// larger than any queue.
fn bdp_bytes(millionths: u64, rate: u64, rtt: u64) -> Option<u64> {
    const BITS: u128 = 8 * 1_000_000_000 * 1_000_000;
    let product = u128::from(millionths) * u128::from(rate);
    let product = product.checked_mul(u128::from(rtt))?;
    let (whole, rest) = (product / BITS, product % BITS);
    let is_up = rest * 2 > BITS || (rest * 2 == BITS && whole % 2 == 1);
    u64::try_from(whole + u128::from(is_up)).ok()
}
