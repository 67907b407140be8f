//! The sending side: handshake, transmission, timers. What acknowledgements do to it is in
//! `acknowledge.rs`; both follow Linux's order of doing things.

use crate::pacing::{self, Pacer};
use crate::prr::Prr;
use crate::rack::Rack;
use crate::rate::RateSampler;
use crate::rtt::{RttEstimator, timestamp};
use crate::scoreboard::Scoreboard;
use crate::{Ecn, Flags, Segment, Stack};
use dumbbell_cc::{Algorithm, Congestion, CongestionControl, Control, Inspect, Path, Phase, Sent};
use dumbbell_net::Endpoint;
use dumbbell_units::{Rate, Span, Time};
use std::sync::Arc;

/// What a sender is to send, and how.
pub struct SenderConfig {
    /// TCP behaviours.
    pub stack: Arc<Stack>,
    /// Congestion control, made for this connection.
    pub algorithm: Algorithm,
    /// When the SYN leaves.
    pub start: Time,
    /// From when on no new data is sent.
    pub stop: Option<Time>,
    /// Bytes to send; without it, as many as there is time for.
    pub bytes: Option<u64>,
    /// Rate at which the application writes; without it, data is always waiting.
    pub app_rate: Option<Rate>,
}

/// Counters and present values, for tables and plots.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SenderStats {
    /// Congestion window in force, packets.
    pub cwnd: f64,
    /// Slow start threshold, packets.
    pub ssthresh: f64,
    /// Smoothed round-trip time.
    pub srtt: Option<Span>,
    /// Latest round-trip time sample.
    pub rtt: Option<Span>,
    /// Least round-trip time.
    pub min_rtt: Option<Span>,
    /// Sum of all round-trip time samples, s, and their number.
    pub rtt_sum: (f64, u64),
    /// Rate at which packets are paced, if they are.
    pub pacing_rate: Option<Rate>,
    /// Latest delivery rate sample.
    pub delivery_rate: Rate,
    /// Packets in flight.
    pub in_flight: u32,
    /// Data packets sent, retransmissions included.
    pub sent: u64,
    /// Retransmissions sent.
    pub retransmitted: u64,
    /// Packets marked lost.
    pub lost: u64,
    /// Packets delivered, in any order.
    pub delivered: u64,
    /// Payload bytes cumulatively acknowledged.
    pub acked_bytes: u64,
    /// Loss recovery state.
    pub phase: Phase,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Fast recovery episodes.
    pub recoveries: u32,
    /// Reductions that were undone.
    pub spurious: u32,
    /// When everything had been acknowledged, for flows of finite length.
    pub completed: Option<Time>,
}

/// What the retransmission timer will do when it expires; Linux has one timer for all three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// Retransmission timeout.
    Rto,
    /// Tail loss probe.
    Probe,
    /// RACK's reordering window ends.
    Reorder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Waiting for the start, or for the SYN-ACK.
    Opening {
        syn_sent: Option<Time>,
        attempts: u32,
    },
    Established,
}

/// The sending side of a connection.
pub struct Sender {
    pub(crate) stack: Arc<Stack>,
    pub(crate) cc: Algorithm,
    pub(crate) control: Control,
    cc_timer: Time,
    own_recovery: bool,
    stage: Stage,
    stop: Time,
    bytes: Option<u64>,
    packets: u32,
    application: Option<Application>,
    established_at: Time,
    pub(crate) path: Path,
    pub(crate) board: Scoreboard,
    pub(crate) rtt: RttEstimator,
    pub(crate) rtt_sum: (f64, u64),
    pub(crate) rate: RateSampler,
    pub(crate) rack: Rack,
    pub(crate) judged_to: u32,
    pub(crate) prr: Option<Prr>,
    /// `next` when the present episode began; it ends when this is acknowledged.
    pub(crate) high_seq: u32,
    pub(crate) undo: crate::undo::Undo,
    /// First packet that the peer's window does not cover.
    pub(crate) window_end: u32,
    /// `next` when a tail loss probe was sent, and whether it was a retransmission.
    pub(crate) probe: Option<(u32, bool)>,
    /// The probe that is due repeats the last packet.
    repeat_last: bool,
    pub(crate) cwr_pending: bool,
    pub(crate) timer: (Time, Timer),
    pacer: Pacer,
    /// When pacing or the application lets the next packet go, if that is what is waited for.
    wake: Time,
    /// Packets left of the burst that is being sent.
    burst: u32,
    last_sent_at: Time,
    ran_dry: bool,
    sent_since_check: bool,
    pub(crate) window_used: WindowUse,
    pub(crate) lost_scratch: Vec<u32>,
    sent: u64,
    retransmitted: u64,
    pub(crate) timeouts: u32,
    pub(crate) recoveries: u32,
    pub(crate) spurious: u32,
    completed: Option<Time>,
}

/// An application that writes at a constant rate, in full packets. Whole numbers, so that a packet
/// is there exactly when it is due.
#[derive(Clone, Copy, Debug)]
struct Application {
    bytes_per_sec: u128,
    /// Bytes of a packet, times the nanoseconds of a second.
    packet: u128,
}

impl Application {
    fn new(rate: Rate, mss: u16) -> Application {
        let bytes_per_sec = (rate.bytes_per_sec() as u128).max(1);
        Application { bytes_per_sec, packet: u128::from(mss) * 1_000_000_000 }
    }

    /// Packets written within `span`.
    fn written(&self, span: Span) -> u32 {
        (u128::from(span.as_nanos()) * self.bytes_per_sec / self.packet) as u32
    }

    /// How long it takes to write so many packets.
    fn due(&self, packets: u32) -> Span {
        let nanos = (u128::from(packets) * self.packet).div_ceil(self.bytes_per_sec);
        Span::from_nanos(nanos as u64)
    }
}

/// Whether the window was what limited sending (tcp_cwnd_validate).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowUse {
    limited: bool,
    max_outstanding: u32,
    round_end: u32,
}

impl Sender {
    /// A sender that connects at `config.start`.
    pub fn new(config: SenderConfig) -> Sender {
        let SenderConfig { stack, algorithm, start, stop, bytes, app_rate } = config;
        let mss = u64::from(stack.mss);
        let packets = bytes.map_or(u32::MAX, |bytes| bytes.div_ceil(mss) as u32);
        let control = algorithm.control();
        Sender {
            own_recovery: !algorithm.uses_prr(),
            cc: algorithm,
            control,
            cc_timer: Time::MAX,
            stage: Stage::Opening { syn_sent: None, attempts: 0 },
            stop: stop.unwrap_or(Time::MAX),
            bytes,
            packets,
            application: app_rate.map(|rate| Application::new(rate, stack.mss)),
            established_at: start,
            path: Path::new(u32::from(stack.mss), start),
            board: Scoreboard::new(),
            rtt: RttEstimator::new(Span::from_nanos(stack.min_rto_ns)),
            rtt_sum: (0.0, 0),
            rate: RateSampler::new(start),
            rack: Rack::new(),
            judged_to: 0,
            prr: None,
            high_seq: 0,
            undo: crate::undo::Undo::default(),
            window_end: 0,
            probe: None,
            repeat_last: false,
            cwr_pending: false,
            timer: (start, Timer::Rto),
            pacer: Pacer::default(),
            wake: Time::MAX,
            burst: 0,
            last_sent_at: Time::ZERO,
            ran_dry: false,
            sent_since_check: false,
            window_used: WindowUse::default(),
            lost_scratch: Vec::new(),
            sent: 0,
            retransmitted: 0,
            timeouts: 0,
            recoveries: 0,
            spurious: 0,
            completed: None,
            stack,
        }
    }

    /// Counters and present values.
    pub fn stats(&self) -> SenderStats {
        let mss = u64::from(self.stack.mss);
        let acked = u64::from(self.board.una()) * mss;
        SenderStats {
            cwnd: f64::from(self.cwnd()),
            ssthresh: self.control.ssthresh,
            srtt: self.path.srtt,
            rtt: self.path.srtt.map(|_| self.rtt.latest()),
            min_rtt: self.path.min_rtt,
            rtt_sum: self.rtt_sum,
            pacing_rate: self.path.pacing_rate.filter(|_| self.path.paced),
            delivery_rate: self.rate.latest,
            in_flight: self.path.in_flight,
            sent: self.sent,
            retransmitted: self.retransmitted,
            lost: self.path.lost,
            delivered: self.path.delivered,
            acked_bytes: self.bytes.map_or(acked, |bytes| acked.min(bytes)),
            phase: self.path.phase,
            timeouts: self.timeouts,
            recoveries: self.recoveries,
            spurious: self.spurious,
            completed: self.completed,
        }
    }

    /// Shows the algorithm's internals.
    pub fn inspect(&self, show: &mut dyn FnMut(Inspect)) {
        self.cc.inspect(show);
    }

    /// The window in force: during a reduction PRR's, otherwise the algorithm's; whole packets, at
    /// least one.
    #[inline]
    pub(crate) fn cwnd(&self) -> u32 {
        match &self.prr {
            Some(prr) => prr.cwnd().max(1),
            None => (self.control.cwnd as u32).max(1),
        }
    }

    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        let cwnd = f64::from(self.cwnd());
        pacing::rate(&self.control, cwnd, self.path.srtt, self.path.mss)
    }

    /// Asks the algorithm again after it was told something.
    #[inline]
    pub(crate) fn refresh(&mut self) {
        self.control = self.cc.control();
        self.path.paced = self.stack.pacing || self.control.pacing_rate.is_some();
        self.path.pacing_rate = self.pacing_rate();
        self.cc_timer = self.cc.next_timer().unwrap_or(Time::MAX);
    }

    /// Begins a window reduction: the algorithm has set its window, PRR leads there.
    pub(crate) fn begin_reduction(&mut self, prior_cwnd: u32) {
        self.high_seq = self.board.next();
        self.probe = None;
        self.prr = (!self.own_recovery).then(|| Prr::new(self.control.cwnd, prior_cwnd));
    }

    /// Whether the window is what limits sending (tcp_is_cwnd_limited).
    #[inline]
    pub(crate) fn is_cwnd_limited(&self) -> bool {
        let cwnd = self.cwnd();
        self.window_used.limited
            || f64::from(cwnd) < self.control.ssthresh
                && cwnd < 2 * self.window_used.max_outstanding
    }

    // ---- handshake ----

    fn send_syn(&mut self, attempts: u32) -> Segment {
        let now = self.path.now;
        self.stage = Stage::Opening { syn_sent: Some(now), attempts: attempts + 1 };
        self.timer = (now + self.rtt.rto(), Timer::Rto);
        self.rtt.back_off();
        Segment {
            timestamp: timestamp(now),
            size: self.stack.control_size(),
            flags: Flags::SYN,
            ..Segment::default()
        }
    }

    fn on_syn_ack(&mut self, segment: &Segment, syn_sent: Time, attempts: u32) {
        let now = self.path.now;
        self.stage = Stage::Established;
        self.established_at = now;
        self.window_end = segment.window;
        self.rtt.end_backoff();
        self.timer = (Time::MAX, Timer::Rto);
        if attempts == 1 {
            let rtt = now.since(syn_sent);
            self.rtt.observe_min(rtt);
            self.rtt.sample(rtt, 0, 0);
            self.path.srtt = self.rtt.srtt();
            self.path.min_rtt = self.rtt.min();
        }
        self.cc.on_established(&self.path);
        self.refresh();
    }

    // ---- timers ----

    /// Sets the retransmission timer anew from the present (tcp_set_xmit_timer).
    pub(crate) fn rearm(&mut self) {
        if self.board.outstanding() == 0 {
            self.timer = (Time::MAX, Timer::Rto);
        } else {
            self.arm(self.path.now + self.rtt.rto());
        }
    }

    /// Arms the timeout for `rto`, or a probe in its place, which comes no later.
    fn arm(&mut self, rto: Time) {
        self.timer = match self.probe_timeout() {
            Some(timeout) => (rto.min(self.path.now + timeout), Timer::Probe),
            None => (rto, Timer::Rto),
        };
    }

    /// Two round trips, and time for a delayed acknowledgement if one packet is out
    /// (RFC 8985, 7.2; Linux allows its minimum RTO for it). Only when nothing is amiss.
    fn probe_timeout(&self) -> Option<Span> {
        let calm = matches!(self.path.phase, Phase::Open | Phase::Cwr);
        if !self.stack.tail_loss_probe || !calm || self.probe.is_some() {
            return None;
        }
        let srtt = self.path.srtt?;
        let delayed_ack = if self.board.outstanding() == 1 {
            Span::from_nanos(self.stack.min_rto_ns)
        } else {
            Span::from_millis(2)
        };
        Some(srtt * 2 + delayed_ack)
    }

    /// The timeout, counted from when the oldest packet was sent (tcp_rto_delta_us).
    fn rearm_from_oldest(&mut self) {
        let oldest = self.board.packet(self.board.una()).stamp.sent_at;
        self.timer = ((oldest + self.rtt.rto()).max(self.path.now), Timer::Rto);
    }

    fn on_retransmission_timer(&mut self) {
        if self.board.outstanding() == 0 {
            self.timer = (Time::MAX, Timer::Rto);
            return;
        }
        match self.timer.1 {
            Timer::Rto => self.on_timeout(),
            Timer::Probe => {
                self.timer = (self.path.now + self.rtt.rto(), Timer::Rto);
                self.send_probe();
            }
            Timer::Reorder => {
                self.rearm_from_oldest();
                self.on_reorder_timer();
            }
        }
    }

    /// Lets one packet go regardless of the window: new data if there is some, else the last
    /// packet again (RFC 8985, 7.3).
    fn send_probe(&mut self) {
        let repeat = self.sendable() == 0;
        self.probe = Some((self.board.next(), repeat));
        self.repeat_last = repeat;
        self.begin_burst(1);
    }

    // ---- transmission ----

    /// New packets that the application and the peer's window allow.
    #[inline]
    fn sendable(&mut self) -> u32 {
        if self.path.now >= self.stop {
            return 0;
        }
        let mut end = self.packets.min(self.window_end);
        if let Some(application) = &self.application {
            let written = application.written(self.path.now.since(self.established_at));
            if written < end {
                end = written;
                self.wake = self.established_at + application.due(written + 1);
            }
        }
        end.saturating_sub(self.board.next())
    }

    /// Decides whether a burst may leave now, and how long it is (tcp_write_xmit's loop head).
    fn plan_burst(&mut self) -> bool {
        self.wake = Time::MAX;
        let cwnd = self.cwnd();
        let in_flight = self.path.in_flight;
        if in_flight >= cwnd {
            return self.stop_sending(true);
        }
        let now = self.path.now;
        if self.path.paced && self.pacer.next() > now {
            self.wake = self.pacer.next();
            return self.stop_sending(false);
        }
        if self.board.lost_out() > 0 && self.board.next_retransmission().is_some() {
            self.begin_burst(1);
            return true;
        }
        let sendable = self.sendable();
        if sendable == 0 {
            let app_limited = self.board.next() < self.window_end;
            if app_limited {
                self.rate.set_app_limited(&self.path);
                self.ran_dry = true;
            }
            return self.stop_sending(false);
        }
        let quota = (cwnd / 2).max(1).min(cwnd - in_flight);
        let full = self.full_burst();
        if quota < full && quota < sendable && quota < cwnd / 3 && self.should_defer() {
            return self.stop_sending(true);
        }
        self.begin_burst(full.min(quota).min(sendable));
        true
    }

    fn full_burst(&self) -> u32 {
        if !self.stack.tso {
            return 1;
        }
        let rate = self.path.pacing_rate.unwrap_or(Rate::ZERO);
        let min_rtt = self.path.min_rtt.unwrap_or(Span::MAX);
        pacing::burst_size(&self.stack, &self.control, rate, min_rtt)
    }

    fn should_defer(&self) -> bool {
        let calm = !matches!(self.path.phase, Phase::Recovery | Phase::Loss);
        let oldest = (self.board.outstanding() > 0)
            .then(|| self.board.packet(self.board.una()).stamp.sent_at);
        let srtt = self.path.srtt.unwrap_or(Span::ZERO);
        calm && pacing::should_defer(self.path.now, self.last_sent_at, oldest, srtt)
    }

    fn begin_burst(&mut self, packets: u32) {
        self.burst = packets;
        self.sent_since_check = true;
        let now = self.path.now;
        if self.path.paced
            && let Some(rate) = self.pacing_rate()
        {
            // Linux paces what is in the socket's buffers: payload, without headers.
            let payload = f64::from(packets) * f64::from(self.stack.mss);
            self.pacer.on_burst(now, payload, rate, self.sent);
        }
        self.last_sent_at = now;
    }

    /// Nothing more can be sent now: note whether the window was the reason.
    fn stop_sending(&mut self, by_window: bool) -> bool {
        let limited = by_window || self.path.in_flight >= self.cwnd();
        if self.sent_since_check || limited {
            let used = &mut self.window_used;
            let outstanding = self.board.outstanding();
            if limited
                || self.board.una() >= used.round_end
                || !used.limited && outstanding > used.max_outstanding
            {
                *used = WindowUse {
                    limited,
                    max_outstanding: outstanding,
                    round_end: self.board.next(),
                };
            }
        }
        if self.sent_since_check {
            self.sent_since_check = false;
            if self.timer.1 != Timer::Reorder {
                self.rearm_after_sending();
            }
        }
        false
    }

    /// Sending moves the probe, but not a timeout that is running (tcp_event_new_data_sent,
    /// tcp_schedule_loss_probe).
    fn rearm_after_sending(&mut self) {
        let running = self.timer.0 != Time::MAX && self.timer.1 == Timer::Rto;
        self.arm(if running { self.timer.0 } else { self.path.now + self.rtt.rto() });
    }

    /// Sends the next packet of the burst.
    #[inline]
    fn emit(&mut self) -> Segment {
        self.burst -= 1;
        let from_idle = self.path.in_flight == 0;
        let outstanding = self.board.outstanding();
        let stamp = self.rate.stamp(&mut self.path, outstanding);
        let (first_sent_at, delivered_at) = (self.rate.first_sent_at, self.path.delivered_at);
        let again = self.retransmission();
        let number = match again {
            Some(number) => {
                self.board.retransmit(number, stamp, first_sent_at, delivered_at);
                self.rack.retransmitted(self.path.now, number);
                self.undo.on_retransmit(timestamp(self.path.now));
                self.retransmitted += 1;
                number
            }
            None => self.board.push(stamp, first_sent_at, delivered_at),
        };
        self.sent += 1;
        self.path.in_flight += 1;
        self.path.next_seq = u64::from(self.board.next());
        if let Some(prr) = &mut self.prr {
            prr.on_sent();
        }
        let retransmission = again.is_some();
        let app_limited = std::mem::take(&mut self.ran_dry);
        let sent = Sent { seq: u64::from(number), retransmission, from_idle, app_limited };
        self.cc.on_sent(&self.path, &sent);
        if from_idle {
            self.refresh();
        }
        self.segment(number, retransmission)
    }

    /// The packet that is to be sent again before anything new.
    #[inline]
    fn retransmission(&mut self) -> Option<u32> {
        if std::mem::take(&mut self.repeat_last) {
            return self.board.next().checked_sub(1);
        }
        if self.board.lost_out() == 0 {
            return None;
        }
        self.board.next_retransmission()
    }

    fn segment(&mut self, number: u32, retransmission: bool) -> Segment {
        let mut flags = Flags::default();
        if retransmission {
            flags = flags.with(Flags::RETRANSMISSION);
        } else if self.stack.ecn != Ecn::Off {
            // Retransmissions are not ECN-capable (RFC 3168, 6.1.5).
            flags = flags.with(Flags::ECT);
            if std::mem::take(&mut self.cwr_pending) {
                flags = flags.with(Flags::CWR);
            }
        }
        let mut payload = self.stack.mss;
        if let Some(bytes) = self.bytes
            && number + 1 == self.packets
        {
            payload = (bytes - u64::from(number) * u64::from(payload)) as u16;
        }
        Segment {
            number,
            timestamp: timestamp(self.path.now),
            size: payload + self.stack.header,
            flags,
            ..Segment::default()
        }
    }

    /// Tells the algorithm of congestion and takes its answer.
    pub(crate) fn signal(&mut self, event: &Congestion) {
        self.cc.on_congestion(&self.path, event);
        self.refresh();
    }

    /// Notes the end of a finite flow.
    pub(crate) fn check_completion(&mut self) {
        if self.board.una() == self.packets && self.completed.is_none() {
            self.completed = Some(self.path.now);
        }
    }
}

impl Endpoint for Sender {
    type Packet = Segment;

    #[inline]
    fn handle(&mut self, now: Time, segment: &Segment) {
        self.path.now = now;
        match self.stage {
            Stage::Established => {
                if !segment.flags.contains(Flags::SYN) {
                    self.on_acknowledgement(segment);
                }
            }
            Stage::Opening { syn_sent: Some(sent), attempts }
                if segment.flags.contains(Flags::SYN) =>
            {
                self.on_syn_ack(segment, sent, attempts);
            }
            Stage::Opening { .. } => {}
        }
    }

    #[inline]
    fn poll(&mut self, now: Time) -> Option<Segment> {
        self.path.now = now;
        if let Stage::Opening { attempts, .. } = self.stage {
            return (now >= self.timer.0 && now < self.stop).then(|| self.send_syn(attempts));
        }
        if now >= self.timer.0 {
            self.on_retransmission_timer();
        }
        if now >= self.cc_timer {
            self.cc.on_timer(&self.path);
            self.refresh();
        }
        if self.burst == 0 && !self.plan_burst() {
            return None;
        }
        Some(self.emit())
    }

    #[inline]
    fn next_timeout(&self) -> Time {
        if self.stage != Stage::Established && self.timer.0 >= self.stop {
            return Time::MAX;
        }
        self.timer.0.min(self.wake).min(self.cc_timer)
    }
}
