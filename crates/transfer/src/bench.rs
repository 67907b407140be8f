//! How fast the way to a server is.

use crate::client::{Attempts, ask, part};
use crate::error::TransferError;
use crate::frame::{CHUNK, Frame, Line, Offer, Want, Wish};
use crate::watch::Watch;
use dumbbell_udt::io::Settings;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How much is sent.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    /// As much as can be in this time.
    Time(Duration),
    /// So many bytes.
    Bytes(u64),
}

/// Sends data to a server that throws it away; gives the bytes that arrived, and the time until
/// their arrival was known.
///
/// # Errors
/// If the server does not take part, or the connection fails.
pub fn bench(
    peer: &str,
    load: Load,
    settings: &Settings,
    interval: Duration,
    watch: &Arc<Watch>,
) -> Result<(u64, Duration), TransferError> {
    let attempts = Attempts { more: 0, interval, ..Attempts::default() };
    let mut line = ask(peer, Want::Bench, settings, attempts, watch)?;
    let mut frame = vec![0x5a; 4 + CHUNK];
    let (bytes, time) = match load {
        Load::Time(time) => (u64::MAX, time),
        Load::Bytes(bytes) => (bytes, Duration::MAX),
    };
    watch.begin(1, if bytes == u64::MAX { 0 } else { bytes });
    let (began, mut sent) = (Instant::now(), 0);
    while sent < bytes && began.elapsed() < time {
        let some = CHUNK.min(usize::try_from(bytes - sent).unwrap_or(CHUNK));
        line.send(&mut frame[..4 + some])?;
        sent += some as u64;
        watch.advance(some as u64);
    }
    line.say(&Offer::Over)?;
    match line.listen()? {
        Wish::Have { bytes, .. } if bytes == sent => {}
        Wish::Have { bytes, .. } => {
            let what = format!("of {sent} bytes, {bytes} arrived");
            return Err(TransferError::Protocol(what));
        }
        _ => return Err(TransferError::Protocol("it does not say what arrived".to_owned())),
    }
    let took = began.elapsed();
    watch.end_file();
    part(&line);
    Ok((sent, took))
}

/// The server's side.
pub(crate) fn discard(line: &mut Line) -> Result<(), TransferError> {
    line.watch().begin(1, 0);
    let mut bytes = 0;
    loop {
        match line.hear::<Offer>()? {
            Frame::Data(data) => {
                bytes += data.len() as u64;
                let some = data.len() as u64;
                line.watch().advance(some);
            }
            Frame::Words(Offer::Over) => return line.say(&Wish::Have { bytes, hash: None }),
            Frame::Words(_) => return Err(TransferError::Protocol("only data is due".to_owned())),
        }
    }
}
