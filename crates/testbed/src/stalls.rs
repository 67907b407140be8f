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

/// Shorter stalls are not kept: these threads wait up to 2.6 ms for the emulator and the applications.
const SHORTEST: Span = Span::from_millis(3);
/// At most so many stalls of a processor are kept.
const MAX_STALLS: usize = 1000;

/// A time for which a processor stopped.
#[derive(Clone, Copy, Debug)]
pub struct Stall {
    /// How long it stopped.
    pub length: Span,
    /// When it went on.
    pub end: Time,
}

/// Measures the stalls of `processor` until `stop`, at `end` at the latest: how late a thread with
/// nothing else to do runs there. None without the privilege for real-time priority, as such a thread
/// would wait for others.
pub(crate) fn watch(processor: usize, clock: Clock, end: Time, stop: &AtomicBool) -> Vec<Stall> {
    let mut stalls = Vec::new();
    if pin_to(processor).is_err() || set_realtime_priority(PRIORITY).is_err() {
        return stalls;
    }
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    while !stop.load(Ordering::Relaxed) && stalls.len() < MAX_STALLS {
        let due = clock.now() + Span::from_nanos(INTERVAL.as_nanos() as u64);
        std::thread::sleep(INTERVAL);
        let now = clock.now();
        if now > end {
            break;
        }
        if now.since(due) >= SHORTEST {
            stalls.push(Stall { length: now.since(due), end: now });
        }
    }
    stalls
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
        let (is_privileged, stalls) = std::thread::scope(|scope| {
            let watch = scope.spawn(|| super::watch(processor, clock, Time::MAX, &stop));
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
        let is_it = |stall: &Stall| stall.length > hold.mul_f64(0.9) && stall.end <= clock.now();
        assert!(stalls.iter().any(is_it), "{stalls:?}");
    }
}
