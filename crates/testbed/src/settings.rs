//! Maps a flow's TCP stack onto kernel settings: sysctls, route metrics, device and socket options.

use crate::algorithm::{echoes_marks, has_options, kernel_name};
use crate::bulk_flow::options_of;
use crate::error::TestbedError;
use crate::netlink::RouteMetrics;
use dumbbell_sim::FlowSpec;
use dumbbell_tcp::{Ecn, LossDetection, Stack};

/// Maximum size of a socket buffer, bytes: twice a second at 1 Gbit/s, because up to half of it is
/// overhead.
const MAX_SOCKET_BUFFER: u32 = 1 << 28;
/// Bytes of the headers of IPv4 and UDP.
const IP_UDP: u32 = 28;
/// Queue length of a TUN device, packets; long enough that no packet is dropped before the
/// emulator.
pub(crate) const TUN_QUEUE_PACKETS: u32 = 20_000;
const ETHERNET_MTU: u32 = 1500;
/// Bytes of the headers of IPv4 and TCP on a data segment, without timestamps and with them.
const HEADER: u16 = 40;
const HEADER_WITH_TIMESTAMPS: u16 = 52;
const NS_PER_MS: u64 = 1_000_000;
/// The sysctl for ECN, and its value for accurate ECN, which older kernels refuse.
pub(crate) const TCP_ECN: &str = "ipv4/tcp_ecn";
pub(crate) const ACCURATE_ECN: &str = "3";

/// The kernel settings of a stack.
#[derive(Clone, Debug, Default)]
pub(crate) struct KernelSettings {
    pub(crate) mtu: u32,
    /// Maximum number of segments of a TSO packet; `None` for the kernel's default.
    pub(crate) gso_max_segs: Option<u32>,
    /// Metrics of the sender's route and the receiver's.
    pub(crate) route_metrics: [RouteMetrics; 2],
    /// Sysctls of both namespaces: key below /proc/sys/net, value.
    pub(crate) sysctls: Vec<(&'static str, String)>,
    /// Whether sockets pace even if the algorithm sets no rate.
    pub(crate) pacing: bool,
    /// The default algorithm of both namespaces; `None` for the kernel's.
    pub(crate) default_algorithm: Option<String>,
    /// Size of the receive buffer, bytes; `None` for one that grows.
    pub(crate) receive_buffer: Option<u64>,
}

impl KernelSettings {
    /// The settings for a flow.
    ///
    /// # Errors
    /// If the stack has a setting that the kernel does not support.
    pub(crate) fn for_flow(flow: &FlowSpec) -> Result<KernelSettings, TestbedError> {
        let bulk = options_of(flow);
        if bulk.is_none()
            && let Some(mtu) = udp_mtu(flow)
        {
            return Ok(KernelSettings { mtu, ..KernelSettings::default() });
        }
        let bulk = bulk.map_or(0, |options| u32::from(options.packet().1) + IP_UDP);
        let (stack, linux) = (&flow.stack, Stack::linux());
        check_supported(flow, stack, &linux)?;
        let mut sysctls = vec![
            ("ipv4/tcp_no_metrics_save", "1".to_owned()),
            // Orphaned sockets of programs give up soon.
            ("ipv4/tcp_orphan_retries", "3".to_owned()),
            ("ipv4/tcp_rmem", format!("4096 131072 {}", stack.tcp_rmem.min(MAX_SOCKET_BUFFER))),
            ("ipv4/tcp_wmem", format!("4096 16384 {}", stack.tcp_wmem.min(MAX_SOCKET_BUFFER))),
            ("ipv4/tcp_timestamps", if stack.timestamps() { "1" } else { "0" }.to_owned()),
            (TCP_ECN, tcp_ecn(flow).to_owned()),
        ];
        if stack.loss_detection == LossDetection::DupThresh {
            sysctls.push(("ipv4/tcp_recovery", "0".to_owned()));
        }
        if !stack.tail_loss_probe {
            sysctls.push(("ipv4/tcp_early_retrans", "0".to_owned()));
        }
        if !stack.slow_start_after_idle {
            sysctls.push(("ipv4/tcp_slow_start_after_idle", "0".to_owned()));
        }
        if !stack.sack_compression {
            sysctls.push(("ipv4/tcp_comp_sack_nr", "0".to_owned()));
        }
        let differs = |ours: u64, theirs: u64, value: u32| (ours != theirs).then_some(value);
        let min_rto = (stack.min_rto_ns / NS_PER_MS) as u32;
        let sender = RouteMetrics {
            initial_window: differs(
                stack.initial_window.into(),
                linux.initial_window.into(),
                stack.initial_window,
            ),
            min_rto_ms: differs(stack.min_rto_ns, linux.min_rto_ns, min_rto),
            quick_ack: false,
        };
        let receiver = RouteMetrics { quick_ack: !stack.delayed_ack, ..RouteMetrics::default() };
        let buffer = u64::from(stack.receive_window) * stack.received_size();
        Ok(KernelSettings {
            mtu: bulk.max(u32::from(stack.mss) + u32::from(stack.header)),
            gso_max_segs: (!stack.tso).then_some(1),
            route_metrics: [sender, receiver],
            sysctls,
            pacing: stack.pacing,
            default_algorithm: flow.command.is_some().then(|| kernel_name(flow).to_owned()),
            receive_buffer: stack.receive_window_is_set().then_some(buffer),
        })
    }
}

/// The MTU of the devices of a flow over UDP; `None` for TCP. Endpoints of other crates find the size
/// of their packets by themselves.
pub(crate) fn udp_mtu(flow: &FlowSpec) -> Option<u32> {
    let of_datagrams = (flow.udp || flow.external.is_some()).then_some(ETHERNET_MTU);
    flow.udt.as_ref().map(|options| options.mss.into()).or(of_datagrams)
}

/// The value of the sysctl for ECN. DCTCP negotiates classic ECN, and its receiver echoes each mark.
pub(crate) fn tcp_ecn(flow: &FlowSpec) -> &'static str {
    match flow.stack.ecn {
        Ecn::Off => "0",
        Ecn::Classic => "1",
        Ecn::Accurate if echoes_marks(kernel_name(flow)) => "1",
        Ecn::Accurate | Ecn::L4s => ACCURATE_ECN,
    }
}

/// Major and minor version of a kernel release such as "6.18.44-cloud"; (0, 0) if it has none.
fn kernel_version(release: &str) -> (u32, u32) {
    let mut parts = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor),
        _ => (0, 0),
    }
}

/// A time as experiment files have it.
fn milliseconds(ns: u64) -> String {
    format!("\"{} ms\"", ns as f64 / 1e6)
}

fn unsupported(flow: &FlowSpec, key: &str, value: &str, reason: &str) -> TestbedError {
    let (flow, key) = (flow.name.clone(), key.to_owned());
    TestbedError::Unsupported { flow, key, value: value.to_owned(), reason: reason.to_owned() }
}

/// Refuses what a flow over TCP cannot have, because of who opens its sockets or of which kind they are.
///
/// # Errors
/// [`TestbedError::Unsupported`] for the first such setting.
pub(crate) fn check_sockets(flow: &FlowSpec) -> Result<(), TestbedError> {
    if udp_mtu(flow).is_some() || options_of(flow).is_some() {
        return Ok(());
    }
    let stack = &flow.stack;
    if has_options(&flow.cc) {
        let reason = "a kernel's algorithms have no options by flow; write ";
        let (value, name) = (format!("\"{}\"", flow.cc), kernel_name(flow));
        return Err(unsupported(flow, "cc", &value, &format!("{reason}\"{name}\"")));
    }
    if flow.command.is_some() && stack.receive_window_is_set() {
        let (key, value) = ("stack_options.receive_window", stack.receive_window.to_string());
        let reason = "the program given by command opens its own sockets; remove the option";
        return Err(unsupported(flow, key, &value, reason));
    }
    let reason = if flow.command.is_some() {
        "the program given by command opens its own sockets; write false"
    } else if !flow.additional_subflows.is_empty() {
        "Linux's Multipath TCP has no SO_MAX_PACING_RATE; write false"
    } else {
        return Ok(());
    };
    if stack.pacing {
        return Err(unsupported(flow, "stack_options.pacing", "true", reason));
    }
    Ok(())
}

/// Refuses settings that only the simulator can change.
///
/// # Errors
/// [`TestbedError::Unsupported`] for the first such setting.
fn check_supported(flow: &FlowSpec, stack: &Stack, linux: &Stack) -> Result<(), TestbedError> {
    let refuse = |key: &str, value: String, theirs: String| {
        let reason = format!("Linux has {theirs}, and no setting for it; write that");
        Err(unsupported(flow, &format!("stack_options.{key}"), &value, &reason))
    };
    if ![HEADER, HEADER_WITH_TIMESTAMPS].contains(&stack.header) {
        let (key, value) = ("stack_options.header", stack.header.to_string());
        let reason = "Linux's headers have 52 bytes, or 40 without timestamps; write one of these";
        return Err(unsupported(flow, key, &value, reason));
    }
    if !stack.min_rto_ns.is_multiple_of(NS_PER_MS) {
        let (key, value) = ("stack_options.min_rto", milliseconds(stack.min_rto_ns));
        let reason = "Linux has whole milliseconds; write such a number";
        return Err(unsupported(flow, key, &value, reason));
    }
    if stack.byte_counting != linux.byte_counting {
        return refuse("byte_counting", "false".to_owned(), "true".to_owned());
    }
    if stack.loss_detection != linux.loss_detection {
        // Linux 6.17 removed it ("tcp: remove obsolete and unused RFC3517/RFC6675 loss recovery
        // code").
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        if kernel_version(&release) >= (6, 17) {
            let theirs = "\"rack\" since 6.17".to_owned();
            return refuse("loss_detection", "\"dup-thresh\"".to_owned(), theirs);
        }
    }
    if stack.rto != linux.rto {
        return refuse("rto", "\"rfc6298\"".to_owned(), "\"linux\"".to_owned());
    }
    if stack.undo != linux.undo {
        return refuse("undo", "false".to_owned(), "true".to_owned());
    }
    if stack.delayed_ack && stack.delayed_ack_ns != linux.delayed_ack_ns {
        let (ours, theirs) = (stack.delayed_ack_ns, linux.delayed_ack_ns);
        return refuse("delayed_ack_timeout", milliseconds(ours), milliseconds(theirs));
    }
    if stack.quick_acks != linux.quick_acks {
        let (ours, theirs) = (stack.quick_acks, linux.quick_acks);
        return refuse("quick_acks", ours.to_string(), theirs.to_string());
    }
    if stack.push != linux.push {
        return refuse("push", "false".to_owned(), "true".to_owned());
    }
    if stack.autotuning != linux.autotuning {
        return refuse("autotuning", "false".to_owned(), "true".to_owned());
    }
    if stack.tick_ns != linux.tick_ns {
        return refuse("tick", milliseconds(stack.tick_ns), milliseconds(linux.tick_ns));
    }
    if stack.max_burst != linux.max_burst {
        return refuse("max_burst", stack.max_burst.to_string(), linux.max_burst.to_string());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dumbbell_sim::{PathSpec, Scenario};

    /// Why a flow cannot run with a change of its keys.
    fn refused(change: impl Fn(&mut FlowSpec)) -> String {
        let json = r#"{
            "duration_ns": 10, "sample_ns": 4,
            "links": [{"name": "link", "rate_bps": 1e6, "delay_ns": 1}],
            "flows": [{"name": "one", "cc": "cubic", "path": ["link"]}]
        }"#;
        let mut scenario = Scenario::from_json(json).expect("a scenario");
        let flow = &mut scenario.flows[0];
        change(flow);
        let checked = check_sockets(flow).and_then(|()| KernelSettings::for_flow(flow));
        checked.expect_err("it is refused").to_string()
    }

    #[test]
    fn a_kernel_release_begins_with_its_version() {
        assert_eq!(kernel_version("6.18.44-cloud\n"), (6, 18));
        assert_eq!(kernel_version("6.8-rc1"), (6, 8));
        assert_eq!(kernel_version("unknown"), (0, 0));
    }

    #[test]
    fn headers_are_those_with_timestamps_or_without() {
        let error = refused(|flow| flow.stack.header = 44);
        assert!(error.contains("stack_options.header cannot be 44"), "{error}");
        assert!(error.contains("52 bytes, or 40 without timestamps"), "{error}");
    }

    #[test]
    fn a_minimum_rto_is_a_whole_number_of_milliseconds() {
        let error = refused(|flow| flow.stack.min_rto_ns = 1_500_000);
        assert!(error.contains("stack_options.min_rto cannot be \"1.5 ms\""), "{error}");
    }

    #[test]
    fn options_of_sockets_are_refused_where_a_program_opens_them() {
        let of_program = |change: fn(&mut FlowSpec)| {
            refused(|flow| {
                flow.command = Some("true".to_owned());
                change(flow);
            })
        };
        let error = of_program(|flow| flow.cc = "cubic(beta=0.8)".to_owned());
        assert!(error.contains("no options by flow; write \"cubic\""), "{error}");
        let paced = of_program(|flow| flow.stack.pacing = true);
        assert!(paced.contains("stack_options.pacing cannot be true"), "{paced}");
        let small = of_program(|flow| flow.stack.receive_window = 20);
        assert!(small.contains("stack_options.receive_window cannot be 20"), "{small}");
        assert!([paced, small].iter().all(|error| error.contains("opens its own sockets")));
    }

    #[test]
    fn sockets_of_multipath_tcp_have_no_pacing() {
        let error = refused(|flow| {
            flow.stack.pacing = true;
            let (path, return_path) = (Vec::new(), Vec::new());
            flow.additional_subflows = vec![PathSpec { path, return_path, return_delay_ns: 0 }];
        });
        assert!(error.contains("no SO_MAX_PACING_RATE; write false"), "{error}");
    }
}
