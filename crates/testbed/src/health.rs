//! Health of a run: whether the machine was fast enough for the results to be trusted.

use crate::stalls::Stall;
use dumbbell_sim::Histogram;
use dumbbell_units::{Span, Time};
use std::fs;

/// Measurements of the machine during a run.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// Lateness of packets: delivery time less the time at which they left their link.
    pub lateness: Histogram,
    /// Maximum of `lateness`.
    pub max_lateness: Span,
    /// Time at which the latest packet was due.
    pub max_lateness_at: Time,
    /// The times for which a processor stopped, whichever thread it had, in order; none without
    /// real-time priority.
    pub stalls: Vec<Stall>,
    /// Lateness of the samples that the application thread took.
    pub application_lateness: Histogram,
    /// Packets that the TUN devices dropped before the emulator read them.
    pub device_drops: u64,
    /// Packets that the emulator could not write to a TUN device.
    pub write_errors: u64,
    /// Steal time as a fraction of all processors' time: a hypervisor ran other guests.
    pub steal: f64,
    /// Fraction of the time in which the emulator was busy with packets.
    pub emulator_busy: f64,
    /// Whether the emulator had real-time priority (SCHED_FIFO).
    pub realtime: bool,
    /// Whether idle states of the processors were disabled.
    pub cpu_latency_lock: bool,
    /// Whether TCP was under memory pressure at the start or the end of the run.
    pub tcp_memory_pressure: bool,
}

/// Limit of [`Health::steal`].
pub const MAX_STEAL: f64 = 0.05;
/// Limit of the mean lateness of packets, as a fraction of the shortest base RTT.
const MEAN_LATENESS_RTTS: f64 = 0.01;
/// Limit of the 99th percentile of packets' lateness, as a fraction of the shortest base RTT.
const P99_LATENESS_RTTS: f64 = 0.05;
/// Linux's minimum retransmission timeout, which is one limit of the maximum lateness and stall. The others
/// are the shortest base RTT and the drain time of the shortest full queue, because packets delayed
/// by a stall arrive in a burst that overflows a shorter queue.
const MIN_RTO: Span = Span::from_millis(200);
/// Shortest base RTT at which the limits of lateness have their full floors. On shorter paths the
/// floors shrink with the RTT, because such a lateness would be a large part of it or exceed it.
const FULL_FLOORS_RTT: Span = Span::from_millis(2);
/// The limit of the mean lateness is at least this, because no machine is more exact.
const MEAN_LATENESS_FLOOR: Span = Span::from_micros(200);
/// The limit of the 99th percentile of packets' lateness is at least this.
const P99_LATENESS_FLOOR: Span = Span::from_millis(1);
/// The limit of the maximum lateness is at least this: every machine has shorter stalls.
const MAX_LATENESS_FLOOR: Span = Span::from_millis(2);
/// Limit of the 95th percentile of applications' lateness, as a fraction of the shortest base RTT;
/// the data in socket buffers lasts longer.
const APPLICATION_P95_RTTS: f64 = 0.2;
/// The limit of the 95th percentile of applications' lateness is at least this.
const APPLICATION_P95_FLOOR: Span = Span::from_millis(2);

impl Health {
    /// Reasons not to trust the run; empty if all limits are met.
    ///
    /// `rtt` is the shortest base RTT of the flows, `queue` the shortest time in which a full queue
    /// of a link drains.
    pub fn warnings(&self, rtt: Span, queue: Span) -> Vec<String> {
        let mut warnings = Vec::new();
        let floors_scale = (rtt.as_secs_f64() / FULL_FLOORS_RTT.as_secs_f64()).min(1.0);
        let floor = |full: Span| full.mul_f64(floors_scale);
        let ms = |span: Span| format!("{:.3} ms", span.as_secs_f64() * 1e3);
        let limit = |warnings: &mut Vec<String>, what: &str, found: Span, limit: Span| {
            if found > limit {
                let (found, limit) = (ms(found), ms(limit));
                warnings.push(format!("{what} (the limit is {limit})").replace("{}", &found));
            }
        };
        let mean = Span::from_secs_f64(self.lateness.mean().unwrap_or(0.0));
        limit(
            &mut warnings,
            "packets were on average {} late",
            mean,
            rtt.mul_f64(MEAN_LATENESS_RTTS).max(floor(MEAN_LATENESS_FLOOR)),
        );
        let p99 = Span::from_secs_f64(self.lateness.quantile(0.99).unwrap_or(0.0));
        limit(
            &mut warnings,
            "one packet in a hundred was {} late",
            p99,
            rtt.mul_f64(P99_LATENESS_RTTS).max(floor(P99_LATENESS_FLOOR)),
        );
        let latest = rtt.min(queue).min(MIN_RTO).max(floor(MAX_LATENESS_FLOOR));
        limit(&mut warnings, "the latest packet was {} late", self.max_lateness, latest);
        if rtt < FULL_FLOORS_RTT && !warnings.is_empty() {
            let why = format!("the emulator cannot represent a base RTT of {}", ms(rtt));
            let possible = "give every flow 2 ms or more, or use the simulator";
            warnings.insert(0, format!("{why}, because packets are late: {possible}"));
        }
        let stall = self.stalls.iter().map(|stall| stall.length).max().unwrap_or(Span::ZERO);
        limit(&mut warnings, "a processor stopped for {}", stall, latest);
        let p95 = Span::from_secs_f64(self.application_lateness.quantile(0.95).unwrap_or(0.0));
        limit(
            &mut warnings,
            "applications were woken late, one time in twenty by {} or more",
            p95,
            rtt.mul_f64(APPLICATION_P95_RTTS).max(APPLICATION_P95_FLOOR),
        );
        if self.device_drops > 0 {
            let drops = self.device_drops;
            warnings.push(format!("{drops} packets were dropped before the emulator saw them"));
        }
        if self.write_errors > 0 {
            warnings.push(format!("{} packets were not taken by the kernel", self.write_errors));
        }
        if self.tcp_memory_pressure {
            let why = "the kernel has too little memory for TCP, and keeps windows small";
            warnings.push(format!("{why} (net.ipv4.tcp_mem)"));
        }
        if self.steal > MAX_STEAL {
            let (found, most) = (self.steal * 100.0, MAX_STEAL * 100.0);
            let host = "the machine's host took";
            warnings.push(format!("{host} {found:.1} % of its time (the limit is {most} %)"));
        }
        warnings
    }
}

/// Whether TCP is under memory pressure now (/proc/net/protocols).
pub(crate) fn tcp_memory_pressure() -> bool {
    let protocols = fs::read_to_string("/proc/net/protocols").unwrap_or_default();
    let tcp = protocols.lines().find(|line| line.starts_with("TCP "));
    tcp.and_then(|line| line.split_whitespace().nth(4)) == Some("yes")
}

/// Measures steal time since its start.
pub struct StealMeter {
    start: Option<ProcessorTime>,
}

impl StealMeter {
    /// Starts measuring.
    pub fn start() -> StealMeter {
        StealMeter { start: ProcessorTime::now() }
    }

    /// Steal time since the start as a fraction of all processors' time. `None` if the kernel does
    /// not report it.
    pub fn steal(&self) -> Option<f64> {
        Some(ProcessorTime::now()?.steal_since(self.start?))
    }
}

/// Time of all processors since boot, clock ticks.
#[derive(Clone, Copy)]
struct ProcessorTime {
    total: u64,
    steal: u64,
}

impl ProcessorTime {
    fn now() -> Option<ProcessorTime> {
        ProcessorTime::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Reads the text of /proc/stat (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq,
    /// steal. The guests' times that follow are contained in user and nice.
    fn parse(stat: &str) -> Option<ProcessorTime> {
        let ticks = stat.lines().next()?.split_whitespace().skip(1).take(8);
        let ticks: Vec<u64> = ticks.map(|ticks| ticks.parse().ok()).collect::<Option<_>>()?;
        Some(ProcessorTime { total: ticks.iter().sum(), steal: *ticks.get(7)? })
    }

    fn steal_since(self, start: ProcessorTime) -> f64 {
        let total = self.total.saturating_sub(start.total).max(1);
        self.steal.saturating_sub(start.steal) as f64 / total as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_keeps_up_gives_no_warning() {
        let mut health = Health { max_lateness: Span::from_millis(3), ..Health::default() };
        (0..1000).for_each(|_| health.lateness.record(Span::from_micros(60)));
        assert_eq!(health.warnings(Span::from_millis(100), Span::MAX), Vec::<String>::new());
    }

    #[test]
    fn a_stall_longer_than_the_shortest_queue_gives_a_warning() {
        let stalled = |ms| Health { max_lateness: Span::from_millis(ms), ..Health::default() };
        let queue = Span::from_millis(15);
        let warnings = |ms| stalled(ms).warnings(Span::from_millis(100), queue);
        assert_eq!(warnings(14), Vec::<String>::new());
        assert_eq!(warnings(16), ["the latest packet was 16.000 ms late (the limit is 15.000 ms)"]);
    }

    #[test]
    fn each_exceeded_limit_gives_a_warning_with_its_value() {
        let mut health =
            Health { max_lateness: Span::from_millis(300), steal: 0.2, ..Health::default() };
        health.stalls =
            [30, 250, 2].map(|ms| Stall { length: Span::from_millis(ms), end: Time::ZERO }).into();
        health.device_drops = 7;
        health.tcp_memory_pressure = true;
        (0..100).for_each(|_| health.lateness.record(Span::from_millis(20)));
        let warnings = health.warnings(Span::from_millis(100), Span::MAX).join("; ");
        for text in [
            "average 20.000 ms late",
            "latest packet was 300.000 ms",
            "a processor stopped for 250.000 ms (the limit is 100.000 ms)",
            "7 packets",
            "20.0 %",
            "tcp_mem",
        ] {
            assert!(warnings.contains(text), "{text} is not in: {warnings}");
        }
    }

    /// The limits in docs/reference/testbed.md for a base RTT and a queue: (mean, p99, maximum) in ms.
    fn lateness_limits(rtt_ms: u64, queue_ms: u64) -> [f64; 3] {
        let (rtt, queue) = (Span::from_millis(rtt_ms), Span::from_millis(queue_ms));
        let mut health = Health { max_lateness: Span::from_secs(10), ..Health::default() };
        health.lateness.record(Span::from_secs(10));
        let limit = |warning: &String| {
            let text = warning.split("the limit is ").nth(1).expect("each names its limit");
            text.trim_end_matches(" ms)").parse().expect("a number of milliseconds")
        };
        let warnings = health.warnings(rtt, queue);
        let late = &warnings[warnings.len() - 3..];
        [&late[0], &late[1], &late[2]].map(limit)
    }

    #[test]
    fn lateness_limits_follow_the_rtt_the_queue_and_the_minimum_rto() {
        assert_eq!(lateness_limits(100, 400), [1.0, 5.0, 100.0]);
        assert_eq!(lateness_limits(100, 50), [1.0, 5.0, 50.0], "a full queue drains in 50 ms");
        assert_eq!(lateness_limits(300, 400), [3.0, 15.0, 200.0], "the minimum RTO is 200 ms");
        assert_eq!(lateness_limits(2, 1), [0.2, 1.0, 2.0], "no machine is more exact");
        assert_eq!(lateness_limits(10, 5), [0.2, 1.0, 5.0], "the floors of the first two");
        assert_eq!(lateness_limits(1, 5), [0.1, 0.5, 1.0], "half of the floors");
    }

    #[test]
    fn the_lateness_of_a_good_machine_is_too_much_for_an_rtt_of_100_us() {
        let mut health = Health { max_lateness: Span::from_micros(90), ..Health::default() };
        (0..1000).for_each(|_| health.lateness.record(Span::from_micros(20)));
        let warnings = |us| health.warnings(Span::from_micros(us), Span::from_micros(80));
        assert_eq!(warnings(500), Vec::<String>::new());
        let warnings = warnings(100);
        assert_eq!(
            warnings[0],
            "the emulator cannot represent a base RTT of 0.100 ms, because packets are late: give \
             every flow 2 ms or more, or use the simulator"
        );
        assert_eq!(warnings[1], "packets were on average 0.020 ms late (the limit is 0.010 ms)");
        assert_eq!(warnings.len(), 2, "{warnings:?}");
    }

    #[test]
    fn steal_is_a_fraction_of_the_time_of_all_processors() {
        let read = |line: &str| ProcessorTime::parse(line).expect("eight numbers");
        let start = read("cpu  100 1 200 1000 10 3 4 50 70 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n");
        let end = read("cpu  400 1 300 1500 10 3 4 150 300 0\n");
        assert_eq!(end.steal_since(start), 0.1, "100 of 1,000 ticks");
        assert_eq!(start.steal_since(start), 0.0);
        assert!(
            ProcessorTime::parse("cpu  100 1 200 1000 10 3 4").is_none(),
            "before Linux 2.6.11"
        );
    }

    #[test]
    fn a_single_lost_packet_outside_the_links_gives_a_warning() {
        let rtt = Span::from_millis(100);
        let warnings = |health: Health| health.warnings(rtt, Span::MAX).len();
        assert_eq!(warnings(Health { device_drops: 1, ..Health::default() }), 1);
        assert_eq!(warnings(Health { write_errors: 1, ..Health::default() }), 1);
        assert_eq!(warnings(Health { steal: 0.05, ..Health::default() }), 0);
        assert_eq!(warnings(Health { steal: 0.051, ..Health::default() }), 1);
    }
}
