//! The versions of BBR: what they share, and everything in which they differ.
//!
//! | | BBRv1 | BBRv2 | F-BBRv2 | BBRv3 |
//! |---|---|---|---|---|
//! | heeds loss and ECN  | no | yes | as v2 | yes |
//! | Startup: pacing, window gain | 2.89, 2.89 | 2.8, 3 | | 2.77, 2 |
//! | Startup ends upon losses in a round | | 8 | | 6 |
//! | and then bounds what is in flight to | | the BDP | | what was delivered, at least |
//! | Drain: pacing gain | 1/2.89 | 1/2.8 | | 0.35 |
//! | Drain lasts at most | | | | 3 rounds |
//! | ProbeBW | 8 phases of a `min_rtt` | 4 phases, 2 to 3 s | | 4 phases, 2 to 3 s |
//! | probing: pacing, window gain | 1.25, 2 | 1.25, 2 | | 1.25, 2.25 |
//! | probing ends with (or else with loss) | 1.25 BDP in flight | 1.25 BDP in flight | | no more bandwidth |
//! | after probing: pacing gain | 0.75 | 0.75 | | 0.9 |
//! | cruising: pacing gain | 1 | 1 | 1.15 beside CUBIC | 1 |
//! | ProbeRTT: every, leaves | 10 s, 4 packets | 5 s, BDP/2 | | 5 s, BDP/2 |
//! | the bandwidth of policed paths | measured | | | |
//! | a spurious loss restores | | the bounds | | and the state that it ended |
//! | ECN | no | if switched on | | where the path is short |

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

/// The numbers that every version has.
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
    /// How the window allows for the bursts that offload makes.
    pub allowance: Allowance,
    /// Below this pacing rate, bit/s, packets are sent one by one, else at least two at once.
    pub one_packet_below: f64,
}

/// How the window allows for three bursts (see [`Scale::burst`](super::model::Scale::burst)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// They are added, and the sum made even, for a receiver that acknowledges every other packet.
    Added,
    /// They, and 4 packets, are the least.
    AtLeast,
}

/// A version that heeds loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Version {
    /// What it shares with those that do not.
    pub params: Params,
    /// How it heeds loss and ECN.
    pub caution: Caution,
    /// How it probes for bandwidth.
    pub probing: Probing,
    /// F-BBRv2's operations, if it has them.
    pub assertion: Option<Assertion>,
}

/// How a version heeds loss and ECN.
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
    /// Whether what is in flight after Startup is bounded to no less than was delivered in a round.
    pub startup_keeps_delivered: bool,
    /// Whether the flow returns to the state that a loss ended, if the loss was spurious.
    pub undo_returns: bool,
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
    /// What ends UP, if not loss or a bound.
    pub up_ends: UpEnds,
    /// Pacing gain after probing.
    pub down_pacing_gain: f64,
    /// Time between probes, at least.
    pub wait: Span,
    /// Time between probes, at random on top of that.
    pub random_wait: Span,
    /// Rounds between probes, at most: what Reno needs between losses at 25 Mbit/s and 30 ms.
    pub most_rounds: f64,
}

/// What ends UP, if not loss or a bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UpEnds {
    /// So many BDP are in flight, a `min_rtt` after UP began or later.
    InFlight(f64),
    /// No more bandwidth comes of it, by the rule that ends Startup.
    Plateau,
}

/// How F-BBRv2 asserts itself against CUBIC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assertion {
    /// CUBIC is there if `min_rtt` is more than so many times the first one.
    pub threshold: f64,
    /// The pacing gain of CRUISE, then.
    pub cruise_pacing_gain: f64,
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
    allowance: Allowance::Added,
    one_packet_below: 1.2e6,
};

/// BBRv2. The gains of Startup and Drain, the threshold of loss, the headroom, the end of UP, the
/// interval and the window of ProbeRTT are those of Cho and Cho (J. KICS 49(1), 2024, section III),
/// the rest is that of Google's Linux branch `v2alpha`, of which they are too, but for Startup's
/// (there 2.89 and 2.89) and Drain's (there its inverse). `v2alpha` heeds no marks unless told to.
pub const V2: Version = Version {
    params: Params {
        startup_pacing_gain: 2.8,
        startup_cwnd_gain: 3.0,
        drain_pacing_gain: 1.0 / 2.8,
        drain_rounds: None,
        cwnd_gain: 2.0,
        probe_rtt_interval: Span::from_secs(5),
        probe_rtt_bdp: 0.5,
        startup_extra_acked_rounds: 1,
        allowance: Allowance::AtLeast,
        one_packet_below: 1.2e6,
    },
    caution: Caution {
        loss_thresh: 0.02,
        beta: 0.7,
        headroom: 0.15,
        full_loss_count: 8,
        startup_keeps_delivered: false,
        undo_returns: false,
        ecn: false,
    },
    probing: Probing {
        up_pacing_gain: 1.25,
        up_cwnd_gain: 2.0,
        up_ends: UpEnds::InFlight(1.25),
        down_pacing_gain: 0.75,
        wait: Span::from_secs(2),
        random_wait: Span::from_secs(1),
        most_rounds: 63.0,
    },
    assertion: None,
};

/// F-BBRv2 (Cho and Cho, section IV): BBRv2 and two operations.
pub const F2: Version =
    Version { assertion: Some(Assertion { threshold: 1.2, cruise_pacing_gain: 1.15 }), ..V2 };

/// BBRv3: draft-ietf-ccwg-bbr-06, sections 2, 5.3.3 and 5.6.1, with ECN as in Google's Linux branch
/// `v3`, except for the gain of Drain. The draft has 0.5; this is about that branch's (88/256 or 0.344,
/// the inverse of 2/ln 2), with which BBRv3 was published and is run. The draft's end of Drain after
/// three rounds is kept. (Linux has 0.91 for DOWN, and looks for growth at every acknowledgement,
/// where the draft and this look once a round: its Startup is mostly a round shorter.)
pub const V3: Version = Version {
    params: Params {
        startup_pacing_gain: 2.77,
        startup_cwnd_gain: 2.0,
        drain_pacing_gain: 0.35,
        drain_rounds: Some(3),
        cwnd_gain: 2.0,
        probe_rtt_interval: Span::from_secs(5),
        probe_rtt_bdp: 0.5,
        startup_extra_acked_rounds: 1,
        allowance: Allowance::AtLeast,
        one_packet_below: 0.0,
    },
    caution: Caution {
        loss_thresh: 0.02,
        beta: 0.7,
        headroom: 0.15,
        full_loss_count: 6,
        startup_keeps_delivered: true,
        undo_returns: true,
        ecn: true,
    },
    probing: Probing {
        up_pacing_gain: 1.25,
        up_cwnd_gain: 2.25,
        up_ends: UpEnds::Plateau,
        down_pacing_gain: 0.9,
        wait: Span::from_secs(2),
        random_wait: Span::from_secs(1),
        most_rounds: 63.0,
    },
    assertion: None,
};
