//! The settings of an interface before `--fix`, in a file so that `--undo` works after a crash.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use spray_nic::net::Interface;

use super::change::Setting;

/// Lost on reboot, as the settings are.
const FOLDER: &str = "/run/spray/doctor";

#[derive(Debug)]
pub(super) struct Memory {
    pub(super) path: PathBuf,
    pub(super) saved: Saved,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Saved {
    interface: String,
    mac: [u8; 6],
    /// In the order of the changes.
    pub(super) before: Vec<Setting>,
}

impl Memory {
    pub(super) fn of(interface: &Interface) -> io::Result<Self> {
        let namespace = fs::metadata("/proc/thread-self/ns/net")?.ino();
        Self::in_folder(Path::new(FOLDER), interface, namespace)
    }

    fn in_folder(folder: &Path, interface: &Interface, namespace: u64) -> io::Result<Self> {
        let path = folder.join(format!("{}-{}-{namespace}.json", interface.name, interface.index));
        let none = || Saved { interface: interface.name.clone(), mac: interface.mac, before: Vec::new() };
        let saved = match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes)?,
            Err(error) if error.kind() == ErrorKind::NotFound => none(),
            Err(error) => return Err(error),
        };
        // Indices and namespaces are reused, so this may be of another interface.
        let saved = if saved.mac == interface.mac { saved } else { none() };
        Ok(Self { path, saved })
    }

    /// Saves a value before it is changed. Only the first value of a setting is saved.
    pub(super) fn keep(&mut self, setting: &Setting) -> io::Result<()> {
        if self.saved.before.iter().any(|saved| saved.is_of(setting)) {
            return Ok(());
        }
        self.saved.before.push(setting.clone());
        self.write()
    }

    /// Removes all saved values except `left`.
    pub(super) fn forget_but(mut self, left: Vec<Setting>) -> io::Result<()> {
        if left.is_empty() {
            return fs::remove_file(&self.path);
        }
        self.saved.before = left;
        self.write()
    }

    fn write(&self) -> io::Result<()> {
        let folder = self.path.parent().expect("the path is of a file in a folder");
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let fresh = self.path.with_extension("new");
        let mut file = fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        file.write_all(&serde_json::to_vec_pretty(&self.saved)?)?;
        file.sync_all()?;
        fs::rename(&fresh, &self.path)
    }
}

#[cfg(test)]
mod tests {
    use spray_test_support::Folder;

    use super::*;

    fn interface(mac: u8) -> Interface {
        let mut interface = Interface::default();
        (interface.name, interface.index, interface.mac) = ("eth0".into(), 7, [mac; 6]);
        interface
    }

    #[test]
    fn the_first_value_of_each_setting_stays_until_it_is_restored() {
        let folder = Folder::new();
        let open = |mac| Memory::in_folder(&folder.path().join("deep/er"), &interface(mac), 4).unwrap();
        let feature = |name: &str, on| Setting::Feature { name: name.into(), on };
        let mut memory = open(1);
        for setting in [Setting::Mtu(9000), feature("a", true), Setting::Mtu(3498), feature("b", false)] {
            memory.keep(&setting).unwrap();
        }
        let before = [Setting::Mtu(9000), feature("a", true), feature("b", false)];
        assert_eq!([&memory.saved.before, &open(1).saved.before], [&before; 2], "on file as well");
        assert!(open(2).saved.before.is_empty(), "another interface of the same name and number");
        open(1).forget_but(vec![feature("a", true)]).unwrap();
        assert_eq!(open(1).saved.before, [feature("a", true)]);
        open(1).forget_but(Vec::new()).unwrap();
        assert!(open(1).saved.before.is_empty() && !memory.path.exists());
    }

    #[test]
    fn a_damaged_file_is_an_error() {
        let folder = Folder::new();
        let _ = folder.file("eth0-7-4.json", "{");
        assert!(Memory::in_folder(folder.path(), &interface(1), 4).is_err());
    }
}
