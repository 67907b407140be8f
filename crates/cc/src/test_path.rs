//! A path for tests: a closed loop of one sender, one bottleneck with a drop-tail queue and a fixed
//! delay.
//!
//! It is the smallest transport that provides all facts of [`Path`] and [`Ack`]. Packets are
//! acknowledged one by one. A loss is detected after three packets delivered behind it, and new data
//! takes the place of retransmissions. There is no retransmission timer and no reordering. Marks
//! are reported in acknowledgements, and as congestion once a round trip if the receiver echoes
//! them. Two senders may share a bottleneck.

use crate::{
    Ack, CaState, CongestionControl, CongestionEvent, Path, RateSample, SendState, Sent, Signal,
};
use dumbbell_units::{Rate, Span, Time};
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Payload bytes of a packet; there are no headers.
pub const MSS: u32 = 1448;

/// A packet between its sending and its acknowledgement.
struct Packet {
    seq: u64,
    send_state: SendState,
    /// `Path::delivered_at` when it was sent.
    delivered_at: Time,
    /// When the first packet of its flight was sent.
    first_sent: Time,
    /// When its acknowledgement arrives; `None` if it was dropped.
    acked_at: Option<Time>,
    marked: bool,
}

/// The sender and its path.
pub struct TestPath<A> {
    /// The algorithm under test.
    pub algorithm: A,
    /// The facts that it receives.
    pub path: Path,
    /// The bottleneck.
    pub link: Link,
    /// Packets dropped so far.
    pub dropped: u64,
    /// Whether the application has data to send.
    pub sending: bool,
    /// Whether the receiver echoes marks, so that they are congestion events.
    pub echoes: bool,
    packets: VecDeque<Packet>,
    link_free: Rc<Cell<Time>>,
    first_sent: Time,
    recovery_ends: u64,
    idle: bool,
}

/// The bottleneck. May be changed at any time.
#[derive(Clone, Copy)]
pub struct Link {
    /// Its rate.
    pub rate: Rate,
    /// Round-trip time without a queue.
    pub rtt: Span,
    /// Packets that its queue holds.
    pub queue: f64,
    /// Packets in the queue above which packets are marked, if they are.
    pub mark_above: Option<f64>,
    /// Which packets are lost at random, by sequence number.
    pub loses: fn(u64) -> bool,
}

impl Link {
    /// A link without random loss or marks.
    pub fn new(mbit: f64, rtt_ms: u64, queue: f64) -> Link {
        Link {
            rate: Rate::from_bits_per_sec(mbit * 1e6),
            rtt: Span::from_millis(rtt_ms),
            queue,
            mark_above: None,
            loses: |_| false,
        }
    }

    /// Packets in the bandwidth-delay product.
    pub fn bdp(&self) -> f64 {
        self.rate.bytes_in(self.rtt) / f64::from(MSS)
    }
}

/// A connection that starts at time zero with a window of ten packets.
pub fn init(seed: u64) -> crate::ConnectionConfig {
    crate::ConnectionConfig::new(Time::ZERO, MSS).with_seed(seed)
}

impl<A: CongestionControl> TestPath<A> {
    /// A sender that has just connected and measured the round-trip time in the handshake.
    pub fn new(mut algorithm: A, link: Link) -> TestPath<A> {
        let mut path = Path::new(MSS, Time::ZERO);
        path.srtt = Some(link.rtt);
        path.min_rtt = Some(link.rtt);
        algorithm.on_established(&path);
        TestPath {
            algorithm,
            path,
            link,
            dropped: 0,
            sending: true,
            echoes: false,
            packets: VecDeque::new(),
            link_free: Rc::default(),
            first_sent: Time::ZERO,
            recovery_ends: 0,
            idle: false,
        }
    }

    /// Runs for `span`, calling `each` after every acknowledgement.
    pub fn run(&mut self, span: Span, mut each: impl FnMut(&TestPath<A>)) {
        self.run_until(span, |flow| {
            each(flow);
            false
        });
    }

    /// Runs until `stop` returns true after an acknowledgement, at most for `span`. Returns whether
    /// `stop` did.
    pub fn run_until(&mut self, span: Span, mut stop: impl FnMut(&TestPath<A>) -> bool) -> bool {
        let end = self.path.now + span;
        while let Some((at, acknowledges)) = self.next().filter(|&(at, _)| at <= end) {
            self.step(at, acknowledges);
            if acknowledges && stop(self) {
                return true;
            }
        }
        self.path.now = end;
        false
    }

    /// Runs for `span` with another sender at the same bottleneck. Delay, loss and queue limit are
    /// each sender's own. Both must have been run to the same time.
    pub fn run_beside<B: CongestionControl>(&mut self, other: &mut TestPath<B>, span: Span) {
        assert_eq!(self.path.now, other.path.now);
        if !Rc::ptr_eq(&self.link_free, &other.link_free) {
            other.link_free = Rc::clone(&self.link_free);
        }
        let end = self.path.now + span;
        let never = (Time::MAX, false);
        loop {
            let (mine, its) = (self.next().unwrap_or(never), other.next().unwrap_or(never));
            if mine.0.min(its.0) > end {
                break;
            }
            if mine.0 <= its.0 {
                self.step(mine.0, mine.1);
            } else {
                other.step(its.0, its.1);
            }
        }
        (self.path.now, other.path.now) = (end, end);
    }

    /// When the next event is, and whether it is an acknowledgement.
    fn next(&self) -> Option<(Time, bool)> {
        let ack = self.packets.iter().find_map(|packet| packet.acked_at);
        let send = self.may_send().then(|| self.path.departure.max(self.path.now));
        match (ack, send) {
            (Some(ack), send) if send.is_none_or(|send| ack <= send) => Some((ack, true)),
            (_, send) => send.map(|send| (send, false)),
        }
    }

    fn step(&mut self, at: Time, acknowledges: bool) {
        self.path.now = at;
        if acknowledges {
            self.acknowledge();
        } else {
            self.send();
        }
    }

    /// Runs for `ms` milliseconds.
    pub fn run_ms(&mut self, ms: u64) {
        self.run(Span::from_millis(ms), |_| ());
    }

    /// An internal of the algorithm by name.
    pub fn inspect(&self, name: &str) -> f64 {
        let mut found = None;
        self.algorithm.inspect(&mut |shown| {
            if shown.name == name {
                found = Some(shown.value);
            }
        });
        found.expect("an internal of that name")
    }

    /// Packets in the queue of the bottleneck.
    pub fn queued(&self) -> f64 {
        self.link.rate.bytes_in(self.link_free.get().since(self.path.now)) / f64::from(MSS)
    }

    fn may_send(&self) -> bool {
        self.sending && f64::from(self.path.in_flight) + 1.0 <= self.algorithm.control().cwnd
    }

    fn send(&mut self) {
        let now = self.path.now;
        let from_idle = self.path.in_flight == 0;
        if from_idle {
            self.first_sent = now;
            self.path.delivered_at = now;
        }
        self.path.in_flight += 1;
        let seq = self.path.next_seq;
        self.path.next_seq += 1;
        let send_state = SendState {
            sent_at: now,
            delivered: self.path.delivered,
            lost: self.path.lost as u32,
            marked: self.path.marked as u32,
            in_flight: self.path.in_flight,
            app_limited: self.idle,
        };
        let queued = self.queued();
        let mut acked_at = None;
        if queued < self.link.queue + 1.0 && !(self.link.loses)(seq) {
            let sent = self.link_free.get().max(now) + self.link.rate.time_for(f64::from(MSS));
            self.link_free.set(sent);
            acked_at = Some(sent + self.link.rtt);
        } else {
            self.dropped += 1;
        }
        self.packets.push_back(Packet {
            seq,
            send_state,
            delivered_at: self.path.delivered_at,
            first_sent: self.first_sent,
            acked_at,
            marked: self.link.mark_above.is_some_and(|above| queued > above),
        });
        // The window limits sending if this packet fills it.
        let control = self.algorithm.control();
        self.path.cwnd_limited = f64::from(self.path.in_flight) + 1.0 > control.cwnd;
        self.path.window_full = self.path.cwnd_limited;
        let sent = Sent::new(seq).with_from_idle(from_idle).with_app_limited(self.idle);
        self.idle = false;
        self.algorithm.on_sent(&self.path, &sent);
        if let Some(rate) = self.algorithm.control().pacing_rate {
            self.path.pace(rate);
        }
    }

    fn acknowledge(&mut self) {
        let at = self.packets.iter().position(|packet| packet.acked_at.is_some());
        let packet = at.and_then(|at| self.packets.remove(at)).expect("a packet was delivered");
        let now = self.path.now;
        let prior_in_flight = self.path.in_flight;
        self.path.in_flight -= 1;
        self.path.delivered += 1;
        self.path.delivered_at = now;
        let rtt = now.since(packet.send_state.sent_at);
        self.path.srtt = self.path.srtt.map(|srtt| (srtt * 7 + rtt) / 8);
        self.path.min_rtt = self.path.min_rtt.map(|min_rtt| min_rtt.min(rtt));
        let lost = self.detect_losses(packet.seq);
        self.path.una = self.packets.front().map_or(self.path.next_seq, |packet| packet.seq);
        if self.path.ca_state.is_reducing() && packet.seq >= self.recovery_ends {
            self.path.ca_state = CaState::Open;
        }
        if packet.marked && self.echoes && self.path.ca_state == CaState::Open {
            self.path.ca_state = CaState::Cwr;
            self.recovery_ends = self.path.next_seq;
            self.congest(Signal::Ecn, true, &packet);
        }
        self.idle |= !self.sending && self.path.in_flight == 0;
        self.path.marked += u64::from(packet.marked);
        let rate = self.rate_sample(&packet);
        self.first_sent = packet.send_state.sent_at;
        let ack = Ack::new(1)
            .with_lost(lost)
            .with_marked(u32::from(packet.marked))
            .with_rtt(Some(rtt))
            .with_prior_in_flight(prior_in_flight)
            .with_rate(Some(rate));
        self.algorithm.on_ack(&self.path, &ack);
        let control = self.algorithm.control();
        assert!(control.cwnd >= 1.0, "no window below a packet");
        assert!(control.pacing_rate.is_none_or(|rate| rate.bytes_per_sec() > 0.0), "rate > 0");
    }

    fn rate_sample(&self, packet: &Packet) -> RateSample {
        let sending = packet.send_state.sent_at.since(packet.first_sent);
        let delivering = self.path.now.since(packet.delivered_at);
        let interval = sending.max(delivering);
        let delivered = (self.path.delivered - packet.send_state.delivered) as u32;
        let rate = Rate::from_bytes_in(f64::from(delivered) * f64::from(MSS), interval);
        let mut sample = RateSample::new(delivered, interval, rate, packet.send_state);
        sample.lost = (self.path.lost as u32).wrapping_sub(packet.send_state.lost);
        sample.marked = (self.path.marked as u32).wrapping_sub(packet.send_state.marked);
        sample
    }

    fn detect_losses(&mut self, acked: u64) -> u32 {
        let mut count = 0;
        while self.packets.front().is_some_and(|p| p.acked_at.is_none() && p.seq + 3 <= acked) {
            let packet = self.packets.pop_front().expect("there is a first packet");
            count += 1;
            self.path.lost += 1;
            self.path.in_flight -= 1;
            // A packet sent before the recovery began belongs to the same episode.
            let new_episode = packet.seq >= self.recovery_ends;
            if new_episode {
                self.path.ca_state = CaState::Recovery;
                self.recovery_ends = self.path.next_seq;
            }
            self.congest(Signal::Loss, new_episode, &packet);
        }
        count
    }

    fn congest(&mut self, signal: Signal, new_episode: bool, packet: &Packet) {
        let send_state = Some(packet.send_state);
        let event = CongestionEvent::new(signal)
            .with_new_episode(new_episode)
            .with_seq(packet.seq)
            .with_send_state(send_state);
        self.algorithm.on_congestion(&self.path, &event);
    }

    /// A retransmission timeout: all packets in flight are lost.
    pub fn time_out(&mut self) {
        self.path.lost += u64::from(self.path.in_flight);
        self.path.in_flight = 0;
        self.packets.clear();
        self.path.ca_state = CaState::Loss;
        let event = CongestionEvent::timeout().with_packets(0);
        self.algorithm.on_congestion(&self.path, &event);
    }
}

mod tests {
    use super::*;
    use crate::{AnySlowStart, Reno, Windowed};

    #[test]
    fn reno_keeps_a_link_with_a_queue_of_one_bdp_busy() {
        let link = Link::new(10.0, 50, 43.0);
        let reno = Windowed::new(Reno, AnySlowStart::STANDARD, &init(1));
        let mut flow = TestPath::new(reno, link);
        flow.run_ms(20_000);
        let before = flow.path.delivered;
        flow.run_ms(20_000);
        let bits = (flow.path.delivered - before) as f64 * f64::from(MSS) * 8.0;
        assert!(flow.dropped > 0);
        assert!((9.9e6..=10.0e6).contains(&(bits / 20.0)), "{bits}");
    }
}
