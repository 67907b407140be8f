//! A shared medium, as Wi-Fi's: the link waits for access to it and then sends several frames at
//! once.
//!
//! The model is that of Høiland-Jørgensen, Kazior, Täht, Hurtig and Brunstrom, "Ending the Anomaly:
//! Achieving Low Latency and Airtime Fairness in WiFi", USENIX ATC 2017, section 2.2.1. A
//! transmission (A-MPDU) of n frames of l bytes at r bit/s takes
//!
//! ```text
//! T_data = T_phy + 8 n (l + L_delim + L_mac + L_FCS + L_pad) / r
//! T_oh   = T_DIFS + T_SIFS + T_ack + T_BO,    T_ack = T_SIFS + 8 * 58 / r
//! ```
//!
//! and its frames arrive together at the end of `T_data`. Other than there, the backoff `T_BO` is
//! drawn for each transmission: 0 to 15 slots (CWmin of the best-effort class). With other stations
//! that always have something to send, each access is as likely to be theirs as the link's own, so
//! the number of their transmissions before one of its own is geometric with mean `stations`.
//! Collisions, frames that are received with errors and IEEE 802.11n's limit of 65,535 bytes for a
//! transmission are not modelled.

use crate::rng::{Rng, Stream};
use dumbbell_units::{Span, Time};

/// Bytes of a frame besides its packet: L_delim 4, L_mac 34, L_FCS 4.
const FRAME_OVERHEAD: u32 = 42;
/// Frames are padded to a multiple of 4 bytes.
const FRAME_ALIGNMENT: u32 = 4;
/// Bytes of a block acknowledgement.
const BLOCK_ACK: u64 = 58;
const T_PHY: Span = Span::from_micros(32);
const T_DIFS: Span = Span::from_micros(34);
const T_SIFS: Span = Span::from_micros(16);
/// Backoff: a slot, and how many are drawn at most.
const T_SLOT: Span = Span::from_micros(9);
const CW_MIN: u64 = 15;

/// How a link shares its medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(deny_unknown_fields)
)]
pub struct MediumConfig {
    /// The maximum number of frames in a transmission, at least 1.
    pub frames: u32,
    /// The maximum time of a transmission with more than one frame.
    #[cfg_attr(feature = "serde", serde(rename = "time_ns"))]
    pub time: Span,
    /// Other stations that always have something to send.
    pub stations: u32,
    /// How long each of their transmissions occupies the medium.
    #[cfg_attr(feature = "serde", serde(rename = "busy_ns"))]
    pub busy: Span,
}

/// The medium of a link: when its next transmission starts, and what it has room for.
#[derive(Clone, Debug)]
pub(crate) struct Medium<P> {
    config: MediumConfig,
    rng: Rng,
    /// When the link began to contend for its next transmission, if it has one to make.
    contends_from: Time,
    /// From then until the transmission.
    access: Span,
    /// When the medium is free after the last transmission.
    busy_until: Time,
    /// The frames of the transmission that is put together.
    pub(crate) frames: Vec<P>,
    /// Their bytes.
    bytes: u64,
}

impl<P> Medium<P> {
    pub(crate) fn new(config: MediumConfig, seed: u64) -> Medium<P> {
        assert!(config.frames > 0, "a transmission has a frame");
        let mut medium = Medium {
            config,
            rng: Rng::new(seed, Stream::Medium),
            contends_from: Time::ZERO,
            access: Span::ZERO,
            busy_until: Time::ZERO,
            frames: Vec::new(),
            bytes: 0,
        };
        medium.access = medium.draw_access();
        medium
    }

    /// The bytes on the medium of a packet of `size` bytes.
    pub(crate) fn frame_bytes(size: u32) -> u32 {
        (size + FRAME_OVERHEAD).next_multiple_of(FRAME_ALIGNMENT)
    }

    /// Contends for the medium from `now` on, for the first packet after a pause.
    pub(crate) fn contend(&mut self, now: Time) {
        self.contends_from = self.busy_until.max(now);
    }

    /// When the next transmission starts, if there is something to send.
    pub(crate) fn next_start(&self) -> Time {
        self.contends_from + self.access
    }

    /// When the data of a transmission follows that starts at `start`.
    pub(crate) fn data_start(start: Time) -> Time {
        start + T_PHY
    }

    /// Whether the transmission may have another frame as large as its frames on average, at `rate`
    /// bit/s.
    pub(crate) fn has_room(&self, rate: u64) -> bool {
        let frames = self.frames.len() as u64;
        if frames == 0 || frames >= u64::from(self.config.frames) {
            return frames == 0;
        }
        let bits = 8 * u128::from(self.bytes + self.bytes / frames);
        bits * 1_000_000_000 <= u128::from(rate) * u128::from(self.config.time.as_nanos())
    }

    /// Adds a packet of `size` bytes to the transmission.
    pub(crate) fn add(&mut self, packet: P, size: u32) {
        self.bytes += u64::from(Medium::<P>::frame_bytes(size));
        self.frames.push(packet);
    }

    /// Ends a transmission at `rate` bit/s, whose data ends at `end`, and contends for the next.
    pub(crate) fn finish(&mut self, end: Time, rate: u64) {
        let ack = (8 * BLOCK_ACK * 1_000_000_000).checked_div(rate).unwrap_or(0);
        self.busy_until = end + T_SIFS + T_SIFS + Span::from_nanos(ack);
        self.bytes = 0;
        self.access = self.draw_access();
        self.contends_from = self.busy_until;
    }

    /// The time of the others' transmissions before the link's own, and of its backoff.
    fn draw_access(&mut self) -> Span {
        let backoff = (self.rng.uniform() * (CW_MIN + 1) as f64) as u64;
        let own = T_DIFS + T_SLOT * backoff;
        if self.config.stations == 0 {
            return own;
        }
        let others = self.rng.geometric(1.0 / (f64::from(self.config.stations) + 1.0));
        own + self.config.busy * others
    }
}
