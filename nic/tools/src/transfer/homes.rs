//! Folders that are not received into by default, since programs read files there by name.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::failure::{Failure, Outcome};

pub const DEFAULT: &str = ".";

/// Refuses the current folder as default if it is `/` or a user's home.
//= docs/specs/endpoint.md#END-30 only if its user names that folder
pub fn check_default() -> Outcome {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    if !is_special(Path::new(DEFAULT), &users) {
        return Ok(());
    }
    Err(Failure::refused(
        "this folder is `/` or a user's home, where a sender's files could be read as settings (`.bashrc`): change to \
         another one, or name it: --out .",
    ))
}

/// Whether it is `/`, root's home or a home listed in `users`, in the format of `/etc/passwd`.
fn is_special(folder: &Path, users: &str) -> bool {
    let same = |other: &Path| match (fs::metadata(folder), fs::metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    };
    let homes = users.lines().filter_map(|user| user.split(':').nth(5));
    ["/", "/root"].into_iter().chain(homes).any(|home| same(Path::new(home)))
}

#[cfg(test)]
mod tests {
    use spray_test_support::Folder;

    use super::*;

    #[test]
    //= docs/specs/endpoint.md#END-30 only if its user names that folder
    fn homes_are_recognised_by_any_path() {
        let dir = Folder::new();
        let home = dir.path().join("home");
        fs::create_dir_all(home.join("in")).unwrap();
        std::os::unix::fs::symlink("home", dir.path().join("link")).unwrap();
        let users = format!("x:x:0:0::/nowhere:/bin/sh\nbroken\ny:x:1:1:Y:{}:/bin/sh\n", home.display());
        for path in [home.clone(), home.join("in/.."), dir.path().join("link"), "/".into(), "/usr/..".into()] {
            assert!(is_special(&path, &users), "{path:?}");
        }
        for path in [home.join("in"), dir.path().into(), dir.path().join("missing")] {
            assert!(!is_special(&path, &users), "{path:?}");
        }
        assert!(!is_special(&home, ""));
    }
}
