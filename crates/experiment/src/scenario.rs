//! The scenario of a resolved experiment: plain numbers, as the simulator takes them.

use crate::bulk::{self, bulk_transport, flow_bulk};
use crate::call::Resolved;
use crate::diagnostic::key_path;
use crate::loss::{Loss, Reorder};
use crate::model::{Experiment, Flow, Link};
use crate::options::flow_udt;
use crate::quantity::{PACKETS, Queue, RATE, SIZE, TIME};
use crate::quic::{flow_quic, quic_fields};
use crate::read::DSCPS;
use crate::resolve::checked;
use crate::rtp::{flow_rtp, scenario_options};
use crate::timeline::{parse_rates, parse_reroutes};
use crate::trace::parse_times;
use crate::transfers::{ArrivalTimes, TransferSizes};
use crate::{apps, aqm, medium};
use dumbbell_sim::{ExternalSpec, FlowSpec, LinkSpec, PathSpec, QueueSpec, Scenario, TransferSpec};
use dumbbell_tcp::{Scheduler, Stack};
use serde_json::Value;
use std::collections::HashMap;

const RESOLVED: &str = "a resolved experiment";

impl Experiment {
    /// The scenario that the simulator takes for one seed.
    ///
    /// # Panics
    /// If the experiment is not resolved.
    pub fn scenario(&self, seed: u64) -> Scenario {
        let delays = self.delays();
        let base = self.base_stack().expect(RESOLVED);
        let flows = self.flows.iter().zip(self.flow_names());
        let duration_ns = checked(&TIME, &self.duration);
        let flows = flows.flat_map(|(flow, names)| {
            let spec = flow_spec(self, flow, &base, &delays);
            names.into_iter().map(move |name| match paused_rates(flow, &name, duration_ns, seed) {
                None => FlowSpec { name, ..spec.clone() },
                Some(app_rates) => FlowSpec { name, app_rate_bps: None, app_rates, ..spec.clone() },
            })
        });
        Scenario {
            seed,
            duration_ns,
            sample_ns: checked(&TIME, self.sample.as_deref().expect(RESOLVED)),
            warmup_ns: self.warmup.as_deref().map_or(0, |text| checked(&TIME, text)),
            start_jitter_ns: checked(&TIME, &self.start_jitter),
            internals: self.internals.expect(RESOLVED),
            sources: self.sources.clone(),
            links: self.links.iter().map(link_spec).collect(),
            flows: flows.collect(),
        }
    }
}

impl Experiment {
    /// Whether scenarios for different seeds differ in more than their seed.
    ///
    /// # Panics
    /// If the experiment is not resolved.
    pub fn varies_with_seed(&self) -> bool {
        let draws_times = |app: Resolved| app.kind.name == "on-off" && app.is_on("random");
        self.flows.iter().filter_map(app).any(draws_times)
    }
}

fn app(flow: &Flow) -> Option<Resolved> {
    let text = flow.app.as_deref()?;
    Some(apps::resolve(&Value::from(text)).expect(RESOLVED))
}

/// The rates of an application that pauses; `None` for another one.
fn paused_rates(flow: &Flow, name: &str, ns: u64, seed: u64) -> Option<Vec<(u64, f64)>> {
    let app = app(flow).filter(|app| app.kind.name == "on-off")?;
    let rate = checked(&RATE, flow.app_rate.as_deref().expect(RESOLVED)) as f64;
    Some(apps::on_off(&app, rate, ns, name, seed))
}

/// Steps of a rate in the simulator's numbers.
fn rates(value: &Value) -> Vec<(u64, f64)> {
    let steps = parse_rates(value).expect(RESOLVED);
    steps.into_iter().map(|(at, rate)| (at, rate as f64)).collect()
}

fn link_spec(link: &Link) -> LinkSpec {
    let losses = Loss::parse(&link.loss).expect(RESOLVED);
    let (loss, loss_model) = losses.model();
    let text = |text: &String| Value::from(text.as_str());
    LinkSpec {
        name: link.name.clone(),
        rate_bps: link.rate.as_ref().map(|rate| checked(&RATE, rate) as f64),
        rates: link.rates.as_ref().map(rates),
        trace_ms: link.trace.as_ref().map(|trace| parse_times(trace).expect(RESOLVED)),
        bucket_bytes: link.burst.as_ref().map(|burst| checked(&SIZE, burst)),
        delay_ns: checked(&TIME, &link.delay),
        reroutes: link
            .reroutes
            .as_ref()
            .map(|steps| parse_reroutes(steps).expect(RESOLVED))
            .unwrap_or_default(),
        queue: queue_spec(link.queue.as_deref().expect(RESOLVED)),
        aqm: link.aqm.as_ref().map(|aqm| aqm::config(&aqm::resolve(&text(aqm)).expect(RESOLVED))),
        loss,
        loss_model,
        loss_steps: losses.steps().to_vec(),
        jitter_ns: checked(&TIME, &link.jitter),
        reorder: link
            .reorder
            .as_ref()
            .map(|reorder| Reorder::parse(&text(reorder)).expect(RESOLVED).0),
        medium: link
            .medium
            .as_ref()
            .map(|shared| medium::config(&medium::resolve(&text(shared)).expect(RESOLVED))),
    }
}

fn queue_spec(text: &str) -> Option<QueueSpec> {
    match Queue::parse(&Value::from(text)).expect(RESOLVED) {
        Queue::Unlimited => None,
        Queue::None => Some(QueueSpec::Packets(0)),
        Queue::Limited(dimension, amount) if dimension == &PACKETS => {
            Some(QueueSpec::Packets(u32::try_from(amount).expect("at most 10^9 packets")))
        }
        Queue::Limited(dimension, amount) if dimension == &TIME => Some(QueueSpec::Ns(amount)),
        Queue::Limited(_, amount) => Some(QueueSpec::Bytes(amount)),
    }
}

fn transfer_spec(flow: &Flow) -> Option<TransferSpec> {
    let (arrivals, sizes) = (flow.arrivals.as_ref()?, flow.sizes.as_ref()?);
    Some(TransferSpec {
        arrivals: ArrivalTimes::parse(arrivals).expect(RESOLVED).model(),
        sizes: TransferSizes::parse(sizes).expect(RESOLVED).model(),
    })
}

/// The endpoints of another crate that a flow has.
fn external_spec(flow: &Flow) -> Option<ExternalSpec> {
    let at = &key_path![];
    let (stack, options) = match flow.transport.as_str() {
        "quic" => {
            let options = quic_fields(&flow_quic(flow, at).expect(RESOLVED));
            (flow.quic_stack().to_owned(), options)
        }
        "rtp" => (String::new(), scenario_options(&flow_rtp(flow, at).expect(RESOLVED))),
        name if bulk_transport(name).is_some() => {
            (String::new(), bulk::scenario_options(&flow_bulk(flow, at).expect(RESOLVED)))
        }
        _ => return None,
    };
    Some(ExternalSpec { transport: flow.transport.clone(), stack, options })
}

/// The specification of a flow, but for its name.
fn flow_spec(
    experiment: &Experiment,
    flow: &Flow,
    base: &Stack,
    delays: &HashMap<&str, u64>,
) -> FlowSpec {
    let plain = flow.rtt.iter().cloned().collect();
    let rtts = flow.rtts.as_ref().unwrap_or(&plain);
    let there = experiment.flow_paths(flow).into_iter();
    let back = experiment.flow_return_paths(flow);
    let mut subflows = there.zip(back).zip(rtts).map(|((path, return_path), rtt)| {
        let links = path.iter().chain(&return_path);
        let delay: u64 = links.map(|name| delays[name.as_str()]).sum();
        PathSpec { return_delay_ns: checked(&TIME, rtt) - delay, path, return_path }
    });
    let first = subflows.next().expect(RESOLVED);
    let udt = (flow.transport == "udt").then(|| flow_udt(flow, &key_path![]).expect(RESOLVED));
    let external = external_spec(flow);
    let stack = match udt {
        Some(_) => Stack::linux(),
        None if external.is_some() => Stack::linux(),
        None => experiment.flow_stack(flow, base, &key_path![]).expect(RESOLVED),
    };
    FlowSpec {
        name: String::new(),
        cc: flow.cc.clone(),
        algorithm_factory: None,
        path: first.path,
        return_path: first.return_path,
        return_delay_ns: first.return_delay_ns,
        sender: flow.sender.clone(),
        receiver: flow.receiver.clone(),
        dscp: flow
            .dscp
            .as_ref()
            .map_or(0, |dscp| DSCPS.iter().find(|(name, _)| name == dscp).expect(RESOLVED).1),
        start_ns: checked(&TIME, &flow.start),
        stop_ns: flow.stop.as_ref().map(|stop| checked(&TIME, stop)),
        bytes: flow.bytes.as_ref().map(|bytes| checked(&SIZE, bytes)),
        transfers: transfer_spec(flow),
        app: app(flow).and_then(|app| apps::spec(&app, flow.sizes.as_ref(), flow.ladder.as_ref())),
        app_rate_bps: flow.app_rate.as_ref().map(|rate| checked(&RATE, rate) as f64),
        app_rates: flow.app_rates.as_ref().map(rates).unwrap_or_default(),
        additional_subflows: subflows.collect(),
        scheduler: flow.scheduler.clone().unwrap_or_else(|| Scheduler::NAMES[0].to_owned()),
        stack,
        udp: flow.transport == "udp",
        udt,
        external,
        endpoint_factory: None,
        kernel_cc: None,
        command: flow.command.clone(),
        server: flow.command.as_ref().and(flow.server.clone()),
        log: flow.log,
    }
}
