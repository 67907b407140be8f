//! Opening a connection: the client's and the rendezvous' side of the handshake.
//!
//! A client asks for a cookie (request 1), gets it (1), asks for the connection with it (-1), and
//! is granted it (-1); both directions then begin with the client's initial sequence number. In a
//! rendezvous both sides ask (0), each answers what it hears with -1, and two -1 make a
//! connection; each direction begins with its own number. What is not answered is asked again.

use crate::config::{Mode, TransportOptions};
use crate::packet::{Handshake, RequestType};
use crate::seq::Seq;
use dumbbell_units::{Span, Time};

/// The protocol's version.
pub(crate) const VERSION: u8 = 4;
/// How long an answer is waited for.
const RETRY_INTERVAL: Span = Span::from_millis(250);

/// How a connection is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The peer listens.
    Client,
    /// The peer connects, too.
    Rendezvous,
}

/// A handshake under way.
#[derive(Clone, Debug)]
pub(crate) struct Initiator {
    role: Role,
    /// What is asked or answered next, and again if nothing comes.
    request: Handshake,
    /// What a rendezvous has heard of the peer.
    peer: Option<Handshake>,
    next_send: Time,
    /// When the present request was sent first, if it was sent only once.
    sent_at: Option<Time>,
    transmissions: u32,
    deadline: Time,
}

/// What came of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandshakeStatus {
    /// Nothing yet.
    Pending,
    /// The connection is open; this is the peer's handshake, and how long its answer took.
    Complete(Handshake, Option<Span>),
    /// The peer refused.
    Refused,
}

/// The handshake that `options` ask for.
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
    /// Begins at `start` and ends without success at `give_up_at`.
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

    /// The initial sequence number of this side.
    pub(crate) fn isn(&self) -> Seq {
        self.request.isn
    }

    /// What late handshakes are answered with once the connection is open. Only a rendezvous' are.
    pub(crate) fn late_response(&self) -> Option<RequestType> {
        (self.role == Role::Rendezvous).then_some(RequestType::AGREEMENT)
    }

    /// The socket id that requests go to.
    pub(crate) fn destination(&self) -> u32 {
        self.peer.map_or(0, |heard| heard.socket_id)
    }

    pub(crate) fn next_timeout(&self) -> Time {
        self.next_send.min(self.deadline)
    }

    /// Whether it is time to give up.
    pub(crate) fn is_expired(&self, now: Time) -> bool {
        now >= self.deadline
    }

    /// The request that is to be sent now.
    pub(crate) fn poll(&mut self, now: Time) -> Option<Handshake> {
        if now < self.next_send {
            return None;
        }
        self.next_send = now + RETRY_INTERVAL;
        self.transmissions += 1;
        self.sent_at = (self.transmissions == 1).then_some(now);
        Some(self.request)
    }

    /// Asks or answers anew, at once.
    fn send_next(&mut self, now: Time, request: RequestType) {
        self.request.request_type = request;
        self.next_send = now;
        self.transmissions = 0;
        self.sent_at = None;
    }

    fn rtt(&self, now: Time) -> Option<Span> {
        self.sent_at.map(|asked| now.since(asked))
    }

    /// A handshake came from the peer.
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
        // A listener sends back what it was sent, also if it refuses; who forges its address does
        // not know the number. UDT4 believes a refusal without it.
        if peer.isn != self.request.isn || self.transmissions == 0 {
            return HandshakeStatus::Pending;
        }
        if peer.request_type == RequestType::REJECTION {
            return HandshakeStatus::Refused;
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

    /// Something else than a handshake came: a peer that sends it takes the connection for open.
    pub(crate) fn handle_other(&mut self) -> HandshakeStatus {
        match self.peer {
            Some(heard) if self.role == Role::Rendezvous => HandshakeStatus::Complete(heard, None),
            _ => HandshakeStatus::Pending,
        }
    }
}
