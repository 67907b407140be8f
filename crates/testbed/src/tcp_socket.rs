//! Opens the sockets of TCP connections.

use crate::algorithm::{LINUX_ALGORITHMS, echoes_marks, kernel_name, own_algorithms};
use crate::error::TestbedError;
use crate::host::{Side, mptcp_socket};
use crate::settings::KernelSettings;
use crate::socket_buffer::{Buffer, set_buffer};
use crate::sys::setsockopt;
use crate::tcp_flow::{RECEIVER_PORT, address};
use dumbbell_sim::{FlowPlan, FlowSpec};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, sockopt};
use std::os::fd::OwnedFd;
use std::time::Duration;

const TCP_NOTSENT_LOWAT: i32 = 25;
/// Limit of unsent data in a socket (TCP_NOTSENT_LOWAT), bytes.
///
/// It lasts for about 1 ms at 10 Gbit/s, so that a writer may be that late.
pub(crate) const MAX_UNSENT: u32 = 1 << 20;
/// A value of SO_MAX_PACING_RATE that turns pacing on without a limit. The maximum value of the
/// type would turn pacing off.
const UNLIMITED_PACING_RATE: u64 = u64::MAX >> 1;
/// Connections that wait to be accepted, at most: the maximum of Linux (net.core.somaxconn since 5.4).
const BACKLOG: i32 = 4096;

fn tcp_socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    rustix::net::socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)
}

/// Opens a socket with a linger time of 0, so that closing it discards unsent data.
///
/// An orphaned socket would keep its memory and its namespace for minutes, and under memory
/// pressure the kernel keeps the windows of later runs small.
fn open_socket(is_multipath: bool) -> Result<OwnedFd, TestbedError> {
    let socket = if is_multipath {
        mptcp_socket()?
    } else {
        tcp_socket().map_err(TestbedError::failed("opened a socket"))?
    };
    sockopt::set_socket_linger(&socket, Some(Duration::ZERO))
        .map_err(TestbedError::failed("prepared a socket"))?;
    Ok(socket)
}

/// Limits the unsent data in a socket, bytes. It can be written to while there is less than half of it.
pub(crate) fn limit_unsent(socket: &OwnedFd, bytes: u32) -> std::io::Result<()> {
    setsockopt(socket, libc::IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes.to_ne_bytes())
}

/// Opens the sending socket; call in the sender's namespace.
pub(crate) fn open_sender(
    flow: &FlowSpec,
    plan: &FlowPlan,
    settings: &KernelSettings,
) -> Result<OwnedFd, TestbedError> {
    let socket = open_socket(!flow.additional_subflows.is_empty())?;
    let cc = kernel_name(flow);
    sockopt::set_tcp_congestion(&socket, cc)
        .map_err(|error| algorithm_unavailable(flow, cc, error))?;
    let prepared = |error: std::io::Error| TestbedError::failed("prepared a socket")(error);
    if settings.pacing {
        let (level, option) = (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE);
        setsockopt(&socket, level, option, &UNLIMITED_PACING_RATE.to_ne_bytes())
            .map_err(prepared)?;
    }
    let limited = limit_unsent(&socket, MAX_UNSENT);
    if flow.additional_subflows.is_empty() {
        // Multipath TCP supports the option only since Linux 6.10.
        limited.map_err(prepared)?;
    }
    bind(&socket, &address(Side::Sender, plan.pair, 0))
        .map_err(TestbedError::failed("bound a socket"))?;
    Ok(socket)
}

fn algorithm_unavailable(flow: &FlowSpec, cc: &str, error: Errno) -> TestbedError {
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let known = known.unwrap_or_default();
    let is_known = known.split_whitespace().any(|name| name == cc);
    let known = own_algorithms(&known);
    let (name, key, value) = (flow.name.clone(), "cc".to_owned(), format!("\"{}\"", flow.cc));
    if !is_known && flow.cc.starts_with("linux:") {
        let reason = format!(
            "the kernel has {known}; load the module (modprobe tcp_{cc}), or write \
             \"linux:FILE.o\" for an eBPF object, or \"{cc}\" if dumbbell bpf list has it"
        );
        return TestbedError::Unsupported { flow: name, key, value, reason };
    }
    if !is_known && !LINUX_ALGORITHMS.contains(&cc) {
        let reason = format!(
            "it runs only in the simulator, since neither Linux nor the programs of dumbbell bpf \
             have it; the kernel has {known}"
        );
        return TestbedError::Unsupported { flow: name, key, value, reason };
    }
    let remedy = format!(
        "the kernel has {known}; load the module (modprobe tcp_{cc}) or choose one of these"
    );
    TestbedError::unavailable(format!("use the algorithm \"{cc}\""), remedy)(error)
}

/// Opens the listening socket; call in the receiver's namespace.
pub(crate) fn open_listener(
    flow: &FlowSpec,
    plan: &FlowPlan,
    settings: &KernelSettings,
) -> Result<OwnedFd, TestbedError> {
    let socket = open_socket(!flow.additional_subflows.is_empty())?;
    let cc = kernel_name(flow);
    if echoes_marks(cc) {
        sockopt::set_tcp_congestion(&socket, cc)
            .map_err(|error| algorithm_unavailable(flow, cc, error))?;
    }
    if let Some(size) = settings.receive_buffer {
        // The kernel doubles what it is given.
        set_buffer(&socket, Buffer::Receive, i32::try_from(size / 2).unwrap_or(i32::MAX))?;
    }
    bind(&socket, &address(Side::Receiver, plan.pair, RECEIVER_PORT))
        .and_then(|()| listen(&socket, BACKLOG))
        .map_err(TestbedError::failed("listened on a socket"))?;
    Ok(socket)
}
