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

/// Gives the calling thread the scheduling policy SCHED_OTHER.
pub(crate) fn set_normal_priority() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters outlive the call; 0 is the calling thread.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameters) })?;
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

// Commands of bpf(2), and the type of maps with the storage of sockets.
const BPF_MAP_LOOKUP_ELEM: i32 = 1;
const BPF_MAP_GET_NEXT_ID: i32 = 12;
const BPF_MAP_GET_FD_BY_ID: i32 = 14;
const BPF_OBJ_GET_INFO_BY_FD: i32 = 15;
const BPF_BTF_GET_FD_BY_ID: i32 = 19;
const BPF_MAP_TYPE_SK_STORAGE: u32 = 24;

/// `union bpf_attr` up to the fields used here, as 64-bit words.
type BpfAttr = [u64; 4];

/// Two 32-bit numbers in a word of memory, in order.
fn word(first: u32, second: u32) -> u64 {
    let ([a, b, c, d], [e, f, g, h]) = (first.to_ne_bytes(), second.to_ne_bytes());
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

/// # Safety
/// Pointers in `attr` are valid for what the command reads or writes there.
unsafe fn bpf(command: i32, attr: &mut BpfAttr) -> io::Result<i32> {
    // SAFETY: `attr` is as long as said and outlives the call; the caller answers for its pointers.
    let done =
        unsafe { libc::syscall(libc::SYS_bpf, command, attr.as_mut_ptr(), size_of_val(attr)) };
    check(done as i32)
}

/// A new descriptor of the object that a command finds by its number.
fn bpf_open(command: i32, id: u32) -> io::Result<OwnedFd> {
    // SAFETY: the command takes a number, no pointer.
    let descriptor = unsafe { bpf(command, &mut [word(id, 0), 0, 0, 0]) }?;
    // SAFETY: the descriptor was just opened, and this is its only owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Writes what the kernel says of an object into `info`.
///
/// # Safety
/// Pointers in `info` are valid for as many bytes as `info` says.
unsafe fn bpf_info<const N: usize>(object: &OwnedFd, info: &mut [u64; N]) -> io::Result<()> {
    let length = size_of_val(info) as u32;
    let descriptor = object.as_raw_fd() as u32;
    let mut attr = [word(descriptor, length), info.as_mut_ptr() as u64, 0, 0];
    // SAFETY: the kernel writes at most `length` bytes to `info`; the caller answers for the rest.
    unsafe { bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attr) }.map(|_| ())
}

/// A map of a BPF program.
pub(crate) struct BpfMap {
    descriptor: OwnedFd,
    /// `struct bpf_map_info`.
    info: [u32; 20],
}

/// All maps of the machine.
pub(crate) fn bpf_maps() -> impl Iterator<Item = io::Result<BpfMap>> {
    let mut last = 0;
    std::iter::from_fn(move || {
        loop {
            let mut attr = [word(last, 0), 0, 0, 0];
            // SAFETY: the command takes and returns numbers, no pointer.
            match unsafe { bpf(BPF_MAP_GET_NEXT_ID, &mut attr) } {
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return None,
                Err(error) => return Some(Err(error)),
                Ok(_) => {}
            }
            let [.., a, b, c, d] = attr[0].to_ne_bytes();
            last = u32::from_ne_bytes([a, b, c, d]);
            match BpfMap::open(last) {
                // It was removed in between.
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {}
                map => return Some(map),
            }
        }
    })
}

impl BpfMap {
    fn open(id: u32) -> io::Result<BpfMap> {
        let descriptor = bpf_open(BPF_MAP_GET_FD_BY_ID, id)?;
        let mut words = [0; 10];
        // SAFETY: a struct bpf_map_info without pointers.
        unsafe { bpf_info(&descriptor, &mut words) }?;
        let mut info = [0; 20];
        for (pair, word) in info.chunks_exact_mut(2).zip(words) {
            let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
            pair[0] = u32::from_ne_bytes([a, b, c, d]);
            pair[1] = u32::from_ne_bytes([e, f, g, h]);
        }
        Ok(BpfMap { descriptor, info })
    }

    pub(crate) fn is_socket_storage(&self) -> bool {
        self.info[0] == BPF_MAP_TYPE_SK_STORAGE
    }

    /// Length of a value, bytes.
    pub(crate) fn value_size(&self) -> usize {
        self.info[3] as usize
    }

    /// Number of a value's type in the map's BTF.
    pub(crate) fn value_type(&self) -> u32 {
        self.info[18]
    }

    /// Reads the storage of a socket into `value`, [`BpfMap::value_size`] long; returns whether it has
    /// any in this map of [socket storage](BpfMap::is_socket_storage).
    pub(crate) fn lookup(&self, socket: impl AsFd, value: &mut [u8]) -> io::Result<bool> {
        assert!(self.is_socket_storage() && value.len() >= self.value_size(), "it has room");
        let key = socket.as_fd().as_raw_fd();
        let map = word(self.descriptor.as_raw_fd() as u32, 0);
        let mut attr = [map, (&raw const key) as u64, value.as_mut_ptr() as u64, 0];
        // SAFETY: the key of such a map is an i32, and the kernel writes a value's length to `value`.
        match unsafe { bpf(BPF_MAP_LOOKUP_ELEM, &mut attr) } {
            Ok(_) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The map's BTF.
    pub(crate) fn btf(&self) -> io::Result<Vec<u8>> {
        let btf = bpf_open(BPF_BTF_GET_FD_BY_ID, self.info[16])?;
        // A struct bpf_btf_info: pointer to the data; its length and the number.
        let mut info = [0; 4];
        // SAFETY: with a length of 0 the kernel writes no data.
        unsafe { bpf_info(&btf, &mut info) }?;
        let [a, b, c, d, ..] = info[1].to_ne_bytes();
        let mut bytes = vec![0; u32::from_ne_bytes([a, b, c, d]) as usize];
        let mut info = [bytes.as_mut_ptr() as u64, word(bytes.len() as u32, 0), 0, 0];
        // SAFETY: the kernel writes at most as many bytes as `bytes` has.
        unsafe { bpf_info(&btf, &mut info) }?;
        Ok(bytes)
    }
}
