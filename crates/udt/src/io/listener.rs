//! Listening for connections.

use super::clock::{Clock, span};
use super::crypto::CryptoState;
use super::driver::socket_table::{Client, SocketTable};
use super::driver::{Driver, adopt, bind};
use super::error::Error;
use super::settings::{Settings, random};
use super::shared::{DriverHandle, SharedConnection, lock, wait};
use super::socket::Socket;
use crate::connection::Connection;
use crate::listener::{Listener as Protocol, ListenerAction};
use crate::packet::{Handshake, Packet};
use dumbbell_net::Endpoint as _;
use dumbbell_units::Time;
use quinn_udp::UdpSocketState;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::{Arc, Condvar, Mutex};
use std::task::Waker;
use std::time::{Duration, Instant};

/// Waits for connections. It and all its connections have one UDP socket.
pub struct Listener {
    local: SocketAddr,
    driver: Arc<DriverHandle>,
    queue: Arc<AcceptQueue>,
}

/// Connections that wait to be accepted.
#[derive(Default)]
pub(super) struct AcceptQueue {
    waiting: Mutex<(VecDeque<Arc<SharedConnection>>, Option<Waker>)>,
    arrived: Condvar,
}

/// The driver's side of a listener.
pub(super) struct ListenerState {
    protocol: Protocol,
    settings: Settings,
    local: SocketAddr,
    queue: Arc<AcceptQueue>,
    next_id: u32,
    /// Connections whose ends do not have a common secret yet.
    handshaking: Vec<Arc<SharedConnection>>,
}

impl Listener {
    /// Listens at an address; a port of 0 is any that is free.
    ///
    /// # Errors
    /// If the settings are not valid, or the address cannot be had.
    pub fn bind(local: impl ToSocketAddrs, settings: &Settings) -> Result<Listener, Error> {
        settings.check()?;
        let local = local.to_socket_addrs()?.next().ok_or(std::io::ErrorKind::AddrNotAvailable);
        Listener::start(bind(local.map_err(std::io::Error::from)?, settings.udp_buffer)?, settings)
    }

    /// Listens at a UDP socket that is bound already, and keeps its buffers.
    ///
    /// # Errors
    /// If the settings are not valid.
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
        let listening = ListenerState {
            protocol: Protocol::new(settings.options.clone(), settings.mode, key),
            settings: settings.clone(),
            local,
            queue: queue.clone(),
            next_id: random()?,
            handshaking: Vec::new(),
        };
        Driver::new((udp, state), (driver.clone(), wake_rx), Some(listening)).start()?;
        Ok(Listener { local, driver: driver, queue })
    }

    /// The address at which it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Waits for the next connection.
    ///
    /// # Errors
    /// If none comes within `timeout`; without it, it waits for ever.
    pub fn accept(&self, timeout: Option<Duration>) -> Result<Socket, Error> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut waiting = lock(&self.queue.waiting);
        loop {
            if let Some(shared) = waiting.0.pop_front() {
                return Ok(Socket::from_shared(shared));
            }
            let timely;
            (waiting, timely) = wait(&self.queue.arrived, waiting, deadline);
            if !timely {
                return Err(Error::TimedOut);
            }
        }
    }

    /// The next connection; without one, `waker` is woken when there is.
    #[cfg(feature = "tokio")]
    pub(crate) fn poll_accept(&self, waker: &Waker) -> Option<Socket> {
        let mut waiting = lock(&self.queue.waiting);
        let next = waiting.0.pop_front().map(Socket::from_shared);
        if next.is_none() {
            waiting.1 = Some(waker.clone());
        }
        next
    }
}

impl Drop for Listener {
    /// Connections that were not accepted are closed.
    fn drop(&mut self) {
        self.driver.close_listener();
        lock(&self.queue.waiting).0.drain(..).map(Socket::from_shared).for_each(drop);
    }
}

impl ListenerState {
    /// A handshake came for no connection; gives what is answered.
    pub(super) fn handle_handshake(
        &mut self,
        now: Time,
        client: &Handshake,
        from: SocketAddr,
        sockets: &mut SocketTable,
        driver: &Arc<DriverHandle>,
    ) -> Option<Handshake> {
        match self.protocol.handle(now, &address(from), client) {
            ListenerAction::Ignore => None,
            ListenerAction::Reply(reply) => Some(reply),
            ListenerAction::Accept => self.accept(now, client, from, sockets, driver),
        }
    }

    /// A client has shown that it has its address, and asks for a connection.
    fn accept(
        &mut self,
        now: Time,
        client: &Handshake,
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
        if !self.make_room(sockets) {
            return Some(self.protocol.refuse(client));
        }
        let id = sockets.free_id(self.next_id);
        self.next_id = id.wrapping_sub(1);
        let Ok(config) = self.settings.config(now, id) else {
            return Some(self.protocol.refuse(client));
        };
        let engine = Connection::accept(config, client, now);
        let crypto = CryptoState::new(self.settings.key.as_ref());
        let ready = crypto.is_ready();
        let ready_deadline = now + span(self.settings.connect_timeout);
        let ends = (id, self.local, from);
        let shared =
            Arc::new(SharedConnection::new(ends, driver.clone(), engine, crypto, ready_deadline));
        sockets.insert(shared.clone(), Some(key));
        if ready {
            self.queue.push(shared)
        } else {
            self.handshaking.push(shared)
        }
        None
    }

    /// Whether one more connection may wait. Strangers who ask and never agree on a secret must not
    /// keep out who has the key: the one that has had the longest time for it gives way.
    fn make_room(&mut self, sockets: &mut SocketTable) -> bool {
        self.promote_ready();
        let accepted = lock(&self.queue.waiting).0.len();
        if accepted + self.handshaking.len() < self.settings.backlog {
            return true;
        }
        let gives_way = !self.handshaking.is_empty();
        if gives_way {
            sockets.remove(self.handshaking.remove(0).id);
        }
        gives_way
    }

    /// Gives connections to the program whose ends have agreed on a secret meanwhile.
    pub(super) fn promote_ready(&mut self) {
        if self.handshaking.is_empty() {
            return;
        }
        let queue = &self.queue;
        self.handshaking.retain(|shared| {
            let state = shared.lock();
            let (ready, over) = (state.is_ready(), state.error().is_some());
            drop(state);
            if ready {
                queue.push(shared.clone());
            }
            !ready && !over
        });
    }
}

impl AcceptQueue {
    fn push(&self, shared: Arc<SharedConnection>) {
        let mut waiting = lock(&self.waiting);
        waiting.0.push_back(shared);
        waiting.1.take().into_iter().for_each(Waker::wake);
        self.arrived.notify_one();
    }
}

/// The address as bytes, for cookies.
fn address(from: SocketAddr) -> [u8; 18] {
    let mut bytes = [0; 18];
    match from.ip() {
        IpAddr::V4(ip) => bytes[..4].copy_from_slice(&ip.octets()),
        IpAddr::V6(ip) => bytes[..16].copy_from_slice(&ip.octets()),
    }
    bytes[16..].copy_from_slice(&from.port().to_be_bytes());
    bytes
}
