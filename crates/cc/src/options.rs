//! Naming and configuring an algorithm: `cubic`, `cubic(hystart=off)`, `bbr3(loss_thresh=0.02)`.

use dumbbell_units::Time;
use std::str::FromStr;

/// What an algorithm is told when a connection begins.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionConfig {
    /// The present.
    pub now: Time,
    /// Payload bytes of a full packet.
    pub mss: u32,
    /// Initial window, packets.
    pub initial_window: f64,
    /// Seed of whatever the algorithm draws at random.
    pub seed: u64,
}

/// Why an algorithm could not be made from its name and options.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// No algorithm is called so.
    #[error("no algorithm is called \"{name}\"; there are {}", crate::NAMES.join(", "))]
    UnknownAlgorithm {
        /// The name that was asked for.
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
        /// The option that was asked for.
        key: String,
        /// The options that it has.
        valid: String,
    },
    /// The option's value is not one it can have.
    #[error("{algorithm}: option {key} cannot be \"{value}\"; it takes {valid}")]
    BadValue {
        /// The algorithm.
        algorithm: String,
        /// The option.
        key: String,
        /// The value that was given.
        value: String,
        /// The values that it takes.
        valid: &'static str,
    },
}

/// The options of one algorithm while it is being made: take each by name, then [`finish`].
///
/// [`finish`]: Options::finish
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

    /// A number within `range`, or `default` if the option is not given.
    pub fn number(
        &mut self,
        key: &'static str,
        default: f64,
        range: std::ops::RangeInclusive<f64>,
        valid: &'static str,
    ) -> Result<f64, ConfigError> {
        let Some(text) = self.take(key) else { return Ok(default) };
        match text.parse::<f64>() {
            Ok(number) if range.contains(&number) => Ok(number),
            _ => Err(self.bad_value(key, text, valid)),
        }
    }

    /// One of `choices` (name and value), or `default` if the option is not given.
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

    /// `on` or `off`.
    pub fn switch(&mut self, key: &'static str, default: bool) -> Result<bool, ConfigError> {
        self.choice(key, default, &[("on", true), ("off", false)], "on or off")
    }

    /// Refuses whatever was given and not taken.
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

    /// Reads `name` or `name(key=value, ...)`.
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
