//! An axis of a sweep: a key of the experiment, and the values that it takes.

use crate::call::grouped;
use crate::diagnostic::{KeyPath, Problem};
use crate::quantity::{
    BDP, Dimension, PACKETS, RATE, SIZE, TIME, ValueError, fail, parse_quantity, shown,
};
use crate::suggest::unknown;
use crate::write::inline;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The maximum number of values on one axis.
pub(crate) const MAX_VALUES: u64 = 100_000;

/// The keys of an axis that is a table with a list.
pub(crate) const LIST_KEYS: [&str; 3] = ["as", "name", "values"];
/// The keys of an axis that is a range.
pub(crate) const RANGE_KEYS: [&str; 6] = ["as", "from", "name", "points", "scale", "to"];
/// The scales of ranges.
pub(crate) const SCALES: [&str; 2] = ["linear", "log"];

/// Values within a range have so many decimals of a mantissa with one digit before the point.
const DECIMALS: usize = 5;

const FORMS: &str = "write a list of values, such as [\"10 Mbit/s\", \"100 Mbit/s\"], or a range, \
                     such as { from = \"10 ms\", to = \"100 ms\", points = 5 }";

/// A key of an experiment, and the values that it takes.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The key, as for `--set`: `link.bottleneck.rate`, `flow.*.cc`.
    pub key: String,
    /// The name that the file gives it; empty if it gives none.
    pub name: String,
    /// The unit of its numbers, empty for plain ones; `None` if its values are text.
    pub unit: Option<&'static str>,
    /// Its path in the file.
    pub(crate) path: KeyPath,
    /// The path of its values in the file.
    list: KeyPath,
    values: Values,
    /// A text into which values are inserted at `{}`; empty for none.
    template: String,
}

#[derive(Clone, Debug)]
enum Values {
    List(Vec<Value>),
    Range(Range),
}

/// All values from one to another, both included.
#[derive(Clone, Debug)]
struct Range {
    ends: [Value; 2],
    dimension: Option<&'static Dimension>,
    /// The ends in base units.
    low: f64,
    high: f64,
    is_log: bool,
    is_whole: bool,
    /// The number of its values in a grid.
    points: Option<u64>,
}

/// A value on an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisValue {
    /// The value of the key.
    pub value: Value,
    /// The number in the unit of the axis, or the text.
    pub column: Column,
}

/// A number in the unit of its axis, or a text.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
}

impl Axis {
    /// Reads the axis of a key; `None` and a problem or several if it is not valid.
    pub(crate) fn read(
        key: &str,
        value: &Value,
        path: &KeyPath,
        problems: &mut Vec<Problem>,
    ) -> Option<Axis> {
        let before = problems.len();
        let mut refuse = |text: String| problems.push(Problem::new(path.clone(), text));
        let none = Map::new();
        let table = match value {
            Value::Array(_) => &none,
            Value::Object(table) => table,
            _ => {
                refuse(format!("{} is not an axis; {FORMS}", shown(value)));
                return None;
            }
        };
        let list = if value.is_array() { Some(value) } else { table.get("values") };
        let known = if list.is_some() { &LIST_KEYS[..] } else { &RANGE_KEYS };
        for name in table.keys().filter(|name| !known.contains(&name.as_str())) {
            refuse(unknown("key of an axis", name, known));
        }
        let mut text = |key: &str| match table.get(key) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => {
                refuse(format!("{key}: {} is not text", shown(other)));
                String::new()
            }
            None => String::new(),
        };
        let (name, template) = (text("name"), text("as"));
        if !template.is_empty() && !template.contains("{}") {
            let text = format!("as: \"{template}\" has no {{}} that the value goes into");
            refuse(format!("{text}; write, for example, \"cubic(beta={{}})\""));
        }
        let values = match list {
            Some(list) => read_list(list).map(Values::List),
            None => Range::read(table).map(Values::Range),
        };
        let values = values.map_err(|ValueError(text)| refuse(text)).ok()?;
        let unit = values.unit();
        let list = if value.is_object() { path.then("values") } else { path.clone() };
        let (key, path) = (key.to_owned(), path.clone());
        let axis = Axis { key, name, unit, path, list, values, template };
        (problems.len() == before).then_some(axis)
    }

    /// The number of values; `None` for a range without a number of points.
    pub fn count(&self) -> Option<u64> {
        match &self.values {
            Values::List(values) => Some(values.len() as u64),
            Values::Range(range) => range.points,
        }
    }

    /// What to say if the axis has a value twice, be it in other words.
    pub(crate) fn repetition(&self) -> Option<String> {
        let values = self.written_all();
        let meaning = |value: &Value| match parse_quantity(value) {
            Ok((dimension, number)) => format!("{number} {}", dimension.map_or("", |of| of.name)),
            Err(_) => inline(value),
        };
        let mut seen = HashMap::new();
        let (first, again) = values
            .iter()
            .find_map(|value| seen.insert(meaning(value), value).map(|first| (first, value)))?;
        let (first, again, count) = (shown(first), shown(again), values.len());
        Some(match &self.values {
            Values::Range(range) if range.is_whole => format!(
                "has {again} at several of its {count} points, which are whole numbers as both ends are; write fewer \
                 points, ends with a decimal point, such as 1.0, or a list of values"
            ),
            Values::Range(_) => format!(
                "has {again} at several of its {count} points, which are rounded; write fewer points or a list of \
                 values"
            ),
            Values::List(_) if first == again => {
                format!("{again} is there twice; write every value once")
            }
            Values::List(_) => format!("{again} is {first} in other words; write every value once"),
        })
    }

    /// Every value, in order; those of a range without a number of points are its ends.
    pub fn all(&self) -> Vec<AxisValue> {
        self.written_all().iter().map(|value| self.value(value)).collect()
    }

    /// Every value, as a file has it.
    fn written_all(&self) -> Vec<Value> {
        match &self.values {
            Values::List(values) => values.clone(),
            Values::Range(range) => {
                let points = range.points.unwrap_or(2);
                let share = |step: u64| step as f64 / (points - 1) as f64;
                (0..points).map(|step| range.at(share(step))).collect()
            }
        }
    }

    /// The first value of the key.
    pub(crate) fn first(&self) -> Value {
        self.draw(0.0).value
    }

    /// The value at a share of the way along the axis, from 0 to less than 1.
    pub fn draw(&self, share: f64) -> AxisValue {
        match &self.values {
            Values::List(values) => {
                let at = (share * values.len() as f64) as usize;
                self.value(&values[at.min(values.len() - 1)])
            }
            Values::Range(range) => self.value(&range.at(share)),
        }
    }

    /// The values of the file, or the ends of its range, and their paths.
    pub(crate) fn written(&self) -> Vec<(KeyPath, Value)> {
        let place = |value: &Value| self.place(value);
        let pair = |value: &Value| {
            let value = self.value(value).value;
            (place(&value), value)
        };
        match &self.values {
            Values::List(values) => values.iter().map(pair).collect(),
            Values::Range(range) => range.ends.iter().map(pair).collect(),
        }
    }

    /// The path of a value in the file.
    pub(crate) fn place(&self, value: &Value) -> KeyPath {
        let is_value = |one: &Value| self.value(one).value == *value;
        match &self.values {
            Values::List(values) => match values.iter().position(is_value) {
                Some(at) => self.list.then(at),
                None => self.path.clone(),
            },
            Values::Range(_) => self.path.clone(),
        }
    }

    fn value(&self, value: &Value) -> AxisValue {
        let text = || value.as_str().map_or_else(|| inline(value), str::to_owned);
        let number = self.unit.and_then(|_| parse_quantity(value).ok());
        AxisValue {
            value: match self.template.as_str() {
                "" => value.clone(),
                template => Value::from(template.replace("{}", &text())),
            },
            column: match number {
                Some((dimension, number)) => Column::Number(number / per_unit(dimension)),
                None => Column::Text(text()),
            },
        }
    }
}

impl Values {
    /// The unit of the columns, if all values are numbers of one kind.
    fn unit(&self) -> Option<&'static str> {
        let dimension = match self {
            Values::Range(range) => range.dimension,
            Values::List(values) => {
                let mut kinds = values.iter().map(|value| Some(parse_quantity(value).ok()?.0));
                let first = kinds.next()??;
                kinds.all(|kind| kind == Some(first)).then_some(first)?
            }
        };
        Some(dimension.map_or("", unit))
    }
}

/// The unit of columns of quantities.
fn unit(dimension: &Dimension) -> &'static str {
    let units = [(&RATE, "bit/s"), (&TIME, "s"), (&SIZE, "bytes"), (&PACKETS, "packets")];
    let found = units.iter().find(|(one, _)| *one == dimension);
    found.map_or("BDP", |(_, unit)| unit)
}

/// The base units in one unit of a column.
fn per_unit(dimension: Option<&Dimension>) -> f64 {
    match dimension {
        Some(dimension) if *dimension == TIME => 1e9,
        Some(dimension) if *dimension == BDP => 1e6,
        _ => 1.0,
    }
}

fn read_list(list: &Value) -> Result<Vec<Value>, ValueError> {
    let Value::Array(values) = list else {
        fail!("values: {} is not a list; {FORMS}", shown(list))
    };
    if values.is_empty() {
        fail!("is empty; {FORMS}");
    }
    Ok(values.clone())
}

impl Range {
    fn read(table: &Map<String, Value>) -> Result<Range, ValueError> {
        let points = match table.get("points") {
            None => None,
            Some(points) => match points.as_u64().filter(|n| (2..=MAX_VALUES).contains(n)) {
                Some(points) => Some(points),
                None => {
                    let most = grouped(MAX_VALUES);
                    fail!("points: {} is not a number from 2 to {most}", shown(points))
                }
            },
        };
        let end = |key: &str| {
            table.get(key).cloned().ok_or_else(|| ValueError(format!("lacks {key}; {FORMS}")))
        };
        let (from, to) = (end("from")?, end("to")?);
        let is_log = match table.get("scale") {
            None => false,
            Some(scale) => match SCALES.iter().position(|name| scale == name) {
                Some(at) => at == 1,
                None => {
                    fail!("scale: {} is neither \"linear\" nor \"log\"; write one", shown(scale))
                }
            },
        };
        let ((dimension, low), (other, high)) = (parse_quantity(&from)?, parse_quantity(&to)?);
        let (first, last) = (shown(&from), shown(&to));
        if dimension != other {
            fail!("{first} and {last} are not of one kind; {FORMS}");
        }
        if low >= high {
            fail!("{first} is not less than {last}; write the least first");
        }
        if is_log && low <= 0.0 {
            fail!("{first} is not above 0, where a logarithmic range can begin");
        }
        let is_whole = from.is_i64() && to.is_i64();
        Ok(Range { ends: [from, to], dimension, low, high, is_log, is_whole, points })
    }

    /// The value at a share of the way, 0 to 1, as a file has it.
    fn at(&self, share: f64) -> Value {
        let (low, high) = (self.low, self.high);
        let value = if share <= 0.0 {
            low
        } else if share >= 1.0 {
            high
        } else if self.is_log {
            rounded((low.ln() + (high.ln() - low.ln()) * share).exp())
        } else {
            rounded(low + (high - low) * share)
        };
        match self.dimension {
            Some(dimension) => Value::from(dimension.format(value.round_ties_even() as u64)),
            None if self.is_whole => Value::from(value.round_ties_even() as i64),
            None => Value::from(value),
        }
    }
}

/// A number with six significant digits.
fn rounded(value: f64) -> f64 {
    // A number in scientific notation is a number.
    format!("{value:.DECIMALS$e}").parse().expect("a number")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn read(value: Value) -> Result<Axis, String> {
        let mut problems = Vec::new();
        let axis = Axis::read("key", &value, &KeyPath::default(), &mut problems);
        let texts: Vec<_> = problems.iter().map(|problem| problem.text.as_str()).collect();
        axis.ok_or_else(|| texts.join("\n"))
    }

    fn all(value: Value) -> Vec<(Value, Column)> {
        let values = read(value).expect("an axis").all();
        values.into_iter().map(|value| (value.value, value.column)).collect()
    }

    #[test]
    fn columns_count_si_units_and_values_of_several_kinds_are_text() {
        let number = |text: &str, number| (json!(text), Column::Number(number));
        assert_eq!(all(json!(["5 ms", "2 us"])), [number("5 ms", 0.005), number("2 us", 2e-6)]);
        let text = |value: Value, text: &str| (value, Column::Text(text.to_owned()));
        assert_eq!(all(json!(["5 ms", 2])), [text(json!("5 ms"), "5 ms"), text(json!(2), "2")]);
        assert_eq!(read(json!(["1 BDP", "2 BDP"])).expect("an axis").unit, Some("BDP"));
        assert_eq!(read(json!([0.5, "1 %"])).expect("an axis").unit, Some(""));
        assert_eq!(read(json!([true, false])).expect("an axis").unit, None);
    }

    #[test]
    fn a_range_includes_both_ends_and_has_six_significant_digits() {
        let range = json!({"from": "1 ms", "to": "1 s", "points": 4, "scale": "log"});
        let texts: Vec<_> = all(range).into_iter().map(|(value, _)| value).collect();
        assert_eq!(texts, [json!("1 ms"), json!("10 ms"), json!("100 ms"), json!("1 s")]);
        let range = json!({"from": 0.0, "to": 1.0, "points": 4});
        assert_eq!(all(range)[1].0, json!(0.333_333));
        let range = json!({"from": 1, "to": 4, "points": 3});
        assert_eq!(all(range)[1].0, json!(2)); // 2.5, half to even
    }

    #[test]
    fn a_value_is_put_into_a_text_and_its_column_is_the_value() {
        let axis = json!({"values": [0.5], "as": "cubic(beta={})", "name": "beta"});
        assert_eq!(all(axis), [(json!("cubic(beta=0.5)"), Column::Number(0.5))]);
    }

    #[test]
    fn all_that_is_wrong_with_an_axis_is_found() {
        let axis = json!({"from": 1, "step": 2, "name": 3, "as": "reno"});
        let error = read(axis).expect_err("not an axis");
        for part in [
            "no key of an axis is called \"step\"",
            "name: 3 is not text",
            "as: \"reno\" has no {}",
            "lacks to",
        ] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn no_value_of_an_axis_is_another_one_rounded_or_in_other_words() {
        for (axis, part) in [
            (json!({"from": 1, "to": 4, "points": 7}), "has 2 at several of its 7 points"),
            (
                json!({"from": "1 B", "to": "2 B", "points": 3}),
                "of its 3 points, which are rounded",
            ),
            (json!(["1 Gbit/s", "1000 Mbit/s"]), "\"1000 Mbit/s\" is \"1 Gbit/s\" in other words"),
            (json!([0.1, "10 %"]), "\"10 %\" is 0.1 in other words"),
            (json!(["reno", "reno"]), "\"reno\" is there twice"),
        ] {
            let text = read(axis).expect("an axis").repetition().expect("a repetition");
            assert!(text.contains(part), "{text}");
        }
        for axis in [json!({"from": 1, "to": 4, "points": 4}), json!(["1 ms", "1 B", 1, "reno"])] {
            assert_eq!(read(axis).expect("an axis").repetition(), None);
        }
    }

    #[test]
    fn a_range_of_one_point_is_refused_as_it_lacks_its_other_end() {
        let error = read(json!({"from": 1, "to": 4, "points": 1})).expect_err("one point");
        assert!(error.contains("points: 1 is not a number from 2 to 100,000"), "{error}");
    }

    proptest! {
        #[test]
        fn what_is_drawn_is_within_the_range(low in 1..1000_u32, more in 1..1000_u32, share in 0.0..1.0) {
            let high = low + more;
            for scale in SCALES {
                let range = json!({
                    "from": format!("{low} ms"), "to": format!("{high} ms"), "scale": scale,
                });
                let Column::Number(time) = read(range).expect("an axis").draw(share).column else {
                    panic!("times are numbers")
                };
                prop_assert!((f64::from(low)..=f64::from(high)).contains(&(time * 1e3)));
            }
        }
    }
}
