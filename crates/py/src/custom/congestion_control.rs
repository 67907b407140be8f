//! Adapter for `dumbbell.cc.CongestionControl`: a call per event.

use crate::custom::adapter::{PyAdapter, overrides};
use crate::custom::types;
use dumbbell_cc::{Ack, CongestionControl, CongestionEvent, ControlParameters, Metric, Path, Sent};
use dumbbell_units::Time;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

#[derive(Debug)]
pub struct PyCongestionControl {
    adapter: PyAdapter,
    on_ack: Py<PyAny>,
    /// The `Ack` object, reused for every acknowledgement.
    ack: Py<types::Ack>,
    /// The arguments of `on_ack`: the path and `ack`.
    arguments: Py<PyTuple>,
    overrides_on_sent: bool,
}

impl PyCongestionControl {
    pub fn new(
        mut adapter: PyAdapter,
        object: &Bound<'_, PyAny>,
        now: Time,
    ) -> PyResult<PyCongestionControl> {
        let py = object.py();
        let ack = Py::new(py, types::Ack(Ack::default()))?;
        adapter.read_control(object, "__init__", now)?;
        Ok(PyCongestionControl {
            on_ack: object.getattr("on_ack")?.unbind(),
            arguments: (adapter.path.clone_ref(py), ack.clone_ref(py)).into_pyobject(py)?.unbind(),
            ack,
            overrides_on_sent: overrides(object, "on_sent")?,
            adapter,
        })
    }

    /// Takes the method and its arguments from the adapter, after this was copied.
    fn bind(&mut self, py: Python<'_>) -> PyResult<()> {
        self.on_ack = self.adapter.object(py).getattr("on_ack")?.unbind();
        self.ack = Py::new(py, types::Ack(Ack::default()))?;
        let arguments = (self.adapter.path.clone_ref(py), self.ack.clone_ref(py));
        self.arguments = arguments.into_pyobject(py)?.unbind();
        Ok(())
    }

    /// Calls a method with the path as its only argument.
    fn notify(&mut self, path: &Path, method: &str) {
        self.adapter.call(path, |adapter, object| {
            object.call_method1(method, (adapter.path.bind(object.py()),))?;
            adapter.read_control(object, method, path.now)
        });
    }
}

impl Clone for PyCongestionControl {
    fn clone(&self) -> PyCongestionControl {
        Python::attach(|py| {
            let mut copy = PyCongestionControl {
                adapter: self.adapter.copy(py),
                on_ack: self.on_ack.clone_ref(py),
                ack: self.ack.clone_ref(py),
                arguments: self.arguments.clone_ref(py),
                overrides_on_sent: self.overrides_on_sent,
            };
            if let Err(error) = copy.bind(py) {
                copy.adapter.record_failure(py, error, Time::ZERO);
            }
            copy
        })
    }
}

impl CongestionControl for PyCongestionControl {
    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        self.adapter.call(path, |adapter, object| {
            let py = object.py();
            self.ack.bind(py).try_borrow_mut()?.0 = *ack;
            self.on_ack.bind(py).call(self.arguments.bind(py), None)?;
            adapter.read_control(object, "on_ack", path.now)
        });
    }

    fn on_congestion(&mut self, path: &Path, event: &CongestionEvent) {
        self.adapter.notify(path, "on_congestion", types::CongestionEvent(*event));
    }

    fn control(&self) -> ControlParameters {
        self.adapter.control
    }

    fn on_established(&mut self, path: &Path) {
        self.notify(path, "on_established");
    }

    fn on_sent(&mut self, path: &Path, sent: &Sent) {
        if self.overrides_on_sent {
            self.adapter.notify(path, "on_sent", types::Sent(*sent));
        }
    }

    fn on_spurious_loss(&mut self, path: &Path) {
        self.notify(path, "on_spurious_loss");
    }

    fn on_timer(&mut self, path: &Path) {
        self.adapter.call(path, |adapter, object| {
            let py = object.py();
            object.setattr(intern!(py, "timer"), py.None())?;
            object.call_method1("on_timer", (adapter.path.bind(py),))?;
            adapter.read_control(object, "on_timer", path.now)
        });
    }

    fn next_timer(&self) -> Option<Time> {
        self.adapter.timer
    }

    fn uses_prr(&self) -> bool {
        self.adapter.uses_prr
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.adapter.inspect(show);
    }
}
