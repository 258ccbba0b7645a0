//! Removes leftovers of killed processes: namespaces with their links, and control sockets.

use std::fs::{self, File};
use std::path::PathBuf;

use nix::fcntl::Flock;

use crate::netns;
use crate::registry::{self, creation_lock, is_locked_elsewhere, is_stale, names, path, try_lock};

/// Returns the names of namespaces of dead runs, and of sockets of fabrics that are no longer up.
pub fn leftovers() -> Vec<String> {
    Leftovers::find().names()
}

/// Removes the namespaces of dead runs, with all links in them, and stale sockets; returns the
/// names. Live runs and foreign namespaces stay.
pub fn clean() -> Vec<String> {
    let found = Leftovers::find();
    found.namespaces.iter().for_each(|(name, _)| netns::remove(&path(name)));
    found.sockets.iter().for_each(|path| drop(fs::remove_file(path)));
    found.names()
}

#[derive(Default)]
struct Leftovers {
    namespaces: Vec<(String, Flock<File>)>,
    sockets: Vec<PathBuf>,
    /// Blocks the creation of further namespaces.
    _creation: Option<Flock<File>>,
}

impl Leftovers {
    fn find() -> Self {
        // A namespace has no lock yet while it is being created.
        let Ok(creation) = creation_lock() else {
            return Self::default();
        };
        let here = names().into_iter().filter(|name| !is_locked_elsewhere(name));
        let namespaces = here.filter_map(|name| try_lock(&path(&name)).map(|lock| (name, lock)));
        let mut namespaces: Vec<_> = namespaces.collect();
        namespaces.sort_by(|(one, _), (other, _)| one.cmp(other));
        let sockets = registry::sockets().into_iter().filter(|path| is_stale(path)).collect();
        Self { namespaces, sockets, _creation: Some(creation) }
    }

    fn names(self) -> Vec<String> {
        let sockets = self.sockets.into_iter().map(|path| path.display().to_string());
        self.namespaces.into_iter().map(|(name, _)| name).chain(sockets).collect()
    }
}

#[cfg(test)]
mod tests {
    use nix::mount::{MsFlags, mount};
    use nix::sched::{CloneFlags, unshare};

    use super::*;
    use crate::netns::Namespace;
    use crate::registry::{FOLDER, is_ours};

    #[test]
    fn only_names_of_our_form_are_ours() {
        for ours in ["spray-12-h0", "spray-12-3-sw"] {
            assert!(is_ours(ours), "{ours}");
        }
        for foreign in ["spray-h0", "spray-12", "spray-12-", "spray-x-h0", "blue", "sprayer-12-h0", "spray--h0"] {
            assert!(!is_ours(foreign), "{foreign}");
        }
    }

    /// The process id in the name is not that of a running process.
    #[test]
    fn a_namespace_without_a_lock_is_a_leftover() {
        if !spray_test_support::has_root() {
            return;
        }
        let name = format!("spray-{}-held", u32::MAX);
        let held = Namespace::create(name.clone()).unwrap();
        assert!(!leftovers().contains(&name), "locked");
        assert!(try_lock(&path(&name)).is_none());
        drop(held);
        // The state after the process is killed.
        fs::write(path(&name), "").unwrap();
        netns::bind_new(&path(&name)).unwrap();
        assert!(leftovers().contains(&name), "not locked");
        netns::remove(&path(&name));
        assert!(!leftovers().contains(&name));
    }

    /// In a new mount namespace, in which the folder of namespaces is not yet a mount.
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

    /// `clean` waits while a namespace has a name but no lock.
    #[test]
    fn a_namespace_during_creation_is_not_a_leftover() {
        if !spray_test_support::has_root() {
            return;
        }
        let name = format!("spray-{}-made", u32::MAX);
        fs::create_dir_all(FOLDER).unwrap();
        let making = creation_lock().unwrap();
        fs::write(path(&name), "").unwrap();
        let looks = std::thread::spawn(leftovers);
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!looks.is_finished(), "it did not wait for the lock");
        fs::remove_file(path(&name)).unwrap();
        drop(making);
        assert!(!looks.join().unwrap().contains(&name));
    }
}
