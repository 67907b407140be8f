//! Applications that write messages one after the other: each when the peer has the one before.

use dumbbell_units::{Span, Time};

/// What such an application writes.
///
/// The peer's request for the next message travels with the acknowledgement of the one before, so the
/// sender learns of both at the same time. With delayed acknowledgements of segments with PSH, which
/// Linux does not have, it learns of them later.
pub trait Dialogue: Send {
    /// The next message, once the peer has all before it, or the connection was opened, at `now`:
    /// how long the peer waits until it requests it, and its bytes. `None` if there is no more.
    fn next(&mut self, now: Time) -> Option<(Span, u64)>;
}

/// A dialogue while it runs.
pub(crate) struct Conversation {
    dialogue: Box<dyn Dialogue>,
    state: DialogueState,
    /// Bytes written.
    pub(crate) written: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DialogueState {
    /// The connection is not open yet.
    Opening,
    /// The next message, of so many bytes, is written at this time.
    Waiting(Time, u64),
    /// A message is on its way.
    Sending,
    /// All are delivered.
    Over,
}

impl Conversation {
    pub(crate) fn new(dialogue: Box<dyn Dialogue>) -> Conversation {
        Conversation { dialogue, state: DialogueState::Opening, written: 0 }
    }

    /// The bytes of a message that is written now, or 0 and when to look again.
    pub(crate) fn write(&mut self, now: Time) -> (u64, Time) {
        if self.state == DialogueState::Opening {
            self.ask(now);
        }
        match self.state {
            DialogueState::Waiting(at, bytes) if at <= now => {
                self.state = DialogueState::Sending;
                self.written += bytes;
                (bytes, Time::MAX)
            }
            DialogueState::Waiting(at, _) => (0, at),
            _ => (0, Time::MAX),
        }
    }

    /// All that was written is acknowledged; returns whether the dialogue is over.
    pub(crate) fn on_delivered(&mut self, now: Time) -> bool {
        if self.state == DialogueState::Sending {
            self.ask(now);
        }
        self.state == DialogueState::Over
    }

    fn ask(&mut self, now: Time) {
        self.state = match self.dialogue.next(now) {
            None => DialogueState::Over,
            Some((wait, bytes)) => DialogueState::Waiting(now + wait, bytes.max(1)),
        };
    }
}
