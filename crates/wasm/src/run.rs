//! A run in slices, its tables and its hops.

use crate::experiment::{Files, read};
use crate::own::{set_factories, take_failure};
use dumbbell_net::DropReason;
use dumbbell_sim::{Column, Hop, HopEnd, RunOutput};
use wasm_bindgen::prelude::*;

/// A run of one seed, from sample to sample.
#[wasm_bindgen]
pub struct Run(dumbbell_sim::Run);

#[wasm_bindgen]
impl Run {
    /// A run at time zero. A `sample` above 0 (s) replaces the interval of the file.
    ///
    /// # Errors
    /// If the file is not valid.
    #[wasm_bindgen(constructor)]
    pub fn new(text: &str, files: &Files, seed: u64, sample: f64) -> Result<Run, JsError> {
        let error = |error: &dyn std::fmt::Display| JsError::new(&error.to_string());
        let mut scenario = read(text, files).map_err(|found| error(&found))?.scenario(seed);
        if sample > 0.0 {
            scenario.sample_ns = (sample * 1e9) as u64;
        }
        set_factories(&mut scenario);
        scenario.start().map(Run).map_err(|found| error(&found))
    }

    /// Runs to the next sample; the completed share of the simulated time, or nothing if the run
    /// is complete.
    ///
    /// # Errors
    /// If the user's own code failed.
    pub fn step(&mut self) -> Result<Option<f64>, JsError> {
        let share = self.0.step();
        match take_failure() {
            Some(failure) => Err(JsError::new(&failure)),
            None => Ok(share),
        }
    }

    /// Lists drops from now on.
    pub fn record_drops(&mut self) {
        self.0.record_drops();
    }

    /// Records up to `max` hops that begin from now on.
    pub fn record_hops(&mut self, max: usize) {
        self.0.record_hops(max);
    }

    /// Whether as many hops are recorded as were to be.
    #[must_use]
    pub fn has_recorded(&self) -> bool {
        self.0.has_recorded()
    }

    /// Times of the drops, s.
    #[must_use]
    pub fn drops(&self) -> Vec<f64> {
        self.0.hops().drops().iter().map(|(at, _)| at.as_secs_f64()).collect()
    }

    /// A column of the hops: `entered`, `left` (s, NaN if still open), `link`, `flow`, `number`,
    /// `size`, or `kind`, the sum of 1 (from the sender), 2 (retransmission), 4 (marked),
    /// 8 (dropped by the queue), 16 (lost at random).
    #[must_use]
    pub fn hops(&self, column: &str) -> Vec<f64> {
        let value = |hop: &Hop| match column {
            "entered" => hop.entered_at.as_secs_f64(),
            "left" if hop.end == HopEnd::Open => f64::NAN,
            "left" => hop.left_at.as_secs_f64(),
            "link" => f64::from(hop.link.0),
            "flow" => f64::from(hop.flow),
            "number" => f64::from(hop.number),
            "size" => f64::from(hop.size),
            _ => f64::from(kind(hop)),
        };
        self.0.hops().hops().iter().map(value).collect()
    }

    /// Ends the run.
    #[must_use]
    pub fn finish(self) -> Tables {
        Tables::of(self.0.into_output())
    }
}

fn kind(hop: &Hop) -> u8 {
    let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
    let (lost, is_dropped) = match hop.end {
        HopEnd::Dropped(DropReason::Loss) => (true, false),
        HopEnd::Dropped(_) => (false, true),
        _ => (false, false),
    };
    bit(hop.by_sender, 1)
        | bit(hop.retransmission, 2)
        | bit(hop.marked, 4)
        | bit(is_dropped, 8)
        | bit(lost, 16)
}

/// The tables of a run.
#[wasm_bindgen]
pub struct Tables {
    tables: Vec<(&'static str, Vec<(&'static str, Column)>)>,
    data_packets: u64,
    events: u64,
}

impl Tables {
    fn of(output: RunOutput) -> Tables {
        Tables {
            data_packets: output.data_packets,
            events: output.events,
            tables: vec![
                ("flows", output.flows.into_columns()),
                ("series", output.series.into_columns()),
                ("links", output.links.into_columns()),
                ("internals", output.internals.into_columns()),
                ("subflows", output.subflows.into_columns()),
                ("subflow_series", output.subflow_series.into_columns()),
                ("subflow_internals", output.subflow_internals.into_columns()),
                ("transfers", output.transfers.into_columns()),
                ("frames", output.frames.into_columns()),
                ("segments", output.segments.into_columns()),
            ],
        }
    }

    fn columns_of(&self, table: &str) -> &[(&'static str, Column)] {
        let found = self.tables.iter().find(|(name, _)| *name == table);
        found.map_or(&[], |(_, columns)| columns)
    }

    fn find(&self, table: &str, column: &str) -> Option<&Column> {
        let mut columns = self.columns_of(table).iter();
        columns.find(|(name, _)| *name == column).map(|(_, column)| column)
    }
}

#[wasm_bindgen]
impl Tables {
    /// The names of the tables.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.tables.iter().map(|(name, _)| (*name).to_owned()).collect()
    }

    /// The names of a table's columns.
    #[must_use]
    pub fn columns(&self, table: &str) -> Vec<String> {
        self.columns_of(table).iter().map(|(name, _)| (*name).to_owned()).collect()
    }

    /// A column in double precision, which is exact for all of them; NaN for what is not known, the
    /// index of the text for texts.
    #[must_use]
    pub fn column(&self, table: &str, column: &str) -> Vec<f64> {
        let Some(column) = self.find(table, column) else { return Vec::new() };
        match column {
            Column::U8(cells) => cells.iter().map(|cell| f64::from(*cell)).collect(),
            Column::U32(cells) => cells.iter().map(|cell| f64::from(*cell)).collect(),
            Column::U64(cells) => cells.iter().map(|cell| *cell as f64).collect(),
            Column::F32(cells) => cells.iter().map(|cell| f64::from(*cell)).collect(),
            Column::F64(cells) => cells.clone(),
            Column::NullableF64(cells) => {
                cells.iter().map(|cell| cell.unwrap_or(f64::NAN)).collect()
            }
            Column::Names { keys, .. } => keys.iter().map(|key| f64::from(*key)).collect(),
        }
    }

    /// The texts of a column of texts.
    #[must_use]
    pub fn texts(&self, table: &str, column: &str) -> Vec<String> {
        match self.find(table, column) {
            Some(Column::Names { names, .. }) => {
                names.iter().map(|name| (*name).to_owned()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Data packets sent by all flows, retransmissions included.
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn data_packets(&self) -> f64 {
        self.data_packets as f64
    }

    /// Events that the engine processed.
    #[wasm_bindgen(getter)]
    #[must_use]
    pub fn events(&self) -> f64 {
        self.events as f64
    }
}
