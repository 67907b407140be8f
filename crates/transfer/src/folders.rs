//! Folders that receive files. Each is listed once: its partial files are known from then on.

use crate::error::{TransferError, WithPath};
use crate::partial::prefix_of_part;
use rustix::fs::{FlockOperation, flock};
use std::collections::HashMap;
use std::fs::{self, DirEntry, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Age at which the partial file of an interrupted transfer is deleted.
const PART_LIFETIME: Duration = Duration::from_secs(7 * 24 * 3600);
/// Maximum number of known folders. Beyond it they are listed again.
const MAX_KNOWN: usize = 10_000;

/// Partial files by the beginning of their names.
type Parts = HashMap<String, Vec<PathBuf>>;

/// The folders that a transfer writes to.
#[derive(Debug, Default)]
pub(crate) struct Folders {
    known: HashMap<PathBuf, Parts>,
}

impl Folders {
    /// Creates the folder of a file, and deletes the partial files in it that are too old.
    pub(crate) fn prepare(&mut self, file: &Path) -> Result<(), TransferError> {
        let Some(folder) = file.parent() else { return Ok(()) };
        if self.known.contains_key(folder) {
            return Ok(());
        }
        fs::create_dir_all(folder).with_path(folder)?;
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        let mut parts = Parts::new();
        for entry in fs::read_dir(folder).with_path(folder)?.flatten() {
            let name = entry.file_name();
            let Some(prefix) = name.to_str().and_then(prefix_of_part) else { continue };
            if is_expired(&entry) {
                // A file that cannot be removed is harmless.
                let _ = fs::remove_file(entry.path());
            } else {
                parts.entry(prefix.to_owned()).or_default().push(entry.path());
            }
        }
        self.known.insert(folder.to_owned(), parts);
        Ok(())
    }

    /// Removes the partial files of a complete file, which are of its other versions.
    pub(crate) fn remove_parts(&mut self, file: &Path, prefix: &str) {
        let parts = file.parent().and_then(|folder| self.known.get_mut(folder));
        for part in parts.and_then(|parts| parts.remove(prefix)).unwrap_or_default() {
            // A file that cannot be removed is harmless.
            let _ = fs::remove_file(part);
        }
    }
}

/// Whether a partial file is old, and no transfer has locked it.
fn is_expired(entry: &DirEntry) -> bool {
    let age = entry.metadata().and_then(|found| found.modified()).ok();
    let old = age.and_then(|at| at.elapsed().ok()).is_some_and(|age| age > PART_LIFETIME);
    old && File::open(entry.path())
        .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok())
}
