//! Experiment files: checking, resolving, explaining.

use dumbbell_cc::NAMES;
use dumbbell_experiment::{
    CustomAlgorithm, Diagnostics, Environment, Experiment, STARTER, explain as explain_topic,
    schema as schema_of_files, topics as all_topics, work,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use wasm_bindgen::prelude::*;

/// The files that an experiment may name: traces, and the source of algorithms.
#[wasm_bindgen]
#[derive(Default)]
pub struct Files {
    traces: BTreeMap<String, String>,
    /// The classes of the page's own code, such as `own.js:Mine`.
    classes: BTreeSet<String>,
}

#[wasm_bindgen]
impl Files {
    /// No files.
    #[wasm_bindgen(constructor)]
    #[must_use]
    pub fn new() -> Files {
        Files::default()
    }

    /// Adds a trace file.
    pub fn add_trace(&mut self, path: String, text: String) {
        self.traces.insert(path, text);
    }

    /// Adds a class of the page's own code, such as `own.js:Mine`.
    pub fn add_class(&mut self, name: String) {
        self.classes.insert(name);
    }
}

impl Environment for Files {
    fn transport(&self, name: &str) -> Result<(), String> {
        let text = match name {
            "quic" => "\"quic\" needs QUIC stacks, which this page does not have".to_owned(),
            "sabul" | "rbudp" | "tsunami" => {
                format!("\"{name}\" is a bulk transfer protocol, which this page does not have")
            }
            _ => return Ok(()),
        };
        Err(format!("{text}; run the file with `dumbbell run`, or write \"tcp\""))
    }

    fn trace(&self, path: &str) -> Result<String, String> {
        let known = || self.traces.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        self.traces.get(path).cloned().ok_or_else(|| match self.traces.is_empty() {
            true => format!("there is no file \"{path}\" in this page; add the file to it"),
            false => format!("there is no file \"{path}\" in this page; there are {}", known()),
        })
    }

    fn algorithm(&self, cc: &str) -> Result<CustomAlgorithm, String> {
        let name = cc.split('(').next().unwrap_or(cc).trim();
        if self.classes.contains(name) {
            return Ok(CustomAlgorithm { name: name.to_owned(), digest: "javascript".to_owned() });
        }
        let known: Vec<_> = self.classes.iter().map(String::as_str).collect();
        let known = match known.is_empty() {
            true => "own.js:NAME for a class of your own code, which has none yet".to_owned(),
            false => known.join(", "),
        };
        Err(format!("\"{name}\" is not in this page; write a built-in algorithm, or {known}"))
    }
}

/// Checks the text of a file. Returns JSON: `errors` (line or 0, column or 0, key, problem), and if
/// there are none the `experiment` as resolved, its `scenario` for seed 0, the `names` of each
/// flow's copies, `warnings` and the `work` in packets.
#[wasm_bindgen]
#[must_use]
pub fn check(text: &str, files: &Files) -> String {
    let read = read(text, files);
    let answer = read.map(|experiment| {
        let names = experiment.flow_names();
        let flows = names.iter().map(Vec::len).sum();
        if flows > MAX_FLOWS {
            return json!({ "errors": [too_many(flows)] });
        }
        let scenario = experiment.scenario(0);
        json!({
            "errors": [],
            "work": work(&scenario),
            "names": names,
            "warnings": experiment.warnings(true),
            "experiment": experiment.to_value(),
            "scenario": scenario,
        })
    });
    answer.unwrap_or_else(|errors| json!({ "errors": errors_of(errors) })).to_string()
}

/// More flows than this do not fit into a page.
const MAX_FLOWS: usize = 10_000;

fn too_many(flows: usize) -> Value {
    let problem = format!(
        "are {flows} flows, and a page takes {MAX_FLOWS}; write a smaller repeat, or use dumbbell run"
    );
    json!({"line": 0, "column": 0, "key": "flow", "problem": problem})
}

/// A resolved experiment.
pub(crate) fn read(text: &str, files: &Files) -> Result<Experiment, Diagnostics> {
    let none: [&str; 0] = [];
    Experiment::from_toml(text, "", &none)?.resolve(files)
}

fn errors_of(Diagnostics(errors): Diagnostics) -> Vec<Value> {
    let error = |error: dumbbell_experiment::Diagnostic| {
        let (line, column) = error.position.map_or((0, 0), |at| (at.line, at.column));
        json!({"line": line, "column": column, "key": error.key, "problem": error.problem})
    };
    errors.into_iter().map(error).collect()
}

/// The JSON Schema of experiment files.
#[wasm_bindgen]
#[must_use]
pub fn schema() -> String {
    schema_of_files().to_string()
}

/// What a key, an algorithm or an option is; nothing if there is no such topic.
#[wasm_bindgen]
#[must_use]
pub fn explain(topic: &str) -> Option<String> {
    explain_topic(topic).ok()
}

/// The topics of [`explain`].
#[wasm_bindgen]
#[must_use]
pub fn topics() -> Vec<String> {
    all_topics()
}

/// The names of the built-in algorithms.
#[wasm_bindgen]
#[must_use]
pub fn algorithms() -> Vec<String> {
    NAMES.iter().map(|name| (*name).to_owned()).collect()
}

/// An experiment file to begin with.
#[wasm_bindgen]
#[must_use]
pub fn starter() -> String {
    STARTER.to_owned()
}
