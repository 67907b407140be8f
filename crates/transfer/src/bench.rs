//! Throughput measurement.

use crate::client::{RetryPolicy, connect, disconnect, resolve};
use crate::error::TransferError;
use crate::frame::{CHUNK, Frame, FrameStream, Operation, ReceiverMessage, SenderMessage};
use crate::monitor::TransferMonitor;
use dumbbell_udt::io::Settings;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Length of a throughput measurement.
#[derive(Clone, Copy, Debug)]
pub enum BenchLimit {
    /// Sending time.
    Time(Duration),
    /// Bytes to send.
    Bytes(u64),
}

/// Measures the throughput to a server, which discards the data.
///
/// The connection is sampled into `monitor` every `interval`. Returns the bytes sent, and the time from
/// the first byte to the server's confirmation of the last.
///
/// # Errors
/// If the server refuses, or the connection fails.
pub fn bench(
    peer: &str,
    load: BenchLimit,
    settings: &Settings,
    interval: Duration,
    monitor: &Arc<TransferMonitor>,
) -> Result<(u64, Duration), TransferError> {
    let addresses = resolve(peer)?;
    bench_once(&addresses, load, settings, interval, monitor).map_err(|error| error.at(peer))
}

fn bench_once(
    peer: &[SocketAddr],
    load: BenchLimit,
    settings: &Settings,
    interval: Duration,
    monitor: &Arc<TransferMonitor>,
) -> Result<(u64, Duration), TransferError> {
    let policy =
        RetryPolicy { max_retries: 0, sample_interval: interval, ..RetryPolicy::default() };
    let mut stream = connect(peer, Operation::Bench, settings, policy, monitor)?;
    let mut frame = vec![0x5a; 4 + CHUNK];
    let (bytes, time) = match load {
        BenchLimit::Time(time) => (u64::MAX, time),
        BenchLimit::Bytes(bytes) => (bytes, Duration::MAX),
    };
    monitor.start(1, if bytes == u64::MAX { 0 } else { bytes });
    let (began, mut sent) = (Instant::now(), 0);
    while sent < bytes && began.elapsed() < time {
        let some = CHUNK.min(usize::try_from(bytes - sent).unwrap_or(CHUNK));
        stream.send_data(&mut frame[..4 + some])?;
        sent += some as u64;
        monitor.add_bytes(some as u64);
    }
    stream.send(&SenderMessage::Over)?;
    match stream.recv_message()? {
        ReceiverMessage::Have { bytes, .. } if bytes == sent => {}
        ReceiverMessage::Have { bytes, .. } => {
            let what = format!("{bytes} of {sent} bytes arrived");
            return Err(TransferError::Protocol(what));
        }
        _ => {
            return Err(TransferError::Protocol(
                "the server did not report the received bytes".to_owned(),
            ));
        }
    }
    let took = began.elapsed();
    monitor.end_file();
    disconnect(&stream);
    Ok((sent, took))
}

/// The server's side: receives and discards data.
pub(crate) fn serve_bench(stream: &mut FrameStream) -> Result<(), TransferError> {
    stream.monitor().start(1, 0);
    let mut bytes = 0;
    loop {
        match stream.recv::<SenderMessage>()? {
            Frame::Data(data) => {
                bytes += data.len() as u64;
                let some = data.len() as u64;
                stream.monitor().add_bytes(some);
            }
            Frame::Message(SenderMessage::Over) => {
                return stream.send(&ReceiverMessage::Have { bytes, hash: None });
            }
            Frame::Message(_) => {
                return Err(TransferError::Protocol("expected data".to_owned()));
            }
        }
    }
}
