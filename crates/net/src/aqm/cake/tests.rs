use super::*;
use crate::aqm::tests::TestPacket;
use dumbbell_units::Span;

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_micros(us)
}

fn packet(flow: u32, size: u32) -> TestPacket {
    TestPacket { flow, size, ..TestPacket::default() }
}

fn rng() -> Rng {
    Rng::new(1, Stream::Aqm)
}

struct Bench {
    cake: Cake<TestPacket>,
    counters: AqmCounters<TestPacket>,
}

impl Bench {
    fn new() -> Bench {
        let cake = Cake::new(CakeConfig::default(), 1500, &mut rng());
        Bench { cake, counters: AqmCounters::default() }
    }

    fn put(&mut self, at: Time, packet: TestPacket, limit: u32) {
        let admits = |backlog: Backlog| backlog.packets < limit;
        self.cake.enqueue(at, packet, 12_000_000, admits, &mut self.counters);
    }
}

#[test]
fn a_sparse_flow_is_served_before_all_standing_queues() {
    let mut bench = Bench::new();
    for flow in 1..=8 {
        (0..50).for_each(|_| bench.put(us(0), packet(flow, 1500), 1000));
    }
    // A quantum is 366 bytes at 12 Mbit/s: a packet takes five rounds.
    (0..20).for_each(|_| assert!(bench.cake.dequeue(us(10), &mut bench.counters).is_some()));
    bench.put(us(20), packet(9, 200), 1000);
    let next = bench.cake.dequeue(us(30), &mut bench.counters);
    assert_eq!(next.map(|packet| packet.flow), Some(9));
}

/// The bytes that each of `flows` sends of 12 Mbit/s in 20 s, while all always have ten packets queued.
fn shares(config: CakeConfig, keys: &[FlowKeys]) -> Vec<f64> {
    let mut cake =
        Cake::new(CakeConfig { interval: Span::from_secs(1000), ..config }, 1500, &mut rng());
    cake.set_flow_keys(&Arc::from(keys));
    let mut counters = AqmCounters::default();
    let mut sent = vec![0.0; keys.len()];
    let put = |cake: &mut Cake<TestPacket>, now, flow| {
        cake.enqueue(now, packet(flow, 1500), 12_000_000, |_| true, &mut AqmCounters::default());
    };
    for flow in 0..10 * keys.len() {
        put(&mut cake, us(0), (flow % keys.len()) as u32);
    }
    for now in (1..20_000).map(|ms| us(ms * 1000)) {
        let packet = cake.dequeue(now, &mut counters).expect("all flows have packets");
        sent[packet.flow as usize] += 1.0 / 20_000.0;
        put(&mut cake, now, packet.flow);
    }
    sent
}

/// Host 0 has one flow and host 1 nine. A flow's quantum is divided by the number of its host's flows.
#[test]
fn hosts_share_equally_whatever_the_number_of_their_flows() {
    let of = |hosts, swap: bool| {
        let keys = |flow| {
            let hosts = [Some(u32::from(flow > 0)), None];
            let hosts = if swap { [hosts[1], hosts[0]] } else { hosts };
            FlowKeys { hosts, dscp: 0 }
        };
        let keys: Vec<FlowKeys> = (0..10).map(keys).collect();
        shares(CakeConfig { hosts, ..CakeConfig::default() }, &keys)
    };
    for (hosts, swap, expected) in [
        (CakeHosts::TripleIsolate, false, 0.5),
        (CakeHosts::TripleIsolate, true, 0.5),
        (CakeHosts::DualSrchost, false, 0.5),
        (CakeHosts::DualSrchost, true, 0.1),
        (CakeHosts::DualDsthost, false, 0.1),
        (CakeHosts::DualDsthost, true, 0.5),
        (CakeHosts::Flows, false, 0.1),
    ] {
        let shares = of(hosts, swap);
        assert!((shares[0] - expected).abs() < 0.005, "{hosts:?} {swap} {shares:?}");
        let other = (1.0 - expected) / 9.0;
        assert!(shares[1..].iter().all(|share| (share - other).abs() < 0.005), "{shares:?}");
    }
}

/// Two sources with the same destination and one with another: the load of a flow is that of its host with
/// more flows. Sources 0 and 1 have one flow each to destination 0, source 2 one to destination 1.
#[test]
fn triple_isolation_takes_the_side_with_more_flows() {
    let keys = [[0, 0], [1, 0], [2, 1]];
    let keys = keys.map(|hosts| FlowKeys { hosts: hosts.map(Some), dscp: 0 });
    let shares = shares(CakeConfig::default(), &keys);
    for (share, expected) in shares.iter().zip([0.25, 0.25, 0.5]) {
        assert!((share - expected).abs() < 0.005, "{shares:?}");
    }
}

/// cake_config_diffserv4: with all tins busy, video is limited to 1/2, voice to 1/4 and bulk to 1/16 of the rate;
/// best effort has the rest. cake_config_diffserv3: 1/4 and 1/16.
#[test]
fn busy_tins_have_the_shares_of_the_kernel_s_code() {
    let keys = [0, 8, 34, 46].map(|dscp| FlowKeys { dscp, ..FlowKeys::default() });
    for (tins, expected) in [
        (CakeTins::Diffserv4, [0.1875, 0.0625, 0.5, 0.25]),
        (CakeTins::Diffserv3, [0.34375, 0.0625, 0.34375, 0.25]),
        (CakeTins::Besteffort, [0.25; 4]),
    ] {
        let shares = shares(CakeConfig { tins, ..CakeConfig::default() }, &keys);
        for (share, expected) in shares.iter().zip(expected) {
            assert!((share - expected).abs() < 0.01, "{tins:?} {shares:?}");
        }
    }
}

#[test]
fn a_tin_alone_borrows_the_whole_rate() {
    let keys = [FlowKeys { dscp: 8, ..FlowKeys::default() }];
    assert!(shares(CakeConfig::default(), &keys)[0] > 0.999);
}

/// 100 flows in 1024 queues: about five pairs would share a queue without sets.
#[test]
fn flows_of_a_set_have_a_queue_each() {
    let mut bench = Bench::new();
    let flows = 0..100;
    flows.clone().for_each(|flow| bench.put(us(0), packet(flow, 1500), 1000));
    let numbers = |of: &dyn Fn(u32) -> usize| {
        flows.clone().map(of).collect::<std::collections::BTreeSet<usize>>().len()
    };
    let tin = &bench.cake.tins[0];
    assert!(numbers(&|flow| tin.flows.queue_of(flow)) < 100, "some hashes collide");
    assert_eq!(numbers(&|flow| tin.queue_of(flow)), 100);
}

/// An overflow leaves a probability of 1/256; it has gone after 16 visits, a target apart, while
/// another flow keeps the link busy.
#[test]
fn the_state_of_an_empty_queue_decays_while_another_is_served() {
    let mut bench = Bench::new();
    (0..11).for_each(|_| bench.put(us(20_000), packet(1, 1500), 10));
    let number = bench.cake.tins[0].queue_of(1);
    assert!(bench.cake.tins[0].flows.queues[number].aqm.cobalt.p_drop > 0.0);
    for ms in 20..500 {
        bench.put(us(ms * 1000), packet(2, 1500), 1000);
        bench.cake.dequeue(us(ms * 1000), &mut bench.counters);
    }
    let flow = &bench.cake.tins[0].flows.queues[number].aqm;
    assert!(flow.cobalt.p_drop == 0.0 && flow.set == Set::None, "{flow:?}");
    assert!(bench.cake.tins[0].decaying.is_empty());
}

/// An unresponsive flow of twice the rate and another of a fifth: overflow and BLUE take only from
/// the first.
#[test]
fn an_unresponsive_flow_loses_by_itself_what_does_not_fit() {
    let mut bench = Bench::new();
    let (mut sent, mut offered) = ([0_u32; 3], [0_u32; 3]);
    for ms in 0..60_000 {
        let now = us(ms * 1000);
        let mut offer = |bench: &mut Bench, flow: u32| {
            offered[flow as usize] += 1;
            bench.put(now, packet(flow, 1500), 100);
        };
        offer(&mut bench, 1);
        offer(&mut bench, 1);
        if ms % 5 == 0 {
            offer(&mut bench, 2);
        }
        if let Some(packet) = bench.cake.dequeue(now, &mut bench.counters) {
            sent[packet.flow as usize] += 1;
        }
    }
    assert!(sent[2] + 1 >= offered[2], "{sent:?} of {offered:?}");
    assert!(sent[1] > 45_000 && sent[1] < 48_100, "{sent:?}");
}

#[test]
fn a_packet_that_blue_drops_does_not_count_as_marked() {
    let mut bench = Bench::new();
    for _ in 0..20 {
        bench.put(us(0), TestPacket { is_ecn: true, ..TestPacket::default() }, 1000);
    }
    let number = bench.cake.tins[0].queue_of(0);
    bench.cake.tins[0].flows.queues[number].aqm.cobalt.p_drop = 1.0;
    let last = bench.cake.dequeue(us(200_000), &mut bench.counters).expect("the last one is sent");
    assert_eq!((bench.counters.dropped, bench.counters.marked), (19, u64::from(last.is_marked)));
}

#[test]
fn an_outage_leaves_the_parameters_as_they_are() {
    let mut bench = Bench::new();
    bench.put(us(0), packet(0, 1500), 1000);
    let parameters = bench.cake.tins[0].parameters;
    bench.cake.enqueue(us(1), packet(0, 1500), 0, |_| true, &mut bench.counters);
    assert_eq!(bench.cake.tins[0].parameters, parameters);
}
