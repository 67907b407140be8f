use super::*;
use crate::{Algorithm, CaState, StandardSlowStart};

const TIMEOUT: CongestionEvent = CongestionEvent::timeout();

fn algorithm(name: &str) -> Algorithm {
    let init = ConnectionConfig::new(Time::ZERO, 1448).with_seed(1);
    Algorithm::parse(name, &init).expect("a built-in algorithm")
}

fn path() -> Path {
    let rtt = Some(Span::from_millis(100));
    Path { cwnd_limited: true, min_rtt: rtt, ..Path::new(1448, Time::ZERO) }
}

fn acknowledge(algorithm: &mut Algorithm, path: &Path, acked: u32) -> (f64, f64) {
    let ack = Ack { delivered: acked, acked, rtt: path.min_rtt, ..Ack::default() };
    algorithm.on_ack(path, &ack);
    window(algorithm)
}

fn window(algorithm: &Algorithm) -> (f64, f64) {
    let control = algorithm.control();
    (control.cwnd, control.ssthresh)
}

#[test]
fn packets_left_over_at_the_threshold_count_in_congestion_avoidance() {
    let mut reno = algorithm("reno");
    assert_eq!(acknowledge(&mut reno, &path(), 10), (20.0, f64::INFINITY));
    reno.on_congestion(&path(), &TIMEOUT);
    assert_eq!(window(&reno), (1.0, 10.0));
    assert_eq!(acknowledge(&mut reno, &path(), 10), (10.0 + 1.0 / 10.0, 10.0));
}

#[test]
fn after_a_timeout_the_window_is_one_more_than_is_in_flight() {
    let mut reno = algorithm("reno");
    reno.on_congestion(&Path { in_flight: 4, ..path() }, &TIMEOUT);
    assert_eq!(window(&reno), (5.0, 5.0));
}

/// tcp_enter_loss: `snd_cwnd_cnt` is 0, whether or not the timeout begins an episode.
#[test]
fn after_every_timeout_packets_are_counted_anew() {
    let linux =
        ["reno", "dctcp", "cubic", "bic", "hstcp"].map(|name| format!("{name}(arithmetic=linux)"));
    let others = ["htcp", "hybla", "illinois", "vegas", "veno", "westwood"].map(str::to_owned);
    for name in linux.iter().chain(&others) {
        let mut algorithm = algorithm(name);
        let mut path = Path { ca_state: CaState::Loss, in_flight: 19, next_seq: 1000, ..path() };
        algorithm.on_congestion(&path, &TIMEOUT);
        let mut acknowledgements = |most| {
            algorithm.on_congestion(&path, &TIMEOUT.with_new_episode(false));
            (1..=most).find(|_| {
                path.una += 1;
                acknowledge(&mut algorithm, &path, 1).0 > 20.0
            })
        };
        let window = acknowledgements(100).expect("growth");
        assert_eq!(acknowledgements(window - 1), None, "{name}");
        assert_eq!(acknowledgements(window), Some(window), "{name}");
    }
}

#[test]
fn an_episode_reduces_the_window_once_and_stops_its_growth() {
    for (name, beta) in [("reno", 0.5), ("cubic", 0.7)] {
        let mut algorithm = algorithm(name);
        acknowledge(&mut algorithm, &path(), 90);
        algorithm.on_congestion(&path(), &CongestionEvent::loss());
        algorithm.on_congestion(&path(), &CongestionEvent::loss().with_new_episode(false));
        assert_eq!(window(&algorithm), (100.0 * beta, 100.0 * beta), "{name}");
        let recovery = Path { ca_state: CaState::Recovery, ..path() };
        assert_eq!(acknowledge(&mut algorithm, &recovery, 10).0, 100.0 * beta, "{name}");
        assert!(acknowledge(&mut algorithm, &path(), 10).0 > 100.0 * beta, "{name}");
    }
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let unused = Path { cwnd_limited: false, ..path() };
    assert_eq!(acknowledge(&mut algorithm("cubic"), &unused, 10).0, 10.0);
}

/// tcp_vegas_cong_avoid.
#[test]
fn vegas_grows_an_unused_window_unless_it_acts_as_reno() {
    let unused = Path { cwnd_limited: false, ..path() };
    let mut vegas = algorithm("vegas");
    assert_eq!(acknowledge(&mut vegas, &unused, 10).0, 20.0);
    let disorder = Path { ca_state: CaState::Disorder, ..unused };
    assert_eq!(acknowledge(&mut vegas, &disorder, 10).0, 20.0);
}

/// RFC 9406, section 4.3: 8 packets an acknowledgement at most, in the initial slow start only.
#[test]
fn loss_ends_hystart_plus_plus_for_good() {
    let mut reno = algorithm("reno(slow_start=hystart++)");
    assert_eq!(acknowledge(&mut reno, &path(), 40).0, 18.0);
    reno.on_congestion(&path(), &CongestionEvent::loss());
    reno.on_restart_after_idle(4.0);
    assert_eq!(acknowledge(&mut reno, &path(), 40), (9.0 + 35.0 / 9.0, 9.0));
}

/// tcp_current_ssthresh: `(snd_cwnd >> 1) + (snd_cwnd >> 2)`.
#[test]
fn a_window_cut_after_idle_raises_the_threshold_to_3_4_of_it() {
    let mut reno = algorithm("reno(initial_ssthresh=80)");
    acknowledge(&mut reno, &path(), 30);
    assert_eq!(window(&reno), (40.0, 80.0));
    reno.on_restart_after_idle(20.0);
    assert_eq!(window(&reno), (20.0, 80.0));
    reno.on_congestion(&path(), &CongestionEvent::loss());
    assert_eq!(window(&reno), (10.0, 10.0));
    reno.on_restart_after_idle(10.0);
    (0..12).for_each(|_| _ = acknowledge(&mut reno, &path(), 10));
    let cwnd = window(&reno).0 as u64;
    assert_eq!((cwnd, cwnd / 2 + cwnd / 4), (18, 13), "not 13.5");
    reno.on_restart_after_idle(10.0);
    assert_eq!(window(&reno), (10.0, 13.0));
}

/// mptcp_rcv_buf_optimization: "If in slow start, do not reduce the ssthresh".
#[test]
fn a_penalty_halves_the_threshold_only_if_the_window_had_reached_it() {
    let mut reno = algorithm("reno(initial_ssthresh=80)");
    acknowledge(&mut reno, &path(), 30);
    reno.on_receive_window_penalty(&path());
    assert_eq!(window(&reno), (20.0, 80.0), "in slow start");
    acknowledge(&mut reno, &path(), 60);
    reno.on_receive_window_penalty(&path());
    assert_eq!(window(&reno), (40.0, 40.0));
    (0..8).for_each(|_| reno.on_receive_window_penalty(&path()));
    assert_eq!(window(&reno), (1.0, 2.0), "the least that Linux leaves");
}

#[test]
fn a_penalty_changes_neither_w_max_nor_the_undo_state() {
    let mut cubic = algorithm("cubic");
    acknowledge(&mut cubic, &path(), 90);
    cubic.on_receive_window_penalty(&path());
    cubic.on_spurious_loss(&path());
    assert_eq!(window(&cubic), (50.0, f64::INFINITY));
}

#[test]
fn the_threshold_is_never_below_two_packets() {
    let mut reno = algorithm("reno");
    reno.on_congestion(&path(), &TIMEOUT);
    reno.on_congestion(&path(), &TIMEOUT);
    assert_eq!(window(&reno), (1.0, 2.0));
}

#[test]
fn a_spurious_reduction_is_undone_once() {
    for (name, event) in [
        ("reno", CongestionEvent::loss()),
        ("cubic", CongestionEvent::loss()),
        ("reno", TIMEOUT),
        ("cubic", TIMEOUT),
    ] {
        let mut algorithm = algorithm(name);
        acknowledge(&mut algorithm, &path(), 90);
        algorithm.on_congestion(&path(), &event);
        algorithm.on_spurious_loss(&path());
        assert_eq!(window(&algorithm), (100.0, f64::INFINITY), "{name}");
        algorithm.on_congestion(&path(), &CongestionEvent::loss());
        algorithm.on_spurious_loss(&path());
        algorithm.on_congestion(&path(), &CongestionEvent::loss().with_new_episode(false));
        algorithm.on_spurious_loss(&path());
        assert_eq!(window(&algorithm), (100.0, f64::INFINITY), "{name}");
    }
}

/// tcp_enter_cwr: prior_ssthresh = 0.
#[test]
fn a_reduction_for_an_ecn_echo_is_not_undone() {
    let mut reno = algorithm("reno");
    acknowledge(&mut reno, &path(), 90);
    reno.on_congestion(&path(), &CongestionEvent::ecn());
    reno.on_congestion(&path(), &CongestionEvent::loss().with_new_episode(false));
    reno.on_spurious_loss(&path());
    assert_eq!(window(&reno), (50.0, 50.0));
}

#[test]
fn after_hystart_ends_slow_start_congestion_avoidance_grows_the_window() {
    for (name, after) in
        [("cubic", 100.0 + 0.05), ("reno(slow_start=hystart-delay)", 100.0 + 1.0 / 100.0)]
    {
        let mut algorithm = algorithm(name);
        acknowledge(&mut algorithm, &path(), 90);
        let mut path = Path { next_seq: 200, una: 100, ..path() };
        for _ in 0..9 {
            assert_eq!(window(&algorithm), (100.0, f64::INFINITY), "{name}");
            path.now += Span::from_millis(3);
            let rtt = Some(Span::from_millis(120));
            let ack = Ack { acked: 1, rtt, ..Ack::default() };
            // All but the last are delay samples only: the window does not limit sending.
            path.una += 1;
            path.cwnd_limited = path.una == 109;
            algorithm.on_ack(&path, &ack);
        }
        let (cwnd, ssthresh) = window(&algorithm);
        assert_eq!(ssthresh, 100.0, "{name}");
        assert!((cwnd - after).abs() < 1e-9, "{name}: {cwnd}");
    }
}

/// Sets the window to 50 packets on every acknowledgement of one packet.
struct FixedWindow;

impl WindowRule for FixedWindow {
    fn increase(&mut self, _cwnd: f64, acked: f64, _path: &Path, _ack: &Ack) -> f64 {
        acked
    }

    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
        cwnd / 2.0
    }

    fn set_window(
        &mut self,
        _cwnd: f64,
        _ssthresh: f64,
        _path: &Path,
        ack: &Ack,
    ) -> Option<(f64, f64)> {
        (ack.acked == 1).then_some((50.0, 40.0))
    }
}

#[test]
fn set_window_replaces_growth_except_during_a_reduction() {
    let init = ConnectionConfig::new(Time::ZERO, 1448).with_seed(1);
    let slow_start = crate::StandardSlowStart;
    let mut algorithm = Windowed::new(FixedWindow, slow_start, &init).with_ssthresh(100.0);
    let mut acknowledge = |path: &Path, acked: u32| {
        algorithm.on_ack(path, &Ack { delivered: acked, acked, ..Ack::default() });
        let control = algorithm.control();
        (control.cwnd, control.ssthresh)
    };
    assert_eq!(acknowledge(&path(), 2), (12.0, 100.0));
    let recovery = Path { ca_state: CaState::Recovery, ..path() };
    assert_eq!(acknowledge(&recovery, 1), (12.0, 100.0));
    assert_eq!(acknowledge(&path(), 1), (50.0, 40.0));
    assert_eq!(acknowledge(&path(), 2), (52.0, 40.0));
}

/// A rule and a slow start that count the frame's calls.
#[derive(Default)]
struct CallCounter {
    timeouts: u32,
    undone: u32,
    pauses: Vec<(u64, Span)>,
    restarts: u32,
}

impl WindowRule for CallCounter {
    fn increase(&mut self, _cwnd: f64, _counted: f64, _path: &Path, _ack: &Ack) -> f64 {
        0.0
    }

    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
        cwnd
    }

    fn on_timeout(&mut self) {
        self.timeouts += 1;
    }

    fn on_undo(&mut self, _path: &Path) {
        self.undone += 1;
    }

    fn on_restart(&mut self, path: &Path, pause: Span) {
        self.pauses.push((path.next_seq, pause));
    }
}

impl SlowStart for CallCounter {
    fn restart(&mut self, _path: &Path) {
        self.restarts += 1;
    }
}

fn counted() -> Windowed<CallCounter, CallCounter> {
    let init = ConnectionConfig::new(Time::ZERO, 1448).with_seed(1);
    Windowed::new(CallCounter::default(), CallCounter::default(), &init)
}

#[test]
fn every_timeout_and_every_undo_reaches_the_rule() {
    let mut windowed = counted();
    windowed.on_congestion(&path(), &CongestionEvent::loss());
    assert_eq!((windowed.rule.timeouts, windowed.slow_start.restarts), (0, 0));
    windowed.on_congestion(&path(), &TIMEOUT);
    windowed.on_congestion(&path(), &TIMEOUT.with_new_episode(false));
    assert_eq!((windowed.rule.timeouts, windowed.slow_start.restarts), (2, 2));
    windowed.on_spurious_loss(&path());
    windowed.on_spurious_loss(&path());
    assert_eq!(windowed.rule.undone, 1);
}

#[test]
fn on_restart_gives_the_length_of_a_pause_of_the_application() {
    let mut windowed = counted();
    let mut path = path();
    let mut send = |wait: u64, sent: Sent| {
        path.now += Span::from_secs(wait);
        path.next_seq += u64::from(!sent.retransmission);
        windowed.on_sent(&path, &sent);
    };
    let from_idle = Sent::new(0).with_from_idle(true);
    send(1, Sent::new(0));
    send(2, Sent::new(0).with_app_limited(true)); // packets were in flight
    send(3, from_idle); // limited by the window or the peer
    send(4, from_idle.with_app_limited(true));
    send(5, from_idle.with_retransmission(true));
    // The sequence numbers are those before the packet (tcp_event_data_sent).
    let pauses = [(2, 0), (3, 4), (4, 5)].map(|(next, pause)| (next, Span::from_secs(pause)));
    assert_eq!(windowed.rule.pauses, pauses);
}

/// Sends so many packets at once and acknowledges each; the window does not limit sending.
fn send_and_acknowledge(algorithm: &mut Algorithm, packets: u32) -> f64 {
    let unused = Path { cwnd_limited: false, ..path() };
    for in_flight in (1..=packets).rev() {
        let ack = Ack { rtt: unused.min_rtt, prior_in_flight: in_flight, ..Ack::new(1) };
        algorithm.on_ack(&unused, &ack);
    }
    algorithm.control().cwnd
}

/// The appendix "An Example Using cwnd Represented in Bytes", in packets.
#[test]
fn rate_limited_increase_gives_the_windows_of_the_drafts_example() {
    let mut reno = algorithm("reno(rate_limited_increase=on)");
    let windows = [4, 8, 4, 20].map(|packets| send_and_acknowledge(&mut reno, packets));
    assert_eq!(windows, [14.0, 20.0, 20.0, 40.0]);
    let mut default = algorithm("reno");
    let windows = [4, 8, 4].map(|packets| send_and_acknowledge(&mut default, packets));
    assert_eq!(windows, [10.0; 3]);
}

/// Section 3: `limit(maxFS)` is `SMSS + maxFS`, and `maxFS` begins anew with a reduction. A flight that
/// fills the window up to a fraction of a packet has its size.
#[test]
fn in_congestion_avoidance_the_window_is_at_most_max_fs_and_a_packet() {
    let mut reno = algorithm("reno(rate_limited_increase=on)");
    send_and_acknowledge(&mut reno, 10);
    for _ in 0..2 {
        reno.on_congestion(&path(), &CongestionEvent::loss());
    }
    assert_eq!(window(&reno), (5.0, 5.0));
    for _ in 0..100 {
        let window = send_and_acknowledge(&mut reno, 4);
        assert!((window - 5.0).abs() < 1e-9, "4 and a packet: {window}");
    }
    let grown = (0..100).map(|_| send_and_acknowledge(&mut reno, 5)).collect::<Vec<_>>();
    assert!((6.0..7.0).contains(&grown[99]), "{}", grown[99]);
    assert!((grown[99] - grown[98]).abs() < 1e-9);
}

#[test]
fn a_sender_that_fills_its_window_grows_alike_with_rate_limited_increase() {
    for name in ["reno", "cubic(arithmetic=exact)", "hstcp", "reno(slow_start=rapid)"] {
        let with = match name.strip_suffix(')') {
            Some(text) => format!("{text}, rate_limited_increase=on)"),
            None => format!("{name}(rate_limited_increase=on)"),
        };
        let (mut with, mut without) = (algorithm(&with), algorithm(name));
        let path = Path { window_full: true, ..path() };
        for round in 0..200 {
            if round == 5 {
                with.on_congestion(&path, &CongestionEvent::loss());
                without.on_congestion(&path, &CongestionEvent::loss());
            }
            let in_flight = without.control().cwnd as u32;
            for _ in 0..in_flight {
                let ack = Ack { rtt: path.min_rtt, prior_in_flight: in_flight, ..Ack::new(1) };
                with.on_ack(&path, &ack);
                without.on_ack(&path, &ack);
            }
            assert_eq!(window(&with), window(&without), "{name}, round {round}");
        }
    }
}

#[derive(Clone, Debug)]
struct Backoff;

impl WindowRule for Backoff {
    fn increase(&mut self, _cwnd: f64, _acked: f64, _path: &Path, _ack: &Ack) -> f64 {
        -0.5
    }

    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &CongestionEvent) -> f64 {
        cwnd / 2.0
    }

    fn lowers_ssthresh(&self) -> bool {
        true
    }
}

#[test]
fn a_negative_increase_lowers_the_window_and_the_threshold() {
    let init = ConnectionConfig::new(Time::ZERO, 1448);
    let mut control = Windowed::new(Backoff, StandardSlowStart, &init);
    let path = Path { cwnd_limited: true, ..Path::new(1448, Time::ZERO) };
    control.on_congestion(&path, &CongestionEvent::timeout());
    let ack = |acked| Ack { delivered: acked, acked, ..Ack::default() };
    let mut windows = Vec::new();
    for acked in [10, 1, 1] {
        control.on_ack(&path, &ack(acked));
        windows.push((control.control().cwnd, control.control().ssthresh));
    }
    assert_eq!(windows, [(4.5, 4.5), (4.0, 4.0), (3.5, 3.5)]);
}

/// Linux: `cubictcp_acked` runs in a recovery too, where the window in force is below `ssthresh`. The ACK
/// train is longer than half the minimum round-trip time.
#[test]
fn hystart_lowers_the_target_of_a_recovery() {
    for (prr_cwnd, window_after) in [(40, (40.0, 40.0)), (80, (70.0, 70.0)), (10, (70.0, 70.0))] {
        let mut cubic = algorithm("cubic");
        acknowledge(&mut cubic, &path(), 90);
        cubic.on_congestion(&path(), &CongestionEvent::loss());
        for ms in 1..=60 {
            let path = Path {
                ca_state: CaState::Recovery,
                prr_cwnd: Some(prr_cwnd),
                now: Time::ZERO + Span::from_millis(ms),
                ..path()
            };
            acknowledge(&mut cubic, &path, 0);
        }
        assert_eq!(window(&cubic), window_after, "{prr_cwnd} packets");
    }
}

/// Linux `tcp_event_data_sent`: `CA_EVENT_TX_START` whenever nothing is in flight.
#[test]
fn the_first_retransmission_after_a_timeout_forgets_base_rtt() {
    for (name, base) in [("vegas", "baseRTT"), ("veno", "BaseRTT")] {
        for from_idle in [false, true] {
            let mut algorithm = algorithm(name);
            acknowledge(&mut algorithm, &path(), 1);
            algorithm.on_congestion(&path(), &TIMEOUT);
            let loss = Path { ca_state: CaState::Loss, ..path() };
            let sent = Sent::new(0).with_retransmission(true).with_from_idle(from_idle);
            algorithm.on_sent(&loss, &sent);
            let mut knows_base = false;
            algorithm.inspect(&mut |metric| knows_base |= metric.name == base);
            assert_eq!(knows_base, !from_idle, "{name}");
        }
    }
}
