//! Names and options of algorithms: `cubic`, `cubic(slow_start=standard)`, `bbr3(loss_thresh=0.02)`.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use core::str::FromStr;
use dumbbell_units::{Span, Time};

/// The beginning of a connection, from which an algorithm is made.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ConnectionConfig {
    /// Current time.
    pub now: Time,
    /// Payload bytes of a full-sized packet.
    pub mss: u32,
    /// Initial window, packets.
    pub initial_window: f64,
    /// Seed of the algorithm's random numbers.
    pub seed: u64,
    /// Tick of the transport's coarse clock (Linux's jiffy); zero if it has none.
    pub jiffy: Span,
}

impl ConnectionConfig {
    /// A connection that begins at `now` with an initial window of 10 packets (RFC 6928) and seed 0.
    pub const fn new(now: Time, mss: u32) -> ConnectionConfig {
        ConnectionConfig { now, mss, initial_window: 10.0, seed: 0, jiffy: Span::ZERO }
    }

    /// The same with another packet size, payload bytes.
    #[must_use]
    pub const fn with_mss(mut self, mss: u32) -> ConnectionConfig {
        self.mss = mss;
        self
    }

    /// The same with another initial window, packets.
    #[must_use]
    pub const fn with_initial_window(mut self, packets: f64) -> ConnectionConfig {
        self.initial_window = packets;
        self
    }

    /// The same with another seed.
    #[must_use]
    pub const fn with_seed(mut self, seed: u64) -> ConnectionConfig {
        self.seed = seed;
        self
    }

    /// The same with a coarse clock of this tick.
    #[must_use]
    pub const fn with_jiffy(mut self, jiffy: Span) -> ConnectionConfig {
        self.jiffy = jiffy;
        self
    }
}

/// Error of making an algorithm from its name and options.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No algorithm has this name.
    #[error("no algorithm is called \"{name}\"; there are {}", crate::NAMES.join(", "))]
    UnknownAlgorithm {
        /// The name.
        name: String,
    },
    /// The algorithm needs the feature `all-algorithms`, which this build does not have.
    #[error(
        "{name} is not in the laboratory's page, which leaves out {}; run the file with `dumbbell run`",
        crate::OPTIONAL_NAMES.join(", ")
    )]
    LeftOut {
        /// The name.
        name: String,
    },
    /// The text is not `name` or `name(key=value, ...)`.
    #[error("\"{text}\" is not an algorithm: write NAME or NAME(key=value, ...)")]
    Syntax {
        /// The text.
        text: String,
    },
    /// The algorithm has no such option.
    #[error("{algorithm} has no option \"{key}\"; it has {valid}")]
    UnknownOption {
        /// The algorithm.
        algorithm: String,
        /// The option.
        key: String,
        /// Its options.
        valid: String,
    },
    /// The option's value is not valid.
    #[error("{algorithm}: option {key} cannot be \"{value}\"; it takes {valid}")]
    BadValue {
        /// The algorithm.
        algorithm: String,
        /// The option.
        key: String,
        /// The value.
        value: String,
        /// The valid values.
        valid: &'static str,
    },
}

/// An algorithm's name and options, parsed from `name(key=value, ...)`.
///
/// Read each option by name, then call [`finish`](Options::finish), which refuses the others.
///
/// ```
/// # use dumbbell_cc::Options;
/// let mut options: Options = "mine(gain=2)".parse()?;
/// assert_eq!(options.name(), "mine");
/// assert_eq!(options.number("gain", 1.0, 0.0..=10.0, "0 to 10")?, 2.0);
/// assert!(options.switch("fast", true)?);
/// options.finish()?;
/// # Ok::<(), dumbbell_cc::ConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    name: String,
    given: Vec<(String, String)>,
    known: Vec<OptionInfo>,
}

/// An option of an algorithm, as documentation has it.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionInfo {
    /// Its name.
    pub name: &'static str,
    /// Its default value, as it is written.
    pub default: String,
    /// The values that it takes.
    pub valid: &'static str,
}

impl Options {
    /// The algorithm's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A number within `range`, or `default` if the option is not given. `valid` describes the range
    /// in error messages.
    ///
    /// # Errors
    /// [`ConfigError::BadValue`] if the value is not a number within `range`.
    pub fn number(
        &mut self,
        key: &'static str,
        default: f64,
        range: RangeInclusive<f64>,
        valid: &'static str,
    ) -> Result<f64, ConfigError> {
        let Some(text) = self.take(key, default.to_string(), valid) else { return Ok(default) };
        match text.parse::<f64>() {
            Ok(number) if range.contains(&number) => Ok(number),
            _ => Err(self.bad_value(key, text, valid)),
        }
    }

    /// A time within `range`, written with a unit (`25 ms`), or `default` if the option is not given.
    /// `valid` describes the range in error messages.
    ///
    /// # Errors
    /// [`ConfigError::BadValue`] if the value is not a time within `range`.
    pub fn time(
        &mut self,
        key: &'static str,
        default: Span,
        range: RangeInclusive<Span>,
        valid: &'static str,
    ) -> Result<Span, ConfigError> {
        let Some(text) = self.take(key, format_time(default), valid) else { return Ok(default) };
        match parse_time(&text) {
            Some(time) if range.contains(&time) => Ok(time),
            _ => Err(self.bad_value(key, text, valid)),
        }
    }

    /// One of `choices` (name and value), or `default` if the option is not given. `valid` lists the
    /// names in error messages.
    ///
    /// # Errors
    /// [`ConfigError::BadValue`] if the value is the name of none.
    pub fn choice<T: Clone + PartialEq>(
        &mut self,
        key: &'static str,
        default: T,
        choices: &[(&str, T)],
        valid: &'static str,
    ) -> Result<T, ConfigError> {
        let usual = choices.iter().find(|(_, value)| *value == default).map_or("", |pair| pair.0);
        let Some(text) = self.take(key, usual.to_owned(), valid) else { return Ok(default) };
        match choices.iter().find(|(name, _)| *name == text) {
            Some((_, value)) => Ok(value.clone()),
            None => Err(self.bad_value(key, text, valid)),
        }
    }

    /// `true` for `on`, `false` for `off`, or `default` if the option is not given.
    ///
    /// # Errors
    /// [`ConfigError::BadValue`] if the value is neither `on` nor `off`.
    pub fn switch(&mut self, key: &'static str, default: bool) -> Result<bool, ConfigError> {
        self.choice(key, default, &[("on", true), ("off", false)], "on or off")
    }

    /// Ends reading.
    ///
    /// # Errors
    /// [`ConfigError::UnknownOption`] if an option was given and not read.
    pub fn finish(self) -> Result<(), ConfigError> {
        match self.given.into_iter().next() {
            None => Ok(()),
            Some((key, _)) => Err(ConfigError::UnknownOption {
                algorithm: self.name,
                key,
                valid: if self.known.is_empty() {
                    "no options".to_owned()
                } else {
                    self.known.iter().map(|option| option.name).collect::<Vec<_>>().join(", ")
                },
            }),
        }
    }

    /// The options that were read.
    pub(crate) fn known(self) -> Vec<OptionInfo> {
        self.known
    }

    fn take(&mut self, name: &'static str, default: String, valid: &'static str) -> Option<String> {
        self.known.push(OptionInfo { name, default, valid });
        let at = self.given.iter().position(|(given, _)| given == name)?;
        Some(self.given.remove(at).1)
    }

    fn bad_value(&self, key: &str, value: String, valid: &'static str) -> ConfigError {
        let algorithm = self.name.clone();
        ConfigError::BadValue { algorithm, key: key.to_owned(), value, valid }
    }
}

impl FromStr for Options {
    type Err = ConfigError;

    /// Parses `name` or `name(key=value, ...)`.
    ///
    /// # Errors
    /// [`ConfigError::Syntax`] if the text has another form or gives an option twice.
    fn from_str(text: &str) -> Result<Options, ConfigError> {
        let syntax = || ConfigError::Syntax { text: text.to_owned() };
        let (name, rest) = match text.trim().split_once('(') {
            None => (text.trim(), ""),
            Some((name, rest)) => (name.trim(), rest.strip_suffix(')').ok_or_else(syntax)?),
        };
        if name.is_empty() {
            return Err(syntax());
        }
        let mut given: Vec<(String, String)> = Vec::new();
        for pair in rest.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').ok_or_else(syntax)?;
            let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
            if given.iter().any(|(other, _)| *other == key) {
                return Err(syntax());
            }
            given.push((key, value));
        }
        Ok(Options { name: name.to_owned(), given, known: Vec::new() })
    }
}

/// Units of time and their worth, ns.
const UNITS: [(&str, u64); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];

/// Reads a number and a unit, rounded to ns.
fn parse_time(text: &str) -> Option<Span> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &text[digits.len()..];
    let (_, worth) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let seconds = digits.trim_end().parse::<f64>().ok()? * (*worth as f64 / 1e9);
    (0.0..=1e9).contains(&seconds).then(|| Span::from_secs_f64(seconds))
}

fn format_time(time: Span) -> String {
    let fits = |worth: u64| time.as_nanos().is_multiple_of(worth);
    let (unit, worth) = UNITS.into_iter().find(|(_, worth)| fits(*worth)).unwrap_or(("ns", 1));
    alloc::format!("{} {unit}", time.as_nanos() / worth)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_has_no_options() {
        let options: Options = "reno".parse().expect("a name");
        assert_eq!(options.name(), "reno");
        assert_eq!(options.finish(), Ok(()));
    }

    #[test]
    fn options_are_read_by_name_and_checked_against_their_range() {
        let mut options: Options =
            "cubic(beta=0.8, fast_convergence=off)".parse().expect("well formed");
        assert_eq!(options.number("beta", 0.7, 0.0..=1.0, "0 to 1"), Ok(0.8));
        assert_eq!(options.switch("fast_convergence", true), Ok(false));
        assert_eq!(options.finish(), Ok(()));
    }

    #[test]
    fn a_time_has_a_unit() {
        let read = |text: &str| {
            let mut options: Options = text.parse().expect("well formed");
            let range = Span::from_millis(1)..=Span::from_secs(10);
            options.time("rtt0", Span::from_millis(25), range, "1 ms to 10 s")
        };
        assert_eq!(read("hybla"), Ok(Span::from_millis(25)));
        assert_eq!(read("hybla(rtt0=2.5 ms)"), Ok(Span::from_micros(2500)));
        assert_eq!(read("hybla(rtt0=1s)"), Ok(Span::from_secs(1)));
        for text in ["hybla(rtt0=25)", "hybla(rtt0=1 min)", "hybla(rtt0=ms)", "hybla(rtt0=1 us)"] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.ends_with("it takes 1 ms to 10 s"), "{error}");
        }
    }

    #[test]
    fn an_unknown_option_is_refused_with_the_known_ones() {
        let mut options: Options = "cubic(betta=0.8)".parse().expect("well formed");
        let _ = options.number("beta", 0.7, 0.0..=1.0, "0 to 1");
        let error = options.finish().expect_err("betta is not beta");
        assert_eq!(error.to_string(), "cubic has no option \"betta\"; it has beta");
    }

    #[test]
    fn text_that_is_not_an_algorithm_is_refused() {
        for text in ["", "(a=1)", "cubic(", "cubic(a)", "cubic(a=1,a=2)"] {
            assert!(text.parse::<Options>().is_err(), "{text}");
        }
    }
}
