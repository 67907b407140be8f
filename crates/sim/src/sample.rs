//! Samples flows and links at an interval.

use crate::datagram_host::EndpointLog;
use crate::engine::{EndpointId, Engine};
use crate::host::SimHost;
use crate::observer::Observer;
use crate::sim_endpoint::SimEndpoint;
use crate::tables::{FlowRow, FrameRow, Internals, LinkRow, Links, Series, SeriesRow};
use crate::transfers::TransferRuns;
use dumbbell_cc::Metric;
use dumbbell_net::{LinkId, Packet};
use dumbbell_units::Time;
use std::sync::Arc;

/// An endpoint that shows its state. Sender and receiver of a flow fill in the same row.
pub trait Sampled {
    /// Fills in the current state.
    fn sample(&self, row: &mut SeriesRow);

    /// Fills in the state at the end of the run.
    fn finish(&self, row: &mut FlowRow);

    /// Shows the algorithm's internals.
    fn inspect(&self, show: &mut dyn FnMut(Metric));

    /// Whether the flow is complete, so that its state no longer changes.
    fn is_complete(&self) -> bool;

    /// Gives a row for each frame of media.
    fn frames(&self, _push: &mut dyn FnMut(FrameRow)) {}

    /// When and why the connection ended before its time, if it did.
    fn failure(&self) -> Option<(Time, String)> {
        None
    }

    /// The endpoint's own log, if the flow is logged and it has one.
    fn log(&self) -> Option<Arc<dyn EndpointLog>> {
        None
    }

    /// The number of subflows; 0 unless it is a multipath connection.
    fn subflows(&self) -> u8 {
        0
    }

    /// Fills in the current state of a subflow.
    fn sample_subflow(&self, _subflow: u8, _row: &mut SeriesRow) {}

    /// Fills in a subflow's state at the end of the run.
    fn finish_subflow(&self, _subflow: u8, _row: &mut FlowRow) {}

    /// Shows the internals of a subflow's algorithm.
    fn inspect_subflow(&self, _subflow: u8, _show: &mut dyn FnMut(Metric)) {}
}

/// Maximum number of rows allocated in advance.
const MAX_PREALLOCATED_ROWS: usize = 1 << 24;

/// A flow to sample.
#[derive(Clone, Debug)]
pub(crate) struct SampledFlow {
    /// Its sender; the peer is its receiver.
    pub(crate) sender: EndpointId,
    /// Start time.
    pub(crate) start: Time,
    /// Number of its first subflow among those of all flows.
    pub(crate) first_subflow: u32,
    /// Whether it was complete at the last sample.
    pub(crate) complete: bool,
}

/// The samples so far.
pub(crate) struct Sampler {
    flows: Vec<SampledFlow>,
    links_sampled: u32,
    pub(crate) series: Series,
    pub(crate) links: Links,
    pub(crate) internals: Internals,
    pub(crate) subflow_series: Series,
    pub(crate) subflow_internals: Internals,
    inspect: bool,
}

impl Sampler {
    /// A sampler of these flows and of the first `links` links, for about `samples` samples; with
    /// `inspect` also of algorithms' internals.
    pub(crate) fn new(flows: Vec<SampledFlow>, links: u32, samples: u64, inspect: bool) -> Sampler {
        let room = |flows: usize| flows.saturating_mul(samples as usize).min(MAX_PREALLOCATED_ROWS);
        Sampler {
            series: Series::with_capacity(room(flows.len())),
            links: Links::with_capacity(room(links as usize)),
            internals: Internals::default(),
            subflow_series: Series::default(),
            subflow_internals: Internals::default(),
            links_sampled: links,
            flows,
            inspect,
        }
    }

    /// Records the current state.
    pub(crate) fn sample<E, O>(&mut self, engine: &mut Engine<E, O>, transfers: &TransferRuns)
    where
        E: SimHost,
        O: Observer<E::Packet>,
    {
        let now = engine.now();
        let t = now.as_secs_f64();
        for (flow, sampled) in self.flows.iter_mut().enumerate() {
            if sampled.start > now || sampled.complete {
                continue;
            }
            let flow = flow as u32;
            let row = SeriesRow { flow, t, ..SeriesRow::default() };
            if let Some(row) = transfers.sample(engine, row) {
                self.series.push(row);
                continue;
            }
            let sender = engine.endpoint(sampled.sender);
            let mut row = row;
            sender.sample(&mut row);
            engine.endpoint(sampled.sender.peer()).sample(&mut row);
            self.series.push(row);
            if self.inspect {
                let internals = &mut self.internals;
                sender.inspect(&mut |shown| internals.push(flow, t, shown.name, shown.value));
            }
            for subflow in 0..sender.subflows() {
                let flow = sampled.first_subflow + u32::from(subflow);
                let mut row = SeriesRow { flow, t, ..SeriesRow::default() };
                sender.sample_subflow(subflow, &mut row);
                engine.endpoint(sampled.sender.peer()).sample_subflow(subflow, &mut row);
                self.subflow_series.push(row);
                if self.inspect {
                    let internals = &mut self.subflow_internals;
                    let mut push = |shown: Metric| internals.push(flow, t, shown.name, shown.value);
                    sender.inspect_subflow(subflow, &mut push);
                }
            }
            sampled.complete = sender.is_complete();
        }
        for link in 0..self.links_sampled {
            self.links.push(link_row(engine, link, t));
        }
    }
}

/// The row of a link at time `t` (s).
pub fn link_row<E, O>(engine: &mut Engine<E, O>, link: u32, t: f64) -> LinkRow
where
    E: SimEndpoint,
    E::Packet: Packet + Copy,
    O: Observer<E::Packet>,
{
    let statistics = engine.link_statistics(LinkId(link));
    LinkRow {
        link,
        t,
        queue_packets: statistics.backlog.packets,
        queue_bytes: statistics.backlog.bytes,
        sent_bytes: statistics.sent_bytes,
        dropped: statistics.dropped,
        lost: statistics.lost,
        marked: statistics.marked,
    }
}
