//! The numbers of BBR: first those that all versions share, then those in which they differ.

use dumbbell_units::Span;

/// The pipe may hold more if a round brings at least this much more bandwidth.
pub const FULL_BW_THRESH: f64 = 1.25;
/// The pipe is full after so many rounds without that growth.
pub const FULL_BW_ROUNDS: u32 = 3;
/// Packets in flight at least, for a receiver that acknowledges every other one (MinPipeCwnd).
pub const MIN_CWND: f64 = 4.0;
/// Pace at this fraction of the estimated bandwidth: 1 % below it, so that queues shrink.
pub const PACING_MARGIN: f64 = 0.99;
/// The round-trip time that the first pacing rate assumes before one is measured.
pub const NOMINAL_RTT: Span = Span::from_millis(1);
/// How long `min_rtt` is believed.
pub const MIN_RTT_WINDOW: Span = Span::from_secs(10);
/// How long ProbeRTT lasts, at least.
pub const PROBE_RTT_DURATION: Span = Span::from_millis(200);
/// Rounds after which one half of the aggregation filter is forgotten: it spans 5 to 10.
pub const EXTRA_ACKED_ROUNDS: u32 = 5;
/// The window grows for aggregation by at most what is delivered in this time.
pub const EXTRA_ACKED_MAX: Span = Span::from_millis(100);

/// The numbers in which the versions differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Pacing gain of Startup.
    pub startup_pacing_gain: f64,
    /// Window gain of Startup and Drain.
    pub startup_cwnd_gain: f64,
    /// Pacing gain of Drain.
    pub drain_pacing_gain: f64,
    /// Rounds after which Drain ends even if the queue seems not to be gone.
    pub drain_rounds: Option<u64>,
    /// Window gain of ProbeBW.
    pub cwnd_gain: f64,
    /// How long without a lower round-trip time until ProbeRTT.
    pub probe_rtt_interval: Span,
    /// ProbeRTT leaves this many BDP in flight (but no less than [`MIN_CWND`]).
    pub probe_rtt_bdp: f64,
    /// Rounds that half of the aggregation filter spans in Startup.
    pub startup_extra_acked_rounds: u32,
}

/// What versions that heed loss and ECN have besides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Caution {
    /// Share of a flight that, if lost, shows that too much was in flight (LossThresh).
    pub loss_thresh: f64,
    /// What is left of a bound that congestion lowers (Beta).
    pub beta: f64,
    /// Share of the greatest safe volume in flight that is left to others (Headroom).
    pub headroom: f64,
    /// Losses in a round of recovery upon which Startup ends (BBRStartupFullLossCnt).
    pub full_loss_count: u32,
    /// Whether ECN marks are heeded, where the path is short.
    pub ecn: bool,
}

/// How ProbeBW probes in versions that do so in four phases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probing {
    /// Pacing gain while probing.
    pub up_pacing_gain: f64,
    /// Window gain while probing.
    pub up_cwnd_gain: f64,
    /// Pacing gain after probing.
    pub down_pacing_gain: f64,
    /// Time between probes, at least.
    pub wait: Span,
    /// Time between probes, at random on top of that.
    pub random_wait: Span,
    /// Rounds between probes, at most: what Reno needs between losses at 25 Mbit/s and 30 ms.
    pub most_rounds: f64,
}

/// Gain of the moving average of the share of marks.
pub const ECN_ALPHA_GAIN: f64 = 1.0 / 16.0;
/// All packets marked lower the bound by this share.
pub const ECN_FACTOR: f64 = 1.0 / 3.0;
/// Share of marks that shows that too much was in flight.
pub const ECN_THRESH: f64 = 0.5;
/// Marks are heeded only where the round-trip time is at most this: there they come early.
pub const ECN_MAX_RTT: Span = Span::from_millis(5);
/// Rounds above [`ECN_THRESH`] upon which Startup ends.
pub const ECN_FULL_ROUNDS: u32 = 2;
/// When marks end, the next probe begins by growing by this share of the bound.
pub const ECN_REPROBE_GAIN: f64 = 0.5;

impl Params {
    /// BBRv1. Linux counts gains in 256ths: 2/ln 2 = 2.885 is 739/256 and its inverse 88/256.
    pub const V1: Params = Params {
        startup_pacing_gain: 739.0 / 256.0,
        startup_cwnd_gain: 739.0 / 256.0,
        drain_pacing_gain: 88.0 / 256.0,
        drain_rounds: None,
        cwnd_gain: 2.0,
        probe_rtt_interval: MIN_RTT_WINDOW,
        probe_rtt_bdp: 0.0,
        startup_extra_acked_rounds: EXTRA_ACKED_ROUNDS,
    };

    /// BBRv3: the gains of draft-ietf-ccwg-bbr-06 except that of Drain. The draft has 0.5; this is
    /// Google's Linux branch (88/256, the inverse of 2/ln 2), with which BBRv3 was published and is
    /// run. The draft's end of Drain after three rounds is kept.
    pub const V3: Params = Params {
        startup_pacing_gain: 2.77,
        startup_cwnd_gain: 2.0,
        drain_pacing_gain: 0.35,
        drain_rounds: Some(3),
        cwnd_gain: 2.0,
        probe_rtt_interval: Span::from_secs(5),
        probe_rtt_bdp: 0.5,
        startup_extra_acked_rounds: 1,
    };
}

impl Caution {
    /// BBRv3 (draft-ietf-ccwg-bbr-06, section 2; ECN as in Google's Linux branch).
    pub const V3: Caution =
        Caution { loss_thresh: 0.02, beta: 0.7, headroom: 0.15, full_loss_count: 6, ecn: true };
}

impl Probing {
    /// BBRv3 (draft-ietf-ccwg-bbr-06, sections 5.3.3 and 5.6.1; Linux has 0.91 for DOWN).
    pub const V3: Probing = Probing {
        up_pacing_gain: 1.25,
        up_cwnd_gain: 2.25,
        down_pacing_gain: 0.9,
        wait: Span::from_secs(2),
        random_wait: Span::from_secs(1),
        most_rounds: 63.0,
    };
}
