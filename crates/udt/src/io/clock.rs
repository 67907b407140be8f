//! The engine's clock and conversions of durations.

use dumbbell_units::{Span, Time};
use std::time::{Duration, Instant, SystemTime};

/// Monotonic clock that starts at 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    epoch: Instant,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { epoch: Instant::now() }
    }

    /// Current time.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        Time::from_nanos(self.epoch.elapsed().as_nanos() as u64)
    }

    /// Current time by this clock, and since 1970 by the kernel's.
    pub(crate) fn now_and_wall(&self) -> (Time, Duration) {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        (self.now(), wall)
    }
}

/// The end of a timeout; `None` if there is none, or it is too far.
pub(crate) fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|timeout| Instant::now().checked_add(timeout))
}

/// Converts to the engine's type.
pub(crate) fn span(duration: Duration) -> Span {
    Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// Converts to the standard library's type.
pub(crate) fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}
