//! For fuzzing: what reads messages of a peer, without sockets.

use crate::frame::{Entry, ReceiverMessage, Request, Response, SenderMessage, parse_header};
use crate::receive::Accepted;
use crate::safe_path::{resolve, resolve_for_write};
use crate::text::printable;
use std::path::Path;

/// Reads `bytes` as frames of a peer, as both sides would, down to the paths that they name.
///
/// # Panics
/// If a path leads out of the folder, or text of the peer would control a terminal.
#[doc(hidden)]
pub fn fuzz_peer(mut bytes: &[u8]) {
    while let Some((head, rest)) = bytes.split_first_chunk::<4>() {
        let Ok((length, is_data)) = parse_header(*head) else { return };
        let (body, rest) = rest.split_at(length.min(rest.len()));
        bytes = rest;
        if is_data {
            continue;
        }
        // Neither side knows which kind the other sends.
        let _ = serde_json::from_slice::<Request>(body);
        let _ = serde_json::from_slice::<Response>(body);
        let _ = serde_json::from_slice::<ReceiverMessage>(body);
        if let Ok(SenderMessage::Entry(entry)) = serde_json::from_slice(body) {
            check_entry(&entry);
        }
        let text = printable(&String::from_utf8_lossy(body));
        assert!(!text.contains(char::is_control), "{text:?}");
        // The same bytes as a name, as they are rarely JSON.
        let path = String::from_utf8_lossy(body).into_owned();
        check_entry(&Entry { path, size: Some(1), modified: 0, mode: 0 });
    }
}

fn check_entry(entry: &Entry) {
    let root = Path::new("/nonexistent/root");
    if let Some(path) = resolve(root, &entry.path) {
        let inside = path.strip_prefix(root).expect("it stays below the folder");
        assert!(inside.components().all(|part| matches!(part, std::path::Component::Normal(_))));
        assert_eq!(resolve_for_write(root, &entry.path), None, "the folder does not exist");
    }
    let asked = [entry.path.clone()];
    let _ = Accepted::requested(&asked);
}
