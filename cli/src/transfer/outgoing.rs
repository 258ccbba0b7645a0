//! A file that is being sent. A thread of its own reads and hashes it, so that the thread that polls the network waits for neither.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::format::{Description, Sum};
use crate::failure::{Failure, Outcome};

/// Pieces that are read ahead.
const READ_AHEAD: usize = 4;

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub enum Part {
    Piece(Bytes),
    /// After the last piece.
    Sum(Sum),
}

/// A file that is being read.
#[derive(Debug)]
pub struct Outgoing {
    pub description: Description,
    parts: Receiver<io::Result<Part>>,
}

impl Outgoing {
    /// Opens the file and begins to read it.
    ///
    /// # Errors
    /// 2 when it cannot be read, or is no file.
    pub fn open(path: &Path) -> Outcome<Self> {
        let unreadable = |error: io::Error| Failure::refused(format!("cannot read {}: {error}", path.display()));
        let file = File::open(path).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        let name = path.file_name().filter(|_| metadata.is_file());
        let name = name.ok_or_else(|| Failure::refused(format!("{} is not a file", path.display())))?;
        let description = Description { name: name.into(), bytes: metadata.len() };
        if Description::decode(&description.encode()).is_none() {
            return Err(Failure::refused(format!(
                "{name:?} has control characters in its name, which a receiver refuses; rename it"
            )));
        }
        Self::start(file, description).map_err(unreadable)
    }

    /// Reads what `description` says from `file`.
    pub fn start(file: impl Read + Send + 'static, description: Description) -> io::Result<Self> {
        let (parts_out, parts) = sync_channel(READ_AHEAD);
        let described = description.clone();
        std::thread::Builder::new().name("spray-file".into()).spawn(move || {
            if let Err(error) = read(file, &described, &parts_out) {
                // Without a receiver the transfer has ended already.
                let _ = parts_out.send(Err(error));
            }
        })?;
        Ok(Self { description, parts })
    }

    /// The next part, if it has been read; nothing after the sum.
    ///
    /// # Errors
    /// 1 when the file cannot be read to the length that it had.
    pub fn next(&mut self) -> Outcome<Option<Part>> {
        match self.parts.try_recv() {
            Ok(part) => part
                .map(Some)
                .map_err(|error| Failure::failed(format!("the file could not be read to its end: {error}"))),
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => Ok(None),
        }
    }
}

fn read(mut file: impl Read, description: &Description, parts: &SyncSender<io::Result<Part>>) -> io::Result<()> {
    let mut hasher = Sha256::new();
    for index in 0..description.pieces() {
        let mut piece = vec![0; description.piece_bytes(index) as usize];
        file.read_exact(&mut piece)?;
        hasher.update(&piece);
        if parts.send(Ok(Part::Piece(piece.into()))).is_err() {
            return Ok(());
        }
    }
    let _ = parts.send(Ok(Part::Sum(hasher.finalize().into())));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::format::PIECE_BYTES;
    use super::*;

    fn parts(content: Vec<u8>, bytes: u64) -> Outcome<Vec<Part>> {
        let description = Description { name: "x".into(), bytes };
        let mut outgoing = Outgoing::start(io::Cursor::new(content), description).unwrap();
        let mut parts = Vec::new();
        while !matches!(parts.last(), Some(Part::Sum(_))) {
            parts.extend(outgoing.next()?);
            std::thread::yield_now();
        }
        Ok(parts)
    }

    #[test]
    fn pieces_come_in_order_and_then_their_sum() {
        let content: Vec<u8> = (0..9 * PIECE_BYTES + 3).map(|n| (n >> 8) as u8).collect();
        let parts = parts(content.clone(), content.len() as u64).unwrap();
        let (sum, pieces) = parts.split_last().unwrap();
        assert_eq!(*sum, Part::Sum(Sha256::digest(&content).into()));
        let piece = |part: &Part| if let Part::Piece(piece) = part { piece.to_vec() } else { panic!("a second sum") };
        assert_eq!(pieces.len(), 10);
        assert!(pieces.iter().map(piece).collect::<Vec<_>>().concat() == content);
    }

    #[test]
    fn a_file_that_has_become_shorter_is_an_error() {
        assert!(parts(vec![0; 5], 6).unwrap_err().to_string().contains("could not be read to its end"));
        assert_eq!(parts(vec![0; 9], 0).unwrap(), [Part::Sum(Sha256::digest([]).into())]);
    }
}
