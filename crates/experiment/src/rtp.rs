//! Media over RTP: its algorithms and its options, as experiment files have them.

use crate::diagnostic::{KeyPath, Problem};
use crate::model::{Flow, Options};
use crate::options::OptionValues::{OneOf, Rate, Time, Whole};
use crate::options::{OptionErrors, TransportOption, option, option_problems, overlay, written};
use dumbbell_rtp::{ALGORITHMS, MediaEcn, RtpOptions};
use dumbbell_sim::DATAGRAM_HEADER;

/// The options of media flows.
pub static RTP_OPTIONS: &[TransportOption] = &[
    option("fps", Whole(1, RtpOptions::MAX_FPS as u64), "frames per second"),
    option("min_rate", Rate, "minimum rate of the media"),
    option("start_rate", Rate, "rate of the media until the first report"),
    option(
        "payload",
        Whole(RtpOptions::MIN_PAYLOAD as u64, RtpOptions::MAX_PAYLOAD.1 as u64),
        "maximum RTP packet, bytes",
    ),
    option(
        "size_noise",
        Whole(0, RtpOptions::MAX_NOISE as u64),
        "scale of the Laplace distribution of frame sizes, percent of their mean (RFC 8593, SCALE_B)",
    ),
    option("key_interval", Time(0), "time from a key frame to the next; 0 s for none"),
    option("key_ratio", Whole(1, 100), "size of a key frame in other frames"),
    option(
        "feedback_interval",
        Time(1_000_000),
        "how long a packet waits for its report (RFC 8888) at most; the end of a frame and 16 \
         packets are reported at once",
    ),
    option(
        "ecn",
        OneOf(&["off", "classic", "l4s"]),
        "explicit congestion notification: Not-ECT, ECT(0), or ECT(1) as for L4S (RFC 9331)",
    ),
];

/// The options of media with the defaults.
///
/// # Errors
/// Every option that media does not have, or whose value is not valid.
pub fn overlay_rtp(cc: &str, options: &Options) -> Result<RtpOptions, OptionErrors> {
    let read: RtpOptions = overlay("option of RTP", RTP_OPTIONS, &RtpOptions::default(), options)?;
    if cc.trim() == "gcc" && read.ecn != MediaEcn::Off {
        let text = "gcc does not react to marks; write \"off\", or cc = \"scream\"";
        return Err(vec![("ecn".to_owned(), crate::quantity::ValueError(text.to_owned()))]);
    }
    Ok(read)
}

/// All options of media, as a file has them.
pub fn rtp_options(options: &RtpOptions) -> Options {
    written(RTP_OPTIONS, options)
}

/// The options of a media flow at `at`.
pub(crate) fn flow_rtp(flow: &Flow, at: &KeyPath) -> Result<RtpOptions, Vec<Problem>> {
    overlay_rtp(&flow.cc, &flow.transport_options)
        .map_err(|errors| option_problems(&at.then("transport_options"), errors))
}

/// A full packet of a media flow, bytes, headers included.
pub(crate) fn full_packet(options: &RtpOptions) -> u16 {
    options.payload + DATAGRAM_HEADER
}

/// The names of the algorithms of media.
pub(crate) fn media_names() -> impl Iterator<Item = &'static str> + Clone {
    ALGORITHMS.iter().map(|(name, _)| *name)
}

/// Whether an algorithm is one of media.
pub(crate) fn is_media(cc: &str) -> bool {
    media_names().any(|name| name == cc.trim())
}

/// The options of a resolved flow as the scenario has them: fields of [`RtpOptions`].
pub(crate) fn scenario_options(options: &RtpOptions) -> Options {
    match serde_json::to_value(options) {
        Ok(serde_json::Value::Object(fields)) => fields.into_iter().collect(),
        other => unreachable!("the options are a table, not {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn options(options: serde_json::Value) -> Options {
        options.as_object().expect("a table").clone().into_iter().collect()
    }

    #[test]
    fn the_options_are_read_and_written_as_they_are_given() {
        let given =
            json!({"fps": 30, "min_rate": "200 kbit/s", "key_interval": "2 s", "ecn": "l4s"});
        let read = overlay_rtp("scream", &options(given)).expect("valid options");
        assert_eq!(
            (read.fps, read.min_rate_bps, read.key_interval_ns),
            (30, 200_000, 2_000_000_000)
        );
        assert_eq!(overlay_rtp("scream", &rtp_options(&read)), Ok(read.clone()));
        assert_eq!(RtpOptions::parse(&scenario_options(&read)), Ok(read));
        assert_eq!(rtp_options(&RtpOptions::default()).len(), RTP_OPTIONS.len());
    }

    #[test]
    fn a_wrong_option_is_named_with_what_is_valid() {
        let error = |cc, given| overlay_rtp(cc, &options(given)).expect_err("wrong")[0].1.0.clone();
        assert!(error("scream", json!({"fps": 0})).contains("from 1 to 240"));
        assert!(error("scream", json!({"min_rate": "5"})).contains("unit"));
        assert!(error("gcc", json!({"ecn": "l4s"})).contains("gcc does not react to marks"));
    }
}
