//! The root of the repository; also compiled into `xtask`.
//!
//! Found at run time: cargo does not rebuild a tree that was copied or moved together with its
//! `target`, so a compiled-in path would refer to the original.

use std::path::PathBuf;

/// Returns the root of the repository with the package that cargo runs or tests; without cargo with
/// the current folder. Fails outside of a clone.
pub fn find() -> Result<PathBuf, String> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let from = package.or_else(|| std::env::current_dir().ok()).unwrap_or_default();
    let root = from.ancestors().find(|above| above.join("xtask/Cargo.toml").is_file());
    root.map(PathBuf::from).ok_or_else(|| format!("{} is not in a clone of spray: change into one", from.display()))
}
