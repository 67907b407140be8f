//! Traces of delivery opportunities in mahimahi's format: one time in ms per line.

use crate::call::grouped;
use crate::quantity::{ValueError, fail, shown};
use crate::timeline::check_count;
use serde_json::Value;

/// Bytes that may leave at each time of a trace.
pub const OPPORTUNITY: u64 = 1500;

/// Reads the text of a trace; `name` is its file in errors.
///
/// # Errors
/// If a line is not a whole number of ms, times decrease, or none is above 0.
pub fn parse_file(name: &str, text: &str) -> Result<Vec<u32>, ValueError> {
    let mut times = Vec::new();
    for (number, line) in text.lines().enumerate() {
        match digits(line.trim()) {
            Some(time) => times.push(time),
            None => {
                let (line, number) = (shown(&Value::from(line)), number + 1);
                let max = grouped(u32::MAX);
                let valid = format!("each line of a trace is a whole number of ms, {max} at most");
                fail!("\"{name}\" holds {line} in line {number}; {valid}")
            }
        }
    }
    check(&times, &format!("\"{name}\" "))?;
    Ok(times)
}

/// Checks the times of a trace that an experiment file holds itself, ms.
///
/// # Errors
/// As [`parse_file`].
pub fn parse_times(value: &Value) -> Result<Vec<u32>, ValueError> {
    let Some(times) = value.as_array().filter(|times| times.iter().all(Value::is_i64)) else {
        fail!("{} is not a trace; write the name of a file with {}", shown(value), valid())
    };
    let mut read = Vec::with_capacity(times.len());
    for (at, time) in times.iter().enumerate() {
        match time.as_u64().and_then(|time| u32::try_from(time).ok()) {
            Some(time) => read.push(time),
            None => {
                let before = read.last().copied().unwrap_or(0);
                fail!("holds {time} after {before} in line {}; a trace holds {}", at + 1, valid())
            }
        }
    }
    check(&read, "")?;
    Ok(read)
}

/// The mean rate of a trace, bit/s.
pub fn mean_rate(times: &[u32]) -> u64 {
    let last = u64::from(times.last().copied().unwrap_or(1).max(1));
    times.len() as u64 * OPPORTUNITY * 8 * 1000 / last
}

/// The number that a text of digits stands for, if it is no larger than a trace's times can be.
fn digits(text: &str) -> Option<u32> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

fn valid() -> String {
    let max = grouped(u32::MAX);
    format!(
        "whole numbers of milliseconds that never decrease, the last one above 0 and {max} at most"
    )
}

fn check(times: &[u32], name: &str) -> Result<(), ValueError> {
    check_count(times.len(), "lines")?;
    if let Some(at) = times.windows(2).position(|pair| pair[0] > pair[1]) {
        let [before, time, line] = [times[at], times[at + 1], at as u32 + 2];
        fail!("{name}holds {time} after {before} in line {line}; a trace holds {}", valid());
    }
    match times.last() {
        None | Some(0) => fail!("{name}holds no time after 0; a trace holds {}", valid()),
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_trace_is_one_time_per_line() {
        assert_eq!(parse_file("a.trace", "0\n5\n5\n10\n"), Ok(vec![0, 5, 5, 10]));
        assert_eq!(parse_times(&json!([0, 5, 5, 10])), Ok(vec![0, 5, 5, 10]));
    }

    #[test]
    fn the_mean_rate_counts_all_opportunities() {
        assert_eq!(mean_rate(&[1]), 12_000_000);
        assert_eq!(mean_rate(&[0, 5, 5, 10]), 4_800_000);
    }

    #[test]
    fn errors_name_the_file_and_the_line() {
        for (text, part) in [
            ("5\nx\n", "\"a.trace\" holds \"x\" in line 2; each line of a trace"),
            ("5\n+7\n", "\"a.trace\" holds \"+7\" in line 2"),
            ("5\n4294967296\n", "4,294,967,295 at most"),
            ("5\n3\n", "\"a.trace\" holds 3 after 5 in line 2"),
            ("0\n", "\"a.trace\" holds no time after 0"),
            ("", "\"a.trace\" holds no time after 0"),
        ] {
            let error = parse_file("a.trace", text).expect_err("not valid").to_string();
            assert!(error.contains(part), "{error}");
        }
        for (times, part) in [
            (json!([3, 2]), "holds 2 after 3 in line 2"),
            (json!([-1]), "holds -1 after 0 in line 1"),
            (json!([1.5]), "is not a trace"),
            (json!([]), "holds no time after 0"),
        ] {
            let error = parse_times(&times).expect_err("not valid").to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
