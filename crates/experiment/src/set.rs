//! Assignments that take precedence over an experiment file: `--set flow.first.cc=bbr`.

use crate::diagnostic::{Diagnostics, KeyPath, Problem, Step};
use crate::document::{Source, table_names};
use crate::keys::{EXPERIMENT, Kind};
use crate::suggest::unknown;
use serde_json::{Map, Value};

/// Lays assignments over the content of an experiment file.
///
/// `duration=10 s` sets a key of the experiment, `link.NAME.queue=1 BDP` one of the link of that
/// name; `link[0].queue` and `link.*.queue` are the first link and all links, and flows alike.
/// `stack_options.pacing=true` sets a key of a table. A value is read as TOML if it is TOML, and
/// else as text.
pub(crate) fn override_value(
    value: &mut Value,
    source: &mut Source,
    assignments: &[impl AsRef<str>],
) -> Result<(), Diagnostics> {
    let mut problems = Vec::new();
    for assignment in assignments.iter().map(AsRef::as_ref) {
        match assign(value, assignment) {
            Ok(paths) => source.override_keys(paths),
            Err(text) => {
                let key = assignment.split_once('=').map(|(key, _)| Step::from(key.trim()));
                let path = KeyPath(key.into_iter().collect());
                source.override_keys([path.clone()]);
                problems.push(Problem::new(path, text));
            }
        }
    }
    source.check(value, problems)
}

/// Makes an assignment `KEY=VALUE`; returns what it set.
fn assign(root: &mut Value, assignment: &str) -> Result<Vec<KeyPath>, String> {
    let (key, text) = match assignment.split_once('=') {
        Some((key, text)) if !key.trim().is_empty() => (key.trim(), text.trim()),
        _ => return Err(format!("\"{assignment}\" is not an assignment; write KEY=VALUE")),
    };
    assign_value(root, key, &read_value(text))
}

/// Sets what a key of an assignment stands for; returns the paths.
pub(crate) fn assign_value(
    root: &mut Value,
    key: &str,
    value: &Value,
) -> Result<Vec<KeyPath>, String> {
    let paths = targets(root, key)?;
    for path in &paths {
        set(root, path, value.clone())?;
    }
    Ok(paths)
}

/// The value as TOML, or else as text.
fn read_value(text: &str) -> Value {
    if text.contains('\n') {
        return Value::from(text);
    }
    let parsed = Source::new("", &format!("value = {text}")).parse();
    match parsed {
        Ok(Value::Object(mut table)) if table.len() == 1 => {
            table.remove("value").unwrap_or_else(|| Value::from(text))
        }
        _ => Value::from(text),
    }
}

/// The paths that a key of an assignment stands for.
pub(crate) fn targets(root: &Value, key: &str) -> Result<Vec<KeyPath>, String> {
    for kind in ["link", "flow"] {
        let Some(rest) = key.strip_prefix(kind) else { continue };
        let form = || format!("write {kind}.NAME.KEY=VALUE");
        let (tables, rest) = if let Some(rest) = rest.strip_prefix('[') {
            let (index, rest) = rest.split_once(']').ok_or_else(form)?;
            let at = index.trim().parse().map_err(|_| form())?;
            let count = table_names(root, kind).len();
            if at >= count {
                return Err(format!("there are {count} {kind}s, counted from 0"));
            }
            (vec![at], rest.strip_prefix('.').ok_or_else(form)?)
        } else if let Some(rest) = rest.strip_prefix('.') {
            let (name, rest) = split_name(rest).ok_or_else(form)?;
            (named(root, kind, name)?, rest)
        } else {
            continue;
        };
        if rest.is_empty() {
            return Err(form());
        }
        let path = |at: &usize| {
            KeyPath([kind.into(), (*at).into()].into_iter().chain(steps(rest)).collect())
        };
        return Ok(tables.iter().map(path).collect());
    }
    Ok(vec![KeyPath(steps(key))])
}

/// The links or flows of a name; `*` is all of them.
fn named(root: &Value, kind: &str, name: &str) -> Result<Vec<usize>, String> {
    let names = table_names(root, kind);
    let is_named = |at: &usize| name == "*" || names[*at] == name;
    let tables: Vec<_> = (0..names.len()).filter(is_named).collect();
    if tables.is_empty() {
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        return Err(match names.is_empty() {
            true => format!("there is no {kind}; write at least one [[{kind}]] table"),
            false => unknown(kind, name, &names),
        });
    }
    Ok(tables)
}

/// Splits `NAME.KEY`, where the name may hold dots, and the key is `TABLE.OPTION` or has none.
fn split_name(rest: &str) -> Option<(&str, &str)> {
    let tables = ["stack_options", "transport_options", "stack-options", "transport-options"];
    let table = tables.iter().find_map(|table| rest.find(&format!(".{table}.")));
    let (name, key) = match table {
        Some(at) => (&rest[..at], &rest[at + 1..]),
        None => rest.rsplit_once('.')?,
    };
    (!name.is_empty()).then_some((name, key))
}

/// `stack_options.pacing` is a key of a table; a reason may be for a key with dots.
fn steps(key: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    match key.split_once('.') {
        Some((table, option)) => steps.extend([table.into(), option.into()]),
        None => steps.push(key.into()),
    }
    steps
}

fn set(root: &mut Value, path: &KeyPath, value: Value) -> Result<(), String> {
    let Some((last, tables)) = path.0.split_last() else { return Ok(()) };
    let mut place = root;
    for step in tables {
        place = match step {
            Step::Key(key) => {
                let table = place.as_object_mut().ok_or("is not in a table")?;
                table.entry(key.as_str()).or_insert_with(|| Value::Object(Map::new()))
            }
            Step::Index(at) => place.get_mut(at).ok_or("is not in a list")?,
        };
    }
    match (place, last) {
        (Value::Object(table), Step::Key(key)) => {
            table.insert(key.clone(), value);
            Ok(())
        }
        _ => Err(not_a_table(tables)),
    }
}

fn not_a_table(path: &[Step]) -> String {
    let path = KeyPath(path.to_vec());
    let is_list = path.0.first().is_some_and(|step| {
        let kinds = EXPERIMENT.keys.iter().filter(|key| *step == Step::from(key.name));
        kinds.into_iter().any(|key| matches!(key.kind, Kind::Links | Kind::Flows))
    });
    match is_list {
        true => {
            format!("{} is not a table; write link.NAME.KEY=VALUE or flow.NAME.KEY=VALUE", path)
        }
        false => format!("{path} is not a table"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn overridden(assignment: &str) -> Result<Value, String> {
        let mut value = json!({
            "duration": "10 s",
            "link": [{"name": "a.b"}],
            "flow": [{"name": "first"}, {"cc": "reno"}],
        });
        assign(&mut value, assignment).map(|_| value)
    }

    #[test]
    fn keys_are_set_by_name_by_number_and_in_all_tables() {
        for (assignment, pointer, expected) in [
            ("duration=20 s", "/duration", json!("20 s")),
            ("seeds = [1, 2]", "/seeds", json!([1, 2])),
            ("link.a.b.rate=1 Mbit/s", "/link/0/rate", json!("1 Mbit/s")),
            ("flow.first.cc=bbr(a=1)", "/flow/0/cc", json!("bbr(a=1)")),
            ("flow.flow-2.log=true", "/flow/1/log", json!(true)),
            ("flow[1].cc=\"cubic\"", "/flow/1/cc", json!("cubic")),
            ("flow.*.cc=cubic", "/flow/1/cc", json!("cubic")),
            ("stack_options.pacing=true", "/stack_options/pacing", json!(true)),
            ("flow.first.stack_options.mss=1", "/flow/0/stack_options/mss", json!(1)),
            ("assumed.link.queue=a guess", "/assumed/link.queue", json!("a guess")),
            ("title=a = b", "/title", json!("a = b")),
        ] {
            let value = overridden(assignment).expect(assignment);
            assert_eq!(value.pointer(pointer), Some(&expected), "{assignment}");
        }
    }

    #[test]
    fn an_assignment_to_what_is_not_there_is_an_error() {
        for (assignment, part) in [
            ("duration", "\"duration\" is not an assignment; write KEY=VALUE"),
            ("=1", "is not an assignment"),
            ("flow.frist.cc=reno", "no flow is called \"frist\" (did you mean \"first\"?)"),
            ("flow[2].cc=reno", "there are 2 flows, counted from 0"),
            ("flow.first=reno", "write flow.NAME.KEY=VALUE"),
            ("flow[0]=reno", "write flow.NAME.KEY=VALUE"),
            ("duration.x=1", "duration is not a table"),
        ] {
            let error = overridden(assignment).expect_err(assignment);
            assert!(error.contains(part), "{error}");
        }
    }
}
