//! Who owns which namespaces, so that leftovers of dead processes can be told from live runs.
//!
//! Namespaces are called `spray-<pid>-...`, and a process that has some holds a lock on `/run/spray/<pid>.lock`. The kernel
//! drops the lock when the process dies, however it dies; a process id used again does not bring it back.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use super::RunError;
use super::netns::{self, FOLDER};

const LOCKS: &str = "/run/spray";
const PREFIX: &str = "spray-";

/// This process's lock and how many testbeds share it.
static LOCK: Mutex<(usize, Option<Flock<File>>)> = Mutex::new((0, None));

/// One testbed's claim on the names that begin with [`Registration::prefix`].
#[derive(Debug)]
pub(super) struct Registration {
    number: usize,
}

impl Registration {
    /// Takes the process's lock, or shares it.
    pub fn new() -> Result<Self, RunError> {
        let mut lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        let fail = |source: std::io::Error| match source.kind() {
            std::io::ErrorKind::PermissionDenied => RunError::NotRoot,
            _ => RunError::io("locking /run/spray", source),
        };
        if lock.1.is_none() {
            fs::create_dir_all(LOCKS).map_err(fail)?;
            let file = File::create(lock_path(std::process::id())).map_err(fail)?;
            let locked = Flock::lock(file, FlockArg::LockExclusive);
            lock.1 = Some(locked.map_err(|(_, error)| fail(error.into()))?);
        }
        lock.0 += 1;
        Ok(Self { number: next_number() })
    }

    /// What the names of this testbed's namespaces begin with.
    pub fn prefix(&self) -> String {
        let pid = std::process::id();
        match self.number {
            0 => format!("{PREFIX}{pid}-"),
            number => format!("{PREFIX}{pid}-{number}-"),
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        lock.0 -= 1;
        if lock.0 == 0 {
            lock.1 = None;
            let _ = fs::remove_file(lock_path(std::process::id()));
            // This fails while another process has a lock.
            let _ = fs::remove_dir(LOCKS);
        }
    }
}

fn next_number() -> usize {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

fn lock_path(pid: u32) -> PathBuf {
    Path::new(LOCKS).join(format!("{pid}.lock"))
}

/// The process that a namespace's name says it belongs to; `None` for foreign names.
fn owner(name: &str) -> Option<u32> {
    let (pid, rest) = name.strip_prefix(PREFIX)?.split_once('-')?;
    (!rest.is_empty()).then(|| pid.parse().ok()).flatten()
}

/// Whether the process holds its lock.
fn is_alive(pid: u32) -> bool {
    match File::open(lock_path(pid)) {
        Ok(file) => matches!(Flock::lock(file, FlockArg::LockSharedNonblock), Err((_, Errno::EWOULDBLOCK))),
        Err(_) => false,
    }
}

/// The names of namespaces that belong to runs which no longer live.
pub fn leftovers() -> Vec<String> {
    let names = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<_> = names.filter(|name| owner(name).is_some_and(|pid| !is_alive(pid))).collect();
    names.sort();
    names
}

/// Removes the namespaces of runs that no longer live, with every link in them, and returns their names. Live runs and
/// foreign namespaces stay.
pub fn clean() -> Vec<String> {
    let names = leftovers();
    names.iter().for_each(|name| netns::remove(&Path::new(FOLDER).join(name)));
    let locks = fs::read_dir(LOCKS).into_iter().flatten().flatten();
    for lock in locks {
        let path = lock.path();
        let pid = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
        if pid.is_some_and(|pid| !is_alive(pid)) {
            let _ = fs::remove_file(&path);
        }
    }
    let _ = fs::remove_dir(LOCKS);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_have_an_owner() {
        assert_eq!(owner("spray-12-h0"), Some(12));
        assert_eq!(owner("spray-12-3-sw"), Some(12));
        for foreign in ["spray-h0", "spray-12", "spray-12-", "spray-x-h0", "blue", "sprayer-12-h0", "spray--h0"] {
            assert_eq!(owner(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_process_without_a_lock_is_dead() {
        assert!(!is_alive(u32::MAX));
    }
}
