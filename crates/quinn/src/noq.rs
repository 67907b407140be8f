//! noq's interface.

use crate::adapter::Adapter;
use crate::config::Config;
use dumbbell_cc::Metric;
use dumbbell_units::Rate;
use noq_proto::RttEstimator;
use noq_proto::congestion::{self, ControllerFactory, ControllerMetrics};
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// An algorithm of `dumbbell-cc` as noq's congestion controller; made by [`Config`].
#[derive(Debug)]
pub struct NoqController(Mutex<Adapter>);

impl NoqController {
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
}

impl Clone for NoqController {
    fn clone(&self) -> NoqController {
        NoqController(Mutex::new(self.adapter().clone()))
    }
}

impl ControllerFactory for Config {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn congestion::Controller> {
        Box::new(NoqController(Mutex::new(self.adapter(now, current_mtu))))
    }
}

impl congestion::Controller for NoqController {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, _pn: u64) {
        self.adapter_mut().on_sent(now, bytes.into());
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        _bytes: u64,
        _pn: u64,
        _app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        self.adapter_mut().on_ack(now, sent);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        self.adapter_mut().on_end_acks(now, in_flight, app_limited);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        match is_ecn {
            true => self.adapter_mut().on_ecn(now, sent),
            false => self.adapter_mut().on_lost(now, sent, lost_bytes, is_persistent_congestion),
        }
    }

    fn on_spurious_congestion_event(&mut self) {
        self.adapter_mut().on_spurious();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.adapter_mut().on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.adapter().window()
    }

    fn metrics(&self) -> ControllerMetrics {
        let adapter = self.adapter();
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = adapter.window();
        metrics.ssthresh = adapter.ssthresh();
        metrics.pacing_rate = adapter.pacing_rate().map(|rate| rate.bytes_per_sec() as u64);
        metrics.send_quantum = adapter.send_quantum();
        metrics.bandwidth_estimate = Some(adapter.delivery_rate().bits_per_sec() as u64);
        metrics
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
