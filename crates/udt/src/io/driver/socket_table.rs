//! The connections of a driver by socket id, and closed ones in TIME_WAIT.

use crate::codec::Datagram;
use crate::io::batch::{SendBatch, send_one};
use crate::io::shared::SharedConnection;
use crate::packet::Packet;
use dumbbell_units::{Span, Time};
use quinn_udp::UdpSocketState;
use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

/// How long a closed connection responds to packets with a shutdown, and the minimum interval.
const TIME_WAIT: Span = Span::from_secs(10);
const MIN_SHUTDOWN_INTERVAL: Span = Span::from_millis(10);
/// How long the driver keeps running, and its port bound, for closed connections alone.
const LINGER: Span = Span::from_millis(300);

/// Identifies a client's connection: address, socket id, initial sequence number.
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
    /// Time of the next poll.
    due: Time,
}

/// A closed connection (TIME_WAIT).
struct Closed {
    shared: Arc<SharedConnection>,
    closed_at: Time,
    last_shutdown: Time,
}

impl SocketTable {
    /// Whether the driver may end.
    pub(in crate::io) fn is_idle(&self, now: Time) -> bool {
        self.open.is_empty()
            && self.closed.values().all(|closed| now.since(closed.closed_at) >= LINGER)
    }

    /// The first unused socket id from `from` on.
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

    /// The connection of a client.
    pub(in crate::io) fn of_client(&self, client: &Client) -> Option<Arc<SharedConnection>> {
        let entry = self.open.get(self.clients.get(client)?)?;
        Some(entry.shared.clone())
    }

    /// The connection with this socket id and peer address.
    pub(super) fn get(&self, socket: u32, from: SocketAddr) -> Option<Arc<SharedConnection>> {
        let entry = self.open.get(&socket).filter(|entry| entry.shared.peer == from)?;
        Some(entry.shared.clone())
    }

    /// The rendezvous connection with a peer, whose first packets go to socket id 0.
    pub(super) fn rendezvous_with(&self, from: SocketAddr) -> Option<Arc<SharedConnection>> {
        let meets = |entry: &&Entry| entry.client.is_none() && entry.shared.peer == from;
        self.open.values().find(meets).map(|entry| entry.shared.clone())
    }

    /// Schedules a connection for an immediate poll.
    pub(in crate::io) fn schedule_now(&mut self, socket: u32) {
        self.schedule(socket, Time::ZERO);
    }

    pub(super) fn schedule(&mut self, socket: u32, next: Time) {
        if let Some(entry) = self.open.get_mut(&socket) {
            entry.due = next;
        }
    }

    /// The connections that are due.
    pub(super) fn due(&self, now: Time) -> Vec<Arc<SharedConnection>> {
        let due = self.open.values().filter(|entry| entry.due <= now);
        due.map(|entry| entry.shared.clone()).collect()
    }

    /// Time of the next poll or of the next expiry of a closed connection.
    pub(super) fn next_due(&self) -> Time {
        let time_wait = if self.open.is_empty() { LINGER } else { TIME_WAIT };
        let expiries = self.closed.values().map(|closed| closed.closed_at + time_wait);
        self.open.values().map(|entry| entry.due).chain(expiries).min().unwrap_or(Time::MAX)
    }

    /// Removes a connection.
    pub(in crate::io) fn remove(&mut self, socket: u32) -> Option<Arc<SharedConnection>> {
        let entry = self.open.remove(&socket)?;
        entry.client.and_then(|client| self.clients.remove(&client));
        Some(entry.shared)
    }

    /// Moves a connection to TIME_WAIT.
    pub(super) fn close(&mut self, socket: u32, now: Time) {
        let Some(shared) = self.remove(socket) else { return };
        self.closed.insert(socket, Closed { shared, closed_at: now, last_shutdown: Time::ZERO });
    }

    /// Removes closed connections whose TIME_WAIT has passed.
    pub(super) fn expire_closed(&mut self, now: Time) {
        if !self.closed.is_empty() {
            self.closed.retain(|_, closed| now.since(closed.closed_at) < TIME_WAIT);
        }
    }

    /// Responds to a packet for a closed connection with a shutdown. The first shutdown is sent once
    /// only; a peer that misses it would wait for its idle timeout.
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
        // A packet that cannot be sent counts as lost.
        let _ = sealed.send(udp, udp_state);
    }
}
