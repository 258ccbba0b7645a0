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

use super::netns::{self, FOLDER};

const PREFIX: &str = "spray-";

/// What the names of one testbed's namespaces begin with: names that nobody has.
pub(super) fn prefix() -> String {
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
pub(super) fn making() -> io::Result<Flock<File>> {
    lock(File::open(FOLDER)?, FlockArg::LockExclusive)
}

/// Marks a namespace as this process's, for as long as the result lives.
pub(super) fn own(namespace: File) -> io::Result<Flock<File>> {
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

fn sockets() -> Vec<PathBuf> {
    let entries = fs::read_dir(SOCKETS).into_iter().flatten().flatten();
    let sockets = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()));
    sockets.map(|entry| entry.path()).collect()
}

/// Whether nobody answers at this socket any more.
fn is_silent(path: &Path) -> bool {
    UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// The names of namespaces that belong to runs which no longer live, and of sockets of fabrics that are no longer up.
pub fn leftovers() -> Vec<String> {
    Dead::find().names()
}

/// Removes what belongs to runs that no longer live, namespaces with every link in them, and returns the names. Live runs and foreign
/// namespaces stay.
pub fn clean() -> Vec<String> {
    let dead = Dead::find();
    dead.held.iter().for_each(|(name, _)| netns::remove(&path(name)));
    dead.silent.iter().for_each(|path| drop(fs::remove_file(path)));
    dead.names()
}

/// The namespaces of ours that nobody else holds, and their locks.
#[derive(Default)]
struct Dead {
    held: Vec<(String, Flock<File>)>,
    /// Sockets at which nobody answers.
    silent: Vec<PathBuf>,
    /// Nobody makes others while this lives.
    _quiet: Option<Flock<File>>,
}

impl Dead {
    fn find() -> Self {
        // Without it a namespace that is being made looks like one that nobody holds.
        let Ok(quiet) = making() else {
            return Self::default();
        };
        let here = names().into_iter().filter(|name| !is_held_elsewhere(name));
        let held = here.filter_map(|name| unheld(&path(&name)).map(|lock| (name, lock)));
        let mut held: Vec<_> = held.collect();
        held.sort_by(|(one, _), (other, _)| one.cmp(other));
        let silent = sockets().into_iter().filter(|path| is_silent(path)).collect();
        Self { held, silent, _quiet: Some(quiet) }
    }

    fn names(self) -> Vec<String> {
        let sockets = self.silent.into_iter().map(|path| path.display().to_string());
        self.held.into_iter().map(|(name, _)| name).chain(sockets).collect()
    }
}

/// The lock of a namespace that nobody holds. Whatever else keeps it from being had, the namespace is not known to be dead.
fn unheld(path: &Path) -> Option<Flock<File>> {
    loop {
        match Flock::lock(File::open(path).ok()?, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Some(lock),
            Err((_, Errno::EINTR)) => {}
            Err(_) => return None,
        }
    }
}

/// Whether the process that made a namespace has it by a mount that this one does not see, as within `ip netns exec`: there is only a file here.
fn is_held_elsewhere(name: &str) -> bool {
    let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()).unwrap_or_default();
    let seen = format!("/proc/{process}/root{FOLDER}/{name}");
    fs::metadata(&seen).is_ok() && unheld(Path::new(&seen)).is_none()
}

/// The names of namespaces that a run of ours made.
fn names() -> Vec<String> {
    let names = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    names.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| is_ours(name)).collect()
}

fn path(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

/// Whether the name has the form of ours: a process id and something behind it.
fn is_ours(name: &str) -> bool {
    let parts = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(pid, rest)| !rest.is_empty() && pid.parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests {
    use nix::mount::{MsFlags, mount};
    use nix::sched::{CloneFlags, unshare};

    use super::super::netns::Namespace;
    use super::*;

    #[test]
    fn only_names_of_our_form_are_ours() {
        for ours in ["spray-12-h0", "spray-12-3-sw"] {
            assert!(is_ours(ours), "{ours}");
        }
        for foreign in ["spray-h0", "spray-12", "spray-12-", "spray-x-h0", "blue", "sprayer-12-h0", "spray--h0"] {
            assert!(!is_ours(foreign), "{foreign}");
        }
    }

    /// A name says nothing of the process that holds the namespace: this one's is of none that lives.
    #[test]
    fn a_namespace_is_dead_when_nobody_holds_it() {
        if !spray_test_support::has_root() {
            return;
        }
        let name = format!("spray-{}-held", u32::MAX);
        let held = Namespace::create(name.clone()).unwrap();
        assert!(!leftovers().contains(&name), "it is held");
        assert!(unheld(&path(&name)).is_none());
        drop(held);
        // As a process leaves it that is killed.
        fs::write(path(&name), "").unwrap();
        netns::bind_new(&path(&name)).unwrap();
        assert!(leftovers().contains(&name), "nobody holds it");
        netns::remove(&path(&name));
        assert!(!leftovers().contains(&name));
    }

    /// In a mount namespace of its own, whose folder of namespaces is no mount yet.
    #[test]
    fn a_namespace_is_removed_after_ip_netns_has_added_one() {
        if !spray_test_support::has_root() {
            return;
        }
        let all = std::thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNS).unwrap();
            let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
            mount(None::<&str>, "/", None::<&str>, private, None::<&str>).unwrap();
            mount(Some("tmpfs"), "/run", Some("tmpfs"), MsFlags::empty(), None::<&str>).unwrap();
            let namespace = Namespace::create("spray-1-before".to_string()).unwrap();
            let added = std::process::Command::new("ip").args(["netns", "add", "foreign"]).status().unwrap();
            assert!(added.success());
            drop(namespace);
            fs::read_dir(FOLDER).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>()
        });
        assert_eq!(all.join().unwrap(), ["foreign"]);
    }

    /// What `clean` sees between a namespace's name and its lock: nothing, as it waits until both are there.
    #[test]
    fn a_namespace_in_the_making_is_not_dead() {
        if !spray_test_support::has_root() {
            return;
        }
        let name = format!("spray-{}-made", u32::MAX);
        fs::create_dir_all(FOLDER).unwrap();
        let making = making().unwrap();
        fs::write(path(&name), "").unwrap();
        let looks = std::thread::spawn(leftovers);
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!looks.is_finished(), "it looks while a namespace is made");
        fs::remove_file(path(&name)).unwrap();
        drop(making);
        assert!(!looks.join().unwrap().contains(&name));
    }
}
