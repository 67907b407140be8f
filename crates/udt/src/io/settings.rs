//! What a connection over UDP sockets is told when it is made.

use super::clock::span;
use super::error::Error;
use super::secure::{Key, OVERHEAD};
use crate::config::{Mode, Options};
use crate::connection::Config;
use crate::supply::Bulk;
use dumbbell_cc::{Algorithm, ConnectionConfig};
use dumbbell_units::Time;
use std::time::Duration;

/// What a connection is to be, and how patient.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Options of the transport.
    pub options: Options,
    /// Stream or messages.
    pub mode: Mode,
    /// Congestion control, by its name and options as in experiments: `"udt"`, `"cubic"`,
    /// `"ar-udt(alpha1=0.05)"`.
    pub algorithm: String,
    /// How long to try to connect (UDT4: 3 s, 30 s in a rendezvous).
    pub connect_timeout: Duration,
    /// How long the peer may be silent before it is taken for dead; longer on paths whose answers
    /// take longer.
    pub silence: Duration,
    /// How long closing waits until all that was sent is acknowledged (UDT_LINGER).
    pub linger: Duration,
    /// With it everything is encrypted, and only who has it too is talked to.
    pub key: Option<Key>,
    /// Connections that a listener keeps until they are accepted.
    pub backlog: usize,
    /// Bytes that the kernel is asked to keep of what arrives (UDP_RCVBUF) and of what is sent
    /// (UDP_SNDBUF); it may allow less.
    pub udp_buffer: usize,
    /// Sends this, which nobody hands over, and closes when it has arrived: for measurements.
    pub bulk: Option<Bulk>,
    /// Whether what arrives is kept until the program reads it, or only counted.
    pub keep: bool,
    /// The initial sequence number, where it must not be random.
    pub isn: Option<u32>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            options: Options::default(),
            mode: Mode::Stream,
            algorithm: "udt".to_owned(),
            connect_timeout: Duration::from_secs(5),
            silence: Duration::from_secs(5),
            linger: Duration::from_secs(180),
            key: None,
            backlog: 128,
            udp_buffer: 12_288_000,
            bulk: None,
            keep: true,
            isn: None,
        }
    }
}

impl Settings {
    /// The defaults for a congestion control algorithm.
    pub fn for_algorithm(algorithm: &str) -> Settings {
        let options = Options::for_algorithm(algorithm);
        Settings { options, algorithm: algorithm.to_owned(), ..Settings::default() }
    }

    /// Whether a connection can be made so.
    ///
    /// # Errors
    /// At the first option that is out of range, or if there is no such algorithm.
    pub fn check(&self) -> Result<(), Error> {
        self.options.check()?;
        self.algorithm(&self.init(Time::ZERO)?).map(drop)
    }

    fn reserve(&self) -> u16 {
        if self.key.is_some() { OVERHEAD } else { 0 }
    }

    fn init(&self, now: Time) -> Result<ConnectionConfig, Error> {
        Ok(ConnectionConfig {
            now,
            mss: u32::from(self.options.payload() - self.reserve()),
            initial_window: f64::from(Options::INITIAL_WINDOW),
            seed: u64::from(random()?),
        })
    }

    fn algorithm(&self, init: &ConnectionConfig) -> Result<Algorithm, Error> {
        Ok(Algorithm::parse(&self.algorithm, init)?)
    }

    /// What the engine is told.
    pub(crate) fn config(&self, now: Time, socket: u32) -> Result<Config, Error> {
        self.options.check()?;
        let (name, init) = (self.algorithm.clone(), self.init(now)?);
        Ok(Config {
            options: self.options.clone(),
            mode: self.mode,
            algorithm: self.algorithm(&init)?,
            remake: Some(Box::new(move |mss| {
                Algorithm::parse(&name, &ConnectionConfig { mss, ..init }).ok()
            })),
            bulk: self.bulk.clone(),
            keep: self.keep,
            socket,
            patience: Some(span(self.connect_timeout)),
            silence: Some(span(self.silence)),
            reserve: self.reserve(),
        })
    }

    pub(crate) fn isn(&self) -> Result<u32, Error> {
        self.isn.map_or_else(random, Ok)
    }
}

/// A number that nobody can guess.
pub(crate) fn random() -> Result<u32, Error> {
    getrandom::u32().map_err(|error| Error::Io(error.into()))
}
