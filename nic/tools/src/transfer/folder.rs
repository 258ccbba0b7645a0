//! The folder that files are received in. Paths below it are resolved without following links.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::sys::stat::{FileStat, Mode, fstatat, mkdirat};
use nix::sys::statvfs::fstatvfs;

use super::format::shown;

#[derive(Debug)]
pub struct Folder {
    pub fd: OwnedFd,
    pub path: PathBuf,
}

const FLAGS: OFlag = OFlag::O_RDONLY.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);

impl Folder {
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { fd: open(path, FLAGS, Mode::empty())?, path: path.into() })
    }

    /// Returns the folder `path` below this one. Creates what is missing, the last with `mode`.
    //= docs/specs/endpoint.md#END-22 No symbolic link on the way is followed
    pub fn below(&self, path: &Path, mode: u16) -> io::Result<Self> {
        let mut folder = Self { fd: self.fd.try_clone()?, path: self.path.clone() };
        let mut names = path.iter().peekable();
        while let Some(name) = names.next() {
            // The owner must be able to enter it, or nothing could be received.
            let mode = if names.peek().is_some() { 0o777 } else { mode | 0o700 };
            folder = folder.enter(name, mode)?;
        }
        Ok(folder)
    }

    fn enter(&self, name: &OsStr, mode: u16) -> io::Result<Self> {
        match mkdirat(&self.fd, name, Mode::from_bits_truncate(mode.into())) {
            Ok(()) => self.sync()?,
            Err(Errno::EEXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let path = self.path.join(name);
        match openat(&self.fd, name, FLAGS | OFlag::O_NOFOLLOW, Mode::empty()) {
            Ok(fd) => Ok(Self { fd, path }),
            Err(Errno::ELOOP | Errno::ENOTDIR) => Err(io::Error::other(format!("{} is not a folder", shown(&path)))),
            Err(error) => Err(error.into()),
        }
    }

    /// Does not follow a link.
    pub fn look(&self, name: &OsStr) -> io::Result<Option<FileStat>> {
        match fstatat(&self.fd, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::ENOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Does not follow a link.
    pub fn file(&self, name: &OsStr, flags: OFlag, mode: u16) -> io::Result<File> {
        // `O_NONBLOCK`: opening a pipe must not block.
        let flags = flags | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        Ok(openat(&self.fd, name, flags, Mode::from_bits_truncate(mode.into()))?.into())
    }

    /// Available bytes of its file system; `None` if unknown.
    pub fn room(&self) -> Option<u64> {
        let there = fstatvfs(&self.fd).ok().filter(|there| there.blocks() > 0)?;
        Some(there.blocks_available().saturating_mul(there.fragment_size()))
    }

    pub fn sync(&self) -> io::Result<()> {
        match nix::unistd::fsync(&self.fd).map_err(io::Error::from) {
            // The file system does not support it.
            Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use spray_test_support::Folder as Temporary;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn missing_folders_are_created_and_existing_ones_unchanged() {
        let dir = Temporary::new();
        let root = Folder::open(dir.path()).unwrap();
        root.below(Path::new("a/b"), 0o555).unwrap();
        assert_eq!(mode(&dir.path().join("a/b")), 0o755, "the owner can write to it");
        root.below(Path::new("a/b"), 0o700).unwrap();
        assert_eq!(mode(&dir.path().join("a/b")), 0o755);
        assert_eq!(root.below(Path::new(""), 0).unwrap().path, dir.path());
    }

    #[test]
    //= docs/specs/endpoint.md#END-22 No symbolic link on the way is followed
    fn symbolic_links_are_not_followed() {
        let (dir, outside) = (Temporary::new(), Temporary::new());
        let root = Folder::open(dir.path()).unwrap();
        symlink(outside.path(), dir.path().join("link")).unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        for path in ["link", "link/x", "file/x"] {
            let error = root.below(Path::new(path), 0o777).unwrap_err().to_string();
            assert!(error.contains("is not a folder"), "{path}: {error}");
        }
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
        symlink(outside.join("x"), dir.path().join("dangling")).unwrap();
        assert!(root.look(OsStr::new("dangling")).unwrap().is_some(), "the link itself");
        assert!(root.file(OsStr::new("dangling"), OFlag::O_CREAT | OFlag::O_WRONLY, 0o600).is_err());
    }
}
