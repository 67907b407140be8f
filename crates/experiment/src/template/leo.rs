//! `leo`: a path over satellites in low earth orbit.
//!
//! Starlink assigns satellites anew every 15 s, at the same times everywhere; delay, capacity and
//! loss change then and stay about as they are in between (Mohan et al., "A Multifaceted Look at
//! Starlink Performance", WWW 2024; draft-lai-ccwg-lsncc-01). At the change nothing passes for a
//! while, and packets wait (Huston, "A transport protocol's view of Starlink", APNIC 2024).
//!
//! The numbers are those of the trace of a Starlink downlink that Lai et al., "LeoCC: Making Internet
//! Congestion Control Robust to LEO Satellite Dynamics", SIGCOMM 2025, publish with their
//! `LeoReplayer` (`example/Cubic`, 120 s): all of its 8 changes are 15 s apart, nothing passes for
//! 59 to 135 ms at each, 86 ms on average; the mean rates of its slots have a standard deviation of
//! 19 %; and from one 10 ms to the next the one-way delay differs by 0.9 ms on average, which a
//! jitter of 3 ms does too. The losses are those with which LeoReplayer replays downlinks. The step
//! of the delay is geometry: by way of a satellite at 550 km and an elevation of 25 to 90 degrees, a
//! round trip takes 7.3 to 15 ms.

use super::{MS, Path, SEED, between, draws, option, rounded, rtt, whole_kbit};
use crate::call::{CallKind, Resolved, Values};
use crate::quantity::{RATE, TIME, ValueError, fail};

pub(super) const LEO: CallKind = CallKind {
    name: "leo",
    about: "a path over satellites in low earth orbit, such as Starlink's, on which delay, rate and loss \
            change together at every handover",
    options: &[
        option("rate", "100 Mbit/s", Values::Quantity(&RATE), "mean of the rates of the slots"),
        rtt("40 ms", "round-trip time by the nearest satellite"),
        option("slot", "15 s", Values::Quantity(&TIME), "time from one handover to the next"),
        option(
            "variation",
            "0.2",
            Values::Number(0.5),
            "standard deviation of the slots' rates, as a share of their mean",
        ),
        option(
            "step",
            "8 ms",
            Values::QuantityOrOff(&TIME),
            "by how much the round-trip time of a slot may be longer",
        ),
        option(
            "outage",
            "86 ms",
            Values::QuantityOrOff(&TIME),
            "mean time in which nothing passes at a handover",
        ),
        option(
            "loss",
            "0.0001",
            Values::Number(0.4),
            "mean of the loss probabilities of the slots",
        ),
        option("jitter", "3 ms", Values::QuantityOrOff(&TIME), "jitter within a slot"),
        option(
            "up",
            "off",
            Values::Switch,
            "whether it is the other direction of a link with this template, which has the steps of \
             the round-trip time",
        ),
        SEED,
    ],
};

pub(super) fn path(leo: &Resolved, duration: u64) -> Result<Path, ValueError> {
    let mut draws = draws(leo);
    let time = |key| leo.amount(key).unwrap_or(0);
    // An outage of up to 1.5 times the mean leaves at least half of the slot.
    if time("outage") > time("slot") / 3 {
        fail!("{leo}: outage is more than a third of slot; let it be shorter, or the slot longer")
    }
    let base = time("rtt") / 2;
    let mut path = Path { delay: base, jitter: time("jitter"), ..Path::default() };
    // A uniform distribution as wide has this standard deviation.
    let width = 3.0_f64.sqrt() * leo.number("variation");
    // One more step than a link may have, so that the check finds it.
    let slots = (0..=super::MAX_STEPS as u64).map(|slot| slot * time("slot"));
    for at in slots.take_while(|&at| at < duration) {
        let rate = leo.whole("rate") as f64 * between(&mut draws, 1.0 - width, 1.0 + width);
        let extra = rounded(time("step") as f64 * draws.uniform(), MS / 10);
        let loss = 2.0 * leo.number("loss") * draws.uniform();
        let outage = rounded(time("outage") as f64 * between(&mut draws, 0.5, 1.5), MS);
        let back = if at > 0 && outage > 0 { at + outage } else { at };
        if back > at {
            path.rates.push((at, 0));
        }
        path.rates.push((back, whole_kbit(rate)));
        if !leo.is_on("up") && time("step") > 0 {
            path.reroutes.push((at, base + extra));
        }
        if leo.number("loss") > 0.0 {
            path.loss.push((at, (loss * 1e7 + 0.5) as u64 as f64 / 1e7));
        }
    }
    Ok(path)
}
