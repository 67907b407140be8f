//! H-TCP (Leith and Shorten, "H-TCP: TCP for high-speed and long-distance networks", PFLDnet 2004),
//! as Linux's `tcp_htcp.c` implements it.
//!
//! The window grows by `alpha` a round trip. `alpha` increases with `D`, the seconds since the last
//! congestion:
//!
//! ```text
//! f = 1                                   D <= 1 s
//! f = 1 + 10 (D - 1) + ((D - 1) / 2)^2    D > 1 s
//! f = max(1, f / s),  s = 100 ms / RTTmin clamped to [0.5, 10]     (RTT scaling)
//! alpha = 2 (1 - beta) f
//! ```
//!
//! Congestion reduces the window to `beta` of itself, which just empties the queue:
//!
//! ```text
//! beta = RTTmin / RTTmax clamped to [0.5, 0.8]
//! beta = 0.5 if the maximum throughput of this epoch differs by more than 20 % from the last
//!        epoch's, and on the congestion after that; or if RTTmin <= 10 ms
//! RTTmax = RTTmin + 0.95 (RTTmax - RTTmin)    at every congestion
//! ```
//!
//! `RTTmax` rises by at most 20 ms a sample, and not in recovery. Throughput is sampled once a
//! window and smoothed with weight 1/4; the filter restarts in the first four minimum round-trip
//! times of an epoch. The first sample of a connection is 0, since Linux takes it over the time since the
//! machine was started; in slow start the window grows ahead of the packets counted, so that there is no
//! other. The first congestion therefore finds an unchanged throughput.
//!
//! Linux uses fixed point (7 bits) and ticks; here the numbers are exact. As in Linux, growth counts
//! packets even if the stack counts acknowledgements. The options `rtt_scaling` and
//! `bandwidth_switch` are Linux's module parameters (`use_rtt_scaling`, `use_bandwidth_switch`).

use crate::{Ack, CaState, ConfigError, CongestionEvent, Metric, Options, Path, WindowRule};
use dumbbell_units::{Span, Time};

const BETA_MIN: f64 = 0.5;
/// 102/128.
const BETA_MAX: f64 = 0.796_875;
/// Time after congestion in which growth is Reno's, seconds (the paper's `Delta_L`).
const DELTA_L: f64 = 1.0;

/// State of a congestion epoch that an undo restores.
#[derive(Clone, Copy, Debug, Default)]
struct EpochState {
    last_cong: Time,
    rtt_max: Option<Span>,
    /// Maximum throughput of the previous epoch, packets/s (Linux `old_maxB`).
    old_max: f64,
}

/// Throughput of the epoch, packets/s.
#[derive(Clone, Copy, Debug, Default)]
struct Throughput {
    packets: f64,
    start: Time,
    smoothed: f64,
    max: f64,
}

/// H-TCP's rule.
#[derive(Clone, Copy, Debug)]
pub struct Htcp {
    rtt_scaling: bool,
    bandwidth_switch: bool,
    alpha: f64,
    beta: f64,
    /// Whether the next congestion may set `beta` from the delays (Linux's `modeswitch`): the
    /// previous congestion found an unchanged throughput.
    modeswitch: bool,
    rtt_min: Option<Span>,
    epoch: EpochState,
    undo_epoch: EpochState,
    throughput: Throughput,
    /// Whether a reduction is in progress; the epoch begins when it ends.
    in_reduction: bool,
    /// Whether a sample of the throughput has begun.
    is_sampling: bool,
    cwnd: f64,
}

impl Htcp {
    /// Takes the options `rtt_scaling` and `bandwidth_switch`. The start of the connection, `now`,
    /// counts as a congestion.
    ///
    /// # Errors
    /// If one of them is neither on nor off.
    pub fn from_options(options: &mut Options, now: Time) -> Result<Htcp, ConfigError> {
        Ok(Htcp {
            rtt_scaling: options.switch("rtt_scaling", true)?,
            bandwidth_switch: options.switch("bandwidth_switch", true)?,
            alpha: 1.0,
            beta: BETA_MIN,
            modeswitch: false,
            rtt_min: None,
            epoch: EpochState { last_cong: now, ..EpochState::default() },
            undo_epoch: EpochState::default(),
            throughput: Throughput::default(),
            in_reduction: false,
            is_sampling: false,
            cwnd: 0.0,
        })
    }

    fn update_alpha(&mut self, now: Time) {
        let beyond = now.since(self.epoch.last_cong).as_secs_f64() - DELTA_L;
        let mut factor = 1.0;
        if beyond > 0.0 {
            factor = 1.0 + 10.0 * beyond + (beyond / 2.0) * (beyond / 2.0);
        }
        if let Some(rtt_min) = self.rtt_min.filter(|rtt| self.rtt_scaling && !rtt.is_zero()) {
            let scale = 0.1 / rtt_min.as_secs_f64();
            factor = (factor / scale.clamp(0.5, 10.0)).max(1.0);
        }
        self.alpha = 2.0 * factor * (1.0 - self.beta);
    }

    fn update_beta(&mut self) {
        let (max, old) = (self.throughput.max, self.epoch.old_max);
        if self.bandwidth_switch {
            self.epoch.old_max = max;
            if !(0.8 * old..=1.2 * old).contains(&max) {
                self.beta = BETA_MIN;
                self.modeswitch = false;
                return;
            }
        }
        self.beta = match (self.rtt_min, self.epoch.rtt_max) {
            (Some(min), Some(max)) if self.modeswitch && min > Span::from_millis(10) => {
                (min.as_secs_f64() / max.as_secs_f64()).clamp(BETA_MIN, BETA_MAX)
            }
            _ => {
                self.modeswitch = true;
                BETA_MIN
            }
        };
    }

    fn measure_rtt(&mut self, path: &Path, rtt: Span) {
        let min = self.rtt_min.map_or(rtt, |min| min.min(rtt));
        self.rtt_min = Some(min);
        if path.ca_state == CaState::Open {
            let max = self.epoch.rtt_max.unwrap_or(min).max(min);
            let rises = rtt > max && rtt <= max + Span::from_millis(20);
            self.epoch.rtt_max = Some(if rises { rtt } else { max });
        }
    }

    fn measure_throughput(&mut self, path: &Path, ack: &Ack) {
        let now = path.now;
        let t = &mut self.throughput;
        if !matches!(path.ca_state, CaState::Open | CaState::Disorder) {
            (t.packets, t.start) = (0.0, now);
            self.is_sampling = true;
            return;
        }
        t.packets += f64::from(ack.delivered);
        let Some(rtt_min) = self.rtt_min.filter(|rtt| !rtt.is_zero()) else { return };
        let length = if self.is_sampling { now.since(t.start) } else { Span::MAX };
        if t.packets < self.cwnd - self.alpha.max(1.0) || length < rtt_min {
            return;
        }
        let sample = if self.is_sampling { t.packets / length.as_secs_f64() } else { 0.0 };
        if now.since(self.epoch.last_cong) < rtt_min * 4 {
            (t.smoothed, t.max) = (sample, sample);
        } else {
            t.smoothed = (3.0 * t.smoothed + sample) / 4.0;
            t.max = t.max.max(t.smoothed);
        }
        (t.packets, t.start) = (0.0, now);
        self.is_sampling = true;
    }
}

impl WindowRule for Htcp {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, path: &Path, ack: &Ack) -> f64 {
        self.cwnd = cwnd;
        self.update_alpha(path.now);
        self.alpha * ack.scale_to_packets(acked) / cwnd
    }

    fn decrease(&mut self, cwnd: f64, path: &Path, _event: &CongestionEvent) -> f64 {
        let last_cong = self.epoch.last_cong;
        self.update_beta();
        if let (Some(min), Some(max)) = (self.rtt_min, self.epoch.rtt_max) {
            self.epoch.rtt_max = Some(min + max.saturating_sub(min).mul_f64(0.95));
        }
        // htcp_reset comes after the parameters have been updated: an undo restores the time only.
        self.undo_epoch = EpochState { last_cong, ..self.epoch };
        self.epoch.last_cong = path.now;
        self.in_reduction = true;
        self.cwnd = cwnd * self.beta;
        self.cwnd
    }

    fn observe(&mut self, path: &Path, ack: &Ack) {
        if self.in_reduction && path.ca_state == CaState::Open {
            self.in_reduction = false;
            self.epoch.last_cong = path.now;
        }
        if let Some(rtt) = ack.rtt.filter(|rtt| !rtt.is_zero()) {
            self.measure_rtt(path, rtt);
        }
        self.measure_throughput(path, ack);
    }

    /// Takes the window, which grows in slow start too.
    fn set_window(
        &mut self,
        cwnd: f64,
        _ssthresh: f64,
        _path: &Path,
        _ack: &Ack,
    ) -> Option<(f64, f64)> {
        self.cwnd = cwnd;
        None
    }

    fn on_undo(&mut self) {
        self.epoch = self.undo_epoch;
        self.in_reduction = false;
    }

    fn on_mtu_update(&mut self, factor: f64) {
        self.cwnd *= factor;
        self.epoch.old_max *= factor;
        self.undo_epoch.old_max *= factor;
        self.throughput.packets *= factor;
        self.throughput.smoothed *= factor;
        self.throughput.max *= factor;
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        show(Metric { name: "alpha", value: self.alpha });
        show(Metric { name: "beta", value: self.beta });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_path::{Link, TestPath, init};
    use crate::{AnySlowStart, Windowed};

    fn htcp(text: &str) -> Htcp {
        Htcp::from_options(&mut text.parse().expect("well formed"), Time::ZERO).expect("on or off")
    }

    fn path_at(seconds: f64) -> Path {
        Path::new(1448, Time::ZERO + Span::from_secs_f64(seconds))
    }

    fn sample(rule: &mut Htcp, seconds: f64, rtt_ms: u64) {
        let rtt = Some(Span::from_millis(rtt_ms));
        rule.observe(&path_at(seconds), &Ack { rtt, ..Ack::default() });
    }

    /// Packets by which the window grows in a round trip.
    fn growth(rule: &mut Htcp, seconds: f64) -> f64 {
        let ack = Ack { delivered: 1000, acked: 1000, ..Ack::default() };
        rule.increase(1000.0, 1000.0, &path_at(seconds), &ack)
    }

    #[test]
    fn the_start_of_a_connection_counts_as_a_congestion() {
        let at = Time::ZERO + Span::from_secs(60);
        let options = &mut "htcp".parse().expect("well formed");
        let mut late = Htcp::from_options(options, at).expect("on or off");
        assert_close(growth(&mut late, 60.5), growth(&mut htcp("htcp"), 0.5));
        assert_close(growth(&mut late, 65.0), growth(&mut htcp("htcp"), 5.0));
    }

    fn assert_close(value: f64, expected: f64) {
        assert!((value - expected).abs() <= 1e-9 * expected.abs(), "{value} is not {expected}");
    }

    #[test]
    fn growth_is_renos_for_a_second_then_quadratic_in_time() {
        let mut rule = htcp("htcp(rtt_scaling=off)");
        for (t, alpha) in [(0.5, 1.0), (1.0, 1.0), (2.0, 11.25), (5.0, 45.0), (11.0, 126.0)] {
            assert_close(growth(&mut rule, t), alpha);
        }
    }

    #[test]
    fn rtt_scaling_slows_growth_below_100_ms_and_at_most_doubles_it_above() {
        for (rtt, alpha) in [(5, 4.5), (20, 9.0), (100, 45.0), (400, 90.0)] {
            let mut rule = htcp("htcp");
            sample(&mut rule, 0.0, rtt);
            assert_close(growth(&mut rule, 5.0), alpha);
        }
        let mut rule = htcp("htcp");
        sample(&mut rule, 0.0, 20);
        assert_close(growth(&mut rule, 0.5), 1.0);
    }

    #[test]
    fn beta_empties_the_queue_from_the_second_congestion_on() {
        for (max, beta) in [(150, 100.0 / 150.0), (110, BETA_MAX), (400, BETA_MIN)] {
            let mut rule = htcp("htcp(bandwidth_switch=off)");
            sample(&mut rule, 0.0, 100);
            let mut rtt = 100;
            while rtt < max {
                rtt = (rtt + 20).min(max);
                sample(&mut rule, 1.0, rtt);
            }
            assert_close(rule.decrease(1000.0, &path_at(2.0), &CongestionEvent::loss()), 500.0);
            sample(&mut rule, 3.0, max);
            assert_close(
                rule.decrease(1000.0, &path_at(4.0), &CongestionEvent::loss()),
                1000.0 * beta,
            );
        }
    }

    #[test]
    fn rtt_max_decays_by_5_percent_at_congestion() {
        let mut rule = htcp("htcp(bandwidth_switch=off)");
        sample(&mut rule, 0.0, 100);
        sample(&mut rule, 0.0, 120);
        rule.decrease(1000.0, &path_at(2.0), &CongestionEvent::loss());
        assert_eq!(rule.epoch.rtt_max, Some(Span::from_millis(119)));
    }

    #[test]
    fn throughput_that_changed_by_more_than_a_fifth_halves_the_window() {
        for (max, halves) in [(1190.0, false), (1210.0, true), (790.0, true), (810.0, false)] {
            let mut rule = htcp("htcp");
            sample(&mut rule, 0.0, 100);
            sample(&mut rule, 0.0, 110);
            rule.modeswitch = true;
            rule.epoch.old_max = 1000.0;
            rule.throughput.max = max;
            let beta = if halves { BETA_MIN } else { BETA_MAX };
            assert_close(
                rule.decrease(1000.0, &path_at(2.0), &CongestionEvent::loss()),
                1000.0 * beta,
            );
        }
    }

    /// In tcp_htcp.c, `maxB` and `old_maxB` are 0 then, which `between` accepts.
    #[test]
    fn the_second_congestion_after_slow_start_backs_off_by_the_queue() {
        let mut rule = htcp("htcp");
        for step in 0..50_u32 {
            let path = path_at(f64::from(step) * 0.004);
            let rtt = Some(Span::from_millis(if step < 40 { 100 } else { 110 }));
            let ack = Ack { rtt, delivered: 10, ..Ack::default() };
            rule.observe(&path, &ack);
            let cwnd = f64::from(20 + 10 * step);
            assert_eq!(rule.set_window(cwnd, f64::INFINITY, &path, &ack), None);
        }
        let loss = CongestionEvent::loss();
        assert_close(rule.decrease(1000.0, &path_at(0.2), &loss), 500.0);
        assert_close(rule.decrease(500.0, &path_at(0.4), &loss), 500.0 * BETA_MAX);
    }

    /// htcp_reset, which stores what an undo restores, follows htcp_param_update.
    #[test]
    fn an_undo_keeps_the_throughput_and_the_faded_maximum() {
        let mut rule = htcp("htcp");
        sample(&mut rule, 0.0, 100);
        sample(&mut rule, 0.0, 120);
        rule.throughput.max = 1000.0;
        rule.decrease(1000.0, &path_at(2.0), &CongestionEvent::loss());
        rule.on_undo();
        assert_eq!(rule.epoch.rtt_max, Some(Span::from_millis(119)));
        assert_close(rule.epoch.old_max, 1000.0);
    }

    #[test]
    fn a_spurious_congestion_does_not_restart_the_clock() {
        let mut rule = htcp("htcp(rtt_scaling=off)");
        rule.decrease(1000.0, &path_at(3.0), &CongestionEvent::loss());
        rule.on_undo();
        assert_close(growth(&mut rule, 5.0), 45.0);
    }

    #[test]
    fn a_lone_flow_backs_off_by_the_queue_and_keeps_the_link_busy() {
        let rule = Windowed::new(htcp("htcp"), AnySlowStart::STANDARD, &init(1));
        let mut flow = TestPath::new(rule, Link::new(20.0, 100, 60.0));
        flow.run_ms(40_000);
        let before = flow.path.delivered;
        let mut least = f64::INFINITY;
        flow.run(Span::from_secs(40), |flow| least = least.min(flow.inspect("beta")));
        let share = (flow.path.delivered - before) as f64 / 400.0 / flow.link.bdp();
        // RTTmin / RTTmax with 60 packets waiting, as the paper's section 2.2 has it.
        let expected = flow.link.bdp() / (flow.link.bdp() + 60.0);
        assert!((least - expected).abs() < 0.03, "{least}, not {expected}");
        assert!(share > 0.98, "{share}");
    }
}
