//! What goes wrong in a user's code.

use dumbbell_cc::{Ack, CongestionControl, CongestionEvent, ControlParameters, Path};
use dumbbell_units::Time;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The first exception of a run, until the run has ended and it can be raised.
#[derive(Clone, Default)]
pub struct Failure(Arc<Inner>);

#[derive(Default)]
struct Inner {
    there: AtomicBool,
    error: Mutex<Option<PyErr>>,
}

impl Failure {
    /// Keeps an exception, and notes in it where and when it was raised.
    pub fn record(&self, py: Python<'_>, error: PyErr, name: &str, now: Time) {
        let note = format!("in {name} after {now} of simulated time");
        // A note is a kindness; that it could not be added must not hide the exception.
        let _ = error.value(py).call_method1("add_note", (note,));
        let mut first = self.0.error.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
        self.0.there.store(true, Ordering::Release);
    }

    /// Whether there is one.
    pub fn is_there(&self) -> bool {
        self.0.there.load(Ordering::Acquire)
    }

    /// Takes it.
    pub fn take(&self) -> Option<PyErr> {
        self.0.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A user's mistake, in one paragraph.
pub fn mistake(py: Python<'_>, text: &str) -> PyErr {
    let error = py
        .import("dumbbell.errors")
        .and_then(|errors| errors.getattr("DumbbellError"))
        .and_then(|class| class.call1((text,)));
    error.map_or_else(|error| error, PyErr::from_value)
}

/// What stands in for an algorithm that failed, until the run ends: one packet at a time.
pub struct Silent;

impl Silent {
    pub const CONTROL: ControlParameters = ControlParameters {
        cwnd: 1.0,
        ssthresh: f64::INFINITY,
        pacing_rate: None,
        min_send_quantum: None,
    };
}

impl CongestionControl for Silent {
    fn on_ack(&mut self, _path: &Path, _ack: &Ack) {}

    fn on_congestion(&mut self, _path: &Path, _event: &CongestionEvent) {}

    fn control(&self) -> ControlParameters {
        Silent::CONTROL
    }
}
