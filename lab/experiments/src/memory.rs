//! Checks against the memory of this machine.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Returns an error if `bytes` exceed the available memory. A `remedy` ends the message.
pub(crate) fn fits_memory(what: &str, bytes: u64, remedy: &str) -> Result<(), String> {
    let available = if bytes > LITTLE_BYTES { available_bytes() } else { None };
    match available.filter(|available| bytes > *available) {
        Some(available) => {
            let [needs, has] = [bytes, available].map(|bytes| bytes as f64 / f64::from(1 << 30));
            Err(format!(
                "{what} would take {needs:.1} GiB of memory, of which {has:.1} GiB are free; allowed: {remedy}"
            ))
        }
        None => Ok(()),
    }
}

/// Below this the available memory is not read.
const LITTLE_BYTES: u64 = 1 << 30;

/// Memory available without swapping, if the system reports it.
fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1 << 10)
}

/// Reads a file that fits into memory twice.
pub(crate) fn read_payload(file: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(file)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"));
    }
    let length = file.metadata()?.len();
    fits_memory("the payload", length.saturating_mul(2), "a smaller file").map_err(io::Error::other)?;
    let mut bytes = Vec::with_capacity(length as usize);
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}
