//! Wire format of handshakes: twelve words, the last four of which are the destination's address.
//! UDT4 converts addresses twice, so on little-endian machines each group of four bytes is reversed.
//! The address is never read.

use super::{put, words};
use crate::packet::{Handshake, RequestType};
use crate::seq::Seq;
use std::net::IpAddr;

/// Decodes a handshake and what follows it; `None` if it has less than twelve words.
pub(super) fn decode(body: &[u8]) -> Option<(Handshake, &[u8])> {
    let ([version, mode, isn, mss, window, request, socket, cookie, _, _, _, _], rest) =
        words::<12>(body)?;
    let handshake = Handshake {
        version: version.min(255) as u8,
        socket_type: mode.min(255) as u8,
        isn: Seq::new(isn),
        mss,
        window,
        request_type: RequestType(request as i32),
        socket_id: socket,
        cookie,
    };
    Some((handshake, rest))
}

/// Appends a handshake to the destination address `to`.
pub(super) fn encode(handshake: &Handshake, to: IpAddr, out: &mut Vec<u8>) {
    put(
        out,
        &[
            u32::from(handshake.version),
            u32::from(handshake.socket_type),
            handshake.isn.get(),
            handshake.mss,
            handshake.window,
            handshake.request_type.0 as u32,
            handshake.socket_id,
            handshake.cookie,
        ],
    );
    let mut address = [0; 16];
    match to {
        IpAddr::V4(to) => address[..4].copy_from_slice(&to.octets()),
        IpAddr::V6(to) => address = to.octets(),
    }
    for group in address.chunks_exact(4) {
        out.extend(group.iter().rev());
    }
}
