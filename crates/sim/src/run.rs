//! Runs scenarios.

use crate::app::AppLogs;
use crate::build::build;
use crate::datagram::Payloads;
use crate::datagram_host::EndpointLog;
use crate::delay_meter::DelayMeter;
use crate::engine::{EndpointId, Engine};
use crate::histogram::Histogram;
use crate::hop_log::HopLog;
use crate::host::{AnyHost, SimHost};
use crate::network::{FlowPlan, Transfer};
use crate::observer::Observer;
use crate::packet_log::PacketLog;
use crate::pdu::SimPacket;
use crate::sample::Sampler;
use crate::sample_times::{SampleTime, SampleTimes};
use crate::scenario::{Scenario, ScenarioError};
use crate::tables::{
    FlowRow, Flows, FrameRow, Frames, Internals, Links, Segments, Series, Transfers,
};
use crate::tcp_host::TcpHost;
use crate::transfers::TransferRuns;
use dumbbell_net::{DropReason, LinkId};
use dumbbell_units::{Span, Time};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub struct RunOutput {
    /// One row per flow.
    pub flows: Flows,
    /// The state of flows over time.
    pub series: Series,
    /// The state of links over time.
    pub links: Links,
    /// The internals of algorithms over time.
    pub internals: Internals,
    /// Data packets sent by all flows, retransmissions included.
    pub data_packets: u64,
    /// One row per subflow of multipath flows; `flow` numbers the subflows of all flows.
    pub subflows: Flows,
    /// The state of subflows over time.
    pub subflow_series: Series,
    /// The internals of subflows' algorithms over time.
    pub subflow_internals: Internals,
    /// Events that the engine processed.
    pub events: u64,
    /// The packets of logged flows.
    pub packets: PacketLog,
    /// One row per transfer of flows that consist of many.
    pub transfers: Transfers,
    /// One row per frame of flows of media.
    pub frames: Frames,
    /// One row per segment of flows with a video client.
    pub segments: Segments,
    /// Connections that ended before their time.
    pub failures: Vec<Failure>,
    /// The logs that senders wrote themselves.
    pub logs: Vec<SenderLog>,
}

/// The index of a flow, and the log that its sender wrote.
pub type SenderLog = (u32, Arc<dyn EndpointLog>);

/// A connection that its protocol closed before its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Index of the flow in the scenario.
    pub flow: u32,
    /// When it was closed.
    pub at: Time,
    /// The reason, in the words of the implementation.
    pub why: String,
}

/// The observers of a run; `T` is [`HopLog`], or `()` in runs that record no hops.
struct Observers<T> {
    meter: DelayMeter,
    log: PacketLog,
    hops: T,
    /// Of flows of datagrams, by pair of ports.
    payloads: BTreeMap<u32, Payloads>,
}

impl<P: SimPacket, T: Observer<P>> Observer<P> for Observers<T> {
    #[inline]
    fn on_sent(&mut self, now: Time, from: EndpointId, packet: &P) {
        self.log.on_sent(now, from, packet);
    }

    #[inline]
    fn on_entered(&mut self, now: Time, from: EndpointId, hop: u8, at: LinkId, packet: &P) {
        self.hops.on_entered(now, from, hop, at, packet);
    }

    #[inline]
    fn on_delivered(&mut self, now: Time, to: EndpointId, packet: &P) {
        self.meter.on_delivered(now, to, packet);
        self.log.on_delivered(now, to, packet);
        self.hops.on_delivered(now, to, packet);
    }

    fn on_dropped(&mut self, now: Time, from: EndpointId, at: LinkId, why: DropReason, packet: &P) {
        self.log.on_dropped(now, from, at, why, packet);
        self.hops.on_dropped(now, from, at, why, packet);
        if let Some(datagram) = packet.datagram()
            && let Some(payloads) = self.payloads.get(&from.pair())
        {
            payloads.release(datagram.payload);
        }
    }

    #[inline]
    fn prefetch(&self, to: EndpointId) {
        self.meter.prefetch(to);
    }

    #[inline]
    fn prefetch_indirect(&self, to: EndpointId) {
        self.meter.prefetch_indirect(to);
    }
}

/// A run in progress, from sample to sample.
pub struct Run(Box<dyn Steps>);

impl Run {
    /// Runs to the next sample and returns the completed share of the simulated time; `None` if the
    /// run is complete.
    pub fn step(&mut self) -> Option<f64> {
        self.0.step()
    }

    /// Lists every drop in [`hops`](Run::hops) from now on.
    pub fn record_drops(&mut self) {
        self.0.hops_mut().record_drops();
    }

    /// Records up to `max` hops of packets that begin from now on.
    pub fn record_hops(&mut self, max: usize) {
        self.0.hops_mut().record(max);
    }

    /// Whether as many hops are recorded as were to be.
    pub fn has_recorded(&self) -> bool {
        self.0.hops().is_full()
    }

    /// The hops and drops that were recorded.
    pub fn hops(&self) -> &HopLog {
        self.0.hops()
    }

    /// The results so far.
    pub fn into_output(self) -> RunOutput {
        self.0.finish()
    }
}

/// A run at time zero. While it runs, the memory of its scenario may be used for it: a million flows
/// have names and settings of 0.8 GB.
pub struct PreparedRun(Prepared);

enum Prepared {
    TcpAlone(Running<TcpHost, ()>),
    AnyHosts(Running<AnyHost, ()>),
}

impl PreparedRun {
    /// As [`Scenario::run_while`].
    pub fn run_while(self, progress: impl FnMut(f64) -> ControlFlow<()>) -> Option<RunOutput> {
        match self.0 {
            Prepared::TcpAlone(run) => run.run_while(progress),
            Prepared::AnyHosts(run) => run.run_while(progress),
        }
    }
}

/// A run with hosts of any type that records hops.
trait Steps {
    fn step(&mut self) -> Option<f64>;
    fn hops(&self) -> &HopLog;
    fn hops_mut(&mut self) -> &mut HopLog;
    fn finish(self: Box<Self>) -> RunOutput;
}

struct Running<H: SimHost, T> {
    flows: Vec<FlowPlan>,
    engine: Engine<H, Observers<T>>,
    transfers: TransferRuns,
    app_logs: AppLogs,
    sampler: Sampler,
    times: SampleTimes,
    duration: Time,
    /// The tables of flows and of subflows at the end of the warm-up.
    warm: Option<[Flows; 2]>,
}

impl<H: SimHost, T: Observer<H::Packet>> Running<H, T> {
    fn step(&mut self) -> Option<f64> {
        let SampleTime { at, ends_warmup } = self.times.next()?;
        self.transfers.run_until(&mut self.engine, at);
        self.sampler.sample(&mut self.engine, &self.transfers);
        if ends_warmup {
            self.end_warmup();
        }
        Some(at.as_nanos() as f64 / self.duration.as_nanos() as f64)
    }

    /// Keeps the counters so far, and forgets the delays.
    fn end_warmup(&mut self) {
        let (flows, ..) = flow_table(&self.flows, &self.engine, &mut self.transfers);
        let meter = &self.engine.observer().meter;
        self.warm = Some([flows, subflow_table(&self.flows, &self.engine, meter)]);
        self.engine.observer_mut().meter.reset();
    }

    /// Runs to the end, or until `progress` ends the run.
    fn run_while(mut self, mut progress: impl FnMut(f64) -> ControlFlow<()>) -> Option<RunOutput> {
        while let Some(share) = self.step() {
            if progress(share).is_break() {
                return None;
            }
        }
        Some(self.into_output())
    }

    fn into_output(self) -> RunOutput {
        let Running { flows, engine, mut transfers, app_logs, sampler, warm, .. } = self;
        let now = engine.now().as_secs_f64();
        let (mut table, failures, logs) = flow_table(&flows, &engine, &mut transfers);
        let frames = frame_table(&flows, &engine);
        let mut subflows = subflow_table(&flows, &engine, &engine.observer().meter);
        let data_packets = table.sent.iter().sum();
        if let Some([warm_flows, warm_subflows]) = warm {
            (table, subflows) = (table.since(&warm_flows), subflows.since(&warm_subflows));
        }
        RunOutput {
            failures,
            logs,
            data_packets,
            flows: table,
            series: sampler.series,
            links: sampler.links,
            internals: sampler.internals,
            subflows,
            subflow_series: sampler.subflow_series,
            subflow_internals: sampler.subflow_internals,
            events: engine.events(),
            packets: engine.into_observer().log,
            transfers: app_logs.with_responses(transfers.into_table(), now),
            segments: app_logs.segments(now),
            frames,
        }
    }
}

impl<H: SimHost> Steps for Running<H, HopLog> {
    fn step(&mut self) -> Option<f64> {
        self.step()
    }

    fn hops(&self) -> &HopLog {
        &self.engine.observer().hops
    }

    fn hops_mut(&mut self) -> &mut HopLog {
        &mut self.engine.observer_mut().hops
    }

    fn finish(self: Box<Self>) -> RunOutput {
        self.into_output()
    }
}

impl Scenario {
    /// Runs to the end.
    ///
    /// # Errors
    /// If the scenario is not valid.
    pub fn run(&self) -> Result<RunOutput, ScenarioError> {
        let outcome = self.run_while(|_| ControlFlow::Continue(()))?;
        Ok(outcome.expect("only `progress` ends a run early"))
    }

    /// Runs and calls `progress` at every sample with the completed share of the simulated time.
    /// Returns `None` if `progress` ended the run early.
    ///
    /// # Errors
    /// If the scenario is not valid.
    pub fn run_while(
        &self,
        progress: impl FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Option<RunOutput>, ScenarioError> {
        Ok(self.prepare()?.run_while(progress))
    }

    /// A run at time zero that needs the scenario no longer, and records no hops.
    ///
    /// # Errors
    /// If the scenario is not valid.
    pub fn prepare(&self) -> Result<PreparedRun, ScenarioError> {
        self.check()?;
        Ok(PreparedRun(if self.has_tcp_alone() {
            Prepared::TcpAlone(self.running(|_| ())?)
        } else {
            Prepared::AnyHosts(self.running(|_| ())?)
        }))
    }

    /// A run at time zero, for steps; it may record hops.
    ///
    /// # Errors
    /// If the scenario is not valid.
    pub fn start(&self) -> Result<Run, ScenarioError> {
        self.check()?;
        Ok(Run(if self.has_tcp_alone() {
            Box::new(self.running::<TcpHost, _>(HopLog::new)?)
        } else {
            Box::new(self.running::<AnyHost, _>(HopLog::new)?)
        }))
    }

    fn has_tcp_alone(&self) -> bool {
        self.flows.iter().all(|flow| {
            let is_other = flow.udp || flow.udt.is_some() || flow.external.is_some();
            !is_other && flow.additional_subflows.is_empty()
        })
    }

    /// A run at time zero; `hops` makes its log from the flow of each pair of ports.
    fn running<H: SimHost, T: Observer<H::Packet>>(
        &self,
        hops: impl FnOnce(Vec<u32>) -> T,
    ) -> Result<Running<H, T>, ScenarioError> {
        let simulation = build::<H>(self)?;
        let flows = simulation.flows().to_vec();
        let mut observers = self.observers(&flows, simulation.transfers(), hops);
        observers.payloads = simulation.payloads();
        let app_logs = simulation.app_logs();
        let (engine, transfers) = simulation.engine(observers);
        let sampled =
            FlowPlan::first_subflows(&flows).zip(&flows).map(|(first, plan)| plan.sampled(first));
        let (links, samples) = (self.links.len() as u32, self.samples());
        let sampler = Sampler::new(sampled.collect(), links, samples, self.internals);
        Ok(Running {
            flows,
            engine,
            transfers,
            app_logs,
            sampler,
            times: SampleTimes::of(self),
            duration: Time::from_nanos(self.duration_ns),
            warm: None,
        })
    }

    /// The observers, in the canonical order of flows; those of transfers are their flow's.
    fn observers<T>(
        &self,
        flows: &[FlowPlan],
        transfers: &[Transfer],
        hops: impl FnOnce(Vec<u32>) -> T,
    ) -> Observers<T> {
        let mut order: Vec<usize> = (0..flows.len()).collect();
        order.sort_by_key(|&flow| flows[flow].pair);
        let pairs =
            || order.iter().flat_map(|&flow| flows[flow].paths.iter().map(move |p| (flow, p)));
        let logged = |&flow: &usize| {
            let is_logged = self.flows[flow].log;
            let subflows = 0..flows[flow].paths.len() as u8;
            subflows.map(move |subflow| is_logged.then_some((flow as u32, subflow)))
        };
        // UDT's timestamps count from the opening of the socket (draft-gg-udt-03, section 2).
        let clock = |flow: usize| match self.flows[flow].udt {
            Some(_) => flows[flow].start,
            None => Time::ZERO,
        };
        let flow_of =
            || pairs().map(|(flow, _)| flow as u32).chain(transfers.iter().map(|t| t.flow));
        let pair_of = transfers.iter().map(|transfer| flows[transfer.flow as usize].pair);
        let delays = pairs().map(|(flow, path)| (path.delay, clock(flow)));
        Observers {
            log: PacketLog::new(order.iter().flat_map(logged).collect()),
            hops: hops(flow_of().collect()),
            payloads: BTreeMap::new(),
            meter: DelayMeter::new(delays, pair_of.collect()),
        }
    }
}

fn flow_table<H: SimHost, O: Observer<H::Packet>>(
    flows: &[FlowPlan],
    engine: &Engine<H, Observers<O>>,
    transfers: &mut TransferRuns,
) -> (Flows, Vec<Failure>, Vec<SenderLog>) {
    let meter = &engine.observer().meter;
    let mut table = Flows::with_capacity(flows.len());
    let (mut failures, mut logs) = (Vec::new(), Vec::new());
    for (flow, plan) in flows.iter().enumerate() {
        let mut delays = meter.delays(plan.pair).clone();
        for subflow in 1..plan.paths.len() as u32 {
            delays.merge(meter.delays(plan.pair + subflow));
        }
        let base_rtt = plan.paths.iter().map(|path| path.rtt).min().unwrap_or(Span::ZERO);
        let mut row = flow_row(flow as u32, plan.start, base_rtt, &delays);
        row.marked = (0..plan.paths.len() as u32).map(|path| meter.marked(plan.pair + path)).sum();
        if let Some(sums) = transfers.flow_row(engine, flow as u32) {
            row.add(&sums);
            row.received = sums.received;
        } else {
            let sender = engine.endpoint(plan.sender());
            sender.finish(&mut row);
            engine.endpoint(plan.sender().peer()).finish(&mut row);
            let failure = sender.failure();
            logs.extend(sender.log().map(|log| (flow as u32, log)));
            failures.extend(failure.map(|(at, why)| Failure { flow: flow as u32, at, why }));
        }
        table.push(row);
    }
    (table, failures, logs)
}

fn frame_table<H: SimHost, O: Observer<H::Packet>>(
    flows: &[FlowPlan],
    engine: &Engine<H, O>,
) -> Frames {
    let mut table = Frames::default();
    for (flow, plan) in (0..).zip(flows) {
        if engine.has_endpoint(plan.sender()) {
            let sender = engine.endpoint(plan.sender());
            sender.frames(&mut |row| table.push(FrameRow { flow, ..row }));
        }
    }
    table
}

fn subflow_table<H: SimHost, O: Observer<H::Packet>>(
    flows: &[FlowPlan],
    engine: &Engine<H, O>,
    meter: &DelayMeter,
) -> Flows {
    let mut table = Flows::default();
    for (first, plan) in FlowPlan::first_subflows(flows).zip(flows) {
        for subflow in 0..plan.subflows() {
            let delays = meter.delays(plan.pair + subflow);
            let rtt = plan.paths[subflow as usize].rtt;
            let mut row = flow_row(first + subflow, plan.start, rtt, delays);
            row.marked = meter.marked(plan.pair + subflow);
            engine.endpoint(plan.sender()).finish_subflow(subflow as u8, &mut row);
            engine.endpoint(plan.sender().peer()).finish_subflow(subflow as u8, &mut row);
            table.push(row);
        }
    }
    table
}

fn flow_row(flow: u32, start: Time, base_rtt: Span, delays: &Histogram) -> FlowRow {
    FlowRow { flow, start: start.as_secs_f64(), ..FlowRow::default() }.with_delays(base_rtt, delays)
}
