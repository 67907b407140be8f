//! Congestion control algorithms and the interface between them and a transport.
//!
//! Facts belong to the transport, opinions to the algorithm. The transport measures round-trip
//! times, delivery rates, packets in flight and losses, keeps them in a [`Path`], and hands every
//! event over with a view of it. The algorithm keeps only its own opinion and answers with a
//! [`ControlParameters`]: a window and, if it has one, a pacing rate. It knows no clock and no socket.
//!
//! Windows are in packets, rates in bytes per second, time in integer nanoseconds.

mod algorithm;
mod balia;
pub mod bbr;
mod bic;
mod copa;
mod coupled;
mod cubic;
mod cubic_2006;
mod dbac;
mod dctcp;
mod event;
mod factory;
mod fast;
pub mod filters;
mod hstcp;
mod htcp;
mod hybla;
mod hystart;
mod hystart_ns3;
mod illinois;
mod ledbat;
mod lia;
mod olia;
mod options;
mod rate;
mod reno;
mod round;
mod round_stats;
mod slow_start;
mod stats;
mod stcp;
#[cfg(test)]
mod test_path;
mod udt;
mod vegas;
mod westwood;
mod windowed;
mod wvegas;
mod yeah;

pub use algorithm::{Algorithm, NAMES};
pub use balia::Balia;
pub use bbr::{BbrV1, BbrV3};
pub use bic::Bic;
pub use copa::Copa;
pub use cubic::{Cubic, FirstGrowth, Parameters as CubicParameters, RenoFriendly};
pub use dbac::Dbac;
pub use dctcp::Dctcp;
pub use event::{
    Ack, CaState, CongestionEvent, ControlParameters, Metric, Path, PeerReport, RateSample,
    SendState, Sent, Signal, Subflow,
};
pub use factory::AlgorithmFactory;
pub use fast::Fast;
pub use hstcp::HighSpeed;
pub use htcp::Htcp;
pub use hybla::Hybla;
pub use hystart::{HyStart, HyStartPlusPlus};
pub use hystart_ns3::HyStartNs3;
pub use illinois::Illinois;
pub use ledbat::{LedbatPlusPlus, LedbatSlowStart};
pub use lia::Lia;
pub use olia::Olia;
pub use options::{ConfigError, ConnectionConfig, Options};
pub use rate::{PacketInfo, RateSampler};
pub use reno::Reno;
pub use round_stats::{RoundAggregator, RoundStats};
pub use slow_start::{AnySlowStart, SlowStart, StandardSlowStart};
pub use stats::SenderStats;
pub use stcp::Scalable;
pub use udt::{AdaptiveUdt, Udt};
pub use vegas::Vegas;
pub use westwood::Westwood;
pub use windowed::{WindowRule, Windowed};
pub use wvegas::WeightedVegas;
pub use yeah::Yeah;

/// A congestion control algorithm.
///
/// `on_ack`, `on_congestion` and `control` are all that an algorithm must have. The transport asks
/// for `control` after every event that it delivers.
pub trait CongestionControl {
    /// Packets were newly delivered (or the peer sent a report).
    fn on_ack(&mut self, path: &Path, ack: &Ack);

    /// The network signalled congestion: once per lost packet, per ECN echo that the transport
    /// reacts to, per NAK, per retransmission timeout. `event.new_episode` tells the first signal
    /// of a recovery episode, which is the one that a window rule answers.
    fn on_congestion(&mut self, path: &Path, event: &CongestionEvent);

    /// The window and rate in force from now on.
    fn control(&self) -> ControlParameters;

    /// The handshake is done; `path` holds the first round-trip time, if one could be taken.
    #[inline]
    fn on_established(&mut self, _path: &Path) {}

    /// A packet was handed to the network.
    #[inline]
    fn on_sent(&mut self, _path: &Path, _sent: &Sent) {}

    /// The episode that was last announced turned out to be spurious: undo it.
    #[inline]
    fn on_spurious_loss(&mut self, _path: &Path) {}

    /// The application was idle for longer than a retransmission timeout: go on with `cwnd`
    /// packets, and keep in the slow start threshold what is known of the path (RFC 5681, section
    /// 4.1; RFC 2861, section 3). Algorithms that keep their own window in recovery are not told.
    #[inline]
    fn on_restart_after_idle(&mut self, _cwnd: f64) {}

    /// Half of the window is taken away, though the path is not congested: a subflow keeps the
    /// receive window of its connection waiting. Unless told otherwise, an algorithm takes it for a
    /// loss; windows that are their own state are halved and nothing else, as from outside in Linux
    /// (mptcp_rcv_buf_optimization).
    #[inline]
    fn on_receive_window_penalty(&mut self, path: &Path) {
        let signal = Signal::Loss;
        let seq = path.una;
        let loss = CongestionEvent { signal, new_episode: true, packets: 0, seq, send_state: None };
        self.on_congestion(path, &loss);
    }

    /// The instant that [`next_timer`](Self::next_timer) asked for has come.
    #[inline]
    fn on_timer(&mut self, _path: &Path) {}

    /// When the algorithm wants [`on_timer`](Self::on_timer) to be called, if at all.
    #[inline]
    fn next_timer(&self) -> Option<dumbbell_units::Time> {
        None
    }

    /// Whether the transport spreads a window reduction over the recovery episode by PRR
    /// (RFC 6937bis). Model-based algorithms keep their own window in recovery and say `false`.
    #[inline]
    fn uses_prr(&self) -> bool {
        true
    }

    /// Whether an acknowledgement lets the next packet leave at once, whatever the pacing rate. Gu's
    /// module of UDT for NS-2 paces so.
    #[inline]
    fn is_ack_clocked(&self) -> bool {
        false
    }

    /// Shows named internals, for plots. Calls `show` once per value.
    fn inspect(&self, _show: &mut dyn FnMut(Metric)) {}
}
