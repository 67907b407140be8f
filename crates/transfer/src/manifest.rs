//! The manifest: the files and folders to send.

use crate::error::{TransferError, WithPath};
use crate::frame::Entry;
use crate::monitor::TransferMonitor;
use crate::partial::is_part_name;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// A file or folder to send, and its local path.
#[derive(Clone, Debug)]
pub(crate) struct SourceFile {
    pub(crate) entry: Entry,
    pub(crate) path: PathBuf,
}

/// Lists files and folders recursively, in the order of names, folders before their contents. Each
/// path is named by its last component, a link by its own name. Links, special and partial files inside
/// folders are skipped and logged.
///
/// # Errors
/// If a path cannot be read, has a name that cannot be transferred, or has the same name as another one.
pub(crate) fn walk(
    paths: &[PathBuf],
    monitor: &TransferMonitor,
) -> Result<Vec<SourceFile>, TransferError> {
    let (mut items, mut left_out, mut names) = (Vec::new(), Vec::new(), HashSet::new());
    for path in paths {
        let bad = |why| TransferError::Path { path: path.clone(), why };
        let whole = path.canonicalize().with_path(path)?;
        let name = path
            .file_name()
            .or(whole.file_name())
            .ok_or_else(|| bad("cannot be sent as a whole"))?;
        let name = wire_name(name).map_err(bad)?;
        if !names.insert(name.to_owned()) {
            return Err(bad("has the same name as another one, and would replace it"));
        }
        let found = fs::metadata(path).with_path(path)?;
        if !found.is_file() && !found.is_dir() {
            return Err(bad("is neither a file nor a folder"));
        }
        add(path, name.to_owned(), &found, &mut items, &mut left_out)?;
    }
    log_skipped(&left_out, monitor);
    Ok(items)
}

/// Logs that files are not sent.
pub(crate) fn log_skipped(files: &[PathBuf], monitor: &TransferMonitor) {
    let [first, others @ ..] = files else { return };
    let others = match others.len() {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    let first = first.display();
    monitor.log_event(&format!("skipped links, special and partial files: {first}{others}"));
}

/// Paths of what is in a folder, in the order of names.
pub(crate) fn read_folder(folder: &Path) -> Result<Vec<PathBuf>, TransferError> {
    let inside = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut paths: Vec<PathBuf> =
        inside.with_path(folder)?.iter().map(fs::DirEntry::path).collect();
    paths.sort();
    Ok(paths)
}

/// Whether something in a folder, which is called so, is transferred with it.
pub(crate) fn is_transferred(name: &OsStr, found: &Metadata) -> bool {
    (found.is_file() || found.is_dir()) && !is_part_name(name)
}

/// Time of last modification, ns since 1970.
pub(crate) fn modified_ns(found: &Metadata) -> u64 {
    let modified = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    modified.map_or(0, |time| time.as_nanos() as u64)
}

/// Metadata of a file or folder, under this name.
pub(crate) fn entry(name: String, found: &Metadata) -> Entry {
    Entry {
        path: name,
        size: found.is_file().then_some(found.len()),
        modified: modified_ns(found),
        mode: found.permissions().mode() & 0o777,
    }
}

fn add(
    path: &Path,
    name: String,
    found: &Metadata,
    items: &mut Vec<SourceFile>,
    left_out: &mut Vec<PathBuf>,
) -> Result<(), TransferError> {
    items.push(SourceFile { entry: entry(name.clone(), found), path: path.to_owned() });
    if !found.is_dir() {
        return Ok(());
    }
    for path in read_folder(path)? {
        let found = fs::symlink_metadata(&path).with_path(&path)?;
        let own = path.file_name().unwrap_or_default();
        if !is_transferred(own, &found) {
            left_out.push(path);
            continue;
        }
        let own = wire_name(own).map_err(|why| TransferError::Path { path: path.clone(), why })?;
        add(&path, format!("{name}/{own}"), &found, items, left_out)?;
    }
    Ok(())
}

/// A name as sent to the peer, or why it cannot be.
pub(crate) fn wire_name(name: &OsStr) -> Result<&str, &'static str> {
    match name.to_str() {
        None => Err("its name is not Unicode"),
        Some(name) if name.contains('\\') => Err("its name contains a backslash"),
        Some(name) if name.contains(char::is_control) => {
            Err("its name contains a control character")
        }
        Some(_) if is_part_name(name) => {
            Err("its name ends in .dumbbell-part, as those of partial files, which are deleted")
        }
        Some(name) => Ok(name),
    }
}
