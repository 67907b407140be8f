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
    /// Bytes written, and by how many the last packets of all messages but the latest are shorter than
    /// full ones.
    pub(crate) written: u64,
    pub(crate) shortfall: u64,
    /// The same of the latest message.
    latest_shortfall: u64,
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
        Conversation {
            dialogue,
            state: DialogueState::Opening,
            written: 0,
            shortfall: 0,
            latest_shortfall: 0,
        }
    }

    /// The packets of a message that is written now and the bytes of the last one, or when to look again.
    pub(crate) fn write(&mut self, now: Time, mss: u16) -> (u32, u16, Time) {
        if self.state == DialogueState::Opening {
            self.ask(now);
        }
        match self.state {
            DialogueState::Waiting(at, bytes) if at <= now => {
                self.state = DialogueState::Sending;
                let (mss, others) = (u64::from(mss), (bytes - 1) / u64::from(mss));
                let last = bytes - others * mss;
                self.written += bytes;
                self.shortfall += self.latest_shortfall;
                self.latest_shortfall = mss - last;
                let packets = u32::try_from(others + 1).unwrap_or(u32::MAX);
                (packets, last as u16, Time::MAX)
            }
            DialogueState::Waiting(at, _) => (0, 0, at),
            _ => (0, 0, Time::MAX),
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
