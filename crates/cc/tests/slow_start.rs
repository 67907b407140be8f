//! Where slow start ends on a path like that of a kernel flow that was measured: Linux 6.18 CUBIC,
//! 100 Mbit/s, 100 ms, wire packets of 1500 bytes.
//!
//! In three runs with queues of half, one and two BDP, the kernel left slow start at 1063, 1063 and
//! 1064 packets; that is 640 packets, the window of the round, and 423 acknowledgements 120 us
//! apart, which are (100 ms + 1 ms) / 2.

use dumbbell_cc::{Ack, Algorithm, CongestionControl, ConnectionConfig, Path};
use dumbbell_units::{Rate, Span, Time};
use std::collections::VecDeque;

const RTT: Span = Span::from_millis(100);
/// What 1500 bytes take at 100 Mbit/s.
const PACKET: Span = Span::from_micros(120);

/// A lone flow through a queue without bound; every packet is acknowledged.
struct Flow {
    algorithm: Algorithm,
    path: Path,
    /// When the packets in flight were sent, and when they are acknowledged.
    in_flight: VecDeque<(Time, Time)>,
    link_free: Time,
}

impl Flow {
    fn new(algorithm: &str) -> Flow {
        let init = ConnectionConfig::new(Time::ZERO, 1448).with_seed(1);
        let algorithm = Algorithm::parse(algorithm, &init).expect("a built-in algorithm");
        let mut path = Path::new(1448, Time::ZERO);
        path.cwnd_limited = true;
        let mut flow = Flow { algorithm, path, in_flight: VecDeque::new(), link_free: Time::ZERO };
        flow.send();
        flow
    }

    fn send(&mut self) {
        while (self.in_flight.len() as f64) < self.algorithm.control().cwnd.floor() {
            self.link_free = self.link_free.max(self.path.now) + PACKET;
            self.in_flight.push_back((self.path.now, self.link_free + RTT));
            self.path.next_seq += 1;
        }
    }

    fn acknowledge(&mut self) {
        let (sent, acknowledged) = self.in_flight.pop_front().expect("a window is at least 1");
        let path = &mut self.path;
        path.now = acknowledged;
        path.una += 1;
        path.delivered += 1;
        let rtt = acknowledged.since(sent);
        path.srtt = Some(rtt);
        path.min_rtt = Some(path.min_rtt.unwrap_or(rtt).min(rtt));
        // Linux: twice the window a round trip in slow start.
        let window = 2.0 * self.algorithm.control().cwnd * 1448.0;
        path.pacing_rate = Some(Rate::from_bytes_in(window, rtt));
        let ack = Ack::new(1).with_rtt(Some(rtt));
        self.algorithm.on_ack(&self.path, &ack);
        self.send();
    }

    /// The threshold that slow start sets itself before it has sent 100,000 packets.
    fn threshold(mut self) -> Option<f64> {
        while self.path.next_seq < 100_000 {
            self.acknowledge();
            let ssthresh = self.algorithm.control().ssthresh;
            if ssthresh.is_finite() {
                return Some(ssthresh);
            }
        }
        None
    }
}

#[test]
fn cubic_leaves_slow_start_where_the_kernel_does() {
    let threshold = Flow::new("cubic").threshold().expect("HyStart ends slow start");
    assert!((threshold - 1063.0).abs() <= 5.0, "{threshold}");
}

/// The window doubles from 10 packets; a pipe of 833 is first full in the round that begins with
/// 1280, so the next one, which begins with 2560, is the first whose packets all wait. Its eighth
/// sample begins five rounds of growth by a quarter (RFC 9406, section 4.3).
#[test]
fn hystart_plus_plus_ends_five_quarters_after_the_first_round_that_waits() {
    let threshold = Flow::new("cubic(slow_start=hystart++)").threshold().expect("CSS ends");
    let expected = 2560.0 * 1.25 * 1.25 * 1.25 * 1.25 * 1.25;
    assert!((threshold / expected - 1.0).abs() < 0.01, "{threshold}, not {expected}");
}

#[test]
fn without_hystart_slow_start_goes_on_until_there_is_loss() {
    assert_eq!(Flow::new("cubic(slow_start=standard)").threshold(), None);
}
