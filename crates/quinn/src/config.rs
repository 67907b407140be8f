//! Which algorithm, and how it starts.

use crate::adapter::Adapter;
use dumbbell_cc::{Algorithm, ConfigError, ConnectionConfig};
use dumbbell_units::Time;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// Algorithms that need the number of marked packets, which the stacks do not report.
const NEED_MARKS: [&str; 2] = ["dctcp", "prague"];
/// Algorithms that judge rates by sending at them; quinn's pacer follows the window.
const NEED_RATES: [&str; 2] = ["vivace", "proteus"];
/// Algorithms that need what only a UDT receiver reports.
const NEED_UDT: [&str; 2] = ["udt", "ar-udt"];

type Make = dyn Fn(&ConnectionConfig) -> Algorithm + Send + Sync;

/// Why there is no controller for a text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It is not an algorithm with valid options.
    #[error(transparent)]
    Algorithm(#[from] ConfigError),
    /// The algorithm needs the number of marked packets.
    #[error("{name} needs the number of packets with an ECN mark, which QUIC stacks do not report")]
    NeedsMarks {
        /// The algorithm.
        name: String,
    },
    /// The algorithm needs packets that leave at its rate.
    #[error("{name} tries rates, and quinn paces by the window, not by a rate")]
    NeedsRates {
        /// The algorithm.
        name: String,
    },
    /// The algorithm needs a UDT receiver.
    #[error("{name} needs what only a UDT receiver reports")]
    NeedsUdt {
        /// The algorithm.
        name: String,
    },
}

/// Makes the controller of each connection.
#[derive(Clone)]
pub struct Config {
    make: Arc<Make>,
    initial_window: f64,
    seed: u64,
}

impl Config {
    /// The built-in algorithm named by `text`: `bbr3`, `cubic(slow_start=standard)`.
    ///
    /// # Errors
    /// If the text is malformed, no algorithm has the name, an option is not valid, or the algorithm
    /// needs facts that QUIC stacks do not report.
    pub fn new(text: &str) -> Result<Config, Error> {
        Algorithm::parse(text, &ConnectionConfig::new(Time::ZERO, 1200))?;
        let name = text.split('(').next().unwrap_or_default().trim();
        if NEED_MARKS.contains(&name) {
            return Err(Error::NeedsMarks { name: name.to_owned() });
        }
        if NEED_RATES.contains(&name) {
            return Err(Error::NeedsRates { name: name.to_owned() });
        }
        if NEED_UDT.contains(&name) {
            return Err(Error::NeedsUdt { name: name.to_owned() });
        }
        let text = text.to_owned();
        Ok(Config::with(move |config| {
            Algorithm::parse(&text, config).expect("the text was checked")
        }))
    }

    /// An algorithm of any kind, such as
    /// [`AlgorithmFactory::make`](dumbbell_cc::AlgorithmFactory::make).
    pub fn with(make: impl Fn(&ConnectionConfig) -> Algorithm + Send + Sync + 'static) -> Config {
        Config { make: Arc::new(make), initial_window: 10.0, seed: 1 }
    }

    /// The same with another initial window, packets. The default is 10 (RFC 9002, section 7.2).
    #[must_use]
    pub fn with_initial_window(self, packets: f64) -> Config {
        Config { initial_window: packets, ..self }
    }

    /// The same with the seed of the algorithm's random numbers. Give each connection another one,
    /// so that the probes of several BBR connections do not coincide.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Config {
        Config { seed, ..self }
    }

    pub(crate) fn adapter(&self, now: Instant, mtu: u16) -> Adapter {
        let config = ConnectionConfig::new(Time::ZERO, u32::from(mtu))
            .with_initial_window(self.initial_window)
            .with_seed(self.seed);
        Adapter::new((self.make)(&config), now, mtu, self.initial_window)
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("initial_window", &self.initial_window)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}
