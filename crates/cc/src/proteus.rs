//! PCC Proteus (Meng, Rozen Schiff, Godfrey and Schapira, "PCC Proteus: Scavenger Transport And Beyond",
//! SIGCOMM 2020): the rate control of [`crate::vivace`] with other utilities, and a tolerance of noise.
//!
//! With the sending rate `x` in Mbit/s, the share `L` of lost packets, and the slope and the standard
//! deviation `sigma` of the round-trip times of a monitor interval, s:
//!
//! ```text
//! primary    u_P = x^t - b x max(0, dRTT/dT) - c x L         t = 0.9, b = 900, c = 11.35
//! scavenger  u_S = u_P - d x sigma                           d = 1500
//! hybrid     u_P below `threshold`, u_S above
//! ```
//!
//! A queue that other flows fill and drain makes round-trip times vary, so a scavenger yields to them. What
//! is noise counts as 0. Slope and deviation are noise if the slope is at most the root mean square error
//! of its regression, as a part of the mean round-trip time, unless the history shows a change:
//!
//! - The slope of the mean round-trip times of the last 6 intervals leaves its own moving average by more
//!   than 2 of its moving deviations: then the deviation counts, and, if it rises, the slope.
//! - The deviation is above 1 ms and leaves its moving average by more than 4 of its moving deviations:
//!   then it counts.
//!
//! A decision needs a majority of 3 pairs, and all 3 for a decrease. A scavenger takes 2 pairs, which must
//! agree; so does a hybrid flow whose higher rate is above `threshold`.
//!
//! On a link of 50 Mbit/s, 30 ms, a queue of one BDP and no jitter, a scavenger has 3 % beside CUBIC, 7 %
//! beside BBRv1 and 4 to 19 % beside Copa, by when it begins. Beside a primary flow it has 35 %: that flow's
//! queue hardly varies. A primary flow has 12 % beside CUBIC, whose queue it avoids.
//!
//! Facts are those of the authors' code (PCC-Uspace, August 2020); the text of the paper was not at hand.
//!
//! | | authors' code | here |
//! |---|---|---|
//! | rate control | steps of single intervals after a decision, amplified by a power of 1.2 | Vivace's paper |
//! | samples after a long gap between acknowledgements | not used | used |
//! | smallest rate | 0.5 Mbit/s | a packet a round trip |
//! | regression over | packet numbers | time |
//! | slopes below 0.01 | count, if they are no noise | count as 0, as Vivace's |
//!
//! If small slopes counted, two primary flows would share 1 % of that link.

use crate::vivace::{PROBING_STEP, Slope, utility};
use crate::{ConfigError, Options};

/// `d`: the weight of the deviation of the round-trip time, 1/s.
const DEVIATION_COEFFICIENT: f64 = 1500.0;
/// Intervals of which the trend is taken.
const HISTORY: usize = 6;
/// Weight of a new value in moving averages.
const ALPHA: f64 = 0.1;
/// Moving deviations within which the trend of the mean is noise.
const GRADIENT_GAIN: f64 = 2.0;
/// The same of the deviation.
const DEVIATION_GAIN: f64 = 4.0;
/// Deviations below this are noise, s.
const SMALLEST_DEVIATION: f64 = 1e-3;
/// The averages begin anew with a trend so much smaller than the smallest.
const RESET_RATIO: f64 = 100.0;
/// The share of intervals with a high deviation at which its average begins anew.
const RESET_SHARE: f64 = 0.95;

/// How the flow behaves beside others.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Primary,
    Scavenger,
    /// Scavenger above this rate, Mbit/s.
    Hybrid(f64),
}

/// The trend of the mean round-trip time, s an interval.
#[derive(Clone, Copy, Debug, Default)]
struct Trend {
    average: f64,
    deviation: f64,
    last: f64,
    /// `None` before the first.
    smallest: Option<f64>,
}

impl Trend {
    /// Takes a trend; whether it is within the usual.
    fn is_usual(&mut self, trend: f64) -> bool {
        let Some(smallest) = self.smallest.filter(|&s| s > 0.0 && trend.abs() >= s / RESET_RATIO)
        else {
            let size = trend.abs();
            *self = Trend { average: 0.0, deviation: size, last: trend, smallest: Some(size) };
            return true;
        };
        self.smallest = Some(smallest.min(trend.abs()));
        let is_usual = (trend - self.average).abs() <= GRADIENT_GAIN * self.deviation;
        if is_usual {
            self.deviation += ALPHA * ((trend - self.last).abs() - self.deviation);
            self.average += ALPHA * (trend - self.average);
            self.last = trend;
        }
        is_usual
    }
}

/// The usual standard deviation of the round-trip times of an interval, s.
#[derive(Clone, Copy, Debug, Default)]
struct Deviations {
    average: f64,
    deviation: f64,
    unusual_share: f64,
}

impl Deviations {
    /// Takes a deviation; whether it is within the usual.
    fn is_usual(&mut self, sigma: f64) -> bool {
        self.unusual_share *= 1.0 - ALPHA;
        if self.average == 0.0 {
            (self.average, self.deviation) = (sigma, sigma / 2.0);
            return true;
        }
        let limit = self.average + DEVIATION_GAIN * self.deviation;
        if sigma > limit && sigma > SMALLEST_DEVIATION {
            self.unusual_share += ALPHA;
            if self.unusual_share > RESET_SHARE {
                *self = Deviations::default();
            }
            return false;
        }
        self.deviation += ALPHA * ((sigma - self.average).abs() - self.deviation);
        self.average += ALPHA * (sigma - self.average);
        true
    }
}

/// What Proteus judges and decides by.
#[derive(Clone, Debug)]
pub(crate) struct Proteus {
    mode: Mode,
    /// The mean round-trip times of the last intervals, s, and how many there are.
    means: [f64; HISTORY],
    count: usize,
    trend: Trend,
    deviations: Deviations,
}

impl Proteus {
    /// Takes the options `mode` and `threshold`, Mbit/s.
    pub(crate) fn from_options(options: &mut Options) -> Result<Proteus, ConfigError> {
        let threshold =
            options.number("threshold", 10.0, 0.0..=1e6, "0 to 10^6 Mbit/s, for mode=hybrid")?;
        let modes = [
            ("primary", Mode::Primary),
            ("scavenger", Mode::Scavenger),
            ("hybrid", Mode::Hybrid(threshold)),
        ];
        let valid = "primary, scavenger or hybrid";
        let mode = options.choice("mode", Mode::Primary, &modes, valid)?;
        let (trend, deviations) = (Trend::default(), Deviations::default());
        Ok(Proteus { mode, means: [0.0; HISTORY], count: 0, trend, deviations })
    }

    /// Pairs of intervals in a round around `rate`, Mbit/s.
    pub(crate) fn pairs(&self, rate: f64) -> usize {
        let is_scavenger = match self.mode {
            Mode::Primary => false,
            Mode::Scavenger => true,
            Mode::Hybrid(threshold) => rate * (1.0 + PROBING_STEP) > threshold,
        };
        if is_scavenger { 2 } else { 3 }
    }

    /// The gradient to follow after a round, if there is a decision: the mean of those that agree,
    /// with the weight of all.
    pub(crate) fn decide(gradients: &[f64]) -> Option<f64> {
        let ups = gradients.iter().filter(|&&gradient| gradient > 0.0).count();
        let goes_up = ups > gradients.len() / 2;
        let agrees = |gradient: &&f64| (**gradient > 0.0) == goes_up;
        let sum: f64 = gradients.iter().filter(agrees).sum();
        (goes_up || ups == 0).then_some(sum / gradients.len() as f64)
    }

    /// The utility of an interval that sent at `rate`, Mbit/s.
    pub(crate) fn utility(&mut self, rate: f64, rtts: &Slope, loss: f64) -> f64 {
        let (gradient, sigma) = self.without_noise(rtts);
        let primary = utility(rate, gradient.max(0.0), loss);
        let yields = match self.mode {
            Mode::Primary => false,
            Mode::Scavenger => true,
            Mode::Hybrid(threshold) => rate >= threshold,
        };
        if yields { primary - DEVIATION_COEFFICIENT * rate * sigma } else { primary }
    }

    /// Slope and standard deviation of the round-trip times, 0 if they are noise.
    fn without_noise(&mut self, rtts: &Slope) -> (f64, f64) {
        if rtts.count() < 2.0 {
            return (0.0, 0.0);
        }
        let (gradient, sigma) = (rtts.get(), rtts.deviation());
        // The error of the regression, as a part of the mean round-trip time.
        let is_noise = rtts.error() / rtts.mean() >= gradient.abs();
        let (mut gradient_counts, mut sigma_counts) = (!is_noise, !is_noise);
        self.means.rotate_left(1);
        self.means[HISTORY - 1] = rtts.mean();
        self.count = (self.count + 1).min(HISTORY);
        if self.count == HISTORY {
            let mut line = Slope::default();
            for (n, &mean) in self.means.iter().enumerate() {
                line.add(n as f64, mean);
            }
            let trend = line.get();
            if !self.trend.is_usual(trend) {
                gradient_counts |= trend > 0.0;
                sigma_counts = true;
            }
            sigma_counts |= !self.deviations.is_usual(sigma);
        }
        let counted = |value: f64, counts: bool| if counts { value } else { 0.0 };
        (counted(gradient, gradient_counts), counted(sigma, sigma_counts))
    }
}

#[cfg(test)]
mod tests;
