//! Reads and writes of a peer's memory (`FI_RMA`), as messages: a request, and an answer once it is carried out.
//!
//! A request and an answer are [`Header::remote`](super::header::Header) messages; after the header comes a [`Call`], then the bytes of a write or of
//! an answer to a read.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::buffers::Buffers;
use crate::error::Errno;

/// Bytes of a [`Call`].
pub const BYTES: usize = 40;

/// What a request asks for, or an answer answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// To read.
    Read,
    /// To write.
    Write,
    /// A request was carried out, or not.
    Answer,
}

/// A request, or an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Which.
    pub kind: Kind,
    /// Of an answer: why nothing was done; 0: all was.
    pub errno: u32,
    /// The request's number, which its answer has too.
    pub number: u64,
    /// The key of the peer's memory.
    pub key: u64,
    /// Where in it.
    pub offset: u64,
    /// How many bytes.
    pub len: u64,
}

impl Call {
    /// As it goes over the network: little-endian.
    #[must_use]
    pub fn write(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[0] = self.kind as u8;
        bytes[4..8].copy_from_slice(&self.errno.to_le_bytes());
        for (at, value) in [(8, self.number), (16, self.key), (24, self.offset), (32, self.len)] {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    /// That of a message behind its header, and what follows; `None` where there is none.
    #[must_use]
    pub fn read(message: &[u8]) -> Option<(Self, &[u8])> {
        let (bytes, data) = message.split_first_chunk::<BYTES>()?;
        let kind = [Kind::Read, Kind::Write, Kind::Answer].into_iter().find(|kind| *kind as u8 == bytes[0])?;
        let number = |at: usize| bytes[at..at + 8].try_into().map(u64::from_le_bytes).ok();
        let errno = bytes[4..8].try_into().map(u32::from_le_bytes).ok()?;
        let call = Self { kind, errno, number: number(8)?, key: number(16)?, offset: number(24)?, len: number(32)? };
        // Only a write, and the answer to a read, bring bytes, and they say how many.
        let brings = if kind == Kind::Read || errno != 0 { 0 } else { call.len };
        (bytes[1..4] == [0; 3] && (data.len() as u64 == brings || kind == Kind::Answer && data.is_empty()))
            .then_some((call, data))
    }
}

/// Memory that peers may read or write.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// The memory.
    pub buffers: Buffers,
    /// The address of its first byte, as peers name it.
    pub base: u64,
    /// Whether peers may read it, and write it.
    pub access: [bool; 2],
}

/// What a domain's application lets peers read and write, by key.
#[derive(Debug, Default)]
pub struct Regions(Mutex<HashMap<u64, Region>>);

impl Regions {
    /// Adds a region; whether its key was free.
    pub fn insert(&self, key: u64, region: Region) -> bool {
        let mut regions = self.lock();
        let is_free = !regions.contains_key(&key);
        if is_free {
            regions.insert(key, region);
        }
        is_free
    }

    /// A key that no region has, and no peer can guess.
    ///
    /// # Errors
    /// When the operating system gives no random numbers.
    pub fn free_key(&self) -> Result<u64, Errno> {
        let regions = self.lock();
        loop {
            let key = getrandom::u64().map_err(|_| Errno(libc::EIO))?;
            // The largest stands for no key (`FI_KEY_NOTAVAIL`).
            if key != u64::MAX && !regions.contains_key(&key) {
                return Ok(key);
            }
        }
    }

    /// Takes a region away. Nobody is at its memory any more when this returns.
    pub fn remove(&self, key: u64) {
        self.lock().remove(&key);
    }

    /// Copies what a read asks for.
    ///
    /// # Errors
    /// When there is no such memory, or it may not be read.
    pub fn read(&self, call: &Call, to: &mut [u8]) -> Result<(), Errno> {
        self.with(call, to.len(), 0, |buffers| buffers.read(0, to))
    }

    /// Carries out a write.
    ///
    /// # Errors
    /// When there is no such memory, or it may not be written.
    pub fn write(&self, call: &Call, from: &[u8]) -> Result<(), Errno> {
        self.with(call, from.len(), 1, |buffers| {
            buffers.write(from);
        })
    }

    /// Whether what a read asks for is there.
    ///
    /// # Errors
    /// As of [`read`](Self::read).
    pub fn check_read(&self, call: &Call) -> Result<(), Errno> {
        self.with(call, usize::try_from(call.len).map_err(|_| Errno::INVALID)?, 0, |_| ())
    }

    fn with(&self, call: &Call, len: usize, access: usize, work: impl FnOnce(Buffers)) -> Result<(), Errno> {
        let regions = self.lock();
        let region = regions.get(&call.key).filter(|region| region.access[access]).ok_or(Errno(libc::EACCES))?;
        let offset = call.offset.checked_sub(region.base).and_then(|offset| usize::try_from(offset).ok());
        let fits = offset.filter(|offset| region.buffers.bytes().checked_sub(*offset).is_some_and(|room| len <= room));
        work(region.buffers.behind(fits.ok_or(Errno(libc::EACCES))?));
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Region>> {
        // What may panic leaves the map whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_of_the_provider_cannot_be_guessed_from_others() {
        let regions = Regions::default();
        let keys: Vec<u64> = (0..64).map(|_| regions.free_key().unwrap()).collect();
        let upper: std::collections::BTreeSet<u64> = keys.iter().map(|key| key >> 32).collect();
        assert_eq!(upper.len(), keys.len(), "random over all 64 bits: {keys:x?}");
    }

    fn kinds() -> impl Strategy<Value = Kind> {
        prop_oneof![Just(Kind::Read), Just(Kind::Write), Just(Kind::Answer)]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            kind in kinds(), errno: bool, number: u64, key: u64, offset: u64, data in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let errno = u32::from(errno && kind == Kind::Answer);
            let data = if kind == Kind::Read || errno != 0 { vec![] } else { data };
            let call = Call { kind, errno, number, key, offset, len: data.len() as u64 };
            let message = [&call.write()[..], &data].concat();
            prop_assert_eq!(Call::read(&message), Some((call, &data[..])));
        }

        #[test]
        fn whatever_comes_is_a_call_or_none(bytes in prop::collection::vec(any::<u8>(), 0..90), begins: bool) {
            let mut bytes = bytes;
            if begins && bytes.len() > 8 {
                let kind = bytes[0] % 4;
                bytes[..8].copy_from_slice(&[kind, 0, 0, 0, 0, 0, 0, 0]);
            }
            if let Some((call, data)) = Call::read(&bytes) {
                prop_assert_eq!(&[&call.write()[..], data].concat(), &bytes);
            }
        }
    }
}
