//! Average windows under the loss model of RFC 9438, section 5: a loss every 1/p packets, rounds of
//! fixed length, no queue.

use dumbbell_cc::{Ack, Algorithm, Congestion, CongestionControl, Init, Path, Signal};
use dumbbell_units::{Span, Time};

/// Cycles from loss to loss before the mean is taken, and over which it is.
///
/// It takes many: at its plateau the cubic is flat, so a window that is too great is only a little
/// less so after the next loss, and what is left after n cycles falls as 1/sqrt(n).
const SETTLE: u32 = 400;
const MEASURE: u32 = 40;

/// Packets acknowledged at once, as a part of the window: fine enough that growth within a round
/// follows the window, coarse enough for windows of 100,000 packets.
const STEP: f64 = 1.0 / 4.0;

struct Model {
    algorithm: Algorithm,
    path: Path,
    /// Packets acknowledged since the last loss.
    since_loss: f64,
}

impl Model {
    fn new(algorithm: &str, rtt: Span) -> Model {
        let init = Init { now: Time::ZERO, mss: 1448, initial_window: 10.0, seed: 1 };
        let algorithm = Algorithm::parse(algorithm, &init).expect("a built-in algorithm");
        let path = Path {
            srtt: Some(rtt),
            min_rtt: Some(rtt),
            cwnd_limited: true,
            ..Path::new(1448, Time::ZERO)
        };
        Model { algorithm, path, since_loss: 0.0 }
    }

    /// Runs to the next loss and says how many round trips that took.
    fn cycle(&mut self, packets: f64, rtt: Span) -> f64 {
        let mut rounds = 0.0;
        while self.since_loss < packets {
            let cwnd = self.algorithm.control().cwnd;
            let counted = (cwnd * STEP).ceil().min((packets - self.since_loss).ceil());
            self.since_loss += counted;
            rounds += counted / cwnd;
            self.path.now += rtt.mul_f64(counted / cwnd);
            let ack = Ack { delivered: counted as u32, counted: counted as u32, ..Ack::default() };
            self.algorithm.on_ack(&self.path, &ack);
        }
        self.since_loss -= packets;
        let signal = Signal::Loss;
        let loss = Congestion { signal, new_episode: true, packets: 1, seq: 0, stamp: None };
        self.algorithm.on_congestion(&self.path, &loss);
        rounds
    }
}

/// Mean window, packets, of `algorithm` with one loss in `1 / p` packets.
fn mean_window(algorithm: &str, rtt_seconds: f64, p: f64) -> f64 {
    let rtt = Span::from_secs_f64(rtt_seconds);
    let mut model = Model::new(algorithm, rtt);
    for _ in 0..SETTLE {
        model.cycle(1.0 / p, rtt);
    }
    let rounds: f64 = (0..MEASURE).map(|_| model.cycle(1.0 / p, rtt)).sum();
    f64::from(MEASURE) / p / rounds
}

fn assert_within_ten_percent(mean: f64, expected: f64, what: &str) {
    assert!((mean / expected - 1.0).abs() < 0.1, "{what}: {mean:.1} packets, not {expected}");
}

/// CUBIC's columns of a table of RFC 9438: loss rate, mean window for C = 0.04, 0.4 and 4.
fn assert_table(rtt: f64, rows: [(f64, [f64; 3]); 7]) {
    for (p, windows) in rows {
        for (c, expected) in ["0.04", "0.4", "4"].into_iter().zip(windows) {
            // There is one flow, for which section 4.7 says to disable fast convergence.
            let cubic = format!("cubic(c={c}, hystart=off, fast_convergence=off)");
            let what = format!("C = {c}, RTT {rtt} s, p = {p:e}");
            assert_within_ten_percent(mean_window(&cubic, rtt, p), expected, &what);
        }
    }
}

#[test]
fn cubic_has_the_windows_of_rfc_9438_table_1_at_100_ms() {
    assert_table(
        0.1,
        [
            (1e-2, [12.0, 12.0, 12.0]),
            (1e-3, [38.0, 38.0, 59.0]),
            (1e-4, [120.0, 187.0, 333.0]),
            (1e-5, [593.0, 1054.0, 1874.0]),
            (1e-6, [3332.0, 5926.0, 10538.0]),
            (1e-7, [18740.0, 33325.0, 59261.0]),
            (1e-8, [105383.0, 187400.0, 333250.0]),
        ],
    );
}

#[test]
fn cubic_has_the_windows_of_rfc_9438_table_2_at_10_ms() {
    assert_table(
        0.01,
        [
            (1e-2, [12.0, 12.0, 12.0]),
            (1e-3, [38.0, 38.0, 38.0]),
            (1e-4, [120.0, 120.0, 120.0]),
            (1e-5, [379.0, 379.0, 379.0]),
            (1e-6, [1200.0, 1200.0, 1874.0]),
            (1e-7, [3795.0, 5926.0, 10538.0]),
            (1e-8, [18740.0, 33325.0, 59261.0]),
        ],
    );
}

/// Mathis, Semke, Mahdavi and Ott, "The macroscopic behavior of the TCP congestion avoidance
/// algorithm" (1997): the mean window is sqrt(3 / (2 p)).
#[test]
fn reno_has_the_window_of_mathis_at_every_loss_rate() {
    for p in [1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8] {
        let what = format!("Reno, p = {p:e}");
        assert_within_ten_percent(mean_window("reno", 0.1, p), (1.5 / p).sqrt(), &what);
    }
}
