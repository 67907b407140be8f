//! Whether the machine kept up, or what was measured is its own doing.

use crate::sys::clock_ticks;
use dumbbell_sim::Histogram;
use dumbbell_units::{Span, Time};
use std::fs;
use std::time::Instant;

/// What a run says of the machine under it.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// How much later than the links say packets were handed over.
    pub lateness: Histogram,
    /// The most of it.
    pub latest: Span,
    /// When the packet that was so late was due.
    pub latest_at: Time,
    /// How much later than they were to be applications had their turn.
    pub applications: Histogram,
    /// Packets that were dropped on the way to the emulator.
    pub device_drops: u64,
    /// Packets that a kernel did not take from the emulator.
    pub refused: u64,
    /// The share of the processors' time that the machine's host took for others.
    pub steal: f64,
    /// The share of one processor that the emulator used.
    pub busy: f64,
    /// Whether the emulator ran in real time (SCHED_FIFO).
    pub realtime: bool,
    /// Whether the processors were kept from sleeping.
    pub awake: bool,
    /// Whether the kernel had too little memory for TCP.
    pub short_of_memory: bool,
}

/// A share of stolen time above this is more than a hiccup now and then.
const MOST_STEAL: f64 = 0.05;
/// On average packets may be late by this share of the shortest round trip,
const MEAN_SHARE: f64 = 0.01;
/// and one in a hundred by this one,
const P99_SHARE: f64 = 0.05;
/// and the very latest by all of it, but no longer than the shortest queue lasts: what comes late
/// comes at once, and what then finds no room is lost. Nor than the least retransmission timeout.
const LEAST_RTO: Span = Span::from_millis(200);
/// No machine is more exact than this.
const LEAST_MEAN: Span = Span::from_micros(200);
const LEAST_P99: Span = Span::from_millis(1);
const LEAST_LATEST: Span = Span::from_millis(10);
/// One time in twenty applications may be late by this share of the shortest round trip: what waits
/// in their sockets lasts longer.
const P95_SHARE: f64 = 0.2;
const LEAST_P95: Span = Span::from_millis(2);

impl Health {
    /// Why the run is not to be trusted, if it is not, for flows of which the shortest round trip
    /// takes `rtt`, and links of which the shortest queue takes `queue` to be sent when it is full.
    pub fn complaints(&self, rtt: Span, queue: Span) -> Vec<String> {
        let mut complaints = Vec::new();
        let ms = |span: Span| format!("{:.3} ms", span.as_secs_f64() * 1e3);
        let mut limit = |what: &str, found: Span, limit: Span| {
            if found > limit {
                let (found, limit) = (ms(found), ms(limit));
                complaints.push(format!("{what} {found} late (the limit is {limit})"));
            }
        };
        let mean = Span::from_secs_f64(self.lateness.mean().unwrap_or(0.0));
        limit("packets were on average", mean, rtt.mul_f64(MEAN_SHARE).max(LEAST_MEAN));
        let p99 = Span::from_secs_f64(self.lateness.quantile(0.99).unwrap_or(0.0));
        limit("one packet in a hundred was", p99, rtt.mul_f64(P99_SHARE).max(LEAST_P99));
        let latest = rtt.min(queue).min(LEAST_RTO).max(LEAST_LATEST);
        limit("the latest packet was", self.latest, latest);
        let p95 = Span::from_secs_f64(self.applications.quantile(0.95).unwrap_or(0.0));
        limit("one turn in twenty of applications was", p95, rtt.mul_f64(P95_SHARE).max(LEAST_P95));
        if self.device_drops > 0 {
            let drops = self.device_drops;
            complaints.push(format!("{drops} packets were dropped before the emulator saw them"));
        }
        if self.refused > 0 {
            complaints.push(format!("{} packets were not taken by the kernel", self.refused));
        }
        if self.short_of_memory {
            let why = "the kernel has too little memory for TCP, and keeps windows small";
            complaints.push(format!("{why} (net.ipv4.tcp_mem)"));
        }
        if self.steal > MOST_STEAL {
            let (found, most) = (self.steal * 100.0, MOST_STEAL * 100.0);
            let host = "the machine's host took";
            complaints.push(format!("{host} {found:.1} % of its time (the limit is {most} %)"));
        }
        complaints
    }
}

/// Whether TCP is at present under memory pressure, as Linux calls it (/proc/net/protocols).
pub(crate) fn is_short_of_memory() -> bool {
    let protocols = fs::read_to_string("/proc/net/protocols").unwrap_or_default();
    let tcp = protocols.lines().find(|line| line.starts_with("TCP "));
    tcp.and_then(|line| line.split_whitespace().nth(4)) == Some("yes")
}

/// Watches how much time is stolen.
pub(crate) struct StealWatch {
    began: Instant,
    stolen: u64,
}

impl StealWatch {
    pub(crate) fn begin() -> StealWatch {
        StealWatch { began: Instant::now(), stolen: stolen().unwrap_or(0) }
    }

    /// The share of all processors' time since then.
    pub(crate) fn share(&self) -> f64 {
        let ticks = stolen().unwrap_or(0).saturating_sub(self.stolen) as f64;
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
        ticks / clock_ticks() / self.began.elapsed().as_secs_f64() / processors as f64
    }
}

/// Ticks stolen from all processors since the machine started (proc(5), /proc/stat).
fn stolen() -> Option<u64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().next()?.split_whitespace().nth(8)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_keeps_up_is_not_complained_of() {
        let mut health = Health { latest: Span::from_millis(3), ..Health::default() };
        (0..1000).for_each(|_| health.lateness.record(Span::from_micros(60)));
        assert_eq!(health.complaints(Span::from_millis(100), Span::MAX), Vec::<String>::new());
    }

    #[test]
    fn a_stall_longer_than_a_queue_is_too_long() {
        let stalled = |ms| Health { latest: Span::from_millis(ms), ..Health::default() };
        let queue = Span::from_millis(15);
        let complaints = |ms| stalled(ms).complaints(Span::from_millis(100), queue);
        assert_eq!(complaints(14), Vec::<String>::new());
        assert_eq!(
            complaints(16),
            ["the latest packet was 16.000 ms late (the limit is 15.000 ms)"]
        );
    }

    #[test]
    fn a_machine_that_stalls_says_what_and_by_how_much() {
        let mut health = Health { latest: Span::from_millis(300), steal: 0.2, ..Health::default() };
        health.device_drops = 7;
        health.short_of_memory = true;
        (0..100).for_each(|_| health.lateness.record(Span::from_millis(20)));
        let complaints = health.complaints(Span::from_millis(100), Span::MAX).join("; ");
        for part in [
            "average 20.000 ms late",
            "latest packet was 300.000 ms",
            "7 packets",
            "20.0 %",
            "tcp_mem",
        ] {
            assert!(complaints.contains(part), "{part} is not in: {complaints}");
        }
    }
}
