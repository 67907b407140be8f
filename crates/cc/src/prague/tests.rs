use super::*;
use crate::test_path::{Link, TestPath, init};

fn prague() -> Prague {
    let mut options = "prague".parse().expect("well formed");
    Prague::from_options(&mut options, &init(1)).expect("the defaults are valid")
}

/// Beyond slow start and its rounds, with this window and round-trip time.
fn settled(window: f64, rtt_ms: u64) -> (Prague, Path) {
    let prague = Prague {
        cwnd: window,
        ssthresh: window,
        frac_cwnd: window,
        saw_ce: true,
        round: RTT_TRANSITION,
        next_seq: u64::MAX,
        ..prague()
    };
    let now = Time::ZERO + Span::from_secs(1);
    let srtt = Some(Span::from_millis(rtt_ms));
    (prague, Path { srtt, cwnd_limited: true, ..Path::new(1448, now) })
}

#[test]
fn the_window_grows_by_one_packet_a_round_trip_above_the_target() {
    for (rtt_ms, expected) in [(25, 1.0), (60, 1.0), (5, 0.04), (10, 0.16)] {
        let (mut prague, path) = settled(50.0, rtt_ms);
        for _ in 0..50 {
            prague.on_ack(&path, &Ack::new(1));
        }
        let grown = prague.frac_cwnd - 50.0;
        assert!((grown / expected - 1.0).abs() < 0.02, "{grown} at {rtt_ms} ms");
    }
}

#[test]
fn the_window_grows_by_what_was_not_marked_also_during_a_reduction() {
    let (mut prague, path) = settled(50.0, 25);
    let path = Path { ca_state: CaState::Cwr, ..path };
    prague.on_ack(&path, &Ack::new(4).with_marked(1));
    assert!((prague.frac_cwnd - (50.0 + 3.0 / 50.0)).abs() < 1e-12);
    prague.on_ack(&path, &Ack::new(2).with_marked(2));
    assert!((prague.frac_cwnd - (50.0 + 3.0 / 50.0)).abs() < 1e-12);
}

#[test]
fn alpha_moves_1_16_of_the_way_to_the_fraction_of_marks() {
    let (mut prague, path) = settled(50.0, 60);
    let later = path.now + Span::from_millis(60);
    let round = |prague: &mut Prague, path: &Path| {
        prague.next_seq = 0;
        prague.on_ack(path, &Ack::new(1));
        prague.alpha
    };
    let path = Path { delivered: 100, marked: 10, ..path };
    assert_eq!(round(&mut prague, &path), 0.1 / 16.0);
    let path = Path { delivered: 200, marked: 60, now: later, ..path };
    let expected = 0.1 / 16.0 * 15.0 / 16.0 + 0.5 / 16.0;
    assert!((round(&mut prague, &path) - expected).abs() < 1e-15);
}

#[test]
fn a_mark_takes_half_of_alpha_at_most_every_25_ms() {
    let (mut prague, mut path) = settled(80.0, 5);
    (prague.alpha, prague.cwr_stamp) = (0.25, path.now);
    path.una = 100;
    let mark = Ack::new(1).with_marked(1);
    path.now += Span::from_millis(24);
    prague.on_ack(&path, &mark);
    assert_eq!(prague.frac_cwnd, 80.0);
    path.now += Span::from_millis(1);
    prague.on_ack(&path, &mark);
    assert_eq!((prague.frac_cwnd, prague.control().cwnd), (70.0, 79.0));
    prague.on_ack(&path, &Ack::default());
    assert_eq!(prague.control().cwnd, 78.0, "the window follows packet by packet");
}

#[test]
fn the_first_mark_halves_the_window_and_ends_slow_start() {
    let mut prague = prague();
    let srtt = Some(Span::from_millis(10));
    let path = Path { srtt, cwnd_limited: true, ..Path::new(1448, Time::ZERO) };
    for _ in 0..30 {
        prague.on_ack(&path, &Ack::new(1));
    }
    assert_eq!(prague.control().cwnd, 40.0);
    prague.on_ack(&path, &Ack::new(1).with_marked(1));
    assert_eq!((prague.frac_cwnd, prague.is_in_slow_start()), (20.0, false));
}

/// RFC 9331, section 4.3: a loss is answered as Reno answers it, also while marks reduce the window.
#[test]
fn a_loss_halves_the_window_once_a_recovery_and_undo_restores_it() {
    let (mut prague, path) = settled(80.0, 25);
    let path = Path { ca_state: CaState::Recovery, ..path };
    let loss = CongestionEvent::loss().with_new_episode(false);
    prague.on_congestion(&path, &loss);
    prague.on_congestion(&path, &loss);
    prague.on_ack(&path, &Ack::new(4));
    assert_eq!(prague.frac_cwnd, 40.0, "no growth either");
    prague.on_spurious_loss(&path);
    assert_eq!((prague.frac_cwnd, prague.cwnd), (80.0, 80.0));
}

/// The acknowledgement that ends a recovery may begin the next one: in Linux the state is Open between
/// them (`tcp_try_undo_recovery`).
#[test]
fn each_of_two_recoveries_without_a_pause_halves_the_window() {
    let (mut prague, path) = settled(80.0, 25);
    let path = Path { ca_state: CaState::Recovery, ..path };
    prague.on_congestion(&path, &CongestionEvent::loss());
    prague.on_ack(&path, &Ack::new(4));
    prague.on_congestion(&path, &CongestionEvent::loss());
    assert_eq!(prague.frac_cwnd, 20.0);
}

#[test]
fn packets_leave_at_a_window_per_rtt_in_bursts_of_a_quarter_millisecond() {
    let (mut prague, path) = settled(83.4, 10);
    prague.update_pacing_rate(&path);
    let rate = prague.control().pacing_rate.expect("it is paced").bytes_per_sec();
    assert!((rate - 83.0 * 1500.0 / 0.01).abs() < 1e-3, "{rate}");
    assert_eq!(prague.control().max_send_quantum, Some(2), "100 Mbit/s, 2^-12 s");
    (prague.cwnd, prague.ssthresh) = (83.0, f64::INFINITY);
    prague.update_pacing_rate(&path);
    let slow_start = prague.control().pacing_rate.expect("it is paced").bytes_per_sec();
    assert!((slow_start - 2.0 * rate).abs() < 1e-3);
}

#[test]
fn without_marks_it_is_reno() {
    let mut flow = TestPath::new(prague(), Link::new(10.0, 50, 43.0));
    flow.run_ms(20_000);
    let peak = flow.link.bdp() + 43.0;
    assert!(flow.run_until(Span::from_secs(20), |flow| flow.path.ca_state.is_reducing()));
    flow.run_ms(1);
    let window = flow.algorithm.frac_cwnd;
    assert!((window - peak / 2.0).abs() <= 2.0, "{window} for {}", peak / 2.0);
}

/// A step of 1 ms of queue, one flow: the queue stays about at the step and the link busy.
#[test]
fn the_queue_stays_at_a_step_of_a_millisecond() {
    for (mbit, rtt) in [(40.0, 10), (100.0, 20), (200.0, 25)] {
        let step = mbit * 1e3 / (1448.0 * 8.0);
        let link = Link { mark_above: Some(step), ..Link::new(mbit, rtt, 10_000.0) };
        let mut flow = TestPath::new(prague(), link);
        flow.echoes = true;
        flow.run_ms(10_000);
        let (before, mut most) = (flow.path.delivered, 0.0_f64);
        flow.run(Span::from_secs(10), |flow| most = most.max(flow.queued()));
        let used = (flow.path.delivered - before) as f64 * 1448.0 * 8.0 / (10.0 * mbit * 1e6);
        assert!(most < 2.0 * step + 2.0, "{most} packets for a step of {step}");
        assert!(used > 0.9, "{used} of {mbit} Mbit/s at {rtt} ms");
        assert_eq!(flow.dropped, 0);
    }
}
