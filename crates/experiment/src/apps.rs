//! Applications of flows: `app = "requests(think=1 s)"`, `"video(buffer=30 s)"`, `"on-off(on=1 s, off=2 s)"`.

use crate::call::{Call, CallKind, OptionKind, Resolved, Values};
use crate::model::Flow;
use crate::quantity::{RATE, TIME, ValueError, fail, shown};
use crate::transfers::TransferSizes;
use dumbbell_sim::{AppSpec, Draws, RequestSpec, VideoSpec};
use serde_json::Value;

const WHAT: &str = "an application";

const fn option(
    name: &'static str,
    default: &'static str,
    values: Values,
    about: &'static str,
) -> OptionKind {
    OptionKind { name, default: Some(default), values, about }
}

const RANDOM: OptionKind = option(
    "random",
    "on",
    Values::Switch,
    "whether the times are exponentially distributed, and not all the same",
);

/// The applications that a flow can have.
pub static APPS: &[CallKind] = &[
    CallKind {
        name: "requests",
        about: "a client requests a response, whose size sizes gives, and after a think time the \
                next one, over one connection",
        options: &[
            option(
                "think",
                "off",
                Values::QuantityOrOff(&TIME),
                "the mean time from a response to the next request",
            ),
            RANDOM,
        ],
    },
    CallKind {
        name: "video",
        about: "a client plays video in segments, each at a rate of the ladder that BBA-0 chooses by \
                the buffer (Huang et al., SIGCOMM 2014)",
        options: &[
            option("segment", "4 s", Values::Quantity(&TIME), "the video in a segment"),
            option(
                "buffer",
                "240 s",
                Values::Quantity(&TIME),
                "the maximum of the client's buffer",
            ),
            option(
                "reservoir",
                "off",
                Values::QuantityOrOff(&TIME),
                "the buffer up to which the lowest rate is taken; off for 37.5 % of the buffer, as \
                 in the paper",
            ),
            option(
                "cushion",
                "off",
                Values::QuantityOrOff(&TIME),
                "the part of the buffer over which the rate rises to the highest; off for 52.5 % of \
                 the buffer, as in the paper",
            ),
            option(
                "startup",
                "off",
                Values::QuantityOrOff(&TIME),
                "the buffer with which playback starts; off for a segment",
            ),
        ],
    },
    CallKind {
        name: "on-off",
        about: "an application that writes at app_rate and pauses in turn",
        options: &[
            option("on", "1 s", Values::Quantity(&TIME), "the mean time for which it writes"),
            option("off", "1 s", Values::Quantity(&TIME), "the mean time for which it pauses"),
            RANDOM,
        ],
    },
];

impl Flow {
    /// The name of its application.
    pub(crate) fn app_name(&self) -> Option<&str> {
        self.app.as_deref().map(|app| app.split('(').next().unwrap_or(app).trim())
    }
}

/// The rates of the video, unless a flow has others: from 235 kbit/s to 5 Mbit/s as in the paper's
/// figures, bit/s.
const LADDER: [u64; 9] =
    [235_000, 375_000, 560_000, 750_000, 1_050_000, 1_750_000, 2_350_000, 3_000_000, 5_000_000];

/// Reads an application, as text or as a table, and completes its options.
///
/// # Errors
/// If there is no such application, or it has no such option, or a value is not valid.
pub fn resolve(value: &Value) -> Result<Resolved, ValueError> {
    let app = Call::from_value(value, WHAT)?.resolve(APPS, WHAT)?;
    if app.kind.name == "video" {
        let video = video(&app, LADDER.to_vec());
        let whole = video.reservoir_ns.saturating_add(video.cushion_ns);
        if whole > video.buffer_ns {
            fail!(
                "video: reservoir and cushion are {} together, and the buffer is {}; write less",
                TIME.format(whole),
                TIME.format(video.buffer_ns)
            )
        }
        if video.cushion_ns == 0 {
            fail!(
                "video: the cushion is nothing: the buffer, {}, is too short; write a longer one",
                TIME.format(video.buffer_ns)
            )
        }
        if video.segment_ns.max(video.startup_ns) > video.buffer_ns {
            fail!("video: segment and startup are each to fit into the buffer; write less")
        }
    }
    Ok(app)
}

/// Reads the rates of a video, which rise.
///
/// # Errors
/// If the value is not a list of such rates.
pub(crate) fn parse_ladder(value: &Value) -> Result<Vec<u64>, ValueError> {
    let Value::Array(rates) = value else {
        fail!("{} is not a list of rates, such as [\"1 Mbit/s\", \"3 Mbit/s\"]", shown(value))
    };
    let rates: Vec<u64> = rates.iter().map(|rate| RATE.parse(rate)).collect::<Result<_, _>>()?;
    if rates.is_empty() || !rates.is_sorted_by(|a, b| a < b) {
        fail!("{} are not rates that rise, such as [\"1 Mbit/s\", \"3 Mbit/s\"]", shown(value))
    }
    Ok(rates)
}

/// A ladder as a file has it.
pub(crate) fn format_ladder(rates: &[u64]) -> Value {
    rates.iter().map(|rate| Value::from(RATE.format(*rate))).collect()
}

/// The ladder of a video that gives none.
pub(crate) fn default_ladder() -> Vec<u64> {
    LADDER.to_vec()
}

fn video(app: &Resolved, ladder_bps: Vec<u64>) -> VideoSpec {
    let buffer_ns = app.whole("buffer");
    let share = |of_1000: u64| (u128::from(buffer_ns) * u128::from(of_1000) / 1000) as u64;
    VideoSpec {
        segment_ns: app.whole("segment"),
        buffer_ns,
        reservoir_ns: app.amount("reservoir").unwrap_or(share(375)),
        cushion_ns: app.amount("cushion").unwrap_or(share(525)),
        startup_ns: app.amount("startup").unwrap_or(app.whole("segment")),
        ladder_bps,
    }
}

/// What the simulator takes; `None` for an application that is a schedule of rates.
pub(crate) fn spec(
    app: &Resolved,
    sizes: Option<&Value>,
    ladder: Option<&Value>,
) -> Option<AppSpec> {
    let checked = "a checked flow";
    match app.kind.name {
        "requests" => Some(AppSpec::Requests(RequestSpec {
            think_ns: app.amount("think").unwrap_or(0),
            is_random: app.is_on("random"),
            sizes: TransferSizes::parse(sizes.expect(checked)).expect(checked).model(),
        })),
        "video" => {
            let ladder = ladder.map(|rates| parse_ladder(rates).expect(checked));
            Some(AppSpec::Video(video(app, ladder.unwrap_or_else(default_ladder))))
        }
        _ => None,
    }
}

/// How many times an application that pauses starts or stops in so many ns, on average.
pub(crate) fn expected_steps(app: &Resolved, ns: u64) -> u128 {
    let cycle = u128::from(app.whole("on")) + u128::from(app.whole("off"));
    2 * u128::from(ns) / cycle
}

/// The rates of an application that pauses, from its start on: (ns, bit/s). The same flow and seed
/// give the same times.
pub(crate) fn on_off(app: &Resolved, rate: f64, ns: u64, name: &str, seed: u64) -> Vec<(u64, f64)> {
    // FNV-1a of the name, which no other flow has.
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut draws = Draws::new(seed ^ hash);
    let mut steps = Vec::new();
    let (mut at, mut is_on) = (0_u64, true);
    while at < ns {
        steps.push((at, if is_on { rate } else { 0.0 }));
        let mean = app.whole(if is_on { "on" } else { "off" });
        let factor = if app.is_on("random") { draws.exponential() } else { 1.0 };
        at = at.saturating_add(((mean as f64 * factor) as u64).max(1));
        is_on = !is_on;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn app(text: &str) -> Resolved {
        resolve(&json!(text)).expect("valid")
    }

    #[test]
    fn a_video_has_the_papers_reservoir_and_cushion() {
        let Some(AppSpec::Video(video)) = spec(&app("video"), None, None) else {
            panic!("a video")
        };
        let seconds = [video.reservoir_ns, video.cushion_ns, video.buffer_ns];
        assert_eq!(seconds.map(|ns| ns / 1_000_000_000), [90, 126, 240]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let error = |text: &str| resolve(&json!(text)).expect_err("wrong").to_string();
        assert!(error("video(buffer=30 s, reservoir=20 s)").contains("the buffer is 30 s"));
        assert!(error("video(segment=1 ns, buffer=1 ns)").contains("the cushion is nothing"));
        assert!(error("video(buffer=2 s)").contains("fit into the buffer"));
        assert!(error("vidoe").contains("did you mean \"video\"?"));
        let error = parse_ladder(&json!(["2 Mbit/s", "1 Mbit/s"])).expect_err("falls").to_string();
        assert!(error.contains("not rates that rise"));
    }

    #[test]
    fn on_and_off_times_have_the_means_given() {
        let steps = on_off(&app("on-off(on=1 s, off=3 s)"), 1e6, 40_000_000_000_000, "a", 1);
        // 10,000 cycles of 4 s; their times have standard deviations of 1 s and 3 s.
        assert!(steps.len().abs_diff(20_000) < 700, "{}", steps.len());
        let on: u64 =
            steps.windows(2).filter(|pair| pair[0].1 > 0.0).map(|p| p[1].0 - p[0].0).sum();
        assert!((on as f64 / 1e13 - 1.0).abs() < 0.05);
        let fixed = on_off(&app("on-off(random=off)"), 5.0, 3_000_000_000, "a", 1);
        assert_eq!(fixed, [(0, 5.0), (1_000_000_000, 0.0), (2_000_000_000, 5.0)]);
        let other = on_off(&app("on-off"), 1e6, 40_000_000_000, "b", 1);
        assert_ne!(other, on_off(&app("on-off"), 1e6, 40_000_000_000, "a", 1));
    }
}
