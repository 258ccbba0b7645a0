//! `spray send` and `spray recv`: transfers of files and folders.

mod arrivals;
mod folder;
pub(crate) mod format;
mod homes;
mod incoming;
mod meter;
mod opener;
mod out;
mod outgoing;
mod partial;
mod recv;
mod report;
mod send;
mod timeouts;
mod tree;
mod writer;

#[cfg(test)]
mod tests;

pub use self::recv::recv;
pub use self::send::send;

/// Gb/s of a number of bytes in a time.
pub fn gbps(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 * 8.0 / seconds.max(1e-9) / 1e9
}
