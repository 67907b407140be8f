//! Running a scenario with real packets from Python.

use crate::run::Outcome;
use pyo3::{Py, PyAny, PyResult, Python, pyfunction};

#[cfg(target_os = "linux")]
pub use linux::{die_with_parent, isolate, run_testbed};
#[cfg(not(target_os = "linux"))]
pub use others::{die_with_parent, isolate, run_testbed};

#[cfg(target_os = "linux")]
mod linux {
    use super::{Outcome, Py, PyAny, PyResult, Python, pyfunction};
    use dumbbell_sim::Scenario;
    use dumbbell_testbed::{Health, TestbedError};
    use pyo3::PyErr;
    use pyo3::exceptions::{PyInterruptedError, PyOSError, PyValueError};
    use pyo3::types::{PyDict, PyDictMethods};
    use std::ops::ControlFlow;

    fn raise(error: &TestbedError) -> PyErr {
        match error {
            TestbedError::Stopped => PyInterruptedError::new_err(error.to_string()),
            TestbedError::Scenario(_) | TestbedError::Unsupported { .. } => {
                PyValueError::new_err(error.to_string())
            }
            _ => PyOSError::new_err(error.to_string()),
        }
    }

    /// Puts the children that this process will have into a process namespace of their own, in
    /// which `run_testbed` works, without rights within a user namespace.
    ///
    /// Raises OSError, in one sentence, if the machine does not allow it.
    #[pyfunction]
    pub fn isolate() -> PyResult<()> {
        dumbbell_testbed::isolate().map_err(|error| raise(&error))
    }

    /// From now on the process is killed when whoever started it is gone.
    #[pyfunction]
    pub fn die_with_parent() -> PyResult<()> {
        Ok(dumbbell_testbed::die_with_parent()?)
    }

    /// Runs a scenario, given as JSON, with the kernel's TCP in real time, without holding the
    /// interpreter's lock. `tell` is called at every sample with the share that is done. Gives the
    /// outcome, and how the machine did.
    ///
    /// Raises ValueError if the scenario is not valid, OSError if the machine cannot.
    #[pyfunction]
    pub fn run_testbed<'py>(
        py: Python<'py>,
        scenario: &str,
        tell: Py<PyAny>,
    ) -> PyResult<(Outcome, pyo3::Bound<'py, PyDict>)> {
        let go_on = |done: f64| {
            let told = Python::attach(|py| tell.call1(py, (done,)).map(|_| ()));
            if told.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let done = py.detach(|| {
            let scenario = Scenario::from_json(scenario)?;
            let outcome = dumbbell_testbed::run(&scenario, go_on)?;
            Ok((scenario, outcome))
        });
        let (scenario, outcome) = done.map_err(|error: TestbedError| raise(&error))?;
        let health = report(py, &outcome.health)?;
        health.set_item("complaints", outcome.complaints)?;
        Ok((Outcome::new(py, scenario, outcome.tables)?, health))
    }

    fn report<'py>(py: Python<'py>, health: &Health) -> PyResult<pyo3::Bound<'py, PyDict>> {
        let report = PyDict::new(py);
        report.set_item("late_mean_s", health.lateness.mean())?;
        report.set_item("late_p99_s", health.lateness.quantile(0.99))?;
        report.set_item("late_max_s", health.latest.as_secs_f64())?;
        report.set_item("late_max_at_s", health.latest_at.as_secs_f64())?;
        report.set_item("applications_late_p95_s", health.applications.quantile(0.95))?;
        report.set_item("device_drops", health.device_drops)?;
        report.set_item("refused", health.refused)?;
        report.set_item("steal", health.steal)?;
        report.set_item("busy", health.busy)?;
        report.set_item("realtime", health.realtime)?;
        report.set_item("awake", health.awake)?;
        report.set_item("short_of_memory", health.short_of_memory)?;
        Ok(report)
    }
}

#[cfg(not(target_os = "linux"))]
mod others {
    use super::{Outcome, Py, PyAny, PyResult, Python, pyfunction};
    use pyo3::exceptions::PyOSError;

    const NEEDS: &str = "the testbed needs Linux; run it there, or in the simulator";

    /// Raises OSError: this is not Linux.
    #[pyfunction]
    pub fn isolate() -> PyResult<()> {
        Err(PyOSError::new_err(NEEDS))
    }

    /// Raises OSError: this is not Linux.
    #[pyfunction]
    pub fn die_with_parent() -> PyResult<()> {
        Err(PyOSError::new_err(NEEDS))
    }

    /// Raises OSError: this is not Linux.
    #[pyfunction]
    pub fn run_testbed(
        _py: Python<'_>,
        _scenario: &str,
        _tell: Py<PyAny>,
    ) -> PyResult<(Outcome, Py<PyAny>)> {
        Err(PyOSError::new_err(NEEDS))
    }
}
