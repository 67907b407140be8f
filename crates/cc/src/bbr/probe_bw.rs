//! ProbeBW in four phases: when to probe, and how far (draft-ietf-ccwg-bbr-06, section 5.3.3).
//!
//! DOWN drains what probing queued, CRUISE holds, REFILL fills the pipe for a round, UP probes. The
//! next probe comes 2 to 3 s after DOWN began, or after as many rounds as Reno at this BDP would go
//! without a loss, at most 63. In UP `inflight_hi` grows by 1, 2, 4, ... packets a round while
//! it is what limits the flow. What a probe caused is seen a round later, which `feedback` tracks.

use super::version::Probing;
use dumbbell_units::{Span, Time};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::Rng;

/// What acknowledgements tell about the last probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Feedback {
    /// Nothing.
    #[default]
    None,
    /// The pipe is being filled.
    Refilling,
    /// The probe began, its packets are not yet acknowledged.
    Starting,
    /// Packets of the probe are acknowledged.
    Arriving,
    /// The probe is over, its last packets are being acknowledged.
    Stopping,
}

/// The clock and the memory of probing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbeBw {
    feedback: Feedback,
    began: Time,
    wait: Span,
    rounds: u64,
    /// Whether what is acknowledged was sent by a probe that has not yet been judged.
    pub judging: bool,
    /// Whether the last probe put too much in flight.
    pub went_too_high: bool,
    /// Whether the last probe stopped at `inflight_hi` because the one before went too high.
    pub stopped_early: bool,
    growth: Growth,
}

/// The growth of `inflight_hi` while probing.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Growth {
    round: u32,
    acked: f64,
    /// Packets acknowledged for each packet of growth.
    per_packet: f64,
}

impl ProbeBw {
    /// No probe yet.
    pub fn new(now: Time) -> ProbeBw {
        ProbeBw {
            feedback: Feedback::None,
            began: now,
            wait: Span::ZERO,
            rounds: 0,
            judging: false,
            went_too_high: false,
            stopped_early: false,
            growth: Growth { round: 0, acked: 0.0, per_packet: f64::INFINITY },
        }
    }

    /// A round began.
    #[inline]
    pub fn count_round(&mut self) {
        self.rounds += 1;
    }

    /// DOWN begins, and the wait for the next probe, drawn at random so that flows mix.
    pub fn begin_down(&mut self, probing: &Probing, random: &mut SplitMix64, now: Time) {
        self.growth.per_packet = f64::INFINITY;
        self.rounds = u64::from(random.next_u32() >> 31);
        let share = f64::from(random.next_u32()) / 4_294_967_296.0;
        self.wait = probing.wait + probing.random_wait.mul_f64(share);
        self.began = now;
        self.feedback = Feedback::Stopping;
    }

    /// REFILL begins; UP will begin by growing by `2^round` packets a round.
    pub fn begin_refill(&mut self, round: u32) {
        self.growth.round = round;
        self.growth.acked = 0.0;
        self.stopped_early = false;
        self.feedback = Feedback::Refilling;
    }

    /// UP begins.
    pub fn begin_up(&mut self, cwnd: f64, now: Time) {
        self.began = now;
        self.judging = true;
        self.feedback = Feedback::Starting;
        self.steepen(cwnd);
    }

    /// ProbeRTT begins: no more feedback than that of a probe that is over.
    pub fn interrupt(&mut self) {
        self.feedback = Feedback::Stopping;
    }

    /// Tells of an acknowledgement. Returns whether with it the feedback of a probe is complete.
    pub fn follow(&mut self, round_start: bool) -> bool {
        match self.feedback {
            Feedback::Starting if round_start => self.feedback = Feedback::Arriving,
            Feedback::Stopping if round_start => {
                self.judging = false;
                self.feedback = Feedback::None;
                return true;
            }
            _ => {}
        }
        false
    }

    /// Whether the phase, UP or DOWN, has lasted for longer than `span`.
    pub fn has_lasted(&self, now: Time, span: Span) -> bool {
        now > self.began + span
    }

    /// Whether it is time for the next probe, with `target` packets to be in flight.
    pub fn is_due(&self, probing: &Probing, now: Time, target: f64) -> bool {
        self.has_lasted(now, self.wait) || self.rounds as f64 >= target.min(probing.most_rounds)
    }

    fn steepen(&mut self, cwnd: f64) {
        let growth = f64::from(1_u32 << self.growth.round);
        self.growth.round = (self.growth.round + 1).min(30);
        self.growth.per_packet = libm::floor(cwnd / growth).max(1.0);
    }

    /// Packets by which `inflight_hi` grows when `acked` are acknowledged with `cwnd` full.
    pub fn grow(&mut self, acked: u32, cwnd: f64, round_start: bool) -> f64 {
        self.growth.acked += f64::from(acked);
        let packets = libm::floor(self.growth.acked / self.growth.per_packet);
        if packets > 0.0 {
            self.growth.acked -= packets * self.growth.per_packet;
        }
        if round_start {
            self.steepen(cwnd);
        }
        packets
    }
}

#[cfg(test)]
mod tests {
    use super::super::version::V3;
    use super::*;
    use rand_xoshiro::rand_core::SeedableRng;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn probes_are_2_to_3_s_apart_at_random() {
        let mut random = SplitMix64::seed_from_u64(1);
        let mut waits = Vec::new();
        for _ in 0..1000 {
            let mut probe = ProbeBw::new(at(0));
            probe.begin_down(&V3.probing, &mut random, at(0));
            assert!(!probe.is_due(&V3.probing, at(2000), 1e9));
            assert!(probe.is_due(&V3.probing, at(3001), 1e9));
            waits.push(probe.wait.as_secs_f64());
        }
        let mean = waits.iter().sum::<f64>() / 1000.0;
        assert!((mean - 2.5).abs() < 0.05, "{mean}");
    }

    #[test]
    fn a_small_flow_probes_after_as_many_rounds_as_reno_and_a_large_one_after_62_or_63() {
        let mut random = SplitMix64::seed_from_u64(1);
        for (target, rounds) in [(20.0, 20), (1000.0, 63)] {
            let mut probe = ProbeBw::new(at(0));
            probe.begin_down(&V3.probing, &mut random, at(0));
            let mut waited = 0;
            while !probe.is_due(&V3.probing, at(1), target) {
                probe.count_round();
                waited += 1;
            }
            assert!(waited == rounds || waited == rounds - 1, "{waited}");
        }
    }

    #[test]
    fn the_bound_grows_by_1_2_4_8_packets_a_round() {
        let mut probe = ProbeBw::new(at(0));
        probe.begin_refill(0);
        probe.begin_up(64.0, at(0));
        let grown: Vec<f64> =
            (0..4).map(|_| (0..64).map(|i| probe.grow(1, 64.0, i == 63)).sum()).collect();
        assert_eq!(grown, [1.0, 2.0, 4.0, 8.0]);
    }

    #[test]
    fn feedback_is_complete_a_round_after_the_probe() {
        let mut random = SplitMix64::seed_from_u64(1);
        let mut probe = ProbeBw::new(at(0));
        probe.begin_refill(0);
        probe.begin_up(10.0, at(0));
        assert!(!probe.follow(true));
        assert_eq!(probe.feedback, Feedback::Arriving);
        probe.begin_down(&V3.probing, &mut random, at(0));
        assert!(!probe.follow(false));
        assert!(probe.judging);
        assert!(probe.follow(true));
        assert!(!probe.judging);
    }
}
