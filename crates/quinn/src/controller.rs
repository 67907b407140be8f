//! The controllers of quinn and noq: one text, which each compiles with its own types.

use super::methods;
use super::proto::RttEstimator;
use super::proto::congestion::{self, ControllerFactory, ControllerMetrics};
use crate::adapter::Adapter;
use crate::config::Config;
use dumbbell_cc::Metric;
use dumbbell_units::Rate;
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// An algorithm of `dumbbell-cc` as a congestion controller of the stack; made by [`Config`](crate::Config).
#[derive(Debug)]
pub struct Controller(Mutex<Adapter>);

impl Controller {
    /// The stack asks for the window through a shared reference, and an acknowledgement may have to be
    /// completed then.
    fn adapter(&self) -> MutexGuard<'_, Adapter> {
        let mut adapter = self.0.lock().expect("no code panics while it holds the state");
        adapter.flush();
        adapter
    }

    fn adapter_mut(&mut self) -> &mut Adapter {
        self.0.get_mut().expect("no code panics while it holds the state")
    }

    /// Calls `show` once per named value of the algorithm's internal state.
    pub fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        self.adapter().inspect(show);
    }

    /// Latest delivery rate that an application-limited sample did not lower.
    pub fn delivery_rate(&self) -> Rate {
        self.adapter().delivery_rate()
    }

    /// The pacing rate, if the algorithm sets one.
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.adapter().pacing_rate()
    }
}

impl Clone for Controller {
    fn clone(&self) -> Controller {
        Controller(Mutex::new(self.adapter().clone()))
    }
}

impl ControllerFactory for Config {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn congestion::Controller> {
        Box::new(Controller(Mutex::new(self.adapter(now, current_mtu))))
    }
}

impl congestion::Controller for Controller {
    methods!();

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        self.adapter_mut().on_end_acks(now, in_flight, app_limited);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.adapter_mut().on_mtu_update(new_mtu);
    }

    fn clone_box(&self) -> Box<dyn congestion::Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.adapter().initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
