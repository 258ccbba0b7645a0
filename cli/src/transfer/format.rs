//! How a file travels in messages: its description, its pieces in any order, their SHA-256, and back the receiver's verdict.
//!
//! Message 0 is the description; the sender waits until it is delivered, so that nothing overtakes it. Message `i + 1` is piece `i`.
//! The message after the last piece is the SHA-256, which the sender takes while it reads.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Bytes of a piece. Each piece is one message, and the receiver holds a few of them in memory.
pub const PIECE_BYTES: u64 = 1 << 20;
/// Longest name of a file, in bytes, on every usual file system.
const MAX_NAME: usize = 255;
/// Most bytes of a refusal's reason.
const MAX_REASON: usize = 400;
const MAGIC: &str = "spray-file 2\n";
const SUM: &str = "spray-sum 1\n";
const VERIFIED: &str = "spray-verdict 2\nverified ";
const REFUSED: &str = "spray-verdict 2\nrefused ";

/// A file's SHA-256.
pub type Sum = [u8; 32];

/// A file, as the sender describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The file's name, without any folder. Any bytes that a file system takes, control characters left out.
    pub name: OsString,
    pub bytes: u64,
}

impl Description {
    /// The message.
    pub fn encode(&self) -> Vec<u8> {
        [format!("{MAGIC}{}\n", self.bytes).as_bytes(), self.name.as_bytes()].concat()
    }

    /// Reads a message; `None` for anything but a description with a harmless file name.
    pub fn decode(message: &[u8]) -> Option<Self> {
        let mut lines = message.strip_prefix(MAGIC.as_bytes())?.splitn(2, |&byte| byte == b'\n');
        let bytes = std::str::from_utf8(lines.next()?).ok()?.parse().ok()?;
        let name = lines.next().map(OsStr::from_bytes).filter(|name| is_harmless(name))?;
        Some(Self { name: name.into(), bytes })
    }

    /// How many pieces there are.
    pub fn pieces(&self) -> u64 {
        self.bytes.div_ceil(PIECE_BYTES)
    }

    /// Bytes of piece `index`; 0 from [`Description::pieces`] on.
    pub fn piece_bytes(&self, index: u64) -> u64 {
        PIECE_BYTES.min(self.bytes.saturating_sub(index.saturating_mul(PIECE_BYTES)))
    }
}

/// Whether `name` can only be a file in the folder that the receiver chose, and does nothing to a terminal.
fn is_harmless(name: &OsStr) -> bool {
    let plain = name.to_string_lossy().chars().all(|c| c != '/' && !c.is_control());
    plain && ![&b""[..], b".", b".."].contains(&name.as_bytes()) && name.len() <= MAX_NAME
}

/// The sender's last message: the SHA-256 of all pieces.
pub fn encode_sum(sum: &Sum) -> Vec<u8> {
    format!("{SUM}{}\n", hex(sum)).into_bytes()
}

/// Reads the sender's SHA-256.
pub fn decode_sum(message: &[u8]) -> Option<Sum> {
    unhex(message.strip_prefix(SUM.as_bytes())?.strip_suffix(b"\n")?)
}

/// What the receiver says at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The file is on the disk under its name, and this is the SHA-256 of what was written.
    Verified(Sum),
    /// The receiver does not take the file, for this reason.
    Refused(String),
}

impl Verdict {
    /// The message. Of a long reason only the beginning is told.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Verified(sum) => format!("{VERIFIED}{}\n", hex(sum)).into_bytes(),
            Self::Refused(reason) => {
                let mut ends = (0..=MAX_REASON.min(reason.len())).rev();
                let end = ends.find(|&end| reason.is_char_boundary(end)).unwrap_or(0);
                format!("{REFUSED}{}\n", &reason[..end]).into_bytes()
            }
        }
    }

    /// Reads a message; `None` for anything else. The reason is safe to print.
    pub fn decode(message: &[u8]) -> Option<Self> {
        if let Some(sum) = message.strip_prefix(VERIFIED.as_bytes()) {
            return unhex(sum.strip_suffix(b"\n")?).map(Self::Verified);
        }
        let reason = message.strip_prefix(REFUSED.as_bytes())?.strip_suffix(b"\n")?;
        let reason = reason.get(..reason.len().min(MAX_REASON))?;
        Some(Self::Refused(OsString::from_vec(reason.to_vec()).to_string_lossy().replace(char::is_control, " ")))
    }
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &[u8]) -> Option<Sum> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let digit = |digit: u8| char::from(digit).to_digit(16).unwrap_or(0) as u8;
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0]) << 4 | digit(pair[1]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    fn description(name: &[u8], bytes: u64) -> Description {
        Description { name: OsStr::from_bytes(name).into(), bytes }
    }

    #[test]
    fn descriptions_round_trip() {
        let sent = description(b"a file.bin", 3 * PIECE_BYTES + 7);
        assert_eq!(Description::decode(&sent.encode()), Some(sent.clone()));
        assert_eq!((sent.pieces(), sent.piece_bytes(2), sent.piece_bytes(3)), (4, PIECE_BYTES, 7));
        assert_eq!((sent.piece_bytes(4), sent.piece_bytes(u64::MAX)), (0, 0));
        assert_eq!(description(b"empty", 0).pieces(), 0);
    }

    #[test]
    fn names_travel_as_bytes_up_to_the_longest_that_file_systems_take() {
        for name in [&b"caf\xe9.bin"[..], &[0xff; 255], &[b'n'; 255], "längere Namen".as_bytes()] {
            let sent = description(name, 1);
            assert_eq!(Description::decode(&sent.encode()), Some(sent));
        }
        assert_eq!(Description::decode(&description(&[b'n'; 256], 1).encode()), None);
    }

    #[test]
    fn names_that_could_leave_the_folder_or_command_a_terminal_are_refused() {
        for name in [&b"../x"[..], b"/etc/passwd", b"..", b".", b"", b"a\0b", b"a\nb", b"a\x1b[2Jb", b"a\xc2\x9bb"] {
            assert_eq!(Description::decode(&description(name, 1).encode()), None, "{name:?}");
        }
    }

    #[test]
    fn anything_else_is_no_description() {
        for message in [&b""[..], b"spray-file 2\n", b"spray-file 1\n1\nff\nx\n", &[0xff; 80], &[b'a'; 9000]] {
            assert_eq!(Description::decode(message), None);
        }
    }

    #[test]
    fn sums_and_verdicts_round_trip() {
        let sum: Sum = Sha256::digest(b"abc").into();
        assert_eq!(hex(&sum), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(decode_sum(&encode_sum(&sum)), Some(sum));
        assert_eq!(decode_sum(b"spray-sum 1\nzz\n"), None);
        for verdict in [Verdict::Verified(sum), Verdict::Refused("x exists already".into())] {
            assert_eq!(Verdict::decode(&verdict.encode()), Some(verdict));
        }
        assert_eq!(Verdict::decode(b"spray-verdict 2\nverified zz\n"), None);
    }

    #[test]
    fn a_reason_is_short_and_safe_to_print() {
        let Some(Verdict::Refused(long)) = Verdict::decode(&Verdict::Refused("é".repeat(1000)).encode()) else {
            panic!("a refusal")
        };
        assert_eq!(long, "é".repeat(MAX_REASON / 2));
        let hostile = [REFUSED.as_bytes(), b"\x1b[31mred\xff\n"].concat();
        assert_eq!(Verdict::decode(&hostile), Some(Verdict::Refused(" [31mred\u{fffd}".into())));
    }
}
