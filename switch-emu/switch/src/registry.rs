//! Whose namespaces are whose, so that leftovers of dead processes can be told from live runs.
//!
//! Namespaces are called `spray-<pid>-...`, and the process that made one holds a lock on the namespace itself, which the kernel drops
//! when the process dies, however it dies. A name decides nothing: neither a process id used again nor a process with the same id in
//! another pid namespace makes a live run look dead, and a process that sees a namespace sees its lock, in any container.
//!
//! A deployed fabric also has a name of its own, at whose socket the process that has made it answers.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

/// Folder of named namespaces, as for `ip netns`.
pub(crate) const FOLDER: &str = "/run/netns";

const PREFIX: &str = "spray-";

/// What the names of one testbed's namespaces begin with: names that nobody has.
pub fn prefix() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let taken = names();
    loop {
        let pid = std::process::id();
        let prefix = match NEXT.fetch_add(1, Ordering::Relaxed) {
            0 => format!("{PREFIX}{pid}-"),
            number => format!("{PREFIX}{pid}-{number}-"),
        };
        if !taken.iter().any(|name| name.starts_with(&prefix)) {
            return prefix;
        }
    }
}

/// Keeps `clean`, `ip netns` and other runs out while a namespace has a name and no lock yet.
pub(crate) fn making() -> io::Result<Flock<File>> {
    lock(File::open(FOLDER)?, FlockArg::LockExclusive)
}

/// Marks a namespace as this process's, for as long as the result lives.
pub(crate) fn own(namespace: File) -> io::Result<Flock<File>> {
    lock(namespace, FlockArg::LockExclusiveNonblock)
}

fn lock(file: File, how: FlockArg) -> io::Result<Flock<File>> {
    Flock::lock(file, how).map_err(|(_, error)| error.into())
}

/// Where deployed fabrics answer, each by its name; only root may ask.
const SOCKETS: &str = "/run/spray-fabrics";

/// The socket at which the fabric called `name` answers, if it is up.
pub fn control(name: &str) -> PathBuf {
    Path::new(SOCKETS).join(name)
}

/// Answers for the fabric called `name` from now on.
///
/// # Errors
/// [`io::ErrorKind::AddrInUse`] when one of that name is up; others when the system refuses.
pub fn answer(name: &str) -> io::Result<UnixListener> {
    for folder in [FOLDER, SOCKETS] {
        fs::DirBuilder::new().recursive(true).mode(if folder == SOCKETS { 0o700 } else { 0o755 }).create(folder)?;
    }
    let _making = making()?;
    let path = control(name);
    if is_silent(&path) {
        fs::remove_file(&path)?;
    }
    UnixListener::bind(path)
}

/// The names of deployed fabrics.
pub fn deployed() -> Vec<String> {
    let paths = sockets().into_iter().filter(|path| UnixStream::connect(path).is_ok());
    let mut names: Vec<_> = paths.filter_map(|path| Some(path.file_name()?.to_str()?.to_string())).collect();
    names.sort();
    names
}

pub(crate) fn sockets() -> Vec<PathBuf> {
    let entries = fs::read_dir(SOCKETS).into_iter().flatten().flatten();
    let sockets = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()));
    sockets.map(|entry| entry.path()).collect()
}

/// Whether nobody answers at this socket any more.
pub(crate) fn is_silent(path: &Path) -> bool {
    UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// The lock of a namespace that nobody holds. Whatever else keeps it from being had, the namespace is not known to be dead.
pub(crate) fn unheld(path: &Path) -> Option<Flock<File>> {
    loop {
        match Flock::lock(File::open(path).ok()?, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Some(lock),
            Err((_, Errno::EINTR)) => {}
            Err(_) => return None,
        }
    }
}

/// Whether the process that made a namespace has it by a mount that this one does not see, as within `ip netns exec`: there is only a file here.
pub(crate) fn is_held_elsewhere(name: &str) -> bool {
    let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()).unwrap_or_default();
    let seen = format!("/proc/{process}/root{FOLDER}/{name}");
    fs::metadata(&seen).is_ok() && unheld(Path::new(&seen)).is_none()
}

/// The names of namespaces that a run of ours made.
pub(crate) fn names() -> Vec<String> {
    let names = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    names.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| is_ours(name)).collect()
}

pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

/// Whether the name has the form of ours: a process id and something behind it.
pub(crate) fn is_ours(name: &str) -> bool {
    let parts = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(pid, rest)| !rest.is_empty() && pid.parse::<u32>().is_ok())
}
