//! User files as text.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The largest settings file, in bytes: 100,000 flows. Parsed, it takes fifty times as much memory.
pub const MAX_SETTINGS_BYTES: u64 = 4 << 20;

/// Reads text of at most `most` bytes from a file, device or pipe, without a byte-order mark.
///
/// # Errors
/// The input is larger, not UTF-8, or cannot be read.
pub fn read_text(reader: impl Read, most: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    reader.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it is larger than {most} bytes")));
    }
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count();
        io::Error::other(format!("line {line} is not UTF-8; `iconv -f LATIN1 -t UTF-8` converts Latin-1"))
    })?;
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    Ok(text)
}

/// Reads a file as text of at most `most` bytes.
pub fn read_file(file: &Path, most: u64) -> io::Result<String> {
    read_text(File::open(file)?, most)
}

/// Returns whether messages may quote a file: root, which reads any file that a scenario names, may
/// quote world-readable ones only.
pub fn may_quote(file: &Path) -> bool {
    let allows = |file: &Path| fs::metadata(file).is_ok_and(|metadata| metadata.mode() & 0o004 != 0);
    let is_root = || fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    allows(file) || !is_root()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use spray_test_support::Folder;

    use super::*;

    #[test]
    fn endless_files_are_not_read_to_the_end() {
        let error = read_file(Path::new("/dev/zero"), 1000).unwrap_err();
        assert_eq!(error.to_string(), "it is larger than 1000 bytes");
        assert_eq!(read_text(&b"1234"[..], 4).unwrap(), "1234");
        assert!(read_text(&b"12345"[..], 4).is_err());
    }

    #[test]
    fn a_byte_order_mark_is_removed_and_other_encodings_are_rejected_with_their_line() {
        assert_eq!(read_text(&b"\xef\xbb\xbfNodes 2\r\n"[..], 99).unwrap(), "Nodes 2\r\n");
        let error = read_text(&b"# one\n# Z\xfcrich\n"[..], 99).unwrap_err();
        assert_eq!(error.to_string(), "line 2 is not UTF-8; `iconv -f LATIN1 -t UTF-8` converts Latin-1");
    }

    #[test]
    fn what_not_all_users_may_read_is_not_quoted_to_root() {
        let folder = Folder::new();
        let file = folder.path().join("x");
        fs::write(&file, "x").unwrap();
        for (mode, expected) in [(0o644, true), (0o640, !spray_test_support::has_root())] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(may_quote(&file), expected, "{mode:o}");
        }
    }
}
