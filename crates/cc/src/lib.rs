//! Congestion control algorithms, and the interface between them and a transport.
//!
//! The transport measures round-trip times, delivery rates, packets in flight and losses. It keeps
//! them in a [`Path`] and passes it with every event. The algorithm keeps only its own state and
//! returns [`ControlParameters`]: a window and, if it has one, a pacing rate. It has no access to
//! clocks or sockets.
//!
//! Windows are in packets, rates in bytes per second, times in integer nanoseconds.
//!
//! [`Algorithm::parse`] makes any built-in algorithm from its name and options. The head of each
//! algorithm's module has its equations, its sources and its differences from them. `examples/transport.rs`
//! is a whole transport; the page `docs/reference/transports.md` of the repository has what one must guarantee.
//!
//! The crate is `no_std` and needs `alloc`.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod abe;
mod algorithm;
mod arithmetic;
pub mod balia;
pub mod bbr;
pub mod bic;
pub mod bic_linux;
#[cfg(feature = "all-algorithms")]
pub mod c4;
pub mod cdg;
pub mod copa;
mod coupled;
pub mod cubic;
pub mod cubic_2006;
pub mod cubic_linux;
pub mod dbac;
pub mod dctcp;
mod event;
pub mod ext;
mod factory;
pub mod fast;
pub mod filters;
pub mod hstcp;
pub mod hstcp_linux;
pub mod htcp;
pub mod hybla;
pub mod hystart;
pub mod hystart_ns3;
pub mod illinois;
pub mod ledbat;
pub mod lia;
pub mod lp;
pub mod nv;
pub mod olia;
mod options;
pub mod prague;
#[cfg(feature = "all-algorithms")]
pub mod proteus;
pub mod rapid_start;
pub mod rate;
pub mod reno;
mod round;
mod round_stats;
pub mod search;
mod slow_start;
mod stats;
pub mod stcp;
#[cfg(test)]
mod test_path;
pub mod udt;
pub mod vegas;
pub mod veno;
#[cfg(feature = "all-algorithms")]
pub mod vivace;
pub mod westwood;
mod windowed;
pub mod wvegas;
pub mod yeah;

pub use abe::Abe;
pub use algorithm::{Algorithm, NAMES, OPTIONAL_NAMES};
pub use arithmetic::AnyArithmetic;
pub use balia::Balia;
pub use bbr::{BbrV1, BbrV3};
pub use bic::Bic;
pub use bic_linux::BicLinux;
#[cfg(feature = "all-algorithms")]
pub use c4::C4;
pub use cdg::Cdg;
pub use copa::Copa;
pub use cubic::{Cubic, Parameters as CubicParameters, RenoFriendly};
pub use cubic_2006::Cubic2006;
pub use cubic_linux::CubicLinux;
pub use dbac::Dbac;
pub use dctcp::Dctcp;
pub use event::{
    Ack, CaState, CongestionEvent, ControlParameters, Metric, Path, RateSample, SendState, Sent,
    Signal,
};
pub use factory::{AlgorithmFactory, CustomAlgorithm};
pub use fast::Fast;
pub use hstcp::HighSpeed;
pub use hstcp_linux::HighSpeedLinux;
pub use htcp::Htcp;
pub use hybla::Hybla;
pub use hystart::{HyStart, HyStartPlusPlus};
pub use hystart_ns3::HyStartNs3;
pub use illinois::Illinois;
pub use ledbat::LedbatPlusPlus;
pub use lia::Lia;
pub use lp::Lp;
pub use nv::Nv;
pub use olia::Olia;
pub use options::{ConfigError, ConnectionConfig, OptionInfo, Options};
pub use prague::Prague;
pub use rapid_start::RapidStart;
pub use rate::{PacketInfo, RateSampler};
pub use reno::{Reno, RenoLinux};
pub use round_stats::{RoundAggregator, RoundStats};
pub use search::Search;
pub use slow_start::{AnySlowStart, SlowStart, StandardSlowStart};
pub use stats::SenderStats;
pub use stcp::Scalable;
pub use udt::{AdaptiveUdt, Udt};
pub use vegas::Vegas;
pub use veno::Veno;
#[cfg(feature = "all-algorithms")]
pub use vivace::Vivace;
pub use westwood::Westwood;
pub use windowed::{WindowRule, Windowed};
pub use wvegas::WeightedVegas;
pub use yeah::Yeah;

use dumbbell_units::Time;

/// A congestion control algorithm.
///
/// Only `on_ack`, `on_congestion` and `control` are required. The transport calls
/// [`control`](Self::control) after every event that it delivers.
pub trait CongestionControl {
    /// Packets were newly delivered or marked lost (in UDT: the peer sent an ACK). It follows the
    /// [`on_congestion`](Self::on_congestion) calls of the same acknowledgement.
    fn on_ack(&mut self, path: &Path, ack: &Ack);

    /// The network signalled congestion. Called once per lost packet, ECN echo that the transport
    /// reacts to, NAK and retransmission timeout. `event.new_episode` is set on the first signal of
    /// a recovery episode; window rules reduce only on that one.
    fn on_congestion(&mut self, path: &Path, event: &CongestionEvent);

    /// The window and the pacing rate in force.
    fn control(&self) -> ControlParameters;

    /// The handshake is complete. `path` holds the first round-trip time, if there is a sample.
    #[inline]
    fn on_established(&mut self, _path: &Path) {}

    /// A packet was handed to the network. `path` counts it already.
    #[inline]
    fn on_sent(&mut self, _path: &Path, _sent: &Sent) {}

    /// The last recovery episode was spurious: undo its reduction.
    #[inline]
    fn on_spurious_loss(&mut self, _path: &Path) {}

    /// The application was idle for longer than a retransmission timeout. The algorithm continues
    /// with `cwnd` packets and keeps its estimate of the path in the slow start threshold (RFC 5681,
    /// section 4.1; RFC 2861, section 3). Not called if [`uses_prr`](Self::uses_prr) is `false`. A
    /// connection whose handshake lost packets begins so, with one packet (RFC 5681, section 3.1).
    #[inline]
    fn on_restart_after_idle(&mut self, _cwnd: f64) {}

    /// The path MTU changed (RFC 8899; RFC 9000, section 14.3): `path.mss` is new, `previous_mss` is
    /// what it was.
    ///
    /// An algorithm scales every state variable that is in packets by `previous_mss / path.mss`, so
    /// that windows keep their bytes. They are real numbers, so nothing is rounded, except that they
    /// do not fall below the algorithm's minimum window. The default does nothing: after it, the
    /// window keeps its packets.
    #[inline]
    fn on_mtu_update(&mut self, _path: &Path, _previous_mss: u32) {}

    /// All packets of a long period were lost (persistent congestion; RFC 9002, section 7.6): the
    /// window falls to the algorithm's minimum and what it learned about the path is discarded.
    ///
    /// The transport has reported the losses before, so the slow start threshold is low already
    /// (RFC 9002, appendix B.8). The default is a retransmission timeout within their episode, with
    /// nothing left in flight.
    #[inline]
    fn on_persistent_congestion(&mut self, path: &Path) {
        self.on_congestion(path, &CongestionEvent::persistent_congestion(path));
    }

    /// Packets left the flight neither acknowledged nor lost, because their keys were discarded
    /// (RFC 9002, section 6.4). `path.in_flight` does not count them any more. A transport with a
    /// [`RateSampler`] calls [`RateSampler::on_packet_discarded`] first.
    ///
    /// The default does nothing: an algorithm that reads the flight size from `path` needs nothing.
    #[inline]
    fn on_packet_discarded(&mut self, _path: &Path, _packets: u32) {}

    /// The time returned by [`next_timer`](Self::next_timer) has come.
    #[inline]
    fn on_timer(&mut self, _path: &Path) {}

    /// When to call [`on_timer`](Self::on_timer), if at all.
    #[inline]
    fn next_timer(&self) -> Option<Time> {
        None
    }

    /// Whether the transport spreads a window reduction over the recovery episode by PRR
    /// (RFC 9937). Model-based algorithms set their own window in recovery and return `false`.
    #[inline]
    fn uses_prr(&self) -> bool {
        true
    }

    /// MPTCP only: the window is halved without congestion, because this subflow blocks the
    /// connection's receive window (Linux's `mptcp_rcv_buf_optimization`).
    ///
    /// The default is a loss that begins an episode. Algorithms whose only state is the window
    /// halve it and nothing else.
    #[inline]
    fn on_receive_window_penalty(&mut self, path: &Path) {
        let loss = CongestionEvent::loss().with_packets(0).with_seq(path.una);
        self.on_congestion(path, &loss);
    }

    /// Calls `show` once per named value of the internal state, for plots.
    fn inspect(&self, _show: &mut dyn FnMut(Metric)) {}
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
