//! The engine with a toy protocol.

mod toy;

use dumbbell_net::{
    AqmConfig, CodelConfig, DropReason, DualPi2Config, Endpoint, FqCodelConfig, GilbertElliott,
    Limit, Link, LinkConfig, LinkId, LossModel, PieConfig, RateProcess, RedConfig, Reordering,
    Routes, StepConfig,
};
use dumbbell_sim::{EndpointId, Engine, Observer, RoutedPacket, SimEndpoint};
use dumbbell_units::{Span, Time};
use proptest::prelude::*;
use std::num::NonZeroU64;
use toy::{Toy, ToyPacket};

/// All events of a run.
#[derive(Default, Debug, PartialEq, Eq)]
struct EventLog {
    sent: Vec<(Time, EndpointId, u32)>,
    delivered: Vec<(Time, EndpointId, u32)>,
    dropped: Vec<(Time, EndpointId, u32)>,
}

impl Observer<ToyPacket> for EventLog {
    fn on_sent(&mut self, now: Time, from: EndpointId, packet: &ToyPacket) {
        self.sent.push((now, from, packet.number));
    }

    fn on_delivered(&mut self, now: Time, to: EndpointId, packet: &ToyPacket) {
        self.delivered.push((now, to, packet.number));
    }

    fn on_dropped(
        &mut self,
        now: Time,
        from: EndpointId,
        _: LinkId,
        _: DropReason,
        packet: &ToyPacket,
    ) {
        self.dropped.push((now, from, packet.number));
    }
}

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_micros(us)
}

fn config(mbit: u64, delay_us: u64) -> LinkConfig {
    LinkConfig {
        rate: NonZeroU64::new(mbit * 1_000_000),
        delay: Span::from_micros(delay_us),
        ..LinkConfig::default()
    }
}

/// One pair of endpoints: data over two links, acknowledgements over a delay line.
fn two_hops(sender: Toy) -> Engine<Toy, EventLog> {
    let links = vec![
        Link::new(&config(100, 1000)),
        Link::new(&config(10, 2000)),
        Link::delay_line(Span::from_micros(3000)),
    ];
    let mut routes = Routes::default();
    let there = routes.add(&[LinkId(0), LinkId(1)]);
    let back = routes.add(&[LinkId(2)]);
    let pair = [(sender, there), (Toy::receiver(), back)];
    Engine::new(links, routes, pair, EventLog::default())
}

#[test]
fn packets_over_two_links_arrive_exactly_on_time() {
    let mut engine = two_hops(Toy::sender(2, us(500), Span::from_secs(1)));
    engine.run_until(us(12_000));
    let (sender, receiver) = (EndpointId(0), EndpointId(1));
    // 1500 bytes take 120 us on the first link and 1200 us on the second. Packet 0 reaches the
    // second link at 500 + 120 + 1000 = 1620 and the receiver at 1620 + 1200 + 2000 = 4820; packet
    // 1 is queued behind it and arrives 1200 us later. Packet 2 leaves with the acknowledgement of
    // packet 0 at 4820 + 3000 = 7820 and takes 4320 us.
    assert_eq!(
        engine.observer().delivered,
        [
            (us(4820), receiver, 0),
            (us(6020), receiver, 1),
            (us(7820), sender, 0),
            (us(9020), sender, 1),
        ]
    );
    assert_eq!(
        engine.observer().sent,
        [
            (us(500), sender, 0),
            (us(500), sender, 1),
            (us(4820), receiver, 0),
            (us(6020), receiver, 1),
            (us(7820), sender, 2),
            (us(9020), sender, 3),
        ]
    );
    engine.run_until(us(7820 + 4320));
    assert_eq!(engine.observer().delivered.last(), Some(&(us(12_140), receiver, 2)));
}

#[test]
fn events_at_the_end_time_itself_still_happen() {
    let mut engine = two_hops(Toy::sender(1, us(0), Span::from_secs(1)));
    engine.run_until(Time::from_nanos(us(4320).as_nanos() - 1));
    assert!(engine.observer().delivered.is_empty());
    engine.run_until(us(4320));
    assert_eq!(engine.observer().delivered.len(), 1);
}

/// An endpoint whose timer is set when packets arrive.
#[derive(Default)]
struct TimerEndpoint {
    /// (arrival of a packet, time to which the timer is then set)
    resets: Vec<(Time, Time)>,
    timer: Time,
    expirations: Vec<Time>,
}

impl Endpoint for TimerEndpoint {
    type Packet = ToyPacket;

    fn handle(&mut self, now: Time, _: &ToyPacket) {
        if let Some(&(_, timer)) = self.resets.iter().find(|(at, _)| *at == now) {
            self.timer = timer;
        }
    }

    fn poll(&mut self, now: Time) -> Option<ToyPacket> {
        if now >= self.timer {
            self.expirations.push(now);
            self.timer = Time::MAX;
        }
        None
    }

    fn next_timeout(&self) -> Time {
        self.timer
    }
}

enum Either {
    Toy(Toy),
    TimerEndpoint(TimerEndpoint),
}

impl Endpoint for Either {
    type Packet = ToyPacket;

    fn handle(&mut self, now: Time, packet: &ToyPacket) {
        match self {
            Either::Toy(toy) => toy.handle(now, packet),
            Either::TimerEndpoint(timer_endpoint) => timer_endpoint.handle(now, packet),
        }
    }

    fn poll(&mut self, now: Time) -> Option<ToyPacket> {
        match self {
            Either::Toy(toy) => toy.poll(now),
            Either::TimerEndpoint(timer_endpoint) => timer_endpoint.poll(now),
        }
    }

    fn next_timeout(&self) -> Time {
        match self {
            Either::Toy(toy) => toy.next_timeout(),
            Either::TimerEndpoint(timer_endpoint) => timer_endpoint.next_timeout(),
        }
    }
}

impl SimEndpoint for Either {}

/// When a timer expires that is reset at these times; packets arrive at 100, 200, ... 900 us.
fn expirations_of(first: Time, resets: &[(Time, Time)]) -> Vec<Time> {
    let mut routes = Routes::default();
    let route = routes.add(&[LinkId(0)]);
    let sender = Toy::sender(1, us(0), Span::from_micros(100));
    let timer_endpoint =
        TimerEndpoint { resets: resets.to_vec(), timer: first, expirations: Vec::new() };
    let pair = [(Either::Toy(sender), route), (Either::TimerEndpoint(timer_endpoint), route)];
    let line = Link::delay_line(Span::from_micros(100));
    let mut engine = Engine::new(vec![line], routes, pair, ());
    engine.run_until(us(1000));
    match engine.endpoint(EndpointId(1)) {
        Either::TimerEndpoint(timer_endpoint) => timer_endpoint.expirations.clone(),
        Either::Toy(_) => unreachable!("endpoint 1 is the timer_endpoint"),
    }
}

#[test]
fn an_endpoint_starts_when_its_first_timeout_says() {
    assert_eq!(expirations_of(us(42), &[]), [us(42)]);
}

#[test]
fn a_timer_moved_later_expires_only_then() {
    assert_eq!(expirations_of(us(250), &[(us(200), us(620))]), [us(620)]);
}

#[test]
fn a_timer_moved_earlier_expires_then_and_not_again() {
    assert_eq!(expirations_of(us(800), &[(us(200), us(333))]), [us(333)]);
}

#[test]
fn a_cancelled_timer_does_not_expire() {
    assert_eq!(expirations_of(us(250), &[(us(200), Time::MAX)]), []);
}

#[test]
fn a_timer_moved_back_and_forth_expires_once_per_due_setting() {
    let resets = [(us(100), us(900)), (us(200), us(250)), (us(300), us(700)), (us(400), us(450))];
    assert_eq!(expirations_of(us(50), &resets), [us(50), us(250), us(450)]);
}

#[test]
fn a_timer_set_to_the_past_expires_at_once() {
    let expirations = expirations_of(Time::MAX, &[(us(200), us(100))]);
    assert_eq!(expirations, [us(200)]);
}

/// An endpoint with one toy per port; the second field is the last port polled.
struct Several(Vec<Toy>, u8);

impl Endpoint for Several {
    type Packet = ToyPacket;

    fn handle(&mut self, now: Time, packet: &ToyPacket) {
        self.handle_on_port(now, 0, packet);
    }

    fn poll(&mut self, now: Time) -> Option<ToyPacket> {
        let (port, packet) =
            (0..).zip(&mut self.0).find_map(|(i, toy)| Some((i, toy.poll(now)?)))?;
        self.1 = port;
        Some(packet)
    }

    fn next_timeout(&self) -> Time {
        self.0.iter().map(Endpoint::next_timeout).min().unwrap_or(Time::MAX)
    }
}

impl SimEndpoint for Several {
    fn ports(&self) -> u8 {
        self.0.len() as u8
    }

    fn handle_on_port(&mut self, now: Time, port: u8, packet: &ToyPacket) {
        self.0[usize::from(port)].handle(now, packet);
    }

    fn outgoing_port(&self) -> u8 {
        self.1
    }
}

#[test]
fn each_port_of_an_endpoint_talks_to_its_peer_over_routes_of_its_own() {
    let links = [1000, 2000, 4000].map(|us| Link::delay_line(Span::from_micros(us))).into();
    let mut routes = Routes::default();
    let [fast, slow, back] = [0, 1, 2].map(|link| routes.add(&[LinkId(link)]));
    let sender = |start| Toy::sender(1, us(start), Span::from_secs(1));
    let receivers = |ports| Several((0..ports).map(|_| Toy::receiver()).collect(), 0);
    let ends = [Several(vec![sender(0), sender(10)], 0), receivers(2)];
    let plain = [Several(vec![sender(20)], 0), receivers(1)];
    let mut engine = Engine::with_ports(
        links,
        routes,
        ends.into_iter().chain(plain).collect(),
        &[fast, back, slow, back, slow, back],
        EventLog::default(),
    );
    engine.run_until(us(6_500));
    let id = EndpointId;
    assert_eq!(
        engine.observer().delivered,
        [
            (us(1000), id(1), 0),
            (us(2010), id(3), 0),
            (us(2020), id(5), 0),
            (us(5000), id(0), 0),
            (us(6000), id(1), 1),
            (us(6010), id(2), 0),
            (us(6020), id(4), 0),
        ]
    );
    assert!(matches!(engine.endpoint(id(4)).0[..], [Toy::Sender { next: 2, .. }]));
}

#[derive(Clone, Debug)]
struct Topology {
    links: Vec<LinkConfig>,
    /// (forward links, reverse links, window, start)
    flows: Vec<(Vec<usize>, Vec<usize>, u32, u64)>,
}

impl Topology {
    fn build(&self) -> Engine<Toy, EventLog> {
        let links: Vec<Link<RoutedPacket<ToyPacket>>> = self.links.iter().map(Link::new).collect();
        let mut routes = Routes::default();
        let mut route = |path: &[usize]| {
            let path: Vec<_> = path.iter().map(|i| LinkId((i % links.len()) as u32)).collect();
            routes.add(&path)
        };
        let endpoints: Vec<_> = self
            .flows
            .iter()
            .flat_map(|(there, back, window, start)| {
                let sender = Toy::sender(*window, us(*start), Span::from_millis(30));
                [(sender, route(there)), (Toy::receiver(), route(back))]
            })
            .collect();
        Engine::new(links, routes, endpoints, EventLog::default())
    }
}

fn any_aqm() -> impl Strategy<Value = AqmConfig> {
    let short = CodelConfig {
        target: Span::from_micros(50),
        interval: Span::from_micros(500),
        ..CodelConfig::default()
    };
    prop_oneof![
        Just(AqmConfig::Red(RedConfig { min: 1.0, max: 3.0, weight: 0.5, ..RedConfig::default() })),
        Just(AqmConfig::Codel(short)),
        Just(AqmConfig::FqCodel(FqCodelConfig { codel: short, queues: 4, quantum: 1000 })),
        Just(AqmConfig::Pie(PieConfig {
            target: Span::from_micros(100),
            update: Span::from_micros(100),
            burst: Span::ZERO,
            alpha: 100.0,
            beta: 1000.0,
            ..PieConfig::default()
        })),
        Just(AqmConfig::DualPi2(DualPi2Config {
            target: Span::from_micros(100),
            tupdate: Span::from_micros(100),
            alpha: 100.0,
            beta: 1000.0,
            ..DualPi2Config::default()
        })),
        Just(AqmConfig::Step(StepConfig::default())),
    ]
}

fn any_varying() -> impl Strategy<Value = RateProcess> {
    let steps = prop::collection::vec(1_000_000u64..1_000_000_000, 1..5);
    let trace = prop::collection::vec(0u64..10, 0..20);
    prop_oneof![
        steps.prop_map(|rates| {
            RateProcess::Piecewise((0..).map(|step| us(step * 20_000)).zip(rates).collect())
        }),
        trace.prop_map(|mut times| {
            times.push(10);
            times.sort_unstable();
            RateProcess::Trace(times.into_iter().map(|ms| us(ms * 1000)).collect())
        }),
    ]
}

prop_compose! {
    fn any_link()(
        plain in any_plain_link(),
        aqm in prop::option::of(any_aqm()),
        rate_process in prop::option::weighted(0.3, any_varying()),
        is_bursty in prop::bool::weighted(0.2),
        jitter in prop_oneof![Just(0), 1u64..5000],
        share in prop_oneof![Just(0.0), 0.0..1.0],
        late in 1u64..5000,
    ) -> LinkConfig {
        let bursts = GilbertElliott { p: 0.05, r: 0.3, bad: 0.9, good: 0.01 };
        LinkConfig {
            aqm,
            rate_process,
            loss_model: is_bursty.then_some(LossModel::GilbertElliott(bursts)),
            jitter: Span::from_micros(jitter),
            reordering: Reordering { share, delay: Span::from_micros(late) },
            ..plain
        }
    }
}

prop_compose! {
    fn any_plain_link()(
        rate in prop::option::of(1_000_000u64..1_000_000_000),
        delay in 1u64..10_000,
        queue in prop_oneof![
            Just(Limit::Unlimited),
            (1u32..20).prop_map(Limit::Packets),
            (1500u64..20_000).prop_map(Limit::Bytes),
            (1u64..5000).prop_map(|us| Limit::Time(Span::from_micros(us))),
        ],
        loss in 0.0..0.3,
        seed: u64,
    ) -> LinkConfig {
        let rate = rate.and_then(NonZeroU64::new);
        let delay = Span::from_micros(delay);
        LinkConfig { rate, delay, queue, loss, seed, ..LinkConfig::default() }
    }
}

prop_compose! {
    fn any_topology()(
        links in prop::collection::vec(any_link(), 1..5),
        flows in prop::collection::vec((
            prop::collection::vec(0usize..5, 1..4),
            prop::collection::vec(0usize..5, 1..4),
            1u32..20,
            0u64..20_000,
        ), 1..6),
    ) -> Topology {
        Topology { links, flows }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_packet_sent_is_delivered_dropped_or_in_flight(
        topology in any_topology(),
        stops in prop::collection::vec(0u64..60_000, 1..5),
    ) {
        let mut engine = topology.build();
        let mut now = 0;
        for stop in stops {
            now += stop;
            engine.run_until(us(now));
            let log = engine.observer();
            let gone = log.delivered.len() + log.dropped.len();
            prop_assert_eq!(log.sent.len(), gone + engine.in_transit());
        }
    }

    #[test]
    fn the_same_topology_runs_the_same_way_twice_however_it_is_interrupted(
        topology in any_topology(),
        pause in 0u64..100_000,
    ) {
        let mut once = topology.build();
        once.run_until(us(100_000));
        let mut again = topology.build();
        again.run_until(us(pause));
        again.run_until(us(100_000));
        prop_assert_eq!(once.events(), again.events());
        prop_assert_eq!(once.into_observer(), again.into_observer());
    }

    #[test]
    fn time_never_runs_backwards(topology in any_topology()) {
        let mut engine = topology.build();
        engine.run_until(us(100_000));
        let log = engine.into_observer();
        // Drops from AQM queues are reported late, so drops need not be in order.
        for times in [log.sent, log.delivered] {
            prop_assert!(times.is_sorted_by_key(|entry| entry.0));
        }
    }
}
