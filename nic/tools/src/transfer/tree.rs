//! The files and folders to send: those named by the user, and their contents.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use super::format::{EntryKind, is_harmless, shown};
use crate::confine::Reach;
use crate::failure::{Failure, Outcome};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// At the receiver.
    pub path: OsString,
    pub kind: EntryKind,
    pub mode: u16,
    pub source: PathBuf,
    /// Links are followed then.
    pub named: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tree {
    pub entries: Vec<Entry>,
    /// Symbolic links and special files in folders, which are not sent.
    pub skipped: Vec<(String, &'static str)>,
    pub failed: Vec<(String, String)>,
}

impl Tree {
    /// Fails with 2 if a path cannot be read, is neither file nor folder, or has the name of
    /// another.
    pub fn of(paths: &[PathBuf]) -> Outcome<Self> {
        let (mut tree, mut names) = (Self::default(), HashSet::new());
        for path in paths {
            let name = name_of(path)?;
            if !names.insert(name.clone()) {
                let shown = name.display();
                return Err(Failure::refused(format!("two of the paths would be {shown} at the receiver; rename one")));
            }
            tree.add(path, &name)?;
        }
        Ok(tree)
    }

    pub fn reach(&self) -> Reach<'_> {
        let files = self.entries.iter().filter(|entry| entry.kind != EntryKind::Folder);
        let named = self.entries.iter().filter(|entry| entry.named);
        Reach::Read {
            named: named.map(|entry| entry.source.as_path()).collect(),
            files: files.map(|entry| entry.source.as_path()).collect(),
        }
    }

    pub fn bytes(&self) -> u64 {
        let bytes = |entry: &Entry| match entry.kind {
            EntryKind::File { bytes } => bytes,
            EntryKind::Folder => 0,
        };
        self.entries.iter().map(bytes).sum()
    }

    fn add(&mut self, path: &Path, name: &OsString) -> Outcome {
        if !is_harmless(name) {
            return Err(Failure::refused(format!("{name:?}: {CONTROL}; rename it")));
        }
        let metadata = std::fs::metadata(path).map_err(|error| unreadable(path, &error))?;
        if metadata.is_file() {
            // Fails before the interface is taken over.
            std::fs::File::open(path).map_err(|error| unreadable(path, &error))?;
        } else if !metadata.is_dir() {
            return Err(Failure::refused(format!("{} is neither a file nor a folder", path.display())));
        }
        for entry in WalkDir::new(path).sort_by_file_name() {
            match entry {
                Ok(entry) => self.take(&entry, path, name),
                Err(error) => {
                    let at = error.path().unwrap_or(path).display().to_string();
                    let why = error.io_error().map_or_else(|| error.to_string(), io::Error::to_string);
                    self.failed.push((at, format!("cannot be read: {why}")));
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, entry: &DirEntry, top: &Path, name: &OsString) {
        let source = entry.path();
        let below = source.strip_prefix(top).unwrap_or(Path::new(""));
        let path =
            if below.as_os_str().is_empty() { name.clone() } else { Path::new(name).join(below).into_os_string() };
        let named = entry.depth() == 0;
        let metadata = match if named { std::fs::metadata(source) } else { entry.metadata().map_err(io::Error::from) } {
            Ok(metadata) => metadata,
            Err(error) => return self.failed.push((source.display().to_string(), format!("cannot be read: {error}"))),
        };
        let kind = match metadata.file_type() {
            kind if kind.is_file() => EntryKind::File { bytes: metadata.len() },
            kind if kind.is_dir() => EntryKind::Folder,
            kind => {
                let what = match kind {
                    kind if kind.is_symlink() => "a symbolic link",
                    kind if kind.is_fifo() => "a pipe",
                    kind if kind.is_socket() => "a socket",
                    _ => "a device",
                };
                return self.skipped.push((shown(&path), what));
            }
        };
        if !is_harmless(&path) {
            let shown = format!("{:?}", source.as_os_str());
            return self.failed.push((shown, if path.as_bytes().len() > 4096 { TOO_LONG } else { CONTROL }.into()));
        }
        let mode = (metadata.mode() & 0o777) as u16;
        self.entries.push(Entry { path, kind, mode, source: source.into(), named });
    }
}

const CONTROL: &str = "control characters are in its name, which a receiver refuses";
const TOO_LONG: &str = "its path is too long";

/// The last component, or that of the canonical path for `.` and the like.
fn name_of(path: &Path) -> Outcome<OsString> {
    if let Some(name) = path.file_name() {
        return Ok(name.into());
    }
    let whole = path.canonicalize().map_err(|error| unreadable(path, &error))?;
    let name = whole.file_name().map(OsString::from);
    name.ok_or_else(|| Failure::refused(format!("{} has no name of its own; name what is in it", path.display())))
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::refused(format!("cannot read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use spray_test_support::Folder;

    use super::*;

    fn paths(tree: &Tree) -> Vec<String> {
        tree.entries.iter().map(|entry| shown(&entry.path)).collect()
    }

    #[test]
    fn folders_precede_their_entries_and_links_are_skipped() {
        let dir = Folder::new();
        let top = dir.path().join("top");
        fs::create_dir_all(top.join("a/empty")).unwrap();
        fs::write(top.join("a/file"), "12345").unwrap();
        fs::write(top.join("b"), "").unwrap();
        symlink("/etc/passwd", top.join("link")).unwrap();
        symlink("..", top.join("a/loop")).unwrap();
        nix::unistd::mkfifo(&top.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(top.join("socket")).unwrap();
        fs::write(top.join("c\nd"), "").unwrap();
        for path in [top.clone(), top.join(""), top.join("a/..")] {
            // The folder's name is the last component of the path.
            let tree = Tree::of(&[path]).unwrap();
            assert_eq!(paths(&tree), ["top", "top/a", "top/a/empty", "top/a/file", "top/b"]);
            let skipped = [
                ("top/a/loop", "a symbolic link"),
                ("top/link", "a symbolic link"),
                ("top/pipe", "a pipe"),
                ("top/socket", "a socket"),
            ];
            assert_eq!(tree.skipped, skipped.map(|(name, what)| (name.to_string(), what)));
            assert_eq!((tree.failed.len(), tree.bytes()), (1, 5));
            assert!(tree.failed[0].0.contains("c\\nd"), "{:?}", tree.failed);
        }
    }

    #[test]
    fn a_link_that_the_user_named_is_followed() {
        let dir = Folder::new();
        fs::create_dir(dir.path().join("folder")).unwrap();
        fs::write(dir.path().join("folder/x"), "1").unwrap();
        symlink("folder", dir.path().join("to-folder")).unwrap();
        symlink("folder/x", dir.path().join("to-file")).unwrap();
        let tree = Tree::of(&["to-folder", "to-file"].map(|name| dir.path().join(name))).unwrap();
        assert_eq!(paths(&tree), ["to-folder", "to-folder/x", "to-file"]);
        assert_eq!(tree.entries[2].kind, EntryKind::File { bytes: 1 });
    }

    #[test]
    fn invalid_paths_are_refused_before_anything_is_sent() {
        let dir = Folder::new();
        fs::create_dir_all(dir.path().join("a/x")).unwrap();
        fs::write(dir.path().join("x"), "").unwrap();
        let at = |name: &str| dir.path().join(name);
        for (paths, expected) in [
            (vec![at("nothing")], "cannot read"),
            (vec![at("x"), at("a/x")], "two of the paths"),
            (vec!["/".into()], "has no name"),
            (vec!["/dev/null".into()], "neither a file nor a folder"),
        ] {
            let error = Tree::of(&paths).unwrap_err().to_string();
            assert!(error.contains(expected), "{paths:?}: {error}");
        }
    }
}
