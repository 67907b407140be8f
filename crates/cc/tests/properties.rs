//! What holds for every algorithm, whatever happens to its connection.

use dumbbell_cc::ext::UdtReport;
use dumbbell_cc::{
    Ack, Algorithm, CaState, CongestionControl, CongestionEvent, ConnectionConfig, NAMES, Path,
    RateSample, SendState, Sent, Signal,
};
use dumbbell_units::{Rate, Span, Time};
use proptest::prelude::*;

/// Something that happens to a connection.
#[derive(Clone, Debug)]
enum Event {
    Wait { ns: u64 },
    Send { packets: u32, app_limited: bool },
    Ack { delivered: u32, lost: u32, marked: u32, rtt_ns: Option<u64>, cwnd_limited: bool },
    Congestion { signal: Signal, new_episode: bool },
    Spurious,
    Timer,
    CaState(CaState),
    MtuUpdate { mss: u32 },
    PersistentCongestion,
    Discard { packets: u32 },
}

fn event() -> impl Strategy<Value = Event> {
    let signal = prop::sample::select(vec![Signal::Loss, Signal::Ecn, Signal::Timeout]);
    let phase = prop::sample::select(vec![
        CaState::Open,
        CaState::Disorder,
        CaState::Cwr,
        CaState::Recovery,
        CaState::Loss,
    ]);
    // From none to a minute, every order of magnitude as likely.
    let ns = (0u32..=36, any::<u64>()).prop_map(|(bits, ns)| ns & ((1 << bits) - 1)).boxed();
    let rtt = prop::option::weighted(0.9, ns.clone());
    let ack = (0u32..100, 0u32..4, 0u32..4, rtt, prop::bool::weighted(0.8)).prop_map(
        |(delivered, lost, marked, rtt_ns, cwnd_limited)| Event::Ack {
            delivered,
            lost,
            marked,
            rtt_ns,
            cwnd_limited,
        },
    );
    prop_oneof![
        3 => ns.prop_map(|ns| Event::Wait { ns }),
        3 => (1u32..1000, any::<bool>())
            .prop_map(|(packets, app_limited)| Event::Send { packets, app_limited }),
        6 => ack,
        1 => (signal, any::<bool>())
            .prop_map(|(signal, new_episode)| Event::Congestion { signal, new_episode }),
        1 => Just(Event::Spurious),
        1 => Just(Event::Timer),
        1 => phase.prop_map(Event::CaState),
        1 => (300u32..9000).prop_map(|mss| Event::MtuUpdate { mss }),
        1 => Just(Event::PersistentCongestion),
        1 => (0u32..100).prop_map(|packets| Event::Discard { packets }),
    ]
}

/// A connection that keeps its facts consistent with each other, whatever the events.
struct Connection {
    algorithm: Algorithm,
    path: Path,
}

impl Connection {
    fn new(algorithm: &str, initial_window: f64) -> Connection {
        let init = ConnectionConfig::new(Time::ZERO, 1448)
            .with_initial_window(initial_window)
            .with_seed(7);
        let mut algorithm = Algorithm::parse(algorithm, &init).expect("a built-in algorithm");
        let path = Path::new(1448, Time::ZERO);
        algorithm.on_established(&path);
        Connection { algorithm, path }
    }

    fn happen(&mut self, event: &Event) {
        match *event {
            Event::Wait { ns } => self.path.now += Span::from_nanos(ns),
            Event::Send { packets, app_limited } => self.send(packets, app_limited),
            Event::Ack { delivered, lost, marked, rtt_ns, cwnd_limited } => {
                self.path.cwnd_limited = cwnd_limited;
                self.acknowledge(delivered, lost, marked, rtt_ns.map(Span::from_nanos));
            }
            Event::Congestion { signal, new_episode } => {
                let send_state = Some(self.send_state());
                let seq = self.path.una;
                let event = CongestionEvent::new(signal)
                    .with_new_episode(new_episode)
                    .with_seq(seq)
                    .with_send_state(send_state);
                self.algorithm.on_congestion(&self.path, &event);
            }
            Event::Spurious => self.algorithm.on_spurious_loss(&self.path),
            Event::Timer => self.algorithm.on_timer(&self.path),
            Event::CaState(phase) => self.path.ca_state = phase,
            Event::MtuUpdate { mss } => {
                let previous = std::mem::replace(&mut self.path.mss, mss);
                self.algorithm.on_mtu_update(&self.path, previous);
            }
            Event::PersistentCongestion => self.algorithm.on_persistent_congestion(&self.path),
            Event::Discard { packets } => {
                let packets = packets.min(self.path.in_flight);
                self.path.in_flight -= packets;
                self.algorithm.on_packet_discarded(&self.path, packets);
            }
        }
    }

    fn send_state(&self) -> SendState {
        SendState {
            sent_at: self.path.now,
            delivered: self.path.delivered,
            lost: self.path.lost as u32,
            marked: self.path.marked as u32,
            in_flight: self.path.in_flight,
            app_limited: false,
        }
    }

    fn send(&mut self, packets: u32, app_limited: bool) {
        for _ in 0..packets {
            let from_idle = self.path.in_flight == 0;
            let seq = self.path.next_seq;
            self.path.next_seq += 1;
            self.path.in_flight += 1;
            let sent = Sent::new(seq).with_from_idle(from_idle).with_app_limited(app_limited);
            self.algorithm.on_sent(&self.path, &sent);
        }
    }

    fn acknowledge(&mut self, delivered: u32, lost: u32, marked: u32, rtt: Option<Span>) {
        let prior_in_flight = self.path.in_flight;
        let send_state = self.send_state();
        let lost = lost.min(prior_in_flight);
        let delivered = delivered.min(prior_in_flight - lost);
        let marked = marked.min(delivered);
        let path = &mut self.path;
        path.in_flight -= delivered + lost;
        path.delivered += u64::from(delivered);
        path.delivered_at = path.now;
        path.lost += u64::from(lost);
        path.una += u64::from(delivered);
        if let Some(rtt) = rtt {
            path.srtt = Some(path.srtt.unwrap_or(rtt) * 7 / 8 + rtt / 8);
            path.min_rtt = Some(path.min_rtt.unwrap_or(rtt).min(rtt));
        }
        let rate = rtt.map(|interval| {
            let rate = Rate::from_bytes_in(f64::from(delivered) * 1448.0, interval);
            let mut sample = RateSample::new(delivered, interval, rate, send_state);
            (sample.lost, sample.marked) = (lost, marked);
            sample
        });
        let mut ack = Ack::new(delivered).with_lost(lost).with_marked(marked).with_rtt(rtt);
        (ack.prior_in_flight, ack.rate) = (prior_in_flight, rate);
        ack.udt = rtt.map(|rtt| {
            let mut report = UdtReport::default();
            (report.advanced, report.rtt, report.rtt_var) = (delivered, rtt, rtt / 2);
            report.arrival_rate = f64::from(delivered) * 100.0;
            report.capacity = f64::from(delivered + lost) * 100.0;
            report.window = 1 << (delivered % 20);
            report
        });
        self.algorithm.on_ack(&self.path, &ack);
    }

    /// What is wrong with the algorithm's answer, if anything.
    fn fault(&self) -> Option<String> {
        let control = self.algorithm.control();
        let rate = control.pacing_rate.map_or(1.0, Rate::bytes_per_sec);
        // Positive conditions, so that NaN fails them.
        let sound = control.cwnd >= 1.0
            && control.cwnd.is_finite()
            && control.ssthresh >= 1.0
            && rate > 0.0
            && rate.is_finite();
        (!sound).then(|| format!("{control:?}"))
    }
}

/// Every built-in algorithm, and the choices that change what code runs.
fn algorithms() -> impl Iterator<Item = &'static str> {
    let choices = [
        "reno(slow_start=hystart++)",
        "cubic(slow_start=hystart++)",
        "cubic(slow_start=standard, tcp_friendliness=rfc, fast_convergence=off)",
        "cubic(c=1000, beta=0.99, tcp_friendliness=off)",
        "cubic(arithmetic=linux)",
        "cubic(arithmetic=linux, tcp_friendliness=rfc, c=1000, beta=0.1)",
        "bic(arithmetic=linux)",
        "cubic-2006(errors=off, initial_ssthresh=0)",
        "bic(s_max=32, low_window=0, fast_convergence=off, initial_ssthresh=1)",
        "stcp(ai=1, low_window=0)",
        "htcp(rtt_scaling=off, bandwidth_switch=off)",
        "hybla(rtt0=1 ms)",
        "vegas(alpha=0, beta=0, gamma=0)",
        "veno(beta=0)",
        "cdg(use_tolerance=on, window=1, backoff_factor=1000000)",
        "nv(pad=2)",
        "reno(slow_start=search)",
        "cubic(abe=on, slow_start=search)",
        "reno(slow_start=rapid)",
        "cubic(slow_start=rapid)",
        "fast(alpha=1, gamma=1)",
        "ledbat++(target=1 ms)",
        "dctcp(g=1, alpha=0)",
        "copa(delta=0.001)",
        "copa(delta=10, mode_switching=off)",
        "udt(min_increase=0.000001)",
        "udt(rules=ns-2)",
        "ar-udt(w1=0.5, alpha=1, beta=1)",
    ];
    NAMES.iter().copied().chain(choices)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn windows_are_finite_and_at_least_one_packet_and_rates_positive(
        events in prop::collection::vec(event(), 1..300),
        initial_window in 1u32..100,
    ) {
        for name in algorithms() {
            let mut connection = Connection::new(name, f64::from(initial_window));
            for event in &events {
                connection.happen(event);
                let fault = connection.fault();
                prop_assert!(fault.is_none(), "{name}: {fault:?} after {event:?}");
            }
        }
    }
}

#[test]
fn a_larger_mss_leaves_a_threshold_of_a_packet() {
    for name in algorithms() {
        let mut connection = Connection::new(name, 1.0);
        // Gives BBR a small threshold: the window it had when it left startup.
        for _ in 0..40 {
            connection.happen(&Event::Send { packets: 1, app_limited: false });
            connection.happen(&Event::Wait { ns: 40_000_000 });
            connection.acknowledge(1, 0, 0, Some(Span::from_millis(40)));
        }
        for signal in [Signal::Loss, Signal::Timeout] {
            connection.happen(&Event::Congestion { signal, new_episode: true });
        }
        for _ in 0..3 {
            let mss = connection.path.mss * 6;
            connection.happen(&Event::MtuUpdate { mss });
            let fault = connection.fault();
            assert!(fault.is_none(), "{name}: {fault:?} with an MSS of {mss}");
        }
    }
}

/// A name, and a connection after these events.
fn connections(events: &[Event]) -> impl Iterator<Item = (&'static str, Connection)> {
    algorithms().map(|name| {
        let mut connection = Connection::new(name, 10.0);
        events.iter().for_each(|event| connection.happen(event));
        (name, connection)
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Windows within a packet, rates within 1 %, unless a minimum window (at most 4 packets) binds.
    /// Gu's UDT pauses for a fixed time, during which its rate depends on the packet size.
    #[test]
    fn windows_and_rates_keep_their_bytes_when_the_mtu_changes(
        events in prop::collection::vec(event(), 1..100),
        mss in 300u32..9000,
    ) {
        for (name, mut connection) in connections(&events) {
            let (before, old) = (connection.algorithm.control(), connection.path.mss);
            connection.happen(&Event::MtuUpdate { mss });
            let after = connection.algorithm.control();
            let within = |old: u64, new: u64| old.abs_diff(new) <= u64::from(connection.path.mss);
            prop_assert!(
                after.ssthresh <= 4.0
                    || within(before.ssthresh_bytes(old), after.ssthresh_bytes(mss)),
                "{name}: {before:?}, {after:?}"
            );
            if after.cwnd <= 4.0 || name == "udt(rules=ns-2)" {
                continue;
            }
            prop_assert!(
                within(before.cwnd_bytes(old), after.cwnd_bytes(mss)),
                "{name}: {before:?}, {after:?}"
            );
            if let (Some(rate), Some(new_rate)) = (before.pacing_rate, after.pacing_rate) {
                let ratio = new_rate.bytes_per_sec() / rate.bytes_per_sec();
                prop_assert!((ratio - 1.0).abs() < 0.01, "{name}: {rate} became {new_rate}");
            }
        }
    }

    /// UDT controls a rate, which only a NAK lowers.
    #[test]
    fn persistent_congestion_leaves_two_packets_or_bbrs_four(
        events in prop::collection::vec(event(), 1..100),
    ) {
        for (name, mut connection) in connections(&events) {
            connection.happen(&Event::PersistentCongestion);
            let cwnd = connection.algorithm.control().cwnd;
            prop_assert!(cwnd <= 4.0 || name.contains("udt"), "{name}: {cwnd}");
        }
    }

    #[test]
    fn discarded_packets_leave_the_window_as_it_is(
        events in prop::collection::vec(event(), 1..100),
        packets in 0u32..100,
    ) {
        for (name, mut connection) in connections(&events) {
            let before = connection.algorithm.control();
            connection.happen(&Event::Discard { packets });
            prop_assert_eq!(connection.algorithm.control(), before, "{}", name);
        }
    }

    /// A clone continues like its original, and neither changes the other.
    #[test]
    fn a_clone_continues_from_the_same_state(
        events in prop::collection::vec(event(), 1..100),
        more in prop::collection::vec(event(), 1..100),
    ) {
        for (name, mut connection) in connections(&events) {
            let mut clone = Connection {
                algorithm: connection.algorithm.clone(),
                path: connection.path.clone(),
            };
            more.iter().for_each(|event| clone.happen(event));
            let after = format!("{:?}", clone.algorithm);
            more.iter().for_each(|event| connection.happen(event));
            prop_assert_eq!(format!("{:?}", connection.algorithm), after, "{}", name);
        }
    }
}

#[test]
fn an_algorithm_that_knows_no_round_trip_time_answers_all_the_same() {
    for name in algorithms() {
        let mut connection = Connection::new(name, 10.0);
        let loss = Event::Congestion { signal: Signal::Loss, new_episode: true };
        let timeout = Event::Congestion { signal: Signal::Timeout, new_episode: true };
        let ack = Event::Ack { delivered: 1, lost: 0, marked: 0, rtt_ns: None, cwnd_limited: true };
        let send = Event::Send { packets: 10, app_limited: false };
        for event in [&send, &ack, &loss, &ack, &timeout, &ack, &Event::Spurious, &ack] {
            connection.happen(event);
            assert_eq!(connection.fault(), None, "{name} after {event:?}");
        }
    }
}
