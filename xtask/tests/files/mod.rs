//! The files of the project.

use std::path::PathBuf;

use spray_test_support::root;
use walkdir::WalkDir;

/// Returns the files of the project with this extension, without those of builds.
pub fn files(extension: &str) -> Vec<PathBuf> {
    let built = |name: &str| name == "target" || name == "node_modules" || (name.starts_with('.') && name != ".github");
    let entries = WalkDir::new(root()).into_iter();
    let entries = entries.filter_entry(|entry| entry.depth() == 0 || !entry.file_name().to_str().is_none_or(built));
    let files = entries.map(|entry| entry.unwrap().into_path());
    files.filter(|file| file.extension().is_some_and(|of| of == extension)).collect()
}
