//! The file protocol: frames of a peer, valid and not.

use crate::InputReader;
use dumbbell_transfer::fuzz_peer;

/// Beginnings of messages, since random bytes are rarely JSON.
const MESSAGES: [&str; 8] = [
    r#"{"entry":{"path":"","size":1,"modified":2,"mode":3}}"#,
    r#"{"have":{"bytes":1,"hash":null}}"#,
    r#"{"version":2,"ack_interval":0,"want":{"pull":["a/b"]}}"#,
    r#"{"refused":""}"#,
    r#"{"done":["a"]}"#,
    r#"{"begin":1}"#,
    r#"../../a/b"#,
    r#""over""#,
];

/// Reads `bytes` as frames. The first byte of each selects a message, into which others are inserted.
///
/// # Panics
/// If a path leads out of the folder, or text would control a terminal.
pub fn run(bytes: &[u8]) {
    fuzz_peer(bytes);
    let bytes = &mut InputReader(bytes);
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let message = MESSAGES[usize::from(bytes.u8() % 8)].as_bytes();
        let (at, length) = (usize::from(bytes.u8()), usize::from(bytes.u8() % 16));
        let (before, after) = message.split_at(at % (message.len() + 1));
        let body = [before, bytes.take(length), after].concat();
        frames.extend_from_slice(&(body.len() as u32).to_be_bytes());
        frames.extend_from_slice(&body);
    }
    fuzz_peer(&frames);
}
