//! How the emulator waits: it polls where a processor is left for it, and sleeps elsewhere.
//!
//! A sleeping thread wakes late. The processor may be in a system call of another program, and a
//! kernel that does not preempt its own code (PREEMPT_NONE) ends the call first, which takes
//! milliseconds. Packets that wait meanwhile arrive in a burst, which overflows short queues.

use dumbbell_units::{Span, Time};
use std::fs;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

/// A polling thread rests after this time, if no packet is due meanwhile. Packets that are due in a rest
/// are late by up to its length and the time to wake, so rests are many and short.
const POLLING_TIME: Duration = Duration::from_micros(300);
/// It rests after this time, whatever is due.
const LONGEST_POLLING_TIME: Duration = Duration::from_micros(540);
/// A thread polls if it waits for less than this, and sleeps otherwise.
const POLLED_WAIT: Span = Span::from_millis(2);
/// A thread that can poll wakes by this much before the next packet is due.
const LEAD: Span = Span::from_millis(1);
/// Rests are longer than the kernel requires by this factor: other real-time threads, such as that of
/// the applications, may run on the same processor, and to change between threads takes some us of each.
const MARGIN: f64 = 2.5;

/// The wait of a real-time thread.
pub(crate) struct Waiting {
    polls: bool,
    /// Length of a rest.
    rest: Duration,
    /// End of the last rest; a sleep is one.
    rested: Instant,
    is_asleep: bool,
}

impl Waiting {
    /// Polls if the machine has a processor for each of `threads`, of which this is one.
    pub(crate) fn new(threads: usize) -> Waiting {
        let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Waiting {
            polls: processors >= threads,
            rest: rest_of(realtime_share()),
            rested: Instant::now(),
            is_asleep: false,
        }
    }

    /// Whether the thread polls at all.
    pub(crate) fn is_polling(&self) -> bool {
        self.polls
    }

    /// When to look for packets again, if none wakes the thread before: `now` if it polls for what
    /// is due at `next`, else `wake`, or shortly before `next`. Rests first if it is time to.
    pub(crate) fn wake_time(&mut self, now: Time, next: Time, wake: Time) -> Time {
        if !self.polls {
            return wake;
        }
        if std::mem::take(&mut self.is_asleep) {
            self.rested = Instant::now();
        }
        let left = next.since(now);
        if left >= POLLED_WAIT {
            self.is_asleep = true;
            return wake.min(next - LEAD);
        }
        self.rest_if_due(left);
        now
    }

    /// Without rests the kernel stops a real-time thread for 50 ms of each second
    /// (sched_rt_runtime_us).
    fn rest_if_due(&mut self, left: Span) {
        let polled = self.rested.elapsed();
        let is_free = Duration::from_nanos(left.as_nanos()) > 2 * self.rest;
        if self.rest > Duration::ZERO
            && polled > if is_free { POLLING_TIME } else { LONGEST_POLLING_TIME }
        {
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
        for time in [POLLING_TIME, LONGEST_POLLING_TIME] {
            let share = rest / (rest + time.as_secs_f64());
            assert!((0.06..0.12).contains(&share), "{share}");
        }
        assert_eq!(rest_of(1.0), Duration::ZERO);
    }

    #[test]
    fn a_thread_sleeps_where_no_processor_is_left_for_it() {
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        assert_eq!(Waiting::new(100_000).wake_time(at(0), at(1), at(3)), at(3));
        let mut alone = Waiting::new(1);
        assert_eq!(alone.wake_time(at(0), at(1), at(3)), at(0));
        assert_eq!(
            alone.wake_time(at(0), at(5), at(7)),
            at(4),
            "it polls for the last millisecond"
        );
    }

    #[test]
    fn a_thread_that_has_slept_does_not_rest_before_it_reacts() {
        let mut alone = Waiting { rest: Duration::from_secs(100), ..Waiting::new(1) };
        alone.rested -= Duration::from_secs(1);
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        alone.wake_time(at(0), at(5), at(5));
        assert_eq!(alone.wake_time(at(5), at(6), at(6)), at(5));
    }
}
