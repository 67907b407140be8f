//! TCP-NV, for data centres (Brakmo, "TCP-NV: congestion avoidance for data centers", Linux Plumbers
//! Conference 2010), as Linux's `tcp_nv.c` implements it, without its `BPF_SOCK_OPS_BASE_RTT`.
//!
//! A successor of Vegas. Once a round trip, from the maximum rate in it and the minimum round-trip time,
//! the window that this rate needs and the packets that may be queued:
//!
//! ```text
//! cwnd_by_slope = nv_rtt_max_rate nv_min_rtt        rate = packets / avg_rtt
//! max_win       = cwnd_by_slope + nv_pad            nv_pad = 10
//! cwnd > max_win:      ssthresh = max_win; cwnd -= 30 % (cwnd - max_win), at least 2; no growth
//! cwnd <= max_win - 2: growth, as Reno's, or slower by a power of 2 after timeouts
//! loss:                ssthresh = cwnd = 80 % cwnd
//! ```
//!
//! The packets of `rate` are those delivered since the packet was sent that is acknowledged now; without a
//! delivery rate sample, those in flight. `avg_rtt` is half of itself and half of each sample.
//! `nv_min_rtt` begins anew after losses, and covers the present and the previous one of periods of 3.75 to
//! 6.25 s, drawn at random. A decision needs 60 samples (30 to leave slow start, 20 to grow), so it takes
//! several round trips with a small window; if 10 pass without one, growth stops.
//!
//! Linux measures in the state before an acknowledgement: the one that ends a recovery does not count. Nor
//! does here the one that begins a recovery.

use crate::WindowRule;
use crate::arithmetic::{CongAvoidAi, Jiffies};
use crate::{Ack, CaState, ConfigError, CongestionEvent, ConnectionConfig, Metric, Options, Path};
use dumbbell_units::Span;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Linux's parameters, whose names these are.
const NV_PAD_BUFFER: u64 = 2;
const NV_RESET_PERIOD: u64 = 5;
const NV_MIN_CWND_PARAMETER: u64 = 2;
const NV_CONG_DEC_MULT: u64 = 30 * 128 / 100;
const NV_LOSS_DEC_FACTOR: u64 = 819;
const NV_CWND_GROWTH_RATE_NEG: u32 = 8;
const NV_DEC_EVAL_MIN_CALLS: u32 = 60;
const NV_INC_EVAL_MIN_CALLS: u32 = 20;
const NV_SSTHRESH_EVAL_MIN_CALLS: u32 = 30;
const NV_STOP_RTT_CNT: u32 = 10;
const NV_RTT_MIN_CNT: u32 = 2;
const NV_MIN_CWND: u64 = 4;
const NV_MIN_CWND_GROW: u64 = 2;
const NV_TSO_CWND_BOUND: u64 = 80;

/// TCP-NV's rule.
#[derive(Clone, Debug)]
pub struct Nv {
    nv_pad: u64,
    random: SplitMix64,
    /// In jiffies.
    min_rtt_reset: u64,
    /// Growth is Reno's divided by 2 to this power.
    slowdown: u32,
    allow_cwnd_growth: bool,
    nv_reset: bool,
    eval_call_cnt: u32,
    min_cwnd: u64,
    rtt_cnt: u32,
    /// Averages and minima in us; 0 if there is none.
    last_rtt: u64,
    min_rtt: u64,
    min_rtt_new: u64,
    /// In 100 bit/s.
    rtt_max_rate: u64,
    rtt_start_seq: u64,
    last_una: u64,
    no_cong_cnt: u32,
    /// The state before this acknowledgement, and after it.
    states: [CaState; 2],
    avoidance: CongAvoidAi,
}

/// A byte per us in units of `rtt_max_rate`.
const BYTE_PER_US: u64 = 80_000;

impl Nv {
    /// Takes the option `pad`.
    ///
    /// # Errors
    /// If it has a value that it cannot have.
    pub fn from_options(
        options: &mut Options,
        config: &ConnectionConfig,
    ) -> Result<Nv, ConfigError> {
        let nv_pad = options.number("pad", 10.0, 2.0..=1e6, "2 to 10^6 packets")? as u64;
        Ok(Nv {
            nv_pad,
            random: SplitMix64::seed_from_u64(config.seed),
            min_rtt_reset: u64::MAX,
            slowdown: 0,
            allow_cwnd_growth: true,
            nv_reset: false,
            eval_call_cnt: 0,
            min_cwnd: NV_MIN_CWND,
            rtt_cnt: 0,
            last_rtt: 0,
            min_rtt: u64::MAX,
            min_rtt_new: u64::MAX,
            rtt_max_rate: 0,
            rtt_start_seq: 0,
            last_una: 0,
            no_cong_cnt: 0,
            states: [CaState::Open; 2],
            avoidance: CongAvoidAi::default(),
        })
    }

    /// `tcpnv_reset`.
    fn reset(&mut self, path: &Path) {
        self.nv_reset = false;
        self.no_cong_cnt = 0;
        self.rtt_cnt = 0;
        self.last_rtt = 0;
        self.rtt_max_rate = 0;
        self.rtt_start_seq = path.una;
        self.eval_call_cnt = 0;
        self.last_una = path.una;
    }

    /// What every reduction does.
    fn stop(&mut self) {
        self.nv_reset = true;
        self.allow_cwnd_growth = false;
        self.avoidance = CongAvoidAi::default();
    }

    /// `tcpnv_acked`: a new window and threshold, if they change.
    fn acked(&mut self, cwnd: u64, ssthresh: f64, path: &Path, ack: &Ack) -> Option<(u64, f64)> {
        let rtt = ack.rtt?;
        if !matches!(self.states[0], CaState::Open | CaState::Disorder) {
            return None;
        }
        let acked = path.una.saturating_sub(self.last_una);
        self.last_una = path.una;
        let packets = ack.rate.map_or(ack.prior_in_flight, |rate| rate.delivered);
        if packets == 0 {
            return None;
        }
        self.measure(path, rtt, packets);
        if path.una > self.rtt_start_seq { self.decide(cwnd, ssthresh, path, acked) } else { None }
    }

    /// The beginning of `tcpnv_acked`: averages, minima and the maximum rate.
    fn measure(&mut self, path: &Path, rtt: Span, packets: u32) {
        let rtt = (rtt.as_nanos() / 1000).max(1);
        let avg_rtt = match self.last_rtt {
            0 => {
                self.min_rtt = rtt << 1;
                rtt
            }
            last => (rtt + last) >> 1,
        };
        self.last_rtt = avg_rtt;
        let rate = u64::from(packets) * u64::from(path.mss) * BYTE_PER_US / avg_rtt;
        self.rtt_max_rate = self.rtt_max_rate.max(rate);
        self.eval_call_cnt = (self.eval_call_cnt + 1).min(255);
        self.min_rtt = self.min_rtt.min(avg_rtt);
        self.min_rtt_new = self.min_rtt_new.min(avg_rtt);
        let clock = Jiffies::of(path);
        let now = clock.at(path.now);
        if now >= self.min_rtt_reset {
            self.min_rtt = self.min_rtt_new;
            self.min_rtt_new = u64::MAX;
            let random = self.random.next_u64() & 255;
            self.min_rtt_reset = now + ((NV_RESET_PERIOD * (384 + random) * clock.hz) >> 9);
            self.min_cwnd = (self.min_cwnd / 2).max(NV_MIN_CWND);
        }
    }

    /// The rest of `tcpnv_acked`, once a round trip: a new window and threshold, if they change.
    fn decide(&mut self, cwnd: u64, ssthresh: f64, path: &Path, acked: u64) -> Option<(u64, f64)> {
        self.rtt_start_seq = path.next_seq;
        self.rtt_cnt = (self.rtt_cnt + 1).min(255);
        if self.eval_call_cnt == 1
            && acked + 1 >= self.min_cwnd
            && self.min_cwnd < NV_TSO_CWND_BOUND + 1
        {
            self.min_cwnd = (self.min_cwnd + NV_MIN_CWND_GROW).min(NV_TSO_CWND_BOUND + 1);
            self.rtt_start_seq = path.next_seq + self.min_cwnd;
            self.eval_call_cnt = 0;
            self.allow_cwnd_growth = true;
            return None;
        }
        let slope = u128::from(BYTE_PER_US * u64::from(path.mss));
        let cwnd_by_slope = u128::from(self.rtt_max_rate) * u128::from(self.min_rtt) / slope;
        let max_win = cwnd_by_slope as u64 + self.nv_pad;
        let mut changed = None;
        if cwnd > max_win {
            let enough = match ssthresh.is_finite() {
                true => NV_DEC_EVAL_MIN_CALLS,
                false => NV_SSTHRESH_EVAL_MIN_CALLS,
            };
            if self.rtt_cnt < NV_RTT_MIN_CNT {
                return None;
            }
            if self.eval_call_cnt < enough {
                if ssthresh.is_finite() && self.rtt_cnt > NV_STOP_RTT_CNT {
                    self.allow_cwnd_growth = false;
                }
                return None;
            }
            self.allow_cwnd_growth = false;
            let over = cwnd - max_win;
            let dec = if over > 2 { ((over * NV_CONG_DEC_MULT) >> 7).max(2) } else { over };
            changed = Some(((cwnd - dec).max(NV_MIN_CWND_PARAMETER), max_win as f64));
            self.no_cong_cnt = 0;
        } else if cwnd + NV_PAD_BUFFER <= max_win {
            if self.eval_call_cnt < NV_INC_EVAL_MIN_CALLS {
                return None;
            }
            self.allow_cwnd_growth = true;
            self.no_cong_cnt += 1;
            if self.slowdown > 0 && self.no_cong_cnt > NV_CWND_GROWTH_RATE_NEG {
                self.slowdown -= 1;
                self.no_cong_cnt = 0;
            }
        } else {
            return None;
        }
        self.eval_call_cnt = 0;
        self.rtt_cnt = 0;
        self.rtt_max_rate = 0;
        changed
    }
}

impl WindowRule for Nv {
    /// `tcpnv_init`.
    fn on_established(&mut self, path: &Path) {
        let clock = Jiffies::of(path);
        self.min_rtt_reset = clock.at(path.now) + 2 * clock.hz;
    }

    /// `tcpnv_cong_avoid`.
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, _path: &Path, _ack: &Ack) -> f64 {
        let cnt = ((cwnd as u64) << self.slowdown).max(4);
        self.avoidance.grow(cnt, acked as u64)
    }

    /// `tcpnv_recalc_ssthresh` and `tcpnv_state`.
    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
        self.stop();
        self.states[1] = CaState::Recovery;
        ((cwnd as u64 * NV_LOSS_DEC_FACTOR) >> 10) as f64
    }

    fn observe(&mut self, path: &Path, _ack: &Ack) {
        self.states = [self.states[1], path.ca_state];
    }

    fn set_window(
        &mut self,
        cwnd: f64,
        ssthresh: f64,
        path: &Path,
        ack: &Ack,
    ) -> Option<(f64, f64)> {
        let decision = self.acked(cwnd as u64, ssthresh, path, ack);
        if self.nv_reset && path.ca_state == CaState::Open {
            self.reset(path);
        }
        match decision {
            Some((window, threshold)) => Some((window as f64, threshold)),
            None => (!self.allow_cwnd_growth).then_some((cwnd, ssthresh)),
        }
    }

    /// Every timeout slows growth, and packets are counted anew (`tcp_enter_loss`).
    fn on_timeout(&mut self) {
        self.stop();
        self.states[1] = CaState::Loss;
        self.slowdown = (self.slowdown + 1).min(8);
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        if self.min_rtt < u64::MAX {
            show(Metric { name: "nv_min_rtt", value: self.min_rtt as f64 / 1e6 });
        }
        let allowed = f64::from(u8::from(self.allow_cwnd_growth));
        show(Metric { name: "nv_allow_cwnd_growth", value: allowed });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_path::{Link, TestPath, init};
    use crate::{AnySlowStart, CongestionControl, RateSample, SendState, Windowed};
    use dumbbell_units::{Rate, Time};

    fn rule() -> Nv {
        let mut options = "nv".parse().expect("well formed");
        Nv::from_options(&mut options, &init(1)).expect("within range")
    }

    fn nv(link: Link) -> TestPath<Windowed<Nv, AnySlowStart>> {
        TestPath::new(Windowed::new(rule(), AnySlowStart::STANDARD, &init(1)), link)
    }

    /// tcpnv_acked with these numbers, computed by hand: the rate is 100 packets in 1500 us, so the
    /// window by slope is 66 and `max_win` 76.
    #[test]
    fn the_window_and_the_threshold_are_those_of_the_kernel_s_code() {
        for (cwnd, calls, expected) in [
            (100, 60, Some((100 - ((24 * 38) >> 7), 76.0))), // 24 above: 7 less
            (80, 60, Some((78, 76.0))),                      // 4 above: 1, but at least 2
            (78, 60, Some((76, 76.0))),                      // 2 above: to max_win
            (100, 59, None),                                 // one sample too few
            (75, 60, None),                                  // in between
            (74, 20, None),                                  // below: growth
        ] {
            let mut rule = rule();
            rule.min_rtt = 1000;
            rule.rtt_max_rate = 100 * 1448 * 80_000 / 1500;
            (rule.rtt_cnt, rule.eval_call_cnt) = (1, calls);
            rule.allow_cwnd_growth = false;
            let changed = rule.decide(cwnd, 50.0, &Path::new(1448, Time::ZERO), 100);
            assert_eq!(changed, expected, "cwnd {cwnd}, {calls} samples");
            assert_eq!(rule.allow_cwnd_growth, cwnd == 74);
        }
    }

    /// tcpnv_state: `cwnd_growth_factor` falls to -8 with each entry to TCP_CA_Loss.
    #[test]
    fn every_timeout_halves_growth_and_a_loss_leaves_four_fifths() {
        let (mut rule, path) = (rule(), Path::new(1448, Time::ZERO));
        assert_eq!(rule.decrease(100.0, &path, &CongestionEvent::loss()), 79.0, "81,900 / 1024");
        let grown = |rule: &mut Nv| rule.increase(10.0, 10.0, &path, &Ack::new(10));
        assert_eq!(grown(&mut rule), 1.0);
        // The first one in a recovery, the second one after the first: no new episodes.
        rule.on_timeout();
        assert_eq!((grown(&mut rule), grown(&mut rule), grown(&mut rule)), (0.0, 1.0, 0.0));
        rule.on_timeout();
        let growth: Vec<f64> = (0..5).map(|_| grown(&mut rule)).collect();
        assert_eq!(growth, [0.0, 0.0, 0.0, 1.0, 0.0], "the packets are counted anew");
        (0..10).for_each(|_| rule.on_timeout());
        assert_eq!(rule.slowdown, 8);
    }

    /// An acknowledgement of the packet before which `prior` were delivered, when `delivered` are.
    fn acknowledge(rule: &mut Nv, ca_state: CaState, una: u64, [prior, delivered]: [u64; 2]) {
        let path = Path { ca_state, una, delivered, ..Path::new(1448, Time::ZERO) };
        let send_state = SendState { delivered: prior, in_flight: 7, ..SendState::default() };
        let (rtt, since) = (Span::from_micros(1000), (delivered - prior) as u32);
        let rate = RateSample::new(since, rtt, Rate::from_bits_per_sec(1e6), send_state);
        let ack = Ack::new(1).with_rtt(Some(rtt)).with_rate(Some(rate));
        rule.observe(&path, &ack);
        rule.set_window(50.0, 40.0, &path, &ack);
    }

    /// tcp_input.c: `in_flight = mss_cache * (delivered - prior_delivered)`; then 80000 / avg_rtt.
    #[test]
    fn the_rate_is_what_was_delivered_since_the_packet_was_sent() {
        let mut rule = rule();
        rule.rtt_start_seq = 100;
        acknowledge(&mut rule, CaState::Open, 1, [100, 130]);
        assert_eq!(rule.rtt_max_rate, 30 * 1448 * 80_000 / 1000);
    }

    /// tcpnv_init: after 2 HZ; tcpnv_acked: after 5 (384 + rand) HZ >> 9, 937 to 1560 jiffies of 4 ms.
    #[test]
    fn the_minimum_begins_anew_2_s_after_the_handshake() {
        let mut rule = rule();
        let path = |ms| {
            let path = Path::new(1448, Time::ZERO + Span::from_millis(ms));
            Path { jiffy: Span::from_millis(4), ..path }
        };
        rule.on_established(&path(41));
        for (ms, minimum) in [(2039, 1000), (2040, u64::MAX)] {
            rule.measure(&path(ms), Span::from_millis(1), 10);
            assert_eq!(rule.min_rtt_new, minimum, "{ms} ms");
        }
        assert!((510 + 937..=510 + 1560).contains(&rule.min_rtt_reset), "{}", rule.min_rtt_reset);
    }

    /// tcp_clean_rtx_queue calls tcpnv_acked, before tcp_fastretrans_alert changes the state.
    #[test]
    fn the_acknowledgement_that_ends_a_recovery_does_not_count() {
        let mut rule = rule();
        rule.decrease(100.0, &Path::new(1448, Time::ZERO), &CongestionEvent::loss());
        for (ca_state, una, minimum) in [
            (CaState::Recovery, 1, u64::MAX),
            (CaState::Open, 2, u64::MAX),
            (CaState::Open, 3, 1000),
        ] {
            acknowledge(&mut rule, ca_state, una, [0, 30]);
            assert_eq!(rule.min_rtt_new, minimum, "{ca_state:?}");
        }
    }

    #[test]
    fn alone_it_keeps_about_ten_packets_in_the_queue_and_loses_none() {
        // A data centre: 1 Gbit/s and 1 ms.
        let mut flow = nv(Link::new(1000.0, 1, 1000.0));
        flow.run_ms(3000);
        let mut queued = Vec::new();
        flow.run(Span::from_secs(2), |flow| queued.push(flow.queued()));
        let mean = queued.iter().sum::<f64>() / queued.len() as f64;
        assert!((4.0..=16.0).contains(&mean), "{mean}");
        assert_eq!(flow.dropped, 0);
    }

    #[test]
    fn after_a_loss_it_measures_anew_and_goes_on() {
        let mut flow = nv(Link::new(1000.0, 1, 1000.0));
        flow.run_ms(1000);
        flow.link.loses = |seq| seq == 100_000;
        assert!(flow.run_until(Span::from_secs(3), |flow| flow.path.ca_state.is_reducing()));
        flow.run_ms(2000);
        let before = flow.path.delivered;
        flow.run_ms(1000);
        let mbit = (flow.path.delivered - before) as f64 * 1448.0 * 8.0 / 1e6;
        assert!(mbit > 900.0, "{mbit}");
        assert!(flow.algorithm.control().ssthresh.is_finite());
    }
}
