//! The tables of a run: the only definition of the names, types and meanings of all columns.
//!
//! A table is a struct of one vector per column, which Arrow takes over without copying. Units are
//! s, bit/s, bytes and packets. In `f32` and `f64` columns NaN means "not known yet"; columns of
//! `Option` are nullable.

/// A column, ready for export.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Small numbers and states.
    U8(Vec<u8>),
    /// Indices and counts of moderate size.
    U32(Vec<u32>),
    /// Counts.
    U64(Vec<u64>),
    /// Measured values in single precision.
    F32(Vec<f32>),
    /// Measured values and times.
    F64(Vec<f64>),
    /// Values that may be missing.
    NullableF64(Vec<Option<f64>>),
    /// Strings from a short list: for each row an index into `names`.
    Names {
        /// For each row the index into `names`.
        keys: Vec<u32>,
        /// The strings.
        names: Vec<&'static str>,
    },
}

/// A type of table cells.
trait Cell: Sized {
    fn column(cells: Vec<Self>) -> Column;
}

macro_rules! cells {
    ($($cell:ty => $column:ident),* $(,)?) => {
        $(impl Cell for $cell {
            fn column(cells: Vec<$cell>) -> Column {
                Column::$column(cells)
            }
        })*
    };
}

cells! {
    u8 => U8,
    u32 => U32,
    u64 => U64,
    f32 => F32,
    f64 => F64,
    Option<f64> => NullableF64,
}

macro_rules! table {
    (
        $(#[$doc:meta])* $table:ident of $row:ident {
            $($(#[$field_doc:meta])* $field:ident: $cell:ty,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $table {
            $($(#[$field_doc])* pub $field: Vec<$cell>,)*
        }

        #[doc = concat!("A row of [`", stringify!($table), "`].")]
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct $row {
            $($(#[$field_doc])* pub $field: $cell,)*
        }

        impl $table {
            /// An empty table with capacity for `rows` rows.
            pub fn with_capacity(rows: usize) -> $table {
                $table { $($field: Vec::with_capacity(rows),)* }
            }

            /// Adds a row.
            pub fn push(&mut self, row: $row) {
                $(self.$field.push(row.$field);)*
            }

            /// The rows, in order.
            pub fn rows(&self) -> impl Iterator<Item = $row> {
                (0..).map_while(|row| Some($row { $($field: *self.$field.get(row)?,)* }))
            }

            /// The columns with their names, in order.
            pub fn into_columns(self) -> Vec<(&'static str, Column)> {
                vec![$((stringify!($field), Cell::column(self.$field)),)*]
            }
        }
    };
}

table! {
    /// The state of every flow, at the sampling interval, from its start until it is complete.
    Series of SeriesRow {
        /// Index of the flow in the scenario.
        flow: u32,
        /// Time, s.
        t: f64,
        /// Congestion window, packets.
        cwnd: f32,
        /// Slow start threshold, packets; infinite until it is set.
        ssthresh: f32,
        /// Smoothed round-trip time, s.
        srtt: f32,
        /// Latest round-trip time, s.
        rtt: f32,
        /// Minimum round-trip time, s.
        min_rtt: f32,
        /// Pacing rate, bit/s; NaN if packets are not paced.
        pacing_rate: f32,
        /// Latest delivery rate sample, bit/s.
        delivery_rate: f32,
        /// Packets in flight.
        in_flight: u32,
        /// Data packets sent so far, retransmissions included.
        sent: u64,
        /// Retransmissions so far.
        retransmitted: u64,
        /// Packets marked lost so far.
        lost: u64,
        /// Payload bytes acknowledged to the sender so far, in any order.
        delivered: u64,
        /// Payload bytes received in order so far: the goodput.
        received: u64,
        /// 0 open, 1 disorder, 2 cwr, 3 recovery, 4 loss.
        ca_state: u8,
    }
}

table! {
    /// The state of every link, at the sampling interval.
    Links of LinkRow {
        /// Index of the link in the scenario.
        link: u32,
        /// Time, s.
        t: f64,
        /// Queued packets, the one in transmission excluded.
        queue_packets: u32,
        /// Bytes of those packets.
        queue_bytes: u64,
        /// Bytes sent so far, headers included.
        sent_bytes: u64,
        /// Packets dropped by the full queue or by the AQM so far.
        dropped: u64,
        /// Packets lost at random so far.
        lost: u64,
        /// Packets marked (CE) so far.
        marked: u64,
    }
}

table! {
    /// The result of every flow.
    Flows of FlowRow {
        /// Index of the flow in the scenario.
        flow: u32,
        /// When it started, jitter included, s.
        start: f64,
        /// When all data of a finite flow was acknowledged, s.
        completed: Option<f64>,
        /// Data packets sent, retransmissions included.
        sent: u64,
        /// Retransmissions.
        retransmitted: u64,
        /// Packets marked lost.
        lost: u64,
        /// Data packets that arrived with an ECN mark.
        marked: u64,
        /// Payload bytes acknowledged to the sender, in any order.
        delivered: u64,
        /// Payload bytes received in order.
        received: u64,
        /// Retransmission timeouts.
        timeouts: u32,
        /// Fast recovery episodes.
        recoveries: u32,
        /// Reductions that were undone as spurious.
        spurious: u32,
        /// Round-trip time without queueing and transmission, s.
        base_rtt: f64,
        /// One-way delay of delivered data packets beyond the base delay: mean, s.
        queue_delay_mean: Option<f64>,
        /// Its median, s.
        queue_delay_p50: Option<f64>,
        /// Its 95th percentile, s.
        queue_delay_p95: Option<f64>,
        /// Its 99th percentile, s.
        queue_delay_p99: Option<f64>,
        /// Mean of all round-trip time samples, s.
        rtt_mean: Option<f64>,
        /// The number of these samples.
        rtt_samples: u64,
    }
}

table! {
    /// The result of every transfer of the flows that consist of many, in the order of their starts.
    Transfers of TransferRow {
        /// Index of the flow in the scenario.
        flow: u32,
        /// When it started, s.
        start: f64,
        /// Payload bytes that it had to send.
        bytes: u64,
        /// When all of them were acknowledged, s.
        completed: Option<f64>,
        /// Data packets sent, retransmissions included.
        sent: u64,
        /// Retransmissions.
        retransmitted: u64,
        /// Retransmission timeouts.
        timeouts: u32,
    }
}

table! {
    /// The result of every frame of the flows of media, by flow and in the order of their capture.
    Frames of FrameRow {
        /// Index of the flow in the scenario.
        flow: u32,
        /// When it was captured, s.
        start: f64,
        /// Bytes of its media.
        bytes: u64,
        /// When all of them had arrived, s.
        completed: Option<f64>,
    }
}

table! {
    /// The result of every segment that a video client requested, by flow and in order.
    Segments of SegmentRow {
        /// Index of the flow in the scenario.
        flow: u32,
        /// When the request arrived, s.
        start: f64,
        /// Bytes of the segment.
        bytes: u64,
        /// When all of them were acknowledged, s.
        completed: Option<f64>,
        /// Rate of the video, bit/s.
        rate: f64,
        /// Video in the segment, s.
        duration: f64,
        /// Video in the buffer then, this segment included, s.
        buffer: Option<f64>,
        /// How long there had been nothing to play, s.
        stalled: f64,
        /// 1 if playback had started then.
        playing: u8,
    }
}

/// Internals of algorithms at the sampling interval: one row per value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Internals {
    /// Index of the flow in the scenario.
    pub flow: Vec<u32>,
    /// Time, s.
    pub t: Vec<f64>,
    /// Index of the value's name in `names`.
    pub name: Vec<u32>,
    /// The value, in the unit that the algorithm documents.
    pub value: Vec<f64>,
    /// All names that occur.
    pub names: Vec<&'static str>,
}

impl Internals {
    /// Adds a row.
    pub fn push(&mut self, flow: u32, t: f64, name: &'static str, value: f64) {
        let key = self.names.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        });
        self.flow.push(flow);
        self.t.push(t);
        self.name.push(key as u32);
        self.value.push(value);
    }

    /// The columns with their names, in order.
    pub fn into_columns(self) -> Vec<(&'static str, Column)> {
        vec![
            ("flow", Column::U32(self.flow)),
            ("t", Column::F64(self.t)),
            ("name", Column::Names { keys: self.name, names: self.names }),
            ("value", Column::F64(self.value)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_gives_its_rows_and_its_columns_by_name() {
        let mut links = Links::default();
        let row = LinkRow { link: 3, t: 0.5, dropped: 7, ..LinkRow::default() };
        links.push(row);
        assert_eq!(links.rows().collect::<Vec<_>>(), [row]);
        let columns = links.into_columns();
        let names: Vec<_> = columns.iter().map(|(name, _)| *name).collect();
        assert_eq!(names[..3], ["link", "t", "queue_packets"]);
        assert_eq!(columns[0].1, Column::U32(vec![3]));
        assert_eq!(columns[5], ("dropped", Column::U64(vec![7])));
    }

    #[test]
    fn names_of_internals_are_kept_once() {
        let mut internals = Internals::default();
        for (name, value) in [("k", 1.0), ("w_max", 2.0), ("k", 3.0)] {
            internals.push(0, 0.0, name, value);
        }
        assert_eq!((internals.name, internals.names), (vec![0, 1, 0], vec!["k", "w_max"]));
    }
}
