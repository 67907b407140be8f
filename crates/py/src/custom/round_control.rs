//! Adapter for `dumbbell.cc.RoundControl`: a call per round, and on congestion.

use crate::custom::adapter::{PyAdapter, overrides};
use crate::custom::types;
use dumbbell_cc::{
    Ack, CongestionControl, CongestionEvent, ControlParameters, Metric, Path, RoundAggregator,
    Signal,
};
use dumbbell_units::Time;
use pyo3::prelude::*;

#[derive(Debug)]
pub struct PyRoundControl {
    adapter: PyAdapter,
    rounds: RoundAggregator,
    overrides_on_congestion: bool,
}

impl PyRoundControl {
    pub fn new(
        mut adapter: PyAdapter,
        object: &Bound<'_, PyAny>,
        now: Time,
    ) -> PyResult<PyRoundControl> {
        adapter.read_control(object, "__init__", now)?;
        let hears_congestion = overrides(object, "on_congestion")?;
        Ok(PyRoundControl {
            adapter,
            rounds: RoundAggregator::default(),
            overrides_on_congestion: hears_congestion,
        })
    }
}

impl Clone for PyRoundControl {
    fn clone(&self) -> PyRoundControl {
        Python::attach(|py| PyRoundControl {
            adapter: self.adapter.copy(py),
            rounds: self.rounds,
            overrides_on_congestion: self.overrides_on_congestion,
        })
    }
}

impl CongestionControl for PyRoundControl {
    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        let Some(round) = self.rounds.update(path, ack) else { return };
        self.adapter.notify(path, "on_round", types::RoundStats(round));
    }

    fn on_congestion(&mut self, path: &Path, event: &CongestionEvent) {
        if self.overrides_on_congestion && (event.new_episode || event.signal == Signal::Timeout) {
            self.adapter.notify(path, "on_congestion", types::CongestionEvent(*event));
        }
    }

    fn control(&self) -> ControlParameters {
        self.adapter.control
    }

    fn on_established(&mut self, path: &Path) {
        self.rounds.begin(path);
    }

    fn uses_prr(&self) -> bool {
        self.adapter.uses_prr
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.adapter.inspect(show);
    }
}
