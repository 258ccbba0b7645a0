//! Ownership of namespaces, by which leftovers of dead processes are told from live runs.
//!
//! Namespaces are called `spray-<pid>-...`, and their creator locks the namespace file; the kernel
//! releases the lock when it dies. Only the lock decides: process ids are reused and differ between
//! pid namespaces. A deployed fabric also answers at a socket of its name.

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

/// Returns an unused prefix for the namespaces of one testbed.
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

/// Locks out `clean`, `ip netns` and other runs while a namespace has a name and no lock yet.
pub(crate) fn creation_lock() -> io::Result<Flock<File>> {
    lock(File::open(FOLDER)?, FlockArg::LockExclusive)
}

/// Locks a namespace for as long as the result lives.
pub(crate) fn lock_namespace(namespace: File) -> io::Result<Flock<File>> {
    lock(namespace, FlockArg::LockExclusiveNonblock)
}

fn lock(file: File, how: FlockArg) -> io::Result<Flock<File>> {
    Flock::lock(file, how).map_err(|(_, error)| error.into())
}

/// The folder of the control sockets, accessible to root only.
const SOCKETS: &str = "/run/spray-fabrics";

/// Returns the path of the control socket of the fabric called `name`.
pub fn control_socket(name: &str) -> PathBuf {
    Path::new(SOCKETS).join(name)
}

/// Binds the control socket of the fabric called `name`.
///
/// # Errors
/// [`io::ErrorKind::AddrInUse`] when a fabric of that name is up; others when the system refuses.
pub fn bind_control_socket(name: &str) -> io::Result<UnixListener> {
    for folder in [FOLDER, SOCKETS] {
        fs::DirBuilder::new().recursive(true).mode(if folder == SOCKETS { 0o700 } else { 0o755 }).create(folder)?;
    }
    let _creation = creation_lock()?;
    let path = control_socket(name);
    if is_stale(&path) {
        fs::remove_file(&path)?;
    }
    UnixListener::bind(path)
}

/// Returns the sorted names of the fabrics that are up.
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

/// Whether no process listens at this socket.
pub(crate) fn is_stale(path: &Path) -> bool {
    UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// Locks an unlocked namespace. `None` also on other errors: it is not known to be dead then.
pub(crate) fn try_lock(path: &Path) -> Option<Flock<File>> {
    loop {
        match Flock::lock(File::open(path).ok()?, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Some(lock),
            Err((_, Errno::EINTR)) => {}
            Err(_) => return None,
        }
    }
}

/// Whether the creator has the namespace by a mount that is not visible here, as within `ip netns
/// exec`, where only a file is seen.
pub(crate) fn is_locked_elsewhere(name: &str) -> bool {
    let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()).unwrap_or_default();
    let seen = format!("/proc/{process}/root{FOLDER}/{name}");
    fs::metadata(&seen).is_ok() && try_lock(Path::new(&seen)).is_none()
}

pub(crate) fn names() -> Vec<String> {
    let names = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    names.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| is_ours(name)).collect()
}

pub(crate) fn path(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

/// Whether the name has the form `spray-<pid>-...`.
pub(crate) fn is_ours(name: &str) -> bool {
    let parts = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(pid, rest)| !rest.is_empty() && pid.parse::<u32>().is_ok())
}
