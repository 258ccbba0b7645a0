//! The folder of results.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::failure::{Failure, Outcome};

/// The folder that the user asked for, otherwise one in `results/` with `name` and the time in its name.
pub fn location(asked: Option<&Path>, name: &str) -> PathBuf {
    asked.map_or_else(|| Path::new("results").join(format!("{name}-{}", stamp())), Path::to_path_buf)
}

/// Makes the results folder. Call it before the first run, whose results would be lost without a folder.
///
/// # Errors
/// 2 when it cannot be made.
pub fn make(folder: &Path) -> Outcome {
    fs::create_dir_all(folder)
        .map_err(|error| Failure::refused(format!("cannot make the results folder {}: {error}", folder.display())))
}

/// The time as `2026-11-20T08:10:36Z`.
#[expect(clippy::disallowed_methods, reason = "results tell people when they were made")]
pub fn date() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

/// The time as `20261120-081036`, UTC.
fn stamp() -> String {
    date().replace(['-', ':', 'Z'], "").replace('T', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_date_and_time() {
        let stamp = stamp();
        let (date, time) = stamp.split_once('-').unwrap();
        assert_eq!((date.len(), time.len()), (8, 6));
        assert!((date.to_owned() + time).bytes().all(|digit| digit.is_ascii_digit()), "{stamp}");
    }
}
