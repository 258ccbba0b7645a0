//! Helpers for error messages: allowed names, and places in files that settings name.

use std::path::{Path, PathBuf};

use spray_fabric::FileError;
use spray_fabric::limits::MAX_FILE_BYTES;
use spray_settings::{Document, Error};

/// Formats the first names of a list.
pub(super) fn list(names: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let names: Vec<_> = names.into_iter().collect();
    let shown = names.iter().take(24).map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    if names.len() > 24 { format!("{shown} and {} more", names.len() - 24) } else { shown }
}

pub(super) fn allow(
    document: &Document,
    is_allowed: bool,
    path: &str,
    message: impl FnOnce() -> String,
) -> Result<(), Error> {
    if is_allowed { Ok(()) } else { Err(document.error(path, message())) }
}

/// Reads and parses the file of the setting `path`, described by `allowed`; returns its path too.
pub(super) fn read_file<T>(
    document: &Document,
    path: &str,
    name: &str,
    allowed: &str,
    parse: impl FnOnce(&str) -> Result<T, FileError>,
) -> Result<(T, PathBuf), Error> {
    let file = document.folder(path).join(name);
    let text = spray_settings::read_file(&file, MAX_FILE_BYTES).map_err(|error| {
        document.error(path, format!("`{}` cannot be read: {error}; allowed: {allowed}", file.display()))
    })?;
    Ok((parse_file(&file, &text, allowed, parse)?, file))
}

/// Parses the `text` of a file. Errors quote it only if all users may read the file.
pub(crate) fn parse_file<T>(
    file: &Path,
    text: &str,
    allowed: &str,
    parse: impl FnOnce(&str) -> Result<T, FileError>,
) -> Result<T, Error> {
    parse(text).map_err(|error| {
        let hidden = format!("this is not {allowed}; its text is not shown, since not every user may read the file");
        let message = if spray_settings::may_quote(file) { error.message } else { hidden };
        in_file(file, &FileError { message, ..error })
    })
}

pub(super) fn in_file(file: &Path, FileError { line, column, message }: &FileError) -> Error {
    Error { location: format!("{}:{line}:{column}", file.display()), message: message.clone() }
}
