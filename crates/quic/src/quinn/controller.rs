//! quinn-proto's congestion controllers, observed.

use crate::observed::Shared;
use crate::stack::{CongestionControl, Settings};
use crate::variables;
use dumbbell_cc::Metric;
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{
    Bbr, BbrConfig, Controller, ControllerFactory, ControllerMetrics, Cubic, CubicConfig,
    NewRenoConfig,
};
use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

/// The names of the stack's own algorithms.
pub(crate) const NAMES: &[&str] = &["cubic", "reno", "bbr"];

type Factory = Arc<dyn ControllerFactory + Send + Sync>;

/// Makes the controller of an end.
pub(super) fn factory(settings: &Settings) -> Factory {
    let inner: Factory = match &settings.congestion_control {
        CongestionControl::Native("reno") => Arc::new(NewRenoConfig::default()),
        CongestionControl::Native("bbr") => Arc::new(BbrConfig::default()),
        CongestionControl::Native(_) => Arc::new(CubicConfig::default()),
        CongestionControl::Ours(config) => Arc::new(config.clone()),
    };
    Arc::new(ObservedFactory { inner, observed: settings.observed.clone() })
}

/// Shows the variables of dumbbell's algorithms and of the stack's own.
pub(super) fn inspect(state: &dyn Controller, mtu: u16, show: &mut dyn FnMut(Metric)) {
    let state = state.clone_box().into_any();
    if let Some(ours) = state.downcast_ref::<dumbbell_quinn::Controller>() {
        ours.inspect(show);
    } else if let Some(bbr) = state.downcast_ref::<Bbr>() {
        variables::show(bbr, variables::QUINN_BBR, mtu, show);
    } else if let Some(cubic) = state.downcast_ref::<Cubic>() {
        variables::show(cubic, variables::QUINN_CUBIC, mtu, show);
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

impl Controller for Observed {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.observed.get().on_sent(bytes);
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.observed.get().on_ack(sent, bytes);
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
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

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
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
