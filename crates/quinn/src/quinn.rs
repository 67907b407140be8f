//! quinn: what its interface has otherwise than noq's. `controller` is the rest.

#[path = "controller.rs"]
mod controller;

pub use controller::Controller;
use quinn_proto as proto;

/// The methods of a controller whose arguments or results differ.
macro_rules! methods {
    () => {
        fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
            self.adapter_mut().on_sent(now, bytes);
        }

        fn on_ack(
            &mut self,
            now: Instant,
            sent: Instant,
            _bytes: u64,
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
            lost_bytes: u64,
        ) {
            match lost_bytes {
                0 => self.adapter_mut().on_ecn(now, sent),
                bytes => self.adapter_mut().on_lost(now, sent, bytes, is_persistent_congestion),
            }
        }

        fn window(&self) -> u64 {
            self.adapter().paced_window()
        }

        fn metrics(&self) -> ControllerMetrics {
            let adapter = self.adapter();
            let mut metrics = ControllerMetrics::default();
            metrics.congestion_window = adapter.window();
            metrics.ssthresh = adapter.ssthresh();
            metrics.pacing_rate = adapter.pacing_rate().map(|rate| rate.bits_per_sec() as u64);
            metrics
        }
    };
}
use methods;
