//! The incoming rate R_hat (draft, section 5.5): received bits in a window of 0.5 s.

use dumbbell_units::{Span, Time};
use std::collections::VecDeque;

const WINDOW: Span = Span::from_millis(500);

/// The rate at which packets arrive.
#[derive(Clone, Debug, Default)]
pub(super) struct Throughput {
    arrivals: VecDeque<(Time, u32)>,
    bytes: u64,
    first: Option<Time>,
    latest: Time,
}

impl Throughput {
    pub(super) fn on_packet(&mut self, arrived_at: Time, size: u32) {
        self.first.get_or_insert(arrived_at);
        self.latest = self.latest.max(arrived_at);
        self.arrivals.push_back((arrived_at, size));
        self.bytes += u64::from(size);
        while let Some(&(at, size)) = self.arrivals.front()
            && self.latest.since(at) >= WINDOW
        {
            self.arrivals.pop_front();
            self.bytes -= u64::from(size);
        }
    }

    /// bit/s; `None` until a window has passed.
    pub(super) fn rate(&self) -> Option<f64> {
        let is_full = self.latest.since(self.first?) >= WINDOW;
        is_full.then_some(self.bytes as f64 * 8.0 / WINDOW.as_secs_f64())
    }
}
