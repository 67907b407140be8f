//! What the two ends of a flow need of a QUIC stack.

use crate::observed::Shared;
use crate::options::QuicOptions;
use bytes::Bytes;
use dumbbell_cc::Metric;
use dumbbell_quinn::Config;
use dumbbell_sim::EcnCodepoint;
use dumbbell_units::{Span, Time};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

/// Bytes of the connection IDs, as both stacks have them.
pub(crate) const CID: usize = 8;

/// Bytes of a stream; another one follows it. In one long stream a burst of losses could end the
/// connection: both stacks close one whose stream has more than 1024 gaps ("too many gaps in stream
/// buffer"), and a gap takes two packets of 1170 bytes of data at least.
pub(crate) const STREAM: usize = 1024 * 1024;
/// Flow control window of a stream, bytes: more than it has.
pub(crate) const RECEIVE_WINDOW: u32 = 2 * STREAM as u32;

/// The stacks' time of a simulated one. Stacks use only differences, so any instant may be zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    /// A clock whose zero is now.
    pub(crate) fn new() -> Clock {
        Clock(Instant::now())
    }

    pub(crate) fn instant(self, time: Time) -> Instant {
        self.0 + Duration::from_nanos(time.as_nanos())
    }

    pub(crate) fn time(self, instant: Instant) -> Time {
        Time::ZERO + span(instant.saturating_duration_since(self.0))
    }
}

pub(crate) fn span(duration: Duration) -> Span {
    Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// The congestion control of an end.
#[derive(Clone)]
pub(crate) enum CongestionControl {
    /// The stack's own of this name.
    Native(&'static str),
    /// One of dumbbell's.
    Ours(Config),
}

/// Everything that an end is made from.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) is_client: bool,
    pub(crate) seed: u64,
    pub(crate) options: QuicOptions,
    pub(crate) congestion_control: CongestionControl,
    pub(crate) observed: Shared,
    pub(crate) clock: Clock,
    /// Where the stack writes its qlog, at the client of a logged flow.
    #[cfg(feature = "qlog")]
    pub(crate) log: Option<crate::log::Log>,
}

impl Settings {
    /// A generator for one use of random numbers at this end.
    pub(crate) fn random(&self, purpose: u64) -> Xoshiro256PlusPlus {
        let side = u64::from(self.is_client) << 32;
        Xoshiro256PlusPlus::seed_from_u64(self.seed ^ side ^ purpose.wrapping_mul(0x9e37_79b9_7f4a))
    }

    pub(crate) fn seed(&self) -> [u8; 32] {
        let mut seed = [0; 32];
        self.random(1).fill_bytes(&mut seed);
        seed
    }
}

/// The peer's address. Every flow has its own path, so the two addresses are always the same.
pub(crate) fn peer(is_client: bool) -> SocketAddr {
    let (host, port) = if is_client { (2, 443) } else { (1, 40_000) };
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), port)
}

/// What an end has to react to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The handshake is complete.
    Connected,
    /// The stream takes data again.
    Writable,
    /// There is data to read.
    Readable,
    /// All data was acknowledged.
    Finished,
    /// The stack closed the connection, for this reason.
    Lost(String),
}

/// The statistics of a connection, as the stack counts them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stats {
    pub(crate) rtt: Duration,
    pub(crate) min_rtt: Option<Duration>,
    /// Congestion window, bytes.
    pub(crate) cwnd: u64,
    /// Slow start threshold, bytes.
    pub(crate) ssthresh: Option<u64>,
    /// Rate at which the stack paces, bytes/s.
    pub(crate) pacing_rate: Option<f64>,
    /// Maximum UDP payload, bytes.
    pub(crate) mtu: u16,
    pub(crate) sent_packets: u64,
    pub(crate) lost_packets: u64,
    pub(crate) spurious: u64,
    /// Latest delivery rate, bytes/s, of dumbbell's algorithms.
    pub(crate) delivery_rate: Option<f64>,
}

/// Rate of the pacers of quinn and noq for a window, if the algorithm sets none: 1.25 windows per
/// round-trip time (RFC 9002, section 7.7).
pub(crate) fn window_rate(window: u64, rtt: Duration) -> f64 {
    1.25 * window as f64 / rtt.as_secs_f64()
}

/// An end of a QUIC connection, without I/O.
pub(crate) trait Stack: Send + Sized + 'static {
    fn new(settings: &Settings) -> Self;

    /// Begins the handshake, at a client.
    fn connect(&mut self, now: Instant);

    /// Processes a datagram.
    fn handle(&mut self, now: Instant, ecn: EcnCodepoint, payload: &[u8]);

    /// When to call `handle_timeout`.
    fn timeout(&mut self) -> Option<Instant>;

    fn handle_timeout(&mut self, now: Instant);

    /// Appends the next datagram.
    fn transmit(&mut self, now: Instant, payload: &mut Vec<u8>) -> Option<EcnCodepoint>;

    fn next_event(&mut self) -> Option<Event>;

    /// Writes to the current stream and returns how much of it was taken.
    fn write(&mut self, data: Bytes) -> usize;

    /// Sends a datagram; the oldest ones that wait are dropped if there are too many.
    fn send_datagram(&mut self, data: Bytes);

    /// The next datagram that has arrived.
    fn read_datagram(&mut self) -> Option<Bytes>;

    /// Ends the last stream.
    fn finish(&mut self);

    /// Reads all that has arrived in order and returns how much it was.
    fn read(&mut self) -> u64;

    /// Sets how much may be written and not acknowledged: congestion windows and bytes.
    fn set_send_window(&mut self, windows: u64, bytes: u64);

    fn stats(&mut self) -> Stats;

    /// Shows the internals of the algorithm: of dumbbell's, of BBR and of CUBIC.
    fn inspect(&mut self, show: &mut dyn FnMut(Metric));
}
