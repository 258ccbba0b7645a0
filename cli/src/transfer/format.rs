//! How a file travels in messages: its description, then its pieces in any order, then the receiver's SHA-256 of them.

use sha2::{Digest, Sha256};

/// Bytes of a piece. Each piece is one message, and the receiver holds a few of them in memory.
pub const PIECE_BYTES: u64 = 1 << 20;
/// Most bytes of a description.
const MAX_DESCRIPTION: usize = 4096;
const MAGIC: &str = "spray-file 1";
const VERDICT: &str = "spray-verdict 1";

/// A file, as the sender describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The file's name, without any folder.
    pub name: String,
    pub bytes: u64,
    pub sha256: [u8; 32],
}

impl Description {
    /// The message.
    pub fn encode(&self) -> Vec<u8> {
        format!("{MAGIC}\n{}\n{}\n{}\n", self.bytes, hex(&self.sha256), self.name).into_bytes()
    }

    /// Reads a message; `None` for anything but a description with a harmless file name.
    pub fn decode(message: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(message).ok().filter(|text| text.len() <= MAX_DESCRIPTION)?;
        let mut lines = text.strip_suffix('\n')?.splitn(4, '\n');
        let is_ours = lines.next() == Some(MAGIC);
        let bytes = lines.next()?.parse().ok()?;
        let sha256 = unhex(lines.next()?)?;
        let name = lines.next().filter(|name| is_harmless(name))?;
        is_ours.then(|| Self { name: name.into(), bytes, sha256 })
    }

    /// How many pieces there are.
    pub fn pieces(&self) -> u64 {
        self.bytes.div_ceil(PIECE_BYTES)
    }

    /// Bytes of piece `index`, below [`Description::pieces`].
    pub fn piece_bytes(&self, index: u64) -> u64 {
        PIECE_BYTES.min(self.bytes.saturating_sub(index * PIECE_BYTES))
    }
}

/// What the receiver says at the end: the SHA-256 of what it wrote.
pub fn encode_verdict(sha256: &[u8; 32]) -> Vec<u8> {
    format!("{VERDICT}\n{}\n", hex(sha256)).into_bytes()
}

/// Reads the receiver's SHA-256.
pub fn decode_verdict(message: &[u8]) -> Option<[u8; 32]> {
    let text = std::str::from_utf8(message).ok()?;
    unhex(text.strip_prefix(VERDICT)?.strip_prefix('\n')?.strip_suffix('\n')?)
}

/// Whether `name` can only be a file in the folder that the receiver chose.
fn is_harmless(name: &str) -> bool {
    let plain = name.chars().all(|c| c != '/' && c != '\0' && !c.is_control());
    plain && !matches!(name, "" | "." | "..") && name.len() <= 255
}

/// The SHA-256 of everything in `reader`.
///
/// # Errors
/// When it cannot be read.
pub fn sha256(mut reader: impl std::io::Read) -> std::io::Result<[u8; 32]> {
    let mut hasher = Sha256::new();
    std::io::copy(&mut reader, &mut hasher)?;
    Ok(hasher.finalize().into())
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(name: &str, bytes: u64) -> Description {
        Description { name: name.into(), bytes, sha256: sha256(&b"abc"[..]).unwrap() }
    }

    #[test]
    fn descriptions_round_trip() {
        let sent = description("a file.bin", 3 * PIECE_BYTES + 7);
        assert_eq!(Description::decode(&sent.encode()), Some(sent.clone()));
        assert_eq!((sent.pieces(), sent.piece_bytes(2), sent.piece_bytes(3)), (4, PIECE_BYTES, 7));
        assert_eq!(description("empty", 0).pieces(), 0);
    }

    #[test]
    fn names_that_could_leave_the_folder_are_refused() {
        for name in ["../x", "/etc/passwd", "..", "", "a\0b", "a\nb"] {
            assert_eq!(Description::decode(&description(name, 1).encode()), None, "{name:?}");
        }
    }

    #[test]
    fn anything_else_is_no_description() {
        for message in [&b""[..], b"spray-file 1\n", b"spray-file 2\n1\nff\nx\n", &[0xff; 80], &[b'a'; 9000]] {
            assert_eq!(Description::decode(message), None);
        }
    }

    #[test]
    fn verdicts_round_trip_and_known_hash_is_right() {
        let hash = sha256(&b"abc"[..]).unwrap();
        assert_eq!(hex(&hash), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(decode_verdict(&encode_verdict(&hash)), Some(hash));
        assert_eq!(decode_verdict(b"spray-verdict 1\nzz\n"), None);
    }
}
