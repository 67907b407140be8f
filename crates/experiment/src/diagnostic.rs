//! Errors of an experiment file: where, what is wrong, and what would be valid.

use std::fmt::{self, Display};

/// At most this many errors are written out.
const MAX_SHOWN: usize = 20;

/// Where a key is in an experiment: `flow`, 1, `cc`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyPath(pub Vec<Step>);

/// A part of a [`KeyPath`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A key of a table.
    Key(String),
    /// An element of a list, counted from 0.
    Index(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Step {
        Step::Key(key.to_owned())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Step {
        Step::Index(index)
    }
}

/// A [`KeyPath`]: `key_path!["flow", 1, "cc"]`.
macro_rules! key_path {
    ($($step:expr),* $(,)?) => { $crate::KeyPath(vec![$($crate::Step::from($step)),*]) };
}
pub(crate) use key_path;

impl KeyPath {
    /// The path of a key or an element of what this path leads to.
    #[must_use]
    pub fn then(&self, step: impl Into<Step>) -> KeyPath {
        let mut path = self.clone();
        path.0.push(step.into());
        path
    }

    /// Whether this path leads to `outer` or to a part of it.
    pub fn is_within(&self, outer: &KeyPath) -> bool {
        self.0.starts_with(&outer.0)
    }
}

impl Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) if at == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
            }
        }
        Ok(())
    }
}

/// A place in a text. Both count from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// Where the lines of a text begin.
pub(crate) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl Lines<'_> {
    pub(crate) fn of(text: &str) -> Lines<'_> {
        let newlines = text.match_indices('\n').map(|(at, _)| at + 1);
        Lines { text, starts: std::iter::once(0).chain(newlines).collect() }
    }

    /// The position of a byte of the text.
    pub(crate) fn position(&self, byte: usize) -> Position {
        let line = self.starts.partition_point(|start| *start <= byte);
        let before = self.text.get(self.starts[line - 1]..byte);
        Position { line, column: before.map_or(0, |text| text.chars().count()) + 1 }
    }
}

/// A problem of one key, before the file, the line and the names of its tables are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key.
    pub path: KeyPath,
    /// What is wrong, and what would be valid.
    pub text: String,
}

impl Problem {
    /// A problem of the key at `path`.
    pub fn new(path: KeyPath, text: impl Display) -> Problem {
        Problem { path, text: text.to_string() }
    }
}

/// An error of an experiment. Displays as `FILE:LINE: KEY: problem; what is valid`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file; empty if the experiment is from no file.
    pub file: String,
    /// Where in the file; `None` if the file does not have the value.
    pub position: Option<Position>,
    /// The key, such as `flow.first.cc`; empty if it is the whole.
    pub key: String,
    /// What is wrong, and what would be valid.
    pub problem: String,
}

impl Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.file.as_str(), self.position) {
            ("", None) => {}
            ("", Some(position)) => write!(f, "line {}: ", position.line)?,
            (file, None) => write!(f, "{}: ", printable(file))?,
            (file, Some(position)) => write!(f, "{}:{}: ", printable(file), position.line)?,
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", printable(&self.key))?;
        }
        f.write_str(&printable(&self.problem))
    }
}

/// The text on one line: control characters are escaped.
fn printable(text: &str) -> String {
    let mut line = String::new();
    for char in text.chars() {
        match char {
            ' '..='~' => line.push(char),
            // Keeps printable characters of all scripts; escapes controls and separators.
            _ if char.escape_debug().len() == 1 => line.push(char),
            _ => line.extend(char.escape_debug()),
        }
    }
    line
}

/// All errors of an experiment, in the order of the file; at least one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.0.iter().take(MAX_SHOWN).map(ToString::to_string);
        f.write_str(&lines.collect::<Vec<_>>().join("\n"))?;
        match self.0.len().saturating_sub(MAX_SHOWN) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_file_line_key_and_problem() {
        let mut error = Diagnostic {
            file: "a.toml".to_owned(),
            position: Some(Position { line: 3, column: 1 }),
            key: "duration".to_owned(),
            problem: "10 lacks\na unit".to_owned(),
        };
        assert_eq!(error.to_string(), "a.toml:3: duration: 10 lacks\\na unit");
        error.position = None;
        assert_eq!(error.to_string(), "a.toml: duration: 10 lacks\\na unit");
        error.file.clear();
        assert_eq!(error.to_string(), "duration: 10 lacks\\na unit");
        let many = Diagnostics(vec![error; 23]).to_string();
        assert_eq!((many.lines().count(), many.lines().last()), (21, Some("and 3 more")));
    }

    #[test]
    fn a_position_counts_lines_and_characters_from_one() {
        let lines = Lines::of("a\nμβ = 1");
        assert_eq!(lines.position(0), Position { line: 1, column: 1 });
        assert_eq!(lines.position(6), Position { line: 2, column: 3 });
    }
}
