//! Reads the frames of a packet (RFC 9000, section 19) before it is encrypted, as the stacks count
//! neither retransmissions nor probes.

use std::collections::BTreeMap;

/// What a sender has put into its packets so far.
#[derive(Debug, Default)]
pub(crate) struct SentFrames {
    /// For each stream the end of the data that was sent.
    ends: BTreeMap<u64, u64>,
    /// Packets whose stream data was for the most part sent before. Lost data that fits no longer into
    /// one packet leaves a few bytes for the next one, which is no second retransmission.
    pub(crate) retransmitted: u64,
    /// DATAGRAM frames (RFC 9221).
    pub(crate) datagrams: u64,
    /// Whether a packet since the last [`take_ack_eliciting`](Self::take_ack_eliciting) was.
    is_ack_eliciting: bool,
}

impl SentFrames {
    /// Notes a packet with these frames.
    pub(crate) fn on_packet(&mut self, mut frames: &[u8]) {
        let (mut old, mut new) = (0, 0);
        while !frames.is_empty() {
            let Some(frame) = read(&mut frames) else {
                // A frame of an extension, behind which nothing can be read.
                self.is_ack_eliciting = true;
                break;
            };
            self.is_ack_eliciting |= frame != Frame::NotAckEliciting;
            self.datagrams += u64::from(frame == Frame::Datagram);
            if let Frame::Stream { id, offset, length } = frame {
                let end = self.ends.entry(id).or_default();
                let sent_before = end.saturating_sub(offset).min(length);
                (old, new) = (old + sent_before, new + length - sent_before);
                *end = (*end).max(offset + length);
            }
        }
        self.retransmitted += u64::from(old > new);
    }

    /// Whether a packet since the last call was ack-eliciting.
    pub(crate) fn take_ack_eliciting(&mut self) -> bool {
        std::mem::take(&mut self.is_ack_eliciting)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    Stream {
        id: u64,
        offset: u64,
        length: u64,
    },
    Datagram,
    /// PADDING, ACK and CONNECTION_CLOSE (RFC 9002, section 2).
    NotAckEliciting,
    Other,
}

/// Reads a frame and moves `frames` behind it; `None` if its type is unknown or it is cut off.
fn read(frames: &mut &[u8]) -> Option<Frame> {
    let kind = integer(frames)?;
    match kind {
        0x00 => {
            let padding = frames.iter().take_while(|byte| **byte == 0).count();
            *frames = &frames[padding..];
            return Some(Frame::NotAckEliciting);
        }
        0x02 | 0x03 => {
            integers(frames, 2)?; // largest acknowledged, delay
            let ranges = integer(frames)?;
            integers(frames, 1 + 2 * ranges + 3 * (kind & 1))?;
            return Some(Frame::NotAckEliciting);
        }
        0x1c | 0x1d => {
            *frames = &[]; // nothing follows it that counts
            return Some(Frame::NotAckEliciting);
        }
        0x08..=0x0f => {
            let id = integer(frames)?;
            let offset = if kind & 4 == 0 { 0 } else { integer(frames)? };
            let length = if kind & 2 == 0 { frames.len() as u64 } else { integer(frames)? };
            skip(frames, length)?;
            return Some(Frame::Stream { id, offset, length });
        }
        // PING, HANDSHAKE_DONE, IMMEDIATE_ACK
        0x01 | 0x1e | 0x1f => {}
        // MAX_DATA, MAX_STREAMS, DATA_BLOCKED, STREAMS_BLOCKED, RETIRE_CONNECTION_ID
        0x10 | 0x12 | 0x13 | 0x14 | 0x16 | 0x17 | 0x19 => integers(frames, 1)?,
        // STOP_SENDING, MAX_STREAM_DATA, STREAM_DATA_BLOCKED
        0x05 | 0x11 | 0x15 => integers(frames, 2)?,
        0x04 => integers(frames, 3)?, // RESET_STREAM
        0xaf => integers(frames, 4)?, // ACK_FREQUENCY (draft-ietf-quic-ack-frequency-11, section 4)
        0x06 => {
            integers(frames, 1)?; // CRYPTO: its offset
            counted(frames)?;
        }
        0x07 => counted(frames)?, // NEW_TOKEN
        // DATAGRAM to the end of the packet, and with a length (RFC 9221, section 4)
        0x30 | 0x31 => {
            let length = if kind == 0x30 { frames.len() as u64 } else { integer(frames)? };
            skip(frames, length)?;
            return Some(Frame::Datagram);
        }
        0x18 => {
            integers(frames, 2)?; // NEW_CONNECTION_ID: sequence number, retire prior to
            let length = *frames.first()?;
            skip(frames, 1 + u64::from(length) + 16)?; // the ID, the stateless reset token
        }
        0x1a | 0x1b => skip(frames, 8)?, // PATH_CHALLENGE, PATH_RESPONSE
        _ => return None,
    }
    Some(Frame::Other)
}

/// Reads a variable-length integer (RFC 9000, section 16).
fn integer(bytes: &mut &[u8]) -> Option<u64> {
    let first = *bytes.first()?;
    let (read, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    *bytes = rest;
    let tail = read[1..].iter();
    Some(tail.fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte)))
}

fn integers(bytes: &mut &[u8], count: u64) -> Option<()> {
    (0..count).try_for_each(|_| integer(bytes).map(drop))
}

fn skip(bytes: &mut &[u8], length: u64) -> Option<()> {
    *bytes = bytes.get(usize::try_from(length).ok()?..)?;
    Some(())
}

/// Skips bytes that follow their number.
fn counted(bytes: &mut &[u8]) -> Option<()> {
    let length = integer(bytes)?;
    skip(bytes, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_length_integers_are_read_as_in_rfc_9000_a_1() {
        for (bytes, value) in [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d][..], 494_878_333),
            (&[0x7b, 0xbd][..], 15_293),
            (&[0x25][..], 37),
            (&[0x40, 0x25][..], 37),
        ] {
            let mut rest = bytes;
            assert_eq!((integer(&mut rest), rest), (Some(value), &[][..]));
        }
        assert_eq!(integer(&mut &[0x7b][..]), None);
    }

    #[test]
    fn a_packet_of_mostly_old_data_is_a_retransmission() {
        let mut sent = SentFrames::default();
        // STREAM frames of stream 2 with offset and length: 0 to 3 and 3 to 5.
        sent.on_packet(&[0x0e, 2, 0, 3, 7, 7, 7]);
        sent.on_packet(&[0x0e, 2, 3, 2, 7, 7]);
        assert_eq!(sent.retransmitted, 0);
        // An ACK with ECN counts, then the first frame again, then a new one of stream 6.
        sent.on_packet(&[
            0x03, 9, 1, 1, 2, 0, 1, 5, 0, 0, 0x0e, 2, 0, 3, 7, 7, 7, 0x0a, 6, 1, 7, 0, 0,
        ]);
        assert_eq!(sent.retransmitted, 1);
        sent.on_packet(&[0x31, 2, 7, 7, 0x30, 7]); // two datagrams
        assert_eq!((sent.retransmitted, sent.datagrams), (1, 2));
        // To the end of the packet from offset 0: one byte is new, then two more.
        sent.on_packet(&[0x08, 6, 7, 7]);
        assert_eq!((sent.retransmitted, sent.ends[&6]), (1, 2));
        sent.on_packet(&[0x08, 6, 7, 7, 7]);
        assert_eq!((sent.retransmitted, sent.ends[&6]), (2, 3));
    }

    #[test]
    fn packets_of_acks_and_padding_elicit_no_acknowledgement() {
        let mut sent = SentFrames::default();
        sent.on_packet(&[0x02, 9, 1, 0, 2, 0, 0, 0]);
        sent.on_packet(&[0x1d, 0, 0]);
        assert!(!sent.take_ack_eliciting());
        for frames in [&[0x01, 0, 0][..], &[0x02, 9, 1, 0, 2, 0x10, 5], &[0x40, 0xff, 1]] {
            sent.on_packet(frames);
            assert!(sent.take_ack_eliciting() && !sent.take_ack_eliciting(), "{frames:?}");
        }
    }
}
