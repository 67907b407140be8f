//! The engine's time, from the machine's clocks.

use dumbbell_units::{Span, Time};
use std::time::{Duration, Instant, SystemTime};

/// Counts from when it was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    epoch: Instant,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { epoch: Instant::now() }
    }

    /// The present.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        Time::from_nanos(self.epoch.elapsed().as_nanos() as u64)
    }

    /// The present by this clock and by the kernel's.
    pub(crate) fn now_and_wall(&self) -> (Time, Duration) {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        (self.now(), wall)
    }
}

/// The engine's word for a duration.
pub(crate) fn span(duration: Duration) -> Span {
    Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// The standard library's word for a span.
pub(crate) fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}
