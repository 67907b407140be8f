//! Measures how long a processor stops during a run, because its host runs another guest or the kernel
//! does other work.
//!
//! The lateness of packets shows stalls of the emulator's processor only. When that of an
//! application stops, which may hold its socket's lock, acknowledgements wait, and their data leaves
//! in a burst.

use crate::emulator::Clock;
use crate::sys::set_realtime_priority;
use dumbbell_units::{Span, Time};
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often each processor is looked at.
const INTERVAL: Duration = Duration::from_millis(1);
/// Priority of the applications, below the emulator's (2): a thread above it would push it to another
/// processor each time, which doubled the lateness of packets. The emulator rests within 1 ms.
const PRIORITY: i32 = 1;

/// The longest time that a processor stopped, and when it had stopped; zero if none was measured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stall {
    pub(crate) length: Span,
    pub(crate) end: Time,
}

/// Measures the longest stall of `processor` until `stop`: how late a thread with nothing else to
/// do runs there. Zero without the privilege for real-time priority, as such a thread would wait for
/// others.
pub(crate) fn longest_stall(processor: usize, clock: Clock, stop: &AtomicBool) -> Stall {
    let mut longest = Stall::default();
    if pin_to(processor).is_err() || set_realtime_priority(PRIORITY).is_err() {
        return longest;
    }
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    while !stop.load(Ordering::Relaxed) {
        let due = clock.now() + Span::from_nanos(INTERVAL.as_nanos() as u64);
        std::thread::sleep(INTERVAL);
        let end = clock.now();
        let length = end.since(due);
        if length > longest.length {
            longest = Stall { length, end };
        }
    }
    longest
}

/// Lets the calling thread run on `processor` only.
fn pin_to(processor: usize) -> Result<(), Errno> {
    let mut only = CpuSet::new();
    only.set(processor);
    sched_setaffinity(None, &only)
}

/// The processors that this process may run on; none if there are more than a [`CpuSet`] holds.
pub(crate) fn processors() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_processor_that_another_thread_holds_has_a_stall() {
        let clock = Clock::starting_in(Span::ZERO);
        let stop = AtomicBool::new(false);
        let processor = *processors().first().expect("this test runs on one");
        let hold = Span::from_millis(20);
        let (is_privileged, stall) = std::thread::scope(|scope| {
            let watch = scope.spawn(|| longest_stall(processor, clock, &stop));
            let holder = scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                pin_to(processor).expect("it is one of those allowed");
                let is_privileged = set_realtime_priority(PRIORITY + 1).is_ok();
                let start = Instant::now();
                while is_privileged && start.elapsed() < Duration::from_nanos(hold.as_nanos()) {}
                is_privileged
            });
            let is_privileged = holder.join().expect("it does not panic");
            std::thread::sleep(Duration::from_millis(5));
            stop.store(true, Ordering::Relaxed);
            (is_privileged, watch.join().expect("it does not panic"))
        });
        if !is_privileged {
            eprintln!("skipped: real-time priority needs CAP_SYS_NICE");
            return;
        }
        assert!(stall.length > hold.mul_f64(0.9) && stall.end <= clock.now(), "{stall:?}");
    }
}
