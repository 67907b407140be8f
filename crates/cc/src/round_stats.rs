//! Acknowledgements aggregated by round, for algorithms that decide once a round trip.

use crate::filters::Rounds;
use crate::{Ack, Path};
use dumbbell_units::{Rate, Span, Time};

/// Statistics of one round, which lasts from a packet's departure to its acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct RoundStats {
    /// Its number, from 1.
    pub number: u64,
    /// When it began.
    pub start: Time,
    /// When it ended.
    pub end: Time,
    /// Packets newly delivered.
    pub delivered: u64,
    /// Packets marked lost.
    pub lost: u64,
    /// Packets delivered that carried an ECN mark.
    pub marked: u64,
    /// Maximum delivery rate sample; 0 if there was none.
    pub max_rate: Rate,
    /// Whether the application was the limit when the newest packet acknowledged was sent.
    pub app_limited: bool,
    rtt_min: Span,
    rtt_max: Span,
    rtt_sum: f64,
    rtts: u32,
    mss: u32,
}

impl RoundStats {
    fn new(number: u64, path: &Path) -> RoundStats {
        RoundStats {
            number,
            start: path.now,
            end: path.now,
            delivered: 0,
            lost: 0,
            marked: 0,
            max_rate: Rate::default(),
            app_limited: false,
            rtt_min: Span::MAX,
            rtt_max: Span::ZERO,
            rtt_sum: 0.0,
            rtts: 0,
            mss: path.mss,
        }
    }

    #[inline]
    fn add(&mut self, ack: &Ack) {
        self.delivered += u64::from(ack.delivered);
        self.lost += u64::from(ack.lost);
        self.marked += u64::from(ack.marked);
        if let Some(rtt) = ack.rtt {
            self.rtt_min = self.rtt_min.min(rtt);
            self.rtt_max = self.rtt_max.max(rtt);
            self.rtt_sum += rtt.as_secs_f64();
            self.rtts += 1;
        }
        if let Some(sample) = ack.rate {
            self.max_rate = self.max_rate.max(sample.rate);
            self.app_limited = sample.send_state.app_limited;
        }
    }

    /// Its duration.
    pub fn duration(&self) -> Span {
        self.end.since(self.start)
    }

    /// Minimum and maximum round-trip time, if there was a sample.
    pub fn rtts(&self) -> Option<(Span, Span)> {
        (self.rtts > 0).then_some((self.rtt_min, self.rtt_max))
    }

    /// Mean round-trip time, seconds, if there was a sample.
    pub fn rtt_mean(&self) -> Option<f64> {
        (self.rtts > 0).then(|| self.rtt_sum / f64::from(self.rtts))
    }

    /// Bytes delivered over its duration; 0 if the duration is 0.
    pub fn rate(&self) -> Rate {
        let bytes = self.delivered as f64 * f64::from(self.mss);
        match self.duration() {
            none if none.is_zero() => Rate::default(),
            some => Rate::from_bytes_in(bytes, some),
        }
    }
}

/// Aggregates acknowledgements into [`RoundStats`].
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundAggregator {
    rounds: Rounds,
    present: Option<RoundStats>,
}

impl RoundAggregator {
    /// Begins the first round.
    pub fn begin(&mut self, path: &Path) {
        self.present = Some(RoundStats::new(1, path));
    }

    /// Takes an acknowledgement. At the end of a round, returns its statistics.
    #[inline]
    pub fn update(&mut self, path: &Path, ack: &Ack) -> Option<RoundStats> {
        let report = self.present.get_or_insert_with(|| RoundStats::new(1, path));
        report.add(ack);
        // Without rate samples, a round is a smoothed round-trip time.
        self.rounds.update_round(ack.rate.as_ref(), path.delivered);
        let ended = match ack.rate {
            Some(_) => self.rounds.round_start,
            None => path.srtt.is_some_and(|srtt| path.now.since(report.start) >= srtt),
        };
        if !ended {
            return None;
        }
        report.end = path.now;
        let done = *report;
        *report = RoundStats::new(done.number + 1, path);
        Some(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RateSample, SendState};

    const MS: Span = Span::from_millis(1);

    /// Acknowledges `packets`, the newest of which was sent when `prior` had been delivered.
    fn acknowledge(
        fold: &mut RoundAggregator,
        path: &mut Path,
        packets: u32,
        prior: u64,
        rtt: Span,
    ) -> Option<RoundStats> {
        path.now += MS * 10;
        path.delivered += u64::from(packets);
        let send_state = SendState { delivered: prior, ..SendState::default() };
        let rate = Rate::from_bytes_per_sec(f64::from(packets));
        let sample = RateSample { send_state, rate, ..RateSample::default() };
        let ack = Ack {
            delivered: packets,
            rtt: Some(rtt),
            rate: Some(sample),
            lost: 1,
            ..Ack::default()
        };
        fold.update(path, &ack)
    }

    #[test]
    fn a_round_ends_with_the_first_packet_sent_in_it() {
        let (mut fold, mut path) = (RoundAggregator::default(), Path::new(1000, Time::ZERO));
        fold.begin(&path);
        let first = acknowledge(&mut fold, &mut path, 2, 0, MS * 40).expect("sent in round 1");
        assert_eq!((first.number, first.delivered), (1, 2));
        assert!(acknowledge(&mut fold, &mut path, 4, 0, MS * 60).is_none(), "sent in round 1");
        assert!(acknowledge(&mut fold, &mut path, 6, 0, MS * 50).is_none());
        let second = acknowledge(&mut fold, &mut path, 5, 2, MS * 70).expect("sent in round 2");
        assert_eq!((second.number, second.delivered, second.lost), (2, 15, 3));
        assert_eq!(second.rtts(), Some((MS * 50, MS * 70)));
        assert!((second.rtt_mean().expect("three samples") - 0.06).abs() < 1e-12);
        assert_eq!(second.duration(), MS * 30);
        // 15 packets of 1000 bytes in 30 ms.
        assert!((second.rate().bytes_per_sec() - 500e3).abs() < 1e-6);
        assert_eq!(second.max_rate, Rate::from_bytes_per_sec(6.0));
    }

    #[test]
    fn without_rate_samples_a_round_is_a_smoothed_round_trip_time() {
        let (mut fold, mut path) = (RoundAggregator::default(), Path::new(1000, Time::ZERO));
        fold.begin(&path);
        path.srtt = Some(MS * 25);
        let rounds = (0..10).filter(|_| {
            path.now += MS * 10;
            fold.update(&path, &Ack { delivered: 1, ..Ack::default() }).is_some()
        });
        assert_eq!(rounds.count(), 3, "at 30, 60 and 90 ms");
    }
}
