//! The options of a media flow.

use dumbbell_sim::EcnCodepoint;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Explicit congestion notification of media packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MediaEcn {
    /// Not-ECT.
    #[default]
    Off,
    /// ECT(0): a mark counts as in RFC 3168.
    Classic,
    /// ECT(1): the share of marked packets counts (RFC 9331).
    L4s,
}

impl MediaEcn {
    /// The codepoint that packets are sent with.
    pub fn codepoint(self) -> EcnCodepoint {
        match self {
            MediaEcn::Off => EcnCodepoint::NotEct,
            MediaEcn::Classic => EcnCodepoint::Ect0,
            MediaEcn::L4s => EcnCodepoint::Ect1,
        }
    }
}

/// The options of a media flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RtpOptions {
    /// Frames per second.
    pub fps: u32,
    /// Minimum rate of the media, bit/s.
    pub min_rate_bps: u64,
    /// Rate of the media until the first report, bit/s.
    pub start_rate_bps: u64,
    /// Maximum RTP packet, bytes.
    pub payload: u16,
    /// Scale of the Laplace distribution of frame sizes around their mean, percent of the mean
    /// (RFC 8593, section 5: `SCALE_B`).
    pub size_noise: u32,
    /// Time from a key frame to the next, ns; 0 for none.
    pub key_interval_ns: u64,
    /// Size of a key frame in other frames.
    pub key_ratio: u32,
    /// Maximum time from the first packet that is not reported yet to its report, ns.
    pub feedback_interval_ns: u64,
    /// Explicit congestion notification.
    pub ecn: MediaEcn,
}

impl Default for RtpOptions {
    fn default() -> RtpOptions {
        RtpOptions {
            fps: 25,
            min_rate_bps: 150_000,   // RFC 8593, table 1: R_min
            start_rate_bps: 300_000, // libwebrtc: kDefaultStartBitrate
            payload: RtpOptions::MAX_PAYLOAD.0,
            size_noise: 15, // RFC 8593, table 1: SCALE_B
            key_interval_ns: 0,
            key_ratio: 4,
            feedback_interval_ns: 40_000_000, // SCReAMv2, "Receiver Requirements"
            ecn: MediaEcn::Off,
        }
    }
}

impl RtpOptions {
    /// Default and maximum of `payload`: the usual one of WebRTC, and an Ethernet packet without the
    /// headers of IPv4 and UDP.
    pub const MAX_PAYLOAD: (u16, u16) = (1200, 1472);
    /// Minimum of `payload`.
    pub const MIN_PAYLOAD: u16 = 100;
    /// Maximum of `size_noise`, with which no size is below zero.
    pub const MAX_NOISE: u32 = 20;
    /// Maximum of `fps`.
    pub const MAX_FPS: u32 = 240;

    /// Reads options by name.
    ///
    /// # Errors
    /// The option that is not valid, and what would be.
    pub fn parse(options: &BTreeMap<String, Value>) -> Result<RtpOptions, (String, String)> {
        let tree = Value::Object(options.clone().into_iter().collect());
        let read: RtpOptions = serde_json::from_value(tree.clone())
            .map_err(|error| (tree.to_string(), error.to_string()))?;
        let is_valid = (1..=RtpOptions::MAX_FPS).contains(&read.fps)
            && (RtpOptions::MIN_PAYLOAD..=RtpOptions::MAX_PAYLOAD.1).contains(&read.payload)
            && read.size_noise <= RtpOptions::MAX_NOISE
            && (1..=100).contains(&read.key_ratio)
            && read.min_rate_bps > 0
            && read.start_rate_bps > 0
            && read.feedback_interval_ns >= 1_000_000;
        let valid = "fps from 1 to 240, payload from 100 to 1472, size_noise to 20, key_ratio from 1 \
                     to 100, rates above 0, feedback_interval_ns from 1,000,000";
        if is_valid { Ok(read) } else { Err((tree.to_string(), valid.to_owned())) }
    }
}
