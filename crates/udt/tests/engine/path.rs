//! A path between two ends, over which all packets are encoded and decoded.

use crate::end::End;
use dumbbell_net::Endpoint;
use dumbbell_udt::codec;
use dumbbell_units::{Span, Time};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

const ANYWHERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Impairments of a path.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// One-way delay.
    pub delay: Span,
    /// Upper limit of a random additional delay, which reorders packets.
    pub jitter: Span,
    /// Probability of loss.
    pub loss: f64,
    /// Probability of duplication.
    pub duplication: f64,
    /// Probability of one random byte.
    pub corruption: f64,
}

impl Conditions {
    /// 10 ms of delay, no impairments.
    pub const CLEAN: Conditions = Conditions {
        delay: Span::from_millis(10),
        jitter: Span::ZERO,
        loss: 0.0,
        duplication: 0.0,
        corruption: 0.0,
    };
    /// 20 % loss, 5 ms jitter, 5 % duplication.
    pub const BAD: Conditions = Conditions {
        jitter: Span::from_millis(5),
        loss: 0.2,
        duplication: 0.05,
        ..Conditions::CLEAN
    };
}

/// Two ends and the path between them.
pub struct Network {
    /// The two ends. The first one connects, or both for a rendezvous.
    pub ends: [End; 2],
    /// Current time.
    pub now: Time,
    conditions: Conditions,
    under_way: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    sent: u64,
    random: u64,
}

impl Network {
    pub fn new(ends: [End; 2], conditions: Conditions, seed: u64) -> Network {
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Network { ends, now: Time::ZERO, conditions, under_way: BTreeMap::new(), sent: 0, random }
    }

    /// A random number in [0, 1) (xorshift).
    fn draw(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Sends a UDP payload to end `to`.
    pub fn send(&mut self, to: usize, mut bytes: Vec<u8>) {
        let copies = 1 + usize::from(self.draw() < self.conditions.duplication);
        for _ in 0..copies {
            if self.draw() < self.conditions.loss {
                continue;
            }
            if self.draw() < self.conditions.corruption {
                let at = (self.draw() * bytes.len() as f64) as usize;
                bytes[at] = (self.draw() * 256.0) as u8;
            }
            let late = self.conditions.jitter.mul_f64(self.draw());
            let at = self.now + self.conditions.delay + late;
            self.under_way.insert((at, self.sent), (to, bytes.clone()));
            self.sent += 1;
        }
    }

    fn drain(&mut self, end: usize) {
        self.drain_some(end, usize::MAX);
    }

    /// Sends at most `most` packets of an end.
    pub fn drain_some(&mut self, end: usize, most: usize) {
        for _ in 0..most {
            let Some(packet) = self.ends[end].poll(self.now) else { return };
            let mut bytes = Vec::new();
            let (destination, payload) = self.ends[end].address(&packet);
            codec::encode(&packet, destination, ANYWHERE, &payload, &mut bytes);
            self.send(1 - end, bytes);
        }
    }

    /// Advances time until `done`, which is called after each event. Panics after `limit`.
    pub fn run_until(&mut self, limit: Span, mut done: impl FnMut(&mut [End; 2], Time) -> bool) {
        let end = self.now + limit;
        loop {
            (0..2).for_each(|end| self.drain(end));
            if done(&mut self.ends, self.now) {
                return;
            }
            // `done` may have queued data.
            (0..2).for_each(|end| self.drain(end));
            let timer = self.ends.iter().map(Endpoint::next_timeout).min().unwrap_or(Time::MAX);
            let arrival = self.under_way.keys().next().map_or(Time::MAX, |key| key.0);
            let next = timer.min(arrival).max(self.now);
            assert!(next <= end, "not done at {}, next is {next}", self.now);
            self.now = if next == self.now && arrival > self.now {
                // An end that is due but sends nothing must not stop the clock.
                self.now + Span::from_nanos(1)
            } else {
                next
            };
            while let Some(entry) = self.under_way.first_entry()
                && entry.key().0 <= self.now
            {
                let (to, bytes) = entry.remove();
                self.ends[to].arrive(self.now, &bytes);
                self.drain(to);
            }
        }
    }

    /// Advances time by `span`.
    pub fn run_for(&mut self, span: Span) {
        let until = self.now + span;
        while self.now < until {
            let step = self.now + Span::from_millis(1);
            self.run_until(Span::from_secs(3600), |_, now| now >= step.min(until));
            self.now = self.now.max(step.min(until));
        }
    }
}
