//! The delay-based rate control (draft, section 5.5). Rates are in bit/s.

use super::Signal;
use dumbbell_units::{Span, Time};

/// Multiplicative increase per second, and decrease.
const ETA: f64 = 1.08;
const BETA: f64 = 0.85;
/// A_hat stays below so many times R_hat.
const MAX_RATIO: f64 = 1.5;
/// Weight of a sample in the average of R_hat at decreases (draft: exponential smoothing by 0.95).
const SMOOTHING: f64 = 0.05;
/// Limits of the variance over the average, kbit/s (libwebrtc: `LinkCapacityEstimator`).
const VARIANCE: (f64, f64) = (0.4, 2.5);
/// Frames per second and packet that the additive increase assumes.
const FPS: f64 = 30.0;
const PACKET: f64 = 1200.0 * 8.0;
/// Limits of the interval between decreases (libwebrtc: `TimeToReduceFurther`).
const REDUCE: (Span, Span) = (Span::from_millis(10), Span::from_millis(200));

/// The average and the variance of R_hat when there was congestion, kbit/s.
#[derive(Clone, Copy, Debug)]
struct LinkCapacity {
    average: f64,
    /// Over the average.
    variance: f64,
}

impl LinkCapacity {
    fn deviation(self) -> f64 {
        libm::sqrt(self.variance * self.average)
    }

    /// Whether a rate is within three standard deviations.
    fn has(self, kbps: f64) -> bool {
        (kbps - self.average).abs() <= 3.0 * self.deviation()
    }
}

/// A_hat.
#[derive(Clone, Debug)]
pub(super) struct AimdRateControl {
    rate: f64,
    min: f64,
    max: f64,
    capacity: Option<LinkCapacity>,
    updated_at: Option<Time>,
    reduced_at: Option<Time>,
}

impl AimdRateControl {
    pub(super) fn new(start: f64) -> AimdRateControl {
        AimdRateControl {
            rate: start,
            min: 0.0,
            max: f64::INFINITY,
            capacity: None,
            updated_at: None,
            reduced_at: None,
        }
    }

    pub(super) fn set_limits(&mut self, min: f64, max: f64) {
        (self.min, self.max) = (min, max);
        self.rate = self.rate.max(min).min(max);
    }

    pub(super) fn target(&self) -> f64 {
        self.rate
    }

    /// Updates the rate by a signal, the incoming rate and the round-trip time.
    pub(super) fn update(
        &mut self,
        now: Time,
        signal: Signal,
        r_hat: Option<f64>,
        rtt: Option<Span>,
    ) {
        let rtt = rtt.unwrap_or(Span::from_millis(200));
        let elapsed = self.updated_at.map_or(Span::ZERO, |at| now.since(at));
        self.updated_at = Some(now);
        // The table of section 5.5: over-use is decrease, then hold; under-use is hold; otherwise
        // the rate grows.
        match signal {
            Signal::Overuse => {
                if let Some(r_hat) = r_hat
                    && self.may_reduce(now, r_hat, rtt)
                {
                    self.decrease(now, r_hat);
                }
            }
            Signal::Underuse => {}
            Signal::Normal => self.increase(elapsed, r_hat, rtt),
        }
        self.rate = self.rate.max(self.min).min(self.max);
    }

    /// Once per round trip, or at once if only half of the rate arrives.
    fn may_reduce(&self, now: Time, r_hat: f64, rtt: Span) -> bool {
        let interval = rtt.max(REDUCE.0).min(REDUCE.1);
        let is_due = self.reduced_at.is_none_or(|at| now.since(at) >= interval);
        is_due || r_hat < 0.5 * self.rate
    }

    fn decrease(&mut self, now: Time, r_hat: f64) {
        self.rate = self.rate.min(BETA * r_hat);
        self.reduced_at = Some(now);
        let kbps = r_hat / 1e3;
        let known = self.capacity.filter(|known| kbps >= known.average - 3.0 * known.deviation());
        self.capacity = Some(match known {
            None => LinkCapacity { average: kbps, variance: VARIANCE.0 },
            Some(LinkCapacity { average, variance }) => {
                let average = (1.0 - SMOOTHING) * average + SMOOTHING * kbps;
                let error = average - kbps;
                let norm = average.max(1.0);
                let variance = (1.0 - SMOOTHING) * variance + SMOOTHING * error * error / norm;
                LinkCapacity { average, variance: variance.clamp(VARIANCE.0, VARIANCE.1) }
            }
        });
    }

    fn increase(&mut self, elapsed: Span, r_hat: Option<f64>, rtt: Span) {
        let Some(r_hat) = r_hat else { return };
        let kbps = r_hat / 1e3;
        // Above the known capacity there is a new one.
        self.capacity =
            self.capacity.filter(|known| kbps <= known.average + 3.0 * known.deviation());
        let seconds = elapsed.as_secs_f64();
        let increased = if self.capacity.is_some_and(|known| known.has(kbps)) {
            let response_time = 0.1 + rtt.as_secs_f64();
            let alpha = 0.5 * (seconds / response_time).min(1.0);
            self.rate + (alpha * expected_packet(self.rate)).max(1000.0)
        } else {
            self.rate * libm::pow(ETA, seconds.min(1.0))
        };
        self.rate = self.rate.max(increased.min(MAX_RATIO * r_hat));
    }
}

/// Bits of a packet at this rate.
fn expected_packet(rate: f64) -> f64 {
    let frame = rate / FPS;
    frame / libm::ceil(frame / PACKET).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn update(aimd: &mut AimdRateControl, millis: u64, signal: Signal, r_hat: f64) {
        aimd.update(at(millis), signal, Some(r_hat), Some(Span::from_millis(100)));
    }

    #[test]
    fn the_rate_grows_by_8_percent_a_second_far_from_congestion() {
        let mut aimd = AimdRateControl::new(1e6);
        (0..=100).for_each(|tenth| update(&mut aimd, 100 * tenth, Signal::Normal, 5e6));
        assert!((aimd.target() / (1e6 * 1.08_f64.powi(10)) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn overuse_sets_the_rate_to_0_85_of_what_arrives() {
        let mut aimd = AimdRateControl::new(1.2e6);
        update(&mut aimd, 0, Signal::Normal, 1e6);
        update(&mut aimd, 100, Signal::Overuse, 1e6);
        assert_eq!(aimd.target(), 0.85e6);
        // The next decrease comes a round trip later, and one that would raise the rate has none.
        update(&mut aimd, 150, Signal::Overuse, 0.9e6);
        assert_eq!(aimd.target(), 0.85e6);
        update(&mut aimd, 200, Signal::Overuse, 1.5e6);
        assert_eq!(aimd.target(), 0.85e6);
    }

    #[test]
    fn near_congestion_the_rate_grows_by_half_a_packet_per_response_time() {
        let mut aimd = AimdRateControl::new(1.2e6);
        update(&mut aimd, 0, Signal::Overuse, 1e6);
        update(&mut aimd, 100, Signal::Normal, 1e6);
        // 850 kbit/s at 30 frames/s: 28,333 bits in 3 packets; alpha = 0.5 * 100 ms / 200 ms.
        let expected = 0.85e6 + 0.25 * (0.85e6 / 30.0 / 3.0);
        assert!((aimd.target() - expected).abs() < 1.0, "{}", aimd.target());
    }

    #[test]
    fn the_rate_stays_below_one_and_a_half_times_what_arrives() {
        let mut aimd = AimdRateControl::new(1e6);
        (0..=300).for_each(|tenth| update(&mut aimd, 100 * tenth, Signal::Normal, 1e6));
        assert!((aimd.target() - 1.5e6).abs() < 1.0);
    }
}
