//! The stack's congestion controllers, observed.

use super::super::proto::RttEstimator;
use super::super::proto::congestion::{
    Controller, ControllerFactory, ControllerMetrics, Cubic, CubicConfig, NewRenoConfig,
};
use super::super::{CUBIC_VARIABLES, LAST_VARIABLES, Last, LastConfig, Ours, observe};
use crate::observed::Shared;
use crate::stack::{CongestionControl, Settings};
use crate::variables;
use dumbbell_cc::Metric;
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

type Factory = Arc<dyn ControllerFactory + Send + Sync>;

/// Makes the controller of an end.
pub(super) fn factory(settings: &Settings) -> Factory {
    let inner: Factory = match &settings.congestion_control {
        CongestionControl::Native("cubic") => Arc::new(CubicConfig::default()),
        CongestionControl::Native("reno") => Arc::new(NewRenoConfig::default()),
        CongestionControl::Native(_) => Arc::new(LastConfig::default()),
        CongestionControl::Ours(config) => Arc::new(config.clone()),
    };
    Arc::new(ObservedFactory { inner, observed: settings.observed.clone() })
}

/// Shows the variables of dumbbell's algorithms and of the stack's own.
pub(super) fn inspect(state: &dyn Controller, mtu: u16, show: &mut dyn FnMut(Metric)) {
    let state = state.clone_box().into_any();
    if let Some(ours) = state.downcast_ref::<Ours>() {
        ours.inspect(show);
    } else if let Some(last) = state.downcast_ref::<Last>() {
        variables::show(last, LAST_VARIABLES, mtu, show);
    } else if let Some(cubic) = state.downcast_ref::<Cubic>() {
        variables::show(cubic, CUBIC_VARIABLES, mtu, show);
    }
}

struct ObservedFactory {
    inner: Factory,
    observed: Shared,
}

impl ControllerFactory for ObservedFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = self.inner.clone().build(now, current_mtu);
        Box::new(Observed { inner, observed: self.observed.clone() })
    }
}

/// Passes everything on to a controller and notes it.
struct Observed {
    inner: Box<dyn Controller>,
    observed: Shared,
}

impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observed")
    }
}

impl Controller for Observed {
    observe!();

    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.observed.get().on_sent(now, bytes);
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.observed.get().on_end_acks(now, in_flight);
        self.inner.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Observed { inner: self.inner.clone_box(), observed: self.observed.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.inner.into_any()
    }
}
