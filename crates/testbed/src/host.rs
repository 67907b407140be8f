//! Hosts: network namespaces, each with a TUN device that leads to the emulator.

use crate::error::TestbedError;
use crate::netlink::{Interface, LOOPBACK, PathManager, Routing};
use crate::settings::{DEVICE_QUEUE, Settings};
use crate::sys::{self, Namespaces};
use rustix::process::{getgid, getuid};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// The networks of senders and receivers. A path is told by the address of its sending end, the
/// network's own number followed by that of the path, counted from 1.
const NETWORKS: [[u8; 2]; 2] = [[10, 1], [10, 2]];
const PREFIX: u8 = 16;
const DEVICE: &str = "dumbbell";

/// The most paths that there are addresses for.
pub(crate) const MOST_PATHS: usize = 65_000;

/// Which end of flows a host is.
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

    /// The address of an end of a path.
    pub(crate) fn address(self, path: u32) -> [u8; 4] {
        let [a, b] = self.network();
        let [c, d] = (path as u16 + 1).to_be_bytes();
        [a, b, c, d]
    }

    /// The path whose end of this side has that address.
    pub(crate) fn path(self, [a, b, c, d]: [u8; 4]) -> Option<u32> {
        let number = u32::from(u16::from_be_bytes([c, d]));
        if [a, b] == self.network() { number.checked_sub(1) } else { None }
    }
}

/// A network namespace. It lives as long as this, or something in it.
pub(crate) struct Host {
    namespace: File,
    pub(crate) tun: File,
}

const NEEDS: &str = "run as root, or where unprivileged user namespaces are allowed \
     (user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns)";

impl Host {
    /// Makes a host of which `first` is the number of the first path; `joins` are the numbers of
    /// further paths of Multipath TCP. What `inside` opens is opened in it.
    pub(crate) fn new<T: Send>(
        side: Side,
        settings: &Settings,
        first: u32,
        joins: &[u32],
        inside: impl FnOnce() -> Result<T, TestbedError> + Send,
    ) -> Result<(Host, T), TestbedError> {
        on_a_thread(|| {
            sys::unshare(Namespaces::Network)
                .map_err(TestbedError::missing("make a network namespace", NEEDS))?;
            let namespace = File::open("/proc/thread-self/ns/net")
                .map_err(TestbedError::failed("opened a namespace"))?;
            for (key, value) in &settings.sysctls {
                set(key, value)?;
            }
            let tun = sys::open_tun(DEVICE).map_err(open_tun_failed)?;
            configure(side, settings, first)
                .map_err(TestbedError::failed("configured a network namespace"))?;
            if !joins.is_empty() {
                prepare_multipath(side, joins).map_err(TestbedError::missing(
                    "set up Multipath TCP",
                    "use a kernel with CONFIG_MPTCP and net.mptcp.enabled = 1",
                ))?;
            }
            Ok((Host { namespace, tun }, inside()?))
        })
    }

    /// Does something in the namespace.
    pub(crate) fn enter<T: Send>(
        &self,
        inside: impl FnOnce() -> Result<T, TestbedError> + Send,
    ) -> Result<T, TestbedError> {
        on_a_thread(|| {
            move_into_link_name_space(self.namespace.as_fd(), Some(LinkNameSpaceType::Network))
                .map_err(TestbedError::failed("entered a namespace"))?;
            inside()
        })
    }

    /// Packets that the device dropped because nobody took them (proc(5), /proc/net/dev).
    pub(crate) fn device_drops(&self) -> u64 {
        let read = || fs::read_to_string("/proc/thread-self/net/dev");
        let table = self.enter(|| read().map_err(TestbedError::failed("read a device's counters")));
        let table = table.unwrap_or_default();
        let line =
            table.lines().find_map(|line| line.trim().strip_prefix(DEVICE)?.strip_prefix(':'));
        line.and_then(|line| line.split_whitespace().nth(11)?.parse().ok()).unwrap_or(0)
    }
}

/// Runs something on a thread of its own, which may then be in other namespaces than this one.
fn on_a_thread<T: Send>(
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
    TestbedError::missing("make a TUN device", remedy)(error)
}

fn set(key: &str, value: &str) -> Result<(), TestbedError> {
    let path = format!("/proc/sys/net/{key}");
    let remedy = match key {
        "ipv4/tcp_congestion_control" => "use an algorithm that the kernel has",
        _ => "mount /proc/sys so that it can be written (in a container: --privileged)",
    };
    fs::write(&path, value).map_err(TestbedError::missing(format!("write {path}"), remedy))
}

fn configure(side: Side, settings: &Settings, first: u32) -> io::Result<()> {
    let routing = Routing::open()?;
    routing.set_up(LOOPBACK, Interface::default())?;
    routing.add_local(side.address(first), PREFIX)?;
    let device = rustix::net::netdevice::name_to_index(
        rustix::net::socket(
            rustix::net::AddressFamily::INET,
            rustix::net::SocketType::DGRAM,
            None,
        )?,
        DEVICE,
    )?;
    let segments = settings.segments;
    let interface = Interface { mtu: Some(settings.mtu), queue: Some(DEVICE_QUEUE), segments };
    routing.set_up(device, interface)?;
    let [a, b] = side.peer().network();
    routing.add_route([a, b, 0, 0], PREFIX, device, settings.metrics[side as usize])
}

/// Both ends let connections have as many subflows as there are paths; the sender's opens them.
fn prepare_multipath(side: Side, joins: &[u32]) -> io::Result<()> {
    let manager = PathManager::open()?;
    manager.set_limit(joins.len() as u32)?;
    if side == Side::Sender {
        for (id, &path) in (1..).zip(joins) {
            manager.add_endpoint(id, side.address(path))?;
        }
    }
    Ok(())
}

/// Puts the children that this process will have into a process namespace of their own, in which
/// they may make network namespaces: without rights in a user namespace. The first of them is that
/// namespace's init, with which everything in it ends.
///
/// # Errors
/// If that is not allowed. A process with several threads cannot have a user namespace.
pub fn isolate() -> Result<(), TestbedError> {
    match sys::unshare(Namespaces::Processes) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        done => return done.map_err(TestbedError::missing("make a process namespace", NEEDS)),
    }
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    sys::unshare(Namespaces::User)
        .map_err(TestbedError::missing("make a user namespace", NEEDS))?;
    fs::write("/proc/self/setgroups", "deny")
        .and_then(|()| fs::write("/proc/self/uid_map", format!("0 {user} 1")))
        .and_then(|()| fs::write("/proc/self/gid_map", format!("0 {group} 1")))
        .and_then(|()| sys::unshare(Namespaces::Processes))
        .map_err(TestbedError::missing("become root of a user namespace", NEEDS))
}

/// The calling process is killed as soon as the thread is gone that started it.
///
/// # Errors
/// Never, on Linux.
pub fn die_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?)
}

/// For whoever opens sockets: a socket of the host, or what the kernel lacks for it.
pub(crate) fn mptcp_socket() -> Result<OwnedFd, TestbedError> {
    sys::mptcp_socket().map_err(TestbedError::missing(
        "open a socket of Multipath TCP",
        "use a kernel with CONFIG_MPTCP and net.mptcp.enabled = 1",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_told_by_the_addresses_of_its_ends() {
        for path in [0, 1, 254, 255, 256, 64_999] {
            assert_eq!(Side::Sender.path(Side::Sender.address(path)), Some(path));
            assert_eq!(Side::Receiver.path(Side::Sender.address(path)), None);
        }
        assert_eq!(Side::Sender.address(0), [10, 1, 0, 1]);
        assert_eq!(Side::Sender.path([10, 1, 0, 0]), None);
        assert_eq!(Side::Sender.path([192, 168, 0, 1]), None);
    }
}
