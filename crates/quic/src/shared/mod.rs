//! quinn-proto and noq-proto as stacks. noq is a variant of quinn, so one text serves both: each
//! compiles it with its own types, and has beside it what differs.

pub(super) mod controller;
pub(super) mod crypto;
pub(super) mod tap;
#[cfg(feature = "tls")]
mod tls;

use super::proto::congestion::Controller;
use super::proto::{
    self, AckFrequencyConfig, ClientConfig, Connection, ConnectionHandle, ConnectionId,
    ConnectionIdGenerator, DatagramEvent, Dir, Endpoint, EndpointConfig, ServerConfig, StreamEvent,
    StreamId, TimeSource, TransportConfig, VarInt,
};
use super::{Ours, min_rtt, pacing_rate, path_stats, spurious};
use crate::options::Crypto;
use crate::stack::{CID, Event, RECEIVE_WINDOW, STREAM, Settings, Stack, Stats, peer, window_rate};
use bytes::{Bytes, BytesMut};
use crypto::Null;
use dumbbell_cc::Metric;
use dumbbell_sim::EcnCodepoint;
#[cfg(feature = "qlog")]
use dumbbell_units::Time;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};
use tap::TappedConfig;

/// An endpoint with one connection, and streams from the client to the server.
pub(crate) struct End {
    endpoint: Endpoint,
    /// At a client, until it connects.
    client: Option<ClientConfig>,
    connection: Option<(ConnectionHandle, Connection)>,
    /// The stream that is written to, and how much it still takes.
    sending: Option<(StreamId, usize)>,
    /// Streams that are not acknowledged to their end.
    unfinished: usize,
    /// Whether no further stream follows.
    is_ended: bool,
    receiving: Vec<StreamId>,
    /// Datagrams that the endpoint itself sends.
    responses: VecDeque<Vec<u8>>,
    is_client: bool,
}

/// Connection IDs from a seed.
struct SeededIds(Xoshiro256PlusPlus);

impl ConnectionIdGenerator for SeededIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut id = [0; CID];
        self.0.fill_bytes(&mut id);
        ConnectionId::new(&id)
    }

    fn cid_len(&self) -> usize {
        CID
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// A wall clock that stands still: it dates address validation tokens only.
struct Standstill;

impl TimeSource for Standstill {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// The stack's defaults, but for: the flow's algorithm and options, a larger window of flow
/// control, one datagram a time (no segmentation offload), and no idle timeout unless it is given.
fn transport(settings: &Settings) -> TransportConfig {
    let (options, mut config) = (&settings.options, TransportConfig::default());
    let idle_timeout = (options.idle_timeout_ns > 0).then_some(options.idle_timeout_ns / 1_000_000);
    let idle_timeout = idle_timeout.map(|ms| VarInt::from_u64(ms).expect("a checked option"));
    config
        .congestion_controller_factory(controller::factory(settings))
        .initial_mtu(options.initial_mtu)
        .max_idle_timeout(idle_timeout.map(Into::into))
        .stream_receive_window(VarInt::from_u32(RECEIVE_WINDOW))
        .receive_window(VarInt::MAX)
        .enable_segmentation_offload(false);
    if !options.mtu_discovery {
        config.mtu_discovery_config(None);
    }
    if options.ack_eliciting_threshold > 0 {
        let mut frequency = AckFrequencyConfig::default();
        frequency.ack_eliciting_threshold(options.ack_eliciting_threshold.into());
        config.ack_frequency_config(Some(frequency));
    }
    #[cfg(feature = "qlog")]
    if let Some(log) = &settings.log {
        super::set_log(&mut config, log.clone(), settings.clock.instant(Time::ZERO));
    }
    config
}

impl End {
    fn client(settings: &Settings, transport: Arc<TransportConfig>) -> ClientConfig {
        let inner: Arc<dyn proto::crypto::ClientConfig> = match settings.options.crypto {
            Crypto::Null => Arc::new(Null),
            #[cfg(feature = "tls")]
            Crypto::Rustls => tls::client(),
            #[cfg(not(feature = "tls"))]
            Crypto::Rustls => unreachable!("a checked option"),
        };
        let observed = settings.observed.clone();
        let mut config = ClientConfig::new(Arc::new(TappedConfig { inner, observed }));
        // 20 bytes, as the stack draws them.
        let mut id = [0; 20];
        settings.random(2).fill_bytes(&mut id);
        config
            .initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&id)))
            .transport_config(transport);
        config
    }

    fn server(settings: &Settings, transport: Arc<TransportConfig>) -> ServerConfig {
        let mut config = match settings.options.crypto {
            Crypto::Null => ServerConfig::new(Arc::new(Null), Arc::new(Null)),
            #[cfg(feature = "tls")]
            Crypto::Rustls => ServerConfig::new(tls::server(), Arc::new(Null)),
            #[cfg(not(feature = "tls"))]
            Crypto::Rustls => unreachable!("a checked option"),
        };
        config.transport_config(transport).time_source(Arc::new(Standstill));
        config
    }

    fn accept(&mut self, now: Instant, event: DatagramEvent, response: Vec<u8>) {
        match event {
            DatagramEvent::NewConnection(incoming) => {
                let mut refusal = Vec::new();
                match self.endpoint.accept(incoming, now, &mut refusal, None) {
                    Ok(accepted) => self.connection = Some(accepted),
                    Err(_) if refusal.is_empty() => {}
                    Err(_) => self.responses.push_back(refusal),
                }
            }
            DatagramEvent::ConnectionEvent(handle, event) => {
                if let Some((known, connection)) = &mut self.connection
                    && *known == handle
                {
                    connection.handle_event(event);
                }
            }
            DatagramEvent::Response(_) => self.responses.push_back(response),
        }
    }

    fn end_stream(&mut self) {
        if let (Some((id, _)), Some((_, connection))) = (self.sending.take(), &mut self.connection)
        {
            // An error means that the stream has ended already.
            let _ = connection.send_stream(id).finish();
        }
    }

    fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().map(|(_, connection)| connection)
    }
}

/// A copy of the controller, if it has one of dumbbell's algorithms.
fn ours(state: &dyn Controller) -> Option<Box<Ours>> {
    state.clone_box().into_any().downcast().ok()
}

impl Stack for End {
    fn new(settings: &Settings) -> End {
        let mut config = EndpointConfig::new(Arc::new(Null));
        config.rng_seed(Some(settings.seed()));
        let ids = Mutex::new(Some(settings.random(3)));
        let ids = move || -> Box<dyn ConnectionIdGenerator> {
            let ids = ids.lock().expect("no code panics while it holds the generator").take();
            Box::new(SeededIds(ids.expect("one endpoint is made from a configuration")))
        };
        let transport = Arc::new(transport(settings));
        let (client, server) = match settings.is_client {
            true => (Some(End::client(settings, transport)), None),
            false => (None, Some(Arc::new(End::server(settings, transport)))),
        };
        End {
            endpoint: super::endpoint(config, ids, server),
            client,
            connection: None,
            sending: None,
            unfinished: 0,
            is_ended: false,
            receiving: Vec::new(),
            responses: VecDeque::new(),
            is_client: settings.is_client,
        }
    }

    fn connect(&mut self, now: Instant) {
        let Some(config) = self.client.take() else { return };
        let connected = self.endpoint.connect(now, config, peer(true), "dumbbell");
        self.connection = Some(connected.expect("a valid address and a supported version"));
    }

    fn handle(&mut self, now: Instant, ecn: EcnCodepoint, payload: &[u8]) {
        let ecn = proto::EcnCodepoint::from_bits(ecn.bits());
        let (peer, payload) = (peer(self.is_client), BytesMut::from(payload));
        let mut response = Vec::new();
        let event = super::handle(&mut self.endpoint, now, peer, ecn, payload, &mut response);
        if let Some(event) = event {
            self.accept(now, event, response);
        }
    }

    fn timeout(&mut self) -> Option<Instant> {
        self.connection()?.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some(connection) = self.connection() {
            connection.handle_timeout(now);
        }
    }

    fn transmit(&mut self, now: Instant, payload: &mut Vec<u8>) -> Option<EcnCodepoint> {
        if let Some(response) = self.responses.pop_front() {
            *payload = response;
            return Some(EcnCodepoint::NotEct);
        }
        let transmit = super::transmit(self.connection()?, now, payload)?;
        Some(EcnCodepoint::from_bits(transmit.ecn.map_or(0, |ecn| ecn as u8)))
    }

    fn next_event(&mut self) -> Option<Event> {
        let (handle, connection) = self.connection.as_mut()?;
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(answer);
            }
        }
        loop {
            return Some(match connection.poll()? {
                proto::Event::Connected => Event::Connected,
                proto::Event::ConnectionLost { reason } => Event::Lost(reason.to_string()),
                proto::Event::Stream(
                    StreamEvent::Writable { .. } | StreamEvent::Available { .. },
                ) => Event::Writable,
                proto::Event::Stream(StreamEvent::Finished { .. }) => {
                    self.unfinished -= 1;
                    if self.unfinished > 0 || !self.is_ended {
                        continue;
                    }
                    Event::Finished
                }
                proto::Event::DatagramReceived
                | proto::Event::Stream(StreamEvent::Opened { .. } | StreamEvent::Readable { .. }) => {
                    Event::Readable
                }
                _ => continue,
            });
        }
    }

    fn write(&mut self, data: Bytes) -> usize {
        let Some((_, connection)) = &mut self.connection else { return 0 };
        let (id, room) = match self.sending {
            Some(sending) => sending,
            None => {
                let Some(id) = connection.streams().open(Dir::Uni) else { return 0 };
                self.unfinished += 1;
                (id, STREAM)
            }
        };
        let part = data.slice(..data.len().min(room));
        let written = super::write(&mut connection.send_stream(id), part);
        self.sending = Some((id, room - written));
        if written == room {
            self.end_stream();
        }
        written
    }

    fn send_datagram(&mut self, data: Bytes) {
        if let Some(connection) = self.connection() {
            // It fits into every packet, and the peer takes datagrams.
            let _ = connection.datagrams().send(data, true);
        }
    }

    fn read_datagram(&mut self) -> Option<Bytes> {
        self.connection()?.datagrams().recv()
    }

    fn finish(&mut self) {
        self.is_ended = true;
        self.end_stream();
    }

    fn read(&mut self) -> u64 {
        let Some((_, connection)) = &mut self.connection else { return 0 };
        while let Some(id) = connection.streams().accept(Dir::Uni) {
            self.receiving.push(id);
        }
        let mut bytes = 0;
        self.receiving.retain(|&id| {
            let mut stream = connection.recv_stream(id);
            let Ok(mut chunks) = stream.read(true) else { return false };
            let is_open = loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => bytes += chunk.bytes.len() as u64,
                    Ok(None) => break false,
                    Err(_) => break true, // no more at present
                }
            };
            let _ = chunks.finalize(); // the end polls for datagrams anyway
            is_open
        });
        bytes
    }

    fn set_send_window(&mut self, windows: u64, bytes: u64) {
        if let Some(connection) = self.connection() {
            let state = super::controller(connection);
            let window = state.map_or(0, |state| state.metrics().congestion_window);
            connection.set_send_window(window.saturating_mul(windows).saturating_add(bytes));
        }
    }

    fn stats(&mut self) -> Stats {
        let Some(connection) = self.connection() else { return Stats::default() };
        let Some(path) = path_stats(connection) else { return Stats::default() };
        let Some(state) = super::controller(connection) else { return Stats::default() };
        let (metrics, ours) = (state.metrics(), ours(state));
        let cwnd = metrics.congestion_window;
        let rate = pacing_rate(state, ours.as_deref());
        Stats {
            rtt: path.rtt,
            min_rtt: min_rtt(&path),
            cwnd,
            ssthresh: metrics.ssthresh,
            pacing_rate: Some(rate.unwrap_or_else(|| window_rate(cwnd, path.rtt))),
            mtu: path.current_mtu,
            sent_packets: path.sent_packets,
            lost_packets: path.lost_packets,
            spurious: spurious(&path),
            delivery_rate: ours.map(|ours| ours.delivery_rate().bytes_per_sec()),
        }
    }

    fn inspect(&mut self, show: &mut dyn FnMut(Metric)) {
        if let Some(connection) = self.connection()
            && let Some(path) = path_stats(connection)
            && let Some(state) = super::controller(connection)
        {
            controller::inspect(state, path.current_mtu, show);
        }
    }
}
