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
    /// Whether a round-trip time equal to the least one puts ProbeRTT off.
    pub equal_rtt_refreshes: bool,
    /// Rounds that the aggregation filter spans in Startup.
    pub startup_extra_acked_rounds: u32,
}

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
        equal_rtt_refreshes: true,
        startup_extra_acked_rounds: EXTRA_ACKED_ROUNDS,
    };
}
