//! Links as traces of mahimahi (Netravali et al., "Mahimahi", USENIX ATC 2015, section 3).
//!
//! A line of a trace is a time in whole milliseconds at which 1500 bytes may leave. The last time
//! is the length of the trace, which then repeats.

use dumbbell_sim::LinkSpec;
use std::fmt::Write;

/// Bits of a delivery opportunity.
const OPPORTUNITY: u64 = 8 * 1500;
/// A constant rate is repeated after this at the latest, ms.
const MAX_PERIOD: u64 = 1000;

/// The rate of a link as the text of a trace; `None` if the link has no rate.
///
/// A trace is written as it is. A constant rate is met exactly over the length of the trace, or to
/// one opportunity per second if it is no whole number of them. Rates that vary make a trace as
/// long as the run, `duration_ns`; if they end in an outage, the trace has one more opportunity at
/// its end, because its last time is its length.
pub fn trace(link: &LinkSpec, duration_ns: u64) -> Option<String> {
    let bits_per_sec = |bps: f64| (bps + 0.5) as u64;
    let constant = |bps| constant_rate(bits_per_sec(bps));
    let varying = |rates: &Vec<(u64, f64)>| {
        let steps: Vec<_> = rates.iter().map(|&(at, bps)| (at, bits_per_sec(bps))).collect();
        varying_rate(&steps, duration_ns.div_ceil(1_000_000))
    };
    let given = link.trace_ms.as_ref().map(|times| times.iter().map(|&ms| ms.into()).collect());
    let times: Vec<u64> =
        given.or_else(|| link.rates.as_ref().map(varying)).or(link.rate_bps.map(constant))?;
    Some(times.iter().fold(String::new(), |mut text, time| {
        writeln!(text, "{time}").expect("a String takes all");
        text
    }))
}

/// The shortest trace of a rate in bit/s, of [`MAX_PERIOD`] at most.
fn constant_rate(rate: u64) -> Vec<u64> {
    let period = (OPPORTUNITY * 1000 / gcd(rate, OPPORTUNITY * 1000)).min(MAX_PERIOD);
    opportunities((1..=period).map(|ms| u128::from(rate) * u128::from(ms) * 1_000_000))
}

/// A trace of `length` ms with these steps: start in ns, bit/s.
fn varying_rate(steps: &[(u64, u64)], length: u64) -> Vec<u64> {
    let (mut step, mut at, mut sent) = (0, 0, 0u128);
    opportunities((1..=length).map(|ms| {
        let until = ms * 1_000_000;
        while at < until {
            let end = steps.get(step + 1).map_or(until, |next| next.0.min(until));
            sent += u128::from(steps[step].1) * u128::from(end - at);
            at = end;
            step += usize::from(steps.get(step + 1).is_some_and(|next| next.0 == end));
        }
        sent
    }))
}

/// At the end of every millisecond as many opportunities as have become due. `sent` has what could
/// have left by then, in 1e-9 bit.
fn opportunities(sent: impl Iterator<Item = u128>) -> Vec<u64> {
    let (mut times, mut length) = (Vec::new(), 0);
    for sent in sent {
        length += 1;
        let due = sent / (u128::from(OPPORTUNITY) * 1_000_000_000);
        times.resize(due as usize, length);
    }
    if times.last() != Some(&length) {
        times.push(length);
    }
    times
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn times(link: LinkSpec, duration_ms: u64) -> Vec<u64> {
        let text = trace(&link, duration_ms * 1_000_000).expect("a rate");
        text.lines().map(|line| line.parse().expect("a number")).collect()
    }

    fn varying(rates: &[(u64, f64)]) -> LinkSpec {
        let rates = rates.iter().map(|&(ms, bps)| (ms * 1_000_000, bps)).collect();
        LinkSpec { rates: Some(rates), ..LinkSpec::default() }
    }

    #[test]
    fn a_constant_rate_is_exact_over_the_period() {
        let rate = |bps| LinkSpec { rate_bps: Some(bps), ..LinkSpec::default() };
        assert_eq!(times(rate(12e6), 1), [1]);
        assert_eq!(times(rate(10e6), 1), [2, 3, 4, 5, 6]);
        for bps in [1e5, 8e6, 1.5e9, 99_999_999.0] {
            let times = times(rate(bps), 1);
            let period = *times.last().expect("not empty") as f64;
            let exact = bps * period / 12e6;
            assert!((times.len() as f64 - exact).abs() < 1.0, "{bps}: {} {exact}", times.len());
        }
    }

    #[test]
    fn a_trace_that_ends_in_an_outage_is_as_long_as_the_run() {
        let mut expected: Vec<u64> = (1..=1000).collect();
        expected.push(3000);
        assert_eq!(times(varying(&[(0, 12e6), (1000, 0.0)]), 3000), expected);
    }

    #[test]
    fn a_trace_is_written_as_it_is_and_a_link_without_a_rate_has_none() {
        let link = LinkSpec { trace_ms: Some(vec![0, 0, 3, 7]), ..LinkSpec::default() };
        assert_eq!(trace(&link, 1).as_deref(), Some("0\n0\n3\n7\n"));
        assert_eq!(trace(&LinkSpec::default(), 1), None);
    }

    proptest! {
        #[test]
        fn varying_rates_are_met_to_one_opportunity_at_any_time(
            gaps in prop::collection::vec((1u64..700, 0u32..200), 1..8),
            length in 1u64..1500,
        ) {
            let mut at = 0;
            let mut rates = Vec::new();
            for (gap, mbit) in gaps {
                rates.push((at, f64::from(mbit) * 1e6));
                at += gap;
            }
            let times = times(varying(&rates), length);
            prop_assert_eq!(times.last(), Some(&length));
            for until in 1..length {
                let ends = rates.iter().skip(1).map(|next| next.0).chain([u64::MAX]);
                let kilobits = rates.iter().zip(ends).map(|(&(start, bps), end)| {
                    bps / 1e3 * (until.min(end).saturating_sub(start)) as f64 / 1e3
                });
                let due = kilobits.sum::<f64>() / 12e-3 / 1e3;
                let found = times.iter().filter(|&&time| time <= until).count() as f64;
                prop_assert!((found - due).abs() < 1.0 + 1e-6, "{} {}", found, due);
            }
        }
    }
}
