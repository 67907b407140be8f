//! How far a stack of the scenario can be had from a kernel: by settings of the namespace, of its
//! routes and device, and of sockets.

use crate::error::TestbedError;
use crate::netlink::Metrics;
use dumbbell_sim::FlowSpec;
use dumbbell_tcp::{Ecn, LossDetection, Stack};

/// The greatest buffer of a socket, bytes: 1 Gbit/s for a second, twice, as half of it may be
/// overhead.
const BUFFER: u64 = 1 << 28;
/// Where nothing is queued on the way to the emulator, nothing is dropped there.
pub(crate) const DEVICE_QUEUE: u32 = 20_000;

/// What a stack is to a kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) mtu: u32,
    /// The most segments that leave as one; `None` for as many as the kernel likes.
    pub(crate) segments: Option<u32>,
    /// Of the sender's route and the receiver's.
    pub(crate) metrics: [Metrics; 2],
    /// Below /proc/sys/net, of both namespaces.
    pub(crate) sysctls: Vec<(&'static str, String)>,
    /// Whether sockets pace what the algorithm does not.
    pub(crate) pacing: bool,
    /// The most that a receiver announces, bytes.
    pub(crate) window: Option<u32>,
}

impl Settings {
    /// # Errors
    /// If the stack has something that no kernel of today does.
    pub(crate) fn of(flow: &FlowSpec) -> Result<Settings, TestbedError> {
        if let Some(options) = &flow.udt {
            return Ok(Settings { mtu: options.mss.into(), ..Settings::default() });
        }
        let (stack, linux) = (&flow.stack, Stack::linux());
        refuse_unknown(flow, stack, &linux)?;
        let mut sysctls = vec![
            ("ipv4/tcp_no_metrics_save", "1".to_owned()),
            // What programs leave unsent ends soon after them.
            ("ipv4/tcp_orphan_retries", "3".to_owned()),
            ("ipv4/tcp_rmem", format!("4096 131072 {BUFFER}")),
            ("ipv4/tcp_wmem", format!("4096 16384 {BUFFER}")),
            ("ipv4/tcp_timestamps", if stack.header > 40 { "1" } else { "0" }.to_owned()),
            ("ipv4/tcp_ecn", ecn(stack.ecn).to_owned()),
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
        let min_rto = (stack.min_rto_ns / 1_000_000) as u32;
        let sender = Metrics {
            initial_window: differs(
                stack.initial_window.into(),
                linux.initial_window.into(),
                stack.initial_window,
            ),
            min_rto_ms: differs(stack.min_rto_ns, linux.min_rto_ns, min_rto),
            quick_ack: false,
        };
        let receiver = Metrics { quick_ack: !stack.delayed_ack, ..Metrics::default() };
        let window = u64::from(stack.receive_window) * u64::from(stack.mss);
        Ok(Settings {
            mtu: u32::from(stack.mss) + u32::from(stack.header),
            segments: (!stack.tso).then_some(1),
            metrics: [sender, receiver],
            sysctls,
            pacing: stack.pacing,
            window: (window < BUFFER / 2).then_some(window as u32),
        })
    }
}

fn ecn(ecn: Ecn) -> &'static str {
    match ecn {
        Ecn::Off => "0",
        Ecn::Classic => "1",
        Ecn::Accurate => "3",
    }
}

/// The kernel's version, such as 6.18, of a release such as "6.18.44-cloud". Zero if it does not begin
/// so.
fn version(release: &str) -> (u32, u32) {
    let mut parts = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor),
        _ => (0, 0),
    }
}

/// What only the simulator can do otherwise than Linux.
fn refuse_unknown(flow: &FlowSpec, stack: &Stack, linux: &Stack) -> Result<(), TestbedError> {
    let refuse = |key: &str, value: String, theirs: String| {
        Err(TestbedError::Unsupported {
            flow: flow.name.clone(),
            key: format!("stack-options.{key}"),
            value,
            reason: format!("Linux has {theirs}, and no setting for it; write that"),
        })
    };
    if stack.byte_counting != linux.byte_counting {
        return refuse("byte-counting", "false".to_owned(), "true".to_owned());
    }
    if stack.loss_detection != linux.loss_detection {
        // Linux 6.17 has no other ("tcp: remove obsolete and unused RFC3517/RFC6675 loss recovery code").
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        if version(&release) >= (6, 17) {
            let theirs = "\"rack\" since 6.17".to_owned();
            return refuse("loss-detection", "\"dup-thresh\"".to_owned(), theirs);
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
        return refuse("delayed-ack-ns", ours.to_string(), theirs.to_string());
    }
    if stack.quick_acks != linux.quick_acks {
        let (ours, theirs) = (stack.quick_acks, linux.quick_acks);
        return refuse("quick-acks", ours.to_string(), theirs.to_string());
    }
    if stack.push != linux.push {
        return refuse("push", "false".to_owned(), "true".to_owned());
    }
    if stack.autotuning != linux.autotuning {
        return refuse("autotuning", "false".to_owned(), "true".to_owned());
    }
    if stack.tick_ns != linux.tick_ns {
        return refuse("tick-ns", stack.tick_ns.to_string(), linux.tick_ns.to_string());
    }
    if stack.max_burst != linux.max_burst {
        return refuse("max-burst", stack.max_burst.to_string(), linux.max_burst.to_string());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_begins_with_a_version() {
        assert_eq!(version("6.18.44-cloud\n"), (6, 18));
        assert_eq!(version("6.8-rc1"), (6, 8));
        assert_eq!(version("unknown"), (0, 0));
    }
}
