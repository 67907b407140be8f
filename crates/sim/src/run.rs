//! Running a scenario, and what comes of it.

use crate::build::{FlowPlan, build};
use crate::engine::{EndpointId, Engine, Watch};
use crate::host::{DelayMeter, Host};
use crate::log::PacketLog;
use crate::pdu::Pdu;
use crate::sample::{Observe, Sampler};
use crate::scenario::{Scenario, ScenarioError};
use crate::tables::{FlowRow, Flows, Internals, Links, Series};
use dumbbell_net::{Dropped, LinkId};
use dumbbell_units::{Span, Time};
use std::ops::ControlFlow;

/// What came of a run.
#[derive(Clone, Debug)]
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

impl Watch<Pdu> for Onlookers {
    #[inline]
    fn sent(&mut self, now: Time, from: EndpointId, packet: &Pdu) {
        self.log.sent(now, from, packet);
    }

    #[inline]
    fn delivered(&mut self, now: Time, to: EndpointId, packet: &Pdu) {
        self.meter.delivered(now, to, packet);
        self.log.delivered(now, to, packet);
    }

    fn dropped(&mut self, now: Time, from: EndpointId, at: LinkId, why: Dropped, packet: &Pdu) {
        self.log.dropped(now, from, at, why, packet);
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
        let parts = build(self)?;
        let flows = parts.flows.clone();
        let mut engine = parts.engine(self.onlookers(&flows));
        let Some(samples) = self.drive(&flows, &mut engine, go_on) else { return Ok(None) };
        let table = flow_table(&flows, &engine, &engine.watch().meter);
        Ok(Some(Outcome {
            data_packets: table.sent.iter().sum(),
            flows: table,
            series: samples.series,
            links: samples.links,
            internals: samples.internals,
            events: engine.events(),
            packets: engine.into_watch().log,
        }))
    }

    /// Who looks on, in the run's own order of flows.
    fn onlookers(&self, flows: &[FlowPlan]) -> Onlookers {
        let mut order: Vec<usize> = (0..flows.len()).collect();
        order.sort_by_key(|&flow| flows[flow].pair);
        let logged = |&flow: &usize| self.flows[flow].log.then_some(flow as u32);
        Onlookers {
            log: PacketLog::new(order.iter().map(logged).collect()),
            meter: DelayMeter::new(order.iter().map(|&flow| flows[flow].base_delay)),
        }
    }

    /// Lets time pass, and samples.
    fn drive<W: Watch<Pdu>>(
        &self,
        flows: &[FlowPlan],
        engine: &mut Engine<Host, W>,
        mut go_on: impl FnMut(f64) -> ControlFlow<()>,
    ) -> Option<Sampler> {
        let subjects = flows.iter().map(FlowPlan::subject).collect();
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

fn flow_table<W: Watch<Pdu>>(
    flows: &[FlowPlan],
    engine: &Engine<Host, W>,
    meter: &DelayMeter,
) -> Flows {
    let mut table = Flows::with_capacity(flows.len());
    for (flow, plan) in flows.iter().enumerate() {
        let delays = meter.delays(plan.pair);
        let mut row = FlowRow {
            flow: flow as u32,
            start: plan.start.as_secs_f64(),
            base_rtt: plan.base_rtt.as_secs_f64(),
            queue_delay_mean: delays.mean(),
            queue_delay_p50: delays.quantile(0.50),
            queue_delay_p95: delays.quantile(0.95),
            queue_delay_p99: delays.quantile(0.99),
            ..FlowRow::default()
        };
        engine.endpoint(plan.sender()).conclude(&mut row);
        engine.endpoint(plan.sender().peer()).conclude(&mut row);
        table.push(row);
    }
    table
}
