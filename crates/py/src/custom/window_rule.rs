//! Adapter for `dumbbell.cc.WindowRule`: increase and decrease inside `Windowed`.

use crate::custom::adapter::{MAX_WINDOW, PyAdapter, overrides};
use crate::custom::types;
use dumbbell_cc::{Ack, CongestionEvent, Metric, Path, WindowRule};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

#[derive(Debug)]
pub struct PyWindowRule {
    adapter: PyAdapter,
    increase: Py<PyAny>,
    ack: Py<types::Ack>,
    /// The arguments of `observe`: the path and `ack`.
    arguments: Py<PyTuple>,
    overrides_observe: bool,
    /// The path at the last event, for methods without a path argument.
    last_path: Path,
}

impl PyWindowRule {
    pub fn new(adapter: PyAdapter, object: &Bound<'_, PyAny>) -> PyResult<PyWindowRule> {
        let py = object.py();
        let ack = Py::new(py, types::Ack(Ack::default()))?;
        let last = adapter.path.borrow(py).0.clone();
        Ok(PyWindowRule {
            increase: object.getattr("increase")?.unbind(),
            arguments: (adapter.path.clone_ref(py), ack.clone_ref(py)).into_pyobject(py)?.unbind(),
            ack,
            overrides_observe: overrides(object, "observe")?,
            adapter,
            last_path: last,
        })
    }

    /// Takes the method and its arguments from the adapter, after this was copied.
    fn bind(&mut self, py: Python<'_>) -> PyResult<()> {
        self.increase = self.adapter.object(py).getattr("increase")?.unbind();
        self.ack = Py::new(py, types::Ack(Ack::default()))?;
        let arguments = (self.adapter.path.clone_ref(py), self.ack.clone_ref(py));
        self.arguments = arguments.into_pyobject(py)?.unbind();
        Ok(())
    }

    fn notify(&mut self, method: &str) {
        self.adapter.call(&self.last_path, |_, object| object.call_method0(method).map(drop));
    }
}

impl Clone for PyWindowRule {
    fn clone(&self) -> PyWindowRule {
        Python::attach(|py| {
            let mut copy = PyWindowRule {
                adapter: self.adapter.copy(py),
                increase: self.increase.clone_ref(py),
                ack: self.ack.clone_ref(py),
                arguments: self.arguments.clone_ref(py),
                overrides_observe: self.overrides_observe,
                last_path: self.last_path.clone(),
            };
            if let Err(error) = copy.bind(py) {
                copy.adapter.record_failure(py, error, self.last_path.now);
            }
            copy
        })
    }
}

impl WindowRule for PyWindowRule {
    fn increase(&mut self, cwnd: f64, acked: f64, path: &Path, ack: &Ack) -> f64 {
        let increase = self.adapter.call(path, |adapter, object| {
            let py = object.py();
            self.ack.bind(py).try_borrow_mut()?.0 = *ack;
            let arguments = (cwnd, acked, adapter.path.bind(py), self.ack.bind(py));
            let returned = self.increase.bind(py).call1(arguments)?;
            match returned.extract::<f64>() {
                Ok(increase) if (1.0..=MAX_WINDOW).contains(&(cwnd + increase)) => Ok(increase),
                _ => Err(adapter.invalid_value(py, "increase", "the increase", returned, path.now)),
            }
        });
        increase.unwrap_or(0.0)
    }

    fn decrease(&mut self, cwnd: f64, path: &Path, event: &CongestionEvent) -> f64 {
        self.last_path.clone_from(path);
        let window = self.adapter.call(path, |adapter, object| {
            let py = object.py();
            let arguments = (cwnd, adapter.path.bind(py), types::CongestionEvent(*event));
            let returned = object.call_method1("decrease", arguments)?;
            match returned.extract::<f64>() {
                Ok(window) if (0.0..=cwnd.max(2.0)).contains(&window) => Ok(window),
                _ => {
                    Err(adapter.invalid_value(py, "decrease", "the new window", returned, path.now))
                }
            }
        });
        window.unwrap_or(1.0)
    }

    fn observe(&mut self, path: &Path, ack: &Ack) {
        if self.overrides_observe {
            self.adapter.call(path, |_, object| {
                let py = object.py();
                self.ack.bind(py).try_borrow_mut()?.0 = *ack;
                object.getattr("observe")?.call(self.arguments.bind(py), None).map(drop)
            });
        }
    }

    fn lowers_ssthresh(&self) -> bool {
        true
    }

    fn on_timeout(&mut self) {
        self.notify("on_timeout");
    }

    fn on_undo(&mut self, _path: &Path) {
        self.notify("on_undo");
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.adapter.inspect(show);
    }
}
