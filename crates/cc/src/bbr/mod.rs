//! BBR: congestion control by a model of the path, not by loss.
//!
//! The model is two numbers, the greatest delivery rate lately seen (`bw`) and the least round-trip
//! time (`min_rtt`). The sender paces at about `bw` and keeps about `bw * min_rtt`, the BDP, in
//! flight. Neither number can be measured while the other is, so it probes for them in turn:
//!
//! ```text
//!     Startup --pipe full--> Drain --queue gone--> ProbeBW <--> ProbeRTT (from any state)
//! ```
//!
//! One file holds one idea, and a version is a composition of them:
//!
//! | file | idea | v1 | v2, v3 |
//! |---|---|---|---|
//! | [`version`] | everything in which versions differ, in a table and in numbers | x | x |
//! | [`frame`] | what all versions have, and the order of steps | x | x |
//! | [`model`] | from rate and time to packets; the greatest rate | x | x |
//! | [`startup`] | when is the pipe full? | x | x |
//! | [`drain`] | when is the queue gone? | x | x |
//! | [`probe_rtt`] | `min_rtt`, and draining the pipe to see it | x | x |
//! | [`aggregation`] | acknowledgements that come in clumps | x | x |
//! | [`pacing`] | the pacing rate | x | x |
//! | [`window`] | the congestion window | x | x |
//! | [`v1`] | rules that take no heed of loss | x | |
//! | [`cycle`] | ProbeBW as eight phases of gains | x | |
//! | [`recovery`] | packet conservation | x | |
//! | [`policer`] | the long-term rate of a token bucket | x | |
//! | [`bounded`] | rules that let loss and ECN bound the model | | x |
//! | [`probe_bw`] | ProbeBW as four phases: when to probe, how far | | x |
//! | [`signals`] | what a round delivered, lost and marked | | x |
//! | [`bounds`] | the bounds that loss and marks set to the model | | x |
//! | [`ecn`] | the share of marks | | x |
//! | [`assertion`] | F-BBRv2: noticing CUBIC, and asserting oneself | | F-BBRv2 |
//!
//! Sources: draft-cardwell-iccrg-bbr-congestion-control-00 (BBRv1), Cardwell et al., "BBR:
//! Congestion-Based Congestion Control", ACM Queue 14(5), 2016, and the behaviour of Linux 6.18's
//! `bbr`; for BBRv2 draft-cardwell-iccrg-bbr-congestion-control-02, "BBR v2: A Model-based Congestion
//! Control" (IETF 104), and the behaviour of Google's Linux branch `v2alpha`; for BBRv3
//! draft-ietf-ccwg-bbr-06 and the behaviour of Google's Linux branch `v3`.

mod aggregation;
mod assertion;
mod bounded;
mod bounds;
mod cycle;
mod drain;
mod ecn;
mod frame;
mod model;
mod pacing;
mod policer;
mod probe_bw;
mod probe_rtt;
mod recovery;
mod signals;
mod startup;
mod v1;
pub mod version;
mod window;

pub use bounded::BoundedBbr;
pub use v1::BbrV1;

/// Where the state machine stands; [`number`](State::number) is what `inspect` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Doubling the rate every round until the pipe is full.
    Startup,
    /// Emptying the queue that Startup built.
    Drain,
    /// BBRv1: cycling through eight phases of gains.
    ProbeBw,
    /// Sending little, to see the round-trip time of an empty queue.
    ProbeRtt,
    /// ProbeBW_UP of v2 and v3: probing for more bandwidth.
    Up,
    /// ProbeBW_DOWN of v2 and v3: emptying the queue that probing built, and yielding.
    Down,
    /// ProbeBW_CRUISE of v2 and v3: sending as fast as the path delivers, with headroom for others.
    Cruise,
    /// ProbeBW_REFILL of v2 and v3: filling the pipe for a round before probing.
    Refill,
}

impl State {
    /// 0 Startup, 1 Drain, 2 ProbeBW (v1), 3 ProbeRTT; v2, v3: 4 UP, 5 DOWN, 6 CRUISE, 7 REFILL.
    pub fn number(self) -> u8 {
        match self {
            State::Startup => 0,
            State::Drain => 1,
            State::ProbeBw => 2,
            State::ProbeRtt => 3,
            State::Up => 4,
            State::Down => 5,
            State::Cruise => 6,
            State::Refill => 7,
        }
    }

    /// Whether this is one of the phases of ProbeBW.
    pub fn is_probe_bw(self) -> bool {
        !matches!(self, State::Startup | State::Drain | State::ProbeRtt)
    }
}
