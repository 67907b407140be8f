//! Speaking with an object in Python: telling it what happened and reading its answer.

use crate::own::facts;
use crate::own::failure::{Failure, Silent, mistake};
use dumbbell_cc::{ConnectionConfig, ControlParameters, Metric, Path};
use dumbbell_units::{Rate, Time};
use pyo3::intern;
use pyo3::prelude::*;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// An algorithm in Python, the facts that it sees, and its last answer.
pub struct Speaker {
    object: Py<PyAny>,
    /// Shown with every event, always the same object.
    pub path: Py<facts::Path>,
    name: String,
    failure: Failure,
    failed: bool,
    inspects: bool,
    timed: bool,
    pub uses_prr: bool,
    pub control: ControlParameters,
    pub timer: Option<Time>,
}

impl Speaker {
    pub fn new(
        object: &Bound<'_, PyAny>,
        name: &str,
        init: &ConnectionConfig,
        failure: &Failure,
    ) -> PyResult<Speaker> {
        let path = facts::Path(Path::new(init.mss, init.now));
        Ok(Speaker {
            path: Py::new(object.py(), path)?,
            name: name.to_owned(),
            failure: failure.clone(),
            failed: false,
            inspects: overrides(object, "inspect")?,
            timed: object.hasattr("on_timer")? && overrides(object, "on_timer")?,
            uses_prr: object.getattr("uses_prr")?.extract()?,
            control: Silent::CONTROL,
            timer: None,
            object: object.clone().unbind(),
        })
    }

    /// Speaks with the object about a path; `None` if it fails, or did before.
    pub fn speak<T>(
        &mut self,
        path: &Path,
        say: impl FnOnce(&mut Speaker, &Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        if self.failed {
            return None;
        }
        Python::attach(|py| {
            let object = self.object.clone_ref(py).into_bound(py);
            let said = self.show(py, path).and_then(|()| say(self, &object));
            said.map_err(|error| self.fail(py, error, path.now)).ok()
        })
    }

    /// Calls a method with the path and a fact about it, and reads the answer.
    pub fn tell<F>(&mut self, path: &Path, method: &str, fact: F)
    where
        F: for<'py> IntoPyObject<'py>,
    {
        self.speak(path, |speaker, object| {
            object.call_method1(method, (speaker.path.bind(object.py()), fact))?;
            speaker.listen(object, method, path.now)
        });
    }

    /// Brings the path that the object sees up to date.
    fn show(&self, py: Python<'_>, path: &Path) -> PyResult<()> {
        self.path.bind(py).try_borrow_mut()?.0.clone_from(path);
        Ok(())
    }

    fn fail(&mut self, py: Python<'_>, error: PyErr, now: Time) {
        self.failed = true;
        self.control = Silent::CONTROL;
        self.timer = None;
        self.failure.record(py, error, &self.name, now);
    }

    /// Reads the answer that the object holds after `method`.
    pub fn listen(&mut self, object: &Bound<'_, PyAny>, method: &str, now: Time) -> PyResult<()> {
        let py = object.py();
        let cwnd = object.getattr(intern!(py, "cwnd"))?;
        let cwnd = self.number(&cwnd, method, "cwnd", now)?;
        if !(cwnd >= 1.0 && cwnd.is_finite()) {
            return Err(self.mistake(py, method, "cwnd", cwnd, now));
        }
        let ssthresh = object.getattr(intern!(py, "ssthresh"))?;
        let ssthresh = self.number(&ssthresh, method, "ssthresh", now)?;
        if ssthresh.is_nan() || ssthresh < 1.0 {
            return Err(self.mistake(py, method, "ssthresh", ssthresh, now));
        }
        let pacing_rate = object.getattr(intern!(py, "pacing_rate"))?;
        let pacing_rate = match pacing_rate.is_none() {
            true => None,
            false => Some(self.number(&pacing_rate, method, "pacing_rate", now)?),
        };
        if let Some(rate) = pacing_rate.filter(|rate| !(*rate > 0.0 && rate.is_finite())) {
            return Err(self.mistake(py, method, "pacing_rate", rate, now));
        }
        let pacing_rate = pacing_rate.map(Rate::from_bytes_per_sec);
        self.control = ControlParameters { cwnd, ssthresh, pacing_rate, min_send_quantum: None };
        if self.timed {
            let timer = object.getattr(intern!(py, "timer"))?;
            self.timer = match timer.is_none() {
                true => None,
                false => Some(self.time(&timer, method, now)?),
            };
        }
        Ok(())
    }

    /// The time that a timer is set to. One that `on_timer` sets to the present would never let
    /// time pass.
    fn time(&self, timer: &Bound<'_, PyAny>, method: &str, now: Time) -> PyResult<Time> {
        let at = self.number(timer, method, "timer", now)?;
        // From a float to an integer: what is negative is 0, at once.
        let due = Time::from_nanos((at * 1e9) as u64);
        if at.is_nan() || method == "on_timer" && due <= now {
            return Err(self.mistake(timer.py(), method, "timer", at, now));
        }
        Ok(due)
    }

    fn number(
        &self,
        value: &Bound<'_, PyAny>,
        method: &str,
        what: &str,
        now: Time,
    ) -> PyResult<f64> {
        value.extract().map_err(|_| self.mistake(value.py(), method, what, value, now))
    }

    /// That `what` is not what it can be after `method`.
    pub fn mistake(
        &self,
        py: Python<'_>,
        method: &str,
        what: &str,
        value: impl std::fmt::Display,
        now: Time,
    ) -> PyErr {
        let valid = match what {
            "cwnd" => "a window is a finite number of packets, 1 or more",
            "ssthresh" => "a threshold is a number of packets, 1 or more, or infinite",
            "pacing_rate" => "a pacing rate is a finite number of bytes/s above 0, or None",
            "timer" => "it is None or a time in s, after on_timer a later one than the present",
            "the increase" => "it is a finite number of packets that leaves a window of 1 or more",
            _ => "it is a finite number of packets, 0 or more",
        };
        let name = &self.name;
        mistake(py, &format!("{name}: {what} is {value} after {method}, at {now}; {valid}"))
    }

    /// Shows what the object's `inspect` gives.
    pub fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        if !self.inspects || self.failed {
            return;
        }
        Python::attach(|py| {
            let shown = self.object.bind(py).call_method0(intern!(py, "inspect"));
            let shown = shown.and_then(|shown| {
                shown.extract::<Vec<(String, f64)>>().or_else(|_| {
                    shown.call_method0("items")?.try_iter()?.map(|item| item?.extract()).collect()
                })
            });
            match shown {
                Ok(values) => values
                    .into_iter()
                    .for_each(|(name, value)| show(Metric { name: constant(name), value })),
                Err(error) => {
                    let now = self.path.borrow(py).0.now;
                    self.failure.record(py, error, &self.name, now);
                }
            }
        });
    }
}

/// Whether a class has a method of its own in the place of what `dumbbell.cc` gives it.
pub fn overrides(object: &Bound<'_, PyAny>, method: &str) -> PyResult<bool> {
    let home: String = object.getattr(method)?.getattr("__module__")?.extract()?;
    Ok(home != "dumbbell.cc")
}

/// Names of internals live as long as the program: there are a few, the same in every run.
fn constant(name: String) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name.as_str()) {
        return known;
    }
    let kept: &'static str = Box::leak(name.into_boxed_str());
    names.insert(kept);
    kept
}
