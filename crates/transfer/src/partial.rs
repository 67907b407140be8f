//! Partial files: incomplete files beside their destination. The name contains a hash of the original's
//! size and modification time, so that parts of different versions are never combined.

use crate::error::{TransferError, WithPath};
use crate::frame::Entry;
use blake3::Hasher;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// File name extension of partial files.
pub(crate) const SUFFIX: &str = "dumbbell-part";

/// A file being received.
pub(crate) struct Partial {
    file: File,
    path: PathBuf,
    destination: PathBuf,
    entry: Entry,
    hasher: Hasher,
    written: u64,
}

/// Result of locking a partial file.
pub(crate) enum PartialLock {
    Acquired(Box<Partial>),
    /// Another transfer has the lock.
    Busy,
}

impl Partial {
    /// Opens or creates a partial file, locks it, and hashes its content.
    pub(crate) fn open(entry: &Entry, destination: &Path) -> Result<PartialLock, TransferError> {
        let path = name(entry, destination);
        let mut options = OpenOptions::new();
        let mut file = options.read(true).write(true).create(true).truncate(false).open(&path);
        if let (Err(_), Some(folder)) = (&file, destination.parent()) {
            fs::create_dir_all(folder).with_path(folder)?;
            file = options.open(&path);
        }
        let mut file = file.with_path(&path)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(PartialLock::Busy);
        }
        // A complete file of the same size at the destination serves as the partial file.
        let size = entry.size.unwrap_or(0);
        let existing = fs::metadata(destination).ok().filter(|found| found.is_file());
        let empty = file.metadata().with_path(&path)?.len() == 0;
        if empty && existing.is_some_and(|found| found.len() == size) && size > 0 {
            std::io::copy(&mut File::open(destination).with_path(destination)?, &mut file)
                .with_path(&path)?;
            file.rewind().with_path(&path)?;
        }
        let mut hasher = Hasher::new();
        let written = std::io::copy(&mut (&mut file).take(size), &mut hasher).with_path(&path)?;
        let destination = destination.to_owned();
        let mut partial =
            Partial { file, path, destination, entry: entry.clone(), hasher, written };
        partial.truncate(written)?;
        Ok(PartialLock::Acquired(Box::new(partial)))
    }

    fn truncate(&mut self, length: u64) -> Result<(), TransferError> {
        self.file.set_len(length).with_path(&self.path)?;
        self.file.seek(SeekFrom::Start(length)).map(drop).with_path(&self.path)
    }

    /// Bytes received.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// BLAKE3 hash of the received bytes.
    pub(crate) fn hash(&self) -> String {
        self.hasher.finalize().to_hex().to_string()
    }

    /// Discards the received bytes.
    pub(crate) fn restart(&mut self) -> Result<(), TransferError> {
        self.hasher = Hasher::new();
        self.written = 0;
        self.truncate(0)
    }

    /// Appends data; `false` if that would exceed the announced size.
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

    /// Moves the file to its destination if size and hash match. Otherwise deletes it and returns
    /// `false`.
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

/// Path of the partial file.
fn name(entry: &Entry, destination: &Path) -> PathBuf {
    let state = format!("{:?} {}", entry.size, entry.modified);
    let state = &blake3::hash(state.as_bytes()).to_hex()[..16];
    destination.with_file_name(format!("{}{state}.{SUFFIX}", prefix(destination)))
}

fn prefix(destination: &Path) -> String {
    // A long name is replaced by its hash.
    let own = destination.file_name().unwrap_or_default().to_string_lossy();
    if own.len() <= 200 {
        return format!(".{own}.");
    }
    format!(".{}.", &blake3::hash(own.as_bytes()).to_hex()[..32])
}

/// Removes partial files of other versions of a complete file.
fn remove_others(destination: &Path) {
    let Some(entries) = destination.parent().and_then(|folder| fs::read_dir(folder).ok()) else {
        return;
    };
    let prefix = prefix(destination);
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let part = name.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(SUFFIX));
        if part.is_some_and(|state| state.len() == 17) {
            // A file that cannot be removed is harmless.
            let _ = fs::remove_file(entry.path());
        }
    }
}
