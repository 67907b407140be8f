//! Rules whose increase may be negative.

use crate::{Ack, CongestionEvent, Metric, Path, WindowRule};
use core::mem::take;
use dumbbell_units::Span;

/// A rule of a user's code: an increase below zero lowers `ssthresh` with the window, since below it
/// slow start would undo the decrease.
#[derive(Clone, Debug)]
pub struct Lowering<R> {
    rule: R,
    /// Whether the window was lowered on the acknowledgement that ended slow start.
    is_below_ssthresh: bool,
}

impl<R> Lowering<R> {
    /// A rule that may lower the window at any acknowledgement.
    pub fn new(rule: R) -> Lowering<R> {
        Lowering { rule, is_below_ssthresh: false }
    }
}

impl<R: WindowRule> WindowRule for Lowering<R> {
    fn increase(&mut self, cwnd: f64, acked: f64, path: &Path, ack: &Ack) -> f64 {
        let increase = self.rule.increase(cwnd, acked, path, ack);
        self.is_below_ssthresh = increase < 0.0;
        increase
    }

    fn decrease(&mut self, cwnd: f64, path: &Path, event: &CongestionEvent) -> f64 {
        self.is_below_ssthresh = false;
        self.rule.decrease(cwnd, path, event)
    }

    fn observe(&mut self, path: &Path, ack: &Ack) {
        self.rule.observe(path, ack);
    }

    fn set_window(
        &mut self,
        cwnd: f64,
        ssthresh: f64,
        path: &Path,
        ack: &Ack,
    ) -> Option<(f64, f64)> {
        let was_lowered = take(&mut self.is_below_ssthresh);
        let ssthresh = if was_lowered { ssthresh.min(cwnd) } else { ssthresh };
        if cwnd < ssthresh {
            return None;
        }
        let mut window = cwnd;
        let grows = path.cwnd_limited || self.rule.grows_when_app_limited();
        if grows && ack.acked > 0 {
            window += self.rule.increase(cwnd, f64::from(ack.acked), path, ack);
        }
        Some((window, ssthresh.min(window)))
    }

    fn grows_when_app_limited(&self) -> bool {
        self.rule.grows_when_app_limited()
    }

    fn on_timeout(&mut self) {
        self.rule.on_timeout();
    }

    fn on_undo(&mut self) {
        self.rule.on_undo();
    }

    fn on_restart(&mut self, path: &Path, pause: Span) {
        self.rule.on_restart(path, pause);
    }

    fn on_mtu_update(&mut self, factor: f64) {
        self.rule.on_mtu_update(factor);
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.rule.inspect(show);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CongestionControl, ConnectionConfig, StandardSlowStart, Windowed};
    use dumbbell_units::Time;

    #[derive(Clone, Debug)]
    struct Backoff;

    impl WindowRule for Backoff {
        fn increase(&mut self, _cwnd: f64, _acked: f64, _path: &Path, _ack: &Ack) -> f64 {
            -0.5
        }

        fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
            cwnd / 2.0
        }
    }

    #[test]
    fn a_negative_increase_lowers_the_window_and_the_threshold() {
        let init = ConnectionConfig::new(Time::ZERO, 1448);
        let mut control = Windowed::new(Lowering::new(Backoff), StandardSlowStart, &init);
        let path = Path { cwnd_limited: true, ..Path::new(1448, Time::ZERO) };
        control.on_congestion(&path, &CongestionEvent::timeout());
        let ack = |acked| Ack { delivered: acked, acked, ..Ack::default() };
        let mut windows = Vec::new();
        for acked in [10, 1, 1] {
            control.on_ack(&path, &ack(acked));
            windows.push((control.control().cwnd, control.control().ssthresh));
        }
        assert_eq!(windows, [(4.5, 5.0), (4.0, 4.0), (3.5, 3.5)]);
    }
}
