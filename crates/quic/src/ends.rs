//! The two ends of a flow: a client that sends, and a server that receives.

use crate::stack::{Clock, Event, Settings, Stack, Stats, span};
use bytes::Bytes;
use dumbbell_cc::Metric;
use dumbbell_net::Application;
use dumbbell_sim::{DatagramEndpoint, EcnCodepoint, FlowRow, SeriesRow};
use dumbbell_units::{Rate, Span, Time};
use std::cell::RefCell;

/// Bytes that an application with a rate writes at a time: about a packet.
const WRITE: u16 = 1200;
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
    due: Time,
}

impl<S: Stack> Sender<S> {
    pub(crate) fn new(settings: Settings, clock: Clock, load: Load) -> Sender<S> {
        Sender {
            stack: RefCell::new(S::new(&settings)),
            application: Application::from_rates(&load.rates, WRITE),
            due: load.start,
            settings,
            clock,
            load,
            phase: TransferState::Idle,
            written: 0,
            is_blocked: false,
            completed: None,
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
                Event::Lost => self.phase = TransferState::Lost,
                Event::Finished | Event::Readable => {}
            }
        }
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
                total.min(u64::from(writes) * u64::from(WRITE))
            }
        };
        let is_over = self.load.stop.is_some_and(|stop| now >= stop);
        let stack = self.stack.get_mut();
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
        let next = self.written / u64::from(WRITE) + 1;
        let due = application.due(u32::try_from(next).unwrap_or(u32::MAX));
        if self.is_blocked { stop } else { stop.min(self.load.start + due) }
    }

    /// Packets of `bytes`.
    fn packets(bytes: u64, stats: &Stats) -> f64 {
        bytes as f64 / f64::from(stats.mtu.max(1))
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
            stack.handle_timeout(instant);
        }
        self.events(now);
        self.write(now);
        let stack = self.stack.get_mut();
        let sent = stack.transmit(instant, payload);
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
        let seen = *self.settings.observed.get();
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
            sent: stats.sent_packets,
            lost: stats.lost_packets,
            delivered: self.delivered(),
            ..*row
        };
    }

    fn finish(&self, row: &mut FlowRow) {
        let stats = self.stack.borrow_mut().stats();
        let (sum, samples) = self.settings.observed.get().rtt_sum;
        *row = FlowRow {
            completed: self.completed.map(Time::as_secs_f64),
            sent: stats.sent_packets,
            lost: stats.lost_packets,
            delivered: self.delivered(),
            recoveries: u32::try_from(stats.congestion_events).unwrap_or(u32::MAX),
            spurious: u32::try_from(stats.spurious).unwrap_or(u32::MAX),
            rtt_mean: (samples > 0).then(|| sum / samples as f64),
            ..*row
        };
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.stack.borrow_mut().inspect(show);
    }

    fn is_complete(&self) -> bool {
        self.completed.is_some()
    }
}

/// The end that listens and receives.
pub(crate) struct Receiver<S> {
    stack: S,
    clock: Clock,
    received: u64,
    due: Time,
}

impl<S: Stack> Receiver<S> {
    pub(crate) fn new(settings: &Settings, clock: Clock) -> Receiver<S> {
        Receiver { stack: S::new(settings), clock, received: 0, due: Time::MAX }
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
    }

    fn finish(&self, row: &mut FlowRow) {
        row.received = self.received;
    }
}
