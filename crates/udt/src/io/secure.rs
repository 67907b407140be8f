//! The encrypted mode: Noise over an open connection, between two ends that have the same key.
//!
//! Once UDT's own handshake is done, the side that connected sends a Noise message as a packet of
//! the applications' own, which UDT4's ends ignore, until the other side answers
//! (`Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s`: a fresh secret for every connection, and nobody without the
//! key can make one). After that
//!
//! - the payload of data is sealed together with the word that says which message it is part of,
//!   under the packet's number, so that sent again it is the same bytes;
//! - a control packet is sealed whole, under a counter that the other side accepts once;
//! - everything else is ignored, but repeated handshakes, which say nothing new.

use crate::codec;
use crate::connection::Connection;
use crate::packet::{Data, Packet, User};
use dumbbell_units::{Span, Time};
use snow::{Builder, HandshakeState, StatelessTransportState};
use std::fmt;
use std::net::IpAddr;

/// Bytes by which sealed data is longer: the message's word and the seal.
pub(super) const OVERHEAD: u16 = WORD as u16 + SEAL as u16;
const WORD: usize = 4;
const SEAL: usize = 16;
const COUNTER: usize = 8;
/// Numbers of control packets, apart from those of data.
const CONTROL: u64 = 1 << 63;
const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
const PROLOGUE: &[u8] = b"dumbbell udt 1";
/// Kinds of the applications' own packets.
const AGREE: u16 = 0x6462;
const SEALED: u16 = 0x6463;
/// How long an answer is waited for.
const RETRY: Span = Span::from_millis(250);
/// Longer than any packet.
const SCRATCH: usize = 1 << 16;

/// A secret of 32 bytes that both ends have.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    /// A key of these bytes, which nobody must be able to guess: a password is none.
    pub const fn new(bytes: [u8; 32]) -> Key {
        Key(bytes)
    }

    /// A new key.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn generate() -> std::io::Result<Key> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Key(bytes))
    }

    /// A key written as 64 hexadecimal digits; `None` if it is not.
    pub fn from_hex(text: &str) -> Option<Key> {
        let text = text.trim();
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(Key(bytes))
    }

    /// The key as 64 hexadecimal digits.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// What stands between the engine and the network.
pub(super) enum Guard {
    /// Nothing.
    Plain,
    /// The two ends do not have a common secret yet.
    Agreeing(Box<Agreement>),
    /// They do.
    Sealed(Box<Seal>),
}

/// What comes of a datagram.
pub(super) enum Opened<'a> {
    /// Packets for the engine, and their payload.
    Packets(codec::Datagram<'a>),
    /// Nothing, or it was for the guard itself.
    Nothing,
}

/// A secret in the making.
pub(super) struct Agreement {
    key: Key,
    /// The side that speaks first: its state, and its message.
    first: Option<(HandshakeState, Vec<u8>)>,
    next_try: Time,
}

/// Seals and opens packets.
pub(super) struct Seal {
    noise: StatelessTransportState,
    /// The answer to the first message, and that message; the side that spoke first has neither.
    answer: Option<(Vec<u8>, Vec<u8>)>,
    answers: bool,
    /// Control packets sealed.
    sealed: u64,
    opened: Window,
    scratch: Vec<u8>,
}

/// Which of the latest 64 counters were seen.
#[derive(Debug, Default)]
struct Window {
    next: u64,
    seen: u64,
}

impl Window {
    /// Whether this counter was not seen before, as far as is remembered.
    fn accept(&mut self, counter: u64) -> bool {
        if counter >= self.next {
            let ahead = counter - self.next + 1;
            self.seen = if ahead < 64 { self.seen << ahead | 1 } else { 1 };
            self.next = counter + 1;
            return true;
        }
        let bit = 1u64.checked_shl((self.next - 1 - counter).min(64) as u32).unwrap_or(0);
        let fresh = bit != 0 && self.seen & bit == 0;
        self.seen |= bit;
        fresh
    }
}

fn builder(key: &Key) -> Option<Builder<'_>> {
    Builder::new(PATTERN.parse().ok()?).prologue(PROLOGUE).ok()?.psk(0, &key.0).ok()
}

fn user(kind: u16, length: usize) -> Packet {
    Packet::User(User { kind, info: 0, length: length as u16 })
}

impl Guard {
    /// The guard of a connection that has, or has not, a key.
    pub(super) fn new(key: Option<&Key>) -> Guard {
        key.map_or(Guard::Plain, |key| {
            let agreement = Agreement { key: key.clone(), first: None, next_try: Time::MAX };
            Guard::Agreeing(Box::new(agreement))
        })
    }

    /// Whether the application may have the connection.
    pub(super) fn is_ready(&self) -> bool {
        !matches!(self, Guard::Agreeing(_))
    }

    /// The connection is open. Of a rendezvous the side with the greater socket id speaks first.
    pub(super) fn begin(&mut self, now: Time, speaks_first: bool) {
        let Guard::Agreeing(agreement) = self else { return };
        if agreement.first.is_some() || !speaks_first {
            return;
        }
        let Some(mut state) = builder(&agreement.key).and_then(|b| b.build_initiator().ok()) else {
            return;
        };
        let mut message = vec![0; 128];
        if let Ok(length) = state.write_message(&[], &mut message) {
            message.truncate(length);
            agreement.first = Some((state, message));
            agreement.next_try = now;
        }
    }

    /// When there is something to send that no engine knows of.
    pub(super) fn next_timeout(&self) -> Time {
        match self {
            Guard::Plain => Time::MAX,
            Guard::Agreeing(agreement) => agreement.next_try,
            Guard::Sealed(seal) => {
                if seal.answers {
                    Time::ZERO
                } else {
                    Time::MAX
                }
            }
        }
    }

    /// A message of the guard's own, if one is due.
    pub(super) fn poll(&mut self, now: Time) -> Option<(Packet, &[u8])> {
        let message = match self {
            Guard::Agreeing(agreement) if now >= agreement.next_try => {
                agreement.next_try = now + RETRY;
                &agreement.first.as_ref()?.1
            }
            Guard::Sealed(seal) if seal.answers => {
                seal.answers = false;
                &seal.answer.as_ref()?.0
            }
            _ => return None,
        };
        Some((user(AGREE, message.len()), message))
    }

    /// Whether a control packet may leave as it is: handshakes do in any case.
    pub(super) fn lets_pass(&self, packet: &Packet) -> bool {
        matches!(self, Guard::Plain) || matches!(packet, Packet::Handshake(_))
    }

    /// Appends a data packet for the peer.
    pub(super) fn write_data(
        &mut self,
        engine: &Connection,
        packet: &Packet,
        data: &Data,
        to: IpAddr,
        out: &mut Vec<u8>,
    ) {
        let payload = engine.payload(packet);
        let Guard::Sealed(seal) = self else {
            return codec::encode(packet, engine.destination(), to, payload, out);
        };
        seal.scratch.clear();
        seal.scratch.extend_from_slice(&data.message.word().to_be_bytes());
        seal.scratch.extend_from_slice(payload);
        let Some(number) = engine.outgoing(data.seq) else { return };
        codec::encode(packet, engine.destination(), to, &[], out);
        append_sealed(&seal.noise, number, &seal.scratch, out);
    }

    /// Appends a whole control packet, sealed; nothing while there is no secret.
    pub(super) fn seal_control(
        &mut self,
        plain: &[u8],
        socket: u32,
        to: IpAddr,
        out: &mut Vec<u8>,
    ) {
        let Guard::Sealed(seal) = self else { return };
        let number = seal.sealed;
        seal.sealed += 1;
        codec::encode(&user(SEALED, COUNTER + plain.len() + SEAL), socket, to, &[], out);
        out.extend_from_slice(&number.to_be_bytes());
        append_sealed(&seal.noise, CONTROL | number, plain, out);
    }

    /// A datagram came; `scratch` takes what was sealed.
    pub(super) fn open<'a>(
        &mut self,
        engine: &Connection,
        datagram: codec::Datagram<'a>,
        scratch: &'a mut Vec<u8>,
    ) -> Opened<'a> {
        let passes = matches!(datagram.packet, Packet::Handshake(_));
        match (self, datagram.packet) {
            (Guard::Plain, _) => Opened::Packets(datagram),
            _ if passes => Opened::Packets(datagram),
            (guard, Packet::User(User { kind: AGREE, .. })) => {
                guard.agree(datagram.payload);
                Opened::Nothing
            }
            (Guard::Sealed(seal), Packet::User(User { kind: SEALED, .. })) => {
                seal.open_control(datagram.payload, scratch).unwrap_or(Opened::Nothing)
            }
            (Guard::Sealed(seal), Packet::Data(data)) => {
                seal.open_data(engine, &data, datagram, scratch).unwrap_or(Opened::Nothing)
            }
            _ => Opened::Nothing,
        }
    }

    /// A Noise message came.
    fn agree(&mut self, message: &[u8]) {
        match self {
            Guard::Plain => {}
            Guard::Agreeing(agreement) => {
                if let Some(seal) = agreement.conclude(message) {
                    *self = Guard::Sealed(Box::new(seal));
                }
            }
            Guard::Sealed(seal) => {
                seal.answers |= seal.answer.as_ref().is_some_and(|(_, first)| first == message);
            }
        }
    }
}

impl Agreement {
    /// The secret, if the message is of someone who has the key.
    fn conclude(&mut self, message: &[u8]) -> Option<Seal> {
        let mut out = vec![0; 256];
        if let Some((state, _)) = &mut self.first {
            state.read_message(message, &mut out).ok()?;
            return Seal::new(self.first.take()?.0, None);
        }
        let mut state = builder(&self.key)?.build_responder().ok()?;
        state.read_message(message, &mut out).ok()?;
        let length = state.write_message(&[], &mut out).ok()?;
        out.truncate(length);
        Seal::new(state, Some((out, message.to_vec())))
    }
}

impl Seal {
    fn new(state: HandshakeState, answer: Option<(Vec<u8>, Vec<u8>)>) -> Option<Seal> {
        Some(Seal {
            noise: state.into_stateless_transport_mode().ok()?,
            answers: answer.is_some(),
            answer,
            sealed: 0,
            opened: Window::default(),
            scratch: Vec::new(),
        })
    }

    fn open_control<'a>(&mut self, sealed: &[u8], scratch: &'a mut Vec<u8>) -> Option<Opened<'a>> {
        let (counter, sealed) = sealed.split_first_chunk::<COUNTER>()?;
        let number = u64::from_be_bytes(*counter);
        if number >= CONTROL {
            return None;
        }
        open_sealed(&self.noise, CONTROL | number, sealed, scratch)?;
        if !self.opened.accept(number) {
            return None;
        }
        let datagram = codec::decode(scratch).ok()?;
        let control = !matches!(datagram.packet, Packet::Data(_));
        Some(if control { Opened::Packets(datagram) } else { Opened::Nothing })
    }

    fn open_data<'a>(
        &mut self,
        engine: &Connection,
        data: &Data,
        datagram: codec::Datagram<'a>,
        scratch: &'a mut Vec<u8>,
    ) -> Option<Opened<'a>> {
        let number = engine.incoming(data.seq).filter(|&number| number < CONTROL)?;
        open_sealed(&self.noise, number, datagram.payload, scratch)?;
        let (word, payload) = scratch.split_first_chunk::<WORD>()?;
        if u32::from_be_bytes(*word) != data.message.word() {
            return None;
        }
        let data = Data { length: payload.len() as u16, ..*data };
        Some(Opened::Packets(datagram.with_data(data, payload)))
    }
}

fn append_sealed(noise: &StatelessTransportState, nonce: u64, plain: &[u8], out: &mut Vec<u8>) {
    let at = out.len();
    out.resize(at + plain.len() + SEAL, 0);
    let written = noise.write_message(nonce, plain, &mut out[at..]);
    debug_assert!(written.is_ok(), "a packet is not too long to be sealed");
}

fn open_sealed(
    noise: &StatelessTransportState,
    nonce: u64,
    sealed: &[u8],
    out: &mut Vec<u8>,
) -> Option<()> {
    out.resize(SCRATCH, 0);
    let length = noise.read_message(nonce, sealed, out).ok()?;
    out.truncate(length);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_accepted_once_whatever_the_order() {
        let mut window = Window::default();
        let accepted: Vec<bool> =
            [0, 2, 1, 1, 2, 200, 150, 150, 100].map(|counter| window.accept(counter)).into();
        assert_eq!(accepted, [true, true, true, false, false, true, true, false, false]);
    }

    #[test]
    fn a_key_is_read_as_it_was_written() {
        let key = Key::generate().expect("there are random numbers");
        assert_eq!(Key::from_hex(&key.to_hex()), Some(key));
        assert_eq!(Key::from_hex("password"), None);
    }

    #[test]
    fn who_has_another_key_does_not_agree() {
        let mut first = Guard::new(Some(&Key::new([1; 32])));
        first.begin(Time::ZERO, true);
        let message = first.poll(Time::ZERO).map(|(_, message)| message.to_vec());
        let message = message.expect("the first one speaks");
        for (key, agrees) in [([2; 32], false), ([1; 32], true)] {
            let mut second = Guard::new(Some(&Key::new(key)));
            second.agree(&message);
            assert_eq!(second.is_ready(), agrees);
        }
    }
}
