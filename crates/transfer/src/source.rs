//! The side that gives files.

use crate::error::{At, TransferError};
use crate::frame::{CHUNK, Line, Offer, Wish};
use crate::manifest::{Item, changed_at};
use blake3::Hasher;
use dumbbell_udt::io::Error;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Files that are offered before the first of them is wished for: the answer to one need not be
/// waited for before the next is asked about.
const AHEAD: usize = 64;

/// Gives files over a connection until the other side has all of them. Why it ends early is told.
///
/// # Errors
/// If one cannot be read, the connection fails, or files did not arrive as they are.
pub(crate) fn give(line: &mut Line, items: &[Item]) -> Result<(), TransferError> {
    match give_all(line, items) {
        Err(TransferError::Connection(Error::PeerClosed)) => Err(last_word(line)),
        Err(error) if error.is_own() => {
            // If it does not get there any more, the sink sees that the connection is over.
            let _ = line.say(&Offer::Refused(error.to_string()));
            Err(error)
        }
        done => done,
    }
}

/// Why the other side closed while it was given something.
fn last_word(line: &mut Line) -> TransferError {
    loop {
        match line.listen() {
            Ok(Wish::Busy(why)) => return TransferError::Busy(why),
            Ok(Wish::Refused(why)) => return TransferError::Refused(why),
            Ok(Wish::Have { .. } | Wish::Done(_)) => {}
            Err(error) => return error,
        }
    }
}

fn give_all(line: &mut Line, items: &[Item]) -> Result<(), TransferError> {
    let files = items.iter().filter(|item| item.entry.size.is_some()).count() as u64;
    line.watch().begin(files, items.iter().filter_map(|item| item.entry.size).sum());
    let mut offered: VecDeque<&Item> = VecDeque::new();
    let mut items = items.iter();
    loop {
        while offered.len() < AHEAD
            && let Some(item) = items.next()
        {
            line.say(&Offer::Entry(item.entry.clone()))?;
            if item.entry.size.is_some() {
                offered.push_back(item);
            }
        }
        let Some(item) = offered.pop_front() else { break };
        match line.listen()? {
            Wish::Have { bytes, hash } => give_file(line, item, bytes, hash)?,
            Wish::Busy(why) => return Err(TransferError::Busy(why)),
            Wish::Refused(why) => return Err(TransferError::Refused(why)),
            Wish::Done(_) => return Err(TransferError::Protocol("it ends early".to_owned())),
        }
    }
    line.say(&Offer::Over)?;
    match line.listen()? {
        Wish::Done(damaged) if damaged.is_empty() => Ok(()),
        Wish::Done(damaged) => Err(TransferError::Damaged(damaged)),
        Wish::Refused(why) => Err(TransferError::Refused(why)),
        _ => Err(TransferError::Protocol("it does not end".to_owned())),
    }
}

/// Gives a file, of which the other side has so many bytes, with this hash.
fn give_file(
    line: &mut Line,
    item: &Item,
    have: u64,
    hash: Option<String>,
) -> Result<(), TransferError> {
    let size = item.entry.size.unwrap_or(0);
    let mut file = File::open(&item.path).at(&item.path)?;
    let mut hasher = Hasher::new();
    let mut begin = 0;
    if have > 0 && have <= size {
        io::copy(&mut (&mut file).take(have), &mut hasher).at(&item.path)?;
        if hash.as_deref() == Some(hasher.finalize().to_hex().as_str()) {
            begin = have;
        } else {
            hasher = Hasher::new();
            file.seek(SeekFrom::Start(0)).at(&item.path)?;
        }
    }
    line.watch().begin_file(&item.entry.path, begin);
    line.say(&Offer::Begin(begin))?;
    let mut left = size - begin;
    let mut frame = vec![0; 4 + CHUNK];
    while left > 0 {
        let most = CHUNK.min(usize::try_from(left).unwrap_or(CHUNK));
        let read = file.read(&mut frame[4..4 + most]).at(&item.path)?;
        if read == 0 {
            // It has become shorter: the other side keeps nothing of it.
            line.say(&Offer::Failed)?;
            return Ok(());
        }
        hasher.update(&frame[4..4 + read]);
        line.send(&mut frame[..4 + read])?;
        line.watch().advance(read as u64);
        left -= read as u64;
    }
    let now = file.metadata().at(&item.path)?;
    if (now.len(), changed_at(&now)) == (size, item.entry.modified) {
        line.say(&Offer::End(hasher.finalize().to_hex().to_string()))?;
    } else {
        // What was read may be of two states of the file.
        line.say(&Offer::Failed)?;
    }
    line.watch().end_file();
    Ok(())
}
