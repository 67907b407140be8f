//! UDT sockets. Blocking calls release the GIL and check for signals every 100
//! ms.

pub mod transfer;

use dumbbell_cc::CaState;
use dumbbell_experiment::Options;
use dumbbell_experiment::options::overlay_udt;
use dumbbell_udt::Mode;
use dumbbell_udt::io::{Error, Key, Listener, Settings, Socket, Statistics};
use dumbbell_units::Span;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde::Deserialize;
use std::time::{Duration, Instant};

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
    settings.check().map_err(|error| match error {
        Error::Algorithm(_) => PyValueError::new_err(format!("cc: {error}")),
        Error::Option(_) => PyValueError::new_err(format!("options: {error}")),
        other => raise(other),
    })?;
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

/// As [`raise`], with an address in the text.
fn raise_at(address: &str, error: Error) -> PyErr {
    let text = format!("{address}: {error}");
    match error {
        Error::Algorithm(_) | Error::Option(_) | Error::Send(_) => PyValueError::new_err(text),
        other => std::io::Error::new(std::io::Error::from(other).kind(), text).into(),
    }
}

/// Host and port as one text.
fn address(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// The end of a `timeout` (s); `None` if there is none, or it is too far.
fn deadline(timeout: Option<f64>) -> PyResult<Option<Instant>> {
    let timeout = timeout.map(duration).transpose()?;
    Ok(timeout.and_then(|timeout| Instant::now().checked_add(timeout)))
}

/// Repeats an attempt of at most [`SIGNAL_CHECK_INTERVAL`] until it succeeds or fails, a signal
/// handler raises, or the time is `limit`.
fn wait_interruptibly<T: Send>(
    py: Python<'_>,
    limit: Option<Instant>,
    attempt: impl Fn() -> Result<T, Error> + Sync + Send,
) -> PyResult<T> {
    loop {
        match py.detach(&attempt) {
            Err(Error::TimedOut) if limit.is_none_or(|limit| Instant::now() < limit) => {
                py.check_signals()?;
            }
            other => return other.map_err(raise),
        }
    }
}

/// Connects to an address by `attempt`, which asks its argument whether to go on, until a signal handler raises.
fn connect_interruptibly(
    py: Python<'_>,
    address: &str,
    attempt: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<Socket, Error> + Send,
) -> PyResult<Socket> {
    let mut raised = None;
    let connected = py.detach(|| {
        attempt(&mut || {
            raised = Python::attach(|py| py.check_signals()).err();
            raised.is_none()
        })
    });
    raised.map_or_else(|| connected.map_err(|error| raise_at(address, error)), Err)
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
        let socket = connect_interruptibly(py, &address(host, port), |goes_on| {
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
        let socket = connect_interruptibly(py, &address(peer.0, peer.1), |goes_on| {
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
        self.socket.start_close(self.linger);
        Ok(())
    }

    /// Sends all bytes of a stream. Some may be sent if the `timeout` (s), that of all, is over.
    #[pyo3(signature = (data, *, timeout=None))]
    fn send(&self, py: Python<'_>, data: &[u8], timeout: Option<f64>) -> PyResult<()> {
        let (mut rest, limit) = (data, deadline(timeout)?);
        while !rest.is_empty() {
            rest = &rest[wait_interruptibly(py, limit, || self.socket.send(rest))?..];
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
        let bytes = wait_interruptibly(py, deadline(timeout)?, || {
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
        let limit = deadline(timeout)?;
        wait_interruptibly(py, limit, || self.socket.send_message(data, ttl, in_order))
    }

    /// The next message; None if the peer has closed.
    #[pyo3(signature = (*, timeout=None))]
    fn recv_message<'py>(
        &self,
        py: Python<'py>,
        timeout: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let message = wait_interruptibly(py, deadline(timeout)?, || self.socket.recv_message())?;
        Ok(message.map(|bytes| PyBytes::new(py, &bytes)))
    }

    /// Closes the connection once all that was sent is acknowledged, after `linger` in any case.
    ///
    /// Raises OSError if something that was sent did not arrive, as far as is known, and TimeoutError
    /// if that takes longer than `linger` (s; the settings' by default).
    #[pyo3(signature = (*, linger=None))]
    fn close(&self, py: Python<'_>, linger: Option<f64>) -> PyResult<()> {
        let linger = linger.map_or(Ok(self.linger), duration)?;
        self.socket.start_close(linger);
        wait_interruptibly(py, Instant::now().checked_add(linger), || {
            self.socket.wait_closed(SIGNAL_CHECK_INTERVAL)
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
    listener: Listener,
    local: (String, u16),
    linger: Duration,
}

#[pymethods]
impl UdtListener {
    /// Binds to a host and a port and listens.
    #[new]
    fn new(host: &str, port: u16, settings_json: &str) -> PyResult<UdtListener> {
        let settings = settings(settings_json)?;
        let listener = Listener::bind((host, port), &settings)
            .map_err(|error| raise_at(&address(host, port), error))?;
        let address = listener.local_addr();
        let local = (address.ip().to_string(), address.port());
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
        let limit = deadline(timeout)?;
        let socket =
            wait_interruptibly(py, limit, || self.listener.accept(Some(SIGNAL_CHECK_INTERVAL)))?;
        Ok(UdtSocket::new(socket, self.linger))
    }

    /// Stops listening, and ends `accept` of other threads; accepted connections stay open.
    fn close(&self) {
        self.listener.close();
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
