//! Delivery rate samples (draft-cheng-iccrg-delivery-rate-estimation).
//!
//! Every packet is stamped with the connection's delivery state when it is sent. When it is
//! delivered, the packets delivered since then over the longer of the time that they took to be
//! sent and the time that they took to be acknowledged is a sample of the delivery rate; taking
//! the longer keeps compressed acknowledgements and send bursts from inflating it.

use crate::{Path, RateSample, SendState};
use dumbbell_units::{Rate, Time};

/// The connection's part of the estimator.
#[derive(Clone, Debug)]
pub struct RateSampler {
    /// When the newest packet delivered so far had been sent (C.first_sent_time).
    pub first_sent_at: Time,
    /// Delivered count at which the flow stops being limited by the application (C.app_limited).
    app_limited_until: u64,
    /// The newest sample.
    pub latest: Rate,
}

/// What is kept of a packet that was sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketInfo {
    /// The connection's state.
    pub send_state: SendState,
    /// When the newest packet delivered by then had been sent (P.first_sent_time).
    pub first_sent_at: Time,
    /// When that packet was delivered (P.delivered_time).
    pub delivered_at: Time,
}

impl RateSampler {
    /// An estimator of a connection that begins now.
    pub fn new(now: Time) -> RateSampler {
        RateSampler { first_sent_at: now, app_limited_until: 0, latest: Rate::ZERO }
    }

    /// What is to be kept of a packet that is sent now. The flow restarts its clocks when nothing is
    /// in flight, so that pauses do not count as slow delivery.
    #[inline]
    pub fn depart(&mut self, path: &mut Path, outstanding: u32) -> PacketInfo {
        if outstanding == 0 {
            self.first_sent_at = path.now;
            path.delivered_at = path.now;
        }
        let send_state = SendState {
            sent_at: path.now,
            delivered: path.delivered,
            lost: path.lost as u32,
            marked: path.marked as u32,
            in_flight: path.in_flight + 1,
            app_limited: self.is_app_limited(),
        };
        PacketInfo {
            send_state,
            first_sent_at: self.first_sent_at,
            delivered_at: path.delivered_at,
        }
    }

    /// Whether the application, not the network, limits sending.
    #[inline]
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until > 0
    }

    /// The application has nothing to send though the window is open.
    pub fn set_app_limited(&mut self, path: &Path) {
        self.app_limited_until = (path.delivered + u64::from(path.in_flight)).max(1);
    }

    /// The sample that an acknowledgement gives, after `path.delivered` has been advanced, from
    /// the newest packet that it delivers.
    #[inline]
    pub fn sample(&mut self, path: &Path, newest: Option<&PacketInfo>) -> Option<RateSample> {
        if path.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        let packet = newest?;
        self.first_sent_at = packet.send_state.sent_at;
        let send = packet.send_state.sent_at.since(packet.first_sent_at);
        let acked = path.now.since(packet.delivered_at);
        let interval = send.max(acked);
        // Shorter than the least round trip cannot be: the sample mixes two transmissions.
        if interval.is_zero() || path.min_rtt.is_some_and(|min| interval < min) {
            return None;
        }
        let delivered = path.delivered - packet.send_state.delivered;
        let rate = Rate::from_bytes_in(delivered as f64 * f64::from(path.mss), interval);
        if !packet.send_state.app_limited || rate.bytes_per_sec() > self.latest.bytes_per_sec() {
            self.latest = rate;
        }
        Some(RateSample {
            delivered: delivered as u32,
            interval,
            rate,
            send_state: packet.send_state,
            lost: (path.lost as u32).wrapping_sub(packet.send_state.lost),
            marked: (path.marked as u32).wrapping_sub(packet.send_state.marked),
        })
    }
}
