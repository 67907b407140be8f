//! A rule for growing and a rule for shrinking a window, in the frame of the built-in ones.

use crate::own::facts;
use crate::own::speaker::{Speaker, overrides};
use dumbbell_cc::{Ack, CongestionEvent, Metric, Path, WindowRule};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// More packets than any window has.
const MOST: f64 = 1e15;

pub struct Rule {
    speaker: Speaker,
    increase: Py<PyAny>,
    ack: Py<facts::Ack>,
    /// The path and the acknowledgement.
    arguments: Py<PyTuple>,
    observes: bool,
    /// The path of the last event, for methods that are told of none.
    last: Path,
}

impl Rule {
    pub fn new(speaker: Speaker, object: &Bound<'_, PyAny>) -> PyResult<Rule> {
        let py = object.py();
        let ack = Py::new(py, facts::Ack(Ack::default()))?;
        let last = speaker.path.borrow(py).0.clone();
        Ok(Rule {
            increase: object.getattr("increase")?.unbind(),
            arguments: (speaker.path.clone_ref(py), ack.clone_ref(py)).into_pyobject(py)?.unbind(),
            ack,
            observes: overrides(object, "observe")?,
            speaker,
            last,
        })
    }

    fn tell(&mut self, method: &str) {
        self.speaker.speak(&self.last, |_, object| object.call_method0(method).map(drop));
    }
}

impl WindowRule for Rule {
    fn increase(&mut self, cwnd: f64, acked: f64, path: &Path, ack: &Ack) -> f64 {
        let grown = self.speaker.speak(path, |speaker, object| {
            let py = object.py();
            self.ack.bind(py).try_borrow_mut()?.0 = *ack;
            let arguments = (cwnd, acked, speaker.path.bind(py), self.ack.bind(py));
            let answer = self.increase.bind(py).call1(arguments)?;
            match answer.extract::<f64>() {
                Ok(grown) if (1.0..=MOST).contains(&(cwnd + grown)) => Ok(grown),
                _ => Err(speaker.mistake(py, "increase", "the increase", answer, path.now)),
            }
        });
        grown.unwrap_or(0.0)
    }

    fn decrease(&mut self, cwnd: f64, path: &Path, event: &CongestionEvent) -> f64 {
        self.last.clone_from(path);
        let left = self.speaker.speak(path, |speaker, object| {
            let py = object.py();
            let arguments = (cwnd, speaker.path.bind(py), facts::CongestionEvent(*event));
            let answer = object.call_method1("decrease", arguments)?;
            match answer.extract::<f64>() {
                Ok(left) if left.is_finite() && left >= 0.0 => Ok(left),
                _ => Err(speaker.mistake(py, "decrease", "what is left", answer, path.now)),
            }
        });
        left.unwrap_or(1.0)
    }

    fn observe(&mut self, path: &Path, ack: &Ack) {
        if self.observes {
            self.speaker.speak(path, |_, object| {
                let py = object.py();
                self.ack.bind(py).try_borrow_mut()?.0 = *ack;
                object.getattr("observe")?.call(self.arguments.bind(py), None).map(drop)
            });
        }
    }

    fn on_timeout(&mut self) {
        self.tell("on_timeout");
    }

    fn on_undo(&mut self) {
        self.tell("on_undo");
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.speaker.inspect(show);
    }
}
