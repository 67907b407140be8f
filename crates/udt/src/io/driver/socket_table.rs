//! The connections of a driver by socket id, and closed ones in TIME_WAIT.

use crate::codec::Datagram;
use crate::connection::CloseReason;
use crate::io::batch::{SendBatch, send_one};
use crate::io::crypto::Decrypted;
use crate::io::shared::{SharedConnection, SharedState};
use crate::packet::Packet;
use dumbbell_units::{Span, Time};
use quinn_udp::UdpSocketState;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

/// How long a closed connection responds to packets with a shutdown, and the minimum interval.
const TIME_WAIT: Span = Span::from_secs(10);
/// Maximum number of closed connections that do so.
const MAX_CLOSED: usize = 4096;
const MIN_SHUTDOWN_INTERVAL: Span = Span::from_millis(10);
/// How often a shutdown is repeated that the peer does not confirm by its own, as UDT4's peers never do,
/// and the maximum interval.
const SHUTDOWN_REPEATS: u32 = 4;
const MAX_SHUTDOWN_INTERVAL: Span = Span::from_millis(250);
/// How long the driver keeps running, and its port bound, for closed connections alone.
const LINGER: Span = Span::from_millis(300);

/// Identifies a client's connection: address, socket id, initial sequence number.
pub(in crate::io) type Client = (SocketAddr, u32, u32);

/// The connections of a driver.
#[derive(Default)]
pub(in crate::io) struct SocketTable {
    open: HashMap<u32, Entry>,
    /// Open connections by the time of their next poll.
    schedule: BTreeSet<(Time, u32)>,
    clients: HashMap<Client, u32>,
    /// Rendezvous and client connections by peer.
    initiated: HashMap<SocketAddr, u32>,
    closed: HashMap<u32, Closed>,
    /// Closed connections in the order of closing.
    closing_order: VecDeque<(Time, u32)>,
    /// Closed connections by the time of the next repetition of their shutdown.
    repeats: BTreeSet<(Time, u32)>,
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
    last_shutdown: Time,
    /// Remaining repetitions of the shutdown, and the time of the next one.
    repeats: u32,
    repeat_at: Time,
    interval: Span,
}

impl SocketTable {
    /// Whether the driver may end.
    pub(in crate::io) fn is_idle(&self, now: Time) -> bool {
        self.open.is_empty()
            && self.repeats.is_empty()
            && self.closing_order.back().is_none_or(|&(closed_at, _)| now >= closed_at + LINGER)
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
        match client {
            Some(client) => self.clients.insert(client, shared.id),
            None => self.initiated.insert(shared.peer, shared.id),
        };
        self.schedule.insert((Time::ZERO, shared.id));
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
        self.get(*self.initiated.get(&from)?, from)
    }

    /// Schedules a connection for an immediate poll.
    pub(in crate::io) fn schedule_now(&mut self, socket: u32) {
        self.schedule(socket, Time::ZERO);
    }

    pub(super) fn schedule(&mut self, socket: u32, next: Time) {
        let Some(entry) = self.open.get_mut(&socket) else { return };
        if entry.due != next {
            self.schedule.remove(&(entry.due, socket));
            self.schedule.insert((next, socket));
            entry.due = next;
        }
    }

    /// Appends the due connections to `due`, the longest overdue first.
    pub(super) fn collect_due(&self, now: Time, due: &mut Vec<Arc<SharedConnection>>) {
        let scheduled = self.schedule.range(..=(now, u32::MAX));
        due.extend(scheduled.filter_map(|(_, id)| self.open.get(id)).map(|e| e.shared.clone()));
    }

    /// Time of the next poll or of the next expiry of a closed connection. `has_listener`: the driver
    /// does not end with its last connection.
    pub(super) fn next_due(&self, has_listener: bool) -> Time {
        let poll = self.schedule.first().map_or(Time::MAX, |&(due, _)| due);
        let closed = if self.open.is_empty() && !has_listener {
            self.closing_order.back().map(|&(closed_at, _)| closed_at + LINGER)
        } else {
            self.closing_order.front().map(|&(closed_at, _)| closed_at + TIME_WAIT)
        };
        let repeat = self.repeats.first().map_or(Time::MAX, |&(at, _)| at);
        poll.min(closed.unwrap_or(Time::MAX)).min(repeat)
    }

    /// Removes a connection.
    pub(in crate::io) fn remove(&mut self, socket: u32) -> Option<Arc<SharedConnection>> {
        let entry = self.open.remove(&socket)?;
        self.schedule.remove(&(entry.due, socket));
        match entry.client {
            Some(client) => self.clients.remove(&client),
            None => self.initiated.remove(&entry.shared.peer),
        };
        Some(entry.shared)
    }

    /// Moves a connection to TIME_WAIT. The shutdown of this end is repeated; one of the peer is confirmed.
    pub(super) fn close(&mut self, socket: u32, now: Time, out: Udp<'_>) {
        let Some(shared) = self.remove(socket) else { return };
        let mut state = shared.lock();
        let srtt = state.engine.sender_stats().srtt.unwrap_or(MAX_SHUTDOWN_INTERVAL);
        let interval = (srtt + srtt / 2).max(MIN_SHUTDOWN_INTERVAL).min(MAX_SHUTDOWN_INTERVAL);
        let mut closed = Closed {
            shared: shared.clone(),
            last_shutdown: Time::ZERO,
            repeats: 0,
            repeat_at: now + interval,
            interval,
        };
        match state.engine.close_reason() {
            Some(CloseReason::Closed) if state.engine.destination() != 0 => {
                closed.repeats = SHUTDOWN_REPEATS;
                self.repeats.insert((closed.repeat_at, socket));
            }
            Some(CloseReason::PeerClosed) => {
                closed.last_shutdown = now;
                send_shutdown(&mut state, shared.peer, out);
                shared.end_parting(&mut state);
            }
            _ => shared.end_parting(&mut state),
        }
        state.end();
        drop(state);
        self.closed.insert(socket, closed);
        self.closing_order.push_back((now, socket));
        if self.closed.len() > MAX_CLOSED {
            self.forget_first();
        }
    }

    /// Repeats the shutdowns that are due.
    pub(super) fn repeat_shutdowns(&mut self, now: Time, out: Udp<'_>) {
        while let Some(&(at, socket)) = self.repeats.first()
            && at <= now
        {
            self.repeats.remove(&(at, socket));
            let Some(closed) = self.closed.get_mut(&socket) else { continue };
            let mut state = closed.shared.lock();
            if closed.repeats == 0 {
                closed.shared.end_parting(&mut state);
                continue;
            }
            closed.repeats -= 1;
            closed.repeat_at = now + closed.interval;
            self.repeats.insert((closed.repeat_at, socket));
            send_shutdown(&mut state, closed.shared.peer, out);
        }
    }

    /// Removes closed connections whose TIME_WAIT has passed.
    pub(super) fn expire_closed(&mut self, now: Time) {
        while let Some(&(closed_at, _)) = self.closing_order.front()
            && now >= closed_at + TIME_WAIT
        {
            self.forget_first();
        }
    }

    /// Forgets the connection that was closed first.
    fn forget_first(&mut self) {
        let Some((_, socket)) = self.closing_order.pop_front() else { return };
        let Some(closed) = self.closed.remove(&socket) else { return };
        if self.repeats.remove(&(closed.repeat_at, socket)) {
            closed.shared.end_parting(&mut closed.shared.lock());
        }
    }

    /// Handles a packet for a closed connection. The peer's shutdown confirms the one of this end, or is
    /// confirmed if the peer closed the connection. Anything else shows that the peer missed the shutdown,
    /// for which it would wait until its idle timeout.
    pub(super) fn on_packet_for_closed(
        &mut self,
        now: Time,
        socket: u32,
        from: SocketAddr,
        datagram: Datagram<'_>,
        out: Udp<'_>,
    ) {
        let Some(closed) = self.closed.get_mut(&socket).filter(|closed| closed.shared.peer == from)
        else {
            return;
        };
        let mut state = closed.shared.lock();
        let SharedState { engine, crypto, .. } = &mut *state;
        let (is_encrypted, mut scratch) = (crypto.is_encrypted(), Vec::new());
        let is_shutdown = match crypto.decrypt(engine, datagram, &mut scratch) {
            Decrypted::Packets(datagram) => datagram.packet == Packet::Shutdown,
            Decrypted::Discard if is_encrypted => false,
            Decrypted::Discard => return,
        };
        if is_shutdown && engine.close_reason() == Some(CloseReason::Closed) {
            self.repeats.remove(&(closed.repeat_at, socket));
            return closed.shared.end_parting(&mut state);
        }
        if now.since(closed.last_shutdown) >= MIN_SHUTDOWN_INTERVAL {
            closed.last_shutdown = now;
            send_shutdown(&mut state, from, out);
        }
    }
}

/// The UDP socket of a driver.
pub(super) type Udp<'a> = (&'a UdpSocket, &'a UdpSocketState);

/// Sends the shutdown of a connection. A packet that cannot be sent counts as lost.
fn send_shutdown(state: &mut SharedState, to: SocketAddr, (udp, udp_state): Udp<'_>) {
    let peer = state.engine.destination();
    if state.crypto.allows_plaintext(&Packet::Shutdown) {
        return send_one(udp, udp_state, (&Packet::Shutdown, peer, to));
    }
    let mut plain = Vec::new();
    crate::codec::encode(&Packet::Shutdown, peer, to.ip(), &[], &mut plain);
    let mut encrypted = SendBatch::new();
    encrypted.begin(to, 1);
    encrypted.push_control(false, |out| state.crypto.encrypt_control(&plain, peer, to.ip(), out));
    let _ = encrypted.send(udp, udp_state);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::Role;
    use crate::io::clock::Clock;
    use crate::io::crypto::CryptoState;
    use crate::io::settings::Settings;
    use crate::io::shared::DriverHandle;
    use crate::{Connection, Seq};
    use std::net::Ipv4Addr;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    /// A table with connections of the given socket ids.
    fn table(ids: &[u32]) -> SocketTable {
        let driver = Arc::new(DriverHandle::new(Clock::start()).expect("there are sockets").0);
        let (mut table, settings) = (SocketTable::default(), Settings::default());
        for &id in ids {
            let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
            let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1000 + id as u16));
            let config = settings.config(Time::ZERO, id, peer.ip()).expect("they are valid");
            let engine = Connection::open(config, Role::Rendezvous, Seq::new(1), Time::ZERO);
            let (ends, crypto) = ((id, local, peer), CryptoState::new(None));
            let shared = SharedConnection::new(ends, driver.clone(), engine, crypto, &settings);
            table.insert(Arc::new(shared), None);
        }
        table
    }

    fn due(table: &SocketTable, ms: u64) -> Vec<u32> {
        let mut due = Vec::new();
        table.collect_due(at(ms), &mut due);
        due.iter().map(|shared| shared.id).collect()
    }

    fn close(table: &mut SocketTable, id: u32, ms: u64) {
        let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
        let state = UdpSocketState::new((&udp).into()).expect("it is a socket");
        table.close(id, at(ms), (&udp, &state));
    }

    #[test]
    fn connections_are_due_in_the_order_of_their_schedule() {
        let mut table = table(&[1, 2, 3]);
        assert_eq!(due(&table, 0), [1, 2, 3]);
        for (id, ms) in [(1, 30), (2, 20), (3, 10), (3, 40)] {
            table.schedule(id, at(ms));
        }
        assert_eq!((due(&table, 19), table.next_due(true)), (vec![], at(20)));
        assert_eq!(due(&table, 30), [2, 1]);
        table.schedule_now(3);
        table.remove(2);
        assert_eq!(due(&table, 30), [3, 1]);
        table.schedule(2, at(1));
        assert_eq!(due(&table, 30), [3, 1], "2 is removed");
    }

    #[test]
    fn a_rendezvous_is_found_by_its_peer_until_it_is_closed() {
        let mut table = table(&[1, 2]);
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 1002));
        assert_eq!(table.rendezvous_with(peer).map(|shared| shared.id), Some(2));
        close(&mut table, 2, 0);
        assert!(table.rendezvous_with(peer).is_none());
    }

    #[test]
    fn a_driver_without_a_listener_ends_after_its_last_linger() {
        let mut table = table(&[1, 2]);
        close(&mut table, 1, 0);
        close(&mut table, 2, 100);
        assert_eq!(table.next_due(false), at(100) + LINGER);
        assert!(!table.is_idle(at(0) + LINGER) && table.is_idle(at(100) + LINGER));
    }

    #[test]
    fn the_number_of_closed_connections_is_limited() {
        let ids: Vec<u32> = (1..=MAX_CLOSED as u32 + 2).collect();
        let mut table = table(&ids);
        ids.iter().for_each(|&id| close(&mut table, id, 0));
        assert_eq!((table.closed.len(), table.closing_order.len()), (MAX_CLOSED, MAX_CLOSED));
        assert_eq!((table.free_id(1), table.free_id(3)), (1, MAX_CLOSED as u32 + 3));
    }

    #[test]
    fn a_listener_sleeps_until_the_time_wait_of_a_closed_connection_ends() {
        let mut table = table(&[1, 2]);
        close(&mut table, 1, 0);
        close(&mut table, 2, 100);
        assert_eq!(table.next_due(true), at(0) + TIME_WAIT);
        table.expire_closed(at(0) + TIME_WAIT);
        assert_eq!(table.next_due(true), at(100) + TIME_WAIT);
        assert_eq!((table.free_id(1), table.free_id(2)), (1, 3));
    }
}
