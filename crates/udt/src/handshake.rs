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
/// Every so many transmissions without a response, a client requests a new cookie: its own may have been
/// damaged on the way, or be stale.
const COOKIE_INTERVAL: u32 = 8;
/// Rejections of the key that a client takes for final. A request that was damaged on the way is
/// rejected too, and anyone on the path can forge one.
const MAX_KEY_REJECTIONS: u32 = 3;

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
    key_rejections: u32,
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
            key_rejections: 0,
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
        let is_conclusion = self.request.request_type == RequestType::CONCLUSION;
        if is_conclusion
            && self.role == Role::Client
            && self.transmissions.is_multiple_of(COOKIE_INTERVAL)
        {
            return Some(Handshake { request_type: RequestType::INDUCTION, ..self.request });
        }
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
            RequestType::KEY_REJECTION => return self.handle_key_rejection(now),
            _ => {}
        }
        let first = self.request.request_type == RequestType::INDUCTION;
        match (self.request.request_type, peer.request_type) {
            (_, RequestType::INDUCTION) if first || peer.cookie != self.request.cookie => {
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

    fn handle_key_rejection(&mut self, now: Time) -> HandshakeStatus {
        if self.request.request_type != RequestType::CONCLUSION {
            return HandshakeStatus::Pending;
        }
        self.key_rejections += 1;
        if self.key_rejections == MAX_KEY_REJECTIONS {
            return HandshakeStatus::Refused(CloseReason::KeyRefused);
        }
        self.send_next(now, RequestType::INDUCTION);
        HandshakeStatus::Pending
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// A client that has sent its second request, and that request.
    fn concluding() -> (Initiator, Handshake) {
        let own = initial_request(&TransportOptions::default(), Mode::Stream, Seq::new(5), 42);
        let mut client = Initiator::new(Role::Client, own, at(0), Time::MAX);
        let first = client.poll(at(0)).expect("the first request");
        client.handle(at(0), &Handshake { cookie: 9, ..first });
        let second = client.poll(at(0)).expect("the second request");
        assert_eq!((second.request_type, second.cookie), (RequestType::CONCLUSION, 9));
        (client, second)
    }

    #[test]
    fn a_client_accepts_a_third_rejection_of_its_key() {
        let (mut client, mut request) = concluding();
        for _ in 0..2 {
            let rejection = Handshake { request_type: RequestType::KEY_REJECTION, ..request };
            assert_eq!(client.handle(at(0), &rejection), HandshakeStatus::Pending);
            let again = client.poll(at(0)).expect("it asks for another cookie");
            assert_eq!(again.request_type, RequestType::INDUCTION);
            client.handle(at(0), &Handshake { cookie: 9, ..again });
            request = client.poll(at(0)).expect("it tries again");
        }
        let rejection = Handshake { request_type: RequestType::KEY_REJECTION, ..request };
        let refused = HandshakeStatus::Refused(CloseReason::KeyRefused);
        assert_eq!(client.handle(at(0), &rejection), refused);
    }

    #[test]
    fn a_client_whose_cookie_was_damaged_gets_another_one() {
        let (mut client, _) = concluding();
        let requests: Vec<_> = (1..8).filter_map(|n| client.poll(at(250 * n))).collect();
        let last = *requests.last().expect("it repeats its request");
        assert_eq!(last.request_type, RequestType::INDUCTION, "the eighth");
        client.handle(at(1800), &Handshake { cookie: 7, ..last });
        let next = client.poll(at(1800)).expect("at once");
        assert_eq!((next.request_type, next.cookie), (RequestType::CONCLUSION, 7));
    }
}
