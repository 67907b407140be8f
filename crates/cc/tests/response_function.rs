//! Average windows under the loss model of RFC 9438, section 5: a loss every 1/p packets, rounds of
//! fixed length, no queue.

use dumbbell_cc::{Ack, Algorithm, CongestionControl, CongestionEvent, ConnectionConfig, Path};
use dumbbell_units::{Span, Time};

/// Cycles from loss to loss before the mean is taken, and over which it is.
///
/// It takes many: at its plateau the cubic is flat, so a window that is too great is only a little
/// less so after the next loss, and what is left after n cycles falls as 1/sqrt(n). BIC is nearly
/// as flat: within 8 packets of its plateau it grows by a fifth of a packet a round.
const SETTLE: u32 = 800;
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
        let init = ConnectionConfig::new(Time::ZERO, 1448).with_seed(1);
        let algorithm = Algorithm::parse(algorithm, &init).expect("a built-in algorithm");
        let mut path = Path::new(1448, Time::ZERO);
        (path.srtt, path.min_rtt, path.cwnd_limited) = (Some(rtt), Some(rtt), true);
        Model { algorithm, path, since_loss: 0.0 }
    }

    /// Runs to the next loss and says how many round trips that took.
    fn cycle(&mut self, packets: f64, rtt: Span) -> f64 {
        let mut rounds = 0.0;
        while self.since_loss < packets {
            let cwnd = self.algorithm.control().cwnd;
            let acked = (cwnd * STEP).ceil().min((packets - self.since_loss).ceil());
            self.since_loss += acked;
            rounds += acked / cwnd;
            self.path.now += rtt.mul_f64(acked / cwnd);
            self.algorithm.on_ack(&self.path, &Ack::new(acked as u32));
        }
        self.since_loss -= packets;
        let loss = CongestionEvent::loss();
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
            let options = "slow_start=standard, fast_convergence=off, tcp_friendliness=rfc";
            let cubic = format!("cubic(c={c}, {options})");
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

/// RFC 3649, section 5: w = 0.12 / p^0.835 above 38 packets, which is a loss rate of 10^-3.
#[test]
fn highspeed_tcp_has_the_windows_of_rfc_3649() {
    for p in [1e-3, 1e-4, 1e-5, 1e-6, 1e-7] {
        let expected = 0.12 / libm::pow(p, 0.835);
        assert_within_ten_percent(mean_window("hstcp", 0.1, p), expected, &format!("p = {p:e}"));
    }
}

/// A loss takes an eighth of the window, which grows by a hundredth of a packet for each of the 1/p
/// packets between two losses: from seven eighths of a peak w to w in log(8/7) / 0.01 round trips.
#[test]
fn scalable_tcp_has_the_windows_of_its_equations() {
    for p in [1e-4, 1e-5, 1e-6, 1e-7] {
        let expected = 0.01 / libm::log(8.0 / 7.0) / p;
        assert_within_ten_percent(mean_window("stcp", 0.1, p), expected, &format!("p = {p:e}"));
    }
}

/// BIC between two losses at a window of `w_max` packets (section III of the paper, with Linux's
/// numbers): round trips, and packets acknowledged.
fn bic_cycle(w_max: f64, s_max: f64) -> (f64, f64) {
    let bottom = w_max * 819.0 / 1024.0;
    // A quarter of the distance is S_max where the search begins, and 8 packets where it is smooth.
    let search = (w_max - 4.0 * (s_max + 1.0)).max(bottom);
    let smooth = w_max - 8.0;
    let stages = [
        ((search - bottom) / s_max, (bottom + search) / 2.0),
        // The distance falls by a quarter a round trip, or by a little less in whole packets.
        (4.0 * libm::log((w_max - search) / 8.0), smooth - 16.0),
        (8.0 / 0.2, w_max - 4.0),
    ];
    let rounds = stages.iter().map(|(rounds, _)| rounds).sum();
    (rounds, stages.iter().map(|(rounds, window)| rounds * window).sum())
}

#[test]
fn bic_has_the_windows_of_its_search() {
    for s_max in [16.0, 32.0] {
        for p in [1e-4, 1e-5, 1e-6] {
            let (mut low, mut high) = (100.0, 1e6);
            while high - low > 0.1 {
                let middle = (low + high) / 2.0;
                let enough = bic_cycle(middle, s_max).1 > 1.0 / p;
                if enough { high = middle } else { low = middle }
            }
            let expected = 1.0 / p / bic_cycle(low, s_max).0;
            let bic = format!("bic(s_max={s_max}, fast_convergence=off, ack_ratio=off)");
            let what = format!("S_max = {s_max}, p = {p:e}");
            assert_within_ten_percent(mean_window(&bic, 0.1, p), expected, &what);
        }
    }
}

/// RFC 9438, equation 6, with the decrease and the C of 2006.
#[test]
fn cubic_of_2006_has_the_windows_of_its_equation_if_not_limited() {
    let (c, decrease) = (410.0 / 1024.0, 205.0 / 1024.0);
    for p in [1e-4, 1e-5] {
        let factor = libm::pow(c * (4.0 - decrease) / (4.0 * decrease), 0.25);
        let expected = factor * libm::pow(0.1 / p, 0.75);
        let mean = mean_window("cubic-2006(errors=off, fast_convergence=off)", 0.1, p);
        assert_within_ten_percent(mean, expected, &format!("p = {p:e}"));
    }
}

/// Additive increase by 20 packets a second and decrease by a fifth (Mathis et al., for any AIMD).
#[test]
fn cubic_of_2006_as_it_ran_has_the_windows_of_additive_increase() {
    let decrease = 205.0 / 1024.0;
    for (rtt, p) in [(0.1, 1e-6), (0.2, 1e-6), (0.2, 1e-5_f64)] {
        let expected = (20.0 * rtt * (2.0 - decrease) / (2.0 * decrease * p)).sqrt();
        let mean = mean_window("cubic-2006(fast_convergence=off)", rtt, p);
        assert_within_ten_percent(mean, expected, &format!("RTT {rtt} s, p = {p:e}"));
    }
}
