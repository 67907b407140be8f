//! A transport that drives any algorithm over a path with a fixed delay and a droptail queue.
//!
//! `cargo run --release -p dumbbell-cc --example transport 'cubic(slow_start=standard)'` prints the window
//! every half second. Packet numbers grow as in QUIC: lost data would be sent in new packets.

use dumbbell_cc::{
    Ack, Algorithm, CaState, ConfigError, CongestionControl, CongestionEvent, ConnectionConfig,
    PacketInfo, Path, RateSampler, Sent,
};
use dumbbell_units::{Rate, Span, Time};
use std::collections::VecDeque;

const MSS: u32 = 1200;
const RTT: Span = Span::from_millis(40);
const MAX_QUEUEING_DELAY: Span = Span::from_millis(30);
const LINK: Rate = Rate::from_bytes_per_sec(2.5e6);

/// A packet in flight. `acked_at` is `None` if the queue dropped it.
struct InFlight {
    number: u64,
    info: PacketInfo,
    acked_at: Option<Time>,
}

/// The sender, and the path in front of it.
pub struct Transport {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// What it is shown of the path.
    pub path: Path,
    sampler: RateSampler,
    in_flight: VecDeque<InFlight>,
    next_send: Time,
    recovery_end: u64,
    link_free: Time,
}

impl Transport {
    /// A connection whose handshake took one `RTT`.
    ///
    /// # Errors
    /// If no algorithm is called `algorithm`.
    pub fn new(algorithm: &str) -> Result<Transport, ConfigError> {
        let mut algorithm = Algorithm::parse(algorithm, &ConnectionConfig::new(Time::ZERO, MSS))?;
        let mut path = Path::new(MSS, Time::ZERO);
        (path.srtt, path.min_rtt) = (Some(RTT), Some(RTT));
        algorithm.on_established(&path);
        let (sampler, in_flight) = (RateSampler::new(Time::ZERO), VecDeque::new());
        let (next_send, recovery_end, link_free) = (Time::ZERO, 0, Time::ZERO);
        Ok(Transport { algorithm, path, sampler, in_flight, next_send, recovery_end, link_free })
    }

    /// Handles the next event: an acknowledgement, a transmission, the algorithm's timer, or a
    /// timeout if nothing else can happen.
    pub fn step(&mut self) {
        let is_open = f64::from(self.path.in_flight) + 1.0 <= self.algorithm.control().cwnd;
        let send = if is_open { self.next_send.max(self.path.now) } else { Time::MAX };
        let timer = self.algorithm.next_timer().unwrap_or(Time::MAX);
        let acked = self.in_flight.iter().position(|packet| packet.acked_at.is_some());
        let ack = acked.and_then(|index| self.in_flight[index].acked_at).unwrap_or(Time::MAX);
        let next = ack.min(send).min(timer);
        if next == Time::MAX {
            return self.on_timeout();
        }
        self.path.now = self.path.now.max(next);
        match acked.and_then(|index| (ack == next).then(|| self.in_flight.remove(index))?) {
            Some(packet) => self.on_ack(&packet),
            None if send == next => self.send(),
            None => self.algorithm.on_timer(&self.path),
        }
    }

    fn send(&mut self) {
        let (now, number) = (self.path.now, self.path.next_seq);
        let outstanding = self.path.in_flight;
        let info = self.sampler.on_packet_sent(&mut self.path, outstanding);
        self.path.next_seq += 1;
        self.path.in_flight += 1;
        self.algorithm.on_sent(&self.path, &Sent::new(number).with_from_idle(outstanding == 0));
        self.path.pacing_rate = self.algorithm.control().pacing_rate;
        self.path.paced = self.path.pacing_rate.is_some();
        if let Some(rate) = self.path.pacing_rate {
            self.next_send = now + rate.time_for(f64::from(MSS));
        }
        let departure = self.link_free.max(now);
        let is_dropped = departure.since(now) > MAX_QUEUEING_DELAY;
        if !is_dropped {
            self.link_free = departure + LINK.time_for(f64::from(MSS));
        }
        let acked_at = (!is_dropped).then_some(self.link_free + RTT);
        self.in_flight.push_back(InFlight { number, info, acked_at });
    }

    fn on_ack(&mut self, packet: &InFlight) {
        let prior_in_flight = self.path.in_flight;
        let path = &mut self.path;
        let rtt = path.now.since(packet.info.send_state.sent_at);
        path.srtt = path.srtt.map(|srtt| srtt * 7 / 8 + rtt / 8);
        path.min_rtt = path.min_rtt.map(|min_rtt| min_rtt.min(rtt));
        path.in_flight -= 1;
        path.delivered += 1;
        path.delivered_at = path.now;
        // The largest packet acknowledged, and one.
        path.una = packet.number + 1;
        path.cwnd_limited = 2.0 * f64::from(prior_in_flight) >= self.algorithm.control().cwnd;
        if packet.number >= self.recovery_end {
            path.ca_state = CaState::Open;
        }
        let lost = self.detect_losses(packet.number);
        let rate = self.sampler.sample(&self.path, Some(&packet.info));
        let ack = Ack::new(1).with_lost(lost).with_rtt(Some(rtt)).with_rate(rate);
        self.algorithm.on_ack(&self.path, &ack.with_prior_in_flight(prior_in_flight));
    }

    /// A packet is lost if a packet three later is acknowledged (RFC 9002, section 6.1.1).
    fn detect_losses(&mut self, acked: u64) -> u32 {
        let mut lost = 0;
        while self.in_flight.front().is_some_and(|packet| packet.number + 3 <= acked) {
            let Some(packet) = self.in_flight.pop_front() else { break };
            let new_episode = packet.number >= self.recovery_end;
            if new_episode {
                (self.recovery_end, self.path.ca_state) = (self.path.next_seq, CaState::Recovery);
            }
            lost += 1;
            self.path.lost += 1;
            self.path.in_flight -= 1;
            let event = CongestionEvent::loss().with_new_episode(new_episode);
            let send_state = Some(packet.info.send_state);
            let event = event.with_seq(packet.number).with_send_state(send_state);
            self.algorithm.on_congestion(&self.path, &event);
        }
        lost
    }

    /// Everything in flight was dropped.
    fn on_timeout(&mut self) {
        let packets = self.path.in_flight;
        self.path.now += RTT * 3;
        self.path.lost += u64::from(packets);
        self.path.in_flight = 0;
        self.in_flight.clear();
        (self.recovery_end, self.path.ca_state) = (self.path.next_seq, CaState::Loss);
        self.algorithm.on_congestion(&self.path, &CongestionEvent::timeout().with_packets(packets));
    }
}

fn main() -> Result<(), ConfigError> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "cubic".to_owned());
    let mut transport = Transport::new(&name)?;
    println!("time s   cwnd  pacing Mbit/s  srtt ms   lost");
    for half_second in 1..=20 {
        let until = Time::ZERO + Span::from_millis(500) * half_second;
        while transport.path.now < until {
            transport.step();
        }
        let (path, control) = (&transport.path, transport.algorithm.control());
        let mbit = |rate: Rate| format!("{:.2}", rate.bits_per_sec() / 1e6);
        let rate = control.pacing_rate.map_or("none".to_owned(), mbit);
        let srtt = path.srtt.map_or(f64::NAN, |srtt| srtt.as_secs_f64() * 1e3);
        let (time, cwnd, lost) = (until.as_secs_f64(), control.cwnd, path.lost);
        println!("{time:6.1} {cwnd:6.1} {rate:>14} {srtt:8.1} {lost:6}");
    }
    Ok(())
}
