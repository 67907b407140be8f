//! The options of Multipath TCP, version 1 (RFC 8684), and the numbers of subflows' bytes.
//!
//! Keys and nonces follow from the flow's and the subflow's number, so that captures have the same bytes
//! whenever they are written. Tokens, initial data sequence numbers and HMACs are computed from them as
//! in the RFC, with SHA-256. These options make SYNs longer than they are on the simulated link, by 4 to
//! 16 bytes.

use crate::packet_log::{PacketEvent, PacketRecord};
use crate::scenario::FlowSpec;
use dumbbell_tcp::{Flags, Scheduler, Segment, Stack};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use std::collections::HashMap;

const KIND: u8 = 30;
const NOP: u8 = 1;
/// MP_CAPABLE: subtype 0 and version 1; HMAC-SHA256 (section 3.1).
const MP_CAPABLE: [u8; 2] = [0x01, 0x01];
/// MP_JOIN: subtype 1 (section 3.2).
const MP_JOIN: u8 = 0x10;
/// DSS: subtype 2 (section 3.3).
const DSS: u8 = 0x20;
const DATA_ACK: u8 = 0x01;
/// The data acknowledgement has 8 bytes.
const LONG_DATA_ACK: u8 = 0x02;
/// A mapping whose data sequence number has 8 bytes.
const MAPPING: u8 = 0x04 | 0x08;
const SENDER: usize = 0;
const RECEIVER: usize = 1;

/// A connection over several paths: its keys, and what its packets have shown so far.
pub(super) struct Multipath {
    flow: u32,
    /// Of the subflows.
    stack: Stack,
    scheduler: Scheduler,
    /// The keys of the sender and of the receiver.
    keys: [[u8; 8]; 2],
    /// The first data sequence numbers of the sender and of the receiver.
    first_dsns: [u64; 2],
    /// The sender has received a data acknowledgement, so that it no longer repeats the keys
    /// (`fully_established`).
    is_established: bool,
    /// The latest data acknowledgement, bytes.
    data_acked: u64,
    /// By subflow: the first byte of each packet, and one past the last byte.
    starts: Vec<Vec<u64>>,
}

/// The connections of a scenario's logged flows over several paths, by flow.
pub(super) fn connections(flows: &[FlowSpec]) -> HashMap<u32, Multipath> {
    let logged = (0..).zip(flows).filter(|(_, flow)| flow.log);
    let several = logged.filter(|(_, flow)| !flow.additional_subflows.is_empty());
    several.map(|(number, flow)| (number, Multipath::new(number, flow))).collect()
}

impl Multipath {
    fn new(flow: u32, spec: &FlowSpec) -> Multipath {
        let keys = [0, 1].map(|side| first(&digest(&[b"key", &flow.to_be_bytes(), &[side]])));
        Multipath {
            flow,
            stack: spec.stack.of_subflow(),
            scheduler: Scheduler::named(&spec.scheduler).unwrap_or_default(),
            first_dsns: keys.each_ref().map(|key| initial_dsn(key).wrapping_add(1)),
            keys,
            is_established: false,
            data_acked: 0,
            starts: vec![vec![0]; 1 + spec.additional_subflows.len()],
        }
    }

    /// Bytes of a data packet's headers.
    pub(super) fn header(&self) -> u16 {
        self.stack.header
    }

    /// Takes note of a packet in the order of events.
    pub(super) fn track(&mut self, record: &PacketRecord, segment: &Segment) {
        if segment.flags.contains(Flags::SYN) {
            return;
        }
        self.is_established |= record.event == PacketEvent::Received && !record.by_sender;
        if record.event != PacketEvent::Sent {
            return;
        }
        if !record.by_sender {
            self.data_acked = segment.data_ack(self.data_acked, &self.stack).0;
        } else if !segment.is_ack() {
            let starts = &mut self.starts[usize::from(record.subflow)];
            let end = starts.last().copied().unwrap_or(0);
            if segment.number as usize + 1 == starts.len() {
                starts.push(end + u64::from(segment.size - self.stack.header));
            }
        }
    }

    /// The first byte of a subflow's packet.
    pub(super) fn first_byte(&self, subflow: u8, number: u32) -> u64 {
        let starts = &self.starts[usize::from(subflow)];
        starts.get(number as usize).or(starts.last()).copied().unwrap_or(0)
    }

    /// The receive window of an acknowledgement, bytes.
    pub(super) fn window(&self, segment: &Segment) -> u64 {
        segment.data_ack(self.data_acked, &self.stack).1
    }

    /// The option of a packet, padded to a multiple of four bytes.
    pub(super) fn option(&self, record: &PacketRecord, segment: &Segment) -> Vec<u8> {
        let syn = segment.flags.contains(Flags::SYN);
        let [sender_key, receiver_key] = &self.keys;
        match (syn, record.by_sender) {
            (true, true) if record.subflow == 0 => option(&[&MP_CAPABLE]),
            (true, false) if record.subflow == 0 => option(&[&MP_CAPABLE, receiver_key]),
            (true, _) | (false, true) if syn || segment.is_ack() => {
                self.join(record.subflow, syn, record.by_sender)
            }
            (false, true) if (record.subflow, segment.number) == (0, 0) && !self.is_established => {
                let length = self.payload(segment).to_be_bytes();
                option(&[&MP_CAPABLE, sender_key, receiver_key, &length])
            }
            (_, true) => {
                let first = 1 + self.first_byte(record.subflow, segment.number) as u32;
                option(&[
                    &[DSS, DATA_ACK | MAPPING],
                    &(self.first_dsns[RECEIVER] as u32).to_be_bytes(),
                    &self.first_dsns[SENDER].wrapping_add(segment.dsn()).to_be_bytes(),
                    &first.to_be_bytes(),
                    &self.payload(segment).to_be_bytes(),
                ])
            }
            (_, false) => {
                let (acked, _) = segment.data_ack(self.data_acked, &self.stack);
                let acked = self.first_dsns[SENDER].wrapping_add(acked).to_be_bytes();
                let is_long = usize::from(self.scheduler.data_ack_len()) == 4 + acked.len();
                match is_long {
                    true => option(&[&[DSS, DATA_ACK | LONG_DATA_ACK], &acked]),
                    false => option(&[&[DSS, DATA_ACK], &acked[4..]]),
                }
            }
        }
    }

    fn payload(&self, segment: &Segment) -> u16 {
        segment.size - self.stack.header
    }

    /// The option of a joining subflow's handshake: of the SYN, the SYN-ACK, or the third
    /// acknowledgement (figures 5 to 7).
    fn join(&self, subflow: u8, syn: bool, by_sender: bool) -> Vec<u8> {
        let nonce = |side: usize| -> [u8; 4] {
            first(&digest(&[b"nonce", &self.flow.to_be_bytes(), &[subflow, side as u8]]))
        };
        let code = |own: usize, peer: usize| {
            let key = [self.keys[own], self.keys[peer]].concat();
            let mut code = Hmac::<Sha256>::new_from_slice(&key).expect("a key of any length");
            code.update(&[nonce(own), nonce(peer)].concat());
            code.finalize().into_bytes()
        };
        match (syn, by_sender) {
            (true, true) => {
                option(&[&[MP_JOIN, subflow], &token(&self.keys[RECEIVER]), &nonce(SENDER)])
            }
            (true, false) => {
                let code: [u8; 8] = first(&code(RECEIVER, SENDER));
                option(&[&[MP_JOIN, subflow], &code, &nonce(RECEIVER)])
            }
            _ => option(&[&[MP_JOIN, 0], &code(SENDER, RECEIVER)[..20]]),
        }
    }
}

/// Kind, length, these parts, and NOPs up to a multiple of four bytes.
fn option(parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    let length = 2 + body.len();
    let mut option = [&[KIND, length as u8], body.as_slice()].concat();
    option.resize(length.next_multiple_of(4), NOP);
    option
}

fn digest(parts: &[&[u8]]) -> Vec<u8> {
    Sha256::digest(parts.concat()).to_vec()
}

fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
    *bytes.first_chunk().expect("a digest has 32 bytes")
}

/// Identifies the connection of a key (section 3.2).
fn token(key: &[u8; 8]) -> [u8; 4] {
    first(&digest(&[key]))
}

/// The initial data sequence number of a key (section 3.1).
fn initial_dsn(key: &[u8; 8]) -> u64 {
    let digest = digest(&[key]);
    u64::from_be_bytes(*digest.last_chunk().expect("a digest has 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of Python's hashlib.
    #[test]
    fn token_and_initial_number_are_parts_of_the_keys_digest() {
        let key = [1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(token(&key), [0x66, 0x84, 0x0d, 0xda]);
        assert_eq!(initial_dsn(&key), 0xf5a1_01d3_d29d_6f72);
    }

    #[test]
    fn an_option_is_padded_to_a_multiple_of_four_bytes() {
        assert_eq!(option(&[&[DSS, DATA_ACK], &[1, 2, 3]]), [30, 7, 0x20, 1, 1, 2, 3, NOP]);
    }
}
