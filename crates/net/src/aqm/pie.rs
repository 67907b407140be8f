//! PIE: Proportional Integral controller Enhanced (RFC 8033).
//!
//! Packets are dropped at random on arrival (section 4.1), with a probability `p` that a PI
//! controller updates every `update` (15 ms) from the queueing delay and its trend (section 4.2):
//!
//! `p += s (alpha (current_qdelay - target) + beta (current_qdelay - qdelay_old))`
//!
//! The factor `s` rises from 1/2048 for `p` below 0.000001 to 1 from 0.1 on, which keeps the step
//! small relative to `p`. From `p` = 0.1 on the step is at most 0.02 (section 5.5). While both
//! delays are below half the target, `p` also shrinks by 2 % per update, as in the RFC's pseudocode; by
//! the text of section 4.2 only at a delay of zero.
//!
//! Nothing is dropped while `qdelay_old` is below half the target and `p` below 0.2, nor while the
//! backlog is at most two packets (section 4.1), nor within `burst` (150 ms) after the start of
//! congestion (section 4.4). Drops are derandomized (section 5.4): none before the probabilities
//! since the last drop add up to 0.85, and one for certain at 8.5.
//!
//! The delay is the sojourn time of the packet sent last, as section 4.3 allows, or zero if the
//! queue is empty.
//!
//! PIE is always active. Switching it off while the queue is short (section 5.3) only saves work.
//!
//! ECN-capable packets are marked instead while `p` is at most `ecn_limit` (section 5.1: 0.1).
//!
//! Linux (net/sched/sch_pie.c) differs:
//! - Above 250 ms it adds 0.02 to `p` at every update, at any `p` (pie_calculate_probability).
//! - `p` shrinks by 1/64, and only while both delays are zero (pie_calculate_probability).
//! - Packets pass while the current delay, not the old one, is below half the target
//!   (pie_drop_early).
//! - Packets pass while the backlog is less than two full frames: the third packet may be dropped
//!   (pie_drop_early).
//! - A tail drop resets the sum of probabilities (pie_qdisc_enqueue).
//! - A mark at a sum of 8.5 does not reset it, so every packet is marked until one is dropped
//!   (pie_drop_early).
//! - The delay is zero after a packet that leaves the queue empty (pie_process_dequeue).
//! - The burst allowance falls at each departure by the time since the one before, not at each update
//!   (pie_process_dequeue).

use crate::Backlog;
use crate::aqm::Verdict;
use crate::rng::Rng;
use dumbbell_units::{Span, Time};

/// Parameters of PIE.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct PieConfig {
    /// Target queueing delay (QDELAY_REF).
    #[cfg_attr(feature = "serde", serde(rename = "target_ns"))]
    pub target: Span,
    /// Update interval of the drop probability (T_UPDATE).
    #[cfg_attr(feature = "serde", serde(rename = "update_ns"))]
    pub update: Span,
    /// Length of a burst that passes without drops (MAX_BURST).
    #[cfg_attr(feature = "serde", serde(rename = "burst_ns"))]
    pub burst: Span,
    /// Weight of the delay beyond the target, 1/s.
    pub alpha: f64,
    /// Weight of the delay's trend, 1/s.
    pub beta: f64,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Drop probability above which ECN-capable packets are dropped too.
    pub ecn_limit: f64,
}

impl Default for PieConfig {
    /// RFC 8033, sections 4.2, 4.4 and 5.1.
    fn default() -> PieConfig {
        PieConfig {
            target: Span::from_millis(15),
            update: Span::from_millis(15),
            burst: Span::from_millis(150),
            alpha: 0.125,
            beta: 1.25,
            ecn: true,
            ecn_limit: 0.1,
        }
    }
}

/// (upper bound of the probability, scale of the step) (section 4.2).
const SCALES: [(f64, f64); 6] = [
    (0.000_001, 1.0 / 2048.0),
    (0.000_01, 1.0 / 512.0),
    (0.000_1, 1.0 / 128.0),
    (0.001, 1.0 / 32.0),
    (0.01, 1.0 / 8.0),
    (0.1, 1.0 / 2.0),
];

/// The state of PIE; names as in RFC 8033, appendix A.
#[derive(Clone, Debug)]
pub(crate) struct Pie {
    config: PieConfig,
    /// Two mean packets: a backlog of at most this many bytes is never dropped from (section 4.1).
    min_backlog: u64,
    drop_prob: f64,
    /// Sum of the probabilities since the last drop.
    accu_prob: f64,
    burst_allowance: Span,
    /// Sojourn time of the packet sent last, and the delay at the last update.
    current_qdelay: Span,
    qdelay_old: Span,
    next_update: Time,
    rng: Rng,
}

impl Pie {
    pub(crate) fn new(config: PieConfig, mtu: u32, rng: Rng) -> Pie {
        Pie {
            config,
            min_backlog: 2 * u64::from(mtu),
            drop_prob: 0.0,
            accu_prob: 0.0,
            burst_allowance: config.burst,
            current_qdelay: Span::ZERO,
            qdelay_old: Span::ZERO,
            next_update: Time::ZERO + config.update,
            rng,
        }
    }

    /// Runs the updates that are due by `now`. `backlog` is the queue since the last call.
    pub(crate) fn update_until(&mut self, now: Time, backlog: Backlog) {
        while self.next_update <= now {
            if backlog.packets == 0 {
                self.current_qdelay = Span::ZERO;
            }
            self.calculate_drop_prob();
            self.next_update += self.config.update;
        }
    }

    /// Records the sojourn time of a packet that is sent.
    pub(crate) fn on_departure(&mut self, delay: Span) {
        self.current_qdelay = delay;
    }

    /// Decides about a packet that finds this backlog (Appendix A, `enqueue`).
    pub(crate) fn on_arrival(&mut self, backlog: Backlog) -> Verdict {
        let drop_early = self.burst_allowance.is_zero() && self.drop_early(backlog);
        if self.drop_prob == 0.0 && self.is_calm() {
            self.burst_allowance = self.config.burst;
        }
        match drop_early {
            false => Verdict::Pass,
            true if self.config.ecn && self.drop_prob <= self.config.ecn_limit => Verdict::Mark,
            true => Verdict::Drop,
        }
    }

    /// Whether the delay is and was below half the target.
    fn is_calm(&self) -> bool {
        self.current_qdelay.max(self.qdelay_old) < self.config.target / 2
    }

    fn drop_early(&mut self, backlog: Backlog) -> bool {
        let was_short = self.qdelay_old < self.config.target / 2 && self.drop_prob < 0.2;
        if was_short || backlog.bytes <= self.min_backlog {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        self.accu_prob += self.drop_prob;
        let drop_early = self.accu_prob >= 0.85
            && (self.accu_prob >= 8.5 || self.rng.uniform() < self.drop_prob);
        if drop_early {
            self.accu_prob = 0.0;
        }
        drop_early
    }

    /// Updates the drop probability (section 4.2; Appendix A, `calculate_drop_prob`).
    fn calculate_drop_prob(&mut self) {
        let PieConfig { target, alpha, beta, .. } = self.config;
        let [delay, old, target] =
            [self.current_qdelay, self.qdelay_old, target].map(|span| span.as_nanos() as f64 / 1e9);
        let scale = SCALES.iter().find(|(below, _)| self.drop_prob < *below);
        let mut step = alpha * (delay - target) + beta * (delay - old);
        step *= scale.map_or(1.0, |&(_, scale)| scale);
        if self.drop_prob >= 0.1 {
            step = step.min(0.02);
        }
        self.drop_prob += step;
        if self.is_calm() {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = self.current_qdelay;
        self.burst_allowance = self.burst_allowance.saturating_sub(self.config.update);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    const STANDING: Backlog = Backlog { packets: 100, bytes: 150_000 };

    fn pie() -> Pie {
        Pie::new(PieConfig::default(), 1500, Rng::new(1, Stream::Aqm))
    }

    fn ms(ms: u64) -> Span {
        Span::from_millis(ms)
    }

    /// The change of this probability by one update when the delay went from `old` to `delay`.
    fn step(drop_prob: f64, old: Span, delay: Span) -> f64 {
        let mut pie = Pie { drop_prob, qdelay_old: old, current_qdelay: delay, ..pie() };
        pie.calculate_drop_prob();
        pie.drop_prob - drop_prob
    }

    #[test]
    fn the_step_is_scaled_as_in_the_rfcs_table() {
        // 0.125 (30 - 15) ms + 1.25 (30 - 20) ms = 0.014375, over the table's divisors.
        for (drop_prob, divisor) in [
            (0.0, 2048.0),
            (0.000_000_9, 2048.0),
            (0.000_001, 512.0),
            (0.000_009, 512.0),
            (0.000_01, 128.0),
            (0.000_1, 32.0),
            (0.001, 8.0),
            (0.009, 8.0),
            (0.01, 2.0),
            (0.099, 2.0),
            (0.1, 1.0),
            (0.5, 1.0),
        ] {
            let got = step(drop_prob, ms(20), ms(30));
            let expected = 0.014375 / divisor;
            assert!((got / expected - 1.0).abs() < 1e-9, "{got} for {expected} at {drop_prob}");
        }
    }

    #[test]
    fn from_one_tenth_drop_prob_grows_by_at_most_0_02_an_update() {
        // 0.125 * 0.085 + 1.25 * 0.1 = 0.135625 without the cap.
        assert!((step(0.1, Span::ZERO, ms(100)) - 0.02).abs() < 1e-12);
        assert!((step(0.09, Span::ZERO, ms(100)) - 0.135_625 / 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_short_delay_shrinks_drop_prob_by_two_percent_an_update() {
        // 0.125 (0 - 15) ms + 1.25 (0 - 0) = -0.001875, then 2 % of the rest.
        let got = step(0.5, Span::ZERO, Span::ZERO);
        assert!((got - ((0.5 - 0.001_875) * 0.98 - 0.5)).abs() < 1e-12, "{got}");
        // At exactly half the target only the controller acts: 0.125 * -7.5 ms.
        let got = step(0.5, Span::from_micros(7_500), Span::from_micros(7_500));
        assert!((got + 0.000_937_5).abs() < 1e-12, "{got}");
        assert_eq!(step(0.0, Span::ZERO, Span::ZERO), 0.0, "it is never below zero");
        assert_eq!(step(1.0, ms(100), ms(1000)), 0.0, "nor above one");
    }

    #[test]
    fn drop_prob_is_updated_every_15_ms_even_if_advanced_seldom() {
        let delays = |pie: &mut Pie| pie.on_departure(ms(40));
        let (mut often, mut seldom) = (pie(), pie());
        delays(&mut often);
        delays(&mut seldom);
        for now in 1..=1_000u64 {
            often.update_until(Time::ZERO + ms(now), STANDING);
        }
        seldom.update_until(Time::ZERO + ms(1_000), STANDING);
        assert_eq!(often.drop_prob, seldom.drop_prob);
        assert_eq!(seldom.next_update, Time::ZERO + ms(1_005));
        // The first of 66 updates sees the delay rise from 0: (0.125 * 25 ms + 1.25 * 40 ms) /
        // 2048. Each other one adds 0.003125 over the table's divisors.
        let mut p = 0.053_125 / 2048.0;
        for _ in 1..66 {
            let scale = SCALES.iter().find(|(below, _)| p < *below).map_or(1.0, |s| s.1);
            p += 0.003_125 * scale;
        }
        assert!((often.drop_prob / p - 1.0).abs() < 1e-9, "{} for {p}", often.drop_prob);
    }

    #[test]
    fn a_burst_of_150_ms_passes_without_drops() {
        let mut pie = pie();
        pie.on_arrival(Backlog::default());
        pie.on_departure(ms(200));
        pie.drop_prob = 0.9;
        for update in 1..10 {
            pie.update_until(Time::ZERO + ms(15) * update, STANDING);
            assert_eq!(pie.on_arrival(STANDING), Verdict::Pass, "{update} updates");
        }
        pie.update_until(Time::ZERO + ms(150), STANDING);
        let verdicts: Vec<Verdict> = (0..20).map(|_| pie.on_arrival(STANDING)).collect();
        assert!(verdicts.contains(&Verdict::Drop));
    }

    #[test]
    fn pie_never_drops_from_short_queues_or_at_short_delays() {
        let congested = Pie {
            drop_prob: 0.19,
            burst_allowance: Span::ZERO,
            qdelay_old: ms(7),
            current_qdelay: ms(20),
            ..pie()
        };
        let drop_early =
            |mut pie: Pie, backlog| (0..1000).any(|_| pie.on_arrival(backlog) != Verdict::Pass);
        let two = Backlog { packets: 2, bytes: 3000 };
        assert!(!drop_early(congested.clone(), STANDING), "the delay was short, p below 0.2");
        assert!(drop_early(Pie { drop_prob: 0.2, ..congested.clone() }, STANDING));
        assert!(drop_early(Pie { qdelay_old: ms(8), ..congested.clone() }, STANDING));
        assert!(!drop_early(Pie { qdelay_old: ms(8), ..congested }, two));
    }

    #[test]
    fn accu_prob_bounds_the_distance_between_drops() {
        let congested = Pie {
            burst_allowance: Span::ZERO,
            qdelay_old: ms(20),
            current_qdelay: ms(20),
            ..pie()
        };
        let mut pie = Pie { drop_prob: 1.0 / 16.0, ..congested };
        let (mut gaps, mut gap) = (Vec::new(), 0);
        for _ in 0..1_000_000 {
            gap += 1;
            if pie.on_arrival(STANDING) != Verdict::Pass {
                gaps.push(gap);
                gap = 0;
            }
        }
        // From 0.85/p = 13.6 to 8.5/p = 136 packets; in between with probability p each.
        assert_eq!((gaps.iter().min(), gaps.iter().max()), (Some(&14), Some(&136)));
        let mean = gaps.iter().sum::<u32>() as f64 / gaps.len() as f64;
        assert!((mean - (13.0 + 16.0)).abs() < 0.5, "{mean}");
    }

    #[test]
    fn ecn_capable_packets_are_marked_up_to_a_tenth_and_dropped_beyond() {
        let congested = Pie {
            burst_allowance: Span::ZERO,
            qdelay_old: ms(20),
            current_qdelay: ms(20),
            ..pie()
        };
        let verdict = |drop_prob, ecn| {
            let config = PieConfig { ecn, ..PieConfig::default() };
            let mut pie = Pie { drop_prob, config, ..congested.clone() };
            (0..1000).map(|_| pie.on_arrival(STANDING)).find(|verdict| *verdict != Verdict::Pass)
        };
        assert_eq!(verdict(0.1, true), Some(Verdict::Mark));
        assert_eq!(verdict(0.11, true), Some(Verdict::Drop));
        assert_eq!(verdict(0.1, false), Some(Verdict::Drop));
    }
}
