//! An experiment as the text of a file.

use crate::keys::{EXPERIMENT, FLOW, LINK, Table};
use crate::model::Experiment;
use serde_json::{Map, Value};

impl Experiment {
    /// The text of a file that reads as an equal experiment. Keys with their default value are
    /// written if `defaults` is true, unless they are empty.
    pub fn to_toml(&self, defaults: bool) -> String {
        let value = self.to_value();
        sections(keys_of(&EXPERIMENT, &value, defaults), |name, value| {
            keys_of(if name == LINK.name { &LINK } else { &FLOW }, value, defaults)
        })
    }
}

/// The content of a file as its text, without what is empty.
pub(crate) fn content_to_toml(content: &Map<String, Value>) -> String {
    sections(entries(content), |_, table| table.as_object().map(entries).unwrap_or_default())
}

/// Keys with plain values first, then tables, then arrays of tables, whose keys `of_table` gives.
fn sections<'a>(
    keys: Vec<(&'a str, &'a Value)>,
    of_table: impl Fn(&str, &'a Value) -> Vec<(&'a str, &'a Value)>,
) -> String {
    let is_array = |value: &Value| value.get(0).is_some_and(Value::is_object);
    let (tables, rest): (Vec<_>, Vec<_>) =
        keys.into_iter().partition(|(_, value)| value.is_object());
    let (arrays, plain): (Vec<_>, Vec<_>) =
        rest.into_iter().partition(|(_, value)| is_array(value));
    let mut sections = vec![lines(&plain)];
    for (name, value) in tables {
        // An empty text is a value of a table whose keys the user chooses.
        let keys = value.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        let keys: Vec<_> = keys.map(|(key, value)| (key.as_str(), value)).collect();
        sections.push(format!("[{name}]\n{}", lines(&keys)));
    }
    for (name, value) in arrays {
        for value in value.as_array().into_iter().flatten() {
            sections.push(format!("[[{name}]]\n{}", lines(&of_table(name, value))));
        }
    }
    sections.retain(|section| !section.is_empty());
    sections.join("\n")
}

/// The entries of a table that are not empty.
fn entries(table: &Map<String, Value>) -> Vec<(&str, &Value)> {
    let entries = table.iter().filter(|(_, value)| !value.is_null() && !is_empty(value));
    entries.map(|(key, value)| (key.as_str(), value)).collect()
}

/// The keys of a table that are written, in order.
fn keys_of<'a>(
    table: &'static Table,
    value: &'a Value,
    defaults: bool,
) -> Vec<(&'a str, &'a Value)> {
    let written = table.keys.iter().filter_map(|key| {
        let value = value.get(key.name)?;
        let is_default = key.default.value().as_ref() == Some(value);
        let is_left_out = value.is_null() || is_default && (!defaults || is_empty(value));
        (!is_left_out).then_some((key.name, value))
    });
    written.collect()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(table) => table.is_empty(),
        _ => false,
    }
}

fn lines(keys: &[(&str, &Value)]) -> String {
    keys.iter().map(|(key, value)| format!("{} = {}\n", key_text(key), inline(value))).collect()
}

fn key_text(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match !key.is_empty() && key.chars().all(is_bare) {
        true => key.to_owned(),
        false => inline(&Value::from(key)),
    }
}

/// A value as TOML, on one line.
pub(crate) fn inline(value: &Value) -> String {
    match value {
        Value::Object(table) => inline_table(table),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", "))
        }
        // JSON's texts, numbers and booleans are TOML's, but for DEL, which TOML escapes.
        _ => value.to_string().replace('\u{7f}', "\\u007f"),
    }
}

fn inline_table(table: &Map<String, Value>) -> String {
    if table.is_empty() {
        return "{}".to_owned();
    }
    let entries = table.iter().map(|(key, value)| format!("{} = {}", key_text(key), inline(value)));
    format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
}
