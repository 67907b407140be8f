//! Quantities with units: `100 Mbit/s`, `40 ms`, `64 kB`, `0.5 BDP`.
//!
//! A quantity is a number, optional space, and a unit. Prefixes of rates and sizes are decimal
//! (kB = 1000 bytes); the binary ones are KiB, MiB and GiB (IEC 80000-13). Capitals matter: `b` is
//! never a byte, `m` is never mega. The arithmetic is exact, with one rounding at the end, half to
//! even, to a whole number of base units.

use crate::decimal::Decimal;
use crate::suggest::did_you_mean;
use serde_json::Value;

/// What is wrong with a value, and what would be valid. The caller adds the key and the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ValueError(pub String);

/// Returns a [`ValueError`] with a formatted message.
macro_rules! fail {
    ($($argument:tt)*) => { return Err($crate::quantity::ValueError(format!($($argument)*))) };
}
pub(crate) use fail;

/// A kind of quantity.
#[derive(Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Its name in errors: `a rate`.
    pub name: &'static str,
    /// A valid quantity.
    pub example: &'static str,
    /// Its units and what they are worth in base units.
    pub units: &'static [(&'static str, u64)],
    /// The maximum, in base units.
    pub max: u64,
    /// Other spellings of units that are read and never written.
    pub aliases: &'static [(&'static str, &'static str)],
}

/// Rates, in bit/s.
pub static RATE: Dimension = Dimension {
    name: "a rate",
    example: "100 Mbit/s",
    units: &[
        ("bit/s", 1),
        ("kbit/s", 1_000),
        ("Mbit/s", 1_000_000),
        ("Gbit/s", 1_000_000_000),
        ("Tbit/s", 1_000_000_000_000),
        ("B/s", 8),
        ("kB/s", 8_000),
        ("MB/s", 8_000_000),
        ("GB/s", 8_000_000_000),
    ],
    max: 1_000_000_000_000_000,
    aliases: &[("bps", "bit/s"), ("kbps", "kbit/s"), ("Mbps", "Mbit/s"), ("Gbps", "Gbit/s")],
};

/// Times, in ns.
pub static TIME: Dimension = Dimension {
    name: "a time",
    example: "40 ms",
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ],
    max: 1_000_000_000_000_000,
    aliases: &[("\u{b5}s", "us"), ("\u{3bc}s", "us")],
};

/// Sizes, in bytes.
pub static SIZE: Dimension = Dimension {
    name: "a size",
    example: "64 kB",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
    max: 1_000_000_000_000_000,
    aliases: &[("byte", "B"), ("bytes", "B")],
};

/// Counts of packets.
pub static PACKETS: Dimension = Dimension {
    name: "a number of packets",
    example: "100 packets",
    units: &[("packets", 1)],
    max: 1_000_000_000,
    aliases: &[("packet", "packets")],
};

/// Multiples of the bandwidth-delay product, in millionths.
pub static BDP: Dimension = Dimension {
    name: "a multiple of the bandwidth-delay product",
    example: "0.5 BDP",
    units: &[("BDP", 1_000_000)],
    max: 10_000_000_000,
    aliases: &[],
};

/// The kinds of quantities.
pub static DIMENSIONS: [&Dimension; 5] = [&RATE, &TIME, &SIZE, &PACKETS, &BDP];

/// The kinds of quantities in which the size of a queue is given.
pub static QUEUE_DIMENSIONS: [&Dimension; 4] = [&BDP, &PACKETS, &SIZE, &TIME];

/// A queue without a limit, as it is written.
pub const UNLIMITED: &str = "unlimited";
/// The queue in which nothing waits: what cannot leave at once is dropped.
pub const NO_QUEUE: &str = "none";

const MAX_LENGTH: usize = 60;
const PROBABILITY: &str =
    "write a number from 0 to less than 1, such as 0.0001, \"1e-4\" or \"0.01 %\"";

impl Dimension {
    /// Reads a quantity above zero, in base units.
    ///
    /// # Errors
    /// If the value is not a number with a unit of this dimension, or is out of range.
    pub fn parse(&self, value: &Value) -> Result<u64, ValueError> {
        match self.parse_or_zero(value)? {
            0 => fail!(
                "{} is nothing; write more than that, for example \"{}\"",
                shown(value),
                self.example
            ),
            amount => Ok(amount),
        }
    }

    /// Reads a quantity that may be zero, in base units.
    ///
    /// # Errors
    /// As [`parse`](Dimension::parse).
    pub fn parse_or_zero(&self, value: &Value) -> Result<u64, ValueError> {
        let (number, unit) = split(value, self.name, &self.advice())?;
        let Some(worth) = self.worth(&unit) else {
            let wrong = unknown_unit(&unit, &self.spellings());
            fail!("{} has {wrong}; {}", shown(value), self.advice())
        };
        if number.is_negative() {
            fail!("{} is negative; {}", shown(value), self.advice());
        }
        match number.times(worth).round(self.max) {
            Some(amount) => Ok(amount),
            None => fail!(
                "{} is more than {}, the maximum; {}",
                shown(value),
                self.format(self.max),
                self.advice()
            ),
        }
    }

    /// Reads the text of a quantity that may be zero.
    ///
    /// # Errors
    /// As [`parse`](Dimension::parse).
    pub fn read(&self, text: &str) -> Result<u64, ValueError> {
        self.parse_or_zero(&Value::from(text))
    }

    /// Writes a whole number of base units so that [`read`](Dimension::read) gives the same number.
    pub fn format(&self, amount: u64) -> String {
        if amount == 0 {
            // Every example has a unit.
            return format!("0 {}", self.example.split(' ').nth(1).unwrap_or_default());
        }
        let decimal = |&&(_, worth): &&(&str, u64)| is_power_of_ten(worth);
        let fitting = self.units.iter().filter(decimal).filter(|(_, worth)| *worth <= amount);
        let (unit, worth) = *fitting.max_by_key(|(_, worth)| *worth).unwrap_or(&self.units[0]);
        let digits = worth.ilog10() as usize;
        let fraction = format!("{:0digits$}", amount % worth);
        let fraction = if digits == 0 { "" } else { fraction.trim_end_matches('0') };
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{}{point}{fraction} {unit}", amount / worth)
    }

    /// Every spelling of a unit that is read.
    pub fn spellings(&self) -> Vec<&'static str> {
        let units = self.units.iter().map(|(unit, _)| *unit);
        units.chain(self.aliases.iter().map(|(alias, _)| *alias)).collect()
    }

    /// How to write such a quantity.
    pub fn advice(&self) -> String {
        advice(self.name, self.example, &[self])
    }

    fn worth(&self, unit: &str) -> Option<u64> {
        let unit =
            self.aliases.iter().find(|(alias, _)| *alias == unit).map_or(unit, |pair| pair.1);
        self.units.iter().find(|(name, _)| *name == unit).map(|(_, worth)| *worth)
    }
}

fn is_power_of_ten(worth: u64) -> bool {
    10_u64.pow(worth.ilog10()) == worth
}

fn advice(name: &str, example: &str, dimensions: &[&Dimension]) -> String {
    let units = dimensions.iter().flat_map(|dimension| dimension.units).map(|(unit, _)| *unit);
    let units = units.collect::<Vec<_>>().join(", ");
    format!("write {name} as a number and a unit, such as \"{example}\" (units: {units})")
}

/// Splits a quantity into its number and its unit, which is not empty.
fn split(value: &Value, name: &str, advice: &str) -> Result<(Decimal, String), ValueError> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => fail!("{} is not {name}; {advice}", shown(value)),
    };
    if text.chars().count() > MAX_LENGTH {
        fail!("{} is too long for {name}; {advice}", shown(value));
    }
    let Some((number, unit)) = Decimal::split(&text) else {
        if is_not_finite(&text) {
            fail!("{} is not a finite number; {advice}", shown(value));
        }
        fail!("{} does not begin with a number; {advice}", shown(value))
    };
    match unit.trim() {
        "" => fail!("{} lacks a unit; {advice}", shown(value)),
        unit => Ok((number, unit.to_owned())),
    }
}

/// Whether a text begins with `nan`, `inf` or `infinity`.
fn is_not_finite(text: &str) -> bool {
    let text = text.trim_start_matches(['+', '-']).to_lowercase();
    let word = text.split(|char: char| !char.is_ascii_lowercase()).next().unwrap_or_default();
    matches!(word, "nan" | "inf" | "infinity")
}

/// How much may wait at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Without a limit.
    Unlimited,
    /// Nothing waits.
    None,
    /// So many base units of one of [`QUEUE_DIMENSIONS`].
    Limited(&'static Dimension, u64),
}

impl Queue {
    /// Reads the size of a queue in BDP, packets, bytes or time, or `unlimited`, or `none`.
    ///
    /// # Errors
    /// If it is none of these, or nothing.
    pub fn parse(value: &Value) -> Result<Queue, ValueError> {
        if value == UNLIMITED {
            return Ok(Queue::Unlimited);
        }
        if value == NO_QUEUE {
            return Ok(Queue::None);
        }
        let advice = advice("a queue", "0.5 BDP", &QUEUE_DIMENSIONS);
        let (_, unit) = split(value, "a queue", &advice)?;
        match QUEUE_DIMENSIONS.iter().find(|dimension| dimension.worth(&unit).is_some()) {
            Some(dimension) => Ok(Queue::Limited(dimension, dimension.parse(value)?)),
            None => {
                let known = QUEUE_DIMENSIONS.iter().flat_map(|dimension| dimension.spellings());
                let wrong = unknown_unit(&unit, &known.collect::<Vec<_>>());
                fail!("{} has {wrong}; {advice}", shown(value))
            }
        }
    }
}

/// Reads a probability: a number, or text such as `1e-4` or `0.1 %`.
///
/// # Errors
/// If it is not a number from 0 to less than 1.
pub fn parse_probability(value: &Value) -> Result<f64, ValueError> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => fail!("{} is not a probability; {PROBABILITY}", shown(value)),
    };
    let number = text.strip_suffix('%').map_or(text.as_str(), str::trim);
    let percent = text.ends_with('%');
    match Decimal::split(number) {
        Some((decimal, "")) => match decimal.scaled(if percent { -2 } else { 0 }).to_f64() {
            probability if (0.0..1.0).contains(&probability) => Ok(probability),
            _ => fail!("{} is not from 0 to less than 1; {PROBABILITY}", shown(value)),
        },
        _ => fail!("{} is not a probability; {PROBABILITY}", shown(value)),
    }
}

/// Reads a quantity of any kind, in base units. A plain number, or one in %, has no dimension.
///
/// # Errors
/// If it is neither, or out of range.
pub fn parse_quantity(value: &Value) -> Result<(Option<&'static Dimension>, f64), ValueError> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => fail!("{} is neither a number nor a quantity", shown(value)),
    };
    let Some((number, unit)) = Decimal::split(&text) else {
        fail!("{} is neither a number nor a quantity", shown(value))
    };
    let unit = unit.trim();
    if matches!(unit, "" | "%") {
        return Ok((None, number.scaled(if unit.is_empty() { 0 } else { -2 }).to_f64()));
    }
    match DIMENSIONS.iter().find(|dimension| dimension.worth(unit).is_some()) {
        Some(dimension) => Ok((Some(dimension), dimension.parse_or_zero(value)? as f64)),
        None => {
            let known = DIMENSIONS.iter().flat_map(|dimension| dimension.spellings());
            let wrong = unknown_unit(unit, &known.collect::<Vec<_>>());
            fail!("{} has {wrong}", shown(value))
        }
    }
}

fn unknown_unit(unit: &str, known: &[&'static str]) -> String {
    if let Some(rest) = unit.strip_prefix(',')
        && rest.starts_with(|first: char| first.is_ascii_digit())
    {
        return "a comma where a decimal point belongs".to_owned();
    }
    // The closest spelling of a rate may have bytes for bits, 8 times as much.
    let meant = meant_rate(unit).filter(|meant| known.contains(&meant.as_str()));
    let hint = did_you_mean(meant.as_deref().unwrap_or(unit), known.iter().copied());
    format!("the unknown unit \"{unit}\"{hint}")
}

/// The unit of a rate that is written in another way: `Mb/s`, `mbit` and `MBps`, where `b` is a bit
/// and `B` a byte.
fn meant_rate(unit: &str) -> Option<String> {
    let (prefix, rest) = match unit.chars().next()?.to_ascii_lowercase() {
        'k' => ("k", &unit[1..]),
        'm' => ("M", &unit[1..]),
        'g' => ("G", &unit[1..]),
        't' => ("T", &unit[1..]),
        _ => ("", unit),
    };
    let base = match rest {
        "B/s" | "Bps" => "B/s",
        _ => match rest.to_ascii_lowercase().as_str() {
            "b/s" | "bps" | "bit" | "bits" | "bit/s" | "bits/s" => "bit/s",
            _ => return None,
        },
    };
    Some(format!("{prefix}{base}"))
}

/// A value as a file would have it, cut to what fits a sentence.
pub fn shown(value: &Value) -> String {
    cut(spaced(value))
}

/// A text, cut to what fits a sentence.
pub(crate) fn cut(text: String) -> String {
    if text.chars().count() <= MAX_LENGTH {
        return text;
    }
    text.chars().take(MAX_LENGTH - 3).collect::<String>() + "..."
}

/// A value as JSON, with a space after every comma and colon.
fn spaced(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(spaced).collect::<Vec<_>>().join(", "))
        }
        Value::Object(items) => {
            let pair = |(key, item): (&String, &Value)| {
                format!("{}: {}", Value::from(key.as_str()), spaced(item))
            };
            format!("{{{}}}", items.iter().map(pair).collect::<Vec<_>>().join(", "))
        }
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn time(text: &str) -> Result<u64, ValueError> {
        TIME.read(text)
    }

    fn message(value: impl Into<Value>) -> String {
        TIME.parse(&value.into()).expect_err("it is not valid").to_string()
    }

    #[test]
    fn a_quantity_is_a_number_and_a_unit() {
        assert_eq!(time("40 ms"), Ok(40_000_000));
        assert_eq!(time("40ms"), Ok(40_000_000));
        assert_eq!(time(" 0.5 h "), Ok(1_800_000_000_000));
        assert_eq!(time("1e-3 s"), Ok(1_000_000));
        assert_eq!(time("7 \u{b5}s"), Ok(7_000));
        assert_eq!(RATE.read("12.5 MB/s"), Ok(100_000_000));
        assert_eq!(SIZE.read("1 KiB"), Ok(1024));
        assert_eq!(PACKETS.read("1 packet"), Ok(1));
    }

    #[test]
    fn a_tie_is_rounded_to_even() {
        assert_eq!(time("0.5 ns"), Ok(0));
        assert_eq!(time("1.5 ns"), Ok(2));
        assert_eq!(time("2.5 ns"), Ok(2));
        assert_eq!(time("2.50000000000000000000000000000000000000000000001 ns"), Ok(3));
    }

    #[test]
    fn an_error_names_the_value_and_how_to_write_it() {
        let advice = "write a time as a number and a unit, such as \"40 ms\" (units: ns, us, ms, s, \
                      min, h)";
        assert_eq!(message(10), format!("10 lacks a unit; {advice}"));
        assert_eq!(message("soon"), format!("\"soon\" does not begin with a number; {advice}"));
        assert_eq!(message("inf s"), format!("\"inf s\" is not a finite number; {advice}"));
        assert_eq!(message(true), format!("true is not a time; {advice}"));
        assert_eq!(message("-1 ms"), format!("\"-1 ms\" is negative; {advice}"));
        let unknown = "\"1 MS\" has the unknown unit \"MS\" (did you mean \"ms\"?)";
        assert_eq!(message("1 MS"), format!("{unknown}; {advice}"));
        let comma = "\"5,5 s\" has a comma where a decimal point belongs";
        assert_eq!(message("5,5 s"), format!("{comma}; {advice}"));
        let minutes = "\"5 m\" has the unknown unit \"m\" (did you mean \"min\"?)";
        assert_eq!(message("5 m"), format!("{minutes}; {advice}"));
        let most = "\"1e99 s\" is more than 1000000 s, the maximum";
        assert_eq!(message("1e99 s"), format!("{most}; {advice}"));
        assert_eq!(
            message("0 s"),
            "\"0 s\" is nothing; write more than that, for example \"40 ms\""
        );
    }

    #[test]
    fn a_bit_is_never_taken_for_a_byte_in_a_suggested_rate() {
        for (text, meant) in [
            ("30 b/s", "bit/s"),
            ("30kb/s", "kbit/s"),
            ("30Mb/s", "Mbit/s"),
            ("30Gb/s", "Gbit/s"),
            ("30mb/s", "Mbit/s"),
            ("30mbit", "Mbit/s"),
            ("30Mbits/s", "Mbit/s"),
            ("30mbps", "Mbit/s"),
            ("30KBps", "kB/s"),
            ("30mB/s", "MB/s"),
        ] {
            let hint = format!("(did you mean \"{meant}\"?)");
            let errors = [RATE.read(text).err(), parse_quantity(&Value::from(text)).err()];
            for error in errors {
                let error = error.expect("not valid").to_string();
                assert!(error.contains(&hint), "{error}");
            }
        }
    }

    #[test]
    fn a_queue_has_any_of_four_dimensions_or_no_limit() {
        let queue = |text: &str| Queue::parse(&Value::from(text));
        assert_eq!(queue("unlimited"), Ok(Queue::Unlimited));
        assert_eq!(queue("0.5 BDP"), Ok(Queue::Limited(&BDP, 500_000)));
        assert_eq!(queue("100 packets"), Ok(Queue::Limited(&PACKETS, 100)));
        assert_eq!(queue("64 kB"), Ok(Queue::Limited(&SIZE, 64_000)));
        assert_eq!(queue("10 ms"), Ok(Queue::Limited(&TIME, 10_000_000)));
        let error = queue("1 bdp").expect_err("bdp is not BDP").to_string();
        assert!(error.contains("(did you mean \"BDP\"?)"), "{error}");
    }

    #[test]
    fn a_probability_is_a_number_or_a_percentage() {
        let probability = |value: Value| parse_probability(&value);
        assert_eq!(probability(Value::from(0.0001)), Ok(1e-4));
        assert_eq!(probability(Value::from("1e-4")), Ok(1e-4));
        assert_eq!(probability(Value::from("0.01 %")), Ok(1e-4));
        assert_eq!(probability(Value::from(0)), Ok(0.0));
        for wrong in [Value::from(1), Value::from("2 %%"), Value::from(-0.1), Value::from("p")] {
            assert!(probability(wrong).is_err());
        }
    }

    proptest! {
        #[test]
        fn what_is_formatted_reads_as_the_same_amount(amount: u64, dimension in 0..5_usize) {
            let dimension = DIMENSIONS[dimension];
            let amount = amount % (dimension.max + 1);
            prop_assert_eq!(dimension.read(&dimension.format(amount)), Ok(amount));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in ".{0,70}") {
            let value = Value::from(text);
            let _ = (TIME.parse(&value), Queue::parse(&value), parse_probability(&value));
            let _ = parse_quantity(&value);
        }

        #[test]
        fn digits_and_exponents_of_any_size_are_read(text in "[0-9.]{1,40}(e[+-]?[0-9]{1,3})? ?(ns|h|s)") {
            let _ = time(&text);
        }
    }
}
