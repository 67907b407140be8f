//! The Noise handshake: bytes from a peer without the key are never accepted.

use dumbbell_udt::io::fuzz_noise;

/// Headers of a handshake and of the user-defined packets of the encrypted mode.
const HEADS: [[u8; 4]; 3] = [[0x80, 0, 0, 0], [0xff, 0xff, 0x64, 0x62], [0xff, 0xff, 0x64, 0x63]];

/// Gives `bytes`, the first of which selects the kind of packet, to both ends.
///
/// # Panics
/// If an end accepts them.
pub fn run(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    let mut packet = HEADS[usize::from(kind % 3)].to_vec();
    packet.extend_from_slice(&[0; 12]);
    packet.extend_from_slice(rest);
    assert!(!fuzz_noise(&packet), "the bytes were made without the key");
}
