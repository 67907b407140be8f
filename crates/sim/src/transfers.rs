//! Flows of many transfers while they run: each transfer opens at its start and is closed once it
//! is complete, so that only those in progress need memory.

use crate::build::Transferring;
use crate::engine::{EndpointId, Engine};
use crate::host::SimHost;
use crate::network::Transfer;
use crate::observer::Observer;
use crate::tables::{FlowRow, SeriesRow, TransferRow, Transfers};
use dumbbell_units::{Span, Time};
use std::collections::BTreeMap;

/// All transfers of a run, in the order of their starts.
pub(crate) struct TransferRuns {
    /// By their index in the scenario: how transfers are made, and what those closed have achieved.
    flows: BTreeMap<u32, FlowOfTransfers>,
    pending: Vec<Transfer>,
    /// The pair of ports of the first transfer.
    first_pair: u32,
    /// Those in progress, by their number.
    open: Vec<usize>,
    /// From so many in progress on complete ones are looked for.
    close_from: usize,
    /// A row for each that has started.
    rows: Vec<TransferRow>,
}

/// A flow of transfers.
struct FlowOfTransfers {
    made: Transferring,
    closed: FlowRow,
}

/// The least number of transfers in progress at which complete ones are looked for.
const CLOSE_FROM: usize = 64;

impl TransferRuns {
    /// No transfer has started yet.
    pub(crate) fn new(
        made: BTreeMap<u32, Transferring>,
        pending: Vec<Transfer>,
        first_pair: u32,
    ) -> TransferRuns {
        let of = |(flow, made)| (flow, FlowOfTransfers { made, closed: FlowRow::default() });
        TransferRuns {
            flows: made.into_iter().map(of).collect(),
            pending,
            first_pair,
            open: Vec::new(),
            close_from: CLOSE_FROM,
            rows: Vec::new(),
        }
    }

    /// Runs the engine up to `end`, and opens and closes the transfers until then.
    pub(crate) fn run_until<H: SimHost, O: Observer<H::Packet>>(
        &mut self,
        engine: &mut Engine<H, O>,
        end: Time,
    ) {
        while let Some(&transfer) = self.pending.get(self.rows.len())
            && transfer.start <= end
        {
            engine.run_until(transfer.start - Span::from_nanos(1));
            if self.open.len() >= self.close_from {
                self.close_completed(engine);
                self.close_from = CLOSE_FROM.max(2 * self.open.len());
            }
            self.open(engine, transfer);
        }
        engine.run_until(end);
        self.close_completed(engine);
    }

    fn open<H: SimHost, O: Observer<H::Packet>>(
        &mut self,
        engine: &mut Engine<H, O>,
        transfer: Transfer,
    ) {
        let (number, Transfer { flow, start, bytes }) = (self.rows.len(), transfer);
        let pair = self.first_pair + number as u32;
        let endpoints = self.flows[&flow].made.endpoints(pair, start, bytes);
        engine.open(pair, endpoints.map(H::from_host));
        self.open.push(number);
        let start = start.as_secs_f64();
        self.rows.push(TransferRow { flow, start, bytes, ..TransferRow::default() });
    }

    /// Closes those whose data is all acknowledged. What is still on its way to them is dropped.
    fn close_completed<H: SimHost, O: Observer<H::Packet>>(&mut self, engine: &mut Engine<H, O>) {
        let mut open = std::mem::take(&mut self.open);
        open.retain(|&number| {
            let is_complete = engine.endpoint(self.sender(number)).is_complete();
            if is_complete {
                let row = self.record(engine, number);
                let flow = self.flows.get_mut(&self.rows[number].flow);
                flow.expect("a flow of transfers").closed.add_transfer(&row);
                engine.close(self.sender(number).pair());
            }
            !is_complete
        });
        self.open = open;
    }

    fn sender(&self, number: usize) -> EndpointId {
        EndpointId(2 * (self.first_pair + number as u32))
    }

    /// What a transfer has achieved, also in its own row.
    fn record<H: SimHost, O: Observer<H::Packet>>(
        &mut self,
        engine: &Engine<H, O>,
        number: usize,
    ) -> FlowRow {
        let mut row = FlowRow::default();
        let sender = self.sender(number);
        engine.endpoint(sender).finish(&mut row);
        engine.endpoint(sender.peer()).finish(&mut row);
        let FlowRow { completed, sent, retransmitted, timeouts, .. } = row;
        let known = self.rows[number];
        self.rows[number] = TransferRow { completed, sent, retransmitted, timeouts, ..known };
        row
    }

    /// The numbers of a flow's transfers in progress.
    fn open_of(&self, flow: u32) -> impl Iterator<Item = usize> + '_ {
        self.open.iter().copied().filter(move |&number| self.rows[number].flow == flow)
    }

    /// The state of a flow: windows and packets in flight of its transfers in progress, and the
    /// counters of all.
    pub(crate) fn sample<H: SimHost, O: Observer<H::Packet>>(
        &self,
        engine: &Engine<H, O>,
        row: SeriesRow,
    ) -> Option<SeriesRow> {
        let closed = &self.flows.get(&row.flow)?.closed;
        let mut sum = row.of_transfers(closed);
        for number in self.open_of(row.flow) {
            let mut one = SeriesRow::default();
            let sender = self.sender(number);
            engine.endpoint(sender).sample(&mut one);
            engine.endpoint(sender.peer()).sample(&mut one);
            sum.add_transfer(&one);
        }
        Some(sum)
    }

    /// The counters of all transfers of a flow; `None` if it is another kind of flow.
    pub(crate) fn flow_row<H: SimHost, O: Observer<H::Packet>>(
        &mut self,
        engine: &Engine<H, O>,
        flow: u32,
    ) -> Option<FlowRow> {
        let mut sum = self.flows.get(&flow)?.closed;
        for number in self.open_of(flow).collect::<Vec<_>>() {
            sum.add_transfer(&self.record(engine, number));
        }
        Some(sum)
    }

    /// The table of all that have started.
    pub(crate) fn into_table(self) -> Transfers {
        let mut table = Transfers::with_capacity(self.rows.len());
        self.rows.into_iter().for_each(|row| table.push(row));
        table
    }
}
