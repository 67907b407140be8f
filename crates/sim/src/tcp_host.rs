//! One end of a TCP flow in the simulator, and its rows in the tables.

use crate::sample::Sampled;
use crate::sender_rows::{fill_flow_row, fill_series_row};
use crate::sim_endpoint::SimEndpoint;
use crate::tables::{FlowRow, SeriesRow};
use dumbbell_cc::Metric;
use dumbbell_net::Endpoint;
use dumbbell_tcp::{Receiver, Segment, Sender};
use dumbbell_units::Time;

/// One end of a TCP flow. Boxed, as a sender is many times larger than a receiver.
pub(crate) enum TcpHost {
    Sender(Box<TcpSender>),
    Receiver(Box<Receiver>),
}

/// A sender, aligned to use as few cache lines as possible.
#[repr(align(64))]
pub(crate) struct TcpSender {
    pub(crate) sender: Sender,
}

impl Endpoint for TcpHost {
    type Packet = Segment;

    #[inline(always)]
    fn handle(&mut self, now: Time, segment: &Segment) {
        match self {
            TcpHost::Sender(source) => source.sender.handle(now, segment),
            TcpHost::Receiver(receiver) => receiver.handle(now, segment),
        }
    }

    #[inline(always)]
    fn poll(&mut self, now: Time) -> Option<Segment> {
        match self {
            TcpHost::Sender(source) => source.sender.poll(now),
            TcpHost::Receiver(receiver) => receiver.poll(now),
        }
    }

    #[inline]
    fn next_timeout(&self) -> Time {
        match self {
            TcpHost::Sender(source) => source.sender.next_timeout(),
            TcpHost::Receiver(receiver) => receiver.next_timeout(),
        }
    }
}

impl SimEndpoint for TcpHost {
    #[inline]
    fn prefetch(&self) {
        match self {
            TcpHost::Sender(source) => source.sender.prefetch(),
            TcpHost::Receiver(receiver) => receiver.prefetch(),
        }
    }

    #[inline]
    fn prefetch_indirect(&self) {
        if let TcpHost::Sender(source) = self {
            source.sender.prefetch_scoreboard();
        }
    }
}

impl Sampled for TcpHost {
    fn sample(&self, row: &mut SeriesRow) {
        match self {
            TcpHost::Sender(source) => {
                fill_series_row(&source.sender.stats(), source.sender.delivered_bytes(), row);
            }
            TcpHost::Receiver(receiver) => row.received = receiver.stats().bytes,
        }
    }

    fn finish(&self, row: &mut FlowRow) {
        match self {
            TcpHost::Sender(source) => {
                fill_flow_row(&source.sender.stats(), source.sender.delivered_bytes(), row);
            }
            TcpHost::Receiver(receiver) => row.received = receiver.stats().bytes,
        }
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        if let TcpHost::Sender(source) = self {
            source.sender.inspect(show);
        }
    }

    fn is_complete(&self) -> bool {
        matches!(self, TcpHost::Sender(source) if source.sender.stats().completed.is_some())
    }
}
