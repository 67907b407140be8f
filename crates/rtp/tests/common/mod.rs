//! Runs experiment files with media.

// Each test file uses a part of it.
#![allow(dead_code)]

use dumbbell_experiment::{Experiment, NoEnvironment};
use dumbbell_sim::{RunOutput, SeriesRow};

/// Runs the text of a file with seed 1.
pub fn run(text: &str) -> RunOutput {
    let none: [&str; 0] = [];
    let experiment = Experiment::from_toml(text, "test.toml", &none).expect("a valid file");
    let mut scenario = experiment.resolve(&NoEnvironment).expect("parts that fit").scenario(1);
    for flow in &mut scenario.flows {
        let is_media = flow.external.as_ref().is_some_and(|spec| spec.transport == "rtp");
        flow.endpoint_factory = is_media.then(dumbbell_rtp::endpoints);
    }
    scenario.run().expect("a valid scenario")
}

/// Values of a series of a flow in an interval, s.
pub fn values(output: &RunOutput, flow: u32, from: f64, to: f64) -> Vec<SeriesRow> {
    let rows = output.series.rows();
    rows.filter(|row| row.flow == flow && row.t >= from && row.t <= to).collect()
}

/// Rate at which a flow's data arrives in an interval, Mbit/s.
pub fn rate(output: &RunOutput, flow: u32, from: f64, to: f64) -> f64 {
    let rows = values(output, flow, from, to);
    let [first, last] = [rows.first(), rows.last()].map(|row| row.expect("samples"));
    (last.received - first.received) as f64 * 8e-6 / (last.t - first.t)
}

/// The values of an internal of a flow in an interval.
pub fn internal(output: &RunOutput, name: &str, from: f64, to: f64) -> Vec<f64> {
    let internals = &output.internals;
    let key = internals.names.iter().position(|known| *known == name).expect("an internal") as u32;
    let rows = internals.t.iter().zip(&internals.name).zip(&internals.value);
    let kept = rows.filter(|((t, of), _)| **t >= from && **t <= to && **of == key);
    kept.map(|(_, value)| *value).collect()
}

/// A quantile of the delays of a flow's frames that were captured in an interval, s.
pub fn frame_delay(output: &RunOutput, flow: u32, from: f64, to: f64, share: f64) -> f64 {
    let rows = output.frames.rows();
    let rows = rows.filter(|row| row.flow == flow && row.start >= from && row.start < to);
    let mut delays: Vec<f64> =
        rows.map(|row| row.completed.map_or(f64::INFINITY, |at| at - row.start)).collect();
    delays.sort_by(f64::total_cmp);
    delays[((delays.len() - 1) as f64 * share) as usize]
}
