//! The loss-based controller (draft, section 6).

use dumbbell_units::{Span, Time};

/// Interval of the updates, as that of RTCP receiver reports.
const INTERVAL: Span = Span::from_secs(1);

/// A rate by the share of lost packets.
#[derive(Clone, Debug, Default)]
pub(super) struct LossBased {
    /// As_hat, bit/s, while losses limit the rate.
    rate: Option<f64>,
    packets: u32,
    lost: u32,
    /// When the interval began, with the first report or the latest update.
    began_at: Option<Time>,
}

impl LossBased {
    pub(super) fn on_packet(&mut self, is_lost: bool) {
        self.packets += 1;
        self.lost += u32::from(is_lost);
    }

    /// Updates the rate once per interval. It stays within the delay-based one, as in libwebrtc: a
    /// reduction begins at the rate in use.
    pub(super) fn update(&mut self, now: Time, delay_based: f64) {
        self.rate = self.rate.map(|rate| rate.min(delay_based));
        let began_at = *self.began_at.get_or_insert(now);
        if now.since(began_at) >= INTERVAL && self.packets > 0 {
            let share = f64::from(self.lost) / f64::from(self.packets);
            let rate = self.rate.unwrap_or(delay_based);
            self.rate = if share > 0.1 {
                Some(rate * (1.0 - 0.5 * share))
            } else if share >= 0.02 {
                Some(rate)
            } else {
                Some(rate * 1.05).filter(|rate| *rate < delay_based)
            };
            (self.packets, self.lost, self.began_at) = (0, 0, Some(now));
        }
    }

    /// bit/s; `None` if losses do not limit the rate.
    pub(super) fn target(&self) -> Option<f64> {
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rate after seconds in which so many of 100 packets are lost, at this delay-based rate.
    fn after(seconds: [(u32, f64); 2]) -> Option<f64> {
        let mut loss = LossBased::default();
        loss.update(Time::ZERO, seconds[0].1);
        for (second, (lost, delay_based)) in (1..).zip(seconds) {
            (0..100).for_each(|packet| loss.on_packet(packet < lost));
            loss.update(Time::ZERO + Span::from_secs(second), delay_based);
        }
        loss.target()
    }

    #[test]
    fn the_rate_follows_equation_6_of_the_draft() {
        // Above 10 %: (1 - 0.5 p); from 2 % to 10 %: unchanged; below 2 %: 1.05.
        let after = |lost: [u32; 2]| after(lost.map(|lost| (lost, 1e6)));
        assert_eq!(after([0, 0]), None);
        assert_eq!(after([20, 5]), Some(0.9e6));
        assert_eq!(after([20, 1]), Some(0.9e6 * 1.05));
        assert_eq!(after([20, 40]), Some(0.9e6 * 0.8));
    }

    #[test]
    fn the_first_interval_begins_with_the_first_report() {
        let mut loss = LossBased::default();
        let mut after = |millis| {
            (0..10).for_each(|packet| loss.on_packet(packet < 5));
            loss.update(Time::ZERO + Span::from_millis(millis), 1e6);
            loss.target()
        };
        assert_eq!(after(5000), None);
        assert_eq!(after(5999), None);
        assert_eq!(after(6000), Some(0.75e6));
    }

    #[test]
    fn losses_of_2_to_10_percent_hold_the_rate_while_the_delay_allows_more() {
        assert_eq!(after([(2, 1e6), (10, 2e6)]), Some(1e6));
        assert_eq!(after([(5, 1e6), (5, 0.5e6)]), Some(0.5e6));
        assert_eq!(after([(5, 1e6), (1, 2e6)]), Some(1.05e6));
    }
}
