//! Folders that receive files. Each is listed once: its partial files are known from then on.

use crate::error::{TransferError, WithPath};
use crate::limits::{ENTRY_BYTES, Quota};
use crate::partial::{lock, prefix_of_part};
use rustix::fs::{Mode, OFlags, open};
use std::collections::HashMap;
use std::fs::{self, DirBuilder, DirEntry, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Age at which the partial file of an interrupted transfer is deleted.
const PART_LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// Maximum number of known folders. Beyond it they are listed again.
const MAX_KNOWN: usize = 10_000;
/// Maximum number of files and folders that a transfer creates.
const MAX_CREATED: u64 = 10_000_000;

/// Partial files by the beginning of their names.
type Parts = HashMap<String, Vec<PathBuf>>;

/// The folders that a transfer writes to. What it writes counts against a quota.
#[derive(Debug)]
pub(crate) struct Folders<'a> {
    /// The folder of all, as a canonical path.
    root: &'a Path,
    quota: &'a Quota,
    /// Number of files and folders created.
    created: u64,
    known: HashMap<PathBuf, Parts>,
}

impl<'a> Folders<'a> {
    pub(crate) fn new(root: &'a Path, quota: &'a Quota) -> Folders<'a> {
        Folders { root, quota, created: 0, known: HashMap::new() }
    }

    /// Counts bytes that are written.
    pub(crate) fn charge_bytes(&self, bytes: u64) -> Result<(), TransferError> {
        self.quota.take(self.root, bytes)
    }

    /// Counts files or folders that are created.
    pub(crate) fn charge_entries(&mut self, entries: u64) -> Result<(), TransferError> {
        if self.created + entries > MAX_CREATED {
            let why = format!("it creates no more than {MAX_CREATED} files and folders at a time");
            return Err(TransferError::Limit(why));
        }
        self.charge_bytes(entries * ENTRY_BYTES)?;
        self.created += entries;
        Ok(())
    }

    /// Creates a folder and those that it is in, if they are missing.
    pub(crate) fn create(&mut self, folder: &Path) -> Result<(), TransferError> {
        self.charge_missing(folder)?;
        fs::create_dir_all(folder).with_path(folder)
    }

    /// Creates an announced folder if it is missing, with its mode less the umask. The owner may always use
    /// it, or else nothing could be received into it.
    pub(crate) fn create_announced(
        &mut self,
        folder: &Path,
        mode: u32,
    ) -> Result<(), TransferError> {
        self.charge_missing(folder)?;
        folder.parent().map_or(Ok(()), fs::create_dir_all).with_path(folder)?;
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(mode & 0o777 | 0o700);
        builder.create(folder).with_path(folder)
    }

    fn charge_missing(&mut self, folder: &Path) -> Result<(), TransferError> {
        let is_missing = |part: &&Path| part.symlink_metadata().is_err();
        match folder.ancestors().take_while(is_missing).count() as u64 {
            0 => Ok(()),
            missing => self.charge_entries(missing),
        }
    }

    /// Creates the folder of a file, and deletes the partial files in it that are too old.
    pub(crate) fn prepare(&mut self, file: &Path) -> Result<(), TransferError> {
        let Some(folder) = file.parent() else { return Ok(()) };
        if self.known.contains_key(folder) {
            return Ok(());
        }
        self.create(folder)?;
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        let mut parts = Parts::new();
        for entry in fs::read_dir(folder).with_path(folder)?.flatten() {
            let name = entry.file_name();
            let Some(prefix) = name.to_str().and_then(prefix_of_part) else { continue };
            if is_expired(&entry) {
                remove_unused(&entry.path());
            } else {
                parts.entry(prefix.to_owned()).or_default().push(entry.path());
            }
        }
        self.known.insert(folder.to_owned(), parts);
        Ok(())
    }

    /// Removes the partial files of a complete file, which are of its other versions, but for those that
    /// other transfers are receiving.
    pub(crate) fn remove_parts(&mut self, file: &Path, prefix: &str) {
        let parts = file.parent().and_then(|folder| self.known.get_mut(folder));
        for part in parts.and_then(|parts| parts.remove(prefix)).unwrap_or_default() {
            remove_unused(&part);
        }
    }
}

/// Removes a partial file, unless a transfer has locked it. One that cannot be removed is harmless.
fn remove_unused(part: &Path) {
    // A pipe or a link that has such a name is neither waited for nor followed.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(file) = open(part, flags, Mode::empty()).map(File::from) else { return };
    if lock(&file, part).is_some() {
        let _ = fs::remove_file(part);
    }
}

/// Whether a partial file is old.
fn is_expired(entry: &DirEntry) -> bool {
    let age = entry.metadata().and_then(|found| found.modified()).ok();
    age.and_then(|at| at.elapsed().ok()).is_some_and(|age| age > PART_LIFETIME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::ReceiveLimits;

    #[test]
    fn a_transfer_creates_a_limited_number_of_folders() -> Result<(), TransferError> {
        let root = tempfile::tempdir().with_path(Path::new("root"))?;
        let quota = Quota::new(ReceiveLimits::default());
        let mut folders = Folders::new(root.path(), &quota);
        folders.created = MAX_CREATED - 2;
        folders.create(&root.path().join("a/b"))?;
        folders.create(&root.path().join("a/b"))?;
        let refused = folders.create(&root.path().join("c"));
        assert!(matches!(refused, Err(TransferError::Limit(_))), "{refused:?}");
        assert!(!root.path().join("c").exists());
        Ok(())
    }
}
