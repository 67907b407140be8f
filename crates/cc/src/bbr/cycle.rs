//! BBRv1's ProbeBW: eight phases, each with a pacing gain
//! (draft-cardwell-iccrg-bbr-congestion-control-00, section 4.3.4).
//!
//! 5/4 probes for more bandwidth, 3/4 drains the queue that this may have built, and six phases at 1
//! cruise. A phase lasts one `min_rtt`, with two exceptions: probing goes on until 5/4 BDP are in
//! flight, unless packets are lost; draining ends early when no more than the BDP is in flight.
//! A flow begins the cycle at a random phase other than draining, so that flows mix.

use dumbbell_units::{Span, Time};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::Rng;

/// The pacing gains of the eight phases.
pub const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

/// Where in the cycle of gains the flow is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GainCycle {
    phase: usize,
    since: Time,
}

/// What decides whether a phase is over.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// When packets were last delivered.
    pub delivered_at: Time,
    /// The length of a phase; `None` if not known yet.
    pub min_rtt: Option<Span>,
    /// Whether packets were just found lost.
    pub loss: bool,
    /// Packets in the network when the next one departs.
    pub in_network: f64,
    /// Packets in flight that probing aims at.
    pub probe_target: f64,
    /// Packets in flight that draining aims at.
    pub drain_target: f64,
}

impl GainCycle {
    /// Begins at a random phase.
    pub fn start(&mut self, random: &mut SplitMix64, now: Time) {
        let below_7 = (u64::from(random.next_u32()) * 7) >> 32;
        self.phase = 7 - below_7 as usize;
        self.advance(now);
    }

    /// Goes to the next phase.
    pub fn advance(&mut self, now: Time) {
        self.phase = (self.phase + 1) % GAINS.len();
        self.since = now;
    }

    /// The pacing gain of the phase.
    pub fn gain(&self) -> f64 {
        GAINS[self.phase]
    }

    /// Whether this is the phase that probes for bandwidth.
    pub fn is_probing(&self) -> bool {
        self.phase == 0
    }

    /// Whether the phase is over; `gain` is the pacing gain in force.
    pub fn is_over(&self, gain: f64, progress: &Progress) -> bool {
        let elapsed = progress.delivered_at.since(self.since);
        let full_length = progress.min_rtt.is_some_and(|rtt| elapsed > rtt);
        if gain > 1.0 {
            full_length && (progress.loss || progress.in_network >= progress.probe_target)
        } else if gain < 1.0 {
            full_length || progress.in_network <= progress.drain_target
        } else {
            full_length
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::SeedableRng;

    fn progress(ms: u64) -> Progress {
        Progress {
            delivered_at: Time::ZERO + Span::from_millis(ms),
            min_rtt: Some(Span::from_millis(10)),
            loss: false,
            in_network: 110.0,
            probe_target: 125.0,
            drain_target: 100.0,
        }
    }

    #[test]
    fn the_cycle_begins_at_every_phase_but_the_draining_one() {
        let mut random = SplitMix64::seed_from_u64(1);
        let mut seen = [0; 8];
        for _ in 0..700 {
            let mut cycle = GainCycle::default();
            cycle.start(&mut random, Time::ZERO);
            seen[cycle.phase] += 1;
        }
        assert_eq!(seen[1], 0);
        assert!((0..8).filter(|&phase| phase != 1).all(|phase| seen[phase] > 50), "{seen:?}");
    }

    #[test]
    fn a_cruising_phase_lasts_longer_than_one_min_rtt() {
        let cycle = GainCycle { phase: 2, since: Time::ZERO };
        assert!(!cycle.is_over(1.0, &progress(10)));
        assert!(cycle.is_over(1.0, &progress(11)));
    }

    #[test]
    fn probing_goes_on_until_its_target_is_in_flight_or_packets_are_lost() {
        let cycle = GainCycle { phase: 0, since: Time::ZERO };
        assert!(!cycle.is_over(1.25, &progress(11)));
        assert!(cycle.is_over(1.25, &Progress { in_network: 125.0, ..progress(11) }));
        assert!(cycle.is_over(1.25, &Progress { loss: true, ..progress(11) }));
        assert!(!cycle.is_over(1.25, &Progress { loss: true, ..progress(9) }));
    }

    #[test]
    fn draining_ends_early_when_the_bdp_is_in_flight() {
        let cycle = GainCycle { phase: 1, since: Time::ZERO };
        assert!(!cycle.is_over(0.75, &progress(1)));
        assert!(cycle.is_over(0.75, &Progress { in_network: 100.0, ..progress(1) }));
        assert!(cycle.is_over(0.75, &progress(11)));
    }

    #[test]
    fn the_gains_average_one() {
        assert_eq!(GAINS.iter().sum::<f64>(), 8.0);
    }
}
