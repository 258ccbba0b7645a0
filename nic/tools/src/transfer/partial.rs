//! A file that does not have its name yet, in the folder that files are received in.
//!
//! `.spray-KEY.partial`, where `KEY` is made of the path that it is to get, is found again by a later transfer of the same file, which goes
//! on where it ended. `.spray-PID-N.partial` is not: its length was not known, or another process had the lock of the other.
//!
//! The process that writes it holds its lock. What a killed process left is stale when nobody holds the lock, and the process is gone or
//! nothing was written for a week.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, Flock, FlockArg, OFlag, RenameFlags, renameat, renameat2};
use nix::unistd::{UnlinkatFlags, Whence, geteuid, linkat, lseek, unlinkat};
use sha2::{Digest, Sha256};

use super::folder::{Folder, is_file};
use super::format::{PIECE_BYTES, hex};
use super::refusal::Refusal;

const PREFIX: &str = ".spray-";
const SUFFIX: &str = ".partial";
/// Digits of a key.
const KEY: usize = 32;

/// A file on its way in. Removed when dropped, unless it was given its name or a later transfer can go on with it.
#[derive(Debug)]
pub struct Partial {
    file: File,
    /// Nothing where the file system has no locks: there nothing is taken for stale.
    lock: Option<Flock<File>>,
    folder: Arc<Folder>,
    name: OsString,
    keeps: Arc<AtomicBool>,
    /// It is in the folder under its own name.
    listed: bool,
}

impl Partial {
    /// A new file in `folder`, with the permissions `mode` as far as the umask allows them.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(folder: &Arc<Folder>, mode: u16) -> io::Result<Self> {
        static BEGUN: AtomicU32 = AtomicU32::new(0);
        let unique = BEGUN.fetch_add(1, Ordering::Relaxed);
        let name = OsString::from(format!("{PREFIX}{}-{unique}{SUFFIX}", std::process::id()));
        let file = folder.file(&name, FLAGS | OFlag::O_CREAT | OFlag::O_EXCL, mode & 0o777 | OWNER)?;
        Ok(Self::new(file, folder, name, false))
    }

    /// What there is of the file that is to get `path`, or a new one. What is longer than `bytes` is cut off.
    ///
    /// # Errors
    /// When it cannot be written.
    //= docs/specs/endpoint.md#END-23 A later transfer goes on with it
    pub fn resume(folder: &Arc<Folder>, path: &OsStr, bytes: u64, mode: u16) -> io::Result<Self> {
        let key = &hex(&Sha256::digest(path.as_bytes()))[..KEY];
        let name = OsString::from(format!("{PREFIX}{key}{SUFFIX}"));
        let file = match folder.file(&name, FLAGS | OFlag::O_CREAT, mode & 0o777 | OWNER) {
            Ok(file) => file,
            // A link, a folder, another user's.
            Err(_) => return Self::create(folder, mode),
        };
        let mut partial = Self::new(file, folder, name, true);
        // Until it is known to be ours.
        partial.listed = false;
        if !partial.is_ours()? {
            return Self::create(folder, mode);
        }
        if partial.file.metadata()?.len() > bytes {
            partial.file.set_len(bytes)?;
        }
        partial.listed = true;
        Ok(partial)
    }

    /// A file that has no name, and gets none.
    pub fn unnamed(file: File, folder: &Arc<Folder>) -> Self {
        let mut partial = Self::new(file, folder, OsString::new(), false);
        partial.listed = false;
        partial
    }

    fn new(file: File, folder: &Arc<Folder>, name: OsString, keeps: bool) -> Self {
        let (folder, keeps) = (Arc::clone(folder), Arc::new(AtomicBool::new(keeps)));
        Self { lock: lock(&file), file, folder, name, keeps, listed: true }
    }

    /// Whether we have the lock, and the file is still in its place and nobody else's.
    fn is_ours(&self) -> io::Result<bool> {
        let (file, place) = (self.file.metadata()?, self.folder.look(&self.name)?);
        let in_place =
            place.is_some_and(|place| is_file(&place) && (place.st_dev, place.st_ino) == (file.dev(), file.ino()));
        Ok(in_place && self.lock.is_some() && file.nlink() == 1 && file.uid() == geteuid().as_raw())
    }

    /// How many bytes it has before the first piece that is not whole; at most `bytes`, the length that it is to have. They may be
    /// wrong.
    pub fn prefix_bytes(&self, bytes: u64) -> u64 {
        let written = match lseek(self.file.as_fd(), 0, Whence::SeekHole) {
            Ok(hole) => hole as u64,
            // It has none, and no byte.
            Err(_) => 0,
        };
        if written >= bytes { bytes } else { written / PIECE_BYTES * PIECE_BYTES }
    }

    /// Refuses a length that the file system has no room for, beyond what the file takes already. What others write in the meantime may
    /// still take the room: nothing is reserved, since that would fill the holes by which a later transfer sees what has arrived.
    //= docs/specs/endpoint.md#END-28 than the file system has room for
    pub fn check_room(&self, bytes: u64) -> Result<(), Refusal> {
        const BLOCK: u64 = 512;
        let has = self.file.metadata().map_or(0, |metadata| metadata.blocks().saturating_mul(BLOCK));
        let Some(room) = self.folder.room() else { return Ok(()) };
        if bytes.saturating_sub(has) <= room {
            return Ok(());
        }
        let folder = self.folder.path.display();
        let why = format!("the file has {bytes} bytes, and the file system of {folder} has room for {room}");
        Err(Refusal(format!("{why}; make room there, and send it again")))
    }

    /// Whether it stays for a later transfer.
    pub fn keeps(&self) -> &Arc<AtomicBool> {
        &self.keeps
    }

    /// Gives up its name.
    fn hide(&mut self) -> io::Result<()> {
        self.listed = false;
        Ok(unlinkat(&self.folder.fd, &*self.name, UnlinkatFlags::NoRemoveDir)?)
    }

    /// The file, to write pieces into and to read them back.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Takes the permissions that `mode` does not have, puts the content on the disk, gives it the name `name` in `to`, and puts that
    /// on the disk too.
    ///
    /// # Errors
    /// `AlreadyExists` when there is such a file and `replaces` is not set, however late it came; otherwise what the disk says.
    pub fn give_name(mut self, to: &Folder, name: &OsStr, mode: u16, replaces: bool) -> io::Result<()> {
        //= docs/specs/endpoint.md#END-22 set-user-ID and the like do not travel
        let (has, mode) = (self.file.metadata()?.permissions().mode() & 0o7777, u32::from(mode) & 0o777);
        if has & !mode != 0 {
            self.file.set_permissions(Permissions::from_mode(has & mode))?;
        }
        self.file.sync_all()?;
        match replaces {
            true => renameat(&self.folder.fd, &*self.name, &to.fd, name)?,
            false => self.rename_new(to, name)?,
        }
        self.listed = false;
        to.sync()
    }

    /// Renames, and fails with `AlreadyExists` rather than replace anything.
    fn rename_new(&mut self, to: &Folder, name: &OsStr) -> io::Result<()> {
        match renameat2(&self.folder.fd, &*self.name, &to.fd, name, RenameFlags::RENAME_NOREPLACE) {
            // File systems without that flag can still refuse a second name.
            Err(Errno::EINVAL | Errno::ENOSYS | Errno::EOPNOTSUPP) => {
                linkat(&self.folder.fd, &*self.name, &to.fd, name, AtFlags::empty())?;
                self.hide()
            }
            other => Ok(other?),
        }
    }
}

impl Drop for Partial {
    //= docs/specs/endpoint.md#END-23 removed when the file is refused
    fn drop(&mut self) {
        let stays = self.keeps.load(Ordering::Relaxed) && self.prefix_bytes(u64::MAX) > 0;
        if self.listed && !stays {
            // Nobody is told if the disk does not let it go.
            let _ = self.hide();
        }
    }
}

/// Its owner writes into it while it arrives.
const OWNER: u16 = 0o600;
/// Opened for reading too: the SHA-256 is taken of what the file holds.
const FLAGS: OFlag = OFlag::O_RDWR;

/// The folder that a path lies in.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Removes what killed processes left in `folder` and nobody goes on with. Returns how many files.
//= docs/specs/endpoint.md#END-24 nothing was written for a week
pub fn remove_stale(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let stale = entries.map(|entry| entry.path()).filter(|path| is_stale(path));
    stale.filter(|path| fs::remove_file(path).is_ok()).count()
}

fn is_stale(path: &Path) -> bool {
    let is_left = match path.file_name().and_then(writer) {
        None => false,
        Some(Writer::Process(pid)) => !Path::new("/proc").join(pid.to_string()).exists(),
        Some(Writer::Any) => is_old(path),
    };
    // A process of another machine or container, whose number means nothing here, holds the lock.
    // A pipe of that name would have its opener wait for the other end.
    let opened = || File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(path);
    let is_free = |file: File| file.metadata().is_ok_and(|it| it.is_file()) && lock(&file).is_some();
    is_left && opened().is_ok_and(is_free)
}

fn is_old(path: &Path) -> bool {
    const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);
    let written = path.symlink_metadata().and_then(|metadata| metadata.modified());
    written.is_ok_and(|written| written.elapsed().is_ok_and(|age| age > WEEK))
}

/// Takes the file's lock, unless another open file has it.
fn lock(file: &File) -> Option<Flock<File>> {
    Flock::lock(file.try_clone().ok()?, FlockArg::LockExclusiveNonblock).ok()
}

/// Whether a file of this name would be taken for one that is still arriving.
pub fn is_partial(name: &OsStr) -> bool {
    writer(name).is_some()
}

/// Who may write a partial file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writer {
    Process(u32),
    /// Whoever has its lock.
    Any,
}

/// Who may write the partial file `name`, if it is one.
fn writer(name: &OsStr) -> Option<Writer> {
    let middle = name.to_str()?.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    if middle.len() == KEY && middle.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Some(Writer::Any);
    }
    let (pid, unique) = middle.split_once('-')?;
    unique.parse::<u32>().ok()?;
    pid.parse().ok().map(Writer::Process)
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::os::unix::fs::FileExt;

    use spray_test_support::Folder as Temporary;

    use super::*;

    fn create(dir: &Temporary) -> Partial {
        Partial::create(&Arc::new(Folder::open(dir.path()).unwrap()), 0o666).unwrap()
    }

    fn give_name(partial: Partial, replaces: bool) -> io::Result<()> {
        let folder = Arc::clone(&partial.folder);
        partial.give_name(&folder, OsStr::new("x"), 0o666, replaces)
    }

    #[test]
    fn of_two_that_want_one_name_the_second_is_refused_and_the_first_keeps_it() {
        let dir = Temporary::new();
        let target = dir.path().join("x");
        let [first, second] = [(); 2].map(|()| create(&dir));
        first.file().write_all_at(b"1", 0).unwrap();
        give_name(first, false).unwrap();
        assert_eq!(give_name(second, false).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&target).unwrap(), b"1");
        give_name(create(&dir), true).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_has_the_permissions_it_had_as_far_as_the_umask_allows_them() {
        let dir = Temporary::new();
        let root = Arc::new(Folder::open(dir.path()).unwrap());
        for (mode, expected) in [(0o777, 0o755), (0o640, 0o640), (0o400, 0o400), (0o066, 0o044)] {
            let name = format!("{mode:o}");
            Partial::create(&root, mode).unwrap().give_name(&root, OsStr::new(&name), mode, false).unwrap();
            let has = fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o777;
            // The tests' own umask may be stricter.
            assert_eq!(has & !expected, 0, "{mode:o}: {has:o}");
            assert_eq!(has & 0o700, expected & 0o700, "{mode:o}: {has:o}");
        }
    }

    #[test]
    //= docs/specs/endpoint.md#END-22 set-user-ID and the like do not travel
    fn no_file_runs_as_another_user_whatever_was_there_before() {
        let dir = Temporary::new();
        let root = Arc::new(Folder::open(dir.path()).unwrap());
        for mode in [0o755, 0o7755] {
            let partial = Partial::create(&root, mode).unwrap();
            partial.file().set_permissions(Permissions::from_mode(0o7755)).unwrap();
            let name = format!("{mode:o}");
            partial.give_name(&root, OsStr::new(&name), mode, false).unwrap();
            let has = fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
            assert_eq!(has & 0o7777, 0o755, "{mode:o}");
        }
    }

    #[test]
    fn only_what_a_dead_process_left_is_removed() {
        // No process has this number: it is above the largest that Linux gives.
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
        assert_eq!(remove_stale(dir.path()), 1, "a pipe is none, and keeps nobody waiting");
        assert!(!stale.exists() && dir.path().join(&live.name).exists() && locked.exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3 + others.len());
    }

    fn resume(dir: &Temporary, bytes: u64) -> Partial {
        Partial::resume(&Arc::new(Folder::open(dir.path()).unwrap()), OsStr::new("x"), bytes, 0o666).unwrap()
    }

    #[test]
    //= docs/specs/endpoint.md#END-23 A later transfer goes on with it
    fn the_whole_pieces_before_the_first_hole_are_found_again() {
        let (dir, piece) = (Temporary::new(), vec![7; PIECE_BYTES as usize]);
        let first = resume(&dir, 10 * PIECE_BYTES);
        assert_eq!(first.prefix_bytes(10 * PIECE_BYTES), 0);
        for index in [0, 1, 5] {
            first.file().write_all_at(&piece, index * PIECE_BYTES).unwrap();
        }
        drop(first);
        let again = resume(&dir, 10 * PIECE_BYTES);
        assert_eq!(again.prefix_bytes(10 * PIECE_BYTES), 2 * PIECE_BYTES);
        drop(again);
        let shorter = resume(&dir, PIECE_BYTES + 5);
        assert_eq!(shorter.prefix_bytes(PIECE_BYTES + 5), PIECE_BYTES + 5);
        assert_eq!(shorter.file().metadata().unwrap().len(), PIECE_BYTES + 5);
        give_name(shorter, false).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(resume(&dir, 5).prefix_bytes(5), 0, "it has its name");
    }

    #[test]
    fn what_has_no_whole_piece_or_is_refused_is_removed() {
        let dir = Temporary::new();
        let short = resume(&dir, 10);
        short.file().write_all_at(b"12345", 0).unwrap();
        drop(short);
        let refused = resume(&dir, PIECE_BYTES);
        refused.file().write_all_at(&vec![7; PIECE_BYTES as usize], 0).unwrap();
        refused.keeps().store(false, Ordering::Relaxed);
        drop(refused);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn nobody_goes_on_with_what_another_writes_or_somebody_else_put_there() {
        let dir = Temporary::new();
        let first = resume(&dir, 5);
        let second = resume(&dir, 5);
        assert_ne!(first.name, second.name);
        let place = dir.path().join(&first.name);
        drop((first, second));
        let other = dir.path().join("other");
        fs::write(&other, "theirs").unwrap();
        let put: [&dyn Fn(); 3] = [
            &|| fs::hard_link(&other, &place).unwrap(),
            &|| std::os::unix::fs::symlink(&other, &place).unwrap(),
            &|| nix::unistd::mkfifo(&place, nix::sys::stat::Mode::S_IRWXU).unwrap(),
        ];
        for put in put {
            put();
            assert_ne!(resume(&dir, 5).name, place.file_name().unwrap());
            assert!(place.symlink_metadata().is_ok(), "it is not ours to remove");
            fs::remove_file(&place).unwrap();
        }
        assert_eq!(fs::read(&other).unwrap(), b"theirs");
    }

    #[test]
    //= docs/specs/endpoint.md#END-24 nothing was written for a week
    fn what_nobody_went_on_with_for_a_week_is_removed() {
        let dir = Temporary::new();
        let partial = |days: u64, digit: &str| {
            let file = File::create(dir.path().join(format!("{PREFIX}{}{SUFFIX}", digit.repeat(KEY)))).unwrap();
            let written = file.metadata().unwrap().modified().unwrap();
            file.set_modified(written - Duration::from_secs(days * 24 * 3600)).unwrap();
            file
        };
        drop((partial(6, "a"), partial(8, "b")));
        let held = partial(8, "c");
        let _held = lock(&held).unwrap();
        assert_eq!(remove_stale(dir.path()), 1);
        assert!(!dir.path().join(format!("{PREFIX}{}{SUFFIX}", "b".repeat(KEY))).exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
