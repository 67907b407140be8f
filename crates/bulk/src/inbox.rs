//! Bytes of the control stream that are not a whole message yet.

/// Why a control stream is not the protocol's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// A message of a type that the protocol does not have.
    #[error("the control stream has a message of type {0}, which the protocol does not have")]
    UnknownType(u32),
    /// More messages than can wait to be processed, bytes.
    #[error("the control stream has {0} bytes more than the protocol sends at a time")]
    TooMuch(usize),
    /// A field with a value that is not valid.
    #[error("the control stream has {value} as {field}, which is not valid")]
    Field {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
    },
}

/// Collects the bytes of messages of known length.
#[derive(Clone, Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    taken: usize,
}

impl Inbox {
    /// Adds bytes that have arrived.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.taken));
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.taken
    }

    /// The next `len` bytes, without taking them; `None` if they have not all arrived.
    pub(crate) fn peek(&self, len: usize) -> Option<&[u8]> {
        self.bytes.get(self.taken..self.taken + len)
    }

    /// Takes the next `len` bytes; `None` if they have not all arrived.
    pub(crate) fn take(&mut self, len: usize) -> Option<&[u8]> {
        let from = self.taken;
        let bytes = self.bytes.get(from..from + len)?;
        self.taken += len;
        Some(bytes)
    }

    /// Takes the next `N` bytes.
    pub(crate) fn take_array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N).and_then(|bytes| bytes.first_chunk()).copied()
    }
}

/// The big-endian word at `at`, which is inside of `bytes`.
pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_taken_once_all_of_it_has_arrived() {
        let mut inbox = Inbox::default();
        inbox.push(&[1, 2, 3]);
        assert_eq!(inbox.take_array::<4>(), None);
        inbox.push(&[4, 5]);
        assert_eq!(inbox.take_array(), Some([1, 2, 3, 4]));
        inbox.push(&[6]);
        assert_eq!(inbox.peek(2), Some(&[5, 6][..]));
        assert_eq!(inbox.take(2), Some(&[5, 6][..]));
        assert_eq!(inbox.take(1), None);
    }
}
