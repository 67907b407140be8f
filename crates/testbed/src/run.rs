//! A run: hosts are made, flows opened, the emulator and the applications driven side by side.

use crate::algorithm::kernel_name;
use crate::driver::{Driver, Samples};
use crate::emulator::{Clock, Device, Emulator, Measured, Seen};
use crate::error::TestbedError;
use crate::flow::{Ends, Flow, open_listener, open_sender};
use crate::health::{Health, StealWatch, is_short_of_memory};
use crate::host::{Host, MOST_PATHS, Side};
use crate::pool::Wire;
use crate::program::Program;
use crate::settings::Settings;
use crate::udt::{self, UdtFlow};
use crate::wakefulness::Wakefulness;
use dumbbell_sim::{FlowPlan, FlowRow, FlowSpec, Flows, Histogram, LinkSpec, Network, Scenario};
use dumbbell_units::{Span, Time};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How long it takes until all is ready when the clock shows 0.
const PREPARATION: Span = Span::from_millis(50);

/// What came of a run.
pub struct Outcome {
    /// The tables, as the simulator has them.
    pub tables: dumbbell_sim::RunOutput,
    /// How the machine did.
    pub health: Health,
    /// What is wrong with the run, if anything is.
    pub complaints: Vec<String>,
}

/// Flows that share hosts, as nothing of theirs asks for hosts of their own.
struct Group {
    /// Their places in the scenario.
    flows: Vec<usize>,
    settings: Settings,
}

/// The hosts of a group, with what was opened in them.
struct Hosts {
    pair: [Arc<Host>; 2],
    ends: Vec<(usize, Ends)>,
}

/// Runs a scenario with real packets, in real time. `go_on` is told at every sample which share has
/// passed, and may end the run.
///
/// # Errors
/// If the machine cannot, before anything is sent; or if it was told to stop.
pub fn run(
    scenario: &Scenario,
    go_on: impl FnMut(f64) -> ControlFlow<()>,
) -> Result<Outcome, TestbedError> {
    scenario.check()?;
    let network = Network::<Wire>::new(scenario)?;
    check(scenario, &network)?;
    let groups = group(scenario)?;
    let plans = network.flows.clone();
    let hosts = groups.iter().map(|group| make_hosts(scenario, &plans, group));
    let hosts: Vec<Hosts> = hosts.collect::<Result<_, _>>()?;
    Run::new(scenario, plans, &groups, hosts)?.go(network, go_on)
}

/// What a network namespace cannot have.
fn check(scenario: &Scenario, network: &Network<Wire>) -> Result<(), TestbedError> {
    let refuse = |flow: &FlowSpec, key: &str, value: &str, reason: &str| {
        let (flow, key) = (flow.name.clone(), key.to_owned());
        let (value, reason) = (value.to_owned(), reason.to_owned());
        Err(TestbedError::Unsupported { flow, key, value, reason })
    };
    for flow in &scenario.flows {
        if flow.scheduler != "lowest-rtt" && !flow.additional_subflows.is_empty() {
            let scheduler = format!("\"{}\"", flow.scheduler);
            return refuse(flow, "scheduler", &scheduler, "Linux has \"lowest-rtt\"; write that");
        }
        if flow.log {
            return refuse(flow, "log", "true", "packets are not recorded; leave it out");
        }
        if flow.command.is_some() && !flow.additional_subflows.is_empty() {
            return refuse(flow, "command", "given beside paths", "a program has one path");
        }
    }
    if network.routes_of.len() / 2 > MOST_PATHS {
        let flow = &scenario.flows[0];
        return refuse(flow, "repeat", "so many", "there are addresses for 65,000 paths");
    }
    Ok(())
}

/// Multipath flows and programs have hosts of their own; others share them with those of the same
/// stack, or over UDT of the same greatest packet.
fn group(scenario: &Scenario) -> Result<Vec<Group>, TestbedError> {
    let mut groups: Vec<Group> = Vec::new();
    for (number, flow) in scenario.flows.iter().enumerate() {
        let is_alone =
            |flow: &FlowSpec| flow.command.is_some() || !flow.additional_subflows.is_empty();
        let shared = groups.iter_mut().find(|group| {
            let first = &scenario.flows[group.flows[0]];
            let mss = |flow: &FlowSpec| flow.udt.as_ref().map(|options| options.mss);
            let alike = match (mss(first), mss(flow)) {
                (None, None) => first.stack == flow.stack,
                (one, other) => one == other,
            };
            alike && !is_alone(flow) && !is_alone(first)
        });
        if let Some(group) = shared {
            group.flows.push(number);
            continue;
        }
        let mut settings = Settings::of(flow)?;
        if flow.command.is_some() {
            let default = kernel_name(flow).to_owned();
            settings.sysctls.push(("ipv4/tcp_congestion_control", default));
        }
        groups.push(Group { flows: vec![number], settings });
    }
    Ok(groups)
}

fn make_hosts(
    scenario: &Scenario,
    plans: &[FlowPlan],
    group: &Group,
) -> Result<Hosts, TestbedError> {
    let first = &plans[group.flows[0]];
    let joins: Vec<u32> = (1..first.paths.len() as u32).map(|part| first.pair + part).collect();
    let joins = if group.flows.len() == 1 { &joins[..] } else { &[] };
    let flows = || group.flows.iter().filter(|&&flow| scenario.flows[flow].command.is_none());
    let settings = &group.settings;
    let (sender, senders) = Host::new(Side::Sender, settings, first.pair, joins, || {
        let open = |&flow: &usize| match scenario.flows[flow].udt {
            Some(_) => udt::open(Side::Sender, &plans[flow]),
            None => open_sender(&scenario.flows[flow], &plans[flow], settings),
        };
        flows().map(open).collect::<Result<Vec<_>, _>>()
    })?;
    let (receiver, listeners) = Host::new(Side::Receiver, settings, first.pair, joins, || {
        let open = |&flow: &usize| match scenario.flows[flow].udt {
            Some(_) => udt::open(Side::Receiver, &plans[flow]),
            None => open_listener(&scenario.flows[flow], &plans[flow], settings),
        };
        flows().map(open).collect::<Result<Vec<_>, _>>()
    })?;
    let ends = senders.into_iter().zip(listeners);
    let ends = ends.map(|(sender, listener)| Ends { sender, listener });
    Ok(Hosts {
        ends: flows().copied().zip(ends).collect(),
        pair: [Arc::new(sender), Arc::new(receiver)],
    })
}

struct Run<'a> {
    scenario: &'a Scenario,
    plans: Vec<FlowPlan>,
    hosts: Vec<[Arc<Host>; 2]>,
    flows: Vec<Flow>,
    programs: Vec<Program>,
    udt: Vec<UdtFlow>,
    /// By port, which of the hosts' devices it is.
    device_of: Vec<usize>,
}

impl<'a> Run<'a> {
    fn new(
        scenario: &'a Scenario,
        plans: Vec<FlowPlan>,
        groups: &[Group],
        hosts: Vec<Hosts>,
    ) -> Result<Run<'a>, TestbedError> {
        let ports = plans.iter().map(|plan| plan.paths.len() * 2).sum();
        let mut run = Run {
            scenario,
            plans,
            hosts: Vec::new(),
            flows: Vec::new(),
            programs: Vec::new(),
            udt: Vec::new(),
            device_of: vec![0; ports],
        };
        for (number, (group, made)) in groups.iter().zip(hosts).enumerate() {
            for &flow in &group.flows {
                let plan = &run.plans[flow];
                let first = plan.pair as usize * 2;
                for port in first..first + plan.paths.len() * 2 {
                    run.device_of[port] = 2 * number + port % 2;
                }
                if let Some(command) = &scenario.flows[flow].command {
                    let spec = &scenario.flows[flow];
                    let pair = [&made.pair[0], &made.pair[1]];
                    let program = Program::new(flow as u32, spec, command, plan.clone(), pair)?;
                    run.programs.push(program);
                }
            }
            for (flow, ends) in made.ends {
                let (number, spec) = (flow as u32, &scenario.flows[flow]);
                let plan = run.plans[flow].clone();
                match &spec.udt {
                    Some(options) => {
                        run.udt.push(UdtFlow::new(number, spec, options, plan, ends));
                    }
                    None => run.flows.push(Flow::new(number, spec, plan, ends)),
                }
            }
            run.hosts.push(made.pair);
        }
        run.flows.sort_by_key(|flow| flow.number);
        Ok(run)
    }

    fn go(
        mut self,
        network: Network<Wire>,
        go_on: impl FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Outcome, TestbedError> {
        let devices = self.hosts.iter().flat_map(|[sender, receiver]| {
            [(Side::Sender, sender), (Side::Receiver, receiver)]
                .map(|(side, host)| Device { side, file: &host.tun })
        });
        let devices = devices.collect();
        let clock = Clock::starting_in(PREPARATION);
        let links = self.scenario.links.len() as u32;
        let emulator = Emulator::new(network, devices, self.device_of.clone(), links, clock);
        let first_parts = FlowPlan::first_subflows(&self.plans).collect::<Vec<_>>();
        let driver =
            Driver::new(&mut self.flows, &mut self.programs, &mut self.udt, &first_parts, clock)?;
        let duration = Time::from_nanos(self.scenario.duration_ns);
        let sample = Span::from_nanos(self.scenario.sample_ns);
        let internals = self.scenario.internals;
        let awake = Wakefulness::begin();
        let steal = StealWatch::begin();
        let was_short = is_short_of_memory();
        let stop = AtomicBool::new(false);
        let (mut measured, samples) = std::thread::scope(|scope| {
            let emulator = scope.spawn(|| emulator.run(duration, sample, &stop));
            let samples = driver.run(duration, sample, internals, go_on);
            stop.store(samples.is_err(), Ordering::Relaxed);
            let measured = emulator.join();
            let measured = measured.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            samples.and_then(|samples| Ok((measured?, samples)))
        })?;
        measured.health.steal = steal.share();
        measured.health.awake = awake.is_some();
        measured.health.short_of_memory = was_short || is_short_of_memory();
        self.outcome(measured, samples)
    }

    fn outcome(mut self, measured: Measured, samples: Samples) -> Result<Outcome, TestbedError> {
        let Measured { links, seen, mut health, events } = measured;
        health.applications = samples.lateness;
        health.device_drops = self.hosts.iter().flatten().map(|host| host.device_drops()).sum();
        let shortest = self.plans.iter().flat_map(|plan| &plan.paths).map(|path| path.rtt).min();
        let queue = self.scenario.links.iter().filter_map(LinkSpec::queue_time).min();
        let (rtt, queue) = (shortest.unwrap_or(Span::ZERO), queue.unwrap_or(Span::MAX));
        let mut complaints = health.complaints(rtt, queue);
        complaints.extend(self.failures());
        let (flows, subflows) = self.tables(&seen);
        let tables = dumbbell_sim::RunOutput {
            data_packets: seen.iter().map(|seen| seen.sent_packets).sum(),
            flows,
            series: samples.series,
            links,
            internals: samples.internals.unwrap_or_default(),
            subflows,
            subflow_series: samples.part_series,
            events,
            ..dumbbell_sim::RunOutput::default()
        };
        Ok(Outcome { tables, health, complaints })
    }

    /// Connections and programs that ended before their time.
    fn failures(&mut self) -> Vec<String> {
        let name = |number: u32| &self.scenario.flows[number as usize].name;
        let flows = self.flows.iter().filter_map(|flow| {
            let error = std::io::Error::from_raw_os_error(flow.broken()?);
            Some(format!("the connection of \"{}\" broke ({error})", name(flow.number)))
        });
        let mut failures: Vec<String> = flows.collect();
        failures.extend(self.udt.iter().filter_map(|flow| {
            Some(format!("the connection of \"{}\" broke ({})", name(flow.number), flow.failure()?))
        }));
        failures.extend(self.programs.iter_mut().filter_map(|program| {
            let failure = program.failure()?;
            Some(format!("the program of \"{}\" failed ({failure})", name(program.number)))
        }));
        failures
    }

    /// What became of flows and subflows.
    fn tables(&mut self, seen: &[Seen]) -> (Flows, Flows) {
        let first_parts = FlowPlan::first_subflows(&self.plans).collect::<Vec<_>>();
        let mut rows: Vec<(FlowRow, Vec<(u32, FlowRow)>)> =
            self.flows.iter().map(Flow::conclude).collect();
        rows.extend(self.programs.iter().map(|program| {
            let seen = &seen[program.plan().pair as usize];
            (program.conclude(seen), Vec::new())
        }));
        rows.extend(self.udt.iter_mut().map(|flow| (flow.conclude(), Vec::new())));
        rows.sort_by_key(|(row, _)| row.flow);
        let (mut flows, mut subflows) = (Flows::default(), Flows::default());
        for (row, mut parts) in rows {
            let plan = &self.plans[row.flow as usize];
            let of = |part: usize| &seen[plan.pair as usize + part];
            let mut delays = Histogram::new();
            (0..plan.paths.len()).for_each(|part| delays.merge(&of(part).delays));
            let base_rtt = plan.paths.iter().map(|path| path.rtt).min().unwrap_or(Span::ZERO);
            flows.push(row.with_delays(base_rtt, &delays));
            let first = first_parts[row.flow as usize];
            let many = plan.paths.len() > 1;
            for part in 0..if many { plan.paths.len() as u32 } else { 0 } {
                let place = parts.iter().position(|(number, _)| *number == part);
                let row = place.map_or_else(FlowRow::default, |place| parts.swap_remove(place).1);
                let row = FlowRow { flow: first + part, start: plan.start.as_secs_f64(), ..row };
                let (rtt, delays) = (plan.paths[part as usize].rtt, &of(part as usize).delays);
                subflows.push(row.with_delays(rtt, delays));
            }
        }
        (flows, subflows)
    }
}
