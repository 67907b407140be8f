//! `min_rtt`, and ProbeRTT, which drains the pipe to see it.
//!
//! If for some time no round-trip time was as low as the least one, the flow keeps next to nothing
//! in flight for 200 ms and a round, so that all flows of a bottleneck that do so together see the
//! path without a queue. BBRv1 does it every 10 s, the life of `min_rtt`, with 4 packets
//! (draft-cardwell-iccrg-bbr-congestion-control-00, section 4.3.5); BBRv3 every 5 s, so that
//! `min_rtt` lives through two of them, with half a BDP (draft-ietf-ccwg-bbr-06, section 5.3.4).
//!
//! Linux also counts what is sent meanwhile as limited by the application. An algorithm cannot tell
//! its transport so, hence [`ProbeRtt::is_limited`]: the packets sent from the beginning of ProbeRTT
//! until what was in flight at its end was delivered.
//!
//! All times here are those of the coarse clock, as in Linux, where the 200 ms end with a tick: they
//! are up to a tick longer, and so a round longer where they are a whole number of round-trip times.

use super::version::{MIN_RTT_WINDOW, PROBE_RTT_DURATION, Params};
use crate::filters::Rounds;
use crate::{Path, RateSample};
use dumbbell_units::{Span, Time};

/// The filter of round-trip times, and how far ProbeRTT has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbeRtt {
    interval: Span,
    min_rtt: Option<Span>,
    min_rtt_at: Time,
    /// The least round-trip time of this interval.
    lowest: Option<Span>,
    lowest_at: Time,
    done_at: Option<Time>,
    round_done: bool,
    /// From and until how many packets delivered samples are limited by ProbeRTT.
    limited: Option<(u64, u64)>,
}

impl ProbeRtt {
    /// Knows no round-trip time yet.
    pub fn new(params: &Params, now: Time) -> ProbeRtt {
        ProbeRtt {
            interval: params.probe_rtt_interval,
            min_rtt: None,
            min_rtt_at: now,
            lowest: None,
            lowest_at: now,
            done_at: None,
            round_done: false,
            limited: None,
        }
    }

    /// The least round-trip time of the last 10 s.
    #[inline]
    pub fn min_rtt(&self) -> Option<Span> {
        self.min_rtt
    }

    /// Takes a round-trip time. Returns whether it is time for ProbeRTT.
    pub fn observe(&mut self, path: &Path, rtt: Option<Span>) -> bool {
        let now = path.jiffies_now();
        let expired = now > self.lowest_at + self.interval;
        if let Some(rtt) = rtt {
            // An equal one does not put ProbeRTT off, as in Linux since 5.10.
            if self.lowest.is_none_or(|lowest| rtt < lowest) || expired {
                self.lowest = Some(rtt);
                self.lowest_at = now;
            }
        }
        let lower = match (self.lowest, self.min_rtt) {
            (Some(lowest), Some(min_rtt)) => lowest <= min_rtt,
            (lowest, _) => lowest.is_some(),
        };
        if lower || now > self.min_rtt_at + MIN_RTT_WINDOW {
            self.min_rtt = self.lowest;
            self.min_rtt_at = self.lowest_at;
        }
        expired
    }

    /// ProbeRTT begins.
    pub fn enter(&mut self, path: &Path) {
        self.done_at = None;
        self.round_done = false;
        self.limited = Some((path.delivered, path.delivered));
    }

    /// Tells of an acknowledgement in ProbeRTT, in which `most` packets may be in flight.
    /// Returns whether ProbeRTT is over.
    pub fn hold(&mut self, path: &Path, most: f64, rounds: &mut Rounds) -> bool {
        if let Some((_, until)) = &mut self.limited {
            *until = path.delivered + u64::from(path.in_flight);
        }
        if self.done_at.is_none() {
            if f64::from(path.in_flight) <= most {
                self.done_at = Some(path.jiffies_now() + PROBE_RTT_DURATION);
                self.round_done = false;
                rounds.restart(path.delivered);
            }
            return false;
        }
        self.round_done |= rounds.just_began();
        self.round_done && self.is_time_over(path)
    }

    /// Whether the 200 ms are over. A flow that was idle since need not wait for a round.
    pub fn is_time_over(&self, path: &Path) -> bool {
        self.done_at.is_some_and(|done| path.jiffies_now() > done)
    }

    /// ProbeRTT ends; the next one is an interval away.
    pub fn exit(&mut self, path: &Path) {
        self.lowest_at = path.jiffies_now();
    }

    /// Whether a sample shows what ProbeRTT or the application allowed, not what the path can do.
    #[inline]
    pub fn is_limited(&self, delivered: u64, app_limited: bool) -> bool {
        app_limited || self.limited.is_some_and(|(from, until)| (from..=until).contains(&delivered))
    }

    /// [`is_limited`](Self::is_limited) of a rate sample.
    #[inline]
    pub fn limits(&self, rate: &RateSample) -> bool {
        self.is_limited(rate.send_state.delivered, rate.send_state.app_limited)
    }
}

#[cfg(test)]
mod tests {
    use super::super::version::V1;
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
        let mut filter = ProbeRtt::new(&V1, at(0));
        filter.observe(&path_at(1000), ms(50));
        filter.observe(&path_at(2000), ms(40));
        filter.observe(&path_at(12_000), ms(60));
        assert_eq!(filter.min_rtt(), ms(40));
        assert!(filter.observe(&path_at(12_001), ms(60)));
        assert_eq!(filter.min_rtt(), ms(60));
    }

    #[test]
    fn only_a_lower_round_trip_time_puts_probe_rtt_off() {
        let mut filter = ProbeRtt::new(&V1, at(0));
        filter.observe(&path_at(1_000), ms(40));
        filter.observe(&path_at(9_000), ms(40));
        assert!(filter.observe(&path_at(11_001), ms(50)), "an equal one did not");
        let mut filter = ProbeRtt::new(&V1, at(0));
        filter.observe(&path_at(1_000), ms(40));
        filter.observe(&path_at(9_000), ms(39));
        assert!(!filter.observe(&path_at(11_001), ms(50)));
        assert!(filter.observe(&path_at(19_001), ms(50)));
    }

    #[test]
    fn probe_rtt_lasts_200_ms_and_a_round_from_when_little_is_in_flight() {
        let mut probe = ProbeRtt::new(&V1, at(0));
        let mut rounds = Rounds::default();
        let mut path = path_at(10_000);
        (path.delivered, path.in_flight) = (100, 50);
        probe.enter(&path);
        assert!(!probe.hold(&path, 4.0, &mut rounds), "too much in flight");
        (path.now, path.delivered, path.in_flight) = (at(10_100), 146, 4);
        assert!(!probe.hold(&path, 4.0, &mut rounds), "the 200 ms begin");
        rounds.update(146, 150);
        path.now = at(10_300);
        assert!(!probe.hold(&path, 4.0, &mut rounds), "not a moment too early");
        path.now = at(10_301);
        rounds.no_sample();
        assert!(probe.hold(&path, 4.0, &mut rounds));
    }

    #[test]
    fn by_a_coarse_clock_probe_rtt_lasts_until_the_tick_after_200_ms() {
        for began in [10_000, 10_003] {
            let mut path = Path { jiffy: Span::from_millis(4), in_flight: 4, ..path_at(began) };
            let mut probe = ProbeRtt::new(&V1, path.now);
            probe.enter(&path);
            assert!(!probe.hold(&path, 4.0, &mut Rounds::default()));
            path.now = at(10_203);
            assert!(!probe.is_time_over(&path));
            path.now = at(10_204);
            assert!(probe.is_time_over(&path));
        }
    }

    #[test]
    fn what_probe_rtt_sends_is_limited_and_what_was_sent_before_and_after_is_not() {
        let mut probe = ProbeRtt::new(&V1, at(0));
        let mut path = path_at(10_000);
        (path.delivered, path.in_flight) = (100, 50);
        probe.enter(&path);
        probe.hold(&path, 4.0, &mut Rounds::default());
        assert!(!probe.is_limited(99, false));
        assert!(probe.is_limited(100, false));
        assert!(probe.is_limited(150, false));
        assert!(!probe.is_limited(151, false));
        assert!(probe.is_limited(151, true));
    }
}
