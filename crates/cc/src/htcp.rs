//! H-TCP (Leith and Shorten, "H-TCP: TCP for high-speed and long-distance networks", PFLDnet 2004),
//! as Linux 6.18's `tcp_htcp.c` implements it, in whole packets and jiffies.
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
//! Every division rounds down: `f` is a whole number, and `s` in whole eighths. Linux compares the
//! packets it has counted before it counts those of an acknowledgement, and starts at 0 whenever the window
//! grows. So each packet of growth takes an acknowledgement more than the equation has; `alpha` is computed
//! again when the window has grown. Packets are those that the cumulative acknowledgement covers. The
//! options `rtt_scaling` and `bandwidth_switch` are Linux's module parameters (`use_rtt_scaling`,
//! `use_bandwidth_switch`). On a transport without jiffies one is 1 ms.

use crate::arithmetic::Jiffies;
use crate::{Ack, CaState, ConfigError, CongestionEvent, Metric, Options, Path, WindowRule};
use dumbbell_units::Span;

/// `alpha` and `beta` are in parts of this.
const ONE: u64 = 128;
const BETA_MIN: u64 = ONE / 2;
/// 0.8.
const BETA_MAX: u64 = 102;
/// Steps in which `RTTmax` rises, and `RTTmin` above which `beta` follows the delays.
const RTT_STEP: Span = Span::from_millis(20);
const RTT_LEAST: Span = Span::from_millis(10);

/// State of a congestion epoch that an undo restores; times are in jiffies.
#[derive(Clone, Copy, Debug, Default)]
struct EpochState {
    last_cong: u64,
    /// 0 before the first sample.
    rtt_max: u64,
    /// Maximum throughput of the previous epoch, packets/s (Linux `old_maxB`).
    old_max: u64,
}

/// Throughput of the epoch, packets/s.
#[derive(Clone, Copy, Debug, Default)]
struct Throughput {
    packets: u64,
    /// In jiffies; `None` before the first sample.
    start: Option<u64>,
    /// Linux's `Bi`.
    smoothed: u64,
    /// Linux's `maxB`.
    max: u64,
}

/// H-TCP's rule.
#[derive(Clone, Copy, Debug)]
pub struct Htcp {
    rtt_scaling: bool,
    bandwidth_switch: bool,
    /// Whether the next congestion may set `beta` from the delays (Linux's `modeswitch`): the
    /// previous congestion found an unchanged throughput.
    modeswitch: bool,
    /// Whether a reduction is in progress; the epoch begins when it ends.
    in_reduction: bool,
    alpha: u64,
    beta: u64,
    /// In jiffies; 0 before the first sample.
    rtt_min: u64,
    epoch: EpochState,
    undo_epoch: EpochState,
    throughput: Throughput,
    cwnd: u64,
    /// Packets acknowledged since the window grew (Linux's `snd_cwnd_cnt`).
    count: u64,
    /// What the next acknowledgement adds to it.
    pkts_acked: u64,
    una: u64,
    /// The state before this acknowledgement, in which Linux measures.
    state: CaState,
}

impl Htcp {
    /// Takes the options `rtt_scaling` and `bandwidth_switch`.
    ///
    /// # Errors
    /// If one of them is neither on nor off.
    pub fn from_options(options: &mut Options) -> Result<Htcp, ConfigError> {
        Ok(Htcp {
            rtt_scaling: options.switch("rtt_scaling", true)?,
            bandwidth_switch: options.switch("bandwidth_switch", true)?,
            modeswitch: false,
            in_reduction: false,
            alpha: ONE,
            beta: BETA_MIN,
            rtt_min: 0,
            epoch: EpochState::default(),
            undo_epoch: EpochState::default(),
            throughput: Throughput::default(),
            cwnd: 0,
            count: 0,
            pkts_acked: 1,
            una: 0,
            state: CaState::Open,
        })
    }

    /// `htcp_alpha_update`.
    fn update_alpha(&mut self, clock: Jiffies, now: u64) {
        let (hz, since) = (clock.hz, now - self.epoch.last_cong);
        let mut factor = 1;
        if since > hz {
            let beyond = since - hz;
            factor += (10 * beyond + (beyond / 2) * (beyond / 2) / hz) / hz;
        }
        if self.rtt_scaling && self.rtt_min > 0 {
            let scale = 8 * hz / (10 * self.rtt_min);
            factor = (8 * factor / scale.clamp(4, 80)).max(1);
        }
        self.alpha = 2 * factor * (ONE - self.beta);
    }

    /// `htcp_beta_update`.
    fn update_beta(&mut self, clock: Jiffies) {
        let (max, old) = (self.throughput.max, self.epoch.old_max);
        if self.bandwidth_switch {
            self.epoch.old_max = max;
            if !(4 * old..=6 * old).contains(&(5 * max)) {
                self.beta = BETA_MIN;
                self.modeswitch = false;
                return;
            }
        }
        let (rtt_min, rtt_max) = (self.rtt_min, self.epoch.rtt_max);
        if self.modeswitch && rtt_min > clock.of_span(RTT_LEAST) && rtt_max > 0 {
            self.beta = (ONE * rtt_min / rtt_max).clamp(BETA_MIN, BETA_MAX);
        } else {
            self.beta = BETA_MIN;
            self.modeswitch = true;
        }
    }

    fn measure_rtt(&mut self, clock: Jiffies, rtt: u64) {
        if self.rtt_min > rtt || self.rtt_min == 0 {
            self.rtt_min = rtt;
        }
        if self.state == CaState::Open {
            let max = self.epoch.rtt_max.max(self.rtt_min);
            let rises = max < rtt && rtt <= max + clock.of_span(RTT_STEP);
            self.epoch.rtt_max = if rises { rtt } else { max };
        }
    }

    /// `measure_achieved_throughput`.
    fn measure_throughput(&mut self, clock: Jiffies, now: u64, acked: u64) {
        let t = &mut self.throughput;
        if !matches!(self.state, CaState::Open | CaState::Disorder) {
            (t.packets, t.start) = (0, Some(now));
            return;
        }
        t.packets += acked;
        let length = t.start.map_or(u64::MAX, |start| now - start);
        // Below `alpha` packets this wraps, as Linux's u32: no window has so many.
        let enough = self.cwnd.wrapping_sub((self.alpha / ONE).max(1));
        if self.rtt_min == 0 || t.packets < enough || length < self.rtt_min {
            return;
        }
        let sample = if t.start.is_some() { t.packets * clock.hz / length } else { 0 };
        if (now - self.epoch.last_cong) / self.rtt_min <= 3 {
            (t.smoothed, t.max) = (sample, sample);
        } else {
            t.smoothed = (3 * t.smoothed + sample) / 4;
            t.max = t.max.max(t.smoothed);
        }
        (t.packets, t.start) = (0, Some(now));
    }
}

impl WindowRule for Htcp {
    /// The start of the connection counts as a congestion.
    fn on_established(&mut self, path: &Path) {
        self.epoch.last_cong = Jiffies::of(path).at(path.now);
    }

    /// `htcp_cong_avoid`.
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, path: &Path, ack: &Ack) -> f64 {
        if acked < f64::from(ack.acked) {
            return 0.0; // the acknowledgement was slow start's
        }
        let packets = core::mem::replace(&mut self.pkts_acked, 1);
        if self.count * self.alpha / ONE < cwnd as u64 {
            self.count += packets;
            return 0.0;
        }
        self.count = 0;
        let clock = Jiffies::of(path);
        self.update_alpha(clock, clock.at(path.now));
        self.cwnd += 1;
        1.0
    }

    /// `htcp_recalc_ssthresh`, and `htcp_reset` of `htcp_state`.
    fn decrease(&mut self, cwnd: f64, path: &Path, _event: &CongestionEvent) -> f64 {
        let clock = Jiffies::of(path);
        let (now, last_cong) = (clock.at(path.now), self.epoch.last_cong);
        self.update_beta(clock);
        self.update_alpha(clock, now);
        let (min, max) = (self.rtt_min, self.epoch.rtt_max);
        if min > 0 && max > min {
            self.epoch.rtt_max = min + (max - min) * 95 / 100;
        }
        // htcp_reset comes after the parameters have been updated: an undo restores the time only.
        self.undo_epoch = EpochState { last_cong, ..self.epoch };
        self.epoch.last_cong = now;
        (self.in_reduction, self.state) = (true, CaState::Recovery);
        self.count = 0;
        self.cwnd = cwnd as u64 * self.beta / ONE;
        self.cwnd as f64
    }

    fn on_timeout(&mut self) {
        self.count = 0;
    }

    fn observe(&mut self, path: &Path, ack: &Ack) {
        let clock = Jiffies::of(path);
        let now = clock.at(path.now);
        let acked = path.una.saturating_sub(self.una);
        self.una = path.una;
        if self.state == CaState::Open {
            self.pkts_acked = acked;
        }
        if let Some(rtt) = ack.rtt.filter(|rtt| rtt.as_micros() > 0) {
            self.measure_rtt(clock, clock.of_micros(rtt));
        }
        if self.bandwidth_switch {
            self.measure_throughput(clock, now, acked);
        }
        self.state = path.ca_state;
        if self.state == CaState::Open && self.in_reduction {
            self.in_reduction = false;
            self.epoch.last_cong = now;
        }
    }

    /// Takes the window, which grows in slow start too.
    fn set_window(
        &mut self,
        cwnd: f64,
        _ssthresh: f64,
        _path: &Path,
        _ack: &Ack,
    ) -> Option<(f64, f64)> {
        self.cwnd = cwnd as u64;
        None
    }

    fn on_undo(&mut self, _path: &Path) {
        if self.in_reduction {
            self.epoch = self.undo_epoch;
            self.in_reduction = false;
        }
    }

    fn on_mtu_update(&mut self, factor: f64) {
        let t = &mut self.throughput;
        let (old, undo) = (&mut self.epoch.old_max, &mut self.undo_epoch.old_max);
        for packets in [
            &mut self.cwnd,
            &mut self.count,
            &mut t.packets,
            &mut t.smoothed,
            &mut t.max,
            old,
            undo,
        ] {
            *packets = (*packets as f64 * factor) as u64;
        }
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        show(Metric { name: "alpha", value: self.alpha as f64 / ONE as f64 });
        show(Metric { name: "beta", value: self.beta as f64 / ONE as f64 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_path::{Link, TestPath, init};
    use crate::{AnySlowStart, Windowed};
    use alloc::vec::Vec;
    use dumbbell_units::Time;

    const MS: Jiffies = Jiffies::OF_1_MS;

    fn htcp(text: &str) -> Htcp {
        Htcp::from_options(&mut text.parse().expect("well formed")).expect("on or off")
    }

    fn path_at(seconds: f64) -> Path {
        Path::new(1448, Time::ZERO + Span::from_secs_f64(seconds))
    }

    fn sample(rule: &mut Htcp, seconds: f64, rtt_ms: u64) {
        let rtt = Some(Span::from_millis(rtt_ms));
        rule.observe(&path_at(seconds), &Ack { rtt, ..Ack::default() });
    }

    /// `alpha`, in packets.
    fn growth(rule: &mut Htcp, ms: u64) -> f64 {
        rule.update_alpha(MS, ms);
        rule.alpha as f64 / ONE as f64
    }

    #[test]
    fn the_start_of_a_connection_counts_as_a_congestion() {
        let mut late = htcp("htcp");
        late.on_established(&path_at(60.0));
        assert_eq!(growth(&mut late, 60_500), growth(&mut htcp("htcp"), 500));
        assert_eq!(growth(&mut late, 65_000), growth(&mut htcp("htcp"), 5000));
    }

    /// htcp_cong_avoid, with alpha of 1: a window of 4 packets grows with the fifth acknowledgement.
    #[test]
    fn a_packet_of_growth_takes_an_acknowledgement_more_than_a_window() {
        let (mut rule, mut path) = (htcp("htcp"), path_at(0.5));
        let mut acknowledge = |rule: &mut Htcp, acked: u32| {
            path.una += u64::from(acked);
            rule.observe(&path, &Ack::new(acked));
            rule.increase(4.0, f64::from(acked), &path, &Ack::new(acked))
        };
        let grown: Vec<f64> = (0..10).map(|_| acknowledge(&mut rule, 1)).collect();
        assert_eq!(grown, [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
        let grown: Vec<f64> = (0..6).map(|_| acknowledge(&mut rule, 2)).collect();
        assert_eq!(grown, [0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn growth_is_renos_for_a_second_then_quadratic_in_time() {
        let mut rule = htcp("htcp(rtt_scaling=off)");
        for (ms, alpha) in [(500, 1.0), (1000, 1.0), (2000, 11.0), (5000, 45.0), (11_000, 126.0)] {
            assert_eq!(growth(&mut rule, ms), alpha, "{ms} ms");
        }
    }

    #[test]
    fn rtt_scaling_slows_growth_below_100_ms_and_at_most_doubles_it_above() {
        for (rtt, alpha) in [(5, 4.0), (20, 9.0), (100, 45.0), (400, 90.0)] {
            let mut rule = htcp("htcp");
            sample(&mut rule, 0.0, rtt);
            assert_eq!(growth(&mut rule, 5000), alpha, "{rtt} ms");
        }
        let mut rule = htcp("htcp");
        sample(&mut rule, 0.0, 20);
        assert_eq!(growth(&mut rule, 500), 1.0);
    }

    #[test]
    fn beta_empties_the_queue_from_the_second_congestion_on() {
        for (max, beta) in [(150, ONE * 100 / 150), (110, BETA_MAX), (400, BETA_MIN)] {
            let mut rule = htcp("htcp(bandwidth_switch=off)");
            sample(&mut rule, 0.0, 100);
            let mut rtt = 100;
            while rtt < max {
                rtt = (rtt + 20).min(max);
                sample(&mut rule, 1.0, rtt);
            }
            let loss = CongestionEvent::loss();
            assert_eq!(rule.decrease(1000.0, &path_at(2.0), &loss), 500.0);
            // Linux measures the acknowledgement that ends the recovery in the state before it.
            sample(&mut rule, 2.9, 100);
            sample(&mut rule, 3.0, max);
            assert_eq!(rule.decrease(1000.0, &path_at(4.0), &loss), (1000 * beta / ONE) as f64);
        }
    }

    #[test]
    fn rtt_max_decays_by_5_percent_at_congestion() {
        let mut rule = htcp("htcp(bandwidth_switch=off)");
        sample(&mut rule, 0.0, 100);
        sample(&mut rule, 0.0, 120);
        rule.decrease(1000.0, &path_at(2.0), &CongestionEvent::loss());
        assert_eq!(rule.epoch.rtt_max, 119);
    }

    #[test]
    fn throughput_that_changed_by_more_than_a_fifth_halves_the_window() {
        for (max, halves) in [(1190, false), (1210, true), (790, true), (810, false)] {
            let mut rule = htcp("htcp");
            sample(&mut rule, 0.0, 100);
            sample(&mut rule, 0.0, 110);
            rule.modeswitch = true;
            rule.epoch.old_max = 1000;
            rule.throughput.max = max;
            let beta = if halves { BETA_MIN } else { BETA_MAX };
            let ssthresh = rule.decrease(1000.0, &path_at(2.0), &CongestionEvent::loss());
            assert_eq!(ssthresh, (1000 * beta / ONE) as f64);
        }
    }

    /// measure_achieved_throughput: `packetcount >= snd_cwnd - (alpha >> 7)` in u32.
    #[test]
    fn a_window_below_alpha_has_no_sample_of_the_throughput() {
        for (cwnd, sampled) in [(20, true), (19, false)] {
            let mut rule = htcp("htcp");
            (rule.cwnd, rule.alpha, rule.rtt_min) = (cwnd, 20 * ONE, 100);
            rule.throughput.start = Some(0);
            rule.measure_throughput(MS, 100, 15);
            assert_eq!(rule.throughput.max, if sampled { 150 } else { 0 }, "{cwnd}");
        }
    }

    /// In tcp_htcp.c, `maxB` and `old_maxB` are 0 then, which `between` accepts.
    #[test]
    fn the_second_congestion_after_slow_start_backs_off_by_the_queue() {
        let mut rule = htcp("htcp");
        for step in 0..50_u32 {
            let path = Path { una: 10 * u64::from(step), ..path_at(f64::from(step) * 0.004) };
            let rtt = Some(Span::from_millis(if step < 40 { 100 } else { 110 }));
            let ack = Ack { rtt, delivered: 10, ..Ack::default() };
            rule.observe(&path, &ack);
            let cwnd = f64::from(20 + 10 * step);
            assert_eq!(rule.set_window(cwnd, f64::INFINITY, &path, &ack), None);
        }
        let loss = CongestionEvent::loss();
        assert_eq!(rule.decrease(1000.0, &path_at(0.2), &loss), 500.0);
        assert_eq!(rule.decrease(500.0, &path_at(0.4), &loss), (500 * BETA_MAX / ONE) as f64);
    }

    /// htcp_reset, which stores what an undo restores, follows htcp_param_update.
    #[test]
    fn an_undo_keeps_the_throughput_and_the_faded_maximum() {
        let mut rule = htcp("htcp");
        sample(&mut rule, 0.0, 100);
        sample(&mut rule, 0.0, 120);
        rule.throughput.max = 1000;
        rule.decrease(1000.0, &path_at(2.0), &CongestionEvent::loss());
        rule.on_undo(&path_at(2.0));
        assert_eq!(rule.epoch.rtt_max, 119);
        assert_eq!(rule.epoch.old_max, 1000);
    }

    #[test]
    fn a_spurious_congestion_does_not_restart_the_clock() {
        let mut rule = htcp("htcp(rtt_scaling=off)");
        rule.decrease(1000.0, &path_at(3.0), &CongestionEvent::loss());
        rule.on_undo(&path_at(3.0));
        assert_eq!(growth(&mut rule, 5000), 45.0);
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
