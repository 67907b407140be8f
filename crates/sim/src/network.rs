//! The network of a scenario: its links, the routes and the start times of its flows.
//!
//! Results must not depend on the order of flows in the scenario, yet events at the same nanosecond
//! need an order. So flows are numbered canonically: by their properties, and by name only if these
//! are equal.

use crate::check::MAX_PACKETS;
use crate::engine::{EndpointId, RoutedPacket};
use crate::sample::SampledFlow;
use crate::scenario::{
    FlowSpec, LinkSpec, PathSpec, QueueSpec, Scenario, ScenarioError, ScenarioPart,
};
use crate::seeds::{self, Purpose};
use dumbbell_net::{FlowKeys, Limit, Link, LinkConfig, LinkId, Packet, RouteId, Routes};
use dumbbell_tcp::Stack;
use dumbbell_units::{Span, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::sync::Arc;

/// The links of a scenario and the routes of its flows.
pub struct Network<P> {
    /// The scenario's links in its order, then delay lines for acknowledgements.
    pub links: Vec<Link<RoutedPacket<P>>>,
    /// All routes.
    pub routes: Routes,
    /// The route of each port, by port number.
    pub routes_of: Vec<RouteId>,
    /// The flows in the scenario's order.
    pub flows: Vec<FlowPlan>,
    /// The transfers of flows that consist of many, in the order of their starts. They have the
    /// last pairs of ports.
    pub transfers: Vec<Transfer>,
    /// From what the order of arrivals at the same nanosecond is drawn; `None` if nothing depends on it.
    pub ties: Option<u64>,
}

/// A transfer of a flow that consists of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Index of its flow in the scenario.
    pub flow: u32,
    /// When it starts.
    pub start: Time,
    /// Payload bytes that it has to send.
    pub bytes: u64,
}

/// A flow's place in the engine, its start and its paths.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// Number of its first pair of ports.
    pub pair: u32,
    /// Start time, jitter included.
    pub start: Time,
    /// Its path, or one path per subflow.
    pub paths: Vec<PathPlan>,
}

/// The delays of a path with empty links, transmission times excluded.
#[derive(Clone, Copy, Debug)]
pub struct PathPlan {
    /// One-way delay of data.
    pub delay: Span,
    /// Round-trip time.
    pub rtt: Span,
}

impl FlowPlan {
    pub(crate) fn sender(&self) -> EndpointId {
        EndpointId(self.pair * 2)
    }

    /// The number of subflows; 0 unless the flow is a multipath connection.
    pub fn subflows(&self) -> u32 {
        if self.paths.len() > 1 { self.paths.len() as u32 } else { 0 }
    }

    /// For each flow the number of its first subflow among the subflows of all flows.
    pub fn first_subflows(plans: &[FlowPlan]) -> impl Iterator<Item = u32> {
        plans.iter().scan(0, |next, plan| {
            let first = *next;
            *next += plan.subflows();
            Some(first)
        })
    }

    pub(crate) fn sampled(&self, first_subflow: u32) -> SampledFlow {
        SampledFlow { sender: self.sender(), start: self.start, first_subflow, complete: false }
    }
}

impl<P: Packet + Copy> Network<P> {
    /// The network of a checked scenario.
    ///
    /// # Errors
    /// If the scenario is invalid, which [`Scenario::check`] would have found.
    pub fn new(scenario: &Scenario) -> Result<Network<P>, ScenarioError> {
        let mut builder = Builder::new(scenario);
        let order = canonical_order(scenario, &builder.names, &Stacks::of(scenario));
        let mut flows = vec![None; scenario.flows.len()];
        for at in order {
            flows[at] = Some(builder.add_flow(&scenario.flows[at])?);
        }
        let flows: Vec<FlowPlan> = flows.into_iter().flatten().collect();
        let transfers = builder.add_transfers(&flows);
        builder.set_flow_keys(&flows, &transfers);
        let ties = builder.has_merging_links();
        let ties = ties.then(|| seeds::derive(scenario.seed, Purpose::Ties, 0));
        let Builder { links, routes, routes_of, .. } = builder;
        Ok(Network { links, routes, routes_of, flows, transfers, ties })
    }
}

/// The distinct TCP stacks of a scenario.
pub(crate) struct Stacks {
    of_flow: Vec<u32>,
    distinct: Vec<Arc<Stack>>,
}

impl Stacks {
    /// Numbers the stacks by their content, independent of the order of flows.
    pub(crate) fn of(scenario: &Scenario) -> Stacks {
        let text = |stack: &Stack| format!("{stack:?}");
        let known: BTreeMap<String, &Stack> = {
            let mut known = BTreeMap::new();
            let mut last = None;
            for flow in &scenario.flows {
                if last != Some(&flow.stack) {
                    known.insert(text(&flow.stack), &flow.stack);
                    last = Some(&flow.stack);
                }
            }
            known
        };
        let number: BTreeMap<&str, u32> = known.keys().map(String::as_str).zip(0..).collect();
        let mut last = (None, 0);
        let of_flow = scenario.flows.iter().map(|flow| {
            if last.0 != Some(&flow.stack) {
                last = (Some(&flow.stack), number[text(&flow.stack).as_str()]);
            }
            last.1
        });
        let of_flow = of_flow.collect();
        let distinct = known.values().map(|&stack| Arc::new(stack.clone())).collect();
        Stacks { of_flow, distinct }
    }

    pub(crate) fn get(&self, flow: usize) -> &Arc<Stack> {
        &self.distinct[self.of_flow[flow] as usize]
    }
}

/// Indices of the flows in the canonical order.
fn canonical_order(
    scenario: &Scenario,
    links: &BTreeMap<&str, LinkId>,
    stacks: &Stacks,
) -> Vec<usize> {
    let ids =
        |path: &[String]| path.iter().map(|name| links.get(name.as_str())).collect::<Vec<_>>();
    let mut order: Vec<usize> = (0..scenario.flows.len()).collect();
    order.sort_by_cached_key(|&at| {
        let flow = &scenario.flows[at];
        let path = (ids(&flow.path), ids(&flow.return_path), flow.return_delay_ns);
        let key = |path: &PathSpec| (ids(&path.path), ids(&path.return_path), path.return_delay_ns);
        let paths =
            (path, flow.additional_subflows.iter().map(key).collect::<Vec<_>>(), &flow.scheduler);
        let times = (flow.start_ns, flow.stop_ns);
        let app = flow.app.as_ref().map(|app| format!("{app:?}"));
        let load = (flow.bytes, flow.app_rate_bps.map(f64::to_bits), app_rates(flow), app);
        let udt = flow.udt.as_ref().map(|options| format!("{options:?}"));
        // Flows of transfers come last: their ports have no endpoints at first.
        let transfers = flow.transfers.as_ref().map(|transfers| format!("{transfers:?}"));
        let external = flow.external.as_ref().map(|external| format!("{external:?}"));
        let transport = (stacks.of_flow[at], udt, flow.udp, external);
        let keys = (&flow.sender, &flow.receiver, flow.dscp);
        (transfers, times, paths, load, &flow.cc, transport, keys, &flow.name)
    });
    order
}

struct Builder<'a, P> {
    scenario: &'a Scenario,
    names: BTreeMap<&'a str, LinkId>,
    links: Vec<Link<RoutedPacket<P>>>,
    routes: Routes,
    /// Delay lines for acknowledgements, one per return delay.
    delay_lines: BTreeMap<u64, LinkId>,
    routes_of: Vec<RouteId>,
}

impl<'a, P: Packet + Copy> Builder<'a, P> {
    fn new(scenario: &'a Scenario) -> Builder<'a, P> {
        let max_packets = max_packets(scenario);
        let links = scenario.links.iter().zip(0..);
        let links = links.map(|(link, index)| {
            let seed = seeds::derive(scenario.seed, Purpose::LinkLoss, index);
            let max_packet = max_packets.get(&link.name).copied().unwrap_or(0);
            Link::new(&link_config(link, max_packet, scenario.duration_ns, seed))
        });
        let names = scenario.links.iter().map(|link| link.name.as_str());
        Builder {
            names: names.zip((0..).map(LinkId)).collect(),
            links: links.collect(),
            routes: Routes::default(),
            delay_lines: BTreeMap::new(),
            routes_of: Vec::with_capacity(2 * scenario.flows.len()),
            scenario,
        }
    }

    /// The links of a path and the sum of their delays.
    fn path(
        &self,
        flow: &FlowSpec,
        key: &'static str,
        path: &[String],
    ) -> Result<(Vec<LinkId>, Span), ScenarioError> {
        let mut links = Vec::with_capacity(path.len() + 1);
        let mut delay = Span::ZERO;
        for name in path {
            let Some(&link) = self.names.get(name.as_str()) else {
                return Err(ScenarioError::Value {
                    part: ScenarioPart::Flow(flow.name.clone()),
                    key,
                    value: format!("\"{name}\""),
                    valid: "names of links".to_owned(),
                });
            };
            delay = delay + self.links[link.0 as usize].delay();
            links.push(link);
        }
        Ok((links, delay))
    }

    fn delay_line(&mut self, delay_ns: u64) -> LinkId {
        let links = &mut self.links;
        *self.delay_lines.entry(delay_ns).or_insert_with(|| {
            links.push(Link::delay_line(Span::from_nanos(delay_ns)));
            LinkId(links.len() as u32 - 1)
        })
    }

    fn add_flow(&mut self, flow: &FlowSpec) -> Result<FlowPlan, ScenarioError> {
        let pair = self.routes_of.len() as u32 / 2;
        let paths = flow.paths();
        let paths = paths.iter().map(|path| self.add_path(flow, path));
        let paths: Vec<PathPlan> = paths.collect::<Result<_, _>>()?;
        let seed = seeds::derive(self.scenario.seed, Purpose::StartJitter, pair);
        let jitter = seeds::uniform(seed, self.scenario.start_jitter_ns);
        Ok(FlowPlan { pair, start: Time::from_nanos(flow.start_ns + jitter), paths })
    }

    /// Adds the transfers of all flows that consist of many, with their ports.
    fn add_transfers(&mut self, flows: &[FlowPlan]) -> Vec<Transfer> {
        let end = Time::from_nanos(self.scenario.duration_ns);
        let mut transfers = Vec::new();
        let mut order: Vec<usize> = (0..flows.len()).collect();
        order.sort_by_key(|&at| flows[at].pair);
        for at in order {
            let (spec, plan) = (&self.scenario.flows[at], &flows[at]);
            let Some(drawn) = &spec.transfers else { continue };
            let seed = |purpose| seeds::derive(self.scenario.seed, purpose, plan.pair);
            let seeds = [seed(Purpose::ArrivalTimes), seed(Purpose::TransferSizes)];
            let end = spec.stop_ns.map_or(end, |stop| end.min(Time::from_nanos(stop)));
            let most = u64::from(spec.stack.mss) * MAX_PACKETS;
            let flow = at as u32;
            transfers.extend(
                drawn.draw(plan.start, end, seeds).into_iter().map(|(start, bytes)| Transfer {
                    flow,
                    start,
                    bytes: bytes.min(most),
                }),
            );
        }
        transfers.sort_by_key(|transfer| transfer.start); // stable: ties by canonical order
        for transfer in &transfers {
            let sender = flows[transfer.flow as usize].sender().0 as usize;
            self.routes_of.extend([self.routes_of[sender], self.routes_of[sender + 1]]);
        }
        transfers
    }

    /// Sets the hosts and the DSCP of all pairs of ports, if a flow has any.
    fn set_flow_keys(&mut self, plans: &[FlowPlan], transfers: &[Transfer]) {
        let scenario = self.scenario;
        let is_plain =
            |flow: &FlowSpec| (&flow.sender, &flow.receiver, flow.dscp) == (&None, &None, 0);
        if scenario.flows.iter().all(is_plain) {
            return;
        }
        let named = |flow: &'a FlowSpec| [&flow.sender, &flow.receiver].into_iter().flatten();
        let names: BTreeSet<&String> = scenario.flows.iter().flat_map(named).collect();
        let numbers: BTreeMap<&String, u32> = names.into_iter().zip(0..).collect();
        let number = |host: &Option<String>| Some(numbers[host.as_ref()?]);
        let mut keys = vec![FlowKeys::default(); self.routes_of.len()];
        let mut set = |pair: usize, FlowSpec { sender, receiver, dscp, .. }: &FlowSpec| {
            let [sender, receiver] = [sender, receiver].map(number);
            keys[2 * pair] = FlowKeys { hosts: [sender, receiver], dscp: *dscp };
            keys[2 * pair + 1] = FlowKeys { hosts: [receiver, sender], dscp: *dscp };
        };
        for (flow, plan) in scenario.flows.iter().zip(plans) {
            (0..plan.paths.len()).for_each(|at| set(plan.pair as usize + at, flow));
        }
        let first = self.routes_of.len() / 2 - transfers.len();
        for (transfer, pair) in transfers.iter().zip(first..) {
            set(pair, &scenario.flows[transfer.flow as usize]);
        }
        let keys = Arc::from(keys);
        self.links.iter_mut().for_each(|link| link.set_flow_keys(&keys));
    }

    /// Whether packets enter a link when others arrive from two or more: on their way, or as the answer to
    /// an acknowledgement.
    fn has_merging_links(&self) -> bool {
        let pairs = self
            .routes_of
            .chunks_exact(2)
            .flat_map(|pair| [[pair[0], pair[1]], [pair[1], pair[0]]]);
        let pairs: BTreeSet<[RouteId; 2]> = pairs.collect();
        let mut before: BTreeMap<LinkId, LinkId> = BTreeMap::new();
        pairs.into_iter().any(|[there, back]| {
            let mut previous = self.routes.links(back).last();
            self.routes.links(there).any(|link| {
                let from = previous.replace(link);
                from.is_some_and(|from| {
                    before.insert(link, from).is_some_and(|other| other != from)
                })
            })
        })
    }

    /// Adds the routes of a pair of ports.
    fn add_path(&mut self, flow: &FlowSpec, path: &PathSpec) -> Result<PathPlan, ScenarioError> {
        let (there, delay) = self.path(flow, "path", &path.path)?;
        let (mut back, back_delay) = self.path(flow, "return_path", &path.return_path)?;
        if back.is_empty() || path.return_delay_ns > 0 {
            back.push(self.delay_line(path.return_delay_ns));
        }
        self.routes_of.extend([self.routes.add(&there), self.routes.add(&back)]);
        let rtt = delay + back_delay + Span::from_nanos(path.return_delay_ns);
        Ok(PathPlan { delay, rtt })
    }
}

/// The application's rates in a form that can be ordered.
fn app_rates(flow: &FlowSpec) -> Vec<(u64, u64)> {
    flow.app_rates.iter().map(|&(at, bps)| (at, bps.to_bits())).collect()
}

/// For links that packets of more than 1500 bytes cross in either direction, the largest size of those.
fn max_packets(scenario: &Scenario) -> BTreeMap<String, u32> {
    let mut max_packets = BTreeMap::new();
    for flow in scenario.flows.iter().filter(|flow| flow.max_packet() > 1500) {
        let links = flow.paths().into_iter().flat_map(|one| [one.path, one.return_path].concat());
        for link in links {
            let largest = max_packets.entry(link).or_default();
            *largest = flow.max_packet().max(*largest);
        }
    }
    max_packets
}

/// The configuration of a link in a run of `duration_ns`. No packet takes the routes from its end on.
fn link_config(link: &LinkSpec, max_packet: u32, duration_ns: u64, seed: u64) -> LinkConfig {
    LinkConfig {
        rate: link.rate_bps.and_then(|bps| NonZeroU64::new((bps + 0.5) as u64)),
        bucket_bytes: link.bucket_bytes,
        rate_process: link.rate_process(),
        delay: Span::from_nanos(link.delay_ns),
        reroutes: link
            .reroutes
            .iter()
            .filter(|&&(at, _)| at < duration_ns)
            .map(|&(at, delay)| (Time::from_nanos(at), Span::from_nanos(delay)))
            .collect(),
        max_packet,
        queue: match link.queue {
            None => Limit::Unlimited,
            Some(QueueSpec::Packets(packets)) => Limit::Packets(packets),
            Some(QueueSpec::Bytes(bytes)) => Limit::Bytes(bytes),
            Some(QueueSpec::Ns(ns)) => Limit::Time(Span::from_nanos(ns)),
        },
        aqm: link.aqm,
        loss: link.loss,
        loss_model: link.loss_model,
        loss_steps: link
            .loss_steps
            .iter()
            .map(|&(at, probability)| (Time::from_nanos(at), probability))
            .collect(),
        jitter: Span::from_nanos(link.jitter_ns),
        reordering: link.reorder.unwrap_or_default(),
        medium: link.medium,
        seed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pdu::Pdu;

    /// Flows over these paths, given by names of links and a round-trip time, ms.
    fn scenario(paths: &[(&[&str], u64)]) -> Scenario {
        let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let link = |name: &str| LinkSpec {
            name: name.to_owned(),
            rate_bps: Some(10e6),
            delay_ns: 1_000_000,
            ..LinkSpec::default()
        };
        let flow = |(number, (path, rtt)): (usize, &(&[&str], u64))| FlowSpec {
            path: named(path),
            return_delay_ns: rtt * 1_000_000,
            ..FlowSpec::new(&format!("flow-{number}"), "reno")
        };
        Scenario {
            seed: 1,
            duration_ns: 1_000_000_000,
            sample_ns: 100_000_000,
            warmup_ns: 0,
            start_jitter_ns: 0,
            internals: false,
            sources: BTreeMap::new(),
            links: ["a", "b", "c"].map(link).into(),
            flows: paths.iter().enumerate().map(flow).collect(),
        }
    }

    fn ties(paths: &[(&[&str], u64)]) -> Option<u64> {
        Network::<Pdu>::new(&scenario(paths)).expect("the scenario is valid").ties
    }

    #[test]
    fn links_know_the_largest_packet_of_the_flows_that_cross_them() {
        fn found<const N: usize>(sizes: [(&str, u32); N]) -> BTreeMap<String, u32> {
            sizes.map(|(link, size)| (link.to_owned(), size)).into()
        }
        let mut scenario = scenario(&[(&["a", "c"], 10), (&["b", "c"], 10)]);
        assert!(max_packets(&scenario).is_empty(), "packets of 1500 bytes are ordinary");
        scenario.flows[0].stack.mss = 8948;
        assert_eq!(max_packets(&scenario), found([("a", 9000), ("c", 9000)]));
        scenario.flows[1].return_path = vec!["a".to_owned()];
        scenario.flows[1].stack.mss = 9448;
        assert_eq!(max_packets(&scenario), found(["a", "b", "c"].map(|link| (link, 9500))));
    }

    #[test]
    fn ties_are_drawn_where_links_meet() {
        assert_eq!(ties(&[(&["c"], 10), (&["c"], 10)]), None, "one path");
        assert_eq!(ties(&[(&["a", "c"], 10), (&["a", "c"], 10)]), None, "one path of two links");
        assert_eq!(ties(&[(&["a"], 10), (&["b"], 20)]), None, "two paths");
        assert!(ties(&[(&["a", "c"], 10), (&["b", "c"], 10)]).is_some(), "two access links");
        assert!(ties(&[(&["a", "c"], 10), (&["c"], 10)]).is_some(), "a link and a sender");
        assert!(ties(&[(&["c"], 10), (&["c"], 20)]).is_some(), "acknowledgements of two delays");
    }
}
