//! `wifi`: the last hop by Wi-Fi.
//!
//! Frames are sent several at once after contention (`medium`), at a rate of the physical layer. In
//! bad periods the link is suspended again and again: in a trace of a stationary computer in the issue
//! 1697 of picoquic (Huitema, 2024), packets arrive in 19 bunches within 3.15 s, 166 ms apart, all
//! that was sent meanwhile at once.

use super::{MS, Path, SEED, between, draws, option, rounded, rtt};
use crate::call::{CallKind, Resolved, Values};
use crate::medium;
use crate::quantity::{RATE, TIME};
use serde_json::Value;

/// How long the link serves between two suspensions of a bad period, ns.
const OPEN: u64 = 16 * MS;

pub(super) const WIFI: CallKind = CallKind {
    name: "wifi",
    about: "a last hop by Wi-Fi: frames sent several at once after contention, and periods in which the \
            link is suspended again and again",
    options: &[
        option("rate", "144.4 Mbit/s", Values::Quantity(&RATE), "rate of the physical layer"),
        rtt("20 ms", "round-trip time without queues and contention"),
        option(
            "frames",
            "32",
            Values::Count(1, 1024),
            "the maximum number of frames in a transmission",
        ),
        option(
            "stations",
            "1",
            Values::Count(0, 1000),
            "other stations that always have something to send",
        ),
        option(
            "busy",
            "1 ms",
            Values::Quantity(&TIME),
            "how long each of their transmissions takes",
        ),
        option(
            "every",
            "20 s",
            Values::QuantityOrOff(&TIME),
            "mean time from one period of suspensions to the next",
        ),
        option("period", "3 s", Values::Quantity(&TIME), "how long such a period lasts"),
        option(
            "suspension",
            "150 ms",
            Values::Quantity(&TIME),
            "mean of a suspension, which lasts from 2/3 to 4/3 of it",
        ),
        SEED,
    ],
};

pub(super) fn path(wifi: &Resolved, duration: u64) -> Path {
    let whole = |key| wifi.whole(key);
    let options = ["frames", "stations"].map(|key| format!("{key}={}", whole(key))).join(", ");
    let call = format!("csma({options}, busy={})", TIME.format(whole("busy")));
    let medium = medium::resolve(&Value::from(call)).expect("options of the medium");
    let path = Path {
        delay: whole("rtt") / 2,
        queue: Some("1000 packets".to_owned()), // Linux's txqueuelen
        medium: Some(medium.to_string()),
        ..Path::default()
    };
    let Some(every) = wifi.amount("every") else {
        return Path { rate: Some(whole("rate")), ..path };
    };
    Path { rates: suspensions(wifi, every, duration), ..path }
}

/// The rate over time: in periods, on average one `every` ns, the link is suspended again and again.
fn suspensions(wifi: &Resolved, every: u64, duration: u64) -> Vec<(u64, u64)> {
    let (mut draws, rate) = (draws(wifi), wifi.whole("rate"));
    let mean = wifi.whole("suspension") as f64;
    let mut rates = vec![(0, rate)];
    let mut at = 0;
    loop {
        at += rounded(every as f64 * draws.exponential(), MS).max(MS);
        let end = at + wifi.whole("period");
        while at < end {
            if at >= duration || rates.len() > super::MAX_STEPS {
                return rates;
            }
            let back = at + rounded(mean * between(&mut draws, 2.0 / 3.0, 4.0 / 3.0), MS).max(MS);
            rates.extend([(at, 0), (back, rate)]);
            at = back + OPEN;
        }
    }
}
