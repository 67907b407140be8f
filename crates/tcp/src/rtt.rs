//! Round-trip time estimation and the retransmission timeout (RFC 6298, as in Linux's
//! `tcp_rtt_estimator` and `__tcp_set_rto`).
//!
//! SRTT <- 7/8 SRTT + 1/8 R';  RTTVAR <- 3/4 RTTVAR + 1/4 |SRTT - R'|;  RTO <- SRTT + 4 RTTVAR.
//! Linux differs in three ways:
//!
//! - RTTVAR rises to the maximum deviation of the round trip at once and decays slowly.
//! - The minimum of 200 ms applies to `4 RTTVAR`, not to the RTO: RTO >= SRTT + 200 ms.
//! - A sample far below SRTT raises the deviation slowly (Eifel): weight 1/32, not 1/4.

use crate::RtoRule;
use dumbbell_units::{Span, Time};

/// Initial retransmission timeout, before any sample (RFC 6298, 2.1).
const INITIAL_RTO: Span = Span::from_secs(1);
/// The timeout for data if a SYN was retransmitted and the round-trip time is not known (RFC 6298, 5.7;
/// `TCP_TIMEOUT_FALLBACK`).
const FALLBACK_RTO: Span = Span::from_secs(3);
/// Maximum retransmission timeout (Linux's `TCP_RTO_MAX`).
const MAX_RTO: Span = Span::from_secs(120);

/// RTT estimator of one connection; `mdev`, `mdev_max`, `rttvar` and `rtt_seq` are Linux's fields.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    min_rto: Span,
    /// Nanoseconds of a jiffy, or 0.
    tick: u32,
    rule: RtoRule,
    srtt: Option<Span>,
    /// Smoothed mean deviation.
    mdev: Span,
    /// Maximum of `mdev` in the current round trip.
    mdev_max: Span,
    /// Next sequence number when the current round trip began.
    rtt_seq: u32,
    /// Deviation of the timeout: maximum of the last round trip, decaying.
    rttvar: Span,
    latest: Span,
    min: Option<Span>,
    backoff: u8,
}

impl RttEstimator {
    pub(crate) fn new(min_rto: Span, rule: RtoRule, tick: Span) -> RttEstimator {
        RttEstimator {
            min_rto,
            tick: u32::try_from(tick.as_nanos()).unwrap_or(u32::MAX),
            rule,
            srtt: None,
            mdev: Span::ZERO,
            mdev_max: Span::ZERO,
            rtt_seq: 0,
            rttvar: Span::ZERO,
            latest: Span::ZERO,
            min: None,
            backoff: 0,
        }
    }

    pub(crate) fn srtt(&self) -> Option<Span> {
        self.srtt
    }

    pub(crate) fn rttvar(&self) -> Span {
        self.rttvar
    }

    pub(crate) fn latest(&self) -> Span {
        self.latest
    }

    pub(crate) fn min(&self) -> Option<Span> {
        self.min
    }

    /// The retransmission timeout, with exponential backoff from whole jiffies on.
    pub(crate) fn rto(&self) -> Span {
        let base = match self.srtt {
            None => INITIAL_RTO.max(self.rttvar),
            Some(srtt) => match self.rule {
                RtoRule::Linux => srtt + (self.rttvar * 4).max(self.min_rto),
                RtoRule::Rfc6298 => (srtt + self.mdev * 4).max(self.min_rto),
            },
        };
        let base = if self.backoff > 0 { self.whole_jiffies(base) } else { base };
        (base * (1 << self.backoff)).min(MAX_RTO)
    }

    /// A timeout in whole jiffies, as Linux keeps it (`__tcp_set_rto`), if there are any. Timers round up
    /// all the same.
    pub(crate) fn whole_jiffies(&self, timeout: Span) -> Span {
        match self.tick {
            0 => timeout,
            tick => Span::from_nanos(timeout.as_nanos().next_multiple_of(u64::from(tick))),
        }
    }

    /// The timer expired: doubles the timeout (RFC 6298, 5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(15);
    }

    /// Data is sent after a SYN that was retransmitted, without a round-trip time (`tcp_init_metrics`).
    pub(crate) fn fall_back(&mut self) {
        self.rttvar = FALLBACK_RTO;
    }

    /// A round-trip time was measured: ends the backoff (RFC 6298, section 5).
    pub(crate) fn reset_backoff(&mut self) {
        self.backoff = 0;
    }

    /// Updates the minimum, also with samples that do not enter the average.
    #[inline]
    pub(crate) fn update_min(&mut self, rtt: Span) {
        self.latest = rtt;
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
    }

    /// Adds a sample to the average. `una` and `next_seq` are the first packet not acknowledged and
    /// the next to be sent; they delimit round trips.
    #[inline]
    pub(crate) fn update(&mut self, rtt: Span, una: u32, next_seq: u32) {
        let Some(srtt) = self.srtt else {
            self.srtt = Some(rtt);
            self.mdev = rtt / 2;
            self.rttvar = self.mdev;
            self.mdev_max = self.mdev;
            self.rtt_seq = next_seq;
            return;
        };
        let (old, new) = (srtt.as_nanos(), rtt.as_nanos());
        self.srtt = Some(Span::from_nanos(old - old / 8 + new / 8));
        let error = Span::from_nanos(new.abs_diff(old));
        let is_eifel = self.rule == RtoRule::Linux && new < old && error > self.mdev;
        let shift = if is_eifel { 5 } else { 2 };
        let deviation = self.mdev.as_nanos();
        self.mdev =
            Span::from_nanos(deviation - (deviation >> shift) + (error.as_nanos() >> shift));
        if self.mdev > self.mdev_max {
            self.mdev_max = self.mdev;
            self.rttvar = self.rttvar.max(self.mdev_max);
        }
        if una > self.rtt_seq {
            if self.mdev_max < self.rttvar {
                self.rttvar =
                    self.rttvar.saturating_sub((self.rttvar.saturating_sub(self.mdev_max)) / 4);
            }
            self.rtt_seq = next_seq;
            self.mdev_max = self.min_rto / 4;
        }
    }
}

/// Microseconds of `now`, as a 32-bit timestamp option carries them.
#[inline]
pub(crate) fn timestamp(now: Time) -> u32 {
    (now.as_nanos() / 1_000) as u32
}

/// A tick of Linux's timestamps, microseconds (`TCP_TS_HZ`).
pub(crate) const TIMESTAMP_TICK: u32 = 1_000;

/// How many ticks `earlier` is before `later`, two timestamps.
pub(crate) fn ticks_between(earlier: u32, later: u32) -> u32 {
    (earlier % TIMESTAMP_TICK + later.wrapping_sub(earlier)) / TIMESTAMP_TICK
}

/// Whether the tick of `first` is before that of `second` (`tcp_tsopt_ecr_before`). Linux does not know
/// whether it received an original or a retransmission if both left in one tick.
pub(crate) fn is_tick_before(first: u32, second: u32) -> bool {
    (second.wrapping_sub(first) as i32) > 0 && ticks_between(first, second) > 0
}

/// The round-trip time by the echoed timestamp. Linux's timestamps count milliseconds; the minimum
/// is one (`tcp_rtt_tsopt_us`).
pub(crate) fn rtt_from_tsecr(now: Time, echo: u32) -> Span {
    let micros = now.as_nanos() / 1_000;
    let sent = micros.saturating_sub(u64::from(timestamp(now).wrapping_sub(echo)));
    Span::from_millis((micros / 1_000 - sent / 1_000).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimator() -> RttEstimator {
        RttEstimator::new(Span::from_millis(200), RtoRule::Linux, Span::ZERO)
    }

    #[test]
    fn before_any_sample_the_timeout_is_one_second() {
        assert_eq!(estimator().rto(), Span::from_secs(1));
    }

    /// RFC 6298, 5.7, and TCP_TIMEOUT_FALLBACK.
    #[test]
    fn after_a_second_syn_without_a_sample_it_is_three_seconds() {
        let mut rtt = estimator();
        rtt.fall_back();
        assert_eq!(rtt.rto(), Span::from_secs(3));
        rtt.update(Span::from_millis(100), 0, 10);
        assert_eq!(rtt.rto(), Span::from_millis(100 + 200));
    }

    #[test]
    fn the_first_sample_sets_srtt_to_r_and_the_deviation_to_half_of_it() {
        let mut rtt = estimator();
        rtt.update(Span::from_millis(100), 0, 10);
        assert_eq!(rtt.srtt(), Some(Span::from_millis(100)));
        assert_eq!(rtt.rto(), Span::from_millis(100 + 200));
    }

    #[test]
    fn the_minimum_of_rfc_6298_applies_to_the_whole_timeout() {
        let mut rtt = RttEstimator::new(Span::from_secs(1), RtoRule::Rfc6298, Span::ZERO);
        rtt.update(Span::from_millis(100), 0, 10);
        assert_eq!(rtt.rto(), Span::from_secs(1));
        let mut rtt = RttEstimator::new(Span::from_secs(1), RtoRule::Rfc6298, Span::ZERO);
        rtt.update(Span::from_millis(600), 0, 10);
        assert_eq!(rtt.rto(), Span::from_millis(600 + 4 * 300));
    }

    #[test]
    fn a_sample_far_below_srtt_raises_the_deviation_by_rule() {
        for (rule, deviation_us) in [(RtoRule::Rfc6298, 350_000), (RtoRule::Linux, 306_250)] {
            let mut rtt = RttEstimator::new(Span::from_millis(200), rule, Span::ZERO);
            rtt.update(Span::from_millis(600), 0, 10);
            rtt.update(Span::from_millis(100), 1, 11);
            assert_eq!(rtt.mdev, Span::from_micros(deviation_us), "{rule:?}");
        }
    }

    #[test]
    fn srtt_moves_an_eighth_of_the_way_to_each_sample() {
        let mut rtt = estimator();
        rtt.update(Span::from_millis(100), 0, 10);
        rtt.update(Span::from_millis(180), 1, 11);
        assert_eq!(rtt.srtt(), Some(Span::from_millis(110)));
    }

    #[test]
    fn on_a_steady_path_the_timeout_is_srtt_plus_200_ms() {
        let mut rtt = estimator();
        for una in 0..1000 {
            rtt.update(Span::from_millis(100), una, una + 10);
        }
        assert_eq!(rtt.rto(), Span::from_millis(300));
    }

    /// Linux `__tcp_set_rto`: 226.5 ms are 57 jiffies of 4 ms.
    #[test]
    fn the_timeout_that_is_doubled_is_of_whole_jiffies() {
        let mut rtt =
            RttEstimator::new(Span::from_millis(200), RtoRule::Linux, Span::from_millis(4));
        rtt.update(Span::from_micros(26_500), 0, 10);
        assert_eq!(rtt.rto(), Span::from_micros(226_500), "timers round it up");
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.rto(), Span::from_millis(4 * 228));
    }

    #[test]
    fn every_expiry_doubles_the_timeout_up_to_120_seconds() {
        let mut rtt = estimator();
        rtt.back_off();
        assert_eq!(rtt.rto(), Span::from_secs(2));
        for _ in 0..20 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto(), Span::from_secs(120));
        rtt.reset_backoff();
        assert_eq!(rtt.rto(), Span::from_secs(1));
    }
}
