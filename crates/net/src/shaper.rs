//! Shapers: when packets depart.

use crate::{ConstantRate, LinkConfig, PiecewiseRate, TokenBucket, Trace};
use dumbbell_units::{Span, Time};

/// A rate that varies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RateProcess {
    /// (start, bit/s) of each step; see [`PiecewiseRate`].
    Piecewise(Vec<(Time, u64)>),
    /// Times of delivery opportunities; see [`Trace`].
    Trace(Vec<Time>),
}

#[derive(Clone, Debug)]
pub(crate) enum Shaper {
    /// No rate limit: packets depart on arrival.
    None,
    /// A transmitter: a packet waits until those before it are on the wire.
    ConstantRate(ConstantRate),
    /// A transmitter whose rate changes.
    Piecewise(Box<PiecewiseRate>),
    /// A token bucket: a packet waits for its tokens.
    TokenBucket(TokenBucket),
    /// Delivery opportunities: a packet waits for its opportunity.
    Trace(Box<Trace>),
}

impl Shaper {
    pub(crate) fn new(config: &LinkConfig) -> Shaper {
        match (&config.rate_process, config.rate, config.bucket_bytes) {
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

    /// When everything accepted so far has departed.
    pub(crate) fn busy_until(&self) -> Time {
        match self {
            Shaper::None => Time::ZERO,
            Shaper::ConstantRate(rate) => rate.busy_until(),
            Shaper::TokenBucket(bucket) => bucket.busy_until(),
            Shaper::Piecewise(rate) => rate.busy_until(),
            Shaper::Trace(trace) => trace.busy_until(),
        }
    }

    /// When the service of a packet that is present from `now` on starts.
    pub(crate) fn service_start(&self, now: Time) -> Time {
        match self {
            Shaper::Trace(trace) => trace.service_start(now),
            _ => self.busy_until().max(now),
        }
    }

    /// When the last of `bytes` that arrive at `now` would depart.
    pub(crate) fn departure(&self, now: Time, bytes: u64) -> Time {
        match self {
            Shaper::None => now,
            Shaper::ConstantRate(rate) => rate.departure(now, bytes),
            Shaper::TokenBucket(bucket) => bucket.departure(now, bytes),
            Shaper::Piecewise(rate) => rate.departure(now, bytes),
            Shaper::Trace(trace) => trace.departure(now, bytes),
        }
    }

    /// Accepts a packet of `size` bytes that arrives at `now`; returns its departure.
    pub(crate) fn accept(&mut self, now: Time, size: u32) -> Time {
        match self {
            Shaper::None => now,
            Shaper::ConstantRate(rate) => rate.accept(now, size),
            Shaper::TokenBucket(bucket) => bucket.accept(now, size),
            Shaper::Piecewise(rate) => rate.accept(now, size),
            Shaper::Trace(trace) => trace.accept(now, size),
        }
    }

    /// Until when a packet of `size` bytes that arrives at `now` is queued behind what has been accepted:
    /// until its transmission starts on a transmitter, else until it departs.
    pub(crate) fn queued_until(&self, now: Time, size: u32) -> Time {
        match self {
            Shaper::TokenBucket(_) | Shaper::Trace(_) => self.departure(now, u64::from(size)),
            shaper => shaper.service_start(now),
        }
    }

    /// How long a packet of `size` bytes that arrives at `now` is queued behind `before` bytes:
    /// until its transmission starts on a transmitter, else until it departs, as in the droptail
    /// queue.
    pub(crate) fn queueing_delay(&self, now: Time, before: u64, size: u32) -> Span {
        let bytes = match self {
            Shaper::TokenBucket(_) | Shaper::Trace(_) => before + u64::from(size),
            _ => before,
        };
        self.departure(now, bytes).since(now)
    }

    /// RED's `m`: packets of `bytes` bytes that the link could have sent at the current rate since
    /// it became idle.
    pub(crate) fn idle_packets(&self, now: Time, bytes: u32) -> f64 {
        let idle = now.since(self.busy_until());
        idle.as_nanos() as f64 * self.rate(now) as f64 / (f64::from(bytes) * 8e9)
    }

    /// The rate at `now` in bit/s, of a trace its mean rate; 0 for no limit.
    pub(crate) fn rate(&self, now: Time) -> u64 {
        match self {
            Shaper::None => 0,
            Shaper::ConstantRate(rate) => rate.rate(),
            Shaper::TokenBucket(bucket) => bucket.rate(),
            Shaper::Piecewise(rate) => rate.rate(now),
            Shaper::Trace(trace) => trace.mean_rate(),
        }
    }
}
