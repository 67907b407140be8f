//! Whether the parts of an experiment fit together.

use crate::call::grouped;
use crate::check_flow::{FlowCheck, add_options};
use crate::diagnostic::{KeyPath, Problem, Step, key_path};
use crate::model::Experiment;
use crate::options::{overlay_stack, stack_named};
use crate::quantity::TIME;
use crate::read::none_of;
use dumbbell_sim::MAX_FLOWS;
use std::collections::{HashMap, HashSet};

/// Adds the problems of keys that do not fit together. What has a problem of its own already is left
/// out.
pub(crate) fn check(experiment: &Experiment, problems: &mut Vec<Problem>) {
    let before = Problems::of(problems);
    for (kind, count) in [("link", experiment.links.len()), ("flow", experiment.flows.len())] {
        if count == 0 && !before.has(kind) {
            problems.push(Problem::new(key_path![kind], none_of(kind)));
        }
    }
    check_options(experiment, &before, problems);
    check_names(experiment, &before, problems);
    if !before.has("duration") && !before.has("warmup") {
        check_warmup(experiment, problems);
    }
    let latest_start = TIME.read(&experiment.start_jitter).unwrap_or(0);
    for (at, flow) in experiment.flows.iter().enumerate() {
        if before.flows.contains(&at) {
            continue;
        }
        let mut check = FlowCheck { experiment, flow, path: key_path!["flow", at], problems };
        check.paths();
        if !before.has_of_link {
            check.links();
        }
        if !before.has("duration") && !before.has("start_jitter") {
            check.times(latest_start);
        }
        check.app();
        check.transfers();
        check.transport(before.has("stack") || before.has("stack_options"));
    }
}

/// Adds the problem of a warm-up after which nothing is left.
fn check_warmup(experiment: &Experiment, problems: &mut Vec<Problem>) {
    let Some(warmup) = &experiment.warmup else { return };
    let duration = &experiment.duration;
    if TIME.read(warmup).ok() >= TIME.read(duration).ok() {
        let text = format!("\"{warmup}\" is not before the end, \"{duration}\", so nothing counts");
        problems.push(Problem::new(key_path!["warmup"], format!("{text}; write a shorter time")));
    }
}

/// Which parts of an experiment have problems.
struct Problems {
    keys: HashSet<String>,
    flows: HashSet<usize>,
    has_of_link: bool,
}

impl Problems {
    fn of(problems: &[Problem]) -> Problems {
        let mut found =
            Problems { keys: HashSet::new(), flows: HashSet::new(), has_of_link: false };
        for KeyPath(path) in problems.iter().map(|problem| &problem.path) {
            match (path.first(), path.get(1)) {
                (Some(Step::Key(kind)), Some(Step::Index(at))) if kind == "flow" => {
                    found.flows.insert(*at);
                }
                (Some(Step::Key(kind)), _) => {
                    let is_name = path.last() == Some(&Step::from("name"));
                    found.has_of_link |= kind == "link" && (path.len() < 3 || is_name);
                    found.keys.insert(kind.clone());
                }
                _ => {}
            }
        }
        found
    }

    fn has(&self, key: &str) -> bool {
        self.keys.contains(key)
    }
}

fn check_options(experiment: &Experiment, before: &Problems, problems: &mut Vec<Problem>) {
    if before.has("stack") || before.has("stack_options") {
        return;
    }
    let overlaid = stack_named(&experiment.stack)
        .map_or(Ok(()), |stack| overlay_stack(&stack, &experiment.stack_options).map(drop));
    add_options(overlaid, &key_path!["stack_options"], problems, |_| true);
}

/// Names of links differ, and so do those of flows and their copies.
fn check_names(experiment: &Experiment, before: &Problems, problems: &mut Vec<Problem>) {
    let count = experiment.flow_count();
    let is_too_many = count > MAX_FLOWS as u64;
    if is_too_many {
        let (count, max) = (grouped(count), grouped(MAX_FLOWS as u64));
        let text = format!("there are {count} flows; the maximum is {max}");
        problems.push(Problem::new(key_path!["flow"], text));
    }
    if !before.has_of_link {
        let links = experiment.links.iter().map(|link| vec![link.name.clone()]);
        check_distinct("link", links, problems);
    }
    if !is_too_many && before.flows.is_empty() {
        let names = experiment.flow_names();
        check_subflow_names(experiment, &names, problems);
        check_distinct("flow", names.into_iter(), problems);
    }
}

/// No flow has the name of a subflow: `NAME/1`, `NAME/2`... of a multipath flow.
fn check_subflow_names(
    experiment: &Experiment,
    names: &[Vec<String>],
    problems: &mut Vec<Problem>,
) {
    let flows = experiment.flows.iter().zip(names);
    let multipath = flows.filter_map(|(flow, names)| Some((names, flow.paths.as_ref()?.len())));
    let paths: HashMap<&String, usize> =
        multipath.flat_map(|(names, paths)| names.iter().map(move |name| (name, paths))).collect();
    for (at, names) in names.iter().enumerate() {
        let taken = names.iter().find_map(|name| {
            let of = name.rsplit_once('/')?.0.to_owned();
            let is_subflow = (1..=*paths.get(&of)?).any(|path| *name == format!("{of}/{path}"));
            is_subflow.then_some((name, of))
        });
        if let Some((name, of)) = taken {
            let text =
                format!("\"{name}\" is the name of a subflow of \"{of}\"; names must differ");
            problems.push(Problem::new(key_path!["flow", at, "name"], text));
        }
    }
}

fn check_distinct(
    kind: &str,
    tables: impl Iterator<Item = Vec<String>>,
    problems: &mut Vec<Problem>,
) {
    let mut first: HashMap<String, usize> = HashMap::new();
    for (at, names) in tables.enumerate() {
        let taken = names.iter().find_map(|name| Some((name, *first.get(name)?)));
        if let Some((name, other)) = taken {
            let text = format!("\"{name}\" is already the name of {kind}[{other}]");
            let text = format!("{text}; names must differ");
            problems.push(Problem::new(key_path![kind, at, "name"], text));
        }
        for name in names {
            first.entry(name).or_insert(at);
        }
    }
}
