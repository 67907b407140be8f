//! Opening a connection: the client's and the rendezvous' side of the handshake.
//!
//! A client asks for a cookie (request 1), gets it (1), asks for the connection with it (-1), and
//! is granted it (-1); both directions then begin with the client's initial sequence number. In a
//! rendezvous both sides ask (0), each answers what it hears with -1, and two -1 make a
//! connection; each direction begins with its own number. What is not answered is asked again.

use crate::config::{Mode, Options};
use crate::packet::{Handshake, Request};
use crate::seq::Seq;
use dumbbell_units::{Span, Time};

/// The protocol's version.
pub(crate) const VERSION: u8 = 4;
/// How long an answer is waited for.
const RETRY: Span = Span::from_millis(250);

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
pub(crate) struct Opening {
    role: Role,
    /// What is asked or answered next, and again if nothing comes.
    own: Handshake,
    /// What a rendezvous has heard of the peer.
    heard: Option<Handshake>,
    next_try: Time,
    /// When the present request was sent first, if it was sent only once.
    asked_at: Option<Time>,
    tries: u32,
    give_up_at: Time,
}

/// What came of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Nothing yet.
    Waiting,
    /// The connection is open; this is the peer's handshake, and how long its answer took.
    Open(Handshake, Option<Span>),
    /// The peer refused.
    Refused,
}

/// The handshake that `options` ask for.
pub(crate) fn request(options: &Options, mode: Mode, isn: Seq, socket: u32) -> Handshake {
    Handshake {
        version: VERSION,
        mode: mode.wire(),
        isn,
        mss: u32::from(options.mss),
        window: options.flight_window(),
        request: Request::INDUCTION,
        socket,
        cookie: 0,
    }
}

impl Opening {
    /// Begins at `start` and ends without success at `give_up_at`.
    pub(crate) fn new(role: Role, own: Handshake, start: Time, give_up_at: Time) -> Opening {
        let request = match role {
            Role::Client => Request::INDUCTION,
            Role::Rendezvous => Request::RENDEZVOUS,
        };
        let own = Handshake { request, ..own };
        Opening { role, own, heard: None, next_try: start, asked_at: None, tries: 0, give_up_at }
    }

    /// The initial sequence number of this side.
    pub(crate) fn isn(&self) -> Seq {
        self.own.isn
    }

    /// What late handshakes are answered with once the connection is open. Only a rendezvous' are.
    pub(crate) fn late_answer(&self) -> Option<Request> {
        (self.role == Role::Rendezvous).then_some(Request::AGREEMENT)
    }

    /// The socket id that requests go to.
    pub(crate) fn destination(&self) -> u32 {
        self.heard.map_or(0, |heard| heard.socket)
    }

    pub(crate) fn next_timeout(&self) -> Time {
        self.next_try.min(self.give_up_at)
    }

    /// Whether it is time to give up.
    pub(crate) fn is_over(&self, now: Time) -> bool {
        now >= self.give_up_at
    }

    /// The request that is to be sent now.
    pub(crate) fn poll(&mut self, now: Time) -> Option<Handshake> {
        if now < self.next_try {
            return None;
        }
        self.next_try = now + RETRY;
        self.tries += 1;
        self.asked_at = (self.tries == 1).then_some(now);
        Some(self.own)
    }

    /// Asks or answers anew, at once.
    fn turn(&mut self, now: Time, request: Request) {
        self.own.request = request;
        self.next_try = now;
        self.tries = 0;
        self.asked_at = None;
    }

    fn rtt(&self, now: Time) -> Option<Span> {
        self.asked_at.map(|asked| now.since(asked))
    }

    /// A handshake came from the peer.
    pub(crate) fn handle(&mut self, now: Time, peer: &Handshake) -> Progress {
        if peer.version != VERSION || peer.mode != self.own.mode {
            return Progress::Waiting;
        }
        match self.role {
            Role::Client => self.handle_answer(now, peer),
            Role::Rendezvous => self.handle_rendezvous(now, peer),
        }
    }

    fn handle_answer(&mut self, now: Time, peer: &Handshake) -> Progress {
        // A listener sends back what it was sent, also if it refuses; who forges its address does
        // not know the number. UDT4 believes a refusal without it.
        if peer.isn != self.own.isn || self.tries == 0 {
            return Progress::Waiting;
        }
        if peer.request == Request::REJECTION {
            return Progress::Refused;
        }
        match (self.own.request, peer.request) {
            (Request::INDUCTION, Request::INDUCTION) => {
                self.own.cookie = peer.cookie;
                self.turn(now, Request::CONCLUSION);
                Progress::Waiting
            }
            (Request::CONCLUSION, Request::CONCLUSION) => Progress::Open(*peer, self.rtt(now)),
            _ => Progress::Waiting,
        }
    }

    fn handle_rendezvous(&mut self, now: Time, peer: &Handshake) -> Progress {
        if peer.request.0 > 0 {
            return Progress::Waiting;
        }
        let same =
            self.heard.is_none_or(|heard| (heard.socket, heard.isn) == (peer.socket, peer.isn));
        if !same {
            return Progress::Waiting;
        }
        self.heard = Some(*peer);
        let begun = self.own.request == Request::RENDEZVOUS;
        if !begun && peer.request != Request::RENDEZVOUS {
            return Progress::Open(*peer, self.rtt(now));
        }
        self.turn(now, Request::CONCLUSION);
        Progress::Waiting
    }

    /// Something else than a handshake came: a peer that sends it takes the connection for open.
    pub(crate) fn handle_other(&mut self) -> Progress {
        match self.heard {
            Some(heard) if self.role == Role::Rendezvous => Progress::Open(heard, None),
            _ => Progress::Waiting,
        }
    }
}
