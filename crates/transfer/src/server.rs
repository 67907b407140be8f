//! A folder to which clients give files, and from which they take files.

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

/// How long a stopped server may take to end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// What clients may do, and how many of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Give files.
    pub allow_push: bool,
    /// Take files.
    pub allow_pull: bool,
    /// Whether the server ends after it has served one client to its end.
    pub once: bool,
    /// How many are served at a time: each has a thread. Others wait in the listener's backlog.
    pub max_clients: usize,
    /// How long a client may take to say what it wants.
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

/// Serves a folder until the watch is stopped, or one client was served if it is to be one. Its
/// events tell of every client.
///
/// # Errors
/// If the folder is none or the address cannot be had; of a server for one client, its error.
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
                // The client comes back, or another one comes.
                Err(error) if error.is_transient() => continue,
                other => return other,
            }
        }
        let thread = thread::Builder::new().name(format!("udt {from}"));
        match thread.spawn(move || drop(client())) {
            Ok(thread) => clients.push(thread),
            // The system has no more threads: the others are served on.
            Err(error) => monitor.log_event(format!("{from}: {error}")),
        }
    }
    let until = Instant::now() + SHUTDOWN_TIMEOUT;
    while clients.iter().any(|client| !client.is_finished()) && Instant::now() < until {
        thread::sleep(POLL_INTERVAL / 10);
    }
    Err(TransferError::Stopped)
}

/// Listens; a port that is just being given up is waited for.
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

/// Serves a client, and tells of it.
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
    // What several clients do is not one progress; how to stop is common.
    let own = if config.once { monitor.clone() } else { TransferMonitor::child_of(monitor) };
    if config.once {
        monitor.sample_periodically(&socket, Duration::from_millis(100));
    }
    let done = handle_request(&socket, root, ack_interval, config, &own);
    monitor.log_event(summary(from, &done, &own));
    // All that matters was confirmed by either side.
    let _ = socket.shutdown(Duration::from_secs(5));
    done.map(drop)
}

fn summary(
    from: SocketAddr,
    done: &Result<&'static str, TransferError>,
    monitor: &TransferMonitor,
) -> String {
    let progress = monitor.progress();
    match done {
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

/// Does what a client wants; gives what that was.
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
        return refused(&stream, "it speaks another version of the protocol");
    }
    socket.set_ack_interval(request.ack_interval.min(64));
    let ready = Response::Ready { ack_interval };
    match request.want {
        Operation::Push if !config.allow_push => refused(&stream, "nothing is taken here"),
        Operation::Pull(_) if !config.allow_pull => refused(&stream, "nothing is given here"),
        Operation::Push => {
            stream.send(&ready)?;
            receive_files(&mut stream, root).map(|()| "gave")
        }
        Operation::Bench => {
            stream.send(&ready)?;
            serve_bench(&mut stream).map(|()| "measured")
        }
        Operation::Pull(paths) => {
            let places = match resolve_requested(root, paths) {
                Ok(places) => places,
                Err(why) => return refused(&stream, &why),
            };
            // A large folder takes its time: who asked knows by now that it is served.
            stream.send(&ready)?;
            match walk(&places, stream.monitor()) {
                Ok(items) => send_files(&mut stream, &items).map(|()| "took"),
                Err(error) => {
                    stream.send(&SenderMessage::Refused(error.to_string()))?;
                    Err(error)
                }
            }
        }
    }
}

/// Where the paths are that a client asks for, each once. A short request would stand for any number
/// of files if it could name the same ones again and again.
fn resolve_requested(root: &Path, mut paths: Vec<String>) -> Result<Vec<PathBuf>, String> {
    paths.sort();
    paths.dedup();
    let there: Option<Vec<PathBuf>> =
        paths.iter().map(|path| resolve_existing(root, path)).collect();
    let mut places = there.ok_or("there is no such file")?;
    places.sort();
    places.dedup();
    // What is in a folder comes right after it.
    match places.windows(2).find(|pair| pair[1].starts_with(&pair[0])) {
        None => Ok(places),
        Some(pair) => {
            let [outer, inner] = [0, 1].map(|at| pair[at].strip_prefix(root).unwrap_or(&pair[at]));
            Err(format!("{} comes with {} already", inner.display(), outer.display()))
        }
    }
}

/// Where a path in the folder is, if it is there and does not lead out of it.
fn resolve_existing(root: &Path, path: &str) -> Option<PathBuf> {
    let place = resolve(root, path.trim_end_matches('/'))?.canonicalize().ok()?;
    place.starts_with(root).then_some(place)
}
