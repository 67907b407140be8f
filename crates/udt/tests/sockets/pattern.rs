//! Test data in which a missing, duplicated or misplaced byte is detected, and settings for tests.

use dumbbell_udt::Mode;
use dumbbell_udt::io::{Settings, Socket};
use std::ops::Range;
use std::time::Duration;

/// Beyond any test's duration: the test runner ends tests that hang.
pub const UNLIMITED: Duration = Duration::from_secs(100_000);

const PIECE: u64 = 50_000;
const PERIOD: u64 = 1 << 20;

/// Settings whose timeouts no loaded machine exceeds.
pub fn patient() -> Settings {
    Settings { connect_timeout: UNLIMITED, idle_timeout: UNLIMITED, ..Settings::default() }
}

/// The byte at a position, the same as in `peer.cpp`.
fn byte_at(position: u64) -> u8 {
    ((position % PERIOD).wrapping_mul(2_654_435_761) >> 13) as u8
}

/// Sends `bytes` bytes; in message mode, in messages of 50,000 bytes.
pub fn send(socket: &Socket, mode: Mode, bytes: u64) {
    send_range(socket, mode, 0..bytes);
}

/// Sends the bytes at these positions.
pub fn send_range(socket: &Socket, mode: Mode, Range { start: mut sent, end }: Range<u64>) {
    while sent < end {
        let piece: Vec<u8> = (sent..end.min(sent + PIECE)).map(byte_at).collect();
        match mode {
            Mode::Stream => socket.send_all(&piece),
            Mode::Message => socket.send_message(&piece, None, true),
        }
        .expect("it is sent");
        sent += piece.len() as u64;
    }
}

/// Receives and checks `bytes` bytes. Returns the number of messages.
pub fn receive(socket: &Socket, mode: Mode, bytes: u64) -> u64 {
    let (mut received, mut messages) = (0, 0);
    let mut buffer = vec![0; 1 << 17];
    while received < bytes {
        let piece = match mode {
            Mode::Stream => {
                let read = socket.recv(&mut buffer).expect("there is more");
                buffer[..read].to_vec()
            }
            Mode::Message => socket.recv_message().expect("no error").expect("there is more"),
        };
        assert!(!piece.is_empty(), "it ends after {received} of {bytes} bytes");
        let wrong = piece.iter().zip(received..).position(|(&byte, at)| byte != byte_at(at));
        assert_eq!(wrong, None, "the first wrong byte after {received}");
        received += piece.len() as u64;
        messages += 1;
    }
    messages
}

/// Closes and waits until all sent data is acknowledged.
pub fn close(socket: Socket) {
    socket.close(UNLIMITED).expect("everything arrives");
}
