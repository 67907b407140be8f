//! TCP Prague (draft-briscoe-iccrg-prague-congestion-control-04; L4STeam's Linux `tcp_prague.c`, version
//! 0.7): DCTCP for the Internet, for the requirements of RFC 9331, section 4.3. Two of them are open here: a
//! minimum of two packets, and no fallback behind a queue that marks L4S and Classic packets alike.
//!
//! `alpha` estimates the fraction of marked packets as in DCTCP, from the first mark on. `M` is the
//! fraction of marks since the last update:
//!
//! ```text
//! alpha = (1 - g) alpha + g M        g = 1/16, initially alpha = 0
//! ```
//!
//! Unlike DCTCP's, the window grows on every acknowledgement, by what was not marked, also while it
//! is being reduced (additive increase that does not saturate). The window is a fraction of packets:
//!
//! ```text
//! each acknowledgement:       W = W + a (delivered - marked) / W
//! a mark, once a round trip:  W = W - W alpha / 2
//! the first mark:             W = W / 2, and slow start ends
//! a loss:                     W = W / 2, and no growth until the recovery ends
//! ```
//!
//! **RTT independence.** From the fourth round after slow start on, a flow with a round-trip time `R`
//! below the target (25 ms) acts as if that were its own: it reduces its window and updates `alpha`
//! every 25 ms at most, and `a = (R / 25 ms)^2`, otherwise 1. The marking probability then gives a
//! rate, whatever the round-trip time is.
//!
//! **Pacing.** The rate is max(W, packets in flight) per round-trip time, headers included, twice that in
//! slow start, in bursts of 0.25 ms at most. TCP's own pacing counts payload (Linux's too, without the `fq`
//! qdisc that the module wants), so that packets of 1500 bytes leave 3.6 % faster. The window that blocks
//! sending is W rounded up, at least 2, and approaches it by one packet an acknowledgement.
//!
//! Prague needs packets with ECT(1) and Accurate ECN (`ecn = "l4s"`), and a queue that marks them early.
//! Without marks it is Reno.
//!
//! | Linux | here |
//! |---|---|
//! | A reduction begins when the transport enters CWR, which lasts a round trip: with 20 ms, every 40 ms at most. | It begins with the first mark after max(25 ms, round trip), as in the authors' UDP Prague. |
//! | If part of the acknowledgement with the first mark is unmarked, slow start goes on and undoes the halving. | Slow start ends. |
//! | Fixed-point numbers | Floating-point numbers |
//! | The packet size falls at rates of less than two packets in 25 ms | It does not. |
//! | `cwnd_mode` 1 controls a rate instead of a window | Mode 0 only |

use crate::{
    Ack, CaState, ConfigError, CongestionControl, CongestionEvent, ConnectionConfig,
    ControlParameters, Metric, Options, Path, Signal,
};
use dumbbell_units::{Rate, Span, Time};

/// Rounds after slow start until the round-trip time stops to matter (`DEFAULT_RTT_TRANSITION`).
const RTT_TRANSITION: u32 = 4;
/// Beyond this round-trip time the increase is not scaled (`MAX_SCALED_RTT`).
const MAX_SCALED_RTT: Span = Span::from_millis(100);
/// Minimum pacing rate, bytes/s (`MINIMUM_RATE`).
const MINIMUM_RATE: f64 = 12_500.0;
/// Bytes of IPv4 and TCP headers with timestamps: the pacing rate counts them.
const HEADERS: u32 = 52;
/// Duration of a burst, s: 2^-12 (`prague_burst_shift`).
const BURST_TIME: f64 = 1.0 / 4096.0;
/// Minimum window, packets (`MIN_CWND_RTT`).
const MIN_CWND: f64 = 2.0;

/// The state of Prague; names as in Linux.
#[derive(Clone, Debug)]
pub struct Prague {
    g: f64,
    rtt_target: Span,
    /// Window that blocks sending, whole packets (`snd_cwnd`), and slow start threshold.
    cwnd: f64,
    ssthresh: f64,
    /// The window W.
    frac_cwnd: f64,
    alpha: f64,
    alpha_stamp: Time,
    /// Time and `Path::next_seq` of the last reduction for a mark.
    cwr_stamp: Time,
    cwr_seq: u64,
    /// Whether a packet was ever marked.
    saw_ce: bool,
    /// Whether the window was reduced for a loss in this recovery.
    in_loss: bool,
    /// `cwnd` and `frac_cwnd` before that.
    undo: Option<(f64, f64)>,
    /// Rounds since slow start.
    round: u32,
    /// `Path::next_seq`, `Path::delivered` and `Path::marked` when the round began.
    next_seq: u64,
    old_delivered: u64,
    old_marked: u64,
    pacing_rate: Option<Rate>,
    max_burst: u32,
}

impl Prague {
    /// Takes the options `g` and `rtt_target`.
    ///
    /// # Errors
    /// If one of them has a value that it cannot have.
    pub fn from_options(
        options: &mut Options,
        init: &ConnectionConfig,
    ) -> Result<Prague, ConfigError> {
        Ok(Prague {
            g: options.number("g", 1.0 / 16.0, 0.001..=1.0, "0.001 to 1")?,
            rtt_target: options.time(
                "rtt_target",
                Span::from_millis(25),
                Span::from_millis(1)..=MAX_SCALED_RTT,
                "1 ms to 100 ms",
            )?,
            cwnd: init.initial_window,
            ssthresh: f64::INFINITY,
            frac_cwnd: init.initial_window,
            alpha: 0.0,
            alpha_stamp: init.now,
            cwr_stamp: init.now,
            cwr_seq: 0,
            saw_ce: false,
            in_loss: false,
            undo: None,
            round: 0,
            next_seq: 0,
            old_delivered: 0,
            old_marked: 0,
            pacing_rate: None,
            max_burst: 1,
        })
    }

    fn is_in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    fn is_rtt_independent(&self) -> bool {
        !self.is_in_slow_start() && self.round >= RTT_TRANSITION
    }

    /// Whether an RTT-independent flow acted at `stamp` less than the target ago.
    fn is_within_target(&self, path: &Path, stamp: Time) -> bool {
        self.is_rtt_independent() && path.now.since(stamp) < self.rtt_target
    }

    /// Packets by which W grows per round-trip time (`prague_ai_ack_increase`).
    fn ai_ack_increase(&self, path: &Path) -> f64 {
        match path.srtt {
            Some(rtt)
                if self.round >= RTT_TRANSITION
                    && rtt <= MAX_SCALED_RTT
                    && rtt < self.rtt_target =>
            {
                let ratio = rtt.as_secs_f64() / self.rtt_target.as_secs_f64();
                ratio * ratio
            }
            _ => 1.0,
        }
    }

    /// A packet was marked. Reduces W, once a (virtual) round trip.
    fn on_mark(&mut self, path: &Path) {
        let is_first = !core::mem::replace(&mut self.saw_ce, true);
        let in_cwr = path.una <= self.cwr_seq || self.is_within_target(path, self.cwr_stamp);
        if self.in_loss || in_cwr && !is_first {
            return;
        }
        (self.cwr_stamp, self.cwr_seq) = (path.now, path.next_seq);
        let share = if is_first { 1.0 } else { self.alpha };
        self.frac_cwnd = (self.frac_cwnd * (1.0 - share / 2.0)).max(1.0);
        if is_first {
            self.ssthresh = libm::ceil(self.frac_cwnd).max(MIN_CWND).min(self.cwnd);
        }
    }

    /// Grows W by the packets that were not marked (`prague_update_cwnd`).
    fn grow(&mut self, path: &Path, mut acked: f64) {
        if self.is_in_slow_start() {
            let grown = self.cwnd + acked;
            self.cwnd = grown.min(self.ssthresh);
            self.frac_cwnd = self.cwnd;
            acked = grown - self.cwnd;
        }
        self.frac_cwnd += acked * self.ai_ack_increase(path) / self.frac_cwnd;
    }

    /// Moves the blocking window one packet towards W.
    fn step_cwnd(&mut self) {
        let target = libm::ceil(self.frac_cwnd).max(MIN_CWND);
        if self.cwnd > target {
            self.cwnd = (self.cwnd - 1.0).max(target);
            self.ssthresh = self.cwnd;
        } else if self.cwnd < target {
            self.cwnd = (self.cwnd + 1.0).min(target);
        }
    }

    /// Updates `alpha` and begins a round (`prague_update_alpha`).
    fn update_alpha(&mut self, path: &Path) {
        if self.saw_ce {
            let delivered = path.delivered.saturating_sub(self.old_delivered).max(1);
            let marked = path.marked.saturating_sub(self.old_marked);
            let fraction = (marked as f64 / delivered as f64).min(1.0);
            self.alpha += self.g * (fraction - self.alpha);
            self.alpha_stamp = path.now;
        }
        self.next_seq = path.next_seq;
        (self.old_delivered, self.old_marked) = (path.delivered, path.marked);
        if !self.is_in_slow_start() {
            self.round = self.round.saturating_add(1);
        }
    }

    fn update_pacing_rate(&mut self, path: &Path) {
        let Some(srtt) = path.srtt.filter(|srtt| !srtt.is_zero()) else { return };
        let mtu = f64::from(path.mss + HEADERS);
        let window = libm::floor(self.frac_cwnd).max(f64::from(path.in_flight));
        let mut rate = (window * mtu / srtt.as_secs_f64()).max(MINIMUM_RATE);
        if self.cwnd < libm::floor(self.ssthresh / 2.0) {
            rate *= 2.0;
        }
        self.max_burst = ((rate / mtu * BURST_TIME) as u32).max(1);
        self.pacing_rate = Some(Rate::from_bytes_per_sec(rate));
    }

    /// Halves W for a loss (`prague_enter_loss`).
    fn enter_loss(&mut self) {
        self.undo = Some((self.cwnd, self.frac_cwnd));
        self.frac_cwnd = (self.frac_cwnd / 2.0).max(1.0);
        self.in_loss = true;
    }
}

impl CongestionControl for Prague {
    fn on_established(&mut self, path: &Path) {
        self.alpha_stamp = path.now;
        self.update_pacing_rate(path);
    }

    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        if !matches!(path.ca_state, CaState::Recovery | CaState::Loss) {
            self.in_loss = false;
        }
        let acked = ack.delivered.saturating_sub(ack.marked);
        if acked > 0 && !self.in_loss && path.cwnd_limited {
            self.grow(path, f64::from(acked));
        }
        if ack.marked > 0 {
            self.on_mark(path);
        }
        self.step_cwnd();
        if path.una >= self.next_seq && !self.is_within_target(path, self.alpha_stamp) {
            self.update_alpha(path);
        }
        self.update_pacing_rate(path);
    }

    fn on_congestion(&mut self, path: &Path, event: &CongestionEvent) {
        match event.signal {
            // `on_ack` has every mark.
            Signal::Ecn => {}
            // A loss while marks reduce the window begins no episode of the transport. One recovery
            // may follow another at once.
            Signal::Loss => {
                if !self.in_loss || event.new_episode {
                    self.enter_loss();
                }
            }
            Signal::Timeout => {
                if event.new_episode {
                    self.enter_loss();
                }
                self.cwnd = f64::from(path.in_flight) + 1.0;
            }
        }
        self.update_pacing_rate(path);
    }

    fn control(&self) -> ControlParameters {
        ControlParameters::new(self.cwnd)
            .with_ssthresh(self.ssthresh)
            .with_pacing_rate(self.pacing_rate)
            .with_max_send_quantum(Some(self.max_burst))
    }

    fn on_spurious_loss(&mut self, path: &Path) {
        if let Some((cwnd, frac_cwnd)) = self.undo.take() {
            self.cwnd = self.cwnd.max(cwnd);
            self.frac_cwnd = self.frac_cwnd.max(frac_cwnd);
            self.in_loss = false;
            self.update_pacing_rate(path);
        }
    }

    fn on_mtu_update(&mut self, path: &Path, previous_mss: u32) {
        let factor = f64::from(previous_mss) / f64::from(path.mss);
        self.frac_cwnd = (self.frac_cwnd * factor).max(1.0);
        self.cwnd = (self.cwnd * factor).max(1.0);
        self.ssthresh = (self.ssthresh * factor).max(2.0);
        self.undo = self.undo.map(|(cwnd, frac)| (cwnd * factor, frac * factor));
    }

    fn on_persistent_congestion(&mut self, path: &Path) {
        self.on_congestion(path, &CongestionEvent::persistent_congestion(path));
        (self.cwnd, self.frac_cwnd) = (MIN_CWND, MIN_CWND);
    }

    /// As Linux's `cong_control`, which sets the window in recovery too.
    fn uses_prr(&self) -> bool {
        false
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        show(Metric { name: "alpha", value: self.alpha });
        show(Metric { name: "frac_cwnd", value: self.frac_cwnd });
        show(Metric { name: "rtt_indep", value: f64::from(u8::from(self.is_rtt_independent())) });
    }
}

#[cfg(test)]
mod tests;
