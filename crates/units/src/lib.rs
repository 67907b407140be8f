//! Time, spans of time and rates, shared by all crates.
//!
//! Time is integer nanoseconds, so that runs of one experiment agree to the bit on every machine.
//! Rates are bytes per second in `f64`, as in the papers' equations.
//!
//! The crate is `no_std`. The feature `serde` reads and writes a [`Span`] as integer nanoseconds.

#![cfg_attr(not(test), no_std)]

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub};

/// An instant: nanoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A length of time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(transparent))]
pub struct Span(u64);

/// A rate in bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Rate(f64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than every event: "never" for timers.
    pub const MAX: Time = Time(u64::MAX);

    /// The instant `ns` nanoseconds after the start of the run.
    #[inline]
    pub const fn from_nanos(ns: u64) -> Time {
        Time(ns)
    }

    /// Nanoseconds since the start of the run.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the start of the run.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span since `earlier`; zero if `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// A span of length zero.
    pub const ZERO: Span = Span(0);
    /// Longer than any run.
    pub const MAX: Span = Span(u64::MAX);

    /// A span of `ns` nanoseconds.
    #[inline]
    pub const fn from_nanos(ns: u64) -> Span {
        Span(ns)
    }

    /// A span of `us` microseconds.
    #[inline]
    pub const fn from_micros(us: u64) -> Span {
        Span(us * 1_000)
    }

    /// A span of `ms` milliseconds.
    #[inline]
    pub const fn from_millis(ms: u64) -> Span {
        Span(ms * 1_000_000)
    }

    /// A span of `s` seconds.
    #[inline]
    pub const fn from_secs(s: u64) -> Span {
        Span(s * 1_000_000_000)
    }

    /// A span of `s` seconds, rounded down to the nanosecond. Negative values and NaN give zero;
    /// values that do not fit give [`Span::MAX`].
    #[inline]
    pub fn from_secs_f64(s: f64) -> Span {
        Span((s * 1e9) as u64)
    }

    /// The span in nanoseconds.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The span in whole microseconds, rounded down.
    #[inline]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// The span in seconds.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// This span times `factor`, rounded down to the nanosecond.
    #[inline]
    pub fn mul_f64(self, factor: f64) -> Span {
        Span((self.0 as f64 * factor) as u64)
    }

    /// `self - other`; zero if `other` is longer.
    #[inline]
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }

    /// Whether the span is zero.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Rate {
    /// Zero bytes per second.
    pub const ZERO: Rate = Rate(0.0);

    /// A rate of `bytes` bytes per second.
    #[inline]
    pub const fn from_bytes_per_sec(bytes: f64) -> Rate {
        Rate(bytes)
    }

    /// A rate of `bits` bits per second.
    #[inline]
    pub fn from_bits_per_sec(bits: f64) -> Rate {
        Rate(bits / 8.0)
    }

    /// The rate of `bytes` bytes in `span`; zero if the span is zero.
    #[inline]
    pub fn from_bytes_in(bytes: f64, span: Span) -> Rate {
        if span.is_zero() { Rate(0.0) } else { Rate(bytes / span.as_secs_f64()) }
    }

    /// The rate in bytes per second.
    #[inline]
    pub const fn bytes_per_sec(self) -> f64 {
        self.0
    }

    /// The rate in bits per second.
    #[inline]
    pub fn bits_per_sec(self) -> f64 {
        self.0 * 8.0
    }

    /// The transmission time of `bytes` bytes at this rate; [`Span::MAX`] at rate zero.
    #[inline]
    pub fn time_for(self, bytes: f64) -> Span {
        if self.0 > 0.0 { Span::from_secs_f64(bytes / self.0) } else { Span::MAX }
    }

    /// The bytes that pass in `span` at this rate.
    #[inline]
    pub fn bytes_in(self, span: Span) -> f64 {
        self.0 * span.as_secs_f64()
    }

    /// The larger of two rates.
    #[inline]
    pub fn max(self, other: Rate) -> Rate {
        Rate(self.0.max(other.0))
    }

    /// The smaller of two rates.
    #[inline]
    pub fn min(self, other: Rate) -> Rate {
        Rate(self.0.min(other.0))
    }
}

impl Add<Span> for Time {
    type Output = Time;
    /// Saturates at [`Time::MAX`], so that "never" plus anything stays never.
    #[inline]
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Time {
    type Output = Time;
    /// Saturates at [`Time::ZERO`].
    #[inline]
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Add for Span {
    type Output = Span;
    #[inline]
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl Mul<u64> for Span {
    type Output = Span;
    #[inline]
    fn mul(self, factor: u64) -> Span {
        Span(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Span {
    type Output = Span;
    #[inline]
    fn div(self, divisor: u64) -> Span {
        Span(self.0 / divisor)
    }
}

impl Mul<f64> for Rate {
    type Output = Rate;
    #[inline]
    fn mul(self, factor: f64) -> Rate {
        Rate(self.0 * factor)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6} s", self.as_secs_f64())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} ms", self.as_secs_f64() * 1e3)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} Mbit/s", self.bits_per_sec() / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_plus_anything_is_still_never() {
        assert_eq!(Time::MAX + Span::from_secs(1), Time::MAX);
    }

    #[test]
    fn a_span_since_a_later_instant_is_zero() {
        assert_eq!(Time::from_nanos(1).since(Time::from_nanos(2)), Span::ZERO);
    }

    #[test]
    fn a_packet_of_1500_bytes_takes_120_us_at_100_mbit() {
        let rate = Rate::from_bits_per_sec(100e6);
        assert_eq!(rate.time_for(1500.0), Span::from_micros(120));
    }

    #[test]
    fn a_transmission_at_rate_zero_takes_forever() {
        assert_eq!(Rate::ZERO.time_for(1.0), Span::MAX);
    }
}
