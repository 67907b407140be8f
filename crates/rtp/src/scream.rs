//! SCReAMv2 (draft-johansson-ccwg-rfc8298bis-screamv2-07, "Detailed Description of SCReAMv2 Sender
//! Algorithm"). Variables and constants have the names of the draft.
//!
//! The filter of jitter is on and has the threshold of the authors' text of 2 March 2026 (5db629d in their
//! repository), `max(0.05, 0.1 (1 - ref_wnd_ratio / 0.1))`. In version -07 it is off (`REDUCE_JITTER`) and
//! its threshold is 1. Without it a flow takes its own queue for that of a competing flow after losses.
//!
//! Left out: the compensation of clock drift, as both ends have one clock here, and the history of
//! `max_bytes_in_flight` at the maximum rate, for which the draft refers to its authors' code.

mod competing;
mod delay;

use crate::control::{Feedback, MediaControl, RateLimits, metric};
use crate::options::{MediaEcn, RtpOptions};
use competing::CompetingFlows;
use delay::{BaseDelay, QueueDelay};
use dumbbell_cc::Metric;
use dumbbell_sim::EcnCodepoint;
use dumbbell_units::{Rate, Span, Time};

/// Minimum reference window, bytes.
const MIN_REF_WND: f64 = 3000.0;
/// Extra headroom for bytes in flight.
const BYTES_IN_FLIGHT_HEAD_ROOM: f64 = 1.5;
/// `ref_wnd` scale factor due to a loss event.
const BETA_LOSS: f64 = 0.7;
/// The same due to a classic mark.
const BETA_ECN: f64 = 0.8;
/// Round trips after a congestion event for which growth is cautious.
const POST_CONGESTION_DELAY_RTTS: f64 = 100.0;
/// Share of `ref_wnd` by which it grows per round trip at most.
const MUL_INCREASE_FACTOR: f64 = 0.02;
/// Virtual round-trip time, s: shorter ones count as this.
const VIRTUAL_RTT: f64 = 0.025;
/// Minimum scaling of back-off and increase while the queue delay varies.
const MIN_QUEUE_DELAY_DEV_SCALE: f64 = 0.1;
/// Gains of the average of marks.
const L4S_AVG_G_UP: f64 = 1.0 / 8.0;
const L4S_AVG_G_DOWN: f64 = 1.0 / 128.0;
/// How far bytes in flight may exceed `ref_wnd`.
const REF_WND_OVERHEAD_MIN: f64 = 1.5;
const REF_WND_OVERHEAD_MAX: f64 = 3.0;
/// Minimum pacing rate, bit/s, and headroom of pacing.
const RATE_PACE_MIN: f64 = 50_000.0;
const PACKET_PACING_HEADROOM: f64 = 1.5;
const MAX_RELAXED_PACING_FACTOR: f64 = 4.0;
const RELAXED_PACING_LIMIT_LOW: f64 = 0.8;
/// Estimated packetisation overhead, bytes.
const PACKET_OVERHEAD: f64 = 20.0;
const RATE_ADJUST_GAIN: f64 = 1.0 / 16.0;
const FRAME_SIZE_DEV_ALPHA: f64 = 1.0 / 64.0;

/// SCReAMv2.
pub struct Scream {
    mss: f64,
    is_l4s: bool,
    frame_period: f64,
    target_bitrate_min: f64,
    target_bitrate_max: f64,
    /// bit/s.
    target_bitrate: f64,
    rate_adjust_factor: f64,
    frame_size_dev: f64,
    ref_wnd: f64,
    ref_wnd_i: f64,
    s_rtt: f64,
    base_delay: BaseDelay,
    queue_delay: QueueDelay,
    competing: CompetingFlows,
    l4s_alpha: f64,
    last_update_l4s_alpha_time: Time,
    data_units_delivered_this_rtt: u32,
    data_units_marked_this_rtt: u32,
    /// Losses and marks since the latest reaction.
    loss_detected: bool,
    data_units_marked: bool,
    /// `None` is never, for which the draft has 0. That would be a time, and a flow that starts then would
    /// be just congested.
    last_congestion_detected_time: Option<Time>,
    last_reaction_to_congestion_time: Option<Time>,
    last_ref_wnd_i_update_time: Option<Time>,
    max_bytes_in_flight: f64,
    max_bytes_in_flight_prev: f64,
    round_began: Time,
}

/// From a time to now; infinite if the time never was.
fn seconds_since(time: Option<Time>, now: Time) -> f64 {
    time.map_or(f64::INFINITY, |time| now.since(time).as_secs_f64())
}

/// What congestion there is.
#[derive(Clone, Copy, PartialEq)]
enum CongestionSignal {
    Loss,
    Ce,
    /// With `l4s_alpha_v`.
    VirtualCe(f64),
}

impl Scream {
    /// The control of a flow with these options.
    pub fn new(options: &RtpOptions) -> Scream {
        Scream {
            mss: f64::from(options.payload),
            is_l4s: options.ecn == MediaEcn::L4s,
            frame_period: 1.0 / f64::from(options.fps),
            target_bitrate_min: options.min_rate_bps as f64,
            target_bitrate_max: f64::INFINITY,
            target_bitrate: options.start_rate_bps as f64,
            rate_adjust_factor: 0.0,
            frame_size_dev: 0.0,
            ref_wnd: MIN_REF_WND,
            ref_wnd_i: 1.0,
            s_rtt: 0.0,
            base_delay: BaseDelay::default(),
            queue_delay: QueueDelay::default(),
            competing: CompetingFlows::default(),
            l4s_alpha: 0.0,
            last_update_l4s_alpha_time: Time::ZERO,
            data_units_delivered_this_rtt: 0,
            data_units_marked_this_rtt: 0,
            loss_detected: false,
            data_units_marked: false,
            last_congestion_detected_time: None,
            last_reaction_to_congestion_time: None,
            last_ref_wnd_i_update_time: None,
            max_bytes_in_flight: 0.0,
            max_bytes_in_flight_prev: 0.0,
            round_began: Time::ZERO,
        }
    }

    fn ref_wnd_ratio(&self) -> f64 {
        (self.mss / self.ref_wnd).min(1.0)
    }

    /// How far `ref_wnd` is from the last known maximum, 0.1 (close) to 1.
    fn scl(&self) -> f64 {
        let scl = (self.ref_wnd - self.ref_wnd_i) / self.ref_wnd_i * 8.0;
        (scl * scl).clamp(0.1, 1.0)
    }

    /// Restriction of growth and back-off while the queue delay varies.
    fn dev_scale(&self) -> f64 {
        self.queue_delay.dev_scale(self.ref_wnd_ratio())
    }

    fn update_l4s_alpha(&mut self, feedback: &Feedback<'_>) {
        let received = feedback.packets.iter().filter(|packet| packet.arrived_at.is_some());
        let marked = received.clone().filter(|packet| packet.ecn == EcnCodepoint::Ce).count();
        self.data_units_delivered_this_rtt += received.count() as u32;
        self.data_units_marked_this_rtt += marked as u32;
        let elapsed = feedback.now.since(self.last_update_l4s_alpha_time).as_secs_f64();
        if elapsed < self.s_rtt.min(0.01) || self.data_units_delivered_this_rtt == 0 {
            return;
        }
        let fraction_marked = f64::from(self.data_units_marked_this_rtt)
            / f64::from(self.data_units_delivered_this_rtt);
        self.l4s_alpha = if fraction_marked >= self.l4s_alpha {
            L4S_AVG_G_UP * fraction_marked + (1.0 - L4S_AVG_G_UP) * self.l4s_alpha
        } else {
            (1.0 - L4S_AVG_G_DOWN) * self.l4s_alpha
        };
        self.last_update_l4s_alpha_time = feedback.now;
        self.data_units_delivered_this_rtt = 0;
        self.data_units_marked_this_rtt = 0;
    }

    /// The congestion to react to now, at most once per round trip.
    fn congestion(&mut self, now: Time) -> Option<CongestionSignal> {
        if self.loss_detected || self.data_units_marked {
            self.last_congestion_detected_time = Some(now);
        }
        let since = seconds_since(self.last_reaction_to_congestion_time, now);
        if since < VIRTUAL_RTT.min(self.s_rtt) {
            return None;
        }
        let (qdelay_avg, target) = (self.queue_delay.avg, self.competing.qdelay_target);
        if self.loss_detected {
            Some(CongestionSignal::Loss)
        } else if self.data_units_marked {
            Some(CongestionSignal::Ce)
        } else if qdelay_avg > target / 2.0 {
            let l4s_alpha_v = (qdelay_avg - target / 2.0) / (target / 2.0);
            Some(CongestionSignal::VirtualCe(l4s_alpha_v.clamp(0.0, 1.0)))
        } else {
            None
        }
    }

    /// "Reference Window Reduction".
    fn reduce(&mut self, now: Time, congestion: CongestionSignal, scl: f64) {
        let since_i = seconds_since(self.last_ref_wnd_i_update_time, now);
        if since_i > 10.0 * self.s_rtt {
            self.last_ref_wnd_i_update_time = Some(now);
            self.ref_wnd_i = self.ref_wnd;
        }
        let high_rtt = (self.s_rtt / VIRTUAL_RTT).max(1.0);
        match congestion {
            CongestionSignal::Loss => self.ref_wnd *= BETA_LOSS,
            CongestionSignal::Ce if self.is_l4s => {
                let mut backoff = self.l4s_alpha / 2.0 / high_rtt;
                // The draft's name for this is is_large_jitter.
                if self.queue_delay.latest < self.competing.qdelay_target * 0.25 {
                    backoff *= scl.max(0.25) * self.dev_scale().max(MIN_QUEUE_DELAY_DEV_SCALE);
                }
                let since = seconds_since(self.last_reaction_to_congestion_time, now);
                if since > 100.0 * self.s_rtt.max(VIRTUAL_RTT) {
                    self.ref_wnd = self.ref_wnd.min(self.max_bytes_in_flight_prev);
                }
                self.ref_wnd *= 1.0 - backoff;
            }
            CongestionSignal::Ce => self.ref_wnd *= BETA_ECN,
            CongestionSignal::VirtualCe(l4s_alpha_v) => {
                self.ref_wnd *= 1.0 - l4s_alpha_v / 2.0 / high_rtt;
            }
        }
        self.ref_wnd = self.ref_wnd.max(MIN_REF_WND);
        self.last_reaction_to_congestion_time = Some(now);
        (self.loss_detected, self.data_units_marked) = (false, false);
    }

    /// "Reference Window Increase".
    fn increase(&mut self, feedback: &Feedback<'_>, scl: f64) {
        let rtts = POST_CONGESTION_DELAY_RTTS * self.s_rtt.max(VIRTUAL_RTT);
        let since = seconds_since(self.last_congestion_detected_time, feedback.now);
        let post_congestion_scale = (since / rtts).clamp(0.0, 1.0);
        let marked = feedback.packets.iter().filter(|packet| packet.ecn == EcnCodepoint::Ce);
        let bytes_newly_acked_ce: u64 = marked.map(|packet| u64::from(packet.size)).sum();
        let acked = feedback.bytes_newly_acked.saturating_sub(bytes_newly_acked_ce) as f64;
        let mut increment = acked * self.ref_wnd_ratio();
        increment *= (self.s_rtt / VIRTUAL_RTT).min(1.0);
        increment *= scl.max(0.25);
        increment *= self.dev_scale().max(MIN_QUEUE_DELAY_DEV_SCALE);
        let multiplicative = MUL_INCREASE_FACTOR * self.ref_wnd / self.mss;
        increment *= 1.0 + multiplicative * post_congestion_scale * scl;
        let in_flight = self.max_bytes_in_flight.max(self.max_bytes_in_flight_prev);
        let max_allowed = self.mss + in_flight * BYTES_IN_FLIGHT_HEAD_ROOM;
        let ref_wnd = self.ref_wnd + increment;
        if ref_wnd <= max_allowed && self.target_bitrate < self.target_bitrate_max {
            self.ref_wnd = ref_wnd;
        }
    }

    /// "Media Rate Control".
    fn update_target_bitrate(&mut self) {
        let mut scale = 1.0 - (self.ref_wnd_ratio() - 0.1).clamp(0.0, 0.2);
        scale *= self.mss / (self.mss + PACKET_OVERHEAD);
        scale /= 1.2 + self.rate_adjust_factor + self.frame_size_dev;
        let target = scale * 8.0 * self.ref_wnd / self.s_rtt.max(1e-6);
        self.target_bitrate = target.max(self.target_bitrate_min).min(self.target_bitrate_max);
    }

    /// A round trip later the bytes in flight of the latest one are those of the previous.
    fn update_round(&mut self, now: Time, bytes_in_flight: u64) {
        if now.since(self.round_began).as_secs_f64() >= self.s_rtt {
            self.round_began = now;
            self.max_bytes_in_flight_prev = self.max_bytes_in_flight;
            self.max_bytes_in_flight = bytes_in_flight as f64;
            self.competing.on_round();
        }
    }

    /// The reference window, bytes.
    pub fn ref_wnd(&self) -> f64 {
        self.ref_wnd
    }

    /// The average share of marked packets.
    pub fn l4s_alpha(&self) -> f64 {
        self.l4s_alpha
    }
}

impl MediaControl for Scream {
    fn set_limits(&mut self, limits: RateLimits) {
        self.target_bitrate_min = limits.min.bits_per_sec();
        self.target_bitrate_max = limits.max.bits_per_sec();
        let target = self.target_bitrate.max(self.target_bitrate_min);
        self.target_bitrate = target.min(self.target_bitrate_max);
    }

    fn on_frame(&mut self, bytes: u32, queue_delay: Span) {
        let error = (queue_delay.as_secs_f64() - self.frame_period / 4.0) / self.frame_period;
        self.rate_adjust_factor =
            (self.rate_adjust_factor + error * RATE_ADJUST_GAIN).clamp(0.0, 0.5);
        let nominal = self.target_bitrate * self.frame_period / 8.0;
        let deviation = ((f64::from(bytes) - nominal) / nominal).max(0.0);
        self.frame_size_dev = ((1.0 - FRAME_SIZE_DEV_ALPHA) * self.frame_size_dev
            + FRAME_SIZE_DEV_ALPHA * deviation)
            .min(0.2);
    }

    fn on_sent(&mut self, _now: Time, bytes_in_flight: u64) {
        self.max_bytes_in_flight = self.max_bytes_in_flight.max(bytes_in_flight as f64);
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        let now = feedback.now;
        let Some(s_rtt) = feedback.srtt else { return };
        self.s_rtt = s_rtt.as_secs_f64();
        for packet in feedback.packets {
            match packet.arrived_at {
                None => (self.loss_detected, self.competing.was_loss_event) = (true, true),
                Some(at) => {
                    self.data_units_marked |= packet.ecn == EcnCodepoint::Ce;
                    self.queue_delay.latest = self.base_delay.queue_delay(now, packet.sent_at, at);
                }
            }
        }
        self.update_round(now, feedback.bytes_in_flight);
        self.update_l4s_alpha(feedback);
        self.queue_delay.update(now, self.s_rtt.min(VIRTUAL_RTT), self.ref_wnd_ratio());
        self.competing.update(now, self.queue_delay.latest);
        let scl = self.scl();
        if let Some(congestion) = self.congestion(now) {
            self.reduce(now, congestion, scl);
        }
        self.increase(feedback, scl);
        self.update_target_bitrate();
    }

    fn target_rate(&self) -> Rate {
        Rate::from_bits_per_sec(self.target_bitrate)
    }

    /// "Packet Pacing".
    fn pacing_rate(&self) -> Rate {
        let pace_bitrate = self.target_bitrate.max(RATE_PACE_MIN) * PACKET_PACING_HEADROOM;
        let nominal = self.target_bitrate / self.target_bitrate_max;
        let relaxed = (nominal - RELAXED_PACING_LIMIT_LOW) / (1.0 - RELAXED_PACING_LIMIT_LOW);
        let scale = (1.0 - relaxed).clamp(1.0 / MAX_RELAXED_PACING_FACTOR, 1.0);
        Rate::from_bits_per_sec(pace_bitrate / scale)
    }

    /// "Send Window Calculation".
    fn max_in_flight(&self) -> Option<u64> {
        let overhead =
            REF_WND_OVERHEAD_MIN + (REF_WND_OVERHEAD_MAX - REF_WND_OVERHEAD_MIN) * self.dev_scale();
        Some((self.ref_wnd * overhead) as u64)
    }

    fn window(&self) -> Option<f64> {
        Some(self.ref_wnd)
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        show(metric("ref_wnd_i", self.ref_wnd_i / self.mss));
        show(metric("qdelay", self.queue_delay.latest));
        show(metric("qdelay_avg", self.queue_delay.avg));
        show(metric("qdelay_target", self.competing.qdelay_target));
        show(metric("l4s_alpha", self.l4s_alpha));
        show(metric("rate_adjust_factor", self.rate_adjust_factor));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::PacketResult;

    /// A flow that gets a report of a packet every 10 ms with a round-trip time of 50 ms. These are
    /// the packets' queue delays in ms; `None` is a loss.
    fn after(delays: impl IntoIterator<Item = Option<u64>>) -> Scream {
        since(10, delays)
    }

    /// The same with the first report after so many times 10 ms.
    fn since(first: u64, delays: impl IntoIterator<Item = Option<u64>>) -> Scream {
        let mut scream = Scream::new(&RtpOptions::default());
        for (report, delay) in (first..).zip(delays) {
            let now = Time::ZERO + Span::from_millis(10 * report);
            let sent_at = now - Span::from_millis(50);
            let packet = PacketResult {
                number: report,
                sent_at,
                size: 1200,
                arrived_at: delay.map(|delay| sent_at + Span::from_millis(25 + delay)),
                ecn: EcnCodepoint::NotEct,
            };
            scream.on_feedback(&Feedback {
                now,
                packets: &[packet],
                bytes_newly_acked: 1200,
                bytes_in_flight: 6000,
                srtt: Some(Span::from_millis(50)),
            });
        }
        scream
    }

    #[test]
    fn a_flow_is_the_same_whenever_it_starts() {
        let delays: Vec<_> = (0..600).map(|report| (report != 300).then_some(report % 7)).collect();
        let [early, late] = [5, 1_000_000].map(|first| since(first, delays.iter().copied()));
        assert_eq!(early.ref_wnd, late.ref_wnd);
        assert_eq!(early.competing.qdelay_target, late.competing.qdelay_target);
    }

    #[test]
    fn a_flow_that_was_never_congested_grows_by_the_full_factor() {
        // The first report of a flow that starts at 0 s: no part of 100 round trips has passed.
        let mut scream = since(5, [Some(0)]);
        scream.ref_wnd = 100_000.0;
        scream.max_bytes_in_flight = 100_000.0;
        let feedback = Feedback {
            now: Time::ZERO + Span::from_millis(60),
            packets: &[],
            bytes_newly_acked: 1200,
            bytes_in_flight: 6000,
            srtt: Some(Span::from_millis(50)),
        };
        scream.increase(&feedback, 1.0);
        let increment = 1200.0 * (1200.0 / 100_000.0) * (1.0 + 0.02 * 100_000.0 / 1200.0);
        assert!((scream.ref_wnd - 100_000.0 - increment).abs() < 1e-6, "{}", scream.ref_wnd);
    }

    #[test]
    fn a_loss_counts_at_the_end_of_its_round_trip() {
        // The first report ends a round trip, and the sixth, 50 ms later. The loss is in between.
        let mut delays = [Some(0); 6];
        assert_eq!(after(delays).competing.loss_event_rate, 0.0);
        delays[2] = None;
        assert_eq!(after(delays).competing.loss_event_rate, 0.02);
    }
}
