//! The simulator as the Python module `dumbbell._core`: a thin binding, no logic.

mod own;
mod run;
mod table;
mod testbed;
mod udt;

use pyo3::prelude::*;

/// The simulator of dumbbell. Use the package `dumbbell`, not this module.
#[pymodule]
mod _core {
    use dumbbell_cc::{Algorithm, NAMES};
    use dumbbell_tcp::{Scheduler, Stack};
    use dumbbell_udt::TransportOptions;
    use dumbbell_units::Time;
    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::own::facts::{
        Ack, CongestionEvent, ConnectionConfig, Path, PeerReport, RateSample, Round, SendState,
        Sent, Subflow,
    };
    #[pymodule_export]
    use crate::run::{Capture, Outcome, ScenarioError, Watch, simulate};
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::testbed::{die_with_parent, isolate, run_testbed};
    #[pymodule_export]
    use crate::udt::{
        TransferDamagedError, TransferRefusedError, TransferWatch, UdtListener, UdtSocket,
        udt_bench, udt_key, udt_pull, udt_push, udt_serve,
    };

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// The names of the congestion control algorithms.
    #[pyfunction]
    fn algorithms() -> Vec<&'static str> {
        NAMES.to_vec()
    }

    /// Raises ValueError, in one sentence, unless `text` is an algorithm with valid options.
    #[pyfunction]
    fn check_algorithm(text: &str) -> PyResult<()> {
        let init = dumbbell_cc::ConnectionConfig {
            now: Time::ZERO,
            mss: 1448,
            initial_window: 10.0,
            seed: 0,
        };
        match Algorithm::parse(text, &init) {
            Ok(_) => Ok(()),
            Err(error) => Err(PyValueError::new_err(error.to_string())),
        }
    }

    /// Raises ValueError, in one sentence, unless `json` holds all fields of a TCP stack.
    #[pyfunction]
    fn check_stack(json: &str) -> PyResult<()> {
        // By way of a value, whose errors do not count lines and columns.
        let stack = serde_json::from_str(json).and_then(serde_json::from_value::<Stack>);
        stack.map(|_| ()).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The names of the schedulers of multipath connections, the default first.
    #[pyfunction]
    fn schedulers() -> Vec<&'static str> {
        Scheduler::NAMES.to_vec()
    }

    /// Raises ValueError, in one sentence, unless `json` holds all options of UDT, in range.
    #[pyfunction]
    fn check_udt_options(json: &str) -> PyResult<()> {
        let options =
            serde_json::from_str(json).and_then(serde_json::from_value::<TransportOptions>);
        let options = options.map_err(|error| PyValueError::new_err(error.to_string()))?;
        options.check().map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The options of UDT and their defaults for an algorithm: name -> value.
    #[pyfunction]
    fn udt_options<'py>(py: Python<'py>, cc: &str) -> PyResult<Bound<'py, PyAny>> {
        let options = serde_json::to_value(TransportOptions::for_algorithm(cc));
        let options = options.map_err(|error| PyValueError::new_err(error.to_string()))?;
        py.import("json")?.call_method1("loads", (options.to_string(),))
    }

    /// The named sets of TCP behaviours: name -> field -> value.
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
