//! Westwood+ (Grieco and Mascolo, "Performance evaluation and comparison of Westwood+, New Reno, and
//! Vegas TCP congestion control", ACM CCR 34(2), 2004), as Linux's `tcp_westwood.c` carries it out.
//!
//! Growth is Reno's. What loss leaves of the window is what the path was seen to carry:
//!
//! ```text
//! ssthresh = cwnd = BWE RTTmin      at least 2 packets
//! ```
//!
//! `BWE` is low-pass filtered twice from one sample a round trip, or each 50 ms if that is longer:
//! what was acknowledged, over the time that it took.
//!
//! ```text
//! first <- 7/8 first + 1/8 sample
//! BWE   <- 7/8 BWE   + 1/8 first
//! ```
//!
//! The first sample sets both.
//!
//! Linux halves the window when recovery begins and sets it to `BWE RTTmin` when it ends, even if
//! that is more than it had; here recovery leads to `BWE RTTmin` at once, and never above the
//! window that there was (the paper: `if cwnd > ssthresh then cwnd = ssthresh`). After a timeout
//! Linux measures `RTTmin` anew.

use crate::{Ack, Congestion, Inspect, Path, WindowRule};
use dumbbell_units::{Span, Time};

/// The least time over which bandwidth is measured (Linux's `TCP_WESTWOOD_RTT_MIN`).
const MIN_SAMPLE: Span = Span::from_millis(50);

/// Westwood+'s rule.
#[derive(Clone, Copy, Debug, Default)]
pub struct Westwood {
    /// The once filtered bandwidth and the twice filtered one, packets/s.
    filtered: Option<(f64, f64)>,
    /// Packets delivered since the sample began.
    delivered: u64,
    sample_began: Option<Time>,
    rtt: Option<Span>,
    rtt_min: Option<Span>,
}

impl Westwood {
    fn end_sample(&mut self, path: &Path) {
        let (Some(began), Some(rtt)) = (self.sample_began, self.rtt) else {
            self.sample_began = Some(path.now);
            return;
        };
        let length = path.now.since(began);
        if length <= rtt.max(MIN_SAMPLE) {
            return;
        }
        let sample = self.delivered as f64 / length.as_secs_f64();
        self.filtered = Some(match self.filtered {
            None => (sample, sample),
            Some((first, bwe)) => {
                let first = (7.0 * first + sample) / 8.0;
                (first, (7.0 * bwe + first) / 8.0)
            }
        });
        self.delivered = 0;
        self.sample_began = Some(path.now);
    }
}

impl WindowRule for Westwood {
    #[inline]
    fn increase(&mut self, cwnd: f64, counted: f64, _path: &Path, _ack: &Ack) -> f64 {
        counted / cwnd
    }

    fn decrease(&mut self, cwnd: f64, _path: &Path, _event: &Congestion) -> f64 {
        let (Some((_, bwe)), Some(rtt_min)) = (self.filtered, self.rtt_min) else {
            return cwnd / 2.0;
        };
        (bwe * rtt_min.as_secs_f64()).min(cwnd)
    }

    fn observe(&mut self, path: &Path, ack: &Ack) {
        self.end_sample(path);
        self.delivered += u64::from(ack.delivered);
        if let Some(rtt) = ack.rtt {
            self.rtt = Some(rtt);
            self.rtt_min = Some(self.rtt_min.map_or(rtt, |least| least.min(rtt)));
        }
    }

    fn on_timeout(&mut self) {
        self.rtt_min = None;
    }

    fn inspect(&self, show: &mut dyn FnMut(Inspect)) {
        if let Some((_, bwe)) = self.filtered {
            show(Inspect { name: "BWE", value: bwe });
        }
        if let Some(rtt_min) = self.rtt_min {
            show(Inspect { name: "RTTmin", value: rtt_min.as_secs_f64() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipe::{Link, Pipe, init};
    use crate::{AnySlowStart, CongestionControl, Windowed};

    fn westwood(link: Link) -> Pipe<Windowed<Westwood, AnySlowStart>> {
        Pipe::new(Windowed::new(Westwood::default(), AnySlowStart::STANDARD, &init(1)), link)
    }

    fn reduction(pipe: &mut Pipe<Windowed<Westwood, AnySlowStart>>) -> (f64, f64) {
        let mut before = 0.0;
        assert!(pipe.run_until(Span::from_secs(60), |pipe| {
            let reducing = pipe.path.phase.is_reducing();
            if !reducing {
                before = pipe.algorithm.control().cwnd;
            }
            reducing
        }));
        (before, pipe.algorithm.control().cwnd)
    }

    #[test]
    fn after_the_queue_overflowed_the_window_is_the_bandwidth_delay_product() {
        let link = Link::new(20.0, 100, 100.0);
        let mut pipe = westwood(link);
        pipe.run_ms(60_000);
        let (before, after) = reduction(&mut pipe);
        assert!(before > link.bdp() + 99.0, "{before}");
        assert!((after / link.bdp() - 1.0).abs() < 0.02, "{after}, BDP {}", link.bdp());
    }

    #[test]
    fn loss_that_congestion_did_not_cause_leaves_the_window_as_it_was() {
        let mut pipe = westwood(Link::new(20.0, 100, 100.0));
        pipe.run_ms(60_000);
        // Let the flow be well below the rate of the link, and its estimate follow.
        pipe.link.rate = pipe.link.rate * 50.0;
        pipe.run_ms(20_000);
        pipe.link.loses = |seq| seq % 50_000 == 0;
        let (before, after) = reduction(&mut pipe);
        assert!((0.9..=1.0).contains(&(after / before)), "{before} to {after}");
    }

    #[test]
    fn the_estimate_is_filtered_twice_by_an_eighth() {
        let mut rule = Westwood::default();
        let mut path = Path::new(1448, Time::ZERO);
        let mut acknowledge = |rule: &mut Westwood, ms: u64, delivered: u32| {
            path.now = Time::ZERO + Span::from_millis(ms);
            let rtt = Some(Span::from_millis(100));
            rule.observe(&path, &Ack { delivered, rtt, ..Ack::default() });
        };
        acknowledge(&mut rule, 0, 100);
        acknowledge(&mut rule, 200, 0);
        assert_eq!(rule.filtered, Some((500.0, 500.0)));
        acknowledge(&mut rule, 300, 300);
        acknowledge(&mut rule, 400, 0);
        let first = (7.0 * 500.0 + 1500.0) / 8.0;
        assert_eq!(rule.filtered, Some((first, (7.0 * 500.0 + first) / 8.0)));
    }
}
