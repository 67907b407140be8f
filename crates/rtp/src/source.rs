//! A video encoder that follows a target rate.

use crate::options::RtpOptions;
use dumbbell_sim::Draws;
use dumbbell_units::{Rate, Span, Time};

/// Frames at a fixed interval, with sizes around what the rate gives.
///
/// Sizes deviate from their mean by a Laplace distribution (RFC 8593, section 5). Key frames, if
/// there are any, are larger by a fixed ratio, and the others smaller, so that the mean rate is the
/// target.
pub(crate) struct VideoSource {
    fps: u32,
    /// Scale of the Laplace distribution, as a share of the mean.
    noise: f64,
    /// Frames from a key frame to the next; 0 for none.
    key_every: u64,
    key_ratio: f64,
    draws: Draws,
    start: Time,
    frames: u64,
}

/// The deviation of a size is at most this many scales: e^-5 of the sizes would deviate by more.
const MAX_DEVIATION: f64 = 5.0;

impl VideoSource {
    pub(crate) fn new(options: &RtpOptions, start: Time, seed: u64) -> VideoSource {
        let interval = u128::from(options.key_interval_ns) * u128::from(options.fps);
        VideoSource {
            fps: options.fps,
            noise: f64::from(options.size_noise) / 100.0,
            key_every: (interval / 1_000_000_000) as u64,
            key_ratio: f64::from(options.key_ratio),
            draws: Draws::new(seed),
            start,
            frames: 0,
        }
    }

    /// When the next frame is captured.
    pub(crate) fn next_at(&self) -> Time {
        let after = u128::from(self.frames) * 1_000_000_000 / u128::from(self.fps);
        self.start + Span::from_nanos(after as u64)
    }

    /// Captures the next frame and returns its bytes at this rate.
    pub(crate) fn capture(&mut self, rate: Rate) -> u32 {
        let mean = rate.bytes_per_sec() / f64::from(self.fps);
        let sign = if self.draws.uniform() > 0.5 { 1.0 } else { -1.0 };
        let deviation = self.noise * self.draws.exponential().min(MAX_DEVIATION);
        let size = mean * self.scale() * (1.0 + sign * deviation);
        self.frames += 1;
        size.max(1.0) as u32
    }

    /// Skips the next frame.
    pub(crate) fn skip(&mut self) {
        self.frames += 1;
    }

    /// The next frame's size in mean frames.
    fn scale(&self) -> f64 {
        if self.key_every < 2 {
            return 1.0;
        }
        let every = self.key_every as f64;
        let other = every / (every - 1.0 + self.key_ratio);
        if self.frames.is_multiple_of(self.key_every) { other * self.key_ratio } else { other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(options: &RtpOptions, frames: usize) -> Vec<f64> {
        let mut source = VideoSource::new(options, Time::ZERO, 1);
        let rate = Rate::from_bits_per_sec(2e6);
        (0..frames).map(|_| f64::from(source.capture(rate))).collect()
    }

    #[test]
    fn frames_have_the_mean_and_deviation_of_rfc_8593() {
        let sizes = sizes(&RtpOptions::default(), 100_000);
        let count = sizes.len() as f64;
        let mean = sizes.iter().sum::<f64>() / count;
        assert!((mean / 10_000.0 - 1.0).abs() < 0.005, "2 Mbit/s at 25 frames/s: {mean}");
        // The mean absolute deviation of a Laplace distribution is its scale, SCALE_B = 0.15.
        let deviation = sizes.iter().map(|size| (size / 10_000.0 - 1.0).abs()).sum::<f64>() / count;
        assert!((deviation - 0.15).abs() < 0.003, "{deviation}");
    }

    #[test]
    fn key_frames_are_larger_and_keep_the_rate() {
        let options = RtpOptions {
            size_noise: 0,
            key_interval_ns: 1_000_000_000,
            key_ratio: 5,
            ..RtpOptions::default()
        };
        let sizes = sizes(&options, 50);
        assert!((sizes.iter().sum::<f64>() / 500_000.0 - 1.0).abs() < 1e-3);
        assert!((sizes[25] / sizes[26] - 5.0).abs() < 1e-2);
    }

    #[test]
    fn frames_come_at_their_rate() {
        let options = RtpOptions { fps: 30, ..RtpOptions::default() };
        let mut source = VideoSource::new(&options, Time::from_nanos(5), 1);
        for _ in 0..30 {
            source.skip();
        }
        assert_eq!(source.next_at(), Time::from_nanos(1_000_000_005));
    }
}
