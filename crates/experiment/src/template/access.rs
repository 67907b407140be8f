//! `cable` and `policer`: access networks.
//!
//! `cable`: the modems in the field had an order of magnitude more buffer than TCP needs (White and
//! Rice, "Right-Sizing Cable Modem Buffers for Maximum Application Performance", NCTA 2011), which is
//! here 10 round-trip times. Upstream a modem requests its turns: 2 to 8 ms (White, Sundaresan and
//! Briscoe, draft-white-tsvwg-lld-00).
//!
//! `policer`: a token bucket without a queue, as 7 % of the connections in some regions meet it
//! (Flach et al., "An Internet-Wide Analysis of Traffic Policing", SIGCOMM 2016). The rate is that of
//! T-Mobile's Binge On, 1.5 Mbit/s (Kakhki et al., "BingeOn Under the Microscope", Internet-QoE 2016).

use super::{MS, Path, option, rtt};
use crate::call::{CallKind, Resolved, Values};
use crate::quantity::{NO_QUEUE, RATE, SIZE, TIME};

/// The minimum of the time until a modem has its turn, and its maximum, ns.
const REQUEST: (u64, u64) = (2 * MS, 8 * MS);

pub(super) const CABLE: CallKind = CallKind {
    name: "cable",
    about: "a home behind a cable modem with a bloated buffer",
    options: &[
        option("rate", "100 Mbit/s", Values::Quantity(&RATE), "its rate"),
        rtt("20 ms", "round-trip time without queues"),
        option("buffer", "200 ms", Values::Quantity(&TIME), "how long a packet may wait"),
        option(
            "up",
            "off",
            Values::Switch,
            "whether it is the direction from the home, in which the modem requests its turns",
        ),
    ],
};

pub(super) const POLICER: CallKind = CallKind {
    name: "policer",
    about: "a policer, which drops what its token bucket does not let pass at once",
    options: &[
        option("rate", "1.5 Mbit/s", Values::Quantity(&RATE), "its rate"),
        rtt("40 ms", "round-trip time"),
        option("burst", "100 kB", Values::Quantity(&SIZE), "the depth of its token bucket"),
    ],
};

pub(super) fn cable(cable: &Resolved) -> Path {
    let (delay, jitter) = match cable.is_on("up") {
        true => (REQUEST.0, REQUEST.1 - REQUEST.0),
        false => (0, 0),
    };
    Path {
        rate: Some(cable.whole("rate")),
        delay: cable.whole("rtt") / 2 + delay,
        queue: Some(TIME.format(cable.whole("buffer"))),
        jitter,
        ..Path::default()
    }
}

pub(super) fn policer(policer: &Resolved) -> Path {
    Path {
        rate: Some(policer.whole("rate")),
        burst: Some(policer.whole("burst")),
        delay: policer.whole("rtt") / 2,
        queue: Some(NO_QUEUE.to_owned()),
        ..Path::default()
    }
}
