//! noq: what its interface has otherwise than quinn's. `controller` is the rest.

#[path = "controller.rs"]
mod controller;

pub use controller::Controller as NoqController;
use noq_proto as proto;

/// The methods of a controller whose arguments or results differ.
macro_rules! methods {
    () => {
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
                false => {
                    self.adapter_mut().on_lost(now, sent, lost_bytes, is_persistent_congestion)
                }
            }
        }

        fn on_spurious_congestion_event(&mut self) {
            self.adapter_mut().on_spurious();
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
    };
}
use methods;
