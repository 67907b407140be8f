//! Listings: of a server's folder, and of what would be sent.

use crate::client::{RetryPolicy, connect, disconnect, resolve};
use crate::error::{TransferError, WithPath};
use crate::frame::{Entry, FrameStream, Operation, SenderMessage};
use crate::manifest::{self, is_transferred, read_folder, walk};
use crate::monitor::TransferMonitor;
use crate::text::printable;
use dumbbell_udt::io::Settings;
use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of entries of a listing, and bytes of their names.
const MAX_ENTRIES: usize = 1_000_000;
const MAX_NAMES: usize = 100_000_000;

/// A file or folder in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFile {
    /// Its name; of a server with control characters escaped.
    pub name: String,
    /// Size, bytes; `None` for a folder.
    pub size: Option<u64>,
    /// Time of last modification, ns since 1970.
    pub modified: u64,
}

impl From<Entry> for ListedFile {
    fn from(entry: Entry) -> ListedFile {
        let name = printable(&entry.path);
        ListedFile { name, size: entry.size, modified: entry.modified }
    }
}

/// Lists a folder of a server, by its path relative to the server's folder; `"."` is that itself.
///
/// # Errors
/// If the server refuses or lists too much, or the connection fails.
pub fn list(
    peer: &str,
    path: &str,
    settings: &Settings,
    monitor: &Arc<TransferMonitor>,
) -> Result<Vec<ListedFile>, TransferError> {
    let addresses = resolve(peer)?;
    list_once(&addresses, path, settings, monitor).map_err(|error| error.at(peer))
}

fn list_once(
    peer: &[SocketAddr],
    path: &str,
    settings: &Settings,
    monitor: &Arc<TransferMonitor>,
) -> Result<Vec<ListedFile>, TransferError> {
    let policy = RetryPolicy { max_retries: 0, ..RetryPolicy::default() };
    let mut stream = connect(peer, Operation::List(path.to_owned()), settings, policy, monitor)?;
    let mut found = Listing::default();
    loop {
        match stream.recv_message()? {
            SenderMessage::Entry(entry) => found.push(entry.into())?,
            SenderMessage::Over => break,
            SenderMessage::Refused(why) => return Err(TransferError::Refused(why)),
            _ => return Err(TransferError::Protocol("expected a listing".to_owned())),
        }
    }
    disconnect(&stream);
    Ok(found.files)
}

/// A listing of limited size.
#[derive(Default)]
struct Listing {
    files: Vec<ListedFile>,
    /// Bytes of names.
    names: usize,
}

impl Listing {
    fn push(&mut self, file: ListedFile) -> Result<(), TransferError> {
        self.names += file.name.len();
        if self.files.len() == MAX_ENTRIES || self.names > MAX_NAMES {
            let why = format!(
                "the peer lists more than {MAX_ENTRIES} files, or {MAX_NAMES} bytes of names"
            );
            return Err(TransferError::Limit(why));
        }
        self.files.push(file);
        Ok(())
    }
}

/// Lists what [`push`](crate::push) would send.
///
/// # Errors
/// As `push`, before it connects.
pub fn manifest(
    paths: &[PathBuf],
    monitor: &TransferMonitor,
) -> Result<Vec<ListedFile>, TransferError> {
    Ok(walk(paths, monitor)?.into_iter().map(|item| item.entry.into()).collect())
}

/// The server's side of [`list`].
pub(crate) fn serve_list(stream: &FrameStream, folder: &Path) -> Result<(), TransferError> {
    for path in children(folder)?.0 {
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        stream.send(&SenderMessage::Entry(manifest::entry(name, &found)))?;
    }
    stream.send(&SenderMessage::Over)
}

/// What is in a folder, in the order of names: what can be transferred, and what is skipped.
pub(crate) fn children(folder: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>), TransferError> {
    let mut found = (Vec::new(), Vec::new());
    for path in read_folder(folder)? {
        match fs::symlink_metadata(&path) {
            // It was deleted meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            kind => {
                let kind = kind.with_path(&path)?;
                let is_offered = is_transferred(path.file_name().unwrap_or_default(), &kind);
                if is_offered { found.0.push(path) } else { found.1.push(path) }
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_has_limited_size() {
        let named = |length| ListedFile { name: "x".repeat(length), size: None, modified: 0 };
        let mut many = Listing::default();
        assert!((0..MAX_ENTRIES).all(|_| many.push(named(1)).is_ok()));
        assert!(matches!(many.push(named(1)), Err(TransferError::Limit(_))));
        let mut long = Listing::default();
        assert!((0..100).all(|_| long.push(named(1_000_000)).is_ok()));
        assert!(matches!(long.push(named(1)), Err(TransferError::Limit(_))));
    }
}
