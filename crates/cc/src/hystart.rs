//! HyStart and HyStart++: leaving slow start before the queue overflows.
//!
//! # HyStart, as in Linux
//!
//! Ha and Rhee, "Taming the elephants: new TCP slow start" (2008); constants and details are those
//! of Linux 6.18's `tcp_cubic.c`. From a window of 16 packets on, two detectors run on every
//! round-trip time sample, and either ends slow start at the present window:
//!
//! - **ACK train.** Acknowledgements that come within 2 ms of each other form a train, counted
//!   from the start of the round. Once the train is longer than the minimum one-way delay, the
//!   packets of one window fill the path. Linux's threshold is `(delay_min + ack_delay) / 2`, or
//!   `delay_min + ack_delay` if it paces, which stretches the train by up to half a round trip.
//!   `ack_delay` is the time of four maximum-size offloaded bursts at the pacing rate, at most 1 ms.
//! - **Delay.** After 8 samples, the minimum round-trip time of the round exceeds `delay_min` by more
//!   than `delay_min / 8`, clamped to 4 to 16 ms.
//!
//! A round ends when a packet is acknowledged that was sent after the round began. Once a detector
//! has ended slow start, detection stays off until a timeout (`found`): slow start after idle goes up
//! to the threshold. In a recovery the window in force may be below the threshold; what is found then lowers
//! the target of the recovery. `delay_min` is the minimum round-trip time of data since the connection began or
//! timed out. It lacks the handshake, whose packets are smaller: `cubictcp_init` resets it. Of
//! connections that leave slow start by a loss, samples of congestion avoidance are not counted here.
//!
//! # HyStart++ (RFC 9406)
//!
//! Compares the delay with the *previous* round's minimum (section 4.2):
//!
//! ```text
//! RttThresh = max(4 ms, min(lastRoundMinRTT / 8, 16 ms))
//! if rttSampleCount >= 8 and currentRoundMinRTT >= lastRoundMinRTT + RttThresh: enter CSS
//! ```
//!
//! Conservative slow start (CSS) grows a quarter as fast. If the round-trip time falls below its
//! value on entry, slow start resumes. After 5 rounds, including the one of entry, congestion
//! avoidance follows. An acknowledgement counts at most `L = 8` packets unless the sender paces.
//! HyStart++ applies to the initial slow start only (section 4.3).

use crate::round::SequenceRound;
use crate::{Ack, Metric, Path, SlowStart};
use dumbbell_units::{Span, Time};

/// Samples in a round before its minimum counts (both algorithms).
const MIN_SAMPLES: u32 = 8;

/// Increase of the round-trip time that indicates a queue: `base / 8`, clamped to 4 to 16 ms
/// (Linux's `HYSTART_DELAY_THRESH`, RFC 9406's `RttThresh`).
fn delay_threshold(base: Span) -> Span {
    (base / 8).clamp(Span::from_millis(4), Span::from_millis(16))
}

/// HyStart's measurements in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HyStartRound {
    sequence: SequenceRound,
    start: Time,
    pub(crate) min_rtt: Span,
    pub(crate) samples: u32,
    /// The last acknowledgement that belonged to the train.
    train_end: Time,
}

impl HyStartRound {
    /// Window below which nothing is detected, packets.
    pub(crate) const LOW_WINDOW: f64 = 16.0;
    /// Maximum gap between acknowledgements of a train (`hystart_ack_delta`).
    const ACK_DELTA: Span = Span::from_millis(2);

    pub(crate) const fn new() -> HyStartRound {
        HyStartRound {
            sequence: SequenceRound::new(),
            start: Time::ZERO,
            min_rtt: Span::MAX,
            samples: 0,
            train_end: Time::ZERO,
        }
    }

    /// Begins a round now.
    pub(crate) fn restart(&mut self, path: &Path) {
        self.sequence.restart(path);
        let sequence = self.sequence;
        let (start, train_end) = (path.now, path.now);
        *self = HyStartRound { sequence, start, train_end, ..HyStartRound::new() };
    }

    /// Begins the next round if this acknowledgement ends the present one.
    pub(crate) fn advance(&mut self, path: &Path) {
        if self.sequence.advance(path) {
            self.restart(path);
        }
    }

    /// Length of the train up to this acknowledgement; `None` if a gap has broken it.
    pub(crate) fn train(&mut self, now: Time) -> Option<Span> {
        if now.since(self.train_end) > HyStartRound::ACK_DELTA {
            return None;
        }
        self.train_end = now;
        Some(now.since(self.start))
    }
}

/// HyStart as in Linux's CUBIC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HyStart {
    detect_train: bool,
    detect_delay: bool,
    found: bool,
    delay_min: Span,
    round: HyStartRound,
}

impl HyStart {
    /// Bytes in the largest offloaded burst (`sk_gso_max_size`; the kernel's is 0.5 % less, which
    /// it leaves free for headers).
    const GSO_BYTES: f64 = 65_536.0;

    /// HyStart with either detector or both.
    pub const fn new(detect_train: bool, detect_delay: bool) -> HyStart {
        let (found, delay_min, round) = (false, Span::MAX, HyStartRound::new());
        HyStart { detect_train, detect_delay, found, delay_min, round }
    }

    fn train_exceeds_threshold(&mut self, path: &Path) -> bool {
        let Some(train) = self.round.train(path.now) else { return false };
        let bursts = path.pacing_rate.map(|rate| rate.time_for(4.0 * HyStart::GSO_BYTES));
        let threshold = self.delay_min + bursts.unwrap_or(Span::ZERO).min(Span::from_millis(1));
        let threshold = if path.paced { threshold } else { threshold / 2 };
        train > threshold
    }

    fn delay_exceeds_threshold(&mut self, rtt: Span) -> bool {
        let round = &mut self.round;
        round.min_rtt = round.min_rtt.min(rtt);
        // As in Linux: the first 8 samples only count, the ninth is the first to decide.
        if round.samples < MIN_SAMPLES {
            round.samples += 1;
            return false;
        }
        round.min_rtt > self.delay_min + delay_threshold(self.delay_min)
    }
}

impl SlowStart for HyStart {
    fn should_exit(&mut self, cwnd: f64, path: &Path, ack: &Ack) -> bool {
        let Some(rtt) = ack.rtt else { return false };
        self.delay_min = self.delay_min.min(rtt);
        // cubictcp_acked: hystart_update only if !ca->found.
        if self.found {
            return false;
        }
        self.round.advance(path);
        if cwnd < HyStartRound::LOW_WINDOW {
            return false;
        }
        let train = self.detect_train && self.train_exceeds_threshold(path);
        let delay = self.detect_delay && self.delay_exceeds_threshold(rtt);
        self.found = train || delay;
        self.found
    }

    fn restart(&mut self, path: &Path) {
        // bictcp_reset
        self.found = false;
        self.delay_min = Span::MAX;
        self.round.restart(path);
    }
}

/// HyStart++ (RFC 9406). Names are the RFC's; `Span::MAX` is its infinity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HyStartPlusPlus {
    /// The RFC's `windowEnd`.
    round: SequenceRound,
    last_round_min_rtt: Span,
    current_round_min_rtt: Span,
    rtt_sample_count: u32,
    /// Conservative slow start, if it is under way.
    css: Option<Css>,
    /// Whether this is still the initial slow start.
    initial_slow_start: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Css {
    baseline_min_rtt: Span,
    /// Rounds completed, the one in which it was entered included.
    rounds: u32,
}

impl Default for HyStartPlusPlus {
    fn default() -> HyStartPlusPlus {
        HyStartPlusPlus::new()
    }
}

impl HyStartPlusPlus {
    const CSS_GROWTH_DIVISOR: f64 = 4.0;
    const CSS_ROUNDS: u32 = 5;
    /// Maximum packets that one acknowledgement counts, unless the sender paces.
    const L: u32 = 8;

    /// HyStart++ at the beginning of a connection.
    pub const fn new() -> HyStartPlusPlus {
        HyStartPlusPlus {
            round: SequenceRound::new(),
            last_round_min_rtt: Span::MAX,
            current_round_min_rtt: Span::MAX,
            rtt_sample_count: 0,
            css: None,
            initial_slow_start: true,
        }
    }

    fn begin_round(&mut self) {
        self.last_round_min_rtt = self.current_round_min_rtt;
        self.current_round_min_rtt = Span::MAX;
        self.rtt_sample_count = 0;
        if let Some(css) = &mut self.css {
            css.rounds += 1;
        }
    }

    fn sample(&mut self, rtt: Span) {
        self.current_round_min_rtt = self.current_round_min_rtt.min(rtt);
        self.rtt_sample_count += 1;
        if self.rtt_sample_count < MIN_SAMPLES {
            return;
        }
        let (current, last) = (self.current_round_min_rtt, self.last_round_min_rtt);
        match self.css {
            None if last != Span::MAX && current >= last + delay_threshold(last) => {
                self.css = Some(Css { baseline_min_rtt: current, rounds: 0 });
            }
            Some(css) if current < css.baseline_min_rtt => self.css = None,
            _ => {}
        }
    }
}

impl SlowStart for HyStartPlusPlus {
    fn should_exit(&mut self, _cwnd: f64, path: &Path, ack: &Ack) -> bool {
        if !self.initial_slow_start {
            return false;
        }
        if self.round.advance(path) {
            self.begin_round();
        }
        if let Some(rtt) = ack.rtt {
            self.sample(rtt);
        }
        let ends = self.css.is_some_and(|css| css.rounds >= HyStartPlusPlus::CSS_ROUNDS);
        if ends {
            self.on_exit();
        }
        ends
    }

    fn increase(&mut self, _cwnd: f64, path: &Path, ack: &Ack) -> f64 {
        let standard = f64::from(ack.acked);
        if !self.initial_slow_start {
            return standard;
        }
        let limited = if path.paced { standard } else { standard.min(f64::from(Self::L)) };
        if self.css.is_some() { limited / Self::CSS_GROWTH_DIVISOR } else { limited }
    }

    /// RFC 9406, section 4.3: standard slow start for the rest of the connection's life.
    fn on_exit(&mut self) {
        self.initial_slow_start = false;
        self.css = None;
    }

    fn restart(&mut self, _path: &Path) {
        self.on_exit();
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        show(Metric { name: "CSS", value: f64::from(u8::from(self.css.is_some())) });
    }
}

#[cfg(test)]
mod tests;
