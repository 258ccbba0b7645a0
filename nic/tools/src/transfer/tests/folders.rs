//! Transfers of folders.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::*;

fn sender_of_paths<'a>(paths: &[PathBuf]) -> Role<'a> {
    let tree = Tree::of(paths).unwrap();
    let outgoing = Outgoing::start(tree.entries.clone(), Wake::default()).unwrap();
    role(Sending::new(tree, outgoing, receiver(), Duration::from_secs(60)))
}

/// Creates a tree with empty files and folders, a name that is not UTF-8, and many small files.
fn tree(folder: &Folder) -> PathBuf {
    let top = folder.path().join("tree");
    fs::create_dir_all(top.join("empty/more")).unwrap();
    fs::create_dir(top.join("small")).unwrap();
    fs::write(top.join("nothing"), "").unwrap();
    fs::write(top.join(OsStr::from_bytes(b"caf\xe9")), "latin").unwrap();
    fs::write(top.join("big"), content(2 * PIECE_BYTES + 5)).unwrap();
    (0..40).for_each(|n| fs::write(top.join(format!("small/{n}")), content(n * 100)).unwrap());
    fs::write(top.join("run.sh"), "echo").unwrap();
    fs::set_permissions(top.join("run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    fs::set_permissions(top.join("empty/more"), fs::Permissions::from_mode(0o500)).unwrap();
    top
}

/// Returns the paths, permissions and contents below a folder.
fn snapshot(top: &Path) -> Vec<(PathBuf, u32, Option<Vec<u8>>)> {
    let below = walkdir::WalkDir::new(top).sort_by_file_name().into_iter().map(Result::unwrap);
    below
        .map(|entry| {
            let path = entry.path().strip_prefix(top).unwrap().to_path_buf();
            let metadata = entry.metadata().unwrap();
            let content = metadata.is_file().then(|| fs::read(entry.path()).unwrap());
            // The owner of a folder may always enter it.
            let mode = metadata.permissions().mode() | if metadata.is_dir() { 0o700 } else { 0 };
            (path, mode & 0o777, content)
        })
        .collect()
}

#[test]
//= docs/specs/endpoint.md#END-20 files and folders by one connection
fn folders_arrive_complete_despite_reordering_and_loss() {
    let impairments = Impairments { delay_ps: 100 * US, jitter_ps: 2 * MS, loss_ppm: 1000, ..Impairments::default() };
    for seed in 0..4 {
        let (here, there) = (Folder::new(), Folder::new());
        let (top, alone) = (tree(&here), here.path().join("alone"));
        fs::write(&alone, "alone").unwrap();
        let sender = sender_of_paths(&[top.clone(), alone]);
        let outcomes = run(there.path(), false, vec![sender], impairments, seed);
        assert!(outcomes.iter().all(Result::is_ok), "seed {seed}: {outcomes:?}");
        assert!(snapshot(&there.path().join("tree")) == snapshot(&top));
        assert_eq!((fs::read(there.path().join("alone")).unwrap(), files(&there)), (b"alone".to_vec(), 2));
    }
}

#[test]
//= docs/specs/endpoint.md#END-22 no file is replaced
fn a_folder_sent_twice_is_refused_and_unchanged() {
    let (here, there) = (Folder::new(), Folder::new());
    let top = tree(&here);
    let send =
        || run(there.path(), false, vec![sender_of_paths(std::slice::from_ref(&top))], Impairments::delay(100 * US), 1);
    let outcomes = send();
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    let before = snapshot(&there.path().join("tree"));
    fs::write(top.join("run.sh"), "ECHO").unwrap();
    // Existing folders are not refused.
    let outcomes = send();
    assert!(error(&outcomes[1]).contains("44 of 48 files and folders were not sent"), "{outcomes:?}");
    assert!(snapshot(&there.path().join("tree")) == before);
}

#[test]
fn existing_files_of_a_folder_are_refused_and_others_arrive() {
    let (here, there) = (Folder::new(), Folder::new());
    let top = tree(&here);
    fs::create_dir(there.path().join("tree")).unwrap();
    fs::write(there.path().join("tree/big"), "mine").unwrap();
    let outcomes = run(there.path(), false, vec![sender_of_paths(&[top])], Impairments::delay(100 * US), 1);
    assert!(error(&outcomes[1]).contains("1 of 48 files and folders were not sent"), "{outcomes:?}");
    assert!(error(&outcomes[RECEIVER]).contains("1 of the transfer's files and folders were refused"), "{outcomes:?}");
    assert_eq!(fs::read(there.path().join("tree/big")).unwrap(), b"mine");
    assert_eq!(fs::read(there.path().join("tree/run.sh")).unwrap(), b"echo");
}

/// `/proc` and `/sys` state wrong lengths: 0, a page, or none.
#[test]
fn files_without_a_true_length_arrive_whole() {
    let there = Folder::new();
    let paths = ["/proc/version", "/sys/devices/system/cpu/possible", "/proc/sys/net/ipv4/route", "/proc/kallsyms"];
    let outcomes =
        run(there.path(), false, vec![sender_of_paths(&paths.map(PathBuf::from))], Impairments::delay(100 * US), 1);
    // Some of these files are write-only, and the last is longer than a piece.
    assert!(error(&outcomes[1]).contains("files and folders were not sent"), "{outcomes:?}");
    for path in [paths[0], paths[1], "/proc/sys/net/ipv4/route/gc_timeout"] {
        let (name, content) = (Path::new(path).strip_prefix("/proc/sys/net/ipv4").ok(), fs::read(path).unwrap());
        let name = name.unwrap_or(Path::new(path).file_name().unwrap().as_ref());
        assert!(!content.is_empty() && fs::read(there.path().join(name)).unwrap() == content, "{path}");
    }
}

#[test]
//= docs/specs/endpoint.md#END-20 withdraws it
fn a_file_that_becomes_shorter_does_not_affect_others() {
    let there = Folder::new();
    let contents = [content(1000), content(2 * PIECE_BYTES), content(3 * PIECE_BYTES)];
    let files = [("a", 1000), ("short", 3 * PIECE_BYTES), ("b", 3 * PIECE_BYTES)];
    let described = files.map(|(name, bytes)| file(name, bytes));
    let entries = described.clone().map(|Description { path, kind, mode }| Entry {
        path,
        kind,
        mode,
        source: "".into(),
        named: true,
    });
    let opened = described.into_iter().zip(contents.clone());
    let opened =
        opened.map(|(description, content)| Ok((description, Box::new(std::io::Cursor::new(content)) as Source)));
    let outgoing = Outgoing::start_with(opened.collect::<Vec<_>>().into_iter(), Wake::default()).unwrap();
    let tree = Tree { entries: entries.into(), ..Tree::default() };
    let (role, delivered) = counting(Sending::new(tree, outgoing, receiver(), Duration::from_secs(60)));
    let outcomes = run(there.path(), false, vec![role], Impairments::delay(100 * US), 1);
    assert!(error(&outcomes[1]).contains("1 of 3 files and folders were not sent"), "{outcomes:?}");
    assert!(error(&outcomes[RECEIVER]).contains("1 of the transfer's files"), "{outcomes:?}");
    assert_eq!(delivered.get(), 1000 + 3 * PIECE_BYTES);
    for (name, content) in [("a", &contents[0]), ("b", &contents[2])] {
        assert!(fs::read(there.path().join(name)).unwrap() == *content);
    }
    assert_eq!(super::files(&there), 2);
}
