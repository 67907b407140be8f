//! Hosts: network namespaces, each connected to the emulator by a TUN device.

use crate::error::TestbedError;
use crate::netlink::{LOOPBACK, LinkSettings, PathManager, RouteSocket};
use crate::settings::{ACCURATE_ECN, KernelSettings, TCP_ECN, TUN_QUEUE_PACKETS};
use crate::sys::{self, Namespace};
use rustix::process::{getgid, getuid};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// The first two bytes of the addresses of senders and receivers. The last two bytes are the number
/// of the path plus 1.
const NETWORKS: [[u8; 2]; 2] = [[10, 1], [10, 2]];
const PREFIX: u8 = 16;
const DEVICE: &str = "dumbbell";

/// Maximum number of paths, limited by the addresses.
pub(crate) const MAX_PATHS: usize = 65_000;

/// The end of its flows at which a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Sender,
    Receiver,
}

impl Side {
    fn network(self) -> [u8; 2] {
        NETWORKS[self as usize]
    }

    fn peer(self) -> Side {
        if self == Side::Sender { Side::Receiver } else { Side::Sender }
    }

    /// Address of this side's end of a path.
    pub(crate) fn address(self, path: u32) -> [u8; 4] {
        let [a, b] = self.network();
        let [c, d] = (path as u16 + 1).to_be_bytes();
        [a, b, c, d]
    }

    /// The path whose end on this side has the address; `None` if there is none.
    pub(crate) fn path(self, [a, b, c, d]: [u8; 4]) -> Option<u32> {
        let number = u32::from(u16::from_be_bytes([c, d]));
        if [a, b] == self.network() { number.checked_sub(1) } else { None }
    }
}

/// A network namespace with its TUN device. The kernel removes it when this value is dropped and no
/// process or socket is in it.
pub(crate) struct Host {
    namespace: File,
    pub(crate) tun: File,
}

const NAMESPACE_REMEDY: &str = "run as root, or where unprivileged user namespaces are allowed \
     (user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns)";

impl Host {
    /// Creates a host and calls `inside` in its namespace.
    ///
    /// `first` is the number of its first path, `additional_paths` those of
    /// an MPTCP connection.
    pub(crate) fn new<T: Send>(
        side: Side,
        settings: &KernelSettings,
        first: u32,
        additional_paths: &[u32],
        inside: impl FnOnce() -> Result<T, TestbedError> + Send,
    ) -> Result<(Host, T), TestbedError> {
        on_new_thread(|| {
            sys::unshare(Namespace::Network)
                .map_err(TestbedError::unavailable("make a network namespace", NAMESPACE_REMEDY))?;
            let namespace = File::open("/proc/thread-self/ns/net")
                .map_err(TestbedError::failed("opened a namespace"))?;
            for (key, value) in &settings.sysctls {
                write_sysctl(key, value)?;
            }
            let default = settings.default_algorithm.as_deref();
            let of_route = default.map(set_default_algorithm).transpose()?.flatten();
            let tun = sys::open_tun(DEVICE).map_err(open_tun_failed)?;
            configure_interfaces(side, settings, first, of_route)
                .map_err(TestbedError::failed("configured a network namespace"))?;
            if !additional_paths.is_empty() {
                configure_mptcp(side, additional_paths).map_err(TestbedError::unavailable(
                    "set up Multipath TCP",
                    "use a kernel with CONFIG_MPTCP and net.mptcp.enabled = 1",
                ))?;
            }
            Ok((Host { namespace, tun }, inside()?))
        })
    }

    /// Calls `inside` in the namespace.
    pub(crate) fn enter<T: Send>(
        &self,
        inside: impl FnOnce() -> Result<T, TestbedError> + Send,
    ) -> Result<T, TestbedError> {
        on_new_thread(|| {
            move_into_link_name_space(self.namespace.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(TestbedError::failed("entered a namespace"))?;
            inside()
        })
    }

    /// Packets that the device dropped because its queue was full (proc(5), /proc/net/dev).
    pub(crate) fn device_drops(&self) -> u64 {
        let read = || fs::read_to_string("/proc/thread-self/net/dev");
        let table = self.enter(|| read().map_err(TestbedError::failed("read a device's counters")));
        let table = table.unwrap_or_default();
        let line =
            table.lines().find_map(|line| line.trim().strip_prefix(DEVICE)?.strip_prefix(':'));
        line.and_then(|line| line.split_whitespace().nth(11)?.parse().ok()).unwrap_or(0)
    }

    /// Fast recovery episodes, reductions that were undone, and retransmission timeouts, of all its
    /// TCP connections.
    pub(crate) fn tcp_episodes(&self) -> Result<[u32; 3], TestbedError> {
        let read = || {
            let text = fs::read_to_string("/proc/thread-self/net/netstat")?;
            tcp_episodes(&text).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
        };
        self.enter(|| read().map_err(TestbedError::failed("read TCP's counters")))
    }
}

/// Fast recovery episodes, reductions that were undone, and retransmission timeouts, of all connections
/// of a host, from the text of /proc/net/netstat (Linux, Documentation/networking/snmp_counter.rst).
fn tcp_episodes(netstat: &str) -> Option<[u32; 3]> {
    let mut lines = netstat.lines().filter_map(|line| line.strip_prefix("TcpExt:"));
    let (names, values) = (lines.next()?.split_whitespace(), lines.next()?.split_whitespace());
    let counters: HashMap<&str, u32> =
        names.zip(values).filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect();
    let sum = |names: &[&str]| names.iter().map(|name| counters.get(name)).sum::<Option<u32>>();
    Some([
        sum(&["TCPRenoRecovery", "TCPSackRecovery"])?,
        sum(&["TCPFullUndo", "TCPPartialUndo", "TCPDSACKUndo", "TCPLossUndo"])?,
        sum(&["TCPTimeouts"])?,
    ])
}

/// Runs `work` on a new thread, which may change its namespaces without affecting the caller.
fn on_new_thread<T: Send>(
    work: impl FnOnce() -> Result<T, TestbedError> + Send,
) -> Result<T, TestbedError> {
    std::thread::scope(|scope| scope.spawn(work).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn open_tun_failed(error: io::Error) -> TestbedError {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => {
            "load the module (modprobe tun) or give the container the device"
        }
        io::ErrorKind::PermissionDenied => {
            "let users open /dev/net/tun (its mode is usually 0666), or run as root"
        }
        _ => "use a kernel with CONFIG_TUN",
    };
    TestbedError::unavailable("make a TUN device", remedy)(error)
}

fn write_sysctl(key: &str, value: &str) -> Result<(), TestbedError> {
    let path = format!("/proc/sys/net/{key}");
    fs::write(&path, value).map_err(|error| sysctl_failed(key, value, error))
}

/// Makes an algorithm the default of the current namespace. Returns the algorithm if routes must select
/// it, as the kernel allows other namespaces no default beyond `tcp_allowed_congestion_control`.
fn set_default_algorithm(name: &str) -> Result<Option<&str>, TestbedError> {
    let key = "ipv4/tcp_congestion_control";
    match fs::write(format!("/proc/sys/net/{key}"), name) {
        Ok(()) => Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => Ok(Some(name)),
        Err(error) => Err(sysctl_failed(key, name, error)),
    }
}

fn sysctl_failed(key: &str, value: &str, error: io::Error) -> TestbedError {
    if (key, value, error.kind()) == (TCP_ECN, ACCURATE_ECN, io::ErrorKind::InvalidInput) {
        let remedy = "this kernel has no accurate ECN; write ecn = \"classic\" or \"off\", or use the \
                      simulator";
        return TestbedError::unavailable("use accurate ECN", remedy)(error);
    }
    let remedy = match key {
        "ipv4/tcp_congestion_control" => "use an algorithm that the kernel has",
        _ => "mount /proc/sys so that it can be written (in a container: --privileged)",
    };
    TestbedError::unavailable(format!("write /proc/sys/net/{key}"), remedy)(error)
}

fn configure_interfaces(
    side: Side,
    settings: &KernelSettings,
    first: u32,
    algorithm: Option<&str>,
) -> io::Result<()> {
    let routing = RouteSocket::open()?;
    routing.set_link_up(LOOPBACK, LinkSettings::default())?;
    routing.add_loopback_address(side.address(first), PREFIX)?;
    let device = rustix::net::netdevice::name_to_index(
        rustix::net::socket(
            rustix::net::AddressFamily::INET,
            rustix::net::SocketType::DGRAM,
            None,
        )?,
        DEVICE,
    )?;
    let segments = settings.gso_max_segs;
    let interface = LinkSettings {
        mtu: Some(settings.mtu),
        txqlen: Some(TUN_QUEUE_PACKETS),
        gso_max_segs: segments,
    };
    routing.set_link_up(device, interface)?;
    let [a, b] = side.peer().network();
    let metrics = settings.route_metrics[side as usize];
    routing.add_route([a, b, 0, 0], PREFIX, device, metrics, algorithm)
}

/// Allows one subflow per path at both ends; the sender opens the subflows.
fn configure_mptcp(side: Side, additional_paths: &[u32]) -> io::Result<()> {
    let manager = PathManager::open()?;
    manager.set_limit(additional_paths.len() as u32)?;
    if side == Side::Sender {
        for (id, &path) in (1..).zip(additional_paths) {
            manager.add_endpoint(id, side.address(path))?;
        }
    }
    Ok(())
}

/// Puts later children of the calling process into a new process namespace in which they may create
/// network namespaces; without privileges, into a new user namespace as well.
///
/// The first child is the init of the process namespace: when it ends, the kernel kills the others.
///
/// # Errors
/// If the machine does not allow it, or if the process is unprivileged and has several threads,
/// which user namespaces do not permit.
pub fn isolate() -> Result<(), TestbedError> {
    match sys::unshare(Namespace::Processes) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        done => {
            return done
                .map_err(TestbedError::unavailable("make a process namespace", NAMESPACE_REMEDY));
        }
    }
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    sys::unshare(Namespace::User)
        .map_err(TestbedError::unavailable("make a user namespace", NAMESPACE_REMEDY))?;
    fs::write("/proc/self/setgroups", "deny")
        .and_then(|()| fs::write("/proc/self/uid_map", format!("0 {user} 1")))
        .and_then(|()| fs::write("/proc/self/gid_map", format!("0 {group} 1")))
        .and_then(|()| sys::unshare(Namespace::Processes))
        .map_err(TestbedError::unavailable("become root of a user namespace", NAMESPACE_REMEDY))
}

/// Makes the kernel kill the calling process when its parent thread ends (PR_SET_PDEATHSIG).
///
/// # Errors
/// Never, on Linux.
pub fn die_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?)
}

/// Opens an MPTCP socket in the current namespace.
pub(crate) fn mptcp_socket() -> Result<OwnedFd, TestbedError> {
    sys::mptcp_socket().map_err(TestbedError::unavailable(
        "open a socket of Multipath TCP",
        "use a kernel with CONFIG_MPTCP and net.mptcp.enabled = 1",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::RouteMetrics;
    use std::process::Command;

    #[test]
    fn episodes_are_sums_of_the_kernels_counters() {
        let names = "TcpExt: SyncookiesSent TCPRenoRecovery TCPSackRecovery TCPFullUndo \
                     TCPPartialUndo TCPDSACKUndo TCPLossUndo TCPTimeouts";
        let text = format!("{names}\nTcpExt: 9 1 20 3 40 5 60 7\nIpExt: InNoRoutes\nIpExt: 7\n");
        assert_eq!(tcp_episodes(&text), Some([21, 108, 7]));
        assert_eq!(tcp_episodes("TcpExt: TCPFullUndo\nTcpExt: 1\n"), None);
    }

    /// The default algorithm and the routes of a host with these settings; `None`, with the reason
    /// printed, if they cannot be seen here.
    fn default_and_routes(
        settings: &KernelSettings,
    ) -> Result<Option<(String, String)>, TestbedError> {
        let show = || {
            let default = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
            let routes = Command::new("ip").args(["route", "show", "dev", DEVICE]).output();
            Ok((default.unwrap_or_default(), routes))
        };
        match Host::new(Side::Sender, settings, 0, &[], show) {
            Ok((_, (default, Ok(routes)))) => {
                return Ok(Some((default, String::from_utf8_lossy(&routes.stdout).into_owned())));
            }
            Ok((_, (_, Err(error)))) => println!("skipped: ip (iproute2): {error}"),
            Err(error @ TestbedError::Unavailable { .. }) => println!("skipped: {error}"),
            Err(error) => return Err(error),
        }
        Ok(None)
    }

    #[test]
    fn the_minimum_rto_of_a_route_is_one_that_tcp_reads() -> Result<(), TestbedError> {
        let metrics =
            RouteMetrics { initial_window: Some(3), min_rto_ms: Some(50), quick_ack: true };
        let settings =
            KernelSettings { mtu: 1500, route_metrics: [metrics; 2], ..KernelSettings::default() };
        // `ip` shows a metric that is locked as such: tcp_rto_min ignores others.
        let Some((_, shown)) = default_and_routes(&settings)? else { return Ok(()) };
        for metric in ["initcwnd 3", "rto_min lock 50ms", "quickack 1"] {
            assert!(shown.contains(metric), "{metric:?} in {shown:?}");
        }
        Ok(())
    }

    #[test]
    fn routes_select_an_algorithm_that_cannot_be_the_default() -> Result<(), TestbedError> {
        // Linux has it, but only the first namespace may have it as the default unless it is allowed.
        let cc = Some("cubic".to_owned());
        let settings =
            KernelSettings { mtu: 1500, default_algorithm: cc, ..KernelSettings::default() };
        let Some((default, routes)) = default_and_routes(&settings)? else { return Ok(()) };
        assert_ne!(default.trim() == "cubic", routes.contains("congctl cubic"), "{routes:?}");
        Ok(())
    }

    #[test]
    fn a_kernel_without_accurate_ecn_is_named() {
        let failed =
            |key, value, kind: io::ErrorKind| sysctl_failed(key, value, kind.into()).to_string();
        let refused = io::ErrorKind::InvalidInput;
        let error = failed(TCP_ECN, ACCURATE_ECN, refused);
        assert!(error.contains("cannot use accurate ECN"), "{error}");
        assert!(error.contains("this kernel has no accurate ECN"), "{error}");
        for (value, kind) in [("1", refused), (ACCURATE_ECN, io::ErrorKind::PermissionDenied)] {
            let error = failed(TCP_ECN, value, kind);
            assert!(error.contains("cannot write /proc/sys/net/ipv4/tcp_ecn"), "{error}");
            assert!(error.contains("--privileged"), "{error}");
        }
    }

    #[test]
    fn addresses_and_paths_convert_both_ways() {
        for path in [0, 1, 254, 255, 256, 64_999] {
            assert_eq!(Side::Sender.path(Side::Sender.address(path)), Some(path));
            assert_eq!(Side::Receiver.path(Side::Sender.address(path)), None);
        }
        assert_eq!(Side::Sender.address(0), [10, 1, 0, 1]);
        assert_eq!(Side::Sender.path([10, 1, 0, 0]), None);
        assert_eq!(Side::Sender.path([192, 168, 0, 1]), None);
    }
}
