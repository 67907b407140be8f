//! Round-trip time estimation and the retransmission timeout (RFC 6298, as Linux has it).
//!
//! SRTT <- 7/8 SRTT + 1/8 R';  RTTVAR <- 3/4 RTTVAR + 1/4 |SRTT - R'|;  RTO <- SRTT + 4 RTTVAR.
//! Linux differs in two ways that matter on steady paths: the deviation is the greatest of the
//! last round trip rather than the smoothed one when it rises, and its term `4 RTTVAR` (not the
//! whole RTO) has the floor of 200 ms, so that RTO >= SRTT + 200 ms.

use crate::RtoRule;
use dumbbell_units::{Span, Time};

/// Initial retransmission timeout, before any sample (RFC 6298, 2.1).
const INITIAL_RTO: Span = Span::from_secs(1);
/// Greatest retransmission timeout (Linux's TCP_RTO_MAX).
const MAX_RTO: Span = Span::from_secs(120);

/// Round-trip times of one connection.
#[derive(Clone, Debug)]
pub(crate) struct RttEstimator {
    min_rto: Span,
    rule: RtoRule,
    srtt: Option<Span>,
    /// Smoothed mean deviation.
    mdev: Span,
    /// Greatest deviation of the present round trip, and when that round trip ends.
    mdev_max: Span,
    rtt_seq: u32,
    /// Deviation in force: the greatest of the last round trip, decaying.
    rttvar: Span,
    latest: Span,
    min: Option<Span>,
    backoff: u32,
}

impl RttEstimator {
    pub(crate) fn new(min_rto: Span, rule: RtoRule) -> RttEstimator {
        RttEstimator {
            min_rto,
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

    /// The retransmission timeout, backed off.
    pub(crate) fn rto(&self) -> Span {
        let base = match self.srtt {
            None => INITIAL_RTO,
            Some(srtt) => match self.rule {
                RtoRule::Linux => srtt + (self.rttvar * 4).max(self.min_rto),
                RtoRule::Rfc6298 => (srtt + self.mdev * 4).max(self.min_rto),
            },
        };
        (base * (1 << self.backoff)).min(MAX_RTO)
    }

    /// The timer expired: the next timeout is twice as long (RFC 6298, 5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(15);
    }

    /// The round-trip time was measured: the timeout is what the estimate says again (RFC 6298, 5.7).
    pub(crate) fn reset_backoff(&mut self) {
        self.backoff = 0;
    }

    /// The least round-trip time also counts samples that do not enter the average.
    #[inline]
    pub(crate) fn update_min(&mut self, rtt: Span) {
        self.latest = rtt;
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
    }

    /// A sample for the average. `una` and `next` are the first packet not acknowledged and the
    /// next packet to be sent; they tell where a round trip ends.
    #[inline]
    pub(crate) fn update(&mut self, rtt: Span, una: u32, next: u32) {
        let Some(srtt) = self.srtt else {
            self.srtt = Some(rtt);
            self.mdev = rtt / 2;
            self.rttvar = self.mdev;
            self.mdev_max = self.mdev;
            self.rtt_seq = next;
            return;
        };
        let (old, new) = (srtt.as_nanos(), rtt.as_nanos());
        self.srtt = Some(Span::from_nanos(old - old / 8 + new / 8));
        let error = Span::from_nanos(new.abs_diff(old));
        // A sample far below the average widens the deviation slowly: it is good news (Eifel).
        // The weight of a sample, 1/32 or 1/4, as a shift.
        let shift = if new < old && error > self.mdev { 5 } else { 2 };
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
            self.rtt_seq = next;
            self.mdev_max = self.min_rto / 4;
        }
    }
}

/// Microseconds of `now`, as a 32-bit timestamp option carries them.
#[inline]
pub(crate) fn timestamp(now: Time) -> u32 {
    (now.as_nanos() / 1_000) as u32
}

/// The round-trip time that an echoed timestamp tells: in Linux timestamps count milliseconds, and
/// none takes less than one (tcp_rtt_tsopt_us).
pub(crate) fn rtt_from_tsecr(now: Time, echo: u32) -> Span {
    let micros = now.as_nanos() / 1_000;
    let sent = micros.saturating_sub(u64::from(timestamp(now).wrapping_sub(echo)));
    Span::from_millis((micros / 1_000 - sent / 1_000).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimator() -> RttEstimator {
        RttEstimator::new(Span::from_millis(200), RtoRule::Linux)
    }

    #[test]
    fn before_any_sample_the_timeout_is_one_second() {
        assert_eq!(estimator().rto(), Span::from_secs(1));
    }

    #[test]
    fn the_first_sample_sets_srtt_to_r_and_the_deviation_to_half_of_it() {
        let mut rtt = estimator();
        rtt.update(Span::from_millis(100), 0, 10);
        assert_eq!(rtt.srtt(), Some(Span::from_millis(100)));
        assert_eq!(rtt.rto(), Span::from_millis(100 + 200));
    }

    #[test]
    fn by_rfc_6298_the_least_timeout_bounds_the_whole_of_it() {
        let mut rtt = RttEstimator::new(Span::from_secs(1), RtoRule::Rfc6298);
        rtt.update(Span::from_millis(100), 0, 10);
        assert_eq!(rtt.rto(), Span::from_secs(1));
        let mut rtt = RttEstimator::new(Span::from_secs(1), RtoRule::Rfc6298);
        rtt.update(Span::from_millis(600), 0, 10);
        assert_eq!(rtt.rto(), Span::from_millis(600 + 4 * 300));
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
