//! The side that takes files.

use crate::error::{At, TransferError};
use crate::frame::{Entry, Frame, Line, Offer, Wish};
use crate::partial::{Begun, Partial};
use crate::place::within;
use std::collections::VecDeque;
use std::fs;
use std::path::Path;

/// Files that a source may offer before it gives the first of them.
const MOST_OFFERED: usize = 1024;

/// Takes files into a folder until there are no more. What does not arrive as it is, is told to the
/// source and not kept; why it ends early is told too.
///
/// # Errors
/// If a file cannot be written, the connection fails, or files did not arrive as they are.
pub(crate) fn take(line: &mut Line, root: &Path) -> Result<(), TransferError> {
    let done = take_all(line, root);
    let last = match &done {
        Err(TransferError::Busy(why)) => Some(Wish::Busy(why.clone())),
        Err(error) if error.is_own() => Some(Wish::Refused(error.to_string())),
        _ => None,
    };
    // If it does not get there any more, the source sees that the connection is over.
    let _ = last.map(|last| line.say(&last));
    done
}

fn take_all(line: &mut Line, root: &Path) -> Result<(), TransferError> {
    line.watch().begin(0, 0);
    let mut sink = Sink { root, wanted: VecDeque::new(), damaged: Vec::new() };
    loop {
        let offer = match line.hear::<Offer>()? {
            Frame::Words(offer) => Some(offer),
            Frame::Data(data) => {
                let length = data.len() as u64;
                sink.write(data)?;
                line.watch().advance(length);
                None
            }
        };
        match offer {
            None => {}
            Some(Offer::Entry(entry)) => sink.consider(line, &entry)?,
            Some(Offer::Begin(from)) => sink.begin(line, from)?,
            Some(Offer::End(hash)) => sink.end(line, Some(&hash))?,
            Some(Offer::Failed) => sink.end(line, None)?,
            Some(Offer::Over) => break,
            Some(Offer::Refused(why)) => return Err(TransferError::Refused(why)),
        }
    }
    line.say(&Wish::Done(sink.damaged.clone()))?;
    if sink.damaged.is_empty() { Ok(()) } else { Err(TransferError::Damaged(sink.damaged)) }
}

struct Sink<'a> {
    root: &'a Path,
    /// Files that were wished for, in order; the data that comes is of the first.
    wanted: VecDeque<(String, Partial)>,
    damaged: Vec<String>,
}

impl Sink<'_> {
    /// A file or folder is offered: says what is there of it.
    fn consider(&mut self, line: &Line, entry: &Entry) -> Result<(), TransferError> {
        let Some(place) = within(self.root, &entry.path) else {
            let why = format!("{:?} is not a path that stays below the folder", entry.path);
            return Err(TransferError::Protocol(why));
        };
        let Some(size) = entry.size else {
            return fs::create_dir_all(&place).at(&place);
        };
        if self.wanted.len() >= MOST_OFFERED {
            return Err(TransferError::Protocol("too much is offered at once".to_owned()));
        }
        line.watch().expect(1, size);
        match Partial::open(entry, &place)? {
            Begun::Ours(partial) => {
                let bytes = partial.written();
                let hash = (bytes > 0).then(|| partial.hash());
                line.say(&Wish::Have { bytes, hash })?;
                self.wanted.push_back((entry.path.clone(), *partial));
                Ok(())
            }
            Begun::Busy => {
                Err(TransferError::Busy(format!("{} is being received already", entry.path)))
            }
        }
    }

    fn current(&mut self) -> Result<&mut (String, Partial), TransferError> {
        let unasked = || TransferError::Protocol("data comes unasked".to_owned());
        self.wanted.front_mut().ok_or_else(unasked)
    }

    fn begin(&mut self, line: &Line, from: u64) -> Result<(), TransferError> {
        let (path, partial) = self.current()?;
        if from == 0 {
            partial.restart()?;
        } else if from != partial.written() {
            return Err(TransferError::Protocol("data begins elsewhere than it should".to_owned()));
        }
        line.watch().begin_file(path, from);
        Ok(())
    }

    fn write(&mut self, data: &[u8]) -> Result<(), TransferError> {
        let (path, partial) = self.current()?;
        if partial.write(data)? {
            return Ok(());
        }
        Err(TransferError::Protocol(format!("{path} is longer than it was said to be")))
    }

    fn end(&mut self, line: &Line, hash: Option<&str>) -> Result<(), TransferError> {
        self.current()?;
        let Some((path, partial)) = self.wanted.pop_front() else { return Ok(()) };
        if !partial.conclude(hash.unwrap_or_default())? {
            self.damaged.push(path);
        }
        line.watch().end_file();
        Ok(())
    }
}
