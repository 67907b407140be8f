//! UDT's own congestion control (draft-gg-udt-03, section 6; the class `CUDTCC` of UDT4's library;
//! Gu and Grossman, "UDT: UDP-based data transfer for high-speed wide area networks", Computer
//! Networks 51, 2007).
//!
//! The receiver acknowledges every `SYN` = 10 ms and reports what it measured: the arrival speed
//! `AS`, the capacity of the path `L` by packet pairs, both in packets/s, and the round-trip time.
//! The sender keeps a period `P` between packets and a window `W` beside it. On an acknowledgement,
//! once in a `SYN` at most:
//!
//! ```text
//! W   = AS (RTT + SYN) + 16                                                         packets
//! B   = min(L - 1/P, L/9)   P > P at the last decrease;  L - 1/P else             packets/s
//! inc = max(10^ceil(log10(8 MSS B)) 1.5e-6 / MSS, min_increase);  B <= 0: min_increase
//!                                                                        packets per SYN
//! P   = P SYN / (P inc + SYN)
//! ```
//!
//! `RTT` is `7/8 RTT + 1/8` of what is reported, which the peer has smoothed in the same way.
//!
//! `P` stays as it is if a negative acknowledgement (NAK) came since the last time. Which of these
//! make `P` longer, and by how much, is in [`decrease`].
//!
//! Slow start: `P` is 1 us and `W`, 16 at first, grows by what is acknowledged and 1 (the library's
//! count of packets has both ends). It ends with the first NAK or timeout, or when `W` exceeds the flow
//! window of the peer's handshake; then `P = 1/AS`. `AS` is 16 packets/s before there is a report, so
//! that where the library has no `AS` is never reached. That NAK has no other effect. After slow start
//! a timeout changes nothing.
//!
//! `MSS` counts the headers, as UDT does. The increase with `B` in bit/s, as papers have it,
//! `10^(ceil(log10 B) - 9) 1500 / MSS`, is the same number: 1.5e-6 is 1500 / 10^9. The library of
//! 2012 and the draft have 0.01 for `min_increase`; before, and in the module for NS-2, it was
//! `1/MSS`.
//!
//! Gu's module for NS-2 of 2006, which papers simulate UDT with, is `rules=ns-2`:
//!
//! ```text
//! slow start:  W = all that was acknowledged; its end leaves P at 1 us
//! after it:    W = ceil(7/8 W + 1/8 AS (RTT + SYN))
//! B            = L - 1/P, whatever was decreased before; a NAK puts off no increase
//! 1 us <= P <= RTT
//! ```
//!
//! and its own rules of [`decrease`]; an acknowledgement lets the next packet leave at once, whatever
//! `P`. What is the transport's is UDT4's under all rules. In the module one packet more than `W` may
//! be in flight, and there are no light acknowledgements (the transport's option `light-acks`); the
//! round-trip time begins at 1 s on both sides, not 100 ms; the arrival speed is taken as it is
//! reported, not smoothed, and leaves out intervals beyond half and twice the median, not an eighth
//! and eight times; `L` is the plain median of 16 pairs, not the mean of 64.
//!
//! Not as in the library: it rounds `P` up to whole microseconds when it makes it longer, which at
//! 1 Gbit/s turns 12 us into 14, not 13.5.

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

/// Seconds between acknowledgements, and between changes of the rate.
const SYN: f64 = 0.01;
const SYN_SPAN: Span = Span::from_millis(10);
/// The first period, seconds.
const FIRST_PERIOD: f64 = 1e-6;
/// The first window, and what a window holds beyond the path, packets.
const WINDOW_MARGIN: f64 = 16.0;
/// The first window of the module for NS-2, packets.
const NS2_WINDOW: f64 = 2.0;
/// Every packet whose number is a multiple of this begins a pair.
const PROBE_INTERVAL: u64 = 16;
/// Bytes of IP, UDP and UDT headers, which UDT's MSS counts.
const HEADERS: u32 = 44;
/// The arrival speed before it is known, packets/s.
const FIRST_ARRIVAL_RATE: f64 = 16.0;
/// The round-trip time before it is known, seconds.
const FIRST_RTT: f64 = 0.1;

/// UDT's own congestion control.
#[derive(Clone, Debug)]
pub struct Udt {
    rules: Rules,
    /// Packets per SYN by which the rate grows at least.
    min_increase: f64,
    /// Payload bytes of a full packet.
    mss: u32,
    /// `P`, seconds.
    period: f64,
    /// `W`, packets.
    cwnd: f64,
    slow_start: bool,
    /// When the rate was last controlled.
    last_rc_time: Time,
    /// The first packet that was not acknowledged then.
    last_ack: u64,
    /// Whether a NAK came since then.
    nak_since_increase: bool,
    /// Whether to pause for a SYN after the next packet.
    freeze: bool,
    decrease: Decrease,
    /// `P` at the last decrease that began an epoch, seconds.
    last_dec_period: f64,
    /// What the peer reported last.
    report: UdtReport,
    /// `RTT`, seconds; `None` before the first report.
    rtt: Option<f64>,
    /// The increase that was last made, packets per SYN.
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
            last_rc_time: init.now,
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

    /// Multiplies the period, which does not fall below the first one.
    #[inline]
    fn scale_period(&mut self, factor: f64) {
        self.period = (self.period * factor).max(FIRST_PERIOD);
    }

    /// `RTT`, seconds.
    fn rtt(&self) -> f64 {
        self.rtt.unwrap_or(FIRST_RTT)
    }

    /// Takes a report.
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
        // 10^ceil(log10(bits)); what is below one bit per second comes to nothing in any case.
        let mut power = 1.0;
        while power < bits {
            power *= 10.0;
        }
        (power * 1.5e-6 / mss).max(self.min_increase)
    }

    /// The window on an acknowledgement.
    fn update_window(&mut self, path: &Path) {
        // CSeqNo::seqlen counts both ends, and the library begins one before the first packet.
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
                Rules::Ns2 => (0.875 * self.cwnd + 0.125 * arriving).ceil(),
            };
        }
    }

    /// Keeps the period within the bounds of the module for NS-2.
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
        if path.now.since(self.last_rc_time) < SYN_SPAN {
            return;
        }
        self.last_rc_time = path.now;
        self.update_window(path);
        if self.slow_start || std::mem::take(&mut self.nak_since_increase) {
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
        // The second half of a pair follows the first at once; the pause is after it.
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
