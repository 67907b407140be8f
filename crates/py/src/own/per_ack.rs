//! An algorithm that is told of every event.

use crate::own::facts;
use crate::own::speaker::{Speaker, overrides};
use dumbbell_cc::{Ack, CongestionControl, CongestionEvent, ControlParameters, Metric, Path, Sent};
use dumbbell_units::Time;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

pub struct PerAck {
    speaker: Speaker,
    on_ack: Py<PyAny>,
    /// The object that tells of acknowledgements, always the same, and the arguments that it is in.
    ack: Py<facts::Ack>,
    arguments: Py<PyTuple>,
    hears_sent: bool,
}

impl PerAck {
    pub fn new(mut speaker: Speaker, object: &Bound<'_, PyAny>, now: Time) -> PyResult<PerAck> {
        let py = object.py();
        let ack = Py::new(py, facts::Ack(Ack::default()))?;
        speaker.listen(object, "__init__", now)?;
        Ok(PerAck {
            on_ack: object.getattr("on_ack")?.unbind(),
            arguments: (speaker.path.clone_ref(py), ack.clone_ref(py)).into_pyobject(py)?.unbind(),
            ack,
            hears_sent: overrides(object, "on_sent")?,
            speaker,
        })
    }

    /// Calls a method with the path alone.
    fn tell(&mut self, path: &Path, method: &str) {
        self.speaker.speak(path, |speaker, object| {
            object.call_method1(method, (speaker.path.bind(object.py()),))?;
            speaker.listen(object, method, path.now)
        });
    }
}

impl CongestionControl for PerAck {
    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        self.speaker.speak(path, |speaker, object| {
            let py = object.py();
            self.ack.bind(py).try_borrow_mut()?.0 = *ack;
            self.on_ack.bind(py).call(self.arguments.bind(py), None)?;
            speaker.listen(object, "on_ack", path.now)
        });
    }

    fn on_congestion(&mut self, path: &Path, event: &CongestionEvent) {
        self.speaker.tell(path, "on_congestion", facts::CongestionEvent(*event));
    }

    fn control(&self) -> ControlParameters {
        self.speaker.control
    }

    fn on_established(&mut self, path: &Path) {
        self.tell(path, "on_established");
    }

    fn on_sent(&mut self, path: &Path, sent: &Sent) {
        if self.hears_sent {
            self.speaker.tell(path, "on_sent", facts::Sent(*sent));
        }
    }

    fn on_spurious_loss(&mut self, path: &Path) {
        self.tell(path, "on_spurious_loss");
    }

    fn on_timer(&mut self, path: &Path) {
        self.speaker.speak(path, |speaker, object| {
            let py = object.py();
            object.setattr(intern!(py, "timer"), py.None())?;
            object.call_method1("on_timer", (speaker.path.bind(py),))?;
            speaker.listen(object, "on_timer", path.now)
        });
    }

    fn next_timer(&self) -> Option<Time> {
        self.speaker.timer
    }

    fn uses_prr(&self) -> bool {
        self.speaker.uses_prr
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.speaker.inspect(show);
    }
}
