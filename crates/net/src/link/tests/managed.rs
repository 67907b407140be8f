//! Links with AQM, varying rates, jitter, reordering and reroutes.

use super::{full, limits, link, us};
use crate::aqm::tests::TestPacket;
use crate::link::*;
use crate::{
    AckFilter, CakeConfig, CodelConfig, DualPi2Config, FqCodelConfig, FqPieConfig, GilbertElliott,
    MediumConfig, PieConfig, RedConfig, StepConfig, StepThreshold,
};
use proptest::prelude::*;
use std::collections::VecDeque;

fn packet(flow: u32, is_ecn: bool) -> TestPacket {
    TestPacket { flow, is_ecn, ..TestPacket::default() }
}

fn managed(aqm: AqmConfig, mbit: u64) -> Link<TestPacket> {
    Link::new(&LinkConfig {
        rate: NonZeroU64::new(mbit * 1_000_000),
        delay: Span::from_millis(10),
        aqm: Some(aqm),
        seed: 1,
        ..LinkConfig::default()
    })
}

#[test]
fn an_aqm_that_never_drops_sends_as_droptail_does() {
    let gentle = AqmConfig::Codel(CodelConfig::default());
    let (mut plain, mut managed) = (link(Limit::Packets(10)), managed(gentle, 100));
    for number in 0..500u64 {
        // At most three packets are queued.
        let now = us(number / 3 * 400);
        assert!(plain.push(now, full(0)).is_ok() && managed.push(now, packet(0, false)).is_ok());
        assert_eq!(plain.next_arrival(), managed.next_arrival());
        assert_eq!(plain.statistics(now), managed.statistics(now));
        while plain.pop(now).is_some() {
            assert!(managed.pop(now).is_some());
        }
        assert!(managed.pop(now).is_none());
        assert_eq!(plain.len(), managed.len());
    }
}

#[test]
fn a_link_with_jitter_fixes_delivery_times_on_arrival() {
    let mut link = Link::new(&LinkConfig {
        rate: NonZeroU64::new(10_000_000),
        delay: Span::from_millis(10),
        jitter: Span::from_millis(3),
        seed: 1,
        ..LinkConfig::default()
    });
    for number in 0..100 {
        link.push(us(number * 800), full(0)).expect("there is no limit");
        assert!(link.next_arrival_is_final());
    }
    while !link.is_empty() {
        let at = link.next_arrival();
        assert!(link.pop(Time::from_nanos(at.as_nanos() - 1)).is_none());
        while link.next_arrival() == at {
            assert!(link.pop(at).is_some());
        }
    }
}

#[test]
fn codel_drops_within_105_ms_of_an_overload_then_by_its_law() {
    // 10 Mbit/s: 1.2 ms per packet. Three packets arrive in the transmission time of two, so a
    // packet that arrives at t is queued for t/2, and one that departs at t has a sojourn time of
    // t/3. It exceeds 5 ms from the departure at 15.6 ms on (rounded up to a departure), and the
    // first drop is 100 ms later.
    let mut link = managed(AqmConfig::Codel(CodelConfig::default()), 10);
    link.record_discarded();
    let mut drops = Vec::new();
    for number in 0..2_000 {
        link.push(us(number * 800), packet(0, false)).expect("there is no limit");
        while link.pop(us(number * 800)).is_some() {}
        drops.extend(std::iter::from_fn(|| link.take_discarded()).map(|(at, ..)| at));
    }
    let first = drops[0];
    assert!(us(115_000) <= first && first <= us(118_000), "{first:?}");
    let (mut expected, mut inv_sqrt) = (first.as_nanos() as f64, 1.0);
    for (count, at) in (1..).zip(&drops[1..]) {
        // One step of Newton's method, as in Linux.
        inv_sqrt *= (3.0 - f64::from(count) * inv_sqrt * inv_sqrt) / 2.0;
        expected += 100e6 * inv_sqrt;
        let late = at.as_nanos() as f64 - expected;
        // Each wait is rounded down to 1/2^16 of the interval.
        assert!((-60e3..1.2e6).contains(&late), "drop {count} is late by {late} ns");
    }
    assert!(drops.len() > 50, "{}", drops.len());
    assert_eq!(link.statistics(us(1_600_000)).dropped, drops.len() as u64);
}

#[test]
fn pie_holds_the_delay_of_an_overload_near_its_target() {
    // 10 Mbit/s and an offered load of 110 %: one packet in eleven must be dropped.
    let mut link = managed(AqmConfig::Pie(PieConfig::default()), 10);
    let (mut delays, mut number) = (Vec::new(), 0u64);
    while number < 50_000 {
        let now = Time::from_nanos(number * 1_090_909);
        if link.push(now, packet(0, false)).is_ok() && number > 25_000 {
            // What is queued takes 0.8 us a byte, after the rest of the packet in transmission.
            delays.push(link.statistics(now).backlog.bytes as f64 * 0.8e-6 + 0.6e-3);
        }
        while link.pop(now).is_some() {}
        number += 1;
    }
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    assert!((0.012..0.018).contains(&mean), "{mean}");
    let dropped = link.statistics(Time::from_nanos(50_000 * 1_090_909)).dropped as f64 / 50_000.0;
    assert!((dropped - 1.0 / 11.0).abs() < 0.01, "{dropped}");
}

#[test]
fn fq_codel_delays_a_sparse_flow_by_at_most_one_packet_time() {
    let mut link = managed(AqmConfig::FqCodel(FqCodelConfig::default()), 10);
    let mut worst = Span::ZERO;
    let mut sent = std::collections::BTreeMap::<u32, u64>::new();
    let mut on_the_way = VecDeque::new();
    for tick in 0..20_000u64 {
        let now = us(tick * 500);
        // Three flows offer 24 Mbit/s together to 10 Mbit/s; a fourth sends 200 bytes every 20 ms.
        link.push(now, packet(1 + (tick % 3) as u32, false)).expect("there is no limit");
        if tick % 40 == 7 {
            link.push(now, TestPacket { size: 200, ..packet(9, false) })
                .expect("there is no limit");
            on_the_way.push_back(now);
        }
        while link.next_arrival() <= now {
            let at = link.next_arrival();
            let Some(packet) = link.pop(at) else { continue };
            *sent.entry(packet.flow).or_default() += 1;
            if packet.flow == 9 {
                let since = on_the_way.pop_front().expect("it was pushed");
                // At the start the queues of the others are new as well.
                if since > us(100_000) {
                    worst = worst.max(at.since(since));
                }
            }
        }
    }
    // 1.2 ms for the packet in transmission, 0.16 ms for its own, 10 ms of propagation.
    assert!(worst <= Span::from_micros(11_360), "{worst}");
    let bulk: Vec<u64> = (1..4).map(|flow| sent[&flow]).collect();
    assert!(bulk.iter().all(|&n| n.abs_diff(bulk[0]) <= 2), "{bulk:?}");
    assert!(sent[&9] >= 499);
}

#[test]
fn red_marks_ecn_capable_packets_and_drops_others() {
    let red = RedConfig { weight: 0.1, ..RedConfig::default() };
    let counts = |is_ecn| {
        let mut link = managed(AqmConfig::Red(red), 10);
        let mut marked = 0;
        for number in 0..20_000u64 {
            let now = us(number * 1_150);
            // A drop is expected here and needs no handling.
            let _ = link.push(now, packet(0, is_ecn));
            marked += std::iter::from_fn(|| link.pop(now)).filter(|p| p.is_marked).count() as u64;
        }
        let statistics = link.statistics(us(20_000 * 1_150));
        assert!(statistics.marked - marked < 20, "all marks come out but those on the link");
        (statistics.dropped, statistics.marked)
    };
    // The offered load is 4 % too high. Without marks RED drops the excess. With marks the average
    // rises until packets are dropped too, as no sender slows down.
    let (dropped, marked) = counts(false);
    assert!(marked == 0 && dropped.abs_diff(833) < 60, "{dropped}");
    let (dropped, marked) = counts(true);
    assert!(marked > 500 && dropped.abs_diff(833) < 60, "{dropped}, {marked}");
}

#[test]
fn traces_give_departures_to_the_nanosecond_with_or_without_aqm() {
    for aqm in [None, Some(AqmConfig::Codel(CodelConfig::default()))] {
        let times = [2, 2, 5, 10].map(|ms| us(ms * 1000));
        let mut link = Link::new(&LinkConfig {
            rate_process: Some(RateProcess::Trace(times.to_vec())),
            delay: Span::from_millis(7),
            aqm,
            ..LinkConfig::default()
        });
        (0..6).for_each(|_| link.push(us(100), packet(0, false)).expect("there is no limit"));
        assert_eq!(link.statistics(us(100)).backlog.packets, 6);
        assert_eq!(link.statistics(us(5_000)).backlog.packets, 3);
        let mut arrivals = Vec::new();
        while !link.is_empty() {
            let at = link.next_arrival();
            arrivals.extend(link.pop(at).map(|_| at));
        }
        assert_eq!(arrivals, [9, 9, 12, 17, 19, 19].map(|ms| us(ms * 1000)));
    }
}

#[test]
fn piecewise_rates_give_departures_to_the_nanosecond() {
    let steps = vec![(us(0), 12_000_000), (us(5_000), 0), (us(8_000), 1_200_000)];
    let mut link = Link::new(&LinkConfig {
        rate_process: Some(RateProcess::Piecewise(steps)),
        delay: Span::from_millis(1),
        queue: Limit::Packets(7),
        ..LinkConfig::default()
    });
    let accepted = (0..10).filter(|_| link.push(us(500), packet(0, false)).is_ok()).count();
    assert_eq!(accepted, 8, "one is in service, seven wait");
    // A packet takes 1 ms until 5 ms, when half of the fifth is sent. Its rest takes 5 ms from 8 ms
    // on, and each of the next ones 10 ms.
    for arrival in [2_500, 3_500, 4_500, 5_500, 14_000, 24_000, 34_000, 44_000] {
        assert_eq!(link.next_arrival(), us(arrival));
        assert!(link.pop(us(arrival)).is_some());
    }
}

/// Rates that step up a hundredfold, down, to zero and back.
fn steps() -> RateProcess {
    let steps =
        [(0, 1_000_000), (100, 100_000_000), (300, 10_000_000), (500, 0), (520, 10_000_000)];
    RateProcess::Piecewise(steps.map(|(ms, rate)| (us(ms * 1000), rate)).to_vec())
}

#[test]
fn a_limit_admits_the_same_packets_with_or_without_aqm() {
    // AQMs that never drop or mark.
    let never = Span::from_secs(1_000);
    let red = RedConfig { min: 1e9, max: 2e9, ..RedConfig::default() };
    let aqms = [
        AqmConfig::Red(red),
        AqmConfig::Codel(CodelConfig { target: never, ..CodelConfig::default() }),
        AqmConfig::Pie(PieConfig { target: never, ..PieConfig::default() }),
    ];
    let trace = RateProcess::Trace([1, 1, 2, 9, 30].map(|ms| us(ms * 1000)).to_vec());
    let rate = NonZeroU64::new(10_000_000);
    let kinds = [
        LinkConfig { rate, ..LinkConfig::default() },
        LinkConfig { rate, bucket_bytes: Some(15_000), ..LinkConfig::default() },
        LinkConfig { rate_process: Some(steps()), ..LinkConfig::default() },
        LinkConfig { rate_process: Some(trace), ..LinkConfig::default() },
    ];
    let time = Limit::Time(Span::from_millis(25));
    let limits = [time, Limit::Packets(20), Limit::Packets(0), Limit::Bytes(30_500)];
    let of_kind =
        |kind| aqms.into_iter().flat_map(move |aqm| limits.map(|queue| (kind, aqm, queue)));
    for (kind, aqm, queue) in kinds.iter().flat_map(of_kind) {
        let droptail = LinkConfig { queue, ..kind.clone() };
        let managed = LinkConfig { aqm: Some(aqm), ..droptail.clone() };
        let mut links = [droptail, managed].map(|config| Link::<TestPacket>::new(&config));
        let mut refused = 0;
        for number in 0..4_000u64 {
            // 7 ms of 24 Mbit/s, then a pause of 3 ms.
            let now = us(number / 14 * 10_000 + number % 14 * 500);
            let [plain, managed] = [0, 1].map(|i| links[i].push(now, packet(0, false)));
            assert_eq!(plain, managed, "{kind:?} with {aqm:?}, {queue:?}, packet {number}");
            refused += u32::from(plain.is_err());
        }
        assert!((100..3_990).contains(&refused), "{refused} of {kind:?}, {queue:?}");
    }
}

#[test]
fn fq_codel_limit_in_time_follows_the_current_rate() {
    let codel = CodelConfig { target: Span::from_secs(1_000), ..CodelConfig::default() };
    let mut link = Link::new(&LinkConfig {
        rate_process: Some(RateProcess::Piecewise(vec![
            (us(0), 1_000_000),
            (us(100_000), 100_000_000),
        ])),
        queue: Limit::Time(Span::from_millis(12)),
        aqm: Some(AqmConfig::FqCodel(FqCodelConfig { codel, ..FqCodelConfig::default() })),
        ..LinkConfig::default()
    });
    link.record_discarded();
    let mut most = |from, to| {
        let times = (from..to).step_by(60).map(us);
        let backlog = times.map(|now| {
            link.push(now, packet(0, false)).expect("others make room");
            link.statistics(now).backlog.packets
        });
        backlog.max()
    };
    // At first a packet takes 12 ms, so one may be queued behind the rest of the one in
    // transmission; later it takes 0.12 ms, so 100 may be queued.
    assert_eq!(most(0, 80_000), Some(1));
    assert!(most(100_000, 200_000) >= Some(100));
    assert!(
        std::iter::from_fn(|| link.take_discarded()).all(|(_, why, _)| why == DropReason::Overflow)
    );
}

/// At 1 Mbit/s a packet takes 12 ms, and COBALT's delay is that of four packets. At 100 Mbit/s, or without
/// a limit, it is 5 ms, and the third packet would be dropped.
#[test]
fn cake_follows_the_rate_without_arrivals_and_through_an_outage() {
    let dropped = |steps: &[(u64, u64)], arrivals: &[u64]| {
        let steps = steps.iter().map(|&(ms, mbit)| (us(ms * 1000), mbit * 1_000_000)).collect();
        let mut link = Link::new(&LinkConfig {
            rate_process: Some(RateProcess::Piecewise(steps)),
            aqm: Some(AqmConfig::Cake(CakeConfig::default())),
            ..LinkConfig::default()
        });
        for &arrival in arrivals {
            link.push(us(arrival), packet(0, false)).expect("there is no limit");
        }
        link.statistics(us(1_000_000)).dropped
    };
    assert_eq!(dropped(&[(0, 100)], &[950; 4]), 0);
    assert_eq!(dropped(&[(0, 100), (1, 1)], &[950; 4]), 0, "no packet arrives at the lower rate");
    assert_eq!(
        dropped(&[(0, 1), (1, 0), (11, 1)], &[0, 0, 0, 2000]),
        0,
        "one arrives in an outage"
    );
}

/// Five packets are queued at all times, 60 ms at 1 Mbit/s: more than a full packet of 1500 bytes, less than
/// one of 9000.
#[test]
fn aqms_refer_to_the_largest_packet_of_the_link() {
    let codel = CodelConfig { interval: Span::from_millis(1), ..CodelConfig::default() };
    let pie = PieConfig { burst: Span::ZERO, update: Span::from_millis(1), ..PieConfig::default() };
    let dualpi2 = DualPi2Config { tupdate: Span::from_millis(1), ..DualPi2Config::default() };
    let aqms = [
        AqmConfig::Codel(codel),
        AqmConfig::FqCodel(FqCodelConfig { codel, ..FqCodelConfig::default() }),
        AqmConfig::Cake(CakeConfig::default()),
        AqmConfig::Pie(pie),
        AqmConfig::DualPi2(dualpi2),
    ];
    for aqm in aqms {
        let dropped = |max_packet| {
            let mut link = Link::new(&LinkConfig {
                rate: NonZeroU64::new(1_000_000),
                aqm: Some(aqm),
                max_packet,
                seed: 1,
                ..LinkConfig::default()
            });
            for number in 0..2_000 {
                let now = us(number * 12_000);
                for _ in link.statistics(now).backlog.packets..5 {
                    // A drop on arrival is expected and needs no handling.
                    let _ = link.push(now, packet(0, false));
                }
                while link.pop(now).is_some() {}
            }
            link.statistics(us(24_000_000)).dropped
        };
        assert!(dropped(0) > 0 && dropped(0) == dropped(1500), "{aqm:?}");
        assert_eq!(dropped(9000), 0, "{aqm:?}");
    }
}

#[test]
fn red_decays_avg_on_an_idle_link_at_the_current_rate() {
    // All packets are dropped from an average of 10 packets on. A packet takes 12 ms at first and
    // 0.12 ms later.
    let red =
        RedConfig { min: 10.0, max: 10.0, weight: 0.1, gentle: false, ..RedConfig::default() };
    let passes_after = |idle| {
        let mut link = Link::new(&LinkConfig {
            rate_process: Some(RateProcess::Piecewise(vec![
                (us(0), 1_000_000),
                (us(1_000), 100_000_000),
            ])),
            aqm: Some(AqmConfig::Red(red)),
            ..LinkConfig::default()
        });
        let (begin, mut queue, mut average) = (us(2_000), 0, 0.0);
        // All packets arrive at once: one is sent and the rest are queued until the average is at
        // 10.
        for number in 0..60 {
            average += 0.1 * (f64::from(queue) - average);
            let passes = link.push(begin, packet(0, false)).is_ok();
            assert_eq!(passes, average < 10.0);
            queue += i32::from(passes && number > 0);
        }
        let end = begin + Span::from_micros(120) * (queue as u64 + 1);
        let idle = Span::from_micros(120) * idle;
        (link.push(end + idle, packet(0, false)).is_ok(), average)
    };
    for packets in [1, 2, 4, 6, 8, 10, 20] {
        let (passes, average) = passes_after(packets);
        assert_eq!(passes, average * 0.9f64.powi(packets as i32) < 10.0, "{packets}");
    }
    assert!(!passes_after(1).0 && passes_after(20).0);
}

fn aqms() -> impl Strategy<Value = AqmConfig> {
    let codel = CodelConfig {
        target: Span::from_micros(100),
        interval: Span::from_micros(1000),
        ce_threshold: Some(Span::from_micros(50)),
        ..CodelConfig::default()
    };
    let pie = PieConfig {
        target: Span::from_micros(100),
        update: Span::from_micros(100),
        burst: Span::ZERO,
        alpha: 100.0,
        beta: 1000.0,
        ..PieConfig::default()
    };
    let red = RedConfig { min: 1.0, max: 4.0, weight: 0.5, ..RedConfig::default() };
    let dualpi2 = DualPi2Config {
        target: Span::from_micros(100),
        tupdate: Span::from_micros(100),
        alpha: 100.0,
        beta: 1000.0,
        ..DualPi2Config::default()
    };
    prop_oneof![
        Just(AqmConfig::Red(red)),
        Just(AqmConfig::Codel(codel)),
        Just(AqmConfig::FqCodel(FqCodelConfig { codel, quantum: 600, queues: 3 })),
        Just(AqmConfig::Pie(pie)),
        Just(AqmConfig::Cake(CakeConfig {
            target: Span::from_micros(100),
            interval: Span::from_micros(1000),
            ecn: true,
            queues: 3,
            ack_filter: AckFilter::Aggressive,
            ..CakeConfig::default()
        })),
        Just(AqmConfig::FqPie(FqPieConfig { pie, quantum: 600, queues: 3 })),
        Just(AqmConfig::DualPi2(dualpi2)),
        Just(AqmConfig::Step(StepConfig { threshold: StepThreshold::Packets(1) })),
    ]
}

fn varyings() -> impl Strategy<Value = RateProcess> {
    let steps = prop::collection::vec((1u64..5_000_000, 0u64..1_000_000_000), 0..6);
    let trace = prop::collection::vec(0u64..8, 0..20);
    prop_oneof![
        steps.prop_map(|steps| {
            let mut line = vec![(Time::ZERO, 10_000_000)];
            for (gap, rate) in steps {
                let at = line[line.len() - 1].0 + Span::from_nanos(gap);
                line.push((at, rate));
            }
            line.push((Time::ZERO + Span::from_secs(1), 10_000_000));
            RateProcess::Piecewise(line)
        }),
        trace.prop_map(|mut times| {
            times.push(8);
            times.sort_unstable();
            RateProcess::Trace(times.into_iter().map(|ms| us(ms * 1000)).collect())
        }),
    ]
}

fn media() -> impl Strategy<Value = MediumConfig> {
    (1u32..5, 1u64..1000, 0u32..3).prop_map(|(frames, us, stations)| MediumConfig {
        frames,
        time: Span::from_micros(us),
        stations,
        busy: Span::from_micros(100),
    })
}

prop_compose! {
    fn any_config()(
        rate in prop::option::of(1_000_000u64..1_000_000_000),
        bucket_bytes in prop::option::weighted(0.3, 1u64..20_000),
        rate_process in prop::option::weighted(0.4, varyings()),
        delay in 0u64..5_000_000,
        reroutes in prop::collection::btree_map(
            prop_oneof![1 => Just(0), 4 => 1u64..50_000_000],
            0u64..5_000_000,
            0..3,
        ),
        queue in limits(),
        aqm in prop::option::weighted(0.8, aqms()),
        loss in 0.0..0.2,
        is_bursty: bool,
        jitter in prop_oneof![Just(0), 1u64..5_000_000],
        share in prop_oneof![Just(0.0), 0.0..1.0],
        late in 0u64..5_000_000,
        loss_steps in prop::collection::btree_map(0u64..50_000_000, 0.0..0.5, 0..3),
        medium in prop::option::weighted(0.3, media()),
        seed: u64,
    ) -> LinkConfig {
        let bursts = GilbertElliott { p: 0.1, r: 0.4, bad: 0.5, good: 0.05 };
        LinkConfig {
            rate: rate.and_then(NonZeroU64::new),
            bucket_bytes,
            rate_process,
            delay: Span::from_nanos(delay),
            reroutes: reroutes
                .into_iter()
                .map(|(at, delay)| (Time::from_nanos(at), Span::from_nanos(delay)))
                .collect(),
            max_packet: 1500,
            queue,
            aqm,
            loss,
            loss_model: is_bursty.then_some(LossModel::GilbertElliott(bursts)),
            jitter: Span::from_nanos(jitter),
            reordering: Reordering { share, delay: Span::from_nanos(late) },
            loss_steps: loss_steps
                .into_iter()
                .map(|(at, probability)| (Time::from_nanos(at), probability))
                .collect(),
            medium,
            seed,
        }
    }
}

/// Sends packets of (gap in ns, size, flow, ECN-capable) over a link and records their fates. With
/// `polls` the link is also accessed between two packets.
fn journey(config: &LinkConfig, packets: &[(u64, u32, u32, bool)], polls: bool) -> Journey {
    let mut link = Link::new(config);
    link.record_discarded();
    let mut journey = Journey::default();
    let mut now = Time::ZERO;
    let pop_until = |link: &mut Link<TestPacket>, journey: &mut Journey, now| {
        while link.next_arrival() <= now && !link.is_empty() {
            let at = link.next_arrival();
            journey.delivered.extend(link.pop(at).map(|packet| (at, packet)));
        }
        journey.discarded.extend(std::iter::from_fn(|| link.take_discarded()));
    };
    for &(gap, size, flow, is_ecn) in packets {
        now += Span::from_nanos(gap);
        if polls {
            pop_until(&mut link, &mut journey, now - Span::from_nanos(gap / 2));
            link.statistics(now - Span::from_nanos(gap / 3));
        }
        pop_until(&mut link, &mut journey, now);
        let is_l4s = is_ecn && flow.is_multiple_of(2);
        let packet = TestPacket { size, flow, is_ecn, is_l4s, ..TestPacket::default() };
        let is_in = link.push(now, packet).is_ok();
        *(if is_in { &mut journey.accepted } else { &mut journey.refused }) += 1;
        journey.discarded.extend(std::iter::from_fn(|| link.take_discarded()));
        let statistics = link.statistics(now);
        journey.discarded.extend(std::iter::from_fn(|| link.take_discarded()));
        journey.check(&link, &statistics);
    }
    pop_until(&mut link, &mut journey, Time::ZERO + Span::from_secs(100));
    assert!(link.is_empty(), "all comes out");
    let statistics = link.statistics(Time::ZERO + Span::from_secs(100));
    journey.check(&link, &statistics);
    let marked = journey.delivered.iter().filter(|(_, packet)| packet.is_marked).count();
    assert!(marked as u64 <= statistics.marked);
    journey
}

#[derive(Debug, Default, PartialEq)]
struct Journey {
    accepted: usize,
    refused: usize,
    delivered: Vec<(Time, TestPacket)>,
    discarded: Vec<(Time, DropReason, TestPacket)>,
}

impl Journey {
    /// Every packet is accounted for, and the statistics agree.
    fn check(&self, link: &Link<TestPacket>, statistics: &LinkStatistics) {
        let gone = self.delivered.len() + self.discarded.len();
        assert_eq!(self.accepted, gone + link.len());
        let not_passed = (self.refused + self.discarded.len()) as u64;
        assert_eq!(not_passed, statistics.dropped + statistics.lost);
        let begun = self.accepted - self.discarded.len() - statistics.backlog.packets as usize;
        assert_eq!(begun as u64, statistics.sent_packets);
    }
}

proptest! {
    #[test]
    fn packets_of_any_link_are_delivered_dropped_lost_or_in_transit(
        config in any_config(),
        packets in prop::collection::vec((0u64..500_000, 40u32..3000, 0u32..6, any::<bool>()), 1..300),
    ) {
        let once = journey(&config, &packets, false);
        prop_assert_eq!(&once, &journey(&config, &packets, false), "by the seed alone");
        prop_assert_eq!(&once, &journey(&config, &packets, true), "with or without accesses in between");
        prop_assert!(once.delivered.is_sorted_by_key(|&(at, _)| at));
    }
}
