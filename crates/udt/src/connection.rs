//! A connection: a sending and a receiving half, the handshake before them, the EXP timer beside
//! them, and the end.
//!
//! It knows no clock, no socket and no address. Whoever drives it carries its packets to the peer,
//! adds the peer's socket id ([`Connection::destination`]) and the payload
//! ([`Connection::payload`]), and hands over what comes from the peer's address alone.

mod application;

use crate::config::{Mode, Options};
use crate::expiry::{Expired, Expiry};
use crate::handshake::{Opening, Progress, Role, request};
use crate::packet::{AckKind, HEADER, Handshake, IP_UDP_HEADER, Packet, Request};
use crate::receive_buffer::ReceiveBuffer;
use crate::receiver::{Receiver, ReceiverStats};
use crate::rtt::Rtt;
use crate::send_queue::SendQueue;
use crate::sender::{Limits, Sender, initial_stats};
use crate::seq::{Numbering, Seq};
use crate::sink::{Counter, Sink};
use crate::supply::{Bulk, BulkSupply, Supply};
use dumbbell_cc::{Algorithm, CongestionControl, Metric, SenderStats};
use dumbbell_net::Endpoint;
use dumbbell_units::{Span, Time};

pub use application::SendError;

/// What a connection is to be.
pub struct Config {
    /// Options of the transport.
    pub options: Options,
    /// Stream or messages.
    pub mode: Mode,
    /// Congestion control, made for this connection and this end's packets.
    pub algorithm: Algorithm,
    /// Makes it for packets of another payload, if those of the peer turn out to be shorter.
    pub remake: Option<Remake>,
    /// What is sent: bulk data, or what the application hands over.
    pub bulk: Option<Bulk>,
    /// Whether data that arrives is kept for the application to read, or only counted.
    pub keep: bool,
    /// This end's socket id: above 0.
    pub socket: u32,
    /// How long to try to connect; without it, for ever.
    pub patience: Option<Span>,
    /// After how long a silence the peer is taken for dead, if its answer is overdue four times
    /// over as well; without it, when UDT4 does so: after 46 s or more.
    pub silence: Option<Span>,
    /// Bytes of every packet's payload that whoever carries packets needs, as for a seal.
    pub reserve: u16,
}

/// Makes a connection's algorithm anew, for so many bytes of payload in a full packet.
pub type Remake = Box<dyn FnOnce(u32) -> Option<Algorithm> + Send>;

/// When a packet arrived, as exactly as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it arrived.
    pub at: Time,
    /// Packets that arrived with it as one piece, before it: a network card or the kernel puts
    /// together what comes without a gap.
    pub place: u16,
}

/// Why a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// This end closed it.
    Closed,
    /// The peer closed it.
    PeerClosed,
    /// The peer did not answer, or fell silent.
    TimedOut,
    /// The peer refused it.
    Refused,
}

/// A connection.
pub struct Connection {
    options: Options,
    mode: Mode,
    bulk: Option<Bulk>,
    keep: bool,
    opened: Time,
    socket: u32,
    /// How this end opens the connection; none if it was asked for it.
    role: Option<Role>,
    /// Until the connection is open.
    algorithm: Option<Algorithm>,
    remake: Option<Remake>,
    silence: Option<Span>,
    reserve: u16,
    stage: Stage,
    /// Since the connection was open; they outlive it, so that what arrived can be read.
    halves: Option<Halves>,
    closing: bool,
    /// What was sent by the peer's application as an error, not yet told.
    peer_error: Option<u32>,
}

enum Stage {
    Opening(Opening),
    Open,
    Ended(Ended),
}

/// An open connection.
struct Halves {
    peer: u32,
    rtt: Rtt,
    sender: Sender,
    receiver: Receiver,
    expiry: Expiry,
    /// The answer to handshakes that come late; a client gives none.
    late_answer: Option<Handshake>,
    answer: bool,
    ack2: Option<u32>,
    keep_alive: bool,
}

impl Connection {
    /// A connection that is opened from `start` on. The initial sequence number should be random.
    pub fn open(config: Config, role: Role, isn: Seq, start: Time) -> Connection {
        let own = request(&config.options, config.mode, isn, config.socket);
        let give_up_at = config.patience.map_or(Time::MAX, |patience| start + patience);
        let opening = Opening::new(role, own, start, give_up_at);
        let connection = Connection::new(config, start, Stage::Opening(opening));
        Connection { role: Some(role), ..connection }
    }

    /// The server's end of a connection for which a client has asked with a valid cookie
    /// ([`Listener`](crate::Listener)).
    pub fn accept(config: Config, client: &Handshake, now: Time) -> Connection {
        let own = request(&config.options, config.mode, client.isn, config.socket);
        let own = Handshake { cookie: client.cookie, ..own };
        let placeholder = Stage::Ended(Ended::Closed);
        let mut connection = Connection::new(config, now, placeholder);
        connection.establish(now, own, Some(Request::CONCLUSION), client, None);
        if let Some(halves) = &mut connection.halves {
            halves.answer = true;
        }
        connection
    }

    fn new(config: Config, opened: Time, stage: Stage) -> Connection {
        let Config { options, mode, bulk, keep, socket, silence, reserve, .. } = config;
        Connection {
            options,
            mode,
            bulk,
            keep,
            opened,
            socket,
            role: None,
            algorithm: Some(config.algorithm),
            remake: config.remake,
            silence,
            reserve,
            stage,
            halves: None,
            closing: false,
            peer_error: None,
        }
    }

    /// The handshake is done: makes the halves.
    fn establish(
        &mut self,
        now: Time,
        own: Handshake,
        answers: Option<Request>,
        peer: &Handshake,
        rtt: Option<Span>,
    ) {
        let Some(mut algorithm) = self.algorithm.take() else { return };
        let least = u32::from(Options::MIN_MSS);
        let mss = peer.mss.clamp(least, u32::from(self.options.mss).max(least));
        let payload = ((mss - IP_UDP_HEADER - HEADER) as u16).saturating_sub(self.reserve).max(1);
        // As UDT4, which makes it once the MSS is known (CUDT::connect): to an algorithm for larger
        // packets a rate would be more packets than it has in mind.
        if mss < u32::from(self.options.mss)
            && let Some(made) = self.remake.take().and_then(|make| make(u32::from(payload)))
        {
            algorithm = made;
        }
        let limits =
            Limits { payload, flow_window: peer.window, send_buffer: self.options.send_buffer };
        let supply = match &self.bulk {
            Some(bulk) => Supply::Bulk(BulkSupply::new(bulk, limits.payload, now)),
            None => Supply::Queue(SendQueue::new(limits.payload, limits.send_buffer)),
        };
        let sink = match self.keep {
            true => Sink::Buffer(ReceiveBuffer::new(self.mode, self.options.receive_buffer)),
            false => Sink::Count(Counter::new(self.options.receive_buffer)),
        };
        let mut sender = Sender::new(now, Numbering::new(own.isn), limits, algorithm, supply);
        sender.establish(now, rtt);
        let numbering = Numbering::new(peer.isn);
        self.stage = Stage::Open;
        self.halves = Some(Halves {
            peer: peer.socket,
            rtt: Rtt::INITIAL,
            sender,
            receiver: Receiver::new(now, numbering, limits.payload, &self.options, sink),
            expiry: Expiry::new(now, self.silence),
            late_answer: answers.map(|request| Handshake { request, mss, ..own }),
            answer: false,
            ack2: None,
            keep_alive: false,
        });
    }

    /// This end's socket id.
    pub fn socket(&self) -> u32 {
        self.socket
    }

    /// How this end opened the connection; none if the peer did.
    pub fn role(&self) -> Option<Role> {
        self.role
    }

    /// The socket id that packets go to; 0 for a peer that is not known yet.
    pub fn destination(&self) -> u32 {
        match &self.stage {
            Stage::Opening(opening) => opening.destination(),
            _ => self.halves.as_ref().map_or(0, |halves| halves.peer),
        }
    }

    /// Whether the connection is open.
    pub fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open)
    }

    /// Why the connection has ended, if it has.
    pub fn ended(&self) -> Option<Ended> {
        match self.stage {
            Stage::Ended(why) => Some(why),
            _ => None,
        }
    }

    /// Counters and present values of the sending half.
    pub fn sender_stats(&self) -> SenderStats {
        match (&self.halves, &self.algorithm) {
            (Some(halves), _) => halves.sender.stats(),
            (None, Some(algorithm)) => initial_stats(&algorithm.control()),
            (None, None) => unreachable!("the sending half takes the algorithm"),
        }
    }

    /// Counters of the receiving half.
    pub fn receiver_stats(&self) -> ReceiverStats {
        self.halves.as_ref().map(|halves| halves.receiver.stats()).unwrap_or_default()
    }

    /// Shows the algorithm's internals.
    pub fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        if let Some(halves) = &self.halves {
            halves.sender.inspect(show);
        }
    }

    /// Microseconds since the socket was opened, wrapping.
    #[inline]
    fn timestamp(&self, now: Time) -> u32 {
        now.since(self.opened).as_micros() as u32
    }

    /// A packet came from the peer, with its payload.
    #[inline]
    pub fn receive(&mut self, now: Time, packet: &Packet, payload: &[u8]) {
        self.receive_arrived(now, Arrival { at: now, place: 0 }, packet, payload);
    }

    /// A packet of the peer, with its payload, is handed over some time after it arrived, as by
    /// sockets.
    #[inline]
    pub fn receive_arrived(
        &mut self,
        now: Time,
        arrival: Arrival,
        packet: &Packet,
        payload: &[u8],
    ) {
        if let Stage::Opening(opening) = &mut self.stage {
            let (own_isn, answers) = (opening.isn(), opening.late_answer());
            let progress = match packet {
                Packet::Handshake(peer) => opening.handle(now, peer),
                _ => opening.handle_other(),
            };
            self.proceed(now, own_isn, answers, progress);
        }
        let (Stage::Open, Some(halves)) = (&self.stage, &mut self.halves) else { return };
        // To UDT4 anything counts, but a peer that says only that it is alive misses what was sent.
        let misses = matches!(packet, Packet::KeepAlive) && halves.sender.is_waiting();
        halves.expiry.heard(now, !misses);
        if let Some(why) = halves.handle(now, arrival, packet, payload) {
            self.end(why);
        }
        if let Packet::PeerError { code } = packet {
            self.peer_error = Some(*code);
        }
    }

    #[inline]
    fn poll_open(&mut self, now: Time) -> Option<Packet> {
        let timestamp = self.timestamp(now);
        let halves = self.halves.as_mut()?;
        match halves.expiry.poll(now, &halves.rtt) {
            None => {}
            Some(Expired::Silent) => halves.keep_alive = !halves.sender.on_expiry(now),
            Some(Expired::Dead) => {
                self.end(Ended::TimedOut);
                return None;
            }
        }
        let packet = halves.poll(now, timestamp);
        if packet.is_none() && self.closing && halves.sender.is_done(now) {
            self.end(Ended::Closed);
            return Some(Packet::Shutdown);
        }
        packet
    }

    fn proceed(&mut self, now: Time, own_isn: Seq, answers: Option<Request>, progress: Progress) {
        match progress {
            Progress::Waiting => {}
            Progress::Refused => self.end(Ended::Refused),
            Progress::Open(peer, rtt) => {
                let own = request(&self.options, self.mode, own_isn, self.socket);
                self.establish(now, own, answers, &peer, rtt);
            }
        }
    }

    fn end(&mut self, why: Ended) {
        self.stage = Stage::Ended(why);
    }

    /// Ends the connection as soon as all data was acknowledged.
    pub fn close(&mut self) {
        self.closing = true;
        if let Stage::Opening(_) = self.stage
            && self.bulk.is_none()
        {
            self.end(Ended::Closed);
        }
    }
}

impl Halves {
    /// A packet came on an open connection; gives why that ends it, if it does.
    #[inline]
    fn handle(
        &mut self,
        now: Time,
        arrival: Arrival,
        packet: &Packet,
        payload: &[u8],
    ) -> Option<Ended> {
        match packet {
            Packet::Data(data) => self.receiver.on_data(now, arrival, data, payload),
            Packet::Ack(kind, ack) => {
                if *kind != AckKind::Light {
                    self.ack2 = Some(ack.number);
                }
                self.sender.on_ack(now, *kind, ack, &mut self.rtt);
            }
            Packet::Ack2 { number } => self.receiver.on_ack2(now, *number, &mut self.rtt),
            Packet::Nak(nak) => self.sender.on_nak(now, nak),
            Packet::DropRequest(drop) => self.receiver.on_drop_request(now, drop),
            Packet::Handshake(peer) => {
                self.answer |= self.late_answer.is_some() && peer.request != Request::AGREEMENT;
            }
            Packet::Shutdown => {
                self.receiver.release();
                return Some(Ended::PeerClosed);
            }
            Packet::KeepAlive
            | Packet::CongestionWarning
            | Packet::PeerError { .. }
            | Packet::User(_) => {}
        }
        None
    }

    #[inline]
    fn next_timeout(&self) -> Time {
        if self.answer || self.ack2.is_some() || self.keep_alive {
            return Time::ZERO;
        }
        let next = self.receiver.next_timeout(&self.rtt).min(self.sender.next_timeout());
        if next <= self.expiry.earliest() { next } else { next.min(self.expiry.due(&self.rtt)) }
    }

    #[inline]
    fn poll(&mut self, now: Time, timestamp: u32) -> Option<Packet> {
        if std::mem::take(&mut self.answer) {
            return self.late_answer.map(Packet::Handshake);
        }
        if let Some(number) = self.ack2.take() {
            return Some(Packet::Ack2 { number });
        }
        if let Some(packet) = self.receiver.poll(now, &self.rtt) {
            return Some(packet);
        }
        if std::mem::take(&mut self.keep_alive) {
            return Some(Packet::KeepAlive);
        }
        let idle = self.sender.is_idle();
        let packet = self.sender.poll(now, timestamp);
        if idle && packet.is_some() {
            self.expiry.restart(now);
        }
        packet
    }
}

impl Endpoint for Connection {
    type Packet = Packet;

    #[inline]
    fn handle(&mut self, now: Time, packet: &Packet) {
        self.receive(now, packet, &[]);
    }

    #[inline]
    fn poll(&mut self, now: Time) -> Option<Packet> {
        match &mut self.stage {
            Stage::Open => self.poll_open(now),
            Stage::Opening(opening) => {
                if opening.is_over(now) {
                    self.end(Ended::TimedOut);
                    return None;
                }
                opening.poll(now).map(Packet::Handshake)
            }
            Stage::Ended(_) => None,
        }
    }

    #[inline]
    fn next_timeout(&self) -> Time {
        match &self.stage {
            Stage::Open => self.halves.as_ref().map_or(Time::MAX, Halves::next_timeout),
            Stage::Opening(opening) => opening.next_timeout(),
            Stage::Ended(_) => Time::MAX,
        }
    }
}
