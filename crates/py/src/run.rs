//! Running a scenario from Python.

use crate::table::Table;
use arrow_schema::ArrowError;
use dumbbell_sim::{Scenario, ScenarioError};
use pyo3::exceptions::{PyInterruptedError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Lets another thread see how far a simulation is, and stop it.
#[pyclass(frozen, module = "dumbbell._core")]
#[derive(Default)]
pub struct Watch {
    /// The bits of the share that is done.
    done: AtomicU64,
    stopped: AtomicBool,
}

#[pymethods]
impl Watch {
    /// A watch over a simulation that has not begun.
    #[new]
    fn new() -> Watch {
        Watch::default()
    }

    /// The share of the simulated time that has passed, from 0 to 1.
    #[getter]
    fn done(&self) -> f64 {
        f64::from_bits(self.done.load(Ordering::Relaxed))
    }

    /// Stops the simulation, which then raises InterruptedError.
    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

impl Watch {
    fn tell(&self, done: f64) -> ControlFlow<()> {
        self.done.store(done.to_bits(), Ordering::Relaxed);
        match self.stopped.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// What came of a simulation: tables for anything that reads Arrow, and a few numbers.
#[pyclass(frozen, module = "dumbbell._core")]
pub struct Outcome {
    #[pyo3(get)]
    flows: Py<Table>,
    #[pyo3(get)]
    series: Py<Table>,
    #[pyo3(get)]
    links: Py<Table>,
    #[pyo3(get)]
    internals: Py<Table>,
    #[pyo3(get)]
    meta: Py<PyDict>,
}

impl Outcome {
    fn new(py: Python<'_>, outcome: dumbbell_sim::Outcome) -> PyResult<Outcome> {
        let meta = PyDict::new(py);
        meta.set_item("data_packets", outcome.data_packets)?;
        meta.set_item("events", outcome.events)?;
        meta.set_item("version", env!("CARGO_PKG_VERSION"))?;
        let table = |table: Result<Table, ArrowError>| match table {
            Ok(table) => Py::new(py, table),
            Err(error) => Err(PyRuntimeError::new_err(error.to_string())),
        };
        Ok(Outcome {
            flows: table(Table::new(outcome.flows.into_columns()))?,
            series: table(Table::new(outcome.series.into_columns()))?,
            links: table(Table::new(outcome.links.into_columns()))?,
            internals: table(Table::new(outcome.internals.into_columns()))?,
            meta: meta.unbind(),
        })
    }
}

/// Runs a scenario, given as JSON, without holding the interpreter's lock.
///
/// Raises ValueError if the scenario is not valid, InterruptedError if `watch` was stopped.
#[pyfunction]
#[pyo3(signature = (scenario, watch=None))]
pub fn simulate(py: Python<'_>, scenario: &str, watch: Option<&Watch>) -> PyResult<Outcome> {
    let go_on = |done| watch.map_or(ControlFlow::Continue(()), |watch| watch.tell(done));
    let outcome = py.detach(|| Scenario::from_json(scenario)?.run_while(go_on));
    match outcome.map_err(|error: ScenarioError| PyValueError::new_err(error.to_string()))? {
        Some(outcome) => Outcome::new(py, outcome),
        None => Err(PyInterruptedError::new_err("the simulation was stopped")),
    }
}
