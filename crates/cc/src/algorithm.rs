//! The list of algorithms: one place that gives the enum, the names and the parsing.

use crate::abe::{BETA_ECN_CUBIC, BETA_ECN_RENO};
use crate::bbr::version;
use crate::{
    Abe, Ack, AdaptiveUdt, AnyArithmetic, AnySlowStart, Balia, BbrV1, BbrV3, Bic, BicLinux, Cdg,
    ConfigError, CongestionControl, CongestionEvent, ConnectionConfig, ControlParameters, Copa,
    Cubic, Cubic2006, CubicLinux, CubicParameters, CustomAlgorithm, Dbac, Dctcp, Fast, HighSpeed,
    HighSpeedLinux, Htcp, Hybla, Illinois, LedbatPlusPlus, Lia, Lp, Metric, Nv, Olia, OptionInfo,
    Options, Path, Prague, Reno, RenoLinux, Scalable, Sent, StandardSlowStart, Udt, Vegas, Veno,
    WeightedVegas, Westwood, WindowRule, Windowed, Yeah,
};
#[cfg(feature = "all-algorithms")]
use crate::{C4, Vivace};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::vec::Vec;
use dumbbell_units::{Span, Time};

/// A window rule with the slow start of the option `slow_start` (default: RFC 5681) and the threshold
/// of the option `initial_ssthresh` (default: none), with Rate-Limited Increase if
/// `rate_limited_increase` is on.
pub(crate) fn windowed<R: WindowRule>(
    rule: R,
    options: &mut Options,
    init: &ConnectionConfig,
) -> Result<Windowed<R, AnySlowStart>, ConfigError> {
    windowed_from(rule, AnySlowStart::STANDARD, 0.0, options, init)
}

/// The same with other defaults. A threshold of 0 means none.
fn windowed_from<R: WindowRule>(
    rule: R,
    slow_start: AnySlowStart,
    ssthresh: f64,
    options: &mut Options,
    init: &ConnectionConfig,
) -> Result<Windowed<R, AnySlowStart>, ConfigError> {
    let ssthresh = options.number("initial_ssthresh", ssthresh, 0.0..=1e9, "0 to 10^9 packets")?;
    let slow_start = AnySlowStart::from_options(options, slow_start)?;
    let windowed = Windowed::new(rule, slow_start, init);
    let windowed =
        if ssthresh > 0.0 { windowed.with_ssthresh(ssthresh.max(2.0)) } else { windowed };
    let is_rate_limited =
        cfg!(feature = "all-algorithms") && options.switch("rate_limited_increase", false)?;
    Ok(if is_rate_limited { windowed.with_rate_limited_increase() } else { windowed })
}

/// Makes the enum, the names, the parsing and the forwarding from one list of
/// `"name" Variant(Type) = constructor`. Constructors take `(&mut Options, &ConnectionConfig)`. An
/// algorithm with `["feature"]` after its name needs that feature of this crate.
macro_rules! algorithms {
    ($(
        $(#[$doc:meta])*
        $name:literal $([$feature:literal])? $variant:ident($type:ty) = $make:expr;
    )*) => {
        /// Any algorithm, dispatched without a virtual call.
        ///
        /// The large ones are boxed, so that the others stay small. A clone continues from the same
        /// state, independently.
        ///
        /// ```
        /// use dumbbell_cc::{Algorithm, CongestionControl, ConnectionConfig};
        /// use dumbbell_units::Time;
        ///
        /// let config = ConnectionConfig::new(Time::ZERO, 1448);
        /// let cubic = Algorithm::parse("cubic(slow_start=standard)", &config)?;
        /// assert_eq!(cubic.control().cwnd, 10.0);
        /// # Ok::<(), dumbbell_cc::ConfigError>(())
        /// ```
        #[derive(Clone, Debug)]
        #[non_exhaustive]
        pub enum Algorithm {
            $($(#[$doc])* $(#[cfg(feature = $feature)])? $variant($type),)*
            /// A user-defined algorithm; see [`AlgorithmFactory`](crate::AlgorithmFactory).
            Custom(Box<dyn CustomAlgorithm>),
        }

        /// The names of all built-in algorithms.
        pub const NAMES: &[&str] = &[$($(#[cfg(feature = $feature)])? $name),*];

        impl Algorithm {
            /// Makes the algorithm named by `text`: `cubic`, `cubic(slow_start=standard)`.
            ///
            /// # Errors
            /// If the text is malformed, no algorithm has the name, or an option or its value is not
            /// valid.
            pub fn parse(text: &str, init: &ConnectionConfig) -> Result<Algorithm, ConfigError> {
                let mut options: Options = text.parse()?;
                let algorithm = Algorithm::from_options(&mut options, init)?;
                options.finish()?;
                Ok(algorithm)
            }

            /// The options of the algorithm called `name`, with their defaults on a transport that
            /// counts jiffies.
            ///
            /// # Errors
            /// If no algorithm has the name.
            pub fn options(name: &str) -> Result<Vec<OptionInfo>, ConfigError> {
                let mut options: Options = name.parse()?;
                let jiffy = Span::from_millis(4);
                let init = ConnectionConfig::new(Time::ZERO, 1448).with_jiffy(jiffy);
                Algorithm::from_options(&mut options, &init)?;
                Ok(options.known())
            }

            fn from_options(
                options: &mut Options,
                init: &ConnectionConfig,
            ) -> Result<Algorithm, ConfigError> {
                Ok(match options.name() {
                    $($(#[cfg(feature = $feature)])? $name => {
                        let make: fn(&mut Options, &ConnectionConfig) -> Result<$type, ConfigError> = $make;
                        Algorithm::$variant(make(options, init)?)
                    })*
                    name if OPTIONAL_NAMES.contains(&name) => {
                        return Err(ConfigError::LeftOut { name: name.to_owned() });
                    }
                    name => return Err(ConfigError::UnknownAlgorithm { name: name.to_owned() }),
                })
            }
        }

        macro_rules! forward {
            ($self:ident, $algorithm:ident => $call:expr) => {
                match $self {
                    $($(#[cfg(feature = $feature)])? Algorithm::$variant($algorithm) => $call,)*
                    Algorithm::Custom($algorithm) => $call,
                }
            };
        }
    };
}

algorithms! {
    /// BBRv1.
    "bbr" Bbr(Box<BbrV1>) = |_, init| Ok(Box::new(BbrV1::new(init)));
    /// BBRv2.
    "bbr2" Bbr2(Box<BbrV3>) = |options, init| {
        BbrV3::from_options(version::V2, options, init).map(Box::new)
    };
    /// F-BBRv2.
    "f-bbr2" FairBbr2(Box<BbrV3>) = |options, init| {
        BbrV3::from_options(version::F2, options, init).map(Box::new)
    };
    /// BBRv3.
    "bbr3" Bbr3(Box<BbrV3>) = |options, init| {
        BbrV3::from_options(version::V3, options, init).map(Box::new)
    };
    /// Reno.
    "reno" Reno(Windowed<Abe<AnyArithmetic<Reno, RenoLinux>>, AnySlowStart>) = |options, init| {
        let rule = AnyArithmetic::from_options(options, init, Reno, RenoLinux::default())?;
        windowed(Abe::from_options(rule, BETA_ECN_RENO, options)?, options, init)
    };
    /// CUBIC.
    "cubic" Cubic(Windowed<Abe<AnyArithmetic<Cubic, CubicLinux>>, AnySlowStart>) = |options, init| {
        let parameters = CubicParameters::from_options(options)?;
        let (exact, linux) = (Cubic::new(parameters), CubicLinux::new(parameters));
        let rule = AnyArithmetic::from_options(options, init, exact, linux)?;
        let rule = Abe::from_options(rule, BETA_ECN_CUBIC, options)?;
        windowed_from(rule, AnySlowStart::LINUX, 0.0, options, init)
    };
    /// CUBIC as of Linux 2.6.18.
    "cubic-2006" Cubic2006(Windowed<Cubic2006, AnySlowStart>) = |options, init| {
        let rule = Cubic2006::from_options(options)?;
        windowed_from(rule, AnySlowStart::STANDARD, 100.0, options, init)
    };
    /// BIC.
    "bic" Bic(Windowed<AnyArithmetic<Bic, BicLinux>, AnySlowStart>) = |options, init| {
        let exact = Bic::from_options(options)?;
        let linux = BicLinux::new(exact);
        let rule = AnyArithmetic::from_options(options, init, exact, linux)?;
        windowed(rule, options, init)
    };
    /// HighSpeed TCP.
    "hstcp" HighSpeed(Windowed<AnyArithmetic<HighSpeed, HighSpeedLinux>, AnySlowStart>) = |options, init| {
        let (exact, linux) = (HighSpeed::default(), HighSpeedLinux::default());
        let rule = AnyArithmetic::exact_by_default(options, exact, linux)?;
        windowed(rule, options, init)
    };
    /// Scalable TCP.
    "stcp" Scalable(Windowed<Scalable, AnySlowStart>) = |options, init| {
        windowed(Scalable::from_options(options)?, options, init)
    };
    /// H-TCP.
    "htcp" Htcp(Windowed<Htcp, AnySlowStart>) = |options, init| {
        windowed(Htcp::from_options(options)?, options, init)
    };
    /// Hybla.
    "hybla" Hybla(Windowed<Hybla, Hybla>) = |options, init| {
        let hybla = Hybla::from_options(options)?;
        Ok(Windowed::new(hybla, hybla, init))
    };
    /// Westwood+.
    "westwood" Westwood(Windowed<Westwood, AnySlowStart>) = |options, init| {
        windowed(Westwood::default(), options, init)
    };
    /// Illinois.
    "illinois" Illinois(Windowed<Illinois, AnySlowStart>) = |options, init| {
        windowed(Illinois::default(), options, init)
    };
    /// YeAH.
    "yeah" Yeah(Windowed<Yeah, AnySlowStart>) = |options, init| {
        windowed(Yeah::default(), options, init)
    };
    /// Vegas.
    "vegas" Vegas(Windowed<Vegas, AnySlowStart>) = |options, init| {
        windowed(Vegas::from_options(options)?, options, init)
    };
    /// Veno.
    "veno" Veno(Windowed<Veno, AnySlowStart>) = |options, init| {
        windowed(Veno::from_options(options)?, options, init)
    };
    /// CDG.
    "cdg" Cdg(Box<Windowed<Cdg, StandardSlowStart>>) = |options, init| {
        let rule = Cdg::from_options(options, init)?;
        Ok(Box::new(Windowed::new(rule, StandardSlowStart, init)))
    };
    /// TCP-LP.
    "lp" Lp(Windowed<Lp, AnySlowStart>) = |options, init| {
        windowed(Lp::default(), options, init)
    };
    /// TCP-NV.
    "nv" Nv(Box<Windowed<Nv, AnySlowStart>>) = |options, init| {
        let rule = Nv::from_options(options, init)?;
        windowed(rule, options, init).map(Box::new)
    };
    /// FAST.
    "fast" Fast(Windowed<Fast, AnySlowStart>) = |options, init| {
        windowed(Fast::from_options(options)?, options, init)
    };
    /// LEDBAT++.
    "ledbat++" LedbatPlusPlus(Windowed<LedbatPlusPlus, StandardSlowStart>) = |options, init| {
        let rule = LedbatPlusPlus::from_options(options)?;
        Ok(Windowed::new(rule, StandardSlowStart, init))
    };
    /// DCTCP.
    "dctcp" Dctcp(Windowed<Dctcp, AnySlowStart>) = |options, init| {
        windowed(Dctcp::from_options(options, init)?, options, init)
    };
    /// TCP Prague.
    "prague" Prague(Box<Prague>) = |options, init| {
        Prague::from_options(options, init).map(Box::new)
    };
    /// Copa.
    "copa" Copa(Box<Copa>) = |options, init| Copa::from_options(options, init).map(Box::new);
    /// C4.
    "c4" ["all-algorithms"] C4(Box<C4>) = |_, init| Ok(Box::new(C4::new(init)));
    /// PCC Vivace.
    "vivace" ["all-algorithms"] Vivace(Box<Vivace>) = |options, init| {
        Vivace::from_options(options, init).map(Box::new)
    };
    /// PCC Proteus.
    "proteus" ["all-algorithms"] Proteus(Box<Vivace>) = |options, init| {
        Vivace::proteus_from_options(options, init).map(Box::new)
    };
    /// LIA.
    "lia" Lia(Windowed<Lia, AnySlowStart>) = |options, init| {
        windowed(Lia::from_options(options)?, options, init)
    };
    /// OLIA.
    "olia" Olia(Windowed<Olia, AnySlowStart>) = |options, init| {
        windowed(Olia::default(), options, init)
    };
    /// BALIA.
    "balia" Balia(Windowed<Balia, AnySlowStart>) = |options, init| {
        windowed(Balia::default(), options, init)
    };
    /// wVegas.
    "wvegas" WeightedVegas(Windowed<WeightedVegas, AnySlowStart>) = |options, init| {
        windowed(WeightedVegas::from_options(options)?, options, init)
    };
    /// DBAC.
    "dbac" Dbac(Box<Dbac>) = |options, init| Dbac::from_options(options, init).map(Box::new);
    /// UDT's own.
    "udt" Udt(Udt) = Udt::from_options;
    /// AR-UDT.
    "ar-udt" AdaptiveUdt(Box<AdaptiveUdt>) = |options, init| {
        AdaptiveUdt::from_options(options, init).map(Box::new)
    };
}

/// The algorithms that need the feature `all-algorithms`.
pub const OPTIONAL_NAMES: &[&str] = &["c4", "proteus", "vivace"];

impl Algorithm {
    /// UDT only: whether an acknowledgement lets the next packet leave at once, whatever the pacing
    /// rate, as in Gu's NS-2 module.
    pub fn is_ack_clocked(&self) -> bool {
        match self {
            Algorithm::Udt(udt) => udt.is_ack_clocked(),
            Algorithm::AdaptiveUdt(udt) => udt.is_ack_clocked(),
            _ => false,
        }
    }

    /// BBR only: the maximum `min_rtt` at which the flow responds to ECN marks; zero if it ignores all.
    pub fn bbr_ecn_max_rtt(&self) -> Option<Span> {
        match self {
            Algorithm::Bbr(_) => Some(Span::ZERO),
            Algorithm::Bbr2(bbr) | Algorithm::FairBbr2(bbr) | Algorithm::Bbr3(bbr) => {
                Some(bbr.ecn_max_rtt())
            }
            _ => None,
        }
    }
}

// No default body may stand in for the algorithm's own method.
#[deny(clippy::missing_trait_methods)]
impl CongestionControl for Algorithm {
    #[inline(always)]
    fn on_ack(&mut self, path: &Path, ack: &Ack) {
        forward!(self, algorithm => algorithm.on_ack(path, ack));
    }

    fn on_congestion(&mut self, path: &Path, event: &CongestionEvent) {
        forward!(self, algorithm => algorithm.on_congestion(path, event));
    }

    #[inline(always)]
    fn control(&self) -> ControlParameters {
        forward!(self, algorithm => algorithm.control())
    }

    fn on_established(&mut self, path: &Path) {
        forward!(self, algorithm => algorithm.on_established(path));
    }

    #[inline(always)]
    fn on_sent(&mut self, path: &Path, sent: &Sent) {
        forward!(self, algorithm => algorithm.on_sent(path, sent));
    }

    fn on_spurious_loss(&mut self, path: &Path) {
        forward!(self, algorithm => algorithm.on_spurious_loss(path));
    }

    fn on_restart_after_idle(&mut self, cwnd: f64) {
        forward!(self, algorithm => algorithm.on_restart_after_idle(cwnd));
    }

    fn on_mtu_update(&mut self, path: &Path, previous_mss: u32) {
        forward!(self, algorithm => algorithm.on_mtu_update(path, previous_mss));
    }

    fn on_persistent_congestion(&mut self, path: &Path) {
        forward!(self, algorithm => algorithm.on_persistent_congestion(path));
    }

    fn on_packet_discarded(&mut self, path: &Path, packets: u32) {
        forward!(self, algorithm => algorithm.on_packet_discarded(path, packets));
    }

    fn on_receive_window_penalty(&mut self, path: &Path) {
        forward!(self, algorithm => algorithm.on_receive_window_penalty(path));
    }

    fn on_timer(&mut self, path: &Path) {
        forward!(self, algorithm => algorithm.on_timer(path));
    }

    #[inline]
    fn next_timer(&self) -> Option<Time> {
        forward!(self, algorithm => algorithm.next_timer())
    }

    fn uses_prr(&self) -> bool {
        forward!(self, algorithm => algorithm.uses_prr())
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        forward!(self, algorithm => algorithm.inspect(show));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_optional_algorithm_is_in_a_full_build() {
        assert!(
            !cfg!(feature = "all-algorithms")
                || OPTIONAL_NAMES.iter().all(|name| NAMES.contains(name))
        );
    }

    #[test]
    fn an_algorithm_takes_at_most_288_bytes() {
        assert!(size_of::<Algorithm>() <= 288, "{} bytes", size_of::<Algorithm>());
    }
}
