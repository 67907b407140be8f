//! The sender of files.

use crate::error::{FileNames, TransferError, WithPath};
use crate::frame::{CHUNK, FrameStream, MAX_OUTSTANDING, ReceiverMessage, SenderMessage};
use crate::manifest::{SourceFile, modified_ns};
use crate::partial::hash as hash_file;
use blake3::Hasher;
use dumbbell_udt::io::Error;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// Sends files. A local error that ends the transfer is reported to the receiver.
///
/// # Errors
/// If a file cannot be read, the connection fails, or files are damaged.
pub(crate) fn send_files(
    stream: &mut FrameStream,
    items: &[SourceFile],
) -> Result<(), TransferError> {
    match send_all(stream, items) {
        Err(TransferError::Connection(Error::PeerClosed)) => Err(refusal(stream)),
        Err(error) if error.is_local() => {
            // If the message cannot be sent, the receiver notices that the connection is closed.
            let _ = stream.send(&SenderMessage::Refused(error.to_string()));
            Err(error)
        }
        result => result,
    }
}

/// The receiver's reason for closing the connection during a transfer.
fn refusal(stream: &mut FrameStream) -> TransferError {
    loop {
        match stream.recv_message() {
            Ok(ReceiverMessage::Busy(why)) => return TransferError::Busy(why),
            Ok(ReceiverMessage::Refused(why)) => return TransferError::Refused(why),
            Ok(_) => {}
            Err(error) => return error,
        }
    }
}

fn send_all(stream: &mut FrameStream, items: &[SourceFile]) -> Result<(), TransferError> {
    let files = items.iter().filter(|item| item.entry.size.is_some()).count() as u64;
    stream.monitor().start(files, items.iter().filter_map(|item| item.entry.size).sum());
    let mut announced: VecDeque<&SourceFile> = VecDeque::new();
    let (mut items, mut kept) = (items.iter(), FileNames::default());
    let mut frame = vec![0; 4 + CHUNK];
    loop {
        while announced.len() < MAX_OUTSTANDING
            && let Some(item) = items.next()
        {
            stream.send(&SenderMessage::Entry(item.entry.clone()))?;
            stream.monitor().count_name(&item.entry.path, 0);
            if item.entry.size.is_some() {
                announced.push_back(item);
            }
        }
        let Some(item) = announced.pop_front() else { break };
        match stream.recv_message()? {
            ReceiverMessage::Have { bytes, hash } => {
                send_file(stream, item, (bytes, hash), &mut frame)?;
            }
            ReceiverMessage::Unchanged => {
                stream.monitor().skip_file(&item.entry.path, item.entry.size.unwrap_or(0));
            }
            ReceiverMessage::Exists => kept.push(&item.entry.path),
            ReceiverMessage::Busy(why) => return Err(TransferError::Busy(why)),
            ReceiverMessage::Refused(why) => return Err(TransferError::Refused(why)),
            ReceiverMessage::Done(_) => {
                return Err(TransferError::Protocol("the receiver ended early".to_owned()));
            }
        }
    }
    stream.send(&SenderMessage::Over)?;
    match stream.recv_message()? {
        ReceiverMessage::Done(damaged) if damaged.is_empty() && kept.count == 0 => Ok(()),
        ReceiverMessage::Done(damaged) if damaged.is_empty() => Err(TransferError::Exists(kept)),
        ReceiverMessage::Done(damaged) => Err(TransferError::Damaged(damaged)),
        ReceiverMessage::Refused(why) => Err(TransferError::Refused(why)),
        _ => Err(TransferError::Protocol("the receiver did not confirm the end".to_owned())),
    }
}

/// Sends a file, of which the receiver has `have` bytes with this hash. `frame` is a buffer.
fn send_file(
    stream: &mut FrameStream,
    item: &SourceFile,
    (have, hash): (u64, Option<String>),
    frame: &mut [u8],
) -> Result<(), TransferError> {
    let size = item.entry.size.unwrap_or(0);
    let mut file = File::open(&item.path).with_path(&item.path)?;
    let mut hasher = Hasher::new();
    let mut offset = 0;
    if have > 0 && have <= size {
        let check = || stream.check();
        let (there, _) = hash_file(&mut file, have, &item.path, &check)?;
        if hash.as_deref() == Some(there.finalize().to_hex().as_str()) {
            (hasher, offset) = (there, have);
        } else {
            file.seek(SeekFrom::Start(0)).with_path(&item.path)?;
        }
    }
    stream.monitor().begin_file(&item.entry.path, offset);
    stream.send(&SenderMessage::Begin(offset))?;
    let mut left = size - offset;
    while left > 0 {
        let length = CHUNK.min(usize::try_from(left).unwrap_or(CHUNK));
        let read = file.read(&mut frame[4..4 + length]).with_path(&item.path)?;
        if read == 0 {
            // The file became shorter; the receiver discards it.
            stream.send(&SenderMessage::Failed)?;
            return Ok(());
        }
        hasher.update(&frame[4..4 + read]);
        stream.send_data(&mut frame[..4 + read])?;
        stream.monitor().add_bytes(read as u64);
        left -= read as u64;
    }
    let now = file.metadata().with_path(&item.path)?;
    if (now.len(), modified_ns(&now)) == (size, item.entry.modified) {
        stream.send(&SenderMessage::End(hasher.finalize().to_hex().to_string()))?;
    } else {
        // The sent data may mix two versions of the file.
        stream.send(&SenderMessage::Failed)?;
    }
    stream.monitor().count_name(&item.entry.path, 1);
    stream.monitor().end_file();
    Ok(())
}
