//! The EXP timer: how long the peer may be silent.
//!
//! After N expiries in a row it is due N (RTT + 4 RTTVar) + SYN after the last packet or expiry,
//! and not before N * 300 ms. The peer is taken for dead after more than 16 expiries if the last
//! interval was longer than 5 s. (libudt 4.11; the draft's formula differs.)

use crate::config::SYN;
use crate::rtt::Rtt;
use dumbbell_units::{Span, Time};

const LEAST: Span = Span::from_millis(300);
const MOST_EXPIRIES: u32 = 16;
const LONGEST_SILENCE: Span = Span::from_secs(5);

/// The EXP timer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expiry {
    /// When the peer was heard last, or when the timer expired last.
    since: Time,
    /// Expiries in a row, the coming one included.
    count: u32,
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
    pub(crate) fn new(now: Time) -> Expiry {
        Expiry { since: now, count: 1 }
    }

    /// Something was heard from the peer.
    #[inline]
    pub(crate) fn heard(&mut self, now: Time) {
        *self = Expiry { since: now, count: 1 };
    }

    /// The timer is not due before this: the 300 ms alone.
    #[inline]
    pub(crate) fn earliest(&self) -> Time {
        self.since + LEAST
    }

    /// When the timer is due.
    #[inline]
    pub(crate) fn due(&self, rtt: &Rtt) -> Time {
        let count = u64::from(self.count);
        self.since + (rtt.overdue() * count + SYN).max(LEAST * count)
    }

    /// Whether the timer is due, and what that means. The next interval begins.
    #[inline]
    pub(crate) fn poll(&mut self, now: Time, rtt: &Rtt) -> Option<Expired> {
        if now < self.earliest() || now < self.due(rtt) {
            return None;
        }
        let dead = self.count > MOST_EXPIRIES && now.since(self.since) > LONGEST_SILENCE;
        *self = Expiry { since: now, count: self.count + 1 };
        Some(if dead { Expired::Dead } else { Expired::Silent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_is_due_after_the_round_trip_and_a_syn_but_not_before_300_ms() {
        let mut rtt = Rtt::INITIAL;
        assert_eq!(Expiry::new(Time::ZERO).due(&rtt), Time::ZERO + Span::from_millis(310));
        (0..100).for_each(|_| rtt.sample(Span::from_millis(10)));
        assert_eq!(Expiry::new(Time::ZERO).due(&rtt), Time::ZERO + Span::from_millis(300));
    }

    #[test]
    fn a_dead_peer_on_a_short_path_is_noticed_after_46_s_as_by_udt4() {
        let mut rtt = Rtt::INITIAL;
        (0..100).for_each(|_| rtt.sample(Span::from_millis(10)));
        let mut timer = Expiry::new(Time::ZERO);
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
}
