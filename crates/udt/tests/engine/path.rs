//! A path between two connections, as bytes: all that crosses it is encoded and decoded.

use crate::end::End;
use dumbbell_net::Endpoint;
use dumbbell_udt::codec;
use dumbbell_units::{Span, Time};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

const ANYWHERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// What a path does to packets.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// One-way delay.
    pub delay: Span,
    /// Packets come later by a random time below this, and so out of order.
    pub jitter: Span,
    /// Probability that a packet is lost.
    pub loss: f64,
    /// Probability that it arrives twice.
    pub twice: f64,
    /// Probability that one of its bytes is another.
    pub corruption: f64,
}

impl Conditions {
    /// 10 ms, nothing else.
    pub const CLEAN: Conditions = Conditions {
        delay: Span::from_millis(10),
        jitter: Span::ZERO,
        loss: 0.0,
        twice: 0.0,
        corruption: 0.0,
    };
    /// A fifth is lost, much is late, some comes twice.
    pub const BAD: Conditions =
        Conditions { jitter: Span::from_millis(5), loss: 0.2, twice: 0.05, ..Conditions::CLEAN };
}

/// Two ends and what is between them.
pub struct Net {
    /// The two ends; the first one connects, or both.
    pub ends: [End; 2],
    /// The present.
    pub now: Time,
    conditions: Conditions,
    under_way: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    sent: u64,
    random: u64,
}

impl Net {
    pub fn new(ends: [End; 2], conditions: Conditions, seed: u64) -> Net {
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Net { ends, now: Time::ZERO, conditions, under_way: BTreeMap::new(), sent: 0, random }
    }

    /// A number from 0 to below 1 (xorshift).
    fn draw(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Puts bytes on the way to an end.
    pub fn send(&mut self, to: usize, mut bytes: Vec<u8>) {
        let copies = 1 + usize::from(self.draw() < self.conditions.twice);
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

    /// Puts at most so many of an end's packets on the way.
    pub fn drain_some(&mut self, end: usize, most: usize) {
        for _ in 0..most {
            let Some(packet) = self.ends[end].poll(self.now) else { return };
            let mut bytes = Vec::new();
            let (destination, payload) = self.ends[end].envelope(&packet);
            codec::encode(&packet, destination, ANYWHERE, &payload, &mut bytes);
            self.send(1 - end, bytes);
        }
    }

    /// Lets time pass until `done`, which is asked after every event; panics after `limit`.
    pub fn run_until(&mut self, limit: Span, mut done: impl FnMut(&mut [End; 2], Time) -> bool) {
        let end = self.now + limit;
        loop {
            (0..2).for_each(|end| self.drain(end));
            if done(&mut self.ends, self.now) {
                return;
            }
            // The application may have given something to send.
            (0..2).for_each(|end| self.drain(end));
            let timer = self.ends.iter().map(Endpoint::next_timeout).min().unwrap_or(Time::MAX);
            let arrival = self.under_way.keys().next().map_or(Time::MAX, |key| key.0);
            let next = timer.min(arrival).max(self.now);
            assert!(next <= end, "not done at {}, next is {next}", self.now);
            self.now = if next == self.now && arrival > self.now {
                // An end that is due and sends nothing must not stop the clock.
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

    /// Lets so much time pass.
    pub fn run_for(&mut self, span: Span) {
        let until = self.now + span;
        while self.now < until {
            let step = self.now + Span::from_millis(1);
            self.run_until(Span::from_secs(3600), |_, now| now >= step.min(until));
            self.now = self.now.max(step.min(until));
        }
    }
}
