//! Where the repository is; `xtask` has this file too.
//!
//! It is looked for when a program runs: cargo does not build anew what was copied or moved together with its `target`, so a path that is
//! compiled in would name the original.

use std::path::PathBuf;

/// The repository's root: that of the package which cargo runs or tests, without cargo that of the current folder.
///
/// # Errors
/// It says where there is none.
pub fn find() -> Result<PathBuf, String> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let from = package.or_else(|| std::env::current_dir().ok()).unwrap_or_default();
    let root = from.ancestors().find(|above| above.join("xtask/Cargo.toml").is_file());
    root.map(PathBuf::from).ok_or_else(|| format!("{} is in no clone of spray: go into one", from.display()))
}
