//! Experiment files: reading, checking, resolving. Values cross the border as JSON.

use dumbbell_experiment::algorithm::{Custom, of_linux};
use dumbbell_experiment::quantity::{self, DIMENSIONS, Dimension};
use dumbbell_experiment::{
    Axis, AxisValue, Column, CustomAlgorithm, Diagnostics, EXPERIMENT, Environment, FLOW, Key,
    LINK, Sweep, Table, work,
};
use dumbbell_exports::mahimahi::trace;
use dumbbell_sim::Scenario;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;

create_exception!(
    dumbbell._core,
    InvalidExperimentError,
    PyValueError,
    "What is wrong with an experiment: a list of (file, line or 0, key, problem)."
);

fn invalid(Diagnostics(errors): Diagnostics) -> PyErr {
    let errors = errors.into_iter().map(|error| {
        let line = error.position.map_or(0, |position| position.line);
        (error.file, line, error.key, error.problem)
    });
    InvalidExperimentError::new_err((errors.collect::<Vec<_>>(),))
}

fn value_error(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn value(json: &str) -> PyResult<Value> {
    serde_json::from_str(json).map_err(value_error)
}

/// An experiment, valid as it is.
#[pyclass(frozen, module = "dumbbell._core")]
pub struct ParsedExperiment(dumbbell_experiment::Experiment);

#[pymethods]
impl ParsedExperiment {
    /// Reads the text of a file; assignments such as "duration=10 s" take precedence over it.
    ///
    /// Raises InvalidExperimentError.
    #[staticmethod]
    fn from_toml(text: &str, name: &str, overrides: Vec<String>) -> PyResult<ParsedExperiment> {
        let read = dumbbell_experiment::Experiment::from_toml(text, name, &overrides);
        read.map(ParsedExperiment).map_err(invalid)
    }

    /// Reads JSON.
    ///
    /// Raises InvalidExperimentError.
    #[staticmethod]
    fn from_json(json: &str) -> PyResult<ParsedExperiment> {
        let read = dumbbell_experiment::Experiment::from_value(&value(json)?);
        read.map(ParsedExperiment).map_err(invalid)
    }

    /// The experiment with such assignments laid over it; errors have no lines.
    ///
    /// Raises InvalidExperimentError.
    fn overridden(&self, overrides: Vec<String>) -> PyResult<ParsedExperiment> {
        self.0.overridden(&overrides).map(ParsedExperiment).map_err(invalid)
    }

    /// The experiment with its traces and algorithms where `environment` has them: its methods
    /// locate_trace(path) and locate_algorithm(cc) return them as its other methods take them.
    fn located(&self, environment: Bound<'_, PyAny>) -> ParsedExperiment {
        ParsedExperiment(self.0.clone().located(&PythonEnvironment(environment)))
    }

    /// Every key, as JSON.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.0).map_err(value_error)
    }

    /// The text of a file; with or without the keys that have their default.
    fn to_toml(&self, defaults: bool) -> String {
        self.0.to_toml(defaults)
    }

    /// The experiment with every default written out. The methods of `environment`, trace(path) and
    /// algorithm(cc), raise ValueError.
    ///
    /// Raises InvalidExperimentError.
    fn resolve(&self, environment: Bound<'_, PyAny>) -> PyResult<ParsedExperiment> {
        let resolved = self.0.resolve(&PythonEnvironment(environment));
        resolved.map(ParsedExperiment).map_err(invalid)
    }

    /// What the simulator takes for one seed of a resolved experiment, as JSON.
    fn scenario(&self, seed: u64) -> PyResult<String> {
        serde_json::to_string(&self.0.scenario(seed)).map_err(value_error)
    }

    /// For each link of a resolved experiment its name, and its rate as a trace of mahimahi; None if
    /// it has no rate.
    fn mahimahi_traces(&self) -> Vec<(String, Option<String>)> {
        let Scenario { links, duration_ns, .. } = self.0.scenario(0);
        links.into_iter().map(|link| (link.name.clone(), trace(&link, duration_ns))).collect()
    }

    /// Sentences on flows that ignore marks and, if the experiment is simulated, on settings that have no effect then.
    fn warnings(&self, is_simulated: bool) -> Vec<String> {
        self.0.warnings(is_simulated)
    }

    /// For each flow of the file, the names of its copies.
    fn flow_names(&self) -> Vec<Vec<String>> {
        self.0.flow_names()
    }

    /// Payload bytes of a full packet of each flow.
    fn payloads(&self) -> Vec<u16> {
        self.0.payloads()
    }
}

/// A number in the unit of an axis, or a text.
#[derive(IntoPyObject)]
pub enum PythonColumn {
    Number(f64),
    Text(String),
}

/// A value of an axis: what its key is set to, as JSON, and its column.
type PythonValue = (String, PythonColumn);

fn python_value(AxisValue { value, column }: AxisValue) -> PythonValue {
    let column = match column {
        Column::Number(number) => PythonColumn::Number(number),
        Column::Text(text) => PythonColumn::Text(text),
    };
    (value.to_string(), column)
}

/// An experiment with axes, valid with the first values of the axes.
#[pyclass(frozen, module = "dumbbell._core")]
pub struct ParsedSweep(Sweep);

#[pymethods]
impl ParsedSweep {
    /// Whether the text of a file has a [sweep] table.
    #[staticmethod]
    fn is_in(text: &str) -> bool {
        Sweep::is_in(text)
    }

    /// Reads the text of a file; assignments take precedence over it, and axes, as JSON, take the
    /// place of its table [sweep].
    ///
    /// Raises InvalidExperimentError.
    #[staticmethod]
    fn from_toml(
        text: &str,
        name: &str,
        overrides: Vec<String>,
        axes: Option<&str>,
        environment: Bound<'_, PyAny>,
    ) -> PyResult<ParsedSweep> {
        let axes = axes.map(value).transpose()?;
        let read = Sweep::from_toml(text, name, &overrides, axes, &PythonEnvironment(environment));
        read.map(ParsedSweep).map_err(invalid)
    }

    /// The tables: how the axes are combined, how many points are drawn, the seed from which they
    /// are drawn, and the number of axes.
    fn blocks(&self) -> Vec<(&'static str, u64, u64, usize)> {
        let blocks = self.0.blocks.iter();
        blocks.map(|one| (one.combine, one.points, one.seed, one.axes.len())).collect()
    }

    /// The axes of all tables: the key, the name that the file gives, and the unit of the column,
    /// None for text.
    fn axes(&self) -> Vec<(String, String, Option<&'static str>)> {
        self.0.axes().map(|axis| (axis.key.clone(), axis.name.clone(), axis.unit)).collect()
    }

    /// Every value of an axis, in order.
    fn values(&self, axis: usize) -> PyResult<Vec<PythonValue>> {
        Ok(self.axis(axis)?.all().into_iter().map(python_value).collect())
    }

    /// The value at a share of the way along an axis, from 0 to less than 1.
    fn draw(&self, axis: usize, share: f64) -> PyResult<PythonValue> {
        Ok(python_value(self.axis(axis)?.draw(share)))
    }

    /// The seeds that every point is run with: these, as JSON, or else the file's.
    ///
    /// Raises InvalidExperimentError.
    fn seeds(&self, seeds: Option<&str>) -> PyResult<Vec<u64>> {
        self.0.seeds(seeds.map(value).transpose()?.as_ref()).map_err(invalid)
    }

    /// The experiment with these values of the axes, as JSON: the scenario for seed 0, as JSON; the
    /// resolved experiment, as JSON, if scenarios for other seeds differ in more than their seed;
    /// its work in packets; and its warnings.
    ///
    /// Raises InvalidExperimentError.
    fn point(
        &self,
        values: Vec<String>,
        environment: Bound<'_, PyAny>,
    ) -> PyResult<(String, Option<String>, f64, Vec<String>)> {
        let values: Vec<_> = values.iter().map(|json| value(json)).collect::<PyResult<_>>()?;
        let experiment = self.0.experiment(&values, &PythonEnvironment(environment));
        let experiment = experiment.map_err(invalid)?;
        let scenario = experiment.scenario(0);
        let text = serde_json::to_string(&scenario).map_err(value_error)?;
        let varied = experiment.varies_with_seed().then(|| serde_json::to_string(&experiment));
        let varied = varied.transpose().map_err(value_error)?;
        Ok((text, varied, work(&scenario), experiment.warnings(true)))
    }

    /// The text of a file that reads as the same sweep.
    fn to_toml(&self) -> &str {
        self.0.to_toml()
    }
}

impl ParsedSweep {
    fn axis(&self, number: usize) -> PyResult<&Axis> {
        self.0.axes().nth(number).ok_or_else(|| value_error("there is no such axis"))
    }
}

/// The files and the algorithms of Python.
struct PythonEnvironment<'py>(Bound<'py, PyAny>);

impl<'py> PythonEnvironment<'py> {
    fn call(&self, method: &str, argument: &str) -> Result<Bound<'py, PyAny>, String> {
        self.0.call_method1(method, (argument,)).map_err(|error| self.message(error))
    }

    /// What a method that does not raise returns.
    fn located(&self, method: &str, text: &str) -> String {
        let found = self.call(method, text).ok().and_then(|found| found.extract().ok());
        found.unwrap_or_else(|| text.to_owned())
    }

    fn message(&self, error: PyErr) -> String {
        error.value(self.0.py()).to_string()
    }
}

impl Environment for PythonEnvironment<'_> {
    fn locate_trace(&self, path: &str) -> String {
        self.located("locate_trace", path)
    }

    fn locate_algorithm(&self, cc: &str) -> String {
        self.located("locate_algorithm", cc)
    }

    fn trace(&self, path: &str) -> Result<String, String> {
        self.call("trace", path)?.extract::<String>().map_err(|error| self.message(error))
    }

    fn algorithm(&self, cc: &str) -> Result<CustomAlgorithm, String> {
        let found = self.call("algorithm", cc)?;
        let (name, digest) =
            found.extract::<(String, String)>().map_err(|error| self.message(error))?;
        Ok(CustomAlgorithm { name, digest })
    }
}

/// The module or file, the class, and the options of an algorithm.
type PythonAlgorithm = (String, String, Vec<(String, String)>);

/// An algorithm that is not built in; None for a built-in one.
///
/// Raises ValueError.
#[pyfunction]
pub fn custom_algorithm(cc: &str) -> PyResult<Option<PythonAlgorithm>> {
    let custom = Custom::parse(cc).transpose().map_err(value_error)?;
    Ok(custom.map(|custom| (custom.home, custom.class, custom.options)))
}

/// The kernel's name of an algorithm written `linux:NAME`, or the path of its object; None for
/// others.
#[pyfunction]
pub fn linux_algorithm(cc: &str) -> Option<&str> {
    of_linux(cc)
}

/// Checks one "link" or "flow", as JSON; returns it with every key.
///
/// Raises InvalidExperimentError.
#[pyfunction]
pub fn check_table(kind: &str, json: &str) -> PyResult<String> {
    let checked = dumbbell_experiment::check_table(table(kind)?, &value(json)?);
    checked.map(|table| table.to_string()).map_err(invalid)
}

fn table(kind: &str) -> PyResult<&'static Table> {
    let found = [&EXPERIMENT, &LINK, &FLOW].into_iter().find(|table| table.name == kind);
    found.ok_or_else(|| value_error(format!("there is no table \"{kind}\"")))
}

/// The keys of an "experiment", "link" or "flow": name, what it is, and its default as JSON, which
/// is empty if there is none.
#[pyfunction]
pub fn keys(kind: &str) -> PyResult<Vec<(&'static str, &'static str, String)>> {
    let keys = table(kind)?.keys.iter();
    let default = |key: &Key| key.default.value().map_or(String::new(), |value| value.to_string());
    Ok(keys.map(|key| (key.name, key.about, default(key))).collect())
}

/// The JSON Schema of experiment files.
#[pyfunction]
pub fn experiment_schema() -> String {
    format!("{:#}", dumbbell_experiment::schema())
}

/// What a key, an algorithm, an AQM or an option is.
///
/// Raises ValueError if there is none of that name.
#[pyfunction]
pub fn explain(topic: &str) -> PyResult<String> {
    dumbbell_experiment::explain(topic).map_err(value_error)
}

/// An experiment file to begin with.
#[pyfunction]
pub fn starter() -> &'static str {
    dumbbell_experiment::STARTER
}

fn dimension(name: &str) -> PyResult<&'static Dimension> {
    let found = DIMENSIONS.iter().find(|dimension| dimension.name == name);
    found.copied().ok_or_else(|| value_error(format!("there is no dimension \"{name}\"")))
}

/// Reads a quantity of a dimension, in base units.
///
/// Raises ValueError.
#[pyfunction]
pub fn parse_quantity(json: &str, kind: &str, zero: bool) -> PyResult<u64> {
    let (dimension, value) = (dimension(kind)?, value(json)?);
    let parse = if zero { Dimension::parse_or_zero } else { Dimension::parse };
    parse(dimension, &value).map_err(value_error)
}

/// Writes a whole number of base units.
#[pyfunction]
pub fn format_quantity(amount: u64, kind: &str) -> PyResult<String> {
    Ok(dimension(kind)?.format(amount))
}

/// Reads a probability.
///
/// Raises ValueError.
#[pyfunction]
pub fn parse_probability(json: &str) -> PyResult<f64> {
    quantity::parse_probability(&value(json)?).map_err(value_error)
}

/// Reads pairs of time and rate: ns and bit/s.
///
/// Raises ValueError.
#[pyfunction]
pub fn parse_rates(json: &str) -> PyResult<Vec<(u64, u64)>> {
    dumbbell_experiment::timeline::parse_rates(&value(json)?).map_err(value_error)
}
