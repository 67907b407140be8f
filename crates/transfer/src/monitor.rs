//! How far a transfer is, what was measured of it, and how to stop it.

use crate::error::TransferError;
use dumbbell_udt::io::{Socket, Statistics};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Lets another thread see how far a transfer is, and stop it.
#[derive(Debug, Default)]
pub struct TransferMonitor {
    /// What this is a part of.
    parent: Option<Arc<TransferMonitor>>,
    stopped: AtomicBool,
    bytes: AtomicU64,
    total: AtomicU64,
    resumed: AtomicU64,
    files: AtomicU64,
    all_files: AtomicU64,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// What is being done.
    file: String,
    latest: Option<Statistics>,
    samples: Vec<Sample>,
    events: Vec<String>,
}

/// How far a transfer is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// The file under way.
    pub file: String,
    /// Bytes that are done, those that were there before included.
    pub bytes: u64,
    /// Bytes in all.
    pub total: u64,
    /// Bytes that were there before.
    pub resumed: u64,
    /// Files that are done, and all.
    pub files: (u64, u64),
    /// Of the connection.
    pub statistics: Option<Statistics>,
}

/// What was measured at one instant.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Of the connection.
    pub statistics: Statistics,
    /// The algorithm's internals.
    pub internals: Vec<(&'static str, f64)>,
    /// Which connection it was: an interrupted transfer has several.
    pub connection: u64,
}

impl TransferMonitor {
    /// A watch over something that has not begun.
    pub fn new() -> TransferMonitor {
        TransferMonitor::default()
    }

    /// A watch over a part of what another one watches: it is stopped with that.
    pub(crate) fn child_of(whole: &Arc<TransferMonitor>) -> Arc<TransferMonitor> {
        Arc::new(TransferMonitor { parent: Some(whole.clone()), ..TransferMonitor::default() })
    }

    /// Stops what is watched, which ends with [`TransferError::Stopped`].
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        let inner = self.inner();
        let number = |of: &AtomicU64| of.load(Ordering::Relaxed);
        Progress {
            file: inner.file.clone(),
            bytes: number(&self.bytes),
            total: number(&self.total),
            resumed: number(&self.resumed),
            files: (number(&self.files), number(&self.all_files)),
            statistics: inner.latest,
        }
    }

    /// What was measured so far.
    pub fn samples(&self) -> Vec<Sample> {
        self.inner().samples.clone()
    }

    /// What has happened since this was asked last, in words.
    pub fn take_events(&self) -> Vec<String> {
        std::mem::take(&mut self.inner().events)
    }

    pub(crate) fn log_event(&self, event: String) {
        self.inner().events.push(event);
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // What is behind it is whole after every statement.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn check_stopped(&self) -> Result<(), TransferError> {
        if self.is_stopped() { Err(TransferError::Stopped) } else { Ok(()) }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
            || self.parent.as_ref().is_some_and(|whole| whole.is_stopped())
    }

    /// A transfer begins, or begins again.
    pub(crate) fn start(&self, files: u64, total: u64) {
        for (counter, value) in [
            (&self.files, 0),
            (&self.bytes, 0),
            (&self.resumed, 0),
            (&self.all_files, files),
            (&self.total, total),
        ] {
            counter.store(value, Ordering::Relaxed);
        }
    }

    /// Another file, or more of it, is to come.
    pub(crate) fn add_expected(&self, files: u64, bytes: u64) {
        self.all_files.fetch_add(files, Ordering::Relaxed);
        self.total.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn begin_file(&self, what: &str, resumed: u64) {
        self.inner().file = what.to_owned();
        self.bytes.fetch_add(resumed, Ordering::Relaxed);
        self.resumed.fetch_add(resumed, Ordering::Relaxed);
    }

    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn end_file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    /// Samples a connection at an interval until it has gone.
    pub(crate) fn sample_periodically(
        self: &Arc<TransferMonitor>,
        socket: &Arc<Socket>,
        interval: Duration,
    ) {
        let (monitor, socket) = (Arc::downgrade(self), Arc::downgrade(socket));
        let connection = self.inner().samples.last().map_or(0, |last| last.connection + 1);
        std::thread::spawn(move || {
            while let (Some(monitor), Some(socket)) = (monitor.upgrade(), socket.upgrade()) {
                monitor.sample(&socket, connection);
                drop((monitor, socket));
                std::thread::sleep(interval);
            }
        });
    }

    /// Samples a connection once more, when it has ended.
    pub(crate) fn sample_final(&self, socket: &Socket) {
        let connection = self.inner().samples.last().map(|last| last.connection);
        if let Some(connection) = connection {
            self.sample(socket, connection);
        }
    }

    fn sample(&self, socket: &Socket, connection: u64) {
        let statistics = socket.statistics();
        let mut internals = Vec::new();
        socket.inspect(&mut |shown| internals.push((shown.name, shown.value)));
        let mut inner = self.inner();
        inner.latest = Some(statistics);
        inner.samples.push(Sample { statistics, internals, connection });
    }
}
