use super::*;
use dumbbell_units::Rate;

/// A connection in slow start whose acknowledgements the test generates.
struct Flow<S> {
    slow_start: S,
    path: Path,
    cwnd: f64,
}

impl<S: SlowStart> Flow<S> {
    fn new(slow_start: S) -> Flow<S> {
        let path = Path { next_seq: 100_000, ..Path::new(1448, Time::ZERO) };
        Flow { slow_start, path, cwnd: 100.0 }
    }

    /// The next acknowledgement begins a round.
    fn end_round(&mut self) {
        self.path.una = self.path.next_seq;
        self.path.next_seq += 100_000;
    }

    /// The first acknowledgement of the next round comes `gap` after the last one.
    fn next_round(&mut self, gap: Span, rtt: Span) -> bool {
        self.end_round();
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
    let mut flow = Flow::new(HyStart::new(true, false));
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

/// A flow whose first round trip took `min_rtt_ms`; the handshake took less.
fn delay(min_rtt_ms: u64) -> Flow<HyStart> {
    let mut flow = Flow::new(HyStart::new(false, true));
    flow.path.min_rtt = Some(MS);
    assert!(!flow.ack(MS, MS * min_rtt_ms));
    flow.end_round();
    flow
}

#[test]
fn the_ninth_sample_above_the_delay_threshold_ends_slow_start() {
    for (min_rtt, threshold) in [(16, 4), (80, 10), (200, 16)] {
        let rtt = MS * (min_rtt + threshold);
        let start = || delay(min_rtt);
        let above = rtt + Span::from_nanos(1);
        assert!(!start().next_round(RTT, above));
        assert_eq!(start().ends_at(20, MS, above), Some(9), "{min_rtt} ms");
        assert_eq!(start().ends_at(20, MS, rtt), None, "{min_rtt} ms");
    }
}

#[test]
fn a_round_has_its_own_samples_and_one_low_sample_prevents_an_exit() {
    let mut flow = delay(80);
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
        let mut flow = Flow { cwnd, ..delay(80) };
        assert_eq!(flow.ends_at(99, MS, RTT).is_some(), found);
    }
}

/// bictcp_reset.
#[test]
fn after_a_timeout_the_minimum_rtt_is_measured_anew() {
    let mut flow = delay(80);
    let path = flow.path.clone();
    flow.slow_start.restart(&path);
    assert_eq!(flow.ends_at(20, MS, RTT), None);
    flow.end_round();
    assert_eq!(flow.ends_at(20, MS, MS * 113), Some(9));
}

/// HyStart++ after a round at `RTT` and `samples` more samples at `rtt` in a second one.
fn plus_plus(samples: u32, rtt: Span) -> Flow<HyStartPlusPlus> {
    let mut flow = Flow::new(HyStartPlusPlus::new());
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
    let mut flow = Flow::new(HyStartPlusPlus::new());
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
        let mut flow = Flow::new(HyStartPlusPlus::new());
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
    let mut flow = delay(80);
    assert_eq!(flow.ends_at(8, MS, RTT), None);
    flow.path.una = 200_000 - 1;
    assert!(flow.ack(MS, RTT), "the last packet of the round is its ninth sample");

    let mut flow = plus_plus(7, THRESHOLD);
    flow.path.una = 200_000 - 1;
    flow.ack(MS, THRESHOLD);
    assert_eq!(flow.growth(4), 1.0, "the last packet of the round is its eighth sample");
}
