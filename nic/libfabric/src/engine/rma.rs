//! RMA messages, with [`Header::remote`](super::header::Header): a request or its answer as a
//! [`RmaHeader`], then the data of a write or of the answer to a read.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::buffers::Buffers;
use crate::error::Errno;

pub const BYTES: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write,
    Answer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RmaHeader {
    pub kind: Kind,
    /// In an answer: the error, or 0.
    pub errno: u32,
    /// Number of the request, repeated in the answer.
    pub number: u64,
    pub key: u64,
    pub offset: u64,
    pub len: u64,
}

impl RmaHeader {
    pub fn write(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[0] = self.kind as u8;
        bytes[4..8].copy_from_slice(&self.errno.to_le_bytes());
        for (at, value) in [(8, self.number), (16, self.key), (24, self.offset), (32, self.len)] {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    /// Decodes a call, and returns the data that follows; `None` if malformed.
    pub fn read(message: &[u8]) -> Option<(Self, &[u8])> {
        let (bytes, data) = message.split_first_chunk::<BYTES>()?;
        let kind = [Kind::Read, Kind::Write, Kind::Answer].into_iter().find(|kind| *kind as u8 == bytes[0])?;
        let number = |at: usize| bytes[at..at + 8].try_into().map(u64::from_le_bytes).ok();
        let errno = bytes[4..8].try_into().map(u32::from_le_bytes).ok()?;
        let call = Self { kind, errno, number: number(8)?, key: number(16)?, offset: number(24)?, len: number(32)? };
        // Only a write and the answer to a read have data, of the length that they state.
        let brings = if kind == Kind::Read || errno != 0 { 0 } else { call.len };
        (bytes[1..4] == [0; 3] && (data.len() as u64 == brings || kind == Kind::Answer && data.is_empty()))
            .then_some((call, data))
    }
}

/// Memory that peers may access.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    pub buffers: Buffers,
    /// The offset of the first byte in requests.
    pub base: u64,
    /// Whether peers may read and write.
    pub access: [bool; 2],
}

#[derive(Debug, Default)]
pub struct Regions(Mutex<HashMap<u64, Region>>);

impl Regions {
    /// Adds a region. Returns false if the key is in use.
    pub fn insert(&self, key: u64, region: Region) -> bool {
        let mut regions = self.lock();
        let is_free = !regions.contains_key(&key);
        if is_free {
            regions.insert(key, region);
        }
        is_free
    }

    /// Returns an unused random key. Fails if the operating system has no random numbers.
    pub fn free_key(&self) -> Result<u64, Errno> {
        let regions = self.lock();
        loop {
            let key = getrandom::u64().map_err(|_| Errno(libc::EIO))?;
            // The maximum is `FI_KEY_NOTAVAIL`.
            if key != u64::MAX && !regions.contains_key(&key) {
                return Ok(key);
            }
        }
    }

    /// Removes a region. Its memory is not in use any more after the return.
    pub fn remove(&self, key: u64) {
        self.lock().remove(&key);
    }

    /// Fails if the memory is not registered or not readable.
    pub fn read(&self, call: &RmaHeader, to: &mut [u8]) -> Result<(), Errno> {
        self.with(call, to.len(), 0, |buffers| buffers.read(0, to))
    }

    /// Fails if the memory is not registered or not writable.
    pub fn write(&self, call: &RmaHeader, from: &[u8]) -> Result<(), Errno> {
        self.with(call, from.len(), 1, |buffers| {
            buffers.write(from);
        })
    }

    /// Checks a read request without copying.
    pub fn check_read(&self, call: &RmaHeader) -> Result<(), Errno> {
        self.with(call, usize::try_from(call.len).map_err(|_| Errno::INVALID)?, 0, |_| ())
    }

    fn with(&self, call: &RmaHeader, len: usize, access: usize, work: impl FnOnce(Buffers)) -> Result<(), Errno> {
        let regions = self.lock();
        let region = regions.get(&call.key).filter(|region| region.access[access]).ok_or(Errno(libc::EACCES))?;
        let offset = call.offset.checked_sub(region.base).and_then(|offset| usize::try_from(offset).ok());
        let fits = offset.filter(|offset| region.buffers.bytes().checked_sub(*offset).is_some_and(|room| len <= room));
        work(region.buffers.skip(fits.ok_or(Errno(libc::EACCES))?));
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Region>> {
        // A panic cannot leave the map inconsistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn provider_keys_are_random() {
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
        fn calls_round_trip(
            kind in kinds(), errno: bool, number: u64, key: u64, offset: u64, data in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let errno = u32::from(errno && kind == Kind::Answer);
            let data = if kind == Kind::Read || errno != 0 { vec![] } else { data };
            let call = RmaHeader { kind, errno, number, key, offset, len: data.len() as u64 };
            let message = [&call.write()[..], &data].concat();
            prop_assert_eq!(RmaHeader::read(&message), Some((call, &data[..])));
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..90), begins: bool) {
            let mut bytes = bytes;
            if begins && bytes.len() > 8 {
                let kind = bytes[0] % 4;
                bytes[..8].copy_from_slice(&[kind, 0, 0, 0, 0, 0, 0, 0]);
            }
            if let Some((call, data)) = RmaHeader::read(&bytes) {
                prop_assert_eq!(&[&call.write()[..], data].concat(), &bytes);
            }
        }
    }
}
