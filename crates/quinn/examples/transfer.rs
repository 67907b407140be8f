//! Sends a file over quinn, without HTTP/3, on localhost with an algorithm of `dumbbell-cc`:
//!
//! ```text
//! cargo run --release -p dumbbell-quinn --example transfer -- bbr3 100
//! ```
//!
//! The arguments are the algorithm (default `bbr3`) and the size in MB (default 100).

use dumbbell_quinn::Config;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// What the server has received: bytes, and their sum modulo 2^64.
type Received = (u64, u64);

fn transport(cc: &str) -> Result<Arc<TransportConfig>> {
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::new(Config::new(cc)?));
    Ok(Arc::new(transport))
}

/// A server with a certificate of its own, and a client that trusts it.
fn endpoints(cc: &str) -> Result<(Endpoint, Endpoint)> {
    let signed = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let certificate = CertificateDer::from(signed.cert);
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)?;
    let mut server = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(server)?));
    server.transport_config(transport(cc)?);
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate)?;
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(client)?));
    client.transport_config(transport(cc)?);
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut sender = Endpoint::client(any)?;
    sender.set_default_client_config(client);
    Ok((Endpoint::server(server, any)?, sender))
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum: u64, &byte| sum.wrapping_add(byte.into()))
}

/// Receives one stream of one connection.
async fn receive(server: Endpoint) -> Result<Received> {
    let connection = server.accept().await.ok_or("the endpoint was closed")?.await?;
    let mut stream = connection.accept_uni().await?;
    let mut received = (0, 0_u64);
    while let Some(chunk) = stream.read_chunk(usize::MAX, true).await? {
        received.0 += chunk.bytes.len() as u64;
        received.1 = received.1.wrapping_add(sum(&chunk.bytes));
    }
    Ok(received)
}

/// Sends `data` with an algorithm; returns what arrived and how long it took, s.
///
/// # Errors
/// If the algorithm is unknown, or the connection fails.
pub async fn transfer(cc: &str, data: &[u8]) -> Result<(Received, f64)> {
    let (server, client) = endpoints(cc)?;
    let address = server.local_addr()?;
    let receiving = tokio::spawn(receive(server));
    let begin = Instant::now();
    let connection = client.connect(address, "localhost")?.await?;
    let mut stream = connection.open_uni().await?;
    stream.write_all(data).await?;
    stream.finish()?;
    stream.stopped().await?;
    Ok((receiving.await??, begin.elapsed().as_secs_f64()))
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let cc = arguments.next().unwrap_or_else(|| "bbr3".to_owned());
    let megabytes: usize = arguments.next().map_or(Ok(100), |text| text.parse())?;
    let data: Vec<u8> = (0..megabytes * 1_000_000).map(|at| (at % 251) as u8).collect();
    let ((bytes, received), seconds) = transfer(&cc, &data).await?;
    assert_eq!((bytes, received), (data.len() as u64, sum(&data)), "all of the file arrived");
    let rate = bytes as f64 * 8.0 / seconds / 1e6;
    println!("{cc}: {megabytes} MB in {seconds:.2} s, {rate:.0} Mbit/s");
    Ok(())
}
