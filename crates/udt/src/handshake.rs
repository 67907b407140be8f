//! The initiating side of the handshake: client and rendezvous.
//!
//! Client: request (type 1), response with a cookie (1), request with the cookie (-1), response (-1).
//! Both directions then use the client's initial sequence number. Rendezvous: both sides send
//! requests (0) and respond to them with -1; a -1 in response to a -1 completes the handshake. Each
//! direction has its own initial sequence number. Requests are retransmitted until a response arrives.

use crate::config::{Mode, TransportOptions};
use crate::connection::CloseReason;
use crate::packet::{Handshake, RequestType};
use crate::seq::Seq;
use dumbbell_units::{Span, Time};

/// UDT's protocol version.
pub(crate) const VERSION: u8 = 4;
/// Interval of retransmissions of the handshake.
const RETRY_INTERVAL: Span = Span::from_millis(250);

/// How a connection is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Connects to a listener.
    Client,
    /// Both ends connect to each other.
    Rendezvous,
}

/// State of the handshake at an initiating end.
#[derive(Clone, Debug)]
pub(crate) struct Initiator {
    role: Role,
    /// The handshake to send, and to retransmit.
    request: Handshake,
    /// Rendezvous only: the peer's last handshake.
    peer: Option<Handshake>,
    next_send: Time,
    /// Send time of the current request; `None` after a retransmission (Karn's rule).
    sent_at: Option<Time>,
    transmissions: u32,
    deadline: Time,
}

/// Status of the handshake after a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandshakeStatus {
    /// Not complete yet.
    Pending,
    /// Complete: the peer's handshake, and the RTT of the last exchange if it is unambiguous.
    Complete(Handshake, Option<Span>),
    /// The peer rejected the connection.
    Refused(CloseReason),
}

/// The handshake of the first request.
pub(crate) fn initial_request(
    options: &TransportOptions,
    mode: Mode,
    isn: Seq,
    socket: u32,
) -> Handshake {
    Handshake {
        version: VERSION,
        socket_type: mode.socket_type(),
        isn,
        mss: u32::from(options.mss),
        window: options.flight_window(),
        request_type: RequestType::INDUCTION,
        socket_id: socket,
        cookie: 0,
    }
}

impl Initiator {
    /// A handshake that starts at `start` and fails at `deadline`.
    pub(crate) fn new(role: Role, own: Handshake, start: Time, deadline: Time) -> Initiator {
        let request = match role {
            Role::Client => RequestType::INDUCTION,
            Role::Rendezvous => RequestType::RENDEZVOUS,
        };
        let request = Handshake { request_type: request, ..own };
        Initiator {
            role,
            request,
            peer: None,
            next_send: start,
            sent_at: None,
            transmissions: 0,
            deadline,
        }
    }

    /// This end's initial sequence number.
    pub(crate) fn isn(&self) -> Seq {
        self.request.isn
    }

    /// Request type of the response to repeated handshakes once connected; rendezvous only.
    pub(crate) fn late_response(&self) -> Option<RequestType> {
        (self.role == Role::Rendezvous).then_some(RequestType::AGREEMENT)
    }

    /// Destination socket id of requests; 0 until the peer's is known.
    pub(crate) fn destination(&self) -> u32 {
        self.peer.map_or(0, |heard| heard.socket_id)
    }

    pub(crate) fn next_timeout(&self) -> Time {
        self.next_send.min(self.deadline)
    }

    /// Whether the deadline has passed.
    pub(crate) fn is_expired(&self, now: Time) -> bool {
        now >= self.deadline
    }

    /// The handshake to send now, if one is due.
    pub(crate) fn poll(&mut self, now: Time) -> Option<Handshake> {
        if now < self.next_send {
            return None;
        }
        self.next_send = now + RETRY_INTERVAL;
        self.transmissions += 1;
        self.sent_at = (self.transmissions == 1).then_some(now);
        Some(self.request)
    }

    /// Schedules a new request or response for immediate transmission.
    fn send_next(&mut self, now: Time, request: RequestType) {
        self.request.request_type = request;
        self.next_send = now;
        self.transmissions = 0;
        self.sent_at = None;
    }

    fn rtt(&self, now: Time) -> Option<Span> {
        self.sent_at.map(|asked| now.since(asked))
    }

    /// Handles a handshake from the peer.
    pub(crate) fn handle(&mut self, now: Time, peer: &Handshake) -> HandshakeStatus {
        if peer.version != VERSION || peer.socket_type != self.request.socket_type {
            return HandshakeStatus::Pending;
        }
        match self.role {
            Role::Client => self.handle_response(now, peer),
            Role::Rendezvous => self.handle_rendezvous(now, peer),
        }
    }

    fn handle_response(&mut self, now: Time, peer: &Handshake) -> HandshakeStatus {
        // Responses and rejections echo the ISN, which an off-path attacker does not know. UDT4
        // accepts rejections without this check.
        if peer.isn != self.request.isn || self.transmissions == 0 {
            return HandshakeStatus::Pending;
        }
        match peer.request_type {
            RequestType::REJECTION => return HandshakeStatus::Refused(CloseReason::Refused),
            RequestType::KEY_REJECTION => return HandshakeStatus::Refused(CloseReason::KeyRefused),
            _ => {}
        }
        match (self.request.request_type, peer.request_type) {
            (RequestType::INDUCTION, RequestType::INDUCTION) => {
                self.request.cookie = peer.cookie;
                self.send_next(now, RequestType::CONCLUSION);
                HandshakeStatus::Pending
            }
            (RequestType::CONCLUSION, RequestType::CONCLUSION) => {
                HandshakeStatus::Complete(*peer, self.rtt(now))
            }
            _ => HandshakeStatus::Pending,
        }
    }

    fn handle_rendezvous(&mut self, now: Time, peer: &Handshake) -> HandshakeStatus {
        if peer.request_type.0 > 0 {
            return HandshakeStatus::Pending;
        }
        let same = self
            .peer
            .is_none_or(|heard| (heard.socket_id, heard.isn) == (peer.socket_id, peer.isn));
        if !same {
            return HandshakeStatus::Pending;
        }
        self.peer = Some(*peer);
        let begun = self.request.request_type == RequestType::RENDEZVOUS;
        if !begun && peer.request_type != RequestType::RENDEZVOUS {
            return HandshakeStatus::Complete(*peer, self.rtt(now));
        }
        self.send_next(now, RequestType::CONCLUSION);
        HandshakeStatus::Pending
    }

    /// Handles another packet: a rendezvous peer that sends one has completed the handshake.
    pub(crate) fn handle_other(&mut self) -> HandshakeStatus {
        match self.peer {
            Some(heard) if self.role == Role::Rendezvous => HandshakeStatus::Complete(heard, None),
            _ => HandshakeStatus::Pending,
        }
    }
}
