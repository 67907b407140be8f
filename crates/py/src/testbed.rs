//! Runs a scenario with real packets.

use crate::run::RunOutput;
use pyo3::{Py, PyAny, PyResult, Python, pyfunction};

#[cfg(target_os = "linux")]
pub use linux::{die_with_parent, isolate, measure_steal, run_testbed};
#[cfg(not(target_os = "linux"))]
pub use others::{die_with_parent, isolate, measure_steal, run_testbed};

#[cfg(target_os = "linux")]
mod linux {
    use super::{Py, PyAny, PyResult, Python, RunOutput, pyfunction};
    use crate::run::with_endpoints;
    use dumbbell_sim::Scenario;
    use dumbbell_testbed::{Health, MAX_STEAL, Stall, StealMeter, TestbedError};
    use pyo3::PyErr;
    use pyo3::exceptions::{PyInterruptedError, PyOSError, PyValueError};
    use pyo3::types::{PyBytes, PyDict, PyDictMethods};
    use std::collections::BTreeMap;
    use std::ops::ControlFlow;
    use std::time::Duration;

    fn raise(error: &TestbedError) -> PyErr {
        match error {
            TestbedError::Stopped => PyInterruptedError::new_err(error.to_string()),
            TestbedError::Scenario(_) | TestbedError::Unsupported { .. } => {
                PyValueError::new_err(error.to_string())
            }
            _ => PyOSError::new_err(error.to_string()),
        }
    }

    /// Puts later children of this process into a new process namespace, in which `run_testbed`
    /// works; without privileges, into a new user namespace as well.
    ///
    /// Raises OSError with the remedy if the machine does not allow it.
    #[pyfunction]
    pub fn isolate() -> PyResult<()> {
        dumbbell_testbed::isolate().map_err(|error| raise(&error))
    }

    /// Makes the kernel kill this process when its parent ends.
    #[pyfunction]
    pub fn die_with_parent() -> PyResult<()> {
        Ok(dumbbell_testbed::die_with_parent()?)
    }

    /// Steal time over the next `ms` milliseconds as a fraction of all processors' time, and the
    /// limit beyond which a run with real packets is invalid; None if the system does not report it.
    #[pyfunction]
    pub fn measure_steal(py: Python<'_>, ms: u64) -> Option<(f64, f64)> {
        let meter = StealMeter::start();
        py.detach(|| std::thread::sleep(Duration::from_millis(ms)));
        Some((meter.steal()?, MAX_STEAL))
    }

    /// Runs a scenario, given as JSON, with the kernel's TCP in real time, without the GIL.
    ///
    /// `at_once` runs share the machine. Calls `progress` with the completed fraction (0 to 1) at
    /// every sample; an exception in it stops the run. Returns the result, measurements of the
    /// machine, and of logged flows what their senders and their receivers saw, as pcapng files.
    ///
    /// Raises ValueError if the scenario is not valid or not possible with real packets, OSError if
    /// the machine lacks a feature or a permission, InterruptedError if the run was stopped.
    #[pyfunction]
    pub fn run_testbed<'py>(
        py: Python<'py>,
        scenario: &str,
        progress: Py<PyAny>,
        at_once: usize,
    ) -> PyResult<(RunOutput, pyo3::Bound<'py, PyDict>, Vec<pyo3::Bound<'py, PyBytes>>)> {
        let report_progress = |done: f64| {
            let called = Python::attach(|py| progress.call1(py, (done,)).map(|_| ()));
            if called.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let done = py.detach(|| {
            let scenario = Scenario::from_json_with(scenario, &with_endpoints(BTreeMap::new()))?;
            let output = dumbbell_testbed::run(&scenario, at_once, report_progress)?;
            Ok((scenario, output))
        });
        let (scenario, output) = done.map_err(|error: TestbedError| raise(&error))?;
        let health = health_dict(py, &output.health)?;
        health.set_item("complaints", output.warnings)?;
        let captures = output.captures.iter().flatten().map(|file| PyBytes::new(py, file));
        let captures = captures.collect();
        Ok((RunOutput::new(py, Some(scenario), output.tables)?, health, captures))
    }

    fn health_dict<'py>(py: Python<'py>, health: &Health) -> PyResult<pyo3::Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("late_mean_s", health.lateness.mean())?;
        dict.set_item("late_p99_s", health.lateness.quantile(0.99))?;
        dict.set_item("late_max_s", health.max_lateness.as_secs_f64())?;
        dict.set_item("late_max_at_s", health.max_lateness_at.as_secs_f64())?;
        let seconds = |stall: &Stall| (stall.end.as_secs_f64(), stall.length.as_secs_f64());
        dict.set_item("stalls_s", health.stalls.iter().map(seconds).collect::<Vec<_>>())?;
        dict.set_item("applications_late_p95_s", health.application_lateness.quantile(0.95))?;
        dict.set_item("device_drops", health.device_drops)?;
        dict.set_item("refused", health.write_errors)?;
        dict.set_item("steal", health.steal)?;
        dict.set_item("busy", health.emulator_busy)?;
        dict.set_item("realtime", health.realtime)?;
        dict.set_item("awake", health.cpu_latency_lock)?;
        dict.set_item("short_of_memory", health.tcp_memory_pressure)?;
        Ok(dict)
    }
}

#[cfg(not(target_os = "linux"))]
mod others {
    use super::{Py, PyAny, PyResult, Python, RunOutput, pyfunction};
    use pyo3::exceptions::PyOSError;

    const NEEDS: &str = "the testbed needs Linux; run it there, or in the simulator";

    /// Raises OSError: not available on this operating system.
    #[pyfunction]
    pub fn isolate() -> PyResult<()> {
        Err(PyOSError::new_err(NEEDS))
    }

    /// Raises OSError: not available on this operating system.
    #[pyfunction]
    pub fn die_with_parent() -> PyResult<()> {
        Err(PyOSError::new_err(NEEDS))
    }

    /// None: not available on this operating system.
    #[pyfunction]
    pub fn measure_steal(_ms: u64) -> Option<(f64, f64)> {
        None
    }

    /// Raises OSError: not available on this operating system.
    #[pyfunction]
    pub fn run_testbed(
        _py: Python<'_>,
        _scenario: &str,
        _progress: Py<PyAny>,
        _at_once: usize,
    ) -> PyResult<(RunOutput, Py<PyAny>, Vec<Vec<u8>>)> {
        Err(PyOSError::new_err(NEEDS))
    }
}
