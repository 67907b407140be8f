//! Giving files to a server, and taking files from it.

use crate::error::TransferError;
use crate::frame::{Line, Reply, Request, VERSION, Want};
use crate::manifest::walk;
use crate::sink::take;
use crate::source::give;
use crate::watch::Watch;
use dumbbell_udt::io::{Settings, Socket};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked whether a transfer is still wanted.
pub(crate) const LOOK: Duration = Duration::from_millis(200);

/// How often an interrupted transfer is tried again.
#[derive(Clone, Copy, Debug)]
pub struct Attempts {
    /// Tries after the first; those since the last progress are counted.
    pub more: u32,
    /// The pause before each.
    pub pause: Duration,
    /// How often the connection is sampled.
    pub interval: Duration,
    /// How long a server may take to answer: it may serve as many as it wants to.
    pub patience: Duration,
}

impl Default for Attempts {
    fn default() -> Attempts {
        let (pause, interval) = (Duration::from_secs(2), Duration::from_millis(100));
        Attempts { more: 5, pause, interval, patience: Duration::from_secs(60) }
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
    attempts: Attempts,
    watch: &Arc<Watch>,
) -> Result<(), TransferError> {
    let items = walk(paths, watch)?;
    repeat(attempts, watch, || {
        let mut line = ask(peer, Want::Push, settings, attempts, watch)?;
        give(&mut line, &items)?;
        part(&line);
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
    attempts: Attempts,
    watch: &Arc<Watch>,
) -> Result<(), TransferError> {
    repeat(attempts, watch, || {
        let want = Want::Pull(paths.to_vec());
        let mut line = ask(peer, want, settings, attempts, watch)?;
        let done = take(&mut line, into);
        part(&line);
        done
    })
}

/// Tries until it succeeds, or fails for good.
fn repeat(
    attempts: Attempts,
    watch: &Watch,
    mut attempt: impl FnMut() -> Result<(), TransferError>,
) -> Result<(), TransferError> {
    let (mut left, mut done) = (attempts.more, 0);
    loop {
        let error = match attempt() {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let progress = watch.progress().bytes;
        if progress > done {
            (left, done) = (attempts.more, progress);
        }
        if left == 0 || !error.may_pass() {
            return Err(error);
        }
        left -= 1;
        watch.tell(format!("{error}; trying again"));
        let mut pause = attempts.pause;
        while !pause.is_zero() {
            watch.check()?;
            std::thread::sleep(pause.min(LOOK));
            pause = pause.saturating_sub(LOOK);
        }
    }
}

/// Connects, and says what is wanted.
pub(crate) fn ask(
    peer: &str,
    want: Want,
    settings: &Settings,
    attempts: Attempts,
    watch: &Arc<Watch>,
) -> Result<Line, TransferError> {
    let peers: Vec<SocketAddr> =
        peer.to_socket_addrs().map_err(dumbbell_udt::io::Error::from)?.collect();
    let mut socket = Socket::connect(&peers[..], settings)?;
    socket.set_read_timeout(Some(LOOK));
    let socket = Arc::new(socket);
    watch.record(&socket, attempts.interval);
    let mut line = Line::new(socket, watch.clone());
    let ack_interval = settings.options.ack_interval;
    line.say(&Request { version: VERSION, ack_interval, want })?;
    match line.greet(attempts.patience)? {
        Reply::Ready { ack_interval } => line.socket().set_ack_interval(ack_interval.min(64)),
        Reply::Refused(why) => return Err(TransferError::Refused(why)),
    }
    Ok(line)
}

/// Closes a connection over which all was said.
pub(crate) fn part(line: &Line) {
    // The other side has confirmed all that matters; a last word may be lost.
    let _ = line.socket().finish(Duration::from_secs(5));
    line.watch().conclude(line.socket());
}
