//! Blocking sockets.

use super::clock::{Clock, deadline, duration, span};
use super::crypto::CryptoState;
use super::driver::{Driver, adopt, bind};
use super::error::Error;
use super::settings::{Settings, random};
use super::shared::{DriverHandle, SharedConnection, SharedState, Statistics};
use crate::config::Mode;
use crate::connection::{CloseReason, Connection, SendError};
use crate::handshake::Role;
use crate::seq::Seq;
use dumbbell_cc::Metric;
use quinn_udp::UdpSocketState;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

/// Maximum number of bytes copied per lock, during which the driver waits.
const MAX_COPY: usize = 1 << 16;

/// Interval at which a connecting socket asks whether to go on.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A connection over UDP, usable by several threads at once.
///
/// Dropping it closes the connection in the background, within [`Settings::linger`];
/// [`close`](Socket::close) waits until all sent data is acknowledged.
pub struct Socket {
    pub(super) shared: Arc<SharedConnection>,
    pub(super) timeouts: Timeouts,
}

/// Timeouts of reading and writing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timeouts {
    read: Option<Duration>,
    write: Option<Duration>,
}

impl Socket {
    /// Connects to a listener.
    ///
    /// # Errors
    /// If the settings are invalid, or no connection is established within their `connect_timeout`.
    pub fn connect(peer: impl ToSocketAddrs, settings: &Settings) -> Result<Socket, Error> {
        Socket::connect_while(peer, settings, &mut || true)
    }

    /// As [`connect`](Socket::connect), while `goes_on`, which is asked every 100 ms, is true.
    ///
    /// # Errors
    /// As [`connect`](Socket::connect), or [`Error::Closed`] if `goes_on` is false.
    pub fn connect_while(
        peer: impl ToSocketAddrs,
        settings: &Settings,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Socket, Error> {
        let mut error = Error::from(io::Error::from(io::ErrorKind::AddrNotAvailable));
        for peer in peer.to_socket_addrs()? {
            let local = match peer {
                SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
                SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
            };
            let socket = Socket::open(local, peer, Role::Client, settings)?;
            match socket.wait_open(goes_on) {
                Ok(()) => return Ok(socket),
                Err(Error::Closed) => return Err(Error::Closed),
                Err(why) => error = why,
            }
        }
        Err(error)
    }

    /// Connects to a peer that connects at the same time. Both ends need to know the other's port.
    ///
    /// # Errors
    /// As [`connect`](Socket::connect).
    pub fn rendezvous(
        local: impl ToSocketAddrs,
        peer: impl ToSocketAddrs,
        settings: &Settings,
    ) -> Result<Socket, Error> {
        Socket::rendezvous_while(local, peer, settings, &mut || true)
    }

    /// As [`rendezvous`](Socket::rendezvous), while `goes_on`, which is asked every 100 ms, is true.
    ///
    /// # Errors
    /// As [`connect_while`](Socket::connect_while).
    pub fn rendezvous_while(
        local: impl ToSocketAddrs,
        peer: impl ToSocketAddrs,
        settings: &Settings,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Socket, Error> {
        let none = || io::Error::from(io::ErrorKind::AddrNotAvailable);
        let local = local.to_socket_addrs()?.next().ok_or_else(none)?;
        let peer = peer.to_socket_addrs()?.next().ok_or_else(none)?;
        let socket = Socket::open(local, peer, Role::Rendezvous, settings)?;
        socket.wait_open(goes_on)?;
        Ok(socket)
    }

    /// Starts to connect over a bound UDP socket, whose buffer sizes are kept. Does not wait until the
    /// connection is established.
    ///
    /// # Errors
    /// If the settings are invalid.
    pub fn start_connect(
        udp: UdpSocket,
        peer: SocketAddr,
        settings: &Settings,
    ) -> Result<Socket, Error> {
        Socket::start(adopt(udp)?, peer, Role::Client, settings)
    }

    /// Binds a UDP socket and starts to connect.
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
        let config = settings.config(now, id, peer.ip())?;
        let mut engine = Connection::open(config, role, Seq::new(settings.isn()?), now);
        if settings.bulk.is_some() {
            engine.close();
        }
        let crypto = CryptoState::new(settings.key.as_ref());
        let ends = (id, local, peer);
        let shared = SharedConnection::new(ends, driver.clone(), engine, crypto, settings);
        let shared = Arc::new(shared);
        let mut driver = Driver::new((udp, state), (driver, wake_rx), None);
        driver.add(shared.clone());
        driver.start()?;
        Ok(Socket::from_shared(shared))
    }

    pub(super) fn from_shared(shared: Arc<SharedConnection>) -> Socket {
        Socket { shared, timeouts: Timeouts::default() }
    }

    fn wait_open(&self, goes_on: &mut dyn FnMut() -> bool) -> Result<(), Error> {
        let mut state = self.shared.lock();
        while !state.is_ready() {
            if let Some(error) = state.error() {
                return Err(error);
            }
            let until = deadline(Some(POLL_INTERVAL));
            state = match self.shared.wait_writable(state, 1, until) {
                Ok(state) => state,
                Err(_) if !goes_on() => return Err(Error::Closed),
                Err(_) => self.shared.lock(),
            };
        }
        Ok(())
    }

    /// The local address.
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.local
    }

    /// The peer's address.
    pub fn peer_addr(&self) -> SocketAddr {
        self.shared.peer
    }

    /// Sets the timeout of reading, after which it fails with [`Error::TimedOut`]. `None`: unlimited.
    pub fn set_read_timeout(&mut self, timeout: Option<Duration>) {
        self.timeouts.read = timeout;
    }

    /// Sets the timeout of writing, after which it fails with [`Error::TimedOut`]. `None`: unlimited.
    pub fn set_write_timeout(&mut self, timeout: Option<Duration>) {
        self.timeouts.write = timeout;
    }

    /// Sets the number of received packets per acknowledgement; 0: one per SYN only. A peer that uses
    /// an algorithm made for TCP needs more frequent ones.
    pub fn set_ack_interval(&self, packets: u32) {
        self.shared.lock().engine.set_ack_interval(packets);
    }

    /// Sends stream data: waits for free send buffer and returns the number of queued bytes.
    ///
    /// # Errors
    /// If the connection is closed or in message mode, or after the timeout.
    pub fn send(&self, bytes: &[u8]) -> Result<usize, Error> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let deadline = deadline(self.timeouts.write);
        let mut state = self.shared.lock();
        loop {
            if let Some(sent) = try_send(&self.shared, &mut state, bytes)? {
                return Ok(sent);
            }
            let wanted = wake_threshold(&state, bytes.len());
            state = self.shared.wait_writable(state, wanted, deadline)?;
        }
    }

    /// Sends all of `bytes` as stream data.
    ///
    /// # Errors
    /// As [`send`](Socket::send); some bytes may be sent.
    pub fn send_all(&self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            bytes = &bytes[self.send(bytes)?..];
        }
        Ok(())
    }

    /// Sends a message: waits until it fits into the send buffer.
    ///
    /// Losses are not retransmitted once the message is older than `ttl`. With `in_order`, it is not
    /// delivered before earlier messages.
    ///
    /// # Errors
    /// If the connection is closed or in stream mode, the message exceeds the send buffer, or after
    /// the timeout.
    pub fn send_message(
        &self,
        bytes: &[u8],
        ttl: Option<Duration>,
        in_order: bool,
    ) -> Result<(), Error> {
        let deadline = deadline(self.timeouts.write);
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

    /// Receives stream data: waits for some and returns the number of bytes, 0 if the peer has closed
    /// the connection and all is read.
    ///
    /// # Errors
    /// If the connection is closed otherwise or in message mode, or after the timeout.
    pub fn recv(&self, out: &mut [u8]) -> Result<usize, Error> {
        if out.is_empty() {
            return Ok(0);
        }
        let deadline = deadline(self.timeouts.read);
        let mut state = self.shared.lock();
        loop {
            if let Some(read) = try_recv(&self.shared, &mut state, out)? {
                return Ok(read);
            }
            state = self.shared.wait_readable(state, deadline)?;
        }
    }

    /// Receives the next message; `None` if the peer has closed the connection.
    ///
    /// # Errors
    /// If the connection is closed otherwise or in stream mode, or after the timeout.
    pub fn recv_message(&self) -> Result<Option<Vec<u8>>, Error> {
        let deadline = deadline(self.timeouts.read);
        let mut state = self.shared.lock();
        state.engine.check_mode(Mode::Message)?;
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

    /// Counters and current values.
    pub fn statistics(&self) -> Statistics {
        self.shared.lock().statistics(self.shared.now())
    }

    /// Why the connection is unusable; `None` while it is not.
    pub fn error(&self) -> Option<Error> {
        self.shared.lock().error()
    }

    /// Passes each internal variable of the algorithm to `show`.
    pub fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.shared.lock().engine.inspect(show);
    }

    /// Closes the connection and waits at most `linger` until all sent data is acknowledged and the peer
    /// knows the end. A peer of UDT4 does not confirm the end, so this end repeats it a few times. After
    /// `linger` the connection ends in any case.
    ///
    /// # Errors
    /// If sent data is not acknowledged.
    pub fn close(self, linger: Duration) -> Result<(), Error> {
        self.shutdown(linger)
    }

    /// As [`close`](Socket::close), for a shared socket.
    ///
    /// # Errors
    /// As [`close`](Socket::close).
    pub fn shutdown(&self, linger: Duration) -> Result<(), Error> {
        self.start_close(linger);
        self.wait_closed(linger)
    }

    /// As [`shutdown`](Socket::shutdown), in the background: does not wait.
    pub fn start_close(&self, linger: Duration) {
        self.shared.start_close(&mut self.shared.lock(), linger);
    }

    /// Waits at most `timeout` for the end of [`start_close`](Socket::start_close).
    ///
    /// # Errors
    /// As [`close`](Socket::close), or [`Error::TimedOut`] after `timeout`.
    pub fn wait_closed(&self, timeout: Duration) -> Result<(), Error> {
        let deadline = deadline(Some(timeout));
        let mut state = self.shared.lock();
        loop {
            match state.closed() {
                Some(result) if state.parted || result.is_err() => return result,
                ended => match self.shared.wait_readable(state, deadline) {
                    Ok(waited) => state = waited,
                    Err(timed_out) => return ended.unwrap_or(Err(timed_out)),
                },
            }
        }
    }

    /// Smoothed round-trip time; `None` before the first sample.
    pub fn rtt(&self) -> Option<Duration> {
        self.statistics().sender.srtt.map(duration)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        self.shared.start_close(&mut state, self.shared.linger);
        state.abandon();
    }
}

/// Fails if the connection is unusable or the peer's application has reported an error.
fn check_open(state: &mut MutexGuard<'_, SharedState>) -> Result<(), Error> {
    if let Some(code) = state.engine.take_peer_error() {
        return Err(Error::PeerError(code));
    }
    state.error().map_or(Ok(()), Err)
}

/// Free send buffer at which a writer is woken, bytes: what it wants, at most a quarter of the
/// buffer.
pub(super) fn wake_threshold(state: &SharedState, wanted: usize) -> usize {
    wanted.min(state.engine.send_capacity() / 4)
}

/// Queues what fits; `None` if the send buffer is full.
pub(super) fn try_send(
    shared: &SharedConnection,
    state: &mut MutexGuard<'_, SharedState>,
    bytes: &[u8],
) -> Result<Option<usize>, Error> {
    check_open(state)?;
    // Whole packets, so that only the last packet of a call is short.
    let payload = state.engine.max_payload().max(1);
    let whole = (MAX_COPY / payload).max(1) * payload;
    let some = &bytes[..bytes.len().min(whole)];
    let sent = state.engine.send(shared.now(), some)?;
    shared.notify_driver(state);
    Ok(Some(sent).filter(|&sent| sent > 0))
}

/// Reads available data; `None` if there is none yet.
pub(super) fn try_recv(
    shared: &SharedConnection,
    state: &mut MutexGuard<'_, SharedState>,
    out: &mut [u8],
) -> Result<Option<usize>, Error> {
    state.engine.check_mode(Mode::Stream)?;
    let some = out.len().min(MAX_COPY);
    let read = state.engine.read(&mut out[..some]);
    if read > 0 {
        shared.notify_driver(state);
        return Ok(Some(read));
    }
    Ok(at_end(state)?.then_some(0))
}

/// Whether the peer has closed the connection. Fails if it is unusable otherwise.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Listener;

    #[test]
    fn buffers_end_with_the_connection_and_its_socket() -> Result<(), Error> {
        let settings = Settings::default();
        let listener = Listener::bind("127.0.0.1:0", &settings)?;
        let wait = |is: &dyn Fn() -> bool| {
            while !is() {
                std::thread::yield_now();
            }
        };
        for closes_first in [true, false] {
            let client = Socket::connect(listener.local_addr(), &settings)?;
            let server = listener.accept(None)?;
            let shared = server.shared.clone();
            let is_readable = || shared.lock().engine.is_readable();
            client.send_all(&[7; 100_000])?;
            wait(&is_readable);
            if closes_first {
                drop(client);
                wait(&|| server.error().is_some());
                assert!(is_readable(), "the socket may be read");
                drop(server);
            } else {
                drop(server);
            }
            wait(&|| !is_readable());
        }
        Ok(())
    }
}
