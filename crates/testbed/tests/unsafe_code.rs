//! The workspace denies the lint `unsafe_code`; `src/sys.rs` is the only file that allows it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Rust files below `folder` that mention the lint, relative to the folder of the crates.
fn mentions(folder: &Path, found: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            mentions(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && fs::read_to_string(&path)?.contains("unsafe_code")
        {
            let name = path.strip_prefix(crates()).expect("it is below this folder");
            found.push(name.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

#[test]
fn only_the_system_calls_of_the_testbed_allow_unsafe_code() -> io::Result<()> {
    let mut found = Vec::new();
    mentions(&crates(), &mut found)?;
    found.retain(|name| name != "testbed/tests/unsafe_code.rs");
    assert_eq!(found, ["testbed/src/sys.rs"]);
    Ok(())
}

#[test]
fn every_crate_has_the_lints_of_the_workspace() -> io::Result<()> {
    let workspace = fs::read_to_string(crates().join("../Cargo.toml"))?;
    assert!(workspace.contains("unsafe_code = \"deny\""));
    for entry in fs::read_dir(crates())? {
        let manifest = fs::read_to_string(entry?.path().join("Cargo.toml"))?;
        assert!(manifest.contains("[lints]\nworkspace = true"), "{manifest}");
    }
    Ok(())
}
