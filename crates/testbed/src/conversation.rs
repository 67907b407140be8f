//! Applications that write messages one after the other, over a kernel's connection.

use dumbbell_tcp::Dialogue;
use dumbbell_units::Time;

/// A dialogue while it runs. When the receiver has a whole message, it sends one byte: the request for
/// the next message, which carries the acknowledgement, as in the simulator.
pub(crate) struct Conversation {
    dialogue: Box<dyn Dialogue>,
    state: State,
    /// Bytes of all messages that the receiver has requested, the next one included.
    requested: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The connection is not open yet.
    Opening,
    /// The next message is written at this time.
    Waiting(Time),
    /// A message is on its way.
    Sending,
    /// The receiver has all of the message, and has sent the request for the next one.
    Requesting,
    /// There are no more messages.
    Over,
}

impl Conversation {
    pub(crate) fn new(dialogue: Box<dyn Dialogue>) -> Conversation {
        Conversation { dialogue, state: State::Opening, requested: 0 }
    }

    /// The connection is open: the first message.
    pub(crate) fn on_open(&mut self, now: Time) {
        if self.state == State::Opening {
            self.request(now);
        }
    }

    /// The receiver's request has arrived: the next message.
    pub(crate) fn on_request(&mut self, now: Time) {
        if self.state == State::Requesting {
            self.request(now);
        }
    }

    /// Whether the receiver is to request the next message, as it has received so many bytes. True
    /// once a message.
    pub(crate) fn requests_next(&mut self, received: u64) -> bool {
        let has_all = self.state == State::Sending && received >= self.requested;
        if has_all {
            self.state = State::Requesting;
        }
        has_all
    }

    fn request(&mut self, now: Time) {
        self.state = match self.dialogue.next(now) {
            None => State::Over,
            Some((wait, bytes)) => {
                self.requested += bytes.max(1);
                State::Waiting(now + wait)
            }
        };
    }

    pub(crate) fn is_opening(&self) -> bool {
        self.state == State::Opening
    }

    pub(crate) fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// When the next message is written, if that is later.
    pub(crate) fn next_write_time(&self) -> Option<Time> {
        if let State::Waiting(at) = self.state { Some(at) } else { None }
    }

    /// Bytes that may be written now, after so many.
    pub(crate) fn writable_bytes(&mut self, now: Time, written: u64) -> u64 {
        if self.next_write_time().is_some_and(|at| at <= now) {
            self.state = State::Sending;
        }
        if self.state == State::Sending { self.requested - written } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dumbbell_units::Span;

    /// Messages of 1000 bytes, each 50 ms after the one before.
    struct Thousands(u32);

    impl Dialogue for Thousands {
        fn next(&mut self, _now: Time) -> Option<(Span, u64)> {
            self.0 = self.0.checked_sub(1)?;
            Some((Span::from_millis(50), 1000))
        }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn a_message_is_written_when_the_one_before_was_requested() {
        let mut conversation = Conversation::new(Box::new(Thousands(2)));
        assert_eq!(conversation.writable_bytes(at(0), 0), 0, "the connection is not open");
        conversation.on_open(at(10));
        assert_eq!(conversation.next_write_time(), Some(at(60)));
        assert_eq!(conversation.writable_bytes(at(59), 0), 0);
        assert_eq!(conversation.writable_bytes(at(60), 0), 1000);
        assert_eq!(conversation.writable_bytes(at(61), 400), 600);
        assert!(!conversation.requests_next(999));
        assert!(conversation.requests_next(1000), "the receiver has the message");
        assert!(!conversation.requests_next(1000), "it requests the next one once");
        conversation.on_request(at(100));
        assert_eq!(conversation.writable_bytes(at(150), 1000), 1000);
        assert!(conversation.requests_next(2000));
        conversation.on_request(at(200));
        assert!(conversation.is_over());
    }

    #[test]
    fn a_request_that_was_not_made_changes_nothing() {
        let mut conversation = Conversation::new(Box::new(Thousands(2)));
        conversation.on_open(at(0));
        conversation.on_open(at(0));
        conversation.on_request(at(10));
        assert_eq!(conversation.writable_bytes(at(50), 0), 1000);
    }
}
