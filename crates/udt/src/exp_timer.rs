//! The EXP timer: retransmission and liveness when no packet arrives from the peer.
//!
//! The N-th expiry in a row comes max(N (RTT + 4 RTTVar) + SYN, N * 300 ms) after the last packet or
//! expiry, or after data was sent when none was in flight. The peer is dead after more than 16
//! expiries if the last interval exceeded 5 s. These rules are libudt 4.11's; the draft's formula
//! differs. An idle timeout replaces the rule for dead peers.

use crate::config::SYN;
use crate::rtt::RttEstimator;
use dumbbell_units::{Span, Time};

const MIN_INTERVAL: Span = Span::from_millis(300);
const MAX_EXPIRIES: u32 = 16;
/// Minimum idle timeout in units of RTT + 4 RTTVar.
const MIN_OVERDUE_RTOS: u64 = 4;
const MIN_BROKEN_INTERVAL: Span = Span::from_secs(5);

/// The EXP timer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpTimer {
    /// Start of the current interval: the last packet, expiry or restart.
    base: Time,
    /// N: expiries in a row, the next one included.
    count: u32,
    /// Time of the last packet from the peer.
    last_heard: Time,
    /// Replaces UDT4's rule for dead peers.
    idle_timeout: Option<Span>,
}

/// Result of an expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpEvent {
    /// The timer expired: retransmit or send a keep-alive.
    Expired,
    /// The peer is considered dead.
    PeerDead,
}

impl ExpTimer {
    pub(crate) fn new(now: Time, idle_timeout: Option<Span>) -> ExpTimer {
        ExpTimer { base: now, count: 1, last_heard: now, idle_timeout }
    }

    /// Records a packet from the peer. `restarts`: it also restarts the timer.
    #[inline]
    pub(crate) fn on_packet(&mut self, now: Time, news: bool) {
        self.last_heard = now;
        if news {
            (self.base, self.count) = (now, 1);
        }
    }

    /// Restarts the interval when data is sent and none was in flight. UDT4 restarts it earlier, when
    /// data enters an empty send buffer ("delay the EXP timer to avoid mis-fired timeout", CUDT::send).
    #[inline]
    pub(crate) fn restart(&mut self, now: Time) {
        self.base = now;
    }

    /// Lower bound of the deadline, without the RTT: 300 ms after the start of the interval.
    #[inline]
    pub(crate) fn earliest(&self) -> Time {
        self.base + MIN_INTERVAL
    }

    /// When the idle timeout expires; never without one.
    #[inline]
    fn dead_at(&self, rtt: &RttEstimator) -> Time {
        match self.idle_timeout {
            Some(idle_timeout) => self.last_heard + idle_timeout.max(rtt.rto() * MIN_OVERDUE_RTOS),
            None => Time::MAX,
        }
    }

    /// When the timer expires next.
    #[inline]
    pub(crate) fn deadline(&self, rtt: &RttEstimator) -> Time {
        let count = u64::from(self.count);
        let due = self.base + (rtt.rto() * count + SYN).max(MIN_INTERVAL * count);
        due.min(self.dead_at(rtt))
    }

    /// Handles an expiry, if the timer is due, and starts the next interval.
    #[inline]
    pub(crate) fn poll(&mut self, now: Time, rtt: &RttEstimator) -> Option<ExpEvent> {
        if now < self.earliest() || now < self.deadline(rtt) {
            return None;
        }
        let dead = match self.idle_timeout {
            Some(_) => now >= self.dead_at(rtt),
            None => self.count > MAX_EXPIRIES && now.since(self.base) > MIN_BROKEN_INTERVAL,
        };
        (self.base, self.count) = (now, self.count + 1);
        Some(if dead { ExpEvent::PeerDead } else { ExpEvent::Expired })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timer_expires_after_rtt_and_syn_but_not_before_300_ms() {
        let mut rtt = RttEstimator::INITIAL;
        assert_eq!(
            ExpTimer::new(Time::ZERO, None).deadline(&rtt),
            Time::ZERO + Span::from_millis(310)
        );
        (0..100).for_each(|_| rtt.update(Span::from_millis(10)));
        assert_eq!(
            ExpTimer::new(Time::ZERO, None).deadline(&rtt),
            Time::ZERO + Span::from_millis(300)
        );
    }

    #[test]
    fn a_dead_peer_on_a_short_path_is_detected_after_46_s_as_in_udt4() {
        let mut rtt = RttEstimator::INITIAL;
        (0..100).for_each(|_| rtt.update(Span::from_millis(10)));
        let mut timer = ExpTimer::new(Time::ZERO, None);
        let mut expiries = 0;
        let dead_at = loop {
            let now = timer.deadline(&rtt);
            expiries += 1;
            if timer.poll(now, &rtt) == Some(ExpEvent::PeerDead) {
                break now;
            }
        };
        assert_eq!((expiries, dead_at), (17, Time::ZERO + Span::from_millis(300 * 17 * 18 / 2)));
    }

    #[test]
    fn a_peer_that_only_sends_keep_alives_is_not_dead() {
        let rtt = RttEstimator::INITIAL;
        let mut timer = ExpTimer::new(Time::ZERO, Some(Span::from_secs(5)));
        for second in 1..100 {
            let now = Time::ZERO + Span::from_secs(second);
            timer.on_packet(now, false);
            assert_ne!(timer.poll(now, &rtt), Some(ExpEvent::PeerDead));
        }
        assert_eq!(
            timer.poll(Time::ZERO + Span::from_secs(104), &rtt),
            Some(ExpEvent::PeerDead),
            "5 s after it was heard last"
        );
    }

    #[test]
    fn on_a_long_path_the_idle_timeout_is_at_least_four_rto() {
        let mut rtt = RttEstimator::INITIAL;
        (0..100).for_each(|_| rtt.update(Span::from_secs(2)));
        let timer = ExpTimer::new(Time::ZERO, Some(Span::from_secs(5)));
        assert!(timer.dead_at(&rtt) >= Time::ZERO + Span::from_secs(8));
    }
}
