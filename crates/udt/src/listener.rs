//! The listening side of the handshake. It is stateless until the client's cookie proves that the
//! client receives packets at its source address.

use crate::config::{Mode, TransportOptions};
use crate::handshake::VERSION;
use crate::packet::{Handshake, RequestType};
use dumbbell_units::Time;
use siphasher::sip::SipHasher24;
use std::hash::Hasher;

/// Cookies change with this period, and are valid in their own and the next one.
const COOKIE_EPOCH_NANOS: u64 = 60_000_000_000;

/// Handles the handshakes of clients.
#[derive(Clone, Debug)]
pub struct Listener {
    options: TransportOptions,
    mode: Mode,
    key: [u8; 16],
}

/// What to do with a received handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerAction {
    /// Drop it.
    Ignore,
    /// Send this response to the client's socket id.
    Reply(Handshake),
    /// The client's address is validated. If this client (address, socket id, initial sequence
    /// number) has a connection, pass the handshake to it; otherwise create one by
    /// [`Connection::accept`](crate::Connection::accept).
    Accept,
}

impl Listener {
    /// A listener that computes cookies with the secret `key`.
    pub fn new(options: TransportOptions, mode: Mode, key: [u8; 16]) -> Listener {
        Listener { options, mode, key }
    }

    /// Handles a handshake to socket id 0. `from` encodes its source address.
    pub fn handle(&self, now: Time, from: &[u8], client: &Handshake) -> ListenerAction {
        let epoch = now.as_nanos() / COOKIE_EPOCH_NANOS;
        if client.request_type == RequestType::INDUCTION {
            return ListenerAction::Reply(Handshake {
                cookie: self.cookie(from, epoch),
                ..*client
            });
        }
        let epochs = [Some(epoch), epoch.checked_sub(1)];
        let valid =
            epochs.into_iter().flatten().any(|epoch| self.cookie(from, epoch) == client.cookie);
        if client.request_type != RequestType::CONCLUSION || !valid {
            return ListenerAction::Ignore;
        }
        if client.version != VERSION || client.socket_type != self.mode.socket_type() {
            return ListenerAction::Reply(Handshake {
                request_type: RequestType::REJECTION,
                ..*client
            });
        }
        ListenerAction::Accept
    }

    /// The rejection of a client for its key, or for having none.
    pub fn refuse_key(&self, client: &Handshake) -> Handshake {
        Handshake { request_type: RequestType::KEY_REJECTION, ..*client }
    }

    /// The rejection of a client.
    pub fn refuse(&self, client: &Handshake) -> Handshake {
        Handshake { request_type: RequestType::REJECTION, ..*client }
    }

    /// Options of accepted connections.
    pub fn options(&self) -> &TransportOptions {
        &self.options
    }

    fn cookie(&self, from: &[u8], epoch: u64) -> u32 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write_u64(epoch.to_le());
        hasher.write(from);
        hasher.finish() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake::initial_request;
    use crate::seq::Seq;
    use dumbbell_units::Span;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    fn listener() -> Listener {
        Listener::new(TransportOptions::default(), Mode::Stream, [7; 16])
    }

    fn asking() -> Handshake {
        initial_request(&TransportOptions::default(), Mode::Stream, Seq::new(5), 42)
    }

    /// A client's second request, with a cookie.
    fn concluding(listener: &Listener, from: &[u8], when: Time) -> Handshake {
        match listener.handle(when, from, &asking()) {
            ListenerAction::Reply(reply) => {
                Handshake { request_type: RequestType::CONCLUSION, ..reply }
            }
            other => panic!("no cookie but {other:?}"),
        }
    }

    #[test]
    fn the_first_response_is_the_request_with_a_cookie() {
        let reply = match listener().handle(at(0), b"a", &asking()) {
            ListenerAction::Reply(reply) => reply,
            other => panic!("{other:?}"),
        };
        assert_eq!(Handshake { cookie: 0, ..reply }, asking());
    }

    #[test]
    fn a_cookie_is_valid_in_its_minute_and_the_next_one() {
        let listener = listener();
        let client = concluding(&listener, b"a", at(59));
        assert_eq!(listener.handle(at(60), b"a", &client), ListenerAction::Accept);
        assert_eq!(listener.handle(at(119), b"a", &client), ListenerAction::Accept);
        assert_eq!(listener.handle(at(120), b"a", &client), ListenerAction::Ignore);
    }

    #[test]
    fn a_cookie_is_invalid_for_another_address_or_another_listener() {
        let client = concluding(&listener(), b"a", at(0));
        assert_eq!(listener().handle(at(0), b"b", &client), ListenerAction::Ignore);
        let other = Listener::new(TransportOptions::default(), Mode::Stream, [8; 16]);
        assert_eq!(other.handle(at(0), b"a", &client), ListenerAction::Ignore);
    }

    #[test]
    fn a_client_of_another_version_or_mode_is_rejected() {
        let client = concluding(&listener(), b"a", at(0));
        for wrong in [Handshake { version: 5, ..client }, Handshake { socket_type: 2, ..client }] {
            let refusal = Handshake { request_type: RequestType::REJECTION, ..wrong };
            assert_eq!(listener().handle(at(0), b"a", &wrong), ListenerAction::Reply(refusal));
        }
    }
}
