//! A file that does not have its name yet: `.spray-PID-N.partial`, beside what it is to become.
//!
//! The process that writes it holds its lock. What a killed process left is found by the name, and is stale when the process is gone
//! and nobody holds the lock.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, Flock, FlockArg, RenameFlags, renameat2};

const PREFIX: &str = ".spray-";
const SUFFIX: &str = ".partial";

/// A file on its way in. Removed when dropped, unless it was given its name.
#[derive(Debug)]
pub struct Partial {
    file: File,
    /// Nothing where the file system has no locks: there nothing is taken for stale.
    _lock: Option<Flock<File>>,
    path: PathBuf,
}

impl Partial {
    /// A new file of `bytes` zeros in `folder`; `unique` is a number that this process has not used before.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(folder: &Path, unique: u32, bytes: u64) -> io::Result<Self> {
        let path = folder.join(format!("{PREFIX}{}-{unique}{SUFFIX}", std::process::id()));
        // Opened for reading too: the SHA-256 is taken of what the file holds.
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        let partial = Self { _lock: lock(&file), file, path };
        partial.file.set_len(bytes)?;
        Ok(partial)
    }

    /// The file, to write pieces into and to read them back.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Puts the content on the disk, then gives it the name `target`, then puts the name on the disk.
    ///
    /// # Errors
    /// `AlreadyExists` when there is such a file and `replaces` is not set, however late it came; otherwise what the disk says.
    pub fn give_name(self, target: &Path, replaces: bool) -> io::Result<()> {
        self.file.sync_all()?;
        if replaces { fs::rename(&self.path, target) } else { rename_new(&self.path, target) }?;
        sync_folder(target)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Gone already if it has got its name.
        let _ = fs::remove_file(&self.path);
    }
}

/// Renames, and fails with `AlreadyExists` rather than replace anything.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_NOREPLACE) {
        // File systems without that flag can still refuse a second name.
        Err(Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP) => fs::hard_link(from, to),
        other => other.map_err(io::Error::from),
    }
}

fn sync_folder(of: &Path) -> io::Result<()> {
    match File::open(folder_of(of)).and_then(|folder| folder.sync_all()) {
        // The file system does this by itself.
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
        other => other,
    }
}

/// The folder that a path lies in.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Removes what killed processes left in `folder`. Returns how many files.
pub fn remove_stale(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let stale = entries.map(|entry| entry.path()).filter(|path| is_stale(path));
    stale.filter(|path| fs::remove_file(path).is_ok()).count()
}

fn is_stale(path: &Path) -> bool {
    let writer = path.file_name().and_then(OsStr::to_str).and_then(writer);
    let is_gone = writer.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists());
    // A process of another machine or container, whose number means nothing here, holds the lock.
    is_gone && File::open(path).is_ok_and(|file| lock(&file).is_some())
}

/// Takes the file's lock, unless another open file has it.
fn lock(file: &File) -> Option<Flock<File>> {
    Flock::lock(file.try_clone().ok()?, FlockArg::LockExclusiveNonblock).ok()
}

/// Whether a file of this name would be taken for one that is still arriving.
pub fn is_partial(name: &OsStr) -> bool {
    name.to_str().and_then(writer).is_some()
}

/// The process that writes the partial file `name`.
fn writer(name: &str) -> Option<u32> {
    let (pid, unique) = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.split_once('-')?;
    unique.parse::<u32>().ok()?;
    pid.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use spray_test_support::Folder;

    use super::*;

    #[test]
    fn of_two_that_want_one_name_the_second_is_refused_and_the_first_keeps_it() {
        let dir = Folder::new();
        let target = dir.path().join("x");
        let [first, second] = [1, 2].map(|unique| Partial::create(dir.path(), unique, 1).unwrap());
        first.file().write_all_at(b"1", 0).unwrap();
        first.give_name(&target, false).unwrap();
        assert_eq!(second.give_name(&target, false).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&target).unwrap(), b"1");
        Partial::create(dir.path(), 3, 2).unwrap().give_name(&target, true).unwrap();
        assert_eq!(fs::read(&target).unwrap(), [0, 0]);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn only_what_a_dead_process_left_is_removed() {
        // No process has this number: it is above the largest that Linux gives.
        const DEAD: u32 = 1 << 30;
        let dir = Folder::new();
        let live = Partial::create(dir.path(), 1, 1).unwrap();
        let locked = dir.path().join(format!(".spray-{DEAD}-2.partial"));
        let elsewhere = File::create(&locked).unwrap();
        let _held = lock(&elsewhere).unwrap();
        let others = [".x.partial", ".spray-1073741824.partial", ".spray-a-1.partial", "spray-1073741824-1.partial"];
        others.iter().for_each(|name| drop(File::create(dir.path().join(name)).unwrap()));
        let stale = dir.path().join(format!(".spray-{DEAD}-1.partial"));
        File::create(&stale).unwrap();
        assert_eq!(remove_stale(dir.path()), 1);
        assert!(!stale.exists() && live.path.exists() && locked.exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2 + others.len());
    }
}
