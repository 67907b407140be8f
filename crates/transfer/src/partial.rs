//! A file that is not complete yet: it has a name of its own beside its place, which also says of
//! which state of the file it is a part, so that parts of two states are never put together.

use crate::error::{TransferError, WithPath};
use crate::frame::Entry;
use blake3::Hasher;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// How names of files end that are not complete.
pub(crate) const SUFFIX: &str = "dumbbell-part";

/// A file that is being received.
pub(crate) struct Partial {
    file: File,
    path: PathBuf,
    destination: PathBuf,
    entry: Entry,
    hasher: Hasher,
    written: u64,
}

/// Whether a file could be begun.
pub(crate) enum PartialLock {
    Acquired(Box<Partial>),
    /// Someone else is at it.
    Busy,
}

impl Partial {
    /// Goes on with a file where it was interrupted, or begins it. What is there of it is read.
    pub(crate) fn open(entry: &Entry, place: &Path) -> Result<PartialLock, TransferError> {
        let path = name(entry, place);
        let mut options = OpenOptions::new();
        let mut file = options.read(true).write(true).create(true).truncate(false).open(&path);
        if let (Err(_), Some(folder)) = (&file, place.parent()) {
            fs::create_dir_all(folder).with_path(folder)?;
            file = options.open(&path);
        }
        let mut file = file.with_path(&path)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(PartialLock::Busy);
        }
        // A file that is complete, or was, is as good as a part.
        let size = entry.size.unwrap_or(0);
        let existing = fs::metadata(place).ok().filter(|found| found.is_file());
        let empty = file.metadata().with_path(&path)?.len() == 0;
        if empty && existing.is_some_and(|found| found.len() == size) && size > 0 {
            std::io::copy(&mut File::open(place).with_path(place)?, &mut file).with_path(&path)?;
            file.rewind().with_path(&path)?;
        }
        let mut hasher = Hasher::new();
        let written = std::io::copy(&mut (&mut file).take(size), &mut hasher).with_path(&path)?;
        let place = place.to_owned();
        let mut partial =
            Partial { file, path, destination: place, entry: entry.clone(), hasher, written };
        partial.truncate(written)?;
        Ok(PartialLock::Acquired(Box::new(partial)))
    }

    fn truncate(&mut self, length: u64) -> Result<(), TransferError> {
        self.file.set_len(length).with_path(&self.path)?;
        self.file.seek(SeekFrom::Start(length)).map(drop).with_path(&self.path)
    }

    /// Bytes that are there.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// The hash of what is there.
    pub(crate) fn hash(&self) -> String {
        self.hasher.finalize().to_hex().to_string()
    }

    /// Begins anew: what is there is not of this file.
    pub(crate) fn restart(&mut self) -> Result<(), TransferError> {
        self.hasher = Hasher::new();
        self.written = 0;
        self.truncate(0)
    }

    /// Adds data; `false` if the file would be longer than it is.
    pub(crate) fn write(&mut self, data: &[u8]) -> Result<bool, TransferError> {
        let after = self.written + data.len() as u64;
        if after > self.entry.size.unwrap_or(0) {
            return Ok(false);
        }
        self.file.write_all(data).with_path(&self.path)?;
        self.hasher.update(data);
        self.written = after;
        Ok(true)
    }

    /// Puts the file into its place, if it is what it should be; otherwise nothing of it is kept.
    pub(crate) fn finish(self, hash: &str) -> Result<bool, TransferError> {
        if Some(self.written) != self.entry.size || self.hash() != hash {
            fs::remove_file(&self.path).with_path(&self.path)?;
            return Ok(false);
        }
        let mode = Permissions::from_mode(self.entry.mode & 0o777);
        self.file.set_permissions(mode).with_path(&self.path)?;
        let modified = UNIX_EPOCH + Duration::from_nanos(self.entry.modified);
        self.file.set_modified(modified).with_path(&self.path)?;
        self.file.sync_all().with_path(&self.path)?;
        fs::rename(&self.path, &self.destination).with_path(&self.destination)?;
        remove_others(&self.destination);
        Ok(true)
    }
}

/// The name of the part: that of the file, and of which state it is.
fn name(entry: &Entry, place: &Path) -> PathBuf {
    let state = format!("{:?} {}", entry.size, entry.modified);
    let state = &blake3::hash(state.as_bytes()).to_hex()[..16];
    place.with_file_name(format!("{}{state}.{SUFFIX}", prefix(place)))
}

fn prefix(place: &Path) -> String {
    // A long name is told from others by its hash.
    let own = place.file_name().unwrap_or_default().to_string_lossy();
    if own.len() <= 200 {
        return format!(".{own}.");
    }
    format!(".{}.", &blake3::hash(own.as_bytes()).to_hex()[..32])
}

/// Removes parts of other states of a file that is complete now.
fn remove_others(place: &Path) {
    let Some(entries) = place.parent().and_then(|folder| fs::read_dir(folder).ok()) else { return };
    let prefix = prefix(place);
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let part = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(SUFFIX));
        if part.is_some_and(|state| state.len() == 17) {
            // Whoever cannot remove it finds it in the way of nothing.
            let _ = fs::remove_file(entry.path());
        }
    }
}
