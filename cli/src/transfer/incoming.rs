//! A file that is arriving. It is written beside its final name and renamed once its SHA-256 is right.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::format::{Description, PIECE_BYTES, sha256};
use crate::progress::now;

/// Why a connection's file is refused. The sender sees an abort.
#[derive(Debug)]
pub struct Refusal(pub String);

/// A file on its way in.
#[derive(Debug)]
pub struct Incoming {
    pub description: Description,
    target: PathBuf,
    partial: PathBuf,
    file: File,
    arrived: Vec<bool>,
    pub arrived_bytes: u64,
    pub started: Instant,
}

impl Incoming {
    /// Begins with the sender's first message.
    pub fn begin(message: &[u8], out: &Path, unique: u32) -> Result<Self, Refusal> {
        const MOST_PIECES: u64 = u32::MAX as u64;
        let refusal = |text: &str| Refusal(text.into());
        let description = Description::decode(message).ok_or_else(|| refusal("its first message describes no file"))?;
        if description.pieces() > MOST_PIECES {
            return Err(refusal("the file is too long"));
        }
        let target = target(out, &description.name)?;
        let name = target.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let partial = target.with_file_name(format!(".{name}.{}-{unique}.partial", std::process::id()));
        // Opened for reading too: the SHA-256 is taken of what the file holds.
        let file = File::options().read(true).write(true).create_new(true).open(&partial);
        let file = file.and_then(|file| file.set_len(description.bytes).map(|()| file));
        let file = file.map_err(|error| Refusal(format!("cannot write {}: {error}", partial.display())))?;
        let arrived = vec![false; description.pieces() as usize];
        Ok(Self { description, target, partial, file, arrived, arrived_bytes: 0, started: now() })
    }

    /// Writes the piece in message number `message` (piece `message - 1`). Returns whether the file is whole.
    pub fn place(&mut self, message: u32, data: &[u8]) -> Result<bool, Refusal> {
        let wrong = || Refusal(format!("message {message} of {} bytes is no piece of the file", data.len()));
        let piece = u64::from(message).checked_sub(1).ok_or_else(wrong)?;
        let expected = self.description.piece_bytes(piece);
        let fresh = self.arrived.get_mut(piece as usize).filter(|arrived| !**arrived);
        let arrived = fresh.filter(|_| data.len() as u64 == expected).ok_or_else(wrong)?;
        *arrived = true;
        self.arrived_bytes += expected;
        self.file.write_all_at(data, piece * PIECE_BYTES).map_err(|error| Refusal(format!("cannot write: {error}")))?;
        Ok(self.is_whole())
    }

    /// Whether every piece is here.
    pub fn is_whole(&self) -> bool {
        self.arrived_bytes == self.description.bytes
    }

    /// Takes the SHA-256 of what was written and, if it is right, gives the file its name.
    pub fn finish(&mut self) -> io::Result<([u8; 32], Option<PathBuf>)> {
        let hash = sha256(&File::open(&self.partial)?)?;
        if hash != self.description.sha256 {
            return Ok((hash, None));
        }
        fs::rename(&self.partial, &self.target)?;
        Ok((hash, Some(self.target.clone())))
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // Gone already if it has got its name.
        let _ = fs::remove_file(&self.partial);
    }
}

/// If `out` is a folder, the sender's name is used and must not exist yet. Otherwise `out` is the file.
fn target(out: &Path, name: &str) -> Result<PathBuf, Refusal> {
    if !out.is_dir() {
        return Ok(out.to_path_buf());
    }
    let target = out.join(name);
    if target.exists() { Err(Refusal(format!("{} exists already", target.display()))) } else { Ok(target) }
}

#[cfg(test)]
mod tests {
    use spray_test_support::Folder;

    use super::*;

    fn content() -> Vec<u8> {
        (0..PIECE_BYTES as u32 + 5_000).map(|i| ((i * 7) >> 3) as u8).collect()
    }

    fn announce(content: &[u8]) -> Vec<u8> {
        let description =
            Description { name: "x.bin".into(), bytes: content.len() as u64, sha256: sha256(content).unwrap() };
        description.encode()
    }

    #[test]
    fn pieces_in_any_order_make_the_file() {
        let (dir, content) = (Folder::new(), content());
        let mut incoming = Incoming::begin(&announce(&content), dir.path(), 1).unwrap();
        let (first, second) = content.split_at(PIECE_BYTES as usize);
        assert!(!incoming.place(2, second).unwrap());
        assert!(incoming.place(1, first).unwrap());
        let (_, path) = incoming.finish().unwrap();
        drop(incoming);
        assert_eq!(fs::read(path.unwrap()).unwrap(), content);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn wrong_content_gets_no_name_and_leaves_nothing() {
        let (dir, mut content) = (Folder::new(), content());
        let mut incoming = Incoming::begin(&announce(&content), dir.path(), 1).unwrap();
        content[3] ^= 1;
        let (first, second) = content.split_at(PIECE_BYTES as usize);
        incoming.place(1, first).unwrap();
        incoming.place(2, second).unwrap();
        assert_eq!(incoming.finish().unwrap().1, None);
        drop(incoming);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_does_not_belong_is_refused() {
        let (dir, content) = (Folder::new(), content());
        let mut incoming = Incoming::begin(&announce(&content), dir.path(), 1).unwrap();
        let (first, second) = content.split_at(PIECE_BYTES as usize);
        incoming.place(1, first).unwrap();
        for (message, data) in [(0, first), (1, first), (2, &second[1..]), (3, second), (u32::MAX, second)] {
            assert!(incoming.place(message, data).is_err(), "{message}");
        }
        assert!(Incoming::begin(b"hello", dir.path(), 2).is_err());
        fs::write(dir.path().join("x.bin"), "mine").unwrap();
        assert!(Incoming::begin(&announce(&content), dir.path(), 3).unwrap_err().0.contains("exists already"));
    }
}
