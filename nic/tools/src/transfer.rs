//! `spray send` and `spray recv`: files and folders between two AF_XDP interfaces, by the endpoint that the testbed's hosts run.
//!
//! | file | content |
//! |---|---|
//! | `format` | how files and folders travel in messages |
//! | `send`, `recv` | the two ends |
//! | `tree`, `outgoing` | what is to be sent, and the thread that opens, reads and hashes it |
//! | `arrivals`, `incoming`, `keeper` | what comes by one connection, a file of it, and the file's thread, which hashes it and waits for the disk |
//! | `opener` | the thread that begins files and makes folders |
//! | `meter` | progress: share, rate, time left |
//! | `report` | the last lines of `send` |
//! | `patience` | how long a sender is waited for |
//! | `homes` | folders that nothing is received into unless they are named |
//! | `folder` | a folder, below which nothing leads out |
//! | `out` | where what arrives goes: a folder, a file, standard output |
//! | `partial` | a file that does not have its name yet |

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
