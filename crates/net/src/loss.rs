//! Losses that are not caused by full queues.
//!
//! Uniform loss: every packet is lost with probability `p`, independently of all others.
//!
//! Gilbert-Elliott (E. N. Gilbert, "Capacity of a burst-noise channel", BSTJ 39, 1960; E. O.
//! Elliott, BSTJ 42, 1963): a channel with a good and a bad state. A packet is lost with
//! probability `good` in the good state and `bad` in the bad state. After each packet a good
//! channel becomes bad with probability `p`, and a bad one good with probability `r`. In the long
//! run a share of `p / (p + r)` of the packets meets the bad state, which lasts `1 / r` packets on
//! average. The channel starts in the good state.
//!
//! Periodic loss: every n-th packet is lost, as response functions assume. The first loss is after
//! n/2 to n packets, depending on the seed.
//!
//! Loss steps: independent losses whose probability changes at given times, as on paths of satellites.
//!
//! All models count the packets until the next event. A packet that passes costs one comparison;
//! only losses and state transitions draw random numbers.

use crate::rng::{Rng, Stream};
use dumbbell_units::Time;

/// Losses other than independent ones of one probability.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
pub enum LossModel {
    /// Losses in bursts.
    GilbertElliott(GilbertElliott),
    /// One loss every this many packets, at least 1.
    Periodic(u64),
}

/// The probabilities of a Gilbert-Elliott channel.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct GilbertElliott {
    /// Probability per packet of a transition from good to bad.
    pub p: f64,
    /// Probability per packet of a transition from bad to good.
    pub r: f64,
    /// Loss probability in the bad state.
    pub bad: f64,
    /// Loss probability in the good state.
    pub good: f64,
}

impl GilbertElliott {
    /// The loss rate in the long run.
    pub fn mean(&self) -> f64 {
        if self.p == 0.0 {
            return self.good;
        }
        (self.r * self.good + self.p * self.bad) / (self.p + self.r)
    }
}

/// A loss process: decides for each packet whether it is lost.
#[derive(Clone, Debug)]
pub struct LossProcess {
    /// Packets that pass before the next loss or state transition.
    until_event: u64,
    process: Process,
    rng: Rng,
}

#[derive(Clone, Debug)]
enum Process {
    Uniform(f64),
    Periodic(u64),
    Channel(Channel),
}

/// A Gilbert-Elliott channel and its next events.
#[derive(Clone, Debug)]
struct Channel {
    parameters: GilbertElliott,
    is_bad: bool,
    /// Packets before the next loss if the state stays.
    until_loss: u64,
    /// Packets before the one after which the state changes.
    until_transition: u64,
}

impl LossProcess {
    /// Independent losses of the given probability.
    ///
    /// # Panics
    /// If the probability is not within [0, 1).
    pub fn uniform(probability: f64, seed: u64) -> LossProcess {
        assert!((0.0..1.0).contains(&probability), "a loss probability lies within [0, 1)");
        let mut rng = Rng::new(seed, Stream::Loss);
        LossProcess {
            until_event: rng.geometric(probability),
            process: Process::Uniform(probability),
            rng,
        }
    }

    /// The losses of a model.
    ///
    /// # Panics
    /// If a probability is out of range, or a period is 0.
    pub fn new(model: LossModel, seed: u64) -> LossProcess {
        match model {
            LossModel::GilbertElliott(parameters) => LossProcess::gilbert_elliott(parameters, seed),
            LossModel::Periodic(every) => LossProcess::periodic(every, seed),
        }
    }

    /// One loss every `every` packets.
    ///
    /// # Panics
    /// If `every` is 0.
    pub fn periodic(every: u64, seed: u64) -> LossProcess {
        assert!(every > 0, "a period is at least one packet");
        let mut rng = Rng::new(seed, Stream::Loss);
        let first = every / 2 + (rng.uniform() * (every - every / 2) as f64) as u64;
        LossProcess { until_event: first, process: Process::Periodic(every), rng }
    }

    /// The losses of a Gilbert-Elliott channel.
    ///
    /// # Panics
    /// If a probability is not within [0, 1].
    pub fn gilbert_elliott(parameters: GilbertElliott, seed: u64) -> LossProcess {
        for p in [parameters.p, parameters.r, parameters.bad, parameters.good] {
            assert!((0.0..=1.0).contains(&p), "the channel's probabilities lie within [0, 1]");
        }
        let mut rng = Rng::new(seed, Stream::Loss);
        let mut channel = Channel { parameters, is_bad: true, until_loss: 0, until_transition: 0 };
        channel.transition(&mut rng);
        LossProcess { until_event: channel.until_event(), process: Process::Channel(channel), rng }
    }

    /// Whether the next packet is lost.
    #[inline]
    pub fn drops_next(&mut self) -> bool {
        if self.until_event > 0 {
            // Without losses the counter starts at 2^64 - 1, which no run reaches.
            self.until_event -= 1;
            return false;
        }
        self.decide()
    }

    #[cold]
    fn decide(&mut self) -> bool {
        match &mut self.process {
            Process::Uniform(p) => {
                self.until_event = self.rng.geometric(*p);
                true
            }
            Process::Periodic(every) => {
                self.until_event = *every - 1;
                true
            }
            Process::Channel(channel) => {
                let is_lost = channel.decide(&mut self.rng);
                self.until_event = channel.until_event();
                is_lost
            }
        }
    }
}

impl Channel {
    fn until_event(&self) -> u64 {
        self.until_loss.min(self.until_transition)
    }

    /// Processes the next event: whether its packet is lost, and when the following event is.
    fn decide(&mut self, rng: &mut Rng) -> bool {
        let until_event = self.until_event();
        let is_lost = self.until_loss == until_event;
        if self.until_transition == until_event {
            self.transition(rng);
            return is_lost;
        }
        self.until_transition -= until_event + 1;
        self.until_loss =
            rng.geometric(if self.is_bad { self.parameters.bad } else { self.parameters.good });
        is_lost
    }

    /// Changes the state and draws its next events.
    fn transition(&mut self, rng: &mut Rng) {
        self.is_bad = !self.is_bad;
        let GilbertElliott { p, r, bad, good } = self.parameters;
        let (loss, leave) = if self.is_bad { (bad, r) } else { (good, p) };
        self.until_loss = rng.geometric(loss);
        self.until_transition = rng.geometric(leave);
    }
}

/// Independent losses whose probability changes.
#[derive(Clone, Debug)]
pub(crate) struct LossSteps {
    /// The coming steps, latest first: (start, probability).
    steps: Vec<(Time, f64)>,
    probability: f64,
    /// Packets that pass before the next loss.
    until_loss: u64,
    rng: Rng,
}

impl LossSteps {
    /// # Panics
    /// If the times do not increase or a probability is not within [0, 1].
    pub(crate) fn new(mut steps: Vec<(Time, f64)>, seed: u64) -> LossSteps {
        assert!(steps.is_sorted_by(|a, b| a.0 < b.0), "the times of loss steps increase");
        let are_probabilities = steps.iter().all(|step| (0.0..=1.0).contains(&step.1));
        assert!(are_probabilities, "a loss probability lies within [0, 1]");
        steps.reverse();
        let rng = Rng::new(seed, Stream::Loss);
        LossSteps { steps, probability: 0.0, until_loss: u64::MAX, rng }
    }

    /// Whether a packet that arrives at `now` is lost; `now` never decreases.
    pub(crate) fn drops(&mut self, now: Time) -> bool {
        while let Some((_, probability)) = self.steps.pop_if(|next| next.0 <= now) {
            self.probability = probability;
            self.until_loss = self.rng.geometric(probability);
        }
        let is_lost = self.until_loss == 0;
        self.until_loss =
            if is_lost { self.rng.geometric(self.probability) } else { self.until_loss - 1 };
        is_lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets between losses, over `packets` packets.
    fn gaps(mut loss: LossProcess, packets: u64) -> Vec<u64> {
        let mut gaps = vec![0];
        for _ in 0..packets {
            if loss.drops_next() {
                gaps.push(0);
            } else if let Some(last) = gaps.last_mut() {
                *last += 1;
            }
        }
        gaps
    }

    #[test]
    fn periodic_losses_come_after_as_many_packets_each_time() {
        for every in [1, 2, 7, 1000] {
            let gaps = gaps(LossProcess::periodic(every, 3), 10_000);
            assert!(gaps[0] < every, "the first within a period: {}", gaps[0]);
            let between = &gaps[1..gaps.len() - 1];
            assert!(
                !between.is_empty() && between.iter().all(|&until_event| until_event == every - 1)
            );
        }
    }

    #[test]
    fn the_loss_rate_is_the_configured_probability() {
        for (seed, probability) in [(1, 0.5), (2, 0.1), (3, 0.01), (4, 1e-4)] {
            let packets = 4_000_000;
            let losses = gaps(LossProcess::uniform(probability, seed), packets).len() as f64 - 1.0;
            let expected = packets as f64 * probability;
            let deviation = (expected * (1.0 - probability)).sqrt();
            assert!((losses - expected).abs() < 4.0 * deviation, "{losses} for {expected}");
        }
    }

    #[test]
    fn a_loss_says_nothing_about_the_next_one() {
        // Independence: after a loss the next packet is lost with the same probability.
        let gaps = gaps(LossProcess::uniform(0.2, 5), 1_000_000);
        let losses = gaps.len() as f64;
        let in_a_row = gaps.iter().filter(|&&until_event| until_event == 0).count() as f64;
        assert!((in_a_row / losses - 0.2).abs() < 0.005, "{in_a_row} of {losses}");
    }

    #[test]
    fn nothing_is_lost_at_probability_zero() {
        assert_eq!(gaps(LossProcess::uniform(0.0, 1), 1_000_000), [1_000_000]);
    }

    #[test]
    fn the_seed_alone_decides_which_packets_are_lost() {
        let bursts = GilbertElliott { p: 0.01, r: 0.3, bad: 0.8, good: 0.001 };
        for loss in [
            |seed| LossProcess::uniform(0.01, seed),
            |seed| {
                LossProcess::gilbert_elliott(
                    GilbertElliott { p: 0.01, r: 0.3, bad: 0.8, good: 0.001 },
                    seed,
                )
            },
        ] {
            assert_eq!(gaps(loss(9), 100_000), gaps(loss(9), 100_000));
            assert_ne!(gaps(loss(9), 100_000), gaps(loss(10), 100_000));
        }
        assert!((bursts.mean() - (0.3 * 0.001 + 0.01 * 0.8) / 0.31).abs() < 1e-15);
    }

    #[test]
    #[should_panic(expected = "within [0, 1)")]
    fn a_probability_that_is_not_a_number_is_refused() {
        LossProcess::uniform(f64::NAN, 1);
    }

    #[test]
    fn a_channels_loss_rate_is_that_of_its_stationary_state() {
        for (seed, channel) in [
            (1, GilbertElliott { p: 0.01, r: 0.25, bad: 1.0, good: 0.0 }),
            (2, GilbertElliott { p: 0.002, r: 0.05, bad: 0.5, good: 0.001 }),
            (3, GilbertElliott { p: 0.5, r: 0.5, bad: 0.2, good: 0.1 }),
        ] {
            let packets = 4_000_000;
            let losses =
                gaps(LossProcess::gilbert_elliott(channel, seed), packets).len() as f64 - 1.0;
            let share = losses / packets as f64;
            assert!((share / channel.mean() - 1.0).abs() < 0.02, "{share} for {channel:?}");
        }
    }

    #[test]
    fn a_bad_channel_that_loses_all_gives_bursts_of_mean_length_one_over_r() {
        // P(burst = n) = (1-r)^(n-1) r. The packets between two bursts are geometric with p.
        let channel = GilbertElliott { p: 0.02, r: 0.2, bad: 1.0, good: 0.0 };
        let gaps = gaps(LossProcess::gilbert_elliott(channel, 4), 4_000_000);
        let between: Vec<u64> =
            gaps[1..gaps.len() - 1].iter().copied().filter(|&g| g > 0).collect();
        let burst = (gaps.len() - 1) as f64 / (between.len() + 1) as f64;
        let good = between.iter().sum::<u64>() as f64 / between.len() as f64;
        assert!((burst - 5.0).abs() < 0.1, "{burst}");
        assert!((good - 50.0).abs() < 1.0, "{good}");
    }

    #[test]
    fn equal_states_are_a_uniform_loss() {
        let channel = GilbertElliott { p: 0.3, r: 0.1, bad: 0.2, good: 0.2 };
        let gaps = gaps(LossProcess::gilbert_elliott(channel, 5), 1_000_000);
        let losses = gaps.len() as f64;
        let in_a_row = gaps.iter().filter(|&&until_event| until_event == 0).count() as f64;
        assert!((losses / 1e6 - 0.2).abs() < 0.002, "{losses}");
        assert!((in_a_row / losses - 0.2).abs() < 0.005, "{in_a_row} of {losses}");
    }

    #[test]
    fn a_channel_may_lose_nothing_or_everything_or_stay_as_it_is() {
        let channel = |p, r, bad, good| {
            gaps(LossProcess::gilbert_elliott(GilbertElliott { p, r, bad, good }, 6), 1000)
        };
        assert_eq!(channel(0.5, 0.5, 0.0, 0.0), [1000], "nothing is lost in either state");
        assert_eq!(channel(0.0, 0.5, 1.0, 0.0), [1000], "the channel stays good");
        assert_eq!(channel(0.5, 0.5, 1.0, 1.0).len(), 1001, "every packet is lost");
        let alternate = channel(1.0, 1.0, 1.0, 0.0);
        assert!(
            alternate[..500].iter().all(|&until_event| until_event == 1),
            "every second packet is lost"
        );
        let black_hole = channel(0.5, 0.0, 1.0, 0.0);
        assert!(
            black_hole[1..].iter().all(|&until_event| until_event == 0),
            "what is bad stays bad"
        );
    }
}
