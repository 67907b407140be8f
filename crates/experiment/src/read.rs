//! From a tree of values to an experiment. Every key is checked; all problems are collected.

use crate::algorithm;
use crate::aqm;
use crate::call::{Call, grouped};
use crate::check::check;
use crate::diagnostic::{Diagnostic, Diagnostics, KeyPath, Problem, key_path};
use crate::document::Source;
use crate::keys::{DefaultValue, EXPERIMENT, FLOW, Key, Kind, LINK, Table};
use crate::loss::{Loss, Reorder};
use crate::model::{Experiment, Seeds};
use crate::options::stack_named;
use crate::quantity::{Dimension, Queue, RATE, SIZE, TIME, ValueError, shown};
use crate::quic::stack_names;
use crate::set::override_value;
use crate::suggest::{did_you_mean, unknown};
use crate::transfers::{ArrivalTimes, TransferSizes};
use crate::{apps, medium, template, timeline, trace};
use dumbbell_tcp::{Scheduler, Stack};
use serde_json::{Map, Value};
use std::collections::HashSet;

/// The maximum number of seeds.
pub(crate) const MAX_SEEDS: u64 = 100_000;

/// The DiffServ code points (RFC 2474, 2597, 3246, 5865, 8622).
pub(crate) const DSCPS: [(&str, u8); 23] = [
    ("CS0", 0),
    ("LE", 1),
    ("CS1", 8),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("CS2", 16),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("CS3", 24),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("CS4", 32),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("CS5", 40),
    ("VA", 44),
    ("EF", 46),
    ("CS6", 48),
    ("CS7", 56),
];

pub(crate) const TRANSPORTS: [&str; 8] =
    ["tcp", "udt", "udp", "quic", "rtp", "sabul", "rbudp", "tsunami"];

impl Experiment {
    /// Reads the text of an experiment file, with assignments that take precedence over it, such as
    /// `duration=10 s`, `link.bottleneck.queue=1 BDP` or `flow.*.cc=bbr`.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn from_toml(
        text: &str,
        name: &str,
        overrides: &[impl AsRef<str>],
    ) -> Result<Experiment, Diagnostics> {
        let mut source = Source::new(name, text);
        let mut value = source.parse()?;
        override_value(&mut value, &mut source, overrides)?;
        read(&value, source)
    }

    /// The experiment with such assignments laid over it; errors have no lines, as it has no file.
    ///
    /// # Errors
    /// All that is wrong with it then.
    pub fn overridden(&self, overrides: &[impl AsRef<str>]) -> Result<Experiment, Diagnostics> {
        match Experiment::from_toml(&self.to_toml(false), "", overrides) {
            Ok(experiment) => Ok(Experiment { source: Source::default(), ..experiment }),
            Err(Diagnostics(errors)) => {
                let errors = errors.into_iter();
                Err(Diagnostics(errors.map(|it| Diagnostic { position: None, ..it }).collect()))
            }
        }
    }

    /// Reads an experiment from a tree of values, such as JSON. Keys that are null are absent.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn from_value(value: &Value) -> Result<Experiment, Diagnostics> {
        read(value, Source::default())
    }
}

/// Checks the keys of one link or flow alone; returns it with every key.
///
/// # Errors
/// All that is wrong with it.
pub fn check_table(table: &'static Table, value: &Value) -> Result<Value, Diagnostics> {
    let mut problems = Vec::new();
    let checked = read_table(table, value, &key_path![], &mut problems);
    Source::default().check(value, problems)?;
    Ok(checked)
}

fn read(value: &Value, source: Source) -> Result<Experiment, Diagnostics> {
    let (experiment, problems) = read_all(value);
    source.check(value, problems)?;
    Ok(Experiment { source, ..experiment })
}

/// Reads an experiment, and finds all that is wrong with it.
pub(crate) fn read_all(value: &Value) -> (Experiment, Vec<Problem>) {
    let mut problems = Vec::new();
    let checked = read_table(&EXPERIMENT, value, &key_path![], &mut problems);
    let experiment = serde_json::from_value(checked);
    // Every key was checked, or replaced by a value of its type.
    let experiment: Experiment = experiment.expect("values of the right types");
    check(&experiment, &mut problems);
    (experiment, problems)
}

/// A table with all of its keys. A value that is not valid is a problem, and replaced.
fn read_table(
    table: &'static Table,
    value: &Value,
    path: &KeyPath,
    problems: &mut Vec<Problem>,
) -> Value {
    let none = Map::new();
    let entries = value.as_object().unwrap_or(&none);
    if !value.is_object() {
        let text = format!("{} is not a table of keys", shown(value));
        problems.push(Problem::new(path.clone(), text));
    }
    for (name, _) in entries.iter().filter(|(name, _)| table.key(name).is_none()) {
        problems.push(Problem::new(path.then(name.as_str()), unknown_key(table, name)));
    }
    let read = table.keys.iter().map(|key| {
        let at = path.then(key.name);
        let value = match entries.get(key.name).filter(|value| !value.is_null()) {
            Some(value) => read_value(key, value, &at, problems),
            None => {
                if key.default == DefaultValue::Required && value.is_object() {
                    problems.push(Problem::new(at, missing(key)));
                }
                None
            }
        };
        (key.name.to_owned(), value.unwrap_or_else(|| key.placeholder()))
    });
    Value::Object(read.collect())
}

fn missing(key: &Key) -> String {
    match key.kind {
        Kind::Links | Kind::Flows => none_of(key.name),
        _ => format!("is missing; {} is {}", key.name, key.about),
    }
}

/// The problem of a file without a link or a flow.
pub(crate) fn none_of(kind: &str) -> String {
    format!("there is none; write at least one [[{kind}]] table")
}

/// The problem of a link or a flow that is written as the only one.
pub(crate) fn double_brackets(kind: &str) -> String {
    format!("write [[{kind}]], with double brackets, for each {kind}")
}

pub(crate) fn unknown_key(table: &Table, name: &str) -> String {
    let mut known: Vec<_> = table.keys.iter().map(|key| key.name).collect();
    if table.name == EXPERIMENT.name {
        known.push("sweep");
    }
    let snake = name.replace('-', "_");
    if name == "sweep" && table.name == EXPERIMENT.name {
        return "has axes, along which `dumbbell sweep` runs the experiment; use that, or leave it \
                out"
            .to_owned();
    }
    if known.contains(&snake.as_str()) {
        return format!("keys have underscores; write {snake}");
    }
    if table.name == EXPERIMENT.name {
        let tables = [&LINK, &FLOW].into_iter().filter(|table| table.key(&snake).is_some());
        let keys: Vec<_> = tables.map(|table| format!("{}.NAME.{snake}", table.name)).collect();
        if !keys.is_empty() {
            return format!("there is no such key of an experiment; write {}", keys.join(" or "));
        }
    }
    if table.name == LINK.name && snake == "rtt" {
        return "there is no such key of a link; write delay, the half of it, or rtt in a flow"
            .to_owned();
    }
    let hint = did_you_mean(name, known.iter().copied());
    let article = if table.name == EXPERIMENT.name { "an" } else { "a" };
    let known = known.join(", ");
    format!("there is no such key{hint}; the keys of {article} {} are {known}", table.name)
}

/// The value of a key as the model has it, or `None` and a problem.
pub(crate) fn read_value(
    key: &'static Key,
    value: &Value,
    path: &KeyPath,
    problems: &mut Vec<Problem>,
) -> Option<Value> {
    let before = problems.len();
    let read = match key.kind {
        Kind::Links => read_tables(key, &LINK, value, path, problems),
        Kind::Flows => read_tables(key, &FLOW, value, path, problems),
        Kind::Path => elements(key, value, path, problems, |value| text(key, value)),
        Kind::Periods => elements(key, value, path, problems, |value| quantity(&TIME, value)),
        Kind::Paths => {
            let Value::Array(paths) = value else {
                problems.push(Problem::new(path.clone(), not_valid(key, value)));
                return None;
            };
            for (at, links) in paths.iter().enumerate() {
                elements(key, links, &path.then(at), problems, |value| text(key, value));
            }
            value.clone()
        }
        Kind::Texts => entries(key, value, path, problems, |value| text(key, value)),
        Kind::StackOptions | Kind::TransportOptions => {
            entries(key, value, path, problems, option_value)
        }
        _ => match scalar(key, value) {
            Ok(value) => value,
            Err(ValueError(text)) => {
                problems.push(Problem::new(path.clone(), text));
                Value::Null
            }
        },
    };
    (problems.len() == before || matches!(key.kind, Kind::Links | Kind::Flows)).then_some(read)
}

fn not_valid(key: &Key, value: &Value) -> ValueError {
    ValueError(format!("{} is not valid here; {} is {}", shown(value), key.name, key.about))
}

fn read_tables(
    key: &Key,
    table: &'static Table,
    value: &Value,
    path: &KeyPath,
    problems: &mut Vec<Problem>,
) -> Value {
    let Value::Array(tables) = value else {
        let problem = match value {
            Value::Object(_) => double_brackets(key.name),
            _ => not_valid(key, value).0,
        };
        problems.push(Problem::new(path.clone(), problem));
        return Value::Array(Vec::new());
    };
    let tables = tables.iter().enumerate();
    tables.map(|(at, value)| read_table(table, value, &path.then(at), problems)).collect()
}

/// A list, of which `read` reads every element.
fn elements(
    key: &Key,
    value: &Value,
    path: &KeyPath,
    problems: &mut Vec<Problem>,
    read: impl Fn(&Value) -> Result<Value, ValueError>,
) -> Value {
    let Value::Array(items) = value else {
        problems.push(Problem::new(path.clone(), not_valid(key, value)));
        return Value::Null;
    };
    for (at, item) in items.iter().enumerate() {
        if let Err(ValueError(text)) = read(item) {
            problems.push(Problem::new(path.then(at), text));
        }
    }
    value.clone()
}

/// A table of any keys, of which `read` reads every value.
fn entries(
    key: &Key,
    value: &Value,
    path: &KeyPath,
    problems: &mut Vec<Problem>,
    read: impl Fn(&Value) -> Result<Value, ValueError>,
) -> Value {
    let Value::Object(items) = value else {
        problems.push(Problem::new(path.clone(), not_valid(key, value)));
        return Value::Null;
    };
    for (name, item) in items {
        if let Err(ValueError(text)) = read(item) {
            problems.push(Problem::new(path.then(name.as_str()), text));
        }
    }
    value.clone()
}

fn option_value(value: &Value) -> Result<Value, ValueError> {
    match value {
        Value::Bool(_) | Value::String(_) => Ok(value.clone()),
        Value::Number(number) if !number.is_f64() => Ok(value.clone()),
        _ => {
            let text = format!("{} is not true, false, a whole number or text", shown(value));
            Err(ValueError(text))
        }
    }
}

fn scalar(key: &Key, value: &Value) -> Result<Value, ValueError> {
    let same = || value.clone();
    match key.kind {
        Kind::Text => text(key, value),
        Kind::Name => name(key, value),
        Kind::Bool => value.as_bool().map(Value::from).ok_or_else(|| not_valid(key, value)),
        Kind::Count => count(key, value),
        Kind::Seeds => read_seeds(value).map(|_| same()),
        Kind::Period => quantity(&TIME, value),
        Kind::Time => TIME.parse_or_zero(value).map(|_| same()),
        Kind::Rate => quantity(&RATE, value),
        Kind::Size => quantity(&SIZE, value),
        Kind::Queue => Queue::parse(value).map(|_| same()),
        Kind::Rates => timeline::parse_rates(value).map(|_| same()),
        Kind::AppRates if value.is_string() => Ok(same()),
        Kind::AppRates => timeline::parse_rates(value).map(|_| same()),
        Kind::Reroutes => timeline::parse_reroutes(value).map(|_| same()),
        Kind::Trace if value.is_string() => Ok(same()),
        Kind::Trace => trace::parse_times(value).map(|_| same()),
        Kind::Loss => {
            let loss = Loss::parse(value)?;
            Ok(if value.is_object() { loss.to_value() } else { same() })
        }
        Kind::Aqm if *value == aqm::NO_AQM => Ok(Value::Null),
        Kind::Aqm => aqm::resolve(value).and_then(|_| call(value)),
        Kind::Template => template::resolve(value).and_then(|_| call(value)),
        Kind::Medium => medium::resolve(value).and_then(|_| call(value)),
        Kind::Arrivals => ArrivalTimes::parse(value).map(|arrivals| match value {
            Value::Object(_) => arrivals.to_value(),
            _ => same(),
        }),
        Kind::Sizes => TransferSizes::parse(value).map(|sizes| match value {
            Value::Object(_) => sizes.to_value(),
            _ => same(),
        }),
        Kind::App => apps::resolve(value).and_then(|_| call(value)),
        Kind::Ladder => apps::parse_ladder(value).map(|_| same()),
        Kind::Reorder => Reorder::parse(value).map(|_| same()),
        Kind::Algorithm if value.is_string() || value.is_object() => {
            algorithm::check(value).map(Value::from)
        }
        Kind::Dscp => one_of("DiffServ code point", &DSCPS.map(|(name, _)| name), key, value),
        Kind::Scheduler => one_of("scheduler", Scheduler::NAMES, key, value),
        Kind::Transport => one_of("transport", &TRANSPORTS, key, value),
        Kind::Stack => match value {
            Value::String(name) => stack_named(name).map(|_| same()),
            _ => Err(not_valid(key, value)),
        },
        Kind::FlowStack => one_of("stack", &all_stacks(), key, value),
        _ => Err(not_valid(key, value)),
    }
}

/// A checked call as text, with the options that it has.
fn call(value: &Value) -> Result<Value, ValueError> {
    Call::from_value(value, "a call").map(|call| match value {
        Value::String(_) => value.clone(),
        _ => Value::from(call.to_string()),
    })
}

/// The names of the stacks of TCP and of QUIC.
pub(crate) fn all_stacks() -> Vec<&'static str> {
    Stack::NAMES.iter().copied().chain(stack_names()).collect()
}

fn quantity(dimension: &Dimension, value: &Value) -> Result<Value, ValueError> {
    dimension.parse(value).map(|_| value.clone())
}

fn text(key: &Key, value: &Value) -> Result<Value, ValueError> {
    if value.is_string() { Ok(value.clone()) } else { Err(not_valid(key, value)) }
}

fn name(key: &Key, value: &Value) -> Result<Value, ValueError> {
    let Value::String(text) = value else { return Err(not_valid(key, value)) };
    let is_printable = !text.chars().any(char::is_control);
    if text.trim() == text && !text.is_empty() && is_printable {
        return Ok(value.clone());
    }
    let problem = format!("{} is not a name; write printable text, such as \"a\"", shown(value));
    Err(ValueError(problem))
}

fn count(key: &Key, value: &Value) -> Result<Value, ValueError> {
    match (value.as_u64(), value.as_i64()) {
        (Some(1..), _) => Ok(value.clone()),
        (_, Some(number)) => {
            Err(ValueError(format!("{number} is not a number of copies; write 1 or more")))
        }
        _ => Err(not_valid(key, value)),
    }
}

/// Reads a count of seeds, or a list of them.
pub(crate) fn read_seeds(value: &Value) -> Result<Seeds, ValueError> {
    let most = grouped(MAX_SEEDS);
    let count = value.as_array().map_or(value.as_u64(), |seeds| Some(seeds.len() as u64));
    if count.is_some_and(|count| count > MAX_SEEDS) {
        let given = shown(value);
        return Err(ValueError(format!("{given} are too many seeds; the maximum is {most}")));
    }
    let seeds = match value {
        Value::Number(_) => count.filter(|count| *count > 0).map(Seeds::Count),
        Value::Array(seeds) => {
            let is_seed = |seed: &u64| i64::try_from(*seed).is_ok();
            let numbers: Option<Vec<_>> =
                seeds.iter().map(|seed| seed.as_u64().filter(is_seed)).collect();
            let distinct = numbers.iter().flatten().collect::<HashSet<_>>().len();
            numbers.filter(|seeds| distinct == seeds.len() && distinct > 0).map(Seeds::List)
        }
        _ => None,
    };
    seeds.ok_or_else(|| {
        ValueError(format!(
            "{} are not seeds; write a count, such as 5, or a list of different whole numbers, \
             such as [1, 2, 3]; {most} at most",
            shown(value)
        ))
    })
}

fn one_of(what: &str, known: &[&str], key: &Key, value: &Value) -> Result<Value, ValueError> {
    match value {
        Value::String(name) if known.contains(&name.as_str()) => Ok(value.clone()),
        Value::String(name) => Err(ValueError(unknown(what, name, known))),
        _ => Err(not_valid(key, value)),
    }
}
