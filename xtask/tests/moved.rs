//! After a tree has been copied or moved together with its build outputs, tasks work on the new
//! tree.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use spray_test_support::{Folder, program, text};

/// Returns a folder with a tree, and a cargo that prints its working directory.
fn copy() -> Folder {
    let folder = Folder::new();
    fs::create_dir_all(folder.path().join("tree/xtask/src")).unwrap();
    fs::write(folder.path().join("tree/xtask/Cargo.toml"), "").unwrap();
    let cargo = folder.file("cargo", "#!/bin/sh\npwd -P\n");
    fs::set_permissions(cargo, Permissions::from_mode(0o755)).unwrap();
    folder
}

/// Runs a task that calls cargo, in the folder `from`; `package` is the package that cargo would
/// set.
fn task(folder: &Folder, from: &Path, package: Option<&Path>) -> Output {
    let mut task = Command::new(program("xtask"));
    task.arg("doc").current_dir(from).env("CARGO", folder.join("cargo")).env_remove("CARGO_MANIFEST_DIR");
    task.envs(package.map(|package| ("CARGO_MANIFEST_DIR", package))).output().unwrap()
}

#[test]
fn a_task_works_on_the_tree_in_which_it_is_called() {
    let folder = copy();
    let tree = folder.path().join("tree").canonicalize().unwrap();
    let stdout = |output: Output| text(&output.stdout).trim().to_string();
    assert_eq!(stdout(task(&folder, Path::new("/"), Some(&tree.join("xtask")))), tree.display().to_string());
    assert_eq!(stdout(task(&folder, &tree.join("xtask/src"), None)), tree.display().to_string());
}

#[test]
fn outside_of_a_tree_a_task_fails_with_a_message() {
    let folder = copy();
    let output = task(&folder, folder.path(), None);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("is not in a clone of spray"), "{}", text(&output.stderr));
    assert!(output.stdout.is_empty());
}
