//! Leaving slow start before it overflows the queue: HyStart and HyStart++.
//!
//! # HyStart, as Linux has it
//!
//! Ha and Rhee, "Taming the elephants: new TCP slow start" (2008); constants and details are those
//! of Linux 6.18's `tcp_cubic.c`. From a window of 16 packets on, two detectors run on every
//! round-trip time sample, and either ends slow start at the present window:
//!
//! - **ACK train.** Acknowledgements that come within 2 ms of each other form a train, counted
//!   from the start of the round. Once the train is longer than the least one-way delay, the
//!   packets of one window fill the path. Linux takes `(min_rtt + ack_delay) / 2`, or, if it paces
//!   (which stretches the train by up to half a round trip), `min_rtt + ack_delay`. `ack_delay` is
//!   how long four of the largest offloaded bursts take at the pacing rate, at most 1 ms.
//! - **Delay.** After 8 samples, the least round-trip time of the round exceeds `min_rtt` by more
//!   than `min_rtt / 8`, held between 4 and 16 ms.
//!
//! A round ends when a packet is acknowledged that was sent after the round began. Linux keeps a
//! minimum round-trip time of its own and forgets it after a timeout; here it is the transport's.
//!
//! # HyStart++ (RFC 9406)
//!
//! Only the delay grows evidence, against the *previous* round's minimum (section 4.2):
//!
//! ```text
//! RttThresh = max(4 ms, min(lastRoundMinRTT / 8, 16 ms))
//! if rttSampleCount >= 8 and currentRoundMinRTT >= lastRoundMinRTT + RttThresh: enter CSS
//! ```
//!
//! Conservative slow start (CSS) grows at a quarter of the speed. If the round-trip time falls
//! below what it was on entry, slow start resumes; after 5 rounds, the one in which it was entered
//! included, congestion avoidance follows. An acknowledgement counts at most `L = 8` packets
//! unless the sender paces. Used for the initial slow start only (section 4.3).

use crate::{Ack, ConfigError, Inspect, Options, Path, SlowStart, StandardSlowStart};
use dumbbell_units::{Span, Time};

/// Samples in a round before its minimum counts (both algorithms).
const MIN_SAMPLES: u32 = 8;

/// Increase of the round-trip time that means a queue: an eighth of `base`, from 4 to 16 ms
/// (Linux's `HYSTART_DELAY_THRESH`, RFC 9406's `RttThresh`).
fn delay_threshold(base: Span) -> Span {
    (base / 8).clamp(Span::from_millis(4), Span::from_millis(16))
}

/// HyStart as in Linux's CUBIC.
#[derive(Clone, Copy, Debug)]
pub struct HyStart {
    train: bool,
    delay: bool,
    /// The round ends when a packet from this one on is acknowledged.
    round_end: u64,
    round_start: Time,
    round_min_rtt: Span,
    samples: u32,
    /// The last acknowledgement that belonged to the train.
    train_end: Time,
}

impl HyStart {
    /// Window below which nothing is detected, packets.
    const LOW_WINDOW: f64 = 16.0;
    /// Greatest gap between acknowledgements of a train.
    const ACK_DELTA: Span = Span::from_millis(2);
    /// Bytes in the largest offloaded burst (`sk_gso_max_size`; the kernel's is 0.5 % less, which
    /// it leaves free for headers).
    const GSO_BYTES: f64 = 65_536.0;

    /// HyStart with either detector or both.
    pub const fn new(train: bool, delay: bool) -> HyStart {
        HyStart {
            train,
            delay,
            round_end: 0,
            round_start: Time::ZERO,
            round_min_rtt: Span::MAX,
            samples: 0,
            train_end: Time::ZERO,
        }
    }

    fn begin_round(&mut self, path: &Path) {
        self.round_end = path.next_seq;
        self.round_start = path.now;
        self.round_min_rtt = Span::MAX;
        self.samples = 0;
        self.train_end = path.now;
    }

    fn train_fills_path(&mut self, path: &Path, min_rtt: Span) -> bool {
        if path.now.since(self.train_end) > HyStart::ACK_DELTA {
            return false;
        }
        self.train_end = path.now;
        let bursts = path.pacing_rate.map(|rate| rate.time_for(4.0 * HyStart::GSO_BYTES));
        let threshold = min_rtt + bursts.unwrap_or(Span::ZERO).min(Span::from_millis(1));
        let threshold = if path.paced { threshold } else { threshold / 2 };
        path.now.since(self.round_start) > threshold
    }

    fn queue_delays(&mut self, rtt: Span, min_rtt: Span) -> bool {
        self.round_min_rtt = self.round_min_rtt.min(rtt);
        // As Linux: the eighth sample is still gathered, the ninth is the first to decide.
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        self.round_min_rtt > min_rtt + delay_threshold(min_rtt)
    }
}

impl SlowStart for HyStart {
    fn ends(&mut self, cwnd: f64, path: &Path, ack: &Ack) -> bool {
        let (Some(rtt), Some(min_rtt)) = (ack.rtt, path.min_rtt) else { return false };
        if path.una > self.round_end {
            self.begin_round(path);
        }
        if cwnd < HyStart::LOW_WINDOW {
            return false;
        }
        let train = self.train && self.train_fills_path(path, min_rtt);
        let delay = self.delay && self.queue_delays(rtt, min_rtt);
        train || delay
    }

    fn restart(&mut self, path: &Path) {
        self.begin_round(path);
    }
}

/// HyStart++ (RFC 9406). Names are the RFC's; `Span::MAX` is its infinity.
#[derive(Clone, Copy, Debug)]
pub struct HyStartPlusPlus {
    window_end: u64,
    last_round_min_rtt: Span,
    current_round_min_rtt: Span,
    rtt_sample_count: u32,
    /// Conservative slow start, if it is under way.
    css: Option<Css>,
    /// Whether this is still the initial slow start.
    initial: bool,
}

#[derive(Clone, Copy, Debug)]
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
    /// Packets that one acknowledgement counts at most, unless the sender paces.
    const L: u32 = 8;

    /// HyStart++ at the beginning of a connection.
    pub const fn new() -> HyStartPlusPlus {
        HyStartPlusPlus {
            window_end: 0,
            last_round_min_rtt: Span::MAX,
            current_round_min_rtt: Span::MAX,
            rtt_sample_count: 0,
            css: None,
            initial: true,
        }
    }

    fn begin_round(&mut self, path: &Path) {
        self.window_end = path.next_seq;
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
    fn ends(&mut self, _cwnd: f64, path: &Path, ack: &Ack) -> bool {
        if !self.initial {
            return false;
        }
        if path.una > self.window_end {
            self.begin_round(path);
        }
        if let Some(rtt) = ack.rtt {
            self.sample(rtt);
        }
        self.css.is_some_and(|css| css.rounds >= HyStartPlusPlus::CSS_ROUNDS)
    }

    fn increase(&mut self, _cwnd: f64, path: &Path, ack: &Ack) -> f64 {
        let standard = f64::from(ack.counted);
        if !self.initial {
            return standard;
        }
        let limited = if path.paced { standard } else { standard.min(f64::from(Self::L)) };
        if self.css.is_some() { limited / Self::CSS_GROWTH_DIVISOR } else { limited }
    }

    fn restart(&mut self, _path: &Path) {
        self.initial = false;
        self.css = None;
    }

    fn inspect(&self, show: &mut dyn FnMut(Inspect)) {
        show(Inspect { name: "CSS", value: f64::from(u8::from(self.css.is_some())) });
    }
}

/// The slow start that the option `hystart` names.
#[derive(Clone, Copy, Debug)]
pub enum AnySlowStart {
    /// RFC 5681's.
    Standard(StandardSlowStart),
    /// Linux's HyStart.
    HyStart(HyStart),
    /// RFC 9406's HyStart++.
    HyStartPlusPlus(HyStartPlusPlus),
}

impl AnySlowStart {
    /// RFC 5681's.
    pub const STANDARD: AnySlowStart = AnySlowStart::Standard(StandardSlowStart);
    /// Both of Linux's detectors, as its CUBIC has by default.
    pub const LINUX: AnySlowStart = AnySlowStart::HyStart(HyStart::new(true, true));

    /// Takes the option `hystart`.
    ///
    /// # Errors
    /// If its value is none of `on`, `off`, `plusplus`, `train` and `delay`.
    pub fn from_options(
        options: &mut Options,
        default: AnySlowStart,
    ) -> Result<AnySlowStart, ConfigError> {
        options.choice(
            "hystart",
            default,
            &[
                ("on", AnySlowStart::LINUX),
                ("off", AnySlowStart::STANDARD),
                ("plusplus", AnySlowStart::HyStartPlusPlus(HyStartPlusPlus::new())),
                ("train", AnySlowStart::HyStart(HyStart::new(true, false))),
                ("delay", AnySlowStart::HyStart(HyStart::new(false, true))),
            ],
            "on, off, plusplus, train or delay",
        )
    }
}

impl SlowStart for AnySlowStart {
    #[inline]
    fn ends(&mut self, cwnd: f64, path: &Path, ack: &Ack) -> bool {
        match self {
            AnySlowStart::Standard(standard) => standard.ends(cwnd, path, ack),
            AnySlowStart::HyStart(hystart) => hystart.ends(cwnd, path, ack),
            AnySlowStart::HyStartPlusPlus(hystart) => hystart.ends(cwnd, path, ack),
        }
    }

    #[inline]
    fn increase(&mut self, cwnd: f64, path: &Path, ack: &Ack) -> f64 {
        match self {
            AnySlowStart::Standard(standard) => standard.increase(cwnd, path, ack),
            AnySlowStart::HyStart(hystart) => hystart.increase(cwnd, path, ack),
            AnySlowStart::HyStartPlusPlus(hystart) => hystart.increase(cwnd, path, ack),
        }
    }

    fn restart(&mut self, path: &Path) {
        match self {
            AnySlowStart::Standard(standard) => standard.restart(path),
            AnySlowStart::HyStart(hystart) => hystart.restart(path),
            AnySlowStart::HyStartPlusPlus(hystart) => hystart.restart(path),
        }
    }

    fn inspect(&self, show: &mut dyn FnMut(Inspect)) {
        match self {
            AnySlowStart::Standard(standard) => standard.inspect(show),
            AnySlowStart::HyStart(hystart) => hystart.inspect(show),
            AnySlowStart::HyStartPlusPlus(hystart) => hystart.inspect(show),
        }
    }
}
