//! `spray send` and `spray recv`: transfers of files and folders.
//!
//! | file | content |
//! |---|---|
//! | `format` | wire format of the messages |
//! | `send`, `recv` | the two ends |
//! | `tree`, `outgoing` | entries to send, and the thread that opens, reads and hashes them |
//! | `arrivals`, `incoming`, `keeper` | entries of a connection, a file, and its writer thread |
//! | `opener` | the thread that creates files and folders |
//! | `meter`, `report` | progress, and the report of `send` |
//! | `patience` | timeouts of a receiver |
//! | `homes`, `folder`, `out`, `partial` | destination: default, confined folder, target, partial
//! file |

mod arrivals;
mod folder;
pub(crate) mod format;
mod homes;
mod incoming;
mod keeper;
mod meter;
mod opener;
mod out;
mod outgoing;
mod partial;
mod patience;
mod recv;
mod refusal;
mod report;
mod send;
mod tree;

#[cfg(test)]
mod tests;

pub use self::recv::recv;
pub use self::send::send;

/// `12.3 MB` and the like.
fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// Bytes in a time as Gb/s.
pub fn gbps(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 * 8.0 / seconds.max(1e-9) / 1e9
}
