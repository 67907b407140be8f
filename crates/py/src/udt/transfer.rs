//! Transfers of files over UDT.

use super::{duration, raise, raise_at, settings, values};
use dumbbell_transfer::{
    BenchLimit, ListedFile, ReceiveLimits, RetryPolicy, ServerConfig, TransferError,
};
use dumbbell_udt::io::{Error, Key, Settings};
use dumbbell_units::Span;
use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Arc;

create_exception!(dumbbell._core, TransferDamagedError, PyOSError, "Files did not arrive intact.");
create_exception!(
    dumbbell._core,
    TransferRefusedError,
    PyOSError,
    "The other side, or a limit of this one, refuses the transfer; it will do so again."
);

fn raise_transfer(error: TransferError) -> PyErr {
    let text = error.to_string();
    match error {
        TransferError::Connection(Error::Key) | TransferError::At { error: Error::Key, .. } => {
            TransferRefusedError::new_err(text)
        }
        TransferError::Connection(error) => raise(error),
        TransferError::At { address, error } => raise_at(&address, error),
        TransferError::Damaged(_) => TransferDamagedError::new_err(text),
        TransferError::Busy(_) => PyOSError::new_err(text),
        TransferError::Refused(_)
        | TransferError::Declined(_)
        | TransferError::Exists(_)
        | TransferError::Missing(_)
        | TransferError::Limit(_)
        | TransferError::Protocol(_) => TransferRefusedError::new_err(text),
        TransferError::File { .. }
        | TransferError::Path { .. }
        | TransferError::Into(_)
        | TransferError::Insecure(_) => PyValueError::new_err(text),
        TransferError::Stopped => std::io::Error::from(std::io::ErrorKind::Interrupted).into(),
    }
}

/// Progress and stop request of a transfer, for use by other threads.
#[pyclass(frozen, module = "dumbbell._core")]
#[derive(Default)]
pub struct TransferMonitor {
    monitor: Arc<dumbbell_transfer::TransferMonitor>,
}

#[pymethods]
impl TransferMonitor {
    /// A monitor for a transfer that has not started.
    #[new]
    fn new() -> TransferMonitor {
        TransferMonitor::default()
    }

    /// Requests a stop; the transfer then raises InterruptedError.
    fn stop(&self) {
        self.monitor.stop();
    }

    /// Progress of the transfer: what, bytes, total, resumed, files, all_files and names (with
    /// the number of files of each); rtt (s), sent and retransmitted (packets) of the connection.
    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let progress = self.monitor.progress();
        let row = PyDict::new(py);
        row.set_item("what", progress.file)?;
        row.set_item("bytes", progress.bytes)?;
        row.set_item("total", progress.total)?;
        row.set_item("resumed", progress.resumed)?;
        row.set_item("files", progress.files.0)?;
        row.set_item("all_files", progress.files.1)?;
        row.set_item("names", progress.names)?;
        let sender = progress.statistics.map(|statistics| statistics.sender);
        let rtt = sender.and_then(|sender| sender.srtt).map(Span::as_secs_f64);
        row.set_item("rtt", rtt)?;
        row.set_item("sent", sender.map_or(0, |sender| sender.sent))?;
        row.set_item("retransmitted", sender.map_or(0, |sender| sender.retransmitted))?;
        Ok(row)
    }

    /// Messages about the events since the last call.
    fn events(&self) -> Vec<String> {
        self.monitor.take_events()
    }

    /// Time series: columns by name, including the connection's number and its time (s).
    fn series<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let samples = self.monitor.samples();
        let columns = PyDict::new(py);
        let times: Vec<f64> =
            samples.iter().map(|sample| sample.statistics.elapsed.as_secs_f64()).collect();
        columns.set_item("t", times)?;
        let connections: Vec<u64> = samples.iter().map(|sample| sample.connection).collect();
        columns.set_item("connection", connections)?;
        let rows: Vec<_> = samples.iter().map(|sample| values(&sample.statistics)).collect();
        for (at, (name, _)) in rows.first().into_iter().flatten().enumerate() {
            columns.set_item(name, rows.iter().map(|row| row[at].1).collect::<Vec<f64>>())?;
        }
        Ok(columns)
    }

    /// Internals of the algorithm: rows of connection, time (s), name, value.
    fn internals(&self) -> Vec<(u64, f64, &'static str, f64)> {
        let samples = self.monitor.samples();
        let rows = samples.iter().flat_map(|sample| {
            let t = sample.statistics.elapsed.as_secs_f64();
            let row = move |&(name, value)| (sample.connection, t, name, value);
            sample.internals.iter().map(row)
        });
        rows.collect()
    }
}

fn retry_policy(retries: u32, interval: f64) -> PyResult<RetryPolicy> {
    Ok(RetryPolicy {
        max_retries: retries,
        sample_interval: duration(interval)?,
        ..RetryPolicy::default()
    })
}

/// Limits of a receiver: max_bytes (None: unlimited), keep_free, overwrite.
fn receive_limits((max_bytes, keep_free, overwrite): RawLimits) -> ReceiveLimits {
    ReceiveLimits { max_bytes: max_bytes.unwrap_or(u64::MAX), keep_free, overwrite }
}

type RawLimits = (Option<u64>, u64, bool);
type Listing = Vec<(String, Option<u64>, u64)>;

fn listing(files: Vec<ListedFile>) -> Listing {
    files.into_iter().map(|file| (file.name, file.size, file.modified)).collect()
}

/// Sends files and folders to a server, into its folder `into`.
#[pyfunction]
#[pyo3(signature = (peer, paths, into, settings_json, retries, interval, monitor))]
#[expect(clippy::too_many_arguments, reason = "Python's side names them")]
pub fn udt_push(
    py: Python<'_>,
    peer: &str,
    paths: Vec<PathBuf>,
    into: Option<&str>,
    settings_json: &str,
    retries: u32,
    interval: f64,
    monitor: &TransferMonitor,
) -> PyResult<()> {
    let (settings, policy) = (settings(settings_json)?, retry_policy(retries, interval)?);
    let run = || dumbbell_transfer::push(peer, &paths, into, &settings, policy, &monitor.monitor);
    py.detach(run).map_err(raise_transfer)
}

/// Fetches files and folders from a server.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python's side names them")]
pub fn udt_pull(
    py: Python<'_>,
    peer: &str,
    paths: Vec<String>,
    into: PathBuf,
    limits: RawLimits,
    settings_json: &str,
    retries: u32,
    interval: f64,
    monitor: &TransferMonitor,
) -> PyResult<()> {
    let (settings, policy) = (settings(settings_json)?, retry_policy(retries, interval)?);
    let (limits, monitor) = (receive_limits(limits), &monitor.monitor);
    let run = || dumbbell_transfer::pull(peer, &paths, &into, limits, &settings, policy, monitor);
    py.detach(run).map_err(raise_transfer)
}

/// Serves a folder until `monitor` is stopped; with `once`, until one client was served. `permission`:
/// whether clients may send, and whether they may receive.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python's side names them")]
pub fn udt_serve(
    py: Python<'_>,
    root: PathBuf,
    local: &str,
    limits: RawLimits,
    settings_json: &str,
    permission: (bool, bool),
    insecure: bool,
    once: bool,
    clients: usize,
    monitor: &TransferMonitor,
) -> PyResult<()> {
    let settings = settings(settings_json)?;
    let config = ServerConfig {
        allow_push: permission.0,
        allow_pull: permission.1,
        allow_bench: !once,
        allow_insecure: insecure,
        once,
        limits: receive_limits(limits),
        max_clients: clients,
        ..ServerConfig::default()
    };
    let run = || dumbbell_transfer::serve(&root, local, &settings, config, &monitor.monitor);
    py.detach(run).map_err(raise_transfer)
}

/// Sends data that the server discards, for `seconds` or for `size` bytes. Returns the bytes sent
/// and the time (s).
#[pyfunction]
#[pyo3(signature = (peer, seconds, size, settings_json, interval, monitor))]
pub fn udt_bench(
    py: Python<'_>,
    peer: &str,
    seconds: f64,
    size: Option<u64>,
    settings_json: &str,
    interval: f64,
    monitor: &TransferMonitor,
) -> PyResult<(u64, f64)> {
    let settings = settings(settings_json)?;
    let load = size.map_or_else(
        || duration(seconds).map(BenchLimit::Time),
        |size| Ok(BenchLimit::Bytes(size)),
    )?;
    let interval = duration(interval)?;
    let run = || dumbbell_transfer::bench(peer, load, &settings, interval, &monitor.monitor);
    let (bytes, took) = py.detach(run).map_err(raise_transfer)?;
    Ok((bytes, took.as_secs_f64()))
}

/// Lists a folder of a server: name, size (bytes; None for a folder), modification time (ns).
#[pyfunction]
pub fn udt_list(
    py: Python<'_>,
    peer: &str,
    path: &str,
    settings_json: &str,
    monitor: &TransferMonitor,
) -> PyResult<Listing> {
    let settings = settings(settings_json)?;
    let run = || dumbbell_transfer::list(peer, path, &settings, &monitor.monitor);
    py.detach(run).map(listing).map_err(raise_transfer)
}

/// Lists what sending these paths would send, as `udt_list`.
#[pyfunction]
pub fn udt_manifest(paths: Vec<PathBuf>) -> PyResult<Listing> {
    let monitor = dumbbell_transfer::TransferMonitor::new();
    dumbbell_transfer::manifest(&paths, &monitor).map(listing).map_err(raise_transfer)
}

/// Checks the name and the options of an algorithm of UDT.
#[pyfunction]
pub fn udt_check_algorithm(text: &str) -> PyResult<()> {
    Settings::for_algorithm(text).check().map_err(raise)
}

/// Generates a key for the encrypted mode: 64 hexadecimal digits.
#[pyfunction]
pub fn udt_key() -> PyResult<String> {
    Ok(Key::generate()?.to_hex())
}

/// Reads a key from a file, which only its owner may read.
#[pyfunction]
pub fn udt_read_key(file: PathBuf) -> PyResult<String> {
    Ok(Key::read(&file)?.to_hex())
}

/// Writes a new key to a file that does not exist, and that only its owner can read.
#[pyfunction]
pub fn udt_write_key(file: PathBuf) -> PyResult<()> {
    Ok(Key::generate()?.write(&file)?)
}
