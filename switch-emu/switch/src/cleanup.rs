//! Removes what killed processes left behind: namespaces with their links, and control sockets.

use std::fs::{self, File};
use std::path::PathBuf;

use nix::fcntl::Flock;

use crate::netns;
use crate::registry::{is_held_elsewhere, is_silent, making, names, path, sockets, unheld};

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
