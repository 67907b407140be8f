//! Slow start: the trait, the standard algorithm, and the choice of one by the option `slow_start`.

#[cfg(feature = "all-algorithms")]
use crate::RapidStart;
use crate::{
    Ack, ConfigError, HyStart, HyStartNs3, HyStartPlusPlus, Metric, Options, Path, Search,
};
use alloc::boxed::Box;

/// How a window grows in slow start, and when slow start ends before there is loss.
///
/// ```
/// use dumbbell_cc::{Ack, Path, SlowStart};
///
/// /// Limited slow start (RFC 3742, without its integer division): above `max_ssthresh`, the window
/// /// grows by half of `max_ssthresh` packets per round trip.
/// struct Limited {
///     max_ssthresh: f64,
/// }
///
/// impl SlowStart for Limited {
///     fn increase(&mut self, cwnd: f64, _path: &Path, ack: &Ack) -> f64 {
///         let acked = f64::from(ack.acked);
///         if cwnd <= self.max_ssthresh { acked } else { acked * self.max_ssthresh / 2.0 / cwnd }
///     }
/// }
/// ```
pub trait SlowStart {
    /// The window of a new connection, packets, if it is another than the transport's. The handshake has
    /// measured the round-trip time.
    #[inline]
    fn initial_window(&mut self, _path: &Path) -> Option<f64> {
        None
    }

    /// Whether slow start ends at the present window. Called once for each acknowledgement in
    /// slow start, before any growth, even if the window does not limit sending.
    #[inline]
    fn should_exit(&mut self, _cwnd: f64, _path: &Path, _ack: &Ack) -> bool {
        false
    }

    /// Packets by which `cwnd` grows.
    #[inline]
    fn increase(&mut self, _cwnd: f64, _path: &Path, ack: &Ack) -> f64 {
        f64::from(ack.acked)
    }

    /// Called once for each congestion episode, before the threshold is set, whether or not the window
    /// was in slow start.
    #[inline]
    fn on_exit(&mut self) {}

    /// The window with which a loss or a mark begins recovery, if it is another than `ssthresh`, which
    /// the rule has set. Called after [`on_exit`](Self::on_exit); not for a timeout.
    #[inline]
    fn begin_recovery(&mut self, _cwnd: f64, _ssthresh: f64, _path: &Path) -> Option<f64> {
        None
    }

    /// The window, and the threshold, after an acknowledgement of a recovery that sets its own.
    #[inline]
    fn recover(&mut self, _cwnd: f64, _path: &Path, _ack: &Ack) -> Option<f64> {
        None
    }

    /// Whether [`recover`](Self::recover) now sets the window, instead of PRR.
    #[inline]
    fn sets_recovery_window(&self) -> bool {
        false
    }

    /// Called on each retransmission timeout, after which slow start begins anew.
    #[inline]
    fn restart(&mut self, _path: &Path) {}

    /// Calls `show` once for each named internal.
    fn inspect(&self, _show: &mut dyn FnMut(Metric)) {}
}

/// Standard slow start: grows by `ack.acked` packets for each acknowledgement. RFC 5681 allows one
/// packet for each acknowledgement; byte counting, RFC 3465 without its limit `L`, is Linux's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StandardSlowStart;

impl SlowStart for StandardSlowStart {}

/// The slow start that the option `slow_start` names.
#[derive(Clone, Debug, PartialEq)]
pub enum AnySlowStart {
    /// Standard slow start.
    Standard(StandardSlowStart),
    /// Linux's HyStart.
    HyStart(HyStart),
    /// ns-3's HyStart.
    HyStartNs3(HyStartNs3),
    /// RFC 9406's HyStart++.
    HyStartPlusPlus(HyStartPlusPlus),
    /// draft-chung-ccwg-search's SEARCH, boxed because it has more state.
    Search(Box<Search>),
    /// draft-kazuho-ccwg-rapid-start's Rapid Start, boxed too.
    #[cfg(feature = "all-algorithms")]
    Rapid(Box<RapidStart>),
}

impl AnySlowStart {
    /// Standard slow start.
    pub const STANDARD: AnySlowStart = AnySlowStart::Standard(StandardSlowStart);
    /// Linux's HyStart with both detectors, the default of its CUBIC.
    pub const LINUX: AnySlowStart = AnySlowStart::HyStart(HyStart::new(true, true));

    /// Takes the option `slow_start`.
    ///
    /// # Errors
    /// If its value is the name of no slow start.
    pub fn from_options(
        options: &mut Options,
        default: AnySlowStart,
    ) -> Result<AnySlowStart, ConfigError> {
        options.choice(
            "slow_start",
            default,
            &[
                ("hystart", AnySlowStart::LINUX),
                ("standard", AnySlowStart::STANDARD),
                ("hystart++", AnySlowStart::HyStartPlusPlus(HyStartPlusPlus::new())),
                ("hystart-train", AnySlowStart::HyStart(HyStart::new(true, false))),
                ("hystart-delay", AnySlowStart::HyStart(HyStart::new(false, true))),
                ("hystart-ns3", AnySlowStart::HyStartNs3(HyStartNs3::new())),
                ("search", AnySlowStart::Search(Box::default())),
                #[cfg(feature = "all-algorithms")]
                ("rapid", AnySlowStart::Rapid(Box::default())),
            ],
            if cfg!(feature = "all-algorithms") {
                "standard, hystart, hystart-train, hystart-delay, hystart-ns3, hystart++, search or rapid"
            } else {
                "standard, hystart, hystart-train, hystart-delay, hystart-ns3, hystart++ or search"
            },
        )
    }
}

macro_rules! forward {
    ($self:ident, $slow_start:ident => $call:expr) => {
        match $self {
            AnySlowStart::Standard($slow_start) => $call,
            AnySlowStart::HyStart($slow_start) => $call,
            AnySlowStart::HyStartNs3($slow_start) => $call,
            AnySlowStart::HyStartPlusPlus($slow_start) => $call,
            AnySlowStart::Search($slow_start) => $call,
            #[cfg(feature = "all-algorithms")]
            AnySlowStart::Rapid($slow_start) => $call,
        }
    };
}

// No default body may stand in for the slow start's own method.
#[deny(clippy::missing_trait_methods)]
impl SlowStart for AnySlowStart {
    #[inline]
    fn initial_window(&mut self, path: &Path) -> Option<f64> {
        forward!(self, slow_start => slow_start.initial_window(path))
    }

    #[inline]
    fn should_exit(&mut self, cwnd: f64, path: &Path, ack: &Ack) -> bool {
        forward!(self, slow_start => slow_start.should_exit(cwnd, path, ack))
    }

    #[inline]
    fn increase(&mut self, cwnd: f64, path: &Path, ack: &Ack) -> f64 {
        forward!(self, slow_start => slow_start.increase(cwnd, path, ack))
    }

    fn on_exit(&mut self) {
        forward!(self, slow_start => slow_start.on_exit());
    }

    fn begin_recovery(&mut self, cwnd: f64, ssthresh: f64, path: &Path) -> Option<f64> {
        forward!(self, slow_start => slow_start.begin_recovery(cwnd, ssthresh, path))
    }

    #[inline]
    fn recover(&mut self, cwnd: f64, path: &Path, ack: &Ack) -> Option<f64> {
        forward!(self, slow_start => slow_start.recover(cwnd, path, ack))
    }

    #[inline]
    fn sets_recovery_window(&self) -> bool {
        forward!(self, slow_start => slow_start.sets_recovery_window())
    }

    fn restart(&mut self, path: &Path) {
        forward!(self, slow_start => slow_start.restart(path));
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        forward!(self, slow_start => slow_start.inspect(show));
    }
}
