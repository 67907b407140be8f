//! How the emulator waits: it polls where a processor is left for it, and sleeps elsewhere.
//!
//! A sleeping thread wakes late. The processor may be in a system call of another program, and a
//! kernel that does not preempt its own code (PREEMPT_NONE) ends the call first, which takes
//! milliseconds. Packets that wait meanwhile arrive in a burst, which overflows short queues.

use dumbbell_units::Span;
use std::fs;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

/// Time between two rests of a polling thread.
const POLLING_TIME: Duration = Duration::from_micros(500);
/// A thread polls if it waits for less than this, and sleeps otherwise.
const POLLED_WAIT: Span = Span::from_millis(2);
/// Rests are longer than the kernel asks for by this factor: other real-time threads, such as that of
/// the applications, may run on the same processor.
const MARGIN: f64 = 2.0;

/// The wait of a real-time thread.
pub(crate) struct Waiting {
    polls: bool,
    /// Length of a rest after [`POLLING_TIME`].
    rest: Duration,
    rested: Instant,
}

impl Waiting {
    /// Polls if the machine has a processor for each of `threads`, of which this is one.
    pub(crate) fn new(threads: usize) -> Waiting {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Waiting {
            polls: processors >= threads,
            rest: rest_of(realtime_share()),
            rested: Instant::now(),
        }
    }

    /// Whether the thread polls at all.
    pub(crate) fn is_polling(&self) -> bool {
        self.polls
    }

    /// Whether to poll for an event that is `wait` away.
    pub(crate) fn polls(&self, wait: Span) -> bool {
        self.polls && wait < POLLED_WAIT
    }

    /// Rests if the thread has polled for [`POLLING_TIME`].
    ///
    /// Otherwise the kernel stops a real-time thread for 50 ms of each second (sched_rt_runtime_us).
    pub(crate) fn rest_if_due(&mut self) {
        if self.rest > Duration::ZERO && self.rested.elapsed() > POLLING_TIME {
            std::thread::sleep(self.rest);
            self.rested = Instant::now();
        }
    }
}

/// The rest after [`POLLING_TIME`] for a share of time that real-time threads may have.
fn rest_of(share: f64) -> Duration {
    POLLING_TIME.mul_f64((1.0 / share - 1.0) * MARGIN)
}

/// Share of time that the kernel gives to real-time threads (sched(7)); 1 if it has no limit.
fn realtime_share() -> f64 {
    let read = |name| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/sched_rt_{name}_us")).ok()?;
        text.trim().parse::<f64>().ok().filter(|value| *value > 0.0)
    };
    let share =
        read("runtime").zip(read("period")).map_or(1.0, |(runtime, period)| runtime / period);
    share.clamp(0.5, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_leave_the_share_that_the_kernel_keeps_for_others() {
        let rest = rest_of(0.95).as_secs_f64();
        let share = rest / (rest + POLLING_TIME.as_secs_f64());
        assert!((0.05..0.1).contains(&share), "{share}");
        assert_eq!(rest_of(1.0), Duration::ZERO);
    }

    #[test]
    fn a_thread_sleeps_where_no_processor_is_left_for_it() {
        assert!(!Waiting::new(100_000).polls(Span::ZERO));
        let alone = Waiting::new(1);
        assert!(alone.polls(Span::from_micros(100)));
        assert!(!alone.polls(Span::from_millis(5)));
    }
}
