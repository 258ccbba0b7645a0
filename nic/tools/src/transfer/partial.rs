//! An incomplete file, `.spray-PID-N.partial` in the destination folder. Its writer holds a lock on
//! it; it is stale if that process is gone and nobody holds the lock.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, Flock, FlockArg, OFlag, RenameFlags, renameat2};
use nix::unistd::{UnlinkatFlags, linkat, unlinkat};

use super::folder::Folder;
use super::format::Refusal;

/// Removed on drop unless it was renamed.
#[derive(Debug)]
pub struct Partial {
    pub file: File,
    /// `None` if the file system has no locks: nothing is stale then.
    _lock: Option<Flock<File>>,
    folder: Arc<Folder>,
    /// `None` once renamed.
    name: Option<OsString>,
}

impl Partial {
    pub fn create(folder: &Arc<Folder>, mode: u16) -> io::Result<Self> {
        const OWNER: u16 = 0o600;
        /// The SHA-256 is of what the file contains.
        const FLAGS: OFlag = OFlag::O_RDWR.union(OFlag::O_CREAT).union(OFlag::O_EXCL);
        static BEGUN: AtomicU32 = AtomicU32::new(0);
        loop {
            let unique = BEGUN.fetch_add(1, Ordering::Relaxed);
            let name = OsString::from(format!(".spray-{}-{unique}.partial", std::process::id()));
            match folder.file(&name, FLAGS, mode & 0o777 | OWNER) {
                // Left by a killed process with this PID, or of another machine or container.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                file => {
                    let file = file?;
                    return Ok(Self { _lock: lock(&file), file, folder: Arc::clone(folder), name: Some(name) });
                }
            }
        }
    }

    /// Refuses a file longer than the free space, which others may still use up.
    //= docs/specs/endpoint.md#END-28 than the file system has room for
    pub fn check_room(&self, bytes: u64) -> Result<(), Refusal> {
        let Some(room) = self.folder.room().filter(|room| bytes > *room) else { return Ok(()) };
        let folder = self.folder.path.display();
        let why = format!("the file has {bytes} bytes, and the file system of {folder} has room for {room}");
        Err(Refusal(format!("{why}; make room there, and send it again")))
    }

    /// Restricts the permissions to `mode`, syncs the content, renames the file to `to_name` in
    /// `to`, and syncs that folder. Fails with `AlreadyExists`, atomically, if there is one.
    pub fn give_name(mut self, to: &Folder, to_name: &OsStr, mode: u16) -> io::Result<()> {
        //= docs/specs/endpoint.md#END-22 set-user-ID, set-group-ID and sticky bits are not transferred
        let (has, mode) = (self.file.metadata()?.permissions().mode() & 0o7777, u32::from(mode) & 0o777);
        if has & !mode != 0 {
            self.file.set_permissions(Permissions::from_mode(has & mode))?;
        }
        self.file.sync_all()?;
        let name = self.name.clone().ok_or(ErrorKind::NotFound)?;
        match renameat2(&self.folder.fd, &*name, &to.fd, to_name, RenameFlags::RENAME_NOREPLACE) {
            // For file systems without `RENAME_NOREPLACE`.
            Err(Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP) => {
                linkat(&self.folder.fd, &*name, &to.fd, to_name, AtFlags::empty())?;
                unlinkat(&self.folder.fd, &*name, UnlinkatFlags::NoRemoveDir)?;
            }
            renamed => renamed?,
        }
        self.name = None;
        to.sync()
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = unlinkat(&self.folder.fd, &**name, UnlinkatFlags::NoRemoveDir);
        }
    }
}

/// Removes stale partial files in `folder` and returns their number.
//= docs/specs/endpoint.md#END-24 removes what killed processes left
pub fn remove_stale(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| is_stale(path) && fs::remove_file(path).is_ok()).count()
}

fn is_stale(path: &Path) -> bool {
    let is_left = path.file_name().and_then(writer).is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists());
    // A process of another machine or container holds the lock. Opening a pipe must not block.
    let opened = || File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(path);
    let is_free = |file: File| file.metadata().is_ok_and(|it| it.is_file()) && lock(&file).is_some();
    is_left && opened().is_ok_and(is_free)
}

fn lock(file: &File) -> Option<Flock<File>> {
    Flock::lock(file.try_clone().ok()?, FlockArg::LockExclusiveNonblock).ok()
}

pub fn is_partial(name: &OsStr) -> bool {
    writer(name).is_some()
}

fn writer(name: &OsStr) -> Option<u32> {
    let (pid, unique) = name.to_str()?.strip_prefix(".spray-")?.strip_suffix(".partial")?.split_once('-')?;
    unique.parse::<u32>().ok()?;
    pid.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use spray_test_support::Folder as Temporary;

    use super::*;

    fn create(dir: &Temporary) -> Partial {
        Partial::create(&Arc::new(Folder::open(dir.path()).unwrap()), 0o666).unwrap()
    }

    fn give_name(partial: Partial) -> io::Result<()> {
        let folder = Arc::clone(&partial.folder);
        partial.give_name(&folder, OsStr::new("x"), 0o666)
    }

    #[test]
    fn the_second_file_with_a_name_is_refused() {
        let dir = Temporary::new();
        let target = dir.path().join("x");
        let [first, second] = [(); 2].map(|()| create(&dir));
        first.file.write_all_at(b"1", 0).unwrap();
        give_name(first).unwrap();
        assert_eq!(give_name(second).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&target).unwrap(), b"1");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn permissions_are_kept_as_far_as_the_umask_allows() {
        let dir = Temporary::new();
        let root = Arc::new(Folder::open(dir.path()).unwrap());
        for (mode, expected) in [(0o777, 0o755), (0o640, 0o640), (0o400, 0o400), (0o066, 0o044)] {
            let name = format!("{mode:o}");
            Partial::create(&root, mode).unwrap().give_name(&root, OsStr::new(&name), mode).unwrap();
            let has = fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o777;
            // The umask of the test process may be stricter.
            assert_eq!(has & !expected, 0, "{mode:o}: {has:o}");
            assert_eq!(has & 0o700, expected & 0o700, "{mode:o}: {has:o}");
        }
    }

    #[test]
    //= docs/specs/endpoint.md#END-22 set-user-ID, set-group-ID and sticky bits are not transferred
    fn no_file_gets_set_id_bits_of_a_replaced_one() {
        let dir = Temporary::new();
        let root = Arc::new(Folder::open(dir.path()).unwrap());
        for mode in [0o755, 0o7755] {
            let partial = Partial::create(&root, mode).unwrap();
            partial.file.set_permissions(Permissions::from_mode(0o7755)).unwrap();
            let name = format!("{mode:o}");
            partial.give_name(&root, OsStr::new(&name), mode).unwrap();
            let has = fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
            assert_eq!(has & 0o7777, 0o755, "{mode:o}");
        }
    }

    #[test]
    //= docs/specs/endpoint.md#END-24 removes what killed processes left
    fn only_files_of_ended_processes_are_removed() {
        // No process has this number: it is above the largest that Linux assigns.
        const DEAD: u32 = 1 << 30;
        let dir = Temporary::new();
        let live = create(&dir);
        let locked = dir.path().join(format!(".spray-{DEAD}-2.partial"));
        let elsewhere = File::create(&locked).unwrap();
        let _held = lock(&elsewhere).unwrap();
        let others = [".x.partial", ".spray-1073741824.partial", ".spray-a-1.partial", "spray-1073741824-1.partial"];
        others.iter().for_each(|name| drop(File::create(dir.path().join(name)).unwrap()));
        let stale = dir.path().join(format!(".spray-{DEAD}-1.partial"));
        File::create(&stale).unwrap();
        let pipe = dir.path().join(format!(".spray-{DEAD}-3.partial"));
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(remove_stale(dir.path()), 1, "a pipe is skipped without blocking");
        assert!(!stale.exists() && dir.path().join(live.name.as_ref().unwrap()).exists() && locked.exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3 + others.len());
    }

    /// A process may have the number of one that was killed.
    #[test]
    fn an_existing_partial_file_is_not_overwritten() {
        let dir = Temporary::new();
        let first = create(&dir).name.clone().unwrap().into_string().unwrap();
        let number: u32 = first.rsplit(['-', '.']).nth(1).unwrap().parse().unwrap();
        let taken = dir.path().join(format!(".spray-{}-{}.partial", std::process::id(), number + 1));
        fs::write(&taken, "left").unwrap();
        drop((create(&dir), create(&dir)));
        assert_eq!(fs::read(&taken).unwrap(), b"left");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
