//! The Python module `dumbbell._core`: bindings to experiment files, the simulator, the
//! testbed and UDT, without logic.

mod custom;
mod experiment;
mod exports;
mod run;
mod table;
mod testbed;
mod udt;

use pyo3::prelude::*;

/// For large pages (`MADV_HUGEPAGE`): with thousands of flows a packet otherwise waits for the addresses
/// of several pages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Internal module: use the package `dumbbell`.
#[pymodule]
mod _core {
    use dumbbell_cc::{NAMES, OPTIONAL_NAMES};
    use dumbbell_experiment::{algorithm, bulk, options, quic, rtp};
    use dumbbell_tcp::{Scheduler, Stack};
    use dumbbell_udt::TransportOptions;
    use pyo3::exceptions::PyValueError;
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::custom::types::{
        Ack, CongestionEvent, ConnectionConfig, Path, RateSample, RoundStats, SendState, Sent,
        Subflow, UdtReport,
    };
    #[pymodule_export]
    use crate::experiment::{
        InvalidExperimentError, ParsedExperiment, ParsedSweep, check_table, custom_algorithm,
        experiment_schema, explain, format_quantity, keys, linux_algorithm, parse_probability,
        parse_quantity, parse_rates, starter,
    };
    #[pymodule_export]
    use crate::exports::qlog;
    #[pymodule_export]
    use crate::run::{Capture, RunMonitor, RunOutput, ScenarioError, simulate};
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::testbed::{die_with_parent, isolate, measure_steal, run_testbed};
    #[pymodule_export]
    use crate::udt::transfer::{
        TransferDamagedError, TransferMonitor, TransferRefusedError, udt_bench,
        udt_check_algorithm, udt_key, udt_list, udt_manifest, udt_pull, udt_push, udt_read_key,
        udt_serve, udt_write_key,
    };
    #[pymodule_export]
    use crate::udt::{UdtListener, UdtSocket};

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");

    /// Names of the built-in congestion control algorithms.
    #[pyfunction]
    fn algorithms() -> Vec<&'static str> {
        NAMES.to_vec()
    }

    /// Those of them that the laboratory's page leaves out.
    #[pyfunction]
    fn algorithms_not_in_page() -> Vec<&'static str> {
        OPTIONAL_NAMES.to_vec()
    }

    /// Checks the name and the options of an algorithm.
    ///
    /// Raises ValueError with a message for the user.
    #[pyfunction]
    fn check_algorithm(text: &str) -> PyResult<()> {
        let checked = algorithm::check(&text.into());
        checked.map(drop).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Whether an algorithm needs what only a UDT receiver reports.
    #[pyfunction]
    fn needs_udt(cc: &str) -> bool {
        algorithm::needs_udt(cc)
    }

    /// Names of the schedulers of multipath connections, the default first.
    #[pyfunction]
    fn schedulers() -> Vec<&'static str> {
        Scheduler::NAMES.to_vec()
    }

    /// Default values of UDT's options for an algorithm: name -> value.
    #[pyfunction]
    fn udt_options<'py>(py: Python<'py>, cc: &str) -> PyResult<Bound<'py, PyAny>> {
        let options = options::udt_options(&TransportOptions::for_algorithm(cc));
        loads(py, &serde_json::json!(options))
    }

    /// Default values of QUIC's options: name -> value.
    #[pyfunction]
    fn quic_options(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let options = quic::quic_options(&quic::QuicOptions::default());
        loads(py, &serde_json::json!(options))
    }

    /// The bulk transfer protocols: name, what it is, and the default values of its options.
    #[pyfunction]
    fn bulk_transports(
        py: Python<'_>,
    ) -> PyResult<Vec<(&'static str, &'static str, Bound<'_, PyAny>)>> {
        let transports = bulk::BULK_TRANSPORTS.iter().map(|transport| {
            let name = transport.name;
            let defaults = bulk::overlay_bulk(name, &dumbbell_experiment::Options::new())
                .map_err(|_| PyValueError::new_err("the defaults are valid"))?;
            let defaults = bulk::bulk_options(name, &defaults);
            Ok((name, transport.about, loads(py, &serde_json::json!(defaults))?))
        });
        transports.collect()
    }

    /// The QUIC stacks: name, what it is, and its own algorithms.
    #[pyfunction]
    fn quic_stacks() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
        let stacks = quic::QUIC_STACKS.iter().map(|stack| {
            let algorithms = stack.algorithms.iter().map(|(name, _)| *name).collect();
            (stack.name, stack.about, algorithms)
        });
        stacks.collect()
    }

    /// The names of the algorithms of media.
    #[pyfunction]
    fn media_algorithms() -> Vec<&'static str> {
        dumbbell_rtp::ALGORITHMS.iter().map(|(name, _)| *name).collect()
    }

    /// The options of media over RTP, with their defaults.
    #[pyfunction]
    fn rtp_options(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let options = rtp::rtp_options(&dumbbell_rtp::RtpOptions::default());
        loads(py, &serde_json::json!(options))
    }

    /// The predefined TCP stacks: name -> option -> value.
    #[pyfunction]
    fn stacks(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let named = |name: &&str| Some(((*name).to_owned(), Stack::named(name)?));
        let stacks = Stack::NAMES.iter().filter_map(named);
        let stacks =
            stacks.map(|(name, stack)| (name, serde_json::json!(options::stack_options(&stack))));
        loads(py, &stacks.collect())
    }

    fn loads<'py>(py: Python<'py>, value: &serde_json::Value) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (value.to_string(),))
    }
}
