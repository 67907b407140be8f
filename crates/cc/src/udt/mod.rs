//! UDT's own congestion control (draft-gg-udt-03, section 6; the class `CUDTCC` of UDT4's library;
//! Gu and Grossman, "UDT: UDP-based data transfer for high-speed wide area networks", Computer
//! Networks 51, 2007).
//!
//! The receiver acknowledges every `SYN` = 10 ms and reports its measurements: the arrival speed
//! `AS`, the link capacity `L` by packet pairs, both in packets/s, and the round-trip time. The
//! sender controls the packet sending period `P` and a window `W`. On an acknowledgement, at most
//! once a `SYN`:
//!
//! ```text
//! W   = AS (RTT + SYN) + 16                                                         packets
//! B   = min(L - 1/P, L/9)   P > P at the last decrease;  L - 1/P else             packets/s
//! inc = max(10^ceil(log10(8 MSS B)) 1.5e-6 / MSS, min_increase);  B <= 0: min_increase
//!                                                                        packets per SYN
//! P   = P SYN / (P inc + SYN)
//! ```
//!
//! `RTT` is `7/8 RTT + 1/8 report`; the peer has smoothed the report in the same way.
//!
//! `P` does not change if a negative acknowledgement (NAK) arrived since the last update. `udt::decrease`
//! defines which NAKs lengthen `P`, and by how much.
//!
//! Slow start: `P` is 1 us. `W` starts at 16 and grows by the packets acknowledged plus 1, because
//! the library's `seqlen` counts both ends. Slow start ends with the first NAK or timeout, or when
//! `W` exceeds the flow window of the peer's handshake; then `P = 1/AS`. `AS` is 16 packets/s before
//! the first report, so the library's case without `AS` never occurs. That first NAK has no other
//! effect. After slow start a timeout has no effect.
//!
//! `MSS` includes the headers, as in UDT. Papers write the increase with `B` in bit/s,
//! `10^(ceil(log10 B) - 9) 1500 / MSS`, which is the same: 1.5e-6 is 1500 / 10^9. `min_increase` is
//! 0.01 in the library of 2012 and the draft; it was `1/MSS` before and in the NS-2 module.
//!
//! `rules=ns-2` is Gu's module for NS-2 of 2006, with which papers simulate UDT:
//!
//! ```text
//! slow start:  W = all packets acknowledged; P stays at 1 us at its end
//! after it:    W = ceil(7/8 W + 1/8 AS (RTT + SYN))
//! B            = L - 1/P, regardless of the last decrease; a NAK delays no increase
//! 1 us <= P <= RTT
//! ```
//!
//! with its own `udt::decrease` rules; an acknowledgement releases the next packet regardless of `P`.
//! The transport is UDT4's under both rules. The module's transport differs: one packet more than
//! `W` may be in flight; there are no light acknowledgements (the transport's option `light_acks`);
//! the initial round-trip time is 1 s on both sides, not 100 ms; the reported arrival speed is not
//! smoothed and excludes intervals beyond half and twice the median, not an eighth and eight times;
//! `L` is the median of 16 pairs, not the mean of 64.
//!
//! Differences from the library: it rounds a lengthened `P` up to whole microseconds, which at 1 Gbit/s
//! turns 12 us into 14, not 13.5. It skips an acknowledgement that arrives less than a SYN after the last
//! update. Receivers acknowledge every SYN, so jitter makes it skip up to half of them. Here an update that
//! was late by up to half a SYN does not delay the next one.

mod adaptive;
mod decrease;
#[cfg(test)]
mod tests;

pub use adaptive::AdaptiveUdt;

use crate::ext::UdtReport;
use crate::{
    Ack, ConfigError, CongestionControl, CongestionEvent, ConnectionConfig, ControlParameters,
    Metric, Options, Path, Sent, Signal,
};
use decrease::{Decrease, NakAction, PERIOD_FACTOR, Rules};
use dumbbell_units::{Rate, Span, Time};

/// Interval of acknowledgements and of rate control, seconds.
const SYN: f64 = 0.01;
const SYN_SPAN: Span = Span::from_millis(10);
/// The initial and minimum period, seconds.
const FIRST_PERIOD: f64 = 1e-6;
/// The initial window, and the margin of the window above `AS (RTT + SYN)`, packets.
const WINDOW_MARGIN: f64 = 16.0;
/// The initial window of the NS-2 module, packets.
const NS2_WINDOW: f64 = 2.0;
/// A packet pair begins at each multiple of this packet number.
const PROBE_INTERVAL: u64 = 16;
/// Bytes of IP, UDP and UDT headers, which UDT's MSS counts.
const HEADERS: u32 = 44;
/// The arrival speed before the first report, packets/s.
const FIRST_ARRIVAL_RATE: f64 = 16.0;
/// The round-trip time before the first report, seconds.
const FIRST_RTT: f64 = 0.1;

/// UDT's own congestion control.
#[derive(Clone, Debug)]
pub struct Udt {
    rules: Rules,
    /// Minimum increase of the rate, packets per SYN.
    min_increase: f64,
    /// Payload bytes of a full packet.
    mss: u32,
    /// `P`, seconds.
    period: f64,
    /// `W`, packets.
    cwnd: f64,
    slow_start: bool,
    /// Earliest time of the next update: a SYN after the last one (UDT4's `m_LastRCTime`), or earlier if
    /// that was late.
    rate_control_due: Time,
    /// `Path::una` then (UDT4's `m_iLastAck`).
    last_ack: u64,
    /// Whether a NAK arrived since then (UDT4's `m_bLoss`).
    nak_since_increase: bool,
    /// Whether to pause for a SYN after the next packet (the draft's freeze).
    freeze: bool,
    decrease: Decrease,
    /// `P` at the start of the last epoch, seconds (UDT4's `m_dLastDecPeriod`).
    last_dec_period: f64,
    /// The peer's last report.
    report: UdtReport,
    /// `RTT`, seconds; `None` before the first report.
    rtt: Option<f64>,
    /// The last increase, packets per SYN.
    increase: f64,
}

impl Udt {
    /// UDT at the beginning of a connection. Takes the options `min_increase` and `rules`.
    ///
    /// # Errors
    /// If one of them has a value that it cannot have.
    pub fn from_options(
        options: &mut Options,
        init: &ConnectionConfig,
    ) -> Result<Udt, ConfigError> {
        let choices = [("udt4", Rules::Udt4), ("ns-2", Rules::Ns2)];
        let rules = options.choice("rules", Rules::Udt4, &choices, "udt4 or ns-2")?;
        let (cwnd, least) = match rules {
            Rules::Udt4 => (WINDOW_MARGIN, 0.01),
            Rules::Ns2 => (NS2_WINDOW, 1.0 / f64::from(init.mss + HEADERS)),
        };
        let valid = "10^-6 to 100 packets per SYN";
        let min_increase = options.number("min_increase", least, 1e-6..=100.0, valid)?;
        Ok(Udt {
            rules,
            min_increase,
            mss: init.mss,
            period: FIRST_PERIOD,
            cwnd,
            slow_start: true,
            rate_control_due: init.now + SYN_SPAN,
            last_ack: 0,
            nak_since_increase: false,
            freeze: false,
            decrease: Decrease::new(rules, init.seed),
            last_dec_period: FIRST_PERIOD,
            report: UdtReport { arrival_rate: FIRST_ARRIVAL_RATE, ..UdtReport::default() },
            rtt: None,
            increase: 0.0,
        })
    }

    /// Whether an acknowledgement lets the next packet leave at once, whatever the pacing rate.
    pub(crate) fn is_ack_clocked(&self) -> bool {
        self.rules == Rules::Ns2
    }

    /// Multiplies the period, with its minimum.
    #[inline]
    fn scale_period(&mut self, factor: f64) {
        self.period = (self.period * factor).max(FIRST_PERIOD);
    }

    /// `RTT`, seconds.
    fn rtt(&self) -> f64 {
        self.rtt.unwrap_or(FIRST_RTT)
    }

    /// Whether rate control runs now, which is at most once a SYN on average.
    fn is_rate_control_due(&mut self, now: Time) -> bool {
        if now < self.rate_control_due {
            return false;
        }
        self.rate_control_due = match self.rules {
            Rules::Udt4 => (self.rate_control_due + SYN_SPAN).max(now + SYN_SPAN / 2),
            Rules::Ns2 => now + SYN_SPAN,
        };
        true
    }

    /// Takes a report of the peer.
    fn on_report(&mut self, report: UdtReport) {
        self.report = report;
        let rtt = report.rtt.as_secs_f64();
        self.rtt = Some(self.rtt.map_or(rtt, |smoothed| 0.875 * smoothed + 0.125 * rtt));
    }

    /// Ends slow start.
    fn end_slow_start(&mut self) {
        self.slow_start = false;
        if self.rules == Rules::Ns2 {
            return;
        }
        self.period = 1.0 / self.report.arrival_rate.max(1.0);
    }

    /// `inc`, packets per SYN.
    fn increase(&self) -> f64 {
        let capacity = self.report.capacity;
        let mut available = capacity - 1.0 / self.period;
        if self.rules == Rules::Udt4 && self.period > self.last_dec_period {
            available = available.min(capacity / 9.0);
        }
        let mss = f64::from(self.mss + HEADERS);
        let bits = 8.0 * mss * available;
        // 10^ceil(log10(bits)), at least 1: below 1 bit/s min_increase applies in any case.
        let mut power = 1.0;
        while power < bits {
            power *= 10.0;
        }
        (power * 1.5e-6 / mss).max(self.min_increase)
    }

    /// Updates the window on an acknowledgement.
    fn update_window(&mut self, path: &Path) {
        // CSeqNo::seqlen counts both ends, and the library starts one before the first packet.
        let both_ends = if self.last_ack == 0 { 2 } else { 1 };
        let acknowledged = path.una.saturating_sub(self.last_ack) + both_ends;
        self.last_ack = path.una;
        let report = self.report;
        let arriving = report.arrival_rate * (self.rtt() + SYN);
        if self.slow_start {
            self.cwnd = match self.rules {
                Rules::Udt4 => self.cwnd + acknowledged as f64,
                Rules::Ns2 => (path.una as f64).max(NS2_WINDOW),
            };
            if report.window > 0 && self.cwnd > f64::from(report.window) {
                self.end_slow_start();
            }
        } else if arriving > 0.0 {
            self.cwnd = match self.rules {
                Rules::Udt4 => arriving + WINDOW_MARGIN,
                Rules::Ns2 => libm::ceil(0.875 * self.cwnd + 0.125 * arriving),
            };
        }
    }

    /// Clamps the period to the NS-2 module's bounds.
    fn clamp_period(&mut self) {
        if self.rules == Rules::Ns2 {
            self.period = self.period.min(self.rtt()).max(FIRST_PERIOD);
        }
    }

    /// A NAK whose first lost packet is `seq`.
    fn on_nak(&mut self, path: &Path, seq: u64) {
        if self.slow_start {
            self.end_slow_start();
            if self.rules == Rules::Udt4 {
                return;
            }
        }
        self.nak_since_increase = self.rules == Rules::Udt4;
        let answer = self.decrease.on_nak(seq, path.next_seq);
        if answer == NakAction::NewEpoch {
            self.last_dec_period = self.period;
            self.freeze = self.rules == Rules::Ns2;
        }
        if answer != NakAction::Ignore {
            self.period *= PERIOD_FACTOR;
            self.clamp_period();
        }
    }
}

/// Whether a packet is the first of a packet pair.
#[inline]
fn begins_pair(sent: &Sent) -> bool {
    sent.seq.is_multiple_of(PROBE_INTERVAL) && !sent.retransmission
}

impl CongestionControl for Udt {
    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        let Some(report) = ack.udt else { return };
        self.on_report(report);
        if !self.is_rate_control_due(path.now) {
            return;
        }
        self.update_window(path);
        if self.slow_start || core::mem::take(&mut self.nak_since_increase) {
            return;
        }
        self.increase = self.increase();
        self.period = self.period * SYN / (self.period * self.increase + SYN);
        self.clamp_period();
    }

    fn on_congestion(&mut self, path: &Path, event: &CongestionEvent) {
        match event.signal {
            Signal::Loss => self.on_nak(path, event.seq),
            Signal::Timeout if self.slow_start => self.end_slow_start(),
            Signal::Timeout | Signal::Ecn => {}
        }
    }

    #[inline]
    fn on_sent(&mut self, _path: &Path, sent: &Sent) {
        // The second packet of a pair follows the first at once; the pause comes after it.
        self.freeze &= begins_pair(sent);
    }

    fn control(&self) -> ControlParameters {
        let gap = if self.freeze { self.period + SYN } else { self.period };
        ControlParameters::new(self.cwnd)
            .with_pacing_rate(Some(Rate::from_bytes_per_sec(f64::from(self.mss) / gap)))
            .with_min_send_quantum(Some(1))
    }

    fn on_mtu_update(&mut self, path: &Path, previous_mss: u32) {
        let factor = f64::from(previous_mss) / f64::from(path.mss);
        self.cwnd = (self.cwnd * factor).max(1.0);
        self.period /= factor;
        self.last_dec_period /= factor;
        self.report.arrival_rate *= factor;
        self.report.capacity *= factor;
        self.mss = path.mss;
    }

    fn uses_prr(&self) -> bool {
        false
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        let values = [
            ("period", self.period),
            ("slow_start", f64::from(u8::from(self.slow_start))),
            ("increase", self.increase),
            ("arrival_rate", self.report.arrival_rate),
            ("capacity", self.report.capacity),
        ];
        for (name, value) in values {
            show(Metric { name, value });
        }
        self.decrease.inspect(show);
    }
}
