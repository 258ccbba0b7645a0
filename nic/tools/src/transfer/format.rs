//! Wire format of transfers: a header of 16 bytes, then the content.
//!
//! | bytes | content |
//! |---|---|
//! | 0..3 | `SF8`: format and version |
//! | 3 | message type |
//! | 4..8 | number of the entry from 0, big-endian |
//! | 8..16 | length of a file or index of a piece, big-endian |

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// Each piece is one message.
pub const PIECE_BYTES: u64 = 1 << 20;
/// Limit of entries without a verdict.
//= docs/specs/endpoint.md#END-21 At most 16 described entries
pub const WINDOW: usize = 16;
pub const HEADER: usize = 16;
//= docs/specs/endpoint.md#END-21 No message is longer
pub const MESSAGE_BYTES: u64 = HEADER as u64 + PIECE_BYTES;
/// In bytes, on all common file systems.
const MAX_NAME: usize = 255;
/// In bytes, on Linux.
const MAX_PATH: usize = 4096;
/// Each may be a folder to create.
//= docs/specs/endpoint.md#END-22 64 of them at most
const MAX_NAMES: usize = 64;
/// In bytes.
const MAX_REASON: usize = 400;
const MAGIC: &[u8] = b"SF8";
/// Permission bits that are transferred; excludes set-user-ID and the like.
const MODE: u16 = 0o777;

pub type Sum = [u8; 32];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Relative to the receiver's folder, without control characters; not necessarily UTF-8.
    pub path: OsString,
    pub kind: EntryKind,
    pub mode: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    File { bytes: u64 },
    Folder,
}

impl Description {
    pub fn bytes(&self) -> u64 {
        match self.kind {
            EntryKind::File { bytes } => bytes,
            EntryKind::Folder => 0,
        }
    }
}

pub fn pieces(bytes: u64) -> u64 {
    bytes.div_ceil(PIECE_BYTES)
}

/// The length of piece `index` of a file; 0 from [`pieces`] on.
pub fn piece_bytes(bytes: u64, index: u64) -> u64 {
    PIECE_BYTES.min(bytes.saturating_sub(index.saturating_mul(PIECE_BYTES)))
}

/// Whether `path` stays below the folder it is resolved in, and is safe to print on a terminal.
//= docs/specs/endpoint.md#END-22 A path is names joined by `/`
pub fn is_harmless(path: &OsStr) -> bool {
    let is_name = |name: &[u8]| ![&b""[..], b".", b".."].contains(&name) && name.len() <= MAX_NAME;
    let names = || path.as_bytes().split(|&byte| byte == b'/');
    path.len() <= MAX_PATH
        && names().count() <= MAX_NAMES
        && names().all(is_name)
        && !path.to_string_lossy().chars().any(char::is_control)
}

/// `Sum` follows the last piece. `Withdrawn`: the file could not be read. `End`: the number of
/// entries.
//= docs/specs/endpoint.md#END-20 a transfer
#[derive(Debug, PartialEq, Eq)]
pub enum Message<'a> {
    Entry(u32, Description),
    Piece { number: u32, index: u64, data: &'a [u8] },
    Sum { number: u32, sum: Sum },
    Withdrawn(u32),
    End(u32),
}

/// `Ready`: pieces may be sent. `Verified`: the file is on disk under its name, and its written
/// content has this SHA-256. `Ended`: no further entry is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Ready { number: u32 },
    Verified { number: u32, sum: Sum },
    Made { number: u32 },
    Refused { number: u32, reason: String },
    Ended { reason: String },
}

/// Why a receiver refuses something, for the sender and the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub String);

const FILE: u8 = b'f';
const FOLDER: u8 = b'd';
const PIECE: u8 = b'p';
const SUM: u8 = b'=';
const WITHDRAWN: u8 = b'w';
const END: u8 = b'.';
const READY: u8 = b'r';
const VERIFIED: u8 = b'v';
const MADE: u8 = b'm';
const REFUSED: u8 = b'x';
const ENDED: u8 = b'X';

fn header(kind: u8, number: u32, value: u64) -> Vec<u8> {
    [MAGIC, &[kind], &number.to_be_bytes(), &value.to_be_bytes()].concat()
}

fn parse(message: &[u8]) -> Option<(u8, u32, u64, &[u8])> {
    let (head, content) = message.split_first_chunk::<HEADER>()?;
    let (magic, rest) = head.split_at(MAGIC.len());
    let number = u32::from_be_bytes(rest[1..5].try_into().ok()?);
    let value = u64::from_be_bytes(rest[5..].try_into().ok()?);
    (magic == MAGIC).then_some((rest[0], number, value, content))
}

pub fn begin_piece(number: u32, index: u64, capacity: u64) -> Vec<u8> {
    let mut message = Vec::with_capacity(HEADER + capacity as usize);
    message.extend(header(PIECE, number, index));
    message
}

impl Message<'_> {
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Entry(number, Description { path, kind, mode }) => {
                let (kind, bytes) = match *kind {
                    EntryKind::File { bytes } => (FILE, bytes),
                    EntryKind::Folder => (FOLDER, 0),
                };
                [&header(kind, *number, bytes)[..], &mode.to_be_bytes(), path.as_bytes()].concat()
            }
            Self::Piece { number, index, data } => [&header(PIECE, *number, *index)[..], data].concat(),
            Self::Sum { number, sum } => [&header(SUM, *number, 0)[..], sum].concat(),
            Self::Withdrawn(number) => header(WITHDRAWN, *number, 0),
            Self::End(entries) => header(END, *entries, 0),
        }
    }

    /// Decodes a message; `None` if it is malformed or its path is not harmless.
    pub fn decode(message: &[u8]) -> Option<Message<'_>> {
        let (kind, number, value, content) = parse(message)?;
        match kind {
            PIECE => Some(Message::Piece { number, index: value, data: content }),
            SUM => Some(Message::Sum { number, sum: content.try_into().ok()? }),
            WITHDRAWN => content.is_empty().then_some(Message::Withdrawn(number)),
            END => content.is_empty().then_some(Message::End(number)),
            _ => {
                let kind = match kind {
                    FILE => EntryKind::File { bytes: value },
                    FOLDER => EntryKind::Folder,
                    _ => return None,
                };
                let (mode, path) = content.split_first_chunk()?;
                let path = OsStr::from_bytes(path);
                let mode = u16::from_be_bytes(*mode) & MODE;
                is_harmless(path).then(|| Message::Entry(number, Description { path: path.into(), kind, mode }))
            }
        }
    }
}

impl Answer {
    /// Encodes the message, truncating a long reason.
    pub fn encode(&self) -> Vec<u8> {
        let begin = |reason: &str| {
            let mut ends = (0..=MAX_REASON.min(reason.len())).rev();
            let end = ends.find(|&end| reason.is_char_boundary(end)).unwrap_or(0);
            reason.as_bytes()[..end].to_vec()
        };
        match self {
            Self::Ready { number } => header(READY, *number, 0),
            Self::Verified { number, sum } => [&header(VERIFIED, *number, 0)[..], sum].concat(),
            Self::Made { number } => header(MADE, *number, 0),
            Self::Refused { number, reason } => [header(REFUSED, *number, 0), begin(reason)].concat(),
            Self::Ended { reason } => [header(ENDED, 0, 0), begin(reason)].concat(),
        }
    }

    /// Decodes a message; `None` if malformed. The reason is safe to print.
    pub fn decode(message: &[u8]) -> Option<Self> {
        let (kind, number, _, content) = parse(message)?;
        let reason = || {
            let short = content.get(..content.len().min(MAX_REASON)).unwrap_or_default();
            readable(&String::from_utf8_lossy(short).replace(char::is_control, " "))
        };
        Some(match kind {
            READY if content.is_empty() => Self::Ready { number },
            VERIFIED => Self::Verified { number, sum: content.try_into().ok()? },
            MADE => Self::Made { number },
            REFUSED => Self::Refused { number, reason: reason() },
            ENDED => Self::Ended { reason: reason() },
            _ => return None,
        })
    }
}

pub fn shown(path: impl AsRef<OsStr>) -> String {
    readable(&path.as_ref().to_string_lossy())
}

/// Escapes marks that change the writing direction, by which one name could look like another.
fn readable(text: &str) -> String {
    let is_mark =
        |c| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut readable = String::with_capacity(text.len());
    for c in text.chars() {
        if is_mark(c) { readable.extend(c.escape_unicode()) } else { readable.push(c) }
    }
    readable
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sha2::{Digest, Sha256};

    use super::*;

    fn entry(path: &[u8], kind: EntryKind) -> Description {
        Description { path: OsStr::from_bytes(path).into(), kind, mode: 0o640 }
    }

    fn round_trip(description: Description) {
        let message = Message::Entry(7, description.clone()).encode();
        assert_eq!(Message::decode(&message), Some(Message::Entry(7, description)));
    }

    #[test]
    fn descriptions_round_trip() {
        let bytes = 3 * PIECE_BYTES + 7;
        for kind in [EntryKind::File { bytes }, EntryKind::Folder] {
            round_trip(entry(b"a folder/a file.bin", kind));
        }
        assert_eq!((pieces(bytes), piece_bytes(bytes, 2), piece_bytes(bytes, 3)), (4, PIECE_BYTES, 7));
        assert_eq!((piece_bytes(bytes, 4), piece_bytes(bytes, u64::MAX), pieces(0)), (0, 0, 0));
    }

    #[test]
    fn names_are_sent_as_bytes_up_to_the_maximum_length() {
        for path in [&b"caf\xe9.bin"[..], &[0xff; 255], &[b'n'; 255], "längere/Namen".as_bytes()] {
            round_trip(entry(path, EntryKind::File { bytes: 1 }));
        }
        for path in [&[b'n'; 256][..], &b"n/".repeat(3000)] {
            assert!(!is_harmless(OsStr::from_bytes(path)));
        }
    }

    #[test]
    //= docs/specs/endpoint.md#END-22 64 of them at most
    fn deep_paths_are_refused() {
        for (names, is_taken) in [(64, true), (65, false), (2040, false)] {
            assert_eq!(is_harmless(OsStr::new(&vec!["n"; names].join("/"))), is_taken, "{names}");
        }
    }

    #[test]
    fn a_displayed_name_cannot_look_like_another() {
        assert_eq!(shown(OsStr::new("längere/Namen")), "längere/Namen");
        assert_eq!(shown(OsStr::new("a\u{202e}gpj.exe")), "a\\u{202e}gpj.exe");
        assert_eq!(shown(OsStr::from_bytes(b"caf\xe9")), "caf\u{fffd}");
    }

    #[test]
    //= docs/specs/endpoint.md#END-22 A path is names joined by `/`
    fn unsafe_paths_are_refused() {
        for path in [
            &b"../x"[..],
            b"/etc/passwd",
            b"..",
            b".",
            b"",
            b"a//b",
            b"a/",
            b"a/../b",
            b"a/./b",
            b"a/..",
            b"a\0b",
            b"a\nb",
            b"a/\x1b[2Jb",
            b"a\xc2\x9bb",
        ] {
            let message = Message::Entry(0, entry(path, EntryKind::Folder)).encode();
            assert_eq!(Message::decode(&message), None, "{path:?}");
        }
    }

    #[test]
    fn no_bits_travel_that_give_another_users_rights() {
        let message = Message::Entry(0, Description { mode: 0o7755, ..entry(b"x", EntryKind::Folder) }).encode();
        let Some(Message::Entry(0, description)) = Message::decode(&message) else { panic!("an entry") };
        assert_eq!(description.mode, 0o755);
    }

    #[test]
    fn anything_else_is_no_message() {
        let sum = Message::Sum { number: 1, sum: [3; 32] }.encode();
        for message in [&b""[..], b"spray-file 3\n", b"SF8", &[0xff; 80], &sum[..47], &[&sum[..], b"x"].concat()] {
            assert_eq!(Message::decode(message), None);
            assert_eq!(Answer::decode(message), None);
        }
    }

    #[test]
    fn pieces_sums_and_answers_round_trip() {
        let sum: Sum = Sha256::digest(b"abc").into();
        assert_eq!(hex(&sum), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        for said in [Message::Piece { number: 3, index: 1 << 40, data: b"abc" }, Message::Sum { number: 3, sum }] {
            assert_eq!(Message::decode(&said.encode()), Some(said));
        }
        let mut piece = begin_piece(3, 1 << 40, 3);
        piece.extend(b"abc");
        assert_eq!(piece, Message::Piece { number: 3, index: 1 << 40, data: b"abc" }.encode());
        for message in [Message::Withdrawn(3), Message::End(9)] {
            assert_eq!(Message::decode(&message.encode()), Some(message));
        }
        for answer in [
            Answer::Ready { number: 1 },
            Answer::Verified { number: 1, sum },
            Answer::Made { number: 2 },
            Answer::Refused { number: 1, reason: "x exists already".into() },
            Answer::Ended { reason: "no more".into() },
        ] {
            assert_eq!(Answer::decode(&answer.encode()), Some(answer));
        }
    }

    #[test]
    fn a_reason_is_short_and_safe_to_print() {
        let long = Answer::Ended { reason: "é".repeat(1000) }.encode();
        assert_eq!(Answer::decode(&long), Some(Answer::Ended { reason: "é".repeat(MAX_REASON / 2) }));
        let hostile = [&header(ENDED, 0, 0)[..], b"\x1b[31mred\xff"].concat();
        assert_eq!(Answer::decode(&hostile), Some(Answer::Ended { reason: " [31mred\u{fffd}".into() }));
    }

    proptest! {
        /// No decoded entry leaves its folder.
        #[test]
        //= docs/specs/endpoint.md#END-22 A path is names joined by `/`
        fn no_bytes_describe_anything_outside(
            kind in prop_oneof![Just(FILE), Just(FOLDER), any::<u8>()],
            content in proptest::collection::vec(prop_oneof![Just(b'/'), Just(b'.'), Just(b'a'), any::<u8>()], 0..12),
        ) {
            use std::path::Component;
            let message = [header(kind, 0, 1), content].concat();
            if let Some(Message::Entry(0, Description { path, mode, .. })) = Message::decode(&message) {
                let names: Vec<_> = std::path::Path::new(&path).components().collect();
                prop_assert!(!names.is_empty() && mode <= 0o777);
                prop_assert!(names.iter().all(|name| matches!(name, Component::Normal(_))));
            }
        }
    }
}
