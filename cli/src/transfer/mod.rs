//! `spray send` and `spray recv`: a file between two AF_XDP interfaces, by the endpoint that the testbed's hosts run.
//!
//! | file | content |
//! |---|---|
//! | `network` | interfaces and neighbours, as the kernel knows them |
//! | `session` | an interface taken over: program, socket, endpoint, clock |
//! | `format` | how a file travels in messages |
//! | `send`, `recv` | the two ends |
//! | `outgoing`, `incoming` | their files, each with a thread that reads, hashes and waits for the disk |
//! | `report` | the last lines of `send` |
//! | `partial` | a file that does not have its name yet |

mod format;
mod incoming;
mod network;
mod outgoing;
mod partial;
mod recv;
mod report;
mod send;
mod session;

#[cfg(test)]
mod tests;

pub use self::recv::recv;
pub use self::send::send;

/// `12.3 MB` and the like.
fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

/// Bytes in a time as Gb/s.
fn gbps(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 * 8.0 / seconds.max(1e-9) / 1e9
}
