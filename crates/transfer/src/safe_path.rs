//! Validation of paths received from the peer.

use crate::partial::is_part_name;
use std::path::{Component, Path, PathBuf};

/// Maximum number of components of a path, and maximum length of each, bytes.
const MAX_NAMES: usize = 256;
const MAX_NAME: usize = 255;

/// Resolves a peer's path below `root`; `None` if a component is empty, special or too long.
pub(crate) fn resolve(root: &Path, path: &str) -> Option<PathBuf> {
    let names: Vec<&str> = path.split('/').collect();
    let harmless = |name: &&str| {
        let mut components = Path::new(name).components();
        let plain = matches!(components.next(), Some(Component::Normal(_)));
        plain
            && components.next().is_none()
            && name.len() <= MAX_NAME
            && !name.contains(|char: char| char.is_control() || char == '\\')
    };
    let fine = names.len() <= MAX_NAMES && names.iter().all(harmless);
    fine.then(|| names.iter().fold(root.to_owned(), |path, name| path.join(name)))
}

/// As [`resolve`], for a path to write: also `None` if a link leads out of `root`, which is canonical, or
/// a name is one of a partial file.
pub(crate) fn resolve_for_write(root: &Path, path: &str) -> Option<PathBuf> {
    let destination = resolve(root, path)?;
    if path.split('/').any(|name| is_part_name(name.as_ref())) {
        return None;
    }
    let there = destination.ancestors().find(|part| part.symlink_metadata().is_ok())?;
    there.canonicalize().is_ok_and(|real| real.starts_with(root)).then_some(destination)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_below_the_folder() {
        let root = Path::new("/srv/files");
        assert_eq!(resolve(root, "a/b.txt"), Some(PathBuf::from("/srv/files/a/b.txt")));
        assert_eq!(resolve(root, "..."), Some(PathBuf::from("/srv/files/...")));
        for bad in [
            "",
            "..",
            "a/../b",
            "/etc/passwd",
            "a//b",
            ".",
            "a/",
            "a\0b",
            "..\\a",
            "\x1b[2J",
            "a\nb",
        ] {
            assert_eq!(resolve(root, bad), None, "{bad:?}");
        }
        assert_eq!(resolve(root, &"x".repeat(300)), None);
    }

    #[cfg(unix)]
    #[test]
    fn writes_stay_in_the_folder_and_away_from_partial_files() -> std::io::Result<()> {
        let (root, other) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let root = &root.path().canonicalize()?;
        std::fs::create_dir(root.join("a"))?;
        std::os::unix::fs::symlink(other.path(), root.join("out"))?;
        std::os::unix::fs::symlink(root.join("a"), root.join("in"))?;
        std::os::unix::fs::symlink(root.join("nowhere"), root.join("dangling"))?;
        for good in ["b", "a/b", "c/d/e", "in/b"] {
            assert_eq!(resolve_for_write(root, good), Some(root.join(good)));
        }
        for bad in ["x.dumbbell-part", ".dumbbell-part/x", "a/.b.0123456789abcdef.dumbbell-part"] {
            assert_eq!(resolve_for_write(root, bad), None, "{bad}");
        }
        for bad in ["out", "out/b", "out/c/d", "dangling", "dangling/b", ".."] {
            assert_eq!(resolve_for_write(root, bad), None, "{bad}");
        }
        Ok(())
    }
}
