use std::fs;
use std::path::Path;

use spray_tools::failure::{Failure, Outcome};

/// Creates the results folder, or fails with exit code 2. Call it before the first run.
pub fn make(folder: &Path) -> Outcome {
    fs::create_dir_all(folder)
        .map_err(|error| Failure::refused(format!("cannot make the results folder {}: {error}", folder.display())))
}
