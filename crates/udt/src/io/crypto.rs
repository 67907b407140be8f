//! The encrypted mode: Noise with a pre-shared key over an established UDT connection.
//!
//! After UDT's handshake the connecting side sends a Noise handshake message in a user-defined packet,
//! which UDT4 ignores, until the other side responds. This is how the ends of a rendezvous begin. A client
//! and a listener append these messages to the handshake with the cookie and its response, so that the
//! listener creates no connection before the client has proved that it has the key. The pattern
//! `Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s` gives fresh keys for each connection and authenticates both
//! ends by the pre-shared key. After that
//!
//! - the payload and message field of a data packet are encrypted with its index as the nonce, so that
//!   a retransmission has the same bytes;
//! - a control packet is encrypted whole, with a counter as the nonce, which the receiver accepts once;
//! - plaintext packets are ignored, except UDT handshakes.
//!
//! The client's handshake is part of the Noise prologue. A listener therefore accepts a recorded message
//! only with the cookie that was given to the recorded address. In a rendezvous the prologue has the socket
//! ids and initial sequence numbers of both ends, which are random: a message that was recorded in another
//! connection is not accepted.

use super::key::Key;
use crate::codec;
use crate::connection::Connection;
use crate::handshake::Role;
use crate::packet::{DataHeader, Handshake, Packet, RequestType, UserDefined};
use dumbbell_units::{Span, Time};
use snow::{Builder, HandshakeState, StatelessTransportState};
use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr};

/// Bytes that encryption adds to a data packet: message field and authentication tag.
pub(super) const CRYPTO_OVERHEAD: u16 = MESSAGE_FIELD as u16 + TAG as u16;
const MESSAGE_FIELD: usize = 4;
const TAG: usize = 16;
const COUNTER: usize = 8;
/// Nonces of control packets have this bit; those of data packets do not.
const CONTROL: u64 = 1 << 63;
const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
const PROLOGUE: &[u8] = b"dumbbell udt 1";
/// Extended types of user-defined packets.
const NOISE_HANDSHAKE: u16 = 0x6462;
const ENCRYPTED_CONTROL: u16 = 0x6463;
/// Interval of retransmissions of the first handshake message.
const RETRY_INTERVAL: Span = Span::from_millis(250);
/// Upper limit of a packet, bytes.
const SCRATCH: usize = 1 << 16;

/// Encryption between engine and network.
pub(super) enum CryptoState {
    /// Not encrypted.
    Plain,
    /// The Noise handshake is not complete.
    Handshaking(Box<NoiseHandshake>),
    /// The Noise handshake is complete.
    Encrypted(Box<NoiseTransport>),
}

/// Result of decrypting a datagram.
pub(super) enum Decrypted<'a> {
    /// Packets for the engine.
    Packets(codec::Datagram<'a>),
    /// Invalid, or a Noise handshake message.
    Discard,
}

/// An incomplete Noise handshake.
pub(super) struct NoiseHandshake {
    key: Key,
    /// State and message of the Noise initiator.
    initiator: Option<(HandshakeState, Vec<u8>)>,
    /// The handshake that a client's message belongs to.
    bound_to: Option<Handshake>,
    next_try: Time,
}

/// Encrypts and decrypts packets.
pub(super) struct NoiseTransport {
    noise: StatelessTransportState,
    /// Responder only: its message, and the initiator's message that it responds to.
    response: Option<(Vec<u8>, Vec<u8>)>,
    response_pending: bool,
    /// Nonce of the next control packet.
    next_counter: u64,
    replay: ReplayWindow,
    scratch: Vec<u8>,
}

/// Replay protection: which of the latest 64 counters were received.
#[derive(Debug, Default)]
struct ReplayWindow {
    next: u64,
    seen: u64,
}

impl ReplayWindow {
    /// Records a counter; `false` if it is a duplicate or older than the window.
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

fn builder<'a>(key: &'a Key, prologue: &'a [u8]) -> Option<Builder<'a>> {
    Builder::new(PATTERN.parse().ok()?).prologue(prologue).ok()?.psk(0, &key.0).ok()
}

/// The prologue of a client's message: it is bound to the client's handshake. The address, which address
/// translation may change, is left out.
fn prologue(client: &Handshake) -> Vec<u8> {
    let mut bytes = PROLOGUE.to_vec();
    let none = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    codec::encode(&Packet::Handshake(*client), 0, none, &[], &mut bytes);
    bytes
}

/// The prologue of a rendezvous; `None` before it is established, and of other connections.
pub(super) fn rendezvous_prologue(engine: &Connection) -> Option<Vec<u8>> {
    let mut ends = engine.identities().filter(|_| engine.role() == Some(Role::Rendezvous))?;
    ends.sort_by_key(|&(id, isn)| (id, isn.get()));
    let numbers = ends.iter().flat_map(|&(id, isn)| [id, isn.get()]).flat_map(u32::to_be_bytes);
    Some(PROLOGUE.iter().copied().chain(numbers).collect())
}

/// Processes an initiator's message. Returns the responder's transport, whose response is pending.
fn respond(key: &Key, prologue: &[u8], message: &[u8]) -> Option<NoiseTransport> {
    let mut out = vec![0; 256];
    let mut state = builder(key, prologue)?.build_responder().ok()?;
    state.read_message(message, &mut out).ok()?;
    let length = state.write_message(&[], &mut out).ok()?;
    out.truncate(length);
    NoiseTransport::new(state, Some((out, message.to_vec())))
}

fn user(kind: u16, length: usize) -> Packet {
    Packet::UserDefined(UserDefined { kind, info: 0, length: length as u16 })
}

impl CryptoState {
    /// The initial state, with or without a key.
    pub(super) fn new(key: Option<&Key>) -> CryptoState {
        key.map_or(CryptoState::Plain, |key| {
            let agreement = NoiseHandshake {
                key: key.clone(),
                initiator: None,
                bound_to: None,
                next_try: Time::MAX,
            };
            CryptoState::Handshaking(Box::new(agreement))
        })
    }

    /// The state of a listener's connection, ready to be used; `None` if the client does not prove that
    /// it has the key, or has one and the listener has none.
    pub(super) fn accept(
        key: Option<&Key>,
        client: &Handshake,
        message: &[u8],
    ) -> Option<CryptoState> {
        let Some(key) = key else { return message.is_empty().then_some(CryptoState::Plain) };
        let mut transport = respond(key, &prologue(client), message)?;
        // It is sent with the response to the handshake.
        transport.response_pending = false;
        Some(CryptoState::Encrypted(Box::new(transport)))
    }

    /// The message to append to this end's handshake: empty but for a client's with a cookie, and a
    /// listener's response to it.
    pub(super) fn handshake_message(&mut self, own: &Handshake, role: Option<Role>) -> &[u8] {
        match (self, role) {
            (CryptoState::Handshaking(agreement), Some(Role::Client))
                if own.request_type == RequestType::CONCLUSION =>
            {
                if agreement.bound_to != Some(*own) {
                    agreement.bound_to = Some(*own);
                    agreement.initiate(&prologue(own));
                }
                agreement.initiator.as_ref().map_or(&[], |(_, message)| message)
            }
            (CryptoState::Encrypted(transport), None) => {
                transport.response.as_ref().map_or(&[], |(response, _)| response)
            }
            _ => &[],
        }
    }

    /// Whether a handshake from the peer may be processed. A client with a key accepts a response only
    /// with the listener's message.
    fn admits_handshake(&mut self, engine: &Connection, peer: &Handshake, message: &[u8]) -> bool {
        let is_response =
            engine.role() == Some(Role::Client) && peer.request_type == RequestType::CONCLUSION;
        if is_response && let CryptoState::Handshaking(_) = self {
            self.on_noise_message(None, message);
        }
        !is_response || self.is_ready()
    }

    /// Whether the application may use the connection.
    pub(super) fn is_ready(&self) -> bool {
        !matches!(self, CryptoState::Handshaking(_))
    }

    /// Whether packets are encrypted.
    pub(super) fn is_encrypted(&self) -> bool {
        matches!(self, CryptoState::Encrypted(_))
    }

    /// Starts the Noise handshake of a rendezvous as its initiator.
    pub(super) fn begin(&mut self, now: Time, prologue: &[u8]) {
        if let CryptoState::Handshaking(agreement) = self
            && agreement.initiator.is_none()
        {
            agreement.initiate(prologue);
            agreement.next_try = now;
        }
    }

    /// Time of the next handshake message.
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

    /// The handshake message to send, if one is due.
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

    /// Whether a control packet is sent in plaintext, as UDT handshakes always are.
    pub(super) fn allows_plaintext(&self, packet: &Packet) -> bool {
        matches!(self, CryptoState::Plain) || matches!(packet, Packet::Handshake(_))
    }

    /// Appends a data packet, encrypted if required.
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

    /// Appends an encrypted control packet; nothing before the Noise handshake is complete.
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

    /// Decrypts a datagram into `scratch`.
    pub(super) fn decrypt<'a>(
        &mut self,
        engine: &Connection,
        datagram: codec::Datagram<'a>,
        scratch: &'a mut Vec<u8>,
    ) -> Decrypted<'a> {
        if let Packet::Handshake(peer) = &datagram.packet {
            return match self.admits_handshake(engine, peer, datagram.payload) {
                true => Decrypted::Packets(datagram),
                false => Decrypted::Discard,
            };
        }
        match (self, datagram.packet) {
            (CryptoState::Plain, _) => Decrypted::Packets(datagram),
            (crypto, Packet::UserDefined(UserDefined { kind: NOISE_HANDSHAKE, .. })) => {
                crypto.on_noise_message(rendezvous_prologue(engine).as_deref(), datagram.payload);
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

    /// Handles a Noise handshake message. `prologue`: that of a rendezvous, whose end may be the responder.
    fn on_noise_message(&mut self, prologue: Option<&[u8]>, message: &[u8]) {
        match self {
            CryptoState::Plain => {}
            CryptoState::Handshaking(agreement) => {
                if let Some(seal) = agreement.complete(prologue, message) {
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
    /// Creates the initiator's message.
    fn initiate(&mut self, prologue: &[u8]) {
        let initiator = builder(&self.key, prologue).and_then(|b| b.build_initiator().ok());
        let Some(mut state) = initiator else { return };
        let mut message = vec![0; 128];
        if let Ok(length) = state.write_message(&[], &mut message) {
            message.truncate(length);
            self.initiator = Some((state, message));
        }
    }

    /// Completes the handshake if the message is authentic.
    fn complete(&mut self, prologue: Option<&[u8]>, message: &[u8]) -> Option<NoiseTransport> {
        let Some((state, _)) = &mut self.initiator else {
            return respond(&self.key, prologue?, message);
        };
        state.read_message(message, &mut [0; 256]).ok()?;
        NoiseTransport::new(self.initiator.take()?.0, None)
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
        ciphertext: &[u8],
        scratch: &'a mut Vec<u8>,
    ) -> Option<Decrypted<'a>> {
        let (counter, ciphertext) = ciphertext.split_first_chunk::<COUNTER>()?;
        let number = u64::from_be_bytes(*counter);
        if number >= CONTROL {
            return None;
        }
        decrypt_into(&self.noise, CONTROL | number, ciphertext, scratch)?;
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
    debug_assert!(written.is_ok(), "a packet is not too long to be encrypted");
}

fn decrypt_into(
    noise: &StatelessTransportState,
    nonce: u64,
    ciphertext: &[u8],
    out: &mut Vec<u8>,
) -> Option<()> {
    out.resize(SCRATCH, 0);
    let length = noise.read_message(nonce, ciphertext, out).ok()?;
    out.truncate(length);
    Some(())
}

/// For fuzzing: gives `bytes` to both ends of the Noise handshake. Whether one of them accepted them, which
/// is only possible with the key.
#[doc(hidden)]
pub fn fuzz_noise(bytes: &[u8]) -> bool {
    let key = Key::new([7; 32]);
    let Ok(datagram) = codec::decode(bytes) else { return false };
    let mut client = CryptoState::new(Some(&key));
    let mut accepted = false;
    if let Packet::Handshake(handshake) = &datagram.packet {
        let conclusion = Handshake { request_type: RequestType::CONCLUSION, ..*handshake };
        client.handshake_message(&conclusion, Some(Role::Client));
        accepted |= CryptoState::accept(Some(&key), handshake, datagram.payload).is_some();
    } else if bytes.len().is_multiple_of(2) {
        client.begin(Time::ZERO, PROLOGUE);
    }
    client.on_noise_message(Some(PROLOGUE), datagram.payload);
    accepted |= client.is_ready();
    // An agreed connection takes control packets only from its peer.
    thread_local!(static AGREED: RefCell<Option<NoiseTransport>> = RefCell::new(agreed()));
    let kind = ENCRYPTED_CONTROL;
    if matches!(datagram.packet, Packet::UserDefined(user) if user.kind == kind) {
        let opens = |transport: &mut NoiseTransport| {
            let mut scratch = Vec::new();
            let opened = transport.decrypt_control(datagram.payload, &mut scratch);
            matches!(opened, Some(Decrypted::Packets(_)))
        };
        accepted |= AGREED.with_borrow_mut(|agreed| agreed.as_mut().is_none_or(opens));
    }
    accepted
}

/// The responder's transport of a complete handshake, for fuzzing.
fn agreed() -> Option<NoiseTransport> {
    let key = &Key::new([7; 32]);
    let mut first = CryptoState::new(Some(key));
    first.begin(Time::ZERO, PROLOGUE);
    let message = first.poll(Time::ZERO).map(|(_, message)| message.to_vec())?;
    respond(key, PROLOGUE, &message)
}

#[cfg(test)]
mod tests;
