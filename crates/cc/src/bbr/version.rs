//! The versions of BBR: the constants that they share, and everything in which they differ.
//!
//! | | BBRv1 | BBRv2 | F-BBRv2 | BBRv3 |
//! |---|---|---|---|---|
//! | responds to loss and ECN | no | yes | as v2 | yes |
//! | Startup: pacing, cwnd gain | 2.89, 2.89 | 2.8, 3 | | 2.77, 2 |
//! | losses in a round that end Startup | | 8 | | 6 |
//! | `inflight_longterm` after that | | the BDP | | the BDP or `inflight_latest`, the larger |
//! | Drain: pacing gain | 1/2.89 | 1/2.8 | | 0.35 |
//! | Drain ends at the latest when | | | | the 4th round since its entry starts |
//! | ProbeBW | 8 phases of a `min_rtt` | 4 phases, 2 to 3 s | | 4 phases, 2 to 3 s |
//! | UP: pacing, cwnd gain | 1.25, 2 | 1.25, 2 | | 1.25, 2.25 |
//! | UP ends, unless by loss, with | 1.25 BDP in flight | 1.25 BDP in flight | | a plateau of bandwidth |
//! | DOWN: pacing gain | 0.75 | 0.75 | | 0.9 |
//! | CRUISE: pacing gain | 1 | 1 | 1.15 beside CUBIC | 1 |
//! | ProbeRTT: interval, window | 10 s, 4 packets | 5 s, BDP/2 | | 5 s, BDP/2 |
//! | bandwidth of policed paths | measured | | | |
//! | a spurious loss restores | | the bounds | | the bounds and the state that it ended |
//! | ECN | no | if switched on | | on paths of at most 5 ms |

use crate::{ConfigError, Options};
use dumbbell_units::Span;

/// The pipe may hold more if a round brings at least this much more bandwidth.
pub(super) const FULL_BW_THRESH: f64 = 1.25;
/// The pipe is full after this many rounds without that growth.
pub(super) const FULL_BW_COUNT: u32 = 3;
/// Minimum packets in flight, for a receiver that acknowledges every other one.
pub(super) const MIN_PIPE_CWND: f64 = 4.0;
/// Pace by this much below the estimated bandwidth, so that queues shrink.
pub(super) const PACING_MARGIN_PERCENT: f64 = 1.0;
/// The round-trip time that the first pacing rate assumes before one is measured.
pub(super) const NOMINAL_RTT: Span = Span::from_millis(1);
/// Length of the filter of `min_rtt`.
pub(super) const MIN_RTT_FILTER_LEN: Span = Span::from_secs(10);
/// Minimum duration of ProbeRTT.
pub(super) const PROBE_RTT_DURATION: Span = Span::from_millis(200);
/// Rounds in one of the two halves of the aggregation filter (Linux `bbr_extra_acked_win_rtts`).
pub(super) const EXTRA_ACKED_WIN_RTTS: u32 = 5;
/// The window grows for aggregation by at most what is delivered in this time (Linux
/// `bbr_extra_acked_max_us`).
pub(super) const EXTRA_ACKED_MAX: Span = Span::from_millis(100);

/// Gain of the moving average of the share of marks.
pub(super) const ECN_ALPHA_GAIN: f64 = 1.0 / 16.0;
/// If all packets are marked, the bound is lowered by this share.
pub(super) const ECN_FACTOR: f64 = 1.0 / 3.0;
/// Share of marks that shows that too much was in flight.
pub(super) const ECN_THRESH: f64 = 0.5;
/// Rounds at [`ECN_THRESH`] or above that end Startup.
pub(super) const FULL_ECN_COUNT: u32 = 2;
/// When marks end, the next probe begins by growing by this share of the bound.
pub(super) const ECN_REPROBE_GAIN: f64 = 0.5;

/// The numbers in which BBRv2, F-BBRv2 and BBRv3 differ, and those that a user may change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Version {
    /// Pacing gain of Startup.
    pub startup_pacing_gain: f64,
    /// Window gain of Startup and Drain.
    pub startup_cwnd_gain: f64,
    /// Losses in a round of recovery that end Startup (BBRStartupFullLossCnt).
    pub startup_full_loss_count: u32,
    /// Whether `inflight_longterm` is `inflight_latest` or more after Startup ended on loss.
    pub startup_exit_uses_inflight_latest: bool,
    /// Pacing gain of Drain.
    pub drain_pacing_gain: f64,
    /// Drain ends when more rounds than this have started since its entry, even if the queue seems not
    /// to be gone.
    pub drain_max_rounds: Option<u64>,
    /// Window gain of ProbeBW, except UP.
    pub default_cwnd_gain: f64,
    /// Pacing gain of ProbeBW_UP.
    pub up_pacing_gain: f64,
    /// Window gain of ProbeBW_UP.
    pub up_cwnd_gain: f64,
    /// What ends ProbeBW_UP, if not loss or `inflight_longterm`.
    pub up_exit: ProbeUpExit,
    /// Pacing gain of ProbeBW_DOWN.
    pub down_pacing_gain: f64,
    /// Minimum time between probes for bandwidth.
    pub bw_probe_base: Span,
    /// Maximum random time between probes on top of that.
    pub bw_probe_rand: Span,
    /// Maximum rounds between probes: what Reno needs between losses at 25 Mbit/s and 30 ms.
    pub bw_probe_max_rounds: f64,
    /// Share of a flight that, if lost, shows that too much was in flight.
    pub loss_thresh: f64,
    /// Factor by which congestion lowers a bound.
    pub beta: f64,
    /// Share of `inflight_longterm` that is left to others.
    pub headroom: f64,
    /// Whether the flow returns to the state that a loss ended, if the loss was spurious.
    pub restores_undo_state: bool,
    /// Whether congestion between probes lowers `inflight_shortterm`; `bw_shortterm` it lowers always.
    pub inflight_shortterm: bool,
    /// Whether `max_bw_filter` advances when the feedback of a probe is complete, a round after UP, as
    /// `ack_phase` tells; otherwise when DOWN begins (the draft's pull request 5).
    pub ack_phase: bool,
    /// Whether the flow responds to ECN marks, on paths of at most `ecn_max_rtt`.
    pub ecn: bool,
    /// Maximum `min_rtt` at which the flow responds to marks: there they come early.
    pub ecn_max_rtt: Span,
    /// Length of the filter of `min_rtt` (MinRTTFilterLen).
    pub min_rtt_filter_len: Span,
    /// Whether `min_rtt` expires only at the end of ProbeRTT, not when ProbeRTT is due.
    pub min_rtt_expires_on_exit: bool,
    /// Maximum time without a lower round-trip time before ProbeRTT.
    pub probe_rtt_interval: Span,
    /// Window gain of ProbeRTT.
    pub probe_rtt_cwnd_gain: f64,
    /// Below this pacing rate, bit/s, bursts may be of one packet, else of two or more.
    pub min_tso_rate: f64,
    /// F-BBRv2's response to CUBIC.
    pub cubic_response: Option<CubicResponse>,
}

/// What ends ProbeBW_UP, if not loss or `inflight_longterm`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ProbeUpExit {
    /// This many BDP are in flight, a `min_rtt` after UP began or later.
    Inflight(f64),
    /// The bandwidth grows no more, by the rule that ends Startup (`full_bw_now`).
    FullBw,
}

/// How F-BBRv2 responds to CUBIC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CubicResponse {
    /// CUBIC is detected if `min_rtt` is more than this many times the first one.
    pub min_rtt_ratio: f64,
    /// Pacing gain of ProbeBW_CRUISE then.
    pub cruise_pacing_gain: f64,
}

/// BBRv3: draft-ietf-ccwg-bbr-06, sections 2, 5.3.3 and 5.6.1, with ECN as in Google's Linux branch `v3`
/// and Drain's gain of the drafts up to -04 (see the differences in [`v3`](super::v3)).
pub const V3: Version = Version {
    startup_pacing_gain: 2.77,
    startup_cwnd_gain: 2.0,
    startup_full_loss_count: 6,
    startup_exit_uses_inflight_latest: true,
    drain_pacing_gain: 0.35,
    drain_max_rounds: Some(3),
    default_cwnd_gain: 2.0,
    up_pacing_gain: 1.25,
    up_cwnd_gain: 2.25,
    up_exit: ProbeUpExit::FullBw,
    down_pacing_gain: 0.9,
    bw_probe_base: Span::from_secs(2),
    bw_probe_rand: Span::from_secs(1),
    bw_probe_max_rounds: 63.0,
    loss_thresh: 0.02,
    beta: 0.7,
    headroom: 0.15,
    restores_undo_state: true,
    inflight_shortterm: true,
    ack_phase: true,
    ecn: true,
    ecn_max_rtt: Span::from_millis(5),
    min_rtt_filter_len: MIN_RTT_FILTER_LEN,
    min_rtt_expires_on_exit: false,
    probe_rtt_interval: Span::from_secs(5),
    probe_rtt_cwnd_gain: 0.5,
    min_tso_rate: 0.0,
    cubic_response: None,
};

/// BBRv2. The gains of Startup and Drain, the loss threshold, the headroom, the end of UP, the interval
/// and the window of ProbeRTT are those of Cho and Cho (J. KICS 49(1), 2024, section III). The rest is
/// that of Google's Linux branch `v2alpha`, whose values those of Cho and Cho are too, except for the
/// gains of Startup (there 2.89 and 2.89) and Drain (there the inverse). `v2alpha` ignores marks by
/// default.
pub const V2: Version = Version {
    startup_pacing_gain: 2.8,
    startup_cwnd_gain: 3.0,
    startup_full_loss_count: 8,
    startup_exit_uses_inflight_latest: false,
    drain_pacing_gain: 1.0 / 2.8,
    drain_max_rounds: None,
    up_cwnd_gain: 2.0,
    up_exit: ProbeUpExit::Inflight(1.25),
    down_pacing_gain: 0.75,
    restores_undo_state: false,
    ecn: false,
    min_tso_rate: 1.2e6,
    ..V3
};

/// F-BBRv2 (Cho and Cho, section IV): BBRv2 with a detector of CUBIC and a response to it.
pub const F2: Version = Version {
    cubic_response: Some(CubicResponse { min_rtt_ratio: 1.2, cruise_pacing_gain: 1.15 }),
    ..V2
};

const SHARE: &str = "a number from 0 to 0.99";
const GAIN: &str = "a number from 0.05 to 1";
const TIMES: &str = "100 ms to 1000 s";

impl Version {
    /// The version with options: `loss_thresh`, `beta`, `headroom` (shares), `ecn`,
    /// `inflight_shortterm` and `ack_phase` (on or off), `drain_gain`, `down_gain`, `up_gain`, `drain_rounds` (0: no
    /// limit), `probe_rtt_interval`, `probe_wait`, `min_rtt_window`, `ecn_max_rtt` (times),
    /// `min_rtt_expiry`; F-BBRv2 also with `threshold` and `cruise_gain`.
    ///
    /// # Errors
    /// If an option's value is not one it can have.
    pub fn with_options(mut self, options: &mut Options) -> Result<Version, ConfigError> {
        for (key, value) in [
            ("loss_thresh", &mut self.loss_thresh),
            ("beta", &mut self.beta),
            ("headroom", &mut self.headroom),
        ] {
            *value = options.number(key, *value, 0.0..=0.99, SHARE)?;
        }
        self.ecn = options.switch("ecn", self.ecn)?;
        self.inflight_shortterm = options.switch("inflight_shortterm", self.inflight_shortterm)?;
        self.ack_phase = options.switch("ack_phase", self.ack_phase)?;
        for (key, value) in
            [("drain_gain", &mut self.drain_pacing_gain), ("down_gain", &mut self.down_pacing_gain)]
        {
            *value = options.number(key, *value, 0.05..=1.0, GAIN)?;
        }
        self.up_pacing_gain =
            options.number("up_gain", self.up_pacing_gain, 1.0..=4.0, "a number from 1 to 4")?;
        let rounds = self.drain_max_rounds.unwrap_or(0) as f64;
        let rounds = options.number("drain_rounds", rounds, 0.0..=1e6, "0 (no limit) to 10^6")?;
        self.drain_max_rounds = (rounds >= 1.0).then_some(rounds as u64);
        for (key, value) in [
            ("probe_rtt_interval", &mut self.probe_rtt_interval),
            ("probe_wait", &mut self.bw_probe_base),
            ("min_rtt_window", &mut self.min_rtt_filter_len),
        ] {
            let range = Span::from_millis(100)..=Span::from_secs(1000);
            *value = options.time(key, *value, range, TIMES)?;
        }
        let range = Span::from_millis(1)..=Span::from_secs(1000);
        self.ecn_max_rtt =
            options.time("ecn_max_rtt", self.ecn_max_rtt, range, "1 ms to 1000 s")?;
        let ends = [("entry", false), ("exit", true)];
        let default = self.min_rtt_expires_on_exit;
        self.min_rtt_expires_on_exit =
            options.choice("min_rtt_expiry", default, &ends, "entry or exit (of ProbeRTT)")?;
        if let Some(response) = &mut self.cubic_response {
            for (key, value) in [
                ("threshold", &mut response.min_rtt_ratio),
                ("cruise_gain", &mut response.cruise_pacing_gain),
            ] {
                *value = options.number(key, *value, 1.0..=10.0, "a number from 1 to 10")?;
            }
        }
        Ok(self)
    }
}
