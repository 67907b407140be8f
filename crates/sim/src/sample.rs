//! Looking at all flows and links at an interval, and writing down what is seen.

use crate::engine::{EndpointId, Engine, Watch};
use crate::tables::{FlowRow, Internals, LinkRow, Links, Series, SeriesRow};
use dumbbell_cc::Metric;
use dumbbell_net::{Endpoint, LinkId, Packet};
use dumbbell_units::Time;

/// What an endpoint shows of itself. Either end of a flow fills in what it knows.
pub trait Observe {
    /// The present state.
    fn observe(&self, row: &mut SeriesRow);

    /// The state at the end of the run.
    fn conclude(&self, row: &mut FlowRow);

    /// The algorithm's internals.
    fn inspect(&self, show: &mut dyn FnMut(Metric));

    /// Whether it has done all that it had to do and shows nothing new from now on.
    fn is_complete(&self) -> bool;

    /// How many subflows it has, if it is a multipath connection.
    fn parts(&self) -> u8 {
        0
    }

    /// The present state of a subflow.
    fn observe_part(&self, _part: u8, _row: &mut SeriesRow) {}

    /// A subflow's state at the end of the run.
    fn conclude_part(&self, _part: u8, _row: &mut FlowRow) {}

    /// The internals of a subflow's algorithm.
    fn inspect_part(&self, _part: u8, _show: &mut dyn FnMut(Metric)) {}
}

/// Rows for which room is made at once; more come as they are needed.
const MOST_ROWS_AT_ONCE: usize = 1 << 24;

/// A flow as the tables know it.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// Its sender; the peer is its receiver.
    pub(crate) sender: EndpointId,
    /// When it starts.
    pub(crate) start: Time,
    /// The number of its first subflow among those of all flows.
    pub(crate) first_part: u32,
    /// It had completed when it was last looked at.
    pub(crate) complete: bool,
}

/// The samples so far.
pub(crate) struct Sampler {
    subjects: Vec<Subject>,
    links_sampled: u32,
    pub(crate) series: Series,
    pub(crate) links: Links,
    pub(crate) internals: Internals,
    pub(crate) part_series: Series,
    pub(crate) part_internals: Internals,
    inspect: bool,
}

impl Sampler {
    /// Samples these flows and the first `links` links, about `samples` times; algorithms'
    /// internals only if `inspect`.
    pub(crate) fn new(subjects: Vec<Subject>, links: u32, samples: u64, inspect: bool) -> Sampler {
        let room =
            |subjects: usize| subjects.saturating_mul(samples as usize).min(MOST_ROWS_AT_ONCE);
        Sampler {
            series: Series::with_capacity(room(subjects.len())),
            links: Links::with_capacity(room(links as usize)),
            internals: Internals::default(),
            part_series: Series::default(),
            part_internals: Internals::default(),
            links_sampled: links,
            subjects,
            inspect,
        }
    }

    /// Writes down the present state.
    pub(crate) fn sample<E, W>(&mut self, engine: &mut Engine<E, W>)
    where
        E: Endpoint + Observe,
        E::Packet: Packet + Copy,
        W: Watch<E::Packet>,
    {
        let now = engine.now();
        let t = now.as_secs_f64();
        for (flow, subject) in self.subjects.iter_mut().enumerate() {
            if subject.start > now || subject.complete {
                continue;
            }
            let flow = flow as u32;
            let sender = engine.endpoint(subject.sender);
            let mut row = SeriesRow { flow, t, ..SeriesRow::default() };
            sender.observe(&mut row);
            engine.endpoint(subject.sender.peer()).observe(&mut row);
            self.series.push(row);
            if self.inspect {
                let internals = &mut self.internals;
                sender.inspect(&mut |shown| internals.push(flow, t, shown.name, shown.value));
            }
            for part in 0..sender.parts() {
                let flow = subject.first_part + u32::from(part);
                let mut row = SeriesRow { flow, t, ..SeriesRow::default() };
                sender.observe_part(part, &mut row);
                engine.endpoint(subject.sender.peer()).observe_part(part, &mut row);
                self.part_series.push(row);
                if self.inspect {
                    let internals = &mut self.part_internals;
                    let mut push = |shown: Metric| internals.push(flow, t, shown.name, shown.value);
                    sender.inspect_part(part, &mut push);
                }
            }
            subject.complete = sender.is_complete();
        }
        for link in 0..self.links_sampled {
            self.links.push(link_row(engine, link, t));
        }
    }
}

/// A link as a row shows it.
pub fn link_row<E, W>(engine: &mut Engine<E, W>, link: u32, t: f64) -> LinkRow
where
    E: Endpoint,
    E::Packet: Packet + Copy,
    W: Watch<E::Packet>,
{
    let statistics = engine.link_statistics(LinkId(link));
    LinkRow {
        link,
        t,
        queue_packets: statistics.waiting.packets,
        queue_bytes: statistics.waiting.bytes,
        sent_bytes: statistics.sent_bytes,
        dropped: statistics.dropped,
        lost: statistics.lost,
        marked: statistics.marked,
    }
}
