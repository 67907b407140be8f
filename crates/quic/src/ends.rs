//! The two ends of a flow: a client that sends, and a server that receives.

use crate::stack::{Clock, Event, Settings, Stack, Stats, span};
use bytes::{BufMut, Bytes, BytesMut};
use dumbbell_cc::Metric;
use dumbbell_net::Application;
#[cfg(feature = "qlog")]
use dumbbell_sim::EndpointLog;
use dumbbell_sim::{DatagramEndpoint, EcnCodepoint, FlowRow, SeriesRow};
use dumbbell_units::{Rate, Span, Time};
use std::cell::RefCell;
#[cfg(feature = "qlog")]
use std::sync::Arc;
use std::time::Instant;

/// Bytes that an application with a rate writes at a time: about a packet.
const WRITE: u16 = 1200;
/// Bytes of a datagram of media: one fits into a packet of 1200 bytes, and two into none.
const DATAGRAM: u16 = 1150;
/// What a sender without a rate has written and not acknowledged, so that the application never
/// limits it: so many congestion windows, as acknowledged data counts only when all before it is
/// acknowledged too, and so many bytes more.
const AHEAD: (u64, u64) = (4, 64 * 1024);
/// What is sent.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// What a client sends and when.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) start: Time,
    /// Nothing new is written from then on.
    pub(crate) stop: Option<Time>,
    /// Total bytes; `None` for no limit.
    pub(crate) bytes: Option<u64>,
    /// Rates at which the application writes; empty for no limit.
    pub(crate) rates: Vec<(Span, Rate)>,
}

fn secs(span: Option<Span>) -> f32 {
    span.map_or(f32::NAN, |span| span.as_secs_f64() as f32)
}

/// Bytes that an application with a rate writes at a time.
fn unit(settings: &Settings) -> u16 {
    if settings.options.datagrams { DATAGRAM } else { WRITE }
}

/// A datagram of this number.
fn datagram(number: u64) -> Bytes {
    let mut data = BytesMut::zeroed(DATAGRAM.into());
    (&mut data[..]).put_u64(number);
    data.freeze()
}

/// How far a sender is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TransferState {
    Idle,
    Connecting,
    Open,
    /// Everything is written.
    Finished,
    /// The connection was lost.
    Lost,
}

/// The end that connects and sends.
pub(crate) struct Sender<S> {
    /// Statistics of a stack may need it mutable.
    stack: RefCell<S>,
    settings: Settings,
    clock: Clock,
    load: Load,
    application: Option<Application>,
    phase: TransferState,
    written: u64,
    /// Whether the stack takes no more data at present.
    is_blocked: bool,
    completed: Option<Time>,
    /// Expirations of the probe timeout.
    timeouts: u32,
    /// Whether it has expired now, and the probe has not left.
    is_probing: bool,
    /// When the stack closed the connection, and why.
    failure: Option<(Time, String)>,
    due: Time,
}

impl<S: Stack> Sender<S> {
    pub(crate) fn new(settings: Settings, load: Load) -> Sender<S> {
        Sender {
            stack: RefCell::new(S::new(&settings)),
            application: Application::from_rates(&load.rates, unit(&settings)),
            due: load.start,
            clock: settings.clock,
            settings,
            load,
            phase: TransferState::Idle,
            written: 0,
            is_blocked: false,
            completed: None,
            timeouts: 0,
            is_probing: false,
            failure: None,
        }
    }

    fn events(&mut self, now: Time) {
        while let Some(event) = self.stack.get_mut().next_event() {
            match event {
                Event::Connected => self.phase = TransferState::Open,
                Event::Writable => self.is_blocked = false,
                Event::Finished if self.load.bytes == Some(self.written) => {
                    self.completed = Some(now);
                }
                Event::Lost(reason) => {
                    self.failure = (!self.is_over()).then_some((now, reason));
                    self.phase = TransferState::Lost;
                }
                Event::Finished | Event::Readable => {}
            }
        }
    }

    /// Whether all that was to be sent is acknowledged: the connection then idles until it times out.
    fn is_over(&self) -> bool {
        let is_written = self.phase == TransferState::Finished;
        is_written && (self.completed.is_some() || self.settings.observed.get().in_flight == 0)
    }

    /// Runs the timers. The stacks do not count probe timeouts (PTO; RFC 9002, section 6.2). One has
    /// expired if a timer finds no loss while packets are in flight and the last one left a
    /// round-trip time ago or more, so that it is not the pacer's, and a probe leaves now.
    fn expire(&mut self, now: Instant) {
        let (stack, observed) = (self.stack.get_mut(), &self.settings.observed);
        let losses = observed.get().losses;
        stack.handle_timeout(now);
        let seen = observed.get();
        let Some(last) = seen.last_ack_eliciting else { return };
        let may_be_probe = seen.in_flight > 0 && seen.losses == losses;
        drop(seen);
        self.is_probing = may_be_probe && now.saturating_duration_since(last) >= stack.stats().rtt;
    }

    /// Writes what the application has, as far as the stack takes it.
    fn write(&mut self, now: Time) {
        if self.phase != TransferState::Open {
            return;
        }
        let total = self.load.bytes.unwrap_or(u64::MAX);
        let ready = match &self.application {
            None => total,
            Some(application) => {
                let writes = application.written(now.since(self.load.start));
                total.min(u64::from(writes) * u64::from(unit(&self.settings)))
            }
        };
        let is_over = self.load.stop.is_some_and(|stop| now >= stop);
        let stack = self.stack.get_mut();
        while self.settings.options.datagrams && !is_over && self.written < ready {
            stack.send_datagram(datagram(self.written / u64::from(DATAGRAM)));
            self.written += u64::from(DATAGRAM);
        }
        while !is_over && !self.is_blocked && self.written < ready {
            let size = (ready - self.written).min(ZEROS.len() as u64) as usize;
            let taken = stack.write(Bytes::from_static(&ZEROS[..size]));
            self.written += taken as u64;
            self.is_blocked = taken == 0;
        }
        if is_over || self.written == total {
            stack.finish();
            self.phase = TransferState::Finished;
        }
    }

    /// When the application writes next.
    fn next_write(&self) -> Time {
        if self.phase != TransferState::Open {
            return Time::MAX;
        }
        let stop = self.load.stop.unwrap_or(Time::MAX);
        let Some(application) = &self.application else { return stop };
        let next = self.written / u64::from(unit(&self.settings)) + 1;
        let due = application.due(u32::try_from(next).unwrap_or(u32::MAX));
        if self.is_blocked { stop } else { stop.min(self.load.start + due) }
    }

    /// Packets of `bytes`.
    fn packets(bytes: u64, stats: &Stats) -> f64 {
        bytes as f64 / f64::from(stats.mtu.max(1))
    }

    /// Packets, or datagrams of media, that were sent.
    fn sent(&self, stats: &Stats) -> u64 {
        match self.settings.options.datagrams {
            true => self.settings.observed.get().frames.datagrams,
            false => stats.sent_packets,
        }
    }

    fn delivered(&self) -> u64 {
        match self.completed {
            Some(_) => self.written,
            None => self.settings.observed.get().acked.min(self.written),
        }
    }
}

impl<S: Stack> DatagramEndpoint for Sender<S> {
    fn handle(&mut self, now: Time, payload: &[u8], ecn: EcnCodepoint) {
        let stack = self.stack.get_mut();
        stack.handle(self.clock.instant(now), ecn, payload);
        let (windows, bytes) = AHEAD;
        stack.set_send_window(windows, bytes);
    }

    fn poll(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<EcnCodepoint> {
        if now < self.load.start {
            return None;
        }
        let instant = self.clock.instant(now);
        let stack = self.stack.get_mut();
        if self.phase == TransferState::Idle {
            stack.connect(instant);
            self.phase = TransferState::Connecting;
        }
        if stack.timeout().is_some_and(|due| due <= instant) {
            self.expire(instant);
        }
        self.events(now);
        self.write(now);
        let stack = self.stack.get_mut();
        let sent = stack.transmit(instant, payload);
        if self.is_probing {
            let has_sent = self.settings.observed.get().last_ack_eliciting == Some(instant);
            self.timeouts += u32::from(has_sent);
            self.is_probing = !has_sent && sent.is_some();
        }
        if sent.is_none() {
            let due = stack.timeout().map_or(Time::MAX, |due| self.clock.time(due));
            self.due = due.min(self.next_write());
        }
        sent
    }

    fn next_timeout(&self) -> Time {
        self.due
    }

    fn sample(&self, row: &mut SeriesRow) {
        let stats = self.stack.borrow_mut().stats();
        let (delivered, sent) = (self.delivered(), self.sent(&stats));
        let seen = self.settings.observed.get();
        let has_rtt = seen.rtt.is_some();
        let rate = |bytes: f64| (bytes * 8.0) as f32;
        *row = SeriesRow {
            cwnd: Self::packets(stats.cwnd, &stats) as f32,
            ssthresh: match stats.ssthresh {
                Some(u64::MAX) | None => f32::INFINITY,
                Some(bytes) => Self::packets(bytes, &stats) as f32,
            },
            srtt: secs(has_rtt.then(|| span(stats.rtt))),
            rtt: secs(seen.rtt.map(span)),
            min_rtt: secs(stats.min_rtt.filter(|_| has_rtt).or(seen.min_rtt).map(span)),
            pacing_rate: stats.pacing_rate.filter(|_| has_rtt).map_or(f32::NAN, rate),
            delivery_rate: stats.delivery_rate.map_or(f32::NAN, rate),
            in_flight: Self::packets(seen.in_flight, &stats).round() as u32,
            sent,
            retransmitted: seen.frames.retransmitted,
            lost: stats.lost_packets,
            delivered,
            ..*row
        };
    }

    fn finish(&self, row: &mut FlowRow) {
        let stats = self.stack.borrow_mut().stats();
        let seen = self.settings.observed.get();
        let (rtt_sum, retransmitted, recoveries) =
            (seen.rtt_sum, seen.frames.retransmitted, seen.recoveries);
        drop(seen);
        *row = FlowRow {
            completed: self.completed.map(Time::as_secs_f64),
            sent: self.sent(&stats),
            retransmitted,
            lost: stats.lost_packets,
            delivered: self.delivered(),
            timeouts: self.timeouts,
            recoveries,
            spurious: u32::try_from(stats.spurious).unwrap_or(u32::MAX),
            ..row.with_round_trips(rtt_sum)
        };
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.stack.borrow_mut().inspect(show);
    }

    fn is_complete(&self) -> bool {
        self.completed.is_some()
    }

    fn failure(&self) -> Option<(Time, String)> {
        self.failure.clone()
    }

    #[cfg(feature = "qlog")]
    fn log(&self) -> Option<Arc<dyn EndpointLog>> {
        let log = self.settings.log.clone()?;
        Some(Arc::new(log))
    }
}

/// The end that listens and receives.
pub(crate) struct Receiver<S> {
    stack: S,
    clock: Clock,
    received: u64,
    /// Datagrams of media that arrived, if data comes in these.
    datagrams: Option<Datagrams>,
    due: Time,
}

/// Datagrams of media that arrived.
#[derive(Clone, Copy, Debug, Default)]
struct Datagrams {
    count: u64,
    /// The number after the highest one.
    next: u64,
}

impl Datagrams {
    fn on_datagram(&mut self, data: &[u8]) {
        let number = data.first_chunk().map_or(0, |number| u64::from_be_bytes(*number));
        self.count += 1;
        self.next = self.next.max(number + 1);
    }

    fn bytes(self) -> u64 {
        self.count * u64::from(DATAGRAM)
    }

    /// Those that did not arrive before a later one.
    fn lost(self) -> u64 {
        self.next.saturating_sub(self.count)
    }
}

impl<S: Stack> Receiver<S> {
    pub(crate) fn new(settings: &Settings) -> Receiver<S> {
        let clock = settings.clock;
        let datagrams = settings.options.datagrams.then(Datagrams::default);
        Receiver { stack: S::new(settings), clock, received: 0, datagrams, due: Time::MAX }
    }
}

impl<S: Stack> DatagramEndpoint for Receiver<S> {
    fn handle(&mut self, now: Time, payload: &[u8], ecn: EcnCodepoint) {
        self.stack.handle(self.clock.instant(now), ecn, payload);
    }

    fn poll(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<EcnCodepoint> {
        let instant = self.clock.instant(now);
        if self.stack.timeout().is_some_and(|due| due <= instant) {
            self.stack.handle_timeout(instant);
        }
        while let Some(event) = self.stack.next_event() {
            if event == Event::Readable {
                self.received += self.stack.read();
                while let Some(data) = self.stack.read_datagram() {
                    self.datagrams.get_or_insert_default().on_datagram(&data);
                }
            }
        }
        let sent = self.stack.transmit(instant, payload);
        if sent.is_none() {
            self.due = self.stack.timeout().map_or(Time::MAX, |due| self.clock.time(due));
        }
        sent
    }

    fn next_timeout(&self) -> Time {
        self.due
    }

    fn sample(&self, row: &mut SeriesRow) {
        row.received = self.received;
        if let Some(datagrams) = self.datagrams {
            (row.delivered, row.received) = (datagrams.bytes(), datagrams.bytes());
            row.lost = datagrams.lost();
        }
    }

    fn finish(&self, row: &mut FlowRow) {
        row.received = self.received;
        if let Some(datagrams) = self.datagrams {
            (row.delivered, row.received) = (datagrams.bytes(), datagrams.bytes());
            row.lost = datagrams.lost();
        }
    }
}
