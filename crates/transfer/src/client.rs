//! The client: push and pull with retries.

use crate::error::TransferError;
use crate::frame::{FrameStream, Operation, Request, Response, VERSION};
use crate::limits::{Quota, ReceiveLimits};
use crate::manifest::walk;
use crate::monitor::TransferMonitor;
use crate::receive::{Accepted, receive_files};
use crate::safe_path;
use crate::send::send_files;
use dumbbell_udt::io::{Error, Settings, Socket};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Interval at which waiting code checks whether the transfer was stopped.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Retries of an interrupted transfer, and other timing.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// Maximum number of retries without progress in between.
    pub max_retries: u32,
    /// Delay before each retry.
    pub delay: Duration,
    /// Interval at which the connection's statistics are sampled.
    pub sample_interval: Duration,
    /// Timeout of the server's response, which comes late if the server is at its maximum of clients.
    pub response_timeout: Duration,
    /// Maximum time without data or messages that are expected of the server, or in which it takes
    /// none; it may have to hash a large part of a file meanwhile.
    pub max_silence: Duration,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        let (delay, interval) = (Duration::from_secs(2), Duration::from_millis(100));
        RetryPolicy {
            max_retries: 5,
            delay,
            sample_interval: interval,
            response_timeout: Duration::from_secs(60),
            max_silence: Duration::from_secs(3600),
        }
    }
}

/// Sends files and folders to a server, into the folder `into` of its folder if there is one.
///
/// # Errors
/// If a file cannot be read or `into` is no path in a folder, the server refuses or stays unreachable, or files are damaged.
pub fn push(
    peer: &str,
    paths: &[PathBuf],
    into: Option<&str>,
    settings: &Settings,
    policy: RetryPolicy,
    monitor: &Arc<TransferMonitor>,
) -> Result<(), TransferError> {
    let mut items = walk(paths, monitor)?;
    if let Some(folder) = into.map(|folder| folder.trim_end_matches('/')) {
        if safe_path::resolve(Path::new(""), folder).is_none() {
            return Err(TransferError::Into(folder.to_owned()));
        }
        for item in &mut items {
            item.entry.path.insert_str(0, &format!("{folder}/"));
        }
    }
    let addresses = resolve(peer)?;
    retry(peer, policy, monitor, || {
        let mut stream = connect(&addresses, Operation::Push, settings, policy, monitor)?;
        send_files(&mut stream, &items)?;
        disconnect(&stream);
        Ok(())
    })
}

/// Receives files and folders into the local folder `into`. `paths` are relative to the server's folder;
/// `"."` is all that is in it. Of any other path, only files and folders with its last name are accepted,
/// and only within the `limits`.
///
/// # Errors
/// If a file cannot be written or was not requested, a requested one does not come, the server refuses or
/// stays unreachable, or files are damaged.
pub fn pull(
    peer: &str,
    paths: &[String],
    into: &Path,
    limits: ReceiveLimits,
    settings: &Settings,
    policy: RetryPolicy,
    monitor: &Arc<TransferMonitor>,
) -> Result<(), TransferError> {
    let (quota, addresses) = (Quota::new(limits), resolve(peer)?);
    retry(peer, policy, monitor, || {
        let accepted = Accepted::requested(paths)?;
        let want = Operation::Pull(paths.to_vec());
        let mut stream = connect(&addresses, want, settings, policy, monitor)?;
        let transferred = receive_files(&mut stream, into, accepted, &quota, true);
        disconnect(&stream);
        transferred
    })
}

/// Retries until success, a permanent error, or `max_retries` transient errors without progress.
fn retry(
    peer: &str,
    policy: RetryPolicy,
    monitor: &TransferMonitor,
    mut attempt: impl FnMut() -> Result<(), TransferError>,
) -> Result<(), TransferError> {
    let (mut retries_left, mut transferred) = (policy.max_retries, 0);
    loop {
        let error = match attempt() {
            Ok(()) => return Ok(()),
            Err(error) => error.at(peer),
        };
        let progress = monitor.progress().bytes;
        if progress > transferred {
            (retries_left, transferred) = (policy.max_retries, progress);
        }
        if retries_left == 0 || !error.is_transient() {
            return Err(error);
        }
        retries_left -= 1;
        monitor.log_event(&format!("{error}; retrying"));
        let mut delay = policy.delay;
        while !delay.is_zero() {
            monitor.check_stopped()?;
            std::thread::sleep(delay.min(POLL_INTERVAL));
            delay = delay.saturating_sub(POLL_INTERVAL);
        }
    }
}

/// The addresses of `HOST:PORT`. They are looked up once for all attempts: a network that comes back may not
/// have a resolver yet.
pub(crate) fn resolve(peer: &str) -> Result<Vec<SocketAddr>, TransferError> {
    let found = peer.to_socket_addrs().map_err(|error| TransferError::from(Error::from(error)));
    Ok(found.map_err(|error| error.at(peer))?.collect())
}

/// Connects to a server and sends the request.
pub(crate) fn connect(
    peer: &[SocketAddr],
    want: Operation,
    settings: &Settings,
    policy: RetryPolicy,
    monitor: &Arc<TransferMonitor>,
) -> Result<FrameStream, TransferError> {
    let connected = Socket::connect_while(peer, settings, &mut || !monitor.is_stopped());
    monitor.check_stopped()?;
    let mut socket = connected?;
    socket.set_read_timeout(Some(POLL_INTERVAL));
    socket.set_write_timeout(Some(POLL_INTERVAL));
    let socket = Arc::new(socket);
    monitor.sample_periodically(&socket, policy.sample_interval);
    let mut stream = FrameStream::new(socket, monitor.clone());
    stream.set_max_silence(policy.max_silence);
    let ack_interval = settings.options.ack_interval;
    stream.send(&Request { version: VERSION, ack_interval, want })?;
    match stream.recv_first(policy.response_timeout)? {
        Response::Ready { ack_interval } => stream.socket().set_ack_interval(ack_interval.min(64)),
        Response::Refused(why) => return Err(TransferError::Refused(why)),
    }
    Ok(stream)
}

/// Closes a connection after the last message.
pub(crate) fn disconnect(stream: &FrameStream) {
    // The peer has confirmed the transfer, so an error here is harmless.
    let _ = stream.socket().shutdown(Duration::from_secs(5));
    stream.monitor().sample_final(stream.socket());
}
