//! The bounds that loss and ECN set to the model (draft-ietf-ccwg-bbr-06, section 5.5.10).
//!
//! Two time scales. The short-term bounds `bw_lo` and `inflight_lo` respond to congestion between
//! probes and are forgotten when the next probe begins. The long-term bound `inflight_hi` is the
//! volume at which a probe found the path to lose too much; only further probes move it. The draft
//! calls them `bw_shortterm`, `inflight_shortterm` and `inflight_longterm`. Infinite when not set.

use super::signals::Signals;
use super::version::MIN_CWND;
use dumbbell_units::Rate;

/// The bounds in force, and those from before the last episode of loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    now: Values,
    before: Values,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Values {
    bw_lo: Rate,
    inflight_lo: f64,
    inflight_hi: f64,
}

const NONE: Values = Values {
    bw_lo: Rate::from_bytes_per_sec(f64::INFINITY),
    inflight_lo: f64::INFINITY,
    inflight_hi: f64::INFINITY,
};

impl Bounds {
    /// No bounds.
    pub fn new() -> Bounds {
        Bounds { now: NONE, before: NONE }
    }

    /// Bandwidth that seems safe at present.
    #[inline]
    pub fn bw_lo(&self) -> Rate {
        self.now.bw_lo
    }

    /// Packets in flight that seem safe at present.
    #[inline]
    pub fn inflight_lo(&self) -> f64 {
        self.now.inflight_lo
    }

    /// Packets in flight that the last probes found safe.
    #[inline]
    pub fn inflight_hi(&self) -> f64 {
        self.now.inflight_hi
    }

    /// Packets in flight that leave `share` of what is safe, and at least one, to others.
    #[inline]
    pub fn with_headroom(&self, share: f64) -> f64 {
        let hi = self.now.inflight_hi;
        if hi.is_infinite() { hi } else { libm::floor(hi - (share * hi).max(1.0)).max(MIN_CWND) }
    }

    /// A probe begins: forgets the short-term bounds.
    pub fn forget_short_term(&mut self) {
        self.now.bw_lo = NONE.bw_lo;
        self.now.inflight_lo = NONE.inflight_lo;
    }

    /// Sets the short-term volume where it is not set.
    pub fn begin_short_term(&mut self, cwnd: f64) {
        if self.now.inflight_lo.is_infinite() {
            self.now.inflight_lo = cwnd;
        }
    }

    /// A round with losses (`beta`) or marks (`ecn_cut`) is over; each is what is left of the
    /// bounds. Losses lower them no further than to what the round delivered.
    pub fn end_round(
        &mut self,
        signals: &Signals,
        (max_bw, cwnd): (Rate, f64),
        beta: f64,
        ecn_cut: f64,
    ) {
        if !(signals.loss_in_round || signals.ecn_in_round) {
            return;
        }
        self.begin_short_term(cwnd);
        let by_ecn = if signals.ecn_in_round {
            libm::floor(self.now.inflight_lo * ecn_cut)
        } else {
            f64::INFINITY
        };
        if signals.loss_in_round {
            let bw_lo = if self.now.bw_lo < NONE.bw_lo { self.now.bw_lo } else { max_bw };
            self.now.bw_lo = signals.bw_latest.max(bw_lo * beta);
            let volume = libm::floor(self.now.inflight_lo * beta);
            self.now.inflight_lo = signals.inflight_latest.max(volume);
        }
        self.now.inflight_lo = self.now.inflight_lo.min(by_ecn);
    }

    /// A probe, or Startup, found that more than `packets` in flight is too much.
    pub fn set_long_term(&mut self, packets: f64) {
        self.now.inflight_hi = libm::floor(packets).max(MIN_CWND);
    }

    /// More in flight proved safe.
    pub fn raise_long_term(&mut self, packets: f64) {
        self.now.inflight_hi = self.now.inflight_hi.max(packets);
    }

    /// An episode of loss begins: remembers the bounds.
    pub fn save(&mut self) {
        self.before = self.now;
    }

    /// The episode was spurious: the bounds are at least what they were.
    pub fn restore(&mut self) {
        self.now.bw_lo = self.now.bw_lo.max(self.before.bw_lo);
        self.now.inflight_lo = self.now.inflight_lo.max(self.before.inflight_lo);
        self.now.inflight_hi = self.now.inflight_hi.max(self.before.inflight_hi);
    }
}

/// At how many packets in flight losses crossed `thresh`, when a packet is lost that was the last
/// of `in_flight` and of `lost` (draft-ietf-ccwg-bbr-06, section 5.5.10.2, InflightAtLoss).
pub fn inflight_at_loss(in_flight: f64, lost: f64, thresh: f64) -> f64 {
    let in_flight_before = (in_flight - 1.0).max(0.0);
    let lost_before = lost - 1.0;
    let prefix = (thresh * in_flight_before - lost_before) / (1.0 - thresh);
    in_flight_before + prefix.max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(bytes: f64) -> Rate {
        Rate::from_bytes_per_sec(bytes)
    }

    fn round(loss: bool, ecn: bool, bw: f64, inflight: f64) -> Signals {
        let mut signals = Signals::default();
        (signals.loss_in_round, signals.ecn_in_round) = (loss, ecn);
        (signals.bw_latest, signals.inflight_latest) = (rate(bw), inflight);
        signals
    }

    #[test]
    fn a_round_of_losses_leaves_70_percent_of_the_short_term_bounds() {
        let mut bounds = Bounds::new();
        bounds.end_round(&round(true, false, 10.0, 5.0), (rate(1000.0), 100.0), 0.7, 1.0);
        assert_eq!((bounds.bw_lo(), bounds.inflight_lo()), (rate(700.0), 70.0));
        bounds.end_round(&round(true, false, 10.0, 5.0), (rate(1000.0), 100.0), 0.7, 1.0);
        assert!((bounds.bw_lo().bytes_per_sec() - 490.0).abs() < 1e-9);
        assert_eq!(bounds.inflight_lo(), 49.0);
    }

    #[test]
    fn losses_lower_the_bounds_no_further_than_to_what_was_delivered() {
        let mut bounds = Bounds::new();
        bounds.end_round(&round(true, false, 950.0, 97.0), (rate(1000.0), 100.0), 0.7, 1.0);
        assert_eq!((bounds.bw_lo(), bounds.inflight_lo()), (rate(950.0), 97.0));
    }

    #[test]
    fn marks_lower_the_volume_but_not_the_bandwidth() {
        let mut bounds = Bounds::new();
        bounds.end_round(&round(false, true, 950.0, 97.0), (rate(1000.0), 100.0), 0.7, 2.0 / 3.0);
        assert_eq!((bounds.bw_lo(), bounds.inflight_lo()), (rate(f64::INFINITY), 66.0));
    }

    #[test]
    fn a_calm_round_changes_nothing() {
        let mut bounds = Bounds::new();
        bounds.end_round(&round(false, false, 10.0, 5.0), (rate(1000.0), 100.0), 0.7, 0.5);
        assert_eq!(bounds, Bounds::new());
    }

    #[test]
    fn headroom_is_15_percent_and_at_least_a_packet() {
        let mut bounds = Bounds::new();
        assert_eq!(bounds.with_headroom(0.15), f64::INFINITY);
        bounds.set_long_term(100.0);
        assert_eq!(bounds.with_headroom(0.15), 85.0);
        bounds.set_long_term(6.0);
        assert_eq!(bounds.with_headroom(0.15), 5.0);
        bounds.set_long_term(4.0);
        assert_eq!(bounds.with_headroom(0.15), 4.0);
    }

    #[test]
    fn losses_cross_2_percent_of_200_packets_with_the_fifth() {
        // 4 of 199 is 2.01 %, so all of the crossing lies before the fifth packet.
        assert_eq!(inflight_at_loss(200.0, 5.0, 0.02), 199.0);
        // None lost before: x / (100 + x) = 2 % for x = 2.04.
        assert!((inflight_at_loss(101.0, 1.0, 0.02) - 102.04).abs() < 0.01);
    }

    #[test]
    fn a_spurious_episode_leaves_no_trace() {
        let mut bounds = Bounds::new();
        bounds.save();
        bounds.set_long_term(50.0);
        bounds.end_round(&round(true, false, 10.0, 5.0), (rate(1000.0), 100.0), 0.7, 1.0);
        bounds.restore();
        assert_eq!(bounds, Bounds::new());
    }
}
