//! Valid and invalid sequences of messages.

use std::fs;

use proptest::prelude::*;
use sha2::{Digest, Sha256};
use spray_test_support::Folder;

use super::super::format::EntryKind;
use super::super::out::Out;
use super::*;

fn file(path: &str, bytes: u64) -> Description {
    Description { path: path.into(), kind: EntryKind::File { bytes }, mode: 0o644 }
}

fn folder(path: &str) -> Description {
    Description { path: path.into(), kind: EntryKind::Folder, mode: 0o755 }
}

fn opener(dir: &Folder) -> Opener {
    Opener::start(Out::new(dir.path()).unwrap()).unwrap()
}

/// Passes the messages, each after the previous entries have begun, and waits until all complete
/// files have ended.
fn run(arrivals: &mut Arrivals, messages: &[Message<'_>]) -> Result<Vec<Answer>, Refusal> {
    let mut answers = Vec::new();
    for message in messages {
        arrivals.on_message(message.encode().into(), &mut answers)?;
        while !arrivals.beginning.is_empty() {
            arrivals.poll(&mut answers);
            std::thread::yield_now();
        }
    }
    while arrivals.files.values().any(Incoming::is_whole) {
        arrivals.poll(&mut answers);
        std::thread::yield_now();
    }
    Ok(answers)
}

#[test]
//= docs/specs/endpoint.md#END-21 in the order of their numbers
fn entries_are_processed_in_order_of_their_numbers() {
    let dir = Folder::new();
    let opener = opener(&dir);
    let mut arrivals = Arrivals::new(0, &opener);
    let sum = Sha256::digest(b"").into();
    let messages = [
        Message::End(3),
        Message::Entry(1, folder("a/b")),
        Message::Entry(2, file("a/b/empty", 0)),
        Message::Entry(0, Description { mode: 0o711, ..folder("a") }),
        Message::Sum { number: 2, sum },
    ];
    assert!(run(&mut arrivals, &messages[..3]).unwrap().is_empty(), "the first is missing");
    assert!(!arrivals.is_complete());
    let answers = run(&mut arrivals, &messages[3..]).unwrap();
    assert_eq!(answers[..2], [Answer::Made { number: 0 }, Answer::Made { number: 1 }]);
    assert_eq!(answers.last(), Some(&Answer::Verified { number: 2, sum }));
    assert!(arrivals.is_complete() && dir.path().join("a/b/empty").is_file());
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(fs::metadata(dir.path().join("a")).unwrap().permissions().mode() & 0o777, 0o711);
}

#[test]
fn a_withdrawn_file_is_removed_and_others_are_received() {
    let dir = Folder::new();
    let opener = opener(&dir);
    let mut arrivals = Arrivals::new(0, &opener);
    let (piece, sum) = (vec![1; 1 << 20], Sha256::digest(b"").into());
    let messages = [
        Message::Entry(0, file("short", 2 << 20)),
        Message::Entry(1, file("empty", 0)),
        Message::Piece { number: 0, index: 0, data: &piece },
        Message::Withdrawn(0),
        Message::Piece { number: 0, index: 1, data: &piece },
        Message::Sum { number: 1, sum },
        Message::End(2),
    ];
    let answers = run(&mut arrivals, &messages).unwrap();
    let reason = "the sender could not read short to its end".into();
    assert!(answers.contains(&Answer::Refused { number: 0, reason }), "{answers:?}");
    assert!(answers.contains(&Answer::Verified { number: 1, sum }) && arrivals.is_complete());
    drop((arrivals, opener));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

/// Entries are created by the opener thread, and answered later.
#[test]
//= docs/specs/endpoint.md#END-28 creates files and folders
fn no_message_waits_for_the_disk() {
    let dir = Folder::new();
    let (jobs, todo) = channel();
    let opener = opener(&dir);
    let mut arrivals = Arrivals { opener: jobs, ..Arrivals::new(0, &opener) };
    let mut answers = Vec::new();
    for entry in [Message::Entry(0, folder("a/b/c")), Message::Entry(1, file("a/x", 5))] {
        arrivals.on_message(entry.encode().into(), &mut answers).unwrap();
        arrivals.poll(&mut answers);
    }
    let kinds = todo.try_iter().map(|job| matches!(job, Job::Begin { number: 0 | 1, .. }));
    assert_eq!((kinds.collect::<Vec<_>>(), answers.len()), (vec![true; 2], 0));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    assert!(arrivals.is_busy() && !arrivals.waits());
}

#[test]
fn a_complete_file_is_kept_though_its_sender_left_early() {
    for is_whole in [true, false] {
        let (dir, (jobs, todo)) = (Folder::new(), channel());
        let opener = opener(&dir);
        let mut arrivals = Arrivals { opener: jobs, ..Arrivals::new(0, &opener) };
        let (mut answers, sum) = (Vec::new(), Sha256::digest(b"five!").into());
        let messages = [
            Message::Entry(0, file("x", 5)),
            Message::End(1),
            Message::Piece { number: 0, index: 0, data: b"five!" },
            Message::Sum { number: 0, sum },
        ];
        for message in &messages[..if is_whole { 4 } else { 3 }] {
            arrivals.on_message(message.encode().into(), &mut answers).unwrap();
        }
        assert!(arrivals.leave().is_empty() && arrivals.is_busy() && !arrivals.is_complete());
        todo.try_iter().for_each(|job| opener.jobs().send(job).unwrap());
        arrivals.opener = opener.jobs();
        while arrivals.is_busy() {
            arrivals.poll(&mut answers);
            std::thread::yield_now();
        }
        assert_eq!(arrivals.is_complete(), is_whole);
        drop((arrivals, opener));
        assert_eq!(
            (dir.path().join("x").exists(), fs::read_dir(dir.path()).unwrap().count()),
            (is_whole, is_whole.into())
        );
    }
}

/// The answer for an existing file does not depend on its length and content.
#[test]
//= docs/specs/endpoint.md#END-22 no file is replaced
fn the_content_of_an_existing_file_is_not_disclosed() {
    for bytes in [5, 6] {
        let dir = Folder::new();
        fs::write(dir.path().join("there"), "mine!").unwrap();
        let opener = opener(&dir);
        let answers = run(&mut Arrivals::new(0, &opener), &[Message::Entry(0, file("there", bytes))]).unwrap();
        assert_eq!(answers, [Answer::Refused { number: 0, reason: "there exists already".into() }]);
        assert_eq!(fs::read(dir.path().join("there")).unwrap(), b"mine!");
    }
}

#[test]
fn one_entry_is_refused_and_others_are_received() {
    let (dir, outside) = (Folder::new(), Folder::new());
    fs::write(dir.path().join("there"), "mine").unwrap();
    std::os::unix::fs::symlink(outside.path(), dir.path().join("link")).unwrap();
    let opener = opener(&dir);
    let mut arrivals = Arrivals::new(0, &opener);
    let sum = Sha256::digest(b"").into();
    let messages = [
        Message::Entry(0, file("there", 5)),
        Message::Entry(1, file("link/x", 0)),
        Message::Entry(2, folder("there/x")),
        Message::Entry(3, file("good", 0)),
        // Refused before.
        Message::Sum { number: 1, sum },
        Message::Sum { number: 3, sum },
        Message::End(4),
    ];
    let answers = run(&mut arrivals, &messages).unwrap();
    let refused = answers.iter().filter(|answer| matches!(answer, Answer::Refused { .. })).count();
    assert_eq!((refused, arrivals.tally.refused, arrivals.tally.kept()), (3, 3, 1), "{answers:?}");
    assert!(arrivals.is_complete());
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    assert_eq!(fs::read(dir.path().join("there")).unwrap(), b"mine");
}

#[test]
//= docs/specs/endpoint.md#END-21 At most 16 described entries
fn too_many_descriptions_at_once_are_refused() {
    let dir = Folder::new();
    let opener = opener(&dir);
    let many =
        |from: u32| (0..=WINDOW as u32).map(move |number| Message::Entry(from + number, file(&number.to_string(), 5)));
    for from in [0, 1, WINDOW as u32, u32::MAX - WINDOW as u32] {
        let messages: Vec<_> = many(from).collect();
        assert!(run(&mut Arrivals::new(0, &opener), &messages).is_err(), "{from}");
    }
    for twice in [[Message::End(1), Message::End(1)], [0, 0].map(|number| Message::Entry(number, folder("a")))] {
        assert!(run(&mut Arrivals::new(0, &opener), &twice).is_err());
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "the folder `a` only");
}

/// Nothing is replaced, no link is followed, and no file gets the rights of another user.
#[test]
//= docs/specs/endpoint.md#END-22 No symbolic link on the way is followed
fn special_names_get_no_special_treatment() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let (dir, outside) = (Folder::new(), Folder::new());
    fs::write(outside.path().join("bashrc"), "theirs").unwrap();
    fs::write(dir.path().join(".profile"), "mine").unwrap();
    for (to, link) in [("bashrc", ".bashrc"), ("missing", ".login"), ("", ".ssh")] {
        symlink(outside.path().join(to), dir.path().join(link)).unwrap();
    }
    let opener = opener(&dir);
    let mut arrivals = Arrivals::new(0, &opener);
    let sum = Sha256::digest(b"").into();
    let names = [".profile", ".bashrc", ".login", ".ssh/authorized_keys", ".zshrc", "tool"];
    let described = names.iter().zip(0..).map(|(name, number)| {
        let length = if *name == ".bashrc" { 6 } else { 0 };
        Message::Entry(number, Description { mode: 0o7777, ..file(name, length) })
    });
    let sums = (0..6).map(|number| Message::Sum { number, sum });
    let answers = run(&mut arrivals, &described.chain(sums).collect::<Vec<_>>()).unwrap();
    let refused = answers.iter().filter_map(|answer| match answer {
        Answer::Refused { number, .. } => Some(*number),
        _ => None,
    });
    assert_eq!(refused.collect::<Vec<_>>(), [0, 1, 2, 3], "{answers:?}");
    assert_eq!(fs::read(dir.path().join(".profile")).unwrap(), b"mine");
    assert_eq!(fs::read(outside.path().join("bashrc")).unwrap(), b"theirs");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    for name in [".zshrc", "tool"] {
        let mode = fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o7000, 0, "{name}: {mode:o}");
    }
}

fn messages() -> impl Strategy<Value = Vec<u8>> {
    let path = proptest::collection::vec(prop_oneof!["a", "b", "link", "\\.\\.", "", "x\u{7}"], 1..4);
    let kind = prop_oneof![
        (0..3 * super::super::format::PIECE_BYTES).prop_map(|bytes| EntryKind::File { bytes }),
        any::<u64>().prop_map(|bytes| EntryKind::File { bytes }),
        Just(EntryKind::Folder),
    ];
    let number = prop_oneof![0u32..4, any::<u32>()];
    let index = prop_oneof![0u64..3, any::<u64>()];
    prop_oneof![
        (number.clone(), path, kind, any::<u16>()).prop_map(|(number, path, kind, mode)| {
            Message::Entry(number, Description { path: path.join("/").into(), kind, mode }).encode()
        }),
        (number.clone(), index, proptest::collection::vec(any::<u8>(), 0..9))
            .prop_map(|(number, index, data)| Message::Piece { number, index, data: &data }.encode()),
        (number.clone(), any::<[u8; 32]>()).prop_map(|(number, sum)| Message::Sum { number, sum }.encode()),
        number.prop_map(|number| Message::End(number).encode()),
        proptest::collection::vec(any::<u8>(), 0..40),
    ]
}

proptest! {
    /// Nothing is written outside of the folder, existing files stay, and no partial file remains.
    #[test]
    fn no_messages_write_outside_of_the_folder(messages in proptest::collection::vec(messages(), 1..30)) {
        let (dir, outside) = (Folder::new(), Folder::new());
        fs::write(dir.path().join("a"), "mine").unwrap();
        std::os::unix::fs::symlink(outside.path(), dir.path().join("link")).unwrap();
        let opener = opener(&dir);
        let (mut arrivals, mut answers) = (Arrivals::new(0, &opener), Vec::new());
        for (at, message) in messages.iter().enumerate() {
            let _ = arrivals.on_message(message.clone().into(), &mut answers);
            prop_assert!(arrivals.files.len() + arrivals.beginning.len() + arrivals.early.len() <= WINDOW);
            while at % 2 == 0 && !arrivals.beginning.is_empty() {
                arrivals.poll(&mut answers);
            }
        }
        drop(arrivals.abandon());
        prop_assert!(!arrivals.is_busy());
        // The opener completes its jobs before it ends.
        let Arrivals { returned, held, opener: jobs, begun, .. } = arrivals;
        drop(jobs);
        drop(opener);
        drop(begun);
        let mut returned: Vec<_> = returned.try_iter().map(Vec::from).collect();
        returned.sort_unstable();
        let mut messages = messages;
        messages.sort_unstable();
        prop_assert!(returned == messages && held == messages.len(), "each message is returned once");
        prop_assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
        prop_assert_eq!(fs::read(dir.path().join("a")).unwrap(), b"mine");
        let left = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let allowed = ["a", "b", "link"].map(std::ffi::OsString::from);
        for name in left {
            prop_assert!(allowed.contains(&name), "{name:?}");
        }
    }
}
