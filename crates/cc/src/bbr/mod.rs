//! BBR: congestion control by a model of the path instead of by loss.
//!
//! The model is two numbers: the maximum delivery rate recently seen (`bw`) and the minimum round-trip
//! time (`min_rtt`). The sender paces at about `bw` and keeps about `bw * min_rtt`, the BDP, in flight.
//! Neither number can be measured while the other is, so the sender probes for them in turn:
//!
//! ```text
//!     Startup --pipe full--> Drain --queue gone--> ProbeBW <--> ProbeRTT (from any state)
//! ```
//!
//! An algorithm is one file, read in the order of one acknowledgement: [`v1`] (BBRv1) and [`v3`]
//! (BBRv3; BBRv2 and F-BBRv2 are the same code with other numbers). What they share is beside them.
//!
//! | file | what it holds | v1 | v2, v3 |
//! |---|---|---|---|
//! | [`version`] | everything in which versions differ, and the constants that they share | x | x |
//! | [`v1`] | BBRv1 | x | |
//! | [`v3`] | BBRv3: one acknowledgement, the model | | x |
//! | `v3/probe_bw` | BBRv3: the state machine | | x |
//! | `v3/control` | BBRv3: the control parameters | | x |
//! | `v3/loss` | BBRv3: the response to loss, and its undoing | | x |
//! | `model` | full pipe estimator, `max_bw`, BDP, saved window | x | x |
//! | `min_rtt` | `min_rtt` and ProbeRTT | x | x |
//! | `pacing` | the pacing rate, bursts, departure times | x | x |
//! | `ack_aggregation` | `extra_acked` | x | x |
//! | `lt_bw` | the bandwidth of a path with a policer | x | |
//! | `ecn` | the response to marks | | x |
//! | `cubic_detector` | F-BBRv2's detector of CUBIC | | F-BBRv2 |
//!
//! Names are those of draft-ietf-ccwg-bbr-06 in snake case and, where it has none, those of Linux's
//! `tcp_bbr.c`.
//!
//! Sources: draft-cardwell-iccrg-bbr-congestion-control-00 (BBRv1), Cardwell et al., "BBR:
//! Congestion-Based Congestion Control", ACM Queue 14(5), 2016, and Linux 6.18's `tcp_bbr.c`; for BBRv2
//! draft-cardwell-iccrg-bbr-congestion-control-02, "BBR v2: A Model-based Congestion Control" (IETF
//! 104), and Google's Linux branch `v2alpha`; for BBRv3 draft-ietf-ccwg-bbr-06 and Google's Linux
//! branch `v3`.

mod ack_aggregation;
mod cubic_detector;
mod ecn;
mod lt_bw;
mod min_rtt;
mod model;
mod pacing;
pub mod v1;
pub mod v3;
pub mod version;

pub use v1::BbrV1;
pub use v3::BbrV3;
pub use version::Version;
