//! TCP in the simulator: what a host runs, and what it shows of itself.

use crate::engine::EndpointId;
use crate::histogram::Histogram;
use crate::sample::Observe;
use crate::tables::{FlowRow, SeriesRow};
use dumbbell_cc::{Inspect, Phase};
use dumbbell_net::Endpoint;
use dumbbell_tcp::{Flags, Receiver, Segment, Sender};
use dumbbell_units::{Span, Time};

/// One end of a TCP flow.
#[allow(clippy::large_enum_variant, reason = "half of all hosts are senders; a box costs a miss")]
pub(crate) enum Host {
    Sender { sender: Sender, mss: u64, bytes: u64 },
    Receiver(Receiver),
}

impl Endpoint for Host {
    type Packet = Segment;

    #[inline]
    fn handle(&mut self, now: Time, segment: &Segment) {
        match self {
            Host::Sender { sender, .. } => sender.handle(now, segment),
            Host::Receiver(receiver) => receiver.handle(now, segment),
        }
    }

    #[inline]
    fn poll(&mut self, now: Time) -> Option<Segment> {
        match self {
            Host::Sender { sender, .. } => sender.poll(now),
            Host::Receiver(receiver) => receiver.poll(now),
        }
    }

    #[inline]
    fn next_timeout(&self) -> Time {
        match self {
            Host::Sender { sender, .. } => sender.next_timeout(),
            Host::Receiver(receiver) => receiver.next_timeout(),
        }
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

impl Observe for Host {
    fn observe(&self, row: &mut SeriesRow) {
        match self {
            Host::Sender { sender, mss, bytes } => {
                let stats = sender.stats();
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
                    delivered: (stats.delivered * mss).min(*bytes),
                    phase: number(stats.phase),
                    ..*row
                };
            }
            Host::Receiver(receiver) => row.received = receiver.stats().bytes,
        }
    }

    fn conclude(&self, row: &mut FlowRow) {
        match self {
            Host::Sender { sender, mss, bytes } => {
                let stats = sender.stats();
                let (sum, samples) = stats.rtt_sum;
                *row = FlowRow {
                    completed: stats.completed.map(Time::as_secs_f64),
                    sent: stats.sent,
                    retransmitted: stats.retransmitted,
                    lost: stats.lost,
                    delivered: (stats.delivered * mss).min(*bytes),
                    timeouts: stats.timeouts,
                    recoveries: stats.recoveries,
                    spurious: stats.spurious,
                    rtt_mean: (samples > 0).then(|| sum / samples as f64),
                    ..*row
                };
            }
            Host::Receiver(receiver) => row.received = receiver.stats().bytes,
        }
    }

    fn inspect(&self, show: &mut dyn FnMut(Inspect)) {
        if let Host::Sender { sender, .. } = self {
            sender.inspect(show);
        }
    }

    fn is_complete(&self) -> bool {
        matches!(self, Host::Sender { sender, .. } if sender.stats().completed.is_some())
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
