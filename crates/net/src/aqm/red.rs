//! RED: Random Early Detection (Floyd and Jacobson, "Random early detection gateways for
//! congestion avoidance", IEEE/ACM Transactions on Networking 1 (4), 1993).
//!
//! For every packet that comes, the average queue is updated (section 4, equation 1):
//! `avg = avg + w (q - avg)`, or, after the link was idle for as long as `m` packets take to send,
//! `avg = (1 - w)^m avg`. Below `min` all packets pass. From there to `max` the probability
//! rises to `p_b = P (avg - min) / (max - min)` (equation 2), and a packet that comes as the n-th
//! after the last one struck is struck with `p_b / (1 - (n - 1) p_b)` (section 7, method 2), which
//! makes the distance between two strikes uniform in {1, ..., 1/p_b}. From `max` on all packets are
//! struck; or, if it is gentle (Floyd, "Recommendation on using the gentle variant of RED", 2000),
//! the probability rises on from `P` at `max` to 1 at `2 max`.
//!
//! Queue and thresholds are counted in packets or in bytes; in bytes a packet is struck in
//! proportion to its size (section 5: `p_b` times its size over the largest).
//!
//! ECN-capable packets are marked where others are dropped, up to an average of `max`; beyond they
//! are dropped too (RFC 3168, section 7), unless `hard_drop` is off.

use crate::Waiting;
use crate::aqm::Verdict;
use crate::dice::Dice;
use dumbbell_units::Span;

/// Parameters of RED.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// What thresholds and queues are counted in.
    pub unit: RedUnit,
    /// The average queue from which on packets are struck at random.
    pub min: f64,
    /// The average queue from which on all are, or twice as much if it is gentle.
    pub max: f64,
    /// The probability of a strike as the average comes to `max`.
    pub probability: f64,
    /// The weight of the present queue in the average.
    pub weight: f64,
    /// Whether the probability rises on between `max` and twice `max`.
    pub gentle: bool,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Whether ECN-capable packets are dropped too when the average is beyond `max`.
    pub hard_drop: bool,
}

/// What RED counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedUnit {
    /// Packets, whatever their size.
    Packets,
    /// Bytes.
    Bytes,
}

impl Default for RedConfig {
    /// 5 and 15 packets, 0.1 and 0.002, gentle: Floyd, "RED: Discussions of setting parameters",
    /// 1997.
    fn default() -> RedConfig {
        RedConfig {
            unit: RedUnit::Packets,
            min: 5.0,
            max: 15.0,
            probability: 0.1,
            weight: 0.002,
            gentle: true,
            ecn: true,
            hard_drop: true,
        }
    }
}

/// The largest packet, to which byte mode refers.
pub(crate) const LARGEST: u32 = 1500;

/// The state of RED.
#[derive(Clone, Debug)]
pub(crate) struct Red {
    config: RedConfig,
    average: f64,
    /// Packets since the last one that was struck.
    spared: u32,
    /// How long a packet takes to send.
    packet_time: Span,
    dice: Dice,
}

impl Red {
    pub(crate) fn new(config: RedConfig, packet_time: Span, dice: Dice) -> Red {
        Red { config, average: 0.0, spared: 0, packet_time, dice }
    }

    /// What happens to a packet of `size` bytes that finds so much waiting on a link that has been
    /// idle for so long.
    pub(crate) fn judge(&mut self, waiting: Waiting, idle: Span, size: u32) -> Verdict {
        self.update(waiting, idle);
        let p = self.probability(size);
        if p == 0.0 {
            self.spared = 0;
            return Verdict::Pass;
        }
        let passed = f64::from(self.spared) * p;
        let p = if passed < 1.0 { p / (1.0 - passed) } else { 1.0 };
        if self.dice.uniform() >= p {
            self.spared += 1;
            return Verdict::Pass;
        }
        self.spared = 0;
        let may_mark = self.average < self.config.max || !self.config.hard_drop;
        if self.config.ecn && may_mark { Verdict::Mark } else { Verdict::Drop }
    }

    fn update(&mut self, waiting: Waiting, idle: Span) {
        let queue = match self.config.unit {
            RedUnit::Packets => f64::from(waiting.packets),
            RedUnit::Bytes => waiting.bytes as f64,
        };
        let weight = self.config.weight;
        if waiting.packets > 0 || idle.is_zero() {
            self.average += weight * (queue - self.average);
        } else if !self.packet_time.is_zero() {
            let missed = idle.as_nanos() as f64 / self.packet_time.as_nanos() as f64;
            self.average *= libm::pow(1.0 - weight, missed);
        }
    }

    /// `p_b`.
    fn probability(&self, size: u32) -> f64 {
        let RedConfig { unit, min, max, probability, gentle, .. } = self.config;
        let average = self.average;
        let p = if average < min {
            return 0.0;
        } else if average < max {
            probability * (average - min) / (max - min)
        } else if gentle && average < 2.0 * max {
            probability + (1.0 - probability) * (average - max) / max
        } else {
            return 1.0;
        };
        match unit {
            RedUnit::Packets => p,
            RedUnit::Bytes => (p * f64::from(size) / f64::from(LARGEST)).min(1.0),
        }
    }
}
