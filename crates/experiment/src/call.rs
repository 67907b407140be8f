//! Names with options: `codel`, `fq_codel(target=5 ms, ecn=off)`, or the same as a table,
//! `{ name = "fq_codel", target = "5 ms", ecn = false }`.

use crate::quantity::{Dimension, ValueError, fail, shown};
use crate::suggest::did_you_mean;
use serde_json::Value;
use std::fmt::{self, Display};

/// A name with options, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The name.
    pub name: String,
    /// Options and their values, each option once.
    pub options: Vec<(String, String)>,
}

/// Something that is written as a call: its name, options and origin.
#[derive(Debug)]
pub struct CallKind {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Its options, in the order in which they are written.
    pub options: &'static [OptionKind],
}

/// An option of a call.
#[derive(Debug)]
pub struct OptionKind {
    /// Its name.
    pub name: &'static str,
    /// Its default; `None` if it must be given.
    pub default: Option<&'static str>,
    /// The values that it takes.
    pub values: Values,
    /// What it is.
    pub about: &'static str,
}

/// The values that an option takes.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// A quantity above zero.
    Quantity(&'static Dimension),
    /// The same, or `off`.
    QuantityOrOff(&'static Dimension),
    /// A quantity above zero of one of several dimensions.
    QuantityOf(&'static [&'static Dimension]),
    /// A number from 0 to this one.
    Number(f64),
    /// A whole number from the first to the second.
    Count(u64, u64),
    /// `on` or `off`.
    Switch,
    /// One of these names.
    OneOf(&'static [&'static str]),
}

impl Call {
    /// Reads `NAME` or `NAME(option=value, ...)`; `what` names the kind of thing in errors.
    ///
    /// # Errors
    /// If the text has another form or gives an option twice.
    pub fn from_text(text: &str, what: &str) -> Result<Call, ValueError> {
        let form = || {
            let form = "write NAME or NAME(option=value, ...)";
            ValueError(format!("{} is not {what}: {form}", shown(&Value::from(text))))
        };
        let (name, rest) = match text.trim().split_once('(') {
            None => (text.trim(), ""),
            Some((name, rest)) => (name.trim(), rest.strip_suffix(')').ok_or_else(form)?),
        };
        if name.is_empty() {
            return Err(form());
        }
        let mut call = Call { name: name.to_owned(), options: Vec::new() };
        for pair in rest.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let Some((key, value)) = pair.split_once('=') else {
                fail!("{name}: {} is not of the form option=value", shown(&Value::from(pair)))
            };
            call.add(key.trim(), value.trim())?;
        }
        Ok(call)
    }

    /// Reads a call from a text or a table.
    ///
    /// # Errors
    /// If it is neither, a table lacks its name, or a value is a list or a table.
    pub fn from_value(value: &Value, what: &str) -> Result<Call, ValueError> {
        let table = match value {
            Value::String(text) => return Call::from_text(text, what),
            Value::Object(table) => table,
            _ => fail!("{} is not {what}; write its name as text, or a table", shown(value)),
        };
        let Some(Value::String(name)) = table.get("name") else {
            fail!("{} is not {what}: it has no name; write {{ name = \"...\" }}", shown(value))
        };
        let mut call = Call { name: name.trim().to_owned(), options: Vec::new() };
        for (key, value) in table.iter().filter(|(key, _)| *key != "name") {
            let text = match value {
                Value::Bool(is_on) => if *is_on { "on" } else { "off" }.to_owned(),
                Value::Number(number) => number.to_string(),
                Value::String(text) if !text.contains([',', '(', ')', '=']) => text.clone(),
                _ => fail!("{name}: {key}: {} is not a number, text, true or false", shown(value)),
            };
            call.add(key, text.trim())?;
        }
        Ok(call)
    }

    /// The value of an option, if it is given.
    pub fn get(&self, option: &str) -> Option<&str> {
        self.options.iter().find(|(name, _)| name == option).map(|(_, value)| value.as_str())
    }

    /// The call with every option of its kind, each as it is written when resolved.
    ///
    /// # Errors
    /// If `kinds` has none of its name, it has an unknown option or lacks one, or a value is not
    /// valid.
    pub fn resolve(&self, kinds: &'static [CallKind], what: &str) -> Result<Resolved, ValueError> {
        let name = &self.name;
        let Some(kind) = kinds.iter().find(|kind| kind.name == name) else {
            let known: Vec<_> = kinds.iter().map(|kind| kind.name).collect();
            let hint = did_you_mean(name, known.iter().copied());
            let advice = "write NAME or NAME(option=value, ...), where NAME is one of";
            let text = shown(&Value::from(self.to_string()));
            fail!("{text} is not {what}{hint}; {advice} {}", known.join(", "))
        };
        for (key, _) in &self.options {
            if !kind.options.iter().any(|option| option.name == key) {
                let known: Vec<_> = kind.options.iter().map(|option| option.name).collect();
                let hint = did_you_mean(key, known.iter().copied());
                fail!("{name} has no option \"{key}\"{hint}; it has {}", known.join(", "))
            }
        }
        let mut values = Vec::new();
        for option in kind.options {
            let key = option.name;
            let Some(text) = self.get(key).filter(|text| !text.is_empty()).or(option.default)
            else {
                fail!("{name} lacks its option {key}; write \"{name}({key}=..., ...)\"")
            };
            let value = option.values.parse(text);
            values.push(value.map_err(|error| ValueError(format!("{name}: {key}: {error}")))?);
        }
        Ok(Resolved { kind, values })
    }

    fn add(&mut self, key: &str, value: &str) -> Result<(), ValueError> {
        if self.get(key).is_some() {
            fail!("{}: {key} is given twice; write it once", self.name)
        }
        self.options.push((key.to_owned(), value.to_owned()));
        Ok(())
    }
}

impl Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = self.options.iter().map(|(key, value)| format!("{key}={value}"));
        match self.options.is_empty() {
            true => f.write_str(&self.name),
            false => write!(f, "{}({})", self.name, options.collect::<Vec<_>>().join(", ")),
        }
    }
}

/// A call with the values of all options.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// What is called.
    pub kind: &'static CallKind,
    values: Vec<OptionValue>,
}

/// The value of an option.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OptionValue {
    /// An amount in base units.
    Amount(&'static Dimension, u64),
    /// A number.
    Number(f64),
    /// A whole number.
    Count(u64),
    /// On or off.
    Switch(bool),
    /// A name, by its place among those of the option.
    Name(&'static [&'static str], usize),
}

impl Resolved {
    /// The value of an option.
    ///
    /// # Panics
    /// If the call has no such option.
    fn value(&self, option: &str) -> OptionValue {
        let at = self.kind.options.iter().position(|kind| kind.name == option);
        self.values[at.expect("an option of the table")]
    }

    /// An amount in base units or a count; `None` if it is off.
    pub(crate) fn amount(&self, option: &str) -> Option<u64> {
        match self.value(option) {
            OptionValue::Amount(_, amount) | OptionValue::Count(amount) => Some(amount),
            _ => None,
        }
    }

    /// An amount or a count of an option that cannot be off.
    pub(crate) fn whole(&self, option: &str) -> u64 {
        self.amount(option).expect("an option that is not off")
    }

    /// The dimension of an amount.
    pub(crate) fn dimension(&self, option: &str) -> Option<&'static Dimension> {
        match self.value(option) {
            OptionValue::Amount(dimension, _) => Some(dimension),
            _ => None,
        }
    }

    /// A number.
    pub(crate) fn number(&self, option: &str) -> f64 {
        match self.value(option) {
            OptionValue::Number(number) => number,
            value => unreachable!("{option} is a number, not {value:?}"),
        }
    }

    /// The place of a name among those of its option.
    pub(crate) fn place(&self, option: &str) -> usize {
        match self.value(option) {
            OptionValue::Name(_, place) => place,
            value => unreachable!("{option} is a name, not {value:?}"),
        }
    }

    /// Whether a switch is on.
    pub(crate) fn is_on(&self, option: &str) -> bool {
        self.value(option) == OptionValue::Switch(true)
    }
}

impl Display for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = self.kind.options.iter().zip(&self.values);
        let options = options.map(|(option, value)| format!("{}={value}", option.name));
        write!(f, "{}({})", self.kind.name, options.collect::<Vec<_>>().join(", "))
    }
}

impl Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionValue::Amount(dimension, amount) => f.write_str(&dimension.format(*amount)),
            OptionValue::Number(number) => f.write_str(&format_number(*number)),
            OptionValue::Count(count) => write!(f, "{count}"),
            OptionValue::Switch(is_on) => f.write_str(if *is_on { "on" } else { "off" }),
            OptionValue::Name(names, place) => f.write_str(names[*place]),
        }
    }
}

/// A number with the fewest digits that read as the same one; `0.1`, `1.0`, `1e-05`.
pub(crate) fn format_number(number: f64) -> String {
    match number.abs() {
        0.0 => "0.0".to_owned(),
        size if (1e-4..1e16).contains(&size) => format!("{number:?}"),
        _ => {
            let text = format!("{number:e}");
            let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let (sign, digits) = match exponent.strip_prefix('-') {
                Some(digits) => ('-', digits),
                None => ('+', exponent),
            };
            format!("{mantissa}e{sign}{digits:0>2}")
        }
    }
}

impl Values {
    fn parse(self, text: &str) -> Result<OptionValue, ValueError> {
        let value = &Value::from(text);
        match self {
            Values::QuantityOrOff(_) if text == "off" => Ok(OptionValue::Switch(false)),
            Values::Quantity(dimension) | Values::QuantityOrOff(dimension) => {
                Ok(OptionValue::Amount(dimension, dimension.parse(value)?))
            }
            Values::QuantityOf(dimensions) => {
                let unit = text.trim_start_matches(|c: char| !c.is_alphabetic()).trim();
                let has_unit = |dimension: &&&Dimension| dimension.spellings().contains(&unit);
                let dimension = dimensions.iter().find(has_unit).or(dimensions.last());
                Values::Quantity(dimension.expect("one dimension or more")).parse(text)
            }
            Values::Number(max) => match text.parse::<f64>() {
                Ok(number) if (0.0..=max).contains(&number) => Ok(OptionValue::Number(number)),
                Ok(_) => fail!("{} is out of range; write a number from 0 to {max}", shown(value)),
                Err(_) => fail!("{} is not a number; write a number from 0 to {max}", shown(value)),
            },
            Values::Count(min, max) => match text.parse::<u64>() {
                Ok(count) if (min..=max).contains(&count) && !text.starts_with('+') => {
                    Ok(OptionValue::Count(count))
                }
                _ => {
                    let max = grouped(max);
                    fail!("{} is not a whole number from {min} to {max}", shown(value))
                }
            },
            Values::Switch => match text {
                "on" | "true" => Ok(OptionValue::Switch(true)),
                "off" | "false" => Ok(OptionValue::Switch(false)),
                _ => fail!("{} is not a switch; write on or off", shown(value)),
            },
            Values::OneOf(names) => match names.iter().position(|&name| name == text) {
                Some(place) => Ok(OptionValue::Name(names, place)),
                None => {
                    let hint = did_you_mean(text, names.iter().copied());
                    fail!("{} is not known here{hint}; write {}", shown(value), names.join(", "))
                }
            },
        }
    }
}

/// A whole number with a comma after every three digits.
pub(crate) fn grouped(number: impl Into<u128>) -> String {
    let digits = number.into().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_and_a_table_are_the_same_call() {
        let text = json!("fq_codel(target=5 ms, ecn=off)");
        let table = json!({"name": "fq_codel", "target": "5 ms", "ecn": false});
        let call = |value| Call::from_value(value, "a queue").expect("a call");
        assert_eq!(call(&text), call(&table));
        assert_eq!(call(&table).to_string(), "fq_codel(target=5 ms, ecn=off)");
        assert_eq!(call(&json!("reno")).to_string(), "reno");
    }

    #[test]
    fn what_is_not_a_call_is_an_error() {
        for (value, part) in [
            (json!("codel(ecn)"), "codel: \"ecn\" is not of the form option=value"),
            (json!("codel(ecn=on, ecn=on)"), "codel: ecn is given twice"),
            (json!("codel("), "write NAME or NAME(option=value, ...)"),
            (json!(""), "is not a queue"),
            (json!(7), "7 is not a queue"),
            (json!({"target": "5 ms"}), "it has no name"),
            (json!({"name": "codel", "target": ["5 ms"]}), "codel: target: [\"5 ms\"] is not"),
            (json!({"name": "codel", "target": "5 ms, ecn=on"}), "is not a number, text"),
        ] {
            let error = Call::from_value(&value, "a queue").expect_err("not a call").to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn numbers_have_the_fewest_digits() {
        let texts = [0.0, 1.0, 0.125, 1e-5, 1.5e-7, 1e16, 123456.0].map(format_number);
        assert_eq!(texts, ["0.0", "1.0", "0.125", "1e-05", "1.5e-07", "1e+16", "123456.0"]);
    }

    #[test]
    fn digits_are_grouped_by_three() {
        assert_eq!([7_u64, 65_536, 1_000_000].map(grouped), ["7", "65,536", "1,000,000"]);
    }
}
