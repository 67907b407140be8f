//! Experiments with a `[sweep]` table: the axes along which they change.

use crate::axis::Axis;
use crate::call::grouped;
use crate::diagnostic::{Diagnostics, KeyPath, Problem, key_path};
use crate::document::Source;
use crate::environment::Environment;
use crate::keys::{Key, key_of};
use crate::model::Experiment;
use crate::quantity::{ValueError, shown};
use crate::read::{read_all, read_seeds, read_value, unknown_key};
use crate::set::{assign_value, override_value, targets};
use crate::suggest::{closest, unknown};
use crate::timeline::{format_rates, parse_rate_file};
use crate::trace;
use crate::write::{content_to_toml, inline};
use dumbbell_sim::{LinkSpec, Scenario};
use serde_json::{Map, Value};

/// The ways to combine the axes of one `[sweep]` table.
pub const COMBINE: [&str; 4] = ["grid", "zip", "random", "latin-hypercube"];
/// The ways of [`COMBINE`] that draw points.
const DRAWN: [&str; 2] = ["random", "latin-hypercube"];
/// The keys of a `[sweep]` table that are no axes.
pub(crate) const SWEEP_KEYS: [&str; 3] = ["combine", "points", "seed"];
/// The maximum number of runs of one sweep.
const MAX_RUNS: u128 = 1_000_000;

/// The bits of a full packet.
const PACKET_BITS: f64 = 12_000.0;
/// The work of a run besides its packets, in packets.
const RUN_WORK: f64 = 10_000.0;

const EXAMPLE: &str = "\"link.NAME.rate\" = [\"10 Mbit/s\", \"100 Mbit/s\"]";

/// An experiment, and the axes along which it changes.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The `[sweep]` tables. Every point of one is combined with every point of the others.
    pub blocks: Vec<Block>,
    /// The content of the file without `[sweep]`, with the times and the rates of files it names.
    content: Value,
    source: Source,
    text: String,
}

/// One `[sweep]` table: axes, and how they are combined.
#[derive(Clone, Debug)]
pub struct Block {
    /// One of [`COMBINE`].
    pub combine: &'static str,
    /// The number of points that are drawn; 0 if none are.
    pub points: u64,
    /// The seed from which they are drawn.
    pub seed: u64,
    /// The axes.
    pub axes: Vec<Axis>,
}

impl Block {
    /// The number of points.
    pub fn count(&self) -> u128 {
        let mut counts = self.axes.iter().map(|axis| u128::from(axis.count().unwrap_or(1)));
        match self.combine {
            "grid" => counts.fold(1, u128::saturating_mul),
            "zip" => counts.next().unwrap_or(0),
            _ => u128::from(self.points),
        }
    }
}

impl Sweep {
    /// Whether the text of a file has a `[sweep]` table.
    pub fn is_in(text: &str) -> bool {
        Source::new("", text).parse().is_ok_and(|content| content.get("sweep").is_some())
    }

    /// Reads the text of an experiment file with a `[sweep]` table, and checks it with the first
    /// values of its axes. `axes` takes the place of the table.
    ///
    /// # Errors
    /// All that is wrong with the axes and with the experiment.
    pub fn from_toml(
        text: &str,
        name: &str,
        overrides: &[impl AsRef<str>],
        axes: Option<Value>,
        environment: &dyn Environment,
    ) -> Result<Sweep, Diagnostics> {
        let mut source = Source::new(name, text);
        let mut content = source.parse()?;
        if let (Some(axes), Value::Object(table)) = (axes, &mut content) {
            source.override_keys([key_path!["sweep"]]);
            table.insert("sweep".to_owned(), axes);
        }
        override_value(&mut content, &mut source, overrides)?;
        let mut problems = Vec::new();
        embed_files(&mut content, environment, &mut problems);
        let text = content.as_object().map(content_to_toml).unwrap_or_default();
        let table = content.as_object_mut().and_then(|table| table.shift_remove("sweep"));
        if let Some(Err(error)) = content.get("seeds").map(read_seeds) {
            problems.push(Problem::new(key_path!["seeds"], error));
        }
        let mut reader = Reader { content: &content, refused: Vec::new(), problems };
        let blocks = reader.blocks(table.as_ref());
        reader.check_overrides(&blocks, overrides);
        let Reader { refused, mut problems, .. } = reader;
        let sweep = Sweep { blocks, content, source, text };
        let values: Vec<_> = sweep.axes().map(Axis::first).collect();
        let (_, mut found) = sweep.read(&values);
        found.retain(|problem| !refused.iter().any(|key| problem.path.is_within(key)));
        problems.extend(sweep.placed(found, &values, false));
        sweep.source.check(&sweep.content, problems)?;
        Ok(sweep)
    }

    /// The axes of all tables.
    pub fn axes(&self) -> impl Iterator<Item = &Axis> {
        self.blocks.iter().flat_map(|block| &block.axes)
    }

    /// The number of points.
    pub fn count(&self) -> u128 {
        self.blocks.iter().map(Block::count).fold(1, u128::saturating_mul)
    }

    /// The text of a file that reads as the same sweep, and needs no file of times or rates.
    pub fn to_toml(&self) -> &str {
        &self.text
    }

    /// The seeds that every point is run with: these, or else the file's.
    ///
    /// # Errors
    /// If they are not seeds, or the runs are too many.
    pub fn seeds(&self, seeds: Option<&Value>) -> Result<Vec<u64>, Diagnostics> {
        let one = Value::from(1);
        let given = seeds.or_else(|| self.content.get("seeds")).unwrap_or(&one);
        let refuse = |key: &str, text: String| {
            let problem = Problem::new(key_path![key], text);
            self.source.check(&self.content, vec![problem]).map(|()| Vec::new())
        };
        let seeds = match read_seeds(given) {
            Ok(seeds) => seeds.list(),
            Err(error) => return refuse("seeds", error.to_string()),
        };
        let runs = self.count().saturating_mul(seeds.len() as u128);
        if runs <= MAX_RUNS {
            return Ok(seeds);
        }
        let (points, count) = (grouped(self.count()), grouped(seeds.len() as u128));
        let (runs, most) = (grouped(runs), grouped(MAX_RUNS));
        let text = format!("would be {runs} runs: {points} points with {count} seeds");
        refuse("sweep", format!("{text}; the most is {most}"))
    }

    /// The resolved experiment with these values of the axes, and without seeds of its own.
    ///
    /// # Errors
    /// All that is wrong with it there. Errors of a key that is an axis are errors of the axis.
    pub fn experiment(
        &self,
        values: &[Value],
        environment: &dyn Environment,
    ) -> Result<Experiment, Diagnostics> {
        let (experiment, problems) = self.read(values);
        self.source.check(&self.content, self.placed(problems, values, true))?;
        let (resolved, problems) = experiment.located(environment).resolve_all(environment);
        self.source.check(&self.content, self.placed(problems, values, true))?;
        Ok(resolved)
    }

    /// The experiment with these values of the axes, and what is wrong with it.
    fn read(&self, values: &[Value]) -> (Experiment, Vec<Problem>) {
        let mut content = self.content.clone();
        let mut problems = Vec::new();
        for (axis, value) in self.axes().zip(values) {
            if let Err(text) = assign_value(&mut content, &axis.key, value) {
                problems.push(Problem::new(axis.path.clone(), text));
            }
        }
        if let Value::Object(table) = &mut content {
            table.insert("seeds".to_owned(), Value::from(1));
            table.insert("internals".to_owned(), Value::from(false));
        }
        let (experiment, found) = read_all(&content);
        problems.extend(found);
        (experiment, problems)
    }

    /// Problems of keys that axes set, where the axes are; with the values of the other axes, if
    /// those matter.
    fn placed(&self, problems: Vec<Problem>, values: &[Value], with_others: bool) -> Vec<Problem> {
        let axes: Vec<_> = self.axes().zip(values).collect();
        let sets = |axis: &Axis, path: &KeyPath| {
            let targets = targets(&self.content, &axis.key).unwrap_or_default();
            targets.iter().any(|target| path.is_within(target))
        };
        let placed = problems.into_iter().map(|Problem { path, text }| {
            let own = axes.iter().position(|(axis, _)| sets(axis, &path));
            let others = axes.iter().enumerate().filter(|(at, _)| with_others && Some(*at) != own);
            let others =
                others.map(|(_, (axis, value))| format!("{} = {}", axis.key, inline(value)));
            let others = others.collect::<Vec<_>>().join(", ");
            Problem {
                path: own.map_or(path, |at| axes[at].0.place(axes[at].1)),
                text: if others.is_empty() { text } else { format!("{text} (at {others})") },
            }
        });
        placed.collect()
    }
}

/// The approximate work of a run, in packets that its fastest link carries.
pub fn work(scenario: &Scenario) -> f64 {
    let rate = |link: &LinkSpec| {
        let steps = link.rates.iter().flatten().map(|(_, rate)| *rate);
        link.rate_bps.unwrap_or_else(|| steps.fold(0.0, f64::max))
    };
    let max = scenario.links.iter().map(rate).fold(0.0, f64::max);
    max * scenario.duration_ns as f64 / 1e9 / PACKET_BITS + RUN_WORK
}

/// Puts the content of the traces that links name, and of the rates that flows name, in their place.
fn embed_files(content: &mut Value, environment: &dyn Environment, problems: &mut Vec<Problem>) {
    let times = |file: &str, text: &str| trace::parse_file(file, text).map(Value::from);
    let rates = |file: &str, text: &str| parse_rate_file(file, text).map(|it| format_rates(&it));
    embed(content, "link", "trace", times, environment, problems);
    embed(content, "flow", "app_rates", rates, environment, problems);
}

/// Puts what `parse` finds in the files that a key of tables names in their place.
fn embed(
    content: &mut Value,
    kind: &str,
    key: &str,
    parse: impl Fn(&str, &str) -> Result<Value, ValueError>,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) {
    let tables = content.get_mut(kind).and_then(Value::as_array_mut);
    for (number, table) in tables.into_iter().flatten().enumerate() {
        let Some(value) = table.get_mut(key) else { continue };
        let Value::String(file) = &*value else { continue };
        let file = environment.locate_trace(file);
        let read = environment.trace(&file);
        let read = read.and_then(|text| parse(&file, &text).map_err(|error| error.to_string()));
        *value = read.unwrap_or_else(|text| {
            problems.push(Problem::new(key_path![kind, number, key], text));
            Value::Null
        });
    }
}

/// Reads `[sweep]` tables.
struct Reader<'a> {
    content: &'a Value,
    /// The keys of axes that are not valid.
    refused: Vec<KeyPath>,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn add(&mut self, path: &KeyPath, text: String) {
        self.problems.push(Problem::new(path.clone(), text));
    }

    fn blocks(&mut self, table: Option<&Value>) -> Vec<Block> {
        let path = key_path!["sweep"];
        let tables: Option<Vec<(KeyPath, &Map<String, Value>)>> = match table {
            Some(Value::Object(table)) => Some(vec![(path.clone(), table)]),
            Some(Value::Array(tables)) => {
                let tables = tables.iter().enumerate();
                tables.map(|(at, table)| Some((path.then(at), table.as_object()?))).collect()
            }
            _ => None,
        };
        let Some(tables) = tables.filter(|tables| !tables.is_empty()) else {
            let problem = match table {
                None => "is missing".to_owned(),
                Some(value) => format!("{} is not a table", shown(value)),
            };
            self.add(&path, format!("{problem}; write [sweep] and below it axes: {EXAMPLE}"));
            return Vec::new();
        };
        let mut blocks: Vec<Block> = Vec::new();
        for (path, table) in tables {
            let block = self.block(table, &path);
            for (at, axis) in block.axes.iter().enumerate() {
                let before = blocks.iter().flat_map(|block| &block.axes);
                if before.chain(&block.axes[..at]).any(|other| other.key == axis.key) {
                    self.add(&axis.path, "is an axis twice; write it once".to_owned());
                }
            }
            blocks.push(block);
        }
        blocks
    }

    fn block(&mut self, table: &Map<String, Value>, path: &KeyPath) -> Block {
        let before = self.problems.len();
        let combine = match table.get("combine") {
            None => COMBINE[0],
            Some(given) => match COMBINE.into_iter().find(|name| given == name) {
                Some(combine) => combine,
                None => {
                    let name = given.as_str().map_or_else(|| shown(given), str::to_owned);
                    let text = unknown("way to combine axes", &name, &COMBINE);
                    self.add(&path.then("combine"), text);
                    COMBINE[0]
                }
            },
        };
        let seed = table.get("seed").map_or(Some(1), Value::as_u64);
        if seed.is_none() {
            let text =
                format!("{} is not a whole number; write one, such as 1", shown(&table["seed"]));
            self.add(&path.then("seed"), text);
        }
        let points = self.points(table.get("points"), combine, path);
        let mut axes = Vec::new();
        for (key, value, at) in find_axes(table, "", path) {
            match self.axis(&key, value, &at, combine) {
                Some(axis) => axes.push(axis),
                None => self.refused.extend(targets(self.content, &key).unwrap_or_default()),
            }
        }
        let block = Block { combine, points, seed: seed.unwrap_or(1), axes };
        if self.problems.len() > before {
            return block;
        }
        if block.axes.is_empty() {
            self.add(path, format!("has no axis; write one, such as {EXAMPLE}"));
        }
        if combine == "zip" && block.axes.iter().any(|a| a.count() != block.axes[0].count()) {
            let counts = block
                .axes
                .iter()
                .map(|axis| format!("{} has {}", axis.key, axis.count().unwrap_or(0)));
            let counts = counts.collect::<Vec<_>>().join(", ");
            let text = format!("axes that are zipped need as many values each, but {counts}");
            self.add(path, text);
        } else if block.count() > MAX_RUNS {
            let (count, most) = (grouped(block.count()), grouped(MAX_RUNS));
            self.add(path, format!("has {count} points; the most is {most}"));
        }
        block
    }

    /// The number of points that are drawn.
    fn points(&mut self, points: Option<&Value>, combine: &str, path: &KeyPath) -> u64 {
        let path = path.then("points");
        match points {
            Some(_) if !DRAWN.contains(&combine) => {
                let text =
                    format!("is for points that are drawn, not for a {combine}; write it in");
                self.add(&path, format!("{text} the axes that are ranges"));
            }
            None if !DRAWN.contains(&combine) => {}
            _ => {
                if let Some(points) = points.and_then(Value::as_u64).filter(|points| *points > 0) {
                    return points;
                }
                let problem = match points {
                    None => "is missing".to_owned(),
                    Some(points) => format!("{} is not 1 or more", shown(points)),
                };
                self.add(&path, format!("{problem}; write how many points to draw"));
            }
        }
        0
    }

    /// An axis; `None` and problems if its key is none of the experiment, or does not take its
    /// values.
    fn axis(&mut self, key: &str, value: &Value, path: &KeyPath, combine: &str) -> Option<Axis> {
        let before = self.problems.len();
        let kind = self.key(key).map_err(|text| self.add(path, text)).ok()?;
        let axis = Axis::read(key, value, path, &mut self.problems)?;
        for (path, value) in axis.written() {
            if let Some(key) = kind.filter(|_| !value.is_null()) {
                read_value(key, &value, &path, &mut self.problems);
            }
        }
        // Zipped axes have a value at every point, which others may share.
        if let Some(text) = axis.repetition().filter(|_| combine != "zip") {
            self.add(path, text);
        }
        if axis.count().is_none() && !DRAWN.contains(&combine) {
            let text = "is a range without a number of points; write, for example, points = 5";
            self.add(path, text.to_owned());
        }
        (self.problems.len() == before).then_some(axis)
    }

    /// The key of the experiment that the key of an axis stands for; `None` if it stands for a part
    /// of one.
    fn key(&self, key: &str) -> Result<Option<&'static Key>, String> {
        if matches!(key.split('.').next(), Some("seeds" | "sweep")) {
            let text = "cannot be an axis; name others, and write seeds beside duration";
            return Err(text.to_owned());
        }
        let paths = targets(self.content, key)?;
        let Some((table, name, is_whole)) = paths.first().and_then(key_of) else { return Ok(None) };
        match (table.key(name), closest(name, SWEEP_KEYS)) {
            (Some(key), _) => Ok(is_whole.then_some(key)),
            (None, Some(_)) => Err(unknown("key of a sweep", name, &SWEEP_KEYS)),
            (None, None) => Err(unknown_key(table, name)),
        }
    }

    /// Refuses assignments of what an axis sets.
    fn check_overrides(&mut self, blocks: &[Block], overrides: &[impl AsRef<str>]) {
        let content = self.content;
        let paths = |key: &str| targets(content, key).unwrap_or_default();
        for axis in blocks.iter().flat_map(|block| &block.axes) {
            let set = paths(&axis.key);
            let is_set = |path: &KeyPath| set.iter().any(|outer| path.is_within(outer));
            for (key, _) in overrides.iter().filter_map(|text| text.as_ref().split_once('=')) {
                let (key, name) = (key.trim(), &axis.key);
                if paths(key).iter().any(is_set) {
                    let advice = match key == name {
                        true => "leave it out".to_owned(),
                        false => format!("assign {name}, which then has one value"),
                    };
                    let text = format!("the axis {name} sets it at every point; {advice}");
                    self.add(&key_path![key], format!("{text}, or change the axis in the file"));
                }
            }
        }
    }
}

/// The axes of a `[sweep]` table: key, content, and path. Keys have dots with or without quotes.
fn find_axes<'a>(
    table: &'a Map<String, Value>,
    within: &str,
    path: &KeyPath,
) -> Vec<(String, &'a Value, KeyPath)> {
    let mut axes = Vec::new();
    for (part, value) in table {
        let (key, at) = (format!("{within}{part}"), path.then(part.as_str()));
        // A table of that name is a link or a flow.
        let is_axis = |table: &Map<String, Value>| {
            let mut given = ["values", "from", "to"].iter().filter_map(|key| table.get(*key));
            given.any(|value| !value.is_object())
        };
        match value {
            _ if within.is_empty() && SWEEP_KEYS.contains(&part.as_str()) => {}
            Value::Object(inner) if !is_axis(inner) => {
                axes.extend(find_axes(inner, &format!("{key}."), &at));
            }
            _ => axes.push((key, value, at)),
        }
    }
    axes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::{CustomAlgorithm, NoEnvironment};
    use proptest::prelude::*;
    use serde_json::json;

    const BASE: &str = "duration = \"2 s\"\n[[link]]\nname = \"l\"\nrate = \"4 Mbit/s\"\ndelay = \
                        \"10 ms\"\n[[flow]]\ncc = \"reno\"\n";

    fn sweep(axes: &str) -> Result<Sweep, Diagnostics> {
        let text = format!("{BASE}{axes}");
        Sweep::from_toml(&text, "a.toml", &[] as &[&str], None, &NoEnvironment)
    }

    fn errors(axes: &str) -> String {
        sweep(axes).expect_err("not valid").to_string()
    }

    #[test]
    fn axes_keep_the_order_of_the_file_and_need_no_quotes() {
        let sweep = sweep("[sweep]\nlink.l.rate = [\"1 Mbit/s\"]\nduration = [\"1 s\", \"2 s\"]\n");
        let sweep = sweep.expect("valid");
        let keys: Vec<_> = sweep.axes().map(|axis| axis.key.as_str()).collect();
        assert_eq!((keys, sweep.count()), (vec!["link.l.rate", "duration"], 2));
        assert_eq!(sweep.seeds(Some(&json!(3))), Ok(vec![1, 2, 3]));
    }

    #[test]
    fn links_that_are_called_like_keys_of_an_axis_need_no_quotes() {
        for name in ["values", "from", "to"] {
            let base = BASE.replace("\"l\"", &format!("\"{name}\""));
            let axis = format!("link.{name}.rate = [\"1 Mbit/s\"]\n");
            for axis in [axis.clone(), axis.replace('[', "{ values = [").replace(']', "] }")] {
                let text = format!("{base}[sweep]\n{axis}");
                let sweep = Sweep::from_toml(&text, "", &[] as &[&str], None, &NoEnvironment);
                let keys: Vec<_> = sweep.expect(name).axes().map(|axis| axis.key.clone()).collect();
                assert_eq!(keys, [format!("link.{name}.rate")]);
            }
        }
    }

    /// Files of times and of rates.
    struct Files;

    impl Environment for Files {
        fn locate_trace(&self, path: &str) -> String {
            path.to_owned()
        }

        fn locate_algorithm(&self, cc: &str) -> String {
            cc.to_owned()
        }

        fn trace(&self, path: &str) -> Result<String, String> {
            match path {
                "a.times" => Ok("1\n2\n".to_owned()),
                "a.rates" => Ok("0 5000000\n1 0\n".to_owned()),
                _ => Err(format!("\"{path}\" cannot be read")),
            }
        }

        fn algorithm(&self, cc: &str) -> Result<CustomAlgorithm, String> {
            Err(format!("there is no {cc}"))
        }
    }

    #[test]
    fn the_text_of_a_sweep_needs_no_files() {
        let text = BASE.replace("rate = \"4 Mbit/s\"", "trace = \"a.times\"");
        let text = format!("{text}app_rates = \"a.rates\"\n[sweep]\nduration = [\"2 s\"]\n");
        let sweep = Sweep::from_toml(&text, "", &[] as &[&str], None, &Files).expect("valid");
        assert!(sweep.to_toml().contains("app_rates = [[\"0 ms\", \"5 Mbit/s\"], "));
        let again = Sweep::from_toml(sweep.to_toml(), "", &[] as &[&str], None, &NoEnvironment);
        let experiment = again.expect("valid").experiment(&[json!("2 s")], &NoEnvironment);
        assert_eq!(experiment.expect("valid").scenario(1).flows[0].app_rates.len(), 2);
        let text = text.replace("a.rates", "b.rates");
        let error = Sweep::from_toml(&text, "", &[] as &[&str], None, &Files).expect_err("no file");
        assert_eq!(error.to_string(), "line 8: flow.flow-1.app_rates: \"b.rates\" cannot be read");
    }

    #[test]
    fn every_error_of_the_axes_and_of_the_experiment_is_found_at_once() {
        let axes = "[[sweep]]\n\"link.l.queue\" = [\"1 BDP\", \"1 PDB\"]\n[[sweep]]\npoints = 3\n\
                    \"flow.*.c\" = [\"bbr\"]\ncombin = \"zip\"\n[stack_options]\npaced = true\n";
        let errors = errors(axes);
        let lines: Vec<_> = errors.lines().collect();
        assert!(lines[0].starts_with("a.toml:9: sweep[0].link.l.queue[1]: \"1 PDB\""), "{errors}");
        assert!(lines[1].starts_with("a.toml:11: sweep[1].points: is for points"), "{errors}");
        assert!(lines[2].starts_with("a.toml:12: sweep[1].flow.*.c: there is no such key"));
        assert!(lines[3].contains("\"combin\" (did you mean \"combine\"?)"), "{errors}");
        assert!(lines[4].starts_with("a.toml:15: stack_options.paced: "), "{errors}");
    }

    #[test]
    fn an_error_at_a_point_is_one_of_its_axis_and_names_the_other_values() {
        let axes = "[sweep]\n\"link.l.delay\" = [\"10 ms\"]\n\"link.l.queue\" = [\"1 B\"]\n";
        let sweep = sweep(axes).expect("valid on its own");
        let error = sweep.experiment(&[json!("10 ms"), json!("1 B")], &NoEnvironment);
        let error = error.expect_err("too little a queue").to_string();
        assert!(error.starts_with("a.toml:10: sweep.link.l.queue[0]: \"1 B\" is"), "{error}");
        assert!(error.ends_with("(at link.l.delay = \"10 ms\")"), "{error}");
    }

    #[test]
    fn the_text_of_a_sweep_reads_as_the_same_sweep() {
        let axes = "[[sweep]]\ncombine = \"zip\"\nlink.l.rate = [\"1 Mbit/s\"]\n[[sweep]]\n\
                    \"flow.*.cc\" = { values = [0.5], as = \"cubic(beta={})\" }\n";
        let first = sweep(axes).expect("valid");
        let again = Sweep::from_toml(first.to_toml(), "", &[] as &[&str], None, &NoEnvironment);
        assert_eq!(again.expect("valid").to_toml(), first.to_toml());
    }

    #[test]
    fn a_key_that_only_an_axis_gives_may_be_missing() {
        let text = BASE.replace("cc = \"reno\"\n", "");
        let text = format!("{text}[sweep]\n\"flow.*.cc\" = [\"reno\"]\n");
        let sweep = Sweep::from_toml(&text, "", &[] as &[&str], None, &NoEnvironment);
        let experiment = sweep.expect("valid").experiment(&[json!("reno")], &NoEnvironment);
        assert_eq!(experiment.expect("valid").flows[0].cc, "reno");
    }

    #[test]
    fn an_assignment_of_what_an_axis_sets_is_refused_in_all_spellings() {
        let text =
            format!("{BASE}[sweep]\nlink.l.rate = [\"1 Mbit/s\"]\n\"flow.*.cc\" = [\"bbr\"]\n");
        for (key, axis) in [
            ("link.*.rate", "link.l.rate"),
            ("link[0].rate", "link.l.rate"),
            ("link.l.rate", "link.l.rate"),
            ("flow[0].cc", "flow.*.cc"),
            ("flow.flow-1.cc", "flow.*.cc"),
        ] {
            let set = [format!("{key}=9")];
            let error = Sweep::from_toml(&text, "a.toml", &set, None, &NoEnvironment);
            let error = error.expect_err(key).to_string();
            let start = format!("a.toml: {key}: the axis {axis} sets it at every point; ");
            assert!(error.lines().any(|line| line.starts_with(&start)), "{error}");
        }
        let set = ["link.*.delay=5 ms"];
        Sweep::from_toml(&text, "", &set, None, &NoEnvironment).expect("no axis sets the delay");
    }

    proptest! {
        #[test]
        fn no_table_makes_the_reader_panic(
            keys in prop::collection::vec("(combine|points|seed|duration|\"link.l.(rate|queue)\")", 1..4),
            values in prop::collection::vec(
                "(\\[(\"1 ms\",|2,|-1e309,)*\\]|\\{ from = (0|-1e308|\"1 B\"), to = (9|1e308|\"2 B\")(, points = [0-3])?(, \
                 scale = \"log\")? \\}|\"grid\"|\"zip\"|\"random\"|[0-9])", 3,
            ),
        ) {
            let lines = keys.iter().zip(&values).map(|(key, value)| format!("{key} = {value}\n"));
            let Ok(sweep) = sweep(&format!("[sweep]\n{}", lines.collect::<String>())) else {
                return Ok(());
            };
            let values: Vec<_> = sweep.axes().map(|axis| axis.draw(0.999).value).collect();
            let _ = (sweep.seeds(None), sweep.experiment(&values, &NoEnvironment));
        }
    }
}
