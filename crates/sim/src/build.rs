//! Builds the network and the endpoints of a scenario.

use crate::app::{AppLog, AppLogs};
use crate::datagram::Payloads;
use crate::datagram_host::{DatagramEnds, DatagramHost, ExternalFlow};
use crate::engine::Engine;
use crate::host::{AnyHost, SimHost};
use crate::multipath_host::MultipathHost;
use crate::network::{FlowPlan, Network, Stacks, Transfer};
use crate::observer::Observer;
use crate::scenario::{FlowSpec, Scenario, ScenarioError};
use crate::seeds::{self, Purpose};
use crate::tcp_host::{TcpHost, TcpSender};
use crate::transfers::TransferRuns;
use crate::udp_host::UdpHost;
use crate::udt_host::{ClientConfig, UdtHost};
use dumbbell_cc::{Algorithm, ConnectionConfig};
use dumbbell_net::Endpoint;
use dumbbell_tcp::{
    Dialogue, MultipathConfig, MultipathReceiver, MultipathSender, Receiver, Scheduler, Sender,
    SenderConfig, Stack,
};
use dumbbell_udt::BulkData;
use dumbbell_units::Time;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A network and its hosts, ready to run.
pub(crate) struct Simulation<H: Endpoint> {
    network: Network<H::Packet>,
    hosts: Vec<H>,
    /// By the index of the flow.
    transferring: BTreeMap<u32, Transferring>,
    /// Of flows of datagrams, by pair of ports.
    payloads: BTreeMap<u32, Payloads>,
    /// Of flows whose application waits, by the index of the flow.
    app_logs: AppLogs,
}

impl<H: SimHost> Simulation<H> {
    /// The flows in the scenario's order.
    pub(crate) fn flows(&self) -> &[FlowPlan] {
        &self.network.flows
    }

    /// The transfers of flows that consist of many, in the order of their starts.
    pub(crate) fn transfers(&self) -> &[Transfer] {
        &self.network.transfers
    }

    /// The payloads on their way, of flows of datagrams, by pair of ports.
    pub(crate) fn payloads(&self) -> BTreeMap<u32, Payloads> {
        self.payloads.clone()
    }

    /// What applications that wait record, by the index of the flow.
    pub(crate) fn app_logs(&self) -> AppLogs {
        self.app_logs.clone()
    }

    /// The engine, and what opens the transfers while it runs.
    pub(crate) fn engine<O: Observer<H::Packet>>(
        self,
        observer: O,
    ) -> (Engine<H, O>, TransferRuns) {
        let Network { links, routes, routes_of, transfers, ties, .. } = self.network;
        let first_pair = routes_of.len() / 2 - transfers.len();
        let runs = TransferRuns::new(self.transferring, transfers, first_pair as u32);
        let engine = Engine::with_ports(links, routes, self.hosts, &routes_of, observer);
        (engine.with_ties(ties), runs)
    }
}

/// Builds a checked scenario.
///
/// # Errors
/// If the scenario is invalid, which [`Scenario::check`] would have found.
pub(crate) fn build<H: SimHost>(scenario: &Scenario) -> Result<Simulation<H>, ScenarioError> {
    let network = Network::new(scenario)?;
    let stacks = Stacks::of(scenario);
    let mut order: Vec<usize> = (0..scenario.flows.len()).collect();
    order.sort_by_key(|&at| network.flows[at].pair);
    let mut hosts = Vec::with_capacity(2 * order.len());
    let (mut transferring, mut payloads) = (BTreeMap::new(), BTreeMap::new());
    let mut app_logs = AppLogs::default();
    for at in order {
        let (flow, stack) = (&scenario.flows[at], stacks.get(at));
        if flow.transfers.is_some() {
            let (stack, seed) = (Arc::clone(stack), scenario.seed);
            transferring.insert(at as u32, Transferring { flow: flow.clone(), stack, seed });
        } else if let Some((ends, of_flow)) = external(scenario, at, &network.flows[at]) {
            payloads.insert(network.flows[at].pair, of_flow);
            hosts.extend(ends.map(H::from_host));
        } else {
            let (dialogue, log) = scenario.dialogue(at, &network.flows[at]).unzip();
            let endpoints = endpoints(scenario, at, &network.flows[at], stack, dialogue)?;
            app_logs.0.extend(log.map(|log| (at as u32, log)));
            hosts.extend(endpoints.map(H::from_host));
        }
    }
    Ok(Simulation { network, hosts, transferring, payloads, app_logs })
}

/// Makes the endpoints of the transfers of a flow.
pub(crate) struct Transferring {
    flow: FlowSpec,
    stack: Arc<Stack>,
    /// Of the run.
    seed: u64,
}

impl Transferring {
    /// The endpoints of a transfer between this pair of ports.
    pub(crate) fn endpoints(&self, pair: u32, start: Time, bytes: u64) -> [AnyHost; 2] {
        let seed = seeds::derive(self.seed, Purpose::Algorithm, pair);
        // The scenario was checked with the same options.
        let algorithm = self.flow.algorithm(&self.flow.init(start, seed)).expect("checked options");
        tcp_endpoints(SenderConfig {
            stack: Arc::clone(&self.stack),
            algorithm,
            start,
            stop: None, // that of the flow ends the arrivals
            bytes: Some(bytes),
            app_rates: Vec::new(),
        })
    }
}

/// The sender and the receiver of a flow.
fn endpoints(
    scenario: &Scenario,
    at: usize,
    plan: &FlowPlan,
    stack: &Arc<Stack>,
    dialogue: Option<Box<dyn Dialogue>>,
) -> Result<[AnyHost; 2], ScenarioError> {
    let flow = &scenario.flows[at];
    let seed = |pair| seeds::derive(scenario.seed, Purpose::Algorithm, pair);
    let init = |pair| flow.init(plan.start, seed(pair));
    Ok(match &flow.udt {
        Some(options) => {
            let init = init(plan.pair);
            let algorithms = [flow.algorithm(&init)?, flow.algorithm(&init)?];
            udt_endpoints(flow, options, algorithms, &init)
        }
        None if flow.udp => UdpHost::ends(flow, plan.start).map(|end| AnyHost::Udp(Box::new(end))),
        None if plan.paths.len() > 1 => {
            let inits = (plan.pair..).take(plan.paths.len()).map(init);
            multipath_endpoints(flow, stack, inits.collect())?
        }
        None => {
            let config = SenderConfig {
                stack: Arc::clone(stack),
                algorithm: flow.algorithm(&init(plan.pair))?,
                start: plan.start,
                stop: flow.stop_ns.map(Time::from_nanos),
                bytes: flow.bytes,
                app_rates: flow.write_rates(),
            };
            match dialogue {
                Some(dialogue) => {
                    tcp_endpoints_with(config, |sender| sender.with_dialogue(dialogue))
                }
                None => tcp_endpoints(config),
            }
        }
    })
}

/// The ends of a flow of datagrams, and the payloads on their way.
fn external(scenario: &Scenario, at: usize, plan: &FlowPlan) -> Option<([AnyHost; 2], Payloads)> {
    let (hosts, payloads) = DatagramHost::pair(scenario.datagram_ends(at, plan)?);
    Some((hosts.map(|host| AnyHost::Datagram(Box::new(host))), payloads))
}

impl Scenario {
    /// Makes the ends of a flow, by its index, if another crate provides them.
    pub fn datagram_ends(&self, flow: usize, plan: &FlowPlan) -> Option<DatagramEnds> {
        let flow = &self.flows[flow];
        let (spec, factory) = (flow.external.as_ref()?, flow.endpoint_factory.as_ref()?);
        let seed = seeds::derive(self.seed, Purpose::Algorithm, plan.pair);
        Some(factory.make(ExternalFlow { flow, spec, start: plan.start, seed }))
    }

    /// Makes the ends of a flow of UDP at the rate of its application, by its index, for real packets.
    pub fn udp_ends(&self, flow: usize, plan: &FlowPlan) -> DatagramEnds {
        UdpHost::ends(&self.flows[flow], plan.start).map(|end| Box::new(end) as _)
    }

    /// Makes the application of a flow, by its index, if it is one that waits for what it sent, and
    /// the log of what it will record.
    pub fn dialogue(&self, flow: usize, plan: &FlowPlan) -> Option<(Box<dyn Dialogue>, AppLog)> {
        let app = self.flows[flow].app.as_ref()?;
        let seed = |purpose| seeds::derive(self.seed, purpose, plan.pair);
        let seeds = [seed(Purpose::TransferSizes), seed(Purpose::ThinkTimes)];
        let log = AppLog::default();
        Some((app.make(seeds, log.clone()), log))
    }
}

fn tcp_endpoints(config: SenderConfig) -> [AnyHost; 2] {
    tcp_endpoints_with(config, |sender| sender)
}

/// The same with a sender that `adapt` changes.
fn tcp_endpoints_with(config: SenderConfig, adapt: impl FnOnce(Sender) -> Sender) -> [AnyHost; 2] {
    let stack = Arc::clone(&config.stack);
    let sender = adapt(Sender::new(config));
    let sender = TcpHost::Sender(Box::new(TcpSender { sender }));
    let receiver = TcpHost::Receiver(Box::new(Receiver::new(stack)));
    [sender, receiver].map(AnyHost::Tcp)
}

/// The ends of a multipath connection, with one algorithm per subflow.
fn multipath_endpoints(
    flow: &FlowSpec,
    stack: &Stack,
    inits: Vec<ConnectionConfig>,
) -> Result<[AnyHost; 2], ScenarioError> {
    let stack = Arc::new(stack.of_subflow());
    let subflows = inits.len() as u8;
    let start = inits[0].now;
    let algorithms = inits.into_iter().map(|init| flow.algorithm(&init));
    let algorithms = algorithms.collect::<Result<_, _>>()?;
    let scheduler = Scheduler::named(&flow.scheduler).unwrap_or_default();
    let receiver = MultipathReceiver::new(&stack, scheduler, subflows);
    let sender = MultipathSender::new(MultipathConfig {
        stack,
        algorithms,
        scheduler,
        start,
        stop: flow.stop_ns.map(Time::from_nanos),
        bytes: flow.bytes,
        app_rates: flow.write_rates(),
    });
    let sender = MultipathHost::Sender(sender);
    let endpoints = [sender, MultipathHost::Receiver(receiver)];
    Ok(endpoints.map(|end| AnyHost::Multipath(Box::new(end))))
}

/// The ends of a UDT flow. Both have the algorithm, though only the client sends data.
fn udt_endpoints(
    flow: &FlowSpec,
    options: &dumbbell_udt::TransportOptions,
    algorithms: [Algorithm; 2],
    init: &ConnectionConfig,
) -> [AnyHost; 2] {
    let client = ClientConfig {
        options: options.clone(),
        bulk: BulkData {
            bytes: flow.bytes,
            stop: flow.stop_ns.map(Time::from_nanos),
            app_rates: flow.write_rates(),
        },
        start: init.now,
        seed: init.seed,
    };
    let [there, back] = algorithms;
    let server = UdtHost::server(options.clone(), back, init.seed);
    [UdtHost::client(client, there), server].map(|end| AnyHost::Udt(Box::new(end)))
}
