//! PIE: Proportional Integral controller Enhanced (RFC 8033).
//!
//! Packets are dropped at random as they come (section 4.1), with a probability that a PI
//! controller adjusts every `update` (15 ms) from the queueing delay and its trend (section 4.2):
//!
//! `p += s (alpha (delay - target) + beta (delay - old delay))`
//!
//! where the step is scaled by `s` from 1/2048 for `p` below 0.000001 up to 1 from 0.1 on, so that
//! it is always small beside `p`; it is at most 0.02 once `p` is at 0.1 (section 5.5). While delay and old delay
//! are below half the target, `p` also shrinks by 2 % an update.
//!
//! Nothing is dropped while the old delay is below half the target and `p` below 0.2, nor if no
//! more than two packets wait (section 4.1), nor within `burst` (150 ms) after congestion has begun
//! (section 4.4). Drops are spread more evenly than chance would (section 5.4): none before the
//! probabilities since the last one add up to 0.85, and one when they come to 8.5.
//!
//! The delay is that of the packet sent last, measured by its time of arrival as section 4.3 allows,
//! or zero if none waits.
//!
//! ECN-capable packets are marked instead while `p` is at most `ecn_limit` (section 5.1: 0.1).

use crate::Waiting;
use crate::aqm::Verdict;
use crate::dice::Dice;
use dumbbell_units::{Span, Time};

/// Parameters of PIE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieConfig {
    /// The queueing delay aimed at (QDELAY_REF).
    pub target: Span,
    /// How often the probability is adjusted (T_UPDATE).
    pub update: Span,
    /// For how long a burst passes untouched (MAX_BURST).
    pub burst: Span,
    /// Weight of the delay beyond the target, 1/s.
    pub alpha: f64,
    /// Weight of the delay's trend, 1/s.
    pub beta: f64,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// The drop probability beyond which ECN-capable packets are dropped too.
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

/// How the step is scaled for a probability below so much (section 4.2).
const SCALES: [(f64, f64); 6] = [
    (0.000_001, 1.0 / 2048.0),
    (0.000_01, 1.0 / 512.0),
    (0.000_1, 1.0 / 128.0),
    (0.001, 1.0 / 32.0),
    (0.01, 1.0 / 8.0),
    (0.1, 1.0 / 2.0),
];

/// Two mean packets: a queue as short as that is left alone.
const SHORT: u64 = 2 * 1500;

/// The state of PIE.
#[derive(Clone, Debug)]
pub(crate) struct Pie {
    config: PieConfig,
    probability: f64,
    /// Sum of the probabilities since the last drop.
    accumulated: f64,
    burst_left: Span,
    /// Delay of the packet sent last, and the delay at the last update.
    delay: Span,
    old_delay: Span,
    next_update: Time,
    dice: Dice,
}

impl Pie {
    pub(crate) fn new(config: PieConfig, dice: Dice) -> Pie {
        Pie {
            config,
            probability: 0.0,
            accumulated: 0.0,
            burst_left: config.burst,
            delay: Span::ZERO,
            old_delay: Span::ZERO,
            next_update: Time::ZERO + config.update,
            dice,
        }
    }

    /// Makes up for the updates until `now`, with so much waiting since the last call.
    pub(crate) fn advance(&mut self, now: Time, waiting: Waiting) {
        while self.next_update <= now {
            if waiting.packets == 0 {
                self.delay = Span::ZERO;
            }
            self.update();
            self.next_update += self.config.update;
        }
    }

    /// A packet was sent that had waited for so long.
    pub(crate) fn sent(&mut self, delay: Span) {
        self.delay = delay;
    }

    /// What happens to a packet that finds so much waiting (Appendix A, `enqueue`).
    pub(crate) fn judge(&mut self, waiting: Waiting) -> Verdict {
        let strikes = self.burst_left.is_zero() && self.strikes(waiting);
        if self.probability == 0.0 && self.is_calm() {
            self.burst_left = self.config.burst;
        }
        match strikes {
            false => Verdict::Pass,
            true if self.config.ecn && self.probability <= self.config.ecn_limit => Verdict::Mark,
            true => Verdict::Drop,
        }
    }

    /// Whether the delay is and was below half the target.
    fn is_calm(&self) -> bool {
        self.delay.max(self.old_delay) < self.config.target / 2
    }

    fn strikes(&mut self, waiting: Waiting) -> bool {
        let was_short = self.old_delay < self.config.target / 2 && self.probability < 0.2;
        if was_short || waiting.bytes <= SHORT {
            return false;
        }
        if self.probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += self.probability;
        let strikes = self.accumulated >= 0.85
            && (self.accumulated >= 8.5 || self.dice.uniform() < self.probability);
        if strikes {
            self.accumulated = 0.0;
        }
        strikes
    }

    /// Adjusts the probability (section 4.2; Appendix A, `calculate_drop_prob`).
    fn update(&mut self) {
        let PieConfig { target, alpha, beta, .. } = self.config;
        let [delay, old, target] =
            [self.delay, self.old_delay, target].map(|span| span.as_nanos() as f64 / 1e9);
        let scale = SCALES.iter().find(|(below, _)| self.probability < *below);
        let mut step = alpha * (delay - target) + beta * (delay - old);
        step *= scale.map_or(1.0, |&(_, scale)| scale);
        if self.probability >= 0.1 {
            step = step.min(0.02);
        }
        self.probability += step;
        if self.is_calm() {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.old_delay = self.delay;
        self.burst_left = self.burst_left.saturating_sub(self.config.update);
    }
}
