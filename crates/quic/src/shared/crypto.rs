//! The [null handshake](crate::null) as a session of the stack.

use super::super::proto::crypto::{
    self, CryptoError, ExportKeyingMaterialError, HeaderKey, HmacKey, KeyPair, Keys, PacketKey,
    UnsupportedVersion,
};
use super::super::proto::transport_parameters::{Error, TransportParameters};
use super::super::proto::{ConnectError, Side, TransportError};
use super::super::{Cid, SessionConfig};
use crate::null::{Handshake, SAMPLE, digest};
use std::any::Any;

/// Keys that protect nothing.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Null;

fn packet_keys() -> KeyPair<Box<dyn PacketKey>> {
    KeyPair { local: Box::new(Null), remote: Box::new(Null) }
}

fn keys() -> Keys {
    Keys {
        header: KeyPair { local: Box::new(Null), remote: Box::new(Null) },
        packet: packet_keys(),
    }
}

impl HeaderKey for Null {
    fn decrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn encrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        SAMPLE
    }
}

impl HmacKey for Null {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        digest(data, signature_out);
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut expected = vec![0; signature.len()];
        digest(data, &mut expected);
        if expected == signature { Ok(()) } else { Err(CryptoError) }
    }
}

/// A session without cryptography.
struct Session {
    handshake: Handshake,
    side: Side,
}

fn encoded(parameters: &TransportParameters) -> Vec<u8> {
    let mut out = Vec::new();
    parameters.write(&mut out);
    out
}

impl crypto::Session for Session {
    fn initial_keys(&self, _dst_cid: Cid<'_>, _side: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        !self.handshake.is_complete()
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        match self.handshake.read(buf) {
            true => Ok(false),
            false => Err(Error::Malformed.into()),
        }
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let read = |mut bytes: &[u8]| TransportParameters::read(self.side, &mut bytes);
        Ok(self.handshake.peer_parameters().map(read).transpose()?)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        self.handshake.write(buf).then(keys)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(packet_keys())
    }

    fn is_valid_retry(&self, _orig_dst_cid: Cid<'_>, _header: &[u8], _payload: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        _output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

impl crypto::ClientConfig for Null {
    fn start_session(
        self: SessionConfig<'_, Self>,
        _version: u32,
        _server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        let handshake = Handshake::client(encoded(params));
        Ok(Box::new(Session { handshake, side: Side::Client }))
    }
}

impl crypto::ServerConfig for Null {
    fn initial_keys(&self, _version: u32, _dst_cid: Cid<'_>) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _version: u32, _orig_dst_cid: Cid<'_>, _packet: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(
        self: SessionConfig<'_, Self>,
        _version: u32,
        params: &TransportParameters,
    ) -> Box<dyn crypto::Session> {
        let handshake = Handshake::server(encoded(params));
        Box::new(Session { handshake, side: Side::Server })
    }
}
