//! What experiment files may say, and what is said of those that are not valid.

use dumbbell_experiment::{Diagnostics, Experiment, NoEnvironment, Seeds};
use proptest::prelude::*;
use serde_json::json;
use std::path::Path;

const FILE: &str = r#"
title = "Two flows"
duration = "150 s"
seeds = [3, 1]

[stack_options]
mss = 1000

[assumed]
"link.queue" = "the paper does not state it"

[[link]]
name = "bottleneck"
rate = "100 Mbit/s"
delay = "50 ms"
aqm = { name = "fq_codel", target = "5 ms", ecn = false }
loss = { name = "gilbert-elliott", p = 1e-4, r = 0.3 }

[[flow]]
name = "first"
cc = { name = "cubic", slow_start = "standard" }

[[flow]]
cc = "my_module:MyCC"
start = "30 s"
repeat = 2
stack = "ns-3"
stack_options = { pacing = true, min_rto = "300 ms" }
"#;

fn read(text: &str) -> Result<Experiment, Diagnostics> {
    Experiment::from_toml(text, "a.toml", &[] as &[&str])
}

fn errors(text: &str) -> Vec<String> {
    read(text).expect_err("not valid").0.iter().map(ToString::to_string).collect()
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

#[test]
fn an_experiment_is_read_as_it_is_written() {
    let experiment = read(FILE).expect("valid");
    assert_eq!(experiment.seeds, Seeds::List(vec![3, 1]));
    assert_eq!(experiment.links[0].aqm.as_deref(), Some("fq_codel(target=5 ms, ecn=off)"));
    assert_eq!(experiment.flows[0].cc, "cubic(slow_start=standard)");
    assert_eq!(experiment.flows[1].stack_options["min_rto"], json!("300 ms"));
    let names = [vec!["first".to_owned()], vec!["flow-2-1".to_owned(), "flow-2-2".to_owned()]];
    assert_eq!(experiment.flow_names(), names);
}

#[test]
fn what_is_written_reads_as_the_same_experiment() {
    let experiment = read(FILE).expect("valid");
    for defaults in [false, true] {
        assert_eq!(read(&experiment.to_toml(defaults)).expect("valid"), experiment);
    }
    assert_eq!(Experiment::from_value(&experiment.to_value()).expect("valid"), experiment);
}

#[test]
fn all_errors_of_a_file_are_reported_with_their_lines() {
    let text = r#"duration = "10"
colour = "red"
stack-options = { mss = 1000 }
[[link]]
name = "bottleneck"
rate = "10 mbit/s"
[[flow]]
name = "first"
cc = "cubik"
rtts = ["50 ms"]
[[flow]]
name = "second"
cc = "reno"
path = ["bottleneck", "moon"]
stack_options = { mss = 0, pace = true }
"#;
    let errors = errors(text);
    for start in [
        "a.toml:1: duration: \"10\" lacks a unit",
        "a.toml:2: colour: there is no such key; the keys of an experiment are title, duration",
        "a.toml:3: stack-options: keys have underscores; write stack_options",
        "a.toml:6: link.bottleneck.rate: \"10 mbit/s\" has the unknown unit",
        "a.toml:9: flow.first.cc: no algorithm is called \"cubik\" (did you mean \"cubic\"?)",
        "a.toml:14: flow.second.path[1]: no link is called \"moon\"; choose from bottleneck",
        "a.toml:15: flow.second.stack_options.mss: 0 is not",
        "a.toml:15: flow.second.stack_options.pace: no stack option is called \"pace\"",
    ] {
        assert!(errors.iter().any(|error| error.starts_with(start)), "{start}: {errors:#?}");
    }
    assert_eq!(errors.len(), 8, "{errors:#?}");
}

#[test]
fn a_key_with_an_error_causes_no_further_ones() {
    let text = FILE.replace("name = \"bottleneck\"", "name = 7");
    let text = text.replace("duration = \"150 s\"", "duration = 150");
    let errors = errors(&text);
    assert_eq!(errors.len(), 2, "{errors:#?}");
    assert!(errors[1].starts_with("a.toml:13: link.link-1.name: 7 is not valid here; name is"));
}

#[test]
fn missing_keys_are_named_at_their_table() {
    let found = errors("[[link]]\nrate = \"1 Mbit/s\"\n[[flow]]\nname = \"a\"\n");
    for start in [
        "a.toml: duration: is missing; duration is how long it runs",
        "a.toml:1: link.link-1.name: is missing; name is the link's name",
        "a.toml:3: flow.a.cc: is missing; cc is the congestion control algorithm",
    ] {
        assert!(found.iter().any(|error| error.starts_with(start)), "{start}: {found:#?}");
    }
    let found = errors("duration = \"1 s\"\nflow = 7\n");
    assert_eq!(found[0], "a.toml: link: there is none; write at least one [[link]] table");
    assert!(found[1].starts_with("a.toml:2: flow: 7 is not valid here; flow is one"), "{found:?}");
}

#[test]
fn too_many_seeds_name_the_maximum() {
    let text = FILE.replace("[3, 1]", "1000000000");
    assert_eq!(
        errors(&text),
        ["a.toml:4: seeds: 1000000000 are too many seeds; the maximum is 100,000"]
    );
}

#[test]
fn assignments_take_precedence_and_their_errors_have_no_line() {
    let set = |assignment: &str| Experiment::from_toml(FILE, "a.toml", &[assignment]);
    let experiment = set("flow.*.cc=reno").expect("valid");
    assert!(experiment.flows.iter().all(|flow| flow.cc == "reno"));
    let error = set("flow[0].cc=renu").expect_err("no such algorithm").to_string();
    assert!(error.starts_with("a.toml: flow.first.cc: no algorithm is called \"renu\""), "{error}");
    let error = set("flow.third.cc=reno").expect_err("no such flow").to_string();
    assert!(error.starts_with("a.toml: flow.third.cc: no flow is called \"third\""), "{error}");
}

#[test]
fn names_must_differ_copies_included() {
    let text = FILE.replace("name = \"first\"", "name = \"flow-2-1\"");
    let expected = "a.toml:23: flow.flow-2.name: \"flow-2-1\" is already the name of flow[0]; \
                    names must differ";
    assert_eq!(errors(&text), [expected]);
}

#[test]
fn a_flow_cannot_have_the_name_of_a_subflow() {
    let text = r#"
        duration = "1 s"
        link = [{ name = "wifi", rate = "1 Mbit/s" }, { name = "lte", rate = "1 Mbit/s" }]
        flow = [
          { name = "NAME", cc = "reno", path = ["lte"] },
          { name = "phone", cc = "lia", paths = [["wifi"], ["lte"]], repeat = 2 },
        ]
    "#;
    for name in ["phone-1/1", "phone-2/2"] {
        let [error] = &errors(&text.replace("NAME", name))[..] else { panic!("one error") };
        let of = &name[..name.len() - 2];
        let expected =
            format!("\"{name}\" is the name of a subflow of \"{of}\"; names must differ");
        assert!(error.ends_with(&expected), "{error}");
    }
    for name in ["phone-1/3", "phone-1/01", "phone/1"] {
        assert!(read(&text.replace("NAME", name)).is_ok(), "{name}");
    }
}

/// The rows of the table of bad values: an assignment, and the beginning of its error.
fn bad_values() -> (String, Vec<(String, String)>) {
    let path = repository().join("tests/python/bad_values.md");
    let text = std::fs::read_to_string(path).expect("the table of bad values");
    let base = text.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let rows = text.lines().filter_map(|line| {
        let (assignment, said) = line.strip_prefix("| `")?.split_once("` | ")?;
        Some((assignment.to_owned(), said.trim_end_matches(" |").to_owned()))
    });
    (base.expect("an experiment").to_owned(), rows.collect())
}

/// The key that a row names, after its line if it has one.
fn key_of(said: &str) -> &str {
    let key = said.split(": ").find(|part| !part.starts_with("line "));
    key.filter(|key| !key.starts_with('"')).unwrap_or_default()
}

#[test]
fn every_bad_value_is_an_error_of_the_same_key() {
    let (base, rows) = bad_values();
    assert!(rows.len() > 90, "{}", rows.len());
    for (assignment, said) in rows {
        let read = Experiment::from_toml(&base, "", std::slice::from_ref(&assignment));
        let read = read.and_then(|experiment| experiment.resolve(&NoEnvironment));
        let errors = read.expect_err(&assignment).0;
        let key = key_of(&said);
        // A wrong name names no table, nor does one that two tables have.
        let is_same =
            |error: &str| error == key || key.ends_with(".name") && error.ends_with(".name");
        let is_table = |error: &str| key.starts_with(&format!("{error}."));
        let is_found = errors.iter().any(|error| is_same(&error.key) || is_table(&error.key));
        assert!(is_found, "{assignment}: {key}: {errors:#?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,80}") {
        let _ = read(&text);
    }

    #[test]
    fn no_value_makes_the_reader_panic(
        row in 0..90_usize,
        value in "[-+.0-9a-zA-Z/%(){}\\[\\]=,:\" ]{0,24}",
    ) {
        let (base, rows) = bad_values();
        let key = rows[row].0.split('=').next().unwrap_or_default();
        let assignment = format!("{}={value}", key.replace("-options", "_options"));
        if let Ok(experiment) = Experiment::from_toml(&base, "", &[assignment]) {
            let _ = experiment.resolve(&NoEnvironment);
            let again = read(&experiment.to_toml(false));
            prop_assert_eq!(again.expect("what is written is valid"), experiment);
        }
    }

    #[test]
    fn cut_and_mixed_lines_of_a_file_never_panic(
        lines in proptest::collection::vec(0..32_usize, 0..24),
        cut in 0..40_usize,
    ) {
        let all: Vec<_> = FILE.lines().collect();
        let text: Vec<_> = lines.iter().filter_map(|at| all.get(*at).copied()).collect();
        let text = text.join("\n");
        let end = text.len().saturating_sub(cut);
        let _ = read(text.get(..end).unwrap_or(&text));
    }
}

#[test]
fn the_aqm_none_is_tail_drop() {
    let written = "aqm = { name = \"fq_codel\", target = \"5 ms\", ecn = false }";
    let file = FILE.replace(written, "aqm = \"none\"");
    assert_ne!(file, FILE);
    assert_eq!(read(&file).expect("valid").links[0].aqm, None);
}
