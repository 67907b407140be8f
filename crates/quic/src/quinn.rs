//! quinn-proto: what its interface has otherwise than noq-proto's. `shared` is the rest.

#[path = "shared/mod.rs"]
mod shared;

#[cfg(feature = "qlog")]
use crate::log::Log;
use crate::null::{CONFIDENTIALITY_LIMIT, INTEGRITY_LIMIT, TAG, write_tag};
use crate::variables::{self, Variable};
use bytes::{Bytes, BytesMut};
use quinn_proto as proto;
use quinn_proto::congestion::Controller;
use quinn_proto::crypto::{AeadKey, CryptoError, HandshakeTokenKey, PacketKey};
use quinn_proto::{
    Connection, ConnectionId, ConnectionIdGenerator, DatagramEvent, EcnCodepoint, Endpoint,
    EndpointConfig, PathStats, SendStream, ServerConfig, Transmit,
};
use shared::crypto::Null;
use shared::tap::TappedKey;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) use shared::End as Quinn;

/// The names of the stack's own algorithms.
pub(crate) const NAMES: &[&str] = &["cubic", "reno", "bbr"];
/// The last of them, what makes it, and its variables; those of CUBIC.
type Last = proto::congestion::Bbr;
type LastConfig = proto::congestion::BbrConfig;
const LAST_VARIABLES: &[Variable] = variables::QUINN_BBR;
const CUBIC_VARIABLES: &[Variable] = variables::QUINN_CUBIC;
type Ours = dumbbell_quinn::Controller;

/// A connection ID as the methods of crypto traits take it.
type Cid<'a> = &'a ConnectionId;
/// The configuration of a session as its own method takes it.
type SessionConfig<'a, T> = Arc<T>;

fn endpoint(
    mut config: EndpointConfig,
    ids: impl Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync + 'static,
    server: Option<Arc<ServerConfig>>,
) -> Endpoint {
    config.cid_generator(ids);
    Endpoint::new(Arc::new(config), server, true, None)
}

fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    peer: SocketAddr,
    ecn: Option<EcnCodepoint>,
    payload: BytesMut,
    response: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, peer, None, ecn, payload, response)
}

fn transmit(connection: &mut Connection, now: Instant, payload: &mut Vec<u8>) -> Option<Transmit> {
    connection.poll_transmit(now, 1, payload)
}

/// How many bytes the stream took.
fn write(stream: &mut SendStream<'_>, data: Bytes) -> usize {
    stream.write_chunks(&mut [data]).map_or(0, |written| written.bytes)
}

fn controller(connection: &Connection) -> Option<&dyn Controller> {
    Some(connection.congestion_state())
}

fn path_stats(connection: &mut Connection) -> Option<PathStats> {
    Some(connection.stats().path)
}

fn min_rtt(path: &PathStats) -> Option<Duration> {
    Some(path.min_rtt)
}

/// Undone reductions, which it does not count.
fn spurious(_path: &PathStats) -> u64 {
    0
}

/// The rate of our algorithms, bytes/s. The stack's pacer takes the window, and the rate of its own
/// algorithms goes into qlog only.
fn pacing_rate(_state: &dyn Controller, ours: Option<&Ours>) -> Option<f64> {
    Some(ours?.pacing_rate()?.bytes_per_sec())
}

/// Makes connections write qlog, with times from `epoch` on.
#[cfg(feature = "qlog")]
fn set_log(transport: &mut proto::TransportConfig, log: Log, epoch: Instant) {
    let mut config = proto::QlogConfig::default();
    config.writer(Box::new(log)).start_time(epoch);
    transport.qlog_stream(config.into_stream());
}

/// Those methods by which an observed controller passes on what it is told.
macro_rules! observe {
    () => {
        fn on_ack(
            &mut self,
            now: Instant,
            sent: Instant,
            bytes: u64,
            app_limited: bool,
            rtt: &RttEstimator,
        ) {
            self.observed.get().on_ack(sent, bytes);
            self.inner.on_ack(now, sent, bytes, app_limited, rtt);
        }

        fn on_congestion_event(
            &mut self,
            now: Instant,
            sent: Instant,
            is_persistent_congestion: bool,
            lost_bytes: u64,
        ) {
            self.observed.get().on_congestion_event(
                now,
                sent,
                is_persistent_congestion,
                lost_bytes,
            );
            self.inner.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
        }
    };
}
use observe;

impl PacketKey for Null {
    fn encrypt(&self, _packet: u64, buf: &mut [u8], _header_len: usize) {
        write_tag(buf);
    }

    fn decrypt(
        &self,
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
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        self.note(buf, header_len);
        self.inner.encrypt(packet, buf, header_len);
    }

    fn decrypt(
        &self,
        packet: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        self.inner.decrypt(packet, header, payload)
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
    fn aead_from_hkdf(&self, _random_bytes: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Null)
    }
}

impl AeadKey for Null {
    fn seal(&self, data: &mut Vec<u8>, _additional_data: &[u8]) -> Result<(), CryptoError> {
        data.extend_from_slice(&[0; TAG]);
        Ok(())
    }

    fn open<'a>(
        &self,
        data: &'a mut [u8],
        _additional_data: &[u8],
    ) -> Result<&'a mut [u8], CryptoError> {
        let length = data.len().checked_sub(TAG).ok_or(CryptoError)?;
        Ok(&mut data[..length])
    }
}
