//! The server of a folder.

use crate::bench::serve_bench;
use crate::client::POLL_INTERVAL;
use crate::error::{TransferError, WithPath};
use crate::frame::{FrameStream, Operation, Request, Response, SenderMessage, VERSION};
use crate::limits::{Quota, ReceiveLimits};
use crate::list::{children, serve_list};
use crate::manifest::{log_skipped, walk};
use crate::monitor::{Progress, TransferMonitor};
use crate::receive::{Accepted, receive_files};
use crate::safe_path::resolve;
use crate::send::send_files;
use dumbbell_udt::io::{Error, Listener, Settings, Socket};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long a stopped server waits for its clients to end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// What a server permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Whether clients may send files.
    pub allow_push: bool,
    /// Whether clients may list and receive files.
    pub allow_pull: bool,
    /// Whether clients may send data to be discarded.
    pub allow_bench: bool,
    /// Whether a server without a key may listen at other than loopback addresses. Every host that
    /// reaches it can then do what the server allows.
    pub allow_insecure: bool,
    /// Whether the server ends after the first completed request. Clients that fail before they have
    /// sent or received data do not end it.
    pub once: bool,
    /// Limits of what clients send.
    pub limits: ReceiveLimits,
    /// Maximum number of clients at a time, each with a thread. Further ones wait in the backlog.
    pub max_clients: usize,
    /// Timeout of a client's request.
    pub request_timeout: Duration,
    /// Maximum time without data or messages that are expected of a client, or in which it takes none;
    /// it may have to hash a large part of a file meanwhile.
    pub max_silence: Duration,
}

impl Default for ServerConfig {
    fn default() -> ServerConfig {
        ServerConfig {
            allow_push: true,
            allow_pull: true,
            allow_bench: true,
            allow_insecure: false,
            once: false,
            limits: ReceiveLimits::default(),
            max_clients: 64,
            request_timeout: Duration::from_secs(10),
            max_silence: Duration::from_secs(600),
        }
    }
}

/// Serves a folder until the monitor is stopped or, with `once`, until one request is completed. Each
/// client is logged as an event of the monitor.
///
/// # Errors
/// If the folder does not exist, the address cannot be bound or is open to other hosts without a key, or,
/// with `once`, the transfer fails after
/// it has begun.
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
    let address = listener.local_addr();
    if settings.key.is_none() && !address.ip().is_loopback() {
        if !config.allow_insecure {
            return Err(TransferError::Insecure(address));
        }
        let what = "without a key, every host that reaches this address can use the folder";
        monitor.log_event(&format!("warning: {what}"));
    }
    monitor.log_event(&format!("listening at {address}"));
    let (ended, results) = channel();
    let server = Server {
        root,
        ack_interval: settings.options.ack_interval,
        config,
        quota: Quota::new(config.limits),
        monitor: monitor.clone(),
        ended,
    };
    let mut clients = Vec::new();
    let result = Arc::new(server).accept_clients(&listener, &mut clients, &results);
    drop(listener);
    monitor.stop();
    let until = Instant::now() + SHUTDOWN_TIMEOUT;
    while !config.once
        && clients.iter().any(|client| !client.is_finished())
        && Instant::now() < until
    {
        thread::sleep(POLL_INTERVAL / 10);
    }
    result
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
            other => return other.map_err(|error| TransferError::from(error).at(local)),
        }
    }
}

struct Server {
    root: PathBuf,
    ack_interval: u32,
    config: ServerConfig,
    quota: Quota,
    monitor: Arc<TransferMonitor>,
    /// With `once`: takes the result of the request that ends the server.
    ended: Sender<Result<(), TransferError>>,
}

impl Server {
    /// Accepts clients and serves each in a thread until the server is stopped or, with `once`, a
    /// client's request ends it.
    fn accept_clients(
        self: Arc<Server>,
        listener: &Listener,
        clients: &mut Vec<JoinHandle<()>>,
        results: &Receiver<Result<(), TransferError>>,
    ) -> Result<(), TransferError> {
        let interval = if self.config.once { POLL_INTERVAL / 10 } else { POLL_INTERVAL };
        while !self.monitor.is_stopped() {
            if let Ok(result) = results.try_recv() {
                return result;
            }
            clients.retain(|client| !client.is_finished());
            if clients.len() >= self.config.max_clients.max(1) {
                thread::sleep(POLL_INTERVAL / 10);
                continue;
            }
            let socket = match listener.accept(Some(interval)) {
                Err(Error::TimedOut) => continue,
                other => other?,
            };
            let from = socket.peer_addr();
            let server = self.clone();
            let thread = thread::Builder::new().name(format!("udt {from}"));
            match thread.spawn(move || server.serve_client(socket)) {
                Ok(thread) => clients.push(thread),
                // Out of threads: other clients are still served.
                Err(error) => self.monitor.log_event(&format!("{from}: {error}")),
            }
        }
        Err(TransferError::Stopped)
    }

    /// Serves a client and logs the result.
    fn serve_client(&self, mut socket: Socket) {
        socket.set_read_timeout(Some(POLL_INTERVAL));
        socket.set_write_timeout(Some(POLL_INTERVAL));
        let from = socket.peer_addr();
        let socket = Arc::new(socket);
        // Clients have separate progress, but are stopped together.
        let own = TransferMonitor::child_of(&self.monitor);
        if self.config.once {
            own.sample_periodically(&socket, Duration::from_millis(100));
        }
        let result = self.handle_request(&socket, &own);
        let progress = own.progress();
        let text = match &result {
            Ok(what) => summary(what, &progress),
            Err(error) => error.to_string(),
        };
        self.monitor.log_event(&format!("{from}: {text}"));
        // Both sides have confirmed the transfer, so an error here is harmless.
        let _ = socket.shutdown(Duration::from_secs(5));
        if self.config.once && ends_server(&result, &progress) {
            self.monitor.show(&own);
            // If the server has ended already, its result is that of another client.
            let _ = self.ended.send(result.map(drop));
        }
    }

    /// Handles a client's request. Returns a verb for the log.
    fn handle_request(
        &self,
        socket: &Arc<Socket>,
        monitor: &Arc<TransferMonitor>,
    ) -> Result<&'static str, TransferError> {
        let mut stream = FrameStream::new(socket.clone(), monitor.clone());
        stream.set_max_silence(self.config.max_silence);
        let request: Request = stream.recv_first(self.config.request_timeout)?;
        if let Err(why) = self.check(&request) {
            return refuse(&stream, why.to_owned());
        }
        socket.set_ack_interval(request.ack_interval.min(64));
        let ready = Response::Ready { ack_interval: self.ack_interval };
        match request.want {
            Operation::Push => {
                if self.config.once {
                    self.monitor.show(monitor);
                }
                stream.send(&ready)?;
                let may_read = self.config.allow_pull;
                receive_files(&mut stream, &self.root, Accepted::All, &self.quota, may_read)
                    .map(|()| "received")
            }
            Operation::Bench => {
                stream.send(&ready)?;
                serve_bench(&mut stream).map(|()| "measured")
            }
            Operation::List(path) => {
                let Some(folder) = resolve_existing(&self.root, &path).filter(|path| path.is_dir())
                else {
                    return refuse(&stream, "there is no such folder".to_owned());
                };
                stream.send(&ready)?;
                serve_list(&stream, &folder).map(|()| "listed")
            }
            Operation::Pull(paths) => self.send_requested(&mut stream, &ready, paths),
        }
    }

    /// Why a request is refused.
    fn check(&self, request: &Request) -> Result<(), &'static str> {
        let allowed = match request.want {
            _ if request.version != VERSION => return Err("protocol version mismatch"),
            Operation::Push => self.config.allow_push,
            Operation::Pull(_) | Operation::List(_) => self.config.allow_pull,
            Operation::Bench => self.config.allow_bench,
        };
        let why = match request.want {
            Operation::Push => "this server accepts no files",
            Operation::Pull(_) | Operation::List(_) => "this server sends no files",
            Operation::Bench => "this server accepts no measurements",
        };
        if allowed { Ok(()) } else { Err(why) }
    }

    fn send_requested(
        &self,
        stream: &mut FrameStream,
        ready: &Response,
        paths: Vec<String>,
    ) -> Result<&'static str, TransferError> {
        let paths = match resolve_requested(&self.root, paths, stream.monitor()) {
            Ok(paths) => paths,
            Err(why) => return refuse(stream, why),
        };
        // Listing a large folder takes time; the client already has its response.
        stream.send(ready)?;
        match walk(&paths, stream.monitor()) {
            Ok(items) => send_files(stream, &items).map(|()| "sent"),
            Err(error) => {
                stream.send(&SenderMessage::Refused(error.to_string()))?;
                Err(error)
            }
        }
    }
}

fn refuse<T>(stream: &FrameStream, why: String) -> Result<T, TransferError> {
    stream.send(&Response::Refused(why.clone()))?;
    Err(TransferError::Declined(why))
}

/// Whether a client's result ends a server for one request: success, or a failure once there was data or
/// a file could not be written. Others may try after any other failure.
fn ends_server(result: &Result<&'static str, TransferError>, progress: &Progress) -> bool {
    match result {
        Ok(_) | Err(TransferError::File { .. } | TransferError::Limit(_)) => true,
        Err(error) => progress.bytes > progress.resumed && !error.is_transient(),
    }
}

/// What was done, for the log.
fn summary(what: &str, progress: &Progress) -> String {
    const SHOWN: usize = 5;
    let names = progress.names.iter().take(SHOWN).map(|(name, _)| &name[..]);
    let mut names = names.collect::<Vec<_>>().join(", ");
    if progress.names.len() > SHOWN {
        names += ", ...";
    }
    let (files, bytes, resumed) = (progress.files.0, progress.bytes, progress.resumed);
    let plural = if files == 1 { "" } else { "s" };
    let names = if names.is_empty() { names } else { format!(" ({names})") };
    format!("{what} {files} file{plural}{names}, {bytes} bytes, {resumed} of them before")
}

/// Resolves the requested paths without duplicates, by which a short request could cause an unlimited
/// number of files.
fn resolve_requested(
    root: &Path,
    paths: Vec<String>,
    monitor: &TransferMonitor,
) -> Result<Vec<PathBuf>, String> {
    let paths: BTreeSet<&str> = paths.iter().map(|path| path.trim_end_matches('/')).collect();
    let (mut real, mut named) = (Vec::new(), Vec::new());
    for path in paths {
        real.push(resolve_existing(root, path).ok_or("there is no such file")?);
        named.push(root.join(path));
    }
    // The contents of a folder sort right after it.
    real.sort();
    match real.windows(2).find(|pair| pair[1].starts_with(&pair[0])) {
        // The folder itself has no name, its contents have.
        None if real == [root] => {
            let (paths, skipped) = children(root).map_err(|error| error.to_string())?;
            log_skipped(&skipped, monitor);
            Ok(paths)
        }
        None => Ok(named),
        Some(pair) => {
            let [outer, inner] = [0, 1].map(|at| pair[at].strip_prefix(root).unwrap_or(&pair[at]));
            Err(format!("{} is part of {}", inner.display(), outer.display()))
        }
    }
}

/// Resolves an existing path; `None` if it does not exist or leads out of `root`, which `"."` is.
fn resolve_existing(root: &Path, path: &str) -> Option<PathBuf> {
    let path = path.trim_end_matches('/');
    if path.is_empty() || path == "." {
        return Some(root.to_owned());
    }
    let destination = resolve(root, path)?.canonicalize().ok()?;
    destination.starts_with(root).then_some(destination)
}
