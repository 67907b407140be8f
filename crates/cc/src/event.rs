//! The facts that a transport passes to an algorithm, and the parameters that it gets back.
//!
//! The structs are `#[non_exhaustive]`, because new facts will come. All fields are public. Another
//! crate begins with `new` (or `default`) and sets fields, by name or with `with_*`.

use crate::ext::{Multipath, UdtReport};
use dumbbell_units::{Rate, Span, Time};

/// The state of a path, kept up to date by the transport.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Path {
    /// Current time.
    pub now: Time,
    /// Tick of the transport's coarse clock (Linux's jiffy); zero if it has none.
    pub jiffy: Span,
    /// Payload bytes of a full-sized packet. See
    /// [`on_mtu_update`](crate::CongestionControl::on_mtu_update) for changes.
    pub mss: u32,
    /// Smoothed round-trip time (RFC 6298); `None` before the first sample.
    pub srtt: Option<Span>,
    /// Minimum round-trip time of the connection; `None` before the first sample.
    pub min_rtt: Option<Span>,
    /// Packets sent and neither acknowledged, selectively acknowledged, marked lost nor discarded.
    /// A retransmission counts again.
    pub in_flight: u32,
    /// Packets delivered since the connection began, in any order.
    pub delivered: u64,
    /// When `delivered` last changed.
    pub delivered_at: Time,
    /// Packets marked lost since the connection began.
    pub lost: u64,
    /// Packets delivered with an ECN mark since the connection began.
    pub marked: u64,
    /// Loss recovery state.
    pub ca_state: CaState,
    /// The window that proportional rate reduction (RFC 9937) has in force, packets; `None` while the
    /// algorithm's is.
    pub prr_cwnd: Option<u32>,
    /// Whether the window, not the application or the peer, limited sending in the last round
    /// (RFC 7661; RFC 9438, section 5.8). Windows grow only then. In slow start, half a window in
    /// use is enough.
    pub cwnd_limited: bool,
    /// Whether the whole window was in use in the last round (Linux's `tp->is_cwnd_limited`).
    pub window_full: bool,
    /// Sequence number of the next new packet, counted in packets from 0.
    pub next_seq: u64,
    /// Sequence number of the first packet not yet acknowledged cumulatively (Linux's `snd_una`),
    /// the current acknowledgement included.
    pub una: u64,
    /// Whether the transport paces.
    pub paced: bool,
    /// Whether this is a subflow of a multipath connection.
    pub is_subflow: bool,
    /// Rate at which the transport paces, or would pace if it did (Linux's `sk_pacing_rate`, which
    /// also sizes bursts); `None` before the first round-trip time sample.
    pub pacing_rate: Option<Rate>,
    /// When pacing lets the next packet depart (Linux's `tcp_wstamp_ns`), or when the last one did if
    /// nothing is paced.
    pub departure: Time,
    /// Facts of a multipath connection; empty on a single path.
    pub multipath: Multipath,
}

impl Path {
    /// A path without any measurement.
    pub fn new(mss: u32, now: Time) -> Path {
        Path {
            now,
            jiffy: Span::ZERO,
            mss,
            srtt: None,
            min_rtt: None,
            in_flight: 0,
            delivered: 0,
            delivered_at: now,
            lost: 0,
            marked: 0,
            ca_state: CaState::Open,
            prr_cwnd: None,
            cwnd_limited: false,
            window_full: false,
            next_seq: 0,
            una: 0,
            paced: false,
            is_subflow: false,
            pacing_rate: None,
            departure: Time::ZERO,
            multipath: Multipath::default(),
        }
    }

    /// A packet leaves now, and the next one departs after the time that it takes at `rate`.
    #[inline]
    pub fn pace(&mut self, rate: Rate) {
        self.departure = self.departure.max(self.now) + rate.time_for(f64::from(self.mss));
    }

    /// Current time by the coarse clock: the latest jiffy.
    #[inline]
    pub fn jiffies_now(&self) -> Time {
        let (now, jiffy) = (self.now.as_nanos(), self.jiffy.as_nanos());
        Time::from_nanos(if jiffy == 0 { now } else { now - now % jiffy })
    }
}

/// Loss recovery state, as in Linux (`enum tcp_ca_state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CaState {
    /// No sign of trouble.
    #[default]
    Open,
    /// Packets were selectively acknowledged out of order; none is marked lost.
    Disorder,
    /// The window is being reduced after an ECN echo.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// Recovery after a retransmission timeout.
    Loss,
}

impl CaState {
    /// Whether a window reduction is in progress. Windows do not grow then.
    #[inline]
    pub fn is_reducing(self) -> bool {
        matches!(self, CaState::Cwr | CaState::Recovery)
    }
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Ack {
    /// Packets newly delivered, cumulatively or selectively.
    pub delivered: u32,
    /// Packets by which windows grow (Linux's `acked` in `cong_avoid`): `delivered` with byte
    /// counting (RFC 3465), 1 if the stack counts acknowledgements, 0 if windows must not grow.
    pub acked: u32,
    /// Packets marked lost by this acknowledgement.
    pub lost: u32,
    /// Newly delivered packets that carried an ECN mark.
    pub marked: u32,
    /// Round-trip time of the newest packet acknowledged; `None` if it was retransmitted.
    pub rtt: Option<Span>,
    /// Packets in flight before this acknowledgement.
    pub prior_in_flight: u32,
    /// Delivery rate sample, if there is one.
    pub rate: Option<RateSample>,
    /// The receiver's measurements; only in UDT.
    pub udt: Option<UdtReport>,
}

impl Ack {
    /// An acknowledgement of `delivered` packets, by all of which windows grow.
    #[inline]
    pub const fn new(delivered: u32) -> Ack {
        Ack {
            delivered,
            acked: delivered,
            lost: 0,
            marked: 0,
            rtt: None,
            prior_in_flight: 0,
            rate: None,
            udt: None,
        }
    }

    /// The same with the packets by which windows grow.
    #[inline]
    #[must_use]
    pub const fn with_acked(mut self, acked: u32) -> Ack {
        self.acked = acked;
        self
    }

    /// The same with packets marked lost.
    #[inline]
    #[must_use]
    pub const fn with_lost(mut self, lost: u32) -> Ack {
        self.lost = lost;
        self
    }

    /// The same with ECN-marked packets.
    #[inline]
    #[must_use]
    pub const fn with_marked(mut self, marked: u32) -> Ack {
        self.marked = marked;
        self
    }

    /// The same with a round-trip time.
    #[inline]
    #[must_use]
    pub const fn with_rtt(mut self, rtt: Option<Span>) -> Ack {
        self.rtt = rtt;
        self
    }

    /// The same with the packets in flight before.
    #[inline]
    #[must_use]
    pub const fn with_prior_in_flight(mut self, packets: u32) -> Ack {
        self.prior_in_flight = packets;
        self
    }

    /// The same with a delivery rate sample.
    #[inline]
    #[must_use]
    pub const fn with_rate(mut self, rate: Option<RateSample>) -> Ack {
        self.rate = rate;
        self
    }

    /// The same with a UDT receiver's measurements.
    #[inline]
    #[must_use]
    pub const fn with_udt(mut self, report: UdtReport) -> Ack {
        self.udt = Some(report);
        self
    }

    /// `acked` as a stack would have counted it that counts packets (Linux's `delayed_ack` ratio);
    /// `acked` itself with byte counting.
    ///
    /// Linux's BIC, CUBIC, H-TCP, Illinois and YeAH grew by packets while the rest of the kernel
    /// still counted acknowledgements.
    #[inline]
    pub fn scale_to_packets(&self, acked: f64) -> f64 {
        if self.acked == 0 || self.delivered <= self.acked {
            return acked;
        }
        acked * f64::from(self.delivered) / f64::from(self.acked)
    }
}

/// A delivery rate sample (draft-cheng-iccrg-delivery-rate-estimation).
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct RateSample {
    /// Packets delivered over the interval.
    pub delivered: u32,
    /// The longer of the send interval and the acknowledgement interval.
    pub interval: Span,
    /// Delivery rate: `delivered` packets of `mss` bytes over `interval`.
    pub rate: Rate,
    /// The connection's state when the newest packet acknowledged was sent.
    pub send_state: SendState,
    /// Packets marked lost since that packet was sent.
    pub lost: u32,
    /// Packets delivered with an ECN mark since that packet was sent.
    pub marked: u32,
}

impl RateSample {
    /// A sample of `delivered` packets without losses and marks.
    #[inline]
    pub const fn new(
        delivered: u32,
        interval: Span,
        rate: Rate,
        send_state: SendState,
    ) -> RateSample {
        RateSample { delivered, interval, rate, send_state, lost: 0, marked: 0 }
    }
}

/// The connection's state when a packet was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendState {
    /// When the packet was sent.
    pub sent_at: Time,
    /// `Path::delivered` then.
    pub delivered: u64,
    /// `Path::lost` then, modulo 2^32.
    pub lost: u32,
    /// `Path::marked` then, modulo 2^32.
    pub marked: u32,
    /// Packets in flight then, this one included.
    pub in_flight: u32,
    /// Whether the application limited sending then.
    pub app_limited: bool,
}

/// The kind of a congestion signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A packet was marked lost, or several by a UDT NAK.
    Loss,
    /// An ECN mark was echoed.
    Ecn,
    /// The retransmission timer expired.
    Timeout,
}

/// A congestion signal.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CongestionEvent {
    /// The kind of the signal.
    pub signal: Signal,
    /// Whether this signal begins a new recovery episode.
    pub new_episode: bool,
    /// Packets that this signal reports lost (or marked, for ECN). 0 if every loss that opens this
    /// episode was already reported in the previous one.
    pub packets: u32,
    /// Sequence number, in packets, of the (first) lost packet.
    pub seq: u64,
    /// State when that packet was sent, if the transport has it.
    pub send_state: Option<SendState>,
    /// Whether a UDT NAK reported the loss.
    pub is_nak: bool,
}

impl CongestionEvent {
    /// A signal that begins an episode and reports one packet, number 0.
    #[inline]
    pub const fn new(signal: Signal) -> CongestionEvent {
        let (new_episode, packets, seq, send_state, is_nak) = (true, 1, 0, None, false);
        CongestionEvent { signal, new_episode, packets, seq, send_state, is_nak }
    }

    /// A loss that begins an episode.
    #[inline]
    pub const fn loss() -> CongestionEvent {
        CongestionEvent::new(Signal::Loss)
    }

    /// An ECN echo that begins an episode.
    #[inline]
    pub const fn ecn() -> CongestionEvent {
        CongestionEvent::new(Signal::Ecn)
    }

    /// A retransmission timeout that begins an episode.
    #[inline]
    pub const fn timeout() -> CongestionEvent {
        CongestionEvent::new(Signal::Timeout)
    }

    /// A retransmission timeout within an episode whose losses were reported before: RFC 9002's
    /// persistent congestion.
    #[inline]
    pub const fn persistent_congestion(path: &Path) -> CongestionEvent {
        CongestionEvent::timeout().with_new_episode(false).with_packets(0).with_seq(path.una)
    }

    /// The same, beginning an episode or not.
    #[inline]
    #[must_use]
    pub const fn with_new_episode(mut self, new_episode: bool) -> CongestionEvent {
        self.new_episode = new_episode;
        self
    }

    /// The same with the number of packets reported.
    #[inline]
    #[must_use]
    pub const fn with_packets(mut self, packets: u32) -> CongestionEvent {
        self.packets = packets;
        self
    }

    /// The same with the sequence number of the (first) lost packet.
    #[inline]
    #[must_use]
    pub const fn with_seq(mut self, seq: u64) -> CongestionEvent {
        self.seq = seq;
        self
    }

    /// The same with the state when the lost packet was sent.
    #[inline]
    #[must_use]
    pub const fn with_send_state(mut self, send_state: Option<SendState>) -> CongestionEvent {
        self.send_state = send_state;
        self
    }

    /// The same, reported by a UDT NAK or not.
    #[inline]
    #[must_use]
    pub const fn with_nak(mut self, is_nak: bool) -> CongestionEvent {
        self.is_nak = is_nak;
        self
    }
}

/// A packet just handed to the network.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Sent {
    /// Sequence number, in packets.
    pub seq: u64,
    /// Whether it is a retransmission.
    pub retransmission: bool,
    /// Whether nothing was in flight before it.
    pub from_idle: bool,
    /// Whether the application had run out of data before it, so that the flow restarts after a
    /// pause.
    pub app_limited: bool,
}

impl Sent {
    /// A new packet, not the first after a pause.
    #[inline]
    pub const fn new(seq: u64) -> Sent {
        Sent { seq, retransmission: false, from_idle: false, app_limited: false }
    }

    /// The same, a retransmission or not.
    #[inline]
    #[must_use]
    pub const fn with_retransmission(mut self, retransmission: bool) -> Sent {
        self.retransmission = retransmission;
        self
    }

    /// The same, sent with nothing in flight or not.
    #[inline]
    #[must_use]
    pub const fn with_from_idle(mut self, from_idle: bool) -> Sent {
        self.from_idle = from_idle;
        self
    }

    /// The same, sent after the application had run out of data or not.
    #[inline]
    #[must_use]
    pub const fn with_app_limited(mut self, app_limited: bool) -> Sent {
        self.app_limited = app_limited;
        self
    }
}

/// The parameters by which the transport sends.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ControlParameters {
    /// Congestion window, packets; at least 1.
    pub cwnd: f64,
    /// Slow start threshold, packets; infinite until the first congestion, or if the algorithm has
    /// none.
    pub ssthresh: f64,
    /// Pacing rate, if the algorithm sets one.
    pub pacing_rate: Option<Rate>,
    /// Minimum number of packets to send at once with segmentation offload (Linux's
    /// `min_tso_segs`), if the algorithm sets one.
    pub min_send_quantum: Option<u32>,
    /// Maximum number of packets to send at once, if the algorithm sets one.
    pub max_send_quantum: Option<u32>,
}

impl ControlParameters {
    /// A window of `cwnd` packets, without a threshold and without pacing.
    #[inline]
    pub const fn new(cwnd: f64) -> ControlParameters {
        let ssthresh = f64::INFINITY;
        ControlParameters {
            cwnd,
            ssthresh,
            pacing_rate: None,
            min_send_quantum: None,
            max_send_quantum: None,
        }
    }

    /// The same with a slow start threshold, packets.
    #[inline]
    #[must_use]
    pub const fn with_ssthresh(mut self, ssthresh: f64) -> ControlParameters {
        self.ssthresh = ssthresh;
        self
    }

    /// The same with a pacing rate.
    #[inline]
    #[must_use]
    pub const fn with_pacing_rate(mut self, rate: Option<Rate>) -> ControlParameters {
        self.pacing_rate = rate;
        self
    }

    /// The same with a minimum number of packets to send at once.
    #[inline]
    #[must_use]
    pub const fn with_min_send_quantum(mut self, packets: Option<u32>) -> ControlParameters {
        self.min_send_quantum = packets;
        self
    }

    /// The same with a maximum number of packets to send at once.
    #[inline]
    #[must_use]
    pub const fn with_max_send_quantum(mut self, packets: Option<u32>) -> ControlParameters {
        self.max_send_quantum = packets;
        self
    }

    /// The congestion window in bytes, for transports that count bytes: `cwnd * mss`, rounded down
    /// to a whole byte. It has no rounding to whole packets, so that slow growth is not lost.
    ///
    /// ```
    /// # use dumbbell_cc::ControlParameters;
    /// assert_eq!(ControlParameters::new(10.5).cwnd_bytes(1200), 12_600);
    /// assert_eq!(ControlParameters::new(1.9999).cwnd_bytes(1000), 1999);
    /// ```
    #[inline]
    pub fn cwnd_bytes(&self, mss: u32) -> u64 {
        (self.cwnd * f64::from(mss)) as u64
    }

    /// The slow start threshold in bytes, rounded down; `u64::MAX` if it is infinite.
    #[inline]
    pub fn ssthresh_bytes(&self, mss: u32) -> u64 {
        (self.ssthresh * f64::from(mss)) as u64
    }
}

/// A named value of an algorithm's internal state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// Its name in the paper or the draft.
    pub name: &'static str,
    /// Its value: rates in bytes/s, times in s, windows in packets, states by number.
    pub value: f64,
}

#[cfg(test)]
mod tests;
