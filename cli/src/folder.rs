//! Folders that commands write into.

use std::fs;
use std::path::Path;

use spray_tools::failure::{Failure, Outcome};

/// Makes the results folder. Call it before the first run, whose results would be lost without a folder.
///
/// # Errors
/// 2 when it cannot be made.
pub fn make(folder: &Path) -> Outcome {
    fs::create_dir_all(folder)
        .map_err(|error| Failure::refused(format!("cannot make the results folder {}: {error}", folder.display())))
}
