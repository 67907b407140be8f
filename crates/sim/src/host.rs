//! TCP in the simulator: what a host runs, and what it shows of itself.

use crate::engine::EndpointId;
use crate::histogram::Histogram;
use crate::sample::Observe;
use crate::tables::{FlowRow, SeriesRow};
use dumbbell_cc::{Inspect, Phase};
use dumbbell_net::Endpoint;
use dumbbell_tcp::{
    Flags, MultipathReceiver, MultipathSender, Receiver, Segment, Sender, SenderStats,
};
use dumbbell_units::{Span, Time};

/// One end of a TCP flow, or of a multipath connection.
#[allow(clippy::large_enum_variant, reason = "half of all hosts are senders; a box costs a miss")]
pub(crate) enum Host {
    Sender { sender: Sender, mss: u64, bytes: u64 },
    Receiver(Receiver),
    MultipathSender { sender: Box<MultipathSender>, mss: u64 },
    MultipathReceiver(Box<MultipathReceiver>),
}

macro_rules! each {
    ($self:ident, $end:ident => $call:expr) => {
        match $self {
            Host::Sender { sender: $end, .. } => $call,
            Host::Receiver($end) => $call,
            Host::MultipathSender { sender: $end, .. } => $call,
            Host::MultipathReceiver($end) => $call,
        }
    };
}

impl Endpoint for Host {
    type Packet = Segment;

    #[inline]
    fn handle(&mut self, now: Time, segment: &Segment) {
        each!(self, end => end.handle(now, segment));
    }

    #[inline]
    fn poll(&mut self, now: Time) -> Option<Segment> {
        each!(self, end => end.poll(now))
    }

    #[inline]
    fn next_timeout(&self) -> Time {
        each!(self, end => end.next_timeout())
    }

    fn ports(&self) -> u8 {
        each!(self, end => end.ports())
    }

    #[inline]
    fn handle_at(&mut self, now: Time, port: u8, segment: &Segment) {
        each!(self, end => end.handle_at(now, port, segment));
    }

    #[inline]
    fn port(&self) -> u8 {
        each!(self, end => end.port())
    }
}

/// Seconds, or NaN if not known yet.
fn secs(span: Option<Span>) -> f32 {
    span.map_or(f32::NAN, |span| span.as_secs_f64() as f32)
}

/// The number of a phase in the tables.
fn number(phase: Phase) -> u8 {
    match phase {
        Phase::Open => 0,
        Phase::Disorder => 1,
        Phase::Cwr => 2,
        Phase::Recovery => 3,
        Phase::Loss => 4,
    }
}

/// A sender's state as a row shows it; `most` is all that there is to deliver, bytes.
fn observe(stats: &SenderStats, mss: u64, most: u64, row: &mut SeriesRow) {
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

fn conclude(stats: &SenderStats, mss: u64, most: u64, row: &mut FlowRow) {
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

/// A connection as the sum of its subflows. What has no sum is left out; what was delivered is
/// what the connection's own acknowledgements say.
fn observe_all(sender: &MultipathSender, row: &mut SeriesRow) {
    let nan = f32::NAN;
    *row = SeriesRow { srtt: nan, rtt: nan, min_rtt: nan, ssthresh: nan, pacing_rate: nan, ..*row };
    for stats in (0..sender.ports()).map(|part| sender.subflow_stats(part)) {
        row.cwnd += stats.cwnd as f32;
        row.delivery_rate += stats.delivery_rate.bits_per_sec() as f32;
        row.in_flight += stats.in_flight;
        row.sent += stats.sent;
        row.retransmitted += stats.retransmitted;
        row.lost += stats.lost;
    }
    row.delivered = sender.stats().acked_bytes;
}

fn conclude_all(sender: &MultipathSender, row: &mut FlowRow) {
    let (mut sum, mut samples) = (0.0, 0);
    for stats in (0..sender.ports()).map(|part| sender.subflow_stats(part)) {
        row.sent += stats.sent;
        row.retransmitted += stats.retransmitted;
        row.lost += stats.lost;
        row.timeouts += stats.timeouts;
        row.recoveries += stats.recoveries;
        row.spurious += stats.spurious;
        sum += stats.rtt_sum.0;
        samples += stats.rtt_sum.1;
    }
    let stats = sender.stats();
    row.rtt_mean = (samples > 0).then(|| sum / samples as f64);
    row.completed = stats.completed.map(Time::as_secs_f64);
    row.delivered = stats.acked_bytes;
}

impl Observe for Host {
    fn observe(&self, row: &mut SeriesRow) {
        match self {
            Host::Sender { sender, mss, bytes } => observe(&sender.stats(), *mss, *bytes, row),
            Host::Receiver(receiver) => row.received = receiver.stats().bytes,
            Host::MultipathSender { sender, .. } => observe_all(sender, row),
            Host::MultipathReceiver(receiver) => row.received = receiver.stats().bytes,
        }
    }

    fn conclude(&self, row: &mut FlowRow) {
        match self {
            Host::Sender { sender, mss, bytes } => conclude(&sender.stats(), *mss, *bytes, row),
            Host::Receiver(receiver) => row.received = receiver.stats().bytes,
            Host::MultipathSender { sender, .. } => conclude_all(sender, row),
            Host::MultipathReceiver(receiver) => row.received = receiver.stats().bytes,
        }
    }

    fn inspect(&self, show: &mut dyn FnMut(Inspect)) {
        if let Host::Sender { sender, .. } = self {
            sender.inspect(show);
        }
    }

    fn is_complete(&self) -> bool {
        match self {
            Host::Sender { sender, .. } => sender.stats().completed.is_some(),
            Host::MultipathSender { sender, .. } => sender.stats().completed.is_some(),
            Host::Receiver(_) | Host::MultipathReceiver(_) => false,
        }
    }

    fn parts(&self) -> u8 {
        match self {
            Host::Sender { .. } | Host::Receiver(_) => 0,
            Host::MultipathSender { .. } | Host::MultipathReceiver(_) => self.ports(),
        }
    }

    fn observe_part(&self, part: u8, row: &mut SeriesRow) {
        match self {
            Host::MultipathSender { sender, mss } => {
                observe(&sender.subflow_stats(part), *mss, u64::MAX, row);
            }
            Host::MultipathReceiver(receiver) => row.received = receiver.subflow_stats(part).bytes,
            Host::Sender { .. } | Host::Receiver(_) => {}
        }
    }

    fn conclude_part(&self, part: u8, row: &mut FlowRow) {
        match self {
            Host::MultipathSender { sender, mss } => {
                conclude(&sender.subflow_stats(part), *mss, u64::MAX, row);
                row.completed = None;
            }
            Host::MultipathReceiver(receiver) => row.received = receiver.subflow_stats(part).bytes,
            Host::Sender { .. } | Host::Receiver(_) => {}
        }
    }

    fn inspect_part(&self, part: u8, show: &mut dyn FnMut(Inspect)) {
        if let Host::MultipathSender { sender, .. } = self {
            sender.inspect(part, show);
        }
    }
}

/// Measures how much longer than the base delivered data packets were under way.
#[derive(Clone, Debug)]
pub(crate) struct DelayMeter {
    flows: Vec<(Span, Histogram)>,
}

impl DelayMeter {
    /// A meter for flows of the given base delays, one way.
    pub(crate) fn new(bases: impl IntoIterator<Item = Span>) -> DelayMeter {
        DelayMeter { flows: bases.into_iter().map(|base| (base, Histogram::new())).collect() }
    }

    /// What was measured of a flow.
    pub(crate) fn delays(&self, pair: u32) -> &Histogram {
        &self.flows[pair as usize].1
    }
}

impl DelayMeter {
    #[inline]
    pub(crate) fn delivered(&mut self, now: Time, to: EndpointId, segment: &Segment) {
        if segment.is_ack() || segment.flags.contains(Flags::SYN) {
            return;
        }
        // The timestamp tells when the segment was sent to the microsecond, so the delay is exact
        // to a microsecond.
        let now = (now.as_nanos() / 1_000) as u32;
        let delay = Span::from_micros(u64::from(now.wrapping_sub(segment.timestamp)));
        let (base, delays) = &mut self.flows[to.pair() as usize];
        delays.record(delay.saturating_sub(*base));
    }
}
