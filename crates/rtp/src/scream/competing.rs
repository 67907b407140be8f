//! The target of the queue delay beside flows that fill the queue (SCReAMv2, "Competing Flows
//! Compensation").

use dumbbell_units::{Span, Time};
use std::collections::VecDeque;

/// Minimum and maximum of the target, s.
const QDELAY_TARGET_LO: f64 = 0.06;
const QDELAY_TARGET_HI: f64 = 0.4;
/// Samples of which the variance and the average are taken.
const VARIANCE: usize = 200;
const AVERAGE: usize = 50;
/// Interval of the samples. The draft gives none; RFC 8298's 200 samples of 50 ms are 10 s.
const INTERVAL: Span = Span::from_millis(50);
/// Gain of `loss_event_rate` per round trip. The draft gives none; this is that of the authors' code.
const LOSS_EVENT_G: f64 = 0.02;

/// `qdelay_target` and what it follows from.
#[derive(Clone, Debug)]
pub(super) struct CompetingFlows {
    /// s.
    pub(super) qdelay_target: f64,
    qdelay_norm_history: VecDeque<f64>,
    updated_at: Option<Time>,
    /// Losses in the present round trip.
    pub(super) was_loss_event: bool,
    pub(super) loss_event_rate: f64,
}

impl Default for CompetingFlows {
    fn default() -> CompetingFlows {
        CompetingFlows {
            qdelay_target: QDELAY_TARGET_LO,
            qdelay_norm_history: VecDeque::with_capacity(VARIANCE + 1),
            updated_at: None,
            was_loss_event: false,
            loss_event_rate: 0.0,
        }
    }
}

impl CompetingFlows {
    /// A round trip ended.
    pub(super) fn on_round(&mut self) {
        let event = if std::mem::take(&mut self.was_loss_event) { 1.0 } else { 0.0 };
        self.loss_event_rate += LOSS_EVENT_G * (event - self.loss_event_rate);
    }

    /// `adjust_qdelay_target`.
    pub(super) fn update(&mut self, now: Time, qdelay: f64) {
        if self.updated_at.is_some_and(|at| now.since(at) < INTERVAL) {
            return;
        }
        self.updated_at = Some(now);
        self.qdelay_norm_history.push_front(qdelay / QDELAY_TARGET_LO);
        self.qdelay_norm_history.truncate(VARIANCE);
        let avg = mean(self.qdelay_norm_history.iter().take(AVERAGE).copied());
        let all = mean(self.qdelay_norm_history.iter().copied());
        let var = mean(self.qdelay_norm_history.iter().map(|one| (one - all) * (one - all)));
        let new_target = (avg + libm::sqrt(var)) * QDELAY_TARGET_LO;
        self.qdelay_target = if self.loss_event_rate > 0.002 {
            1.5 * new_target
        } else if var < 0.2 {
            new_target
        } else if new_target < QDELAY_TARGET_LO {
            (self.qdelay_target * 0.5).max(new_target)
        } else {
            self.qdelay_target * 0.9
        };
        self.qdelay_target = self.qdelay_target.clamp(QDELAY_TARGET_LO, QDELAY_TARGET_HI);
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    sum / f64::from(count.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(qdelay: f64, seconds: u64) -> CompetingFlows {
        let mut flows = CompetingFlows::default();
        for tick in 1..=seconds * 20 {
            flows.update(Time::ZERO + INTERVAL * tick, qdelay);
        }
        flows
    }

    #[test]
    fn a_steady_queue_of_others_raises_the_target_to_its_delay() {
        // Variance 0: the target is the average, within 60 ms and 400 ms.
        assert!((after(0.2, 20).qdelay_target - 0.2).abs() < 1e-9);
        assert_eq!(after(0.01, 20).qdelay_target, QDELAY_TARGET_LO);
        assert_eq!(after(0.7, 20).qdelay_target, QDELAY_TARGET_HI);
    }

    #[test]
    fn losses_raise_the_target_by_half() {
        let mut flows = after(0.2, 20);
        flows.was_loss_event = true;
        flows.on_round();
        flows.update(Time::ZERO + Span::from_secs(30), 0.2);
        assert!((flows.qdelay_target - 0.3).abs() < 1e-9);
    }
}
