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
use crate::packet::{DataHeader, Packet, UserDefined};
use dumbbell_units::{Span, Time};
use snow::{Builder, HandshakeState, StatelessTransportState};
use std::fmt;
use std::net::IpAddr;

/// Bytes by which sealed data is longer: the message's word and the seal.
pub(super) const CRYPTO_OVERHEAD: u16 = MESSAGE_FIELD as u16 + TAG as u16;
const MESSAGE_FIELD: usize = 4;
const TAG: usize = 16;
const COUNTER: usize = 8;
/// Numbers of control packets, apart from those of data.
const CONTROL: u64 = 1 << 63;
const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
const PROLOGUE: &[u8] = b"dumbbell udt 1";
/// Kinds of the applications' own packets.
const NOISE_HANDSHAKE: u16 = 0x6462;
const ENCRYPTED_CONTROL: u16 = 0x6463;
/// How long an answer is waited for.
const RETRY_INTERVAL: Span = Span::from_millis(250);
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
pub(super) enum CryptoState {
    /// Nothing.
    Plain,
    /// The two ends do not have a common secret yet.
    Handshaking(Box<NoiseHandshake>),
    /// They do.
    Encrypted(Box<NoiseTransport>),
}

/// What comes of a datagram.
pub(super) enum Decrypted<'a> {
    /// Packets for the engine, and their payload.
    Packets(codec::Datagram<'a>),
    /// Nothing, or it was for the guard itself.
    Discard,
}

/// A secret in the making.
pub(super) struct NoiseHandshake {
    key: Key,
    /// The side that speaks first: its state, and its message.
    initiator: Option<(HandshakeState, Vec<u8>)>,
    next_try: Time,
}

/// Seals and opens packets.
pub(super) struct NoiseTransport {
    noise: StatelessTransportState,
    /// The answer to the first message, and that message; the side that spoke first has neither.
    response: Option<(Vec<u8>, Vec<u8>)>,
    response_pending: bool,
    /// Control packets sealed.
    next_counter: u64,
    replay: ReplayWindow,
    scratch: Vec<u8>,
}

/// Which of the latest 64 counters were seen.
#[derive(Debug, Default)]
struct ReplayWindow {
    next: u64,
    seen: u64,
}

impl ReplayWindow {
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
    Packet::UserDefined(UserDefined { kind, info: 0, length: length as u16 })
}

impl CryptoState {
    /// The guard of a connection that has, or has not, a key.
    pub(super) fn new(key: Option<&Key>) -> CryptoState {
        key.map_or(CryptoState::Plain, |key| {
            let agreement =
                NoiseHandshake { key: key.clone(), initiator: None, next_try: Time::MAX };
            CryptoState::Handshaking(Box::new(agreement))
        })
    }

    /// Whether the application may have the connection.
    pub(super) fn is_ready(&self) -> bool {
        !matches!(self, CryptoState::Handshaking(_))
    }

    /// The connection is open. Of a rendezvous the side with the greater socket id speaks first.
    pub(super) fn begin(&mut self, now: Time, speaks_first: bool) {
        let CryptoState::Handshaking(agreement) = self else { return };
        if agreement.initiator.is_some() || !speaks_first {
            return;
        }
        let Some(mut state) = builder(&agreement.key).and_then(|b| b.build_initiator().ok()) else {
            return;
        };
        let mut message = vec![0; 128];
        if let Ok(length) = state.write_message(&[], &mut message) {
            message.truncate(length);
            agreement.initiator = Some((state, message));
            agreement.next_try = now;
        }
    }

    /// When there is something to send that no engine knows of.
    pub(super) fn next_timeout(&self) -> Time {
        match self {
            CryptoState::Plain => Time::MAX,
            CryptoState::Handshaking(agreement) => agreement.next_try,
            CryptoState::Encrypted(seal) => {
                if seal.response_pending {
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
            CryptoState::Handshaking(agreement) if now >= agreement.next_try => {
                agreement.next_try = now + RETRY_INTERVAL;
                &agreement.initiator.as_ref()?.1
            }
            CryptoState::Encrypted(seal) if seal.response_pending => {
                seal.response_pending = false;
                &seal.response.as_ref()?.0
            }
            _ => return None,
        };
        Some((user(NOISE_HANDSHAKE, message.len()), message))
    }

    /// Whether a control packet may leave as it is: handshakes do in any case.
    pub(super) fn allows_plaintext(&self, packet: &Packet) -> bool {
        matches!(self, CryptoState::Plain) || matches!(packet, Packet::Handshake(_))
    }

    /// Appends a data packet for the peer.
    pub(super) fn write_data(
        &mut self,
        engine: &Connection,
        packet: &Packet,
        data: &DataHeader,
        to: IpAddr,
        out: &mut Vec<u8>,
    ) {
        let payload = engine.payload(packet);
        let CryptoState::Encrypted(seal) = self else {
            return codec::encode(packet, engine.destination(), to, payload, out);
        };
        seal.scratch.clear();
        seal.scratch.extend_from_slice(&data.message.word().to_be_bytes());
        seal.scratch.extend_from_slice(payload);
        let Some(number) = engine.sent_index(data.seq) else { return };
        codec::encode(packet, engine.destination(), to, &[], out);
        encrypt_into(&seal.noise, number, &seal.scratch, out);
    }

    /// Appends a whole control packet, sealed; nothing while there is no secret.
    pub(super) fn encrypt_control(
        &mut self,
        plain: &[u8],
        socket: u32,
        to: IpAddr,
        out: &mut Vec<u8>,
    ) {
        let CryptoState::Encrypted(seal) = self else { return };
        let number = seal.next_counter;
        seal.next_counter += 1;
        codec::encode(&user(ENCRYPTED_CONTROL, COUNTER + plain.len() + TAG), socket, to, &[], out);
        out.extend_from_slice(&number.to_be_bytes());
        encrypt_into(&seal.noise, CONTROL | number, plain, out);
    }

    /// A datagram came; `scratch` takes what was sealed.
    pub(super) fn decrypt<'a>(
        &mut self,
        engine: &Connection,
        datagram: codec::Datagram<'a>,
        scratch: &'a mut Vec<u8>,
    ) -> Decrypted<'a> {
        let passes = matches!(datagram.packet, Packet::Handshake(_));
        match (self, datagram.packet) {
            (CryptoState::Plain, _) => Decrypted::Packets(datagram),
            _ if passes => Decrypted::Packets(datagram),
            (crypto, Packet::UserDefined(UserDefined { kind: NOISE_HANDSHAKE, .. })) => {
                crypto.on_noise_message(datagram.payload);
                Decrypted::Discard
            }
            (
                CryptoState::Encrypted(seal),
                Packet::UserDefined(UserDefined { kind: ENCRYPTED_CONTROL, .. }),
            ) => seal.decrypt_control(datagram.payload, scratch).unwrap_or(Decrypted::Discard),
            (CryptoState::Encrypted(seal), Packet::Data(data)) => {
                seal.decrypt_data(engine, &data, datagram, scratch).unwrap_or(Decrypted::Discard)
            }
            _ => Decrypted::Discard,
        }
    }

    /// A Noise message came.
    fn on_noise_message(&mut self, message: &[u8]) {
        match self {
            CryptoState::Plain => {}
            CryptoState::Handshaking(agreement) => {
                if let Some(seal) = agreement.complete(message) {
                    *self = CryptoState::Encrypted(Box::new(seal));
                }
            }
            CryptoState::Encrypted(seal) => {
                seal.response_pending |=
                    seal.response.as_ref().is_some_and(|(_, first)| first == message);
            }
        }
    }
}

impl NoiseHandshake {
    /// The secret, if the message is of someone who has the key.
    fn complete(&mut self, message: &[u8]) -> Option<NoiseTransport> {
        let mut out = vec![0; 256];
        if let Some((state, _)) = &mut self.initiator {
            state.read_message(message, &mut out).ok()?;
            return NoiseTransport::new(self.initiator.take()?.0, None);
        }
        let mut state = builder(&self.key)?.build_responder().ok()?;
        state.read_message(message, &mut out).ok()?;
        let length = state.write_message(&[], &mut out).ok()?;
        out.truncate(length);
        NoiseTransport::new(state, Some((out, message.to_vec())))
    }
}

impl NoiseTransport {
    fn new(state: HandshakeState, answer: Option<(Vec<u8>, Vec<u8>)>) -> Option<NoiseTransport> {
        Some(NoiseTransport {
            noise: state.into_stateless_transport_mode().ok()?,
            response_pending: answer.is_some(),
            response: answer,
            next_counter: 0,
            replay: ReplayWindow::default(),
            scratch: Vec::new(),
        })
    }

    fn decrypt_control<'a>(
        &mut self,
        sealed: &[u8],
        scratch: &'a mut Vec<u8>,
    ) -> Option<Decrypted<'a>> {
        let (counter, sealed) = sealed.split_first_chunk::<COUNTER>()?;
        let number = u64::from_be_bytes(*counter);
        if number >= CONTROL {
            return None;
        }
        decrypt_into(&self.noise, CONTROL | number, sealed, scratch)?;
        if !self.replay.accept(number) {
            return None;
        }
        let datagram = codec::decode(scratch).ok()?;
        let control = !matches!(datagram.packet, Packet::Data(_));
        Some(if control { Decrypted::Packets(datagram) } else { Decrypted::Discard })
    }

    fn decrypt_data<'a>(
        &mut self,
        engine: &Connection,
        data: &DataHeader,
        datagram: codec::Datagram<'a>,
        scratch: &'a mut Vec<u8>,
    ) -> Option<Decrypted<'a>> {
        let number = engine.received_index(data.seq).filter(|&number| number < CONTROL)?;
        decrypt_into(&self.noise, number, datagram.payload, scratch)?;
        let (word, payload) = scratch.split_first_chunk::<MESSAGE_FIELD>()?;
        if u32::from_be_bytes(*word) != data.message.word() {
            return None;
        }
        let data = DataHeader { length: payload.len() as u16, ..*data };
        Some(Decrypted::Packets(datagram.with_data(data, payload)))
    }
}

fn encrypt_into(noise: &StatelessTransportState, nonce: u64, plain: &[u8], out: &mut Vec<u8>) {
    let at = out.len();
    out.resize(at + plain.len() + TAG, 0);
    let written = noise.write_message(nonce, plain, &mut out[at..]);
    debug_assert!(written.is_ok(), "a packet is not too long to be sealed");
}

fn decrypt_into(
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
        let mut window = ReplayWindow::default();
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
        let mut first = CryptoState::new(Some(&Key::new([1; 32])));
        first.begin(Time::ZERO, true);
        let message = first.poll(Time::ZERO).map(|(_, message)| message.to_vec());
        let message = message.expect("the first one speaks");
        for (key, agrees) in [([2; 32], false), ([1; 32], true)] {
            let mut second = CryptoState::new(Some(&Key::new(key)));
            second.on_noise_message(&message);
            assert_eq!(second.is_ready(), agrees);
        }
    }
}
