//! The connections of a driver, by their socket ids, and what is left of those that have ended.

use crate::codec::Datagram;
use crate::io::batch::{SendBatch, send_one};
use crate::io::shared::SharedConnection;
use crate::packet::Packet;
use dumbbell_units::{Span, Time};
use quinn_udp::UdpSocketState;
use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

/// How long a peer that did not hear of the end is told of it again, and how often at most.
const TIME_WAIT: Span = Span::from_secs(10);
const MIN_SHUTDOWN_INTERVAL: Span = Span::from_millis(10);
/// How long a driver stays for that alone: it holds a port that another may want.
const LINGER: Span = Span::from_millis(300);

/// A client of a listener: its address, its socket id, its initial sequence number.
pub(in crate::io) type Client = (SocketAddr, u32, u32);

/// The connections of a driver.
#[derive(Default)]
pub(in crate::io) struct SocketTable {
    open: HashMap<u32, Entry>,
    clients: HashMap<Client, u32>,
    closed: HashMap<u32, Closed>,
}

struct Entry {
    shared: Arc<SharedConnection>,
    client: Option<Client>,
    /// When to look at it next.
    due: Time,
}

/// A connection that has ended.
struct Closed {
    shared: Arc<SharedConnection>,
    closed_at: Time,
    last_shutdown: Time,
}

impl SocketTable {
    /// Whether nobody is left to be served.
    pub(in crate::io) fn is_idle(&self, now: Time) -> bool {
        self.open.is_empty()
            && self.closed.values().all(|closed| now.since(closed.closed_at) >= LINGER)
    }

    /// A socket id that is not in use, counting on from `from`.
    pub(in crate::io) fn free_id(&self, from: u32) -> u32 {
        let mut id = from & 0x3fff_ffff;
        while id == 0 || self.open.contains_key(&id) || self.closed.contains_key(&id) {
            id = (id + 1) & 0x3fff_ffff;
        }
        id
    }

    pub(in crate::io) fn insert(&mut self, shared: Arc<SharedConnection>, client: Option<Client>) {
        if let Some(client) = client {
            self.clients.insert(client, shared.id);
        }
        self.open.insert(shared.id, Entry { shared, client, due: Time::ZERO });
    }

    /// The connection that a client has already.
    pub(in crate::io) fn of_client(&self, client: &Client) -> Option<Arc<SharedConnection>> {
        let entry = self.open.get(self.clients.get(client)?)?;
        Some(entry.shared.clone())
    }

    /// The connection of that id, if its peer has that address.
    pub(super) fn get(&self, socket: u32, from: SocketAddr) -> Option<Arc<SharedConnection>> {
        let entry = self.open.get(&socket).filter(|entry| entry.shared.peer == from)?;
        Some(entry.shared.clone())
    }

    /// The rendezvous with that address: its first packets know no socket id.
    pub(super) fn rendezvous_with(&self, from: SocketAddr) -> Option<Arc<SharedConnection>> {
        let meets = |entry: &&Entry| entry.client.is_none() && entry.shared.peer == from;
        self.open.values().find(meets).map(|entry| entry.shared.clone())
    }

    /// Has a connection looked at at once.
    pub(in crate::io) fn schedule_now(&mut self, socket: u32) {
        self.schedule(socket, Time::ZERO);
    }

    pub(super) fn schedule(&mut self, socket: u32, next: Time) {
        if let Some(entry) = self.open.get_mut(&socket) {
            entry.due = next;
        }
    }

    /// The connections to be looked at now.
    pub(super) fn due(&self, now: Time) -> Vec<Arc<SharedConnection>> {
        let due = self.open.values().filter(|entry| entry.due <= now);
        due.map(|entry| entry.shared.clone()).collect()
    }

    /// When to look at one next.
    pub(super) fn next_due(&self) -> Time {
        let time_wait = if self.open.is_empty() { LINGER } else { TIME_WAIT };
        let expiries = self.closed.values().map(|closed| closed.closed_at + time_wait);
        self.open.values().map(|entry| entry.due).chain(expiries).min().unwrap_or(Time::MAX)
    }

    /// Forgets a connection.
    pub(in crate::io) fn remove(&mut self, socket: u32) -> Option<Arc<SharedConnection>> {
        let entry = self.open.remove(&socket)?;
        entry.client.and_then(|client| self.clients.remove(&client));
        Some(entry.shared)
    }

    /// A connection has ended.
    pub(super) fn close(&mut self, socket: u32, now: Time) {
        let Some(shared) = self.remove(socket) else { return };
        self.closed.insert(socket, Closed { shared, closed_at: now, last_shutdown: Time::ZERO });
    }

    /// Forgets those that ended long ago.
    pub(super) fn expire_closed(&mut self, now: Time) {
        if !self.closed.is_empty() {
            self.closed.retain(|_, closed| now.since(closed.closed_at) < TIME_WAIT);
        }
    }

    /// A packet came for a connection that has ended: the end is repeated, since it is told of
    /// once only, and without it a peer waits for long.
    pub(super) fn resend_shutdown(
        &mut self,
        now: Time,
        socket: u32,
        from: SocketAddr,
        datagram: &Datagram<'_>,
        (udp, udp_state): (&UdpSocket, &UdpSocketState),
    ) {
        let Some(closed) = self.closed.get_mut(&socket).filter(|closed| closed.shared.peer == from)
        else {
            return;
        };
        if datagram.packet == Packet::Shutdown
            || now.since(closed.last_shutdown) < MIN_SHUTDOWN_INTERVAL
        {
            return;
        }
        closed.last_shutdown = now;
        let mut state = closed.shared.lock();
        let peer = state.engine.destination();
        if state.crypto.allows_plaintext(&Packet::Shutdown) {
            return send_one(udp, udp_state, (&Packet::Shutdown, peer, from));
        }
        let mut plain = Vec::new();
        crate::codec::encode(&Packet::Shutdown, peer, from.ip(), &[], &mut plain);
        let mut sealed = SendBatch::new(1);
        sealed.begin(from);
        sealed
            .push_control(false, |out| state.crypto.encrypt_control(&plain, peer, from.ip(), out));
        // What does not leave is as good as lost on the way.
        let _ = sealed.send(udp, udp_state);
    }
}
