//! Real TLS 1.3 as a session of the stack.

use super::super::proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use std::sync::Arc;

pub(super) fn client() -> Arc<QuicClientConfig> {
    let config = QuicClientConfig::try_from(crate::tls::client());
    Arc::new(config.expect("the provider has QUIC's initial cipher suite"))
}

pub(super) fn server() -> Arc<QuicServerConfig> {
    let config = QuicServerConfig::try_from(crate::tls::server());
    Arc::new(config.expect("the provider has QUIC's initial cipher suite"))
}
