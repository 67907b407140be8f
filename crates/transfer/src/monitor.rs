//! Monitoring of a transfer: progress, statistics, events, and stopping it.

use crate::error::TransferError;
use crate::text::printable;
use dumbbell_udt::io::{Socket, Statistics};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Maximum number of events that are kept, and of names that are counted.
const MAX_EVENTS: usize = 1000;
const MAX_NAMES: usize = 1000;
/// Maximum number of samples that are kept: those of half an hour at intervals of 100 ms.
const MAX_SAMPLES: usize = 18_000;

/// Shared handle by which another thread reads a transfer's progress and stops it.
#[derive(Debug, Default)]
pub struct TransferMonitor {
    /// The monitor whose stop this one follows.
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
    /// The current file.
    file: String,
    /// Names of the transferred files and folders without what is in them, and the number of files
    /// of each; no more than [`MAX_NAMES`].
    names: BTreeMap<String, u64>,
    /// The monitor whose progress this one shows.
    shown: Option<Arc<TransferMonitor>>,
    latest: Option<Statistics>,
    samples: Vec<Sample>,
    /// One sample of `2^thinned` is kept, and how many came since the last one.
    thinned: u32,
    passed: u64,
    events: Vec<String>,
}

/// Progress of a transfer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Path of the current file.
    pub file: String,
    /// Bytes transferred, `resumed` ones included.
    pub bytes: u64,
    /// Total bytes; 0 if unknown.
    pub total: u64,
    /// Bytes that the receiver had already.
    pub resumed: u64,
    /// Files completed, and total files.
    pub files: (u64, u64),
    /// Names of the transferred files and folders, without what is in them, and the number of files
    /// of each that were written or sent. No more than 1000, with control characters escaped.
    pub names: Vec<(String, u64)>,
    /// Last sample of the connection's statistics.
    pub statistics: Option<Statistics>,
}

/// A sample of a connection.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Its statistics.
    pub statistics: Statistics,
    /// The algorithm's internal variables by name.
    pub internals: Vec<(&'static str, f64)>,
    /// Index of the connection: a transfer has one per attempt.
    pub connection: u64,
}

impl TransferMonitor {
    /// A monitor of a transfer that has not started.
    pub fn new() -> TransferMonitor {
        TransferMonitor::default()
    }

    /// A monitor that is stopped together with `whole`.
    pub(crate) fn child_of(parent: &Arc<TransferMonitor>) -> Arc<TransferMonitor> {
        Arc::new(TransferMonitor { parent: Some(parent.clone()), ..TransferMonitor::default() })
    }

    /// Stops the transfer, which then fails with [`TransferError::Stopped`].
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Current progress.
    pub fn progress(&self) -> Progress {
        let inner = self.inner();
        if let Some(shown) = inner.shown.clone() {
            drop(inner);
            return shown.progress();
        }
        let number = |of: &AtomicU64| of.load(Ordering::Relaxed);
        Progress {
            file: inner.file.clone(),
            bytes: number(&self.bytes),
            total: number(&self.total),
            resumed: number(&self.resumed),
            files: (number(&self.files), number(&self.all_files)),
            names: inner.names.iter().map(|(name, &files)| (printable(name), files)).collect(),
            statistics: inner.latest,
        }
    }

    /// The samples: all of the first half hour at intervals of 100 ms. In a longer transfer every other
    /// one is dropped, and later ones are kept half as often, each time that there are too many.
    pub fn samples(&self) -> Vec<Sample> {
        let inner = self.inner();
        match inner.shown.clone() {
            None => inner.samples.clone(),
            Some(shown) => {
                drop(inner);
                shown.samples()
            }
        }
    }

    /// Takes the log messages since the last call, of which the last 1000 are kept.
    pub fn take_events(&self) -> Vec<String> {
        std::mem::take(&mut self.inner().events)
    }

    /// Adds a message to the log, with a peer's text made safe for a terminal.
    pub(crate) fn log_event(&self, event: &str) {
        match &self.parent {
            Some(parent) => parent.log_event(event),
            None => {
                let mut inner = self.inner();
                if inner.events.len() == MAX_EVENTS {
                    inner.events.remove(0);
                }
                inner.events.push(printable(event));
            }
        }
    }

    /// Shows the progress and the samples of one of the clients of a server.
    pub(crate) fn show(&self, client: &Arc<TransferMonitor>) {
        self.inner().shown = Some(client.clone());
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // The state is consistent after each statement, so poisoning is harmless.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn check_stopped(&self) -> Result<(), TransferError> {
        if self.is_stopped() { Err(TransferError::Stopped) } else { Ok(()) }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
            || self.parent.as_ref().is_some_and(|parent| parent.is_stopped())
    }

    /// Resets the counters at the start of an attempt.
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
        self.inner().names.clear();
    }

    /// Adds to the totals.
    pub(crate) fn add_expected(&self, files: u64, bytes: u64) {
        self.all_files.fetch_add(files, Ordering::Relaxed);
        self.total.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn begin_file(&self, path: &str, resumed: u64) {
        self.inner().file = path.to_owned();
        self.bytes.fetch_add(resumed, Ordering::Relaxed);
        self.resumed.fetch_add(resumed, Ordering::Relaxed);
    }

    pub(crate) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn end_file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a file that needs no transfer.
    pub(crate) fn skip_file(&self, path: &str, size: u64) {
        self.begin_file(path, size);
        self.count_name(path, 0);
        self.end_file();
    }

    /// Counts files that were written or sent, below the first name of their path.
    pub(crate) fn count_name(&self, path: &str, files: u64) {
        let name = path.split('/').next().unwrap_or_default();
        let mut inner = self.inner();
        let is_full = inner.names.len() == MAX_NAMES;
        match inner.names.get_mut(name) {
            Some(known) => *known += files,
            None if is_full => {}
            None => drop(inner.names.insert(name.to_owned(), files)),
        }
    }

    /// Samples a connection periodically until it is dropped.
    pub(crate) fn sample_periodically(
        self: &Arc<TransferMonitor>,
        socket: &Arc<Socket>,
        interval: Duration,
    ) {
        let (monitor, socket) = (Arc::downgrade(self), Arc::downgrade(socket));
        let connection = self.inner().samples.last().map_or(0, |last| last.connection + 1);
        std::thread::spawn(move || {
            while let (Some(monitor), Some(socket)) = (monitor.upgrade(), socket.upgrade()) {
                monitor.sample(&socket, connection, false);
                drop((monitor, socket));
                std::thread::sleep(interval);
            }
        });
    }

    /// Takes the last sample of a closed connection.
    pub(crate) fn sample_final(&self, socket: &Socket) {
        let connection = self.inner().samples.last().map(|last| last.connection);
        if let Some(connection) = connection {
            self.sample(socket, connection, true);
        }
    }

    /// Samples a connection.
    fn sample(&self, socket: &Socket, connection: u64, is_last: bool) {
        let statistics = socket.statistics();
        let mut internals = Vec::new();
        socket.inspect(&mut |shown| internals.push((shown.name, shown.value)));
        self.inner().keep(Sample { statistics, internals, connection }, is_last);
    }
}

impl Inner {
    fn keep(&mut self, sample: Sample, is_last: bool) {
        self.latest = Some(sample.statistics);
        self.passed += 1;
        let is_first = self.samples.last().is_none_or(|last| last.connection != sample.connection);
        if !is_first && !is_last && self.passed < 1 << self.thinned {
            return;
        }
        self.passed = 0;
        self.samples.push(sample);
        if self.samples.len() == MAX_SAMPLES {
            self.thinned += 1;
            // The last one stays: its connection's number is in use.
            let mut is_dropped = false;
            self.samples.retain(|_| {
                is_dropped = !is_dropped;
                !is_dropped
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dumbbell_udt::io::{Error, Listener, Settings};

    #[test]
    fn a_monitor_keeps_the_last_1000_events_and_the_first_1000_names() {
        let monitor = TransferMonitor::new();
        for number in 0..1500 {
            monitor.log_event(&number.to_string());
            monitor.count_name(&format!("{number}/in"), 1);
        }
        monitor.count_name("0/in", 1);
        let events = monitor.take_events();
        assert_eq!((events.len(), &events[0][..], &events[999][..]), (1000, "500", "1499"));
        let names = monitor.progress().names;
        assert_eq!((names.len(), &names[0]), (1000, &("0".to_owned(), 2)));
    }

    #[test]
    fn a_monitor_keeps_a_limited_number_of_samples() -> Result<(), Error> {
        let listener = Listener::bind("127.0.0.1:0", &Settings::default())?;
        let socket = Socket::connect(listener.local_addr(), &Settings::default())?;
        let monitor = TransferMonitor::new();
        let rows = 4 * MAX_SAMPLES as u64;
        for row in 0..rows {
            // The second connection begins when half of the time is over.
            monitor.sample(&socket, row / (rows / 2), row == rows - 1);
        }
        let samples = monitor.samples();
        assert!((MAX_SAMPLES / 2..MAX_SAMPLES).contains(&samples.len()), "{}", samples.len());
        let first = samples.iter().filter(|sample| sample.connection == 0).count();
        let share = first as f64 / samples.len() as f64;
        assert!((share - 0.5).abs() < 0.01, "the first half of the time has {share} of them");
        Ok(())
    }

    #[test]
    fn names_are_shown_without_marks_that_change_their_direction() {
        let monitor = TransferMonitor::new();
        monitor.count_name("\u{202e}gpj.exe", 1);
        assert_eq!(monitor.progress().names, [("\\u{202e}gpj.exe".to_owned(), 1)]);
    }
}
