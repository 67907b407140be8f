//! UDT in the simulator: a client that connects and sends, and a server that listens and receives.

use crate::sample::Sampled;
use crate::sender_rows::{fill_flow_row, fill_series_row};
use crate::sim_endpoint::SimEndpoint;
use crate::tables::{FlowRow, SeriesRow};
use dumbbell_cc::{Algorithm, Metric, SenderStats};
use dumbbell_net::Endpoint;
use dumbbell_udt::{
    BulkData, Config, Connection, Listener, ListenerAction, Mode, Packet, Role, Seq,
    TransportOptions,
};
use dumbbell_units::Time;

/// Socket ids of client and server; any two numbers work, as every flow has its own routes.
pub(crate) const SOCKETS: [u32; 2] = [1, 2];
/// The client's address as the listener sees it.
const CLIENT: &[u8] = b"client";

/// One end of a UDT flow.
pub(crate) struct UdtHost {
    state: UdtState,
    /// Total bytes to send.
    bytes: u64,
    payload: u64,
}

#[allow(
    clippy::large_enum_variant,
    reason = "hosts are boxed, and a listener is soon a connection"
)]
enum UdtState {
    Connected(Connection),
    Listening(ListeningServer),
    /// During the change from listening to connected.
    Accepting,
}

/// A server before the connection.
struct ListeningServer {
    listener: Listener,
    /// Configuration of the connection to accept.
    config: Config,
    reply: Option<Packet>,
}

/// What the client sends and when.
pub(crate) struct ClientConfig {
    pub(crate) options: TransportOptions,
    pub(crate) bulk: BulkData,
    pub(crate) start: Time,
    /// Seed of the ends' random numbers.
    pub(crate) seed: u64,
}

impl UdtHost {
    /// The end that connects and sends.
    pub(crate) fn client(client: ClientConfig, algorithm: Algorithm) -> UdtHost {
        let (payload, bytes) = (u64::from(client.options.max_payload()), client.bulk.bytes);
        // A multiple of 16, so that packet pairs are the same counted from here or from 0.
        let isn = Seq::new(client.seed as u32 & !15);
        let config = Config { bulk: Some(client.bulk), ..config(client.options, algorithm, 0) };
        let mut connection = Connection::open(config, Role::Client, isn, client.start);
        connection.close();
        let bytes = bytes.unwrap_or(u64::MAX);
        UdtHost { state: UdtState::Connected(connection), bytes, payload }
    }

    /// The end that listens and receives.
    pub(crate) fn server(options: TransportOptions, algorithm: Algorithm, seed: u64) -> UdtHost {
        let payload = u64::from(options.max_payload());
        let mut key = [0; 16];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let listener = Listener::new(options.clone(), Mode::Stream, key);
        let server =
            ListeningServer { listener, config: config(options, algorithm, 1), reply: None };
        UdtHost { state: UdtState::Listening(server), bytes: 0, payload }
    }

    fn connection(&self) -> Option<&Connection> {
        match &self.state {
            UdtState::Connected(connection) => Some(connection),
            _ => None,
        }
    }

    fn sender(&self) -> Option<SenderStats> {
        Some(self.connection()?.sender_stats())
    }

    fn received(&self) -> u64 {
        self.connection().map_or(0, |connection| connection.receiver_stats().bytes)
    }

    /// Processes a packet before the connection exists.
    #[cold]
    fn listen(&mut self, now: Time, packet: &Packet) {
        let UdtState::Listening(server) = &mut self.state else { return };
        let Packet::Handshake(client) = packet else { return };
        match server.listener.handle(now, CLIENT, client) {
            ListenerAction::Ignore => {}
            ListenerAction::Reply(reply) => server.reply = Some(Packet::Handshake(reply)),
            ListenerAction::Accept => {
                if let UdtState::Listening(server) =
                    std::mem::replace(&mut self.state, UdtState::Accepting)
                {
                    let connection = Connection::accept(server.config, client, now);
                    self.state = UdtState::Connected(connection);
                }
            }
        }
    }
}

fn config(options: TransportOptions, algorithm: Algorithm, end: usize) -> Config {
    Config {
        options,
        mode: Mode::Stream,
        algorithm,
        new_algorithm: None,
        bulk: None,
        keep_received: false,
        socket_id: SOCKETS[end],
        connect_timeout: None,
        idle_timeout: None,
        crypto_overhead: 0,
    }
}

impl Endpoint for UdtHost {
    type Packet = Packet;

    #[inline(always)]
    fn handle(&mut self, now: Time, packet: &Packet) {
        match &mut self.state {
            UdtState::Connected(connection) => connection.handle(now, packet),
            _ => self.listen(now, packet),
        }
    }

    #[inline(always)]
    fn poll(&mut self, now: Time) -> Option<Packet> {
        match &mut self.state {
            UdtState::Connected(connection) => connection.poll(now),
            UdtState::Listening(server) => server.reply.take(),
            UdtState::Accepting => None,
        }
    }

    #[inline(always)]
    fn next_timeout(&self) -> Time {
        match &self.state {
            UdtState::Connected(connection) => connection.next_timeout(),
            _ => Time::MAX,
        }
    }
}

impl SimEndpoint for UdtHost {}

impl Sampled for UdtHost {
    fn sample(&self, row: &mut SeriesRow) {
        match self.sender().filter(|_| self.bytes > 0) {
            Some(stats) => {
                fill_series_row(&stats, stats.delivered_bytes(self.payload, self.bytes), row)
            }
            None => row.received = self.received(),
        }
    }

    fn finish(&self, row: &mut FlowRow) {
        match self.sender().filter(|_| self.bytes > 0) {
            Some(stats) => {
                fill_flow_row(&stats, stats.delivered_bytes(self.payload, self.bytes), row)
            }
            None => row.received = self.received(),
        }
    }

    fn inspect(&self, show: &mut dyn FnMut(Metric)) {
        if let Some(connection) = self.connection() {
            connection.inspect(show);
        }
    }

    fn is_complete(&self) -> bool {
        self.sender().is_some_and(|stats| stats.completed.is_some())
    }
}
