//! Custom algorithms: Python classes as algorithms of the simulator.
//!
//! The attribute `_tier` of a class selects its adapter: a call per event, a call per round, or a
//! window rule. Events without a call run no Python code.

mod adapter;
mod congestion_control;
mod exception;
mod round_control;
pub mod types;
mod window_rule;

use adapter::PyAdapter;
use congestion_control::PyCongestionControl;
use dumbbell_cc::{
    AlgorithmFactory, AnySlowStart, ConnectionConfig, CustomAlgorithm, Options, Windowed,
};
use exception::user_error;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use round_control::PyRoundControl;
use std::collections::BTreeMap;
use window_rule::PyWindowRule;

pub use exception::{FallbackControl, FirstException};

/// Class and constructor options of each custom algorithm, by the text of the flows' `cc`.
pub type CustomClasses = BTreeMap<String, (Py<PyType>, Py<PyDict>)>;

/// Factories of the algorithms; exceptions in them are recorded in `failure`.
pub fn factories(
    classes: CustomClasses,
    failure: &FirstException,
) -> BTreeMap<String, AlgorithmFactory> {
    let factory = |(name, (class, options)): (String, (Py<PyType>, Py<PyDict>))| {
        let (owned_name, failure) = (name.clone(), failure.clone());
        let make = move |init: &ConnectionConfig| {
            Python::attach(|py| {
                let algorithm =
                    create(class.bind(py), options.bind(py), &owned_name, init, &failure);
                algorithm.unwrap_or_else(|error| {
                    failure.record(py, error, &owned_name, init.now);
                    Box::new(FallbackControl)
                })
            })
        };
        (name, AlgorithmFactory::boxed(make))
    };
    classes.into_iter().map(factory).collect()
}

fn create(
    class: &Bound<'_, PyType>,
    options: &Bound<'_, PyDict>,
    name: &str,
    init: &ConnectionConfig,
    failure: &FirstException,
) -> PyResult<Box<dyn CustomAlgorithm>> {
    let object = class.call((types::ConnectionConfig(*init),), Some(options))?;
    let tier: String = object.getattr("_tier")?.extract()?;
    let adapter = PyAdapter::new(&object, name, init, failure)?;
    Ok(match tier.as_str() {
        "rule" => {
            let slow_start = slow_start(&object, name)?;
            Box::new(Windowed::new(PyWindowRule::new(adapter, &object)?, slow_start, init))
        }
        "round" => Box::new(PyRoundControl::new(adapter, &object, init.now)?),
        _ => Box::new(PyCongestionControl::new(adapter, &object, init.now)?),
    })
}

/// The slow start selected by the class attribute `slow_start`, as by the option of built-in
/// algorithms.
fn slow_start(object: &Bound<'_, PyAny>, name: &str) -> PyResult<AnySlowStart> {
    let chosen: String = object.getattr("slow_start")?.extract()?;
    // The class name in "file.py:MyCC(gain=2)", for error messages.
    let class = name.rsplit_once(':').map_or(name, |(_, class)| class);
    let class = class.split_once('(').map_or(class, |(class, _)| class);
    let options = format!("{class}(slow_start={chosen})").parse::<Options>();
    options
        .and_then(|mut options| AnySlowStart::from_options(&mut options, AnySlowStart::STANDARD))
        .map_err(|error| user_error(object.py(), &error.to_string()))
}
