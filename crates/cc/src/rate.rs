//! Delivery rate samples (draft-cheng-iccrg-delivery-rate-estimation-02; draft-ietf-ccwg-bbr-06, section 4.1).
//!
//! Each packet records the connection's delivery state when it is sent. When it is acknowledged, the
//! sample is the number of packets delivered since then, divided by the longer of two intervals:
//! that in which they were sent and that in which they were acknowledged. The longer one excludes
//! inflation by send bursts and by compressed acknowledgements.

use crate::{Path, RateSample, SendState};
use dumbbell_units::{Rate, Time};

/// Delivery rate estimator: the connection's state.
///
/// ```
/// use dumbbell_cc::{Path, RateSampler};
/// use dumbbell_units::{Span, Time};
///
/// let mut path = Path::new(1000, Time::ZERO);
/// let mut sampler = RateSampler::new(path.now);
/// let packets = [0, 1].map(|outstanding| {
///     path.in_flight = outstanding;
///     sampler.on_packet_sent(&mut path, outstanding)
/// });
///
/// // One acknowledgement of both packets after 10 ms.
/// path.now = Time::ZERO + Span::from_millis(10);
/// path.delivered += 2;
/// path.delivered_at = path.now;
/// let sample = sampler.sample(&path, Some(&packets[1])).expect("time has passed");
/// assert_eq!((sample.delivered, sample.rate.bytes_per_sec()), (2, 200_000.0));
/// ```
#[derive(Clone, Debug)]
pub struct RateSampler {
    /// When the newest packet delivered so far was sent (C.first_sent_time).
    pub first_sent_at: Time,
    /// Delivered count at which the application limit ends (C.app_limited); 0 if there is none.
    app_limited_until: u64,
    /// The latest rate that an application-limited sample did not lower.
    pub latest: Rate,
}

/// The delivery state recorded with a packet. The transport keeps it until the packet is
/// acknowledged or lost.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketInfo {
    /// State of the connection when the packet was sent.
    pub send_state: SendState,
    /// C.first_sent_time then (P.first_sent_time).
    pub first_sent_at: Time,
    /// C.delivered_time then (P.delivered_time).
    pub delivered_at: Time,
}

impl RateSampler {
    /// The estimator of a connection that begins at `now`.
    pub fn new(now: Time) -> RateSampler {
        RateSampler { first_sent_at: now, app_limited_until: 0, latest: Rate::ZERO }
    }

    /// The state to record with a packet sent now (SendPacket). Call it before `path.in_flight` counts
    /// the packet. If no packet is `outstanding`, both intervals begin now, so that an idle period does not
    /// count as slow delivery.
    #[inline]
    pub fn on_packet_sent(&mut self, path: &mut Path, outstanding: u32) -> PacketInfo {
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

    /// Whether the application limits sending.
    #[inline]
    pub fn is_app_limited(&self) -> bool {
        self.app_limited_until > 0
    }

    /// The application has no data although the window is open (MarkConnectionAppLimited). Samples are
    /// application-limited until every packet now in flight is delivered.
    pub fn set_app_limited(&mut self, path: &Path) {
        self.app_limited_until = delivered_with_flight(path);
    }

    /// Packets were discarded with their keys (RFC 9002, section 6.4). They will never be delivered, so
    /// an application limit ends without them. Call it when `path.in_flight` no longer counts them.
    pub fn on_packet_discarded(&mut self, path: &Path) {
        self.app_limited_until = self.app_limited_until.min(delivered_with_flight(path));
    }

    /// The sample of an acknowledgement (GenerateRateSample), from the newest packet that it
    /// delivers. Call it after `path.delivered` has been advanced. `None` without such a packet, or if
    /// the interval is zero or below `path.min_rtt`.
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
        // Below the minimum round-trip time, the sample mixes two transmissions of one packet.
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

/// The delivered count once every packet now in flight is delivered; at least 1.
fn delivered_with_flight(path: &Path) -> u64 {
    (path.delivered + u64::from(path.in_flight)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dumbbell_units::Span;

    fn send(sampler: &mut RateSampler, path: &mut Path) -> PacketInfo {
        let outstanding = path.in_flight;
        let packet = sampler.on_packet_sent(path, outstanding);
        path.in_flight += 1;
        packet
    }

    fn deliver(sampler: &mut RateSampler, path: &mut Path, packet: &PacketInfo) {
        path.now += Span::from_millis(1);
        (path.delivered, path.delivered_at) = (path.delivered + 1, path.now);
        path.in_flight -= 1;
        sampler.sample(path, Some(packet));
    }

    #[test]
    fn an_application_limit_ends_without_the_discarded_packets() {
        let mut path = Path::new(1200, Time::ZERO);
        let mut sampler = RateSampler::new(path.now);
        let handshake: Vec<_> = (0..10).map(|_| send(&mut sampler, &mut path)).collect();
        sampler.set_app_limited(&path);
        path.in_flight -= 6;
        sampler.on_packet_discarded(&path);
        let data = send(&mut sampler, &mut path);
        for packet in &handshake[6..] {
            deliver(&mut sampler, &mut path, packet);
            assert!(sampler.is_app_limited());
        }
        deliver(&mut sampler, &mut path, &data);
        assert!(!sampler.is_app_limited());
    }

    #[test]
    fn a_discarded_packet_begins_no_application_limit() {
        let mut path = Path::new(1200, Time::ZERO);
        let mut sampler = RateSampler::new(path.now);
        send(&mut sampler, &mut path);
        path.in_flight = 0;
        sampler.on_packet_discarded(&path);
        assert!(!sampler.is_app_limited());
    }
}
