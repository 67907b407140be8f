//! A connection as programs use it.

use super::clock::{Clock, duration, span};
use super::crypto::CryptoState;
use super::driver::{Driver, adopt, bind};
use super::error::Error;
use super::settings::{Settings, random};
use super::shared::{DriverHandle, SharedConnection, SharedState, Statistics};
use crate::connection::{CloseReason, Connection, SendError};
use crate::handshake::Role;
use crate::seq::Seq;
use dumbbell_cc::Metric;
use quinn_udp::UdpSocketState;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

/// Bytes that are copied while the driver waits.
const MAX_COPY: usize = 1 << 16;

/// A connection over UDP. It can be used by several threads at once.
///
/// Dropping it closes it: what was sent still arrives if the program goes on for long enough.
/// [`close`](Socket::close) waits until it has.
pub struct Socket {
    pub(super) shared: Arc<SharedConnection>,
    pub(super) timeouts: Timeouts,
}

/// How long reading and writing may take.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timeouts {
    read: Option<Duration>,
    write: Option<Duration>,
}

impl Socket {
    /// Connects to a listener.
    ///
    /// # Errors
    /// If the settings are not valid, or there is no connection within the time that they give.
    pub fn connect(peer: impl ToSocketAddrs, settings: &Settings) -> Result<Socket, Error> {
        let mut error = Error::from(io::Error::from(io::ErrorKind::AddrNotAvailable));
        for peer in peer.to_socket_addrs()? {
            let local = match peer {
                SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
                SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
            };
            let socket = Socket::open(local, peer, Role::Client, settings)?;
            match socket.wait_open() {
                Ok(()) => return Ok(socket),
                Err(why) => error = why,
            }
        }
        Err(error)
    }

    /// Connects to a peer that connects too: both bind a port that the other one knows.
    ///
    /// # Errors
    /// As [`connect`](Socket::connect).
    pub fn rendezvous(
        local: impl ToSocketAddrs,
        peer: impl ToSocketAddrs,
        settings: &Settings,
    ) -> Result<Socket, Error> {
        let none = || io::Error::from(io::ErrorKind::AddrNotAvailable);
        let local = local.to_socket_addrs()?.next().ok_or_else(none)?;
        let peer = peer.to_socket_addrs()?.next().ok_or_else(none)?;
        let socket = Socket::open(local, peer, Role::Rendezvous, settings)?;
        socket.wait_open()?;
        Ok(socket)
    }

    /// Begins to connect to a listener, over a UDP socket that is bound already and keeps its
    /// buffers. It does not wait until the connection is open.
    ///
    /// # Errors
    /// If the settings are not valid.
    pub fn start_connect(
        udp: UdpSocket,
        peer: SocketAddr,
        settings: &Settings,
    ) -> Result<Socket, Error> {
        Socket::start(adopt(udp)?, peer, Role::Client, settings)
    }

    /// A connection that is being opened.
    pub(super) fn open(
        local: SocketAddr,
        peer: SocketAddr,
        role: Role,
        settings: &Settings,
    ) -> Result<Socket, Error> {
        settings.check()?;
        Socket::start(bind(local, settings.udp_buffer)?, peer, role, settings)
    }

    fn start(
        (udp, state): (UdpSocket, UdpSocketState),
        peer: SocketAddr,
        role: Role,
        settings: &Settings,
    ) -> Result<Socket, Error> {
        let local = udp.local_addr()?;
        let (driver, wake_rx) = DriverHandle::new(Clock::start())?;
        let driver = Arc::new(driver);
        let now = driver.clock.now();
        let id = (random()? & 0x3fff_ffff).max(1);
        let config = settings.config(now, id)?;
        let mut engine = Connection::open(config, role, Seq::new(settings.isn()?), now);
        if settings.bulk.is_some() {
            engine.close();
        }
        let crypto = CryptoState::new(settings.key.as_ref());
        let ready_deadline = now + span(settings.connect_timeout);
        let shared = SharedConnection::new(
            (id, local, peer),
            driver.clone(),
            engine,
            crypto,
            ready_deadline,
        );
        let shared = Arc::new(shared);
        let mut driver = Driver::new((udp, state), (driver, wake_rx), None);
        driver.add(shared.clone());
        driver.start()?;
        Ok(Socket::from_shared(shared))
    }

    pub(super) fn from_shared(shared: Arc<SharedConnection>) -> Socket {
        Socket { shared, timeouts: Timeouts::default() }
    }

    fn wait_open(&self) -> Result<(), Error> {
        let mut state = self.shared.lock();
        while !state.is_ready() {
            if let Some(error) = state.error() {
                return Err(error);
            }
            state = self.shared.wait_writable(state, 1, None)?;
        }
        Ok(())
    }

    /// The address of this end.
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.local
    }

    /// The address of the peer.
    pub fn peer_addr(&self) -> SocketAddr {
        self.shared.peer
    }

    /// Sets how long reading may take before [`Error::TimedOut`]; without it, for ever.
    pub fn set_read_timeout(&mut self, timeout: Option<Duration>) {
        self.timeouts.read = timeout;
    }

    /// Sets how long writing may take before [`Error::TimedOut`]; without it, for ever.
    pub fn set_write_timeout(&mut self, timeout: Option<Duration>) {
        self.timeouts.write = timeout;
    }

    /// Has the peer's data acknowledged after so many packets, if a SYN has not passed before; 0:
    /// not before. Algorithms made for TCP, at the peer, want it: UDT's own do not.
    pub fn set_ack_interval(&self, packets: u32) {
        self.shared.lock().engine.set_ack_interval(packets);
    }

    /// Sends bytes of a stream; waits until there is room for some of them and gives how many.
    ///
    /// # Errors
    /// If the connection has ended or carries messages, or after the timeout.
    pub fn send(&self, bytes: &[u8]) -> Result<usize, Error> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let deadline = self.timeouts.write.map(|timeout| Instant::now() + timeout);
        let mut state = self.shared.lock();
        loop {
            if let Some(sent) = try_send(&self.shared, &mut state, bytes)? {
                return Ok(sent);
            }
            let wanted = wake_threshold(&state, bytes.len());
            state = self.shared.wait_writable(state, wanted, deadline)?;
        }
    }

    /// Sends all bytes of a stream.
    ///
    /// # Errors
    /// As [`send`](Socket::send); some may have been sent.
    pub fn send_all(&self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            bytes = &bytes[self.send(bytes)?..];
        }
        Ok(())
    }

    /// Sends a message; waits until there is room for all of it. If it takes longer than `ttl` it
    /// is not sent again; with `in_order` it is not delivered before those before it.
    ///
    /// # Errors
    /// If the connection has ended, carries a stream, or is never to have room for so much; or
    /// after the timeout.
    pub fn send_message(
        &self,
        bytes: &[u8],
        ttl: Option<Duration>,
        in_order: bool,
    ) -> Result<(), Error> {
        let deadline = self.timeouts.write.map(|timeout| Instant::now() + timeout);
        let mut state = self.shared.lock();
        loop {
            check_open(&mut state)?;
            let now = self.shared.now();
            match state.engine.send_message(now, bytes, ttl.map(span), in_order) {
                Err(SendError::Full) => {}
                other => {
                    self.shared.notify_driver(&state);
                    return Ok(other?);
                }
            }
            state = self.shared.wait_writable(state, bytes.len(), deadline)?;
        }
    }

    /// Reads what there is of a stream; waits until there is something and gives the number of
    /// bytes, 0 if the peer has closed and all was read.
    ///
    /// # Errors
    /// If the connection has ended otherwise, or after the timeout.
    pub fn recv(&self, out: &mut [u8]) -> Result<usize, Error> {
        if out.is_empty() {
            return Ok(0);
        }
        let deadline = self.timeouts.read.map(|timeout| Instant::now() + timeout);
        let mut state = self.shared.lock();
        loop {
            if let Some(read) = try_recv(&self.shared, &mut state, out)? {
                return Ok(read);
            }
            state = self.shared.wait_readable(state, deadline)?;
        }
    }

    /// The next message; waits until there is one. Nothing if the peer has closed.
    ///
    /// # Errors
    /// As [`recv`](Socket::recv).
    pub fn recv_message(&self) -> Result<Option<Vec<u8>>, Error> {
        let deadline = self.timeouts.read.map(|timeout| Instant::now() + timeout);
        let mut state = self.shared.lock();
        loop {
            if let Some(message) = state.engine.read_message() {
                self.shared.notify_driver(&state);
                return Ok(Some(message));
            }
            if at_end(&state)? {
                return Ok(None);
            }
            state = self.shared.wait_readable(state, deadline)?;
        }
    }

    /// Counters and present values.
    pub fn statistics(&self) -> Statistics {
        self.shared.lock().statistics(self.shared.now())
    }

    /// Why nothing more comes of the connection, if that is so.
    pub fn error(&self) -> Option<Error> {
        self.shared.lock().error()
    }

    /// Shows the algorithm's internals.
    pub fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.shared.lock().engine.inspect(show);
    }

    /// Closes the connection and waits until all that was sent is acknowledged, or `linger` has
    /// passed; then what is left is given up.
    ///
    /// # Errors
    /// If something that was sent did not arrive, as far as is known.
    pub fn close(self, linger: Duration) -> Result<(), Error> {
        self.shutdown(linger)
    }

    /// As [`close`](Socket::close), of a socket that others hold, too.
    ///
    /// # Errors
    /// As [`close`](Socket::close).
    pub fn shutdown(&self, linger: Duration) -> Result<(), Error> {
        let deadline = Instant::now() + linger;
        let mut state = self.shared.lock();
        state.engine.close();
        self.shared.notify_driver(&state);
        while state.error().is_none() {
            state = self.shared.wait_readable(state, Some(deadline))?;
        }
        match state.error() {
            Some(Error::PeerClosed) if state.engine.has_unacknowledged() => Err(Error::PeerClosed),
            None | Some(Error::Closed | Error::PeerClosed) => Ok(()),
            Some(error) => Err(error),
        }
    }

    /// The smoothed round-trip time, if there is one yet.
    pub fn rtt(&self) -> Option<Duration> {
        self.statistics().sender.srtt.map(duration)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.engine.close();
        self.shared.notify_driver(&state);
    }
}

/// Why no more can be sent, if so.
fn check_open(state: &mut MutexGuard<'_, SharedState>) -> Result<(), Error> {
    if let Some(code) = state.engine.take_peer_error() {
        return Err(Error::PeerError(code));
    }
    state.error().map_or(Ok(()), Err)
}

/// Bytes for which there is to be room before a writer is woken: what it wants, or so much that
/// it need not be woken again at once.
pub(super) fn wake_threshold(state: &SharedState, wanted: usize) -> usize {
    wanted.min(state.engine.send_capacity() / 4)
}

/// Sends what there is room for; nothing if there is none.
pub(super) fn try_send(
    shared: &SharedConnection,
    state: &mut MutexGuard<'_, SharedState>,
    bytes: &[u8],
) -> Result<Option<usize>, Error> {
    check_open(state)?;
    // Only the last packet of what a program hands over is shorter than others.
    let payload = state.engine.max_payload().max(1);
    let whole = (MAX_COPY / payload).max(1) * payload;
    let some = &bytes[..bytes.len().min(whole)];
    let sent = state.engine.send(shared.now(), some)?;
    shared.notify_driver(state);
    Ok(Some(sent).filter(|&sent| sent > 0))
}

/// Reads what there is; nothing if there is nothing yet.
pub(super) fn try_recv(
    shared: &SharedConnection,
    state: &mut MutexGuard<'_, SharedState>,
    out: &mut [u8],
) -> Result<Option<usize>, Error> {
    let some = out.len().min(MAX_COPY);
    let read = state.engine.read(&mut out[..some]);
    if read > 0 {
        shared.notify_driver(state);
        return Ok(Some(read));
    }
    Ok(at_end(state)?.then_some(0))
}

/// Whether the peer has closed the connection.
fn at_end(state: &SharedState) -> Result<bool, Error> {
    match state.engine.close_reason() {
        Some(CloseReason::PeerClosed) if state.failed.is_none() => Ok(true),
        _ => state.error().map_or(Ok(false), Err),
    }
}

impl Read for &Socket {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        Ok(self.recv(out)?)
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(self.send(bytes)?)
    }

    /// Does nothing: what was written is sent.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Socket {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        (&*self).read(out)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
