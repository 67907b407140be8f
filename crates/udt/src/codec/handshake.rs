//! Handshakes as bytes: twelve words, the last four of which hold the address that the packet goes
//! to. UDT4 writes addresses as its machines hold them, which on little-endian ones, nearly all,
//! turns every four bytes around; nobody reads them.

use super::{put, words};
use crate::packet::{Handshake, RequestType};
use crate::seq::Seq;
use std::net::IpAddr;

/// Takes a handshake apart; `None` if it has another length than every handshake has.
pub(super) fn decode(body: &[u8]) -> Option<Handshake> {
    let ([version, mode, isn, mss, window, request, socket, cookie, _, _, _, _], []) =
        words::<12>(body)?
    else {
        return None;
    };
    Some(Handshake {
        version: version.min(255) as u8,
        socket_type: mode.min(255) as u8,
        isn: Seq::new(isn),
        mss,
        window,
        request_type: RequestType(request as i32),
        socket_id: socket,
        cookie,
    })
}

/// Appends a handshake for the address `to`.
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
