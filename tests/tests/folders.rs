//! Folders transferred by `spray send` and `spray recv` as two processes, in namespaces joined by
//! routers with ECMP.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use spray_test_support::Folder;
use spray_tests::routers::Routers;
use spray_tests::running::{Running, inbox, payload, wait_until};
use spray_tests::{shared_turn, spray};

/// Starts a command in a side's namespace.
fn spawn(routers: &Routers, side: usize, command: &mut Command) -> Running {
    command.args(["--interface", Routers::INTERFACE]).stdout(Stdio::piped()).stderr(Stdio::piped());
    Running(routers.run_in(side, || command.spawn()).unwrap().unwrap())
}

fn receive(routers: &Routers, out: &Path) -> Running {
    spawn(routers, 1, spray().args(["recv", "--insecure", "--out"]).arg(out)).listening()
}

fn send(routers: &Routers, path: &Path) -> Running {
    let to = Routers::address(1, 0).to_string();
    spawn(routers, 0, spray().arg("send").arg(path).args(["--insecure", "--json", "--to", &to]))
}

/// Returns whether `diff` finds no difference between two folders.
fn is_same(one: &Path, other: &Path) -> bool {
    Command::new("diff").arg("-r").args([one, other]).stdout(Stdio::null()).status().unwrap().success()
}

/// Returns the JSON object printed by a sender that has ended.
fn report(sending: &mut Running) -> serde_json::Value {
    serde_json::from_reader(sending.0.stdout.take().unwrap()).unwrap()
}

#[test]
fn a_folder_arrives_and_the_sender_reports_what_was_accepted() {
    let Some(_turn) = shared_turn() else { return };
    let routers = Routers::new().unwrap();
    let folder = Folder::new();
    let (tree, out) = (folder.path().join("tree"), inbox(&folder));
    fs::create_dir_all(tree.join("a/empty")).unwrap();
    fs::rename(payload(&folder, 20 << 20), tree.join("big")).unwrap();
    (0..200).for_each(|n| fs::write(tree.join(format!("a/{n}")), format!("{n}")).unwrap());
    fs::set_permissions(tree.join("a/7"), fs::Permissions::from_mode(0o700)).unwrap();
    let mut receiving = receive(&routers, &out);
    let mut sending = send(&routers, &tree);
    assert!(sending.end().success() && receiving.end().success(), "{}{}", sending.stderr(), receiving.stderr());
    assert!(is_same(&tree, &out.join("tree")));
    assert_eq!(fs::metadata(out.join("tree/a/7")).unwrap().permissions().mode() & 0o777, 0o700);
    let report = report(&mut sending);
    assert_eq!((&report["files_verified"], &report["folders"], &report["failed"]), (&201.into(), &3.into(), &0.into()));
}

#[test]
fn rejected_files_are_named_and_the_others_arrive() {
    let Some(_turn) = shared_turn() else { return };
    let routers = Routers::new().unwrap();
    let folder = Folder::new();
    let (tree, out) = (folder.path().join("tree"), inbox(&folder));
    for top in [&tree, &out.join("tree")] {
        fs::create_dir(top).unwrap();
        fs::write(top.join("there"), top.as_os_str().as_encoded_bytes()).unwrap();
    }
    fs::write(tree.join("new"), "new").unwrap();
    symlink("new", tree.join("link")).unwrap();
    let mut receiving = receive(&routers, &out);
    let mut sending = send(&routers, &tree);
    assert_eq!((sending.end().code(), receiving.end().code()), (Some(1), Some(1)));
    let stderr = sending.stderr();
    for part in [
        "skipped tree/link: a symbolic link",
        "not sent: tree/there: the receiver refused it: there exists already",
        "1 of 3 files and folders were not sent",
    ] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
    let report = report(&mut sending);
    assert_eq!((&report["files_verified"], &report["failed"], &report["skipped"]), (&1.into(), &1.into(), &1.into()));
    assert_eq!(fs::read(out.join("tree/new")).unwrap(), b"new");
    assert!(fs::symlink_metadata(out.join("tree/link")).is_err());
}

/// A transfer of a folder with a large file, of which a part has arrived.
struct Halfway {
    receiving: Running,
    sending: Running,
    routers: Routers,
    tree: PathBuf,
    out: PathBuf,
    _folder: Folder,
}

impl Halfway {
    const BYTES: u64 = 256 << 20;

    fn new() -> Self {
        let routers = Routers::new().unwrap();
        let folder = Folder::new();
        let (tree, out) = (folder.path().join("tree"), inbox(&folder));
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join("a"), "first").unwrap();
        fs::rename(payload(&folder, Self::BYTES as usize), tree.join("big")).unwrap();
        let receiving = receive(&routers, &out);
        let sending = send(&routers, &tree);
        let halfway = Self { receiving, sending, routers, tree, out, _folder: folder };
        halfway.wait_for_a_part();
        halfway
    }

    fn wait_for_a_part(&self) {
        let is_long = |entry: fs::DirEntry| entry.metadata().is_ok_and(|metadata| metadata.len() > 32 << 20);
        wait_until("a part of the file", || fs::read_dir(&self.out).unwrap().flatten().any(is_long));
        assert!(!self.out.join("tree/big").exists(), "it was too fast");
    }

    /// Waits until both ends have finished after one of them was killed.
    fn finish(&mut self) {
        let Self { tree, out, receiving, sending, .. } = self;
        assert!(sending.end().success() && receiving.end().success(), "{}{}", sending.stderr(), receiving.stderr());
        assert!(is_same(tree, &out.join("tree")));
        assert_eq!(report(sending)["sent_bytes"], Self::BYTES + "first".len() as u64);
        assert_eq!(fs::read_dir(out).unwrap().count(), 1, "nothing is left behind");
    }
}

#[test]
fn a_killed_receiver_leaves_nothing_and_the_next_transfer_arrives() {
    let Some(_turn) = shared_turn() else { return };
    let mut halfway = Halfway::new();
    halfway.receiving.kill();
    assert_eq!(halfway.sending.end().code(), Some(1));
    fs::remove_dir_all(halfway.out.join("tree")).unwrap();
    halfway.receiving = receive(&halfway.routers, &halfway.out);
    halfway.sending = send(&halfway.routers, &halfway.tree);
    halfway.finish();
}
