//! How growth is computed: exactly, or as a kernel does, in whole packets and jiffies.

use crate::{
    Ack, ConfigError, CongestionEvent, ConnectionConfig, Metric, Options, Path, WindowRule,
};
use dumbbell_units::{Span, Time};

/// How growth is computed: the option `arithmetic`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    /// Exactly.
    #[default]
    Exact,
    /// As in Linux.
    Linux,
}

impl Arithmetic {
    /// Takes the option `arithmetic`; the default is exact.
    pub(crate) fn from_options(options: &mut Options) -> Result<Arithmetic, ConfigError> {
        Arithmetic::Exact.or_as_named(options)
    }

    /// Takes the option `arithmetic`; the default is Linux's on a transport that counts jiffies.
    pub(crate) fn as_the_transport(
        options: &mut Options,
        init: &ConnectionConfig,
    ) -> Result<Arithmetic, ConfigError> {
        let counts_jiffies = init.jiffy > Span::ZERO;
        let default = if counts_jiffies { Arithmetic::Linux } else { Arithmetic::Exact };
        default.or_as_named(options)
    }

    fn or_as_named(self, options: &mut Options) -> Result<Arithmetic, ConfigError> {
        let named = [("exact", Arithmetic::Exact), ("linux", Arithmetic::Linux)];
        options.choice("arithmetic", self, &named, "exact or linux")
    }
}

/// A rule in the arithmetic that the option `arithmetic` names: `E` is exact, `L` is Linux's.
#[derive(Clone, Copy, Debug)]
pub enum AnyArithmetic<E, L> {
    /// `arithmetic=exact`.
    Exact(E),
    /// `arithmetic=linux`.
    Linux(L),
}

impl<E, L> AnyArithmetic<E, L> {
    /// The rule of the two that the option `arithmetic` names; the default is Linux's on a transport
    /// that counts jiffies.
    pub(crate) fn from_options(
        options: &mut Options,
        init: &ConnectionConfig,
        exact: E,
        linux: L,
    ) -> Result<AnyArithmetic<E, L>, ConfigError> {
        Ok(AnyArithmetic::of(Arithmetic::as_the_transport(options, init)?, exact, linux))
    }

    /// The same; the default is exact.
    pub(crate) fn exact_by_default(
        options: &mut Options,
        exact: E,
        linux: L,
    ) -> Result<AnyArithmetic<E, L>, ConfigError> {
        Ok(AnyArithmetic::of(Arithmetic::from_options(options)?, exact, linux))
    }

    fn of(arithmetic: Arithmetic, exact: E, linux: L) -> AnyArithmetic<E, L> {
        match arithmetic {
            Arithmetic::Exact => AnyArithmetic::Exact(exact),
            Arithmetic::Linux => AnyArithmetic::Linux(linux),
        }
    }
}

macro_rules! forward {
    ($self:ident, $rule:ident => $call:expr) => {
        match $self {
            AnyArithmetic::Exact($rule) => $call,
            AnyArithmetic::Linux($rule) => $call,
        }
    };
}

// No default body may stand in for the rule's own method.
#[deny(clippy::missing_trait_methods)]
impl<E: WindowRule, L: WindowRule> WindowRule for AnyArithmetic<E, L> {
    fn on_established(&mut self, path: &Path) {
        forward!(self, rule => rule.on_established(path));
    }

    #[inline]
    fn increase(&mut self, cwnd: f64, acked: f64, path: &Path, ack: &Ack) -> f64 {
        forward!(self, rule => rule.increase(cwnd, acked, path, ack))
    }

    fn decrease(&mut self, cwnd: f64, path: &Path, event: &CongestionEvent) -> f64 {
        forward!(self, rule => rule.decrease(cwnd, path, event))
    }

    fn decrease_in_slow_start(&mut self, cwnd: f64, path: &Path, event: &CongestionEvent) -> f64 {
        forward!(self, rule => rule.decrease_in_slow_start(cwnd, path, event))
    }

    #[inline]
    fn observe(&mut self, path: &Path, ack: &Ack) {
        forward!(self, rule => rule.observe(path, ack));
    }

    #[inline]
    fn set_window(
        &mut self,
        cwnd: f64,
        ssthresh: f64,
        path: &Path,
        ack: &Ack,
    ) -> Option<(f64, f64)> {
        forward!(self, rule => rule.set_window(cwnd, ssthresh, path, ack))
    }

    #[inline]
    fn grows_when_app_limited(&self) -> bool {
        forward!(self, rule => rule.grows_when_app_limited())
    }

    #[inline]
    fn lowers_ssthresh(&self) -> bool {
        forward!(self, rule => rule.lowers_ssthresh())
    }

    fn on_timeout(&mut self) {
        forward!(self, rule => rule.on_timeout());
    }

    fn on_undo(&mut self, path: &Path) {
        forward!(self, rule => rule.on_undo(path));
    }

    fn on_restart(&mut self, path: &Path, pause: Span) {
        forward!(self, rule => rule.on_restart(path, pause));
    }

    fn on_cwnd_restart(&mut self, cwnd: f64) {
        forward!(self, rule => rule.on_cwnd_restart(cwnd));
    }

    fn on_mtu_update(&mut self, factor: f64) {
        forward!(self, rule => rule.on_mtu_update(factor));
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        forward!(self, rule => rule.inspect(show));
    }
}

/// Linux's coarse clock, which counts jiffies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jiffies {
    /// Nanoseconds of a jiffy.
    jiffy: u64,
    /// Jiffies in a second.
    pub(crate) hz: u64,
}

impl Jiffies {
    #[cfg(test)]
    pub(crate) const OF_1_MS: Jiffies = Jiffies { jiffy: 1_000_000, hz: 1000 };

    /// The path's clock; of 1 ms if the stack has none.
    #[inline]
    pub(crate) fn of(path: &Path) -> Jiffies {
        let jiffy = match path.jiffy.as_nanos() {
            0 => Span::from_millis(1).as_nanos(),
            jiffy => jiffy,
        };
        Jiffies { jiffy, hz: (Span::from_secs(1).as_nanos() / jiffy).max(1) }
    }

    /// The jiffy at `time` (Linux's `tcp_jiffies32`).
    #[inline]
    pub(crate) fn at(self, time: Time) -> u64 {
        time.as_nanos() / self.jiffy
    }

    /// The whole microseconds of a span in whole jiffies, rounded up (Linux's `usecs_to_jiffies`).
    #[inline]
    pub(crate) fn of_micros(self, span: Span) -> u64 {
        (span.as_micros() * 1000).div_ceil(self.jiffy)
    }

    /// A span in whole jiffies, rounded up (Linux's `usecs_to_jiffies`).
    #[inline]
    pub(crate) fn of_span(self, span: Span) -> u64 {
        span.as_nanos().div_ceil(self.jiffy)
    }
}

/// The pause of Linux's `bictcp_update`: while the window is constant, `cnt` is computed again only
/// after more than 1/32 s.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LastUpdate {
    last_cwnd: u64,
    /// In jiffies.
    pub(crate) last_time: u64,
}

impl LastUpdate {
    /// Whether `cnt` stays as it is.
    #[inline]
    pub(crate) fn is_recent(&self, cwnd: u64, now: u64, hz: u64) -> bool {
        self.last_cwnd == cwnd && now - self.last_time <= hz / 32
    }

    #[inline]
    pub(crate) fn set(&mut self, cwnd: u64, now: u64) {
        *self = LastUpdate { last_cwnd: cwnd, last_time: now };
    }
}

/// Linux's `tcp_cong_avoid_ai`: the window grows by one packet for each `cnt` packets acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CongAvoidAi {
    /// Packets acknowledged since the window last grew.
    pub(crate) snd_cwnd_cnt: u64,
}

impl CongAvoidAi {
    /// Packets by which the window grows. Packets that were counted with a higher `cnt` give at most
    /// one.
    #[inline]
    pub(crate) fn grow(&mut self, cnt: u64, acked: u64) -> f64 {
        let mut grown = 0;
        if self.snd_cwnd_cnt >= cnt {
            self.snd_cwnd_cnt = 0;
            grown = 1;
        }
        self.snd_cwnd_cnt += acked;
        if self.snd_cwnd_cnt >= cnt {
            grown += self.snd_cwnd_cnt / cnt;
            self.snd_cwnd_cnt %= cnt;
        }
        grown as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_s_arithmetic_is_the_default_on_transports_that_count_jiffies() {
        let plain = ConnectionConfig::new(Time::ZERO, 1448);
        let linux = plain.with_jiffy(Span::from_millis(4));
        let chosen = |text: &str, init| {
            let mut options: Options = text.parse().expect("well formed");
            Arithmetic::as_the_transport(&mut options, init).expect("a valid value")
        };
        assert_eq!(chosen("cubic", &plain), Arithmetic::Exact);
        assert_eq!(chosen("cubic", &linux), Arithmetic::Linux);
        assert_eq!(chosen("cubic(arithmetic=linux)", &plain), Arithmetic::Linux);
        assert_eq!(chosen("cubic(arithmetic=exact)", &linux), Arithmetic::Exact);
    }

    #[test]
    fn a_window_grows_by_a_packet_for_each_cnt_packets_acknowledged() {
        let mut avoidance = CongAvoidAi::default();
        let grown = [9, 1, 25, 5].map(|acked| avoidance.grow(10, acked));
        assert_eq!(grown, [0.0, 1.0, 2.0, 1.0]);
    }

    #[test]
    fn packets_counted_with_a_higher_cnt_give_one_packet() {
        let mut avoidance = CongAvoidAi::default();
        assert_eq!(avoidance.grow(100, 99), 0.0);
        assert_eq!(avoidance.grow(10, 1), 1.0);
        assert_eq!(avoidance.grow(10, 9), 1.0, "1 was left over");
    }

    /// 1/32 s is 31 jiffies of 1 ms or 7 of 4 ms: the next update is after 32 ms with either.
    #[test]
    fn the_pause_of_updates_ends_after_32_ms_with_a_jiffy_of_1_or_4_ms() {
        for jiffy in [1, 4] {
            let path = |ms| Path {
                jiffy: Span::from_millis(jiffy),
                ..Path::new(1448, Time::ZERO + Span::from_millis(ms))
            };
            let mut update = LastUpdate::default();
            update.set(50, Jiffies::of(&path(400)).at(path(400).now));
            let recent = |cwnd, ms| {
                let (path, clock) = (path(ms), Jiffies::of(&path(ms)));
                update.is_recent(cwnd, clock.at(path.now), clock.hz)
            };
            assert_eq!([recent(50, 431), recent(50, 432), recent(51, 401)], [true, false, false]);
        }
    }

    #[test]
    fn spans_are_whole_jiffies_rounded_up_of_1_ms_without_a_clock() {
        let mut path = Path::new(1448, Time::ZERO);
        assert_eq!(Jiffies::of(&path).hz, 1000);
        path.jiffy = Span::from_millis(4);
        let clock = Jiffies::of(&path);
        assert_eq!(clock.hz, 250);
        let spans = [0, 1, 4000, 4001].map(|us| clock.of_span(Span::from_micros(us)));
        assert_eq!(spans, [0, 1, 1, 2]);
        assert_eq!(clock.at(Time::ZERO + Span::from_micros(7999)), 1);
    }
}
