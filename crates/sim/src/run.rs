//! Running a scenario, and what comes of it.

use crate::build::build;
use crate::delay::DelayMeter;
use crate::engine::{EndpointId, Engine, Watch};
use crate::histogram::Histogram;
use crate::host::{Host, Station};
use crate::log::PacketLog;
use crate::network::FlowPlan;
use crate::pdu::Datagram;
use crate::sample::Sampler;
use crate::scenario::{Scenario, ScenarioError};
use crate::tables::{FlowRow, Flows, Internals, Links, Series};
use crate::tcp_host::TcpHost;
use dumbbell_net::{Dropped, LinkId};
use dumbbell_units::{Span, Time};
use std::ops::ControlFlow;

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// One row a flow.
    pub flows: Flows,
    /// Flows over time.
    pub series: Series,
    /// Links over time.
    pub links: Links,
    /// Algorithms' internals over time.
    pub internals: Internals,
    /// Data packets sent by all flows, retransmissions included.
    pub data_packets: u64,
    /// One row a subflow, of flows that have several; `flow` counts the subflows of all flows.
    pub subflows: Flows,
    /// Subflows over time.
    pub subflow_series: Series,
    /// The internals of subflows' algorithms over time.
    pub subflow_internals: Internals,
    /// Events that the engine handled.
    pub events: u64,
    /// The packets of the flows that are logged.
    pub packets: PacketLog,
}

/// Who looks on while packets travel.
struct Onlookers {
    meter: DelayMeter,
    log: PacketLog,
}

impl<P: Datagram> Watch<P> for Onlookers {
    #[inline]
    fn sent(&mut self, now: Time, from: EndpointId, packet: &P) {
        self.log.sent(now, from, packet);
    }

    #[inline]
    fn delivered(&mut self, now: Time, to: EndpointId, packet: &P) {
        self.meter.delivered(now, to, packet);
        self.log.delivered(now, to, packet);
    }

    fn dropped(&mut self, now: Time, from: EndpointId, at: LinkId, why: Dropped, packet: &P) {
        self.log.dropped(now, from, at, why, packet);
    }

    #[inline]
    fn prefetch(&self, to: EndpointId) {
        self.meter.prefetch(to);
    }

    #[inline]
    fn prefetch_further(&self, to: EndpointId) {
        self.meter.prefetch_further(to);
    }
}

impl Scenario {
    /// Runs to the end.
    ///
    /// # Errors
    /// If the scenario is not valid.
    pub fn run(&self) -> Result<Outcome, ScenarioError> {
        let outcome = self.run_while(|_| ControlFlow::Continue(()))?;
        Ok(outcome.expect("only `go_on` ends a run early"))
    }

    /// Runs as long as `go_on` lets it: it is asked at every sample, and told which share of the
    /// simulated time has passed. `None` if it did not let the run come to its end.
    ///
    /// # Errors
    /// If the scenario is not valid.
    pub fn run_while(
        &self,
        go_on: impl FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Option<Outcome>, ScenarioError> {
        self.check()?;
        if self.flows.iter().all(|flow| flow.udt.is_none() && flow.joins.is_empty()) {
            self.run_on::<TcpHost>(go_on)
        } else {
            self.run_on::<Host>(go_on)
        }
    }

    fn run_on<H: Station>(
        &self,
        go_on: impl FnMut(f64) -> ControlFlow<()>,
    ) -> Result<Option<Outcome>, ScenarioError> {
        let parts = build::<H>(self)?;
        let flows = parts.flows().to_vec();
        let mut engine = parts.engine(self.onlookers(&flows));
        let Some(samples) = self.drive(&flows, &mut engine, go_on) else { return Ok(None) };
        let table = flow_table(&flows, &engine, &engine.watch().meter);
        let subflows = subflow_table(&flows, &engine, &engine.watch().meter);
        Ok(Some(Outcome {
            data_packets: table.sent.iter().sum(),
            flows: table,
            series: samples.series,
            links: samples.links,
            internals: samples.internals,
            subflows,
            subflow_series: samples.part_series,
            subflow_internals: samples.part_internals,
            events: engine.events(),
            packets: engine.into_watch().log,
        }))
    }

    /// Who looks on, in the run's own order of flows.
    fn onlookers(&self, flows: &[FlowPlan]) -> Onlookers {
        let mut order: Vec<usize> = (0..flows.len()).collect();
        order.sort_by_key(|&flow| flows[flow].pair);
        let pairs =
            || order.iter().flat_map(|&flow| flows[flow].paths.iter().map(move |p| (flow, p)));
        let logged = |(flow, _): (usize, _)| self.flows[flow].log.then_some(flow as u32);
        // UDT's timestamps count from when the socket was opened (draft-gg-udt-03, section 2).
        let clock = |flow: usize| match self.flows[flow].udt {
            Some(_) => flows[flow].start,
            None => Time::ZERO,
        };
        Onlookers {
            log: PacketLog::new(pairs().map(logged).collect()),
            meter: DelayMeter::new(pairs().map(|(flow, path)| (path.delay, clock(flow)))),
        }
    }

    /// Lets time pass, and samples.
    fn drive<H: Station, W: Watch<H::Packet>>(
        &self,
        flows: &[FlowPlan],
        engine: &mut Engine<H, W>,
        mut go_on: impl FnMut(f64) -> ControlFlow<()>,
    ) -> Option<Sampler> {
        let subjects = first_parts(flows).zip(flows).map(|(part, plan)| plan.subject(part));
        let subjects = subjects.collect();
        let links = self.links.len() as u32;
        let mut sampler = Sampler::new(subjects, links, self.samples(), self.internals);
        for sample in 0..self.samples() {
            let now = Time::ZERO + Span::from_nanos(self.sample_ns) * sample;
            let now = now.min(Time::from_nanos(self.duration_ns));
            engine.run_until(now);
            sampler.sample(engine);
            let share = now.as_nanos() as f64 / self.duration_ns as f64;
            if go_on(share).is_break() {
                return None;
            }
        }
        Some(sampler)
    }
}

fn flow_table<H: Station, W: Watch<H::Packet>>(
    flows: &[FlowPlan],
    engine: &Engine<H, W>,
    meter: &DelayMeter,
) -> Flows {
    let mut table = Flows::with_capacity(flows.len());
    for (flow, plan) in flows.iter().enumerate() {
        let mut delays = meter.delays(plan.pair).clone();
        for part in 1..plan.paths.len() as u32 {
            delays.merge(meter.delays(plan.pair + part));
        }
        let base_rtt = plan.paths.iter().map(|path| path.rtt).min().unwrap_or(Span::ZERO);
        let mut row = flow_row(flow as u32, plan.start, base_rtt, &delays);
        engine.endpoint(plan.sender()).conclude(&mut row);
        engine.endpoint(plan.sender().peer()).conclude(&mut row);
        table.push(row);
    }
    table
}

/// The number of each flow's first subflow, among the subflows of all multipath connections.
fn first_parts(flows: &[FlowPlan]) -> impl Iterator<Item = u32> {
    flows.iter().scan(0, |next, plan| {
        let first = *next;
        *next += plan.parts();
        Some(first)
    })
}

fn subflow_table<H: Station, W: Watch<H::Packet>>(
    flows: &[FlowPlan],
    engine: &Engine<H, W>,
    meter: &DelayMeter,
) -> Flows {
    let mut table = Flows::default();
    for (first, plan) in first_parts(flows).zip(flows) {
        for part in 0..plan.parts() {
            let delays = meter.delays(plan.pair + part);
            let rtt = plan.paths[part as usize].rtt;
            let mut row = flow_row(first + part, plan.start, rtt, delays);
            engine.endpoint(plan.sender()).conclude_part(part as u8, &mut row);
            engine.endpoint(plan.sender().peer()).conclude_part(part as u8, &mut row);
            table.push(row);
        }
    }
    table
}

fn flow_row(flow: u32, start: Time, base_rtt: Span, delays: &Histogram) -> FlowRow {
    FlowRow {
        flow,
        start: start.as_secs_f64(),
        base_rtt: base_rtt.as_secs_f64(),
        queue_delay_mean: delays.mean(),
        queue_delay_p50: delays.quantile(0.50),
        queue_delay_p95: delays.quantile(0.95),
        queue_delay_p99: delays.quantile(0.99),
        ..FlowRow::default()
    }
}
