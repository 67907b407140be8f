//! What a connection over UDP sockets is told when it is made.

use super::clock::span;
use super::crypto::{CRYPTO_OVERHEAD, Key};
use super::error::Error;
use crate::config::{Mode, TransportOptions};
use crate::connection::Config;
use crate::source::BulkData;
use dumbbell_cc::{Algorithm, ConnectionConfig};
use dumbbell_units::Time;
use std::time::Duration;

/// What a connection is to be, and how patient.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Options of the transport.
    pub options: TransportOptions,
    /// Stream or messages.
    pub mode: Mode,
    /// Congestion control, by its name and options as in experiments: `"udt"`, `"cubic"`,
    /// `"ar-udt(alpha1=0.05)"`.
    pub algorithm: String,
    /// How long to try to connect (UDT4: 3 s, 30 s in a rendezvous).
    pub connect_timeout: Duration,
    /// How long the peer may be silent before it is taken for dead; longer on paths whose answers
    /// take longer.
    pub idle_timeout: Duration,
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
    pub bulk: Option<BulkData>,
    /// Whether what arrives is kept until the program reads it, or only counted.
    pub keep_received: bool,
    /// The initial sequence number, where it must not be random.
    pub isn: Option<u32>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            options: TransportOptions::default(),
            mode: Mode::Stream,
            algorithm: "udt".to_owned(),
            connect_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(5),
            linger: Duration::from_secs(180),
            key: None,
            backlog: 128,
            udp_buffer: 12_288_000,
            bulk: None,
            keep_received: true,
            isn: None,
        }
    }
}

impl Settings {
    /// The defaults for a congestion control algorithm.
    pub fn for_algorithm(algorithm: &str) -> Settings {
        let options = TransportOptions::for_algorithm(algorithm);
        Settings { options, algorithm: algorithm.to_owned(), ..Settings::default() }
    }

    /// Whether a connection can be made so.
    ///
    /// # Errors
    /// At the first option that is out of range, or if there is no such algorithm.
    pub fn check(&self) -> Result<(), Error> {
        self.options.check()?;
        self.algorithm(&self.connection_config(Time::ZERO)?).map(drop)
    }

    fn crypto_overhead(&self) -> u16 {
        if self.key.is_some() { CRYPTO_OVERHEAD } else { 0 }
    }

    fn connection_config(&self, now: Time) -> Result<ConnectionConfig, Error> {
        Ok(ConnectionConfig {
            now,
            mss: u32::from(self.options.max_payload() - self.crypto_overhead()),
            initial_window: f64::from(TransportOptions::INITIAL_WINDOW),
            seed: u64::from(random()?),
        })
    }

    fn algorithm(&self, init: &ConnectionConfig) -> Result<Algorithm, Error> {
        Ok(Algorithm::parse(&self.algorithm, init)?)
    }

    /// What the engine is told.
    pub(crate) fn config(&self, now: Time, socket: u32) -> Result<Config, Error> {
        self.options.check()?;
        let (name, init) = (self.algorithm.clone(), self.connection_config(now)?);
        Ok(Config {
            options: self.options.clone(),
            mode: self.mode,
            algorithm: self.algorithm(&init)?,
            new_algorithm: Some(Box::new(move |mss| {
                Algorithm::parse(&name, &ConnectionConfig { mss, ..init }).ok()
            })),
            bulk: self.bulk.clone(),
            keep_received: self.keep_received,
            socket_id: socket,
            connect_timeout: Some(span(self.connect_timeout)),
            idle_timeout: Some(span(self.idle_timeout)),
            crypto_overhead: self.crypto_overhead(),
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
