//! Runs a scenario in the simulator.

use crate::custom::{CustomClasses, FirstException, factories};
use crate::table::Table;
use arrow_schema::ArrowError;
use dumbbell_cc::AlgorithmFactory;
use dumbbell_sim::{
    CapturePoint, Factories, PacketLog, Scenario, ScenarioError as Invalid, SenderLog,
};
use pyo3::create_exception;
use pyo3::exceptions::{PyInterruptedError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

create_exception!(
    dumbbell._core,
    ScenarioError,
    PyValueError,
    "A scenario that cannot be simulated, in one sentence."
);

/// How long a simulation with custom algorithms holds the GIL: longer than Python's switch interval
/// of 5 ms. A thread that has waited so long demands the GIL, and the release waits until it has it. If
/// it was released more often, waiting threads would be woken, come too late and never demand it.
const GIL_HOLD: Duration = Duration::from_millis(20);

/// Progress and stop request of a simulation, for use by other threads.
#[pyclass(frozen, module = "dumbbell._core")]
#[derive(Default)]
pub struct RunMonitor {
    /// Bit pattern of the completed fraction, an f64.
    done: AtomicU64,
    stopped: AtomicBool,
}

#[pymethods]
impl RunMonitor {
    /// A monitor for a simulation that has not started.
    #[new]
    fn new() -> RunMonitor {
        RunMonitor::default()
    }

    /// Completed fraction of the simulated time, 0 to 1.
    #[getter]
    fn done(&self) -> f64 {
        f64::from_bits(self.done.load(Ordering::Relaxed))
    }

    /// Requests a stop; the simulation then raises InterruptedError.
    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

impl RunMonitor {
    pub(crate) fn update(&self, done: f64) -> ControlFlow<()> {
        self.done.store(done.to_bits(), Ordering::Relaxed);
        match self.stopped.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Result of a run: Arrow tables, metadata and the captured packets.
#[pyclass(frozen, module = "dumbbell._core")]
pub struct RunOutput {
    #[pyo3(get)]
    flows: Py<Table>,
    #[pyo3(get)]
    series: Py<Table>,
    #[pyo3(get)]
    links: Py<Table>,
    #[pyo3(get)]
    internals: Py<Table>,
    #[pyo3(get)]
    subflows: Py<Table>,
    #[pyo3(get)]
    subflow_series: Py<Table>,
    #[pyo3(get)]
    subflow_internals: Py<Table>,
    #[pyo3(get)]
    transfers: Py<Table>,
    #[pyo3(get)]
    frames: Py<Table>,
    #[pyo3(get)]
    segments: Py<Table>,
    #[pyo3(get)]
    meta: Py<PyDict>,
    #[pyo3(get)]
    capture: Option<Py<Capture>>,
}

/// Captured packets of the flows with `log = true`.
#[pyclass(frozen, module = "dumbbell._core")]
pub struct Capture {
    packets: PacketLog,
    scenario: Scenario,
    logs: Vec<SenderLog>,
}

#[pymethods]
impl Capture {
    /// Writes the packets as the hosts of one side, "sender" or "receiver", saw them to a pcapng
    /// file.
    ///
    /// Raises ValueError for another side, OSError if the file cannot be written.
    fn write(&self, py: Python<'_>, path: PathBuf, side: &str) -> PyResult<()> {
        let side = match side {
            "sender" => CapturePoint::Sender,
            "receiver" => CapturePoint::Receiver,
            _ => return Err(PyValueError::new_err("a side is \"sender\" or \"receiver\"")),
        };
        py.detach(|| {
            let mut file = BufWriter::new(File::create(path)?);
            self.packets
                .write_pcapng(side, &self.scenario, &mut file)
                .map_err(std::io::Error::other)?;
            file.flush()
        })?;
        Ok(())
    }

    /// The indices of the flows whose senders wrote a log of their own.
    #[getter]
    fn logs(&self) -> Vec<u32> {
        self.logs.iter().map(|(flow, _)| *flow).collect()
    }

    /// Writes the log of a flow's sender to a file.
    ///
    /// Raises ValueError if there is none, OSError if the file cannot be written.
    fn write_log(&self, py: Python<'_>, path: PathBuf, flow: u32) -> PyResult<()> {
        let log = self.logs.iter().find(|(of, _)| *of == flow);
        let (_, log) = log.ok_or_else(|| PyValueError::new_err("the flow has no log"))?;
        py.detach(|| {
            let mut file = BufWriter::new(File::create(path)?);
            log.copy_to(&mut file)?;
            file.flush()
        })?;
        Ok(())
    }
}

impl RunOutput {
    /// The tables of a run, and of a scenario with logged flows its packets.
    pub(crate) fn new(
        py: Python<'_>,
        logged: Option<Scenario>,
        output: dumbbell_sim::RunOutput,
    ) -> PyResult<RunOutput> {
        let (packets, logs) = (output.packets, output.logs);
        let capture = match logged.filter(|_| !packets.records().is_empty()) {
            Some(scenario) => Some(Py::new(py, Capture { packets, scenario, logs })?),
            None => None,
        };
        let meta = PyDict::new(py);
        if !output.failures.is_empty() {
            let failures = output.failures.into_iter();
            let failures = failures.map(|one| (one.flow, one.at.as_secs_f64(), one.why));
            meta.set_item("failures", failures.collect::<Vec<_>>())?;
        }
        meta.set_item("data_packets", output.data_packets)?;
        meta.set_item("events", output.events)?;
        meta.set_item("version", env!("CARGO_PKG_VERSION"))?;
        let table = |table: Result<Table, ArrowError>| match table {
            Ok(table) => Py::new(py, table),
            Err(error) => Err(PyRuntimeError::new_err(error.to_string())),
        };
        Ok(RunOutput {
            flows: table(Table::new(output.flows.into_columns()))?,
            series: table(Table::new(output.series.into_columns()))?,
            links: table(Table::new(output.links.into_columns()))?,
            internals: table(Table::new(output.internals.into_columns()))?,
            subflows: table(Table::new(output.subflows.into_columns()))?,
            subflow_series: table(Table::new(output.subflow_series.into_columns()))?,
            subflow_internals: table(Table::new(output.subflow_internals.into_columns()))?,
            transfers: table(Table::new(output.transfers.into_columns()))?,
            frames: table(Table::new(output.frames.into_columns()))?,
            segments: table(Table::new(output.segments.into_columns()))?,
            meta: meta.unbind(),
            capture,
        })
    }
}

/// Runs a scenario, given as JSON, in the simulator.
///
/// The keys of `custom` are the texts of the flows' `cc`, the values are (class, options). Without
/// custom algorithms the simulation releases the GIL. With them it holds the GIL for some samples,
/// because acquiring it per event would cost more than the event.
///
/// Raises ScenarioError if the scenario is not valid, InterruptedError if `monitor` was stopped, and
/// the first exception of a custom algorithm.
#[pyfunction]
#[pyo3(signature = (scenario, monitor=None, custom=None))]
pub fn simulate(
    py: Python<'_>,
    scenario: &str,
    monitor: Option<&RunMonitor>,
    custom: Option<CustomClasses>,
) -> PyResult<RunOutput> {
    let progress = |done| monitor.map_or(ControlFlow::Continue(()), |monitor| monitor.update(done));
    let failure = FirstException::default();
    let done = match custom.filter(|custom| !custom.is_empty()) {
        None => {
            let factories = with_endpoints(BTreeMap::new());
            py.detach(|| run(Scenario::from_json_with(scenario, &factories), progress))
        }
        Some(custom) => {
            let factories = with_endpoints(factories(custom, &failure));
            let mut held_since = Instant::now();
            run(Scenario::from_json_with(scenario, &factories), |done| {
                if failure.is_set() {
                    return ControlFlow::Break(());
                }
                if held_since.elapsed() >= GIL_HOLD {
                    py.detach(|| ());
                    held_since = Instant::now();
                }
                progress(done)
            })
        }
    };
    if let Some(error) = failure.take() {
        return Err(error);
    }
    match done.map_err(|error: Invalid| ScenarioError::new_err(error.to_string()))? {
        (logged, Some(output)) => RunOutput::new(py, logged, output),
        (_, None) => Err(PyInterruptedError::new_err("the simulation was stopped")),
    }
}

/// Custom algorithms, and the endpoints that are not the simulator's own.
pub(crate) fn with_endpoints(algorithms: BTreeMap<String, AlgorithmFactory>) -> Factories {
    let endpoints = [("quic", dumbbell_quic::endpoints()), ("rtp", dumbbell_rtp::endpoints())];
    let endpoints = endpoints.map(|(name, factory)| (name.to_owned(), factory));
    let endpoints = dumbbell_bulk::sim::endpoints().chain(endpoints).collect();
    Factories { algorithms, endpoints }
}

/// Runs; keeps the scenario only if flows are logged.
fn run(
    scenario: Result<Scenario, Invalid>,
    progress: impl FnMut(f64) -> ControlFlow<()>,
) -> Result<(Option<Scenario>, Option<dumbbell_sim::RunOutput>), Invalid> {
    let scenario = scenario?;
    let prepared = scenario.prepare()?;
    let logged = scenario.flows.iter().any(|flow| flow.log).then_some(scenario);
    Ok((logged, prepared.run_while(progress)))
}
