//! Listener for incoming connections.

use super::clock::{Clock, deadline};
use super::crypto::CryptoState;
use super::driver::socket_table::{Client, SocketTable};
use super::driver::{Driver, adopt, bind};
use super::error::Error;
use super::settings::{Settings, random};
use super::shared::{DriverHandle, SharedConnection, lock, wait};
use super::socket::Socket;
use super::wakers::Wakers;
use crate::connection::Connection;
use crate::listener::{Listener as Protocol, ListenerAction};
use crate::packet::{Handshake, Packet};
use dumbbell_net::Endpoint as _;
use dumbbell_units::Time;
use quinn_udp::UdpSocketState;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::{Arc, Condvar, Mutex};
#[cfg(feature = "tokio")]
use std::task::Waker;
use std::time::Duration;

/// Listens for connections. The listener and its connections share one UDP socket.
pub struct Listener {
    local: SocketAddr,
    driver: Arc<DriverHandle>,
    queue: Arc<AcceptQueue>,
}

/// Connections waiting for `accept`.
#[derive(Default)]
pub(super) struct AcceptQueue {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

/// Connections, and the tasks that wait for one.
#[derive(Default)]
struct Waiting {
    connections: VecDeque<Arc<SharedConnection>>,
    tasks: Wakers,
    /// The listener is closed, and accepts nothing more.
    closed: bool,
}

/// The driver's state of a listener.
pub(super) struct ListenerState {
    protocol: Protocol,
    settings: Settings,
    local: SocketAddr,
    queue: Arc<AcceptQueue>,
    next_id: u32,
}

impl Listener {
    /// Listens at an address; port 0 selects a free port.
    ///
    /// # Errors
    /// If the settings are invalid, or the address cannot be bound.
    pub fn bind(local: impl ToSocketAddrs, settings: &Settings) -> Result<Listener, Error> {
        settings.check()?;
        let local = local.to_socket_addrs()?.next().ok_or(std::io::ErrorKind::AddrNotAvailable);
        Listener::start(bind(local.map_err(std::io::Error::from)?, settings.udp_buffer)?, settings)
    }

    /// Listens on a bound UDP socket, whose buffer sizes are kept.
    ///
    /// # Errors
    /// If the settings are invalid.
    pub fn from_udp_socket(udp: UdpSocket, settings: &Settings) -> Result<Listener, Error> {
        settings.check()?;
        Listener::start(adopt(udp)?, settings)
    }

    fn start(
        (udp, state): (UdpSocket, UdpSocketState),
        settings: &Settings,
    ) -> Result<Listener, Error> {
        let local = udp.local_addr()?;
        let (driver, wake_rx) = DriverHandle::new(Clock::start())?;
        let (driver, queue) = (Arc::new(driver), Arc::new(AcceptQueue::default()));
        let mut key = [0; 16];
        getrandom::fill(&mut key).map_err(|error| Error::Io(error.into()))?;
        let listener = ListenerState {
            protocol: Protocol::new(settings.options.clone(), settings.mode, key),
            settings: settings.clone(),
            local,
            queue: queue.clone(),
            next_id: random()?,
        };
        Driver::new((udp, state), (driver.clone(), wake_rx), Some(listener)).start()?;
        Ok(Listener { local, driver, queue })
    }

    /// The local address.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Accepts the next connection. Without `timeout`, it waits without limit.
    ///
    /// # Errors
    /// [`Error::TimedOut`] if none arrives within `timeout`, [`Error::ListenerClosed`] once it is closed.
    pub fn accept(&self, timeout: Option<Duration>) -> Result<Socket, Error> {
        let deadline = deadline(timeout);
        let mut waiting = lock(&self.queue.waiting);
        loop {
            if let Some(shared) = waiting.connections.pop_front() {
                return Ok(Socket::from_shared(shared));
            }
            if waiting.closed {
                return Err(Error::ListenerClosed);
            }
            let in_time;
            (waiting, in_time) = wait(&self.queue.arrived, waiting, deadline);
            if !in_time {
                return Err(Error::TimedOut);
            }
        }
    }

    /// Stops listening, and closes connections that were not accepted; accepted ones stay open.
    pub fn close(&self) {
        let left = {
            let mut waiting = lock(&self.queue.waiting);
            waiting.closed = true;
            std::mem::take(&mut waiting.connections)
        };
        self.queue.arrived.notify_all();
        self.driver.close_listener();
        left.into_iter().map(Socket::from_shared).for_each(drop);
    }

    /// Accepts a waiting connection. If there is none, `waker` is woken when one arrives.
    #[cfg(feature = "tokio")]
    pub(crate) fn poll_accept(&self, waker: &Waker) -> Option<Socket> {
        let mut waiting = lock(&self.queue.waiting);
        let next = waiting.connections.pop_front().map(Socket::from_shared);
        if next.is_none() {
            waiting.tasks.add(waker);
        }
        next
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.close();
    }
}

impl ListenerState {
    /// Handles a handshake to socket id 0, and the Noise message that follows it. Returns the response.
    pub(super) fn handle_handshake(
        &mut self,
        now: Time,
        (client, message): (&Handshake, &[u8]),
        from: SocketAddr,
        sockets: &mut SocketTable,
        driver: &Arc<DriverHandle>,
    ) -> Option<Handshake> {
        match self.protocol.handle(now, &address(from), client) {
            ListenerAction::Ignore => None,
            ListenerAction::Reply(reply) => Some(reply),
            ListenerAction::Accept => self.accept(now, (client, message), from, sockets, driver),
        }
    }

    /// Creates the connection of a client with a valid cookie and, if there is one, the key; or passes a
    /// repeated handshake to it. Clients without the key cost no state, so they block no others.
    fn accept(
        &mut self,
        now: Time,
        (client, message): (&Handshake, &[u8]),
        from: SocketAddr,
        sockets: &mut SocketTable,
        driver: &Arc<DriverHandle>,
    ) -> Option<Handshake> {
        let key: Client = (from, client.socket_id, client.isn.get());
        if let Some(shared) = sockets.of_client(&key) {
            shared.lock().engine.handle(now, &Packet::Handshake(*client));
            sockets.schedule_now(shared.id);
            return None;
        }
        let Some(crypto) = CryptoState::accept(self.settings.key.as_ref(), client, message) else {
            // UDT4's clients know the other kind of rejection only.
            let is_plain = message.is_empty();
            let protocol = &self.protocol;
            return Some(if is_plain {
                protocol.refuse(client)
            } else {
                protocol.refuse_key(client)
            });
        };
        if lock(&self.queue.waiting).connections.len() >= self.settings.backlog {
            return Some(self.protocol.refuse(client));
        }
        let id = sockets.free_id(self.next_id);
        self.next_id = id.wrapping_sub(1);
        let Ok(config) = self.settings.config(now, id, from.ip()) else {
            return Some(self.protocol.refuse(client));
        };
        let engine = Connection::accept(config, client, now);
        let (ends, settings) = ((id, self.local, from), &self.settings);
        let shared = SharedConnection::new(ends, driver.clone(), engine, crypto, settings);
        let shared = Arc::new(shared);
        sockets.insert(shared.clone(), Some(key));
        self.queue.push(shared);
        None
    }
}

impl AcceptQueue {
    /// Adds a connection; closes it if the listener is closed, as nobody would accept it.
    fn push(&self, shared: Arc<SharedConnection>) {
        let mut waiting = lock(&self.waiting);
        if waiting.closed {
            drop(waiting);
            return drop(Socket::from_shared(shared));
        }
        waiting.connections.push_back(shared);
        waiting.tasks.wake();
        self.arrived.notify_one();
    }
}

/// The address as bytes, as input of cookies.
fn address(from: SocketAddr) -> [u8; 18] {
    let mut bytes = [0; 18];
    match from.ip() {
        IpAddr::V4(ip) => bytes[..4].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => bytes[..16].copy_from_slice(&ip.octets()),
    }
    bytes[16..].copy_from_slice(&from.port().to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::CloseReason;
    use crate::handshake::Role;
    use crate::seq::Seq;

    #[test]
    fn a_connection_that_comes_after_its_listener_is_closed() -> Result<(), Error> {
        let settings = Settings::default();
        let listener = Listener::bind("127.0.0.1:0", &settings)?;
        let (queue, driver, local) =
            (listener.queue.clone(), listener.driver.clone(), listener.local_addr());
        drop(listener);
        let config = settings.config(Time::ZERO, 1, local.ip())?;
        let engine = Connection::open(config, Role::Rendezvous, Seq::new(1), Time::ZERO);
        let (ends, crypto) = ((1, local, local), CryptoState::new(None));
        let shared = Arc::new(SharedConnection::new(ends, driver, engine, crypto, &settings));
        queue.push(shared.clone());
        assert_eq!(shared.lock().engine.close_reason(), Some(CloseReason::Closed));
        assert!(lock(&queue.waiting).connections.is_empty());
        Ok(())
    }
}
