//! What limits the reading of files that are there already, which costs a sender a few bytes: one file is read at a time, and each once.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use sha2::Sha256;

/// Most files of which a hash is kept, 200 bytes each. Of more, any gives way.
//= docs/specs/endpoint.md#END-23 The last 4,096
const FILES: usize = 4096;

/// Shared by all transfers of a receiver.
#[derive(Debug, Default)]
pub struct Compared {
    /// The next ticket, and the one that reads.
    tickets: Mutex<(u64, u64)>,
    changed: Condvar,
    hashes: Mutex<HashMap<Version, (Sha256, u64)>>,
}

/// A file as it is: device, number, length, and when its content and its metadata last changed, in seconds and nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Version(u64, u64, u64, (i64, i64), (i64, i64));

impl Version {
    fn of(file: &File) -> io::Result<Self> {
        let it = file.metadata()?;
        Ok(Self(it.dev(), it.ino(), it.len(), (it.mtime(), it.mtime_nsec()), (it.ctime(), it.ctime_nsec())))
    }
}

impl Compared {
    /// Waits until no other thread reads, in the order of the calls.
    pub fn turn(&self) -> Turn<'_> {
        let mut tickets = lock(&self.tickets);
        let own = tickets.0;
        tickets.0 += 1;
        let waits = |tickets: &mut (u64, u64)| tickets.1 != own;
        drop(self.changed.wait_while(tickets, waits).unwrap_or_else(PoisonError::into_inner));
        Turn(self)
    }

    /// Keeps the hash of a file's first bytes.
    pub fn put(&self, file: &File, hasher: &Sha256, hashed: u64) {
        let Ok(version) = Version::of(file) else { return };
        let mut hashes = lock(&self.hashes);
        if hashes.len() >= FILES && !hashes.contains_key(&version) {
            let any = hashes.keys().next().copied();
            any.map(|any| hashes.remove(&any));
        }
        hashes.insert(version, (hasher.clone(), hashed));
    }

    /// The hash of a file's first bytes, of at most `bytes`, if it is kept and the file has not changed since.
    pub fn get(&self, file: &File, bytes: u64) -> Option<(Sha256, u64)> {
        let version = Version::of(file).ok()?;
        lock(&self.hashes).get(&version).filter(|(_, hashed)| *hashed <= bytes).cloned()
    }
}

/// The right to read, until it is dropped.
#[must_use]
pub struct Turn<'a>(&'a Compared);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        lock(&self.0.tickets).1 += 1;
        self.0.changed.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use sha2::Digest;
    use spray_test_support::Folder;

    use super::*;

    #[test]
    //= docs/specs/endpoint.md#END-23 reads one file at a time
    fn one_reads_at_a_time() {
        let (compared, reading) = (Compared::default(), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let _turn = compared.turn();
                        assert_eq!(reading.fetch_add(1, Ordering::SeqCst), 0);
                        std::thread::yield_now();
                        reading.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
    }

    #[test]
    //= docs/specs/endpoint.md#END-23 The last 4,096
    fn a_hash_is_kept_until_the_file_changes_and_there_are_not_too_many() {
        let (dir, compared) = (Folder::new(), Compared::default());
        let path = dir.path().join("x");
        std::fs::write(&path, "five!").unwrap();
        let file = File::open(&path).unwrap();
        compared.put(&file, &Sha256::new_with_prefix("five!"), 5);
        assert!(compared.get(&file, 4).is_none());
        let (hasher, hashed) = compared.get(&file, 5).unwrap();
        assert_eq!((hasher.finalize(), hashed), (Sha256::digest("five!"), 5));
        std::fs::write(&path, "other").unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        assert!(compared.get(&file, 5).is_none());
        for second in 0..=FILES as u64 {
            file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(second)).unwrap();
            compared.put(&file, &Sha256::new(), 0);
        }
        assert_eq!(compared.hashes.lock().unwrap().len(), FILES);
    }
}
