//! The variables of the stacks' own algorithms, read from their `Debug` text: their fields are private.
//!
//! A variable is a path of field names, such as `max_bandwidth.max_filter.samples.value`; of a list
//! its first element counts. Field names are those of the stacks' pinned versions: a test fails if one
//! is gone. [`Metric`] has the BBR draft's and RFC 9438's names and the units of dumbbell's algorithms.

use dumbbell_cc::Metric;
use std::fmt::{self, Debug, Write};

/// A variable and where it is.
pub(crate) struct Variable {
    pub(crate) path: &'static str,
    pub(crate) name: &'static str,
    pub(crate) unit: Unit,
}

/// How a variable's text becomes a number.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    /// A number or a duration, in its unit or in seconds; `true` is 1.
    Plain,
    /// Bytes, shown in packets; `u64::MAX` is infinite.
    Bytes,
    /// A state, by the name of its variant.
    State,
}

const fn plain(path: &'static str, name: &'static str) -> Variable {
    Variable { path, name, unit: Unit::Plain }
}

const fn bytes(path: &'static str, name: &'static str) -> Variable {
    Variable { path, name, unit: Unit::Bytes }
}

/// `quinn_proto::congestion::Bbr`.
pub(crate) const QUINN_BBR: &[Variable] = &[
    Variable { path: "mode", name: "state", unit: Unit::State },
    plain("max_bandwidth.max_filter.samples.value", "max_bw"),
    plain("max_bandwidth.max_filter.samples.value", "bw"),
    plain("min_rtt", "min_rtt"),
    plain("pacing_gain", "pacing_gain"),
    plain("cwnd_gain", "cwnd_gain"),
    bytes("ack_aggregation.max_ack_height.samples.value", "extra_acked"),
    plain("round_count", "round_count"),
    plain("is_at_full_bandwidth", "full_bw_reached"),
];

/// `noq_proto::congestion::Bbr3`.
pub(crate) const NOQ_BBR3: &[Variable] = &[
    Variable { path: "state", name: "state", unit: Unit::State },
    plain("bw", "bw"),
    plain("max_bw", "max_bw"),
    plain("min_rtt", "min_rtt"),
    plain("pacing_gain", "pacing_gain"),
    plain("cwnd_gain", "cwnd_gain"),
    bytes("extra_acked", "extra_acked"),
    plain("round_count", "round_count"),
    plain("full_bw_reached", "full_bw_reached"),
    plain("bw_shortterm", "bw_shortterm"),
    bytes("inflight_longterm", "inflight_longterm"),
    bytes("inflight_shortterm", "inflight_shortterm"),
];

/// `quinn_proto::congestion::Cubic`.
pub(crate) const QUINN_CUBIC: &[Variable] =
    &[plain("cubic_state.k", "K"), bytes("cubic_state.w_max", "W_max")];

/// `noq_proto::congestion::Cubic`.
pub(crate) const NOQ_CUBIC: &[Variable] = &[plain("state.k", "K"), bytes("state.w_max", "W_max")];

/// States as dumbbell's BBRs number them. `ProbeBw` of BBRv3 has a phase in parentheses, which counts.
const STATES: &[(&str, f64)] = &[
    ("Startup", 0.0),
    ("Drain", 1.0),
    ("ProbeBw", 2.0),
    ("ProbeRtt", 3.0),
    ("Up", 4.0),
    ("Down", 5.0),
    ("Cruise", 6.0),
    ("Refill", 7.0),
];

/// Calls `show` for each of the variables of an algorithm on packets of `mtu` bytes.
pub(crate) fn show(
    algorithm: &dyn Debug,
    variables: &'static [Variable],
    mtu: u16,
    show: &mut dyn FnMut(Metric),
) {
    let mut fields = Fields {
        path: String::new(),
        lengths: Vec::new(),
        token: String::new(),
        found: vec![None; variables.len()],
        variables,
        mtu: f64::from(mtu),
    };
    write!(fields, "{algorithm:?}").expect("writing to a string does not fail");
    for (variable, found) in variables.iter().zip(fields.found) {
        if let Some(value) = found {
            show(Metric { name: variable.name, value });
        }
    }
}

/// Splits `Debug` text into fields while it is written.
struct Fields {
    /// The present field's path, a dot before each name.
    path: String,
    /// Of the brackets that are open: the path's length outside.
    lengths: Vec<usize>,
    token: String,
    found: Vec<Option<f64>>,
    variables: &'static [Variable],
    mtu: f64,
}

impl Fields {
    /// The token is a value of the present field; the first counts, of a state the last.
    fn end_value(&mut self) {
        let token = self.token.trim();
        if !token.is_empty() {
            let path = self.path.trim_start_matches('.');
            for (variable, found) in self.variables.iter().zip(&mut self.found) {
                let is_open = found.is_none() || matches!(variable.unit, Unit::State);
                if is_open && variable.path == path {
                    *found = number(token, variable.unit, self.mtu).or(*found);
                }
            }
        }
        self.token.clear();
    }

    /// Back to the path of the bracket that encloses the present field.
    fn end_field(&mut self) {
        self.end_value();
        self.path.truncate(self.lengths.last().copied().unwrap_or(0));
    }
}

impl Write for Fields {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            match letter {
                ':' => {
                    self.path.push('.');
                    self.path.push_str(self.token.trim());
                    self.token.clear();
                }
                '{' | '[' | '(' => {
                    // Before it is a type's name, or a variant's.
                    if letter == '(' {
                        self.end_value()
                    } else {
                        self.token.clear()
                    }
                    self.lengths.push(self.path.len());
                }
                ',' => self.end_field(),
                '}' | ']' | ')' => {
                    self.end_field();
                    self.lengths.pop();
                }
                letter => self.token.push(letter),
            }
        }
        Ok(())
    }
}

fn number(token: &str, unit: Unit, mtu: f64) -> Option<f64> {
    match unit {
        Unit::State => STATES.iter().find(|(name, _)| *name == token).map(|(_, number)| *number),
        Unit::Bytes if token == u64::MAX.to_string() => Some(f64::INFINITY),
        Unit::Bytes => token.parse::<f64>().ok().map(|bytes| bytes / mtu),
        Unit::Plain => match token {
            "true" => Some(1.0),
            "false" => Some(0.0),
            _ => token.parse().ok().or_else(|| duration(token)),
        },
    }
}

/// The seconds of a `Duration`'s `Debug` text.
fn duration(token: &str) -> Option<f64> {
    let units = [("ns", 1e9), ("µs", 1e6), ("ms", 1e3), ("s", 1.0)];
    let (value, per_second) = units
        .iter()
        .find_map(|(unit, per_second)| Some((token.strip_suffix(unit)?, per_second)))?;
    value.parse::<f64>().ok().map(|value| value / per_second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use noq_proto::congestion::{self as noq, ControllerFactory as _};
    use quinn_proto::congestion::{self as quinn, ControllerFactory as _};
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    fn shown(algorithm: &dyn Debug, variables: &'static [Variable]) -> Vec<(&'static str, f64)> {
        let mut values = Vec::new();
        show(algorithm, variables, 1200, &mut |metric| values.push((metric.name, metric.value)));
        values
    }

    fn names(variables: &'static [Variable]) -> Vec<&'static str> {
        variables.iter().map(|variable| variable.name).collect()
    }

    #[test]
    fn every_variable_is_a_field_of_the_stacks_versions() {
        let now = Instant::now();
        let [a, b] = [
            Arc::new(quinn::BbrConfig::default()).build(now, 1200).into_any(),
            Arc::new(quinn::CubicConfig::default()).build(now, 1200).into_any(),
        ];
        let [c, d] = [
            Arc::new(noq::Bbr3Config::default()).build(now, 1200).into_any(),
            Arc::new(noq::CubicConfig::default()).build(now, 1200).into_any(),
        ];
        let shown = [
            (shown(a.downcast_ref::<quinn::Bbr>().expect("made as one"), QUINN_BBR), QUINN_BBR),
            (
                shown(b.downcast_ref::<quinn::Cubic>().expect("made as one"), QUINN_CUBIC),
                QUINN_CUBIC,
            ),
            (shown(c.downcast_ref::<noq::Bbr3>().expect("made as one"), NOQ_BBR3), NOQ_BBR3),
            (shown(d.downcast_ref::<noq::Cubic>().expect("made as one"), NOQ_CUBIC), NOQ_CUBIC),
        ];
        for (values, variables) in shown {
            let found: Vec<_> = values.iter().map(|(name, _)| *name).collect();
            assert_eq!(found, names(variables));
        }
    }

    #[test]
    fn values_have_the_units_of_our_algorithms() {
        #[derive(Debug)]
        enum State {
            ProbeBw(ProbePhase),
        }
        #[derive(Debug)]
        enum ProbePhase {
            Down,
        }
        #[derive(Debug)]
        #[expect(dead_code, reason = "fields are only shown")]
        struct Bbr3 {
            packets: [Vec<(u64, Option<bool>)>; 1],
            state: State,
            min_rtt: Duration,
            bw_shortterm: f64,
            full_bw_reached: bool,
            inflight_longterm: u64,
            inflight_shortterm: u64,
        }
        let algorithm = Bbr3 {
            packets: [vec![(1, None), (2, Some(true))]],
            state: State::ProbeBw(ProbePhase::Down),
            min_rtt: Duration::from_micros(40_500),
            bw_shortterm: f64::INFINITY,
            full_bw_reached: true,
            inflight_longterm: u64::MAX,
            inflight_shortterm: 3000,
        };
        let expected = [
            ("state", 5.0),
            ("min_rtt", 0.0405),
            ("full_bw_reached", 1.0),
            ("bw_shortterm", f64::INFINITY),
            ("inflight_longterm", f64::INFINITY),
            ("inflight_shortterm", 2.5),
        ];
        assert_eq!(shown(&algorithm, NOQ_BBR3), expected);
    }
}
