//! A session whose packets are read before they are encrypted.

use super::super::proto::crypto::{
    ClientConfig, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session,
};
use super::super::proto::transport_parameters::TransportParameters;
use super::super::proto::{ConnectError, Side, TransportError};
use super::super::{Cid, SessionConfig};
use crate::observed::Shared;
use std::any::Any;
use std::sync::Arc;

/// A client's configuration of sessions, observed.
pub(super) struct TappedConfig {
    pub(super) inner: Arc<dyn ClientConfig>,
    pub(super) observed: Shared,
}

impl ClientConfig for TappedConfig {
    fn start_session(
        self: SessionConfig<'_, Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let inner = Arc::clone(&self.inner).start_session(version, server_name, params)?;
        Ok(Box::new(Tapped { inner, observed: self.observed.clone() }))
    }
}

struct Tapped {
    inner: Box<dyn Session>,
    observed: Shared,
}

/// A key that notes what it protects.
pub(in super::super) struct TappedKey {
    pub(in super::super) inner: Box<dyn PacketKey>,
    observed: Shared,
}

impl TappedKey {
    pub(in super::super) fn note(&self, packet: &[u8], header: usize) {
        let end = packet.len() - self.inner.tag_len();
        self.observed.get().frames.on_packet(&packet[header..end]);
    }
}

impl Tapped {
    fn tap(&self, keys: KeyPair<Box<dyn PacketKey>>) -> KeyPair<Box<dyn PacketKey>> {
        let local = TappedKey { inner: keys.local, observed: self.observed.clone() };
        KeyPair { local: Box::new(local), remote: keys.remote }
    }

    fn tap_all(&self, keys: Keys) -> Keys {
        Keys { header: keys.header, packet: self.tap(keys.packet) }
    }
}

impl Session for Tapped {
    fn initial_keys(&self, dst_cid: Cid<'_>, side: Side) -> Keys {
        self.tap_all(self.inner.initial_keys(dst_cid, side))
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.inner.early_crypto()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.inner.read_handshake(buf)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let keys = self.inner.write_handshake(buf)?;
        Some(self.tap_all(keys))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.inner.next_1rtt_keys()?;
        Some(self.tap(keys))
    }

    fn is_valid_retry(&self, orig_dst_cid: Cid<'_>, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, context)
    }
}
