//! The sending side of a connection: its state, the handshake and the endpoint's interface.
//!
//! | module | contents | Linux |
//! |---|---|---|
//! | `acknowledge` | what an acknowledgement changes | `tcp_ack` |
//! | `fastretrans_alert` | the state of loss recovery | `tcp_fastretrans_alert` |
//! | `transmit` | which packets leave, and when | `tcp_write_xmit` |
//! | `timer` | retransmission timeout, tail loss probe, RACK's reordering timer | `tcp_timer.c` |
//! | `queue` | a sender whose user enqueues packets | `tcp_sendmsg` with `TCP_NODELAY` |
//! | `subflow` | a sender as a subflow of a multipath connection | MPTCP v0.95 |

mod acknowledge;
mod fastretrans_alert;
mod queue;
mod subflow;
#[cfg(test)]
mod tests;
mod timer;
mod transmit;

use timer::Timer;
use transmit::CwndUsage;

use crate::dialogue::{Conversation, Dialogue};
use crate::pacing;
use crate::prr::Prr;
use crate::rack::Rack;
use crate::rtt::{RttEstimator, rtt_from_tsecr, timestamp};
use crate::scoreboard::Scoreboard;
use crate::send_buffer::SendBuffer;
use crate::stack::TCP_INIT_CWND;
use crate::undo::Undo;
use crate::{Flags, Segment, Stack};
use dumbbell_cc::{
    Algorithm, CongestionControl, CongestionEvent, ControlParameters, Metric, Path, RateSampler,
    SenderStats,
};
use dumbbell_net::{Application, Endpoint, prefetch};
use dumbbell_units::{Rate, Span, Time};
use std::sync::Arc;

/// SYN retransmissions one second apart; the timeout doubles after these
/// (`tcp_syn_linear_timeouts`, since Linux 6.5).
const LINEAR_SYNS: u32 = 4;

/// Parameters of a [`Sender`].
pub struct SenderConfig {
    /// TCP behaviours.
    pub stack: Arc<Stack>,
    /// Congestion control, created for this connection.
    pub algorithm: Algorithm,
    /// Time of the first SYN.
    pub start: Time,
    /// Time after which no new data is sent; `None` for no limit.
    pub stop: Option<Time>,
    /// Payload bytes of the flow; `None` for an unlimited flow.
    pub bytes: Option<u64>,
    /// The application's write rates, each from a time after the handshake on. Empty: the
    /// application always has data to send.
    pub app_rates: Vec<(Span, Rate)>,
}

#[cfg(test)]
impl SenderConfig {
    /// A connection that begins at 0 and always has data.
    pub(crate) fn of(stack: Stack, cc: &str) -> SenderConfig {
        let window = f64::from(stack.initial_window);
        let init = dumbbell_cc::ConnectionConfig::new(Time::ZERO, 1448)
            .with_seed(1)
            .with_initial_window(window);
        SenderConfig {
            stack: Arc::new(stack),
            algorithm: Algorithm::parse(cc, &init).expect("a built-in algorithm"),
            start: Time::ZERO,
            stop: None,
            bytes: None,
            app_rates: Vec::new(),
        }
    }
}

/// What the application writes, if not all at once.
enum Source {
    Rates(Application),
    Dialogue(Conversation),
}

/// What an acknowledgement lets the sender retransmit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rexmit {
    /// Nothing (Linux `REXMIT_NONE`).
    None,
    /// What is lost (Linux `REXMIT_LOST`).
    Lost,
    /// New packets go before retransmissions: F-RTO's step 2b (Linux `REXMIT_NEW`).
    New,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionState {
    /// The SYN or the SYN-ACK is outstanding.
    Connecting {
        syn_sent_at: Option<Time>,
        syns_sent: u32,
    },
    /// A joining subflow waits for the fourth acknowledgement of its handshake.
    PreEstablished,
    Established,
}

/// An outstanding tail loss probe (RFC 8985, section 7.4).
#[derive(Clone, Copy, Debug)]
struct TailLossProbe {
    /// The next sequence number when the probe was sent (TLP.end_seq, Linux `tlp_high_seq`).
    end_seq: u32,
    /// Whether the probe was a retransmission (TLP.is_retrans, Linux `tlp_retrans`).
    is_retrans: bool,
}

/// The sending side of a connection.
pub struct Sender {
    stack: Arc<Stack>,
    cc: Algorithm,
    control: ControlParameters,
    cc_timer: Time,
    state: ConnectionState,
    stop: Time,
    bytes: Option<u64>,
    packets: u32,
    /// Of a subflow: the end of the buffer that is sent next, and whether its last packet has to wait.
    skb_end: u32,
    last_of_skb_waits: bool,
    /// Whether it joined a connection that another subflow opened.
    joins: bool,
    application: Option<Box<Source>>,
    /// Of a connection that is not established, when it begins.
    established_at: Time,
    path: Path,
    scoreboard: Scoreboard,
    rtt: RttEstimator,
    rtt_sum: (f64, u64),
    rate: RateSampler,
    rack: Rack,
    /// DupThresh loss detection has marked every packet below this that it considers lost.
    dupthresh_cursor: u32,
    prr: Option<Prr>,
    /// The window while it grows back after a recovery; see `Stack::max_burst`.
    post_recovery_cwnd: Option<u32>,
    /// The next sequence number when the current episode began; the episode ends when it is
    /// acknowledged.
    high_seq: u32,
    undo: Undo,
    /// F-RTO (RFC 5682) may still find the last timeout spurious (Linux `tp->frto`).
    frto: bool,
    rexmit: Rexmit,
    /// Whether the retransmission timer expired since the cumulative acknowledgement advanced
    /// (Linux `icsk_retransmits > 0`).
    rto_since_advance: bool,
    /// First packet beyond the peer's receive window (Linux `tcp_wnd_end`).
    window_end: u32,
    /// The receiver's timestamp to echo (RFC 7323: TS.Recent).
    ts_recent: u16,
    send_buffer: SendBuffer,
    tlp: Option<TailLossProbe>,
    /// The next packet is a tail loss probe that retransmits the last packet sent.
    tlp_retransmits: bool,
    /// The next new packet carries CWR (Linux `TCP_ECN_QUEUE_CWR`).
    cwr_pending: bool,
    /// L4S: the peer's count of marked packets, modulo 256 (RFC 9768: `s.cep`).
    cep: u8,
    timer: Timer,
    /// When pacing or the application lets the next packet leave; `Time::MAX` if neither is the
    /// limit.
    wake_at: Time,
    /// Packets of the current burst that are not sent yet.
    burst_left: u32,
    /// Whether the burst's last packet has PSH: it has several packets (`__tcp_transmit_skb`) or
    /// ends the application's data (`tcp_push`).
    burst_ends_with_psh: bool,
    last_sent_at: Time,
    app_limited: bool,
    /// Whether a packet was sent since sending last stopped (`sent_pkts` of `tcp_write_xmit`).
    sent_since_stop: bool,
    cwnd_usage: CwndUsage,
    /// Packets marked lost by the current event.
    newly_lost: Vec<u32>,
    sent: u64,
    retransmitted: u64,
    /// Retransmissions that the receiver reported as duplicates (Linux `dsack_dups`); `Path::delivered`
    /// counts them.
    dsacks: u32,
    timeouts: u32,
    recoveries: u32,
    /// Episodes reported to the algorithm: losses, ECN and timeouts.
    episodes: u32,
    spurious: u32,
    completed: Option<Time>,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Sender>() == 1152);

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
        let mut path = Path::new(u32::from(stack.mss), start);
        path.jiffy = Span::from_nanos(stack.tick_ns);
        Sender {
            cc: algorithm,
            control,
            cc_timer: Time::MAX,
            state: ConnectionState::Connecting { syn_sent_at: None, syns_sent: 0 },
            stop: stop.unwrap_or(Time::MAX),
            bytes,
            packets,
            skb_end: u32::MAX,
            last_of_skb_waits: false,
            joins: false,
            application: Application::from_rates(&app_rates, stack.mss)
                .map(|application| Box::new(Source::Rates(application))),
            established_at: start,
            path,
            scoreboard: Scoreboard::new(),
            rtt: RttEstimator::new(
                Span::from_nanos(stack.min_rto_ns),
                stack.rto,
                Span::from_nanos(stack.tick_ns),
            ),
            rtt_sum: (0.0, 0),
            rate: RateSampler::new(start),
            rack: Rack::new(),
            dupthresh_cursor: 0,
            prr: None,
            post_recovery_cwnd: None,
            high_seq: 0,
            undo: Undo::default(),
            frto: false,
            rexmit: Rexmit::Lost,
            rto_since_advance: false,
            window_end: 0,
            ts_recent: 0,
            send_buffer: SendBuffer::new(&stack),
            tlp: None,
            tlp_retransmits: false,
            cwr_pending: false,
            cep: 0,
            timer: Timer::rto(start),
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
            dsacks: 0,
            timeouts: 0,
            recoveries: 0,
            episodes: 0,
            spurious: 0,
            completed: None,
            stack,
        }
    }

    /// The same sender with an application that writes messages, each in packets of its own and when
    /// the one before is delivered.
    #[must_use]
    pub fn with_dialogue(mut self, dialogue: Box<dyn Dialogue>) -> Sender {
        self.application = Some(Box::new(Source::Dialogue(Conversation::new(dialogue))));
        (self.bytes, self.packets) = (Some(0), 0);
        self
    }

    /// Counters and current values.
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
            delivered: self.delivered(),
            ca_state: self.path.ca_state,
            timeouts: self.timeouts,
            recoveries: self.recoveries,
            spurious: self.spurious,
            completed: self.completed,
        }
    }

    /// Packets delivered, each once.
    pub(crate) fn delivered(&self) -> u64 {
        self.path.delivered - u64::from(self.dsacks)
    }

    /// Payload bytes delivered, in any order.
    pub fn delivered_bytes(&self) -> u64 {
        let delivered = self.delivered() * u64::from(self.stack.mss);
        let Some(bytes) = self.bytes else { return delivered };
        let unfilled = match self.application.as_deref() {
            Some(Source::Dialogue(dialogue)) => bytes - dialogue.written,
            _ => 0,
        };
        (delivered - unfilled).min(bytes - unfilled)
    }

    /// Reports the algorithm's internal variables.
    pub fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.cc.inspect(show);
    }

    /// The congestion window in force: PRR's during a reduction, otherwise the algorithm's. Whole
    /// packets, at least one.
    #[inline]
    fn cwnd(&self) -> u32 {
        match &self.prr {
            Some(prr) => prr.cwnd().max(1),
            None => {
                (self.control.cwnd as u32).min(self.post_recovery_cwnd.unwrap_or(u32::MAX)).max(1)
            }
        }
    }

    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        let packets_out = self.scoreboard.packets_out();
        pacing::pacing_rate(&self.control, self.cwnd(), packets_out, self.path.srtt, self.path.mss)
    }

    /// Reads the algorithm's window and pacing rate after an event. If it has no rate, an acknowledgement
    /// sets one (`tcp_update_pacing_rate`).
    #[inline(always)]
    fn update_control(&mut self) {
        self.control = self.cc.control();
        self.path.paced = self.stack.pacing || self.control.pacing_rate.is_some();
        self.path.pacing_rate = self.control.pacing_rate.or(self.path.pacing_rate);
        self.cc_timer = self.cc.next_timer().unwrap_or(Time::MAX);
    }

    /// Begins a window reduction: PRR moves the window to the one that the algorithm has set
    /// (`tcp_init_cwnd_reduction`).
    fn init_cwnd_reduction(&mut self, prior_cwnd: u32) {
        self.high_seq = self.scoreboard.next_seq();
        self.tlp = None;
        self.post_recovery_cwnd = None;
        self.cwr_pending = true;
        self.prr = self.cc.uses_prr().then(|| Prr::new(prior_cwnd));
    }

    /// Whether the window limits sending (`tcp_is_cwnd_limited`).
    #[inline]
    fn is_cwnd_limited(&self) -> bool {
        let cwnd = self.cwnd();
        self.cwnd_usage.is_cwnd_limited
            || f64::from(cwnd) < self.control.ssthresh && cwnd < 2 * self.cwnd_usage.max_packets_out
    }

    /// Sends a SYN or a third acknowledgement, if one is due.
    #[cold]
    fn poll_handshake(&mut self) -> Option<Segment> {
        let now = self.path.now;
        if now < self.timer.expires || now >= self.stop {
            return None;
        }
        match self.state {
            ConnectionState::Connecting { syns_sent, .. } => Some(self.send_syn(syns_sent)),
            ConnectionState::PreEstablished => Some(self.send_third_ack()),
            ConnectionState::Established => None,
        }
    }

    fn send_syn(&mut self, syns_sent: u32) -> Segment {
        let now = self.path.now;
        self.state =
            ConnectionState::Connecting { syn_sent_at: Some(now), syns_sent: syns_sent + 1 };
        self.timer = Timer::rto(self.expiry(self.rtt.rto()));
        if syns_sent >= LINEAR_SYNS {
            self.rtt.back_off();
        }
        Segment {
            timestamp: timestamp(now),
            size: self.stack.control_size(),
            flags: Flags::SYN.with(self.stack.control_ect()),
            ..Segment::default()
        }
    }

    fn on_syn_ack(&mut self, segment: &Segment, syn_sent_at: Time, syns_sent: u32) {
        let now = self.path.now;
        let first_syn_at = self.established_at;
        self.window_end = segment.window();
        self.ts_recent = segment.tsval();
        self.rtt.reset_backoff();
        if self.joins {
            self.state = ConnectionState::PreEstablished;
            self.timer = Timer::rto(now);
        } else {
            self.establish();
        }
        if syns_sent == 1 || self.stack.timestamps() {
            let rtt = match syns_sent {
                1 => now.since(syn_sent_at),
                _ => rtt_from_tsecr(now, segment.timestamp),
            };
            self.rtt.update_min(rtt);
            self.rtt.update(rtt, 0, 0);
            self.path.srtt = self.rtt.srtt();
            self.path.min_rtt = self.rtt.min();
        } else {
            self.rtt.fall_back();
        }
        self.cc.on_established(&self.path);
        // More than one SYN was retransmitted, and it is not the first one that is answered
        // (`tcp_init_transfer`, `tcp_try_undo_spurious_syn`).
        let answers_first = self.stack.timestamps() && segment.timestamp == timestamp(first_syn_at);
        if syns_sent > 2 && !answers_first {
            self.cc.on_restart_after_idle(1.0);
        }
        self.update_control();
        // The rate is set before the window (`tcp_rcv_synsent_state_process`).
        let (srtt, mss) = (self.path.srtt, self.path.mss);
        self.path.pacing_rate = pacing::pacing_rate(&self.control, TCP_INIT_CWND, 0, srtt, mss);
    }

    fn establish(&mut self) {
        self.state = ConnectionState::Established;
        self.established_at = self.path.now;
        self.timer = Timer::OFF;
    }

    /// Reports congestion to the algorithm and reads its new window.
    fn notify_congestion(&mut self, event: &CongestionEvent) {
        self.episodes += u32::from(event.new_episode);
        self.cc.on_congestion(&self.path, event);
        self.update_control();
    }

    /// Records when a finite flow is completely acknowledged.
    fn check_completion(&mut self) {
        if self.scoreboard.una() == self.packets && self.completed.is_none() {
            self.on_all_delivered();
        }
    }

    #[cold]
    fn on_all_delivered(&mut self) {
        let now = self.path.now;
        let is_over = match self.application.as_deref_mut() {
            Some(Source::Dialogue(dialogue)) => dialogue.on_delivered(now),
            _ => true,
        };
        self.completed = is_over.then_some(now);
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
            ConnectionState::Connecting { syn_sent_at: Some(syn_sent_at), syns_sent }
                if segment.flags.contains(Flags::SYN) =>
            {
                self.on_syn_ack(segment, syn_sent_at, syns_sent);
            }
            ConnectionState::PreEstablished if !segment.flags.contains(Flags::SYN) => {
                self.establish();
            }
            ConnectionState::Connecting { .. } | ConnectionState::PreEstablished => {}
        }
    }

    #[inline(always)]
    fn poll(&mut self, now: Time) -> Option<Segment> {
        self.path.now = now;
        if !self.is_established() {
            return self.poll_handshake();
        }
        if now >= self.timer.expires {
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
        if !self.is_established() && self.timer.expires >= self.stop {
            return Time::MAX;
        }
        self.timer.expires.min(self.wake_at).min(self.cc_timer)
    }
}
