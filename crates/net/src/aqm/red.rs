//! RED: Random Early Detection (Floyd and Jacobson, "Random early detection gateways for
//! congestion avoidance", IEEE/ACM Transactions on Networking 1 (4), 1993).
//!
//! For every packet that comes, the average queue is updated (section 4, equation 1):
//! `avg = avg + w (q - avg)`, or, after the link was idle for as long as `m` packets take to send at
//! the rate of the moment, `avg = (1 - w)^m avg`. Below `min` all packets pass. From there to `max` the
//! probability rises to `p_b = P (avg - min) / (max - min)` (equation 2), and a packet that comes as
//! the n-th after the last one struck is struck with `p_b / (1 - (n - 1) p_b)` (section 7, method 2),
//! which makes the distance between two strikes uniform in {1, ..., 1/p_b}. From `max` on all packets
//! are struck; or, if it is gentle (Floyd, "Recommendation on using the gentle variant of RED",
//! 2000), the probability rises on from `P` at `max` to 1 at `2 max`.
//!
//! Queue and thresholds are counted in packets or in bytes; in bytes a packet is struck in
//! proportion to its size (section 5: `p_b` times its size over the largest).
//!
//! ECN-capable packets are marked where others are dropped, up to an average of `max`; beyond they
//! are dropped too (RFC 3168, section 7), unless `hard_drop` is off.

use crate::Backlog;
use crate::aqm::Verdict;
use crate::rng::Rng;
use serde::{Deserialize, Serialize};

/// Parameters of RED.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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
pub(crate) const MAX_PACKET_SIZE: u32 = 1500;

/// The state of RED.
#[derive(Clone, Debug)]
pub(crate) struct Red {
    config: RedConfig,
    avg: f64,
    /// Packets since the last one that was struck.
    count: u32,
    rng: Rng,
}

impl Red {
    pub(crate) fn new(config: RedConfig, rng: Rng) -> Red {
        Red { config, avg: 0.0, count: 0, rng }
    }

    /// What happens to a packet of `size` bytes that finds so much waiting on a link that could have
    /// sent `idle_packets` packets since it became idle.
    pub(crate) fn on_arrival(&mut self, backlog: Backlog, idle_packets: f64, size: u32) -> Verdict {
        self.update(backlog, idle_packets);
        let p = self.probability(size);
        if p == 0.0 {
            self.count = 0;
            return Verdict::Pass;
        }
        let passed = f64::from(self.count) * p;
        let p = if passed < 1.0 { p / (1.0 - passed) } else { 1.0 };
        if self.rng.uniform() >= p {
            self.count += 1;
            return Verdict::Pass;
        }
        self.count = 0;
        let may_mark = self.avg < self.config.max || !self.config.hard_drop;
        if self.config.ecn && may_mark { Verdict::Mark } else { Verdict::Drop }
    }

    fn update(&mut self, backlog: Backlog, idle_packets: f64) {
        let queue = match self.config.unit {
            RedUnit::Packets => f64::from(backlog.packets),
            RedUnit::Bytes => backlog.bytes as f64,
        };
        let weight = self.config.weight;
        if backlog.packets > 0 || idle_packets == 0.0 {
            self.avg += weight * (queue - self.avg);
        } else {
            self.avg *= libm::pow(1.0 - weight, idle_packets);
        }
    }

    /// `p_b`.
    fn probability(&self, size: u32) -> f64 {
        let RedConfig { unit, min, max, probability, gentle, .. } = self.config;
        let avg = self.avg;
        let p = if avg < min {
            return 0.0;
        } else if avg < max {
            probability * (avg - min) / (max - min)
        } else if gentle && avg < 2.0 * max {
            probability + (1.0 - probability) * (avg - max) / max
        } else {
            return 1.0;
        };
        match unit {
            RedUnit::Packets => p,
            RedUnit::Bytes => (p * f64::from(size) / f64::from(MAX_PACKET_SIZE)).min(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    fn queue(packets: u32) -> Backlog {
        Backlog { packets, bytes: u64::from(packets) * 1500 }
    }

    /// RED whose average is the present queue.
    fn red(config: RedConfig) -> Red {
        let config = RedConfig { weight: 1.0, ..config };
        Red::new(config, Rng::new(1, Stream::Aqm))
    }

    fn dropped_share(red: &mut Red, backlog: Backlog, size: u32) -> f64 {
        let packets = 400_000;
        let on_arrival = |_: &u32| red.on_arrival(backlog, 0.0, size) != Verdict::Pass;
        (0..packets).filter(on_arrival).count() as f64 / f64::from(packets)
    }

    /// The mean of a distance that is uniform in {1, ..., n} is (n + 1) / 2, so the share of
    /// packets struck is 2 p / (1 + p) if n = 1/p is whole.
    fn expected(p: f64) -> f64 {
        2.0 * p / (1.0 + p)
    }

    #[test]
    fn p_b_rises_from_0_at_min_to_max_p_at_max_and_to_1_at_twice_max() {
        let config = RedConfig { min: 10.0, max: 20.0, probability: 0.1, ..RedConfig::default() };
        let mut red = red(config);
        for (packets, p) in [
            (9, 0.0),
            (10, 0.0),
            (12, 0.02),
            (15, 0.05),
            (20, 0.1),
            (30, 0.55),
            (40, 1.0),
            (99, 1.0),
        ] {
            red.update(queue(packets), 0.0);
            let got = red.probability(1500);
            assert!((got - p).abs() < 1e-12, "{got} for {p} at {packets}");
        }
        let mut abrupt = Red { config: RedConfig { gentle: false, ..red.config }, ..red.clone() };
        abrupt.update(queue(20), 0.0);
        assert_eq!(abrupt.probability(1500), 1.0);
    }

    #[test]
    fn packets_are_dropped_with_the_probability_p_a() {
        let config = RedConfig { min: 10.0, max: 20.0, probability: 0.1, ..RedConfig::default() };
        for (packets, p) in [(12, 0.02), (15, 0.05), (20, 0.1)] {
            let share = dropped_share(&mut red(config), queue(packets), 1500);
            assert!((share / expected(p) - 1.0).abs() < 0.03, "{share} for {p}");
        }
        assert_eq!(dropped_share(&mut red(config), queue(9), 1500), 0.0);
        assert_eq!(dropped_share(&mut red(config), queue(40), 1500), 1.0);
    }

    #[test]
    fn the_distance_between_two_drops_is_uniform_up_to_one_over_p() {
        let config = RedConfig { min: 10.0, max: 20.0, probability: 0.2, ..RedConfig::default() };
        let mut red = red(config);
        let (mut counts, mut distance) = ([0u32; 10], 0);
        for _ in 0..550_000 {
            distance += 1;
            if red.on_arrival(queue(15), 0.0, 1500) != Verdict::Pass {
                counts[distance - 1] += 1;
                distance = 0;
            }
        }
        // p = 0.1: 100,000 strikes, 10,000 at each distance from 1 to 10 and none beyond; the
        // standard deviation is 95.
        assert!(counts.iter().all(|&count| count.abs_diff(10_000) < 400), "{counts:?}");
    }

    #[test]
    fn avg_follows_the_queue_with_its_weight() {
        let mut red = red(RedConfig::default());
        red.config.weight = 0.002;
        for _ in 0..500 {
            red.update(queue(100), 0.0);
        }
        // 1 - (1 - w)^n of the step (section 6 of the paper).
        let expected = 100.0 * (1.0 - 0.998f64.powi(500));
        assert!((red.avg - expected).abs() < 1e-9, "{} for {expected}", red.avg);
    }

    #[test]
    fn an_idle_link_decays_avg_as_m_packets_that_find_it_empty() {
        let mut idle = red(RedConfig::default());
        idle.config.weight = 0.002;
        idle.avg = 50.0;
        let mut empty = idle.clone();
        idle.update(queue(0), 300.0);
        (0..300).for_each(|_| empty.update(queue(0), 0.0));
        assert!((idle.avg - empty.avg).abs() < 1e-9);
    }

    #[test]
    fn in_byte_mode_p_b_is_proportional_to_the_packet_size() {
        let bytes = RedConfig {
            unit: RedUnit::Bytes,
            min: 15_000.0,
            max: 30_000.0,
            probability: 0.1,
            ..RedConfig::default()
        };
        let full = dropped_share(&mut red(bytes), queue(20), 1500);
        let small = dropped_share(&mut red(bytes), queue(20), 150);
        assert!((full / expected(0.1) - 1.0).abs() < 0.03, "{full}");
        assert!((small / expected(0.01) - 1.0).abs() < 0.05, "{small}");
    }

    #[test]
    fn marks_become_drops_beyond_max_unless_hard_drop_is_off() {
        let verdict = |config, packets| {
            let mut red = red(config);
            (0..100).map(|_| red.on_arrival(queue(packets), 0.0, 1500)).max_by_key(|v| *v as u8)
        };
        let config = RedConfig { probability: 1.0, ..RedConfig::default() };
        assert_eq!(verdict(config, 14), Some(Verdict::Mark));
        assert_eq!(verdict(config, 15), Some(Verdict::Drop));
        assert_eq!(verdict(RedConfig { hard_drop: false, ..config }, 40), Some(Verdict::Mark));
        assert_eq!(verdict(RedConfig { ecn: false, ..config }, 14), Some(Verdict::Drop));
    }

    #[test]
    fn min_equal_to_max_and_weight_1_give_dctcps_step_marking() {
        // RFC 8257, section 3.1: mark if the queue that a packet finds is longer than K.
        let step = RedConfig { min: 20.0, max: 20.0, gentle: false, ..RedConfig::default() };
        let mut red = red(RedConfig { hard_drop: false, ..step });
        for _ in 0..1000 {
            assert_eq!(red.on_arrival(queue(19), 0.0, 1500), Verdict::Pass);
            assert_eq!(red.on_arrival(queue(20), 0.0, 1500), Verdict::Mark);
        }
    }
}
