//! The options of a QUIC flow.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// How packets are protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Crypto {
    /// Not at all: a handshake with the sizes of TLS, and packets of the same sizes.
    #[default]
    Null,
    /// By TLS 1.3 with rustls.
    Rustls,
}

/// The options of a QUIC flow; all others are the stack's defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QuicOptions {
    /// How packets are protected.
    pub crypto: Crypto,
    /// Maximum UDP payload at first, bytes.
    pub initial_mtu: u16,
    /// Whether larger packets are probed for (RFC 9000, section 14.3).
    pub mtu_discovery: bool,
    /// Packets that the receiver may get before it must acknowledge them
    /// (draft-ietf-quic-ack-frequency); 0 leaves the receiver's own rule.
    pub ack_eliciting_threshold: u32,
    /// How long the connection may be idle before the stack closes it (RFC 9000, section 10.1), in
    /// whole milliseconds; 0 for no limit.
    pub idle_timeout_ns: u64,
    /// Whether data is sent in DATAGRAM frames (RFC 9221), which are not repeated, and not on
    /// streams.
    pub datagrams: bool,
}

impl Default for QuicOptions {
    fn default() -> QuicOptions {
        QuicOptions {
            crypto: Crypto::Null,
            initial_mtu: QuicOptions::MIN_MTU,
            mtu_discovery: true,
            ack_eliciting_threshold: 0,
            idle_timeout_ns: 0,
            datagrams: false,
        }
    }
}

impl QuicOptions {
    /// The minimum of `initial_mtu` (RFC 9000, section 14).
    pub const MIN_MTU: u16 = 1200;
    /// Its maximum: an Ethernet packet without the headers of IPv6 and UDP, up to which quinn and
    /// noq probe.
    pub const MAX_MTU: u16 = 1452;

    /// Reads options by name.
    ///
    /// # Errors
    /// The option that is not valid, and what would be.
    pub fn parse(options: &BTreeMap<String, Value>) -> Result<QuicOptions, (String, String)> {
        let tree = Value::Object(options.clone().into_iter().collect());
        let read: QuicOptions = serde_json::from_value(tree.clone())
            .map_err(|error| (tree.to_string(), error.to_string()))?;
        let range = QuicOptions::MIN_MTU..=QuicOptions::MAX_MTU;
        if !range.contains(&read.initial_mtu) {
            let valid = format!("initial_mtu from {} to {}", range.start(), range.end());
            return Err((read.initial_mtu.to_string(), valid));
        }
        if read.crypto == Crypto::Rustls && !cfg!(feature = "tls") {
            let valid = "crypto null, as this program was built without TLS";
            return Err(("rustls".to_owned(), valid.to_owned()));
        }
        Ok(read)
    }
}
