//! `lte` and `5g`: cellular links.
//!
//! `lte` is the model of Winstein, Sivaraman and Balakrishnan, "Stochastic Forecasts Achieve High
//! Throughput and Low Delay over Cellular Networks", NSDI 2013 (section 3.1, and the authors'
//! `process.cc`). Packets of 1500 bytes may leave by a Poisson process. Its rate does a Brownian motion
//! of noise power sigma = 200 packets per second per sqrt(second), between 0 and 1000 packets per
//! second. At 0 it stays for an outage, which ends with a rate of lambda_z = 1 per second. Here the
//! maximum reflects.
//! Nothing is lost: the queues of the authors' `cellsim` have no limit.
//!
//! `5g` is a link at millimetre waves that passers-by block: a Markov chain of two states
//! (MacCartney, Rappaport and Rangan, "Rapid Fading Due to Human Blockage in Pedestrian Crowds at 5G
//! Millimeter-Wave Frequencies", GLOBECOM 2017), with their mean fade of 299 ms and 15.8 dB. From a
//! signal-to-noise ratio of 20 dB such a fade leaves log2(1 + 10^0.42) / log2(1 + 10^2) = 28 % of the
//! rate.

use super::{MS, Path, SEED, draws, option, rounded, rtt, whole_kbit};
use crate::call::{CallKind, Resolved, Values};
use crate::quantity::{RATE, TIME};

/// Bits of a delivery opportunity.
const OPPORTUNITY: f64 = 12_000.0;
/// The rate evolves once a tick, as in Sprout.
const TICK: u64 = 20 * MS;
/// The trace repeats after this time, or after so many opportunities on average.
const MAX_LENGTH: u64 = 300_000 * MS;
const MAX_OPPORTUNITIES: f64 = 500_000.0;

pub(super) const LTE: CallKind = CallKind {
    name: "lte",
    about: "a cellular link whose rate wanders, with outages: the stochastic model of Sprout (Winstein, \
            Sivaraman and Balakrishnan, NSDI 2013)",
    options: &[
        option("rate", "12 Mbit/s", Values::Quantity(&RATE), "the maximum of its rate"),
        rtt("40 ms", "round-trip time without queues"),
        option(
            "variation",
            "2.4 Mbit/s",
            Values::Quantity(&RATE),
            "standard deviation of the change of the rate within a second",
        ),
        option("outage", "1 s", Values::Quantity(&TIME), "mean time of an outage"),
        SEED,
    ],
};

pub(super) const FIVE_G: CallKind = CallKind {
    name: "5g",
    about: "a cellular link at millimetre waves that passers-by block (MacCartney, Rappaport and Rangan, \
            GLOBECOM 2017)",
    options: &[
        option("rate", "400 Mbit/s", Values::Quantity(&RATE), "its rate in line of sight"),
        rtt("20 ms", "round-trip time without queues"),
        option("every", "5 s", Values::Quantity(&TIME), "mean time in line of sight"),
        option("blocked", "299 ms", Values::Quantity(&TIME), "mean time of a blockage"),
        option("left", "0.28", Values::Number(1.0), "share of the rate that is left when blocked"),
        SEED,
    ],
};

pub(super) fn lte(lte: &Resolved, duration: u64) -> Path {
    let mut draws = draws(lte);
    let per_second = |key| lte.whole(key) as f64 / OPPORTUNITY;
    let (max, tick) = (per_second("rate"), TICK as f64 / 1e9);
    let deviation = per_second("variation") * tick.sqrt();
    let length = (MAX_LENGTH as f64).min(MAX_OPPORTUNITIES / max * 1e9) as u64;
    let length = length.min(duration).max(1000 * MS).next_multiple_of(TICK);
    let mut trace = Vec::new();
    let (mut rate, mut at, mut due) = (max / 2.0, 0, draws.exponential());
    let mut outage = 0.0; // what is left of the time without a rate, ns
    // One more than a trace may have, so that the check finds it.
    while at < length && trace.len() <= super::MAX_STEPS {
        let mut passed = 0.0;
        // Opportunities come where the integral of the rate has grown by an exponential number.
        while rate > 0.0 && passed + due / rate <= tick && trace.len() <= super::MAX_STEPS {
            passed += due / rate;
            trace.push(((at as f64 + passed * 1e9) / MS as f64) as u32);
            due = draws.exponential();
        }
        due -= (tick - passed) * rate;
        at += TICK;
        let step = deviation * draws.normal();
        if rate > 0.0 {
            rate += step;
            outage = lte.whole("outage") as f64 * draws.exponential();
        } else if outage > TICK as f64 {
            outage -= TICK as f64;
        } else {
            rate = step.abs();
        }
        rate = if rate > max { 2.0 * max - rate } else { rate }.max(0.0);
    }
    trace.push((length / MS) as u32);
    let queue = Some("unlimited".to_owned());
    Path { trace, delay: lte.whole("rtt") / 2, queue, ..Path::default() }
}

pub(super) fn five_g(link: &Resolved, duration: u64) -> Path {
    let mut draws = draws(link);
    let rate = link.whole("rate");
    let blocked = whole_kbit(rate as f64 * link.number("left"));
    let mut lasts = |key| rounded(link.whole(key) as f64 * draws.exponential(), MS).max(MS);
    let mut rates = vec![(0, rate)];
    let mut at = lasts("every");
    while at < duration && rates.len() <= super::MAX_STEPS {
        let back = at + lasts("blocked");
        rates.extend([(at, blocked), (back, rate)]);
        at = back + lasts("every");
    }
    Path { rates, delay: link.whole("rtt") / 2, ..Path::default() }
}
