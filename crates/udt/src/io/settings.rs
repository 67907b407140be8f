//! Settings of sockets.

use super::clock::span;
use super::crypto::CRYPTO_OVERHEAD;
use super::error::Error;
use super::key::Key;
use crate::config::{Mode, TransportOptions};
use crate::connection::Config;
use crate::source::BulkData;
use dumbbell_cc::{Algorithm, ConnectionConfig};
use dumbbell_units::Time;
use std::net::IpAddr;
use std::time::Duration;

/// Bytes by which IPv6's header is longer than IPv4's, which UDT's MSS counts.
const IPV6_EXTRA: u16 = 20;

/// Settings of a socket or listener.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Transport options.
    pub options: TransportOptions,
    /// Stream or message mode.
    pub mode: Mode,
    /// Congestion control, as name and options: `"udt"`, `"cubic"`, `"ar-udt(alpha1=0.05)"`.
    pub algorithm: String,
    /// Maximum duration of connecting (UDT4: 3 s, 30 s for a rendezvous).
    pub connect_timeout: Duration,
    /// Time without any packet from the peer after which the connection is broken; at least four
    /// times RTT + 4 RTTVar.
    pub idle_timeout: Duration,
    /// Maximum time for which a socket that is dropped, or shut down asynchronously, waits for
    /// acknowledgements (UDT_LINGER). Then the connection ends.
    pub linger: Duration,
    /// Key of the encrypted mode; `None`: plain UDT.
    pub key: Option<Key>,
    /// Maximum number of connections that wait for `accept`.
    pub backlog: usize,
    /// Requested kernel buffers, bytes (UDP_RCVBUF, UDP_SNDBUF); the kernel may grant less.
    pub udp_buffer: usize,
    /// For measurements: sends this generated data and closes when it is acknowledged.
    pub bulk: Option<BulkData>,
    /// Whether received data is kept for reading. Otherwise it is only counted.
    pub keep_received: bool,
    /// Initial sequence number; `None`: random.
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
    /// Default settings for a congestion control algorithm.
    pub fn for_algorithm(algorithm: &str) -> Settings {
        let options = TransportOptions::for_algorithm(algorithm);
        Settings { options, algorithm: algorithm.to_owned(), ..Settings::default() }
    }

    /// Checks options and algorithm.
    ///
    /// # Errors
    /// [`Error::Option`] for the first option out of range, or [`Error::Algorithm`].
    pub fn check(&self) -> Result<(), Error> {
        self.options.check()?;
        self.algorithm(&self.connection_config(Time::ZERO, &self.options)?).map(drop)
    }

    fn crypto_overhead(&self) -> u16 {
        if self.key.is_some() { CRYPTO_OVERHEAD } else { 0 }
    }

    /// The options of a connection to this peer. UDT counts IPv4's header whatever the address family:
    /// over IPv6, packets are as long as the MSS says if both ends agree on a smaller one.
    fn options_to(&self, peer: IpAddr) -> TransportOptions {
        let mss = self.options.mss.saturating_sub(extra_header(peer));
        TransportOptions { mss: mss.max(TransportOptions::MIN_MSS), ..self.options.clone() }
    }

    fn connection_config(
        &self,
        now: Time,
        options: &TransportOptions,
    ) -> Result<ConnectionConfig, Error> {
        Ok(ConnectionConfig::new(now, u32::from(options.max_payload() - self.crypto_overhead()))
            .with_initial_window(f64::from(TransportOptions::INITIAL_WINDOW))
            .with_seed(u64::from(random()?)))
    }

    fn algorithm(&self, init: &ConnectionConfig) -> Result<Algorithm, Error> {
        Ok(Algorithm::parse(&self.algorithm, init)?)
    }

    /// The engine's configuration for a connection to this peer.
    pub(crate) fn config(&self, now: Time, socket: u32, peer: IpAddr) -> Result<Config, Error> {
        self.options.check()?;
        let options = self.options_to(peer);
        let (name, init) = (self.algorithm.clone(), self.connection_config(now, &options)?);
        Ok(Config {
            options,
            mode: self.mode,
            algorithm: self.algorithm(&init)?,
            new_algorithm: Some(Box::new(move |mss| {
                Algorithm::parse(&name, &init.with_mss(mss)).ok()
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

/// Bytes by which the headers of packets to this address exceed those that UDT's MSS counts.
pub(super) fn extra_header(peer: IpAddr) -> u16 {
    if peer.to_canonical().is_ipv6() { IPV6_EXTRA } else { 0 }
}

/// An unpredictable number.
pub(crate) fn random() -> Result<u32, Error> {
    getrandom::u32().map_err(|error| Error::Io(error.into()))
}
