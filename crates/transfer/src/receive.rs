//! The receiver of files.

use crate::error::{FileNames, TransferError, WithPath};
use crate::folders::Folders;
use crate::frame::{Entry, Frame, FrameStream, MAX_OUTSTANDING, ReceiverMessage, SenderMessage};
use crate::limits::Quota;
use crate::partial::{Offer, OfferPolicy, Partial};
use crate::safe_path::resolve_for_write;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::Path;

/// Bytes of the names of damaged files, at which a transfer ends. They fit a message.
const MAX_DAMAGED: usize = 1 << 18;

/// Names that a receiver accepts at the beginning of paths.
pub(crate) enum Accepted {
    /// Any name.
    All,
    /// Requested names, and whether something of that name has come.
    Requested(BTreeMap<String, bool>),
}

impl Accepted {
    /// What a client accepts that requested these `paths` of a server: the last names of the paths.
    ///
    /// # Errors
    /// If two paths have the same last name.
    pub(crate) fn requested(paths: &[String]) -> Result<Accepted, TransferError> {
        let paths: BTreeSet<&str> = paths.iter().map(|path| path.trim_end_matches('/')).collect();
        let mut names = BTreeMap::new();
        for path in paths {
            let name = path.rsplit('/').next().unwrap_or_default();
            if name.is_empty() || name == "." {
                return Ok(Accepted::All);
            }
            if names.insert(name.to_owned(), false).is_some() {
                let why = "has the same name as another one, and would replace it";
                return Err(TransferError::Path { path: path.into(), why });
            }
        }
        Ok(Accepted::Requested(names))
    }

    /// Notes a path that is offered; `false` if it was not requested.
    fn admit(&mut self, path: &str) -> bool {
        let Accepted::Requested(names) = self else { return true };
        let name = path.split('/').next().unwrap_or_default();
        names.get_mut(name).map(|came| *came = true).is_some()
    }

    fn missing(&self) -> Vec<String> {
        let Accepted::Requested(names) = self else { return Vec::new() };
        names.iter().filter(|(_, came)| !**came).map(|(name, _)| name.clone()).collect()
    }
}

/// Receives files into a folder. `tells_hashes`: whether the peer may know the hashes of files in it. Damaged files are deleted and reported to the sender, as is a local
/// error that ends the transfer.
///
/// # Errors
/// If a file cannot be written or was not requested, a limit is exceeded, the connection fails, or files
/// are damaged.
pub(crate) fn receive_files(
    stream: &mut FrameStream,
    root: &Path,
    accepted: Accepted,
    quota: &Quota,
    tells_hashes: bool,
) -> Result<(), TransferError> {
    let result = receive_all(stream, root, accepted, quota, tells_hashes);
    let last = match &result {
        Err(TransferError::Busy(why)) => Some(ReceiverMessage::Busy(why.clone())),
        Err(error) if error.is_local() => Some(ReceiverMessage::Refused(error.to_string())),
        _ => None,
    };
    // If the message cannot be sent, the sender notices that the connection is closed.
    let _ = last.map(|last| stream.send(&last));
    result
}

fn receive_all(
    stream: &mut FrameStream,
    root: &Path,
    accepted: Accepted,
    quota: &Quota,
    tells_hashes: bool,
) -> Result<(), TransferError> {
    stream.monitor().start(0, 0);
    fs::create_dir_all(root).with_path(root)?;
    let root = root.canonicalize().with_path(root)?;
    let mut receiver = FileReceiver {
        root: &root,
        accepted,
        quota,
        tells_hashes,
        folders: Folders::new(&root, quota),
        requested: VecDeque::new(),
        damaged: Vec::new(),
        damaged_bytes: 0,
        kept: FileNames::default(),
    };
    loop {
        let offer = match stream.recv::<SenderMessage>()? {
            Frame::Message(offer) => offer,
            Frame::Data(data) => {
                let length = data.len() as u64;
                receiver.write(data)?;
                stream.monitor().add_bytes(length);
                continue;
            }
        };
        match offer {
            SenderMessage::Entry(entry) => receiver.on_entry(stream, &entry)?,
            SenderMessage::Begin(from) => receiver.begin_file(stream, from)?,
            SenderMessage::End(hash) => receiver.end_file(stream, Some(&hash))?,
            SenderMessage::Failed => receiver.end_file(stream, None)?,
            SenderMessage::Over => break,
            SenderMessage::Refused(why) => return Err(TransferError::Refused(why)),
        }
    }
    receiver.conclude(stream)
}

struct FileReceiver<'a> {
    /// The folder, as a canonical path.
    root: &'a Path,
    accepted: Accepted,
    quota: &'a Quota,
    /// Whether the peer may know the hashes of files that are there.
    tells_hashes: bool,
    folders: Folders<'a>,
    /// Requested files in order. Received data belongs to the first.
    requested: VecDeque<Partial>,
    damaged: Vec<String>,
    damaged_bytes: usize,
    /// Files that were not replaced.
    kept: FileNames,
}

impl FileReceiver<'_> {
    /// Handles an announced file or folder: requests the missing part of a file.
    fn on_entry(&mut self, stream: &FrameStream, entry: &Entry) -> Result<(), TransferError> {
        if !self.accepted.admit(&entry.path) {
            return Err(TransferError::Protocol(format!("{:?} was not requested", entry.path)));
        }
        let Some(destination) = resolve_for_write(self.root, &entry.path) else {
            let why = format!("{:?} leads out of the folder, or is not allowed", entry.path);
            return Err(TransferError::Protocol(why));
        };
        let Some(size) = entry.size else {
            stream.monitor().count_name(&entry.path, 0);
            return self.folders.create_announced(&destination, entry.mode);
        };
        if self.requested.len() >= MAX_OUTSTANDING {
            return Err(TransferError::Protocol("too many files are announced at once".to_owned()));
        }
        stream.monitor().add_expected(1, size);
        let policy = OfferPolicy {
            overwrite: self.quota.overwrites(),
            tells_hash: self.tells_hashes,
            check: &|| stream.check(),
        };
        match Partial::offer(entry, &destination, &policy)? {
            Offer::Unchanged => {
                stream.monitor().skip_file(&entry.path, size);
                stream.send(&ReceiverMessage::Unchanged)
            }
            Offer::Exists => {
                self.kept.push(&entry.path);
                stream.send(&ReceiverMessage::Exists)
            }
            Offer::Wanted(partial) => {
                let (bytes, hash) = partial.existing();
                self.quota.check(self.root, size.saturating_sub(bytes))?;
                self.requested.push_back(*partial);
                stream.send(&ReceiverMessage::Have { bytes, hash })
            }
        }
    }

    fn begin_file(&mut self, stream: &FrameStream, from: u64) -> Result<(), TransferError> {
        let partial = first(&mut self.requested)?;
        partial.begin(from, &mut self.folders)?;
        stream.monitor().begin_file(partial.path(), from);
        Ok(())
    }

    fn write(&mut self, data: &[u8]) -> Result<(), TransferError> {
        let partial = first(&mut self.requested)?;
        if !partial.has_room(data.len() as u64) {
            let why = format!("{} is longer than announced", partial.path());
            return Err(TransferError::Protocol(why));
        }
        partial.write(data, &mut self.folders)
    }

    fn end_file(&mut self, stream: &FrameStream, hash: Option<&str>) -> Result<(), TransferError> {
        first(&mut self.requested)?;
        let Some(partial) = self.requested.pop_front() else { return Ok(()) };
        let path = partial.path().to_owned();
        if partial.finish(hash, &mut self.folders, self.quota.overwrites())? {
            stream.monitor().count_name(&path, 1);
        } else {
            self.damaged_bytes += path.len() + 4;
            if self.damaged_bytes > MAX_DAMAGED {
                let why = format!("{} files are damaged", self.damaged.len() + 1);
                return Err(TransferError::Limit(why));
            }
            self.damaged.push(path);
        }
        stream.monitor().end_file();
        Ok(())
    }

    /// Checks that everything came, and confirms it.
    fn conclude(self, stream: &FrameStream) -> Result<(), TransferError> {
        let mut missing = self.accepted.missing();
        missing.extend(self.requested.iter().map(|partial| partial.path().to_owned()));
        if !missing.is_empty() {
            return Err(TransferError::Missing(missing));
        }
        stream.send(&ReceiverMessage::Done(self.damaged.clone()))?;
        if !self.damaged.is_empty() {
            return Err(TransferError::Damaged(self.damaged));
        }
        if self.kept.count == 0 { Ok(()) } else { Err(TransferError::Exists(self.kept)) }
    }
}

/// The file that received data belongs to.
fn first(requested: &mut VecDeque<Partial>) -> Result<&mut Partial, TransferError> {
    requested.front_mut().ok_or_else(|| TransferError::Protocol("unexpected data".to_owned()))
}
