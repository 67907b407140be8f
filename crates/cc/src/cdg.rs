//! CDG, CAIA delay gradient (Hayes and Armitage, "Revisiting TCP congestion control using delay
//! gradients", IFIP Networking 2011), as Linux's `tcp_cdg.c` implements it.
//!
//! Reno, and once a round trip a backoff with a probability that grows with the delay: from the minimum
//! and the maximum round-trip time of each round trip, in us, summed over the last `window` = 8 of
//! them,
//!
//! ```text
//! grad = gmin if gmin > 0, else gmax            gmin = sum of the changes of the minimum
//! P(backoff) = 1 - exp(-grad backoff_factor 1e-6)
//! backoff: cwnd = backoff_beta cwnd
//! ```
//!
//! with `backoff_factor` 42, which is `1000 / (G window)` of the paper's `G` = 3, and `backoff_beta`
//! sqrt(0.5). After `use_ineff` = 5 backoffs that did not lower the delay, delays
//! count no more: others fill the queue. The shadow window is what the window would be without
//! backoffs; after a loss the window is half of it, so that backoffs do not add to losses. In the recovery
//! after a timeout a backoff leaves the window as it is, and the next reduction is by `backoff_beta`. When the
//! window begins anew after an idle period, the delays are forgotten.
//!
//! | | paper | Linux | here |
//! |---|---|---|---|
//! | slow start | ends with the first backoff | HyStart too | Linux; option `slow_start` |
//! | loss while the queue is not full | no backoff | `use_tolerance`, off | Linux; option |
//! | shadow window | unlimited | at most twice `cwnd` | Linux |
//! | backoff | at once | over a round trip, by PRR | at once; no growth for that round trip |
//! | `exp` | exact | in 32 bits, by a table | exact |

use crate::{Ack, CaState, ConfigError, CongestionEvent, ConnectionConfig, Metric, Options, Path};
use crate::{Signal, WindowRule};
use alloc::vec;
use alloc::vec::Vec;
use dumbbell_units::{Span, Time};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Linux's 0.7071 * 1024, in whole 1/1024.
const BACKOFF_BETA: f64 = 724.0 / 1024.0;
/// Single acknowledgements that may be delayed ones are remembered up to this number.
const MAX_DELACK: u8 = 5;
/// A fall of the delay, us, that shows that a backoff had an effect.
const EFFECTUAL: i64 = -32;
/// The unit of gradients with `use_tolerance`, us.
const TOLERANCE: i64 = 64;

/// Minimum and maximum, us; both 0 if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MinMax {
    min: i64,
    max: i64,
}

impl MinMax {
    fn is_none(self) -> bool {
        self == MinMax::default()
    }
}

/// What the gradients say of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unknown,
    NonFull,
    Full,
    Backoff,
}

/// HyStart as in `tcp_cdg_hystart_update`.
#[derive(Clone, Copy, Debug, Default)]
struct Train {
    last_ack: Option<Time>,
    round_start: Time,
    samples: u32,
    delay_min: i64,
}

/// CDG's rule.
#[derive(Clone, Debug)]
pub struct Cdg {
    backoff_beta: f64,
    backoff_factor: f64,
    use_ineff: u32,
    use_shadow: bool,
    use_tolerance: bool,
    detect_train: bool,
    detect_delay: bool,
    random: SplitMix64,
    rtt: MinMax,
    rtt_prev: MinMax,
    gradients: Vec<MinMax>,
    gsum: MinMax,
    gfilled: bool,
    tail: usize,
    state: State,
    delack: u8,
    rtt_seq: u64,
    shadow_wnd: f64,
    backoff_cnt: u32,
    train: Train,
    /// The end of the round trip of a backoff (Linux's `high_seq` in CWR).
    cwr_end: Option<u64>,
    /// The end of another reduction in progress (`high_seq`).
    reduction_end: Option<u64>,
    last_cwnd: f64,
}

impl Cdg {
    /// Takes Linux's module parameters and `slow_start`.
    ///
    /// # Errors
    /// If one of them has a value that it cannot have.
    pub fn from_options(
        options: &mut Options,
        config: &ConnectionConfig,
    ) -> Result<Cdg, ConfigError> {
        let window = options.number("window", 8.0, 1.0..=256.0, "1 to 256 round trips")?;
        let detectors = options.choice(
            "slow_start",
            (true, true),
            &[
                ("hystart", (true, true)),
                ("standard", (false, false)),
                ("hystart-train", (true, false)),
                ("hystart-delay", (false, true)),
            ],
            "hystart, standard, hystart-train or hystart-delay",
        )?;
        Ok(Cdg {
            backoff_beta: options.number("backoff_beta", BACKOFF_BETA, 0.1..=1.0, "0.1 to 1")?,
            backoff_factor: options.number("backoff_factor", 42.0, 0.0..=1e6, "0 to 10^6")?,
            use_ineff: options.number("use_ineff", 5.0, 0.0..=1e6, "0 to 10^6")? as u32,
            use_shadow: options.switch("use_shadow", true)?,
            use_tolerance: options.switch("use_tolerance", false)?,
            detect_train: detectors.0,
            detect_delay: detectors.1,
            random: SplitMix64::seed_from_u64(config.seed),
            rtt: MinMax::default(),
            rtt_prev: MinMax::default(),
            gradients: vec![MinMax::default(); window as usize],
            gsum: MinMax::default(),
            gfilled: false,
            tail: 0,
            state: State::Unknown,
            delack: 0,
            rtt_seq: 0,
            shadow_wnd: config.initial_window,
            backoff_cnt: 0,
            train: Train::default(),
            cwr_end: None,
            reduction_end: None,
            last_cwnd: config.initial_window,
        })
    }

    /// `tcp_cdg_acked`: the minimum without delayed acknowledgements, and the maximum.
    fn measure(&mut self, path: &Path, ack: &Ack) {
        let Some(us) = ack.rtt.map(|rtt| (rtt.as_nanos() / 1000) as i64).filter(|&us| us > 0)
        else {
            return;
        };
        if path.ca_state == CaState::Open {
            if ack.delivered == 1 && self.delack > 0 {
                self.rtt.min = self.rtt.min.min(us);
                self.delack -= 1;
                return;
            }
            if ack.delivered > 1 && self.delack < MAX_DELACK {
                self.delack += 1;
            }
        }
        self.rtt.min = if self.rtt.min == 0 { us } else { self.rtt.min.min(us) };
        self.rtt.max = self.rtt.max.max(us);
    }

    /// `tcp_cdg_grad`: the sum of the changes over the window, us.
    fn gradient(&mut self) -> i64 {
        let change =
            MinMax { min: self.rtt.min - self.rtt_prev.min, max: self.rtt.max - self.rtt_prev.max };
        let oldest = core::mem::replace(&mut self.gradients[self.tail], change);
        self.gsum.min += change.min - oldest.min;
        self.gsum.max += change.max - oldest.max;
        self.tail = (self.tail + 1) % self.gradients.len();
        let (gmin, gmax) = (self.gsum.min, self.gsum.max);
        let mut grad = if gmin > 0 { gmin } else { gmax };
        if !self.gfilled {
            match self.tail {
                0 => self.gfilled = true,
                filled => grad = grad * self.gradients.len() as i64 / filled as i64,
            }
        }
        if gmin <= EFFECTUAL || gmax <= EFFECTUAL {
            self.backoff_cnt = 0;
        }
        if self.use_tolerance {
            let rounded = |g: i64| (g + g.signum() * TOLERANCE / 2) / TOLERANCE;
            let (gmin, gmax) = (rounded(gmin), rounded(gmax));
            if gmin > 0 && gmax <= 0 {
                self.state = State::Full;
            } else if (gmin > 0 && gmax > 0) || gmax < 0 {
                self.state = State::NonFull;
            }
        }
        grad
    }

    /// `exp(-grad backoff_factor 1e-6)`: the probability that there is no backoff.
    fn no_backoff(&self, grad: i64) -> f64 {
        libm::exp(-(grad as f64) * self.backoff_factor * 1e-6)
    }

    /// `tcp_cdg_backoff`: whether the flow backs off.
    fn backs_off(&mut self, grad: i64) -> bool {
        let uniform = (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        if uniform <= self.no_backoff(grad) {
            return false;
        }
        if self.use_ineff > 0 {
            self.backoff_cnt += 1;
            if self.backoff_cnt > self.use_ineff {
                return false;
            }
        }
        true
    }

    /// `CA_EVENT_COMPLETE_CWR`.
    fn complete_reduction(&mut self, path: &Path) {
        self.state = State::Unknown;
        self.rtt_seq = path.next_seq;
        self.rtt_prev = self.rtt;
        self.rtt = MinMax::default();
    }

    /// `tcp_cdg_hystart_update`: whether slow start ends.
    fn slow_start_ends(&mut self, path: &Path) -> bool {
        let train = &mut self.train;
        if self.rtt.min > 0 && (train.delay_min == 0 || self.rtt.min < train.delay_min) {
            train.delay_min = self.rtt.min;
        }
        if train.delay_min == 0 {
            return false;
        }
        let us = |us: i64| Span::from_micros(us.max(125) as u64);
        if self.detect_train {
            match train.last_ack {
                Some(last) if path.cwnd_limited => {
                    if path.now.since(last) < Span::from_millis(3) {
                        train.last_ack = Some(path.now);
                        if path.now.since(train.round_start) > us(train.delay_min / 2) {
                            return true;
                        }
                    }
                }
                _ => (train.last_ack, train.round_start) = (Some(path.now), path.now),
            }
        }
        if !self.detect_delay {
            return false;
        }
        if train.samples < 8 {
            train.samples += 1;
            return false;
        }
        self.rtt.min > (train.delay_min + train.delay_min / 8).max(125)
    }
}

impl WindowRule for Cdg {
    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, _path: &Path, _ack: &Ack) -> f64 {
        acked / cwnd
    }

    /// `tcp_cdg_ssthresh`.
    fn decrease(&mut self, cwnd: f64, path: &Path, event: &CongestionEvent) -> f64 {
        let is_timeout = event.signal == Signal::Timeout;
        let ended = self.reduction_end.is_some() || self.cwr_end.is_some_and(|end| path.una > end);
        if ended && !is_timeout {
            self.complete_reduction(path); // before another one begins within an acknowledgement
        }
        self.reduction_end = (!is_timeout).then_some(path.next_seq);
        if self.cwr_end.take().is_some_and(|end| path.una <= end) {
            return cwnd; // the reduction of the backoff goes on
        }
        match self.state {
            State::Backoff => return cwnd * self.backoff_beta,
            State::NonFull if self.use_tolerance => return cwnd,
            _ => self.shadow_wnd = (self.shadow_wnd / 2.0).min(cwnd),
        }
        if self.use_shadow { self.shadow_wnd.max(cwnd / 2.0) } else { cwnd / 2.0 }
    }

    fn observe(&mut self, path: &Path, ack: &Ack) {
        self.measure(path, ack);
    }

    /// `tcp_cdg_cong_avoid`.
    fn set_window(
        &mut self,
        cwnd: f64,
        mut ssthresh: f64,
        path: &Path,
        _ack: &Ack,
    ) -> Option<(f64, f64)> {
        if let Some(end) = self.cwr_end {
            if path.una <= end {
                return Some((cwnd, ssthresh));
            }
            (self.cwr_end, self.reduction_end) = (None, Some(end));
        }
        if self.reduction_end.take().is_some() {
            self.complete_reduction(path);
        }
        self.shadow_wnd += (cwnd - self.last_cwnd).max(0.0);
        self.last_cwnd = cwnd;
        let ends = cwnd < ssthresh && self.slow_start_ends(path);
        if ends {
            ssthresh = cwnd;
        }
        if path.una > self.rtt_seq && !self.rtt.is_none() {
            let grad = if self.rtt_prev.is_none() { 0 } else { self.gradient() };
            self.rtt_seq = path.next_seq;
            self.rtt_prev = self.rtt;
            self.rtt = MinMax::default();
            self.train.last_ack = None;
            self.train.samples = 0;
            if grad > 0 && self.backs_off(grad) {
                self.shadow_wnd = self.shadow_wnd.max(cwnd);
                self.state = State::Backoff;
                if path.ca_state == CaState::Loss {
                    return Some((cwnd, ssthresh)); // tcp_enter_cwr does nothing
                }
                self.cwr_end = Some(path.next_seq);
                let window = (cwnd * self.backoff_beta).max(2.0);
                self.last_cwnd = window;
                return Some((window, window));
            }
        }
        if !path.cwnd_limited {
            self.shadow_wnd = self.shadow_wnd.min(cwnd);
        }
        ends.then_some((cwnd, ssthresh))
    }

    /// Only the end of a recovery is `CA_EVENT_COMPLETE_CWR`, undone or not.
    fn on_undo(&mut self, path: &Path) {
        self.reduction_end = self.reduction_end.filter(|&end| path.una >= end);
        self.last_cwnd = f64::INFINITY; // the window that comes back has not grown
    }

    /// A reduction that a timeout interrupts does not end.
    fn on_timeout(&mut self) {
        (self.cwr_end, self.reduction_end) = (None, None);
    }

    /// The next acknowledgement ends the round.
    fn on_cwnd_restart(&mut self, cwnd: f64) {
        self.gradients.fill(MinMax::default());
        (self.rtt, self.rtt_prev, self.gsum) = Default::default();
        (self.gfilled, self.tail, self.delack, self.backoff_cnt) = Default::default();
        (self.state, self.train) = (State::Unknown, Train::default());
        self.shadow_wnd = cwnd;
    }

    fn on_mtu_update(&mut self, factor: f64) {
        self.shadow_wnd *= factor;
        self.last_cwnd = f64::INFINITY;
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        show(Metric { name: "shadow_wnd", value: self.shadow_wnd });
        show(Metric { name: "backoff_cnt", value: f64::from(self.backoff_cnt) });
        show(Metric { name: "gsum_min", value: self.gsum.min as f64 / 1e6 });
    }
}

#[cfg(test)]
mod tests;
