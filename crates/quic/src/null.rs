//! A handshake without cryptography, with the messages of TLS 1.3 in size and number.
//!
//! It exchanges transport parameters and nothing else, draws no random numbers, and encrypts
//! nothing. Its messages have the sizes of those of rustls with the certificate of `tls`, so that
//! the packets of a connection have the same sizes with both.

use std::mem;

/// Bytes that the AEADs of TLS 1.3 append to a packet (RFC 9001, section 5.3).
pub(crate) const TAG: usize = 16;
/// Bytes that header protection samples (RFC 9001, section 5.4.2).
pub(crate) const SAMPLE: usize = 16;
/// Packets that AES-128-GCM may protect, and forgeries that it may reject, with one key (RFC 9001,
/// section 6.6).
pub(crate) const CONFIDENTIALITY_LIMIT: u64 = 1 << 23;
pub(crate) const INTEGRITY_LIMIT: u64 = 1 << 52;

/// Sizes of the messages, bytes; those with transport parameters without them.
const CLIENT_HELLO: usize = 182;
const SERVER_HELLO: usize = 90;
const SERVER_FLIGHT: usize = 437;
const CLIENT_FINISHED: usize = 52;
/// A message begins with its length and that of the transport parameters in it.
const HEADER: usize = 4;

/// How far the handshake has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    ClientHello,
    AwaitServerHello,
    ClientKeys,
    AwaitServerFlight,
    ClientFinished,
    AwaitClientHello,
    ServerHello,
    ServerFlight,
    AwaitClientFinished,
    Done,
}

/// One end of a handshake.
#[derive(Debug)]
pub(crate) struct Handshake {
    step: Step,
    /// Transport parameters of this end and of the peer, encoded.
    own: Vec<u8>,
    peer: Option<Vec<u8>>,
    incoming: Vec<u8>,
}

impl Handshake {
    /// The client's end with these transport parameters.
    pub(crate) fn client(parameters: Vec<u8>) -> Handshake {
        Handshake { step: Step::ClientHello, own: parameters, peer: None, incoming: Vec::new() }
    }

    /// The server's end.
    pub(crate) fn server(parameters: Vec<u8>) -> Handshake {
        Handshake { step: Step::AwaitClientHello, ..Handshake::client(parameters) }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.step == Step::Done
    }

    /// The peer's transport parameters, once they have arrived.
    pub(crate) fn peer_parameters(&self) -> Option<&[u8]> {
        self.peer.as_deref()
    }

    /// Processes bytes of the peer's messages. Returns whether they were expected.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> bool {
        self.incoming.extend_from_slice(bytes);
        self.step != Step::Done && self.process()
    }

    /// Processes messages as long as it is the peer's turn.
    fn process(&mut self) -> bool {
        while self.incoming.len() >= HEADER {
            let number = |at: usize| usize::from(self.incoming[at]) << 8;
            let number = |at: usize| number(at) | usize::from(self.incoming[at + 1]);
            let (length, parameters) = (number(0), number(2));
            if self.incoming.len() < length {
                return true;
            }
            if length < HEADER + parameters {
                return false;
            }
            let next = match self.step {
                Step::AwaitServerHello => Step::ClientKeys,
                Step::AwaitServerFlight => Step::ClientFinished,
                Step::AwaitClientHello => Step::ServerHello,
                Step::AwaitClientFinished => Step::Done,
                _ => return true,
            };
            if parameters > 0 {
                self.peer = Some(self.incoming[HEADER..HEADER + parameters].to_vec());
            }
            self.incoming.drain(..length);
            self.step = next;
        }
        true
    }

    /// Appends the next message, if it is this end's turn. Returns whether keys of the next kind
    /// become available after it.
    pub(crate) fn write(&mut self, out: &mut Vec<u8>) -> bool {
        let own = mem::take(&mut self.own);
        let (size, parameters, next, keys) = match self.step {
            Step::ClientHello => (CLIENT_HELLO, &own[..], Step::AwaitServerHello, false),
            Step::ClientKeys => (0, &[][..], Step::AwaitServerFlight, true),
            Step::ClientFinished => (CLIENT_FINISHED, &[][..], Step::Done, true),
            Step::ServerHello => (SERVER_HELLO, &[][..], Step::ServerFlight, true),
            Step::ServerFlight => (SERVER_FLIGHT, &own[..], Step::AwaitClientFinished, true),
            _ => {
                self.own = own;
                return false;
            }
        };
        if size > 0 {
            let (begin, length) = (out.len(), size + parameters.len());
            for number in [length, parameters.len()] {
                let number =
                    u16::try_from(number).expect("transport parameters have some 100 bytes");
                out.extend_from_slice(&number.to_be_bytes());
            }
            out.extend_from_slice(parameters);
            out.resize(begin + length, 0);
        }
        self.step = next;
        self.own = own;
        self.process();
        keys
    }
}

/// A tag of 0, as there is nothing to authenticate.
pub(crate) fn write_tag(packet: &mut [u8]) {
    let payload = packet.len() - TAG;
    packet[payload..].fill(0);
}

/// Mixes bytes into a digest that differs for different connection IDs; it protects nothing.
pub(crate) fn digest(data: &[u8], out: &mut [u8]) {
    let mut state = 0xcbf2_9ce4_8422_2325_u64; // FNV-1a
    for (at, byte) in out.iter_mut().enumerate() {
        for &next in data.iter().chain([&(at as u8)]) {
            state = (state ^ u64::from(next)).wrapping_mul(0x0100_0000_01b3);
        }
        *byte = (state >> 32) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_complete_the_handshake_with_the_parameters_of_the_other() {
        let (mut client, mut server) =
            (Handshake::client(vec![1, 2, 3]), Handshake::server(vec![4, 5]));
        let mut hello = Vec::new();
        assert!(!client.write(&mut hello));
        // In pieces, as CRYPTO frames may come.
        for piece in hello.chunks(7) {
            assert!(server.read(piece));
        }
        assert_eq!(server.peer_parameters(), Some(&[1, 2, 3][..]));
        let (mut first, mut second, mut last) = (Vec::new(), Vec::new(), Vec::new());
        assert!(server.write(&mut first) && server.write(&mut second));
        assert!(!server.write(&mut Vec::new()) && !server.is_complete());
        assert!(client.read(&first) && client.write(&mut last) && last.is_empty());
        assert!(client.read(&second) && client.write(&mut last) && client.is_complete());
        assert_eq!(client.peer_parameters(), Some(&[4, 5][..]));
        assert!(server.read(&last) && server.is_complete());
        assert!(!server.read(&last), "a message after the last one");
    }

    #[test]
    fn digests_of_different_connection_ids_differ() {
        let of = |data: &[u8]| {
            let mut out = [0; 16];
            digest(data, &mut out);
            out
        };
        assert_ne!(of(&[1, 2]), of(&[2, 1]));
        assert_eq!(of(&[1, 2]), of(&[1, 2]));
    }
}
