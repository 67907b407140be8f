//! PCC Vivace (Dong, Meng, Zarchy, Arslan, Gilad, Godfrey and Schapira, "PCC Vivace:
//! Online-Learning Congestion Control", NSDI 2018).
//!
//! The sender tries rates and keeps to what is useful. Time is divided into *monitor intervals* of
//! a round-trip time. Of each the utility is, with the sending rate `x` in Mbit/s, the share `L` of
//! its packets that was lost and the slope of their round-trip times (equation 2):
//!
//! ```text
//! u = x^t - b x dRTT/dT - c x L           t = 0.9, b = 900, c = 11.35
//! ```
//!
//! Slopes below 0.01 are noise and count as 0. The rate doubles from interval to interval until the
//! utility falls. Then two intervals try `r (1 + epsilon)` and `r (1 - epsilon)`, in random order,
//! and the rate follows the gradient of the utility (section 4):
//!
//! ```text
//! gamma = (u(r (1 + epsilon)) - u(r (1 - epsilon))) / (2 epsilon r)      epsilon = 0.05
//! step  = m(tau) theta_0 gamma                                           theta_0 = 1
//! ```
//!
//! The *confidence amplifier* `m(tau)` of the `tau`-th step in one direction is `tau` up to 3, then
//! `2 tau - 3`. The *dynamic change boundary* limits a step to `omega r`, where `omega` is 0.05 at
//! first and 0.1 more after each step that reached it; it becomes smaller again with steps that do not
//! need it, and is 0.05 after a turn.
//!
//! Without noise, with random losses of probability `p`, the gradient is 0 at `x = (t / (c p))^(1 / (1 - t))`: `c`
//! is chosen so that 100 Mbit/s bear 5 %. Here noise keeps the rate above that: with 6, 7 and 8 % of
//! losses 46, 15 and 27 Mbit/s on a link of 100 Mbit/s, where the equation has 16, 3.5 and 0.9. On a
//! link of 20 Mbit/s, 40 ms, 1 % of losses leave 69 % of it: an interval has few packets.
//!
//! The equations and constants were written from knowledge of the paper; its text was not at hand.
//!
//! | | paper | authors' code (PCC-Uspace) | here |
//! |---|---|---|---|
//! | a step needs | two intervals | two pairs that agree, then one | paper |
//! | loss term | `c x L` | `1e6 L` | paper |
//! | start | doubles with each interval's result | doubles each interval | doubles each interval |
//! | "double check" of surprising results | yes | no | no |
//! | window | none | none | three times what the rate sends in a round-trip time |
//! | timeout | unspecified | none | half the rate, and two new intervals |
//!
//! Intervals that the application limited are not judged.

use crate::proteus::Proteus;
use crate::{
    Ack, ConfigError, CongestionControl, CongestionEvent, ConnectionConfig, ControlParameters,
    Metric, Options, Path, Sent, Signal,
};
use alloc::collections::VecDeque;
use dumbbell_units::{Rate, Span, Time};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// `t` of the utility.
const EXPONENT: f64 = 0.9;
/// `b`: the weight of the slope of the round-trip time.
const RTT_COEFFICIENT: f64 = 900.0;
/// `c`: the weight of losses.
const LOSS_COEFFICIENT: f64 = 11.35;
/// Slopes of the round-trip time below this are noise.
const NOISE: f64 = 0.01;
/// `epsilon`: how far tried rates are from the present one, as a part of it.
pub(crate) const PROBING_STEP: f64 = 0.05;
/// `theta_0`: Mbit/s per unit of the gradient.
const CONVERSION: f64 = 1.0;
/// `omega` at first, and its increment.
const CHANGE_BOUNDARY: f64 = 0.05;
const BOUNDARY_INCREMENT: f64 = 0.1;
/// The fewest packets of an interval.
const FEWEST_PACKETS: u32 = 10;
/// The smallest rate, packets a round-trip time.
const SMALLEST: f64 = 1.0;
/// The window, in packets that the rate sends in a round-trip time.
const WINDOW: f64 = 3.0;
/// The smallest window, packets of the first size.
const MIN_WINDOW: f64 = 4.0;
/// Before the first sample of the round-trip time.
const INITIAL_RTT: Span = Span::from_millis(100);

/// What an interval is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Start,
    /// The higher or the lower rate of a pair of the round with this number.
    Probe {
        round: u32,
        pair: usize,
        higher: bool,
    },
    /// The rate between two rounds.
    Wait,
}

/// A monitor interval, from its first packet to the last acknowledgement of its packets.
#[derive(Clone, Copy, Debug)]
struct Interval {
    purpose: Purpose,
    /// Mbit/s.
    rate: f64,
    began: Time,
    packets: u32,
    app_limited: bool,
    /// Packets delivered and lost before those of this interval.
    before: Option<(u64, u64)>,
    slope: Slope,
}

/// The slope of a line through points, by least squares.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slope {
    count: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Slope {
    pub(crate) fn add(&mut self, x: f64, y: f64) {
        self.count += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
        self.yy += y * y;
    }

    pub(crate) fn count(&self) -> f64 {
        self.count
    }

    /// Mean of `y`.
    pub(crate) fn mean(&self) -> f64 {
        self.y / self.count
    }

    /// Standard deviation of `y`.
    pub(crate) fn deviation(&self) -> f64 {
        libm::sqrt((self.yy / self.count - self.mean() * self.mean()).max(0.0))
    }

    /// Root mean square of the distances in `y` from the line.
    pub(crate) fn error(&self) -> f64 {
        let spread = self.xx / self.count - (self.x / self.count) * (self.x / self.count);
        let explained = self.get() * self.get() * spread;
        libm::sqrt((self.deviation() * self.deviation() - explained).max(0.0))
    }

    /// 0 for fewer than two different `x`.
    pub(crate) fn get(&self) -> f64 {
        let spread = self.count * self.xx - self.x * self.x;
        if spread > 0.0 { (self.count * self.xy - self.x * self.y) / spread } else { 0.0 }
    }
}

/// Equation 2: the utility of a rate in Mbit/s.
pub(crate) fn utility(rate: f64, rtt_slope: f64, loss: f64) -> f64 {
    let slope = if rtt_slope.abs() < NOISE { 0.0 } else { rtt_slope };
    libm::pow(rate, EXPONENT) - RTT_COEFFICIENT * rate * slope - LOSS_COEFFICIENT * rate * loss
}

/// Most pairs in a round.
const MAX_PAIRS: usize = 3;

/// The state of the search.
#[derive(Clone, Copy, Debug)]
enum Search {
    /// Doubling; the rate and the utility of the last interval that was judged.
    Start(Option<(f64, f64)>),
    /// A round of pairs: the utilities of the higher and of the lower rate of each. The order in pair
    /// `n` is that of the bit `n`: the lower one first if it is set.
    Pairs { tried: usize, order: u64, found: [[Option<f64>; 2]; MAX_PAIRS] },
}

/// PCC Vivace.
#[derive(Clone, Debug)]
pub struct Vivace {
    /// `r`, Mbit/s.
    rate: f64,
    search: Search,
    /// Number of the present round.
    round: u32,
    /// Pairs in a round.
    pairs: usize,
    /// What PCC Proteus judges and decides instead.
    proteus: Option<Proteus>,
    /// Those whose packets are not all acknowledged; the last one is the present one.
    intervals: VecDeque<Interval>,
    /// Consecutive steps in one direction, with its sign.
    direction: f64,
    steps: u32,
    /// How often in a row the boundary was reached.
    bounded: u32,
    last_utility: f64,
    srtt: Span,
    initial_window: f64,
    min_window: f64,
    mss: u32,
    random: SplitMix64,
}

impl Vivace {
    /// Vivace at the start of a connection, without options.
    ///
    /// # Errors
    /// None so far.
    pub fn from_options(
        _options: &mut Options,
        init: &ConnectionConfig,
    ) -> Result<Vivace, ConfigError> {
        Ok(Vivace::new(None, init))
    }

    /// PCC Proteus, which judges intervals otherwise: see [`crate::proteus`].
    ///
    /// # Errors
    /// If the value of an option is invalid.
    pub fn proteus_from_options(
        options: &mut Options,
        init: &ConnectionConfig,
    ) -> Result<Vivace, ConfigError> {
        Ok(Vivace::new(Some(Proteus::from_options(options)?), init))
    }

    fn new(proteus: Option<Proteus>, init: &ConnectionConfig) -> Vivace {
        let mut vivace = Vivace {
            rate: 0.0,
            search: Search::Start(None),
            round: 0,
            pairs: 1,
            proteus,
            intervals: VecDeque::new(),
            direction: 0.0,
            steps: 0,
            bounded: 0,
            last_utility: 0.0,
            srtt: INITIAL_RTT,
            initial_window: init.initial_window,
            min_window: MIN_WINDOW,
            mss: init.mss,
            random: SplitMix64::seed_from_u64(init.seed),
        };
        vivace.rate = vivace.per_rtt(init.initial_window);
        vivace
    }

    /// The rate of so many packets a round-trip time, Mbit/s.
    fn per_rtt(&self, packets: f64) -> f64 {
        packets * f64::from(self.mss) * 8e-6 / self.srtt.as_secs_f64()
    }

    /// The rate of the present interval, Mbit/s.
    fn sending_rate(&self) -> f64 {
        self.intervals.back().map_or(self.rate, |interval| interval.rate)
    }

    /// Begins the next interval.
    fn begin(&mut self, now: Time) {
        let mut rate = self.rate;
        let purpose = match &mut self.search {
            Search::Start(last) => {
                if last.is_some() {
                    self.rate *= 2.0;
                    rate = self.rate;
                }
                Purpose::Start
            }
            Search::Pairs { tried, .. } if *tried == 2 * self.pairs => Purpose::Wait,
            Search::Pairs { tried, order, .. } => {
                let pair = *tried / 2;
                let higher = (*tried % 2 == 0) == (*order >> pair & 1 == 0);
                *tried += 1;
                rate *= if higher { 1.0 + PROBING_STEP } else { 1.0 - PROBING_STEP };
                Purpose::Probe { round: self.round, pair, higher }
            }
        };
        self.intervals.push_back(Interval {
            purpose,
            rate,
            began: now,
            packets: 0,
            app_limited: false,
            before: None,
            slope: Slope::default(),
        });
    }

    fn begin_round(&mut self) {
        self.rate = self.rate.max(self.per_rtt(SMALLEST));
        self.pairs = self.proteus.as_ref().map_or(1, |proteus| proteus.pairs(self.rate));
        self.round += 1;
        let order = self.random.next_u64();
        self.search = Search::Pairs { tried: 0, order, found: [[None; 2]; MAX_PAIRS] };
    }

    /// Judges an interval whose packets are all acknowledged or lost.
    fn finish(&mut self, interval: &Interval, loss: f64) {
        if interval.app_limited {
            if interval.purpose != Purpose::Wait {
                self.begin_round();
            }
            return;
        }
        let value = match &mut self.proteus {
            None => utility(interval.rate, interval.slope.get(), loss),
            Some(proteus) => proteus.utility(interval.rate, &interval.slope, loss),
        };
        self.last_utility = value;
        match (&mut self.search, interval.purpose) {
            (Search::Start(last), Purpose::Start) => match *last {
                Some((rate, before)) if value < before && rate < interval.rate => {
                    self.rate = rate;
                    self.begin_round();
                }
                _ => *last = Some((interval.rate, value)),
            },
            (Search::Pairs { found, .. }, Purpose::Probe { round, pair, higher })
                if round == self.round =>
            {
                found[pair][usize::from(!higher)] = Some(value);
                let found = *found;
                self.end_round(&found);
            }
            _ => {}
        }
    }

    /// Changes the rate once all pairs of the round are judged.
    fn end_round(&mut self, found: &[[Option<f64>; 2]; MAX_PAIRS]) {
        let mut gradients = [0.0; MAX_PAIRS];
        for (gradient, pair) in gradients.iter_mut().zip(found).take(self.pairs) {
            let [Some(higher), Some(lower)] = *pair else { return };
            *gradient = (higher - lower) / (2.0 * PROBING_STEP * self.rate);
        }
        let gradients = &gradients[..self.pairs];
        let decided = match &self.proteus {
            None => Some(gradients[0]),
            Some(_) => Proteus::decide(gradients),
        };
        if let Some(gradient) = decided {
            self.step(gradient);
        }
        self.begin_round();
    }

    /// Changes the rate along the gradient of the utility.
    fn step(&mut self, gradient: f64) {
        let direction = if gradient < 0.0 { -1.0 } else { 1.0 };
        if direction != self.direction {
            (self.direction, self.steps, self.bounded) = (direction, 0, 0);
        }
        self.steps += 1;
        let tau = f64::from(self.steps);
        let amplifier = if self.steps <= 3 { tau } else { 2.0 * tau - 3.0 };
        let change = amplifier * CONVERSION * gradient.abs() / self.rate;
        let boundary = |times: u32| CHANGE_BOUNDARY + BOUNDARY_INCREMENT * f64::from(times);
        let limit = boundary(self.bounded);
        if change > limit {
            self.bounded += 1;
        } else {
            while self.bounded > 0 && change <= boundary(self.bounded - 1) {
                self.bounded -= 1;
            }
        }
        self.rate *= 1.0 + direction * change.min(limit);
    }
}

impl CongestionControl for Vivace {
    fn on_established(&mut self, path: &Path) {
        if let Some(srtt) = path.srtt.filter(|srtt| !srtt.is_zero()) {
            self.srtt = srtt;
            self.rate = self.per_rtt(self.initial_window);
        }
    }

    fn on_sent(&mut self, path: &Path, sent: &Sent) {
        let is_over = self.intervals.back().is_none_or(|present| {
            present.packets >= FEWEST_PACKETS && path.now.since(present.began) >= self.srtt
        });
        if is_over {
            self.begin(path.now);
        }
        if let Some(present) = self.intervals.back_mut() {
            present.packets += 1;
            present.app_limited |= sent.app_limited;
        }
    }

    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        if let Some(srtt) = path.srtt.filter(|srtt| !srtt.is_zero()) {
            self.srtt = srtt;
        }
        let Some(sample) = ack.rate else { return };
        let sent_at = sample.send_state.sent_at;
        let counts = (path.delivered - u64::from(ack.delivered), path.lost);
        while let Some(next) = self.intervals.get_mut(1)
            && next.began <= sent_at
        {
            next.before = Some(counts);
            let Some(interval) = self.intervals.pop_front() else { return };
            let (delivered, lost) = interval.before.unwrap_or(counts);
            let (delivered, lost) = (counts.0 - delivered, counts.1.saturating_sub(lost));
            if delivered + lost > 0 {
                self.finish(&interval, lost as f64 / (delivered + lost) as f64);
            }
        }
        if let Some(interval) = self.intervals.front_mut()
            && interval.began <= sent_at
        {
            interval.before.get_or_insert(counts);
            interval.app_limited |= sample.send_state.app_limited;
            if let Some(rtt) = ack.rtt {
                interval.slope.add(path.now.since(interval.began).as_secs_f64(), rtt.as_secs_f64());
            }
        }
    }

    fn on_congestion(&mut self, _path: &Path, event: &CongestionEvent) {
        if event.signal == Signal::Timeout {
            self.rate /= 2.0;
            self.intervals.clear();
            self.begin_round();
        }
    }

    #[inline]
    fn control(&self) -> ControlParameters {
        let rate = Rate::from_bits_per_sec(self.sending_rate() * 1e6);
        let packets = rate.bytes_in(self.srtt) / f64::from(self.mss);
        let ssthresh = if matches!(self.search, Search::Start(_)) { f64::INFINITY } else { 2.0 };
        let window = if matches!(self.search, Search::Start(None)) {
            self.initial_window
        } else {
            (WINDOW * packets).max(self.min_window)
        };
        ControlParameters::new(window).with_ssthresh(ssthresh).with_pacing_rate(Some(rate))
    }

    /// RFC 9002, section 7.6.2.
    fn on_persistent_congestion(&mut self, _path: &Path) {
        (self.rate, self.min_window) = (0.0, MIN_WINDOW);
        self.intervals.clear();
        self.begin_round();
    }

    fn on_mtu_update(&mut self, path: &Path, previous_mss: u32) {
        let factor = f64::from(previous_mss) / f64::from(path.mss);
        self.initial_window = (self.initial_window * factor).max(1.0);
        self.min_window = (self.min_window * factor).max(1.0);
        self.mss = path.mss;
    }

    fn uses_prr(&self) -> bool {
        false
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        let mut value = |name, value| show(Metric { name, value });
        value("rate", self.rate * 1e6);
        value("utility", self.last_utility);
        value("omega", CHANGE_BOUNDARY + BOUNDARY_INCREMENT * f64::from(self.bounded));
    }
}

#[cfg(test)]
mod tests;
