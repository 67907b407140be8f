//! From what a QUIC stack tells its controller to what an algorithm is told.
//!
//! The stack counts bytes and instants, the algorithm packets and nanoseconds. A packet counts as
//! one, whatever its size.

use dumbbell_cc::{
    Ack, Algorithm, CaState, CongestionControl, CongestionEvent, ControlParameters, Metric,
    PacketInfo, Path, RateSampler, Sent, Signal,
};
use dumbbell_units::{Rate, Span, Time};
use std::collections::VecDeque;
use std::time::Instant;

/// Minimum window, packets (RFC 9002, section 7.2).
const MIN_WINDOW: f64 = 2.0;
/// What may leave at once when nothing is in flight, packets (RFC 9002, section 7.7: a burst of at
/// most the initial window).
const BURST: f64 = 10.0;
/// What the pacing rate allowed earlier and was not used, packets: no more is saved. BBR estimates
/// from its pacing rate when packets leave, and longer bursts would mislead it.
const SAVED: f64 = 2.0;
/// The stacks' pacing rate without one of the algorithm, in windows per round-trip time.
const WINDOW_GAIN: f64 = 1.25;

/// Packets that were sent at one time.
#[derive(Clone, Debug)]
struct Record {
    sent_at: Time,
    /// Number of the first one.
    seq: u64,
    packets: u32,
    bytes: u64,
    /// How many are neither acknowledged nor lost.
    outstanding: u32,
    info: PacketInfo,
}

/// An acknowledgement that the algorithm has not been told yet: the losses that it reveals, which
/// the stack reports afterwards, come first.
#[derive(Clone, Debug)]
struct Pending {
    now: Time,
    ack: Ack,
    newest: Option<PacketInfo>,
}

/// The state of a connection's controller.
#[derive(Clone, Debug)]
pub(crate) struct Adapter {
    epoch: Instant,
    algorithm: Algorithm,
    control: ControlParameters,
    path: Path,
    sampler: RateSampler,
    records: VecDeque<Record>,
    /// Bytes in flight.
    in_flight: u64,
    pending: Option<Pending>,
    /// Packets acknowledged since the last completed acknowledgement, and the newest of them.
    delivered: u32,
    newest: Option<Record>,
    prior_in_flight: u32,
    is_established: bool,
    /// When the current or last recovery episode began.
    recovery_start: Option<Time>,
    /// What this was before an episode that a loss began, until the loss proves spurious.
    #[cfg(feature = "noq")]
    prior_recovery_start: Option<Option<Time>>,
    initial_window: f64,
    /// What the pacing rate allows to leave, bytes, and when it was computed.
    tokens: f64,
    tokens_at: Time,
    /// Whether the tokens are earned at a rate. The first ones are the initial burst: if they shrank with
    /// the rate of the first round trip, nothing could leave, not even acknowledgements (quinn sends
    /// none while data waits for the window).
    has_earned: bool,
}

impl Adapter {
    pub(crate) fn new(
        algorithm: Algorithm,
        now: Instant,
        mtu: u16,
        initial_window: f64,
    ) -> Adapter {
        let mut path = Path::new(u32::from(mtu), Time::ZERO);
        path.paced = true;
        Adapter {
            epoch: now,
            control: algorithm.control(),
            algorithm,
            sampler: RateSampler::new(Time::ZERO),
            path,
            records: VecDeque::new(),
            in_flight: 0,
            pending: None,
            delivered: 0,
            newest: None,
            prior_in_flight: 0,
            is_established: false,
            recovery_start: None,
            #[cfg(feature = "noq")]
            prior_recovery_start: None,
            initial_window,
            tokens: BURST * f64::from(mtu),
            tokens_at: Time::ZERO,
            has_earned: false,
        }
    }

    fn time(&self, instant: Instant) -> Time {
        let nanos = instant.saturating_duration_since(self.epoch).as_nanos();
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn packets_of(&self, bytes: u64) -> u32 {
        bytes.div_ceil(u64::from(self.path.mss)).min(u64::from(u32::MAX)) as u32
    }

    fn set_in_flight(&mut self, bytes: u64) {
        self.in_flight = bytes;
        self.path.in_flight = self.packets_of(bytes);
    }

    /// Takes the algorithm's window and rate.
    fn update(&mut self) {
        let previous = std::mem::replace(&mut self.control, self.algorithm.control());
        if let (Some(before), Some(rate)) = (previous.pacing_rate, self.control.pacing_rate)
            && rate < before
            && self.has_earned
            && self.tokens > 0.0
        {
            // What was earned at the higher rate is worth the same time at the lower one.
            self.tokens *= rate.bytes_per_sec() / before.bytes_per_sec();
        }
        let of_window = self.path.srtt.map(|srtt| {
            let bytes = WINDOW_GAIN * self.control.cwnd * f64::from(self.path.mss);
            Rate::from_bytes_in(bytes, srtt)
        });
        self.path.pacing_rate = self.control.pacing_rate.or(of_window);
    }

    /// Adds what the pacing rate allows since the last acknowledgement or loss.
    fn refill(&mut self, now: Time) {
        let mss = f64::from(self.path.mss);
        if let Some(rate) = self.control.pacing_rate {
            let elapsed = now.since(self.tokens_at).as_secs_f64();
            let round_trip = self.path.srtt.map_or(0.0, Span::as_secs_f64);
            let earned = rate.bytes_per_sec() * elapsed.min(round_trip);
            if earned > 0.0 {
                self.tokens = self.tokens.min(SAVED * mss) + earned;
                self.has_earned = true;
            }
        }
        self.tokens_at = now;
    }

    /// `bytes` were sent in one datagram or several. quinn reports those with acknowledgements alone
    /// too, which are never acknowledged: neither the debt nor the records may grow with them.
    pub(crate) fn on_sent(&mut self, now: Instant, bytes: u64) {
        self.flush();
        let (now, packets) = (self.time(now), self.packets_of(bytes).max(1));
        self.path.now = now;
        self.tokens = (self.tokens - bytes as f64).max(-BURST * f64::from(self.path.mss));
        self.forget_beyond_window(now);
        let from_idle = self.path.in_flight == 0;
        let app_limited = self.sampler.is_app_limited();
        let outstanding = self.path.in_flight;
        let info = self.sampler.on_packet_sent(&mut self.path, outstanding);
        let seq = self.path.next_seq;
        match self.records.back_mut().filter(|last| last.sent_at == now) {
            Some(last) => {
                last.packets += packets;
                last.bytes += bytes;
                last.outstanding += packets;
                last.info.send_state.in_flight = info.send_state.in_flight;
            }
            None => {
                let outstanding = packets;
                self.records.push_back(Record {
                    sent_at: now,
                    seq,
                    packets,
                    bytes,
                    outstanding,
                    info,
                });
            }
        }
        self.set_in_flight(self.in_flight + bytes);
        self.path.next_seq += u64::from(packets);
        if let Some(rate) = self.control.pacing_rate {
            self.path.pace(rate);
        }
        let sent = Sent::new(seq).with_from_idle(from_idle).with_app_limited(app_limited);
        self.algorithm.on_sent(&self.path, &sent);
        self.update();
    }

    /// A packet that was sent at `sent` is acknowledged.
    pub(crate) fn on_ack(&mut self, now: Instant, sent: Instant) {
        self.flush();
        let (now, sent) = (self.time(now), self.time(sent));
        self.path.now = now;
        if self.delivered == 0 {
            self.prior_in_flight = self.path.in_flight;
        }
        self.delivered += 1;
        self.path.delivered += 1;
        self.path.delivered_at = now;
        let at = self.records.partition_point(|record| record.sent_at < sent);
        if let Some(record) = self.records.get_mut(at).filter(|record| record.sent_at == sent) {
            record.outstanding = record.outstanding.saturating_sub(1);
            if self.newest.as_ref().is_none_or(|newest| newest.sent_at < sent) {
                self.newest = Some(record.clone());
            }
        }
    }

    /// All packets of an acknowledgement were reported.
    pub(crate) fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool) {
        let now = self.time(now);
        self.path.now = now;
        self.refill(now);
        self.set_in_flight(in_flight);
        let delivered = std::mem::take(&mut self.delivered);
        if delivered == 0 {
            return;
        }
        let newest = self.newest.take();
        let rtt = newest.as_ref().map(|record| now.since(record.sent_at));
        if let Some(rtt) = rtt {
            self.on_rtt(rtt);
        }
        if let Some(record) = &newest {
            self.path.una = self.path.una.max(record.seq + u64::from(record.packets));
            if self.recovery_start.is_none_or(|start| record.sent_at > start) {
                self.path.ca_state = CaState::Open;
            }
        }
        self.path.window_full = !app_limited;
        let in_slow_start = self.control.cwnd < self.control.ssthresh;
        let half = 2.0 * f64::from(self.prior_in_flight) >= self.control.cwnd;
        self.path.cwnd_limited = self.path.window_full || (in_slow_start && half);
        if app_limited {
            self.sampler.set_app_limited(&self.path);
        }
        self.prune(newest.as_ref().map(|record| record.sent_at));
        if !self.is_established && rtt.is_some() {
            self.is_established = true;
            self.algorithm.on_established(&self.path);
        }
        let acked = if self.path.ca_state.is_reducing() { 0 } else { delivered };
        let ack = Ack::new(delivered)
            .with_acked(acked)
            .with_rtt(rtt)
            .with_prior_in_flight(self.prior_in_flight);
        self.pending = Some(Pending { now, ack, newest: newest.map(|record| record.info) });
    }

    /// Smooths as RFC 6298, section 2. The stack's own estimate is one acknowledgement late.
    fn on_rtt(&mut self, rtt: Span) {
        let nanos = rtt.as_nanos();
        let smoothed = self.path.srtt.map_or(nanos, |srtt| (7 * srtt.as_nanos() + nanos) / 8);
        self.path.srtt = Some(Span::from_nanos(smoothed));
        self.path.min_rtt = Some(self.path.min_rtt.map_or(rtt, |min| min.min(rtt)));
    }

    /// Two round-trip times.
    fn record_age(&self) -> Span {
        self.path.srtt.map_or(Span::from_secs(1), |srtt| srtt * 2)
    }

    /// Forgets old packets as long as more than a window is in flight. The stack sends less than that,
    /// so the others were not in flight.
    fn forget_beyond_window(&mut self, now: Time) {
        let (window, age) = (self.window(), self.record_age());
        while self.in_flight > window
            && let Some(first) = self.records.front().filter(|one| now.since(one.sent_at) > age)
        {
            let left = first.bytes * u64::from(first.outstanding) / u64::from(first.packets);
            self.set_in_flight(self.in_flight.saturating_sub(left));
            self.records.pop_front();
        }
    }

    /// Forgets packets that were acknowledged, and those that must be lost: they are older than the
    /// newest acknowledged one by two round-trip times.
    fn prune(&mut self, newest: Option<Time>) {
        let age = self.record_age();
        while let Some(first) = self.records.front() {
            let is_old = newest.is_some_and(|newest| newest.since(first.sent_at) > age);
            if first.outstanding > 0 && !is_old {
                break;
            }
            self.records.pop_front();
        }
    }

    /// Tells the algorithm the acknowledgement that waits for its losses.
    pub(crate) fn flush(&mut self) {
        let Some(Pending { now, ack, newest }) = self.pending.take() else { return };
        self.path.now = now;
        let rate = self.sampler.sample(&self.path, newest.as_ref());
        self.algorithm.on_ack(&self.path, &ack.with_rate(rate));
        self.update();
    }

    /// `bytes` were lost, the newest of them sent at `sent`.
    pub(crate) fn on_lost(&mut self, now: Instant, sent: Instant, bytes: u64, persistent: bool) {
        let (now, sent) = (self.time(now), self.time(sent));
        self.before_congestion(now);
        let lost = self.packets_of(bytes).max(1);
        let mut is_new = self.begins_episode(now, sent, CaState::Recovery);
        let in_flight = self.in_flight.saturating_sub(bytes);
        self.set_in_flight(in_flight);
        let mut left = lost;
        for at in 0..self.records.len() {
            let record = &mut self.records[at];
            if left == 0 || record.sent_at > sent {
                break;
            }
            let here = record.outstanding.min(left);
            (record.outstanding, left) = (record.outstanding - here, left - here);
            let (seq, state) = (record.seq, record.info.send_state);
            for number in 0..here {
                let event = CongestionEvent::loss()
                    .with_new_episode(std::mem::take(&mut is_new))
                    .with_seq(seq + u64::from(number))
                    .with_send_state(Some(state));
                self.on_loss(&event);
            }
        }
        for _ in 0..left {
            let event = CongestionEvent::loss().with_new_episode(std::mem::take(&mut is_new));
            self.on_loss(&event.with_seq(self.path.una));
        }
        if let Some(pending) = &mut self.pending {
            pending.ack.lost += lost;
        }
        if persistent {
            self.algorithm.on_persistent_congestion(&self.path);
            // RFC 9002, appendix B.8.
            self.recovery_start = None;
        }
        self.update();
    }

    fn on_loss(&mut self, event: &CongestionEvent) {
        self.path.lost += 1;
        self.algorithm.on_congestion(&self.path, event);
    }

    /// Marks were echoed, nobody says how many; the newest acknowledged packet was sent at `sent`.
    pub(crate) fn on_ecn(&mut self, now: Instant, sent: Instant) {
        let (now, sent) = (self.time(now), self.time(sent));
        self.before_congestion(now);
        let is_new = self.begins_episode(now, sent, CaState::Cwr);
        let event = CongestionEvent::new(Signal::Ecn).with_new_episode(is_new);
        self.algorithm.on_congestion(&self.path, &event.with_seq(self.path.una));
        self.update();
    }

    /// An acknowledgement of an earlier time has no part in this.
    fn before_congestion(&mut self, now: Time) {
        if self.pending.as_ref().is_some_and(|pending| pending.now < now) {
            self.flush();
        }
        self.path.now = now;
        self.refill(now);
    }

    /// Whether a packet sent at `sent` begins an episode: it was sent after the last one began
    /// (RFC 9002, section 7.3.2).
    fn begins_episode(&mut self, now: Time, sent: Time, state: CaState) -> bool {
        if self.recovery_start.is_some_and(|start| sent <= start) {
            return false;
        }
        #[cfg(feature = "noq")]
        {
            self.prior_recovery_start = (state == CaState::Recovery).then_some(self.recovery_start);
        }
        self.recovery_start = Some(now);
        self.path.ca_state = state;
        if let Some(pending) = &mut self.pending {
            pending.ack.acked = 0;
        }
        true
    }

    /// The losses of the last episode were spurious. It never began.
    #[cfg(feature = "noq")]
    pub(crate) fn on_spurious(&mut self) {
        self.flush();
        if let Some(prior) = self.prior_recovery_start.take() {
            self.recovery_start = prior;
        }
        self.path.ca_state = CaState::Open;
        self.algorithm.on_spurious_loss(&self.path);
        self.update();
    }

    /// The path carries datagrams of `mtu` bytes from now on.
    pub(crate) fn on_mtu_update(&mut self, mtu: u16) {
        self.flush();
        let previous = std::mem::replace(&mut self.path.mss, u32::from(mtu));
        if previous != self.path.mss {
            self.algorithm.on_mtu_update(&self.path, previous);
            self.set_in_flight(self.in_flight);
            self.update();
        }
    }

    /// The congestion window, bytes. The stacks send while what is in flight and the next packet
    /// are less than it, the algorithms while they are at most the window.
    pub(crate) fn window(&self) -> u64 {
        (self.control.cwnd.max(MIN_WINDOW) * f64::from(self.path.mss)) as u64 + 1
    }

    /// The window that lets no more leave than the pacing rate allows, for a stack whose pacer takes
    /// no rate.
    pub(crate) fn paced_window(&self) -> u64 {
        let (window, mss) = (self.window(), f64::from(self.path.mss));
        match self.control.pacing_rate {
            Some(_) if self.in_flight == 0 => window.min((BURST * mss) as u64 + 1),
            Some(_) if self.tokens < mss => window.min(self.in_flight),
            _ => window,
        }
    }

    /// Slow start threshold, bytes.
    pub(crate) fn ssthresh(&self) -> Option<u64> {
        let bytes = self.control.ssthresh * f64::from(self.path.mss);
        bytes.is_finite().then_some(bytes as u64)
    }

    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        self.control.pacing_rate
    }

    /// Maximum burst, bytes, if the algorithm sets one.
    #[cfg(feature = "noq")]
    pub(crate) fn send_quantum(&self) -> Option<u64> {
        let packets = self.control.max_send_quantum.or(self.control.min_send_quantum)?;
        Some(u64::from(packets) * u64::from(self.path.mss))
    }

    /// Initial window, bytes.
    pub(crate) fn initial_window(&self) -> u64 {
        (self.initial_window * f64::from(self.path.mss)) as u64
    }

    /// Latest delivery rate that an application-limited sample did not lower.
    pub(crate) fn delivery_rate(&self) -> Rate {
        self.sampler.latest
    }

    pub(crate) fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.algorithm.inspect(show);
    }
}

#[cfg(test)]
mod tests;
