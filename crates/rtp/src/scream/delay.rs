//! The queue delay (SCReAMv2, "Detecting Increased Queue Delay"; RFC 6817 for the base delay).

use dumbbell_units::{Span, Time};
use std::collections::VecDeque;

/// Minima of the base delay that are kept, one a minute (RFC 6817, section 4.2: BASE_HISTORY).
const BASE_HISTORY: usize = 10;
const MINUTE: Span = Span::from_secs(60);
/// Gain of the average while the delay rises.
const QDELAY_AVG_G: f64 = 1.0 / 4.0;
const QDELAY_DEV_AVG_G: f64 = 1.0 / 64.0;
/// Normalisation of the deviation, s.
const QDELAY_DEV_NORM: f64 = 0.025;

/// The minimum one-way delay of the latest minutes.
#[derive(Clone, Debug, Default)]
pub(super) struct BaseDelay {
    /// (start of the minute, minimum in ns), the latest last. Clocks may differ, so delays may be
    /// negative.
    minima: VecDeque<(Time, i64)>,
}

impl BaseDelay {
    /// The queue delay of a packet, s.
    pub(super) fn queue_delay(&mut self, now: Time, sent_at: Time, arrived_at: Time) -> f64 {
        let delay = arrived_at.as_nanos() as i64 - sent_at.as_nanos() as i64;
        match self.minima.back_mut() {
            Some((start, min)) if now.since(*start) < MINUTE => *min = delay.min(*min),
            _ => self.minima.push_back((now, delay)),
        }
        if self.minima.len() > BASE_HISTORY {
            self.minima.pop_front();
        }
        let base = self.minima.iter().map(|minimum| minimum.1).min().unwrap_or(delay);
        (delay - base) as f64 / 1e9
    }
}

/// The queue delay and how it varies.
#[derive(Clone, Debug, Default)]
pub(super) struct QueueDelay {
    /// `qdelay`, s.
    pub(super) latest: f64,
    /// `qdelay_avg`, s.
    pub(super) avg: f64,
    qdelay_dev_norm: f64,
    last_update_qdelay_avg_time: Time,
}

impl QueueDelay {
    /// Updates the averages if `interval` (s) has passed since the last time.
    pub(super) fn update(&mut self, now: Time, interval: f64, ref_wnd_ratio: f64) {
        if now.since(self.last_update_qdelay_avg_time).as_secs_f64() < interval {
            return;
        }
        self.avg = if self.latest < self.avg {
            self.latest
        } else {
            QDELAY_AVG_G * self.latest + (1.0 - QDELAY_AVG_G) * self.avg
        };
        let threshold = threshold(ref_wnd_ratio);
        let deviation = (self.latest - QDELAY_DEV_NORM / 4.0) / QDELAY_DEV_NORM;
        let deviation = deviation.min(threshold * 1.5).max(0.0);
        self.qdelay_dev_norm =
            (1.0 - QDELAY_DEV_AVG_G) * self.qdelay_dev_norm + QDELAY_DEV_AVG_G * deviation;
        self.last_update_qdelay_avg_time = now;
    }

    /// 1 with a steady delay, down to 0 at the threshold.
    pub(super) fn dev_scale(&self, ref_wnd_ratio: f64) -> f64 {
        let threshold = threshold(ref_wnd_ratio);
        ((threshold - self.qdelay_dev_norm) / threshold).max(0.0)
    }
}

/// `qdelay_dev_norm_th`.
fn threshold(ref_wnd_ratio: f64) -> f64 {
    (0.1 * (1.0 - ref_wnd_ratio / 0.1)).max(0.05)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_delay_is_the_minimum_of_ten_minutes() {
        let mut base = BaseDelay::default();
        let mut delay = |minute: u64, millis: u64| {
            let sent = Time::ZERO + MINUTE * minute;
            let at = sent + Span::from_millis(millis);
            base.queue_delay(at, sent, at)
        };
        assert_eq!(delay(0, 50), 0.0);
        assert!((delay(0, 80) - 0.030).abs() < 1e-9);
        assert!((1..10).all(|minute| (delay(minute, 80) - 0.030).abs() < 1e-9));
        assert_eq!(delay(11, 80), 0.0); // the minute of the 50 ms is forgotten
    }

    #[test]
    fn the_average_rises_slowly_and_falls_at_once() {
        let mut delay = QueueDelay { latest: 0.04, ..QueueDelay::default() };
        let mut now = Time::ZERO;
        let mut update = |delay: &mut QueueDelay| {
            now += Span::from_millis(25);
            delay.update(now, 0.025, 0.01);
        };
        // By hand: 1/4, then 1/4 + 3/4 1/4 of 40 ms.
        update(&mut delay);
        assert!((delay.avg - 0.010).abs() < 1e-12);
        update(&mut delay);
        assert!((delay.avg - 0.0175).abs() < 1e-12);
        delay.latest = 0.001;
        update(&mut delay);
        assert_eq!(delay.avg, 0.001);
    }
}
