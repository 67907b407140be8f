//! The sending side: its state, the handshake, and what drives it. What it sends is decided in
//! `transmit.rs`, what acknowledgements do to it in `acknowledge.rs`, what happens when none come
//! in `timer.rs`, and what a multipath connection does with it in `subflow.rs`; all follow Linux's
//! order of doing things.

mod acknowledge;
mod subflow;
mod timer;
mod transmit;

use timer::TimerKind;
use transmit::CwndUsage;

use crate::pacing::{self, Pacer};
use crate::prr::Prr;
use crate::rack::Rack;
use crate::rtt::{RttEstimator, rtt_from_tsecr, timestamp};
use crate::scoreboard::Scoreboard;
use crate::undo::Undo;
use crate::{Flags, Segment, Stack};
use dumbbell_cc::{
    Algorithm, CongestionControl, CongestionEvent, ControlParameters, Metric, Path, RateSampler,
    SenderStats,
};
use dumbbell_net::{Application, Endpoint, prefetch};
use dumbbell_units::{Rate, Span, Time};
use std::sync::Arc;

/// SYNs that are sent again after a second each; from then on the pause doubles
/// (tcp_syn_linear_timeouts, Linux 6.5).
const LINEAR_SYNS: u32 = 4;

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
    /// The rates at which the application writes, from how long after the beginning on; without
    /// any, data is always waiting.
    pub app_rates: Vec<(Span, Rate)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionState {
    /// Waiting for the start, or for the SYN-ACK.
    Connecting {
        syn_sent_at: Option<Time>,
        syns_sent: u32,
    },
    Established,
}

/// The sending side of a connection.
pub struct Sender {
    stack: Arc<Stack>,
    cc: Algorithm,
    control: ControlParameters,
    cc_timer: Time,
    own_recovery: bool,
    state: ConnectionState,
    stop: Time,
    bytes: Option<u64>,
    packets: u32,
    /// Whether a multipath connection hands over packets as they fit: where those end, no write does.
    is_subflow: bool,
    application: Option<Box<Application>>,
    established_at: Time,
    path: Path,
    scoreboard: Scoreboard,
    rtt: RttEstimator,
    rtt_sum: (f64, u64),
    rate: RateSampler,
    rack: Rack,
    dupthresh_cursor: u32,
    prr: Option<Prr>,
    /// The window in force while it grows back after a recovery (`Stack::max_burst`).
    post_recovery_cwnd: Option<u32>,
    /// `next` when the present episode began; it ends when this is acknowledged.
    high_seq: u32,
    undo: Undo,
    /// Whether what is delivered may show that the last timeout was spurious (tp->frto).
    frto: bool,
    /// Whether new packets go before those to be sent again, so that their acknowledgements tell
    /// (REXMIT_NEW).
    frto_send_new: bool,
    /// Whether the timer expired since the cumulative acknowledgement advanced (icsk_retransmits).
    rto_since_advance: bool,
    /// First packet that the peer's window does not cover.
    window_end: u32,
    /// `next` when a tail loss probe was sent, and whether it was a retransmission.
    tlp: Option<(u32, bool)>,
    /// The probe that is due repeats the last packet.
    tlp_retransmits: bool,
    cwr_pending: bool,
    timer: (Time, TimerKind),
    pacer: Pacer,
    /// When pacing or the application lets the next packet go, if that is what is waited for.
    wake_at: Time,
    /// Packets left of the burst that is being sent.
    burst_left: u32,
    /// Whether its last one has PSH: it is of several packets, or all that was written
    /// (__tcp_transmit_skb, tcp_push).
    burst_ends_with_psh: bool,
    last_sent_at: Time,
    app_limited: bool,
    sent_since_stop: bool,
    cwnd_usage: CwndUsage,
    newly_lost: Vec<u32>,
    sent: u64,
    retransmitted: u64,
    timeouts: u32,
    recoveries: u32,
    /// Episodes that the algorithm was told of, whatever began them.
    episodes: u32,
    spurious: u32,
    completed: Option<Time>,
}

impl Sender {
    /// Prefetches the sender's own cache lines.
    #[inline]
    pub fn prefetch(&self) {
        prefetch(self);
    }

    /// Prefetches the scoreboard; call it once the sender itself is in the cache.
    #[inline]
    pub fn prefetch_scoreboard(&self) {
        self.scoreboard.prefetch();
    }

    /// A sender that connects at `config.start`.
    pub fn new(config: SenderConfig) -> Sender {
        let SenderConfig { stack, algorithm, start, stop, bytes, app_rates } = config;
        let mss = u64::from(stack.mss);
        let packets = bytes.map_or(u32::MAX, |bytes| bytes.div_ceil(mss) as u32);
        let control = algorithm.control();
        Sender {
            own_recovery: !algorithm.uses_prr(),
            cc: algorithm,
            control,
            cc_timer: Time::MAX,
            state: ConnectionState::Connecting { syn_sent_at: None, syns_sent: 0 },
            stop: stop.unwrap_or(Time::MAX),
            bytes,
            packets,
            is_subflow: false,
            application: Application::from_rates(&app_rates, stack.mss).map(Box::new),
            established_at: start,
            path: Path {
                jiffy: Span::from_nanos(stack.tick_ns),
                ..Path::new(u32::from(stack.mss), start)
            },
            scoreboard: Scoreboard::new(),
            rtt: RttEstimator::new(Span::from_nanos(stack.min_rto_ns), stack.rto),
            rtt_sum: (0.0, 0),
            rate: RateSampler::new(start),
            rack: Rack::new(),
            dupthresh_cursor: 0,
            prr: None,
            post_recovery_cwnd: None,
            high_seq: 0,
            undo: Undo::default(),
            frto: false,
            frto_send_new: false,
            rto_since_advance: false,
            window_end: 0,
            tlp: None,
            tlp_retransmits: false,
            cwr_pending: false,
            timer: (start, TimerKind::Rto),
            pacer: Pacer::default(),
            wake_at: Time::MAX,
            burst_left: 0,
            burst_ends_with_psh: false,
            last_sent_at: Time::ZERO,
            app_limited: false,
            sent_since_stop: false,
            cwnd_usage: CwndUsage::default(),
            newly_lost: Vec::new(),
            sent: 0,
            retransmitted: 0,
            timeouts: 0,
            recoveries: 0,
            episodes: 0,
            spurious: 0,
            completed: None,
            stack,
        }
    }

    /// Counters and present values.
    pub fn stats(&self) -> SenderStats {
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
            ca_state: self.path.ca_state,
            timeouts: self.timeouts,
            recoveries: self.recoveries,
            spurious: self.spurious,
            completed: self.completed,
        }
    }

    /// Payload bytes cumulatively acknowledged.
    pub fn acked_bytes(&self) -> u64 {
        let acked = u64::from(self.scoreboard.una()) * u64::from(self.stack.mss);
        self.bytes.map_or(acked, |bytes| acked.min(bytes))
    }

    /// Shows the algorithm's internals.
    pub fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.cc.inspect(show);
    }

    /// The window in force: during a reduction PRR's, otherwise the algorithm's; whole packets, at
    /// least one.
    #[inline]
    fn cwnd(&self) -> u32 {
        match &self.prr {
            Some(prr) => prr.cwnd().max(1),
            None => {
                (self.control.cwnd as u32).min(self.post_recovery_cwnd.unwrap_or(u32::MAX)).max(1)
            }
        }
    }

    /// A window that was just cut does not slow down the packets that are still out.
    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        let packets = f64::from(self.cwnd().max(self.scoreboard.packets_out()));
        pacing::pacing_rate(&self.control, packets, self.path.srtt, self.path.mss)
    }

    /// Asks the algorithm again after it was told something.
    #[inline(always)]
    fn update_control(&mut self) {
        self.control = self.cc.control();
        self.path.paced = self.stack.pacing || self.control.pacing_rate.is_some();
        self.path.pacing_rate = self.pacing_rate();
        self.cc_timer = self.cc.next_timer().unwrap_or(Time::MAX);
    }

    /// Begins a window reduction: the algorithm has set its window, PRR leads there.
    fn init_cwnd_reduction(&mut self, prior_cwnd: u32) {
        self.high_seq = self.scoreboard.next_seq();
        self.tlp = None;
        self.post_recovery_cwnd = None;
        self.cwr_pending = true;
        self.prr = (!self.own_recovery).then(|| Prr::new(self.control.cwnd, prior_cwnd));
    }

    /// Whether the window is what limits sending (tcp_is_cwnd_limited).
    #[inline]
    fn is_cwnd_limited(&self) -> bool {
        let cwnd = self.cwnd();
        self.cwnd_usage.is_cwnd_limited
            || f64::from(cwnd) < self.control.ssthresh && cwnd < 2 * self.cwnd_usage.max_packets_out
    }

    fn send_syn(&mut self, attempts: u32) -> Segment {
        let now = self.path.now;
        self.state =
            ConnectionState::Connecting { syn_sent_at: Some(now), syns_sent: attempts + 1 };
        self.timer = (now + self.rtt.rto(), TimerKind::Rto);
        if attempts >= LINEAR_SYNS {
            self.rtt.back_off();
        }
        Segment {
            timestamp: timestamp(now),
            size: self.stack.control_size(),
            flags: Flags::SYN,
            ..Segment::default()
        }
    }

    fn on_syn_ack(&mut self, segment: &Segment, syn_sent: Time, attempts: u32) {
        let now = self.path.now;
        self.state = ConnectionState::Established;
        self.established_at = now;
        self.window_end = segment.window;
        self.rtt.reset_backoff();
        self.timer = (Time::MAX, TimerKind::Rto);
        if attempts == 1 || self.stack.timestamps() {
            let rtt = match attempts {
                1 => now.since(syn_sent),
                _ => rtt_from_tsecr(now, segment.timestamp),
            };
            self.rtt.update_min(rtt);
            self.rtt.update(rtt, 0, 0);
            self.path.srtt = self.rtt.srtt();
            self.path.min_rtt = self.rtt.min();
        }
        self.cc.on_established(&self.path);
        self.update_control();
    }

    /// Tells the algorithm of congestion and takes its answer.
    fn notify_congestion(&mut self, event: &CongestionEvent) {
        self.episodes += u32::from(event.new_episode);
        self.cc.on_congestion(&self.path, event);
        self.update_control();
    }

    /// Notes the end of a finite flow.
    fn check_completion(&mut self) {
        if self.scoreboard.una() == self.packets && self.completed.is_none() {
            self.completed = Some(self.path.now);
        }
    }
}

impl Endpoint for Sender {
    type Packet = Segment;

    #[inline(always)]
    fn handle(&mut self, now: Time, segment: &Segment) {
        self.path.now = now;
        match self.state {
            ConnectionState::Established => {
                if !segment.flags.contains(Flags::SYN) {
                    self.on_acknowledgement(segment);
                }
            }
            ConnectionState::Connecting { syn_sent_at: Some(sent), syns_sent: attempts }
                if segment.flags.contains(Flags::SYN) =>
            {
                self.on_syn_ack(segment, sent, attempts);
            }
            ConnectionState::Connecting { .. } => {}
        }
    }

    #[inline(always)]
    fn poll(&mut self, now: Time) -> Option<Segment> {
        self.path.now = now;
        if let ConnectionState::Connecting { syns_sent: attempts, .. } = self.state {
            return (now >= self.timer.0 && now < self.stop).then(|| self.send_syn(attempts));
        }
        if now >= self.timer.0 {
            self.on_retransmission_timer();
        }
        if now >= self.cc_timer {
            self.cc.on_timer(&self.path);
            self.update_control();
        }
        if self.burst_left == 0 && !self.plan_burst() {
            return None;
        }
        Some(self.transmit())
    }

    #[inline]
    fn next_timeout(&self) -> Time {
        if self.state != ConnectionState::Established && self.timer.0 >= self.stop {
            return Time::MAX;
        }
        self.timer.0.min(self.wake_at).min(self.cc_timer)
    }
}
