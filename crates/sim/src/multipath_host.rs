//! Multipath connections in the simulator, and their rows in the tables.

use crate::sample::Sampled;
use crate::sender_rows::{fill_flow_row, fill_series_row};
use crate::sim_endpoint::SimEndpoint;
use crate::tables::{FlowRow, SeriesRow};
use dumbbell_cc::Metric;
use dumbbell_net::Endpoint;
use dumbbell_tcp::{MultipathReceiver, MultipathSender, Segment};
use dumbbell_units::Time;

/// One end of a multipath connection.
#[allow(clippy::large_enum_variant, reason = "it is boxed as a whole")]
pub(crate) enum MultipathHost {
    Sender(MultipathSender),
    Receiver(MultipathReceiver),
}

impl Endpoint for MultipathHost {
    type Packet = Segment;

    fn handle(&mut self, now: Time, segment: &Segment) {
        self.handle_on_port(now, 0, segment);
    }

    #[inline]
    fn poll(&mut self, now: Time) -> Option<Segment> {
        match self {
            MultipathHost::Sender(sender) => sender.poll(now),
            MultipathHost::Receiver(receiver) => receiver.poll(now),
        }
    }

    #[inline]
    fn next_timeout(&self) -> Time {
        match self {
            MultipathHost::Sender(sender) => sender.next_timeout(),
            MultipathHost::Receiver(receiver) => receiver.next_timeout(),
        }
    }
}

impl SimEndpoint for MultipathHost {
    fn ports(&self) -> u8 {
        match self {
            MultipathHost::Sender(sender) => sender.ports(),
            MultipathHost::Receiver(receiver) => receiver.ports(),
        }
    }

    #[inline]
    fn handle_on_port(&mut self, now: Time, port: u8, segment: &Segment) {
        match self {
            MultipathHost::Sender(sender) => sender.handle_on_port(now, port, segment),
            MultipathHost::Receiver(receiver) => receiver.handle_on_port(now, port, segment),
        }
    }

    #[inline]
    fn outgoing_port(&self) -> u8 {
        match self {
            MultipathHost::Sender(sender) => sender.outgoing_port(),
            MultipathHost::Receiver(receiver) => receiver.outgoing_port(),
        }
    }
}

/// Fills a connection's row with the sums over its subflows. Quantities without a sum become NaN;
/// `delivered` comes from the connection's own acknowledgements.
fn sample_connection(sender: &MultipathSender, row: &mut SeriesRow) {
    *row = row.of_several();
    for subflow in 0..sender.ports() {
        let mut of = SeriesRow::default();
        fill_series_row(&sender.subflow_stats(subflow), 0, &mut of);
        row.add(&of);
    }
    row.delivered = sender.stats().acked_bytes;
}

fn finish_connection(sender: &MultipathSender, row: &mut FlowRow) {
    let (mut sum, mut samples) = (0.0, 0);
    for stats in (0..sender.ports()).map(|subflow| sender.subflow_stats(subflow)) {
        let mut of = FlowRow::default();
        fill_flow_row(&stats, 0, &mut of);
        row.add(&of);
        sum += stats.rtt_sum.0;
        samples += stats.rtt_sum.1;
    }
    let stats = sender.stats();
    *row = row.with_round_trips((sum, samples));
    row.completed = stats.completed.map(Time::as_secs_f64);
    row.delivered = stats.acked_bytes;
}

impl Sampled for MultipathHost {
    fn sample(&self, row: &mut SeriesRow) {
        match self {
            MultipathHost::Sender(sender) => sample_connection(sender, row),
            MultipathHost::Receiver(receiver) => row.received = receiver.received_bytes(),
        }
    }

    fn finish(&self, row: &mut FlowRow) {
        match self {
            MultipathHost::Sender(sender) => finish_connection(sender, row),
            MultipathHost::Receiver(receiver) => row.received = receiver.received_bytes(),
        }
    }

    /// Algorithms belong to subflows; see `inspect_subflow`.
    fn inspect(&self, _show: &mut dyn FnMut(Metric)) {}

    fn is_complete(&self) -> bool {
        match self {
            MultipathHost::Sender(sender) => sender.stats().completed.is_some(),
            MultipathHost::Receiver(_) => false,
        }
    }

    fn subflows(&self) -> u8 {
        self.ports()
    }

    fn sample_subflow(&self, subflow: u8, row: &mut SeriesRow) {
        match self {
            MultipathHost::Sender(sender) => {
                let delivered = sender.subflow_delivered_bytes(subflow);
                fill_series_row(&sender.subflow_stats(subflow), delivered, row);
            }
            MultipathHost::Receiver(receiver) => {
                row.received = receiver.subflow_stats(subflow).bytes
            }
        }
    }

    fn finish_subflow(&self, subflow: u8, row: &mut FlowRow) {
        match self {
            MultipathHost::Sender(sender) => {
                let delivered = sender.subflow_delivered_bytes(subflow);
                fill_flow_row(&sender.subflow_stats(subflow), delivered, row);
                row.completed = None;
            }
            MultipathHost::Receiver(receiver) => {
                row.received = receiver.subflow_stats(subflow).bytes
            }
        }
    }

    fn inspect_subflow(&self, subflow: u8, show: &mut dyn FnMut(Metric)) {
        if let MultipathHost::Sender(sender) = self {
            sender.inspect(subflow, show);
        }
    }
}
