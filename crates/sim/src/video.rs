//! An adaptive video client: BBA-0 of Huang, Johari, McKeown, Trunnell and Watson, "A buffer-based
//! approach to rate adaptation", SIGCOMM 2014 (sections 3 and 4).

use crate::app::AppLog;
use crate::tables::SegmentRow;
use dumbbell_tcp::Dialogue;
use dumbbell_units::{Span, Time};
use serde::{Deserialize, Serialize};

/// A video, and the client that plays it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VideoSpec {
    /// Video in a segment, ns.
    pub segment_ns: u64,
    /// Maximum of the buffer, ns of video.
    pub buffer_ns: u64,
    /// Buffer up to which the lowest rate is taken, ns.
    pub reservoir_ns: u64,
    /// Buffer over which the rate rises from the lowest to the highest, ns.
    pub cushion_ns: u64,
    /// Buffer with which playback starts, ns.
    pub startup_ns: u64,
    /// Rates of the video, bit/s, in order.
    pub ladder_bps: Vec<u64>,
}

impl VideoSpec {
    pub(crate) fn is_valid(&self) -> (bool, &'static str) {
        let rises = self.ladder_bps.windows(2).all(|pair| pair[0] < pair[1]);
        let has_rates = self.ladder_bps.first().is_some_and(|&lowest| lowest > 0);
        let fits = self.segment_ns > 0
            && self.startup_ns <= self.buffer_ns
            && self.segment_ns <= self.buffer_ns
            && self.reservoir_ns.saturating_add(self.cushion_ns) <= self.buffer_ns
            && self.cushion_ns > 0;
        let valid = "rates that rise, a segment above 0 ns, and a buffer that holds a segment, the \
                     startup, and reservoir and cushion together";
        (rises && has_rates && fits, valid)
    }

    /// The rate map f(B), bit/s: linear from the lowest rate at the end of the reservoir to the
    /// highest at the end of the cushion.
    fn rate_map(&self, buffer: Span) -> f64 {
        let [lowest, highest] = [self.ladder_bps.first(), self.ladder_bps.last()]
            .map(|rate| *rate.unwrap_or(&1) as f64);
        let above = buffer.as_nanos().saturating_sub(self.reservoir_ns) as f64;
        (lowest + (highest - lowest) * above / self.cushion_ns as f64).min(highest)
    }

    /// The place of the next rate (the paper's algorithm 1).
    fn next_rate(&self, previous: usize, buffer: Span) -> usize {
        let ladder = &self.ladder_bps;
        let last = ladder.len() - 1;
        let (rate_plus, rate_minus) = ((previous + 1).min(last), previous.saturating_sub(1));
        let buffer_ns = buffer.as_nanos();
        if buffer_ns <= self.reservoir_ns {
            return 0;
        }
        if buffer_ns >= self.reservoir_ns + self.cushion_ns {
            return last;
        }
        let map = self.rate_map(buffer);
        if map >= ladder[rate_plus] as f64 {
            // The highest rate below f(B).
            ladder.iter().rposition(|&rate| (rate as f64) < map).unwrap_or(0)
        } else if map <= ladder[rate_minus] as f64 {
            // The lowest rate above f(B).
            ladder.iter().position(|&rate| rate as f64 > map).unwrap_or(last)
        } else {
            previous
        }
    }
}

/// The client while it plays.
pub(crate) struct VideoClient {
    spec: VideoSpec,
    log: AppLog,
    /// Video that is not played yet, at `updated_at`.
    buffer: Span,
    updated_at: Time,
    has_started: bool,
    rate: usize,
}

impl VideoClient {
    pub(crate) fn new(spec: VideoSpec, log: AppLog) -> VideoClient {
        VideoClient {
            spec,
            log,
            buffer: Span::ZERO,
            updated_at: Time::ZERO,
            has_started: false,
            rate: 0,
        }
    }

    /// Plays until `now`; returns for how long there was nothing to play.
    fn play(&mut self, now: Time) -> Span {
        let elapsed = now.since(self.updated_at);
        self.updated_at = now;
        if !self.has_started {
            return Span::ZERO;
        }
        let stalled = elapsed.saturating_sub(self.buffer);
        self.buffer = self.buffer.saturating_sub(elapsed);
        stalled
    }

    /// A segment arrived.
    fn arrived(&mut self, now: Time) {
        let stalled = self.play(now);
        self.buffer = self.buffer + Span::from_nanos(self.spec.segment_ns);
        // Playback starts with the startup's video, and goes on after a stall with any.
        self.has_started |= self.buffer.as_nanos() >= self.spec.startup_ns;
        let mut records = self.log.records();
        if let Some(segment) = records.segments.last_mut() {
            segment.completed = Some(now.as_secs_f64());
            segment.buffer = Some(self.buffer.as_secs_f64());
            segment.stalled = stalled.as_secs_f64();
            segment.playing = u8::from(self.has_started);
        }
    }
}

impl Dialogue for VideoClient {
    fn next(&mut self, now: Time) -> Option<(Span, u64)> {
        if self.log.records().segments.is_empty() {
            self.updated_at = now;
        } else {
            self.arrived(now);
        }
        // The next segment is requested when the buffer has room for it.
        let segment = Span::from_nanos(self.spec.segment_ns);
        let room = Span::from_nanos(self.spec.buffer_ns - self.spec.segment_ns);
        let wait = if self.has_started { self.buffer.saturating_sub(room) } else { Span::ZERO };
        self.rate = self.spec.next_rate(self.rate, self.buffer.saturating_sub(wait));
        let rate = self.spec.ladder_bps[self.rate];
        let bytes = (u128::from(rate) * u128::from(segment.as_nanos()) / 8_000_000_000) as u64;
        self.log.records().segments.push(SegmentRow {
            start: (now + wait).as_secs_f64(),
            rate: rate as f64,
            duration: segment.as_secs_f64(),
            bytes,
            ..SegmentRow::default()
        });
        Some((wait, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the paper's section 4: a buffer of 240 s, a reservoir of 90 s, and the highest
    /// rate at 90 % of the buffer, 216 s.
    fn paper() -> VideoSpec {
        VideoSpec {
            segment_ns: 4_000_000_000,
            buffer_ns: 240_000_000_000,
            reservoir_ns: 90_000_000_000,
            cushion_ns: 126_000_000_000,
            startup_ns: 4_000_000_000,
            ladder_bps: vec![
                235_000, 375_000, 560_000, 750_000, 1_050_000, 1_750_000, 2_350_000, 3_000_000,
                5_000_000,
            ],
        }
    }

    #[test]
    fn the_rate_map_is_that_of_the_paper() {
        let video = paper();
        let map = |seconds| video.rate_map(Span::from_secs(seconds));
        assert_eq!((map(0), map(90), map(216), map(240)), (235e3, 235e3, 5e6, 5e6));
        assert!((map(153) - (235e3 + 5e6) / 2.0).abs() < 1.0);
    }

    #[test]
    fn the_rate_changes_as_algorithm_1_says() {
        let video = paper();
        let next = |previous: u64, seconds: f64| {
            let ladder = &video.ladder_bps;
            let place = ladder.iter().position(|&rate| rate == previous).expect("a rate");
            ladder[video.next_rate(place, Span::from_secs_f64(seconds))]
        };
        // In the reservoir the lowest, in the upper reservoir the highest rate.
        assert_eq!((next(3_000_000, 90.0), next(235_000, 216.0)), (235_000, 5_000_000));
        // f(120 s) = 235 + 4765 30/126 = 1369.5 kbit/s: between the neighbours of 1050 it stays,
        // from 560 it rises to 1050, from 3000 it falls to 1750.
        assert_eq!(next(1_050_000, 120.0), 1_050_000);
        assert_eq!(next(560_000, 120.0), 1_050_000);
        assert_eq!(next(3_000_000, 120.0), 1_750_000);
    }

    /// Segments of 4 s that take so many seconds each, one after the other.
    fn play(mut spec: VideoSpec, seconds: f64, count: usize) -> Vec<SegmentRow> {
        spec.ladder_bps = vec![1_000_000];
        let log = AppLog::default();
        let mut client = VideoClient::new(spec, log.clone());
        let mut now = Time::ZERO;
        for _ in 0..count {
            let (wait, _) = client.next(now).expect("video without an end");
            now = now + wait + Span::from_secs_f64(seconds);
        }
        client.next(now);
        log.records().segments[..count].to_vec()
    }

    #[test]
    fn a_slow_network_stalls_for_the_difference_of_each_segment() {
        // 8 s for 4 s of video: after the startup each segment comes 4 s too late.
        let rows = play(paper(), 8.0, 5);
        assert_eq!(rows[0].stalled, 0.0);
        assert!(rows[1..].iter().all(|row| (row.stalled - 4.0).abs() < 1e-9));
        assert!(rows.iter().all(|row| row.buffer == Some(4.0)));
    }

    #[test]
    fn a_fast_network_fills_the_buffer_and_then_waits() {
        // 1 s for 4 s of video: 3 s more in the buffer each time, until there is no room.
        let spec = VideoSpec {
            buffer_ns: 20_000_000_000,
            reservoir_ns: 5_000_000_000,
            cushion_ns: 10_000_000_000,
            ..paper()
        };
        let rows = play(spec, 1.0, 10);
        let buffers: Vec<f64> = rows.iter().filter_map(|row| row.buffer).collect();
        assert_eq!(buffers[..5], [4.0, 7.0, 10.0, 13.0, 16.0]);
        // 16 s leave room for 4 s, which arrive a second later: 19 s, and so on.
        assert!(buffers[5..].iter().all(|&buffer| buffer == 19.0));
        assert!((rows[8].start - rows[7].start - 4.0).abs() < 1e-9);
        assert!(rows.iter().all(|row| row.stalled == 0.0));
    }
}
