//! The driver: the thread that reads and writes a UDP socket for its connections.
//!
//! Its event loop passes received packets to the engines, sends the engines' packets, and sleeps until
//! a packet arrives, an application wakes it, or the next timer is due. Timers have the kernel's
//! precision. Packets that are overdue after a sleep, because their spacing is below that precision,
//! are sent as one batch.

pub(super) mod socket_table;

use super::batch::{GroBatch, ReceiveBatch, SendBatch, Space, Unsent, send_one};
use super::clock::span;
use super::crypto::{Decrypted, rendezvous_prologue};
use super::listener::ListenerState;
use super::shared::{DriverHandle, Failure, SharedConnection, SharedState};
use crate::codec;
use crate::connection::Arrival;
use crate::packet::{HEADER, Packet};
use dumbbell_net::Endpoint;
use dumbbell_units::{Span, Time};
use quinn_udp::UdpSocketState;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket_table::SocketTable;
use std::io::{self, Read};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Maximum number of read calls before the next transmission.
const MAX_READS: usize = 4;
/// Maximum sleep, after which the driver checks whether it is still needed.
const MAX_SLEEP: Span = Span::from_secs(1);

/// The driver of a UDP socket.
pub(super) struct Driver {
    udp: UdpSocket,
    state: UdpSocketState,
    handle: Arc<DriverHandle>,
    wake_rx: UnixStream,
    sockets: SocketTable,
    listener: Option<ListenerState>,
    outgoing: SendBatch,
    incoming: ReceiveBatch,
    /// Buffer of packets before encryption and after decryption.
    scratch: Vec<u8>,
    dirty: Vec<u32>,
    due: Vec<Arc<SharedConnection>>,
    /// Connections that have ended since the last transmission.
    closing: Vec<u32>,
    /// The connection of `outgoing`, if the kernel's send buffer was full.
    blocked: Option<Arc<SharedConnection>>,
}

/// Binds a UDP socket to `local` and requests buffers of `buffer` bytes.
pub(super) fn bind(local: SocketAddr, buffer: usize) -> io::Result<(UdpSocket, UdpSocketState)> {
    let udp = UdpSocket::bind(local)?;
    let (udp, state) = adopt(udp)?;
    // The kernel may grant less.
    let _ = state.set_recv_buffer_size((&udp).into(), buffer);
    let _ = state.set_send_buffer_size((&udp).into(), buffer);
    Ok((udp, state))
}

/// Prepares a bound UDP socket.
pub(super) fn adopt(udp: UdpSocket) -> io::Result<(UdpSocket, UdpSocketState)> {
    let state = UdpSocketState::new((&udp).into())?;
    Ok((udp, state))
}

impl Driver {
    pub(super) fn new(
        (udp, state): (UdpSocket, UdpSocketState),
        (handle, wake_rx): (Arc<DriverHandle>, UnixStream),
        listener: Option<ListenerState>,
    ) -> Driver {
        Driver {
            udp,
            state,
            handle,
            wake_rx,
            sockets: SocketTable::default(),
            listener,
            outgoing: SendBatch::new(),
            incoming: ReceiveBatch::new(),
            scratch: Vec::new(),
            dirty: Vec::new(),
            due: Vec::new(),
            closing: Vec::new(),
            blocked: None,
        }
    }

    /// Adds a connection opened by this end.
    pub(super) fn add(&mut self, shared: Arc<SharedConnection>) {
        self.sockets.insert(shared, None);
    }

    /// Starts the thread, which runs as long as there are connections or a listener.
    pub(super) fn start(mut self) -> io::Result<()> {
        let thread = std::thread::Builder::new().name("udt".to_owned());
        thread.spawn(move || {
            // Timer precision of 1 us; a failure is harmless.
            #[cfg(target_os = "linux")]
            let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1_000));
            while self.run_once() {}
        })?;
        Ok(())
    }

    /// Runs the event loop once; `false` if no connection or listener is left.
    fn run_once(&mut self) -> bool {
        if self.handle.is_listener_closed() {
            self.listener = None;
        }
        if self.listener.is_none() && self.sockets.is_idle(self.handle.clock.now()) {
            return false;
        }
        let more = self.receive();
        self.handle.take_dirty(&mut self.dirty);
        for socket in self.dirty.drain(..) {
            self.sockets.schedule_now(socket);
        }
        let next = self.transmit();
        if !more {
            self.sleep(next);
        }
        true
    }

    /// Handles received packets. Returns whether there may be more.
    fn receive(&mut self) -> bool {
        for _ in 0..MAX_READS {
            let Ok(count) = self.incoming.receive(&self.udp, &self.state) else { return false };
            let (now, wall) = self.handle.clock.now_and_wall();
            for batch in self.incoming.batches(count) {
                // A timestamp in the future means that the kernel's clock was adjusted.
                let age =
                    batch.meta.timestamp.map_or(Span::ZERO, |at| span(wall.saturating_sub(at)));
                let at = now - age;
                let dispatcher = Dispatcher {
                    sockets: &mut self.sockets,
                    listener: self.listener.as_mut(),
                    udp: &self.udp,
                    state: &self.state,
                    handle: &self.handle,
                    scratch: &mut self.scratch,
                };
                dispatcher.dispatch(now, at, &batch);
            }
        }
        true
    }

    /// Sends the packets that are due. Returns the time of the next ones.
    fn transmit(&mut self) -> Time {
        let now = self.handle.clock.now();
        if let Some(shared) = self.blocked.take() {
            match self.outgoing.send(&self.udp, &self.state) {
                Ok(()) => {}
                Err(Unsent::Blocked) => {
                    self.blocked = Some(shared);
                    return Time::MAX;
                }
                Err(Unsent::TooLong(bytes)) => {
                    fail(&shared, Failure::TooLong(bytes), now);
                    self.sockets.schedule_now(shared.id);
                }
            }
        }
        self.due.clear();
        self.sockets.collect_due(now, &mut self.due);
        for shared in &self.due {
            shared.clear_dirty();
            let mut state = shared.lock();
            // Fewer once the kernel has refused a batch.
            self.outgoing.begin(shared.peer, self.state.max_gso_segments());
            let space = collect_packets(
                &mut state,
                now,
                shared.peer,
                &mut self.outgoing,
                &mut self.scratch,
            );
            let agreed = state.crypto.is_ready() || !state.engine.is_open();
            if now >= state.ready_deadline && !agreed && state.failed.is_none() {
                state.failed = Some(Failure::Key);
            }
            shared.notify_waiters(&mut state, now);
            let next = if space == Space::Full { now } else { state.next_timeout() };
            state.next_scheduled = next;
            let over = state.error().is_some();
            drop(state);
            self.sockets.schedule(shared.id, next);
            if over {
                self.closing.push(shared.id);
            }
            match self.outgoing.send(&self.udp, &self.state) {
                Ok(()) => {}
                Err(Unsent::Blocked) => {
                    self.blocked = Some(shared.clone());
                    return Time::MAX;
                }
                Err(Unsent::TooLong(bytes)) => {
                    fail(shared, Failure::TooLong(bytes), now);
                    self.sockets.schedule_now(shared.id);
                }
            }
        }
        self.due.clear();
        // After the batches, so that the peer gets a connection's last packets first.
        for socket in self.closing.drain(..) {
            self.sockets.close(socket, now, (&self.udp, &self.state));
        }
        self.sockets.repeat_shutdowns(now, (&self.udp, &self.state));
        self.sockets.expire_closed(now);
        self.sockets.next_due(self.listener.is_some())
    }

    /// Sleeps until `next`, a packet arrives or an application wakes the driver.
    fn sleep(&mut self, next: Time) {
        let left = next.since(self.handle.clock.now()).min(MAX_SLEEP);
        if left.is_zero() || !self.handle.prepare_sleep(self.listener.is_some()) {
            return;
        }
        let write = if self.blocked.is_some() { PollFlags::OUT } else { PollFlags::empty() };
        let mut wanted = [
            PollFd::new(&self.udp, PollFlags::IN | write),
            PollFd::new(&self.wake_rx, PollFlags::IN),
        ];
        let timeout = Timespec {
            tv_sec: (left.as_nanos() / 1_000_000_000) as _,
            tv_nsec: (left.as_nanos() % 1_000_000_000) as _,
        };
        // An interrupted sleep only ends early.
        let _ = poll(&mut wanted, Some(&timeout));
        let rang = wanted[1].revents().contains(PollFlags::IN);
        self.handle.set_awake();
        if rang {
            let _ = self.wake_rx.read(&mut [0; 64]);
        }
    }
}

/// Lets a connection fail, unless it has already. Its next poll tells the peer.
fn fail(shared: &SharedConnection, why: Failure, now: Time) {
    let mut state = shared.lock();
    state.failed.get_or_insert(why);
    state.engine.close_by(now);
    shared.notify_waiters(&mut state, now);
}

/// Dispatches received packets to connections and the listener.
struct Dispatcher<'a> {
    sockets: &'a mut SocketTable,
    listener: Option<&'a mut ListenerState>,
    udp: &'a UdpSocket,
    state: &'a UdpSocketState,
    handle: &'a Arc<DriverHandle>,
    scratch: &'a mut Vec<u8>,
}

impl Dispatcher<'_> {
    /// Dispatches the packets of a batch, which were received at `at`.
    fn dispatch(mut self, now: Time, at: Time, batch: &GroBatch<'_>) {
        let mut datagrams = batch.datagrams().zip(0..).peekable();
        while let Some(&(bytes, _)) = datagrams.peek() {
            let Some(socket) = codec::destination(bytes) else {
                datagrams.next();
                continue;
            };
            let known = match socket {
                0 => self.sockets.rendezvous_with(batch.from),
                _ => self.sockets.get(socket, batch.from),
            };
            let Some(shared) = known else {
                self.handle_unknown_peer(now, bytes, socket, batch.from);
                datagrams.next();
                continue;
            };
            let mut state = shared.lock();
            while let Some((bytes, gro_index)) =
                datagrams.next_if(|&(bytes, _)| codec::destination(bytes) == Some(socket))
            {
                deliver(&mut state, now, Arrival { at, gro_index }, bytes, self.scratch);
            }
            begin_crypto(&mut state, now, shared.id);
            drop(state);
            self.sockets.schedule_now(shared.id);
        }
    }

    /// Handles a packet for no open connection: a client's handshake, or one for a closed connection.
    #[cold]
    fn handle_unknown_peer(&mut self, now: Time, bytes: &[u8], socket: u32, from: SocketAddr) {
        let Ok(datagram) = codec::decode(bytes) else { return };
        if socket != 0 {
            let out = (self.udp, self.state);
            return self.sockets.on_packet_for_closed(now, socket, from, datagram, out);
        }
        let (Packet::Handshake(client), Some(listener)) =
            (datagram.packet, self.listener.as_deref_mut())
        else {
            return;
        };
        let asked = (&client, datagram.payload);
        if let Some(answer) = listener.handle_handshake(now, asked, from, self.sockets, self.handle)
        {
            let answer = Packet::Handshake(answer);
            send_one(self.udp, self.state, (&answer, client.socket_id, from));
        }
    }
}

/// Starts the Noise handshake of an established rendezvous with a key. Those of clients are part of UDT's.
fn begin_crypto(state: &mut SharedState, now: Time, id: u32) {
    if state.crypto.is_ready() || !state.engine.is_open() {
        return;
    }
    // The initiator is the end with the larger socket id.
    if id > state.engine.destination()
        && let Some(prologue) = rendezvous_prologue(&state.engine)
    {
        state.crypto.begin(now, &prologue);
    }
}

/// Passes a packet to its connection.
fn deliver(
    state: &mut SharedState,
    now: Time,
    arrival: Arrival,
    bytes: &[u8],
    scratch: &mut Vec<u8>,
) {
    let Ok(datagram) = codec::decode(bytes) else { return };
    let SharedState { engine, crypto, .. } = state;
    if let Decrypted::Packets(datagram) = crypto.decrypt(engine, datagram, scratch) {
        for packet in datagram.packets() {
            engine.receive_at(now, arrival, &packet, datagram.payload);
        }
    }
}

/// Collects the packets that a connection sends now; `plain` is a buffer for encryption.
fn collect_packets(
    state: &mut SharedState,
    now: Time,
    peer: SocketAddr,
    out: &mut SendBatch,
    plain: &mut Vec<u8>,
) -> Space {
    let SharedState { engine, crypto, .. } = state;
    let max_length = engine.max_payload() + HEADER as usize;
    if let Some((packet, message)) = crypto.poll(now) {
        let write =
            |out: &mut _| codec::encode(&packet, engine.destination(), peer.ip(), message, out);
        out.push_control(false, write);
    }
    while let Some(packet) = engine.poll(now) {
        let socket = engine.destination();
        let space = match &packet {
            Packet::Data(data) => out.push_data(data.seq.is_pair_first(), |out| {
                crypto.write_data(engine, &packet, data, peer.ip(), out);
            }),
            Packet::Nak(nak)
                if nak.continued
                    && crypto.allows_plaintext(&packet)
                    && out.last_control() + 4 * nak.words().len() <= max_length =>
            {
                out.push_control(true, |out| codec::append_nak(nak, out));
                Space::Available
            }
            Packet::Handshake(own) => {
                let message = crypto.handshake_message(own, engine.role());
                let encode = |out: &mut _| codec::encode(&packet, socket, peer.ip(), message, out);
                out.push_control(false, encode);
                Space::Available
            }
            _ if crypto.allows_plaintext(&packet) => {
                let encode = |out: &mut _| codec::encode(&packet, socket, peer.ip(), &[], out);
                out.push_control(false, encode);
                Space::Available
            }
            _ if crypto.is_ready() => {
                plain.clear();
                codec::encode(&packet, socket, peer.ip(), &[], plain);
                out.push_control(false, |out| {
                    crypto.encrypt_control(plain, socket, peer.ip(), out)
                });
                Space::Available
            }
            // Before the Noise handshake is complete, control packets are dropped.
            _ => Space::Available,
        };
        if space == Space::Full {
            return space;
        }
    }
    Space::Available
}
