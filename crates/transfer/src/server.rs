//! A folder to which clients give files, and from which they take files.

use crate::bench::discard;
use crate::client::LOOK;
use crate::error::{At, TransferError};
use crate::frame::{Line, Offer, Reply, Request, VERSION, Want};
use crate::manifest::walk;
use crate::place::below;
use crate::sink::take;
use crate::source::give;
use crate::watch::Watch;
use dumbbell_udt::io::{Error, Listener, Settings, Socket};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// How long a stopped server may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// What clients may do, and how many of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permission {
    /// Give files.
    pub write: bool,
    /// Take files.
    pub read: bool,
    /// Whether the server ends after it has served one client to its end.
    pub once: bool,
    /// How many are served at a time: each has a thread. Others wait in the listener's backlog.
    pub clients: usize,
    /// How long a client may take to say what it wants.
    pub patience: Duration,
}

impl Default for Permission {
    fn default() -> Permission {
        let (clients, patience) = (64, Duration::from_secs(10));
        Permission { write: true, read: true, once: false, clients, patience }
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
    permission: Permission,
    watch: &Arc<Watch>,
) -> Result<(), TransferError> {
    let root = root.canonicalize().at(root)?;
    if !root.is_dir() {
        return Err(TransferError::Path { path: root, why: "is not a folder" });
    }
    let listener = bind(local, settings)?;
    watch.tell(format!("listening at {}", listener.local_addr()));
    let mut clients = Vec::new();
    while !watch.is_stopped() {
        clients.retain(|client: &thread::JoinHandle<_>| !client.is_finished());
        if clients.len() >= permission.clients.max(1) {
            thread::sleep(LOOK / 10);
            continue;
        }
        let socket = match listener.accept(Some(LOOK)) {
            Err(Error::TimedOut) => continue,
            other => other?,
        };
        let from = socket.peer_addr();
        let ack_interval = settings.options.ack_interval;
        let (root, whole) = (root.clone(), watch.clone());
        let client = move || attend(socket, &root, ack_interval, permission, &whole);
        if permission.once {
            match client() {
                // The client comes back, or another one comes.
                Err(error) if error.may_pass() => continue,
                other => return other,
            }
        }
        let thread = thread::Builder::new().name(format!("udt {from}"));
        match thread.spawn(move || drop(client())) {
            Ok(thread) => clients.push(thread),
            // The system has no more threads: the others are served on.
            Err(error) => watch.tell(format!("{from}: {error}")),
        }
    }
    let until = Instant::now() + PATIENCE;
    while clients.iter().any(|client| !client.is_finished()) && Instant::now() < until {
        thread::sleep(LOOK / 10);
    }
    Err(TransferError::Stopped)
}

/// Listens; a port that is just being given up is waited for.
fn bind(local: &str, settings: &Settings) -> Result<Listener, TransferError> {
    let until = Instant::now() + PATIENCE / 5;
    loop {
        match Listener::bind(local, settings) {
            Err(Error::Io(error))
                if error.kind() == ErrorKind::AddrInUse && Instant::now() < until =>
            {
                thread::sleep(LOOK / 4);
            }
            other => return Ok(other?),
        }
    }
}

/// Serves a client, and tells of it.
fn attend(
    mut socket: Socket,
    root: &Path,
    ack_interval: u32,
    permission: Permission,
    watch: &Arc<Watch>,
) -> Result<(), TransferError> {
    socket.set_read_timeout(Some(LOOK));
    let from = socket.peer_addr();
    let socket = Arc::new(socket);
    // What several clients do is not one progress; how to stop is common.
    let own = if permission.once { watch.clone() } else { Watch::of(watch) };
    if permission.once {
        watch.record(&socket, Duration::from_millis(100));
    }
    let done = talk(&socket, root, ack_interval, permission, &own);
    watch.tell(told(from, &done, &own));
    // All that matters was confirmed by either side.
    let _ = socket.finish(Duration::from_secs(5));
    done.map(drop)
}

fn told(from: SocketAddr, done: &Result<&'static str, TransferError>, watch: &Watch) -> String {
    let progress = watch.progress();
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
fn talk(
    socket: &Arc<Socket>,
    root: &Path,
    ack_interval: u32,
    permission: Permission,
    watch: &Arc<Watch>,
) -> Result<&'static str, TransferError> {
    let mut line = Line::new(socket.clone(), watch.clone());
    let request: Request = line.greet(permission.patience)?;
    let refused = |line: &Line, why: &str| {
        line.say(&Reply::Refused(why.to_owned()))?;
        Err(TransferError::Refused(why.to_owned()))
    };
    if request.version != VERSION {
        return refused(&line, "it speaks another version of the protocol");
    }
    socket.set_ack_interval(request.ack_interval.min(64));
    let ready = Reply::Ready { ack_interval };
    match request.want {
        Want::Push if !permission.write => refused(&line, "nothing is taken here"),
        Want::Pull(_) if !permission.read => refused(&line, "nothing is given here"),
        Want::Push => {
            line.say(&ready)?;
            take(&mut line, root).map(|()| "gave")
        }
        Want::Bench => {
            line.say(&ready)?;
            discard(&mut line).map(|()| "measured")
        }
        Want::Pull(paths) => {
            let places = match places(root, paths) {
                Ok(places) => places,
                Err(why) => return refused(&line, &why),
            };
            // A large folder takes its time: who asked knows by now that it is served.
            line.say(&ready)?;
            match walk(&places, line.watch()) {
                Ok(items) => give(&mut line, &items).map(|()| "took"),
                Err(error) => {
                    line.say(&Offer::Refused(error.to_string()))?;
                    Err(error)
                }
            }
        }
    }
}

/// Where the paths are that a client asks for, each once. A short request would stand for any number
/// of files if it could name the same ones again and again.
fn places(root: &Path, mut paths: Vec<String>) -> Result<Vec<PathBuf>, String> {
    paths.sort();
    paths.dedup();
    let there: Option<Vec<PathBuf>> = paths.iter().map(|path| inside(root, path)).collect();
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
fn inside(root: &Path, path: &str) -> Option<PathBuf> {
    let place = below(root, path.trim_end_matches('/'))?.canonicalize().ok()?;
    place.starts_with(root).then_some(place)
}
