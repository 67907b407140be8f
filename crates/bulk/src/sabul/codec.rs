//! SABUL's messages: words in network byte order (`packet.cpp`, `channel.cpp`).
//!
//! A datagram is a sequence number and data. A control message is a type, an attribute and, in a loss
//! report, as many sequence numbers as the attribute says. `long` has 32 bits.

use crate::inbox::{Inbox, ProtocolError, word};

/// Bytes of the header of a datagram.
pub const HEADER: usize = 4;
/// Bytes of `SabulOption`: ten words.
pub const OPTION: usize = 40;
/// The word of `SabulOption` that is `m_iRecvFlagSize`.
const RECV_FLAG_SIZE: usize = 8;
/// The types of messages (`PktType`).
const SC_ACK: u32 = 1;
const SC_ERR: u32 = 2;
const SC_SYN: u32 = 4;

/// Maximum sequence numbers of a loss report (`m_iMaxLossLength`).
pub fn max_loss_length(packet_size: u16) -> usize {
    (usize::from(packet_size) / 4).saturating_sub(2).max(1)
}

/// A message of the receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// All packets before this sequence number have arrived.
    Ack(u32),
    /// These sequence numbers are missing.
    Err(Vec<u32>),
    /// The SYN interval is over; so many datagrams have arrived in it.
    Syn(u32),
}

impl Control {
    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (kind, attr) = match self {
            Control::Ack(seq) => (SC_ACK, *seq),
            Control::Err(lost) => (SC_ERR, lost.len() as u32),
            Control::Syn(received) => (SC_SYN, *received),
        };
        for value in [kind, attr] {
            out.extend_from_slice(&value.to_be_bytes());
        }
        if let Control::Err(lost) = self {
            out.extend(lost.iter().flat_map(|seq| seq.to_be_bytes()));
        }
    }

    /// Takes the next message; `None` if it has not arrived as a whole.
    pub(crate) fn take(
        inbox: &mut Inbox,
        max_lost: usize,
    ) -> Result<Option<Control>, ProtocolError> {
        let Some(head) = inbox.peek(8) else { return Ok(None) };
        let (kind, attr) = (word(head, 0), word(head, 4));
        let message = match kind {
            SC_ACK => Control::Ack(attr),
            SC_SYN => Control::Syn(attr),
            SC_ERR if attr as usize <= max_lost && attr > 0 => {
                let Some(bytes) = inbox.take(8 + 4 * attr as usize) else { return Ok(None) };
                let lost = bytes[8..].chunks_exact(4).map(|bytes| word(bytes, 0)).collect();
                return Ok(Some(Control::Err(lost)));
            }
            SC_ERR => {
                let value = u64::from(attr);
                return Err(ProtocolError::Field { field: "the length of a loss report", value });
            }
            _ => return Err(ProtocolError::UnknownType(kind)),
        };
        inbox.take(8);
        Ok(Some(message))
    }

    /// The messages of a stream that begins with one, as far as they have arrived.
    ///
    /// # Errors
    /// If it is not a stream of SABUL's messages, with loss reports of at most `max_lost` numbers.
    pub fn decode_all(bytes: &[u8], max_lost: usize) -> Result<Vec<Control>, ProtocolError> {
        let mut inbox = Inbox::default();
        inbox.push(bytes);
        let mut messages = Vec::new();
        while let Some(message) = Control::take(&mut inbox, max_lost)? {
            messages.push(message);
        }
        Ok(messages)
    }
}

/// The sequence number of a datagram, and the length of its data; `None` if it has no data.
pub fn decode_data(datagram: &[u8]) -> Option<(u32, usize)> {
    let length = datagram.len().checked_sub(HEADER).filter(|&length| length > 0)?;
    Some((word(datagram, 0), length))
}

/// `SabulOption` of a receiver: the fields that the sender does not read are 0.
pub(crate) fn encode_option(packet_size: u16, flag_size: u32) -> [u8; OPTION] {
    let payload = u32::from(packet_size) - HEADER as u32;
    let max_lost = max_loss_length(packet_size) as u32;
    let words = [0, 0, u32::from(packet_size), payload, max_lost, 0, 0, 0, flag_size, 0];
    let mut bytes = [0; OPTION];
    for (at, value) in words.into_iter().enumerate() {
        bytes[4 * at..4 * at + 4].copy_from_slice(&u32::to_be_bytes(value));
    }
    bytes
}

/// `m_iRecvFlagSize` of a `SabulOption`.
pub(crate) fn recv_flag_size(option: &[u8; OPTION]) -> u32 {
    word(option, 4 * RECV_FLAG_SIZE)
}
