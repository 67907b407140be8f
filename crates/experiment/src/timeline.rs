//! Rates and delays that change: `[["0 s", "10 Mbit/s"], ["5 s", "2 Mbit/s"]]`.

use crate::call::grouped;
use crate::quantity::{Dimension, RATE, TIME, ValueError, fail, parse_probability, shown};
use serde_json::Value;

/// The maximum number of steps of a time line, and of lines of a trace.
pub const MAX_STEPS: usize = 1_000_000;

const RATES: &str =
    "write pairs of time and rate, such as [[\"0 s\", \"10 Mbit/s\"], [\"5 s\", \"2 Mbit/s\"]]";
const DELAYS: &str = "write pairs of time and delay, such as [[\"60 s\", \"50 ms\"]]";

const PROBABILITIES: &str =
    "write pairs of time and probability, such as [[\"0 s\", 0.001], [\"15 s\", 0]]";

/// Steps: a time in ns, and a rate in bit/s or a delay in ns from then on.
pub type Steps = Vec<(u64, u64)>;

/// Reads rates over time; the first time is 0 and the times increase.
///
/// # Errors
/// If the value is not a list of such pairs.
pub fn parse_rates(value: &Value) -> Result<Steps, ValueError> {
    let steps = parse_steps(value, &RATE, "rates", RATES)?;
    match steps.first() {
        Some(&(at, _)) if at > 0 => {
            fail!("the first rate is to be that at \"0 s\", not \"{}\"; {RATES}", TIME.format(at))
        }
        _ => Ok(steps),
    }
}

/// Reads delays over time; the times increase.
///
/// # Errors
/// If the value is not a list of such pairs.
pub fn parse_reroutes(value: &Value) -> Result<Steps, ValueError> {
    parse_steps(value, &TIME, "delays", DELAYS)
}

/// Reads probabilities over time; the times increase.
///
/// # Errors
/// If the value is not a list of such pairs.
pub fn parse_probabilities(value: &Value) -> Result<Vec<(u64, f64)>, ValueError> {
    parse_line(value, parse_probability, "probabilities", PROBABILITIES)
}

/// Writes probabilities as [`parse_probabilities`] reads them.
pub fn format_probabilities(steps: &[(u64, f64)]) -> Value {
    let pair = |&(at, probability)| {
        Value::Array(vec![Value::from(TIME.format(at)), Value::from(probability)])
    };
    steps.iter().map(pair).collect()
}

/// Writes rates as [`parse_rates`] reads them.
pub fn format_rates(steps: &[(u64, u64)]) -> Value {
    format_steps(steps, &RATE)
}

/// Writes delays as [`parse_reroutes`] reads them.
pub fn format_reroutes(steps: &[(u64, u64)]) -> Value {
    format_steps(steps, &TIME)
}

fn format_steps(steps: &[(u64, u64)], dimension: &Dimension) -> Value {
    let pair = |&(at, amount)| Value::from(vec![TIME.format(at), dimension.format(amount)]);
    steps.iter().map(pair).collect()
}

fn parse_steps(
    value: &Value,
    dimension: &Dimension,
    what: &str,
    advice: &str,
) -> Result<Steps, ValueError> {
    parse_line(value, |amount| dimension.parse_or_zero(amount), what, advice)
}

fn parse_line<T>(
    value: &Value,
    parse: impl Fn(&Value) -> Result<T, ValueError>,
    what: &str,
    advice: &str,
) -> Result<Vec<(u64, T)>, ValueError> {
    let pairs: Option<Vec<_>> = value.as_array().and_then(|steps| {
        let pair = |step: &'_ Value| match step.as_array().map(Vec::as_slice) {
            Some([at, amount]) => Some((at.clone(), amount.clone())),
            _ => None,
        };
        steps.iter().map(pair).collect()
    });
    let Some(pairs) = pairs.filter(|pairs| !pairs.is_empty()) else {
        fail!("{} is not a time line of {what}; {advice}", shown(value))
    };
    check_count(pairs.len(), "steps")?;
    let mut steps: Vec<(u64, T)> = Vec::with_capacity(pairs.len());
    for (at, amount) in &pairs {
        let (at, amount) = (TIME.parse_or_zero(at)?, parse(amount)?);
        if let Some((before, _)) = steps.last().filter(|(before, _)| at <= *before) {
            let (late, early) = (TIME.format(*before), TIME.format(at));
            fail!("\"{early}\" does not come after \"{late}\"; times are to increase");
        }
        steps.push((at, amount));
    }
    Ok(steps)
}

/// Refuses more than [`MAX_STEPS`] of something.
pub(crate) fn check_count(count: usize, what: &str) -> Result<(), ValueError> {
    if count > MAX_STEPS {
        let (count, max) = (grouped(count as u64), grouped(MAX_STEPS as u64));
        fail!("there are {count} {what}; the maximum is {max}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_time_line_of_rates_may_pause() {
        let line = json!([["0 s", "10 Mbit/s"], ["500 ms", "0 bit/s"]]);
        let steps = parse_rates(&line).expect("valid");
        assert_eq!(steps, [(0, 10_000_000), (500_000_000, 0)]);
        let text = json!([["0 ms", "10 Mbit/s"], ["500 ms", "0 Mbit/s"]]);
        assert_eq!(format_rates(&steps), text);
        assert_eq!(parse_rates(&text), Ok(steps));
    }

    #[test]
    fn a_reroute_may_begin_later() {
        let steps = parse_reroutes(&json!([["60 s", "50 ms"]])).expect("valid");
        assert_eq!(steps, [(60_000_000_000, 50_000_000)]);
        assert_eq!(format_reroutes(&steps), json!([["60 s", "50 ms"]]));
    }

    #[test]
    fn errors_say_what_is_valid() {
        for (value, part) in [
            (json!("10 Mbit/s"), "is not a time line of rates; write pairs of time and rate"),
            (json!([]), "is not a time line of rates"),
            (json!([["0 s"]]), "is not a time line of rates"),
            (json!([["1 s", "1 Mbit/s"]]), "the first rate is to be that at \"0 s\", not \"1 s\""),
            (json!([["0 s", "1 Mbit/s"], ["0 s", "2 Mbit/s"]]), "times are to increase"),
            (json!([["0 s", "1 ms"]]), "has the unknown unit \"ms\""),
        ] {
            let error = parse_rates(&value).expect_err("not valid").to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
