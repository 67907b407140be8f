//! SABUL, RBUDP and Tsunami: each end with arbitrary datagrams and control messages at arbitrary times.
//!
//! The first byte selects the end, each further one an action.

use crate::InputReader;
use dumbbell_bulk::sabul::codec::Control;
use dumbbell_bulk::tsunami::codec::{self, Parameters, Request};
use dumbbell_bulk::{
    Channel, Engine, Load, RbudpOptions, SabulOptions, TsunamiOptions, rbudp, sabul, tsunami,
};
use dumbbell_units::{Span, Time};

/// Maximum number of messages at one instant; more is an endless loop.
const MAX_AT_ONCE: usize = 5000;

/// Runs an end with the actions in `bytes`.
///
/// # Panics
/// If the end panics, or sends without end.
pub fn run(bytes: &[u8]) {
    let bytes = &mut InputReader(bytes);
    let load = Load { bytes: Some(100_000), stop: None };
    let sabul = SabulOptions { flag_size: 64, ..SabulOptions::default() };
    let (rbudp, tsunami) = (RbudpOptions::default(), TsunamiOptions::default());
    let mut engine: Box<dyn Engine> = match bytes.u8() % 6 {
        0 => Box::new(sabul::Sender::new(sabul, load)),
        1 => Box::new(sabul::Receiver::new(sabul)),
        2 => Box::new(rbudp::Sender::new(rbudp, load)),
        3 => Box::new(rbudp::Receiver::new(rbudp)),
        4 => Box::new(tsunami::Server::new(tsunami, load)),
        _ => Box::new(tsunami::Client::new(tsunami)),
    };
    let (mut now, mut message, mut sent) = (Time::ZERO, Vec::new(), 0);
    while !bytes.is_empty() {
        message.clear();
        let action = bytes.u8();
        let channel = if action & 1 == 0 { Channel::Data } else { Channel::Control };
        compose(action >> 1 & 15, bytes, &mut message);
        if engine.handle(now, channel, &message).is_err() {
            return;
        }
        if action & 32 != 0 {
            now = engine.next_timeout().min(now + Span::from_secs(1)).max(now);
            sent = 0;
        }
        message.clear();
        while engine.poll(now, &mut message).is_some() {
            message.clear();
            sent += 1;
            assert!(sent < MAX_AT_ONCE, "it sends without end");
        }
        engine.stats();
    }
}

/// A message: raw input, or one of the protocols' with arbitrary numbers.
fn compose(kind: u8, bytes: &mut InputReader<'_>, out: &mut Vec<u8>) {
    match kind {
        0 => {
            let length = usize::from(bytes.u8());
            out.extend_from_slice(bytes.take(length));
        }
        1 => Control::Ack(bytes.u16().into()).encode(out),
        2 => Control::Err((0..=bytes.u8()).map(|_| bytes.u8().into()).collect()).encode(out),
        3 => Control::Syn(bytes.u32()).encode(out),
        4 => out.extend_from_slice(&rbudp::codec::encode_end(bytes.u8().into())),
        5 => out.extend_from_slice(&u64::from(bytes.u32()).to_be_bytes()),
        6 => out.resize(rbudp::codec::bitmap_len(69), bytes.u8()),
        7 => Request::Retransmit(bytes.u8().into()).encode(out),
        8 => Request::Restart(bytes.u8().into()).encode(out),
        9 => Request::ErrorRate(bytes.u32()).encode(out),
        10 => Request::Stop.encode(out),
        11 => {
            out.extend_from_slice(&codec::REVISION);
            out.resize(codec::REVISION.len() + codec::CHALLENGE + 2, 0);
        }
        12 => Parameters {
            block_size: 1024,
            target_rate: bytes.u32(),
            error_rate: bytes.u32(),
            slower: [bytes.u16(), bytes.u16()],
            faster: [bytes.u16(), bytes.u16()],
        }
        .encode(out),
        13 => {
            // A file of as many blocks of 1024 bytes as it says.
            let blocks = bytes.u32();
            out.extend_from_slice(&(u64::from(blocks) * 1024).to_be_bytes());
            for word in [1024, blocks, 0] {
                out.extend_from_slice(&word.to_be_bytes());
            }
        }
        14 => {
            out.extend_from_slice(&u32::from(bytes.u16()).to_be_bytes());
            let kind = [b'O', b'X', b'R'][usize::from(bytes.u8() % 3)];
            out.extend_from_slice(&u16::from(kind).to_be_bytes());
            out.resize(1030, 0);
        }
        // A full datagram of SABUL or RBUDP.
        _ => {
            out.extend_from_slice(&bytes.u32().to_be_bytes());
            out.resize(if bytes.u8() & 1 == 0 { 1472 } else { 1464 }, 0);
        }
    }
}
