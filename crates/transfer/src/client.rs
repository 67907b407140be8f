//! Giving files to a server, and taking files from it.

use crate::error::TransferError;
use crate::frame::{FrameStream, Operation, Request, Response, VERSION};
use crate::manifest::walk;
use crate::monitor::TransferMonitor;
use crate::receive::receive_files;
use crate::send::send_files;
use dumbbell_udt::io::{Settings, Socket};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked whether a transfer is still wanted.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// How often an interrupted transfer is tried again.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// Tries after the first; those since the last progress are counted.
    pub max_retries: u32,
    /// The pause before each.
    pub delay: Duration,
    /// How often the connection is sampled.
    pub sample_interval: Duration,
    /// How long a server may take to answer: it may serve as many as it wants to.
    pub response_timeout: Duration,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        let (pause, interval) = (Duration::from_secs(2), Duration::from_millis(100));
        RetryPolicy {
            max_retries: 5,
            delay: pause,
            sample_interval: interval,
            response_timeout: Duration::from_secs(60),
        }
    }
}

/// Gives files and folders to a server.
///
/// # Errors
/// If one cannot be read, the server does not take them or cannot be reached for as long as is
/// tried, or files did not arrive as they are.
pub fn push(
    peer: &str,
    paths: &[PathBuf],
    settings: &Settings,
    policy: RetryPolicy,
    monitor: &Arc<TransferMonitor>,
) -> Result<(), TransferError> {
    let items = walk(paths, monitor)?;
    retry(policy, monitor, || {
        let mut stream = connect(peer, Operation::Push, settings, policy, monitor)?;
        send_files(&mut stream, &items)?;
        disconnect(&stream);
        Ok(())
    })
}

/// Takes files and folders, by their paths in the server's folder, into a folder here.
///
/// # Errors
/// If one cannot be written, the server does not give them or cannot be reached for as long as is
/// tried, or files did not arrive as they are.
pub fn pull(
    peer: &str,
    paths: &[String],
    into: &Path,
    settings: &Settings,
    policy: RetryPolicy,
    monitor: &Arc<TransferMonitor>,
) -> Result<(), TransferError> {
    retry(policy, monitor, || {
        let want = Operation::Pull(paths.to_vec());
        let mut stream = connect(peer, want, settings, policy, monitor)?;
        let done = receive_files(&mut stream, into);
        disconnect(&stream);
        done
    })
}

/// Tries until it succeeds, or fails for good.
fn retry(
    policy: RetryPolicy,
    monitor: &TransferMonitor,
    mut attempt: impl FnMut() -> Result<(), TransferError>,
) -> Result<(), TransferError> {
    let (mut left, mut done) = (policy.max_retries, 0);
    loop {
        let error = match attempt() {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let progress = monitor.progress().bytes;
        if progress > done {
            (left, done) = (policy.max_retries, progress);
        }
        if left == 0 || !error.is_transient() {
            return Err(error);
        }
        left -= 1;
        monitor.log_event(format!("{error}; trying again"));
        let mut pause = policy.delay;
        while !pause.is_zero() {
            monitor.check_stopped()?;
            std::thread::sleep(pause.min(POLL_INTERVAL));
            pause = pause.saturating_sub(POLL_INTERVAL);
        }
    }
}

/// Connects, and says what is wanted.
pub(crate) fn connect(
    peer: &str,
    want: Operation,
    settings: &Settings,
    policy: RetryPolicy,
    monitor: &Arc<TransferMonitor>,
) -> Result<FrameStream, TransferError> {
    let peers: Vec<SocketAddr> =
        peer.to_socket_addrs().map_err(dumbbell_udt::io::Error::from)?.collect();
    let mut socket = Socket::connect(&peers[..], settings)?;
    socket.set_read_timeout(Some(POLL_INTERVAL));
    let socket = Arc::new(socket);
    monitor.sample_periodically(&socket, policy.sample_interval);
    let mut stream = FrameStream::new(socket, monitor.clone());
    let ack_interval = settings.options.ack_interval;
    stream.send(&Request { version: VERSION, ack_interval, want })?;
    match stream.recv_first(policy.response_timeout)? {
        Response::Ready { ack_interval } => stream.socket().set_ack_interval(ack_interval.min(64)),
        Response::Refused(why) => return Err(TransferError::Refused(why)),
    }
    Ok(stream)
}

/// Closes a connection over which all was said.
pub(crate) fn disconnect(stream: &FrameStream) {
    // The other side has confirmed all that matters; a last word may be lost.
    let _ = stream.socket().shutdown(Duration::from_secs(5));
    stream.monitor().sample_final(stream.socket());
}
