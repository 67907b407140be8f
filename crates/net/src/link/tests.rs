mod managed;
mod medium;

use super::*;
use proptest::prelude::*;

/// A packet with a size and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NumberedPacket {
    size: u32,
    number: u32,
}

impl Packet for NumberedPacket {
    fn size(&self) -> u32 {
        self.size
    }
}

pub(super) fn full(number: u32) -> NumberedPacket {
    NumberedPacket { size: 1500, number }
}

/// 100 Mbit/s, 10 ms: a packet of 1500 bytes takes 120 us to transmit.
pub(super) fn link(queue: Limit) -> Link<NumberedPacket> {
    Link::new(&LinkConfig {
        rate: NonZeroU64::new(100_000_000),
        delay: Span::from_millis(10),
        queue,
        ..LinkConfig::default()
    })
}

pub(super) fn us(us: u64) -> Time {
    Time::ZERO + Span::from_micros(us)
}

#[test]
fn packets_come_out_one_after_the_other_after_the_delay() {
    let mut link = link(Limit::Unlimited);
    for number in 0..3 {
        link.push(us(5), full(number)).expect("an unlimited queue takes all");
    }
    for (number, arrival) in [(0, 10_125), (1, 10_245), (2, 10_365)] {
        assert_eq!(link.next_arrival(), us(arrival));
        assert_eq!(link.pop(Time::from_nanos(us(arrival).as_nanos() - 1)), None);
        assert_eq!(link.pop(us(arrival)), Some(full(number)));
    }
    assert_eq!(link.next_arrival(), Time::MAX);
    assert_eq!(link.pop(Time::MAX), None);
}

#[test]
fn a_delay_line_delays_and_does_nothing_else() {
    let mut line = Link::delay_line(Span::from_millis(3));
    for number in 0..1000 {
        line.push(us(1), full(number)).expect("a delay line takes all");
    }
    assert_eq!(line.next_arrival(), us(3001));
    for number in 0..1000 {
        assert_eq!(line.pop(us(3001)), Some(full(number)));
    }
    assert_eq!(line.statistics(us(3001)).sent_packets, 1000);
}

#[test]
fn the_packet_in_service_does_not_count_against_a_limit_in_packets() {
    let mut link = link(Limit::Packets(2));
    for number in 0..3 {
        link.push(us(0), full(number)).expect("one in service, two wait");
    }
    assert_eq!(link.push(us(0), full(3)), Err(DropReason::Overflow));
    assert_eq!(link.push(Time::from_nanos(119_999), full(4)), Err(DropReason::Overflow));
    link.push(us(120), full(5)).expect("the second packet is in service by now");
    assert_eq!(link.push(us(120), full(6)), Err(DropReason::Overflow));
    assert_eq!(link.statistics(us(120)).dropped, 3);
}

#[test]
fn a_limit_in_bytes_admits_a_small_packet_where_a_large_one_drops() {
    let mut link = link(Limit::Bytes(3100));
    for number in 0..3 {
        link.push(us(0), full(number)).expect("one in service, 3000 bytes wait");
    }
    assert_eq!(
        link.push(us(0), NumberedPacket { size: 101, number: 3 }),
        Err(DropReason::Overflow)
    );
    assert_eq!(link.push(us(0), NumberedPacket { size: 100, number: 4 }), Ok(()));
    assert_eq!(link.statistics(us(0)).backlog, Backlog { packets: 3, bytes: 3100 });
}

#[test]
fn a_limit_in_time_drops_what_would_wait_longer() {
    let mut link = link(Limit::Time(Span::from_micros(240)));
    for number in 0..3 {
        link.push(us(0), full(number)).expect("waits for 0, 120 and 240 us");
    }
    assert_eq!(link.push(us(0), full(3)), Err(DropReason::Overflow));
    assert_eq!(link.push(us(119), full(4)), Err(DropReason::Overflow));
    assert_eq!(link.push(us(120), full(5)), Ok(()));
}

#[test]
fn statistics_tell_what_was_sent_and_what_waits() {
    let mut link = link(Limit::Unlimited);
    for number in 0..10 {
        link.push(us(0), full(number)).expect("an unlimited queue takes all");
    }
    let now = link.statistics(us(300));
    assert_eq!((now.sent_packets, now.sent_bytes), (3, 4500));
    assert_eq!(now.backlog, Backlog { packets: 7, bytes: 10_500 });
    let later = link.statistics(us(5000));
    assert_eq!((later.sent_packets, later.backlog), (10, Backlog::default()));
    assert_eq!(link.len(), 10);
}

#[test]
fn packets_leave_the_queue_without_calls_in_between() {
    let mut link = link(Limit::Unlimited);
    for number in 0..5 {
        link.push(us(0), full(number)).expect("an unlimited queue takes all");
    }
    while link.pop(us(20_000)).is_some() {}
    assert_eq!(link.statistics(us(20_000)).sent_packets, 5);
    link.push(us(20_000), full(5)).expect("the link is idle");
    assert_eq!(link.next_arrival(), us(30_120));
}

#[test]
fn a_random_loss_takes_neither_queue_nor_capacity() {
    let config = LinkConfig {
        rate: NonZeroU64::new(100_000_000),
        loss: 0.5,
        seed: 3,
        ..LinkConfig::default()
    };
    let mut link = Link::new(&config);
    let accepted = (0..1000).filter(|&n| link.push(us(0), full(n)).is_ok()).count() as u64;
    let statistics = link.statistics(us(0));
    assert_eq!(statistics.lost, 1000 - accepted);
    assert_eq!(link.plain.last_arrival(), us(120 * accepted));
}

pub(super) fn limits() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::Unlimited),
        (1u32..50).prop_map(Limit::Packets),
        (1u64..60_000).prop_map(Limit::Bytes),
        (1u64..5_000_000).prop_map(|ns| Limit::Time(Span::from_nanos(ns))),
    ]
}

proptest! {
    #[test]
    fn every_packet_is_delivered_dropped_lost_or_in_transit(
        rate in prop::option::of(10_000u64..1_000_000_000),
        delay in 0u64..20_000_000,
        queue in limits(),
        loss in 0.0..0.5,
        seed: u64,
        packets in prop::collection::vec((0u64..500_000, 40u32..9000), 1..500),
    ) {
        let rate = rate.and_then(NonZeroU64::new);
        let delay = Span::from_nanos(delay);
        let mut link = Link::new(&LinkConfig {
            rate, delay, queue, loss, seed, ..LinkConfig::default()
        });
        let (mut now, mut accepted, mut refused) = (Time::ZERO, Vec::new(), 0);
        let mut delivered = Vec::new();
        for (number, &(gap, size)) in packets.iter().enumerate() {
            now += Span::from_nanos(gap);
            delivered.extend(std::iter::from_fn(|| link.pop(now)));
            let packet = NumberedPacket { size, number: number as u32 };
            match link.push(now, packet) {
                Ok(()) => accepted.push(packet),
                Err(_) => refused += 1,
            }
            let statistics = link.statistics(now);
            prop_assert_eq!(statistics.dropped + statistics.lost, refused);
            prop_assert_eq!(delivered.len() + link.len(), accepted.len());
            prop_assert!(statistics.backlog.packets as usize <= link.len());
            let sent = statistics.sent_packets + u64::from(statistics.backlog.packets);
            prop_assert_eq!(sent, accepted.len() as u64);
            match queue {
                Limit::Packets(most) => prop_assert!(statistics.backlog.packets <= most),
                Limit::Bytes(most) => prop_assert!(statistics.backlog.bytes <= most),
                Limit::Time(_) | Limit::Unlimited => {}
            }
        }
        delivered.extend(std::iter::from_fn(|| link.pop(Time::MAX)));
        prop_assert_eq!(delivered, accepted, "all come out, in order");
    }

    #[test]
    fn departures_are_those_of_a_textbook_fifo(
        rate in 10_000u64..10_000_000_000,
        packets in prop::collection::vec((0u64..500_000, 40u32..9000), 1..200),
    ) {
        // Lindley: departure(i) = max(arrival(i), departure(i-1)) + service(i), here in exact
        // units of 1/rate ns.
        let mut link = Link::new(&LinkConfig {
            rate: NonZeroU64::new(rate),
            ..LinkConfig::default()
        });
        let (mut now, mut departure) = (0u64, 0u128);
        let mut expected = Vec::new();
        for &(gap, size) in &packets {
            now += gap;
            let arrival = u128::from(now) * u128::from(rate);
            departure = departure.max(arrival) + u128::from(size) * 8_000_000_000;
            expected.push(Time::from_nanos((departure / u128::from(rate)) as u64));
            link.push(Time::from_nanos(now), NumberedPacket { size, number: 0 }).expect("unlimited");
        }
        for time in expected {
            prop_assert_eq!(link.next_arrival(), time);
            link.pop(time).expect("the head has arrived");
        }
    }
}

#[test]
fn behind_a_token_bucket_only_packets_without_tokens_wait() {
    let mut link = Link::new(&LinkConfig {
        rate: NonZeroU64::new(100_000_000),
        bucket_bytes: Some(3_000),
        delay: Span::from_millis(10),
        queue: Limit::Packets(2),
        ..LinkConfig::default()
    });
    for number in 0..4 {
        link.push(us(0), full(number)).expect("two have tokens, two may wait");
    }
    assert_eq!(link.push(us(0), full(4)), Err(DropReason::Overflow));
    assert_eq!(link.statistics(us(0)).backlog.packets, 2);
    assert_eq!(link.statistics(us(120)).backlog.packets, 1);
    for arrival in [10_000, 10_000, 10_120, 10_240] {
        assert_eq!(link.next_arrival(), us(arrival));
        assert!(link.pop(us(arrival)).is_some());
    }
}

/// A single-rate policer drops what has no tokens, and never delays (RFC 2697 with one bucket).
#[test]
fn a_token_bucket_without_a_queue_drops_and_does_not_delay() {
    let mut link = Link::new(&LinkConfig {
        rate: NonZeroU64::new(100_000_000),
        bucket_bytes: Some(3_000),
        delay: Span::from_millis(10),
        queue: Limit::Packets(0),
        ..LinkConfig::default()
    });
    // Packets every 60 us at a rate of 120 us a packet: the bucket of two, then every second one.
    let mut passed = Vec::new();
    for number in 0..100 {
        let now = us(60 * u64::from(number));
        if link.push(now, full(number)).is_ok() {
            passed.push(number);
            assert_eq!(link.plain.last_arrival(), now + Span::from_millis(10));
        }
    }
    assert_eq!(passed[..5], [0, 1, 2, 4, 6]);
    assert_eq!(link.statistics(us(6_000)).dropped, 100 - passed.len() as u64);
    assert_eq!(passed.len(), 51);
}
