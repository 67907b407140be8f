//! A medium that a link shares with other stations: `csma(frames=32, stations=2)`.

use crate::call::{Call, CallKind, OptionKind, Resolved, Values};
use crate::quantity::{TIME, ValueError};
use dumbbell_net::MediumConfig;
use dumbbell_units::Span;
use serde_json::Value;

const WHAT: &str = "a shared medium";

const fn option(
    name: &'static str,
    default: &'static str,
    values: Values,
    about: &'static str,
) -> OptionKind {
    OptionKind { name, default: Some(default), values, about }
}

/// The media that a link can share.
pub static MEDIA: &[CallKind] = &[CallKind {
    name: "csma",
    about: "Wi-Fi's medium: the link contends for it and sends several frames at once, which arrive \
            together (IEEE 802.11n; the airtimes of Høiland-Jørgensen et al., USENIX ATC 2017)",
    options: &[
        option(
            "frames",
            "64",
            Values::Count(1, 1024),
            "the maximum number of frames in a transmission",
        ),
        option("time", "4 ms", Values::Quantity(&TIME), "the maximum time of a transmission"),
        option(
            "stations",
            "0",
            Values::Count(0, 1000),
            "other stations that always have something to send",
        ),
        option(
            "busy",
            "1 ms",
            Values::Quantity(&TIME),
            "how long each of their transmissions takes",
        ),
    ],
}];

/// Reads a medium, as text or as a table, and completes its options.
///
/// # Errors
/// If there is no such medium, or it has no such option, or a value is not valid.
pub fn resolve(value: &Value) -> Result<Resolved, ValueError> {
    Call::from_value(value, WHAT)?.resolve(MEDIA, WHAT)
}

/// The medium as links take it.
pub fn config(medium: &Resolved) -> MediumConfig {
    let count = |key| u32::try_from(medium.whole(key)).unwrap_or(u32::MAX);
    let span = |key| Span::from_nanos(medium.whole(key));
    MediumConfig {
        frames: count("frames"),
        time: span("time"),
        stations: count("stations"),
        busy: span("busy"),
    }
}
