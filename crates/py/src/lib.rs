//! The Python module `dumbbell._core`: bindings to the simulator, the testbed and UDT, without
//! logic.

mod custom;
mod run;
mod table;
mod testbed;
mod udt;

use pyo3::prelude::*;

/// Internal module: use the package `dumbbell`.
#[pymodule]
mod _core {
    use dumbbell_cc::{Algorithm, NAMES};
    use dumbbell_tcp::{Scheduler, Stack};
    use dumbbell_udt::TransportOptions;
    use dumbbell_units::Time;
    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::custom::types::{
        Ack, CongestionEvent, ConnectionConfig, Path, RateSample, RoundStats, SendState, Sent,
        Subflow, UdtReport,
    };
    #[pymodule_export]
    use crate::run::{Capture, RunMonitor, RunOutput, ScenarioError, simulate};
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::testbed::{die_with_parent, isolate, run_testbed};
    #[pymodule_export]
    use crate::udt::{
        TransferDamagedError, TransferMonitor, TransferRefusedError, UdtListener, UdtSocket,
        udt_bench, udt_key, udt_pull, udt_push, udt_serve,
    };

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// Names of the built-in congestion control algorithms.
    #[pyfunction]
    fn algorithms() -> Vec<&'static str> {
        NAMES.to_vec()
    }

    /// Checks the name and the options of a built-in algorithm.
    ///
    /// Raises ValueError with a message for the user.
    #[pyfunction]
    fn check_algorithm(text: &str) -> PyResult<()> {
        let init = dumbbell_cc::ConnectionConfig::new(Time::ZERO, 1448);
        match Algorithm::parse(text, &init) {
            Ok(_) => Ok(()),
            Err(error) => Err(PyValueError::new_err(error.to_string())),
        }
    }

    /// Checks that `json` has all fields of a TCP stack.
    ///
    /// Raises ValueError with a message for the user.
    #[pyfunction]
    fn check_stack(json: &str) -> PyResult<()> {
        // Errors of `from_value` do not mention lines and columns, which users never see.
        let stack = serde_json::from_str(json).and_then(serde_json::from_value::<Stack>);
        stack.map(|_| ()).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Names of the schedulers of multipath connections, the default first.
    #[pyfunction]
    fn schedulers() -> Vec<&'static str> {
        Scheduler::NAMES.to_vec()
    }

    /// Checks that `json` has all options of UDT, each in its range.
    ///
    /// Raises ValueError with a message for the user.
    #[pyfunction]
    fn check_udt_options(json: &str) -> PyResult<()> {
        let options =
            serde_json::from_str(json).and_then(serde_json::from_value::<TransportOptions>);
        let options = options.map_err(|error| PyValueError::new_err(error.to_string()))?;
        options.check().map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Default values of UDT's options for an algorithm: name -> value.
    #[pyfunction]
    fn udt_options<'py>(py: Python<'py>, cc: &str) -> PyResult<Bound<'py, PyAny>> {
        let options = serde_json::to_value(TransportOptions::for_algorithm(cc));
        let options = options.map_err(|error| PyValueError::new_err(error.to_string()))?;
        py.import("json")?.call_method1("loads", (options.to_string(),))
    }

    /// The predefined TCP stacks: name -> field -> value.
    #[pyfunction]
    fn stacks(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let stacks: serde_json::Map<String, serde_json::Value> = Stack::NAMES
            .iter()
            .filter_map(|name| {
                let stack = serde_json::to_value(Stack::named(name)?).ok()?;
                Some(((*name).to_owned(), stack))
            })
            .collect();
        py.import("json")?.call_method1("loads", (serde_json::Value::from(stacks).to_string(),))
    }
}
