//! Paths that are told to another machine, and what it may make of them.

use std::path::{Component, Path, PathBuf};

/// More names than this in one path, or longer ones, are of no use.
const MAX_NAMES: usize = 256;
const MAX_NAME: usize = 255;

/// Where a path that a peer names is below `root`; nothing if it is not below it, or if a name
/// would be one of the machine's own.
pub(crate) fn below(root: &Path, path: &str) -> Option<PathBuf> {
    let names: Vec<&str> = path.split('/').collect();
    let harmless = |name: &&str| {
        let mut components = Path::new(name).components();
        let plain = matches!(components.next(), Some(Component::Normal(_)));
        plain
            && components.next().is_none()
            && name.len() <= MAX_NAME
            && !name.contains(['\0', '\\'])
    };
    let fine = names.len() <= MAX_NAMES && names.iter().all(harmless);
    fine.then(|| names.iter().fold(root.to_owned(), |path, name| path.join(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_below_the_folder() {
        let root = Path::new("/srv/files");
        assert_eq!(below(root, "a/b.txt"), Some(PathBuf::from("/srv/files/a/b.txt")));
        assert_eq!(below(root, "..."), Some(PathBuf::from("/srv/files/...")));
        for bad in ["", "..", "a/../b", "/etc/passwd", "a//b", ".", "a/", "a\0b", "..\\a"] {
            assert_eq!(below(root, bad), None, "{bad:?}");
        }
        assert_eq!(below(root, &"x".repeat(300)), None);
    }
}
