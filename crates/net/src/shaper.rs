//! What decides when packets leave.

use crate::{ConstantRate, LinkConfig, PiecewiseRate, TokenBucket, Trace};
use dumbbell_units::{Span, Time};

/// How the rate of a link varies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RateProcess {
    /// From each time on it is so many bit/s; see [`PiecewiseRate`].
    Piecewise(Vec<(Time, u64)>),
    /// So much may leave at each of these times; see [`Trace`].
    Trace(Vec<Time>),
}

#[derive(Clone, Debug)]
pub(crate) enum Shaper {
    /// Nothing: they leave at once.
    None,
    /// A line: a packet waits until those before it are on the wire.
    ConstantRate(ConstantRate),
    /// A line whose rate changes.
    Piecewise(Box<PiecewiseRate>),
    /// A token bucket: a packet waits until there are tokens for it.
    TokenBucket(TokenBucket),
    /// Delivery opportunities: a packet waits until it may leave.
    Trace(Box<Trace>),
}

impl Shaper {
    pub(crate) fn new(config: &LinkConfig) -> Shaper {
        match (&config.rate_process, config.rate, config.bucket) {
            (Some(RateProcess::Piecewise(steps)), ..) => {
                Shaper::Piecewise(Box::new(PiecewiseRate::new(steps.clone())))
            }
            (Some(RateProcess::Trace(times)), ..) => {
                Shaper::Trace(Box::new(Trace::new(times.clone())))
            }
            (None, None, _) => Shaper::None,
            (None, Some(rate), None) => Shaper::ConstantRate(ConstantRate::new(rate)),
            (None, Some(rate), Some(depth)) => Shaper::TokenBucket(TokenBucket::new(rate, depth)),
        }
    }

    /// When everything accepted so far will have left.
    pub(crate) fn busy_until(&self) -> Time {
        match self {
            Shaper::None => Time::ZERO,
            Shaper::ConstantRate(line) => line.busy_until(),
            Shaper::TokenBucket(bucket) => bucket.busy_until(),
            Shaper::Piecewise(timeline) => timeline.busy_until(),
            Shaper::Trace(trace) => trace.busy_until(),
        }
    }

    /// When the server would take up a packet that is there from `now` on.
    pub(crate) fn start(&self, now: Time) -> Time {
        match self {
            Shaper::Trace(trace) => trace.start(now),
            _ => self.busy_until().max(now),
        }
    }

    /// When the last of `bytes` that come at `now` would have left.
    pub(crate) fn departure(&self, now: Time, bytes: u64) -> Time {
        match self {
            Shaper::None => now,
            Shaper::ConstantRate(line) => line.departure(now, bytes),
            Shaper::TokenBucket(bucket) => bucket.departure(now, bytes),
            Shaper::Piecewise(timeline) => timeline.departure(now, bytes),
            Shaper::Trace(trace) => trace.departure(now, bytes),
        }
    }

    /// Accepts a packet of `size` bytes that comes at `now`; gives its departure.
    pub(crate) fn accept(&mut self, now: Time, size: u32) -> Time {
        match self {
            Shaper::None => now,
            Shaper::ConstantRate(line) => line.accept(now, size),
            Shaper::TokenBucket(bucket) => bucket.accept(now, size),
            Shaper::Piecewise(timeline) => timeline.accept(now, size),
            Shaper::Trace(trace) => trace.accept(now, size),
        }
    }

    /// How long a packet of `size` bytes that comes at `now` would wait behind so many bytes: for its
    /// turn on a line, else until it leaves, as in a droptail queue.
    pub(crate) fn wait(&self, now: Time, before: u64, size: u32) -> Span {
        let bytes = match self {
            Shaper::TokenBucket(_) | Shaper::Trace(_) => before + u64::from(size),
            _ => before,
        };
        self.departure(now, bytes).since(now)
    }

    /// How many packets of `bytes` could have been sent at the rate of the moment since all had left.
    pub(crate) fn idle_packets(&self, now: Time, bytes: u32) -> f64 {
        let rate = match self {
            Shaper::None => 0,
            Shaper::ConstantRate(line) => line.rate(),
            Shaper::TokenBucket(bucket) => bucket.rate(),
            Shaper::Piecewise(timeline) => timeline.rate(now),
            Shaper::Trace(trace) => trace.mean_rate(),
        };
        let idle = now.since(self.busy_until());
        idle.as_nanos() as f64 * rate as f64 / (f64::from(bytes) * 8e9)
    }
}
