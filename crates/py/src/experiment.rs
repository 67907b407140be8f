//! Experiment files: reading, checking, resolving. Values cross the border as JSON.

use dumbbell_experiment::quantity::{self, DIMENSIONS, Dimension};
use dumbbell_experiment::{
    CustomAlgorithm, Diagnostics, EXPERIMENT, Environment, FLOW, Key, LINK, Table,
};
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

    /// Every key, as JSON.
    fn to_json(&self) -> String {
        self.0.to_value().to_string()
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

    /// For each flow of the file, the names of its copies.
    fn flow_names(&self) -> Vec<Vec<String>> {
        self.0.flow_names()
    }

    /// Payload bytes of a full packet of each flow.
    fn payloads(&self) -> Vec<u16> {
        self.0.payloads()
    }
}

/// The files and the algorithms of Python.
struct PythonEnvironment<'py>(Bound<'py, PyAny>);

impl<'py> PythonEnvironment<'py> {
    fn call(&self, method: &str, argument: &str) -> Result<Bound<'py, PyAny>, String> {
        self.0.call_method1(method, (argument,)).map_err(|error| self.message(error))
    }

    fn message(&self, error: PyErr) -> String {
        error.value(self.0.py()).to_string()
    }
}

impl Environment for PythonEnvironment<'_> {
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

/// Checks one "link" or "flow", as JSON; returns it with every key.
///
/// Raises InvalidExperimentError.
#[pyfunction]
pub fn check_table(kind: &str, json: &str) -> PyResult<String> {
    let checked = dumbbell_experiment::check_table(table(kind)?, &value(json)?);
    checked.map(|table| table.to_string()).map_err(invalid)
}

/// Lays assignments such as "flow.*.cc=bbr" over the content of a file, as JSON.
///
/// Raises InvalidExperimentError.
#[pyfunction]
pub fn assign(json: &str, assignments: Vec<String>) -> PyResult<String> {
    let mut content = value(json)?;
    dumbbell_experiment::assign_all(&mut content, &assignments).map_err(invalid)?;
    Ok(content.to_string())
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

/// The dimension of a quantity; None for a plain number or one in %.
///
/// Raises ValueError if it is neither.
#[pyfunction]
pub fn dimension_of(json: &str) -> PyResult<Option<&'static str>> {
    let parsed = quantity::parse_quantity(&value(json)?).map_err(value_error)?;
    Ok(parsed.0.map(|dimension| dimension.name))
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

/// Reads the text of a trace: delivery opportunities in ms. `name` is the file in errors.
///
/// Raises ValueError.
#[pyfunction]
pub fn parse_trace(name: &str, text: &str) -> PyResult<Vec<u32>> {
    dumbbell_experiment::trace::parse_file(name, text).map_err(value_error)
}
