//! UDT and AR-UDT against their equations. Time goes on by a SYN with every acknowledgement.

use super::*;
use crate::Sent;

/// UDT's MSS in this model: 1456 bytes of payload and 44 of headers.
const MSS: f64 = 1500.0;
const RTT: Span = Span::from_millis(90);

/// A connection: an algorithm and the facts it receives.
struct Connection<A> {
    algorithm: A,
    path: Path,
    report: UdtReport,
}

fn made<A>(text: &str, make: fn(&mut Options, &ConnectionConfig) -> Result<A, ConfigError>) -> A {
    let init = ConnectionConfig::new(Time::ZERO, 1456).with_initial_window(16.0).with_seed(1);
    let mut options = text.parse().expect("well formed");
    make(&mut options, &init).expect("within range")
}

impl<A: CongestionControl> Connection<A> {
    /// A connection over a path of 1 Gbit/s, on which half of that arrives at first.
    fn new(algorithm: A) -> Connection<A> {
        let path = Path::new(1456, Time::ZERO);
        let report = UdtReport {
            rtt: RTT,
            arrival_rate: 0.5e9 / 8.0 / MSS,
            capacity: 1e9 / 8.0 / MSS,
            window: 100_000,
            ..UdtReport::default()
        };
        Connection { algorithm, path, report }
    }

    fn acknowledge_after(&mut self, span: Span, packets: u64) {
        self.path.now += span;
        self.path.una += packets;
        self.path.next_seq = self.path.next_seq.max(self.path.una);
        let ack = Ack { udt: Some(self.report), ..Ack::default() };
        self.algorithm.on_ack(&self.path, &ack);
    }

    fn acknowledge(&mut self, packets: u64) {
        self.acknowledge_after(SYN_SPAN, packets);
    }

    fn signal(&mut self, signal: Signal, seq: u64) {
        let event = CongestionEvent::new(signal).with_seq(seq);
        self.algorithm.on_congestion(&self.path, &event);
    }

    /// Sends new packets and then a NAK for the first of them.
    fn lose(&mut self) {
        let seq = self.path.next_seq;
        self.path.next_seq += 100;
        self.signal(Signal::Loss, seq);
    }

    fn send(&mut self, packets: u64, retransmission: bool) {
        for seq in self.path.next_seq..self.path.next_seq + packets {
            let sent = Sent::new(seq).with_retransmission(retransmission);
            self.algorithm.on_sent(&self.path, &sent);
        }
    }

    /// Seconds between packets by the pacing rate.
    fn period(&self) -> f64 {
        let rate = self.algorithm.control().pacing_rate.expect("UDT paces");
        1456.0 / rate.bytes_per_sec()
    }
}

fn udt() -> Connection<Udt> {
    Connection::new(made("udt", Udt::from_options))
}

/// After slow start, at a rate of so many bit/s, headers counted.
fn at_rate(bits: f64) -> Connection<Udt> {
    let mut connection = udt();
    connection.algorithm.slow_start = false;
    connection.algorithm.period = 8.0 * MSS / bits;
    connection.algorithm.last_dec_period = 1.0;
    connection
}

fn near(value: f64, expected: f64) -> bool {
    (value / expected - 1.0).abs() < 1e-9
}

#[test]
fn the_increase_is_that_of_udts_table() {
    // Available bandwidth in bit/s, packets per SYN.
    let table = [
        (0.0, 1.0 / 1500.0),
        (5e5, 0.001),
        (1e6, 0.001),
        (9e6, 0.01),
        (99e6, 0.1),
        (101e6, 1.0),
        (1e9, 1.0),
        (9e9, 10.0),
    ];
    for (available, expected) in table {
        let mut algorithm = made("udt(min_increase=0.000666666667)", Udt::from_options);
        (algorithm.period, algorithm.last_dec_period) = (8.0 * MSS / 1e9, 1.0);
        algorithm.report.capacity = (1e9 + available - 1.0) / 8.0 / MSS;
        let increase = algorithm.increase();
        assert!((increase / expected - 1.0).abs() < 1e-6, "{increase} at {available} bit/s");
        let floor = Udt { min_increase: 0.01, ..algorithm }.increase();
        assert_eq!(floor, increase.max(0.01));
    }
}

#[test]
fn the_period_follows_equation_2_once_in_a_syn() {
    let mut connection = at_rate(0.5e9);
    let before = connection.period();
    connection.acknowledge(400);
    let after = connection.period();
    // B = 5e8 bit/s, so one packet more in a SYN.
    assert!(near(after, before * SYN / (before + SYN)));
    assert!(near(SYN / after, SYN / before + 1.0));
    connection.acknowledge_after(Span::from_millis(9), 400);
    assert_eq!(connection.period(), after, "less than a SYN later");
}

/// Gu and Grossman, section 3.3: 7.5 s, whatever the bandwidth.
#[test]
fn jitter_of_acknowledgements_skips_no_increase() {
    let (mut regular, mut jittery) = (at_rate(1e7), at_rate(1e7));
    for round in 0..100 {
        regular.acknowledge(10);
        let interval = if round % 2 == 0 { 12 } else { 8 };
        jittery.acknowledge_after(Span::from_millis(interval), 10);
    }
    assert!(near(jittery.period(), regular.period()), "{}", jittery.period());
    // Acknowledgements at twice the rate increase it no more often.
    let mut frequent = at_rate(1e7);
    (0..200).for_each(|_| frequent.acknowledge_after(SYN_SPAN / 2, 5));
    assert!(frequent.period() >= regular.period(), "{}", frequent.period());
}

#[test]
fn nine_tenths_of_the_bandwidth_are_regained_in_seven_and_a_half_seconds() {
    for bits in [1e8, 1e9, 1e10] {
        let mut connection = at_rate(bits / 1e4);
        connection.report.capacity = bits / 8.0 / MSS;
        let mut acknowledgements = 0;
        while 8.0 * MSS / connection.period() < 0.9 * bits {
            connection.acknowledge(1);
            acknowledgements += 1;
        }
        assert!((749..=752).contains(&acknowledgements), "{acknowledgements} SYN at {bits} bit/s");
    }
}

#[test]
fn below_the_rate_of_the_last_decrease_a_ninth_counts_as_available() {
    let mut algorithm = at_rate(4e8).algorithm;
    algorithm.report.capacity = 8e8 / 8.0 / MSS;
    algorithm.last_dec_period = 8.0 * MSS / 8e8;
    assert!(near(algorithm.increase(), 0.1), "a ninth of 800 Mbit/s is below 100");
    algorithm.last_dec_period = 1.0;
    assert!(near(algorithm.increase(), 1.0));
}

#[test]
fn the_window_is_what_arrives_in_a_round_trip_and_a_syn_and_sixteen_more() {
    let mut connection = at_rate(0.5e9);
    connection.acknowledge(400);
    let arriving = 0.5e9 / 8.0 / MSS;
    assert!(near(connection.algorithm.control().cwnd, arriving * (0.09 + 0.01) + 16.0));
    connection.report.rtt = Span::from_millis(170);
    connection.acknowledge(400);
    assert!(near(connection.algorithm.control().cwnd, arriving * (0.1 + 0.01) + 16.0));
}

#[test]
fn the_window_of_slow_start_grows_by_what_is_acknowledged() {
    let mut connection = udt();
    assert_eq!((connection.algorithm.control().cwnd, connection.period()), (16.0, 1e-6));
    // CUDTCC::onACK adds CSeqNo::seqlen(m_iLastAck, ack), which is ack - m_iLastAck + 1, and
    // m_iLastAck is the ISN less 1 at first.
    connection.acknowledge(16);
    assert_eq!(connection.algorithm.control().cwnd, 16.0 + 18.0);
    connection.acknowledge(32);
    assert_eq!((connection.algorithm.control().cwnd, connection.period()), (34.0 + 33.0, 1e-6));
}

#[test]
fn the_first_nak_only_ends_slow_start_at_the_arrival_speed() {
    let mut connection = udt();
    connection.acknowledge(100);
    connection.lose();
    let arriving = connection.report.arrival_rate;
    assert!(near(connection.period(), 1.0 / arriving));
    connection.acknowledge(100);
    assert!(near(1.0 / connection.period(), arriving + 100.0), "one packet more in a SYN");
}

/// m_iDeliveryRate is 16 before there is a report, and CUDT::connect tells the algorithm.
#[test]
fn without_a_report_slow_start_ends_at_16_packets_a_second() {
    let mut connection = udt();
    connection.lose();
    assert!(near(connection.period(), 1.0 / 16.0));
}

#[test]
fn slow_start_ends_when_the_window_exceeds_the_peers_or_after_a_timeout() {
    let mut connection = udt();
    connection.report.window = 100;
    connection.acknowledge(85);
    let cwnd = connection.algorithm.control().cwnd;
    assert_eq!(cwnd, 16.0 + 87.0);
    assert!(connection.period() > 1e-5);
    let mut connection = udt();
    connection.acknowledge(85);
    connection.signal(Signal::Timeout, 0);
    let period = connection.period();
    assert!(near(period, 1.0 / connection.report.arrival_rate));
    connection.signal(Signal::Timeout, 0);
    assert_eq!(connection.period(), period, "a timeout after slow start changes nothing");
}

#[test]
fn a_nak_takes_a_ninth_of_the_rate_and_puts_off_the_next_increase() {
    let mut connection = at_rate(0.8e9);
    connection.lose();
    let period = connection.period();
    assert!(near(period, 1.125 * 8.0 * MSS / 0.8e9));
    connection.acknowledge(100);
    assert_eq!(connection.period(), period);
    connection.acknowledge(100);
    assert!(connection.period() < period);
}

fn adaptive(text: &str) -> Connection<AdaptiveUdt> {
    let mut connection = Connection::new(made(text, AdaptiveUdt::from_options));
    connection.acknowledge(100);
    connection.lose();
    connection
}

/// Acknowledges three times with the same round-trip time, so that the weight is 0.999.
fn steady(connection: &mut Connection<AdaptiveUdt>) {
    for _ in 0..3 {
        connection.acknowledge(100);
    }
}

#[test]
fn ar_udt_weighs_the_period_with_every_sixteenth_new_packet() {
    let mut connection = adaptive("ar-udt");
    steady(&mut connection);
    let before = connection.period();
    connection.path.next_seq = 16_000;
    connection.send(832, false);
    assert!(near(connection.period(), before * libm::pow(0.999, 52.0)));
    let after = connection.period();
    connection.send(832, true);
    assert_eq!(connection.period(), after, "retransmissions");
}

#[test]
fn ar_udt_keeps_the_period_from_a_nak_to_the_next_acknowledgement() {
    let mut connection = adaptive("ar-udt");
    steady(&mut connection);
    connection.lose();
    let period = connection.period();
    connection.send(832, false);
    assert_eq!(connection.period(), period);
    connection.acknowledge(100);
    assert_eq!(connection.period(), period, "as UDT does after a NAK");
    connection.send(832, false);
    assert!(connection.period() < period);
}

#[test]
fn ar_udt_sets_the_period_on_an_acknowledgement_as_udt_does() {
    let mut connection = adaptive("ar-udt");
    let mut plain = udt();
    plain.acknowledge(100);
    plain.lose();
    for _ in 0..10 {
        connection.acknowledge(100);
        plain.acknowledge(100);
        assert_eq!(connection.period(), plain.period());
    }
}

#[test]
fn ar_udt_predicts_from_the_smoothed_rtt_unless_smooth_is_off() {
    for (text, expected) in [("ar-udt", 88.75), ("ar-udt(smooth=off)", 80.0)] {
        let mut connection = adaptive(text);
        steady(&mut connection);
        connection.report.rtt = Span::from_millis(80);
        connection.acknowledge(100);
        let mut shown = 0.0;
        connection.algorithm.inspect(&mut |i| {
            if i.name == "rtt_ratio" {
                shown = i.value;
            }
        });
        // w1 weighs no change, w2 the one from 90 ms.
        let ratio = (0.75 * (expected - 90.0) / 2.0 + expected) / expected;
        assert!(near(shown, ratio), "{text}: {shown}");
    }
}

#[test]
fn ar_udt_adapts_after_slow_start_if_told_to_down_to_a_microsecond() {
    let mut connection = Connection::new(made("ar-udt", AdaptiveUdt::from_options));
    connection.report.rtt = Span::from_millis(10);
    connection.acknowledge(100);
    connection.report.rtt = RTT;
    steady(&mut connection);
    connection.send(1600, false);
    assert_eq!(connection.period(), 1e-6, "slow start");

    let mut connection = adaptive("ar-udt(adapt=off)");
    steady(&mut connection);
    let period = connection.period();
    connection.send(1600, false);
    assert_eq!(connection.period(), period, "told not to");

    let mut connection = adaptive("ar-udt");
    steady(&mut connection);
    connection.send(160_000, false);
    assert_eq!(connection.period(), 1e-6);
}

fn ns_2() -> Connection<Udt> {
    Connection::new(made("udt(rules=ns-2)", Udt::from_options))
}

#[test]
fn the_first_nak_lengthens_the_microsecond_of_slow_start_in_ns_2() {
    let mut connection = ns_2();
    assert_eq!(connection.algorithm.control().cwnd, 2.0);
    connection.acknowledge(2);
    connection.acknowledge(40);
    assert_eq!(connection.algorithm.control().cwnd, 42.0, "all that was acknowledged");
    connection.lose();
    connection.send(1, true);
    assert!(near(connection.period(), 1.125e-6));
    connection.acknowledge(50);
    assert!(connection.period() < 1.125e-6, "and puts off no increase");
}

#[test]
fn the_window_of_the_module_for_ns_2_goes_an_eighth_of_the_way() {
    let mut connection = ns_2();
    connection.acknowledge(100);
    connection.lose();
    connection.acknowledge(100);
    let arriving = connection.report.arrival_rate * (0.09 + 0.01);
    let cwnd = (0.875 * 100.0 + 0.125 * arriving).ceil();
    assert_eq!(connection.algorithm.control().cwnd, cwnd);
}

#[test]
fn the_module_for_ns_2_pauses_for_a_syn_when_an_epoch_begins() {
    let mut connection = ns_2();
    connection.lose();
    let paused = connection.period();
    assert!(near(paused, 1.125e-6 + SYN));
    connection.path.next_seq = 160;
    connection.send(1, false);
    assert_eq!(connection.period(), paused, "packet 160 begins a pair");
    connection.path.next_seq = 161;
    connection.send(1, false);
    assert!(near(connection.period(), 1.125e-6));
}

#[test]
fn the_period_of_the_module_for_ns_2_is_from_a_microsecond_to_the_rtt() {
    let mut connection = ns_2();
    connection.acknowledge(100);
    connection.lose();
    for _ in 0..2000 {
        connection.signal(Signal::Loss, 0);
    }
    connection.send(2, true);
    assert!(near(connection.period(), 0.09));
    connection.algorithm.period = 1e-6;
    connection.acknowledge(100);
    assert_eq!(connection.period(), 1e-6);
}
