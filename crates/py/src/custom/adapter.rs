//! Calls the methods of an algorithm object in Python and reads its attributes.

use crate::custom::exception::{FallbackControl, FirstException, user_error};
use crate::custom::types;
use dumbbell_cc::{ConnectionConfig, ControlParameters, Metric, Path};
use dumbbell_units::{Rate, Time};
use pyo3::intern;
use pyo3::prelude::*;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Maximum window, packets. Larger ones have no fractions of a packet: an increase would be lost.
pub const MAX_WINDOW: f64 = 1e15;

/// Characters of a value that an error shows.
const MOST_SHOWN: usize = 40;

/// An algorithm object in Python, with its path and the control values read from it.
#[derive(Debug)]
pub struct PyAdapter {
    object: Py<PyAny>,
    /// The `Path` object, reused for every event.
    pub path: Py<types::Path>,
    name: String,
    failure: FirstException,
    has_failed: bool,
    overrides_inspect: bool,
    overrides_on_timer: bool,
    pub uses_prr: bool,
    pub control: ControlParameters,
    pub timer: Option<Time>,
}

impl PyAdapter {
    pub fn new(
        object: &Bound<'_, PyAny>,
        name: &str,
        init: &ConnectionConfig,
        failure: &FirstException,
    ) -> PyResult<PyAdapter> {
        let path = types::Path(Path::new(init.mss, init.now));
        Ok(PyAdapter {
            path: Py::new(object.py(), path)?,
            name: name.to_owned(),
            failure: failure.clone(),
            has_failed: false,
            overrides_inspect: overrides(object, "inspect")?,
            overrides_on_timer: object.hasattr("on_timer")? && overrides(object, "on_timer")?,
            // Rules leave the window in recovery to the transport.
            uses_prr: match object.getattr_opt("uses_prr")? {
                Some(uses_prr) => uses_prr.extract()?,
                None => true,
            },
            control: FallbackControl::CONTROL,
            timer: None,
            object: object.clone().unbind(),
        })
    }

    /// Updates the `Path` object and calls `f` with the algorithm object; `None` if `f` fails, or
    /// if the algorithm failed before.
    pub fn call<T>(
        &mut self,
        path: &Path,
        f: impl FnOnce(&mut PyAdapter, &Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        if self.has_failed {
            return None;
        }
        Python::attach(|py| {
            let object = self.object.clone_ref(py).into_bound(py);
            let result = self.update_path(py, path).and_then(|()| f(self, &object));
            result.map_err(|error| self.record_failure(py, error, path.now)).ok()
        })
    }

    /// Calls a method with the path and another argument, and reads the control values.
    pub fn notify<F>(&mut self, path: &Path, method: &str, argument: F)
    where
        F: for<'py> IntoPyObject<'py>,
    {
        self.call(path, |adapter, object| {
            object.call_method1(method, (adapter.path.bind(object.py()), argument))?;
            adapter.read_control(object, method, path.now)
        });
    }

    /// Copies the state of the path into the `Path` object.
    fn update_path(&self, py: Python<'_>, path: &Path) -> PyResult<()> {
        self.path.bind(py).try_borrow_mut()?.0.clone_from(path);
        Ok(())
    }

    /// An independent copy with a deep copy of the object. If copying raises, the exception is
    /// recorded and the copy has failed.
    pub fn copy(&self, py: Python<'_>) -> PyAdapter {
        let path = self.path.borrow(py).0.clone();
        let now = path.now;
        let mut copy = PyAdapter {
            object: self.object.clone_ref(py),
            path: self.path.clone_ref(py),
            name: self.name.clone(),
            failure: self.failure.clone(),
            ..*self
        };
        if let Err(error) = copy.copy_objects(py, path) {
            copy.record_failure(py, error, now);
        }
        copy
    }

    fn copy_objects(&mut self, py: Python<'_>, path: Path) -> PyResult<()> {
        self.path = Py::new(py, types::Path(path))?;
        let object = py.import("copy")?.call_method1("deepcopy", (&self.object,))?;
        self.object = object.unbind();
        Ok(())
    }

    /// The algorithm object.
    pub fn object<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        self.object.bind(py)
    }

    pub fn record_failure(&mut self, py: Python<'_>, error: PyErr, now: Time) {
        self.has_failed = true;
        self.control = FallbackControl::CONTROL;
        self.timer = None;
        self.failure.record(py, error, &self.name, now);
    }

    /// Reads the object's control attributes after a call of `method`.
    ///
    /// # Errors
    /// If a value is invalid.
    pub fn read_control(
        &mut self,
        object: &Bound<'_, PyAny>,
        method: &str,
        now: Time,
    ) -> PyResult<()> {
        let py = object.py();
        let cwnd = object.getattr(intern!(py, "cwnd"))?;
        let cwnd = self.extract_number(&cwnd, method, "cwnd", now)?;
        if !(1.0..=MAX_WINDOW).contains(&cwnd) {
            return Err(self.invalid_value(py, method, "cwnd", cwnd, now));
        }
        let ssthresh = object.getattr(intern!(py, "ssthresh"))?;
        let ssthresh = self.extract_number(&ssthresh, method, "ssthresh", now)?;
        if ssthresh.is_nan() || ssthresh < 1.0 {
            return Err(self.invalid_value(py, method, "ssthresh", ssthresh, now));
        }
        let pacing_rate = object.getattr(intern!(py, "pacing_rate"))?;
        let pacing_rate = match pacing_rate.is_none() {
            true => None,
            false => Some(self.extract_number(&pacing_rate, method, "pacing_rate", now)?),
        };
        if let Some(rate) = pacing_rate.filter(|rate| !(*rate > 0.0 && rate.is_finite())) {
            return Err(self.invalid_value(py, method, "pacing_rate", rate, now));
        }
        let pacing_rate = pacing_rate.map(Rate::from_bytes_per_sec);
        self.control =
            ControlParameters::new(cwnd).with_ssthresh(ssthresh).with_pacing_rate(pacing_rate);
        if self.overrides_on_timer {
            let timer = object.getattr(intern!(py, "timer"))?;
            self.timer = match timer.is_none() {
                true => None,
                false => Some(self.timer_expiry(&timer, method, now)?),
            };
        }
        Ok(())
    }

    /// The time that `timer` is set to. `on_timer` must set a later time than the current one,
    /// because the simulated time would not advance otherwise.
    fn timer_expiry(&self, timer: &Bound<'_, PyAny>, method: &str, now: Time) -> PyResult<Time> {
        let seconds = self.extract_number(timer, method, "timer", now)?;
        // The conversion from float saturates: a negative time is 0 and expires at once.
        let expiry = Time::from_nanos((seconds * 1e9) as u64);
        if seconds.is_nan() || method == "on_timer" && expiry <= now {
            return Err(self.invalid_value(timer.py(), method, "timer", seconds, now));
        }
        Ok(expiry)
    }

    fn extract_number(
        &self,
        value: &Bound<'_, PyAny>,
        method: &str,
        what: &str,
        now: Time,
    ) -> PyResult<f64> {
        value.extract().map_err(|_| self.invalid_value(value.py(), method, what, value, now))
    }

    /// The error for an invalid value of `what` after a call of `method`.
    pub fn invalid_value(
        &self,
        py: Python<'_>,
        method: &str,
        what: &str,
        value: impl std::fmt::Display,
        now: Time,
    ) -> PyErr {
        let valid = match what {
            "cwnd" => "a window is a number of packets from 1 to 1e15",
            "ssthresh" => "a threshold is a number of packets, 1 or more, or infinite",
            "pacing_rate" => "a pacing rate is a finite number of bytes/s above 0, or None",
            "timer" => {
                "a timer is None or a time in s; after on_timer, later than the current time"
            }
            _ if method == "inspect" => "inspect returns a dict of names and numbers",
            "the increase" => "an increase leaves a window of 1 to 1e15 packets",
            _ => "a decrease returns 0 packets or more, and at most the window before it (or 2)",
        };
        let (name, value) = (&self.name, short(value.to_string()));
        let text = format!("{name}: {what} is {value} after {method}, at {now}; {valid}");
        let internals = if method == "inspect" { String::new() } else { self.internals(py, now) };
        user_error(py, &(text + &internals))
    }

    /// What `inspect` shows now, for an error; empty if it shows nothing.
    fn internals(&self, py: Python<'_>, now: Time) -> String {
        if !self.overrides_inspect {
            return String::new();
        }
        let returned = self.object.bind(py).call_method0(intern!(py, "inspect"));
        let shown = returned.and_then(|returned| self.extract_metrics(&returned, now));
        let shown = shown.unwrap_or_default().into_iter();
        let values: Vec<_> =
            shown.map(|(name, value)| format!("{name} = {}", value as f32)).collect();
        match values.is_empty() {
            true => String::new(),
            false => format!("; inspect shows {}", values.join(", ")),
        }
    }

    /// Reports the values that the object's `inspect` returns.
    pub fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        if !self.overrides_inspect || self.has_failed {
            return;
        }
        Python::attach(|py| {
            let now = self.path.borrow(py).0.now;
            let returned = self.object.bind(py).call_method0(intern!(py, "inspect"));
            match returned.and_then(|returned| self.extract_metrics(&returned, now)) {
                Ok(values) => values
                    .into_iter()
                    .for_each(|(name, value)| show(Metric { name: intern_name(name), value })),
                Err(error) => self.failure.record(py, error, &self.name, now),
            }
        });
    }

    /// The names and values of what `inspect` returned.
    fn extract_metrics(
        &self,
        returned: &Bound<'_, PyAny>,
        now: Time,
    ) -> PyResult<Vec<(String, f64)>> {
        let invalid = |what: &str, value: &Bound<'_, PyAny>| {
            let value = value.repr().map_or_else(|_| "unprintable".into(), |text| text.to_string());
            self.invalid_value(returned.py(), "inspect", what, value, now)
        };
        let pairs = match returned.hasattr("items")? {
            true => returned.call_method0("items")?,
            false => returned.clone(),
        };
        let pairs = pairs.try_iter().map_err(|_| invalid("the return value", returned))?;
        pairs
            .map(|pair| {
                let pair = pair?;
                let (name, value) = pair
                    .extract::<(String, Bound<'_, PyAny>)>()
                    .map_err(|_| invalid("the return value", returned))?;
                let number = value.extract().map_err(|_| invalid(&name, &value))?;
                Ok((name, number))
            })
            .collect()
    }
}

/// Whether a class overrides a method of its base class in `dumbbell.cc`.
pub fn overrides(object: &Bound<'_, PyAny>, method: &str) -> PyResult<bool> {
    let module: String = object.getattr(method)?.getattr("__module__")?.extract()?;
    Ok(module != "dumbbell.cc")
}

/// Makes the name of an internal variable static. Programs have few of them, the same in every run.
fn intern_name(name: String) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name.as_str()) {
        return known;
    }
    let leaked: &'static str = Box::leak(name.into_boxed_str());
    names.insert(leaked);
    leaked
}

/// A value as an error shows it: a long number with its exponent, other text cut.
fn short(text: String) -> String {
    if text.chars().count() <= MOST_SHOWN {
        return text;
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => format!("{number:e}"),
        _ => text.chars().take(MOST_SHOWN).collect::<String>() + "...",
    }
}
