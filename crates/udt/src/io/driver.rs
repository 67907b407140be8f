//! The thread that reads and writes a UDP socket for its connections.
//!
//! It goes around: what has arrived is given to the engines, what the engines have to say leaves,
//! and then it sleeps until something arrives, a program has done something, or the next of the
//! engines' timers is due. Timers are as exact as the kernel's; of what is late by then, as when
//! packets are nearer to each other than one can sleep, the engine sends as much as is due, and
//! that leaves as one piece.

pub(super) mod sockets;

use super::batch::{Arrivals, Departures, Piece, Room, send_one};
use super::clock::span;
use super::listener::Listening;
use super::secure::Opened;
use super::shared::{Failure, Hub, Shared, State};
use crate::codec;
use crate::connection::Arrival;
use crate::packet::{HEADER, Packet};
use dumbbell_net::Endpoint;
use dumbbell_units::{Span, Time};
use quinn_udp::UdpSocketState;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sockets::Sockets;
use std::io::{self, Read};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Calls that read before something is written again.
const READS: usize = 4;
/// A driver that has nothing to do looks around this often, to see whether it is needed.
const LONGEST_SLEEP: Span = Span::from_secs(1);

/// A driver.
pub(super) struct Driver {
    udp: UdpSocket,
    state: UdpSocketState,
    hub: Arc<Hub>,
    ear: UnixStream,
    sockets: Sockets,
    listening: Option<Listening>,
    departures: Departures,
    arrivals: Arrivals,
    /// What was sealed.
    scratch: Vec<u8>,
    poked: Vec<u32>,
    /// The kernel takes no more packets now.
    blocked: bool,
}

/// A UDP socket as drivers want it, bound to `local`.
pub(super) fn bind(local: SocketAddr, buffer: usize) -> io::Result<(UdpSocket, UdpSocketState)> {
    let udp = UdpSocket::bind(local)?;
    let (udp, state) = adopt(udp)?;
    // The kernel may allow less.
    let _ = state.set_recv_buffer_size((&udp).into(), buffer);
    let _ = state.set_send_buffer_size((&udp).into(), buffer);
    Ok((udp, state))
}

/// A UDP socket that someone else has bound.
pub(super) fn adopt(udp: UdpSocket) -> io::Result<(UdpSocket, UdpSocketState)> {
    let state = UdpSocketState::new((&udp).into())?;
    Ok((udp, state))
}

impl Driver {
    pub(super) fn new(
        (udp, state): (UdpSocket, UdpSocketState),
        (hub, ear): (Arc<Hub>, UnixStream),
        listening: Option<Listening>,
    ) -> Driver {
        let departures = Departures::new(state.max_gso_segments());
        Driver {
            udp,
            state,
            hub,
            ear,
            sockets: Sockets::default(),
            listening,
            departures,
            arrivals: Arrivals::new(),
            scratch: Vec::new(),
            poked: Vec::new(),
            blocked: false,
        }
    }

    /// Adds a connection that this end opens.
    pub(super) fn add(&mut self, shared: Arc<Shared>) {
        self.sockets.insert(shared, None);
    }

    /// Drives, in a thread of its own, as long as there are connections or a listener.
    pub(super) fn start(mut self) -> io::Result<()> {
        let thread = std::thread::Builder::new().name("udt".to_owned());
        thread.spawn(move || {
            // Timers to the microsecond; a kernel that does not know that is as exact as it is.
            #[cfg(target_os = "linux")]
            let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1_000));
            while self.turn() {}
        })?;
        Ok(())
    }

    /// Goes around once; `false` if there is nothing left to do.
    fn turn(&mut self) -> bool {
        if self.hub.is_deaf() {
            self.listening = None;
        }
        if self.listening.is_none() && self.sockets.is_idle(self.hub.clock.now()) {
            return false;
        }
        let more = self.receive();
        self.hub.take_poked(&mut self.poked);
        for socket in self.poked.drain(..) {
            self.sockets.touch(socket);
        }
        let next = self.transmit();
        if let Some(listening) = &mut self.listening {
            listening.settle();
        }
        if !more {
            self.sleep(next);
        }
        true
    }

    /// Reads what has arrived; gives whether there may be more.
    fn receive(&mut self) -> bool {
        for _ in 0..READS {
            let Ok(count) = self.arrivals.receive(&self.udp, &self.state) else { return false };
            let (now, wall) = self.hub.clock.both();
            for piece in self.arrivals.pieces(count) {
                // A time stamp of the future says that the kernel's clock was set.
                let age =
                    piece.meta.timestamp.map_or(Span::ZERO, |at| span(wall.saturating_sub(at)));
                let at = now - age;
                let desk = Desk {
                    sockets: &mut self.sockets,
                    listening: self.listening.as_mut(),
                    udp: &self.udp,
                    state: &self.state,
                    hub: &self.hub,
                    scratch: &mut self.scratch,
                };
                desk.distribute(now, at, &piece);
            }
        }
        true
    }

    /// Sends what is due; gives when the next is.
    fn transmit(&mut self) -> Time {
        if self.blocked && self.departures.send(&self.udp, &self.state).is_err() {
            return Time::MAX;
        }
        self.blocked = false;
        let now = self.hub.clock.now();
        for shared in self.sockets.due(now) {
            shared.looked_at();
            let mut state = shared.lock();
            self.departures.begin(shared.peer);
            let room = gather(&mut state, now, shared.peer, &mut self.departures);
            if now >= state.ready_by && !state.guard.is_ready() && state.failed.is_none() {
                state.failed = Some(Failure::Key);
            }
            shared.announce(&mut state, now);
            let next = if room == Room::None { now } else { state.next_timeout() };
            state.planned = next;
            let over = state.error().is_some();
            drop(state);
            self.sockets.plan(shared.id, next);
            if over {
                self.sockets.retire(shared.id, now);
            }
            if !self.departures.is_empty() && self.departures.send(&self.udp, &self.state).is_err()
            {
                self.blocked = true;
                return Time::MAX;
            }
        }
        self.sockets.forget(now);
        self.sockets.next()
    }

    /// Sleeps until `next`, or until something happens.
    fn sleep(&mut self, next: Time) {
        let left = next.since(self.hub.clock.now()).min(LONGEST_SLEEP);
        if left.is_zero() || !self.hub.may_sleep(self.listening.is_some()) {
            return;
        }
        let write = if self.blocked { PollFlags::OUT } else { PollFlags::empty() };
        let mut wanted =
            [PollFd::new(&self.udp, PollFlags::IN | write), PollFd::new(&self.ear, PollFlags::IN)];
        let timeout = Timespec {
            tv_sec: (left.as_nanos() / 1_000_000_000) as _,
            tv_nsec: (left.as_nanos() % 1_000_000_000) as _,
        };
        // An interrupted sleep is a short one.
        let _ = poll(&mut wanted, Some(&timeout));
        let rang = wanted[1].revents().contains(PollFlags::IN);
        self.hub.awake();
        if rang {
            let _ = self.ear.read(&mut [0; 64]);
        }
    }
}

/// What is needed to give packets to whom they are for.
struct Desk<'a> {
    sockets: &'a mut Sockets,
    listening: Option<&'a mut Listening>,
    udp: &'a UdpSocket,
    state: &'a UdpSocketState,
    hub: &'a Arc<Hub>,
    scratch: &'a mut Vec<u8>,
}

impl Desk<'_> {
    /// Gives the packets of a piece to whom they are for.
    fn distribute(mut self, now: Time, at: Time, piece: &Piece<'_>) {
        let mut datagrams = piece.datagrams().zip(0..).peekable();
        while let Some(&(bytes, _)) = datagrams.peek() {
            let Some(socket) = codec::destination(bytes) else {
                datagrams.next();
                continue;
            };
            let known = match socket {
                0 => self.sockets.meeting(piece.from),
                _ => self.sockets.get(socket, piece.from),
            };
            let Some(shared) = known else {
                self.deal_with_stranger(now, bytes, socket, piece.from);
                datagrams.next();
                continue;
            };
            let mut state = shared.lock();
            while let Some((bytes, place)) =
                datagrams.next_if(|&(bytes, _)| codec::destination(bytes) == Some(socket))
            {
                deliver(&mut state, now, Arrival { at, place }, bytes, self.scratch);
            }
            begin_guard(&mut state, now, shared.id);
            drop(state);
            self.sockets.touch(shared.id);
        }
    }

    /// A packet for no connection: of someone who wants one, or did not hear of the end.
    #[cold]
    fn deal_with_stranger(&mut self, now: Time, bytes: &[u8], socket: u32, from: SocketAddr) {
        let Ok(datagram) = codec::decode(bytes) else { return };
        if socket != 0 {
            return self.sockets.repeat_end(now, socket, from, &datagram, (self.udp, self.state));
        }
        let (Packet::Handshake(client), Some(listening)) =
            (datagram.packet, self.listening.as_deref_mut())
        else {
            return;
        };
        if let Some(answer) = listening.answer(now, &client, from, self.sockets, self.hub) {
            let answer = Packet::Handshake(answer);
            send_one(self.udp, self.state, (&answer, client.socket, from));
        }
    }
}

/// An open connection with a key has its ends agree on a secret.
fn begin_guard(state: &mut State, now: Time, id: u32) {
    if state.guard.is_ready() || !state.engine.is_open() {
        return;
    }
    let first = match state.engine.role() {
        None => false,
        Some(crate::Role::Client) => true,
        Some(crate::Role::Rendezvous) => id > state.engine.destination(),
    };
    state.guard.begin(now, first);
}

/// Gives a packet to its connection.
fn deliver(state: &mut State, now: Time, arrival: Arrival, bytes: &[u8], scratch: &mut Vec<u8>) {
    let Ok(datagram) = codec::decode(bytes) else { return };
    let State { engine, guard, .. } = state;
    if let Opened::Packets(datagram) = guard.open(engine, datagram, scratch) {
        for packet in datagram.packets() {
            engine.receive_arrived(now, arrival, &packet, datagram.payload);
        }
    }
}

/// Collects what a connection has to send now.
fn gather(state: &mut State, now: Time, peer: SocketAddr, out: &mut Departures) -> Room {
    let State { engine, guard, .. } = state;
    let most = engine.max_payload() + HEADER as usize;
    if let Some((packet, message)) = guard.poll(now) {
        let message = message.to_vec();
        let write =
            |out: &mut _| codec::encode(&packet, engine.destination(), peer.ip(), &message, out);
        out.push_control(false, write);
    }
    let mut plain = Vec::new();
    while let Some(packet) = engine.poll(now) {
        let socket = engine.destination();
        let room = match &packet {
            Packet::Data(data) => out.push_data(data.seq.begins_pair(), |out| {
                guard.write_data(engine, &packet, data, peer.ip(), out);
            }),
            Packet::Nak(nak)
                if nak.continued
                    && guard.lets_pass(&packet)
                    && out.last_control() + 4 * nak.words().len() <= most =>
            {
                out.push_control(true, |out| codec::encode_more_losses(nak, out));
                Room::Left
            }
            _ if guard.lets_pass(&packet) => {
                let encode = |out: &mut _| codec::encode(&packet, socket, peer.ip(), &[], out);
                out.push_control(false, encode);
                Room::Left
            }
            _ if guard.is_ready() => {
                plain.clear();
                codec::encode(&packet, socket, peer.ip(), &[], &mut plain);
                out.push_control(false, |out| guard.seal_control(&plain, socket, peer.ip(), out));
                Room::Left
            }
            // Until there is a secret, nothing leaves in the clear.
            _ => Room::Left,
        };
        if room == Room::None {
            return room;
        }
    }
    Room::Left
}
