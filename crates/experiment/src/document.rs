//! The text of an experiment file as a tree of values, and where each value is in the text.

use crate::diagnostic::{
    Diagnostic, Diagnostics, KeyPath, Lines, Position, Problem, Step, key_path,
};
use crate::keys::{Kind, key_of};
use crate::quantity::cut;
use crate::read::double_brackets;
use serde_json::{Map, Number, Value};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The text of an experiment file, its name, and the keys that were set besides.
///
/// Errors of an experiment are located with it, also those that are found when it is resolved.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The name of the file, as errors have it; empty if there is none.
    pub name: String,
    text: Arc<str>,
    overridden: Vec<KeyPath>,
}

impl Source {
    /// A text from the file of this name.
    pub fn new(name: impl Into<String>, text: &str) -> Source {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text); // some editors begin with it
        Source { name: name.into(), text: text.into(), overridden: Vec::new() }
    }

    /// The text as a tree of values.
    ///
    /// # Errors
    /// If it is not TOML, or has a value that no key takes.
    pub(crate) fn parse(&self) -> Result<Value, Diagnostics> {
        if self.text.trim().is_empty() && !self.name.is_empty() {
            let problem = format!("is empty; {SHAPE}");
            return Err(Diagnostics(vec![self.diagnostic(None, String::new(), problem)]));
        }
        let (table, errors) = DeTable::parse_recoverable(&self.text);
        if !errors.is_empty() {
            let lines = Lines::of(&self.text);
            let errors = errors.into_iter().map(|error| {
                let span = error.span();
                let position = span.as_ref().map(|span| lines.position(span.start));
                if let Some(span) = span.filter(|_| error.message() == "duplicate key") {
                    if let Some((header, kind)) = self.single_brackets(span.start) {
                        let position = Some(lines.position(header));
                        return self.diagnostic(position, kind.to_owned(), double_brackets(kind));
                    }
                    let (key, problem) = (self.text[span].to_owned(), "is given twice; keep one");
                    return self.diagnostic(position, key, problem.to_owned());
                }
                let problem = format!("is not valid TOML: {}", error.message());
                self.diagnostic(position, String::new(), problem)
            });
            let mut errors: Vec<_> = errors.collect();
            errors.sort_by_key(|error| error.position);
            errors.dedup_by_key(|error| error.position.map(|position| position.line));
            return Err(Diagnostics(errors));
        }
        let mut problems = Vec::new();
        let value = table_value(table.get_ref(), &key_path![], &mut problems);
        self.check(&value, problems)?;
        Ok(value)
    }

    /// Where the table around a byte begins, and its kind, if it is `[link]` or `[flow]`.
    fn single_brackets(&self, byte: usize) -> Option<(usize, &'static str)> {
        let end = self.text[byte..].find('\n').map_or(self.text.len(), |length| byte + length);
        let before = &self.text[..end];
        let header = before.rfind("\n[").map_or(0, |newline| newline + 1);
        let (name, _) = before[header..].strip_prefix('[')?.split_once(']')?;
        let kind = ["link", "flow"].into_iter().find(|kind| *kind == name.trim())?;
        Some((header, kind))
    }

    /// Says that the values at these paths are not those of the text.
    pub(crate) fn override_keys(&mut self, paths: impl IntoIterator<Item = KeyPath>) {
        self.overridden.extend(paths);
    }

    /// Returns the problems as errors, in the order of the file, if there are any.
    pub(crate) fn check(&self, root: &Value, problems: Vec<Problem>) -> Result<(), Diagnostics> {
        if problems.is_empty() {
            return Ok(());
        }
        let (table, _) = DeTable::parse_recoverable(&self.text);
        let (lines, names) = (Lines::of(&self.text), Names::of(root));
        let mut errors: Vec<_> = problems
            .into_iter()
            .map(|problem| {
                let is_overridden = self.overridden.iter().any(|set| problem.path.is_within(set));
                let span = if is_overridden { None } else { span_of(&table, &problem.path) };
                let position = span.map(|span| lines.position(span.start));
                self.diagnostic(position, names.key(&problem.path), problem.text)
            })
            .collect();
        errors.sort_by_key(|error| error.position);
        errors.dedup();
        Err(Diagnostics(errors))
    }

    fn diagnostic(&self, position: Option<Position>, key: String, problem: String) -> Diagnostic {
        Diagnostic { file: self.name.clone(), position, key, problem }
    }
}

const SHAPE: &str =
    "an experiment file is TOML with a duration, a [[link]] and a [[flow]] at least";

fn table_value(table: &DeTable<'_>, path: &KeyPath, problems: &mut Vec<Problem>) -> Value {
    let entries = table.iter().map(|(key, item)| {
        let key = key.get_ref().to_string();
        let item = value(item.get_ref(), &path.then(key.as_str()), problems);
        (key, item)
    });
    Value::Object(entries.collect::<Map<_, _>>())
}

fn value(item: &DeValue<'_>, path: &KeyPath, problems: &mut Vec<Problem>) -> Value {
    let mut refuse = |text: String| {
        problems.push(Problem::new(path.clone(), text));
        Value::Null
    };
    match item {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Boolean(is_true) => Value::Bool(*is_true),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => Value::from(number),
            Err(_) => {
                let number = cut(number.to_string());
                refuse(format!("{number} is too large a number; write less than 2^63"))
            }
        },
        DeValue::Float(number) => match number.as_str().parse().ok().and_then(Number::from_f64) {
            Some(number) => Value::Number(number),
            None if takes_text(path) => {
                let number = number.as_str();
                refuse(format!("{number} is a number, not text; write \"{number}\""))
            }
            // `nan` and `inf` stay text, which no quantity accepts.
            None => Value::from(number.as_str()),
        },
        DeValue::Datetime(date) => {
            refuse(format!("{date} is a date, which no key takes; write text in quotes"))
        }
        DeValue::Array(items) => {
            let items = items.iter().enumerate();
            items.map(|(at, item)| value(item.get_ref(), &path.then(at), problems)).collect()
        }
        DeValue::Table(table) => table_value(table, path, problems),
    }
}

/// Whether a path leads to a key that takes any text.
fn takes_text(path: &KeyPath) -> bool {
    let key = key_of(path).and_then(|(table, name, _)| table.key(name));
    key.is_some_and(|key| matches!(key.kind, Kind::Text | Kind::Name | Kind::Texts))
}

/// Where the text has the key at `path`, or the innermost table around it that the text has.
fn span_of(table: &Spanned<DeTable<'_>>, path: &KeyPath) -> Option<Range<usize>> {
    let (first, rest) = path.0.split_first()?;
    let Step::Key(key) = first else { return None };
    let (key, mut value) = table.get_ref().get_key_value(key.as_str())?;
    let mut span = key.span();
    for step in rest {
        match (value.get_ref(), step) {
            (DeValue::Table(table), Step::Key(key)) => match table.get_key_value(key.as_str()) {
                Some((key, inner)) => (span, value) = (key.span(), inner),
                None => break,
            },
            (DeValue::Array(items), Step::Index(at)) => match items.get(*at) {
                Some(item) => (span, value) = (item.span(), item),
                None => break,
            },
            _ => break,
        }
    }
    Some(span)
}

/// The names of links and flows, by which keys are written.
struct Names {
    links: Vec<String>,
    flows: Vec<String>,
    /// Names that several tables have.
    shared: HashSet<(&'static str, String)>,
}

impl Names {
    fn of(root: &Value) -> Names {
        let (links, flows) = (table_names(root, "link"), table_names(root, "flow"));
        let mut seen = HashSet::new();
        let both = links.iter().map(|name| ("link", name));
        let both = both.chain(flows.iter().map(|name| ("flow", name)));
        let both = both.map(|(kind, name)| (kind, name.clone()));
        let shared = both.filter(|named| !seen.insert(named.clone())).collect();
        Names { links, flows, shared }
    }

    /// A key as users write it: `flow.first.cc`, `link.bottleneck.queue`, and `flow[1].name` where
    /// several tables have one name.
    fn key(&self, path: &KeyPath) -> String {
        let (kind, names) = match path.0.first() {
            Some(Step::Key(kind)) if kind == "link" => ("link", &self.links),
            Some(Step::Key(kind)) if kind == "flow" => ("flow", &self.flows),
            _ => return path.to_string(),
        };
        let Some(Step::Index(at)) = path.0.get(1) else { return path.to_string() };
        match names.get(*at).filter(|name| !self.shared.contains(&(kind, name.to_string()))) {
            Some(name) => {
                let mut steps = vec![Step::from(kind), Step::from(name.as_str())];
                steps.extend_from_slice(&path.0[2..]);
                KeyPath(steps).to_string()
            }
            None => path.to_string(),
        }
    }
}

/// The names of the links or flows, as keys have them: their own, or `flow-1`, `flow-2`.
pub(crate) fn table_names(root: &Value, kind: &str) -> Vec<String> {
    let tables = root.get(kind).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let named = tables.iter().enumerate().map(|(at, table)| match table.get("name") {
        Some(Value::String(name)) if !name.is_empty() => name.clone(),
        _ => format!("{kind}-{}", at + 1),
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn errors(text: &str) -> String {
        Source::new("a.toml", text).parse().expect_err("not valid").to_string()
    }

    #[test]
    fn every_syntax_error_has_its_line() {
        let errors = errors("a = \n\nb = 1\nd = = 3\n");
        assert!(errors.starts_with("a.toml:1: is not valid TOML: "), "{errors}");
        assert!(errors.contains("\na.toml:4: is not valid TOML: "), "{errors}");
        assert_eq!(errors.lines().count(), 2, "{errors}");
    }

    #[test]
    fn a_table_in_single_brackets_is_one_error() {
        let found = errors("[flow]\ncc = \"a\"\n\n[flow] # two\ncc = \"b\"\n[a]\nb = 1\nb = 2\n");
        let lines: Vec<_> = found.lines().collect();
        assert_eq!(lines[0], "a.toml:4: flow: write [[flow]], with double brackets, for each flow");
        assert_eq!(lines[1..], ["a.toml:8: b: is given twice; keep one"], "{found}");
    }

    #[test]
    fn an_empty_file_a_date_and_a_huge_number_are_errors() {
        assert!(errors(" \n").starts_with("a.toml: is empty; an experiment file is TOML with"));
        let errors = errors("a = 2020-01-01\nb = [99999999999999999999]\n");
        let lines: Vec<_> = errors.lines().collect();
        assert!(lines[0].starts_with("a.toml:1: a: 2020-01-01 is a date"), "{errors}");
        assert!(lines[1].starts_with("a.toml:2: b[0]: 99999999999999999999 is too large"));
    }

    #[test]
    fn a_problem_is_located_at_its_key_or_at_the_table_around_it() {
        let text = "\u{feff}a = 1\n[[flow]]\nname = \"x\"\n[[flow]]\nb.c = 2\n";
        let source = Source::new("", text);
        let root = source.parse().expect("TOML");
        let line = |path| {
            let Err(Diagnostics(errors)) = source.check(&root, vec![Problem::new(path, "p")])
            else {
                panic!("there is a problem")
            };
            (errors[0].position.map(|position| position.line), errors[0].key.clone())
        };
        assert_eq!(line(key_path!["a"]), (Some(1), "a".to_owned()));
        assert_eq!(line(key_path!["flow", 0, "name"]), (Some(3), "flow.x.name".to_owned()));
        assert_eq!(line(key_path!["flow", 1, "b", "c"]), (Some(5), "flow.flow-2.b.c".to_owned()));
        assert_eq!(line(key_path!["flow", 0, "cc"]), (Some(2), "flow.x.cc".to_owned()));
        assert_eq!(line(key_path!["z"]), (None, "z".to_owned()));
    }

    #[test]
    fn tables_of_one_name_are_numbered() {
        let root = json!({"flow": [{"name": "a"}, {"name": "a"}, {"name": "b"}]});
        let names = Names::of(&root);
        assert_eq!(names.key(&key_path!["flow", 1, "name"]), "flow[1].name");
        assert_eq!(names.key(&key_path!["flow", 2, "path", 0]), "flow.b.path[0]");
    }
}
