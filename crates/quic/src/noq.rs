//! noq-proto: what its interface has otherwise than quinn-proto's. `shared` is the rest.

#[path = "shared/mod.rs"]
mod shared;

#[cfg(feature = "qlog")]
use crate::log::Log;
use crate::null::{CONFIDENTIALITY_LIMIT, INTEGRITY_LIMIT, TAG, write_tag};
use crate::variables::{self, Variable};
use bytes::{Bytes, BytesMut};
use noq_proto as proto;
use noq_proto::congestion::Controller;
use noq_proto::crypto::{CryptoError, HandshakeTokenKey, PacketKey};
use noq_proto::{
    Connection, ConnectionId, ConnectionIdGenerator, DatagramEvent, EcnCodepoint, Endpoint,
    EndpointConfig, PathId, PathStats, SendStream, ServerConfig, Transmit,
};
use shared::crypto::Null;
use shared::tap::TappedKey;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) use shared::End as Noq;

/// The names of the stack's own algorithms.
pub(crate) const NAMES: &[&str] = &["cubic", "reno", "bbr3"];
/// The last of them, what makes it, and its variables; those of CUBIC.
type Last = proto::congestion::Bbr3;
type LastConfig = proto::congestion::Bbr3Config;
const LAST_VARIABLES: &[Variable] = variables::NOQ_BBR3;
const CUBIC_VARIABLES: &[Variable] = variables::NOQ_CUBIC;
type Ours = dumbbell_quinn::NoqController;

/// A connection ID as the methods of crypto traits take it.
type Cid<'a> = ConnectionId;
/// The configuration of a session as its own method takes it.
type SessionConfig<'a, T> = &'a T;

fn endpoint(
    mut config: EndpointConfig,
    ids: impl Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync + 'static,
    server: Option<Arc<ServerConfig>>,
) -> Endpoint {
    config.cid_generator(Arc::new(ids));
    Endpoint::new(Arc::new(config), server, true)
}

fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    peer: SocketAddr,
    ecn: Option<EcnCodepoint>,
    payload: BytesMut,
    response: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, peer.into(), ecn, payload, response)
}

fn transmit(connection: &mut Connection, now: Instant, payload: &mut Vec<u8>) -> Option<Transmit> {
    connection.poll_transmit(now, NonZeroUsize::MIN, payload)
}

/// How many bytes the stream took.
fn write(stream: &mut SendStream<'_>, data: Bytes) -> usize {
    stream.write_chunks(&mut &mut [data][..]).unwrap_or(0)
}

fn controller(connection: &Connection) -> Option<&dyn Controller> {
    connection.congestion_state(PathId::ZERO)
}

fn path_stats(connection: &mut Connection) -> Option<PathStats> {
    connection.path_stats(PathId::ZERO)
}

/// The minimum round-trip time, which it does not show.
fn min_rtt(_path: &PathStats) -> Option<Duration> {
    None
}

/// Undone reductions.
fn spurious(path: &PathStats) -> u64 {
    path.spurious_congestion_events
}

/// The rate that the stack's pacer takes, bytes/s.
fn pacing_rate(state: &dyn Controller, _ours: Option<&Ours>) -> Option<f64> {
    state.metrics().pacing_rate.map(|rate| rate as f64)
}

/// Makes connections write qlog, with times from `epoch` on.
#[cfg(feature = "qlog")]
fn set_log(transport: &mut proto::TransportConfig, log: Log, epoch: Instant) {
    transport.qlog_factory(Arc::new(LogFactory { log, epoch }));
}

#[cfg(feature = "qlog")]
struct LogFactory {
    log: Log,
    epoch: Instant,
}

#[cfg(feature = "qlog")]
impl proto::QlogFactory for LogFactory {
    fn for_connection(
        &self,
        _side: proto::Side,
        _remote: SocketAddr,
        _initial_dst_cid: ConnectionId,
        _now: Instant,
    ) -> Option<proto::QlogConfig> {
        let mut config = proto::QlogConfig::new(Box::new(self.log.clone()));
        config.start_time(self.epoch);
        Some(config)
    }
}

/// Those methods by which an observed controller passes on what it is told.
macro_rules! observe {
    () => {
        fn on_ack(
            &mut self,
            now: Instant,
            sent: Instant,
            bytes: u64,
            pn: u64,
            app_limited: bool,
            rtt: &RttEstimator,
        ) {
            self.observed.get().on_ack(sent, bytes);
            self.inner.on_ack(now, sent, bytes, pn, app_limited, rtt);
        }

        fn on_congestion_event(
            &mut self,
            now: Instant,
            sent: Instant,
            is_persistent_congestion: bool,
            is_ecn: bool,
            lost_bytes: u64,
            largest_lost_pn: u64,
        ) {
            self.observed.get().on_congestion_event(
                now,
                sent,
                is_persistent_congestion,
                lost_bytes,
            );
            self.inner.on_congestion_event(
                now,
                sent,
                is_persistent_congestion,
                is_ecn,
                lost_bytes,
                largest_lost_pn,
            );
        }

        fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
            self.inner.on_packet_sent(now, bytes, pn);
        }

        fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
            self.inner.on_packet_lost(lost_bytes, pn, now);
        }

        fn on_cwnd_limited(&mut self) {
            self.inner.on_cwnd_limited();
        }

        fn on_spurious_congestion_event(&mut self) {
            self.inner.on_spurious_congestion_event();
        }

        fn on_ack_frequency_update(&mut self, threshold: u64, max_ack_delay: std::time::Duration) {
            self.inner.on_ack_frequency_update(threshold, max_ack_delay);
        }
    };
}
use observe;

impl PacketKey for Null {
    fn encrypt(&self, _path_id: PathId, _packet: u64, buf: &mut [u8], _header_len: usize) {
        write_tag(buf);
    }

    fn decrypt(
        &self,
        _path_id: PathId,
        _packet: u64,
        _header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let length = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        payload.truncate(length);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        CONFIDENTIALITY_LIMIT
    }

    fn integrity_limit(&self) -> u64 {
        INTEGRITY_LIMIT
    }
}

impl PacketKey for TappedKey {
    fn encrypt(&self, path_id: PathId, packet: u64, buf: &mut [u8], header_len: usize) {
        self.note(buf, header_len);
        self.inner.encrypt(path_id, packet, buf, header_len);
    }

    fn decrypt(
        &self,
        path_id: PathId,
        packet: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        self.inner.decrypt(path_id, packet, header, payload)
    }

    fn tag_len(&self) -> usize {
        self.inner.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.inner.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.inner.integrity_limit()
    }
}

impl HandshakeTokenKey for Null {
    fn seal(&self, _token_nonce: u128, data: &mut Vec<u8>) -> Result<(), CryptoError> {
        data.extend_from_slice(&[0; TAG]);
        Ok(())
    }

    fn open<'a>(&self, _token_nonce: u128, data: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
        let length = data.len().checked_sub(TAG).ok_or(CryptoError)?;
        Ok(&data[..length])
    }
}
