//! One end of a TCP flow in the simulator, and what it shows of itself.

use crate::sample::Observe;
use crate::tables::{FlowRow, SeriesRow};
use dumbbell_cc::{Inspect, Phase};
use dumbbell_net::Endpoint;
use dumbbell_tcp::{Receiver, Segment, Sender, SenderStats};
use dumbbell_units::{Span, Time};

/// One end of a TCP flow. Boxed, as a sender is many times as large as a receiver.
pub(crate) enum TcpHost {
    Sender(Box<Source>),
    Receiver(Box<Receiver>),
}

/// A sender, and what its bytes are counted by.
pub(crate) struct Source {
    pub(crate) sender: Sender,
    pub(crate) mss: u64,
    /// All that there is to deliver.
    pub(crate) bytes: u64,
}

impl Endpoint for TcpHost {
    type Packet = Segment;

    #[inline]
    fn handle(&mut self, now: Time, segment: &Segment) {
        match self {
            TcpHost::Sender(source) => source.sender.handle(now, segment),
            TcpHost::Receiver(receiver) => receiver.handle(now, segment),
        }
    }

    #[inline]
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

    #[inline]
    fn prefetch(&self) {
        match self {
            TcpHost::Sender(source) => source.sender.prefetch(),
            TcpHost::Receiver(receiver) => receiver.prefetch(),
        }
    }

    #[inline]
    fn prefetch_further(&self) {
        if let TcpHost::Sender(source) = self {
            source.sender.prefetch_further();
        }
    }
}

/// Seconds, or NaN if not known yet.
pub(crate) fn secs(span: Option<Span>) -> f32 {
    span.map_or(f32::NAN, |span| span.as_secs_f64() as f32)
}

/// The number of a phase in the tables.
pub(crate) fn number(phase: Phase) -> u8 {
    match phase {
        Phase::Open => 0,
        Phase::Disorder => 1,
        Phase::Cwr => 2,
        Phase::Recovery => 3,
        Phase::Loss => 4,
    }
}

/// A sender's state as a row shows it; `most` is all that there is to deliver, bytes.
pub(crate) fn observe(stats: &SenderStats, mss: u64, most: u64, row: &mut SeriesRow) {
    let pacing_rate = stats.pacing_rate.map_or(f64::NAN, |rate| rate.bits_per_sec());
    *row = SeriesRow {
        cwnd: stats.cwnd as f32,
        ssthresh: stats.ssthresh as f32,
        srtt: secs(stats.srtt),
        rtt: secs(stats.rtt),
        min_rtt: secs(stats.min_rtt),
        pacing_rate: pacing_rate as f32,
        delivery_rate: stats.delivery_rate.bits_per_sec() as f32,
        in_flight: stats.in_flight,
        sent: stats.sent,
        retransmitted: stats.retransmitted,
        lost: stats.lost,
        delivered: (stats.delivered * mss).min(most),
        phase: number(stats.phase),
        ..*row
    };
}

pub(crate) fn conclude(stats: &SenderStats, mss: u64, most: u64, row: &mut FlowRow) {
    let (sum, samples) = stats.rtt_sum;
    *row = FlowRow {
        completed: stats.completed.map(Time::as_secs_f64),
        sent: stats.sent,
        retransmitted: stats.retransmitted,
        lost: stats.lost,
        delivered: (stats.delivered * mss).min(most),
        timeouts: stats.timeouts,
        recoveries: stats.recoveries,
        spurious: stats.spurious,
        rtt_mean: (samples > 0).then(|| sum / samples as f64),
        ..*row
    };
}

impl Observe for TcpHost {
    fn observe(&self, row: &mut SeriesRow) {
        match self {
            TcpHost::Sender(source) => {
                observe(&source.sender.stats(), source.mss, source.bytes, row);
            }
            TcpHost::Receiver(receiver) => row.received = receiver.stats().bytes,
        }
    }

    fn conclude(&self, row: &mut FlowRow) {
        match self {
            TcpHost::Sender(source) => {
                conclude(&source.sender.stats(), source.mss, source.bytes, row);
            }
            TcpHost::Receiver(receiver) => row.received = receiver.stats().bytes,
        }
    }

    fn inspect(&self, show: &mut dyn FnMut(Inspect)) {
        if let TcpHost::Sender(source) = self {
            source.sender.inspect(show);
        }
    }

    fn is_complete(&self) -> bool {
        matches!(self, TcpHost::Sender(source) if source.sender.stats().completed.is_some())
    }
}
