//! System calls without a safe wrapper in a library. All unsafe code of this crate is in this file.
#![allow(unsafe_code, reason = "the only file of the workspace with unsafe code")]
#![deny(clippy::undocumented_unsafe_blocks)]

use std::ffi::c_ulong;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

const TUNSETIFF: c_ulong = 0x4004_54ca;
const TUNSETOFFLOAD: c_ulong = 0x4004_54d0;
const IFF_TUN: u16 = 0x0001;
const IFF_NO_PI: u16 = 0x1000;
const IFF_VNET_HDR: u16 = 0x4000;
/// Offloads: partial checksums, and TCP segmentation for IPv4 with and without ECN.
const TUN_F_CSUM_TSO4_ECN: c_ulong = 0x01 | 0x02 | 0x08;

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The argument of TUNSETIFF: a `struct ifreq`, of which only the name and the flags are used.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    flags: u16,
    unused: [u8; 22],
}

/// Creates a TUN device in the calling thread's network namespace; closing the file removes it.
pub(crate) fn open_tun(name: &str) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open("/dev/net/tun")?;
    let flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
    let mut request = InterfaceRequest { name: [0; 16], flags, unused: [0; 22] };
    assert!(name.len() < request.name.len(), "names of interfaces have at most 15 bytes");
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: the request is as long as the kernel's struct ifreq, 40 bytes, and outlives the call.
    check(unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF as _, &raw mut request) })?;
    // SAFETY: the argument is a number.
    check(unsafe { libc::ioctl(file.as_raw_fd(), TUNSETOFFLOAD as _, TUN_F_CSUM_TSO4_ECN) })?;
    Ok(file)
}

/// Reads a socket option into `value`; returns the number of bytes that the kernel wrote.
pub(crate) fn getsockopt(
    socket: impl AsFd,
    level: i32,
    option: i32,
    value: &mut [u8],
) -> io::Result<usize> {
    let mut len = value.len() as libc::socklen_t;
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `len` bytes, which is how long `value` is.
    let done =
        unsafe { libc::getsockopt(socket, level, option, value.as_mut_ptr().cast(), &raw mut len) };
    check(done).map(|_| len as usize)
}

/// Sets a socket option to `value`, a number in native byte order.
pub(crate) fn setsockopt(
    socket: impl AsFd,
    level: i32,
    option: i32,
    value: &[u8],
) -> io::Result<()> {
    let (socket, len) = (socket.as_fd().as_raw_fd(), value.len() as libc::socklen_t);
    // SAFETY: the kernel reads at most `len` bytes, which is how long `value` is.
    let done = unsafe { libc::setsockopt(socket, level, option, value.as_ptr().cast(), len) };
    check(done).map(|_| ())
}

/// Opens a non-blocking MPTCP socket.
pub(crate) fn mptcp_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: the arguments are numbers.
    let socket = check(unsafe { libc::socket(libc::AF_INET, kind, libc::IPPROTO_MPTCP) })?;
    // SAFETY: the descriptor was just opened, and this is its only owner.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

/// Gives the calling thread the real-time scheduling policy SCHED_FIFO with a priority.
pub(crate) fn set_realtime_priority(priority: i32) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameters outlive the call; 0 is the calling thread.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) })?;
    Ok(())
}

/// Moves the calling thread into a new namespace; a new process namespace applies to later
/// children.
pub(crate) fn unshare(flags: Namespace) -> io::Result<()> {
    let flags = match flags {
        Namespace::User => libc::CLONE_NEWUSER,
        Namespace::Processes => libc::CLONE_NEWPID,
        Namespace::Network => libc::CLONE_NEWNET,
    };
    // SAFETY: none of these flags affects memory or file descriptors.
    check(unsafe { libc::unshare(flags) }).map(|_| ())
}

/// The kinds of namespace for [`unshare`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum Namespace {
    User,
    Processes,
    Network,
}
