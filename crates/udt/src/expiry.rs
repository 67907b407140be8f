//! The EXP timer: how long the peer may be silent.
//!
//! After N expiries in a row it is due N (RTT + 4 RTTVar) + SYN after the last packet or expiry, or
//! after data was sent when none was in flight, and not before N * 300 ms. The peer is taken for
//! dead after more than 16 expiries if the last interval was longer than 5 s. (libudt 4.11; the
//! draft's formula differs.) A connection may say that it waits less long.

use crate::config::SYN;
use crate::rtt::Rtt;
use dumbbell_units::{Span, Time};

const LEAST: Span = Span::from_millis(300);
const MOST_EXPIRIES: u32 = 16;
/// How often the answer of a peer that is taken for dead earlier must be overdue.
const OVERDUE_TIMES: u64 = 4;
const LONGEST_SILENCE: Span = Span::from_secs(5);

/// The EXP timer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expiry {
    /// When the peer was heard last, or when the timer expired last.
    since: Time,
    /// Expiries in a row, the coming one included.
    count: u32,
    /// When anything was heard from the peer.
    alive: Time,
    /// How long it may be silent, if less long than to UDT4.
    silence: Option<Span>,
}

/// What an expiry means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expired {
    /// The peer is silent.
    Silent,
    /// The peer is dead.
    Dead,
}

impl Expiry {
    pub(crate) fn new(now: Time, silence: Option<Span>) -> Expiry {
        Expiry { since: now, count: 1, alive: now, silence }
    }

    /// Something was heard from the peer, and of `news` to what was sent.
    #[inline]
    pub(crate) fn heard(&mut self, now: Time, news: bool) {
        self.alive = now;
        if news {
            (self.since, self.count) = (now, 1);
        }
    }

    /// Something is sent, and nothing waited for an answer before: the answer is not due at once.
    /// UDT4 does so when data is handed over and the send buffer is empty ("delay the EXP timer to
    /// avoid mis-fired timeout", CUDT::send), which is before it leaves.
    #[inline]
    pub(crate) fn restart(&mut self, now: Time) {
        self.since = now;
    }

    /// The timer is not due before this: the 300 ms alone.
    #[inline]
    pub(crate) fn earliest(&self) -> Time {
        self.since + LEAST
    }

    /// When the peer has been silent for too long, if less long than to UDT4.
    #[inline]
    fn dead_at(&self, rtt: &Rtt) -> Time {
        match self.silence {
            Some(silence) => self.alive + silence.max(rtt.overdue() * OVERDUE_TIMES),
            None => Time::MAX,
        }
    }

    /// When the timer is due.
    #[inline]
    pub(crate) fn due(&self, rtt: &Rtt) -> Time {
        let count = u64::from(self.count);
        let due = self.since + (rtt.overdue() * count + SYN).max(LEAST * count);
        due.min(self.dead_at(rtt))
    }

    /// Whether the timer is due, and what that means. The next interval begins.
    #[inline]
    pub(crate) fn poll(&mut self, now: Time, rtt: &Rtt) -> Option<Expired> {
        if now < self.earliest() || now < self.due(rtt) {
            return None;
        }
        let dead = match self.silence {
            Some(_) => now >= self.dead_at(rtt),
            None => self.count > MOST_EXPIRIES && now.since(self.since) > LONGEST_SILENCE,
        };
        (self.since, self.count) = (now, self.count + 1);
        Some(if dead { Expired::Dead } else { Expired::Silent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_is_due_after_the_round_trip_and_a_syn_but_not_before_300_ms() {
        let mut rtt = Rtt::INITIAL;
        assert_eq!(Expiry::new(Time::ZERO, None).due(&rtt), Time::ZERO + Span::from_millis(310));
        (0..100).for_each(|_| rtt.sample(Span::from_millis(10)));
        assert_eq!(Expiry::new(Time::ZERO, None).due(&rtt), Time::ZERO + Span::from_millis(300));
    }

    #[test]
    fn a_dead_peer_on_a_short_path_is_noticed_after_46_s_as_by_udt4() {
        let mut rtt = Rtt::INITIAL;
        (0..100).for_each(|_| rtt.sample(Span::from_millis(10)));
        let mut timer = Expiry::new(Time::ZERO, None);
        let mut expiries = 0;
        let dead_at = loop {
            let now = timer.due(&rtt);
            expiries += 1;
            if timer.poll(now, &rtt) == Some(Expired::Dead) {
                break now;
            }
        };
        assert_eq!((expiries, dead_at), (17, Time::ZERO + Span::from_millis(300 * 17 * 18 / 2)));
    }

    #[test]
    fn a_peer_that_only_says_that_it_is_alive_is_not_dead() {
        let rtt = Rtt::INITIAL;
        let mut timer = Expiry::new(Time::ZERO, Some(Span::from_secs(5)));
        for second in 1..100 {
            let now = Time::ZERO + Span::from_secs(second);
            timer.heard(now, false);
            assert_ne!(timer.poll(now, &rtt), Some(Expired::Dead));
        }
        assert_eq!(
            timer.poll(Time::ZERO + Span::from_secs(104), &rtt),
            Some(Expired::Dead),
            "5 s after it was heard last"
        );
    }

    #[test]
    fn on_a_long_path_silence_is_borne_until_the_answer_is_overdue_four_times() {
        let mut rtt = Rtt::INITIAL;
        (0..100).for_each(|_| rtt.sample(Span::from_secs(2)));
        let timer = Expiry::new(Time::ZERO, Some(Span::from_secs(5)));
        assert!(timer.dead_at(&rtt) >= Time::ZERO + Span::from_secs(8));
    }
}
