//! COBALT, the AQM of CAKE's queues: CoDel with another control law, and BLUE beside it (Linux's
//! net/sched/sch_cake.c).
//!
//! While the sojourn time of the packet at the head is above `target` (and the time of four packets), a
//! packet is marked or dropped at `drop_next`, first after an `interval`:
//!
//! ```text
//! count += 1;  drop_next += interval / sqrt(count)
//! ```
//!
//! The first time that a queue is above its target, that is the second such packet: the factor
//! `1 / sqrt(count)` of a new queue is 0 until `count` changes (cobalt_vars_init).
//!
//! Below the target `count` falls by one at each `drop_next`. BLUE drops at random with a probability
//! that rises by 1/256 when the queue overflows and falls by 1/4096 when it is found empty, each at most
//! once in a `target`; it ignores ECN. `target` is at least the time of 1.5 packets. `sqrt` is exact; Linux
//! approximates it in 32 bits.

use crate::aqm::CakeConfig;
use crate::aqm::codel::ETHERNET_HEADER;
use crate::rng::Rng;
use dumbbell_units::{Span, Time};

/// The maximum quantum (cake_set_rate).
const MAX_QUANTUM: u64 = 1514;
/// BLUE's steps (`p_inc`, `p_dec`).
const P_INC: f64 = 1.0 / 256.0;
const P_DEC: f64 = 1.0 / 4096.0;

/// The parameters at a link's rate (cake_set_rate).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parameters {
    pub(super) target: Span,
    interval: Span,
    /// Bytes of a full frame, and their transmission time.
    mtu: u64,
    mtu_time: Span,
    /// Bytes per queue and round: a 4096th of a second at the rate, within 300 and 1514.
    pub(super) quantum: i64,
}

impl Parameters {
    /// The parameters at `rate` bit/s, 0 for no limit, where a full packet has `mtu` bytes.
    pub(super) fn new(config: &CakeConfig, mtu: u32, rate: u64) -> Parameters {
        let mtu = u64::from(mtu + ETHERNET_HEADER);
        let mtu_time = Span::from_nanos((mtu * 8_000_000_000).checked_div(rate).unwrap_or(0));
        let target = config.target.max(mtu_time * 3 / 2);
        let raised = target.saturating_sub(config.target);
        Parameters {
            target,
            interval: (config.interval + raised).max(target * 2),
            mtu,
            mtu_time,
            quantum: (rate / 8 / 4096).clamp(300, MAX_QUANTUM) as i64,
        }
    }

    pub(super) fn transmission_time(&self, bytes: u32) -> Span {
        self.mtu_time * u64::from(bytes) / self.mtu
    }
}

/// COBALT's state of a queue (cobalt_vars).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cobalt {
    count: u32,
    /// `1 / sqrt(count)`, where a count of 0 is 1; 0 until the count changes.
    inv_sqrt: f64,
    dropping: bool,
    drop_next: Time,
    /// BLUE's probability, and when it last changed.
    pub(super) p_drop: f64,
    blue_timer: Time,
}

/// What happens to a packet at the head of its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Signal {
    /// COBALT's mark, or its drop if the packet cannot be marked.
    pub(super) congestion: bool,
    /// BLUE's drop.
    pub(super) blue: bool,
}

impl Cobalt {
    /// cobalt_control.
    fn control(&self, from: Time, interval: Span) -> Time {
        from + interval.mul_f64(self.inv_sqrt)
    }

    /// Changes the count, and `drop_next` by it.
    fn advance(&mut self, count: u32, interval: Span) {
        self.count = count;
        self.inv_sqrt = 1.0 / f64::from(count.max(1)).sqrt();
        self.drop_next = self.control(self.drop_next, interval);
    }

    /// cobalt_queue_full.
    pub(super) fn queue_full(&mut self, now: Time, target: Span) {
        if now.since(self.blue_timer) > target {
            self.p_drop = (self.p_drop + P_INC).min(1.0);
            self.blue_timer = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// cobalt_queue_empty.
    pub(super) fn queue_empty(&mut self, now: Time, parameters: &Parameters) {
        if self.p_drop > 0.0 && now.since(self.blue_timer) > parameters.target {
            self.p_drop = (self.p_drop - P_DEC).max(0.0);
            self.blue_timer = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.advance(self.count - 1, parameters.interval);
        }
    }

    /// Whether the state has come to rest.
    pub(super) fn is_at_rest(&self, now: Time) -> bool {
        self.p_drop == 0.0 && self.count == 0 && now >= self.drop_next
    }

    /// cobalt_should_drop for a packet that has waited for `sojourn`. `can_mark` is whether a mark would
    /// do instead of a drop.
    pub(super) fn signal(
        &mut self,
        now: Time,
        sojourn: Span,
        can_mark: bool,
        parameters: &Parameters,
        rng: &mut Rng,
    ) -> Signal {
        let over_target = sojourn > parameters.target && sojourn > parameters.mtu_time * 4;
        // Linux's `schedule > 0`: not updated when a flow goes over its target.
        let mut is_past_schedule = now > self.drop_next;
        let next_due = self.count > 0 && now >= self.drop_next;
        if over_target {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = self.control(now, parameters.interval);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        let congestion = next_due && self.dropping;
        if congestion {
            self.advance(self.count.saturating_add(1), parameters.interval);
            is_past_schedule = now > self.drop_next;
        } else if next_due {
            while self.count > 0 && now >= self.drop_next {
                self.advance(self.count - 1, parameters.interval);
            }
            is_past_schedule = now > self.drop_next;
        }
        let blue = self.p_drop > 0.0 && rng.uniform() < self.p_drop;
        let is_dropped = blue || (congestion && !can_mark);
        if self.count == 0 {
            self.drop_next = now + parameters.interval;
        } else if is_past_schedule && !is_dropped {
            self.drop_next = now;
        }
        Signal { congestion, blue }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    /// cobalt_should_drop with a delay above the target from 0 on, a packet a millisecond: signals at
    /// the second packet, then each `interval / sqrt(count)` later, count being 2, 3, 4...
    #[test]
    fn signals_follow_the_control_law_of_the_kernel_s_code() {
        let parameters = Parameters::new(&CakeConfig::default(), 1500, 100_000_000);
        let (mut cobalt, mut rng) = (Cobalt::default(), Rng::new(1, Stream::Aqm));
        let delay = Span::from_millis(20);
        let signals: Vec<u64> = (0..500)
            .filter(|&at| cobalt.signal(ms(at), delay, false, &parameters, &mut rng).congestion)
            .collect();
        let mut at = 0.0;
        let expected = (2..=9).map(|count| {
            let signal = at;
            at += 100.0 / f64::from(count).sqrt();
            signal
        });
        for (signal, expected) in signals.iter().zip(expected) {
            assert!((0.0..1.001).contains(&(*signal as f64 - expected)), "{signal} for {expected}");
        }
        assert!(signals.len() >= 7, "{signals:?}");
    }

    /// A queue that is above its target again: `schedule` is that of before it was, so that drop_next is
    /// now, not an interval later.
    #[test]
    fn a_flow_that_was_at_rest_has_a_signal_at_its_second_late_packet() {
        let parameters = Parameters::new(&CakeConfig::default(), 1500, 100_000_000);
        let (mut cobalt, mut rng) = (Cobalt::default(), Rng::new(1, Stream::Aqm));
        let late = Span::from_millis(20);
        let times = [0, 1, 300, 700, 701, 702];
        let delays = [late, late, Span::ZERO, late, late, late];
        let signals: Vec<bool> = times
            .iter()
            .zip(delays)
            .map(|(&at, delay)| {
                cobalt.signal(ms(at), delay, false, &parameters, &mut rng).congestion
            })
            .collect();
        assert_eq!(signals, [false, true, false, false, true, false]);
    }

    #[test]
    fn below_the_target_the_count_falls_at_each_drop_next() {
        let parameters = Parameters::new(&CakeConfig::default(), 1500, 100_000_000);
        let (mut cobalt, mut rng) = (Cobalt::default(), Rng::new(1, Stream::Aqm));
        for at in 0..400 {
            cobalt.signal(ms(at), Span::from_millis(20), false, &parameters, &mut rng);
        }
        let count = cobalt.count;
        for at in 400..2000 {
            let signal = cobalt.signal(ms(at), Span::ZERO, false, &parameters, &mut rng);
            assert!(!signal.congestion && !signal.blue);
        }
        assert!(count > 5 && cobalt.count == 0, "{count} to {}", cobalt.count);
    }

    /// cake_set_rate: at 1 Mbit/s a frame of 1514 bytes takes 12.112 ms, so the target is 18.168 ms, the
    /// interval 13.168 ms longer, and a 4096th of 125 kB/s is below the minimum of the quantum.
    #[test]
    fn slow_links_have_a_longer_target_and_a_smaller_quantum() {
        let slow = Parameters::new(&CakeConfig::default(), 1500, 1_000_000);
        assert_eq!(slow.target, Span::from_micros(18_168));
        assert_eq!((slow.interval, slow.quantum), (Span::from_micros(113_168), 300));
        let fast = Parameters::new(&CakeConfig::default(), 1500, 100_000_000);
        assert_eq!((fast.target, fast.interval), (Span::from_millis(5), Span::from_millis(100)));
        assert_eq!(fast.quantum, 1514);
    }
}
