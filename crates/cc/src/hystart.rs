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
//!   packets of one window fill the path. Linux's threshold is `(min_rtt + ack_delay) / 2`, or
//!   `min_rtt + ack_delay` if it paces, which stretches the train by up to half a round trip.
//!   `ack_delay` is the time of four maximum-size offloaded bursts at the pacing rate, at most 1 ms.
//! - **Delay.** After 8 samples, the minimum round-trip time of the round exceeds `min_rtt` by more
//!   than `min_rtt / 8`, clamped to 4 to 16 ms.
//!
//! A round ends when a packet is acknowledged that was sent after the round began. Once a detector
//! has ended slow start, detection stays off until a timeout (`found`): slow start after idle goes up
//! to the threshold. Linux keeps its own minimum round-trip time and resets it after a timeout; here
//! it is the transport's.
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
#[derive(Clone, Copy, Debug)]
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
#[derive(Clone, Copy, Debug)]
pub struct HyStart {
    detect_train: bool,
    detect_delay: bool,
    found: bool,
    round: HyStartRound,
}

impl HyStart {
    /// Bytes in the largest offloaded burst (`sk_gso_max_size`; the kernel's is 0.5 % less, which
    /// it leaves free for headers).
    const GSO_BYTES: f64 = 65_536.0;

    /// HyStart with either detector or both.
    pub const fn new(detect_train: bool, detect_delay: bool) -> HyStart {
        HyStart { detect_train, detect_delay, found: false, round: HyStartRound::new() }
    }

    fn train_exceeds_threshold(&mut self, path: &Path, min_rtt: Span) -> bool {
        let Some(train) = self.round.train(path.now) else { return false };
        let bursts = path.pacing_rate.map(|rate| rate.time_for(4.0 * HyStart::GSO_BYTES));
        let threshold = min_rtt + bursts.unwrap_or(Span::ZERO).min(Span::from_millis(1));
        let threshold = if path.paced { threshold } else { threshold / 2 };
        train > threshold
    }

    fn delay_exceeds_threshold(&mut self, rtt: Span, min_rtt: Span) -> bool {
        let round = &mut self.round;
        round.min_rtt = round.min_rtt.min(rtt);
        // As in Linux: the first 8 samples only count, the ninth is the first to decide.
        if round.samples < MIN_SAMPLES {
            round.samples += 1;
            return false;
        }
        round.min_rtt > min_rtt + delay_threshold(min_rtt)
    }
}

impl SlowStart for HyStart {
    fn should_exit(&mut self, cwnd: f64, path: &Path, ack: &Ack) -> bool {
        let (Some(rtt), Some(min_rtt)) = (ack.rtt, path.min_rtt) else { return false };
        // cubictcp_acked: hystart_update only if !ca->found.
        if self.found {
            return false;
        }
        self.round.advance(path);
        if cwnd < HyStartRound::LOW_WINDOW {
            return false;
        }
        let train = self.detect_train && self.train_exceeds_threshold(path, min_rtt);
        let delay = self.detect_delay && self.delay_exceeds_threshold(rtt, min_rtt);
        self.found = train || delay;
        self.found
    }

    fn restart(&mut self, path: &Path) {
        self.found = false; // bictcp_reset
        self.round.restart(path);
    }
}

/// HyStart++ (RFC 9406). Names are the RFC's; `Span::MAX` is its infinity.
#[derive(Clone, Copy, Debug)]
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
mod tests {
    use super::*;
    use dumbbell_units::Rate;

    /// A connection in slow start whose acknowledgements the test generates.
    struct Flow<S> {
        slow_start: S,
        path: Path,
        cwnd: f64,
    }

    impl<S: SlowStart> Flow<S> {
        fn new(slow_start: S, min_rtt_ms: u64) -> Flow<S> {
            let path = Path {
                min_rtt: Some(Span::from_millis(min_rtt_ms)),
                next_seq: 100_000,
                ..Path::new(1448, Time::ZERO)
            };
            Flow { slow_start, path, cwnd: 100.0 }
        }

        /// The first acknowledgement of the next round comes `gap` after the last one.
        fn next_round(&mut self, gap: Span, rtt: Span) -> bool {
            self.path.una = self.path.next_seq;
            self.path.next_seq += 100_000;
            self.ack(gap, rtt)
        }

        /// One more packet is acknowledged, `gap` after the last one.
        fn ack(&mut self, gap: Span, rtt: Span) -> bool {
            self.path.now += gap;
            self.path.una += 1;
            let ack = Ack { delivered: 1, acked: 1, rtt: Some(rtt), ..Ack::default() };
            self.slow_start.should_exit(self.cwnd, &self.path, &ack)
        }

        /// Number of the acknowledgement in a row, from 1, that ends slow start.
        fn ends_at(&mut self, acks: u32, gap: Span, rtt: Span) -> Option<u32> {
            (1..=acks).find(|_| self.ack(gap, rtt))
        }

        fn growth(&mut self, acked: u32) -> f64 {
            let ack = Ack { acked, ..Ack::default() };
            self.slow_start.increase(self.cwnd, &self.path, &ack)
        }
    }

    const MS: Span = Span::from_millis(1);
    const RTT: Span = Span::from_millis(100);

    fn train(change: impl FnOnce(&mut Path)) -> Flow<HyStart> {
        let mut flow = Flow::new(HyStart::new(true, false), 100);
        change(&mut flow.path);
        assert!(!flow.next_round(RTT, RTT));
        flow
    }

    #[test]
    fn a_train_longer_than_half_the_minimum_rtt_ends_slow_start() {
        assert_eq!(train(|_| {}).ends_at(99, MS, RTT), Some(51));
    }

    #[test]
    fn a_gap_of_more_than_2_ms_breaks_the_train_for_the_round() {
        let mut flow = train(|_| {});
        assert_eq!(flow.ends_at(10, MS * 2, RTT), None);
        assert!(!flow.ack(Span::from_micros(2_001), RTT));
        assert_eq!(flow.ends_at(80, MS, RTT), None);
        assert!(!flow.next_round(MS, RTT));
        assert_eq!(flow.ends_at(99, MS, RTT), Some(51));
    }

    #[test]
    fn a_paced_train_may_take_the_whole_round_trip_and_four_bursts() {
        // 4 x 65,536 bytes in half a millisecond; then in far more than the bound of 1 ms.
        for (rate, bursts) in [(524_288e3, Span::from_micros(500)), (1e6, MS)] {
            let rate = Some(Rate::from_bytes_per_sec(rate));
            let step = Span::from_micros(50);
            let expected = |threshold: Span| (threshold.as_micros() / 50) as u32 + 1;
            let mut unpaced = train(|path| path.pacing_rate = rate);
            assert_eq!(unpaced.ends_at(9999, step, RTT), Some(expected((RTT + bursts) / 2)));
            let mut paced = train(|path| (path.pacing_rate, path.paced) = (rate, true));
            assert_eq!(paced.ends_at(9999, step, RTT), Some(expected(RTT + bursts)));
        }
    }

    #[test]
    fn the_ninth_sample_above_the_delay_threshold_ends_slow_start() {
        for (min_rtt, threshold) in [(16, 4), (80, 10), (200, 16)] {
            let rtt = MS * (min_rtt + threshold);
            let start = || Flow::new(HyStart::new(false, true), min_rtt);
            let above = rtt + Span::from_nanos(1);
            assert!(!start().next_round(RTT, above));
            assert_eq!(start().ends_at(20, MS, above), Some(9), "{min_rtt} ms");
            assert_eq!(start().ends_at(20, MS, rtt), None, "{min_rtt} ms");
        }
    }

    #[test]
    fn a_round_has_its_own_samples_and_one_low_sample_prevents_an_exit() {
        let mut flow = Flow::new(HyStart::new(false, true), 80);
        let delayed = MS * 100;
        for _ in 0..3 {
            assert!(!flow.next_round(MS * 10, delayed));
            assert_eq!(flow.ends_at(7, MS, delayed), None);
        }
        assert!(!flow.next_round(MS * 10, MS * 85));
        assert_eq!(flow.ends_at(50, MS, delayed), None);
    }

    #[test]
    fn below_16_packets_nothing_is_detected() {
        for (cwnd, found) in [(15.9, false), (16.0, true)] {
            let mut flow = Flow { cwnd, ..train(|_| {}) };
            assert_eq!(flow.ends_at(99, MS, RTT).is_some(), found);
            let mut flow = Flow { cwnd, ..Flow::new(HyStart::new(false, true), 80) };
            assert_eq!(flow.ends_at(99, MS, RTT).is_some(), found);
        }
    }

    /// HyStart++ after a round at `RTT` and `samples` more samples at `rtt` in a second one.
    fn plus_plus(samples: u32, rtt: Span) -> Flow<HyStartPlusPlus> {
        let mut flow = Flow::new(HyStartPlusPlus::new(), 100);
        assert_eq!(flow.ends_at(8, MS, RTT), None);
        assert!(!flow.next_round(MS, rtt));
        assert_eq!(flow.ends_at(samples - 1, MS, rtt), None);
        flow
    }

    const THRESHOLD: Span = Span::from_micros(112_500);

    #[test]
    fn a_rise_over_the_last_round_by_an_eighth_slows_growth_to_a_quarter() {
        assert_eq!(plus_plus(8, THRESHOLD).growth(4), 1.0);
        assert_eq!(plus_plus(7, THRESHOLD).growth(4), 4.0);
        assert_eq!(plus_plus(8, Span::from_micros(112_499)).growth(4), 4.0);
    }

    #[test]
    fn the_first_round_has_none_before_it_to_compare_with() {
        let mut flow = Flow::new(HyStartPlusPlus::new(), 10);
        assert_eq!(flow.ends_at(50, MS, RTT * 10), None);
        assert_eq!(flow.growth(4), 4.0);
    }

    #[test]
    fn slow_start_resumes_if_the_delay_falls_below_that_at_entry() {
        let mut flow = plus_plus(8, THRESHOLD);
        flow.next_round(MS, Span::from_micros(112_499));
        flow.ends_at(6, MS, RTT * 2);
        assert_eq!(flow.growth(4), 1.0, "seven samples do not decide");
        flow.ack(MS, RTT * 2);
        assert_eq!(flow.growth(4), 4.0);
    }

    #[test]
    fn css_ends_slow_start_after_five_rounds_including_that_of_entry() {
        let mut flow = plus_plus(8, THRESHOLD);
        for _ in 0..4 {
            assert!(!flow.next_round(MS, THRESHOLD));
            assert_eq!(flow.ends_at(20, MS, THRESHOLD), None);
        }
        assert!(flow.next_round(MS, THRESHOLD));
    }

    #[test]
    fn an_acknowledgement_counts_at_most_8_packets_without_pacing() {
        for (paced, slow, conservative) in [(false, 8.0, 2.0), (true, 40.0, 10.0)] {
            let mut flow = Flow::new(HyStartPlusPlus::new(), 100);
            flow.path.paced = paced;
            assert_eq!(flow.growth(40), slow);
            let mut flow = plus_plus(8, THRESHOLD);
            flow.path.paced = paced;
            assert_eq!(flow.growth(40), conservative);
        }
    }

    #[test]
    fn after_a_timeout_plus_plus_is_standard_slow_start() {
        let mut flow = plus_plus(8, THRESHOLD);
        let path = flow.path.clone();
        flow.slow_start.restart(&path);
        assert_eq!(flow.growth(40), 40.0);
        for _ in 0..10 {
            assert!(!flow.next_round(MS, RTT * 3));
            assert_eq!(flow.ends_at(20, MS, RTT * 3), None);
        }
        assert_eq!(flow.growth(40), 40.0);
    }

    /// RFC 9406, section 4.3.
    #[test]
    fn once_plus_plus_has_ended_slow_start_a_later_one_is_standard() {
        let mut flow = plus_plus(8, THRESHOLD);
        while !flow.next_round(MS, THRESHOLD) {}
        for _ in 0..10 {
            assert_eq!(flow.growth(40), 40.0);
            assert!(!flow.next_round(MS, RTT * 3));
            assert_eq!(flow.ends_at(20, MS, RTT * 3), None);
        }
    }

    /// cubictcp_acked and bictcp_reset.
    #[test]
    fn after_an_exit_detection_is_off_until_a_timeout() {
        let mut flow = train(|_| {});
        assert_eq!(flow.ends_at(99, MS, RTT), Some(51));
        assert!(!flow.next_round(MS, RTT * 3));
        assert_eq!(flow.ends_at(99, MS, RTT * 3), None);
        let path = flow.path.clone();
        flow.slow_start.restart(&path);
        assert_eq!(flow.ends_at(99, MS, RTT), Some(51));
    }

    #[test]
    fn a_round_ends_when_a_packet_sent_in_it_is_acknowledged() {
        let mut flow = Flow::new(HyStart::new(false, true), 80);
        assert_eq!(flow.ends_at(8, MS, RTT), None);
        flow.path.una = 100_000 - 1;
        assert!(flow.ack(MS, RTT), "the last packet of the round is its ninth sample");

        let mut flow = plus_plus(7, THRESHOLD);
        flow.path.una = 200_000 - 1;
        flow.ack(MS, THRESHOLD);
        assert_eq!(flow.growth(4), 1.0, "the last packet of the round is its eighth sample");
    }
}
