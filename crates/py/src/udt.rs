//! UDT sockets and file transfer. Blocking calls release the GIL and check for signals every 100
//! ms.

use dumbbell_cc::CaState;
use dumbbell_experiment::Options;
use dumbbell_experiment::options::overlay_udt;
use dumbbell_transfer::{
    BenchLimit, ListedFile, ReceiveLimits, RetryPolicy, ServerConfig, TransferError,
};
use dumbbell_udt::Mode;
use dumbbell_udt::io::{Error, Key, Listener, Settings, Socket, Statistics};
use dumbbell_units::Span;
use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

create_exception!(dumbbell._core, TransferDamagedError, PyOSError, "Files did not arrive intact.");
create_exception!(
    dumbbell._core,
    TransferRefusedError,
    PyOSError,
    "The other side, or a limit of this one, refuses the transfer; it will do so again."
);

/// Interval between checks for signals in a blocking call.
const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Settings of a connection as `dumbbell.udt.Settings` serialises them; times in s.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawOptions {
    cc: String,
    mode: RawMode,
    key: Option<String>,
    connect_timeout: f64,
    silence: f64,
    linger: f64,
    options: Options,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawMode {
    Stream,
    Message,
}

fn settings(json: &str) -> PyResult<Settings> {
    let raw: RawOptions =
        serde_json::from_str(json).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let key = raw.key.as_deref().map(|key| {
        Key::from_hex(key).ok_or_else(|| PyValueError::new_err("a key is 64 hexadecimal digits"))
    });
    let options = overlay_udt(&raw.cc, &raw.options).map_err(|errors| {
        let told = errors.iter().map(|(key, error)| format!("options: {key}: {error}"));
        PyValueError::new_err(told.collect::<Vec<_>>().join("\n"))
    })?;
    let settings = Settings {
        options,
        mode: match raw.mode {
            RawMode::Stream => Mode::Stream,
            RawMode::Message => Mode::Message,
        },
        algorithm: raw.cc,
        connect_timeout: duration(raw.connect_timeout)?,
        idle_timeout: duration(raw.silence)?,
        linger: duration(raw.linger)?,
        key: key.transpose()?,
        ..Settings::default()
    };
    settings.check().map_err(raise)?;
    Ok(settings)
}

fn duration(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn raise(error: Error) -> PyErr {
    match error {
        Error::Algorithm(_) | Error::Option(_) | Error::Send(_) => {
            PyValueError::new_err(error.to_string())
        }
        other => std::io::Error::from(other).into(),
    }
}

fn raise_transfer(error: TransferError) -> PyErr {
    let text = error.to_string();
    match error {
        TransferError::Connection(Error::Key) => TransferRefusedError::new_err(text),
        TransferError::Connection(error) => raise(error),
        TransferError::Damaged(_) => TransferDamagedError::new_err(text),
        TransferError::Busy(_) => PyOSError::new_err(text),
        TransferError::Refused(_)
        | TransferError::Exists(_)
        | TransferError::Missing(_)
        | TransferError::Limit(_)
        | TransferError::Protocol(_) => TransferRefusedError::new_err(text),
        TransferError::File { .. } | TransferError::Path { .. } | TransferError::Insecure(_) => {
            PyValueError::new_err(text)
        }
        TransferError::Stopped => std::io::Error::from(std::io::ErrorKind::Interrupted).into(),
    }
}

/// Repeats an attempt of at most [`SIGNAL_CHECK_INTERVAL`] until it succeeds or fails, a signal
/// handler raises, or `timeout` (s) has passed.
fn wait_interruptibly<T: Send>(
    py: Python<'_>,
    timeout: Option<f64>,
    attempt: impl Fn() -> Result<T, Error> + Sync + Send,
) -> PyResult<T> {
    let timeout = timeout.map(duration).transpose()?;
    let limit = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    loop {
        match py.detach(&attempt) {
            Err(Error::TimedOut) if limit.is_none_or(|limit| Instant::now() < limit) => {
                py.check_signals()?;
            }
            other => return other.map_err(raise),
        }
    }
}

/// Connects by `attempt`, which asks its argument whether to go on, until a signal handler raises.
fn connect_interruptibly(
    py: Python<'_>,
    attempt: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<Socket, Error> + Send,
) -> PyResult<Socket> {
    let mut raised = None;
    let connected = py.detach(|| {
        attempt(&mut || {
            raised = Python::attach(|py| py.check_signals()).err();
            raised.is_none()
        })
    });
    raised.map_or_else(|| connected.map_err(raise), Err)
}

/// A UDT connection. Several threads may use it at once.
///
/// What waits raises TimeoutError when its `timeout` (s) is over; without one it waits without limit. A
/// connection that has failed raises OSError. Leaving its `with` closes it, after an error without
/// waiting.
#[pyclass(frozen, name = "Socket", module = "dumbbell.udt")]
pub struct UdtSocket {
    socket: Socket,
    linger: Duration,
}

impl UdtSocket {
    fn new(mut socket: Socket, linger: Duration) -> UdtSocket {
        socket.set_read_timeout(Some(SIGNAL_CHECK_INTERVAL));
        socket.set_write_timeout(Some(SIGNAL_CHECK_INTERVAL));
        UdtSocket { socket, linger }
    }
}

#[pymethods]
impl UdtSocket {
    /// Connects to a listener.
    #[staticmethod]
    fn connect(py: Python<'_>, host: &str, port: u16, settings_json: &str) -> PyResult<UdtSocket> {
        let settings = settings(settings_json)?;
        let socket = connect_interruptibly(py, |goes_on| {
            Socket::connect_while((host, port), &settings, goes_on)
        })?;
        Ok(UdtSocket::new(socket, settings.linger))
    }

    /// Connects to a peer that connects at the same time (rendezvous mode).
    #[staticmethod]
    fn rendezvous(
        py: Python<'_>,
        local: (String, u16),
        peer: (String, u16),
        settings_json: &str,
    ) -> PyResult<UdtSocket> {
        let settings = settings(settings_json)?;
        let (local, peer) = ((&local.0[..], local.1), (&peer.0[..], peer.1));
        let socket = connect_interruptibly(py, |goes_on| {
            Socket::rendezvous_while(local, peer, &settings, goes_on)
        })?;
        Ok(UdtSocket::new(socket, settings.linger))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        if kind.is_none() {
            return self.close(py, None);
        }
        // The error that is being raised matters more than one of closing.
        let _ = self.socket.shutdown(Duration::ZERO);
        Ok(())
    }

    /// Sends all bytes of a stream.
    #[pyo3(signature = (data, *, timeout=None))]
    fn send(&self, py: Python<'_>, data: &[u8], timeout: Option<f64>) -> PyResult<()> {
        let mut rest = data;
        while !rest.is_empty() {
            rest = &rest[wait_interruptibly(py, timeout, || self.socket.send(rest))?..];
        }
        Ok(())
    }

    /// Receives at most `size` bytes of a stream; none if the peer has closed.
    #[pyo3(signature = (size=65_536, *, timeout=None))]
    fn recv<'py>(
        &self,
        py: Python<'py>,
        size: usize,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = wait_interruptibly(py, timeout, || {
            let mut bytes = vec![0; size.min(1 << 20)];
            let read = self.socket.recv(&mut bytes)?;
            bytes.truncate(read);
            Ok(bytes)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Sends a message of at least one byte. After `ttl` (s) it is not retransmitted; with
    /// `in_order`, messages before it must be delivered first. Waits for room at most `timeout` (s).
    #[pyo3(signature = (data, *, ttl=None, in_order=true, timeout=None))]
    fn send_message(
        &self,
        py: Python<'_>,
        data: &[u8],
        ttl: Option<f64>,
        in_order: bool,
        timeout: Option<f64>,
    ) -> PyResult<()> {
        let ttl = ttl.map(duration).transpose()?;
        wait_interruptibly(py, timeout, || self.socket.send_message(data, ttl, in_order))
    }

    /// The next message; None if the peer has closed.
    #[pyo3(signature = (*, timeout=None))]
    fn recv_message<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let message = wait_interruptibly(py, timeout, || self.socket.recv_message())?;
        Ok(message.map(|bytes| PyBytes::new(py, &bytes)))
    }

    /// Closes the connection once all that was sent is acknowledged.
    ///
    /// Raises OSError if something that was sent did not arrive, as far as is known, and TimeoutError
    /// if that takes longer than `linger` (s; the settings' by default).
    #[pyo3(signature = (*, linger=None))]
    fn close(&self, py: Python<'_>, linger: Option<f64>) -> PyResult<()> {
        let linger = linger.map_or(Ok(self.linger), duration)?;
        wait_interruptibly(py, Some(linger.as_secs_f64()), || {
            self.socket.shutdown(SIGNAL_CHECK_INTERVAL)
        })
    }

    /// Counters and current values, named as in `Result.series`: s, bit/s, bytes, packets.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let row = PyDict::new(py);
        let statistics = self.socket.statistics();
        row.set_item("t", statistics.elapsed.as_secs_f64())?;
        for (name, value) in values(&statistics) {
            row.set_item(name, value)?;
        }
        Ok(row)
    }

    /// Host and port of the local end.
    #[getter]
    fn local(&self) -> (String, u16) {
        let address = self.socket.local_addr();
        (address.ip().to_string(), address.port())
    }

    /// Host and port of the peer.
    #[getter]
    fn peer(&self) -> (String, u16) {
        let address = self.socket.peer_addr();
        (address.ip().to_string(), address.port())
    }
}

/// Waits for UDT connections. Leaving its `with` closes it.
#[pyclass(frozen, name = "Listener", module = "dumbbell.udt")]
pub struct UdtListener {
    listener: std::sync::Mutex<Option<Arc<Listener>>>,
    local: (String, u16),
    linger: Duration,
}

#[pymethods]
impl UdtListener {
    /// Binds to a host and a port and listens.
    #[new]
    fn new(host: &str, port: u16, settings_json: &str) -> PyResult<UdtListener> {
        let settings = settings(settings_json)?;
        let listener = Listener::bind((host, port), &settings).map_err(raise)?;
        let address = listener.local_addr();
        let local = (address.ip().to_string(), address.port());
        let listener = std::sync::Mutex::new(Some(Arc::new(listener)));
        Ok(UdtListener { listener, local, linger: settings.linger })
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        self.close();
    }

    /// The next connection.
    ///
    /// Raises TimeoutError after `timeout` (s), OSError if the listener was closed.
    #[pyo3(signature = (*, timeout=None))]
    fn accept(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<UdtSocket> {
        let listener = self.listener.lock().ok().and_then(|guard| guard.clone());
        let listener = listener.ok_or_else(|| raise(Error::Closed))?;
        let socket =
            wait_interruptibly(py, timeout, || listener.accept(Some(SIGNAL_CHECK_INTERVAL)))?;
        Ok(UdtSocket::new(socket, self.linger))
    }

    /// Stops listening; accepted connections stay open.
    fn close(&self) {
        if let Ok(mut guard) = self.listener.lock() {
            guard.take();
        }
    }

    /// Host and port of the listening socket.
    #[getter]
    fn local(&self) -> (String, u16) {
        self.local.clone()
    }
}

/// The values of a sample, by their column names in the tables of results.
fn values(statistics: &Statistics) -> [(&'static str, f64); 16] {
    let (sender, receiver) = (&statistics.sender, &statistics.receiver);
    let secs = |span: Option<Span>| span.map_or(f64::NAN, Span::as_secs_f64);
    let ca_state = match sender.ca_state {
        CaState::Open => 0.0,
        CaState::Disorder => 1.0,
        CaState::Cwr => 2.0,
        CaState::Recovery => 3.0,
        CaState::Loss => 4.0,
    };
    [
        ("cwnd", sender.cwnd),
        ("ssthresh", sender.ssthresh),
        ("srtt", secs(sender.srtt)),
        ("rtt", secs(sender.rtt)),
        ("min_rtt", secs(sender.min_rtt)),
        ("pacing_rate", sender.pacing_rate.map_or(f64::NAN, |rate| rate.bits_per_sec())),
        ("delivery_rate", sender.delivery_rate.bits_per_sec()),
        ("in_flight", f64::from(sender.in_flight)),
        ("sent", sender.sent as f64),
        ("retransmitted", sender.retransmitted as f64),
        ("lost", sender.lost as f64),
        ("delivered", (sender.delivered * statistics.max_payload as u64) as f64),
        ("received", receiver.bytes as f64),
        ("ca_state", ca_state),
        ("timeouts", f64::from(sender.timeouts)),
        ("recoveries", f64::from(sender.recoveries)),
    ]
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
