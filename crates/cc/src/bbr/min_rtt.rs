//! `min_rtt`, and ProbeRTT, which drains the pipe to measure it.
//!
//! If for some time no round-trip time was below the minimum, the flow keeps next to nothing in flight
//! for 200 ms and a round. All flows of a bottleneck that do so together see the path without a queue.
//! BBRv1 does it every 10 s, the length of the filter of `min_rtt`, with 4 packets
//! (draft-cardwell-iccrg-bbr-congestion-control-00, section 4.3.5). BBRv2 and BBRv3 do it every 5 s, so
//! that `min_rtt` lives through two of them, with half a BDP (draft-ietf-ccwg-bbr-06, section 5.3.4).
//!
//! MarkConnectionAppLimited has a transport's part, which an algorithm cannot do here. Instead
//! [`MinRtt::is_app_limited`] counts as application-limited what is sent from the beginning of
//! ProbeRTT until all that was in flight at its end is delivered.
//!
//! All times here are those of the coarse clock (jiffies), as in Linux. There the 200 ms end with a
//! jiffy: they are up to a jiffy longer, and so a round longer where they are a whole number of
//! round-trip times.

use super::version::{MIN_RTT_FILTER_LEN, PROBE_RTT_DURATION};
use crate::filters::Rounds;
use crate::{Path, SendState, Sent};
use dumbbell_units::{Span, Time};

/// The filter of round-trip times, and the progress of ProbeRTT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MinRtt {
    probe_rtt_interval: Span,
    filter_len: Span,
    expires_on_exit: bool,
    /// Minimum round-trip time of the last `filter_len`.
    pub min_rtt: Option<Span>,
    min_rtt_stamp: Time,
    /// Minimum round-trip time of the last `probe_rtt_interval`.
    probe_rtt_min_delay: Option<Span>,
    probe_rtt_min_stamp: Time,
    /// Whether `probe_rtt_min_delay` is due for a refresh by ProbeRTT.
    pub probe_rtt_expired: bool,
    probe_rtt_done_stamp: Option<Time>,
    probe_rtt_round_done: bool,
    /// Values of `Path::delivered` between which packets are sent under ProbeRTT's limit.
    app_limited_range: Option<(u64, u64)>,
}

impl MinRtt {
    /// A filter without samples.
    pub fn new(probe_rtt_interval: Span, now: Time) -> MinRtt {
        MinRtt {
            probe_rtt_interval,
            filter_len: MIN_RTT_FILTER_LEN,
            expires_on_exit: false,
            min_rtt: None,
            min_rtt_stamp: now,
            probe_rtt_min_delay: None,
            probe_rtt_min_stamp: now,
            probe_rtt_expired: false,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            app_limited_range: None,
        }
    }

    /// The same with another length of the filter, and whether `min_rtt` expires only when ProbeRTT
    /// ends: if it expires when ProbeRTT is due, the flow enters ProbeRTT with the round-trip time of
    /// a full queue, and half a BDP of that is no drained pipe.
    #[must_use]
    pub fn with_filter(self, filter_len: Span, expires_on_exit: bool) -> MinRtt {
        MinRtt { filter_len, expires_on_exit, ..self }
    }

    /// UpdateMinRTT.
    pub fn update_min_rtt(&mut self, path: &Path, rtt: Option<Span>) {
        let now = path.jiffies_now();
        self.probe_rtt_expired = now > self.probe_rtt_min_stamp + self.probe_rtt_interval;
        if let Some(rtt) = rtt
            && (self.probe_rtt_min_delay.is_none_or(|min| rtt < min) || self.probe_rtt_expired)
        {
            self.probe_rtt_min_delay = Some(rtt);
            self.probe_rtt_min_stamp = now;
        }
        let is_lower = match (self.probe_rtt_min_delay, self.min_rtt) {
            (Some(delay), Some(min_rtt)) => delay <= min_rtt,
            (delay, _) => delay.is_some(),
        };
        if is_lower || (self.is_old(now) && !self.expires_on_exit) {
            self.min_rtt = self.probe_rtt_min_delay;
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
    }

    /// ProbeRTT begins.
    pub fn enter_probe_rtt(&mut self, path: &Path) {
        self.probe_rtt_done_stamp = None;
        self.probe_rtt_round_done = false;
        self.app_limited_range = Some((path.delivered, path.delivered));
    }

    /// HandleProbeRTT, on an acknowledgement in ProbeRTT. Returns whether ProbeRTT is done.
    pub fn handle_probe_rtt(&mut self, path: &Path, cwnd: f64, round: &mut Rounds) -> bool {
        if let Some((_, until)) = &mut self.app_limited_range {
            *until = path.delivered + u64::from(path.in_flight);
        }
        if self.probe_rtt_done_stamp.is_none() {
            if f64::from(path.in_flight) <= cwnd {
                self.probe_rtt_done_stamp = Some(path.jiffies_now() + PROBE_RTT_DURATION);
                self.probe_rtt_round_done = false;
                round.start_round(path.delivered);
            }
            return false;
        }
        self.probe_rtt_round_done |= round.round_start;
        self.probe_rtt_round_done && self.is_probe_rtt_done(path)
    }

    /// The condition of CheckProbeRTTDone: the 200 ms are over. A flow that was idle since need not
    /// wait for a round.
    pub fn is_probe_rtt_done(&self, path: &Path) -> bool {
        self.probe_rtt_done_stamp.is_some_and(|done| path.jiffies_now() > done)
    }

    /// ProbeRTT ends; the next one is due an interval from now.
    pub fn exit_probe_rtt(&mut self, path: &Path) {
        let now = path.jiffies_now();
        if self.expires_on_exit && self.is_old(now) {
            self.min_rtt = self.probe_rtt_min_delay;
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
        self.probe_rtt_min_stamp = now;
    }

    /// Whether `min_rtt` is older than the filter is long.
    fn is_old(&self, now: Time) -> bool {
        now > self.min_rtt_stamp + self.filter_len
    }

    /// Whether the application or ProbeRTT, not the path, limited the flow when a packet was sent.
    #[inline]
    pub fn is_app_limited(&self, sent: &SendState) -> bool {
        sent.app_limited || self.is_in_probe_rtt(sent.delivered)
    }

    /// Whether a packet begins anew after a pause under such a limit. Linux marks the application's when it
    /// writes to the socket (`tcp_rate_check_app_limited`). It writes to no subflow, where only ProbeRTT
    /// marks one.
    #[inline]
    pub fn restarts(&self, path: &Path, sent: &Sent) -> bool {
        let is_limited = match path.is_subflow {
            true => self.is_in_probe_rtt(path.delivered),
            false => sent.app_limited,
        };
        sent.from_idle && is_limited
    }

    fn is_in_probe_rtt(&self, delivered: u64) -> bool {
        let in_range = |(from, until): (u64, u64)| (from..=until).contains(&delivered);
        self.app_limited_range.is_some_and(in_range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    fn path_at(ms: u64) -> Path {
        Path::new(1448, at(ms))
    }

    fn ms(ms: u64) -> Option<Span> {
        Some(Span::from_millis(ms))
    }

    #[test]
    fn min_rtt_falls_at_once_and_rises_only_after_10_s() {
        let mut filter = MinRtt::new(MIN_RTT_FILTER_LEN, at(0));
        filter.update_min_rtt(&path_at(1000), ms(50));
        filter.update_min_rtt(&path_at(2000), ms(40));
        filter.update_min_rtt(&path_at(12_000), ms(60));
        assert_eq!(filter.min_rtt, ms(40));
        filter.update_min_rtt(&path_at(12_001), ms(60));
        assert!(filter.probe_rtt_expired);
        assert_eq!(filter.min_rtt, ms(60));
    }

    #[test]
    fn min_rtt_may_expire_at_the_end_of_probe_rtt_only() {
        let mut filter =
            MinRtt::new(MIN_RTT_FILTER_LEN, at(0)).with_filter(MIN_RTT_FILTER_LEN, true);
        filter.update_min_rtt(&path_at(1_000), ms(40));
        filter.update_min_rtt(&path_at(11_001), ms(60));
        assert!(filter.probe_rtt_expired);
        assert_eq!(filter.min_rtt, ms(40), "ProbeRTT begins with the old one");
        filter.update_min_rtt(&path_at(11_100), ms(45));
        filter.exit_probe_rtt(&path_at(11_300));
        assert_eq!(filter.min_rtt, ms(45));
    }

    #[test]
    fn only_a_lower_round_trip_time_puts_probe_rtt_off() {
        let mut filter = MinRtt::new(MIN_RTT_FILTER_LEN, at(0));
        filter.update_min_rtt(&path_at(1_000), ms(40));
        filter.update_min_rtt(&path_at(9_000), ms(40));
        filter.update_min_rtt(&path_at(11_001), ms(50));
        assert!(filter.probe_rtt_expired, "an equal one did not");
        let mut filter = MinRtt::new(MIN_RTT_FILTER_LEN, at(0));
        filter.update_min_rtt(&path_at(1_000), ms(40));
        filter.update_min_rtt(&path_at(9_000), ms(39));
        filter.update_min_rtt(&path_at(11_001), ms(50));
        assert!(!filter.probe_rtt_expired);
        filter.update_min_rtt(&path_at(19_001), ms(50));
        assert!(filter.probe_rtt_expired);
    }

    #[test]
    fn probe_rtt_lasts_200_ms_and_a_round_from_when_little_is_in_flight() {
        let mut probe = MinRtt::new(MIN_RTT_FILTER_LEN, at(0));
        let mut round = Rounds::default();
        let mut path = path_at(10_000);
        (path.delivered, path.in_flight) = (100, 50);
        probe.enter_probe_rtt(&path);
        assert!(!probe.handle_probe_rtt(&path, 4.0, &mut round), "too much in flight");
        (path.now, path.delivered, path.in_flight) = (at(10_100), 146, 4);
        assert!(!probe.handle_probe_rtt(&path, 4.0, &mut round), "the 200 ms begin");
        round.round_start = true;
        path.now = at(10_300);
        assert!(!probe.handle_probe_rtt(&path, 4.0, &mut round), "200 ms, not more");
        path.now = at(10_301);
        round.round_start = false;
        assert!(probe.handle_probe_rtt(&path, 4.0, &mut round));
    }

    #[test]
    fn by_a_coarse_clock_probe_rtt_lasts_until_the_tick_after_200_ms() {
        for began in [10_000, 10_003] {
            let mut path = Path { jiffy: Span::from_millis(4), in_flight: 4, ..path_at(began) };
            let mut probe = MinRtt::new(MIN_RTT_FILTER_LEN, path.now);
            probe.enter_probe_rtt(&path);
            assert!(!probe.handle_probe_rtt(&path, 4.0, &mut Rounds::default()));
            path.now = at(10_203);
            assert!(!probe.is_probe_rtt_done(&path));
            path.now = at(10_204);
            assert!(probe.is_probe_rtt_done(&path));
        }
    }

    fn is_limited(probe: &MinRtt, delivered: u64, app_limited: bool) -> bool {
        probe.is_app_limited(&SendState { delivered, app_limited, ..SendState::default() })
    }

    #[test]
    fn only_what_probe_rtt_sends_counts_as_app_limited() {
        let mut probe = MinRtt::new(MIN_RTT_FILTER_LEN, at(0));
        let mut path = path_at(10_000);
        (path.delivered, path.in_flight) = (100, 50);
        probe.enter_probe_rtt(&path);
        probe.handle_probe_rtt(&path, 4.0, &mut Rounds::default());
        assert!(!is_limited(&probe, 99, false));
        assert!(is_limited(&probe, 100, false));
        assert!(is_limited(&probe, 150, false));
        assert!(!is_limited(&probe, 151, false));
        assert!(is_limited(&probe, 151, true));
    }

    /// bbr_cwnd_event: tp->app_limited, which only ProbeRTT sets on a subflow.
    #[test]
    fn a_subflow_restarts_under_the_limit_of_probe_rtt_alone() {
        let mut probe = MinRtt::new(MIN_RTT_FILTER_LEN, at(0));
        let mut path = Path { delivered: 100, in_flight: 50, ..path_at(10_000) };
        let sent = Sent::new(0).with_from_idle(true).with_app_limited(true);
        assert!(probe.restarts(&path, &sent));
        path.is_subflow = true;
        assert!(!probe.restarts(&path, &sent));
        probe.enter_probe_rtt(&path);
        probe.handle_probe_rtt(&path, 4.0, &mut Rounds::default());
        (path.delivered, path.in_flight) = (150, 0);
        assert!(probe.restarts(&path, &sent));
        assert!(!probe.restarts(&path, &sent.with_from_idle(false)));
        path.delivered = 151;
        assert!(!probe.restarts(&path, &sent));
    }
}
