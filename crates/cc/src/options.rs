//! Names and options of algorithms: `cubic`, `cubic(hystart=off)`, `bbr3(loss_thresh=0.02)`.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::RangeInclusive;
use core::str::FromStr;
use dumbbell_units::Time;

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
}

impl ConnectionConfig {
    /// A connection that begins at `now` with an initial window of 10 packets (RFC 6928) and seed 0.
    pub const fn new(now: Time, mss: u32) -> ConnectionConfig {
        ConnectionConfig { now, mss, initial_window: 10.0, seed: 0 }
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
    known: Vec<&'static str>,
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
        let Some(text) = self.take(key) else { return Ok(default) };
        match text.parse::<f64>() {
            Ok(number) if range.contains(&number) => Ok(number),
            _ => Err(self.bad_value(key, text, valid)),
        }
    }

    /// One of `choices` (name and value), or `default` if the option is not given. `valid` lists the
    /// names in error messages.
    ///
    /// # Errors
    /// [`ConfigError::BadValue`] if the value is the name of none.
    pub fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        default: T,
        choices: &[(&str, T)],
        valid: &'static str,
    ) -> Result<T, ConfigError> {
        let Some(text) = self.take(key) else { return Ok(default) };
        match choices.iter().find(|(name, _)| *name == text) {
            Some(&(_, value)) => Ok(value),
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
                    self.known.join(", ")
                },
            }),
        }
    }

    fn take(&mut self, key: &'static str) -> Option<String> {
        self.known.push(key);
        let at = self.given.iter().position(|(given, _)| given == key)?;
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
        let mut options: Options = "cubic(beta=0.8, hystart=off)".parse().expect("well formed");
        assert_eq!(options.number("beta", 0.7, 0.0..=1.0, "0 to 1"), Ok(0.8));
        assert_eq!(options.switch("hystart", true), Ok(false));
        assert_eq!(options.finish(), Ok(()));
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
