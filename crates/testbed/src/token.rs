//! Tokens of epoll events: each names a socket of a TCP connection.

use rustix::event::epoll::{Event, EventData};

/// The part that a socket has in its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketRole {
    Sender,
    Listener,
    Receiver,
}

/// A socket of a flow, or of one of the transfers of a flow that consists of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// Whether it belongs to the [transfers](crate::transfers::TransferRuns).
    pub(crate) is_transfer: bool,
    /// Number of the flow or of the transfer; of a listener for transfers that of their flow.
    pub(crate) number: u32,
    pub(crate) role: SocketRole,
}

impl Token {
    /// The token as the kernel keeps it.
    pub(crate) fn data(self) -> EventData {
        let kind = u64::from(self.is_transfer) << 2 | self.role as u64;
        EventData::new_u64(u64::from(self.number) << 3 | kind)
    }

    /// The token of an event.
    pub(crate) fn of(event: &Event) -> Token {
        let data = event.data.u64();
        Token {
            is_transfer: data & 4 != 0,
            number: (data >> 3) as u32,
            role: match data & 3 {
                0 => SocketRole::Sender,
                1 => SocketRole::Listener,
                _ => SocketRole::Receiver,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::epoll::EventFlags;

    #[test]
    fn an_event_has_the_token_of_its_socket() {
        for is_transfer in [false, true] {
            for role in [SocketRole::Sender, SocketRole::Listener, SocketRole::Receiver] {
                for number in [0, 1, 64_999, u32::MAX] {
                    let token = Token { is_transfer, number, role };
                    let event = Event { flags: EventFlags::IN, data: token.data() };
                    assert_eq!(Token::of(&event), token);
                }
            }
        }
    }
}
