//! Sizes of sockets' buffers beyond the limits of the machine, where the process may exceed them.

use crate::error::TestbedError;
use crate::sys::{getsockopt, setsockopt};
use std::io;
use std::os::fd::OwnedFd;

/// One of the two buffers of a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Buffer {
    Receive,
    Send,
}

/// Sets the size of a buffer, bytes; the kernel doubles what it is given.
///
/// # Errors
/// If the size exceeds the machine's limit, and the process is not privileged.
pub(crate) fn set_buffer(socket: &OwnedFd, buffer: Buffer, bytes: i32) -> Result<(), TestbedError> {
    let (forced, limited, sysctl) = match buffer {
        Buffer::Receive => (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, "net.core.rmem_max"),
        Buffer::Send => (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, "net.core.wmem_max"),
    };
    let set = |option| setsockopt(socket, libc::SOL_SOCKET, option, &bytes.to_ne_bytes());
    let Err(error) = set(forced) else { return Ok(()) };
    let is_set = || -> io::Result<bool> {
        set(limited)?;
        let mut size = [0; 4];
        getsockopt(socket, libc::SOL_SOCKET, limited, &mut size)?;
        Ok(i32::from_ne_bytes(size) / 2 >= bytes)
    };
    if is_set().map_err(TestbedError::failed("set the size of a socket's buffer"))? {
        return Ok(());
    }
    let remedy = format!("run as root, or let {sysctl} be {bytes}");
    Err(TestbedError::unavailable(format!("give a socket a buffer of {bytes} bytes"), remedy)(
        error,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    use std::net::UdpSocket;

    #[test]
    fn without_root_a_buffer_has_the_machines_limit() -> io::Result<()> {
        // Capabilities belong to a thread, which ends with the test.
        let mut sets = capabilities(None)?;
        sets.effective.remove(CapabilitySet::NET_ADMIN);
        set_capabilities(None, sets)?;
        let socket = OwnedFd::from(UdpSocket::bind("127.0.0.1:0")?);
        for buffer in [Buffer::Receive, Buffer::Send] {
            assert!(set_buffer(&socket, buffer, 10_000).is_ok(), "within the limit");
            let error = set_buffer(&socket, buffer, i32::MAX / 2).expect_err("beyond the limit");
            assert!(error.to_string().contains("run as root, or let net.core."), "{error}");
        }
        Ok(())
    }
}
