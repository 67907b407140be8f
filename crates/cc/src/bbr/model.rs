//! Parts of BBR's model of the path that all versions share.
//!
//! The full pipe estimator, the filter of `max_bw`, the BDP, and the window that loss recovery and
//! ProbeRTT cut and restore. Volumes are in packets, rates in bytes per second.

use super::version::{FULL_BW_COUNT, FULL_BW_THRESH, MIN_PIPE_CWND};
use crate::CaState;
use dumbbell_units::{Rate, Span};

/// The full pipe estimator (draft-ietf-ccwg-bbr-06, section 5.3.1.2): while the rate is being raised,
/// the pipe is full when three rounds in a row have not brought 25 % more bandwidth.
///
/// Why three: in the first round the receiver may be raising its window, in the second the sender
/// fills it, in the third the samples show it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FullPipe {
    full_bw: Rate,
    full_bw_count: u32,
    /// Whether the pipe is full since [`reset_full_bw`](Self::reset_full_bw).
    pub full_bw_now: bool,
    /// Whether the pipe was ever full.
    pub full_bw_reached: bool,
}

impl FullPipe {
    /// CheckFullBWReached, with the bandwidth of a round that the application did not limit.
    pub fn check_full_bw_reached(&mut self, bw: Rate) {
        if self.full_bw_now {
            return;
        }
        if bw >= self.full_bw * FULL_BW_THRESH {
            self.reset_full_bw(bw);
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= FULL_BW_COUNT;
        self.full_bw_reached |= self.full_bw_now;
    }

    /// ResetFullBW, and the baseline from which growth counts.
    pub fn reset_full_bw(&mut self, full_bw: Rate) {
        self.full_bw = full_bw;
        self.full_bw_count = 0;
        self.full_bw_now = false;
    }
}

/// `max_bw_filter`: the maximum delivery rate of this ProbeBW cycle and the previous one
/// (draft-ietf-ccwg-bbr-06, section 5.5.3). In Startup the whole Startup is one cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MaxBwFilter {
    previous_cycle: Rate,
    current_cycle: Rate,
}

impl MaxBwFilter {
    /// The maximum of both cycles.
    #[inline]
    pub fn max_bw(&self) -> Rate {
        self.previous_cycle.max(self.current_cycle)
    }

    /// Takes a sample.
    #[inline]
    pub fn update(&mut self, delivery_rate: Rate) {
        self.current_cycle = self.current_cycle.max(delivery_rate);
    }

    /// AdvanceMaxBwFilter. A cycle without samples does not displace the previous one (Linux).
    pub fn advance(&mut self) {
        if self.current_cycle > Rate::ZERO {
            *self = MaxBwFilter { previous_cycle: self.current_cycle, current_cycle: Rate::ZERO };
        }
    }
}

/// Packets of `mss` bytes that `bw` delivers in `span`.
#[inline]
pub fn packets_in(bw: Rate, span: Span, mss: f64) -> f64 {
    bw.bytes_in(span) / mss
}

/// BDPMultiple: `gain` times `bw * min_rtt`, or `init_cwnd` while no round-trip time is known.
///
/// In whole packets, rounded up as in Linux: rounding down would lower the next bandwidth sample,
/// and so on.
#[inline]
pub fn bdp_multiple(bw: Rate, min_rtt: Option<Span>, gain: f64, mss: f64, init_cwnd: f64) -> f64 {
    // Less than this above a whole number is rounding error of the product.
    const ROUNDING: f64 = 1e-6;
    match min_rtt {
        None => init_cwnd,
        Some(rtt) => libm::ceil(packets_in(bw, rtt, mss) * gain - ROUNDING),
    }
}

/// InLossRecovery: fast recovery, or recovery after a timeout.
#[inline]
pub fn in_loss_recovery(ca_state: CaState) -> bool {
    matches!(ca_state, CaState::Recovery | CaState::Loss)
}

/// The window, and the last one that neither loss recovery nor ProbeRTT had cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Packets that may be in flight.
    pub cwnd: f64,
    /// `cwnd` before it was cut.
    pub prior_cwnd: f64,
}

impl Window {
    /// The initial window.
    pub fn new(init_cwnd: f64) -> Window {
        Window { cwnd: init_cwnd, prior_cwnd: 0.0 }
    }

    /// Sets `cwnd` in loss recovery, to 1 packet or more.
    #[inline]
    pub fn set(&mut self, cwnd: f64) {
        self.cwnd = cwnd.max(1.0);
    }

    /// The middle of SetCwnd: grows by `newly_acked` towards `max_inflight`, and falls to it at once.
    /// Until the pipe is full the window does not fall, and until the initial window is delivered
    /// (`is_first_flight`) it grows beyond `max_inflight`.
    #[inline]
    pub fn grow_towards(
        &mut self,
        max_inflight: f64,
        newly_acked: u32,
        full_bw_reached: bool,
        is_first_flight: bool,
    ) {
        let grown = self.cwnd + f64::from(newly_acked);
        if full_bw_reached {
            self.cwnd = grown.min(max_inflight);
        } else if self.cwnd < max_inflight || is_first_flight {
            self.cwnd = grown;
        }
        self.cwnd = self.cwnd.max(MIN_PIPE_CWND);
    }

    /// Bounds `cwnd` by `cap`, or by MinPipeCwnd if that is more.
    #[inline]
    pub fn bound(&mut self, cap: f64) {
        self.cwnd = self.cwnd.min(cap.max(MIN_PIPE_CWND));
    }

    /// SaveCwnd. If `cwnd` is already cut, by loss recovery or ProbeRTT, saves the maximum of it and
    /// the saved one.
    pub fn save_cwnd(&mut self, is_cut: bool) {
        self.prior_cwnd = if is_cut { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    /// The MSS changed; `scale` is the old one divided by the new one.
    pub fn scale(&mut self, scale: f64) {
        self.cwnd = (self.cwnd * scale).max(1.0);
        self.prior_cwnd *= scale;
    }

    /// RestoreCwnd.
    pub fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: f64 = 1448.0;

    fn rate(bytes: f64) -> Rate {
        Rate::from_bytes_per_sec(bytes)
    }

    fn feed(pipe: &mut FullPipe, bws: &[f64]) {
        bws.iter().for_each(|&bw| pipe.check_full_bw_reached(rate(bw)));
    }

    #[test]
    fn the_pipe_is_full_after_three_rounds_without_25_percent_growth() {
        let mut pipe = FullPipe::default();
        feed(&mut pipe, &[100.0, 200.0, 249.0, 249.0]);
        assert!(!pipe.full_bw_reached);
        feed(&mut pipe, &[249.0]);
        assert!(pipe.full_bw_now && pipe.full_bw_reached);
    }

    #[test]
    fn growth_of_25_percent_restarts_the_count() {
        let mut pipe = FullPipe::default();
        feed(&mut pipe, &[100.0, 110.0, 120.0, 125.0, 130.0, 130.0]);
        assert!(!pipe.full_bw_reached);
    }

    #[test]
    fn reset_full_bw_keeps_full_bw_reached() {
        let mut pipe = FullPipe::default();
        feed(&mut pipe, &[100.0; 4]);
        pipe.reset_full_bw(Rate::ZERO);
        assert!(pipe.full_bw_reached && !pipe.full_bw_now);
    }

    #[test]
    fn the_bdp_of_100_packets_a_second_over_100_ms_is_10_packets() {
        let bdp =
            |gain| bdp_multiple(rate(144_800.0), Some(Span::from_millis(100)), gain, MSS, 3.0);
        assert_eq!((bdp(1.0), bdp(1.25)), (10.0, 13.0));
        assert_eq!(bdp_multiple(rate(1e9), None, 2.0, MSS, 3.0), 3.0, "no round-trip time yet");
    }

    #[test]
    fn the_maximum_is_forgotten_after_two_cycles_unless_the_second_is_empty() {
        let mut filter = MaxBwFilter::default();
        filter.update(rate(9.0));
        filter.advance();
        filter.update(rate(5.0));
        assert_eq!(filter.max_bw(), rate(9.0));
        filter.advance();
        assert_eq!(filter.max_bw(), rate(5.0));
        filter.advance();
        assert_eq!(filter.max_bw(), rate(5.0));
    }

    #[test]
    fn the_window_grows_by_what_is_delivered_and_falls_to_its_target_at_once() {
        let mut window = Window::new(10.0);
        for (max_inflight, cwnd) in [(14.0, 13.0), (14.0, 14.0), (8.0, 8.0), (1.0, 4.0)] {
            window.grow_towards(max_inflight, 3, true, false);
            assert_eq!(window.cwnd, cwnd);
        }
    }

    #[test]
    fn the_window_does_not_fall_before_the_pipe_is_full() {
        let mut window = Window::new(10.0);
        window.grow_towards(6.0, 3, false, false);
        assert_eq!(window.cwnd, 10.0);
        window.grow_towards(6.0, 3, false, true);
        assert_eq!(window.cwnd, 13.0);
    }

    #[test]
    fn loss_recovery_may_cut_the_window_to_1_and_no_bound_raises_it() {
        let mut window = Window::new(10.0);
        window.set(0.0);
        assert_eq!(window.cwnd, 1.0);
        window.bound(0.0);
        assert_eq!(window.cwnd, 1.0);
    }

    #[test]
    fn the_window_from_before_a_cut_is_restored() {
        let mut window = Window::new(10.0);
        window.save_cwnd(false);
        window.set(5.0);
        window.save_cwnd(true);
        window.restore_cwnd();
        assert_eq!(window.cwnd, 10.0);
    }
}
