//! Failure files, which define how cables, switches and NICs fail, in the format of the REPS
//! artifact's simulator.
//!
//! Lines of `Key: value`, case-insensitive, `#` starts a comment, times in ps. `docs/sim.md` lists
//! every key. [`FailureFile::events`] draws the failing devices from the seed and returns
//! [`LinkEvent`](super::LinkEvent)s, including those of the scenario's [`RandomFailure`]s.

mod draw;
mod file;
mod outages;
mod random;
mod reachability;
mod read;

pub use file::{DrawError, FailureFile};
pub use outages::FailureContext;
pub use random::{DeviceKind, FailureCount, FailureTarget, RandomFailure};

#[cfg(test)]
mod tests;
