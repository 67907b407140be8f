//! Tsunami's messages, in network byte order.

use super::MAX_BLOCKS;
use crate::inbox::{ProtocolError, word};

/// `PROTOCOL_REVISION` (`common/common.c`, line 83).
pub const REVISION: [u8; 4] = 0x2006_1025_u32.to_be_bytes();
/// Bytes of a datagram's header: block number and type (`server/protocol.c`, `build_datagram`).
pub const HEADER: usize = 6;
/// Bytes of a `retransmission_t`: type, padding, block and error rate (`include/tsunami.h`, line 133).
pub const REQUEST: usize = 12;
/// Bytes of the client's parameters (`client/protocol.c`, lines 196 to 208).
pub const PARAMETERS: usize = 20;
/// Bytes of the server's answer: file size, block size, block count and epoch.
pub const FILE_INFO: usize = 20;
/// Bytes of the random data and of the digest that prove the shared secret.
pub const CHALLENGE: usize = 64;
/// See [`CHALLENGE`].
pub const DIGEST: usize = 16;
/// Bytes of the name of the file, with the end of the line.
pub const NAME: &[u8] = b"file\n";

/// The type of a block (`include/tsunami.h`, lines 122 to 124).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockType {
    /// Sent in order.
    Original,
    /// The last block of the file, repeated until the client stops the transfer.
    Terminate,
    /// Sent on request.
    Retransmission,
}

impl BlockType {
    fn code(self) -> u16 {
        u16::from(match self {
            BlockType::Original => b'O',
            BlockType::Terminate => b'X',
            BlockType::Retransmission => b'R',
        })
    }
}

/// Appends the header of a block.
pub fn encode_header(block: u32, kind: BlockType, out: &mut Vec<u8>) {
    out.extend_from_slice(&block.to_be_bytes());
    out.extend_from_slice(&kind.code().to_be_bytes());
}

/// Number and type of a block; `None` if the datagram is not one of this size.
pub fn decode_block(datagram: &[u8], block_size: u16) -> Option<(u32, BlockType)> {
    if datagram.len() != HEADER + usize::from(block_size) {
        return None;
    }
    let kinds = [BlockType::Original, BlockType::Terminate, BlockType::Retransmission];
    let code = u16::from_be_bytes([datagram[4], datagram[5]]);
    let kind = kinds.into_iter().find(|kind| kind.code() == code)?;
    Some((word(datagram, 0), kind))
}

/// A request of the client (`common/common.c`, lines 85 to 88).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// This block is missing.
    Retransmit(u32),
    /// Go back to this block.
    Restart(u32),
    /// The transfer is complete.
    Stop,
    /// The error rate, thousandths of a percent.
    ErrorRate(u32),
}

impl Request {
    /// Appends the request.
    pub fn encode(self, out: &mut Vec<u8>) {
        let (kind, block, error_rate) = match self {
            Request::Retransmit(block) => (0_u32, block, 0),
            Request::Restart(block) => (1, block, 0),
            Request::Stop => (2, 0, 0),
            Request::ErrorRate(rate) => (3, 0, rate),
        };
        // The type is in the upper half of the first word, the padding in the lower.
        for value in [kind << 16, block, error_rate] {
            out.extend_from_slice(&value.to_be_bytes());
        }
    }

    /// Decodes a request.
    ///
    /// # Errors
    /// If there is no such type.
    pub fn decode(bytes: &[u8; REQUEST]) -> Result<Request, ProtocolError> {
        let kind = u16::from_be_bytes([bytes[0], bytes[1]]);
        Ok(match kind {
            0 => Request::Retransmit(word(bytes, 4)),
            1 => Request::Restart(word(bytes, 4)),
            2 => Request::Stop,
            3 => Request::ErrorRate(word(bytes, 8)),
            _ => return Err(ProtocolError::UnknownType(u32::from(kind))),
        })
    }
}

/// What the client asks the server for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Bytes of a block.
    pub block_size: u32,
    /// Target rate, bit/s.
    pub target_rate: u32,
    /// Threshold of the error rate, thousandths of a percent.
    pub error_rate: u32,
    /// Numerator and denominator of the factor above the threshold.
    pub slower: [u16; 2],
    /// Those of the factor below it.
    pub faster: [u16; 2],
}

impl Parameters {
    /// Appends the parameters.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for value in [self.block_size, self.target_rate, self.error_rate] {
            out.extend_from_slice(&value.to_be_bytes());
        }
        for value in self.slower.into_iter().chain(self.faster) {
            out.extend_from_slice(&value.to_be_bytes());
        }
    }

    /// Decodes parameters.
    ///
    /// # Errors
    /// If the server cannot compute with one of them.
    pub fn decode(bytes: &[u8; PARAMETERS]) -> Result<Parameters, ProtocolError> {
        let half = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let parameters = Parameters {
            block_size: word(bytes, 0),
            target_rate: word(bytes, 4),
            error_rate: word(bytes, 8),
            slower: [half(12), half(14)],
            faster: [half(16), half(18)],
        };
        let Parameters { block_size, target_rate, error_rate, slower, faster } = parameters;
        let checks = [
            // MAX_BLOCK_SIZE (include/tsunami.h, line 110), less a datagram's headers.
            ("the block size", block_size, (1..=65_500).contains(&block_size)),
            ("the target rate", target_rate, target_rate > 0),
            ("the error rate", error_rate, error_rate < 100_000),
            ("the slowdown denominator", slower[1].into(), slower[1] > 0),
            ("the speedup numerator", faster[0].into(), faster[0] > 0),
            ("the speedup denominator", faster[1].into(), faster[1] > 0),
        ];
        match checks.into_iter().find(|(_, _, is_valid)| !is_valid) {
            Some((field, value, _)) => Err(ProtocolError::Field { field, value: value.into() }),
            None => Ok(parameters),
        }
    }
}

/// The server's answer: the size of the file and its blocks.
pub(crate) fn encode_file_info(file_size: u64, block_size: u16, blocks: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&file_size.to_be_bytes());
    for value in [u32::from(block_size), blocks, 0] {
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// File size and number of blocks of the server's answer.
///
/// # Errors
/// If they do not fit together, or the block size is another one.
pub fn decode_file_info(
    bytes: &[u8; FILE_INFO],
    block_size: u16,
) -> Result<(u64, u32), ProtocolError> {
    let file_size = u64::from(word(bytes, 0)) << 32 | u64::from(word(bytes, 4));
    let (size, blocks) = (word(bytes, 8), word(bytes, 12));
    if size != u32::from(block_size) {
        return Err(ProtocolError::Field { field: "the block size", value: size.into() });
    }
    if !(1..=MAX_BLOCKS).contains(&blocks)
        || file_size.div_ceil(u64::from(block_size)) != u64::from(blocks)
    {
        return Err(ProtocolError::Field { field: "the number of blocks", value: blocks.into() });
    }
    Ok((file_size, blocks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_layout_of_retransmission_t() {
        let mut bytes = Vec::new();
        Request::Retransmit(0x0102_0304).encode(&mut bytes);
        Request::ErrorRate(7500).encode(&mut bytes);
        assert_eq!(bytes[..12], [0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0]);
        assert_eq!(bytes[12..], [0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0x1d, 0x4c]);
        let second = bytes[12..].first_chunk().expect("12 bytes");
        assert_eq!(Request::decode(second), Ok(Request::ErrorRate(7500)));
        assert_eq!(Request::decode(&[9; 12]), Err(ProtocolError::UnknownType(0x0909)));
    }

    #[test]
    fn parameters_that_would_divide_by_zero_are_refused() {
        let valid = Parameters {
            block_size: 1024,
            target_rate: 650_000_000,
            error_rate: 7500,
            slower: [25, 24],
            faster: [5, 6],
        };
        let decode = |parameters: Parameters| {
            let mut bytes = Vec::new();
            parameters.encode(&mut bytes);
            Parameters::decode(bytes.first_chunk().expect("20 bytes"))
        };
        assert_eq!(decode(valid), Ok(valid));
        for wrong in [
            Parameters { target_rate: 0, ..valid },
            Parameters { error_rate: 100_000, ..valid },
            Parameters { slower: [25, 0], ..valid },
            Parameters { block_size: 65_501, ..valid },
        ] {
            assert!(decode(wrong).is_err(), "{wrong:?}");
        }
    }
}
