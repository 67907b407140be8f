//! Algorithms written in Python, as the simulator's own.
//!
//! A class says by its attribute `_tier` what it wants to be told: every acknowledgement, a report
//! a round, or only how a window grows and shrinks. The adapters here tell it and take its answers.
//! Between what it wants to know nothing of Python runs.

pub mod facts;
mod failure;
mod per_ack;
mod per_round;
mod rule;
mod speaker;

use dumbbell_cc::{
    AlgorithmFactory, AnySlowStart, CongestionControl, ConnectionConfig, Options, Windowed,
};
use failure::mistake;
use per_ack::PerAck;
use per_round::PerRound;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use rule::Rule;
use speaker::Speaker;
use std::collections::BTreeMap;

pub use failure::{Failure, Silent};

/// Classes and the options to make them with, by what flows call them.
pub type Classes = BTreeMap<String, (Py<PyType>, Py<PyDict>)>;

/// The makers of these algorithms; what goes wrong in them is left in `failure`.
pub fn makers(classes: Classes, failure: &Failure) -> BTreeMap<String, AlgorithmFactory> {
    let maker = |(name, (class, options)): (String, (Py<PyType>, Py<PyDict>))| {
        let (called, failure) = (name.clone(), failure.clone());
        let make = move |init: &ConnectionConfig| {
            Python::attach(|py| {
                let made = make(class.bind(py), options.bind(py), &called, init, &failure);
                made.unwrap_or_else(|error| {
                    failure.record(py, error, &called, init.now);
                    Box::new(Silent)
                })
            })
        };
        (name, AlgorithmFactory::boxed(make))
    };
    classes.into_iter().map(maker).collect()
}

fn make(
    class: &Bound<'_, PyType>,
    options: &Bound<'_, PyDict>,
    name: &str,
    init: &ConnectionConfig,
    failure: &Failure,
) -> PyResult<Box<dyn CongestionControl + Send>> {
    let object = class.call((facts::ConnectionConfig(*init),), Some(options))?;
    let tier: String = object.getattr("_tier")?.extract()?;
    let speaker = Speaker::new(&object, name, init, failure)?;
    Ok(match tier.as_str() {
        "rule" => {
            let slow_start = slow_start(&object, name)?;
            Box::new(Windowed::new(Rule::new(speaker, &object)?, slow_start, init))
        }
        "round" => Box::new(PerRound::new(speaker, &object, init.now)?),
        _ => Box::new(PerAck::new(speaker, &object, init.now)?),
    })
}

/// The slow start that a rule's `hystart` names, as the option of built-in algorithms does.
fn slow_start(object: &Bound<'_, PyAny>, name: &str) -> PyResult<AnySlowStart> {
    let hystart: String = object.getattr("hystart")?.extract()?;
    // Of "file.py:MyCC(gain=2)" what the class is called.
    let class = name.rsplit_once(':').map_or(name, |(_, class)| class);
    let class = class.split_once('(').map_or(class, |(class, _)| class);
    let options = format!("{class}(hystart={hystart})").parse::<Options>();
    options
        .and_then(|mut options| AnySlowStart::from_options(&mut options, AnySlowStart::STANDARD))
        .map_err(|error| mistake(object.py(), &error.to_string()))
}
