//! A path between a sender and a receiver. A test may drop, delay or mark any packet.

use dumbbell_cc::{Algorithm, CaState, ConnectionConfig, SenderStats};
use dumbbell_net::{Endpoint, Packet};
use dumbbell_tcp::{Flags, Receiver, Segment, Sender, SenderConfig, Stack};
use dumbbell_units::{Rate, Span, Time};
use std::sync::Arc;

/// A packet's fate on the path.
#[derive(Clone, Copy)]
pub enum Fate {
    Arrives,
    Late(Span),
    NotBefore(Time),
    Marked,
    Lost,
}

/// One flow over a path of fixed rate and delay.
pub struct TestConnection {
    pub sender: Sender,
    pub receiver: Receiver,
    /// Every data segment sent, with its send time.
    pub sent: Vec<(Time, Segment)>,
    /// Every acknowledgement received, with its arrival time.
    pub acks: Vec<(Time, Segment)>,
    in_flight: Vec<(Time, u64, bool, Segment)>,
    count: u64,
    byte_time: Span,
    free_at: Time,
    delay: Span,
    now: Time,
    lost_syns: u32,
    /// When each SYN was sent.
    pub syns: Vec<Time>,
}

pub struct Flow {
    pub stack: Stack,
    pub cc: &'static str,
    pub bytes: Option<u64>,
    pub stop: Option<Time>,
    pub app_rates: Vec<(Span, Rate)>,
    /// One-way delay.
    pub delay: Span,
}

impl Default for Flow {
    fn default() -> Flow {
        Flow {
            stack: Stack::linux(),
            cc: "reno",
            bytes: None,
            stop: None,
            app_rates: Vec::new(),
            delay: Span::from_millis(50),
        }
    }
}

pub fn millis(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

pub fn lossless(_: usize, _: &Segment) -> Fate {
    Fate::Arrives
}

/// Loses the first transmission of the given packets.
pub fn losing(numbers: &'static [u32]) -> impl FnMut(usize, &Segment) -> Fate {
    move |_, segment| {
        let is_retransmission = segment.flags.contains(Flags::RETRANSMISSION);
        if !is_retransmission && numbers.contains(&segment.number) {
            Fate::Lost
        } else {
            Fate::Arrives
        }
    }
}

impl TestConnection {
    /// 80 Mbit/s (100 ns a byte).
    pub fn new(flow: Flow) -> TestConnection {
        let stack = Arc::new(flow.stack);
        let init = ConnectionConfig::new(Time::ZERO, u32::from(stack.mss))
            .with_initial_window(f64::from(stack.initial_window))
            .with_seed(1);
        let sender = Sender::new(SenderConfig {
            stack: stack.clone(),
            algorithm: Algorithm::parse(flow.cc, &init).expect("a built-in algorithm"),
            start: Time::ZERO,
            stop: flow.stop,
            bytes: flow.bytes,
            app_rates: flow.app_rates,
        });
        TestConnection {
            sender,
            receiver: Receiver::new(stack),
            sent: Vec::new(),
            acks: Vec::new(),
            in_flight: Vec::new(),
            count: 0,
            byte_time: Span::from_nanos(100),
            free_at: Time::ZERO,
            delay: flow.delay,
            now: Time::ZERO,
            lost_syns: 0,
            syns: Vec::new(),
        }
    }

    /// Loses the first `count` SYNs.
    pub fn lose_syns(&mut self, count: u32) {
        self.lost_syns = count;
    }

    pub fn stats(&self) -> SenderStats {
        self.sender.stats()
    }

    /// Runs until the state is `state`, and returns the window before that.
    pub fn window_before(
        &mut self,
        state: CaState,
        mut fate: impl FnMut(usize, &Segment) -> Fate,
    ) -> f64 {
        loop {
            let window = self.stats().cwnd;
            self.run(self.now + Span::from_micros(10), &mut fate);
            self.now += Span::from_micros(10);
            if self.stats().ca_state == state {
                return window;
            }
            assert!(self.now < millis(60_000), "the state is not reached");
        }
    }

    /// Numbers of the data segments retransmitted, in order.
    pub fn retransmissions(&self) -> Vec<u32> {
        let retransmissions =
            self.sent.iter().filter(|(_, s)| s.flags.contains(Flags::RETRANSMISSION));
        retransmissions.map(|(_, segment)| segment.number).collect()
    }

    /// Runs until `end`. `fate` decides about every data segment, by the index of its transmission.
    pub fn run(&mut self, end: Time, mut fate: impl FnMut(usize, &Segment) -> Fate) {
        loop {
            let arrival = self.in_flight.iter().map(|&(at, order, ..)| (at, order)).min();
            let timer = self.sender.next_timeout().min(self.receiver.next_timeout());
            let now = arrival.map_or(timer, |(at, _)| at.min(timer)).max(self.now);
            if now > end || now == Time::MAX {
                return;
            }
            assert!(self.sent.len() < 10_000_000, "a test path does not carry so many packets");
            self.now = now;
            if let Some(first) = arrival.filter(|&(at, _)| at <= now) {
                let next = self.in_flight.iter().position(|&(at, order, ..)| (at, order) == first);
                self.deliver(next.expect("it was just found"));
            }
            while let Some(segment) = self.sender.poll(now) {
                self.forward(segment, &mut fate);
            }
            while let Some(segment) = self.receiver.poll(now) {
                self.count += 1;
                self.in_flight.push((now + self.delay, self.count, true, segment));
            }
        }
    }

    fn deliver(&mut self, index: usize) {
        let (_, _, to_sender, segment) = self.in_flight.remove(index);
        if to_sender {
            self.acks.push((self.now, segment));
            self.sender.handle(self.now, &segment);
        } else {
            self.receiver.handle(self.now, &segment);
        }
    }

    fn forward(&mut self, mut segment: Segment, fate: &mut impl FnMut(usize, &Segment) -> Fate) {
        let mut arrival = self.now.max(self.free_at) + self.byte_time * u64::from(segment.size);
        self.free_at = arrival;
        arrival += self.delay;
        if !segment.flags.contains(Flags::SYN) {
            self.sent.push((self.now, segment));
            match fate(self.sent.len() - 1, &segment) {
                Fate::Arrives => {}
                Fate::Late(by) => arrival += by,
                Fate::NotBefore(time) => arrival = arrival.max(time),
                Fate::Marked => segment.mark(),
                Fate::Lost => return,
            }
        } else {
            self.syns.push(self.now);
            if self.syns.len() <= self.lost_syns as usize {
                return;
            }
        }
        self.count += 1;
        self.in_flight.push((arrival, self.count, false, segment));
    }
}
