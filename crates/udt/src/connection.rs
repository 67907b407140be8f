//! A UDT connection: handshake, sender, receiver, EXP timer and shutdown.
//!
//! A connection has no clock, socket or address. Its driver sends the polled packets to the peer,
//! with the peer's socket id ([`Connection::destination`]) and the payload
//! ([`Connection::payload`]), and passes in only packets from the peer's address.

mod application;

use crate::config::{Mode, TransportOptions};
use crate::exp_timer::{ExpEvent, ExpTimer};
use crate::handshake::{HandshakeStatus, Initiator, Role, initial_request};
use crate::packet::{AckKind, HEADER, Handshake, IP_UDP_HEADER, Packet, RequestType};
use crate::receive_buffer::ReceiveBuffer;
use crate::receiver::{Receiver, ReceiverStats};
use crate::rtt::RttEstimator;
use crate::send_buffer::SendBuffer;
use crate::sender::{Limits, Sender, initial_stats};
use crate::seq::{Seq, SequenceSpace};
use crate::sink::{ByteCounter, Sink};
use crate::source::{BulkData, BulkSource, Source};
use dumbbell_cc::{Algorithm, CongestionControl, Metric, SenderStats};
use dumbbell_net::Endpoint;
use dumbbell_units::{Span, Time};

pub use application::SendError;

/// Configuration of a connection.
pub struct Config {
    /// Transport options.
    pub options: TransportOptions,
    /// Stream or message mode.
    pub mode: Mode,
    /// Congestion control, configured for this end's `TransportOptions::max_payload`.
    pub algorithm: Algorithm,
    /// Creates the algorithm again if the handshake settles on a smaller packet size.
    pub new_algorithm: Option<NewAlgorithm>,
    /// Bulk data to send. `None`: the application writes the data.
    pub bulk: Option<BulkData>,
    /// Whether received data is kept for the application. Otherwise it is only counted.
    pub keep_received: bool,
    /// This end's socket id, above 0.
    pub socket_id: u32,
    /// Maximum duration of the handshake. `None`: unlimited.
    pub connect_timeout: Option<Span>,
    /// Time without any packet from the peer after which the connection is broken, and at least
    /// four times RTT + 4 RTTVar. `None`: UDT4's rule, 46 s or more.
    pub idle_timeout: Option<Span>,
    /// Bytes of each data packet's payload that encryption takes; 0 without.
    pub crypto_overhead: u16,
}

/// Creates a connection's algorithm for the given payload of a full packet, bytes.
pub type NewAlgorithm = Box<dyn FnOnce(u32) -> Option<Algorithm> + Send>;

/// Arrival of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Receive timestamp, the kernel's if there is one.
    pub at: Time,
    /// Number of packets before it in the same GRO batch, all of which share one timestamp.
    pub gro_index: u16,
}

/// Why a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// This end closed it.
    Closed,
    /// The peer closed it.
    PeerClosed,
    /// The handshake or the idle timeout expired.
    TimedOut,
    /// The peer rejected the handshake.
    Refused,
    /// The peer rejected the key, or the absence of one.
    KeyRefused,
}

/// A UDT connection.
pub struct Connection {
    options: TransportOptions,
    mode: Mode,
    bulk: Option<BulkData>,
    keep_received: bool,
    opened_at: Time,
    socket_id: u32,
    /// How this end opens the connection; `None` if it accepted it.
    role: Option<Role>,
    /// The algorithm until the connection is established.
    algorithm: Option<Algorithm>,
    new_algorithm: Option<NewAlgorithm>,
    idle_timeout: Option<Span>,
    crypto_overhead: u16,
    state: ConnectionState,
    /// Sender and receiver; kept after the connection is closed so that received data can be read.
    established: Option<Established>,
    /// When a closing connection gives up what is unacknowledged; `None` while it is not closing.
    close_by: Option<Time>,
    /// Error code of the peer's application, not yet taken.
    peer_error: Option<u32>,
}

enum ConnectionState {
    Connecting(Initiator),
    Open,
    Closed(CloseReason),
}

/// The parts of an established connection.
struct Established {
    peer_socket_id: u32,
    mode: Mode,
    rtt: RttEstimator,
    sender: Sender,
    receiver: Receiver,
    exp_timer: ExpTimer,
    /// Response to repeated handshakes; a client sends none.
    late_response: Option<Handshake>,
    response_pending: bool,
    ack2_pending: Option<u32>,
    keep_alive_pending: bool,
}

impl Connection {
    /// Creates a connection that starts its handshake at `start`.
    ///
    /// The initial sequence number should be random.
    pub fn open(config: Config, role: Role, isn: Seq, start: Time) -> Connection {
        let own = initial_request(&config.options, config.mode, isn, config.socket_id);
        let deadline = config.connect_timeout.map_or(Time::MAX, |timeout| start + timeout);
        let initiator = Initiator::new(role, own, start, deadline);
        let connection = Connection::new(config, start, ConnectionState::Connecting(initiator));
        Connection { role: Some(role), ..connection }
    }

    /// Creates the server's end of a connection, after
    /// [`ListenerAction::Accept`](crate::ListenerAction::Accept) for the `client`'s handshake.
    pub fn accept(config: Config, client: &Handshake, now: Time) -> Connection {
        let own = initial_request(&config.options, config.mode, client.isn, config.socket_id);
        let own = Handshake { cookie: client.cookie, ..own };
        let placeholder = ConnectionState::Closed(CloseReason::Closed);
        let mut connection = Connection::new(config, now, placeholder);
        connection.establish(now, own, Some(RequestType::CONCLUSION), client, None);
        if let Some(established) = &mut connection.established {
            established.response_pending = true;
        }
        connection
    }

    fn new(config: Config, opened_at: Time, state: ConnectionState) -> Connection {
        let Config {
            options,
            mode,
            bulk,
            keep_received,
            socket_id,
            idle_timeout,
            crypto_overhead,
            ..
        } = config;
        Connection {
            options,
            mode,
            bulk,
            keep_received,
            opened_at,
            socket_id,
            role: None,
            algorithm: Some(config.algorithm),
            new_algorithm: config.new_algorithm,
            idle_timeout,
            crypto_overhead,
            state,
            established: None,
            close_by: None,
            peer_error: None,
        }
    }

    /// Completes the handshake: creates sender and receiver.
    fn establish(
        &mut self,
        now: Time,
        own: Handshake,
        late_type: Option<RequestType>,
        peer: &Handshake,
        rtt: Option<Span>,
    ) {
        let Some(mut algorithm) = self.algorithm.take() else { return };
        let min_mss = u32::from(TransportOptions::MIN_MSS);
        let mss = peer.mss.clamp(min_mss, u32::from(self.options.mss).max(min_mss));
        let payload =
            ((mss - IP_UDP_HEADER - HEADER) as u16).saturating_sub(self.crypto_overhead).max(1);
        // As UDT4, which creates the algorithm once the MSS is known (CUDT::connect): an algorithm
        // counts in packets of the size that it was created for.
        if mss < u32::from(self.options.mss)
            && let Some(made) = self.new_algorithm.take().and_then(|make| make(u32::from(payload)))
        {
            algorithm = made;
        }
        let limits =
            Limits { payload, flow_window: peer.window, send_buffer: self.options.send_buffer };
        let source = match &self.bulk {
            Some(bulk) => Source::Bulk(BulkSource::new(bulk, limits.payload, now)),
            None => Source::Queue(SendBuffer::new(limits.payload, limits.send_buffer)),
        };
        let sink = match self.keep_received {
            true => Sink::Buffer(ReceiveBuffer::new(self.mode, self.options.receive_buffer)),
            false => Sink::Count(ByteCounter::new(self.options.receive_buffer)),
        };
        let mut sender = Sender::new(now, SequenceSpace::new(own.isn), limits, algorithm, source);
        sender.establish(now, rtt);
        let sequence_space = SequenceSpace::new(peer.isn);
        self.state = ConnectionState::Open;
        self.established = Some(Established {
            peer_socket_id: peer.socket_id,
            mode: self.mode,
            rtt: RttEstimator::INITIAL,
            sender,
            receiver: Receiver::new(now, sequence_space, limits.payload, &self.options, sink),
            exp_timer: ExpTimer::new(now, self.idle_timeout),
            late_response: late_type.map(|request| Handshake { request_type: request, mss, ..own }),
            response_pending: false,
            ack2_pending: None,
            keep_alive_pending: false,
        });
    }

    /// This end's socket id.
    pub fn socket_id(&self) -> u32 {
        self.socket_id
    }

    /// How this end opened the connection; `None` if it accepted it.
    pub fn role(&self) -> Option<Role> {
        self.role
    }

    /// The peer's socket id; 0 until it is known.
    pub fn destination(&self) -> u32 {
        match &self.state {
            ConnectionState::Connecting(initiator) => initiator.destination(),
            _ => self.established.as_ref().map_or(0, |established| established.peer_socket_id),
        }
    }

    /// Whether the connection is established and not closed.
    pub fn is_open(&self) -> bool {
        matches!(self.state, ConnectionState::Open)
    }

    /// Why the connection is closed; `None` if it is not.
    pub fn close_reason(&self) -> Option<CloseReason> {
        match self.state {
            ConnectionState::Closed(why) => Some(why),
            _ => None,
        }
    }

    /// Counters and current values of the sender.
    pub fn sender_stats(&self) -> SenderStats {
        match (&self.established, &self.algorithm) {
            (Some(established), _) => established.sender.stats(),
            (None, Some(algorithm)) => initial_stats(&algorithm.control()),
            (None, None) => unreachable!("the sending half takes the algorithm"),
        }
    }

    /// Counters of the receiver.
    pub fn receiver_stats(&self) -> ReceiverStats {
        self.established
            .as_ref()
            .map(|established| established.receiver.stats())
            .unwrap_or_default()
    }

    /// Passes each internal variable of the algorithm to `show`.
    pub fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        if let Some(established) = &self.established {
            established.sender.inspect(show);
        }
    }

    /// Timestamp field of data packets: microseconds since the connection was created, wrapping.
    #[inline]
    fn timestamp(&self, now: Time) -> u32 {
        now.since(self.opened_at).as_micros() as u32
    }

    /// Handles a packet from the peer that arrives `now`.
    #[inline]
    pub fn receive(&mut self, now: Time, packet: &Packet, payload: &[u8]) {
        self.receive_at(now, Arrival { at: now, gro_index: 0 }, packet, payload);
    }

    /// Handles a packet from the peer that arrived some time before `now`.
    #[inline]
    pub fn receive_at(&mut self, now: Time, arrival: Arrival, packet: &Packet, payload: &[u8]) {
        if let ConnectionState::Connecting(initiator) = &mut self.state {
            let (own_isn, late_type) = (initiator.isn(), initiator.late_response());
            let progress = match packet {
                Packet::Handshake(peer) => initiator.handle(now, peer),
                _ => initiator.handle_other(),
            };
            self.on_handshake_status(now, own_isn, late_type, progress);
        }
        let (ConnectionState::Open, Some(established)) = (&self.state, &mut self.established)
        else {
            return;
        };
        if self.crypto_overhead > 0 {
            // A third party can repeat data packets and forge handshakes, which are not encrypted. They tell
            // nothing about the peer.
            match packet {
                Packet::Data(data) if established.receiver.discard_duplicate(data) => return,
                Packet::Handshake(_) => {
                    established.handle(now, arrival, packet, payload);
                    return;
                }
                _ => {}
            }
        }
        // In UDT4 every packet restarts the EXP timer. Here a keep-alive does not while data is
        // unacknowledged: a peer that sends nothing else has not received that data.
        let misses = matches!(packet, Packet::KeepAlive) && established.sender.has_unacked();
        established.exp_timer.on_packet(now, !misses);
        if let Some(why) = established.handle(now, arrival, packet, payload) {
            self.terminate(why);
        }
        if let Packet::PeerError { code } = packet {
            self.peer_error = Some(*code);
        }
    }

    #[inline]
    fn poll_open(&mut self, now: Time) -> Option<Packet> {
        let timestamp = self.timestamp(now);
        let established = self.established.as_mut()?;
        match established.exp_timer.poll(now, &established.rtt) {
            None => {}
            Some(ExpEvent::Expired) => {
                established.keep_alive_pending = !established.sender.on_expiry(now)
            }
            Some(ExpEvent::PeerDead) => {
                self.terminate(CloseReason::TimedOut);
                return None;
            }
        }
        let is_late = self.close_by.is_some_and(|deadline| now >= deadline);
        let packet = if is_late { None } else { established.poll(now, timestamp) };
        let is_closing = self.close_by.is_some() && packet.is_none();
        if is_closing && (is_late || established.sender.is_done(now)) {
            self.terminate(CloseReason::Closed);
            return Some(Packet::Shutdown);
        }
        packet
    }

    fn on_handshake_status(
        &mut self,
        now: Time,
        own_isn: Seq,
        late_type: Option<RequestType>,
        progress: HandshakeStatus,
    ) {
        match progress {
            HandshakeStatus::Pending => {}
            HandshakeStatus::Refused(why) => self.terminate(why),
            HandshakeStatus::Complete(peer, rtt) => {
                let own = initial_request(&self.options, self.mode, own_isn, self.socket_id);
                self.establish(now, own, late_type, &peer, rtt);
            }
        }
    }

    fn terminate(&mut self, why: CloseReason) {
        self.state = ConnectionState::Closed(why);
    }

    /// Closes the connection as soon as all data is acknowledged.
    pub fn close(&mut self) {
        self.close_by(Time::MAX);
    }

    /// As [`close`](Connection::close), at `deadline` even if some data is not acknowledged. The first
    /// of several deadlines counts.
    pub fn close_by(&mut self, deadline: Time) {
        self.close_by = Some(self.close_by.map_or(deadline, |earlier| earlier.min(deadline)));
        if let ConnectionState::Connecting(_) = self.state
            && self.bulk.is_none()
        {
            self.terminate(CloseReason::Closed);
        }
    }
}

impl Established {
    /// Handles a packet of an established connection. Returns the reason if it closes the connection.
    #[inline]
    fn handle(
        &mut self,
        now: Time,
        arrival: Arrival,
        packet: &Packet,
        payload: &[u8],
    ) -> Option<CloseReason> {
        match packet {
            Packet::Data(data) => self.receiver.on_data(now, arrival, data, payload),
            Packet::Ack(kind, ack) => {
                // UDT4 sends at most one ACK2 per SYN. With more the receiver measures more round trips.
                if *kind != AckKind::Light {
                    self.ack2_pending = Some(ack.number);
                }
                self.sender.on_ack(now, *kind, ack, &mut self.rtt);
            }
            Packet::Ack2 { number } => self.receiver.on_ack2(now, *number, &mut self.rtt),
            Packet::Nak(nak) => self.sender.on_nak(now, nak),
            // A stream never drops data: such a request is forged, and would stall it.
            Packet::DropRequest(drop) if self.mode == Mode::Message => {
                self.receiver.on_drop_request(now, drop);
            }
            Packet::Handshake(peer) => {
                self.response_pending |=
                    self.late_response.is_some() && peer.request_type != RequestType::AGREEMENT;
            }
            Packet::Shutdown => {
                self.receiver.release();
                return Some(CloseReason::PeerClosed);
            }
            Packet::DropRequest(_)
            | Packet::KeepAlive
            | Packet::CongestionWarning
            | Packet::PeerError { .. }
            | Packet::UserDefined(_) => {}
        }
        None
    }

    #[inline]
    fn next_timeout(&self) -> Time {
        if self.response_pending || self.ack2_pending.is_some() || self.keep_alive_pending {
            return Time::ZERO;
        }
        let next = self.receiver.next_timeout(&self.rtt).min(self.sender.next_timeout());
        if next <= self.exp_timer.earliest() {
            next
        } else {
            next.min(self.exp_timer.deadline(&self.rtt))
        }
    }

    #[inline]
    fn poll(&mut self, now: Time, timestamp: u32) -> Option<Packet> {
        if std::mem::take(&mut self.response_pending) {
            return self.late_response.map(Packet::Handshake);
        }
        if let Some(number) = self.ack2_pending.take() {
            return Some(Packet::Ack2 { number });
        }
        if let Some(packet) = self.receiver.poll(now, &self.rtt) {
            return Some(packet);
        }
        if std::mem::take(&mut self.keep_alive_pending) {
            return Some(Packet::KeepAlive);
        }
        let idle = self.sender.is_idle();
        let packet = self.sender.poll(now, timestamp);
        if idle && packet.is_some() {
            self.exp_timer.restart(now);
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
        match &mut self.state {
            ConnectionState::Open => self.poll_open(now),
            ConnectionState::Connecting(initiator) => {
                if initiator.is_expired(now) {
                    self.terminate(CloseReason::TimedOut);
                    return None;
                }
                initiator.poll(now).map(Packet::Handshake)
            }
            ConnectionState::Closed(_) => None,
        }
    }

    #[inline]
    fn next_timeout(&self) -> Time {
        match &self.state {
            ConnectionState::Open => {
                let next = self.established.as_ref().map_or(Time::MAX, Established::next_timeout);
                next.min(self.close_by.unwrap_or(Time::MAX))
            }
            ConnectionState::Connecting(initiator) => initiator.next_timeout(),
            ConnectionState::Closed(_) => Time::MAX,
        }
    }
}
