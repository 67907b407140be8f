//! What an algorithm is told of a connection.

use super::*;
use dumbbell_cc::{AlgorithmFactory, ConnectionConfig};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const MTU: u16 = 1000;

/// What an algorithm was told.
#[derive(Clone, Debug, PartialEq)]
enum Told {
    Sent { seq: u64, from_idle: bool },
    Congestion { signal: Signal, new_episode: bool, seq: u64, in_flight: u32 },
    Ack { delivered: u32, acked: u32, lost: u32, marked: u32, rtt_ms: u64, rate: Option<f64> },
}

/// Notes what it is told, with a window of 10 packets and a pacing rate.
#[derive(Clone, Debug)]
struct Recorder(Arc<Mutex<Vec<Told>>>, Option<Rate>);

impl Recorder {
    fn note(&self, told: Told) {
        self.0.lock().expect("no panic").push(told);
    }
}

impl CongestionControl for Recorder {
    fn on_sent(&mut self, _path: &Path, sent: &Sent) {
        self.note(Told::Sent { seq: sent.seq, from_idle: sent.from_idle });
    }

    fn on_ack(&mut self, _path: &Path, ack: &Ack) {
        self.note(Told::Ack {
            delivered: ack.delivered,
            acked: ack.acked,
            lost: ack.lost,
            marked: ack.marked,
            rtt_ms: ack.rtt.map_or(0, |rtt| rtt.as_micros() / 1000),
            rate: ack.rate.map(|sample| sample.rate.bytes_per_sec()),
        });
    }

    fn on_congestion(&mut self, path: &Path, event: &CongestionEvent) {
        let CongestionEvent { signal, new_episode, seq, .. } = *event;
        self.note(Told::Congestion { signal, new_episode, seq, in_flight: path.in_flight });
    }

    fn control(&self) -> ControlParameters {
        ControlParameters::new(10.0).with_pacing_rate(self.1)
    }
}

struct Test {
    adapter: Adapter,
    start: Instant,
    told: Arc<Mutex<Vec<Told>>>,
}

impl Test {
    fn new(rate: Option<Rate>) -> Test {
        let (start, told) = (Instant::now(), Arc::default());
        let recorder = Recorder(Arc::clone(&told), rate);
        let factory = AlgorithmFactory::new(move |_| recorder.clone());
        let config = ConnectionConfig::new(Time::ZERO, u32::from(MTU));
        Test { adapter: Adapter::new(factory.make(&config), start, MTU, 10.0), start, told }
    }

    fn at(&self, ms: u64) -> Instant {
        self.start + Duration::from_millis(ms)
    }

    /// Sends full packets, one a datagram.
    fn send(&mut self, ms: u64, packets: u32) {
        for _ in 0..packets {
            self.adapter.on_sent(self.at(ms), MTU.into());
        }
    }

    /// Acknowledges packets that were sent at these times.
    fn ack(&mut self, ms: u64, sent: &[u64], in_flight: u64) {
        for &sent in sent {
            self.adapter.on_ack(self.at(ms), self.at(sent));
        }
        self.adapter.on_end_acks(self.at(ms), in_flight * u64::from(MTU), false);
    }

    fn told(&mut self) -> Vec<Told> {
        self.adapter.flush();
        std::mem::take(&mut *self.told.lock().expect("no panic"))
    }
}

#[test]
fn the_delivery_rate_is_what_was_delivered_over_the_longer_interval() {
    let mut test = Test::new(None);
    for ms in [0, 1, 2, 3] {
        test.send(ms, 1);
    }
    test.told();
    // The first two together after 20 ms, then one every 5 ms.
    test.ack(20, &[0, 1], 2);
    test.ack(25, &[2], 1);
    test.ack(30, &[3], 0);
    // Delivered packets of 1000 bytes over 20, 25 and 30 ms (draft-cheng-iccrg-delivery-rate-
    // estimation, section 3.3): all were sent before the first was delivered.
    let ack = |delivered, rtt_ms, rate| Told::Ack {
        delivered,
        acked: delivered,
        lost: 0,
        marked: 0,
        rtt_ms,
        rate: Some(rate),
    };
    let expected = [ack(2, 19, 1e5), ack(1, 23, 3000.0 / 0.025), ack(1, 27, 4000.0 / 0.03)];
    assert_eq!(test.told(), expected);
}

#[test]
fn losses_come_before_their_acknowledgement_once_for_each_packet() {
    let mut test = Test::new(None);
    for ms in 0..6 {
        test.send(ms, 1);
    }
    test.told();
    // Packets 0 and 2 are missing.
    test.ack(40, &[1, 3, 4, 5], 2);
    test.adapter.on_lost(test.at(40), test.at(2), 2000, false);
    let loss = |seq, new_episode| {
        let signal = Signal::Loss;
        Told::Congestion { signal, new_episode, seq, in_flight: 0 }
    };
    let told = test.told();
    assert_eq!(told[..2], [loss(0, true), loss(2, false)]);
    // The window must not grow by an acknowledgement that begins a recovery.
    let [Told::Ack { delivered, acked, lost, .. }] = told[2..] else { panic!("{told:?}") };
    assert_eq!((delivered, acked, lost), (4, 0, 2));
}

#[test]
fn an_episode_begins_with_a_packet_that_was_sent_after_the_last_one_began() {
    let mut test = Test::new(None);
    test.send(0, 2);
    test.send(50, 2);
    test.told();
    let mut episode = |ms, sent| {
        test.adapter.on_ecn(test.at(ms), test.at(sent));
        match test.told()[..] {
            [Told::Congestion { new_episode, .. }] => new_episode,
            _ => panic!("one signal"),
        }
    };
    assert!(episode(40, 0) && !episode(60, 0) && episode(90, 50));
}

#[test]
fn marks_are_a_signal_without_a_count() {
    let mut test = Test::new(None);
    test.send(0, 2);
    test.told();
    test.ack(40, &[0, 0], 0);
    test.adapter.on_ecn(test.at(40), test.at(0));
    let told = test.told();
    let [Told::Congestion { signal: Signal::Ecn, .. }, Told::Ack { marked, .. }] = told[..] else {
        panic!("{told:?}")
    };
    assert_eq!((marked, test.adapter.path.marked), (0, 0));
}

#[test]
fn the_window_lets_as_many_packets_leave_as_it_counts() {
    let mut test = Test::new(None);
    // quinn sends while in flight + packet < window.
    assert_eq!(test.adapter.window(), 10 * 1000 + 1);
    test.adapter.on_mtu_update(1400);
    assert_eq!(test.adapter.window(), 14_001);
}

#[test]
fn without_a_pacer_no_more_leaves_than_the_rate_allows_since_the_last_ack() {
    // 100 packets/s: one per 10 ms.
    let mut test = Test::new(Some(Rate::from_bits_per_sec(8e5)));
    let allowed = |test: &mut Test, ms, in_flight: &mut u64| {
        let mut packets = 0;
        while (*in_flight + 1) * 1000 < test.adapter.paced_window() {
            test.send(ms, 1);
            (packets, *in_flight) = (packets + 1, *in_flight + 1);
        }
        packets
    };
    let mut in_flight = 0;
    assert_eq!(allowed(&mut test, 0, &mut in_flight), 10);
    let mut sent = 0;
    // Every 20 ms two of the first packets are acknowledged.
    for ms in [100, 120, 140, 160, 180] {
        in_flight -= 2;
        test.ack(ms, &[0, 0], in_flight);
        sent += allowed(&mut test, ms, &mut in_flight);
    }
    // 180 ms allow 18 packets, of which 10 left at the start.
    assert!((7..=8).contains(&sent), "{sent}");
}

#[test]
fn what_the_rate_allows_survives_a_loss_that_is_reported_at_the_same_time() {
    // 100 packets/s, and a round-trip time of 100 ms.
    let mut test = Test::new(Some(Rate::from_bits_per_sec(8e5)));
    test.send(0, 10);
    test.ack(100, &[0, 0], 8);
    test.ack(200, &[0, 0, 0, 0, 0, 0], 2);
    let earned = test.adapter.tokens;
    assert!(earned > 9.0 * 1000.0, "{earned}");
    test.adapter.on_lost(test.at(200), test.at(0), MTU.into(), false);
    assert_eq!(test.adapter.tokens, earned);
}

#[test]
fn persistent_congestion_lowers_the_slow_start_threshold_once() {
    // RFC 9002, appendix B.8: the losses halve it, and then the window alone falls to its minimum.
    let (start, config) = (Instant::now(), ConnectionConfig::new(Time::ZERO, u32::from(MTU)));
    let reno = Algorithm::parse("reno", &config).expect("a name");
    let mut adapter = Adapter::new(reno, start, MTU, 10.0);
    (0..10).for_each(|_| adapter.on_sent(start, MTU.into()));
    let later = start + Duration::from_secs(3);
    adapter.on_lost(later, start, 10 * u64::from(MTU), true);
    assert_eq!((adapter.ssthresh(), adapter.window()), (Some(5000), 2001));
}

#[test]
fn an_end_that_only_acknowledges_has_bounded_records_and_debt() {
    // Acknowledgements of 40 bytes every 10 ms, and a window of 10 packets of 1000 bytes.
    let mut test = Test::new(Some(Rate::from_bits_per_sec(8e5)));
    test.send(0, 1);
    test.ack(50, &[0], 0);
    for number in 0..10_000 {
        test.adapter.on_sent(test.at(60 + 10 * number), 40);
    }
    assert!(test.adapter.records.len() <= 10_000 / 40 + 10, "{}", test.adapter.records.len());
    assert!(test.adapter.in_flight <= 11_000, "{}", test.adapter.in_flight);
    // A burst of 10 packets, which a rate of 100 packets/s pays off in 100 ms.
    assert_eq!(test.adapter.tokens, -10_000.0);
}

#[cfg(feature = "noq")]
#[test]
fn a_spurious_episode_does_not_hide_the_next_loss() {
    let mut test = Test::new(None);
    test.send(0, 2);
    test.send(10, 2);
    test.told();
    let mut episodes = |ms, sent| {
        test.adapter.on_lost(test.at(ms), test.at(sent), MTU.into(), false);
        let told = test.told();
        let is_new = matches!(told[..], [Told::Congestion { new_episode: true, .. }]);
        test.adapter.on_spurious();
        is_new
    };
    // The second packet was sent before the first loss was found.
    assert!(episodes(40, 0) && episodes(60, 10));
}
