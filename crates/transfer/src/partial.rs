//! Partial files: incomplete files beside their destination. The name contains a hash of the original's
//! size and modification time, so that parts of different versions are never combined.
//!
//! An offer alone writes nothing: a part is created when its first data arrives. Between the offer and
//! the data no file is open, so that a peer cannot exhaust the descriptors.

use crate::error::{TransferError, WithPath};
use crate::folders::Folders;
use crate::frame::Entry;
use crate::limits::ENTRY_BYTES;
use crate::manifest::modified_ns;
use blake3::Hasher;
#[cfg(any(target_os = "linux", target_os = "macos"))]
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::fs::{FlockOperation, flock};
#[cfg(any(target_os = "linux", target_os = "macos"))]
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, UNIX_EPOCH};

/// File name extension of partial files.
const SUFFIX: &str = "dumbbell-part";

/// A file being received.
pub(crate) struct Partial {
    entry: Entry,
    destination: PathBuf,
    /// Path of the partial file.
    part: PathBuf,
    existing: Option<Existing>,
    target: Target,
    hasher: Hasher,
    written: u64,
    /// Bytes up to which the quota was charged.
    charged: u64,
}

/// What is there of an offered file.
struct Existing {
    /// Whether it is the file at the destination. Otherwise it is the partial file.
    complete: bool,
    bytes: u64,
    hasher: Hasher,
    identity: (u64, u64, u64),
}

/// Where received data goes.
enum Target {
    /// Into a partial file that is not open yet.
    Unopened,
    Part(File),
    /// Nowhere: the file at the destination has the content already.
    InPlace(File),
}

/// The receiver's answer to an offer.
pub(crate) enum Offer {
    /// It wants the file.
    Wanted(Box<Partial>),
    /// The file is there, with this size and modification time.
    Unchanged,
    /// A file with another size or time is there.
    Exists,
}

/// How offers are answered.
pub(crate) struct OfferPolicy<'a> {
    /// Whether other files are replaced.
    pub(crate) overwrite: bool,
    /// Whether the peer may know the hash of the file at the destination. From the hash of a short file its
    /// content can be guessed.
    pub(crate) tells_hash: bool,
    /// Fails if hashing is to end.
    pub(crate) check: &'a dyn Fn() -> Result<(), TransferError>,
}

impl Partial {
    /// Looks at what is there of an offered file, and hashes it. Writes nothing.
    pub(crate) fn offer(
        entry: &Entry,
        destination: &Path,
        policy: &OfferPolicy<'_>,
    ) -> Result<Offer, TransferError> {
        let found = fs::symlink_metadata(destination).ok();
        let size = entry.size.unwrap_or(0);
        let same_size = found.as_ref().is_some_and(|found| found.is_file() && found.len() == size);
        if let Some(found) = &found {
            if found.is_dir() {
                return Err(io::Error::from(rustix::io::Errno::ISDIR)).with_path(destination);
            }
            if same_size && modified_ns(found) == entry.modified {
                return Ok(Offer::Unchanged);
            }
            if !policy.overwrite {
                return Ok(Offer::Exists);
            }
        }
        let part = name(entry, destination);
        let mut existing = Existing::hash(&part, false, size, policy.check)?;
        if existing.is_none() && same_size && policy.tells_hash {
            existing = Existing::hash(destination, true, size, policy.check)?;
        }
        Ok(Offer::Wanted(Box::new(Partial {
            entry: entry.clone(),
            destination: destination.to_owned(),
            part,
            existing,
            target: Target::Unopened,
            hasher: Hasher::new(),
            written: 0,
            charged: 0,
        })))
    }

    /// The announced path.
    pub(crate) fn path(&self) -> &str {
        &self.entry.path
    }

    /// Bytes that are there, and their BLAKE3 hash.
    pub(crate) fn existing(&self) -> (u64, Option<String>) {
        let hash = |there: &Existing| there.hasher.finalize().to_hex().to_string();
        (self.existing.as_ref().map_or(0, |there| there.bytes), self.existing.as_ref().map(hash))
    }

    /// Prepares for data from this offset on.
    pub(crate) fn begin(
        &mut self,
        from: u64,
        folders: &mut Folders<'_>,
    ) -> Result<(), TransferError> {
        let existing = self.existing.take();
        if from == 0 {
            return Ok(());
        }
        let Some(there) = existing.filter(|there| there.bytes == from) else {
            return Err(TransferError::Protocol("data starts at an unexpected offset".to_owned()));
        };
        let path = if there.complete { &self.destination } else { &self.part };
        let file = OpenOptions::new().read(true).write(!there.complete).open(path).ok();
        let mut file = file.filter(|file| there.is_still(file)).ok_or_else(|| self.busy())?;
        (self.hasher, self.written) = (there.hasher, from);
        if there.complete {
            self.target = Target::InPlace(file);
            return Ok(());
        }
        folders.prepare(&self.destination)?;
        lock(&file, &self.part).ok_or_else(|| self.busy())?;
        file.set_len(from).with_path(&self.part)?;
        file.seek(SeekFrom::Start(from)).with_path(&self.part)?;
        self.target = Target::Part(file);
        Ok(())
    }

    fn busy(&self) -> TransferError {
        TransferError::Busy(format!("{} is being received already", self.entry.path))
    }

    /// Whether `length` more bytes are within the announced size.
    pub(crate) fn has_room(&self, length: u64) -> bool {
        self.written + length <= self.entry.size.unwrap_or(0)
    }

    /// Appends data.
    pub(crate) fn write(
        &mut self,
        data: &[u8],
        folders: &mut Folders<'_>,
    ) -> Result<(), TransferError> {
        self.open(folders)?;
        let written = self.written + data.len() as u64;
        folders.charge_bytes(written.saturating_sub(self.charged.max(self.written)))?;
        let path = self.part.clone();
        self.open(folders)?.write_all(data).with_path(&path)?;
        self.hasher.update(data);
        self.written = written;
        Ok(())
    }

    /// The partial file; created empty if it is not open.
    fn open(&mut self, folders: &mut Folders<'_>) -> Result<&mut File, TransferError> {
        if let Target::Unopened = self.target {
            folders.prepare(&self.destination)?;
            folders.charge_entries(1)?;
            self.charged = ENTRY_BYTES;
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600);
            let file = options.open(&self.part).with_path(&self.part)?;
            lock(&file, &self.part).ok_or_else(|| self.busy())?;
            file.set_len(0).with_path(&self.part)?;
            self.target = Target::Part(file);
        }
        match &mut self.target {
            Target::Part(file) | Target::InPlace(file) => Ok(file),
            Target::Unopened => unreachable!("it was opened above"),
        }
    }

    /// Moves the file to its destination if size and hash match. Otherwise deletes it and returns
    /// `false`.
    pub(crate) fn finish(
        mut self,
        hash: Option<&str>,
        folders: &mut Folders<'_>,
        overwrite: bool,
    ) -> Result<bool, TransferError> {
        let own = self.hasher.finalize().to_hex();
        if Some(self.written) != self.entry.size || hash != Some(own.as_str()) {
            if let Target::Part(_) = self.target {
                fs::remove_file(&self.part).with_path(&self.part)?;
            }
            return Ok(false);
        }
        let mode = Permissions::from_mode(self.entry.mode & 0o777 & !umask());
        let modified = UNIX_EPOCH + Duration::from_nanos(self.entry.modified);
        if let Target::InPlace(file) = &self.target {
            // The content is right. Another owner's file keeps its time, and is hashed next time too.
            let _ = file.set_permissions(mode).and_then(|()| file.set_modified(modified));
            return Ok(true);
        }
        let part = self.part.clone();
        let file = self.open(folders)?;
        let done = file.set_permissions(mode).and_then(|()| file.set_modified(modified));
        let done = done.and_then(|()| file.sync_all());
        let is_there = is_at(file, &part);
        done.with_path(&part)?;
        if !is_there {
            let why = format!("the partial file of {} was removed or replaced", self.entry.path);
            return Err(TransferError::Busy(why));
        }
        if overwrite {
            fs::rename(&self.part, &self.destination).with_path(&self.destination)?;
        } else {
            move_without_replacing(&part, &self.destination).with_path(&self.destination)?;
        }
        folders.remove_parts(&self.destination, &prefix(&self.destination));
        Ok(true)
    }
}

impl Existing {
    /// Hashes at most `size` bytes of a file; `None` if it is absent or empty.
    fn hash(
        path: &Path,
        complete: bool,
        size: u64,
        check: &dyn Fn() -> Result<(), TransferError>,
    ) -> Result<Option<Existing>, TransferError> {
        let Ok(mut file) = File::open(path) else { return Ok(None) };
        let found = file.metadata().with_path(path)?;
        if !found.is_file() || found.len() == 0 || size == 0 {
            return Ok(None);
        }
        let (hasher, bytes) = hash(&mut file, size, path, check)?;
        Ok(Some(Existing { complete, bytes, hasher, identity: identity(&found) }))
    }

    /// Whether an open file is the one that was hashed, unchanged since.
    fn is_still(&self, file: &File) -> bool {
        file.metadata().is_ok_and(|found| identity(&found) == self.identity)
    }
}

/// Hashes at most `size` bytes of an open file. Returns how many there were.
///
/// # Errors
/// If the file cannot be read, or `check`, which is asked before each piece, fails.
pub(crate) fn hash(
    file: &mut File,
    size: u64,
    path: &Path,
    check: &dyn Fn() -> Result<(), TransferError>,
) -> Result<(Hasher, u64), TransferError> {
    const PIECE: u64 = 1 << 20;
    let (mut hasher, mut bytes) = (Hasher::new(), 0);
    loop {
        check()?;
        let piece = PIECE.min(size - bytes);
        let read = io::copy(&mut (&mut *file).take(piece), &mut hasher).with_path(path)?;
        bytes += read;
        if read < piece || bytes == size {
            return Ok((hasher, bytes));
        }
    }
}

/// Renames a file; fails if there is one of the new name, even if it has appeared a moment before.
fn move_without_replacing(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // The file system or the kernel cannot.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
        done => return Ok(done?),
    }
    // Unlike a renamed file, a link never replaces another one. Some file systems have none.
    fs::hard_link(from, to)?;
    fs::remove_file(from)
}

/// Inode, length and modification time.
fn identity(found: &Metadata) -> (u64, u64, u64) {
    (found.ino(), found.len(), modified_ns(found))
}

/// Locks an open partial file; `None` if another transfer has the lock, or has completed the file.
pub(crate) fn lock(file: &File, path: &Path) -> Option<()> {
    flock(file, FlockOperation::NonBlockingLockExclusive).ok()?;
    is_at(file, path).then_some(())
}

/// Whether a path leads to an open file.
fn is_at(file: &File, path: &Path) -> bool {
    let inode = |found: io::Result<Metadata>| found.ok().map(|found| found.ino());
    inode(file.metadata()).is_some_and(|open| Some(open) == inode(fs::symlink_metadata(path)))
}

/// The process's umask when this was called first.
fn umask() -> u32 {
    static UMASK: OnceLock<u32> = OnceLock::new();
    *UMASK.get_or_init(|| {
        // It can only be read by setting it. Files of other threads are private for a moment.
        let mask = rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
        rustix::process::umask(mask);
        mask.bits() as _
    })
}

/// Path of the partial file.
fn name(entry: &Entry, destination: &Path) -> PathBuf {
    let state = format!("{:?} {}", entry.size, entry.modified);
    let state = &blake3::hash(state.as_bytes()).to_hex()[..16];
    destination.with_file_name(format!("{}{state}.{SUFFIX}", prefix(destination)))
}

/// Beginning of the names of a file's partial files.
fn prefix(destination: &Path) -> String {
    // A long name is replaced by its hash.
    let own = destination.file_name().unwrap_or_default().to_string_lossy();
    if own.len() <= 200 {
        return format!(".{own}.");
    }
    format!(".{}.", &blake3::hash(own.as_bytes()).to_hex()[..32])
}

/// Whether a name ends as those of partial files, which no other file may have: it would be deleted.
pub(crate) fn is_part_name(name: &OsStr) -> bool {
    let stem = name.as_encoded_bytes().strip_suffix(SUFFIX.as_bytes());
    stem.is_some_and(|stem| stem.ends_with(b"."))
}

/// The [`prefix`] of a partial file's name; `None` for another name.
pub(crate) fn prefix_of_part(name: &str) -> Option<&str> {
    let stem = name.strip_suffix(SUFFIX)?.strip_suffix('.')?;
    let (prefix, state) = stem.split_at_checked(stem.len().checked_sub(16)?)?;
    let is_part = prefix.ends_with('.') && state.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_part.then_some(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_has_appeared_meanwhile_is_not_replaced() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
        fs::write(&from, "new")?;
        fs::write(&to, "own")?;
        let refused = move_without_replacing(&from, &to).map_err(|error| error.kind());
        assert_eq!(refused, Err(io::ErrorKind::AlreadyExists));
        assert_eq!((fs::read(&from)?, fs::read(&to)?), (b"new".to_vec(), b"own".to_vec()));
        fs::remove_file(&to)?;
        move_without_replacing(&from, &to)?;
        assert_eq!((from.exists(), fs::read(&to)?), (false, b"new".to_vec()));
        Ok(())
    }

    #[test]
    fn the_name_of_a_part_tells_whose_part_it_is() {
        let entry = Entry { path: "a/b".into(), size: Some(1), modified: 2, mode: 0 };
        let part = name(&entry, Path::new("a/b"));
        let part = part.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        assert_eq!(prefix_of_part(part), Some(prefix(Path::new("a/b")).as_str()));
        for other in ["b", ".dumbbell-part", "0123456789abcdef.dumbbell-part"] {
            assert_eq!(prefix_of_part(other), None, "{other}");
        }
    }
}
