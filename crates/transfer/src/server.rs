//! The server of a folder.

use crate::bench::serve_bench;
use crate::client::POLL_INTERVAL;
use crate::error::{TransferError, WithPath};
use crate::frame::{FrameStream, Operation, Request, Response, SenderMessage, VERSION};
use crate::manifest::walk;
use crate::monitor::TransferMonitor;
use crate::receive::receive_files;
use crate::safe_path::resolve;
use crate::send::send_files;
use dumbbell_udt::io::{Error, Listener, Settings, Socket};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// How long a stopped server waits for its clients to end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// What a server permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Whether clients may send files.
    pub allow_push: bool,
    /// Whether clients may receive files.
    pub allow_pull: bool,
    /// Whether the server ends after the first completed request.
    pub once: bool,
    /// Maximum number of clients at a time, each with a thread. Further ones wait in the backlog.
    pub max_clients: usize,
    /// Timeout of a client's request.
    pub request_timeout: Duration,
}

impl Default for ServerConfig {
    fn default() -> ServerConfig {
        let (clients, timeout) = (64, Duration::from_secs(10));
        ServerConfig {
            allow_push: true,
            allow_pull: true,
            once: false,
            max_clients: clients,
            request_timeout: timeout,
        }
    }
}

/// Serves a folder until the monitor is stopped or, with `once`, until one request is completed. Each
/// client is logged as an event of the monitor.
///
/// # Errors
/// If the folder does not exist, the address cannot be bound, or, with `once`, the request fails.
pub fn serve(
    root: &Path,
    local: &str,
    settings: &Settings,
    config: ServerConfig,
    monitor: &Arc<TransferMonitor>,
) -> Result<(), TransferError> {
    let root = root.canonicalize().with_path(root)?;
    if !root.is_dir() {
        return Err(TransferError::Path { path: root, why: "is not a folder" });
    }
    let listener = bind(local, settings)?;
    monitor.log_event(format!("listening at {}", listener.local_addr()));
    let mut clients = Vec::new();
    while !monitor.is_stopped() {
        clients.retain(|client: &thread::JoinHandle<_>| !client.is_finished());
        if clients.len() >= config.max_clients.max(1) {
            thread::sleep(POLL_INTERVAL / 10);
            continue;
        }
        let socket = match listener.accept(Some(POLL_INTERVAL)) {
            Err(Error::TimedOut) => continue,
            other => other?,
        };
        let from = socket.peer_addr();
        let ack_interval = settings.options.ack_interval;
        let (root, whole) = (root.clone(), monitor.clone());
        let client = move || serve_client(socket, &root, ack_interval, config, &whole);
        if config.once {
            match client() {
                // The client retries, or another one connects.
                Err(error) if error.is_transient() => continue,
                other => return other,
            }
        }
        let thread = thread::Builder::new().name(format!("udt {from}"));
        match thread.spawn(move || drop(client())) {
            Ok(thread) => clients.push(thread),
            // Out of threads: other clients are still served.
            Err(error) => monitor.log_event(format!("{from}: {error}")),
        }
    }
    let until = Instant::now() + SHUTDOWN_TIMEOUT;
    while clients.iter().any(|client| !client.is_finished()) && Instant::now() < until {
        thread::sleep(POLL_INTERVAL / 10);
    }
    Err(TransferError::Stopped)
}

/// Binds the listener. Waits a while for a port in use, which a previous server may be releasing.
fn bind(local: &str, settings: &Settings) -> Result<Listener, TransferError> {
    let until = Instant::now() + SHUTDOWN_TIMEOUT / 5;
    loop {
        match Listener::bind(local, settings) {
            Err(Error::Io(error))
                if error.kind() == ErrorKind::AddrInUse && Instant::now() < until =>
            {
                thread::sleep(POLL_INTERVAL / 4);
            }
            other => return Ok(other?),
        }
    }
}

/// Serves a client and logs the result.
fn serve_client(
    mut socket: Socket,
    root: &Path,
    ack_interval: u32,
    config: ServerConfig,
    monitor: &Arc<TransferMonitor>,
) -> Result<(), TransferError> {
    socket.set_read_timeout(Some(POLL_INTERVAL));
    let from = socket.peer_addr();
    let socket = Arc::new(socket);
    // Several clients have separate progress, but are stopped together.
    let own = if config.once { monitor.clone() } else { TransferMonitor::child_of(monitor) };
    if config.once {
        monitor.sample_periodically(&socket, Duration::from_millis(100));
    }
    let result = handle_request(&socket, root, ack_interval, config, &own);
    monitor.log_event(summary(from, &result, &own));
    // Both sides have confirmed the transfer, so an error here is harmless.
    let _ = socket.shutdown(Duration::from_secs(5));
    result.map(drop)
}

fn summary(
    from: SocketAddr,
    result: &Result<&'static str, TransferError>,
    monitor: &TransferMonitor,
) -> String {
    let progress = monitor.progress();
    match result {
        Ok(what) => {
            let (files, bytes) = (progress.files.0, progress.bytes);
            format!(
                "{from}: {what}: {files} files, {bytes} bytes, {} of them before",
                progress.resumed
            )
        }
        Err(error) => format!("{from}: {error}"),
    }
}

/// Handles a client's request. Returns a verb for the log.
fn handle_request(
    socket: &Arc<Socket>,
    root: &Path,
    ack_interval: u32,
    config: ServerConfig,
    monitor: &Arc<TransferMonitor>,
) -> Result<&'static str, TransferError> {
    let mut stream = FrameStream::new(socket.clone(), monitor.clone());
    let request: Request = stream.recv_first(config.request_timeout)?;
    let refused = |stream: &FrameStream, why: &str| {
        stream.send(&Response::Refused(why.to_owned()))?;
        Err(TransferError::Refused(why.to_owned()))
    };
    if request.version != VERSION {
        return refused(&stream, "protocol version mismatch");
    }
    socket.set_ack_interval(request.ack_interval.min(64));
    let ready = Response::Ready { ack_interval };
    match request.want {
        Operation::Push if !config.allow_push => refused(&stream, "this server accepts no files"),
        Operation::Pull(_) if !config.allow_pull => refused(&stream, "this server sends no files"),
        Operation::Push => {
            stream.send(&ready)?;
            receive_files(&mut stream, root).map(|()| "gave")
        }
        Operation::Bench => {
            stream.send(&ready)?;
            serve_bench(&mut stream).map(|()| "measured")
        }
        Operation::Pull(paths) => {
            let paths = match resolve_requested(root, paths) {
                Ok(paths) => paths,
                Err(why) => return refused(&stream, &why),
            };
            // Listing a large folder takes time; the client already has its response.
            stream.send(&ready)?;
            match walk(&paths, stream.monitor()) {
                Ok(items) => send_files(&mut stream, &items).map(|()| "took"),
                Err(error) => {
                    stream.send(&SenderMessage::Refused(error.to_string()))?;
                    Err(error)
                }
            }
        }
    }
}

/// Resolves the requested paths and removes duplicates, by which a short request could cause an
/// unlimited number of files.
fn resolve_requested(root: &Path, mut paths: Vec<String>) -> Result<Vec<PathBuf>, String> {
    paths.sort();
    paths.dedup();
    let there: Option<Vec<PathBuf>> =
        paths.iter().map(|path| resolve_existing(root, path)).collect();
    let mut paths = there.ok_or("there is no such file")?;
    paths.sort();
    paths.dedup();
    // The contents of a folder sort right after it.
    match paths.windows(2).find(|pair| pair[1].starts_with(&pair[0])) {
        None => Ok(paths),
        Some(pair) => {
            let [outer, inner] = [0, 1].map(|at| pair[at].strip_prefix(root).unwrap_or(&pair[at]));
            Err(format!("{} is part of {}", inner.display(), outer.display()))
        }
    }
}

/// Resolves an existing path; `None` if it does not exist or leads out of `root`.
fn resolve_existing(root: &Path, path: &str) -> Option<PathBuf> {
    let destination = resolve(root, path.trim_end_matches('/'))?.canonicalize().ok()?;
    destination.starts_with(root).then_some(destination)
}
