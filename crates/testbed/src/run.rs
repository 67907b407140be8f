//! A run: creates hosts, opens flows, and runs the emulator and the applications on two threads.

use crate::bulk_flow::{self, options_of};
use crate::capture::Captures;
use crate::cpu_latency::CpuLatencyLock;
use crate::datagram_flow;
use crate::driver::{Driver, Samples};
use crate::emulator::{Clock, Device, Emulator, Measurements, PathStats, ProgramSample};
use crate::error::TestbedError;
use crate::health::{Health, StealMeter, tcp_memory_pressure};
use crate::host::{Host, MAX_PATHS, Side};
use crate::info::MAX_SUBFLOWS;
use crate::pool::PacketRef;
use crate::program::Program;
use crate::settings::{KernelSettings, check_sockets, tcp_ecn, udp_mtu};
use crate::small_pages::SmallPages;
use crate::stalls;
use crate::tcp_flow::{FlowSockets, TcpFlow};
use crate::tcp_socket::{open_listener, open_sender};
use crate::totals::{FlowTotals, since, totals};
use crate::transfers::{TransferRuns, raise_file_limit};
use crate::udp_flow::{self, StartEnds, UdpFlow};
use crate::udt_flow;
use crate::waiting::Waiting;
use dumbbell_sim::{
    AppLogs, FlowPlan, FlowRow, FlowSpec, Flows, FrameRow, Frames, Histogram, LinkSpec, Network,
    SampleTimes, Scenario, Series, Transfer,
};
use dumbbell_units::{Span, Time};
use std::collections::HashMap;
use std::net::UdpSocket;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;

/// Delay before time 0 of a run, in which threads start.
const STARTUP_DELAY: Span = Span::from_millis(50);

/// The result of a run.
pub struct TestbedOutcome {
    /// The tables; columns as in a simulation.
    pub tables: dumbbell_sim::RunOutput,
    /// Measurements of the machine.
    pub health: Health,
    /// Reasons not to trust the run; empty if there are none.
    pub warnings: Vec<String>,
    /// The packets of logged flows at their senders and at their receivers, as pcapng files.
    pub captures: Option<[Vec<u8>; 2]>,
}

/// Flows that share a pair of hosts, because they need the same kernel settings.
struct HostGroup {
    /// Indices of the flows in the scenario.
    flows: Vec<usize>,
    settings: KernelSettings,
}

/// The hosts of a group, with the sockets opened in them.
struct HostPair {
    hosts: [Arc<Host>; 2],
    sockets: Vec<(usize, FlowSockets)>,
}

/// Runs a scenario with real packets, in real time.
///
/// `at_once` runs share the machine. Calls `progress` with the completed fraction (0 to 1) at every
/// sample; a break stops the run.
///
/// # Errors
/// Before any packet is sent: if the scenario is invalid, or needs a feature or a permission that
/// the machine lacks. Later: if a system call fails, or [`TestbedError::Stopped`] after a break.
pub fn run(
    scenario: &Scenario,
    at_once: usize,
    progress: impl FnMut(f64) -> ControlFlow<()>,
) -> Result<TestbedOutcome, TestbedError> {
    scenario.check()?;
    let network = Network::<PacketRef>::new(scenario)?;
    check_supported(scenario, &network)?;
    let transfers = network.transfers.len();
    raise_file_limit(transfers, network.routes_of.len() / 2 - transfers)?;
    let groups = group_flows(scenario)?;
    let hosts = groups.iter().map(|group| make_hosts(scenario, &network.flows, group));
    let hosts: Vec<HostPair> = hosts.collect::<Result<_, _>>()?;
    let (plans, transfers) = (network.flows.clone(), &network.transfers);
    Run::new(scenario, plans, transfers, &groups, hosts)?.execute(network, at_once, progress)
}

/// Refuses flows that network namespaces cannot run.
///
/// # Errors
/// [`TestbedError::Unsupported`] for the first such flow.
fn check_supported(scenario: &Scenario, network: &Network<PacketRef>) -> Result<(), TestbedError> {
    let refuse = |flow: &FlowSpec, key: &str, value: &str, reason: &str| {
        let (flow, key) = (flow.name.clone(), key.to_owned());
        let (value, reason) = (value.to_owned(), reason.to_owned());
        Err(TestbedError::Unsupported { flow, key, value, reason })
    };
    for flow in &scenario.flows {
        if flow.scheduler != "default" && !flow.additional_subflows.is_empty() {
            let scheduler = format!("\"{}\"", flow.scheduler);
            return refuse(flow, "scheduler", &scheduler, "Linux has \"default\"; write that");
        }
        let paths = 1 + flow.additional_subflows.len();
        if paths > MAX_SUBFLOWS {
            let reason = format!("Linux has at most {MAX_SUBFLOWS} subflows; write no more paths");
            return refuse(flow, "paths", &format!("{paths} paths"), &reason);
        }
        if flow.command.is_some() && !flow.additional_subflows.is_empty() {
            return refuse(flow, "command", "given beside paths", "a program has one path");
        }
        check_sockets(flow)?;
    }
    if network.routes_of.len() / 2 <= MAX_PATHS {
        return Ok(());
    }
    if let Some(transfer) = network.transfers.last() {
        let flow = &scenario.flows[transfer.flow as usize];
        let transfers = format!("{} transfers", network.transfers.len());
        let reason = "there are addresses for 65,000 paths and transfers; let fewer arrive";
        return refuse(flow, "arrivals", &transfers, reason);
    }
    let flow = &scenario.flows[0];
    refuse(flow, "repeat", "so many", "there are addresses for 65,000 paths")
}

/// Groups flows by host. Multipath flows, programs and bulk transfers each have a pair of hosts; TCP
/// flows share hosts with those of the same stack, flows over UDP with those of the same MTU.
fn group_flows(scenario: &Scenario) -> Result<Vec<HostGroup>, TestbedError> {
    let mut groups: Vec<HostGroup> = Vec::new();
    for (number, flow) in scenario.flows.iter().enumerate() {
        let is_alone = |flow: &FlowSpec| {
            flow.command.is_some()
                || options_of(flow).is_some()
                || !flow.additional_subflows.is_empty()
        };
        let shared = groups.iter_mut().find(|group| {
            let first = &scenario.flows[group.flows[0]];
            let alike = match (udp_mtu(first), udp_mtu(flow)) {
                (None, None) => first.stack == flow.stack && tcp_ecn(first) == tcp_ecn(flow),
                (one, other) => one == other,
            };
            alike && !is_alone(flow) && !is_alone(first)
        });
        if let Some(group) = shared {
            group.flows.push(number);
            continue;
        }
        groups.push(HostGroup { flows: vec![number], settings: KernelSettings::for_flow(flow)? });
    }
    Ok(groups)
}

fn make_hosts(
    scenario: &Scenario,
    plans: &[FlowPlan],
    group: &HostGroup,
) -> Result<HostPair, TestbedError> {
    let first = &plans[group.flows[0]];
    let additional_paths: Vec<u32> =
        (1..first.paths.len() as u32).map(|subflow| first.pair + subflow).collect();
    let additional_paths = if group.flows.len() == 1 { &additional_paths[..] } else { &[] };
    let opens_itself = |flow: &FlowSpec| {
        flow.command.is_some() || options_of(flow).is_some() || flow.transfers.is_some()
    };
    let flows = || group.flows.iter().filter(|&&flow| !opens_itself(&scenario.flows[flow]));
    let settings = &group.settings;
    let (sender, senders) =
        Host::new(Side::Sender, settings, first.pair, additional_paths, || {
            let open = |&flow: &usize| match udp_mtu(&scenario.flows[flow]) {
                Some(_) => udp_flow::open_socket(Side::Sender, &plans[flow]),
                None => open_sender(&scenario.flows[flow], &plans[flow], settings),
            };
            flows().map(open).collect::<Result<Vec<_>, _>>()
        })?;
    let (receiver, listeners) =
        Host::new(Side::Receiver, settings, first.pair, additional_paths, || {
            let open = |&flow: &usize| match udp_mtu(&scenario.flows[flow]) {
                Some(_) => udp_flow::open_socket(Side::Receiver, &plans[flow]),
                None => open_listener(&scenario.flows[flow], &plans[flow], settings),
            };
            flows().map(open).collect::<Result<Vec<_>, _>>()
        })?;
    let ends = senders.into_iter().zip(listeners);
    let ends = ends.map(|(sender, listener)| FlowSockets { sender, listener });
    Ok(HostPair {
        sockets: flows().copied().zip(ends).collect(),
        hosts: [Arc::new(sender), Arc::new(receiver)],
    })
}

/// Prepares the ends of a flow over UDP, by its index, over these sockets.
fn prepare_udp(
    scenario: &Scenario,
    flow: usize,
    plan: &FlowPlan,
    sockets: FlowSockets,
) -> StartEnds {
    let spec = &scenario.flows[flow];
    let sockets = [sockets.sender, sockets.listener].map(UdpSocket::from);
    if let Some(options) = &spec.udt {
        return udt_flow::prepare(spec, options, sockets);
    }
    let ends = scenario.datagram_ends(flow, plan).unwrap_or_else(|| scenario.udp_ends(flow, plan));
    datagram_flow::prepare(plan, ends, sockets)
}

/// Gives the samples of programs the packets and bytes that the emulator had counted on their paths.
fn count_programs(series: &mut Series, counted: &[ProgramSample]) {
    let counted: HashMap<_, _> =
        counted.iter().map(|one| ((one.flow, one.t.to_bits()), one.carried)).collect();
    for row in 0..series.flow.len() {
        if let Some(carried) = counted.get(&(series.flow[row], series.t[row].to_bits())) {
            series.sent[row] = carried.sent_packets;
            series.delivered[row] = carried.delivered_bytes;
            series.received[row] = carried.delivered_bytes;
        }
    }
}

/// What a thread returned; its panic becomes this thread's.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

struct Run<'a> {
    scenario: &'a Scenario,
    plans: Vec<FlowPlan>,
    hosts: Vec<[Arc<Host>; 2]>,
    flows: Vec<TcpFlow>,
    transfers: TransferRuns,
    programs: Vec<Program>,
    udp: Vec<UdpFlow>,
    app_logs: AppLogs,
    /// Index of the device of each port.
    port_devices: Vec<usize>,
}

impl<'a> Run<'a> {
    fn new(
        scenario: &'a Scenario,
        plans: Vec<FlowPlan>,
        transfers: &[Transfer],
        groups: &[HostGroup],
        hosts: Vec<HostPair>,
    ) -> Result<Run<'a>, TestbedError> {
        let paths: usize = plans.iter().map(|plan| plan.paths.len()).sum();
        let mut run = Run {
            scenario,
            plans,
            hosts: Vec::new(),
            flows: Vec::new(),
            transfers: TransferRuns::new(paths as u32),
            programs: Vec::new(),
            udp: Vec::new(),
            app_logs: AppLogs::default(),
            port_devices: vec![0; 2 * paths],
        };
        for (number, (group, made)) in groups.iter().zip(hosts).enumerate() {
            for &flow in &group.flows {
                let plan = &run.plans[flow];
                let first = plan.pair as usize * 2;
                for port in first..first + plan.paths.len() * 2 {
                    run.port_devices[port] = 2 * number + port % 2;
                }
                let spec = &scenario.flows[flow];
                if let Some(command) = &spec.command {
                    let pair = [&made.hosts[0], &made.hosts[1]];
                    let program = Program::new(flow as u32, spec, command, plan.clone(), pair)?;
                    run.programs.push(program);
                }
                if let Some(options) = options_of(spec) {
                    let pair = [&*made.hosts[0], &*made.hosts[1]];
                    let ends = bulk_flow::prepare(spec, options, plan, pair)?;
                    run.udp.push(UdpFlow::new(flow as u32, plan.start, ends));
                }
                if spec.transfers.is_some() {
                    let (number, settings) = (flow as u32, &group.settings);
                    let pair = [&*made.hosts[0], &*made.hosts[1]];
                    run.transfers.add_flow(number, spec, plan, transfers, settings, pair)?;
                }
            }
            for (flow, sockets) in made.sockets {
                let (number, spec) = (flow as u32, &scenario.flows[flow]);
                let plan = run.plans[flow].clone();
                if udp_mtu(spec).is_some() {
                    let start = plan.start;
                    let ends = prepare_udp(scenario, flow, &plan, sockets);
                    run.udp.push(UdpFlow::new(number, start, ends));
                } else {
                    let (dialogue, log) = scenario.dialogue(flow, &plan).unzip();
                    run.app_logs.0.extend(log.map(|log| (number, log)));
                    run.flows.push(TcpFlow::new(number, spec, plan, sockets, dialogue));
                }
            }
            run.hosts.push(made.hosts);
        }
        for transfer in transfers {
            let first = 2 * run.plans[transfer.flow as usize].pair as usize;
            run.port_devices.extend_from_within(first..first + 2);
        }
        run.flows.sort_by_key(|flow| flow.number);
        run.udp.sort_by_key(|flow| flow.number);
        Ok(run)
    }

    fn execute(
        mut self,
        network: Network<PacketRef>,
        at_once: usize,
        progress: impl FnMut(f64) -> ControlFlow<()>,
    ) -> Result<TestbedOutcome, TestbedError> {
        let _small_pages = SmallPages::acquire();
        let devices = self.hosts.iter().flat_map(|[sender, receiver]| {
            [(Side::Sender, sender), (Side::Receiver, receiver)]
                .map(|(side, host)| Device { side, file: &host.tun })
        });
        let devices = devices.collect();
        let clock = Clock::starting_in(STARTUP_DELAY);
        let links = self.scenario.links.len() as u32;
        let ports = self.port_devices.clone();
        let waiting = Waiting::new(at_once * (1 + self.application_threads()));
        let polls = waiting.is_polling();
        let captures = self.captures();
        let programs = self.programs.iter().map(|program| (program.number, program.plan().pair));
        let emulator = Emulator::new(network, devices, ports, links, clock, waiting, captures)
            .with_programs(programs.collect());
        let first_subflows = FlowPlan::first_subflows(&self.plans).collect::<Vec<_>>();
        let own_host = self.own_host();
        let driver = Driver::new(
            &mut self.flows,
            &mut self.transfers,
            &mut self.programs,
            &mut self.udp,
            &first_subflows,
            own_host,
            clock,
        )?;
        let duration = Time::from_nanos(self.scenario.duration_ns);
        let times = SampleTimes::of(self.scenario).peekable();
        let internals = self.scenario.internals;
        // Beside a polling emulator it would keep every virtual processor busy, and a host then takes
        // processors away for milliseconds.
        let awake = if polls { None } else { CpuLatencyLock::acquire() };
        let steal = StealMeter::start();
        let was_short = tcp_memory_pressure();
        let (stop, has_ended) = (AtomicBool::new(false), AtomicBool::new(false));
        let (mut measured, samples) = std::thread::scope(|scope| {
            let emulator = scope.spawn(|| emulator.run(times.clone(), &stop));
            let watch = |processor| {
                let has_ended = &has_ended;
                scope.spawn(move || stalls::watch(processor, clock, duration, has_ended))
            };
            let watches: Vec<_> = stalls::processors().into_iter().map(watch).collect();
            let samples = driver.run(times.clone(), duration, internals, progress);
            stop.store(samples.is_err(), Ordering::Relaxed);
            let mut measured = joined(emulator);
            has_ended.store(true, Ordering::Relaxed);
            let mut stalls: Vec<_> = watches.into_iter().flat_map(joined).collect();
            stalls.sort_by_key(|stall| stall.end);
            if let Ok(measured) = &mut measured {
                measured.health.stalls = stalls;
            }
            samples.and_then(|samples| Ok((measured?, samples)))
        })?;
        measured.health.steal = steal.steal().unwrap_or(0.0);
        measured.health.cpu_latency_lock = awake.is_some();
        measured.health.tcp_memory_pressure = was_short || tcp_memory_pressure();
        self.outcome(measured, samples)
    }

    /// Threads and processes that run the applications: one for all TCP flows, two for each other.
    fn application_threads(&self) -> usize {
        1 + 2 * (self.programs.len() + self.udp.len())
    }

    /// Empty captures of the flows that are logged; `None` if there are none.
    fn captures(&self) -> Option<Captures> {
        let mut paths = vec![false; self.port_devices.len() / 2];
        for (plan, flow) in self.plans.iter().zip(&self.scenario.flows) {
            let first = plan.pair as usize;
            paths[first..first + plan.paths.len()].fill(flow.log);
        }
        Captures::new(paths)
    }

    fn outcome(
        mut self,
        measured: Measurements,
        samples: Samples,
    ) -> Result<TestbedOutcome, TestbedError> {
        let Measurements { links, path_stats, data_packets, events, captures, .. } = measured;
        let (mut health, mut series) = (measured.health, samples.series);
        count_programs(&mut series, &measured.program_samples);
        health.application_lateness = samples.lateness;
        health.device_drops = self.hosts.iter().flatten().map(|host| host.device_drops()).sum();
        let shortest = self.plans.iter().flat_map(|plan| &plan.paths).map(|path| path.rtt).min();
        let queue = self.scenario.links.iter().filter_map(LinkSpec::queue_time).min();
        let (rtt, queue) = (shortest.unwrap_or(Span::ZERO), queue.unwrap_or(Span::MAX));
        let mut warnings = health.warnings(rtt, queue);
        warnings.extend(self.failures());
        let (flows, subflows) = self.tables(&samples.warm, &path_stats)?;
        let transfers = self.transfers.table();
        let end = Time::from_nanos(self.scenario.duration_ns).as_secs_f64();
        let tables = dumbbell_sim::RunOutput {
            data_packets,
            flows,
            series,
            links,
            internals: samples.internals.unwrap_or_default(),
            subflows,
            subflow_series: samples.subflow_series,
            events,
            transfers: self.app_logs.with_responses(transfers, end),
            segments: self.app_logs.segments(end),
            frames: self.frames(end),
            ..dumbbell_sim::RunOutput::default()
        };
        let captures = captures.map(Captures::into_files);
        Ok(TestbedOutcome { tables, health, warnings, captures })
    }

    /// Messages about connections and programs that failed.
    fn failures(&mut self) -> Vec<String> {
        let name = |number: u32| &self.scenario.flows[number as usize].name;
        let flows = self.flows.iter().filter_map(|flow| {
            let error = std::io::Error::from_raw_os_error(flow.errno()?);
            Some(format!("the connection of \"{}\" broke ({error})", name(flow.number)))
        });
        let mut failures: Vec<String> = flows.collect();
        failures.extend(self.transfers.failures().map(|(flow, count, error)| {
            format!("{count} transfers of \"{}\" broke (the first: {error})", name(flow))
        }));
        failures.extend(self.udp.iter_mut().filter_map(|flow| {
            Some(format!("the connection of \"{}\" broke ({})", name(flow.number), flow.failure()?))
        }));
        failures.extend(self.programs.iter_mut().filter_map(|program| {
            let failure = program.failure()?;
            Some(format!("the program of \"{}\" failed ({failure})", name(program.number)))
        }));
        failures
    }

    /// The table of the frames of media that were captured until the end of the run, s.
    fn frames(&self, end: f64) -> Frames {
        let mut table = Frames::default();
        for flow in &self.udp {
            flow.frames(&mut |row| {
                let completed = row.completed.filter(|at| *at <= end);
                if row.start <= end {
                    table.push(FrameRow { completed, ..row });
                }
            });
        }
        table
    }

    /// The sender's host of the one flow over TCP, if there is but one.
    fn own_host(&self) -> Option<Arc<Host>> {
        let numbers = self.flows.iter().map(|flow| flow.number).chain(self.transfers.flows());
        let [number] = numbers.collect::<Vec<_>>()[..] else { return None };
        let host = self.port_devices[self.plans[number as usize].pair as usize * 2] / 2;
        Some(Arc::clone(&self.hosts[host][0]))
    }

    /// The tables of what flows and subflows counted since the totals at the end of the warm-up.
    fn tables(
        &mut self,
        warm: &[FlowTotals],
        path_stats: &[PathStats],
    ) -> Result<(Flows, Flows), TestbedError> {
        let first_subflows = FlowPlan::first_subflows(&self.plans).collect::<Vec<_>>();
        let host = self.own_host();
        let (flows, programs) = (&self.flows, &self.programs);
        let mut rows =
            totals(flows, &mut self.transfers, programs, &mut self.udp, host.as_deref())?;
        since(&mut rows, warm);
        for program in programs {
            let row = &mut rows[program.number as usize].0;
            *row = Program::with_packets(*row, path_stats[program.plan().pair as usize].carried());
        }
        let (mut flows, mut subflows) = (Flows::default(), Flows::default());
        for (row, mut subflow_rows) in rows {
            let plan = &self.plans[row.flow as usize];
            let stats = |subflow: usize| &path_stats[plan.pair as usize + subflow];
            let mut delays = Histogram::new();
            (0..plan.paths.len()).for_each(|subflow| delays.merge(&stats(subflow).queue_delays));
            let marked = (0..plan.paths.len()).map(|subflow| stats(subflow).marked).sum();
            let row = FlowRow { marked, ..row };
            let base_rtt = plan.paths.iter().map(|path| path.rtt).min().unwrap_or(Span::ZERO);
            flows.push(row.with_delays(base_rtt, &delays));
            let first = first_subflows[row.flow as usize];
            let many = plan.paths.len() > 1;
            for subflow in 0..if many { plan.paths.len() as u32 } else { 0 } {
                let index = subflow_rows.iter().position(|(number, _)| *number == subflow);
                let row =
                    index.map_or_else(FlowRow::default, |index| subflow_rows.swap_remove(index).1);
                let (rtt, path) = (plan.paths[subflow as usize].rtt, stats(subflow as usize));
                let (flow, start) = (first + subflow, plan.start.as_secs_f64());
                let row = FlowRow { flow, start, marked: path.marked, ..row };
                subflows.push(row.with_delays(rtt, &path.queue_delays));
            }
        }
        Ok((flows, subflows))
    }
}
