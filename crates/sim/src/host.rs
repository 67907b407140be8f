//! What hosts run, and what TCP shows of itself; `udt_host.rs` has what UDT shows, and
//! `multipath_host.rs` what multipath connections do.

use crate::engine::EndpointId;
use crate::histogram::Histogram;
use crate::multipath_host::MultipathHost;
use crate::pdu::Pdu;
use crate::sample::Observe;
use crate::tables::{FlowRow, SeriesRow};
use crate::udt_host::UdtHost;
use dumbbell_cc::{Inspect, Phase};
use dumbbell_net::Endpoint;
use dumbbell_tcp::{Receiver, Sender, SenderStats};
use dumbbell_units::{Span, Time};

/// One end of a flow.
#[allow(clippy::large_enum_variant, reason = "half of all hosts are senders; a box costs a miss")]
pub(crate) enum Host {
    Sender { sender: Sender, mss: u64, bytes: u64 },
    Receiver(Receiver),
    Udt(Box<UdtHost>),
    Multipath(Box<MultipathHost>),
}

impl Endpoint for Host {
    type Packet = Pdu;

    #[inline]
    fn handle(&mut self, now: Time, packet: &Pdu) {
        match (self, packet) {
            (Host::Sender { sender, .. }, Pdu::Tcp(segment)) => sender.handle(now, segment),
            (Host::Receiver(receiver), Pdu::Tcp(segment)) => receiver.handle(now, segment),
            (Host::Udt(host), Pdu::Udt(packet)) => host.handle(now, packet),
            (Host::Multipath(host), Pdu::Tcp(segment)) => host.handle(now, segment),
            _ => unreachable!("both ends of a flow speak one protocol"),
        }
    }

    #[inline]
    fn poll(&mut self, now: Time) -> Option<Pdu> {
        match self {
            Host::Sender { sender, .. } => sender.poll(now).map(Pdu::Tcp),
            Host::Receiver(receiver) => receiver.poll(now).map(Pdu::Tcp),
            Host::Udt(host) => host.poll(now).map(Pdu::Udt),
            Host::Multipath(host) => host.poll(now).map(Pdu::Tcp),
        }
    }

    #[inline]
    fn next_timeout(&self) -> Time {
        match self {
            Host::Sender { sender, .. } => sender.next_timeout(),
            Host::Receiver(receiver) => receiver.next_timeout(),
            Host::Udt(host) => host.next_timeout(),
            Host::Multipath(host) => host.next_timeout(),
        }
    }

    fn ports(&self) -> u8 {
        if let Host::Multipath(host) = self { host.ports() } else { 1 }
    }

    #[inline]
    fn handle_at(&mut self, now: Time, port: u8, packet: &Pdu) {
        match (self, packet) {
            (Host::Multipath(host), Pdu::Tcp(segment)) => host.handle_at(now, port, segment),
            (host, packet) => host.handle(now, packet),
        }
    }

    #[inline]
    fn port(&self) -> u8 {
        if let Host::Multipath(host) = self { host.port() } else { 0 }
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

impl Observe for Host {
    fn observe(&self, row: &mut SeriesRow) {
        match self {
            Host::Sender { sender, mss, bytes } => observe(&sender.stats(), *mss, *bytes, row),
            Host::Receiver(receiver) => row.received = receiver.stats().bytes,
            Host::Udt(host) => host.observe(row),
            Host::Multipath(host) => host.observe(row),
        }
    }

    fn conclude(&self, row: &mut FlowRow) {
        match self {
            Host::Sender { sender, mss, bytes } => conclude(&sender.stats(), *mss, *bytes, row),
            Host::Receiver(receiver) => row.received = receiver.stats().bytes,
            Host::Udt(host) => host.conclude(row),
            Host::Multipath(host) => host.conclude(row),
        }
    }

    fn inspect(&self, show: &mut dyn FnMut(Inspect)) {
        match self {
            Host::Sender { sender, .. } => sender.inspect(show),
            Host::Receiver(_) => {}
            Host::Udt(host) => host.inspect(show),
            Host::Multipath(host) => host.inspect(show),
        }
    }

    fn is_complete(&self) -> bool {
        match self {
            Host::Sender { sender, .. } => sender.stats().completed.is_some(),
            Host::Receiver(_) => false,
            Host::Udt(host) => host.is_complete(),
            Host::Multipath(host) => host.is_complete(),
        }
    }

    fn parts(&self) -> u8 {
        if let Host::Multipath(host) = self { host.parts() } else { 0 }
    }

    fn observe_part(&self, part: u8, row: &mut SeriesRow) {
        if let Host::Multipath(host) = self {
            host.observe_part(part, row);
        }
    }

    fn conclude_part(&self, part: u8, row: &mut FlowRow) {
        if let Host::Multipath(host) = self {
            host.conclude_part(part, row);
        }
    }

    fn inspect_part(&self, part: u8, show: &mut dyn FnMut(Inspect)) {
        if let Host::Multipath(host) = self {
            host.inspect_part(part, show);
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
    pub(crate) fn delivered(&mut self, now: Time, to: EndpointId, packet: &Pdu) {
        let Some(sent_at) = packet.data_sent_at() else { return };
        // The timestamp tells when the packet was sent to the microsecond, so the delay is exact
        // to a microsecond.
        let now = (now.as_nanos() / 1_000) as u32;
        let delay = Span::from_micros(u64::from(now.wrapping_sub(sent_at)));
        let (base, delays) = &mut self.flows[to.pair() as usize];
        delays.record(delay.saturating_sub(*base));
    }
}
