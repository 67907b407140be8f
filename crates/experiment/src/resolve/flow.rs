//! Resolving flows: their paths, applications, transfers and options of transports.

use super::{Resolver, Subflow, canonical, checked};
use crate::apps;
use crate::bulk::{bulk_options, bulk_transport, flow_bulk};
use crate::call::grouped;
use crate::diagnostic::{KeyPath, Problem, key_path};
use crate::model::{Experiment, Flow};
use crate::options::{flow_udt, udt_options};
use crate::quantity::{RATE, SIZE, TIME};
use crate::quic::{flow_quic, quic_options};
use crate::rtp::{self, flow_rtp, rtp_options};
use crate::timeline::{MAX_STEPS, format_rates, parse_rate_file, parse_rates};
use crate::transfers::{ArrivalTimes, TransferSizes};
use dumbbell_sim::{MAX_PACKETS, MAX_TRANSFERS, UDP_HEADER, UDP_PAYLOAD};
use dumbbell_tcp::{Scheduler, Stack};
use dumbbell_units::Span;
use serde_json::Value;
use std::collections::HashMap;

impl Resolver<'_> {
    pub(super) fn resolve_flow(&mut self, number: usize, name: String) -> Flow {
        let (flow, at) = (&self.experiment.flows[number], key_path!["flow", number]);
        if flow.app_rate.is_some() && flow.app_rates.is_some() {
            let text = "is given beside app_rate; an application has one of them";
            self.add(at.then("app_rates"), text);
        }
        if let Err(text) = self.environment.transport(&flow.transport) {
            self.add(at.then("transport"), text);
        }
        let mut resolved = flow.clone();
        resolved.name = Some(name);
        if let Some(subflows) = &self.subflows[number] {
            let rtts = || subflows.iter().map(|subflow| TIME.format(subflow.rtt)).collect();
            if flow.paths.is_none() {
                resolved.path = Some(subflows[0].path.clone());
                resolved.rtt = Some(TIME.format(subflows[0].rtt));
            } else {
                let back = subflows.iter().map(|subflow| subflow.return_path.clone());
                resolved.return_paths = Some(back.collect());
                resolved.rtts = Some(rtts());
                resolved.scheduler.get_or_insert_with(|| Scheduler::NAMES[0].to_owned());
            }
        }
        resolved.start = canonical(&TIME, &flow.start);
        resolved.stop = flow.stop.as_ref().map(|stop| canonical(&TIME, stop));
        resolved.bytes = flow.bytes.as_ref().map(|bytes| canonical(&SIZE, bytes));
        self.check_bytes(flow, &at);
        resolved.app_rate = flow.app_rate.as_ref().map(|rate| canonical(&RATE, rate));
        resolved.app_rates = self.app_rates(flow, &at);
        self.resolve_transfers(flow, &mut resolved, &at);
        self.resolve_app(flow, &mut resolved, &at);
        if flow.transport == "udt" {
            let options = flow_udt(flow, &at).expect("checked options");
            resolved.transport_options = udt_options(&options);
        }
        if flow.transport == "rtp" {
            let options = flow_rtp(flow, &at).expect("checked options");
            resolved.transport_options = rtp_options(&options);
        }
        if flow.transport == "quic" {
            resolved.stack = Some(flow.quic_stack().to_owned());
            let options = flow_quic(flow, &at).expect("checked options");
            resolved.transport_options = quic_options(&options);
        }
        if bulk_transport(&flow.transport).is_some() {
            let options = flow_bulk(flow, &at).expect("checked options");
            resolved.transport_options = bulk_options(&flow.transport, &options);
        }
        resolved
    }

    /// Refuses more data than a flow has numbers of packets for.
    fn check_bytes(&mut self, flow: &Flow, at: &KeyPath) {
        let Some(bytes) = &flow.bytes else { return };
        let mss = match flow.transport.as_str() {
            "udt" => flow_udt(flow, at).expect("checked options").max_payload(),
            "tcp" => {
                let stack = self.experiment.flow_stack(flow, &self.base_stack, at);
                stack.expect("a checked stack").mss
            }
            // As in the scenario, where endpoints of other crates have their stack beside Linux's.
            _ => Stack::linux().mss,
        };
        let most = u64::from(mss) * MAX_PACKETS;
        if checked(&SIZE, bytes) > most {
            let packets = format!("{} packets of {mss} bytes", grouped(MAX_PACKETS));
            let text = format!("\"{bytes}\" is more than {packets}, the maximum of a flow");
            self.add(at.then("bytes"), format!("{text}; write at most \"{}\"", SIZE.format(most)));
        }
    }

    /// The rates of an application, those of a file written out; `None` if it cannot be read.
    fn app_rates(&mut self, flow: &Flow, at: &KeyPath) -> Option<Value> {
        let rates = match flow.app_rates.as_ref()? {
            Value::String(file) => match self.environment.trace(file) {
                Ok(text) => parse_rate_file(file, &text).map_err(|error| error.to_string()),
                Err(error) => Err(error),
            },
            rates => Ok(parse_rates(rates).expect("checked rates")),
        };
        let rates = rates.map_err(|error| self.add(at.then("app_rates"), error)).ok()?;
        Some(format_rates(&rates))
    }

    /// An application with every option.
    fn resolve_app(&mut self, flow: &Flow, resolved: &mut Flow, at: &KeyPath) {
        let Some(text) = flow.app.as_deref() else { return };
        let app = apps::resolve(&Value::from(text)).expect("a checked application");
        resolved.app = Some(app.to_string());
        match app.kind.name {
            "video" => {
                let ladder = flow.ladder.as_ref();
                let ladder =
                    ladder.map(|rates| apps::parse_ladder(rates).expect("a checked ladder"));
                resolved.ladder =
                    Some(apps::format_ladder(&ladder.unwrap_or_else(apps::default_ladder)));
            }
            "on-off" => {
                let steps = apps::expected_steps(&app, checked(&TIME, &self.experiment.duration))
                    * u128::from(flow.repeat);
                if steps > MAX_STEPS as u128 {
                    let (steps, max) = (grouped(steps), grouped(MAX_STEPS as u64));
                    let text = format!("starts and stops some {steps} times; the maximum is {max}");
                    self.add(at.then("app"), format!("{text}; write longer times"));
                }
            }
            _ => {
                let sizes = flow.sizes.as_ref().expect("a checked flow");
                let sizes = TransferSizes::parse(sizes).expect("checked sizes");
                resolved.sizes = Some(sizes.to_value());
            }
        }
    }

    /// Arrivals by their time, and distributions with every option.
    fn resolve_transfers(&mut self, flow: &Flow, resolved: &mut Flow, at: &KeyPath) {
        let (Some(arrivals), Some(sizes)) = (&flow.arrivals, &flow.sizes) else { return };
        let arrivals = ArrivalTimes::parse(arrivals).expect("checked arrivals");
        let sizes = TransferSizes::parse(sizes).expect("checked sizes");
        let path = self.experiment.flow_paths(flow).concat();
        let rate = path.iter().filter_map(|name| self.rates.get(name.as_str())).min().copied();
        let stack =
            self.experiment.flow_stack(flow, &self.base_stack, at).expect("a checked stack");
        let Some(arrivals) = arrivals.with_rate(sizes.with_headers(&stack), rate) else {
            let text = "has a load, a share of the rate of the slowest link of its path, and none has \
                        a rate; give one a rate, or write every in place of load";
            self.add(at.then("arrivals"), text);
            return;
        };
        resolved.arrivals = Some(arrivals.to_value());
        resolved.sizes = Some(sizes.to_value());
        let lasts = Span::from_nanos(self.experiment.lasts(flow));
        let each = arrivals.model().expected(lasts);
        self.transfers += each * flow.repeat as f64;
        if self.transfers > MAX_TRANSFERS as f64 {
            let (expected, max) = (self.transfers as u64, grouped(MAX_TRANSFERS as u64));
            let text = format!("gives some {} transfers; the maximum is {max}", grouped(expected));
            self.add(at.then("arrivals"), format!("{text}; let them arrive less often"));
        }
    }
}

/// Bytes of a full packet of a flow, headers included.
pub(super) fn full_packet(experiment: &Experiment, flow: &Flow, base: &Stack) -> u64 {
    let at = &key_path![];
    if flow.transport == "udt" {
        return u64::from(flow_udt(flow, at).expect("checked options").mss);
    }
    if flow.transport == "udp" {
        return u64::from(UDP_PAYLOAD + UDP_HEADER);
    }
    if flow.transport == "quic" {
        return u64::from(flow_quic(flow, at).expect("checked options").packet());
    }
    if flow.transport == "rtp" {
        return u64::from(rtp::full_packet(&flow_rtp(flow, at).expect("checked options")));
    }
    if bulk_transport(&flow.transport).is_some() {
        let (_, udp_payload) = flow_bulk(flow, at).expect("checked options").packet();
        return u64::from(udp_payload + UDP_HEADER);
    }
    let stack = experiment.flow_stack(flow, base, at).expect("a checked stack");
    u64::from(stack.mss) + u64::from(stack.header)
}

/// The subflows of a flow; a plain flow has one.
pub(super) fn base_rtts(
    experiment: &Experiment,
    flow: &Flow,
    at: &KeyPath,
    delays: &HashMap<&str, u64>,
) -> Result<Vec<Subflow>, Vec<Problem>> {
    let (there, back) = (experiment.flow_paths(flow), experiment.flow_return_paths(flow));
    let (mut subflows, mut problems) = (Vec::new(), Vec::new());
    for (number, (path, return_path)) in there.into_iter().zip(back).enumerate() {
        let (given, at) = match &flow.paths {
            None => (flow.rtt.as_deref(), at.then("rtt")),
            Some(_) => {
                let rtt = flow.rtts.as_ref().map(|rtts| rtts[number].as_str());
                (rtt, at.then("rtts").then(number))
            }
        };
        let delay = |path: &[String]| path.iter().map(|name| delays[name.as_str()]).sum::<u64>();
        let (out, home) = (delay(&path), delay(&return_path));
        let default = if return_path.is_empty() { 2 * out } else { out + home };
        let rtt = given.map_or(default, |text| checked(&TIME, text));
        if rtt < out + home {
            let least = TIME.format(out + home);
            let text = format!("\"{}\" is less than the delay of its links", given.unwrap_or(""));
            problems.push(Problem::new(at, format!("{text}, {least}; write at least that")));
        } else if rtt == 0 {
            let text = "is missing, and its links have no delay; write one, such as \"40 ms\"";
            problems.push(Problem::new(at, text));
        } else {
            subflows.push(Subflow { path, return_path, rtt });
        }
    }
    if problems.is_empty() { Ok(subflows) } else { Err(problems) }
}
