//! What decides when packets leave.

use crate::{LinkConfig, Timeline, TokenBucket, Trace, Transmitter};
use dumbbell_units::{Span, Time};

/// How the rate of a link varies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Varying {
    /// From each time on it is so many bit/s; see [`Timeline`].
    Timeline(Vec<(Time, u64)>),
    /// So much may leave at each of these times; see [`Trace`].
    Trace(Vec<Time>),
}

#[derive(Clone, Debug)]
pub(crate) enum Server {
    /// Nothing: they leave at once.
    None,
    /// A line: a packet waits until those before it are on the wire.
    Line(Transmitter),
    /// A line whose rate changes.
    Timeline(Box<Timeline>),
    /// A token bucket: a packet waits until there are tokens for it.
    Bucket(TokenBucket),
    /// Delivery opportunities: a packet waits until it may leave.
    Trace(Box<Trace>),
}

impl Server {
    pub(crate) fn new(config: &LinkConfig) -> Server {
        match (&config.varying, config.rate, config.bucket) {
            (Some(Varying::Timeline(steps)), ..) => {
                Server::Timeline(Box::new(Timeline::new(steps.clone())))
            }
            (Some(Varying::Trace(times)), ..) => Server::Trace(Box::new(Trace::new(times.clone()))),
            (None, None, _) => Server::None,
            (None, Some(rate), None) => Server::Line(Transmitter::new(rate)),
            (None, Some(rate), Some(depth)) => Server::Bucket(TokenBucket::new(rate, depth)),
        }
    }

    /// When everything accepted so far will have left.
    pub(crate) fn free_at(&self) -> Time {
        match self {
            Server::None => Time::ZERO,
            Server::Line(line) => line.free_at(),
            Server::Bucket(bucket) => bucket.free_at(),
            Server::Timeline(timeline) => timeline.free_at(),
            Server::Trace(trace) => trace.free_at(),
        }
    }

    /// When the server would take up a packet that is there from `now` on.
    pub(crate) fn start(&self, now: Time) -> Time {
        match self {
            Server::Trace(trace) => trace.start(now),
            _ => self.free_at().max(now),
        }
    }

    /// When the last of `bytes` that come at `now` would have left.
    pub(crate) fn departure(&self, now: Time, bytes: u64) -> Time {
        match self {
            Server::None => now,
            Server::Line(line) => line.departure(now, bytes),
            Server::Bucket(bucket) => bucket.departure(now, bytes),
            Server::Timeline(timeline) => timeline.departure(now, bytes),
            Server::Trace(trace) => trace.departure(now, bytes),
        }
    }

    /// Accepts a packet of `size` bytes that comes at `now`; gives its departure.
    pub(crate) fn accept(&mut self, now: Time, size: u32) -> Time {
        match self {
            Server::None => now,
            Server::Line(line) => line.accept(now, size),
            Server::Bucket(bucket) => bucket.accept(now, size),
            Server::Timeline(timeline) => timeline.accept(now, size),
            Server::Trace(trace) => trace.accept(now, size),
        }
    }

    /// How long `bytes` usually take; zero if there is no rate.
    pub(crate) fn typical_time(&self, bytes: u32) -> Span {
        let work = u128::from(bytes) * 8_000_000_000;
        Span::from_nanos(work.checked_div(self.typical_rate()).unwrap_or(0) as u64)
    }

    /// How many bytes usually leave in `span`.
    pub(crate) fn typical_bytes(&self, span: Span) -> u64 {
        (self.typical_rate() * u128::from(span.as_nanos()) / 8_000_000_000) as u64
    }

    fn typical_rate(&self) -> u128 {
        u128::from(match self {
            Server::None => 0,
            Server::Line(line) => line.rate(),
            Server::Bucket(bucket) => bucket.rate(),
            Server::Timeline(timeline) => timeline.typical_rate(),
            Server::Trace(trace) => trace.typical_rate(),
        })
    }
}
