//! TLS 1.3 by rustls: what both stacks need of it.

use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::sync::Arc;

/// A certificate for the name `dumbbell`, valid until the year 9999, and its key. The key is public, as
/// both are for simulations only. Signatures with Ed25519 all have the same size.
const CERTIFICATE: &[u8] = include_bytes!("tls/certificate.der");
const KEY: &[u8] = include_bytes!("tls/key.der");

/// A client that trusts the certificate.
pub(crate) fn client() -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(CERTIFICATE)).expect("a valid certificate");
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])
        .expect("the provider has TLS 1.3");
    Arc::new(config.with_root_certificates(roots).with_no_client_auth())
}

/// A server with the certificate.
pub(crate) fn server() -> Arc<ServerConfig> {
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(KEY));
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])
        .expect("the provider has TLS 1.3");
    let certificates = vec![CertificateDer::from(CERTIFICATE)];
    let config = config.with_no_client_auth().with_single_cert(certificates, key);
    let mut config = config.expect("a valid key");
    config.send_tls13_tickets = 0;
    Arc::new(config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::null::Handshake;
    use rustls::pki_types::ServerName;
    use rustls::quic::{ClientConnection, Connection, ServerConnection, Version};

    /// One end of a handshake.
    trait End {
        /// Appends the next message; returns whether keys follow it.
        fn write(&mut self, message: &mut Vec<u8>) -> bool;
        fn read(&mut self, message: &[u8]);
    }

    impl End for Connection {
        fn write(&mut self, message: &mut Vec<u8>) -> bool {
            self.write_hs(message).is_some()
        }

        fn read(&mut self, message: &[u8]) {
            self.read_hs(message).expect("a valid message");
        }
    }

    impl End for Handshake {
        fn write(&mut self, message: &mut Vec<u8>) -> bool {
            Handshake::write(self, message)
        }

        fn read(&mut self, message: &[u8]) {
            assert!(Handshake::read(self, message));
        }
    }

    /// Lets an end write, and the other react to every message: who wrote how many bytes, and
    /// whether keys followed.
    fn messages(ends: &mut [impl End; 2], end: usize, sizes: &mut Vec<(usize, usize, bool)>) {
        loop {
            let mut message = Vec::new();
            let keys = ends[end].write(&mut message);
            if message.is_empty() && !keys {
                return;
            }
            sizes.push((end, message.len(), keys));
            if !message.is_empty() {
                ends[1 - end].read(&message);
                messages(ends, 1 - end, sizes);
            }
        }
    }

    #[test]
    fn the_messages_of_the_null_handshake_have_the_sizes_of_those_of_tls() {
        for [own, other] in [[50, 80], [100, 130]].map(|sizes| sizes.map(|size| vec![0; size])) {
            let name = ServerName::try_from("dumbbell").expect("a valid name");
            let tls = ClientConnection::new(client(), Version::V1, name, own.clone());
            let peer = ServerConnection::new(server(), Version::V1, other.clone());
            let mut tls: [Connection; 2] =
                [tls.expect("a connection").into(), peer.expect("a connection").into()];
            let mut null = [Handshake::client(own), Handshake::server(other)];
            let (mut of_tls, mut of_null) = (Vec::new(), Vec::new());
            messages(&mut tls, 0, &mut of_tls);
            messages(&mut null, 0, &mut of_null);
            assert_eq!(of_null, of_tls);
            assert!(!tls.iter().any(|end| end.is_handshaking()));
            assert!(null.iter().all(Handshake::is_complete));
        }
    }
}
