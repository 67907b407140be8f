use super::*;
use crate::aqm::tests::TestPacket;
use crate::rng::Stream;

fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

fn at(time: u64) -> Time {
    Time::ZERO + ms(time)
}

fn dualpi2(config: DualPi2Config) -> DualPi2<TestPacket> {
    DualPi2::new(config, 1500, Rng::new(1, Stream::Aqm))
}

fn classic(is_ecn: bool) -> TestPacket {
    TestPacket { is_ecn, ..TestPacket::default() }
}

fn l4s() -> TestPacket {
    TestPacket { is_ecn: true, is_l4s: true, ..TestPacket::default() }
}

/// Shares of `packet` that are (dropped, marked) at a base probability, without a step.
fn shares(pi2_prob: f64, packet: TestPacket, drop_on_overload: bool) -> (f64, f64) {
    let config =
        DualPi2Config { step_thresh: Span::MAX, drop_on_overload, ..DualPi2Config::default() };
    let mut queues = DualPi2 { pi2_prob, ..dualpi2(config) };
    let mut counters = AqmCounters::default();
    let count = 100_000;
    for _ in 0..count + 2 {
        queues.enqueue(Time::ZERO, packet);
    }
    while queues.backlog().packets > 2 && queues.dequeue(Time::ZERO, &mut counters).is_some() {}
    (counters.dropped as f64 / f64::from(count), counters.marked as f64 / f64::from(count))
}

fn assert_shares((dropped, marked): (f64, f64), expected: (f64, f64)) {
    let is_close = |share: f64, expected: f64| (share - expected).abs() < 0.005;
    let ok = is_close(dropped, expected.0) && is_close(marked, expected.1);
    assert!(ok, "({dropped}, {marked}), not {expected:?}");
}

/// Section 2.1: p_C = (p_CL / k)^2.
#[test]
fn classic_packets_see_the_square_of_what_l4s_packets_see_halved() {
    for pi2_prob in [0.05, 0.1, 0.3, 0.5] {
        let (p_c, p_cl) = (pi2_prob * pi2_prob, 2.0 * pi2_prob);
        assert_shares(shares(pi2_prob, classic(false), true), (p_c, 0.0));
        assert_shares(shares(pi2_prob, classic(true), true), (0.0, p_c));
        assert_shares(shares(pi2_prob, l4s(), true), (0.0, p_cl));
    }
}

#[test]
fn at_overload_classic_packets_are_dropped_and_l4s_packets_too() {
    let p_c = 0.7 * 0.7;
    assert_shares(shares(0.7, classic(true), true), (p_c, 0.0));
    assert_shares(shares(0.7, l4s(), true), (p_c, 1.0 - p_c));
    assert_shares(shares(0.7, l4s(), false), (0.0, 1.0));
}

/// Section A.1, line 5 of dualpi2_update: 0.16 * (20 - 15) ms + 3.2 * (20 - 17) ms.
#[test]
fn the_base_probability_follows_the_rfcs_equation() {
    let mut queues = dualpi2(DualPi2Config::default());
    queues.last_qdelay = ms(17);
    queues.calculate_probability(ms(20));
    assert!((queues.pi2_prob - (0.16 * 0.005 + 3.2 * 0.003)).abs() < 1e-12);
    queues.calculate_probability(Span::from_secs(10));
    assert_eq!(queues.pi2_prob, 1.0);
    queues.calculate_probability(Span::ZERO);
    assert_eq!(queues.pi2_prob, 0.0);
}

#[test]
fn without_drops_at_overload_every_l4s_packet_is_marked_at_most() {
    let config = DualPi2Config { drop_on_overload: false, ..DualPi2Config::default() };
    let mut queues = dualpi2(config);
    queues.calculate_probability(Span::from_secs(10));
    assert_eq!(queues.pi2_prob, 0.5);
}

#[test]
fn the_controller_sees_the_age_of_the_older_head_every_16_ms() {
    let mut queues = dualpi2(DualPi2Config::default());
    queues.enqueue(at(6), classic(false));
    queues.enqueue(at(10), l4s());
    queues.update_until(at(15));
    assert_eq!(queues.last_qdelay, Span::ZERO);
    queues.update_until(at(40));
    assert_eq!((queues.last_qdelay, queues.next_update), (ms(32 - 6), at(48)));
}

#[test]
fn l4s_packets_go_first_and_classic_packets_get_a_tenth_of_the_bytes() {
    let mut queues = dualpi2(DualPi2Config { step_thresh: Span::MAX, ..DualPi2Config::default() });
    let mut counters = AqmCounters::default();
    for _ in 0..2000 {
        queues.enqueue(Time::ZERO, classic(false));
        queues.enqueue(Time::ZERO, l4s());
    }
    let order: Vec<bool> = (0..1000)
        .map(|_| queues.dequeue(Time::ZERO, &mut counters).expect("it is queued").is_l4s)
        .collect();
    assert!(order[..8].iter().all(|&is_l4s| is_l4s));
    let of_l = order.iter().filter(|&&is_l4s| is_l4s).count();
    assert!((890..=910).contains(&of_l), "{of_l} of 1000");
}

#[test]
fn a_queue_alone_uses_the_whole_rate() {
    let mut queues = dualpi2(DualPi2Config::default());
    let mut counters = AqmCounters::default();
    for _ in 0..10 {
        queues.enqueue(Time::ZERO, classic(false));
    }
    let credit = queues.c_protection_credit;
    for _ in 0..10 {
        assert!(queues.dequeue(Time::ZERO, &mut counters).is_some());
    }
    assert_eq!(queues.c_protection_credit, credit, "nothing waited");
    assert!(queues.dequeue(Time::ZERO, &mut counters).is_none());
}

#[test]
fn l4s_packets_are_marked_after_more_than_a_millisecond_in_the_queue() {
    let mut queues = dualpi2(DualPi2Config::default());
    let mut counters = AqmCounters::default();
    let mut marked = |queues: &mut DualPi2<TestPacket>, packet, now| {
        queues.enqueue(at(0), packet);
        queues.dequeue(now, &mut counters).expect("it is queued").is_marked
    };
    assert!(!marked(&mut queues, l4s(), at(1)));
    assert!(marked(&mut queues, l4s(), at(1) + Span::from_nanos(1)));
    assert!(!marked(&mut queues, classic(true), at(10)), "the step is L's");
}

#[test]
fn less_than_two_packets_are_never_dropped_from_by_probability() {
    let mut queues = DualPi2 { pi2_prob: 1.0, ..dualpi2(DualPi2Config::default()) };
    let mut counters = AqmCounters::default();
    queues.enqueue(at(0), classic(false));
    queues.enqueue(at(0), classic(false));
    assert!(queues.dequeue(at(0), &mut counters).is_some(), "one packet stays behind");
    assert!(queues.dequeue(at(0), &mut counters).is_some());
}

#[test]
fn the_step_spares_packets_that_find_a_short_l4s_queue() {
    let mut queues = dualpi2(DualPi2Config { min_qlen_step: 2, ..DualPi2Config::default() });
    let mut counters = AqmCounters::default();
    for _ in 0..4 {
        queues.enqueue(at(0), l4s());
    }
    let mut marked = || queues.dequeue(at(5), &mut counters).map(|packet| packet.is_marked);
    let expected = [Some(false), Some(false), Some(true), Some(true), None];
    assert_eq!([(); 5].map(|()| marked()), expected);
}
