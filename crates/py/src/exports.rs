//! Results in the formats of other programs.

use dumbbell_exports::{Flow, Run};
use dumbbell_sim::SeriesRow;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Index of the flow, t, cwnd, ssthresh, srtt, rtt, min_rtt, pacing_rate, in_flight, ca_state.
type Sample = (u32, f64, f32, f32, f32, f32, f32, f32, u32, u8);

fn series_row(sample: Sample) -> SeriesRow {
    let (flow, t, cwnd, ssthresh, srtt, rtt, min_rtt, pacing_rate, in_flight, ca_state) = sample;
    SeriesRow {
        flow,
        t,
        cwnd,
        ssthresh,
        srtt,
        rtt,
        min_rtt,
        pacing_rate,
        in_flight,
        ca_state,
        ..SeriesRow::default()
    }
}

/// A run as the text of a qlog file.
///
/// A flow is its name, its algorithm, its transport and the payload bytes of a full packet. A sample is the index
/// of its flow, then t, cwnd, ssthresh, srtt, rtt, min_rtt, pacing_rate, in_flight, ca_state as in
/// the tables of a result. `capture` is what the senders of logged flows saw, as
/// `Capture.write` writes it.
///
/// Raises ValueError if the capture is damaged.
#[pyfunction]
pub fn qlog(
    py: Python<'_>,
    title: &str,
    description: &str,
    flows: Vec<(String, String, String, u16)>,
    samples: Vec<Sample>,
    capture: Option<&[u8]>,
) -> PyResult<String> {
    py.detach(|| {
        let flows =
            flows.into_iter().map(|(name, cc, transport, mss)| Flow { name, cc, transport, mss });
        let flows: Vec<_> = flows.collect();
        let run = Run { title, description, flows: &flows, capture };
        dumbbell_exports::qlog(run, samples.into_iter().map(series_row))
    })
    .map_err(|error| PyValueError::new_err(error.to_string()))
}
