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
//! Slow start: `P` is 1 us and `W`, 16 at first, grows by what is acknowledged. It ends with the
//! first NAK or timeout, or when `W` exceeds the peer's flow window; then `P = 1/AS`, or
//! `(RTT + SYN) / W` if there is no `AS` yet (the library has the inverse, by mistake). That NAK has
//! no other effect, unless there is no `AS`. After slow start a timeout changes nothing.
//!
//! `MSS` counts the headers, as UDT does. The increase with `B` in bit/s, as papers have it,
//! `10^(ceil(log10 B) - 9) 1500 / MSS`, is the same number: 1.5e-6 is 1500 / 10^9. The library of
//! 2012 and the draft have 0.01 for `min_increase`; before it was `1/MSS`.
//!
//! Not as in the library: it rounds `P` up to whole microseconds when it makes it longer, which at
//! 1 Gbit/s turns 12 us into 14, not 13.5.

mod adaptive;
mod decrease;
#[cfg(test)]
mod tests;

pub use adaptive::AdaptiveUdt;

use crate::{
    Ack, ConfigError, Congestion, CongestionControl, Control, Init, Inspect, Options, Path,
    PeerReport, Signal,
};
use decrease::{Answer, DECREASE, Decrease};
use dumbbell_units::{Rate, Span, Time};

/// Seconds between acknowledgements, and between changes of the rate.
const SYN: f64 = 0.01;
const SYN_SPAN: Span = Span::from_millis(10);
/// The first period, seconds.
const FIRST_PERIOD: f64 = 1e-6;
/// The first window, and what a window holds beyond the path, packets.
const EXTRA: f64 = 16.0;
/// Bytes of IP, UDP and UDT headers, which UDT's MSS counts.
const HEADERS: u32 = 44;
/// The round-trip time before it is known, seconds.
const FIRST_RTT: f64 = 0.1;

/// UDT's own congestion control.
#[derive(Clone, Debug)]
pub struct Udt {
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
    controlled: Time,
    /// The first packet that was not acknowledged then.
    una: u64,
    /// Whether a NAK came since then.
    lost: bool,
    decrease: Decrease,
    /// `P` at the last decrease that began an epoch, seconds.
    decreased_from: f64,
    /// What the peer reported last.
    report: PeerReport,
    /// `RTT`, seconds; `None` before the first report.
    rtt: Option<f64>,
    /// The increase that was last made, packets per SYN.
    increase: f64,
}

impl Udt {
    /// UDT at the beginning of a connection. Takes the option `min_increase`.
    ///
    /// # Errors
    /// If it has a value that it cannot have.
    pub fn from_options(options: &mut Options, init: &Init) -> Result<Udt, ConfigError> {
        let min_increase =
            options.number("min_increase", 0.01, 1e-6..=100.0, "10^-6 to 100 packets per SYN")?;
        Ok(Udt {
            min_increase,
            mss: init.mss,
            period: FIRST_PERIOD,
            cwnd: EXTRA,
            slow_start: true,
            controlled: init.now,
            una: 0,
            lost: false,
            decrease: Decrease::new(init.seed),
            decreased_from: FIRST_PERIOD,
            report: PeerReport::default(),
            rtt: None,
            increase: 0.0,
        })
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
    fn learn(&mut self, report: PeerReport) {
        self.report = report;
        let rtt = report.rtt.as_secs_f64();
        self.rtt = Some(self.rtt.map_or(rtt, |smoothed| 0.875 * smoothed + 0.125 * rtt));
    }

    /// Ends slow start.
    fn end_slow_start(&mut self) {
        self.slow_start = false;
        self.period = if self.report.arrival_rate > 0.0 {
            1.0 / self.report.arrival_rate
        } else {
            (self.rtt() + SYN) / self.cwnd
        };
    }

    /// `inc`, packets per SYN.
    fn increase(&self) -> f64 {
        let capacity = self.report.capacity;
        let mut available = capacity - 1.0 / self.period;
        if self.period > self.decreased_from {
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
    fn open_window(&mut self, path: &Path) {
        let acknowledged = path.una.saturating_sub(self.una);
        self.una = path.una;
        let report = self.report;
        if self.slow_start {
            self.cwnd += acknowledged as f64;
            if report.window > 0 && self.cwnd > f64::from(report.window) {
                self.end_slow_start();
            }
        } else if report.arrival_rate > 0.0 {
            self.cwnd = report.arrival_rate * (self.rtt() + SYN) + EXTRA;
        }
    }

    /// A NAK whose first lost packet is `seq`.
    fn on_nak(&mut self, path: &Path, seq: u64) {
        if self.slow_start {
            self.end_slow_start();
            if self.report.arrival_rate > 0.0 {
                return;
            }
        }
        self.lost = true;
        let answer = self.decrease.on_nak(seq, path.next_seq);
        if answer == Answer::Epoch {
            self.decreased_from = self.period;
        }
        if answer != Answer::Nothing {
            self.period *= DECREASE;
        }
    }
}

impl CongestionControl for Udt {
    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        let Some(report) = ack.report else { return };
        self.learn(report);
        if path.now.since(self.controlled) < SYN_SPAN {
            return;
        }
        self.controlled = path.now;
        self.open_window(path);
        if self.slow_start || std::mem::take(&mut self.lost) {
            return;
        }
        self.increase = self.increase();
        self.period = self.period * SYN / (self.period * self.increase + SYN);
    }

    fn on_congestion(&mut self, path: &Path, event: &Congestion) {
        match event.signal {
            Signal::Nak | Signal::Loss => self.on_nak(path, event.seq),
            Signal::Timeout if self.slow_start => self.end_slow_start(),
            Signal::Timeout | Signal::Ecn => {}
        }
    }

    fn control(&self) -> Control {
        Control {
            cwnd: self.cwnd,
            ssthresh: f64::INFINITY,
            pacing_rate: Some(Rate::from_bytes_per_sec(f64::from(self.mss) / self.period)),
            burst: Some(1),
        }
    }

    fn uses_prr(&self) -> bool {
        false
    }

    fn inspect(&self, show: &mut dyn FnMut(Inspect)) {
        let values = [
            ("period", self.period),
            ("slow_start", f64::from(u8::from(self.slow_start))),
            ("increase", self.increase),
            ("arrival_rate", self.report.arrival_rate),
            ("capacity", self.report.capacity),
        ];
        for (name, value) in values {
            show(Inspect { name, value });
        }
        self.decrease.inspect(show);
    }
}
