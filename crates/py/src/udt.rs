//! UDT sockets and file transfer from Python. Whatever waits, waits without the interpreter's lock,
//! and looks now and then whether it was interrupted.

use dumbbell_cc::CaState;
use dumbbell_transfer::{BenchLimit, RetryPolicy, ServerConfig, TransferError, TransferMonitor};
use dumbbell_udt::io::{Error, Key, Listener, Settings, Socket, Statistics};
use dumbbell_udt::{Mode, TransportOptions};
use dumbbell_units::Span;
use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

create_exception!(
    dumbbell._core,
    TransferDamagedError,
    PyOSError,
    "Files did not arrive as they are."
);
create_exception!(
    dumbbell._core,
    TransferRefusedError,
    PyOSError,
    "The other side does not do it."
);

/// How often a wait looks whether it was interrupted.
const GLANCE: Duration = Duration::from_millis(100);

/// What a connection is to be, as `dumbbell.udt.Settings` says it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    cc: String,
    messages: bool,
    key: Option<String>,
    connect_timeout: f64,
    silence: f64,
    linger: f64,
    options: TransportOptions,
}

fn settings(json: &str) -> PyResult<Settings> {
    let given: Given =
        serde_json::from_str(json).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let key = given.key.as_deref().map(|key| {
        Key::from_hex(key).ok_or_else(|| PyValueError::new_err("a key is 64 hexadecimal digits"))
    });
    let settings = Settings {
        options: given.options,
        mode: if given.messages { Mode::Message } else { Mode::Stream },
        algorithm: given.cc,
        connect_timeout: duration(given.connect_timeout)?,
        idle_timeout: duration(given.silence)?,
        linger: duration(given.linger)?,
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
        TransferError::Connection(error) => raise(error),
        TransferError::Damaged(_) => TransferDamagedError::new_err(text),
        TransferError::Refused(_) | TransferError::Busy(_) | TransferError::Protocol(_) => {
            TransferRefusedError::new_err(text)
        }
        TransferError::File { .. } | TransferError::Path { .. } => PyValueError::new_err(text),
        TransferError::Stopped => std::io::Error::from(std::io::ErrorKind::Interrupted).into(),
    }
}

/// Repeats what waits for a short while until it succeeds, fails, is interrupted, or the time is up.
fn patiently<T: Send>(
    py: Python<'_>,
    timeout: Option<f64>,
    attempt: impl Fn() -> Result<T, Error> + Sync + Send,
) -> PyResult<T> {
    let limit = timeout.map(duration).transpose()?.map(|timeout| Instant::now() + timeout);
    loop {
        match py.detach(&attempt) {
            Err(Error::TimedOut) if limit.is_none_or(|limit| Instant::now() < limit) => {
                py.check_signals()?;
            }
            other => return other.map_err(raise),
        }
    }
}

/// A UDT connection.
#[pyclass(frozen, module = "dumbbell._core")]
pub struct UdtSocket {
    socket: Socket,
    linger: Duration,
}

impl UdtSocket {
    fn new(mut socket: Socket, linger: Duration) -> UdtSocket {
        socket.set_read_timeout(Some(GLANCE));
        socket.set_write_timeout(Some(GLANCE));
        UdtSocket { socket, linger }
    }
}

#[pymethods]
impl UdtSocket {
    /// Connects to a listener.
    #[staticmethod]
    fn connect(py: Python<'_>, host: &str, port: u16, settings_json: &str) -> PyResult<UdtSocket> {
        let settings = settings(settings_json)?;
        let socket = py.detach(|| Socket::connect((host, port), &settings)).map_err(raise)?;
        Ok(UdtSocket::new(socket, settings.linger))
    }

    /// Connects to a peer that connects too.
    #[staticmethod]
    fn rendezvous(
        py: Python<'_>,
        local: (String, u16),
        peer: (String, u16),
        settings_json: &str,
    ) -> PyResult<UdtSocket> {
        let settings = settings(settings_json)?;
        let (own, theirs) = ((&local.0[..], local.1), (&peer.0[..], peer.1));
        let socket = py.detach(|| Socket::rendezvous(own, theirs, &settings)).map_err(raise)?;
        Ok(UdtSocket::new(socket, settings.linger))
    }

    /// Sends all bytes of a stream.
    #[pyo3(signature = (data, timeout=None))]
    fn send(&self, py: Python<'_>, data: &[u8], timeout: Option<f64>) -> PyResult<()> {
        let mut rest = data;
        while !rest.is_empty() {
            rest = &rest[patiently(py, timeout, || self.socket.send(rest))?..];
        }
        Ok(())
    }

    /// Reads at most `size` bytes of a stream; none if the peer has closed.
    #[pyo3(signature = (size, timeout=None))]
    fn recv<'py>(
        &self,
        py: Python<'py>,
        size: usize,
        timeout: Option<f64>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = patiently(py, timeout, || {
            let mut bytes = vec![0; size.min(1 << 20)];
            let read = self.socket.recv(&mut bytes)?;
            bytes.truncate(read);
            Ok(bytes)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Sends a message.
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
        patiently(py, timeout, || self.socket.send_message(data, ttl, in_order))
    }

    /// The next message; None if the peer has closed.
    #[pyo3(signature = (timeout=None))]
    fn recv_message<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let message = patiently(py, timeout, || self.socket.recv_message())?;
        Ok(message.map(|bytes| PyBytes::new(py, &bytes)))
    }

    /// Closes the connection once all that was sent is acknowledged.
    #[pyo3(signature = (linger=None))]
    fn close(&self, py: Python<'_>, linger: Option<f64>) -> PyResult<()> {
        let linger = linger.map_or(Ok(self.linger), duration)?;
        patiently(py, Some(linger.as_secs_f64()), || self.socket.shutdown(GLANCE))
    }

    /// Closes the connection without waiting.
    fn abandon(&self) {
        // Nobody asks what became of it.
        let _ = self.socket.shutdown(Duration::ZERO);
    }

    /// Counters and present values.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let row = PyDict::new(py);
        let statistics = self.socket.statistics();
        row.set_item("t", statistics.elapsed.as_secs_f64())?;
        for (name, value) in values(&statistics) {
            row.set_item(name, value)?;
        }
        Ok(row)
    }

    /// Host and port of this end.
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

/// Waits for UDT connections.
#[pyclass(frozen, module = "dumbbell._core")]
pub struct UdtListener {
    listener: std::sync::Mutex<Option<Arc<Listener>>>,
    local: (String, u16),
    linger: Duration,
}

#[pymethods]
impl UdtListener {
    /// Listens at an address.
    #[new]
    fn new(host: &str, port: u16, settings_json: &str) -> PyResult<UdtListener> {
        let settings = settings(settings_json)?;
        let listener = Listener::bind((host, port), &settings).map_err(raise)?;
        let address = listener.local_addr();
        let local = (address.ip().to_string(), address.port());
        let listener = std::sync::Mutex::new(Some(Arc::new(listener)));
        Ok(UdtListener { listener, local, linger: settings.linger })
    }

    /// The next connection.
    #[pyo3(signature = (timeout=None))]
    fn accept(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<UdtSocket> {
        let listener = self.listener.lock().ok().and_then(|held| held.clone());
        let listener = listener.ok_or_else(|| raise(Error::Closed))?;
        let socket = patiently(py, timeout, || listener.accept(Some(GLANCE)))?;
        Ok(UdtSocket::new(socket, self.linger))
    }

    /// Stops listening; connections that were accepted go on.
    fn close(&self) {
        if let Ok(mut held) = self.listener.lock() {
            held.take();
        }
    }

    /// Host and port at which it listens.
    #[getter]
    fn local(&self) -> (String, u16) {
        self.local.clone()
    }
}

/// The values of a sample, as they are called in the tables of results.
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

/// Lets another thread see how far a transfer is, and stop it.
#[pyclass(frozen, module = "dumbbell._core")]
#[derive(Default)]
pub struct TransferWatch {
    watch: Arc<TransferMonitor>,
}

#[pymethods]
impl TransferWatch {
    /// A watch over a transfer that has not begun.
    #[new]
    fn new() -> TransferWatch {
        TransferWatch::default()
    }

    /// Stops the transfer, which then raises InterruptedError.
    fn stop(&self) {
        self.watch.stop();
    }

    /// How far it is: what, bytes, total, resumed, files, all_files, and of the connection rtt (s)
    /// and the packets sent and retransmitted.
    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let progress = self.watch.progress();
        let row = PyDict::new(py);
        row.set_item("what", progress.file)?;
        row.set_item("bytes", progress.bytes)?;
        row.set_item("total", progress.total)?;
        row.set_item("resumed", progress.resumed)?;
        row.set_item("files", progress.files.0)?;
        row.set_item("all_files", progress.files.1)?;
        let sender = progress.statistics.map(|statistics| statistics.sender);
        let rtt = sender.and_then(|sender| sender.srtt).map(Span::as_secs_f64);
        row.set_item("rtt", rtt)?;
        row.set_item("sent", sender.map_or(0, |sender| sender.sent))?;
        row.set_item("retransmitted", sender.map_or(0, |sender| sender.retransmitted))?;
        Ok(row)
    }

    /// What has happened since this was asked last, in words.
    fn events(&self) -> Vec<String> {
        self.watch.take_events()
    }

    /// What was measured: columns by name, a connection's number and its time among them.
    fn series<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let samples = self.watch.samples();
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

    /// The algorithm's internals: rows of connection, time, name, value.
    fn internals(&self) -> Vec<(u64, f64, &'static str, f64)> {
        let samples = self.watch.samples();
        let rows = samples.iter().flat_map(|sample| {
            let t = sample.statistics.elapsed.as_secs_f64();
            let row = move |&(name, value)| (sample.connection, t, name, value);
            sample.internals.iter().map(row)
        });
        rows.collect()
    }
}

fn attempts(retries: u32, interval: f64) -> PyResult<RetryPolicy> {
    Ok(RetryPolicy {
        max_retries: retries,
        sample_interval: duration(interval)?,
        ..RetryPolicy::default()
    })
}

/// Gives files and folders to a server.
#[pyfunction]
pub fn udt_push(
    py: Python<'_>,
    peer: &str,
    paths: Vec<PathBuf>,
    settings_json: &str,
    retries: u32,
    interval: f64,
    watch: &TransferWatch,
) -> PyResult<()> {
    let (settings, attempts) = (settings(settings_json)?, attempts(retries, interval)?);
    let run = || dumbbell_transfer::push(peer, &paths, &settings, attempts, &watch.watch);
    py.detach(run).map_err(raise_transfer)
}

/// Takes files and folders of a server.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "Python's side names them")]
pub fn udt_pull(
    py: Python<'_>,
    peer: &str,
    paths: Vec<String>,
    into: PathBuf,
    settings_json: &str,
    retries: u32,
    interval: f64,
    watch: &TransferWatch,
) -> PyResult<()> {
    let (settings, attempts) = (settings(settings_json)?, attempts(retries, interval)?);
    let run = || dumbbell_transfer::pull(peer, &paths, &into, &settings, attempts, &watch.watch);
    py.detach(run).map_err(raise_transfer)
}

/// Serves a folder until the watch is stopped, or, with `once`, one client was served.
#[pyfunction]
pub fn udt_serve(
    py: Python<'_>,
    root: PathBuf,
    local: &str,
    settings_json: &str,
    permission: (bool, bool, bool),
    clients: usize,
    watch: &TransferWatch,
) -> PyResult<()> {
    let (write, read, once) = permission;
    let settings = settings(settings_json)?;
    let config = ServerConfig {
        allow_push: write,
        allow_pull: read,
        once,
        max_clients: clients,
        ..ServerConfig::default()
    };
    let run = || dumbbell_transfer::serve(&root, local, &settings, config, &watch.watch);
    py.detach(run).map_err(raise_transfer)
}

/// Sends data that a server throws away, for a time (s) or so many bytes; gives the bytes and the
/// time (s).
#[pyfunction]
#[pyo3(signature = (peer, seconds, size, settings_json, interval, watch))]
pub fn udt_bench(
    py: Python<'_>,
    peer: &str,
    seconds: f64,
    size: Option<u64>,
    settings_json: &str,
    interval: f64,
    watch: &TransferWatch,
) -> PyResult<(u64, f64)> {
    let settings = settings(settings_json)?;
    let load = size.map_or_else(
        || duration(seconds).map(BenchLimit::Time),
        |size| Ok(BenchLimit::Bytes(size)),
    )?;
    let interval = duration(interval)?;
    let run = || dumbbell_transfer::bench(peer, load, &settings, interval, &watch.watch);
    let (bytes, took) = py.detach(run).map_err(raise_transfer)?;
    Ok((bytes, took.as_secs_f64()))
}

/// A new key for the encrypted mode: 64 hexadecimal digits.
#[pyfunction]
pub fn udt_key() -> PyResult<String> {
    Ok(Key::generate()?.to_hex())
}
