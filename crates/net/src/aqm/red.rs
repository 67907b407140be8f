//! RED: Random Early Detection (Floyd and Jacobson, "Random early detection gateways for congestion
//! avoidance", IEEE/ACM Transactions on Networking 1 (4), 1993).
//!
//! Every arrival updates the average queue (section 4, equation 1): `avg = avg + w (q - avg)`.
//! After an idle time in which the link could have sent `m` packets at its current rate, the update
//! is `avg = (1 - w)^m avg`. Below `min` all packets pass. From `min` to `max` the probability
//! rises as `p_b = max_p (avg - min) / (max - min)` (equation 2). With `count` packets since the
//! last drop or mark, an arrival is dropped or marked with `p_a = p_b / (1 - count p_b)` (section
//! 7, method 2), which makes the distance between two drops uniform in {1, ..., 1/p_b}. From `max`
//! on all packets are dropped. The gentle variant instead raises `p_b` from `max_p` at `max` to 1
//! at `2 max` (Floyd, "Recommendation on using the gentle variant of RED", 2000).
//!
//! Queue and thresholds are in packets or in bytes. In bytes `p_b` is proportional to the packet's
//! size over the maximum size (section 5).
//!
//! ECN-capable packets are marked instead of dropped up to an average of `max`. Above, they are
//! dropped too (RFC 3168, section 7), unless `hard_drop` is off.

use crate::Backlog;
use crate::aqm::Verdict;
use crate::rng::Rng;

/// Parameters of RED.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct RedConfig {
    /// Unit of the thresholds and of the queue.
    pub unit: RedUnit,
    /// Average queue from which packets are dropped at random (min_th).
    pub min: f64,
    /// Average queue from which all packets are dropped (max_th); with `gentle` twice as much.
    pub max: f64,
    /// Drop probability `p_b` as the average approaches `max` (max_p).
    pub probability: f64,
    /// Weight of the present queue in the average (w_q).
    pub weight: f64,
    /// Whether the probability rises from `max` to twice `max` instead of jumping to 1.
    pub gentle: bool,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Whether ECN-capable packets are dropped too when the average is above `max`.
    pub hard_drop: bool,
}

/// The unit of RED's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
pub enum RedUnit {
    /// Packets of any size.
    Packets,
    /// Bytes.
    Bytes,
}

impl Default for RedConfig {
    /// Floyd, "RED: Discussions of setting parameters", 1997: 5 and 15 packets, max_p 0.1, w_q
    /// 0.002; gentle.
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

/// The state of RED.
#[derive(Clone, Debug)]
pub(crate) struct Red {
    config: RedConfig,
    /// The maximum packet size in bytes, to which byte mode refers.
    mtu: u32,
    avg: f64,
    /// Packets since the last drop or mark.
    count: u32,
    rng: Rng,
}

impl Red {
    pub(crate) fn new(config: RedConfig, mtu: u32, rng: Rng) -> Red {
        Red { config, mtu, avg: 0.0, count: 0, rng }
    }

    /// The maximum packet size in bytes.
    pub(crate) fn mtu(&self) -> u32 {
        self.mtu
    }

    /// Decides about an arriving packet of `size` bytes that finds this backlog. `idle_packets` is
    /// `m`: packets that the link could have sent since it became idle.
    pub(crate) fn on_arrival(&mut self, backlog: Backlog, idle_packets: f64, size: u32) -> Verdict {
        self.update_avg(backlog, idle_packets);
        let p_b = self.p_b(size);
        if p_b == 0.0 {
            self.count = 0;
            return Verdict::Pass;
        }
        let passed = f64::from(self.count) * p_b;
        let p_a = if passed < 1.0 { p_b / (1.0 - passed) } else { 1.0 };
        if self.rng.uniform() >= p_a {
            self.count += 1;
            return Verdict::Pass;
        }
        self.count = 0;
        let may_mark = self.avg < self.config.max || !self.config.hard_drop;
        if self.config.ecn && may_mark { Verdict::Mark } else { Verdict::Drop }
    }

    fn update_avg(&mut self, backlog: Backlog, idle_packets: f64) {
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

    /// `p_b` for a packet of `size` bytes.
    fn p_b(&self, size: u32) -> f64 {
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
            RedUnit::Bytes => (p * f64::from(size) / f64::from(self.mtu)).min(1.0),
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
        Red::new(config, 1500, Rng::new(1, Stream::Aqm))
    }

    fn dropped_share(red: &mut Red, backlog: Backlog, size: u32) -> f64 {
        let packets = 400_000;
        let on_arrival = |_: &u32| red.on_arrival(backlog, 0.0, size) != Verdict::Pass;
        (0..packets).filter(on_arrival).count() as f64 / f64::from(packets)
    }

    /// The mean of a distance uniform in {1, ..., n} is (n + 1) / 2, so the share of dropped
    /// packets is 2 p / (1 + p) if n = 1/p is whole.
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
            red.update_avg(queue(packets), 0.0);
            let got = red.p_b(1500);
            assert!((got - p).abs() < 1e-12, "{got} for {p} at {packets}");
        }
        let mut abrupt = Red { config: RedConfig { gentle: false, ..red.config }, ..red.clone() };
        abrupt.update_avg(queue(20), 0.0);
        assert_eq!(abrupt.p_b(1500), 1.0);
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
        // p = 0.1: 100,000 drops, 10,000 at each distance from 1 to 10 and none beyond; standard
        // deviation 95.
        assert!(counts.iter().all(|&count| count.abs_diff(10_000) < 400), "{counts:?}");
    }

    #[test]
    fn avg_follows_the_queue_with_its_weight() {
        let mut red = red(RedConfig::default());
        red.config.weight = 0.002;
        for _ in 0..500 {
            red.update_avg(queue(100), 0.0);
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
        idle.update_avg(queue(0), 300.0);
        (0..300).for_each(|_| empty.update_avg(queue(0), 0.0));
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
        // RFC 8257, section 3.1: mark if the queue at arrival exceeds K.
        let step = RedConfig { min: 20.0, max: 20.0, gentle: false, ..RedConfig::default() };
        let mut red = red(RedConfig { hard_drop: false, ..step });
        for _ in 0..1000 {
            assert_eq!(red.on_arrival(queue(19), 0.0, 1500), Verdict::Pass);
            assert_eq!(red.on_arrival(queue(20), 0.0, 1500), Verdict::Mark);
        }
    }
}
