//! Rows of the tables from a sender's statistics, in the simulator and on the testbed.

use crate::histogram::Histogram;
use crate::tables::{FlowRow, Flows, SeriesRow};
use dumbbell_cc::{CaState, SenderStats};
use dumbbell_units::{Span, Time};

/// Seconds; NaN if not known yet.
fn secs(span: Option<Span>) -> f32 {
    span.map_or(f32::NAN, |span| span.as_secs_f64() as f32)
}

/// The code of a congestion control state in the tables.
fn ca_state_code(state: CaState) -> u8 {
    match state {
        CaState::Open => 0,
        CaState::Disorder => 1,
        CaState::Cwr => 2,
        CaState::Recovery => 3,
        CaState::Loss => 4,
    }
}

/// Fills in a sender's current state; `delivered` is in bytes.
pub fn fill_series_row(stats: &SenderStats, delivered: u64, row: &mut SeriesRow) {
    let pacing_rate = stats.pacing_rate.map_or(f64::NAN, |rate| rate.bits_per_sec());
    *row = SeriesRow {
        cwnd: stats.cwnd as f32,
        ssthresh: stats.ssthresh as f32,
        srtt: secs(stats.srtt),
        rtt: secs(stats.rtt),
        min_rtt: secs(stats.min_rtt),
        pacing_rate: pacing_rate as f32,
        delivery_rate: stats.delivery_rate.bits_per_sec() as f32,
        in_flight: stats.in_flight,
        sent: stats.sent,
        retransmitted: stats.retransmitted,
        lost: stats.lost,
        delivered,
        ca_state: ca_state_code(stats.ca_state),
        ..*row
    };
}

/// Fills in a sender's state at the end of the run; arguments as [`fill_series_row`].
pub fn fill_flow_row(stats: &SenderStats, delivered: u64, row: &mut FlowRow) {
    *row = FlowRow {
        completed: stats.completed.map(Time::as_secs_f64),
        sent: stats.sent,
        retransmitted: stats.retransmitted,
        lost: stats.lost,
        delivered,
        timeouts: stats.timeouts,
        recoveries: stats.recoveries,
        spurious: stats.spurious,
        ..row.with_round_trips(stats.rtt_sum)
    };
}

impl SeriesRow {
    /// The row of several connections together, or of one that measures nothing: what has no sum is
    /// NaN.
    #[must_use]
    pub fn of_several(self) -> SeriesRow {
        let nan = f32::NAN;
        SeriesRow { srtt: nan, rtt: nan, min_rtt: nan, ssthresh: nan, pacing_rate: nan, ..self }
    }

    /// Adds windows, rates and counters of another connection or subflow.
    pub fn add(&mut self, of: &SeriesRow) {
        self.cwnd += of.cwnd;
        self.delivery_rate += of.delivery_rate;
        self.in_flight += of.in_flight;
        self.sent += of.sent;
        self.retransmitted += of.retransmitted;
        self.lost += of.lost;
    }

    /// The row of a flow of transfers none of which is in progress: those that are closed have these
    /// counters.
    #[must_use]
    pub fn of_transfers(self, closed: &FlowRow) -> SeriesRow {
        let FlowRow { sent, retransmitted, lost, delivered, received, .. } = *closed;
        SeriesRow { sent, retransmitted, lost, delivered, received, ..self.of_several() }
    }

    /// Adds the state of a transfer in progress, with its receiver's.
    pub fn add_transfer(&mut self, of: &SeriesRow) {
        self.add(of);
        self.delivered += of.delivered;
        self.received += of.received;
    }
}

impl Flows {
    /// Each row [since](FlowRow::since) that of an earlier table of the same flows.
    #[must_use]
    pub fn since(&self, earlier: &Flows) -> Flows {
        let mut table = Flows::with_capacity(self.flow.len());
        self.rows().zip(earlier.rows()).for_each(|(row, then)| table.push(row.since(&then)));
        table
    }
}

impl FlowRow {
    /// The row with base round-trip time and the mean and quantiles of the delays beyond it.
    #[must_use]
    pub fn with_delays(self, base_rtt: Span, delays: &Histogram) -> FlowRow {
        FlowRow {
            base_rtt: base_rtt.as_secs_f64(),
            queue_delay_mean: delays.mean(),
            queue_delay_p50: delays.quantile(0.50),
            queue_delay_p95: delays.quantile(0.95),
            queue_delay_p99: delays.quantile(0.99),
            ..self
        }
    }

    /// The row with the mean of round-trip times, of their sum in s and their number.
    #[must_use]
    pub fn with_round_trips(self, (sum, samples): (f64, u64)) -> FlowRow {
        let rtt_mean = (samples > 0).then(|| sum / samples as f64);
        FlowRow { rtt_mean, rtt_samples: samples, ..self }
    }

    /// The counters less those of an earlier row of the flow, and the mean round-trip time since then;
    /// queueing delays stay as they are.
    #[must_use]
    pub fn since(self, earlier: &FlowRow) -> FlowRow {
        let sum = |row: &FlowRow| row.rtt_mean.unwrap_or(0.0) * row.rtt_samples as f64;
        let rtt_samples = self.rtt_samples.saturating_sub(earlier.rtt_samples);
        FlowRow {
            sent: self.sent.saturating_sub(earlier.sent),
            retransmitted: self.retransmitted.saturating_sub(earlier.retransmitted),
            lost: self.lost.saturating_sub(earlier.lost),
            delivered: self.delivered.saturating_sub(earlier.delivered),
            received: self.received.saturating_sub(earlier.received),
            timeouts: self.timeouts.saturating_sub(earlier.timeouts),
            recoveries: self.recoveries.saturating_sub(earlier.recoveries),
            spurious: self.spurious.saturating_sub(earlier.spurious),
            ..self.with_round_trips((sum(&self) - sum(earlier), rtt_samples))
        }
    }

    /// Adds the counters of another connection or subflow.
    pub fn add(&mut self, of: &FlowRow) {
        self.sent += of.sent;
        self.retransmitted += of.retransmitted;
        self.lost += of.lost;
        self.delivered += of.delivered;
        self.timeouts += of.timeouts;
        self.recoveries += of.recoveries;
        self.spurious += of.spurious;
    }

    /// Adds the counters of a transfer, with its receiver's.
    pub fn add_transfer(&mut self, of: &FlowRow) {
        self.add(of);
        self.received += of.received;
    }
}
