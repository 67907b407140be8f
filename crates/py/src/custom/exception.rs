//! Exceptions in custom algorithms.

use dumbbell_cc::{Ack, CongestionControl, CongestionEvent, ControlParameters, Path};
use dumbbell_units::Time;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The first exception of a run, kept until the run has ended and can raise it.
#[derive(Clone, Debug, Default)]
pub struct FirstException(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    is_set: AtomicBool,
    error: Mutex<Option<PyErr>>,
}

impl FirstException {
    /// Records an exception, and adds a note with the algorithm and the simulated time to it.
    pub fn record(&self, py: Python<'_>, error: PyErr, name: &str, now: Time) {
        let note = format!("in {name} after {now} of simulated time");
        // The note is optional; failing to add it must not hide the exception.
        let _ = error.value(py).call_method1("add_note", (note,));
        let mut first = self.0.error.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
        self.0.is_set.store(true, Ordering::Release);
    }

    /// Whether an exception was recorded.
    pub fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::Acquire)
    }

    /// Removes and returns the exception.
    pub fn take(&self) -> Option<PyErr> {
        self.0.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A `DumbbellError` for an error of the user.
pub fn user_error(py: Python<'_>, text: &str) -> PyErr {
    let error = py
        .import("dumbbell.errors")
        .and_then(|errors| errors.getattr("DumbbellError"))
        .and_then(|class| class.call1((text,)));
    error.map_or_else(|error| error, PyErr::from_value)
}

/// Replaces an algorithm that failed until the run stops; its window is one packet.
#[derive(Clone, Debug)]
pub struct FallbackControl;

impl FallbackControl {
    pub const CONTROL: ControlParameters = ControlParameters::new(1.0);
}

impl CongestionControl for FallbackControl {
    fn on_ack(&mut self, _path: &Path, _ack: &Ack) {}

    fn on_congestion(&mut self, _path: &Path, _event: &CongestionEvent) {}

    fn control(&self) -> ControlParameters {
        FallbackControl::CONTROL
    }
}
