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

/// Reads the text of a file of rates; `name` is the file in errors. Each line has a time in s and a
/// rate in bit/s; those that are empty or begin with `#` do not count.
///
/// # Errors
/// If a line has something else, the first time is not 0, or times do not increase.
pub fn parse_rate_file(name: &str, text: &str) -> Result<Steps, ValueError> {
    let mut steps = Steps::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some(step) = rate_line(line) else {
            let line = shown(&Value::from(line));
            fail!(
                "\"{name}\" holds {line} in line {number}; write a time in s and a rate in bit/s, \
                   such as \"0.04 250000\""
            )
        };
        match steps.last() {
            None if step.0 > 0 => {
                fail!(
                    "\"{name}\" begins at {} in line {number}; the first time is 0",
                    TIME.format(step.0)
                )
            }
            Some(last) if last.0 >= step.0 => {
                fail!(
                    "\"{name}\" holds {} after {} in line {number}; times increase",
                    TIME.format(step.0),
                    TIME.format(last.0)
                )
            }
            _ => steps.push(step),
        }
    }
    if steps.is_empty() {
        fail!("\"{name}\" holds no rates; write lines such as \"0 5000000\"")
    }
    check_count(steps.len(), "lines")?;
    Ok(steps)
}

/// The time in ns and the rate of a line.
fn rate_line(line: &str) -> Option<(u64, u64)> {
    let mut numbers = line.split_whitespace().map(|text| text.parse::<f64>().ok());
    let (at, rate) = (numbers.next()??, numbers.next()??);
    let is_valid = (0.0..=1e6).contains(&at) && (0.0..=RATE.max as f64).contains(&rate);
    let is_whole = numbers.next().is_none();
    (is_valid && is_whole).then_some(((at * 1e9 + 0.5) as u64, (rate + 0.5) as u64))
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

    #[test]
    fn a_file_of_rates_is_read_line_by_line() {
        let steps = parse_rate_file("a.txt", "# s bit/s\n0 5e6\n0.04 250000\n").expect("rates");
        assert_eq!(steps, [(0, 5_000_000), (40_000_000, 250_000)]);
        for (text, part) in [
            ("0 1 2", "in line 1; write a time in s and a rate in bit/s"),
            ("1 5", "the first time is 0"),
            ("0 5\n0 6", "times increase"),
            ("", "holds no rates"),
        ] {
            let error = parse_rate_file("a.txt", text).expect_err("wrong").to_string();
            assert!(error.contains(part), "{error}");
        }
    }
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
