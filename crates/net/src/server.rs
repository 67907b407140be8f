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

    /// How long a packet of `size` bytes that comes at `now` would wait behind so many bytes: for its
    /// turn on a line, else until it leaves, as in a droptail queue.
    pub(crate) fn wait(&self, now: Time, before: u64, size: u32) -> Span {
        let bytes = match self {
            Server::Bucket(_) | Server::Trace(_) => before + u64::from(size),
            _ => before,
        };
        self.departure(now, bytes).since(now)
    }

    /// How many packets of `bytes` could have been sent at the rate of the moment since all had left.
    pub(crate) fn missed(&self, now: Time, bytes: u32) -> f64 {
        let rate = match self {
            Server::None => 0,
            Server::Line(line) => line.rate(),
            Server::Bucket(bucket) => bucket.rate(),
            Server::Timeline(timeline) => timeline.rate(now),
            Server::Trace(trace) => trace.mean_rate(),
        };
        let idle = now.since(self.free_at());
        idle.as_nanos() as f64 * rate as f64 / (f64::from(bytes) * 8e9)
    }
}
